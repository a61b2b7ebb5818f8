//! The shape of a query's text: its tokens with the literals lifted out.
//!
//! Two queries with the same [`Fingerprint::key`] differ in the values of their literals alone, so that a tree made
//! for one serves the other once its literals are bound anew: a cone at a new position needs no parser and no
//! resolver. Blanks and comments do not count; the case of names and keywords does, because result columns are
//! called as the query wrote them.
//!
//! One pass over the text, without keywords; the buffers are used again ([`Fingerprint::read`]), and only texts
//! are allocated. Whether the tokens are a query is not looked at: a key that no query has is in no cache.
//!
//! Not every literal is lifted out of a tree: those of TOP and OFFSET are, those of `ORDER BY 2`, `VARCHAR(8)` and
//! `IN_UNIT(x, 'km')` changed what the tree is. A cache must compare the values of slots that its tree does not
//! name.

use crate::error::Error;
use crate::language::Language;
use crate::lexer::Lexer;
use crate::token::Kind;
use crate::tree::Value;

/// Names the kind of a literal in the key; no token begins with it.
const LIFTED: char = '?';

/// The shape of a query, and its literals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fingerprint {
    key: String,
    literals: Vec<Value>,
}

impl Fingerprint {
    /// An empty one, to be filled by [`Self::read`].
    pub fn new() -> Self {
        Self::default()
    }

    /// The shape: the version of the language, then the tokens, one blank between them; of a literal only its kind
    /// (`?i` whole number, `?d` other number, `?s` text). Different token sequences have different keys.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The values of the literals: the one of slot `n` is at `n`. Numbers have no sign: a minus is a token.
    pub fn literals(&self) -> &[Value] {
        &self.literals
    }

    /// [`Self::literals`], without what they were lifted from.
    pub fn into_literals(self) -> Vec<Value> {
        self.literals
    }

    /// Replaces what is here by the fingerprint of `text`. After an error it is of no use.
    pub fn read(&mut self, text: &str, language: Language) -> Result<(), Error> {
        self.key.clear();
        self.literals.clear();
        self.key.push_str(language.version());
        self.tokens(text).map_err(|error| *error)
    }

    fn tokens(&mut self, text: &str) -> Result<(), Box<Error>> {
        let mut lexer = Lexer::new(text)?;
        self.key.reserve(text.len() + text.len() / 2);
        loop {
            let token = lexer.next()?;
            if token.kind == Kind::End {
                return Ok(());
            }
            self.key.push(' ');
            if token.kind.is_literal() {
                self.lift(lexer.value(token)?);
            } else {
                self.key.push_str(lexer.slice(token.span));
            }
        }
    }

    fn lift(&mut self, value: Value) {
        self.key.push(LIFTED);
        self.key.push(match value {
            Value::Integer(_) => 'i',
            Value::Double(_) => 'd',
            Value::Text(_) | Value::Null | Value::Boolean(_) => 's',
        });
        self.literals.push(value);
    }
}

/// The fingerprint of `text`, in buffers of its own.
pub fn fingerprint(text: &str, language: Language) -> Result<Fingerprint, Error> {
    let mut fingerprint = Fingerprint::new();
    fingerprint.read(text, language)?;
    Ok(fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, key: &str, literals: &[Value]) {
        let fingerprint = fingerprint(text, Language::V2_1).unwrap();
        assert_eq!((fingerprint.key(), fingerprint.literals()), (key, literals), "{text}");
    }

    #[test]
    fn literals_are_lifted_in_order() {
        check(
            "SELECT TOP 5 ra,'x' AS t FROM g WHERE DISTANCE(ra, dec, 10.5, -3)<.1 -- near",
            "2.1 SELECT TOP ?i ra , ?s AS t FROM g WHERE DISTANCE ( ra , dec , ?d , - ?i ) < ?d",
            &[
                Value::Integer(5),
                Value::Text("x".into()),
                Value::Double(10.5),
                Value::Integer(3),
                Value::Double(0.1),
            ],
        );
    }

    #[test]
    fn blanks_and_comments_do_not_count_but_case_does() {
        let key = |text| fingerprint(text, Language::V2_1).unwrap().key;
        assert_eq!(key("SELECT\n a /* why */ FROM\u{a0}t"), key("SELECT a FROM t"));
        assert_ne!(key("SELECT A FROM t"), key("SELECT a FROM t"));
        assert_ne!(key("SELECT a FROM t WHERE a < 1"), key("SELECT a FROM t WHERE a < 1.0"));
        assert_ne!(key("a b"), key("ab"));
        assert_ne!(key("a < = b"), key("a <= b"));
        assert_ne!(key("\"a b\""), key("\"a\" \"b\""));
    }

    #[test]
    fn languages_are_kept_apart_and_buffers_used_again() {
        let mut one = fingerprint("SELECT 1", Language::V2_0).unwrap();
        assert_eq!(one.key(), "2.0 SELECT ?i");
        one.read("SELECT 'a' 'b'", Language::V2_1).unwrap();
        assert_eq!((one.key(), one.literals()), ("2.1 SELECT ?s", &[Value::Text("ab".into())][..]));
    }

    #[test]
    fn mistakes_are_told() {
        let error = fingerprint("SELECT 'a", Language::V2_1).unwrap_err();
        assert_eq!((error.span.start, error.to_string()), (7, "this text does not end".to_owned()));
        assert!(fingerprint("SELECT 1e999", Language::V2_1).is_err());
    }
}
