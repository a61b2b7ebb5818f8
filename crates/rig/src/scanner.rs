//! A response scanner: the least that must be read of an HTTP/1.1 response to know where it ends.
//!
//! It finds the end of the head, reads the status and how the body is framed, and counts the body down without
//! looking at it, or finds the end of its chunks. One pass over the head, no copy unless the head arrives in
//! pieces. It is not a client: a response that ends with the close of the connection is a fault, because the
//! servers that the rig drives keep their connections.

use crate::chunked::Chunked;
use crate::limits;

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// Bytes of the head, the blank line included.
    pub(crate) bytes: usize,
    /// How the body that follows is framed.
    pub(crate) framing: Framing,
    /// Whether it says when to come again.
    pub(crate) retry_after: bool,
}

/// How a body is framed (RFC 9112 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// Bytes of the body, without its framing.
    pub(crate) body_bytes: u64,
    /// Whether it says when to come again.
    pub(crate) retry_after: bool,
}

/// Why a response cannot be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The first line is not an HTTP/1.1 status line.
    #[error("the status line is not one of HTTP/1.1")]
    StatusLine,
    /// A header line has no colon, or a length that is not a number.
    #[error("a header line cannot be read")]
    HeaderLine,
    /// The head is longer than the bound.
    #[error("the head is longer than {} bytes", limits::HEAD_BYTES)]
    HeadTooLong,
    /// The body is longer than the bound.
    #[error("the body is longer than {} bytes", limits::BODY_BYTES)]
    BodyTooLong,
    /// The frame of a chunk cannot be read.
    #[error("the frame of a chunk cannot be read")]
    Chunk,
    /// A transfer coding other than chunked.
    #[error("a transfer coding that was not asked for")]
    Coding,
    /// Nothing tells the length of the body.
    #[error("the response has no Content-Length")]
    NoLength,
    /// A 1xx response, for which nobody asked.
    #[error("an interim response")]
    Interim,
    /// The server is about to close the connection.
    #[error("the server closes the connection")]
    Closing,
}

/// Scans one response after the other on one connection.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// The beginning of a head that has not ended yet.
    held: Vec<u8>,
    /// The response whose body is being read.
    open: Option<Open>,
}

/// A response whose head is read.
#[derive(Debug)]
struct Open {
    status: u16,
    retry_after: bool,
    body: Body,
}

/// How far a body is read.
#[derive(Debug)]
enum Body {
    Length { all: u64, left: u64 },
    Chunked(Chunked),
}

impl Scanner {
    /// Reads from `bytes` up to the end of the current response. Answers how many bytes it took, and the
    /// response once it is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Answer>), Fault> {
        let mut taken = 0;
        if self.open.is_none() {
            let (used, head) = self.feed_head(bytes)?;
            taken = used;
            let Some(head) = head else { return Ok((taken, None)) };
            self.open = Some(Open::new(&head));
        }
        let (used, answer) = self.feed_body(&bytes[taken..])?;
        Ok((taken + used, answer))
    }

    /// Whether the first byte of a body has come whose last one has not.
    pub(crate) fn in_body(&self) -> bool {
        match self.open.as_ref().map(|open| &open.body) {
            Some(Body::Length { all, left }) => left < all,
            Some(Body::Chunked(chunked)) => chunked.body_bytes() > 0,
            None => false,
        }
    }

    fn feed_head(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), Fault> {
        if self.held.is_empty()
            && let Some(head) = parse_head(bytes)?
        {
            return Ok((head.bytes, Some(head)));
        }
        let before = self.held.len();
        let room = (limits::HEAD_BYTES - before).min(bytes.len());
        self.held.extend_from_slice(&bytes[..room]);
        let Some(head) = parse_head(&self.held)? else {
            return if self.held.len() < limits::HEAD_BYTES {
                Ok((room, None))
            } else {
                Err(Fault::HeadTooLong)
            };
        };
        self.held.clear();
        Ok((head.bytes - before, Some(head)))
    }

    fn feed_body(&mut self, bytes: &[u8]) -> Result<(usize, Option<Answer>), Fault> {
        let Some(open) = self.open.as_mut() else { return Ok((0, None)) };
        let (used, body_bytes) = open.body.feed(bytes)?;
        let answer = body_bytes.map(|body_bytes| Answer {
            status: open.status,
            body_bytes,
            retry_after: open.retry_after,
        });
        if answer.is_some() {
            self.open = None;
        }
        Ok((used, answer))
    }
}

