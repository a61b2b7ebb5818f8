//! Percent-decoding of path segments and query values, and the encoding of what we mint.
//!
//! Strict on purpose: a `%` without two hexadecimal digits, or bytes that are not UTF-8, are refused and not
//! guessed at. Text without `%` is borrowed, which is nearly all text. A segment is decoded after routing
//! only, so an encoded slash never splits one (RFC 3986 2.4).

use std::borrow::Cow;

/// Why a text cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// `%` is not followed by two hexadecimal digits.
    #[error("`%` is not followed by two hexadecimal digits")]
    Escape,
    /// The decoded bytes are not UTF-8.
    #[error("the decoded bytes are not UTF-8")]
    Utf8,
}

/// What a `+` means where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    /// Itself, as in every path and wherever a URI, a scope or a regular expression is written.
    Literal,
    /// A space, as forms encode it.
    Space,
}

/// Decodes `raw`.
pub(crate) fn decode(raw: &str, plus: Plus) -> Result<Cow<'_, str>, Error> {
    let first = match plus {
        Plus::Literal => memchr::memchr(b'%', raw.as_bytes()),
        Plus::Space => memchr::memchr2(b'%', b'+', raw.as_bytes()),
    };
    match first {
        None => Ok(Cow::Borrowed(raw)),
        Some(at) => decode_from(raw.as_bytes(), at, plus).map(Cow::Owned),
    }
}

fn decode_from(raw: &[u8], first: usize, plus: Plus) -> Result<String, Error> {
    let mut out = Vec::with_capacity(raw.len());
    out.extend_from_slice(&raw[..first]);
    let mut at = first;
    while let Some(&byte) = raw.get(at) {
        at += 1;
        match byte {
            b'%' => {
                out.push(escaped(raw.get(at..at + 2)).ok_or(Error::Escape)?);
                at += 2;
            }
            b'+' if plus == Plus::Space => out.push(b' '),
            _ => out.push(byte),
        }
    }
    String::from_utf8(out).map_err(|_| Error::Utf8)
}

fn escaped(digits: Option<&[u8]>) -> Option<u8> {
    let [high, low] = *digits? else { return None };
    Some(nibble(high)? << 4 | nibble(low)?)
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Where text is put into a URI that we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// One path segment.
    Segment,
    /// The value of one query parameter, inside a `Link` header.
    Value,
}

/// Appends `text`, encoding only what would end or change the place it stands in. Commas and semicolons are
/// encoded in a value because careless clients split `Link` headers at them.
pub(crate) fn encode(out: &mut Vec<u8>, text: &str, place: Place) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text.as_bytes() {
        if is_plain(byte, place) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// RFC 3986 3.3 and 3.4: unreserved characters, and the delimiters that are harmless here.
fn is_plain(byte: u8, place: Place) -> bool {
    byte.is_ascii_alphanumeric()
        || b"-._~:@!$'()*".contains(&byte)
        || match place {
            Place::Segment => b"&=+,;".contains(&byte),
            Place::Value => b"/?=".contains(&byte),
        }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_decoded_strictly() {
        for (raw, plus, decoded) in [
            ("urn:a:1", Plus::Literal, Ok("urn:a:1")),
            ("a%2Fb", Plus::Literal, Ok("a/b")),
            ("a+b%2Bc", Plus::Literal, Ok("a+b+c")),
            ("a+b%2Bc", Plus::Space, Ok("a b+c")),
            ("%C3%A9", Plus::Literal, Ok("é")),
            ("%", Plus::Literal, Err(Error::Escape)),
            ("%4", Plus::Literal, Err(Error::Escape)),
            ("%4g", Plus::Literal, Err(Error::Escape)),
            ("%+4", Plus::Literal, Err(Error::Escape)),
            ("%C3", Plus::Literal, Err(Error::Utf8)),
            ("%2525", Plus::Literal, Ok("%25")),
        ] {
            assert_eq!(decode(raw, plus).as_deref(), decoded.as_ref().copied(), "{raw}");
        }
    }

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(decode("a+b", Plus::Literal), Ok(Cow::Borrowed("a+b"))));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(raw in "\\PC{0,40}") {
            let _ = decode(&raw, Plus::Space);
        }

        #[test]
        fn what_is_encoded_decodes_to_itself(text in ".{0,40}", value in any::<bool>()) {
            let place = if value { Place::Value } else { Place::Segment };
            let mut out = Vec::new();
            encode(&mut out, &text, place);
            let encoded = String::from_utf8(out).unwrap();
            prop_assert!(encoded.bytes().all(|b| b.is_ascii_graphic() && !b"#<>\"".contains(&b)));
            if value {
                prop_assert!(!encoded.contains(['&', ',', ';', '+']));
            } else {
                prop_assert!(!encoded.contains(['/', '?']));
            }
            prop_assert_eq!(decode(&encoded, Plus::Literal).unwrap(), text);
        }
    }
}
