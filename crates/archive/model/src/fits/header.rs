//! Headers being read, and the units of a file being passed over until a table is found (FITS 4.0 3, 4.4).

use std::collections::HashMap;
use std::io::{self, Read};

use super::card::{BLOCK, CARD, Card, Value};
use crate::limits::{FITS_CARDS_MAX, FITS_UNITS_MAX};
use crate::read::{At, Fault, ReadError};

/// The keywords of a header. Of a keyword that stands twice the first counts.
#[derive(Debug, Default)]
pub(super) struct Header {
    values: HashMap<String, Value>,
    /// Which unit of the file this is, from 0.
    pub(super) unit: usize,
}

/// Which unit of a file is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The first that is a table.
    #[default]
    FirstTable,
    /// The one of this ordinal; the primary header is 0.
    Unit(usize),
    /// The first of this EXTNAME, whatever its case.
    Name(String),
}

impl Header {
    /// Reads a header to the end of its last block; nothing where the source ends before it.
    pub(super) fn read(source: &mut impl Read, unit: usize) -> Result<Option<Self>, ReadError> {
        let mut header = Self { unit, ..Self::default() };
        let mut last = None;
        let mut cards = 0;
        let mut block = [0; BLOCK];
        loop {
            if !block_of(source, &mut block, cards == 0)? {
                return Ok(None);
            }
            for card in block.chunks_exact(CARD) {
                cards += 1;
                let parsed = Card::parse(card).map_err(|why| header.wrong(format!("card {cards} {why}")))?;
                if header.take(parsed, &mut last) {
                    return Ok(Some(header));
                }
            }
            if cards > FITS_CARDS_MAX {
                let limit = FITS_CARDS_MAX as u64;
                return Err(ReadError::new(At::Document, Fault::Limit { what: "cards of a header", limit }));
            }
        }
    }

    /// Adds a card, and tells whether it was the last.
    fn take(&mut self, card: Card<'_>, last: &mut Option<String>) -> bool {
        match card {
            Card::End => return true,
            Card::Other => *last = None,
            Card::Keyword(keyword, value) => {
                *last = matches!(value, Value::Text(_)).then(|| keyword.to_owned());
                self.values.entry(keyword.to_owned()).or_insert(value);
            }
            Card::Continue(more) => {
                // FITS 4.0 4.2.1.2: only a string that ends in `&` goes on.
                if let Some(Value::Text(text)) =
                    last.as_ref().and_then(|keyword| self.values.get_mut(keyword))
                    && text.ends_with('&')
                {
                    text.pop();
                    text.push_str(&more);
                }
            }
        }
        false
    }

    pub(super) fn wrong(&self, message: impl std::fmt::Display) -> ReadError {
        let place =
            if self.unit == 0 { "primary header".to_owned() } else { format!("header {}", self.unit) };
        ReadError::malformed(At::Document, format!("{place}: {message}"))
    }

    pub(super) fn value(&self, keyword: &str) -> Option<&Value> {
        self.values.get(keyword)
    }