impl Open {
    fn new(head: &Head) -> Open {
        let body = match head.framing {
            Framing::Length(all) => Body::Length { all, left: all },
            Framing::Chunked => Body::Chunked(Chunked::new(limits::BODY_BYTES)),
        };
        Open { status: head.status, retry_after: head.retry_after, body }
    }
}

impl Body {
    /// Answers how many bytes it took, and the length of the body once it is complete.
    fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<u64>), Fault> {
        match self {
            Body::Length { all, left } => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= used as u64;
                Ok((used, (*left == 0).then_some(*all)))
            }
            Body::Chunked(chunked) => {
                let (used, ended) = chunked.feed(bytes, &mut |_| ())?;
                Ok((used, ended.then(|| chunked.body_bytes())))
            }
        }
    }
}

/// Parses a head if it is complete.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let head = &bytes[..bytes.len().min(limits::HEAD_BYTES)];
    let mut lines = Lines { bytes: head, at: 0 };
    let (mut status, mut fields) = (None, Fields::default());
    while let Some(line) = lines.next()? {
        match status {
            None => status = Some(status_line(line)?),
            Some(status) if line.is_empty() => {
                let framing = fields.framing(status)?;
                return Ok(Some(Head { status, bytes: lines.at, framing, retry_after: fields.retry_after }));
            }
            Some(_) => fields.header(line)?,
        }
    }
    if bytes.len() > limits::HEAD_BYTES { Err(Fault::HeadTooLong) } else { Ok(None) }
}

/// Lines of a head, without their ends.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    /// The next line, if it is complete.
    fn next(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let rest = &self.bytes[self.at..];
        let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(None) };
        self.at += end + 1;
        rest[..end].strip_suffix(b"\r").map(Some).ok_or(Fault::HeaderLine)
    }
}

/// RFC 9112 4: `HTTP/1.1 SP 3DIGIT SP [ reason ] CRLF`.
fn status_line(line: &[u8]) -> Result<u16, Fault> {
    let code = line.strip_prefix(b"HTTP/1.1 ").ok_or(Fault::StatusLine)?;
    let (digits, after) = code.split_at_checked(3).ok_or(Fault::StatusLine)?;
    if !matches!(after.first(), None | Some(b' ')) {
        return Err(Fault::StatusLine);
    }
    let status = number(digits).ok_or(Fault::StatusLine)?;
    u16::try_from(status).map_err(|_| Fault::StatusLine)
}

/// What the header fields say that matters here.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    chunked: bool,
    retry_after: bool,
}

