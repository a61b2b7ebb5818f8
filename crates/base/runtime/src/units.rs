//! Durations and sizes as people write them: `250ms`, `1s`, `64MiB`.
//!
//! Both are newtypes that read and write the text form, so that an options structure says `Span` or `Size`
//! and a configuration file can never leave the unit to a guess: a bare number is refused for a duration and
//! means bytes for a size.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};

/// Why a duration or a size was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("`{0}` does not begin with a number")]
    NoNumber(String),
    /// The text after the number names no unit.
    #[error("`{text}` lacks one of the units {units}")]
    NoUnit {
        /// The whole text.
        text: String,
        /// The units that would do.
        units: &'static str,
    },
    /// The value does not fit.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// A length of time with its unit: `us`, `ms`, `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub Duration);

/// A number of bytes with its unit: `B`, `KiB`, `MiB`, `GiB`, `TiB`, or the decimal `kB`, `MB`, `GB`, `TB`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(pub u64);

/// Microseconds in each unit of time, smallest first.
const SPANS: &[(&str, u64)] = &[
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Bytes in each unit of size; the binary ones, which the text form uses, first and smallest first.
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
const SIZES_BINARY: usize = 5;

/// Splits `2.5h` into its digits and its unit.
fn split(text: &str) -> Result<(&str, &str), UnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(UnitError::NoNumber(text.to_owned()));
    }
    Ok((&text[..end], text[end..].trim_start()))
}

/// `digits` times `scale`, exact for whole numbers and for up to nine fraction digits.
fn scaled(digits: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let divisor = 10u64.pow(u32::try_from(fraction.len()).ok()?);
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale) / u128::from(divisor);
    whole.checked_add(u64::try_from(part).ok()?)
}

fn read(text: &str, table: &[(&str, u64)], units: &'static str, bare: Option<u64>) -> Result<u64, UnitError> {
    let (digits, unit) = split(text)?;
    let named = table.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    let bare = bare.filter(|_| unit.is_empty());
    let scale = named.or(bare).ok_or_else(|| UnitError::NoUnit { text: text.trim().to_owned(), units })?;
    scaled(digits, scale).ok_or_else(|| UnitError::TooLarge(text.trim().to_owned()))
}

/// The largest unit that divides `value` without a rest.
fn write(f: &mut fmt::Formatter<'_>, value: u64, table: &[(&str, u64)]) -> fmt::Result {
    let fits = |entry: &&(&str, u64)| value != 0 && value.is_multiple_of(entry.1);
    let (unit, scale) = table.iter().rev().find(fits).unwrap_or(&table[0]);
    write!(f, "{}{unit}", value / scale)
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        // Zero needs no unit.
        if text.trim() == "0" {
            return Ok(Self::default());
        }
        read(text, SPANS, "us, ms, s, m, h, d", None).map(|micros| Self(Duration::from_micros(micros)))
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        read(text, SIZES, "B, KiB, MiB, GiB, TiB, kB, MB, GB, TB", Some(1)).map(Self)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX), SPANS)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &SIZES[..SIZES_BINARY])
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self(span)
    }
}

impl Size {
    /// The bytes as a length in memory; the longest one where the machine cannot count that far.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"64MiB\", or a number of bytes")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(bytes))
    }

    fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<Size, E> {
        u64::try_from(bytes).map(Size).map_err(|_| E::custom("a size is not negative"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Result<u64, UnitError> {
        text.parse::<Span>().map(|span| u64::try_from(span.0.as_micros()).unwrap())
    }

    fn size(text: &str) -> Result<u64, UnitError> {
        text.parse::<Size>().map(|size| size.0)
    }

    #[test]
    fn durations_are_read() {
        let table = [
            ("250ms", 250_000),
            ("1s", 1_000_000),
            ("1.5s", 1_500_000),
            ("2m", 120_000_000),
            ("24h", 86_400_000_000),
            ("7d", 604_800_000_000),
            (" 5 us ", 5),
            ("0", 0),
            ("0s", 0),
        ];
        for (text, micros) in table {
            assert_eq!(span(text), Ok(micros), "{text}");
        }
    }

    #[test]
    fn sizes_are_read() {
        let table =
            [("64MiB", 64 << 20), ("1024", 1024), ("0.5KiB", 512), ("3 GB", 3_000_000_000), ("7B", 7)];
        for (text, bytes) in table {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_missing_or_unknown_unit_is_refused() {
        for text in ["250", "1.5", "1w", "1S", "10 seconds"] {
            assert!(matches!(span(text), Err(UnitError::NoUnit { .. })), "{text}");
        }
        for text in ["64mib", "64M", "1.5e3"] {
            assert!(matches!(size(text), Err(UnitError::NoUnit { .. })), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_does_not_fit_is_refused() {
        for text in ["", "ms", "-1s", ".5s", "abc"] {
            assert!(matches!(span(text), Err(UnitError::NoNumber(_))), "{text}");
        }
        for text in ["99999999999999999999s", "18446744073709551615d", "1..2s", "1.0000000001s", "1.s"] {
            assert!(matches!(span(text), Err(UnitError::TooLarge(_))), "{text}");
        }
    }

    #[test]
    fn the_text_form_is_the_largest_exact_unit_and_reads_back() {
        for text in ["90s", "1500ms", "1h", "0us", "1us", "3d"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["64MiB", "1000B", "0B", "3TiB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn both_are_read_from_toml() {
        #[derive(serde::Deserialize)]
        struct Limits {
            wait: Span,
            body: Size,
            head: Size,
        }
        let limits: Limits = toml::from_str("wait = '2s'\nbody = '1MiB'\nhead = 512").unwrap();
        assert_eq!((limits.wait.0.as_secs(), limits.body.0, limits.head.0), (2, 1 << 20, 512));
        assert!(toml::from_str::<Limits>("wait = 2\nbody = 1\nhead = 1").is_err());
        assert!(toml::from_str::<Limits>("wait = '2s'\nbody = -1\nhead = 1").is_err());
    }
}