    pub(super) fn text(&self, keyword: &str) -> Option<&str> {
        match self.value(keyword)? {
            Value::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    pub(super) fn is_true(&self, keyword: &str) -> bool {
        self.value(keyword) == Some(&Value::Logical(true))
    }

    pub(super) fn real(&self, keyword: &str) -> Option<f64> {
        match self.value(keyword)? {
            Value::Integer(value) => Some(*value as f64),
            Value::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// A whole number that must be there.
    pub(super) fn integer(&self, keyword: &str) -> Result<i64, ReadError> {
        match self.value(keyword) {
            Some(Value::Integer(value)) => Ok(*value),
            Some(Value::Real(value)) if value.fract() == 0.0 && value.abs() < 9e15 => Ok(*value as i64),
            Some(_) => Err(self.wrong(format!("{keyword} is not a whole number"))),
            None => Err(self.wrong(format!("{keyword} is missing"))),
        }
    }

    /// A whole number from 0 that must be there.
    pub(super) fn count(&self, keyword: &str) -> Result<u64, ReadError> {
        let value = self.integer(keyword)?;
        u64::try_from(value).map_err(|_| self.wrong(format!("{keyword} is {value}, less than 0")))
    }

    /// A whole number from 0, or what is meant where it is absent.
    fn count_or(&self, keyword: &str, absent: u64) -> Result<u64, ReadError> {
        if self.value(keyword).is_none() { Ok(absent) } else { self.count(keyword) }
    }

    /// Whether this is a table that can be read without being asked for: an image that was compressed into a
    /// binary table is none (FITS 4.0 10.1).
    fn is_table(&self) -> bool {
        matches!(self.text("XTENSION"), Some("BINTABLE" | "A3DTABLE" | "TABLE")) && !self.is_true("ZIMAGE")
    }

    fn is_wanted(&self, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::FirstTable => self.is_table(),
            Wanted::Unit(unit) => self.unit == *unit,
            Wanted::Name(name) => {
                self.text("EXTNAME").is_some_and(|found| found.eq_ignore_ascii_case(name.trim()))
            }
        }
    }

    /// Bytes of the data that follow, with their padding (FITS 4.0 4.4.1.1, equations 1 and 2).
    fn data_bytes(&self) -> Result<u64, ReadError> {
        let bytes = self.integer("BITPIX")?.unsigned_abs() / 8;
        let axes = self.count("NAXIS")?;
        if axes > 999 {
            return Err(self.wrong(format!("NAXIS is {axes}, more than 999")));
        }
        let mut elements = Some(u64::from(axes > 0));
        for axis in 1..=axes {
            let length = self.count(&format!("NAXIS{axis}"))?;
            // Random groups begin with an axis of no length that does not count (FITS 4.0 6.1.1).
            if !(axis == 1 && length == 0 && self.is_true("GROUPS")) {
                elements = elements.and_then(|elements| elements.checked_mul(length));
            }
        }
        let parameters = self.count_or("PCOUNT", 0)?;
        let groups = self.count_or("GCOUNT", 1)?;
        let total = elements
            .and_then(|elements| elements.checked_add(parameters))
            .and_then(|elements| elements.checked_mul(groups))
            .and_then(|elements| elements.checked_mul(bytes))
            .and_then(|bytes| bytes.checked_next_multiple_of(BLOCK as u64));
        total.ok_or_else(|| self.wrong("the data are larger than 64 bits can count"))
    }
}

/// Reads headers until the wanted one, passing over the data between. The source then stands at the data.
pub(super) fn find(source: &mut impl Read, wanted: &Wanted) -> Result<(Header, u64), ReadError> {
    let mut position = 0;
    for unit in 0..FITS_UNITS_MAX {
        let mut counted = Counted { source: &mut *source, bytes: 0 };
        let Some(header) = Header::read(&mut counted, unit)? else { break };
        position += counted.bytes;
        if unit == 0 && !header.is_true("SIMPLE") {
            return Err(ReadError::malformed(
                At::Byte(0),
                "this is not FITS: the first card is not SIMPLE = T",
            ));
        }
        if unit > 0 && header.text("XTENSION").is_none() {
            // FITS 4.0 3.5: what follows the last extension is not looked at.
            break;
        }
        if header.is_wanted(wanted) {
            return match header.is_table() {
                true => Ok((header, position)),
                false => Err(header.wrong("this unit is not a table")),
            };
        }
        let bytes = header.data_bytes()?;
        let skipped = io::copy(&mut source.take(bytes), &mut io::sink()).map_err(broken)?;
        position += skipped;
        if skipped < bytes {
            break;
        }
    }
    let missing = match wanted {
        Wanted::FirstTable => "the file has no table".to_owned(),
        Wanted::Unit(unit) => format!("the file has no unit {unit}"),
        Wanted::Name(name) => format!("the file has no unit called {name:?}"),
    };
    Err(ReadError::malformed(At::Document, missing))
}

/// Reads a block; tells whether there was one, where it may be absent.
fn block_of(source: &mut impl Read, block: &mut [u8; BLOCK], may_be_absent: bool) -> Result<bool, ReadError> {
    let mut filled = 0;
    while filled < BLOCK {
        match source.read(&mut block[filled..]) {
            Ok(0) if filled == 0 && may_be_absent => return Ok(false),
            Ok(0) => return Err(ReadError::new(At::Document, Fault::Truncated("a header"))),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(broken(error)),
        }
    }
    Ok(true)
}

pub(super) fn broken(error: io::Error) -> ReadError {
    let fault = match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::Truncated("the table's data"),
        _ => Fault::Io(error),
    };
    ReadError::new(At::Document, fault)
}

/// A source that counts.
struct Counted<R> {
    source: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}
