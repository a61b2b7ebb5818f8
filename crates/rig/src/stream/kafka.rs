//! As much of the Kafka protocol as measuring takes: Produce version 7 with one batch a request, and Fetch version 4.
//!
//! A produce request is the same bytes each time, so the generator's cost is that of writing them. The connection is
//! plain, as Kafka clients on a loopback have it.

use std::io;
use std::net::SocketAddr;

use super::batch::{Follower, Met};
use super::native::Outcome;
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
/// Fetch, version 4 (the first one with the records as they are stored).
const FETCH: [u8; 4] = [0, 1, 0, 4];
/// How long a fetch waits for records, in milliseconds.
const FETCH_WAIT_MS: i32 = 500;
/// The most bytes that a fetch asks for.
const FETCH_BYTES_MAX: u32 = 8 << 20;

/// One connection that publishes.
pub(super) struct Publisher {
    socket: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    /// Where in an answer the error code is; the offset of the batch follows it.
    code_at: usize,
    /// Records of the batch.
    records: u64,
}

impl Publisher {
    /// A connection that publishes this batch to the first shard of a topic.
    pub(super) async fn connect(
        address: SocketAddr,
        topic: &str,
        records: u64,
        batch: &[u8],
    ) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let request = request(topic, 0, batch);
        // Correlation, one topic, its name, one partition, its number.
        let code_at = 4 + 4 + 2 + topic.len() + 4 + 4;
        Ok(Publisher { socket, request, answer: Vec::new(), code_at, records })
    }

    /// Publishes the batch and waits until it is acknowledged.
    pub(super) async fn publish(&mut self) -> io::Result<Outcome> {
        self.socket.write_all(&self.request).await?;
        answer(&mut self.socket, &mut self.answer, ANSWER_BYTES_MAX).await?;
        let mut fields = Fields(self.answer.get(self.code_at..).unwrap_or_default());
        match fields.i16()? {
            0 => Ok(Outcome::Done(fields.offset()? + self.records)),
            code => Err(io::Error::other(format!("error {code}"))),
        }
    }
}

/// Reads one answer into the buffer.
async fn answer(socket: &mut TcpStream, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<()> {
    let length = usize::try_from(socket.read_i32().await?).unwrap_or(usize::MAX);
    if length > bytes_max {
        return Err(io::Error::other(format!("an answer of {length} bytes")));
    }
    buffer.resize(length, 0);
    socket.read_exact(buffer).await.map(drop)
}

/// One connection that fetches, from the end of the first shard of a topic.
pub(super) struct Fetcher {
    socket: TcpStream,
    topic: String,
    follower: Follower,
    answer: Vec<u8>,
}

impl Fetcher {
    /// A connection that begins at this offset.
    pub(super) async fn connect(address: SocketAddr, topic: &str, follower: Follower) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Fetcher { socket, topic: topic.to_owned(), follower, answer: Vec::new() })
    }

    /// The next offset that it waits for.
    pub(super) fn next_offset(&self) -> u64 {
        self.follower.next()
    }

    /// Fetches once and tells of each batch.
    pub(super) async fn receive(&mut self, tell: &mut impl FnMut(Met)) -> io::Result<()> {
        self.socket.write_all(&fetch(&self.topic, self.follower.next())).await?;
        answer(&mut self.socket, &mut self.answer, 2 * FETCH_BYTES_MAX as usize).await?;
        self.follower.take(fetched(&self.answer, self.topic.len())?, tell).map(drop)
    }
}

fn fetch(topic: &str, offset: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    body.extend_from_slice(&FETCH);
    body.extend_from_slice(&1i32.to_be_bytes());
    put_string(&mut body, "bench");
    // No replica, how long to wait, for at least one byte, at most so many, uncommitted ones too.
    body.extend_from_slice(&(-1i32).to_be_bytes());
    body.extend_from_slice(&FETCH_WAIT_MS.to_be_bytes());
    body.extend_from_slice(&1i32.to_be_bytes());
    body.extend_from_slice(&FETCH_BYTES_MAX.to_be_bytes());
    body.push(0);
    body.extend_from_slice(&1i32.to_be_bytes());
    put_string(&mut body, topic);
    body.extend_from_slice(&1i32.to_be_bytes());
    body.extend_from_slice(&0i32.to_be_bytes());
    body.extend_from_slice(&offset.to_be_bytes());
    body.extend_from_slice(&FETCH_BYTES_MAX.to_be_bytes());
    framed(&body)
}

/// The records in an answer to a fetch of one partition.
fn fetched(answer: &[u8], topic_bytes: usize) -> io::Result<&[u8]> {
    // Correlation, throttle time, one topic, its name, one partition, its number.
    let mut fields = Fields(answer.get(4 + 4 + 4 + 2 + topic_bytes + 4 + 4..).unwrap_or_default());
    let code = fields.i16()?;
    if code != 0 {
        return Err(io::Error::other(format!("error {code}")));
    }
    // High watermark and last stable offset.
    fields.take(16)?;
    let aborted = fields.i32()?.max(0).cast_unsigned() as usize;
    fields.take(aborted.saturating_mul(16))?;
    let length = fields.i32()?.max(0).cast_unsigned() as usize;
    fields.take(length)
}

/// Fields of an answer, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        Ok(*self.take(N)?.first_chunk().expect("that many bytes were taken"))
    }

    fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    fn offset(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_be_bytes)
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
    framed(&body)
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut request = Vec::with_capacity(body.len() + 4);
    put_length(&mut request, body.len());
    request.extend_from_slice(body);
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

    #[test]
    fn the_records_of_a_fetch_are_found() {
        let mut answer = vec![0; 4 + 4 + 4 + 2 + 3 + 4 + 4];
        answer.extend_from_slice(&0i16.to_be_bytes());
        answer.extend_from_slice(&[9; 16]);
        answer.extend_from_slice(&(-1i32).to_be_bytes());
        answer.extend_from_slice(&3i32.to_be_bytes());
        answer.extend_from_slice(b"abc");
        assert_eq!(fetched(&answer, 3).unwrap(), b"abc");
        for cut in 0..answer.len() {
            assert!(fetched(&answer[..cut], 3).is_err(), "{cut}");
        }
        assert_eq!(fetch("bench.a", 7)[4..8], FETCH);
    }
}
