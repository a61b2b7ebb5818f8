//! A response scanner: the least that must be read of an HTTP/1.1 response to know where it ends.
//!
//! It finds the end of the head, reads the status and `Content-Length`, and counts the body down without
//! looking at it. One pass over the head, no copy unless the head arrives in pieces. It is not a client: a
//! response that is framed in any other way (chunked, or ended by the close of the connection) is a fault,
//! because the servers that the rig drives know their lengths.

use crate::limits;

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// Bytes of the head, the blank line included.
    pub(crate) bytes: usize,
    /// Bytes of the body that follows.
    pub(crate) body_bytes: u64,
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// Bytes of the body.
    pub(crate) body_bytes: u64,
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
    /// The body is sent in chunks.
    #[error("the body is chunked, a length was expected")]
    Chunked,
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
    /// The response whose body is being counted down, and the bytes left.
    open: Option<(Answer, u64)>,
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
            let answer = Answer { status: head.status, body_bytes: head.body_bytes };
            self.open = Some((answer, head.body_bytes));
        }
        let (used, answer) = self.feed_body(bytes.len() - taken);
        Ok((taken + used, answer))
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

    fn feed_body(&mut self, available: usize) -> (usize, Option<Answer>) {
        let Some((answer, left)) = self.open.as_mut() else { return (0, None) };
        let used = usize::try_from(*left).unwrap_or(usize::MAX).min(available);
        *left -= used as u64;
        let done = (*left == 0).then_some(*answer);
        if done.is_some() {
            self.open = None;
        }
        (used, done)
    }
}

/// Parses a head if it is complete.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let head = &bytes[..bytes.len().min(limits::HEAD_BYTES)];
    let mut lines = Lines { bytes: head, at: 0 };
    let (mut status, mut length) = (None, None);
    while let Some(line) = lines.next()? {
        match status {
            None => status = Some(status_line(line)?),
            Some(status) if line.is_empty() => {
                let body_bytes = body_length(status, length)?;
                return Ok(Some(Head { status, bytes: lines.at, body_bytes }));
            }
            Some(_) => header(line, &mut length)?,
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

/// Looks at the three headers that decide where the body ends. The length of a name rules out nearly all
/// others at once.
fn header(line: &[u8], length: &mut Option<u64>) -> Result<(), Fault> {
    let colon = memchr::memchr(b':', line).ok_or(Fault::HeaderLine)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    match name.len() {
        14 if name.eq_ignore_ascii_case(b"content-length") => {
            let value = number(value.trim_ascii()).ok_or(Fault::HeaderLine)?;
            *length = Some(value);
            if value > limits::BODY_BYTES { Err(Fault::BodyTooLong) } else { Ok(()) }
        }
        17 if name.eq_ignore_ascii_case(b"transfer-encoding") => Err(Fault::Chunked),
        10 if name.eq_ignore_ascii_case(b"connection")
            && value.trim_ascii().eq_ignore_ascii_case(b"close") =>
        {
            Err(Fault::Closing)
        }
        _ => Ok(()),
    }
}

/// RFC 9112 6.3: 204 and 304 end with their head; 1xx are not final.
fn body_length(status: u16, length: Option<u64>) -> Result<u64, Fault> {
    match status {
        100..=199 => Err(Fault::Interim),
        204 | 304 => Ok(0),
        200..=599 => length.ok_or(Fault::NoLength),
        _ => Err(Fault::StatusLine),
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
            HTTP/1.1 201\r\nContent-Length:0\r\n\r\n";
        let expected =
            [(200, 5), (204, 0), (201, 0)].map(|(status, body_bytes)| Answer { status, body_bytes });
        assert_eq!(whole(bytes).unwrap(), expected);
    }

    #[test]
    fn other_framings_are_faults() {
        let table: [(&[u8], Fault); 10] = [
            (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", Fault::StatusLine),
            (b"HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\nx", Fault::StatusLine),
            (b"HTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nx", Fault::StatusLine),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Fault::Chunked),
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
            (bytes, Answer { status, body_bytes: body.len() as u64 })
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
