//! The bytes of a document as UTF-8, whatever they were, in a window that slides.
//!
//! UTF-8 is passed through unchecked (text is checked where it is made text of); ISO-8859-1, US-ASCII and UTF-16 are
//! translated piece by piece. The encoding is told by a byte order mark, by how `<` is written, or by the XML
//! declaration (XML 1.0 appendix F).

use std::io::Read;

use memchr::{memchr_iter, memmem};

use crate::read::{At, Fault, ReadError};

/// Bytes read at once.
const CHUNK: u64 = 64 << 10;
/// Bytes within which an XML declaration ends.
const DECLARATION: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
    Utf16Big,
    Utf16Little,
}

/// The window on a document.
pub(super) struct Source<R> {
    inner: R,
    encoding: Encoding,
    /// Text that has been read; what is before `start` is done with.
    buffer: Vec<u8>,
    start: usize,
    /// Bytes read and not yet translated.
    raw: Vec<u8>,
    /// Line feeds before the buffer.
    lines: u64,
    ended: bool,
}

impl<R: Read> Source<R> {
    /// The window at the start of the document, past a byte order mark.
    pub(super) fn new(inner: R) -> Result<Self, ReadError> {
        let mut source = Self {
            inner,
            encoding: Encoding::Utf8,
            buffer: Vec::new(),
            start: 0,
            raw: Vec::new(),
            lines: 0,
            ended: false,
        };
        source.more()?;
        let (encoding, mark) = match source.buffer.as_slice() {
            [0xFE, 0xFF, ..] => (Encoding::Utf16Big, 2),
            [0xFF, 0xFE, ..] => (Encoding::Utf16Little, 2),
            [0, b'<', ..] => (Encoding::Utf16Big, 0),
            [b'<', 0, ..] => (Encoding::Utf16Little, 0),
            [0xEF, 0xBB, 0xBF, ..] => (Encoding::Utf8, 3),
            _ => (Encoding::Utf8, 0),
        };
        source.buffer.drain(..mark);
        if encoding == Encoding::Utf8 {
            let declared = declared_encoding(&source.buffer)?;
            source.translate_from_here(declared);
        } else {
            source.translate_from_here(encoding);
        }
        Ok(source)
    }

    /// Takes what has been read as bytes in this encoding, and what will be.
    fn translate_from_here(&mut self, encoding: Encoding) {
        if encoding != Encoding::Utf8 {
            self.raw = std::mem::take(&mut self.buffer);
            self.encoding = encoding;
            self.translate();
        }
    }

    /// What has been read and not yet consumed.
    #[inline]
    pub(super) fn window(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Moves the window past `count` bytes of it.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.buffer.len());
    }

    /// Makes the window longer; false when the document has ended.
    pub(super) fn more(&mut self) -> Result<bool, ReadError> {
        if self.ended {
            return Ok(false);
        }
        self.lines += memchr_iter(b'\n', &self.buffer[..self.start]).count() as u64;
        self.buffer.drain(..self.start);
        self.start = 0;
        let target = if self.encoding == Encoding::Utf8 { &mut self.buffer } else { &mut self.raw };
        let count = (&mut self.inner)
            .take(CHUNK)
            .read_to_end(target)
            .map_err(|error| ReadError::new(At::Line(self.lines + 1), Fault::Io(error)))?;
        self.ended = count == 0;
        if self.encoding != Encoding::Utf8 {
            self.translate();
        }
        Ok(count > 0)
    }

    /// The line at which the window begins, from 1.
    pub(super) fn line(&self) -> u64 {
        self.lines + memchr_iter(b'\n', &self.buffer[..self.start]).count() as u64 + 1
    }

    /// The place at which the window begins.
    pub(super) fn at(&self) -> At {
        At::Line(self.line())
    }

    fn translate(&mut self) {
        let unit = match self.encoding {
            Encoding::Utf8 => return,
            Encoding::Latin1 => {
                self.buffer.extend(self.raw.drain(..).flat_map(|byte| utf8(char::from(byte))));
                return;
            }
            Encoding::Utf16Big => u16::from_be_bytes,
            Encoding::Utf16Little => u16::from_le_bytes,
        };
        let (pairs, _) = self.raw.as_chunks::<2>();
        let mut units = pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>();
        // Half a pair of surrogates waits for its other half, unless there is none.
        if !self.ended && units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit)) {
            units.pop();
        }
        self.raw.drain(..units.len() * 2);
        let characters = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
        self.buffer.extend(characters.flat_map(utf8));
    }
}

fn utf8(character: char) -> impl Iterator<Item = u8> {
    let mut bytes = [0; 4];
    let length = character.encode_utf8(&mut bytes).len();
    bytes.into_iter().take(length)
}

/// The encoding of an XML declaration at the start of a document that is read as bytes.
fn declared_encoding(document: &[u8]) -> Result<Encoding, ReadError> {
    let Some(declaration) = document
        .strip_prefix(b"<?xml")
        .and_then(|rest| memmem::find(&rest[..rest.len().min(DECLARATION)], b"?>").map(|end| &rest[..end]))
    else {
        return Ok(Encoding::Utf8);
    };
    let Some(at) = memmem::find(declaration, b"encoding") else { return Ok(Encoding::Utf8) };
    let value = declaration[at + b"encoding".len()..].trim_ascii_start();
    let value = value.strip_prefix(b"=").unwrap_or(value).trim_ascii_start();
    let name = match value {
        [quote @ (b'"' | b'\''), rest @ ..] => rest.split(|byte| byte == quote).next().unwrap_or_default(),
        _ => return Err(ReadError::malformed(At::Line(1), "the XML declaration is broken")),
    };
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    match name.as_str() {
        "utf-8" | "utf8" | "us-ascii" | "ascii" => Ok(Encoding::Utf8),
        "iso-8859-1" | "latin1" | "iso_8859-1" | "latin-1" => Ok(Encoding::Latin1),
        _ => Err(ReadError::new(
            At::Line(1),
            Fault::Unsupported(format!("encoding {name:?} is not supported: send UTF-8")),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> String {
        let mut source = Source::new(bytes).unwrap();
        while source.more().unwrap() {}
        String::from_utf8(source.window().to_vec()).unwrap()
    }

    #[test]
    fn encodings_are_told_apart() {
        let text = "<a>é\u{1F600}</a>";
        let big = text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
        let little = text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        assert_eq!(all(text.as_bytes()), text);
        assert_eq!(all(&[b"\xEF\xBB\xBF", text.as_bytes()].concat()), text);
        assert_eq!(all(&[b"\xFE\xFF", big.as_slice()].concat()), text);
        assert_eq!(all(&little), text);
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xE9</a>";
        assert_eq!(all(latin), "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>");
        let odd = b"<?xml version='1.0' encoding=\"EBCDIC-CP-US\"?><a/>";
        assert!(Source::new(odd.as_slice()).is_err());
    }

    #[test]
    fn surrogates_may_be_cut_by_a_chunk() {
        let text = format!("<{}\u{1F600}{}>", "a".repeat(CHUNK as usize / 2 - 2), "b".repeat(9));
        let bytes = text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
        assert_eq!(all(&bytes), text);
    }
}
