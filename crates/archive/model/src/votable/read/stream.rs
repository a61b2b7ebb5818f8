//! The bytes of a STREAM, decoded from base64 as far as they are asked for.

use std::io::Read;

use super::super::base64::Decoder;
use super::incoming::Incoming;
use super::scan::{Mark, Piece, Scanner};
use crate::read::{At, Fault, ReadError};
use crate::votable::limits;

/// A STREAM under way. It holds what has been decoded and not yet taken: a piece of the document, or a large cell.
#[derive(Default)]
pub(super) struct Stream {
    decoder: Decoder,
    bytes: Vec<u8>,
    start: usize,
    ended: bool,
}

impl Stream {
    /// Reads the STREAM tag of BINARY or BINARY2.
    pub(super) fn open<R: Read>(scanner: &mut Scanner<R>, columns: &[Incoming]) -> Result<Self, ReadError> {
        if scanner.next()? != Mark::Start || scanner.tag.name() != b"STREAM" {
            return Err(scanner.malformed("BINARY without a STREAM"));
        }
        let unsupported =
            |message: &str| Err(ReadError::new(scanner.at(), Fault::Unsupported(message.into())));
        if scanner.attribute("href")?.is_some_and(|href| !href.is_empty()) {
            return unsupported("a STREAM elsewhere is not followed: send its bytes in the document");
        }
        if scanner.attribute("encoding")?.is_none_or(|encoding| encoding.trim() != "base64") {
            return unsupported("a STREAM that is not in base64 is not supported");
        }
        let width = |column: &Incoming| column.items.map_or(4, |count| column.atom.bytes(count));
        if columns.iter().map(width).fold(0, usize::saturating_add) > limits::ROW_BYTES {
            return Err(scanner.limit("a row in bytes", limits::ROW_BYTES));
        }
        Ok(Self::default())
    }

    /// Whether there is another row. Nothing may be left of the last one, and an empty one would be without end.
    pub(super) fn has_row<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<bool, ReadError> {
        self.fill(scanner, 1)
    }

    /// Takes so many bytes of a row.
    #[inline]
    pub(super) fn take<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        count: usize,
        row: u64,
    ) -> Result<&[u8], ReadError> {
        if self.bytes.len() - self.start < count && !self.fill(scanner, count)? {
            return Err(ReadError::new(At::Row(row), Fault::Truncated("a row")));
        }
        self.start += count;
        Ok(&self.bytes[self.start - count..self.start])
    }

    /// Takes the number of items that a variable array begins with.
    pub(super) fn count<R: Read>(&mut self, scanner: &mut Scanner<R>, row: u64) -> Result<usize, ReadError> {
        let bytes = self.take(scanner, 4, row)?;
        Ok(bytes.iter().fold(0, |count, &byte| count << 8 | usize::from(byte)))
    }

    /// Decodes until there are so many bytes; false when the stream ends before.
    fn fill<R: Read>(&mut self, scanner: &mut Scanner<R>, count: usize) -> Result<bool, ReadError> {
        while self.bytes.len() - self.start < count {
            if self.ended {
                return Ok(false);
            }
            self.bytes.drain(..self.start);
            self.start = 0;
            self.read(scanner)?;
        }
        Ok(true)
    }

    /// Decodes a piece of the document.
    fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), ReadError> {
        let decoded = match scanner.piece()? {
            Piece::Text(length) => {
                let decoded = self.decoder.decode(&scanner.source.window()[..length], &mut self.bytes);
                if decoded.is_ok() {
                    scanner.source.consume(length);
                }
                decoded
            }
            Piece::Character(character) => {
                self.decoder.decode(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut self.bytes)
            }
            Piece::Tag => return self.close(scanner),
            Piece::Eof => return Err(ReadError::new(scanner.at(), Fault::Truncated("a STREAM"))),
        };
        decoded.map_err(|stray| {
            scanner.malformed(format!("{:?} does not belong into base64 text there", char::from(stray.0)))
        })
    }

    fn close<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), ReadError> {
        if scanner.next()? != Mark::End {
            return Err(scanner.malformed("a STREAM holds an element"));
        }
        self.ended = true;
        if self.decoder.is_complete() {
            Ok(())
        } else {
            Err(scanner.malformed("the base64 text is cut short"))
        }
    }
}
