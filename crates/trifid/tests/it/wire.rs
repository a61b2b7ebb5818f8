//! A client that says what a test wants it to say, byte for byte, also what no client should say.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::harness::Serving;

/// The root of the context door.
pub(crate) const ROOT: &str = "/ngsi-ld/v1";
pub(crate) const JSON: &str = "Content-Type: application/json\r\n";
pub(crate) const LD_JSON: &str = "Content-Type: application/ld+json\r\n";

/// A server that neither answers nor closes is a failure, not a test that never ends.
const PATIENCE: Duration = Duration::from_mins(2);

/// One connection.
pub(crate) struct Wire(BufReader<TcpStream>);

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Wire {
    pub(crate) fn to(serving: &Serving) -> Self {
        Self::connect(serving.address)
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends `bytes`, or as much of them as the server wants: one that has made up its mind reads no further.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        match self.0.get_mut().write_all(bytes) {
            Err(error) if !is_end(error.kind()) => panic!("sending failed: {error}"),
            Ok(()) | Err(_) => {}
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        // A server that has closed already has no use for it.
        let _ = self.0.get_mut().shutdown(Shutdown::Write);
    }

    /// The next answer to `method`; none when the server has closed the connection instead.
    pub(crate) fn answer(&mut self, method: &str) -> Option<Reply> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {status_line:?}"));
        let mut headers = Vec::new();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        if method != "HEAD" {
            reply.body.resize(length, 0);
            self.0.read_exact(&mut reply.body).unwrap();
        }
        Some(reply)
    }

    /// Waits until the server has closed the connection, whatever it says before.
    pub(crate) fn read_to_end(&mut self, into: &mut Vec<u8>) {
        match self.0.read_to_end(into) {
            Err(error) if !is_end(error.kind()) => panic!("neither answered nor closed: {error}"),
            Ok(_) | Err(_) => {}
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if is_end(error.kind()) => None,
            Err(error) => panic!("neither answered nor closed: {error}"),
        }
    }
}

fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe)
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The `detail` of a refusal, which has to be the standard's document of `kind` (5.5.2, 6.3.2).
    pub(crate) fn detail(&self, kind: &str) -> String {
        let problem = self.json();
        let uri = format!("https://uri.etsi.org/ngsi-ld/errors/{kind}");
        assert_eq!(problem["type"].as_str(), Some(uri.as_str()), "{problem}");
        assert_eq!(problem["status"], self.status, "{problem}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{problem}");
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(!detail.is_empty() && detail.len() < 1000, "{problem}");
        detail.to_owned()
    }
}

/// A request with its length, on `target` below the root of the door.
pub(crate) fn request(method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {ROOT}{target} HTTP/1.1\r\nHost: trifid\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// One request on a connection of its own.
pub(crate) fn ask(
    serving: &Serving,
    method: &str,
    target: &str,
    headers: &str,
    body: impl AsRef<[u8]>,
) -> Reply {
    let mut wire = Wire::to(serving);
    wire.send(&request(method, target, headers, body.as_ref()));
    wire.answer(method).unwrap_or_else(|| panic!("{method} {target} was not answered"))
}

/// `text` as one segment of a path or the value of a parameter.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    let encode = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// What stands at the end of each test: the server is up, and has nothing to complain of.
pub(crate) fn is_well(serving: Serving) {
    let health = serving.get("/q/health");
    assert_eq!(health.status, 200, "{}", health.body);
    let health: Value = serde_json::from_str(&health.body).unwrap();
    assert_eq!((&health["status"], &health["counters"]["refusals"]["panicked"]), (&"up".into(), &0.into()));
    serving.stop_cleanly();
}
