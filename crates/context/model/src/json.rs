//! A JSON text parsed once into a flat tape, keeping the place of every value.
//!
//! NGSI-LD stores most of what it receives verbatim (property values, geometries, opaque JSON), so a tree
//! of owned values would be built only to be written out again. The tape is one vector of sixteen-byte
//! nodes over the text: a value's source span is at hand for copying and for error positions, and walking
//! it allocates nothing. Cost: one pass over the text, one allocation.
//!
//! Refused with the byte offset: anything RFC 8259 refuses, invalid UTF-8, a member name that occurs twice
//! in one object, nesting beyond [`MAX_DEPTH`], a number that is not finite as a double.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::name::shown;

/// Nesting allowed in any document; deeper ones are refused before they cost stack or time.
pub const MAX_DEPTH: usize = 64;

/// Objects up to this many members are checked for duplicates by comparing pairs, larger ones by sorting.
const PAIRWISE_MEMBERS: usize = 12;

/// Why a text is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {offset}")]
pub struct Error {
    /// Byte offset into the text.
    pub offset: usize,
    /// What is wrong there.
    pub reason: Reason,
}

/// The kinds of refusal of [`Doc::parse`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The text ended inside a value.
    #[error("unexpected end of JSON text")]
    End,
    /// A byte that no rule allows here.
    #[error("unexpected character")]
    Unexpected,
    /// More text after the value.
    #[error("trailing characters after the JSON value")]
    Trailing,
    /// The text is not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// Not a JSON number, or one beyond the range of a double.
    #[error("invalid number")]
    Number,
    /// A bad escape or a raw control character in a string.
    #[error("invalid string")]
    String,
    /// Half of a surrogate pair: a text that is no Unicode, which other readers refuse (RFC 7493 section 2.1).
    #[error("lone surrogate in a string")]
    Surrogate,
    /// Nesting beyond [`MAX_DEPTH`].
    #[error("nesting deeper than {MAX_DEPTH} levels")]
    Depth,
    /// The member name stands twice in one object.
    #[error("duplicate member name \"{0}\"")]
    Duplicate(String),
    /// More than 4 GiB of text.
    #[error("text too long")]
    Size,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of RFC 8259")]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    /// A string with escapes; its text must be decoded.
    escaped: bool,
    start: u32,
    end: u32,
    /// Index of the node after this value's subtree.
    next: u32,
}

/// A parsed text.
#[derive(Debug)]
pub struct Doc<'a> {
    text: &'a str,
    nodes: Vec<Node>,
    /// No white space between tokens: spans can be copied as they are.
    compact: bool,
}

impl<'a> Doc<'a> {
    /// Parses one JSON value that fills `bytes` (RFC 8259).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Doc::parse_within(bytes, MAX_DEPTH)
    }

    /// Like [`Doc::parse`] with a limit of its own on nesting, for text that was written here.
    pub(crate) fn parse_within(bytes: &'a [u8], depth: usize) -> Result<Self, Error> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Error { offset: error.valid_up_to(), reason: Reason::Utf8 })?;
        if u32::try_from(text.len()).is_err() {
            return Err(Error { offset: 0, reason: Reason::Size });
        }
        let mut parser = Parser {
            bytes: text.as_bytes(),
            at: 0,
            nodes: Vec::with_capacity(text.len() / 12 + 4),
            compact: true,
            depth,
        };
        parser.document()?;
        Ok(Doc { text, nodes: parser.nodes, compact: parser.compact })
    }

    /// The value of the whole text.
    pub fn root(&self) -> Value<'_> {
        Value { doc: self, at: 0 }
    }

    fn node(&self, at: u32) -> Node {
        self.nodes[at as usize]
    }
}

/// One value of a [`Doc`]; cheap to copy.
#[derive(Clone, Copy)]
pub struct Value<'d> {
    doc: &'d Doc<'d>,
    at: u32,
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.raw())
    }
}

impl<'d> Value<'d> {
    fn node(self) -> Node {
        self.doc.node(self.at)
    }

    /// What this value is.
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Byte offset of the value in the text.
    pub fn offset(self) -> usize {
        self.node().start as usize
    }

