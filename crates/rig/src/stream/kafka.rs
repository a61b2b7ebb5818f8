//! As much of the Kafka protocol as publishing takes: Produce version 7, one batch a request.
//!
//! The request is the same bytes each time, so the generator's cost is that of writing them. The connection is plain,
//! as Kafka clients on a loopback have it.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Produce, version 7 (no flexible fields).
const PRODUCE: [u8; 4] = [0, 0, 0, 7];
/// `acks`: all, which on one node is what the stream's durability says.
const ACKS_ALL: i16 = -1;
/// How long the server may take, in milliseconds.
const TIMEOUT_MS: i32 = 30_000;
/// An answer to one batch is not longer, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;

/// One connection that publishes.
pub(super) struct Publisher {
    socket: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    /// Where in an answer the error code is.
    code_at: usize,
}

impl Publisher {
    /// A connection that publishes this batch to one shard of a topic.
    pub(super) async fn connect(
        address: SocketAddr,
        topic: &str,
        shard: u32,
        batch: &[u8],
    ) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let request = request(topic, shard, batch);
        // Correlation, one topic, its name, one partition, its number.
        let code_at = 4 + 4 + 2 + topic.len() + 4 + 4;
        Ok(Publisher { socket, request, answer: Vec::new(), code_at })
    }

    /// Publishes the batch and waits until it is acknowledged.
    pub(super) async fn publish(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.request).await?;
        let length = usize::try_from(self.socket.read_i32().await?).unwrap_or(usize::MAX);
        if !(self.code_at + 2..=ANSWER_BYTES_MAX).contains(&length) {
            return Err(io::Error::other(format!("an answer of {length} bytes")));
        }
        self.answer.resize(length, 0);
        self.socket.read_exact(&mut self.answer).await?;
        match self.answer[self.code_at..self.code_at + 2] {
            [0, 0] => Ok(()),
            [high, low] => Err(io::Error::other(format!("error {}", i16::from_be_bytes([high, low])))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn request(topic: &str, shard: u32, batch: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(batch.len() + 128);
    body.extend_from_slice(&PRODUCE);
    body.extend_from_slice(&1i32.to_be_bytes());
    put_string(&mut body, "bench");
    // No transaction.
    body.extend_from_slice(&(-1i16).to_be_bytes());
    body.extend_from_slice(&ACKS_ALL.to_be_bytes());
    body.extend_from_slice(&TIMEOUT_MS.to_be_bytes());
    body.extend_from_slice(&1i32.to_be_bytes());
    put_string(&mut body, topic);
    body.extend_from_slice(&1i32.to_be_bytes());
    body.extend_from_slice(&shard.to_be_bytes());
    put_length(&mut body, batch.len());
    body.extend_from_slice(batch);
    let mut request = Vec::with_capacity(body.len() + 4);
    put_length(&mut request, body.len());
    request.extend_from_slice(&body);
    request
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_long_it_is_and_ends_with_its_batch() {
        let request = request("bench.a", 3, b"batch");
        assert_eq!(request[..4], u32::try_from(request.len() - 4).unwrap().to_be_bytes());
        assert_eq!(request[4..8], PRODUCE);
        assert!(request.ends_with(b"\0\0\0\x03\0\0\0\x05batch"));
    }
}
