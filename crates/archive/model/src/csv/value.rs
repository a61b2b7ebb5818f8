//! From the text of a cell to its value.

use crate::time::Timestamp;

/// The cell without blanks around it.
#[inline]
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

/// A whole number.
#[inline]
pub(crate) fn integer<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Powers of ten that binary64 holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Digits of which every number fits binary64 exactly.
const EXACT_DIGITS: usize = 15;

/// A real number: what Rust reads, with the words for what is no number, and with Fortran's `D` for an
/// exponent.
#[inline]
pub(crate) fn real(bytes: &[u8]) -> Option<f64> {
    match short_decimal(bytes) {
        Some(value) => Some(value),
        None => any_real(bytes),
    }
}

/// Digits with at most one point, few enough that one correctly rounded division gives the nearest number:
/// most of what catalogues hold.
#[inline]
fn short_decimal(bytes: &[u8]) -> Option<f64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    if digits.len() > EXACT_DIGITS + 1 {
        return None;
    }
    let mut mantissa = 0_u64;
    let mut count = 0;
    let mut point = None;
    for (at, &byte) in digits.iter().enumerate() {
        if byte.is_ascii_digit() {
            mantissa = mantissa * 10 + u64::from(byte - b'0');
            count += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    if count == 0 || count > EXACT_DIGITS {
        return None;
    }
    let fraction = point.map_or(0, |at| digits.len() - at - 1);
    let value = mantissa as f64 / POWERS[fraction];
    Some(if negative { -value } else { value })
}

#[cold]
fn any_real(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok()?;
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let exponent = bytes.iter().position(|b| matches!(b, b'd' | b'D'))?;
    let (mantissa, rest) = text.split_at(exponent);
    format!("{mantissa}e{}", &rest[1..]).parse().ok()
}

/// A binary32, rounded once from the text.
pub(super) fn single(bytes: &[u8]) -> Option<f32> {
    match std::str::from_utf8(bytes).ok()?.parse() {
        Ok(value) => Some(value),
        Err(_) => any_real(bytes).map(|value| value as f32),
    }
}

/// A truth value in words.
pub(super) fn truth_word(bytes: &[u8]) -> Option<bool> {
    if bytes.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else if bytes.eq_ignore_ascii_case(b"false") {
        Some(false)
    } else {
        None
    }
}

/// A truth value in words, letters or digits.
pub(super) fn truth(bytes: &[u8]) -> Option<bool> {
    match bytes {
        b"1" | b"t" | b"T" => Some(true),
        b"0" | b"f" | b"F" => Some(false),
        _ => truth_word(bytes),
    }
}

/// An instant, in microseconds.
pub(super) fn instant(bytes: &[u8]) -> Option<i64> {
    Timestamp::parse(std::str::from_utf8(bytes).ok()?).map(|instant| instant.0)
}

/// Whether an unquoted cell says NULL in a column that is not text.
pub(super) fn is_null_word(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.eq_ignore_ascii_case(b"null")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cell;

    #[test]
    fn reals() {
        for (text, expected) in [
            ("1", 1.0),
            ("-0.5", -0.5),
            ("+3", 3.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1e3),
            ("1.5D3", 1500.0),
            ("2d-1", 0.2),
            ("Infinity", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
            ("123456789012345678", 123_456_789_012_345_680.0),
            ("000000000000000000001.5", 1.5),
        ] {
            assert_eq!(real(text.as_bytes()), Some(expected), "{text}");
        }
        assert!(real(b"NaN").unwrap().is_nan());
        assert!(real(b"-0").unwrap().is_sign_negative());
        for text in ["", ".", "-", "+", "1.2.3", "1e", "abc", "d", "1d", "--1", "1 2", "\u{e9}"] {
            assert_eq!(real(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_short_decimal_is_what_the_library_reads(text in "[+-]?[0-9]{0,10}\\.?[0-9]{0,10}") {
            let expected: Option<f64> = text.parse().ok();
            prop_assert_eq!(real(text.as_bytes()).map(f64::to_bits), expected.map(f64::to_bits));
        }

        #[test]
        fn every_number_reads_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let mut text = Vec::new();
            cell::double(value, &mut text);
            let back = real(&text).unwrap();
            prop_assert!(back.to_bits() == bits || (back.is_nan() && value.is_nan()));
        }
    }
}