    /// The value's source text, white space included.
    pub fn raw(self) -> &'d str {
        let node = self.node();
        &self.doc.text[node.start as usize..node.end as usize]
    }

    /// True for the literal `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// True for an object.
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// True for an array.
    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// The decoded text of a string.
    pub fn as_str(self) -> Option<Cow<'d, str>> {
        let node = self.node();
        (node.kind == Kind::String).then(|| decode(self.doc, node))
    }

    /// The value of a boolean.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The value of a number, as a double.
    pub fn as_f64(self) -> Option<f64> {
        (self.kind() == Kind::Number).then(|| self.raw().parse().ok()).flatten()
    }

    /// True for a string whose decoded text is `text`.
    pub fn is_str(self, text: &str) -> bool {
        self.as_str().is_some_and(|own| own == text)
    }

    /// The items of an array; nothing for any other kind.
    pub fn items(self) -> Items<'d> {
        let node = self.node();
        let end = if node.kind == Kind::Array { node.next } else { self.at + 1 };
        Items { doc: self.doc, at: self.at + 1, end }
    }

    /// The members of an object in order; nothing for any other kind.
    pub fn members(self) -> Members<'d> {
        let node = self.node();
        let end = if node.kind == Kind::Object { node.next } else { self.at + 1 };
        Members { doc: self.doc, at: self.at + 1, end }
    }

    /// The member `name` of an object.
    pub fn get(self, name: &str) -> Option<Value<'d>> {
        self.members().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The value's text without white space between tokens; borrowed when the source has none.
    pub fn minified(self) -> Cow<'d, str> {
        let raw = self.raw();
        let nested = matches!(self.kind(), Kind::Array | Kind::Object);
        if self.doc.compact || !nested { Cow::Borrowed(raw) } else { Cow::Owned(minify(raw)) }
    }
}

/// Iterator of [`Value::items`].
#[derive(Clone)]
pub struct Items<'d> {
    doc: &'d Doc<'d>,
    at: u32,
    end: u32,
}

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        if self.at >= self.end {
            return None;
        }
        let value = Value { doc: self.doc, at: self.at };
        self.at = self.doc.node(self.at).next;
        Some(value)
    }
}

/// Iterator of [`Value::members`].
#[derive(Clone)]
pub struct Members<'d> {
    doc: &'d Doc<'d>,
    at: u32,
    end: u32,
}

impl<'d> Iterator for Members<'d> {
    type Item = (Cow<'d, str>, Value<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let key = decode(self.doc, self.doc.node(self.at));
        let value = Value { doc: self.doc, at: self.at + 1 };
        self.at = self.doc.node(self.at + 1).next;
        Some((key, value))
    }
}

fn decode<'d>(doc: &'d Doc<'d>, node: Node) -> Cow<'d, str> {
    let inner = &doc.text[node.start as usize + 1..node.end as usize - 1];
    if node.escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) }
}

/// Decodes a string body that the parser has accepted.
fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (c, used) = unescape_one(&rest[at..]);
        out.push(c);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    out
}

/// The character of the escape that `rest` begins with, and its length.
fn unescape_one(rest: &str) -> (char, usize) {
    match rest.as_bytes()[1] {
        b'n' => ('\n', 2),
        b't' => ('\t', 2),
        b'r' => ('\r', 2),
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'u' => unescape_unicode(rest),
        other => (char::from(other), 2),
    }
}

fn unescape_unicode(rest: &str) -> (char, usize) {
    let unit = |at: usize| rest.get(at..at + 4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let high = unit(2).unwrap_or(0xFFFD);
    let low = if rest.get(6..8) == Some("\\u") { unit(8) } else { None };
    let units = [high, low.unwrap_or(0)];
    match char::decode_utf16(units.iter().copied()).next() {
        Some(Ok(c)) => (c, if c.len_utf16() == 2 { 12 } else { 6 }),
        _ => ('\u{FFFD}', 6),
    }
}

/// Removes the white space between the tokens of a valid JSON text.
fn minify(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut in_string = false;
    let mut escaped = false;
    let mut from = 0;
    for (at, byte) in raw.bytes().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            out.push_str(&raw[from..at]);
            from = at + 1;
        } else {
            in_string = byte == b'"';
        }
    }
    out.push_str(&raw[from..]);
    out
}

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        write_escape(out, byte);
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
    }
}

/// `text` as a JSON string, quotes included.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    String::from_utf8(out).expect("escaping valid UTF-8 yields valid UTF-8")
}

/// Bytes at the beginning of `bytes`, in steps of eight, that stand for themselves inside a string: no quote,
/// no backslash, no control character. Looks at a word at a time; the caller looks at the rest.
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES * 128;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    let mut at = 0;
    for chunk in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks are of eight bytes"));
        let special = below(word, 0x20)
            | below(word ^ (ONES * u64::from(b'"')), 1)
            | below(word ^ (ONES * u64::from(b'\\')), 1);
        if special != 0 {
            // A borrow can mark a byte above a marked one, never below the first.
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    compact: bool,
    /// Nesting allowed.
    depth: usize,
}

