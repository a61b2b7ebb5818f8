//! PostgreSQL's protocol, version 3, as far as measuring needs it (PostgreSQL manual, chapter "Frontend/Backend
//! Protocol"): simple queries to set things up, COPY in, and prepared statements in the binary format.
//!
//! Written here, because what is measured is the backend alone: a message that is encoded once and sent many times
//! costs the rig less than any library, and the connection tells the process whose CPU is read.

use crate::client;
use crate::error::Error;
use crate::limits;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

const NAME: &str = "PostgreSQL";
/// The longest message that is read, in bytes.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const COPY_PIECE_BYTES: usize = 64 << 10;

/// A value of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Short(i16),
    Int(i32),
    Double(f64),
}

impl Value {
    fn bytes(self) -> Vec<u8> {
        match self {
            Value::Short(value) => value.to_be_bytes().to_vec(),
            Value::Int(value) => value.to_be_bytes().to_vec(),
            Value::Double(value) => value.to_be_bytes().to_vec(),
        }
    }

    /// As it stands in SQL.
    pub(super) fn literal(self) -> String {
        match self {
            Value::Short(value) => format!("{value}::int2"),
            Value::Int(value) => value.to_string(),
            Value::Double(value) => format!("{value}::float8"),
        }
    }
}

/// A row as it comes.
pub(super) type Raw = Vec<Option<Vec<u8>>>;

/// A connection.
pub(super) struct Wire {
    socket: TcpStream,
    unread: Vec<u8>,
    at: usize,
    backend: u32,
}

/// One message, where its contents lie in `unread`.
struct Message {
    kind: u8,
    from: usize,
    to: usize,
}

