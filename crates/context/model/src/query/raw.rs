//! Reading a stored value in place: a JSON text that was validated when it was written.
//!
//! Evaluation touches one value of many records; parsing each into a tape would allocate. This walks the
//! text itself, from left to right, and allocates only to decode a string that has escapes. On text that is
//! not JSON it ends early; it never panics.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::json;

/// One JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'a>(&'a str);

/// What a value is, with what identifies it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Text<'a>),
    Array,
    Object,
}

impl<'a> Raw<'a> {
    /// The value that fills `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Raw(text.trim_matches([' ', '\n', '\r', '\t']))
    }

    pub(crate) fn as_text(self) -> &'a str {
        self.0
    }

    pub(crate) fn shape(self) -> Shape<'a> {
        match self.0.as_bytes().first() {
            Some(b'"') => Shape::Text(Text { quoted: self.0 }),
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            Some(b't') => Shape::Bool(true),
            Some(b'f') => Shape::Bool(false),
            Some(b'-' | b'0'..=b'9') => self.0.parse().map_or(Shape::Null, Shape::Number),
            _ => Shape::Null,
        }
    }

    pub(crate) fn is_array(self) -> bool {
        self.0.starts_with('[')
    }

    pub(crate) fn string(self) -> Option<Text<'a>> {
        if let Shape::Text(text) = self.shape() { Some(text) } else { None }
    }

    pub(crate) fn number(self) -> Option<f64> {
        if let Shape::Number(number) = self.shape() { Some(number) } else { None }
    }

    /// The items of an array; nothing for any other value.
    pub(crate) fn items(self) -> Items<'a> {
        Items(self.inside('[', ']'))
    }

    /// The members of an object; nothing for any other value.
    pub(crate) fn members(self) -> Members<'a> {
        Members(self.inside('{', '}'))
    }

    pub(crate) fn get(self, name: &str) -> Option<Raw<'a>> {
        self.members().find(|(key, _)| key.is(name)).map(|(_, value)| value)
    }

    /// Follows `path` as a MemberExpression of ECMA 262 in dot notation (4.9).
    pub(crate) fn follow(self, path: &[Box<str>]) -> Option<Raw<'a>> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The value itself, or the `@value` of a JSON-LD typed value (4.6.3).
    pub(crate) fn untyped(self) -> Raw<'a> {
        if self.0.starts_with('{') { self.get("@value").unwrap_or(self) } else { self }
    }

    /// The text within the brackets.
    fn inside(self, open: char, close: char) -> &'a str {
        self.0.strip_prefix(open).map_or("", |rest| rest.strip_suffix(close).unwrap_or(rest))
    }
}

/// Iterator over members that stand without braces, as in an instance's fragment.
pub(crate) fn loose_members(text: &str) -> Members<'_> {
    Members(text.strip_prefix(',').unwrap_or(text))
}

/// Iterator of [`Raw::items`].
#[derive(Clone)]
pub(crate) struct Items<'a>(&'a str);

impl<'a> Iterator for Items<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        let (value, rest) = split_value(self.0)?;
        self.0 = rest;
        Some(value)
    }
}

/// Iterator of [`Raw::members`].
#[derive(Clone)]
pub(crate) struct Members<'a>(&'a str);

impl<'a> Iterator for Members<'a> {
    type Item = (Text<'a>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_start();
        let key = &text[..string_end(text)?];
        let after = text[key.len()..].trim_start().strip_prefix(':')?;
        let (value, rest) = split_value(after)?;
        self.0 = rest;
        Some((Text { quoted: key }, value))
    }
}

/// The first value of a comma separated sequence, and what follows its comma.
fn split_value(text: &str) -> Option<(Raw<'_>, &str)> {
    let text = text.trim_start();
    let end = value_end(text)?;
    let rest = text[end..].trim_start();
    Some((Raw(&text[..end]), rest.strip_prefix(',').unwrap_or(rest)))
}

