//! What literal tokens and names say.

use std::sync::Arc;

use super::Lexer;
use crate::catalogue::Name;
use crate::error::{Error, Problem};
use crate::token::{Kind, Token};
use crate::tree::Value;

impl Lexer<'_> {
    /// The value of a literal token of this text. Whole numbers beyond 64 bits are doubles.
    pub(crate) fn value(&self, token: Token) -> Result<Value, Box<Error>> {
        let raw = self.slice(token.span);
        let value = match token.kind {
            Kind::Integer => raw.parse().ok().map(Value::Integer).or_else(|| double(raw)),
            Kind::Hex => i64::from_str_radix(&raw[2..], 16).ok().map(Value::Integer),
            Kind::Decimal => double(raw),
            _ => Some(Value::Text(text(raw))),
        };
        value.ok_or_else(|| Box::new(Error::new(Problem::NumberTooLarge, token.span)))
    }

    /// The name that a word or a quoted token of this text is.
    pub(crate) fn name(&self, token: Token) -> Name {
        let raw = self.slice(token.span);
        match token.kind {
            Kind::Quoted => Name { text: unquoted(raw, '"'), quoted: true },
            _ => Name { text: Arc::from(raw), quoted: false },
        }
    }
}

/// A number that is one.
fn double(raw: &str) -> Option<Value> {
    raw.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Double)
}

/// What stands within quotes, doubled ones halved.
fn unquoted(raw: &str, quote: char) -> Arc<str> {
    let inner = &raw[1..raw.len() - 1];
    if inner.contains(quote) {
        let quote = quote.to_string();
        Arc::from(inner.replace(&quote.repeat(2), &quote))
    } else {
        Arc::from(inner)
    }
}

/// What a text token says: one text in quotes, or several parted by blanks and comments.
fn text(raw: &str) -> Arc<str> {
    let mut pieces = Lexer { text: raw, at: 0 };
    let first = pieces.piece();
    if pieces.at == raw.len() {
        return unquoted(first, '\'');
    }
    let mut joined = String::from(&*unquoted(first, '\''));
    while pieces.at < raw.len() {
        pieces.skip_blanks().expect("the lexer has skipped these blanks before");
        joined.push_str(&unquoted(pieces.piece(), '\''));
    }
    Arc::from(joined)
}

impl<'a> Lexer<'a> {
    /// One text in quotes, which begins here.
    fn piece(&mut self) -> &'a str {
        let start = self.at;
        self.skip_quoted(b'\'', start, "text").expect("the lexer has found the end of this text before");
        &self.text[start..self.at]
    }
}
