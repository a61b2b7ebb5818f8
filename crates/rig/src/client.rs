//! A blocking client for everything that is not measured: seeding, learning what answers look like, and
//! looking at them.

use crate::error::Error;
use crate::limits;
use crate::scanner;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One answer, whole.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The status code.
    pub(crate) status: u16,
    /// Header fields in order, without those of one connection or moment.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<serde_json::Value, String> {
        serde_json::from_slice(&self.body)
            .map_err(|error| format!("a body that is not JSON ({error}): {self:.200}"))
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{} {}", self.status, String::from_utf8_lossy(&self.body));
        f.pad(&text)
    }
}

/// One connection.
pub(crate) struct Client {
    name: &'static str,
    socket: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    /// Connects.
    pub(crate) fn connect(name: &'static str, address: SocketAddr) -> Result<Client, Error> {
        let socket = TcpStream::connect(address).and_then(|socket| {
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(limits::ANSWER_WAIT))?;
            Ok(socket)
        });
        let socket = socket.map_err(|source| Error::Connection { name, source })?;
        Ok(Client { name, socket, unread: Vec::new() })
    }

    /// Sends an encoded request and reads its answer.
    pub(crate) fn call(&mut self, request: &[u8]) -> Result<Reply, Error> {
        self.socket.write_all(request).map_err(|source| Error::Connection { name: self.name, source })?;
        let head = loop {
            let parsed = scanner::parse_head(&self.unread);
            match parsed.map_err(|fault| Error::Response { name: self.name, fault })? {
                Some(head) => break head,
                None => self.read_more()?,
            }
        };
        let end =
            head.bytes + usize::try_from(head.body_bytes).expect("bodies are bounded by limits::BODY_BYTES");
        while self.unread.len() < end {
            self.read_more()?;
        }
        let headers = header_fields(&self.unread[..head.bytes]);
        let body = self.unread[head.bytes..end].to_vec();
        self.unread.drain(..end);
        Ok(Reply { status: head.status, headers, body })
    }

    fn read_more(&mut self) -> Result<(), Error> {
        let mut buffer = [0; 64 * 1024];
        let length = match self.socket.read(&mut buffer) {
            Ok(0) => Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "closed by the server")),
            other => other,
        };
        let length = length.map_err(|source| Error::Connection { name: self.name, source })?;
        self.unread.extend_from_slice(&buffer[..length]);
        Ok(())
    }
}

/// The fields that a floor repeats. `Date`, `Content-Length` and `Connection` belong to the server that
/// sends them.
fn header_fields(head: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(head);
    let fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let kept = fields.filter(|(name, _)| {
        !["date", "content-length", "connection"].iter().any(|own| name.eq_ignore_ascii_case(own))
    });
    kept.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_moment_are_left_out() {
        let head =
            b"HTTP/1.1 200 OK\r\nDate: now\r\nLink: <a>; rel=\"b\"\r\nCONTENT-LENGTH: 3\r\nx: y:z\r\n\r\n";
        let expected = [("Link", "<a>; rel=\"b\""), ("x", "y:z")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(header_fields(head), expected);
    }
}
