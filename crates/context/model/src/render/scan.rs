//! Walks the JSON text of a stored value without a tape and without allocating.
//!
//! Only for text that the record encoder wrote: valid, and without white space between tokens.

use std::borrow::Cow;

use crate::json::Doc;

/// Where the string that begins at `at` ends, closing quote included.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(step) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        if text[at + step] == b'"' {
            return at + step + 1;
        }
        at += step + 2;
    }
    text.len()
}

/// Where the array or object that begins at `at` ends.
fn container_end(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < text.len() {
        match text[at] {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Where the value that begins at `at` ends.
fn value_end(text: &[u8], at: usize) -> usize {
    match text[at] {
        b'"' => string_end(text, at),
        b'{' | b'[' => container_end(text, at),
        _ => text[at..]
            .iter()
            .position(|byte| matches!(byte, b',' | b']' | b'}'))
            .map_or(text.len(), |n| at + n),
    }
}

/// The members of an object: each name as it is written, quotes included, and the text of its value.
#[derive(Debug, Clone)]
pub(super) struct Members<'t> {
    text: &'t str,
    at: usize,
}

/// The members of `text`; none when it is no object.
pub(super) fn members(text: &str) -> Members<'_> {
    Members { text, at: if text.starts_with('{') { 1 } else { text.len() } }
}

impl<'t> Iterator for Members<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        let name = self.at..string_end(bytes, self.at);
        let value = name.end + 1..value_end(bytes, name.end + 1);
        self.at = value.end + 1;
        Some((&self.text[name], &self.text[value]))
    }
}

/// The strings of a value that are no member names, quotes included: the targets of a relationship in either
/// of its forms, the terms of a vocabulary value.
#[derive(Debug, Clone)]
pub(super) struct Strings<'t> {
    text: &'t str,
    at: usize,
}

/// See [`Strings`].
pub(super) fn strings(text: &str) -> Strings<'_> {
    Strings { text, at: 0 }
}

impl<'t> Iterator for Strings<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at + memchr::memchr(b'"', bytes.get(self.at..)?)?;
            self.at = string_end(bytes, start);
            if bytes.get(self.at) != Some(&b':') {
                return Some(&self.text[start..self.at]);
            }
        }
    }
}

/// The first item of an array.
pub(super) fn first_item(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    (text.len() > 2 && bytes[0] == b'[').then(|| &text[1..value_end(bytes, 1)])
}

/// True when a quoted string stands for `text`.
pub(super) fn is(token: &str, text: &str) -> bool {
    token.starts_with('"') && (&token[1..token.len() - 1] == text || unquote(token) == text)
}

/// The text that a quoted string stands for.
pub(super) fn unquote(token: &str) -> Cow<'_, str> {
    let inner = &token[1..token.len() - 1];
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    let doc = Doc::parse(token.as_bytes()).expect("the encoder wrote valid JSON");
    Cow::Owned(doc.root().as_str().unwrap_or_default().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_apart() {
        let text = r#"{"a":"x,}\"","b\"":[1,{"c":"]"}],"d":{},"e":-1.5e3,"f":null}"#;
        let found: Vec<_> = members(text).collect();
        let expected = [
            (r#""a""#, r#""x,}\"""#),
            (r#""b\"""#, r#"[1,{"c":"]"}]"#),
            (r#""d""#, "{}"),
            (r#""e""#, "-1.5e3"),
            (r#""f""#, "null"),
        ];
        assert_eq!(found, expected);
        assert_eq!(members("{}").count() + members("[]").count() + members("1").count(), 0);
    }

    #[test]
    fn strings_skip_member_names() {
        let list = |text| strings(text).map(unquote).collect::<Vec<_>>();
        assert_eq!(list(r#""urn:a:1""#), ["urn:a:1"]);
        assert_eq!(list(r#"["urn:a:1","urn:a:\/2"]"#), ["urn:a:1", "urn:a:/2"]);
        assert_eq!(list(r#"[{"object":"urn:a:1"},{"object":"urn:a:2"}]"#), ["urn:a:1", "urn:a:2"]);
        assert_eq!(list("[]"), [] as [&str; 0]);
    }

    #[test]
    fn the_first_item() {
        assert_eq!(first_item(r#"[{"a":[1]},2]"#), Some(r#"{"a":[1]}"#));
        assert_eq!(first_item("[1]"), Some("1"));
        assert_eq!(first_item("[]"), None);
        assert_eq!(first_item("{}"), None);
    }
}
