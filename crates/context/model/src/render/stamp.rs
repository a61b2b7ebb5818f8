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

/// Writes instants, remembering the last two: the system attributes of one entity are mostly equal, and
/// creation and change alternate.
#[derive(Debug)]
pub(crate) struct Stamp {
    known: [Written; 2],
    /// Which of them was used before the other.
    older: usize,
}

#[derive(Debug, Clone, Copy)]
struct Written {
    at: Option<Instant>,
    text: [u8; LEN],
    len: u8,
}

impl Stamp {
    /// Remembers nothing yet.
    pub(crate) fn new() -> Self {
        Stamp { known: [Written { at: None, text: [0; LEN], len: 0 }; 2], older: 0 }
    }

    /// Appends `at` as a quoted dateTime (4.6.3).
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, at: Instant) {
        if let Some(index) = self.known.iter().position(|written| written.at == Some(at)) {
            self.older = 1 - index;
            let written = &self.known[index];
            return out.extend_from_slice(&written.text[..usize::from(written.len)]);
        }
        let start = out.len();
        out.push(b'"');
        at.write(out);
        out.push(b'"');
        self.remember(at, &out[start..]);
    }

    fn remember(&mut self, at: Instant, text: &[u8]) {
        if text.len() > LEN {
            return;
        }
        let written = &mut self.known[self.older];
        written.at = Some(at);
        written.text[..text.len()].copy_from_slice(text);
        written.len = text.len() as u8;
        self.older = 1 - self.older;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_alike_each_time() {
        let (mut stamp, mut out) = (Stamp::new(), Vec::new());
        let order = [1, 1, 0, 1, 2, 1, 0, 2, 2, 1, 0];
        order.iter().for_each(|at| stamp.write(&mut out, Instant(*at)));
        let expected: String = order.iter().map(|at| json::quoted(&Instant(*at).to_string())).collect();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
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
