//! The scanner under every grammar: a text, a place in it, and refusals that say where.

use std::borrow::Cow;

use super::error::{Error, Reason};
use super::limits::MAX_TEXT;
use crate::json;

/// What a name may contain beyond 4.6.2: compact IRIs are accepted wherever a short name is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colon {
    /// `prefix:name` is a name.
    Name,
    /// A colon ends the name, as between type hints and attribute in `rel{Type:attribute}`.
    End,
}

/// Characters that end an absolute IRI in every grammar here.
const IRI_END: &[char] =
    &['=', '!', '<', '>', '~', ';', '|', '(', ')', '[', ']', '{', '}', ',', '"', '\\', '^', '`'];

#[derive(Clone)]
pub(crate) struct Scanner<'a> {
    parameter: &'static str,
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// A scanner at the beginning of `text`, which must not be too long.
    pub(crate) fn new(parameter: &'static str, text: &'a str) -> Result<Self, Error> {
        if text.len() > MAX_TEXT {
            return Err(Error::whole(parameter, Reason::TooLong(MAX_TEXT)));
        }
        Ok(Scanner { parameter, text, at: 0 })
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The place, for [`Scanner::since`] and [`Scanner::fail_at`].
    pub(crate) fn mark(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Moves on by `bytes`, which must end at a character's boundary.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Goes to a place given by [`Scanner::mark`] plus bytes that were read since.
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.at = mark;
    }

    pub(crate) fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches(' ').len();
    }

    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Consumes `token` or says what was expected.
    pub(crate) fn expect(&mut self, token: &str, what: &'static str) -> Result<(), Error> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(what)) }
    }

    pub(crate) fn fail(&self, reason: Reason) -> Error {
        self.fail_at(self.at, reason)
    }

    pub(crate) fn fail_at(&self, at: usize, reason: Reason) -> Error {
        let character = self.text[..at].chars().count() + 1;
        Error { parameter: self.parameter, at: Some(character), reason }
    }

    pub(crate) fn expected(&self, what: impl Into<Cow<'static, str>>) -> Error {
        self.fail(Reason::Expected(what.into()))
    }

    pub(crate) fn invalid(&self, why: impl Into<Cow<'static, str>>) -> Error {
        self.fail(Reason::Invalid(why.into()))
    }

    /// Takes characters while `keep` holds.
    pub(crate) fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// AttrName or EntityType of 4.9: a letter, then letters, numbers and `_` (4.6.2). Beyond the grammar,
    /// which knows short names only, compact IRIs and absolute IRIs with an authority are accepted.
    pub(crate) fn name(&mut self, what: &'static str, colon: Colon) -> Result<&'a str, Error> {
        if !self.peek().is_some_and(char::is_alphabetic) {
            return Err(self.expected(what));
        }
        let start = self.at;
        let whole = self.rest();
        let plain = self.take_while(|c| is_name_char(c) || (c == ':' && colon == Colon::Name));
        let scheme_end = plain.find(':').unwrap_or(plain.len());
        if !whole[scheme_end..].starts_with("://") {
            let own = plain.strip_suffix(':').map_or(plain, |short| self.give_back(short));
            return if own.contains('-') && !own.contains(':') { Err(self.bad_name(start)) } else { Ok(own) };
        }
        self.at = self.at - plain.len() + scheme_end + "://".len();
        let ends = |c: char| IRI_END.contains(&c) || c.is_whitespace() || c.is_control();
        let own = self.take_while(|c| !ends(c) && (c != ':' || colon == Colon::Name));
        Ok(&whole[..scheme_end + "://".len() + own.len()])
    }

    fn bad_name(&self, start: usize) -> Error {
        self.fail_at(start, Reason::Invalid("a name holds letters, numbers and \"_\" only".into()))
    }

    /// Returns a trailing colon to the text.
    fn give_back(&mut self, short: &'a str) -> &'a str {
        self.at -= 1;
        short
    }

    /// A quoted string of RFC 8259 section 7, decoded.
    pub(crate) fn quoted(&mut self) -> Result<Cow<'a, str>, Error> {
        let start = self.at;
        let raw = self.quoted_raw()?;
        if !raw.contains('\\') && !raw.contains(|c: char| c < ' ') {
            return Ok(Cow::Borrowed(&raw[1..raw.len() - 1]));
        }
        let decoded = json::Doc::parse(raw.as_bytes()).ok();
        let decoded = decoded.and_then(|doc| doc.root().as_str().map(Cow::into_owned));
        decoded
            .map(Cow::Owned)
            .ok_or_else(|| self.fail_at(start, Reason::Invalid("invalid escape in string".into())))
    }

    /// A quoted string as it stands, quotes included.
    pub(crate) fn quoted_raw(&mut self) -> Result<&'a str, Error> {
        let rest = self.rest();
        if !rest.starts_with('"') {
            return Err(self.expected("a quoted string"));
        }
        let mut escaped = false;
        for (at, byte) in rest.bytes().enumerate().skip(1) {
            if byte == b'"' && !escaped {
                self.at += at + 1;
                return Ok(&rest[..=at]);
            }
            escaped = !escaped && byte == b'\\';
        }
        Err(self.invalid("unterminated string"))
    }
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str, colon: Colon) -> (String, String) {
        let mut scanner = Scanner::new("q", text).unwrap();
        let name = scanner.name("a name", colon).unwrap().to_owned();
        (name, scanner.rest().to_owned())
    }

    #[test]
    fn clause_4_9_names_end_where_the_grammar_says() {
        for (text, colon, own, rest) in [
            ("speed>5", Colon::Name, "speed", ">5"),
            ("größe_2.b", Colon::Name, "größe_2", ".b"),
            ("ex:speed==1", Colon::Name, "ex:speed", "==1"),
            ("Device:humidity", Colon::End, "Device", ":humidity"),
            ("https://a.b/c#d==1", Colon::Name, "https://a.b/c#d", "==1"),
            ("https://a.b/c:x", Colon::End, "https://a.b/c", ":x"),
            ("a:}", Colon::Name, "a", ":}"),
        ] {
            assert_eq!(name(text, colon), (own.into(), rest.into()), "{text}");
        }
        let mut scanner = Scanner::new("q", "ü,1").unwrap();
        scanner.advance(3);
        let error = scanner.name("an attribute name", Colon::Name).unwrap_err();
        assert_eq!(error.to_string(), "q: expected an attribute name at character 3");
    }

    #[test]
    fn strings_follow_rfc_8259() {
        let mut scanner = Scanner::new("q", r#""a\"b\u00e9"x"#).unwrap();
        assert_eq!(scanner.quoted().unwrap(), "a\"bé");
        assert_eq!(scanner.rest(), "x");
        for text in [r#""abc"#, r#""a\""#, r#""\x""#] {
            assert!(Scanner::new("q", text).unwrap().quoted().is_err(), "{text}");
        }
    }
}
