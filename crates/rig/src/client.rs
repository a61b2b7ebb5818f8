//! A blocking client for everything that is not measured: seeding, learning what answers look like, and
//! looking at them.

use crate::chunked::Chunked;
use crate::error::Error;
use crate::limits;
use crate::scanner::{self, Fault, Framing};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One answer, whole.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The status code.
    pub(crate) status: u16,
    /// Header fields in order, without those of one connection or moment.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// Whether the body came in chunks.
    pub(crate) chunked: bool,
}

impl Reply {
    /// The value of a header field.
    pub(crate) fn header(&self, wanted: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

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
        let socket = connect(address).map_err(|source| Error::Connection { name, source })?;
        Ok(Client { name, socket, unread: Vec::new() })
    }

    /// Sends an encoded request and reads its answer.
    pub(crate) fn call(&mut self, request: &[u8]) -> Result<Reply, Error> {
        self.socket.write_all(request).map_err(|source| Error::Connection { name: self.name, source })?;
        let deadline = Instant::now() + limits::ANSWER_WAIT;
        let head = loop {
            match scanner::parse_head(&self.unread).map_err(|fault| self.odd(fault))? {
                Some(head) => break head,
                None => self.read_more(deadline)?,
            }
        };
        let headers = header_fields(&self.unread[..head.bytes]);
        self.unread.drain(..head.bytes);
        let body = match head.framing {
            Framing::Length(length) => self.whole(length, deadline)?,
            Framing::Chunked => self.chunks(deadline)?,
        };
        Ok(Reply { status: head.status, headers, body, chunked: head.framing == Framing::Chunked })
    }

    fn whole(&mut self, length: u64, deadline: Instant) -> Result<Vec<u8>, Error> {
        let length = usize::try_from(length).expect("bodies are bounded by limits::BODY_BYTES");
        while self.unread.len() < length {
            self.read_more(deadline)?;
        }
        let rest = self.unread.split_off(length);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    fn chunks(&mut self, deadline: Instant) -> Result<Vec<u8>, Error> {
        let (mut chunked, mut body) = (Chunked::new(limits::BODY_BYTES), Vec::new());
        loop {
            let fed = chunked.feed(&self.unread, &mut |bytes| body.extend_from_slice(bytes));
            let (used, ended) = fed.map_err(|fault| self.odd(fault))?;
            self.unread.drain(..used);
            if ended {
                return Ok(body);
            }
            self.read_more(deadline)?;
        }
    }

    fn odd(&self, fault: Fault) -> Error {
        Error::Response { name: self.name, fault }
    }

    fn read_more(&mut self, deadline: Instant) -> Result<(), Error> {
        let mut buffer = [0; 64 * 1024];
        let length = loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => {
                    break Err(std::io::Error::new(
                        std::io::ErrorKind::UnexpectedEof,
                        "closed by the server",
                    ));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if timed_out(&error) => return Err(self.silent()),
                other => break other,
            }
        };
        let length = length.map_err(|source| Error::Connection { name: self.name, source })?;
        self.unread.extend_from_slice(&buffer[..length]);
        if Instant::now() < deadline { Ok(()) } else { Err(self.silent()) }
    }

    fn silent(&self) -> Error {
        Error::Silent { name: self.name, seconds: limits::ANSWER_WAIT.as_secs() }
    }
}

/// Whether a read came to its time limit.
pub(crate) fn timed_out(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// A connection whose reads and writes end in time.
pub(crate) fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, limits::CONNECT_WAIT)?;
    socket.set_nodelay(true)?;
    bound(&socket, limits::ANSWER_WAIT)?;
    Ok(socket)
}

fn bound(socket: &TcpStream, wait: Duration) -> std::io::Result<()> {
    socket.set_read_timeout(Some(wait))?;
    socket.set_write_timeout(Some(wait))
}

/// Fields that belong to the server that sends them: those of the moment and of the framing.
const OWN: [&str; 5] = ["date", "content-length", "connection", "transfer-encoding", "trailer"];

/// The fields that a floor repeats.
fn header_fields(head: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(head);
    let fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let kept = fields.filter(|(name, _)| !OWN.iter().any(|own| name.eq_ignore_ascii_case(own)));
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

    /// A server that sends these bytes to one connection and keeps it.
    fn sending(bytes: &'static [u8]) -> Client {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            for part in bytes.chunks(7) {
                socket.write_all(part).unwrap();
            }
            let _ = socket.read(&mut [0; 1024]);
            let _ = socket.read(&mut [0; 1024]);
        });
        Client::connect("the server", address).unwrap()
    }

    #[test]
    fn answers_are_read_in_either_framing() {
        let mut client = sending(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n\
              5\r\nhello\r\n1\r\n!\r\n0\r\nx: y\r\n\r\n\
              HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno",
        );
        let reply = client.call(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((reply.status, &*reply.text(), reply.chunked), (200, "hello!", true));
        assert_eq!(reply.headers, []);
        let reply = client.call(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((reply.status, &*reply.text(), reply.chunked), (503, "no", false));
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
}
