//! Bodies in chunks (RFC 9112 7.1), read as they come.
//!
//! A result whose length nobody knows beforehand is sent in chunks. This finds their contents and the end of the
//! last one, in whatever pieces the bytes arrive. Extensions are passed over, and so are trailers.

use crate::limits;
use crate::scanner::Fault;

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the line with the size of a chunk, so many of its bytes read; digits come first.
    Size { size: u64, line: usize, digits: bool },
    /// In a chunk with so many bytes left.
    Data(u64),
    /// Behind a chunk, at the end of its line.
    End,
    /// Behind the last chunk: bytes of trailers so far, and of the present line.
    Trailers { all: usize, line: usize },
}

const FRESH: State = State::Size { size: 0, line: 0, digits: true };

/// One body.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    state: State,
    body_bytes: u64,
    bound: u64,
}

impl Chunked {
    /// A body of which nothing is read, of at most so many bytes.
    pub(crate) fn new(bound: u64) -> Chunked {
        Chunked { state: FRESH, body_bytes: 0, bound }
    }

    /// Bytes of the body so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Reads up to the end of the body. Answers how many bytes it took, and whether the body has ended; its
    /// contents go to `contents`.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        contents: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, bool), Fault> {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Data(left) = self.state {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                contents(&bytes[at..at + length]);
                at += length;
                let left = left - length as u64;
                self.state = if left == 0 { State::End } else { State::Data(left) };
            } else {
                let ended = self.step(bytes[at])?;
                at += 1;
                if ended {
                    return Ok((at, true));
                }
            }
        }
        Ok((at, false))
    }

    /// Takes one byte of the framing; answers whether it was the last one of the body.
    fn step(&mut self, byte: u8) -> Result<bool, Fault> {
        self.state = match self.state {
            State::Size { size, line, digits } => self.size(byte, (size, line, digits))?,
            State::End if byte == b'\n' => FRESH,
            State::End if byte == b'\r' => State::End,
            State::End => return Err(Fault::Chunk),
            State::Trailers { line: 0, .. } if byte == b'\n' => return Ok(true),
            State::Trailers { all, .. } if all >= limits::HEAD_BYTES => return Err(Fault::HeadTooLong),
            State::Trailers { all, .. } if byte == b'\n' => State::Trailers { all: all + 1, line: 0 },
            State::Trailers { all, line } => {
                State::Trailers { all: all + 1, line: line + usize::from(byte != b'\r') }
            }
            State::Data(_) => unreachable!("contents are taken by feed"),
        };
        Ok(false)
    }

    fn size(&mut self, byte: u8, (size, line, digits): (u64, usize, bool)) -> Result<State, Fault> {
        let digit = char::from(byte).to_digit(16).filter(|_| digits);
        match (byte, digit) {
            (b'\n', _) if line == 0 => Err(Fault::Chunk),
            (b'\n', _) if size == 0 => Ok(State::Trailers { all: 0, line: 0 }),
            (b'\n', _) => {
                self.body_bytes = self.body_bytes.saturating_add(size);
                if self.body_bytes > self.bound { Err(Fault::BodyTooLong) } else { Ok(State::Data(size)) }
            }
            (_, Some(digit)) if line < 15 => {
                Ok(State::Size { size: size * 16 + u64::from(digit), line: line + 1, digits })
            }
            (b'\r' | b';' | b' ' | b'\t', _) if line > 0 => {
                Ok(State::Size { size, line: line + 1, digits: false })
            }
            _ if !digits && line < limits::HEAD_BYTES => Ok(State::Size { size, line: line + 1, digits }),
            _ => Err(Fault::Chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(parts: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), Fault> {
        let (mut chunked, mut body, mut taken) = (Chunked::new(1000), Vec::new(), 0);
        for part in parts {
            let (used, ended) = chunked.feed(part, &mut |bytes| body.extend_from_slice(bytes))?;
            taken += used;
            if ended {
                return Ok((body, taken, true));
            }
        }
        Ok((body, taken, false))
    }

    #[test]
    fn contents_end_with_the_last_chunk() {
        let bytes = b"5\r\nhello\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nTap-Query-Status: OK\r\n\r\nHTTP";
        let (body, taken, ended) = read(&[bytes]).unwrap();
        assert_eq!((&body[..], taken, ended), (&b"hello0123456789"[..], bytes.len() - 4, true));
        assert_eq!(read(&[b"0\r\n\r\n"]).unwrap(), (Vec::new(), 5, true));
        assert_eq!(read(&[b"3\r\nab"]).unwrap(), (b"ab".to_vec(), 5, false));
    }

    #[test]
    fn what_is_not_chunked_is_refused() {
        let table: [(&[u8], Fault); 6] = [
            (b"\r\nx", Fault::Chunk),
            (b"x\r\n", Fault::Chunk),
            (b"1\r\nab", Fault::Chunk),
            (b"fffffffffffffffff\r\n", Fault::Chunk),
            (b"3e9\r\n", Fault::BodyTooLong),
            (b"-1\r\n", Fault::Chunk),
        ];
        for (bytes, fault) in table {
            assert_eq!(read(&[bytes]).unwrap_err(), fault, "{}", String::from_utf8_lossy(bytes));
        }
        let long = [b"0\r\n".to_vec(), vec![b'a'; limits::HEAD_BYTES + 1]].concat();
        assert_eq!(read(&[&long]).unwrap_err(), Fault::HeadTooLong);
    }

    proptest! {
        #[test]
        fn contents_do_not_depend_on_where_the_bytes_are_cut(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 0..6),
            cut in 1usize..40,
        ) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            let parts: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(read(&parts).unwrap(), (chunks.concat(), bytes.len(), true));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[&bytes]);
            let _ = read(&[b"4\r\nabcd\r\n0\r\n", &bytes]);
        }
    }
}
