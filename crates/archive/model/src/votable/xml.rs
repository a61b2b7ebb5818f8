//! Text into XML: escaped, and valid whatever it holds.
//!
//! XML 1.0 section 2.2 has no way at all to write most control characters; they become U+FFFD, so that a message
//! with a stray NUL cannot break the document that carries it. Carriage returns are written as references, since
//! a parser would turn them into line feeds (section 2.11), and so are line feeds and tabs in attributes (3.3.3).

use std::borrow::Cow;

/// Appends text as element content.
pub(crate) fn text(value: &str, out: &mut Vec<u8>) {
    let bytes = value.as_bytes();
    if bytes.iter().fold(false, |special, &byte| special | suspect(byte)) {
        escaped(value, false, out);
    } else {
        out.extend_from_slice(bytes);
    }
}

/// Appends text as the value of an attribute in double quotes.
pub(crate) fn attribute(value: &str, out: &mut Vec<u8>) {
    let bytes = value.as_bytes();
    if bytes.iter().fold(false, |special, &byte| special | suspect(byte) | (byte == b'"')) {
        escaped(value, true, out);
    } else {
        out.extend_from_slice(bytes);
    }
}

/// The text as a reader of the document will see it.
pub(crate) fn representable(value: &str) -> Cow<'_, str> {
    let is_lost = |c: char| matches!(replacement(c, false), Some("\u{FFFD}"));
    if value.contains(is_lost) {
        Cow::Owned(value.replace(is_lost, "\u{FFFD}"))
    } else {
        Cow::Borrowed(value)
    }
}

/// Appends ` name="value"`.
pub(crate) fn named(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    attribute(value, out);
    out.push(b'"');
}

/// Whether a byte may need more than copying: markup, a control character, or the first byte of U+FFFE and U+FFFF.
/// Comparisons only, so that the loop over it is done sixteen bytes at a time.
const fn suspect(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'&') | (byte == b'<') | (byte == b'>') | (byte == 0xEF)
}

#[cold]
fn escaped(value: &str, in_attribute: bool, out: &mut Vec<u8>) {
    let mut plain = 0;
    for (at, character) in value.char_indices() {
        let Some(replacement) = replacement(character, in_attribute) else { continue };
        out.extend_from_slice(&value.as_bytes()[plain..at]);
        out.extend_from_slice(replacement.as_bytes());
        plain = at + character.len_utf8();
    }
    out.extend_from_slice(&value.as_bytes()[plain..]);
}

fn replacement(character: char, in_attribute: bool) -> Option<&'static str> {
    Some(match character {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' if in_attribute => "&quot;",
        '\t' if in_attribute => "&#9;",
        '\n' if in_attribute => "&#10;",
        '\r' => "&#13;",
        '\t' | '\n' => return None,
        '\0'..'\u{20}' | '\u{FFFE}' | '\u{FFFF}' => "\u{FFFD}",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_text(value: &str) -> String {
        let mut out = Vec::new();
        text(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn as_attribute(value: &str) -> String {
        let mut out = Vec::new();
        attribute(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(as_text("a<b && c>d \"e\""), "a&lt;b &amp;&amp; c&gt;d \"e\"");
        assert_eq!(as_attribute("a<b && c>d \"e\"\n\t"), "a&lt;b &amp;&amp; c&gt;d &quot;e&quot;&#10;&#9;");
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(as_text("a\0b\u{1b}c\u{FFFF}d\u{FFFE}"), "a\u{FFFD}b\u{FFFD}c\u{FFFD}d\u{FFFD}");
        assert_eq!(as_text("\u{FFFD}\u{F000}\u{10FFFF}é"), "\u{FFFD}\u{F000}\u{10FFFF}é");
        assert_eq!(as_text("a\r\nb\tc"), "a&#13;\nb\tc");
    }
}