impl Parser<'_> {
    fn fail<T>(&self, reason: Reason) -> Result<T, Error> {
        Err(Error { offset: self.at, reason })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
            self.compact = false;
        }
    }

    fn unexpected<T>(&self) -> Result<T, Error> {
        self.fail(if self.at < self.bytes.len() { Reason::Unexpected } else { Reason::End })
    }

    fn push(&mut self, kind: Kind, start: usize, escaped: bool) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, escaped, start: start as u32, end: self.at as u32, next });
    }

    fn document(&mut self) -> Result<(), Error> {
        self.space();
        self.value(0)?;
        self.space();
        if self.at < self.bytes.len() { self.fail(Reason::Trailing) } else { Ok(()) }
    }

    /// One value; recursion is bounded by the allowed depth.
    fn value(&mut self, depth: usize) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.container(Kind::Object, depth),
            Some(b'[') => self.container(Kind::Array, depth),
            Some(b't') => self.literal(b"true", Kind::Bool),
            Some(b'f') => self.literal(b"false", Kind::Bool),
            Some(b'n') => self.literal(b"null", Kind::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.unexpected(),
        }
    }

    fn container(&mut self, kind: Kind, depth: usize) -> Result<(), Error> {
        if depth >= self.depth {
            return self.fail(Reason::Depth);
        }
        let (start, own) = (self.at, self.nodes.len());
        self.at += 1;
        self.push(kind, start, false);
        let close = if kind == Kind::Object { b'}' } else { b']' };
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
        } else {
            self.contents(kind, close, depth)?;
        }
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[own];
        node.end = self.at as u32;
        node.next = next;
        if kind == Kind::Object { self.unique(own) } else { Ok(()) }
    }

    fn contents(&mut self, kind: Kind, close: u8, depth: usize) -> Result<(), Error> {
        loop {
            if kind == Kind::Object {
                self.member_name()?;
            }
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => break,
                _ => return self.unexpected(),
            }
            self.space();
        }
        self.at += 1;
        Ok(())
    }

    fn member_name(&mut self) -> Result<(), Error> {
        if self.peek() != Some(b'"') {
            return self.unexpected();
        }
        self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return self.unexpected();
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Result<(), Error> {
        let start = self.at;
        if !self.bytes[start..].starts_with(word) {
            return self.fail(Reason::Unexpected);
        }
        self.at += word.len();
        self.push(kind, start, false);
        Ok(())
    }

    fn string(&mut self) -> Result<(), Error> {
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain_run(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..=0x1F) => return self.fail(Reason::String),
                Some(_) => self.at += 1,
                None => return self.fail(Reason::End),
            }
        }
        self.at += 1;
        self.push(Kind::String, start, escaped);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Error> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => self.at += self.unicode_escape()?,
            _ => return self.fail(Reason::String),
        }
        Ok(())
    }

    /// The length of the escape of four digits at hand, or of the two that make up a surrogate pair (RFC 8259
    /// section 7).
    fn unicode_escape(&self) -> Result<usize, Error> {
        match self.code_unit(self.at)? {
            0xD800..=0xDBFF if matches!(self.code_unit(self.at + 6), Ok(0xDC00..=0xDFFF)) => Ok(12),
            0xD800..=0xDFFF => self.fail(Reason::Surrogate),
            _ => Ok(6),
        }
    }

    fn code_unit(&self, at: usize) -> Result<u16, Error> {
        let escape = self.bytes.get(at..at + 6).and_then(|escape| escape.strip_prefix(b"\\u"));
        let digits = escape.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        unit.ok_or(Error { offset: self.at, reason: Reason::String })
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - from
    }

    fn number(&mut self) -> Result<(), Error> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let integer = self.digits();
        let mut bad = integer == 0 || (leading_zero && integer > 1);
        let mut simple = integer < 300;
        if self.peek() == Some(b'.') {
            self.at += 1;
            bad |= self.digits() == 0;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            bad |= self.digits() == 0;
            simple = false;
        }
        if bad || !(simple || self.finite(start)) {
            return Err(Error { offset: start, reason: Reason::Number });
        }
        self.push(Kind::Number, start, false);
        Ok(())
    }

    fn finite(&self, start: usize) -> bool {
        let text = std::str::from_utf8(&self.bytes[start..self.at]).ok();
        text.and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_finite)
    }

    /// Refuses an object with a repeated member name (RFC 8259 section 4 leaves it open; silent loss is worse).
    fn unique(&self, object: usize) -> Result<(), Error> {
        let mut keys: SmallVec<[Node; PAIRWISE_MEMBERS]> = SmallVec::new();
        let mut at = object + 1;
        while at < self.nodes.len() {
            keys.push(self.nodes[at]);
            at = self.nodes[at + 1].next as usize;
        }
        if keys.len() <= PAIRWISE_MEMBERS && keys.iter().all(|key| !key.escaped) {
            for (index, key) in keys.iter().enumerate() {
                if keys[..index].iter().any(|other| self.inner(*other) == self.inner(*key)) {
                    return self.duplicate(*key);
                }
            }
            return Ok(());
        }
        let mut names: Vec<(Cow<'_, str>, Node)> = keys.iter().map(|key| (self.name(*key), *key)).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        match names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => self.duplicate(pair[1].1),
            None => Ok(()),
        }
    }

    fn inner(&self, key: Node) -> &[u8] {
        &self.bytes[key.start as usize + 1..key.end as usize - 1]
    }

    fn name(&self, key: Node) -> Cow<'_, str> {
        let inner = std::str::from_utf8(self.inner(key)).unwrap_or_default();
        if key.escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) }
    }

    fn duplicate(&self, key: Node) -> Result<(), Error> {
        Err(Error { offset: key.start as usize, reason: Reason::Duplicate(shown(&self.name(key))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str, reason: &Reason, offset: usize) {
        let error = Doc::parse(text.as_bytes()).expect_err(text);
        assert_eq!((&error.reason, error.offset), (reason, offset), "{text}");
    }

    #[test]
    fn spans_and_members_are_found() {
        let doc = Doc::parse(br#" {"a": [1, {"b":"x\u00e9"}], "c": null} "#).unwrap();
        let root = doc.root();
        assert_eq!(root.get("a").unwrap().raw(), r#"[1, {"b":"x\u00e9"}]"#);
        assert_eq!(root.get("a").unwrap().minified(), r#"[1,{"b":"x\u00e9"}]"#);
        let inner = root.get("a").unwrap().items().nth(1).unwrap();
        assert_eq!(inner.get("b").unwrap().as_str().unwrap(), "xé");
        assert!(root.get("c").unwrap().is_null());
        assert_eq!(root.members().count(), 2);
        assert_eq!(Doc::parse(br#""\ud83d\ude80\uD83D\uDE80""#).unwrap().root().as_str().unwrap(), "🚀🚀");
    }

    #[test]
    fn bad_texts_are_refused_where_they_go_wrong() {
        refused("", &Reason::End, 0);
        refused("{", &Reason::End, 1);
        refused("[1,]", &Reason::Unexpected, 3);
        refused("[1] x", &Reason::Trailing, 4);
        refused("01", &Reason::Number, 0);
        refused("1e999", &Reason::Number, 0);
        refused("-", &Reason::Number, 0);
        refused("\"\\x\"", &Reason::String, 1);
        refused("\"\\u12g4\"", &Reason::String, 1);
        for lone in ["\\ud800", "\\ud800x", "\\ud800\\u0041", "\\ud800\\ud800", "\\udc00", "\\ud800\\udc0"] {
            refused(&format!("\"{lone}\""), &Reason::Surrogate, 1);
        }
        refused("{\"a\":1,\"a\":2}", &Reason::Duplicate("a".into()), 7);
        refused("{\"a\":1,\"\\u0061\":2}", &Reason::Duplicate("a".into()), 7);
        refused(&"[".repeat(MAX_DEPTH + 1), &Reason::Depth, MAX_DEPTH);
        assert_eq!(Doc::parse(b"\"\xff\"").unwrap_err().reason, Reason::Utf8);
    }

    #[test]
    fn many_members_are_checked_for_duplicates_too() {
        let mut text: String = (0..40).map(|n| format!("\"k{n}\":{n},")).collect();
        text = format!("{{{text}\"k7\":0}}");
        let error = Doc::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.reason, Reason::Duplicate("k7".into()));
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<i16>().prop_map(|n| (f64::from(n) / 8.0).into()),
            ".*".prop_map(serde_json::Value::String),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn back(value: Value<'_>) -> serde_json::Value {
        match value.kind() {
            Kind::String => value.as_str().unwrap().into_owned().into(),
            Kind::Array => value.items().map(back).collect::<Vec<_>>().into(),
            Kind::Object => {
                serde_json::Value::Object(value.members().map(|(k, v)| (k.into_owned(), back(v))).collect())
            }
            Kind::Null | Kind::Bool | Kind::Number => serde_json::from_str(value.raw()).unwrap(),
        }
    }

    proptest! {
        #[test]
        fn the_tape_means_what_the_text_means(value in json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let doc = Doc::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(back(doc.root()), value.clone());
            let small = doc.root().minified().into_owned();
            prop_assert_eq!(small, serde_json::to_string(&value).unwrap());
        }

        #[test]
        fn any_bytes_are_answered_and_agree_with_the_oracle(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let ours = Doc::parse(&bytes).is_ok();
            let oracle = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
            prop_assert!(!ours || oracle);
        }

        #[test]
        fn written_strings_read_back(text in ".*") {
            let quoted = quoted(&text);
            let doc = Doc::parse(quoted.as_bytes()).unwrap();
            prop_assert_eq!(doc.root().as_str().unwrap(), text);
        }
    }
}