impl Wire {
    /// Connects as a user whom the server trusts.
    pub(super) fn connect(address: SocketAddr, user: &str) -> Result<Wire, Error> {
        let socket = client::connect(address).map_err(broken)?;
        let mut wire = Wire { socket, unread: Vec::new(), at: 0, backend: 0 };
        let mut startup = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", user, "database", "postgres", ""] {
            startup.extend_from_slice(text.as_bytes());
            startup.push(0);
        }
        let mut message = length(startup.len()).to_vec();
        message.extend(startup);
        wire.send(&message)?;
        let mut backend = None;
        wire.until_ready(|kind, contents| {
            if kind == b'K' {
                backend = contents.first_chunk().map(|pid| u32::from_be_bytes(*pid));
            }
        })?;
        wire.backend = backend.ok_or_else(|| wrong("no process is named"))?;
        Ok(wire)
    }

    /// The process that serves this connection.
    pub(super) fn backend(&self) -> u32 {
        self.backend
    }

    /// Runs statements; answers the cells of all rows, as text.
    pub(super) fn simple(&mut self, sql: &str) -> Result<Vec<String>, Error> {
        self.send(&framed(b'Q', &[sql.as_bytes(), &[0]]))?;
        let mut cells = Vec::new();
        self.until_ready(|kind, contents| {
            if kind == b'D' {
                let row = row(contents).into_iter().flatten();
                cells.extend(row.flatten().map(|cell| String::from_utf8_lossy(&cell).into_owned()));
            }
        })?;
        Ok(cells)
    }

    /// Runs COPY ... FROM STDIN with this input.
    pub(super) fn copy(&mut self, sql: &str, mut input: impl Read) -> Result<(), Error> {
        self.send(&framed(b'Q', &[sql.as_bytes(), &[0]]))?;
        let message = self.next(deadline())?;
        if message.kind != b'G' {
            return Err(self.refused(&message));
        }
        let mut piece = vec![0; COPY_PIECE_BYTES];
        loop {
            let length = input.read(&mut piece).map_err(Error::system("reading the peer's table"))?;
            if length == 0 {
                break;
            }
            self.send(&framed(b'd', &[&piece[..length]]))?;
        }
        self.send(&framed(b'c', &[]))?;
        self.until_ready(|_, _| ())
    }

    /// Prepares a statement; the types of its values are left to the server.
    pub(super) fn prepare(&mut self, name: &str, sql: &str) -> Result<(), Error> {
        let mut message = framed(b'P', &[name.as_bytes(), &[0], sql.as_bytes(), &[0, 0, 0]]);
        message.extend(framed(b'S', &[]));
        self.send(&message)?;
        self.until_ready(|_, _| ())
    }

    /// Sends an encoded execution and counts the rows that come back.
    pub(super) fn count(&mut self, execution: &[u8]) -> Result<u64, Error> {
        self.send(execution)?;
        let mut rows = 0;
        self.until_ready(|kind, _| rows += u64::from(kind == b'D'))?;
        Ok(rows)
    }

    /// Sends an encoded execution and takes the rows that come back.
    pub(super) fn rows(&mut self, execution: &[u8]) -> Result<Vec<Raw>, Error> {
        self.send(execution)?;
        let mut rows = Vec::new();
        self.until_ready(|kind, contents| {
            if kind == b'D' {
                rows.push(row(contents));
            }
        })?;
        rows.into_iter().collect::<Option<_>>().ok_or_else(|| wrong("a row that ends early"))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.socket.write_all(message).map_err(broken)
    }

    /// Shows every message up to the one that says that the server is ready. An error waits until then.
    fn until_ready(&mut self, mut look: impl FnMut(u8, &[u8])) -> Result<(), Error> {
        let (deadline, mut refused) = (deadline(), None);
        loop {
            let message = self.next(deadline)?;
            match message.kind {
                b'Z' => break,
                b'E' => {
                    let error = self.refused(&message);
                    refused.get_or_insert(error);
                }
                kind => look(kind, &self.unread[message.from..message.to]),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn next(&mut self, deadline: Instant) -> Result<Message, Error> {
        loop {
            if let Some([kind, length @ ..]) = self.unread[self.at..].first_chunk::<5>() {
                let length = u32::from_be_bytes(*length) as usize;
                if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
                    return Err(wrong("a message of impossible length"));
                }
                let (from, to) = (self.at + 5, self.at + 1 + length);
                if to <= self.unread.len() {
                    self.at = to;
                    return Ok(Message { kind: *kind, from, to });
                }
            }
            self.read_more(deadline)?;
        }
    }

    fn read_more(&mut self, deadline: Instant) -> Result<(), Error> {
        self.unread.drain(..self.at);
        self.at = 0;
        let silent = || Error::Silent { name: NAME, seconds: limits::ANSWER_WAIT.as_secs() };
        let mut buffer = [0; 64 << 10];
        match self.socket.read(&mut buffer) {
            Ok(0) => return Err(broken(std::io::ErrorKind::UnexpectedEof.into())),
            Ok(length) => self.unread.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if client::timed_out(&error) => return Err(silent()),
            Err(error) => return Err(broken(error)),
        }
        if Instant::now() < deadline { Ok(()) } else { Err(silent()) }
    }

    /// What an error message says: fields, each with a letter before it.
    fn refused(&self, message: &Message) -> Error {
        let fields = self.unread[message.from..message.to].split(|byte| *byte == 0);
        let said = fields.filter_map(|field| field.strip_prefix(b"M")).next();
        wrong(&said.map_or_else(|| "a refusal".into(), String::from_utf8_lossy))
    }
}

fn deadline() -> Instant {
    Instant::now() + limits::ANSWER_WAIT
}

fn broken(source: std::io::Error) -> Error {
    Error::Connection { name: NAME, source }
}

fn wrong(what: &str) -> Error {
    Error::Wrong { name: NAME, what: what.to_owned() }
}

/// A length as messages have it: its own four bytes included.
fn length(contents: usize) -> [u8; 4] {
    u32::try_from(contents + 4).unwrap_or(u32::MAX).to_be_bytes()
}

fn framed(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend(length(parts.iter().map(|part| part.len()).sum()));
    parts.iter().for_each(|part| message.extend_from_slice(part));
    message
}

/// Bind, Execute and Sync of a prepared statement, values and results in binary.
pub(super) fn execution(statement: &str, values: &[Value]) -> Vec<u8> {
    let count = u16::try_from(values.len()).unwrap_or(u16::MAX).to_be_bytes();
    // The unnamed portal of the statement; one format for all values, and one for all columns: binary.
    let mut bind = vec![0];
    bind.extend_from_slice(statement.as_bytes());
    bind.extend([0, 0, 1, 0, 1]);
    bind.extend(count);
    for value in values {
        let bytes = value.bytes();
        bind.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
        bind.extend(bytes);
    }
    bind.extend([0, 1, 0, 1]);
    let mut message = framed(b'B', &[&bind]);
    message.extend(framed(b'E', &[&[0], &[0; 4]]));
    message.extend(framed(b'S', &[]));
    message
}

/// The cells of a DataRow message.
fn row(mut contents: &[u8]) -> Option<Raw> {
    let count = u16::from_be_bytes(take(&mut contents)?);
    let mut cells = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let length = i32::from_be_bytes(take(&mut contents)?);
        let Ok(length) = usize::try_from(length) else {
            cells.push(None);
            continue;
        };
        let (cell, rest) = contents.split_at_checked(length)?;
        cells.push(Some(cell.to_vec()));
        contents = rest;
    }
    Some(cells)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*front)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_execution_is_bind_execute_sync() {
        let bytes = execution("look", &[Value::Int(7), Value::Short(-1)]);
        let bind = [
            &b"B\0\0\0\x22\0look\0"[..],
            &[0, 1, 0, 1, 0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 2, 0xff, 0xff, 0, 1, 0, 1],
        ]
        .concat();
        assert_eq!(bytes, [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat());
        assert_eq!(bind.len(), 1 + 0x22);
    }

    #[test]
    fn rows_have_cells_or_nothing() {
        let contents = [0, 3, 0, 0, 0, 2, 9, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(row(&contents), Some(vec![Some(vec![9, 8]), None, Some(Vec::new())]));
        assert_eq!(row(&contents[..7]), None);
    }

    #[test]
    fn literals_carry_their_type() {
        let literals = [Value::Short(-3), Value::Int(7), Value::Double(0.5)].map(Value::literal);
        assert_eq!(literals, ["-3::int2", "7", "0.5::float8"]);
    }

    proptest! {
        #[test]
        fn any_row_is_read_or_refused(contents in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = row(&contents);
        }
    }
}
