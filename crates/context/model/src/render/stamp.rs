//! Writes strings and instants into an answer, with the common case made cheap.

use crate::json;
use crate::time::Instant;

/// Appends `text` as a JSON string; one vector-wide test and one copy when nothing needs an escape.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    let special = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    if text.bytes().fold(0, |any, byte| any | special(byte)) != 0 {
        return json::write_string(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Longest quoted instant: `"2026-01-31T12:00:00.000001Z"`.
const LEN: usize = 32;

/// Writes instants, remembering the last one: the system attributes of one entity are mostly equal.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    last: Option<Instant>,
    text: [u8; LEN],
    len: u8,
}

impl Stamp {
    /// Remembers nothing yet.
    pub(crate) fn new() -> Self {
        Stamp { last: None, text: [0; LEN], len: 0 }
    }

    /// Appends `at` as a quoted dateTime (4.6.3).
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, at: Instant) {
        if self.last == Some(at) {
            return out.extend_from_slice(&self.text[..usize::from(self.len)]);
        }
        let start = out.len();
        out.push(b'"');
        at.write(out);
        out.push(b'"');
        let written = &out[start..];
        if written.len() <= LEN {
            self.text[..written.len()].copy_from_slice(written);
            self.len = written.len() as u8;
            self.last = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_alike_each_time() {
        let (mut stamp, mut out) = (Stamp::new(), Vec::new());
        for at in [Instant(1), Instant(1), Instant(0), Instant(1)] {
            stamp.write(&mut out, at);
        }
        let one = r#""1970-01-01T00:00:00.000001Z""#;
        assert_eq!(String::from_utf8(out).unwrap(), format!(r#"{one}{one}"1970-01-01T00:00:00Z"{one}"#));
    }

    #[test]
    fn text_is_escaped_where_it_must_be() {
        for text in ["", "urn:ngsi-ld:Vehicle:1", "a\"b", "a\\b", "a\nb", "žltý"] {
            let mut out = Vec::new();
            write_text(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), json::quoted(text));
        }
    }
}
