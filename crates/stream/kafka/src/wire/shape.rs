//! The shape of a request: its fields with the versions that have them, and the walk that believes no count.
//!
//! `kafka-protocol` makes room for as many elements as an array claims before it reads the first. A request of
//! thirty bytes could so ask for gigabytes. Therefore each body is walked over its shape first: every length must
//! lie inside the request, and all arrays together must stay below a limit. The walk allocates nothing and passes
//! over the bytes of a field in one step.

use super::Malformed;
use crate::limits::ELEMENTS_MAX;

/// One field.
#[derive(Debug)]
pub(crate) struct Field {
    since: i16,
    until: i16,
    kind: Kind,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// So many bytes.
    Fixed(usize),
    /// A text, or none.
    Text,
    /// Bytes, or none.
    Bytes,
    /// Values of one kind, or none.
    List(&'static Kind),
    /// Structures, each with tagged fields where the version has them, or none.
    Structs(&'static [Field]),
}

pub(crate) const BOOL: Kind = Kind::Fixed(1);
pub(crate) const I8: Kind = Kind::Fixed(1);
pub(crate) const I16: Kind = Kind::Fixed(2);
pub(crate) const I32: Kind = Kind::Fixed(4);
pub(crate) const I64: Kind = Kind::Fixed(8);
pub(crate) const UUID: Kind = Kind::Fixed(16);
pub(crate) const TEXT: Kind = Kind::Text;
pub(crate) const BYTES: Kind = Kind::Bytes;
pub(crate) const TEXTS: Kind = Kind::List(&TEXT);
pub(crate) const I32S: Kind = Kind::List(&I32);

/// A field of every version.
pub(crate) const fn all(kind: Kind) -> Field {
    Field { since: 0, until: i16::MAX, kind }
}

/// A field of this version and later ones.
pub(crate) const fn since(since: i16, kind: Kind) -> Field {
    Field { since, until: i16::MAX, kind }
}

/// A field of this version and earlier ones.
pub(crate) const fn until(until: i16, kind: Kind) -> Field {
    Field { since: 0, until, kind }
}

/// A field of these versions.
pub(crate) const fn within(since: i16, until: i16, kind: Kind) -> Field {
    Field { since, until, kind }
}

/// Walks `body` over the shape of `version`.
pub(crate) fn check(fields: &[Field], version: i16, flexible: bool, body: &[u8]) -> Result<(), Malformed> {
    let mut walk = Walk { rest: body, version, flexible, elements: 0 };
    // What follows the last field is passed over: librdkafka 2.16 asks for all topics with three bytes too many.
    walk.fields(fields)
}

struct Walk<'a> {
    rest: &'a [u8],
    version: i16,
    flexible: bool,
    elements: usize,
}

impl Walk<'_> {
    fn fields(&mut self, fields: &[Field]) -> Result<(), Malformed> {
        let version = self.version;
        for field in fields.iter().filter(|field| (field.since..=field.until).contains(&version)) {
            self.value(&field.kind)?;
        }
        if self.flexible { self.tags() } else { Ok(()) }
    }

    fn value(&mut self, kind: &Kind) -> Result<(), Malformed> {
        match kind {
            Kind::Fixed(bytes) => self.skip(*bytes),
            Kind::Text => {
                let length = if self.flexible { self.compact()? } else { self.plain::<2>()? };
                self.skip(length)
            }
            Kind::Bytes => {
                let length = self.length()?;
                self.skip(length)
            }
            Kind::List(kind) => {
                for _ in 0..self.count()? {
                    self.value(kind)?;
                }
                Ok(())
            }
            Kind::Structs(fields) => {
                for _ in 0..self.count()? {
                    self.fields(fields)?;
                }
                Ok(())
            }
        }
    }

    fn tags(&mut self) -> Result<(), Malformed> {
        let count = self.varint()? as usize;
        for _ in 0..self.counted(count)? {
            self.varint()?;
            let length = self.varint()? as usize;
            self.skip(length)?;
        }
        Ok(())
    }

    fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.length()?;
        self.counted(count)
    }

    fn counted(&mut self, count: usize) -> Result<usize, Malformed> {
        self.elements = self.elements.saturating_add(count);
        if self.elements > ELEMENTS_MAX { Err(Malformed::Elements) } else { Ok(count) }
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        if self.flexible { self.compact() } else { self.plain::<4>() }
    }

    fn compact(&mut self) -> Result<usize, Malformed> {
        Ok((self.varint()? as usize).saturating_sub(1))
    }

    /// A length of `N` bytes, where one below zero stands for none.
    fn plain<const N: usize>(&mut self) -> Result<usize, Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.rest = rest;
        let negative = head.first().is_some_and(|first| first & 0x80 != 0);
        match negative {
            true if head.iter().all(|byte| *byte == 0xff) => Ok(0),
            true => Err(Malformed::Negative),
            false => Ok(head.iter().fold(0, |value, byte| value << 8 | usize::from(*byte))),
        }
    }

    fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(Malformed::Short)?;
            self.rest = rest;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && bits > 0xf {
                return Err(Malformed::Varint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::Varint)
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.rest = self.rest.get(bytes..).ok_or(Malformed::Short)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: &[Field] = &[all(I16), since(1, TEXT), until(1, Kind::Structs(&[all(I32), all(BYTES)]))];

    fn check(version: i16, flexible: bool, body: &[u8]) -> Result<(), Malformed> {
        super::check(SHAPE, version, flexible, body)
    }

    #[test]
    fn the_fields_of_the_version_are_walked() {
        assert_eq!(check(0, false, b"..\0\0\0\x01....\0\0\0\x02ab"), Ok(()));
        assert_eq!(check(1, false, b"..\xff\xff\xff\xff\xff\xff"), Ok(()));
        assert_eq!(check(1, true, b"..\x02a\x02....\x01\0\x01\x05\x02xy"), Ok(()));
        assert_eq!(check(2, true, b"..\0\0"), Ok(()));
    }

    #[test]
    fn nothing_passes_the_end() {
        for cut in 0..16 {
            assert_eq!(
                check(0, false, &b"..\0\0\0\x01....\0\0\0\x02ab"[..cut]),
                Err(Malformed::Short),
                "{cut}"
            );
        }
        assert_eq!(check(2, false, b"..\0\0 and more"), Ok(()));
        assert_eq!(check(2, false, b"..\xff\xfe"), Err(Malformed::Negative));
        assert_eq!(check(2, true, b"..\xff\xff\xff\xff\xff"), Err(Malformed::Varint));
        assert_eq!(check(2, true, b"..\xff\xff\xff\xff\x1f"), Err(Malformed::Varint));
        assert_eq!(check(2, true, b"..\xff\xff\xff\xff\x0f"), Err(Malformed::Short));
    }

    #[test]
    fn counts_are_bounded_before_they_are_believed() {
        assert_eq!(check(0, false, b"..\x7f\xff\xff\xff"), Err(Malformed::Elements));
        assert_eq!(check(1, true, b"..\0\xff\xff\xff\xff\x0f"), Err(Malformed::Elements));
        assert_eq!(check(2, true, b"..\0\xff\xff\xff\xff\x0f"), Err(Malformed::Elements));
    }
}
