//! `TFORMn`: what a field of a binary table is made of, and how many of them (FITS 4.0 7.3.1, table 18).

use std::fmt;

/// The letter of a data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// `L`: logical, one byte.
    Logical,
    /// `X`: bit, eight to a byte.
    Bit,
    /// `B`: unsigned byte.
    Byte,
    /// `I`: 16-bit integer.
    Short,
    /// `J`: 32-bit integer.
    Int,
    /// `K`: 64-bit integer.
    Long,
    /// `A`: character.
    Char,
    /// `E`: binary32.
    Float,
    /// `D`: binary64.
    Double,
    /// `C`: two binary32.
    FloatComplex,
    /// `M`: two binary64.
    DoubleComplex,
}

impl Code {
    const LETTERS: [(u8, Self); 11] = [
        (b'L', Self::Logical),
        (b'X', Self::Bit),
        (b'B', Self::Byte),
        (b'I', Self::Short),
        (b'J', Self::Int),
        (b'K', Self::Long),
        (b'A', Self::Char),
        (b'E', Self::Float),
        (b'D', Self::Double),
        (b'C', Self::FloatComplex),
        (b'M', Self::DoubleComplex),
    ];

    fn of(letter: u8) -> Option<Self> {
        Self::LETTERS.iter().find(|(l, _)| *l == letter).map(|(_, code)| *code)
    }

    /// Bytes of `count` elements; `None` past 64 bits.
    pub(super) fn bytes(self, count: u64) -> Option<u64> {
        match self {
            Self::Bit => Some(count.div_ceil(8)),
            Self::Logical | Self::Byte | Self::Char => Some(count),
            Self::Short => count.checked_mul(2),
            Self::Int | Self::Float => count.checked_mul(4),
            Self::Long | Self::Double | Self::FloatComplex => count.checked_mul(8),
            Self::DoubleComplex => count.checked_mul(16),
        }
    }

    /// Whether `TNULLn` may speak of it (FITS 4.0 7.3.2).
    pub(super) const fn is_integer(self) -> bool {
        matches!(self, Self::Byte | Self::Short | Self::Int | Self::Long)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = Self::LETTERS.iter().find(|(_, code)| code == self).map_or(b'?', |(l, _)| *l);
        write!(f, "{}", char::from(letter))
    }
}

/// Where the elements of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the row, always so many.
    Row(u64),
    /// In the heap: the row holds a count and an offset of 32 bits each, `P` (FITS 4.0 7.3.5). The number is
    /// the largest count that occurs, where it is told.
    Heap32(Option<u64>),
    /// In the heap, with 64 bits each, `Q`.
    Heap64(Option<u64>),
}

/// A field's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) code: Code,
    pub(super) place: Place,
    /// Width of each string of an array of them: `rAw` (FITS 4.0 appendix C.2).
    pub(super) width: Option<u64>,
}

impl Form {
    /// So many elements in the row.
    pub(super) const fn row(code: Code, count: u64) -> Self {
        Self { code, place: Place::Row(count), width: None }
    }

    /// Reads the value of a `TFORMn`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (count, rest) = text.split_at(digits);
        let count: u64 = if count.is_empty() { 1 } else { count.parse().ok()? };
        let (&letter, rest) = rest.as_bytes().split_first()?;
        match letter {
            b'P' | b'Q' => Self::descriptor(letter, count, rest),
            _ => {
                let code = Code::of(letter)?;
                // What follows the letter is free for conventions (FITS 4.0 7.3.1); one is known.
                let width =
                    if code == Code::Char { std::str::from_utf8(rest).ok()?.parse().ok() } else { None };
                Some(Self { code, place: Place::Row(count), width: width.filter(|&width| width > 0) })
            }
        }
    }

    fn descriptor(letter: u8, count: u64, rest: &[u8]) -> Option<Self> {
        let (&element, rest) = rest.split_first()?;
        let code = Code::of(element)?;
        let most =
            std::str::from_utf8(rest).ok()?.strip_prefix('(').and_then(|r| r.split(')').next()?.parse().ok());
        let place = match (count, letter) {
            // `0P` is a field without bytes (FITS 4.0 7.3.5).
            (0, _) => Place::Row(0),
            (1, b'P') => Place::Heap32(most),
            (1, _) => Place::Heap64(most),
            _ => return None,
        };
        Some(Self { code, place, width: None })
    }

    /// Bytes in the row.
    pub(super) fn row_bytes(self) -> Option<u64> {
        match self.place {
            Place::Row(count) => self.code.bytes(count),
            Place::Heap32(_) => Some(8),
            Place::Heap64(_) => Some(16),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Row(count) => write!(f, "{count}{}", self.code),
            Place::Heap32(most) => write!(f, "1P{}({})", self.code, most.unwrap_or(0)),
            Place::Heap64(most) => write!(f, "1Q{}({})", self.code, most.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: Code, place: Place, bytes: u64) {
        let form = Form::parse(text).unwrap_or_else(|| panic!("{text} is a form"));
        assert_eq!((form.code, form.place, form.row_bytes()), (code, place, Some(bytes)), "{text}");
    }

    #[test]
    fn forms() {
        check("J", Code::Int, Place::Row(1), 4);
        check("12X", Code::Bit, Place::Row(12), 2);
        check("0D", Code::Double, Place::Row(0), 0);
        check(" 3M ", Code::DoubleComplex, Place::Row(3), 48);
        check("1PE(20)", Code::Float, Place::Heap32(Some(20)), 8);
        check("QD", Code::Double, Place::Heap64(None), 16);
        check("0PA", Code::Char, Place::Row(0), 0);
        check("10A", Code::Char, Place::Row(10), 10);
        assert_eq!(Form::parse("60A12").unwrap().width, Some(12));
        for wrong in ["", "12", "Z", "1.5J", "-3J", "2PE", "P", "PZ", "99999999999999999999J"] {
            assert_eq!(Form::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn written_forms_read_back() {
        for place in [Place::Row(0), Place::Row(7), Place::Heap32(Some(3)), Place::Heap64(Some(0))] {
            for (_, code) in Code::LETTERS {
                let form = Form { code, place, width: None };
                assert_eq!(Form::parse(&form.to_string()), Some(form));
            }
        }
    }
}
