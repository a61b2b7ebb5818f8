//! A column of a document: its field and how its cells are written there.

use std::sync::Arc;

use trifid_archive_adql::types::{Element, Field, Size, Type};

use super::super::limits;
use super::super::plan::{Extent, extent, strings};
use super::sink::{Sink, Values};
use crate::time::Timestamp;

/// What is wrong with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// The text is not this.
    Not(&'static str),
    /// An array of another length than declared.
    Count { found: usize, expected: usize },
    /// A fixed string of an array ends within a character.
    Cut,
}

/// The datatype in the document (VOTable 1.5 section 2.1). For a geometry of `float` it is not what we hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    Boolean,
    Bit,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    FloatComplex,
    DoubleComplex,
    Char,
    Wide,
}

impl Atom {
    pub(super) fn parse(datatype: &str) -> Option<Self> {
        Some(match datatype.trim() {
            "boolean" => Self::Boolean,
            "bit" => Self::Bit,
            "unsignedByte" => Self::Byte,
            "short" => Self::Short,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "floatComplex" => Self::FloatComplex,
            "doubleComplex" => Self::DoubleComplex,
            "char" => Self::Char,
            "unicodeChar" => Self::Wide,
            _ => return None,
        })
    }

    /// Bytes of so many of them in BINARY.
    pub(super) const fn bytes(self, count: usize) -> usize {
        let each = match self {
            Self::Bit => return count.div_ceil(8),
            Self::Boolean | Self::Byte | Self::Char => 1,
            Self::Short | Self::Wide => 2,
            Self::Int | Self::Float => 4,
            Self::Long | Self::Double | Self::FloatComplex => 8,
            Self::DoubleComplex => 16,
        };
        count.saturating_mul(each)
    }
}

/// A column of a document.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) field: Field,
    pub(super) atom: Atom,
    /// How many items an array has, or characters a text.
    pub(super) extent: Extent,
    /// The length of each string of an array of strings.
    pub(super) width: usize,
    /// The items of a cell in BINARY, characters of text, where their number is fixed.
    pub(super) items: Option<usize>,
    /// `VALUES null` as it is written.
    pub(super) null: Option<Null>,
}

/// A value that stands for NULL.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Null {
    text: Arc<str>,
    whole: Option<i64>,
    real: Option<f64>,
}

impl Null {
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim();
        Self { text: text.into(), whole: whole(text.as_bytes(), 64), real: text.parse().ok() }
    }
}

impl Incoming {
    pub(super) fn new(field: Field, atom: Atom) -> Self {
        let (width, extent) = match field.ty {
            Type::Array(Element::Text) => strings(&field.size),
            ty => (0, extent(ty, &field.size)),
        };
        let items = match extent {
            _ if field.size == Size::One => Some(1),
            Extent::Fixed(count) if field.ty == Type::Array(Element::Text) => {
                Some(count.saturating_mul(width))
            }
            Extent::Fixed(count) => Some(count),
            Extent::Variable | Extent::Multiple(_) => None,
        };
        Self { field, atom, extent, width, items, null: None }
    }

    /// Whether a cell holds one value, not an array and not text of any length.
    pub(super) fn is_single(&self) -> bool {
        self.field.size == Size::One
    }

    /// Whether a cell is several reals that are one value: a point or a circle.
    pub(super) fn is_tuple(&self) -> bool {
        matches!(self.field.ty, Type::Point | Type::Circle)
    }

    pub(super) fn is_bits(&self) -> bool {
        self.atom == Atom::Bit
    }

    pub(super) fn is_wide(&self) -> bool {
        self.atom == Atom::Wide
    }

    pub(super) fn is_null_whole(&self, value: i64) -> bool {
        self.null.as_ref().is_some_and(|null| null.whole == Some(value))
    }

    pub(super) fn is_null_real(&self, value: f64) -> bool {
        self.null.as_ref().is_some_and(|null| null.real == Some(value))
    }

    /// Whether `count` items are as many as declared.
    pub(super) fn check_count(&self, count: usize) -> Result<(), Bad> {
        match self.extent {
            Extent::Variable => Ok(()),
            Extent::Fixed(expected) if count == expected => Ok(()),
            Extent::Fixed(expected) => Err(Bad::Count { found: count, expected }),
            Extent::Multiple(of) if count.checked_rem(of).unwrap_or(count) == 0 => Ok(()),
            Extent::Multiple(of) => {
                let expected = count.checked_div(of).map_or(0, |whole| (whole + 1).saturating_mul(of));
                Err(Bad::Count { found: count, expected })
            }
        }
    }

