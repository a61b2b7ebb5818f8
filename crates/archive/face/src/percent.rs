//! Percent-encoding: of forms, leniently, and of paths, strictly.
//!
//! A form is decoded as browsers write it (WHATWG URL 5.1): `+` is a blank, and a `%` that begins no escape is itself,
//! because people type `LIKE 'a%'` into an address bar. Bytes that are not UTF-8 are refused. A path is decoded after
//! it has been routed, so an encoded slash splits nothing (RFC 3986 2.4), and its escapes must be whole.

use std::borrow::Cow;

/// Decodes a name or a value of a form; `None` if it is not UTF-8.
pub(crate) fn form(raw: &str) -> Option<Cow<'_, str>> {
    let Some(first) = memchr::memchr2(b'%', b'+', raw.as_bytes()) else { return Some(Cow::Borrowed(raw)) };
    let bytes = decoded(raw.as_bytes(), first, |byte| if byte == b'+' { b' ' } else { byte }, false)?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Decodes a segment of a path; `None` if an escape is broken or the result is not UTF-8.
pub(crate) fn segment(raw: &str) -> Option<Cow<'_, str>> {
    let Some(first) = memchr::memchr(b'%', raw.as_bytes()) else { return Some(Cow::Borrowed(raw)) };
    let bytes = decoded(raw.as_bytes(), first, |byte| byte, true)?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn decoded(raw: &[u8], first: usize, plain: impl Fn(u8) -> u8, is_strict: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(raw.len());
    out.extend_from_slice(&raw[..first]);
    let mut at = first;
    while let Some(&byte) = raw.get(at) {
        at += 1;
        if byte != b'%' {
            out.push(plain(byte));
            continue;
        }
        match escaped(raw.get(at..at + 2)) {
            Some(value) => {
                out.push(value);
                at += 2;
            }
            None if is_strict => return None,
            None => out.push(plain(byte)),
        }
    }
    Some(out)
}

fn escaped(digits: Option<&[u8]>) -> Option<u8> {
    let [high, low] = *digits? else { return None };
    Some(nibble(high)? << 4 | nibble(low)?)
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Appends `text` so that it stands in one segment of a path, or in one value of a query.
pub(crate) fn encode(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_are_decoded_as_browsers_write_them() {
        for (raw, decoded) in [
            ("SELECT+1", Some("SELECT 1")),
            ("a%2Bb", Some("a+b")),
            ("LIKE+'a%'", Some("LIKE 'a%'")),
            ("100%+sure", Some("100% sure")),
            ("%C3%A9", Some("é")),
            ("%C3", None),
            ("%", Some("%")),
            ("%4", Some("%4")),
        ] {
            assert_eq!(form(raw).as_deref(), decoded, "{raw}");
        }
    }

    #[test]
    fn paths_are_decoded_strictly() {
        for (raw, decoded) in [
            ("ivoa.obscore", Some("ivoa.obscore")),
            ("a+b", Some("a+b")),
            ("%22I%2F355%22", Some("\"I/355\"")),
            ("a%", None),
            ("a%2", None),
            ("%ff", None),
        ] {
            assert_eq!(segment(raw).as_deref(), decoded, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_itself(text in ".{0,40}") {
            let mut encoded = String::new();
            encode(&mut encoded, &text);
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
            prop_assert_eq!(form(&encoded).unwrap(), text.as_str());
            prop_assert_eq!(segment(&encoded).unwrap(), text.as_str());
        }

        #[test]
        fn any_text_is_answered(raw in "\\PC{0,40}") {
            let _ = (form(&raw), segment(&raw));
        }
    }
}
