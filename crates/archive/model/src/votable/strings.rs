//! Text as VOTable's `char` and `unicodeChar` hold it, and arrays of strings as JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use arrow_array::{Array, StringArray};

/// The length of text as `arraysize` counts it: bytes of `char`, units of UTF-16 of `unicodeChar` (VOTable 1.6
/// section 2.1).
pub(super) fn units(text: &str, wide: bool) -> usize {
    if wide { text.encode_utf16().count() } else { text.len() }
}

/// Text as the bytes of a `char` array: `?` stands for what is not ASCII, which is all that a `char` holds before
/// VOTable 1.6 (1.5 section 6, Character; common readers refuse the whole table for anything else), and for NUL, at
/// which a string ends.
#[inline]
pub(super) fn ascii(text: &str) -> Cow<'_, str> {
    let is_held = text.bytes().fold(true, |held, byte| held & (byte.wrapping_sub(1) < 0x7F));
    if is_held {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.replace(|c: char| !c.is_ascii() || c == '\0', "?"))
    }
}

/// The units of a `unicodeChar` array, most significant byte first; U+FFFD stands for NUL.
pub(super) fn wide(text: &str) -> impl Iterator<Item = u8> {
    let shown = |unit| if unit == 0 { 0xFFFD } else { unit };
    text.encode_utf16().flat_map(move |unit| shown(unit).to_be_bytes())
}

/// Strings as a JSON array in ASCII.
pub(super) fn json(values: &StringArray, range: Range<usize>) -> String {
    let mut out = String::from("[");
    for at in range.clone() {
        if at > range.start {
            out.push(',');
        }
        if values.is_null(at) {
            out.push_str("null");
        } else {
            json_string(values.value(at), &mut out);
        }
    }
    out.push(']');
    out
}

fn json_string(text: &str, out: &mut String) {
    out.push('"');
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ (b'"' | b'\\')) => {
                out.push('\\');
                out.push(char::from(byte));
            }
            Ok(byte @ b' '..0x7F) => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_ascii() {
        let values = StringArray::from(vec![Some("a\"b\\c\n"), None, Some("é\u{1F600}"), Some("")]);
        assert_eq!(json(&values, 0..4), r#"["a\"b\\c\u000a",null,"\u00e9\ud83d\ude00",""]"#);
        assert_eq!(json(&values, 2..2), "[]");
    }
}