    /// Pushes text onto a column of text or of instants.
    pub(super) fn push_string(&self, text: &str, sink: &mut Sink) -> Result<(), Bad> {
        if let Values::Instant(values) = &mut sink.values {
            if text.trim_ascii().is_empty() {
                sink.push_null();
                return Ok(());
            }
            let instant = Timestamp::parse(text).ok_or(Bad::Not("a timestamp"))?;
            values.push(instant.0);
            sink.pushed();
        } else {
            sink.push_text(text);
        }
        Ok(())
    }

    /// Pushes the strings that text is cut into.
    pub(super) fn push_strings(&self, text: &str, sink: &mut Sink) -> Result<(), Bad> {
        let Values::List(_, _, items) = &mut sink.values else { return Ok(()) };
        let mut count = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (string, after) = cut(rest, self.width, self.is_wide()).ok_or(Bad::Cut)?;
            push_filled(string, items);
            rest = after;
            count += 1;
        }
        self.end_strings(count, sink)
    }

    /// Ends an array of so many strings; what is missing at its end is blank.
    pub(super) fn end_strings(&self, count: usize, sink: &mut Sink) -> Result<(), Bad> {
        let wanted = match self.extent {
            Extent::Variable => count,
            Extent::Fixed(size) => size,
            Extent::Multiple(of) => count.next_multiple_of(of.max(1)),
        };
        if count > wanted || wanted - count > limits::FIXED_ITEMS {
            return Err(Bad::Count { found: count, expected: wanted });
        }
        if let Values::List(_, _, items) = &mut sink.values {
            (count..wanted).for_each(|_| items.push_text(""));
        }
        sink.end_list();
        Ok(())
    }
}

/// Pushes a string without the blanks and NULs that fill it up.
pub(super) fn push_filled(text: &str, items: &mut Sink) {
    items.push_text(text.trim_end_matches(['\0', ' ']));
}

/// Text up to so many units, and the rest; nothing when a character lies across the cut or the width is nothing.
fn cut(text: &str, width: usize, wide: bool) -> Option<(&str, &str)> {
    if width == 0 {
        return None;
    }
    if !wide {
        return if text.len() <= width { Some((text, "")) } else { text.split_at_checked(width) };
    }
    let mut units = 0;
    for (at, character) in text.char_indices() {
        if units == width {
            return Some(text.split_at(at));
        }
        units += character.len_utf16();
        if units > width {
            return None;
        }
    }
    Some((text, ""))
}

/// A whole number in decimal, or in hexadecimal after `0x` as the bits of so many (VOTable 1.5 section 6).
pub(super) fn whole(text: &[u8], bits: u32) -> Option<i64> {
    if let [b'0', b'x' | b'X', digits @ ..] = text {
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        let value = u64::from_str_radix(digits, 16).ok()?;
        return if value.checked_shr(bits).unwrap_or(0) > 0 {
            None
        } else if bits == 8 {
            Some(value as i64)
        } else {
            // The highest of the bits is the sign.
            Some((value << (64 - bits)) as i64 >> (64 - bits))
        };
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // Gathered below zero, where there is room for one more.
    let value = digits.iter().try_fold(0_i64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_sub(digit)
    })?;
    if negative { Some(value) } else { value.checked_neg() }
}

impl Null {
    /// Whether the text of a real is the one that stands for NULL.
    pub(super) fn is_text(&self, text: &[u8]) -> bool {
        self.text.as_bytes() == text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        for (text, bits, expected) in [
            ("0", 16, Some(0)),
            ("-9223372036854775808", 64, Some(i64::MIN)),
            ("9223372036854775807", 64, Some(i64::MAX)),
            ("9223372036854775808", 64, None),
            ("+12", 32, Some(12)),
            ("0xff", 8, Some(255)),
            ("0xffff", 16, Some(-1)),
            ("0x7fff", 16, Some(32767)),
            ("0x1ffff", 16, None),
            ("0xffffffffffffffff", 64, Some(-1)),
            ("", 64, None),
            ("-", 64, None),
            ("1.0", 64, None),
            ("0x+1", 64, None),
        ] {
            assert_eq!(whole(text.as_bytes(), bits), expected, "{text}");
        }
    }
}