fn value_end(text: &str) -> Option<usize> {
    match text.as_bytes().first()? {
        b'"' => string_end(text),
        b'{' | b'[' => nested_end(text),
        _ => {
            let end = text.find([',', ']', '}', ' ', '\n', '\r', '\t']).unwrap_or(text.len());
            (end > 0).then_some(end)
        }
    }
}

/// Length of the string that `text` begins with, quotes included.
fn string_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn nested_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += string_end(&text[at..])? - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// A JSON string in place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Text<'a> {
    quoted: &'a str,
}

impl<'a> Text<'a> {
    /// The text, when it stands in the source as it is.
    fn plain(self) -> Option<&'a str> {
        let body = self.quoted.get(1..self.quoted.len().saturating_sub(1))?;
        (!body.contains('\\')).then_some(body)
    }

    /// The text, decoded when it has escapes.
    pub(crate) fn decoded(self) -> Cow<'a, str> {
        self.plain().map_or_else(|| Cow::Owned(self.decode()), Cow::Borrowed)
    }

    fn decode(self) -> String {
        let doc = json::Doc::parse(self.quoted.as_bytes()).ok();
        doc.and_then(|doc| doc.root().as_str().map(Cow::into_owned)).unwrap_or_default()
    }

    pub(crate) fn is(self, other: &str) -> bool {
        self.compare(other) == Ordering::Equal
    }

    /// By code point, as RFC 8259 section 8.3 asks.
    pub(crate) fn compare(self, other: &str) -> Ordering {
        match self.plain() {
            Some(text) => text.cmp(other),
            None => self.decode().as_str().cmp(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_and_items_are_found_in_place() {
        let raw = Raw::new(r#" {"a" : [1, "x]\"", {"b":null}] , "c":{"d":{"e":true}},"f\u0067":-1.5e2} "#);
        let items: Vec<_> = raw.get("a").unwrap().items().map(Raw::as_text).collect();
        assert_eq!(items, ["1", r#""x]\"""#, r#"{"b":null}"#]);
        assert_eq!(raw.follow(&["c".into(), "d".into(), "e".into()]).unwrap().shape(), Shape::Bool(true));
        assert_eq!(raw.get("fg").unwrap().number(), Some(-150.0));
        assert!(raw.get("b").is_none());
        assert_eq!(Raw::new("[]").items().count(), 0);
        assert_eq!(Raw::new("{}").members().count(), 0);
        assert_eq!(Raw::new(r#"{"@type":"DateTime","@value":"x"}"#).untyped().as_text(), "\"x\"");
        let loose: Vec<_> = loose_members(r#","unitCode":"KMH","datasetId":"urn:a""#).collect();
        assert_eq!(loose.len(), 2);
    }

    fn agree(raw: Raw<'_>, value: json::Value<'_>) -> bool {
        match value.kind() {
            json::Kind::Null => raw.shape() == Shape::Null,
            json::Kind::Bool => Some(raw.shape()) == value.as_bool().map(Shape::Bool),
            json::Kind::Number => raw.number() == value.as_f64(),
            json::Kind::String => raw.string().map(Text::decoded) == value.as_str(),
            json::Kind::Array => {
                raw.items().count() == value.items().count()
                    && raw.items().zip(value.items()).all(|(a, b)| agree(a, b))
            }
            json::Kind::Object => {
                raw.members().count() == value.members().count()
                    && raw.members().zip(value.members()).all(|((k, a), (l, b))| k.is(&l) && agree(a, b))
            }
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            "[a-c\"\\\\\\[\\]{},: \u{e9}\n]{0,6}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::btree_map("[a-c\"\\\\]{0,3}", inner, 0..5)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_tape(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let doc = json::Doc::parse(text.as_bytes()).unwrap();
            prop_assert!(agree(Raw::new(&text), doc.root()));
        }

        #[test]
        fn any_text_is_answered(text in "[\\[\\]{}\",:\\\\ a1é-]{0,20}") {
            let raw = Raw::new(&text);
            let _ = (raw.shape(), raw.items().count(), raw.members().count(), raw.untyped());
        }
    }
}