impl Fields {
    /// Looks at the fields that decide where the body ends. The length of a name rules out nearly all others at
    /// once.
    fn header(&mut self, line: &[u8]) -> Result<(), Fault> {
        let colon = memchr::memchr(b':', line).ok_or(Fault::HeaderLine)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let value = number(value).ok_or(Fault::HeaderLine)?;
                self.length = Some(value);
                if value > limits::BODY_BYTES { Err(Fault::BodyTooLong) } else { Ok(()) }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.chunked = value.eq_ignore_ascii_case(b"chunked");
                if self.chunked { Ok(()) } else { Err(Fault::Coding) }
            }
            10 if name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"close") => {
                Err(Fault::Closing)
            }
            11 if name.eq_ignore_ascii_case(b"retry-after") => {
                self.retry_after = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// RFC 9112 6.3: 204 and 304 end with their head; 1xx are not final; chunks come before a length.
    fn framing(&self, status: u16) -> Result<Framing, Fault> {
        match status {
            100..=199 => Err(Fault::Interim),
            204 | 304 => Ok(Framing::Length(0)),
            200..=599 if self.chunked => Ok(Framing::Chunked),
            200..=599 => self.length.map(Framing::Length).ok_or(Fault::NoLength),
            _ => Err(Fault::StatusLine),
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(bytes: &[u8]) -> Result<Vec<Answer>, Fault> {
        pieces(&[bytes])
    }

    fn pieces(parts: &[&[u8]]) -> Result<Vec<Answer>, Fault> {
        let (mut scanner, mut answers) = (Scanner::default(), Vec::new());
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let (used, answer) = scanner.feed(rest)?;
                assert!(used > 0, "no progress");
                answers.extend(answer);
                rest = &rest[used..];
            }
        }
        Ok(answers)
    }

    #[test]
    fn responses_end_where_their_length_says() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello\
            HTTP/1.1 204 No Content\r\n\r\n\
            HTTP/1.1 503\r\nContent-Length:0\r\nRETRY-AFTER: 1\r\n\r\n\
            HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\nX: y\r\n\r\n";
        let expected = [(200, 5, false), (204, 0, false), (503, 0, true), (200, 7, false)];
        let expected =
            expected.map(|(status, body_bytes, retry_after)| Answer { status, body_bytes, retry_after });
        assert_eq!(whole(bytes).unwrap(), expected);
    }

    #[test]
    fn it_tells_when_a_body_has_begun() {
        let check = |bytes: &[u8], expected: bool| {
            let mut scanner = Scanner::default();
            scanner.feed(bytes).unwrap();
            assert_eq!(scanner.in_body(), expected, "{}", String::from_utf8_lossy(bytes));
        };
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", false);
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx", true);
        check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2", false);
        check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nx", true);
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy", false);
    }

    #[test]
    fn other_framings_are_faults() {
        let table: [(&[u8], Fault); 10] = [
            (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", Fault::StatusLine),
            (b"HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\nx", Fault::StatusLine),
            (b"HTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nx", Fault::StatusLine),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", Fault::Coding),
            (b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n", Fault::NoLength),
            (b"HTTP/1.1 100 Continue\r\n\r\n", Fault::Interim),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Fault::HeaderLine),
            (b"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n", Fault::HeaderLine),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", Fault::BodyTooLong),
            (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", Fault::Closing),
        ];
        for (bytes, fault) in table {
            assert_eq!(whole(bytes), Err(fault), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_head_without_end_is_refused_at_the_bound() {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        bytes.resize(limits::HEAD_BYTES + 10, b'a');
        assert_eq!(whole(&bytes), Err(Fault::HeadTooLong));
        let parts: Vec<&[u8]> = bytes.chunks(1000).collect();
        assert_eq!(pieces(&parts), Err(Fault::HeadTooLong));
    }

    fn response() -> impl Strategy<Value = (Vec<u8>, Answer)> {
        let status = prop::sample::select(vec![200u16, 201, 204, 207, 400, 404, 503]);
        let padding = prop::collection::vec("[A-Za-z-]{1,20}: [ -~]{0,40}", 0..5);
        (status, padding, prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(status, padding, body)| {
            let body = if status == 204 { Vec::new() } else { body };
            let mut bytes = format!("HTTP/1.1 {status} Reason\r\n").into_bytes();
            for line in padding.iter().filter(|line| !line.to_ascii_lowercase().starts_with("connection")) {
                bytes.extend(format!("X-{line}\r\n").into_bytes());
            }
            if status != 204 {
                bytes.extend(format!("Content-Length: {}\r\n", body.len()).into_bytes());
            }
            bytes.extend(b"\r\n");
            bytes.extend(&body);
            (bytes, Answer { status, body_bytes: body.len() as u64, retry_after: false })
        })
    }

    proptest! {
        #[test]
        fn answers_do_not_depend_on_where_the_bytes_are_cut(
            responses in prop::collection::vec(response(), 1..5),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let bytes: Vec<u8> = responses.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            let expected: Vec<Answer> = responses.iter().map(|(_, answer)| *answer).collect();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            at.push(bytes.len());
            at.sort_unstable();
            let mut parts = Vec::new();
            let mut from = 0;
            for to in at {
                parts.push(&bytes[from..to]);
                from = to;
            }
            prop_assert_eq!(pieces(&parts).unwrap(), expected);
        }

        #[test]
        fn any_bytes_are_answered_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut framed = b"HTTP/1.1 200 OK\r\n".to_vec();
            framed.extend(&bytes);
            let _ = whole(&bytes);
            let _ = whole(&framed);
        }
    }
}
