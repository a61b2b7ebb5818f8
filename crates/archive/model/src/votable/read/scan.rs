//! XML into marks and text, with every bound in place and without a tree.
//!
//! The subset is what VOTable needs: elements, attributes, text, CDATA, character references and the five entities
//! of XML 1.0 section 4.6; comments and processing instructions are passed over. A DOCTYPE is refused, and with it
//! every entity that could grow. Names are compared without their prefix, tags must match, nothing is kept but the
//! names of the open elements.

use std::io::Read;

use memchr::{memchr2, memchr3, memmem};

use super::super::limits;
use super::source::Source;
use crate::read::{At, Fault, ReadError};

/// What comes next in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// An element begins: [`Scanner::tag`] is its tag.
    Start,
    /// An element ends: [`Scanner::tag`] has its name.
    End,
    /// The root element has ended.
    Eof,
}

/// The smallest piece of a document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    /// So many bytes of the window are text.
    Text(usize),
    /// A character that was written as a reference; it has been consumed.
    Character(char),
    /// The window begins with a tag.
    Tag,
    /// The document ends here.
    Eof,
}

/// Text being gathered.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    after_return: bool,
}

impl Text {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.after_return = false;
    }

    /// Adds text as it stands in the document; ends of lines become line feeds (XML 1.0 section 2.11).
    fn push(&mut self, text: &[u8]) {
        if !self.after_return && memchr::memchr(b'\r', text).is_none() {
            self.bytes.extend_from_slice(text);
            return;
        }
        for &byte in text {
            match byte {
                b'\n' if self.after_return => {}
                b'\r' => self.bytes.push(b'\n'),
                _ => self.bytes.push(byte),
            }
            self.after_return = byte == b'\r';
        }
    }

    fn push_character(&mut self, character: char) {
        self.after_return = false;
        self.bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// The text, with what is not UTF-8 replaced.
    pub(super) fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// A tag without its brackets.
#[derive(Debug, Default)]
pub(super) struct Tag {
    bytes: Vec<u8>,
    name: usize,
}

impl Tag {
    /// The name without its prefix.
    pub(super) fn name(&self) -> &[u8] {
        local(self.qualified())
    }

    fn qualified(&self) -> &[u8] {
        &self.bytes[..self.name]
    }

    /// The value of an attribute, if the tag has it.
    pub(super) fn attribute(&self, wanted: &str, at: impl Fn() -> At) -> Result<Option<String>, ReadError> {
        let broken = || ReadError::malformed(at(), "an attribute is broken");
        let mut rest = self.bytes[self.name..].trim_ascii();
        while !rest.is_empty() {
            let equals = memchr::memchr(b'=', rest).ok_or_else(broken)?;
            let (name, value) = (rest[..equals].trim_ascii(), rest[equals + 1..].trim_ascii_start());
            let (quote, value) = match value.split_first() {
                Some((quote @ (b'"' | b'\''), value)) => (*quote, value),
                _ => return Err(broken()),
            };
            let end = memchr::memchr(quote, value).ok_or_else(broken)?;
            if name == wanted.as_bytes() {
                return unescape(&value[..end]).map(Some).ok_or_else(broken);
            }
            rest = value[end + 1..].trim_ascii_start();
        }
        Ok(None)
    }
}

/// A document being read.
pub(super) struct Scanner<R> {
    pub(super) source: Source<R>,
    pub(super) tag: Tag,
    /// The names of the open elements, one after the other, and where each begins.
    open: Vec<u8>,
    begins: Vec<usize>,
    in_cdata: bool,
    /// The last start tag closed itself: its end is still to be told.
    is_empty: bool,
    has_root: bool,
}

impl<R: Read> Scanner<R> {
    pub(super) fn new(inner: R) -> Result<Self, ReadError> {
        Ok(Self {
            source: Source::new(inner)?,
            tag: Tag::default(),
            open: Vec::new(),
            begins: Vec::new(),
            in_cdata: false,
            is_empty: false,
            has_root: false,
        })
    }

    /// How many elements are open.
    pub(super) fn depth(&self) -> usize {
        self.begins.len()
    }

    pub(super) fn at(&self) -> At {
        self.source.at()
    }

    pub(super) fn malformed(&self, message: impl Into<String>) -> ReadError {
        ReadError::malformed(self.at(), message)
    }

    pub(super) fn limit(&self, what: &'static str, limit: usize) -> ReadError {
        ReadError::new(self.at(), Fault::Limit { what, limit: limit as u64 })
    }

    fn truncated(&self, inside: &'static str) -> ReadError {
        ReadError::new(self.at(), Fault::Truncated(inside))
    }

    /// An attribute of the tag just read.
    pub(super) fn attribute(&self, name: &str) -> Result<Option<String>, ReadError> {
        self.tag.attribute(name, || self.at())
    }

    /// Passes over text to the next tag.
    pub(super) fn next(&mut self) -> Result<Mark, ReadError> {
        self.advance(None, usize::MAX)
    }

    /// The length of the text of a cell that stands whole in the window, without a reference or anything else to undo,
    /// as nearly all do; the window then begins with the text, and [`Self::PLAIN_END`] bytes follow it.
    #[inline]
    pub(super) fn plain_cell(&mut self) -> Option<usize> {
        if self.is_empty || self.in_cdata {
            return None;
        }
        let window = self.source.window();
        let blank = window.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = window[blank..].strip_prefix(b"<TD>")?;
        let length = memchr3(b'<', b'&', b'\r', rest)?;
        if !rest[length..].starts_with(b"</TD>") {
            return None;
        }
        self.source.consume(blank + 4);
        Some(length)
    }

    /// The bytes of `</TD>`.
    pub(super) const PLAIN_END: usize = 5;

    /// Gathers text up to the next tag, at most so many bytes in all.
    pub(super) fn next_with_text(&mut self, text: &mut Text, limit: usize) -> Result<Mark, ReadError> {
        self.advance(Some(text), limit)
    }

    /// Passes over the rest of the element that has just begun.
    pub(super) fn skip_element(&mut self) -> Result<(), ReadError> {
        let depth = self.depth();
        while self.depth() >= depth {
            if self.next()? == Mark::Eof {
                return Ok(());
            }
        }
        Ok(())
    }

    fn advance(&mut self, mut text: Option<&mut Text>, limit: usize) -> Result<Mark, ReadError> {
        if self.is_empty {
            self.is_empty = false;
            self.close()?;
            return Ok(Mark::End);
        }
        loop {
            match self.piece()? {
                Piece::Text(length) => {
                    match text.as_deref_mut() {
                        Some(text) => text.push(&self.source.window()[..length]),
                        None if self.depth() == 0 => self.check_blank(length)?,
                        None => {}
                    }
                    self.source.consume(length);
                }
                Piece::Character(character) => {
                    if let Some(text) = text.as_deref_mut() {
                        text.push_character(character);
                    }
                }
                Piece::Tag => return self.read_tag(),
                Piece::Eof if self.depth() > 0 => return Err(self.truncated("an element")),
                Piece::Eof if !self.has_root => return Err(self.truncated("nothing: there is no element")),
                Piece::Eof => return Ok(Mark::Eof),
            }
            if text.as_deref().is_some_and(|text| text.bytes.len() > limit) {
                return Err(self.limit("the text of an element in bytes", limit));
            }
        }
    }

    /// Refuses text around the root element.
    fn check_blank(&self, length: usize) -> Result<(), ReadError> {
        if self.source.window()[..length].trim_ascii().is_empty() {
            return Ok(());
        }
        let message = if self.has_root { "text follows the document" } else { "this is not XML" };
        Err(self.malformed(message))
    }

    /// Tells what the window begins with. Text is left in it.
    pub(super) fn piece(&mut self) -> Result<Piece, ReadError> {
        loop {
            if self.in_cdata {
                if let Some(length) = self.cdata()? {
                    return Ok(Piece::Text(length));
                }
                continue;
            }
            match self.source.window() {
                [] => {
                    if !self.source.more()? {
                        return Ok(Piece::Eof);
                    }
                }
                [b'<', ..] => {
                    if self.is_tag()? {
                        return Ok(Piece::Tag);
                    }
                }
                [b'&', ..] => return self.reference().map(Piece::Character),
                text => return Ok(Piece::Text(memchr2(b'<', b'&', text).unwrap_or(text.len()))),
            }
        }
    }

    /// The length of the CDATA text in the window; nothing when the section has just ended.
    fn cdata(&mut self) -> Result<Option<usize>, ReadError> {
        loop {
            let window = self.source.window();
            match memmem::find(window, b"]]>") {
                Some(0) => {
                    self.source.consume(3);
                    self.in_cdata = false;
                    return Ok(None);
                }
                Some(length) => return Ok(Some(length)),
                // The last two bytes may be the beginning of the end.
                None if window.len() > 2 => return Ok(Some(window.len() - 2)),
                None => {}
            }
            if !self.source.more()? {
                return Err(self.truncated("a CDATA section"));
            }
        }
    }

    /// Whether the `<` in the window begins a tag; anything else is passed over.
    fn is_tag(&mut self) -> Result<bool, ReadError> {
        if self.begins_with(b"<!--")? {
            self.pass(4, b"-->", "a comment")?;
        } else if self.begins_with(b"<![CDATA[")? {
            self.source.consume(9);
            self.in_cdata = true;
        } else if self.begins_with(b"<!")? {
            return Err(self.malformed("a document type declaration is refused: a VOTable has none"));
        } else if self.begins_with(b"<?")? {
            self.pass(2, b"?>", "a processing instruction")?;
        } else {
            return Ok(true);
        }
        Ok(false)
    }

    fn begins_with(&mut self, literal: &[u8]) -> Result<bool, ReadError> {
        while self.source.window().len() < literal.len() {
            if !literal.starts_with(self.source.window()) || !self.source.more()? {
                return Ok(false);
            }
        }
        Ok(self.source.window().starts_with(literal))
    }

    /// Passes over a construct of any length up to and with its end.
    fn pass(&mut self, opening: usize, end: &[u8], what: &'static str) -> Result<(), ReadError> {
        self.source.consume(opening);
        loop {
            let window = self.source.window();
            if let Some(at) = memmem::find(window, end) {
                self.source.consume(at + end.len());
                return Ok(());
            }
            let done = window.len().saturating_sub(end.len() - 1);
            self.source.consume(done);
            if !self.source.more()? {
                return Err(self.truncated(what));
            }
        }
    }

    /// The character that the reference in the window stands for.
    fn reference(&mut self) -> Result<char, ReadError> {
        /// Of the longest reference, `&#x0010FFFF;`, with some zeros to spare.
        const LONGEST: usize = 16;
        loop {
            let window = self.source.window();
            let near = &window[..window.len().min(LONGEST)];
            if let Some(end) = memchr::memchr(b';', near) {
                let character = entity(&near[1..end]);
                let character =
                    character.ok_or_else(|| self.malformed("a reference to an unknown entity"))?;
                self.source.consume(end + 1);
                return Ok(character);
            }
            if near.len() == LONGEST || !self.source.more()? {
                return Err(self.malformed("an ampersand begins no reference"));
            }
        }
    }

    /// Reads the tag at the window into [`Self::tag`].
    fn read_tag(&mut self) -> Result<Mark, ReadError> {
        let length = self.tag_length()?;
        let content = &self.source.window()[1..length - 1];
        let (content, is_end) = match content.strip_prefix(b"/") {
            Some(content) => (content, true),
            None => (content, false),
        };
        let (content, is_empty) = match content.strip_suffix(b"/") {
            Some(content) if !is_end => (content, true),
            _ => (content, false),
        };
        self.tag.bytes.clear();
        self.tag.bytes.extend_from_slice(content);
        self.tag.name = content.iter().position(u8::is_ascii_whitespace).unwrap_or(content.len());
        if self.tag.name().is_empty() {
            return Err(self.malformed("a tag without a name"));
        }
        if is_end {
            self.close()?;
        } else {
            self.open()?;
            self.is_empty = is_empty;
        }
        self.source.consume(length);
        Ok(if is_end { Mark::End } else { Mark::Start })
    }

    /// The length of the tag at the window with its brackets, with all of it in the window.
    fn tag_length(&mut self) -> Result<usize, ReadError> {
        let mut at = 1;
        let mut quote = None;
        loop {
            let rest = &self.source.window()[at..];
            let found = match quote {
                Some(quote) => memchr::memchr(quote, rest),
                None => memchr3(b'>', b'"', b'\'', rest),
            };
            let Some(found) = found else {
                at = self.source.window().len();
                if at > limits::TAG_BYTES {
                    return Err(self.limit("a tag in bytes", limits::TAG_BYTES));
                }
                if !self.source.more()? {
                    return Err(self.truncated("a tag"));
                }
                continue;
            };
            at += found + 1;
            match rest[found] {
                b'>' if quote.is_none() => return Ok(at),
                mark => quote = if quote.is_none() { Some(mark) } else { None },
            }
        }
    }

    fn open(&mut self) -> Result<(), ReadError> {
        if self.depth() == 0 && self.has_root {
            return Err(self.malformed("a second element follows the document"));
        }
        if self.depth() == limits::DEPTH {
            return Err(self.limit("the number of elements open at once", limits::DEPTH));
        }
        self.has_root = true;
        self.begins.push(self.open.len());
        self.open.extend_from_slice(self.tag.qualified());
        Ok(())
    }

    fn close(&mut self) -> Result<(), ReadError> {
        let Some(begin) = self.begins.pop() else {
            return Err(self.malformed("an end tag without its start tag"));
        };
        if self.open[begin..] != *self.tag.qualified() {
            let name = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned();
            let (open, close) = (name(&self.open[begin..]), name(self.tag.qualified()));
            return Err(self.malformed(format!("<{open}> is closed by </{close}>")));
        }
        self.open.truncate(begin);
        Ok(())
    }
}

fn local(name: &[u8]) -> &[u8] {
    memchr::memchr(b':', name).map_or(name, |colon| &name[colon + 1..])
}

/// The value of an attribute: references resolved, white space made blanks (XML 1.0 section 3.3.3).
fn unescape(value: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'&' => {
                let end = memchr::memchr(b';', rest)?;
                out.extend_from_slice(entity(&rest[..end])?.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[end + 1..];
            }
            b'\t' | b'\n' | b'\r' => out.push(b' '),
            _ => out.push(first),
        }
    }
    String::from_utf8(out).ok()
}

/// The character of a reference without its `&` and `;`.
fn entity(name: &[u8]) -> Option<char> {
    Some(match name {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    })
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.starts_with('+') {
        return None;
    }
    char::from_u32(u32::from_str_radix(digits, radix).ok()?)
}
