//! From text to tokens, one at a time (ADQL 2.1 2.1.1, 2.1.5 to 2.1.8, 2.1.9, 2.1.10).
//!
//! A lexer is a place in the text: copying it is looking ahead. It allocates only for a mistake. Comments are blanks,
//! `/* */` among them, and so are the spaces that web pages and PDF documents put in place of plain ones. What is
//! no token is told from its look ([`refuse`]): typographic quotes, backticks and operators of other dialects.

mod refuse;
#[cfg(test)]
mod tests;
mod value;

use crate::error::{Error, Problem};
use crate::limits;
use crate::span::Span;
use crate::token::{Kind, Token};

/// A place in the text of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// A token, or why there is none.
pub(crate) type Lexed = Result<Token, Box<Error>>;

impl<'a> Lexer<'a> {
    /// The beginning of `text`; a mistake if that is longer than allowed.
    pub(crate) fn new(text: &'a str) -> Result<Self, Box<Error>> {
        if text.len() > limits::BYTES {
            let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
            return Err(Box::new(Error::new(Problem::TooLong, Span::new(limits::BYTES as u32, end))));
        }
        Ok(Self { text, at: 0 })
    }

    /// The text of a token.
    #[inline]
    pub(crate) fn slice(&self, span: Span) -> &'a str {
        &self.text[span.range()]
    }

    /// Whether a dot follows at once that begins no number: then a word is a name, whatever word it is.
    pub(crate) fn at_dot(&self) -> bool {
        self.byte(0) == Some(b'.') && !self.byte(1).is_some_and(|next| next.is_ascii_digit())
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Lexed {
        // One blank or none is what mostly stands between tokens.
        self.at += usize::from(self.byte(0) == Some(b' '));
        if !self.byte(0).is_some_and(begins_token) {
            self.skip_blanks()?;
        }
        let start = self.at;
        let Some(first) = self.byte(0) else { return Ok(self.token(Kind::End, start)) };
        match first {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => self.word(start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.byte(1).is_some_and(|next| next.is_ascii_digit()) => self.number(start),
            b'\'' => self.string(start),
            b'"' => self.quoted(start),
            _ => self.symbol(start, first),
        }
    }

    #[inline]
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    #[inline]
    fn token(&self, kind: Kind, start: usize) -> Token {
        Token { kind, span: Span::new(start as u32, self.at as u32) }
    }

    /// The token `kind` of `length` bytes from here.
    #[inline]
    fn take(&mut self, kind: Kind, length: usize) -> Lexed {
        let start = self.at;
        self.at += length;
        Ok(self.token(kind, start))
    }

    fn error(&self, problem: Problem, start: usize) -> Box<Error> {
        Box::new(Error::new(problem, Span::new(start as u32, self.at as u32)))
    }

    /// Blanks and comments.
    fn skip_blanks(&mut self) -> Result<(), Box<Error>> {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t'..=b'\r') => self.at += 1,
                Some(b'-') if self.byte(1) == Some(b'-') => self.skip_line(),
                Some(b'/') if self.byte(1) == Some(b'*') => self.skip_comment()?,
                Some(0x80..) => match self.character() {
                    Some(blank) if is_blank(blank) => self.at += blank.len_utf8(),
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// A comment up to the end of the line.
    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    fn skip_comment(&mut self) -> Result<(), Box<Error>> {
        let start = self.at;
        match self.text[start + 2..].find("*/") {
            Some(length) => self.at += length + 4,
            None => {
                self.at += 2;
                return Err(self.error(Problem::Unterminated("comment"), start));
            }
        }
        Ok(())
    }

    fn character(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    #[inline]
    fn skip_while(&mut self, class: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| !class(*byte)).unwrap_or(rest.len());
    }

    fn word(&mut self, start: usize) -> Lexed {
        self.skip_while(is_word);
        match self.byte(0) {
            Some(0x80..) if self.character().is_some_and(char::is_alphanumeric) => {
                Err(self.refuse_word(start))
            }
            _ => Ok(self.token(Kind::Word, start)),
        }
    }

    fn number(&mut self, start: usize) -> Lexed {
        if self.byte(0) == Some(b'0') && matches!(self.byte(1), Some(b'x' | b'X')) {
            return self.hex(start);
        }
        let mut kind = Kind::Integer;
        self.skip_while(|byte| byte.is_ascii_digit());
        if self.byte(0) == Some(b'.') {
            kind = Kind::Decimal;
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        if self.skip_exponent() {
            kind = Kind::Decimal;
        }
        self.end_number(kind, start)
    }

    fn skip_exponent(&mut self) -> bool {
        let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
        let exponent = matches!(self.byte(0), Some(b'e' | b'E'))
            && self.byte(1 + sign).is_some_and(|digit| digit.is_ascii_digit());
        if exponent {
            self.at += 1 + sign;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        exponent
    }

    fn hex(&mut self, start: usize) -> Lexed {
        self.at += 2;
        let digits = self.at;
        self.skip_while(|byte| byte.is_ascii_hexdigit());
        if self.at == digits {
            self.at = start + 1;
        }
        self.end_number(Kind::Hex, start)
    }

    /// Letters right after a number make it a name that should be in quotes.
    fn end_number(&mut self, kind: Kind, start: usize) -> Lexed {
        match self.byte(0) {
            Some(next) if is_word(next) => Err(self.refuse_digit_first(start)),
            _ => Ok(self.token(kind, start)),
        }
    }

    /// A text, with those that follow it after nothing but blanks.
    fn string(&mut self, start: usize) -> Lexed {
        loop {
            self.skip_quoted(b'\'', start, "text")?;
            let end = self.at;
            self.skip_blanks()?;
            if self.byte(0) != Some(b'\'') {
                self.at = end;
                return Ok(self.token(Kind::Text, start));
            }
        }
    }

    fn quoted(&mut self, start: usize) -> Lexed {
        self.skip_quoted(b'"', start, "name in double quotes")?;
        match self.at - start {
            2 => Err(self.error(Problem::EmptyName, start)),
            _ => Ok(self.token(Kind::Quoted, start)),
        }
    }

    /// From one quote to its partner; doubled ones are part of what is quoted.
    fn skip_quoted(&mut self, quote: u8, start: usize, what: &'static str) -> Result<(), Box<Error>> {
        loop {
            self.at += 1;
            self.skip_while(|byte| byte != quote);
            if self.byte(0).is_none() {
                self.at = start + 1;
                let hint = if quote == b'"' {
                    "names stand in double quotes, texts in single ones"
                } else {
                    "a quote within a text is doubled: 'it''s'"
                };
                return Err(Box::new(self.error(Problem::Unterminated(what), start).hint(hint)));
            }
            self.at += 1;
            if self.byte(0) != Some(quote) {
                return Ok(());
            }
        }
    }

    fn symbol(&mut self, start: usize, first: u8) -> Lexed {
        let second = self.byte(1);
        match (first, second) {
            (b'(', _) => self.take(Kind::LeftParen, 1),
            (b')', _) => self.take(Kind::RightParen, 1),
            (b',', _) => self.take(Kind::Comma, 1),
            (b'.', _) => self.take(Kind::Dot, 1),
            (b';', _) => self.take(Kind::Semicolon, 1),
            (b'*', _) => self.take(Kind::Star, 1),
            (b'/', _) => self.take(Kind::Slash, 1),
            (b'+', _) => self.take(Kind::Plus, 1),
            (b'-', _) => self.take(Kind::Minus, 1),
            (b'|', Some(b'|')) => self.take(Kind::Concat, 2),
            (b'<', Some(b'>')) | (b'!', Some(b'=')) => self.take(Kind::NotEqual, 2),
            (b'<', Some(b'=')) => self.take(Kind::LessOrEqual, 2),
            (b'>', Some(b'=')) => self.take(Kind::GreaterOrEqual, 2),
            (b'=', Some(b'=')) | (b'<', Some(b'<')) | (b'>', Some(b'>')) => Err(self.refuse(start)),
            (b'=', _) => self.take(Kind::Equal, 1),
            (b'<', _) => self.take(Kind::Less, 1),
            (b'>', _) => self.take(Kind::Greater, 1),
            _ => Err(self.refuse(start)),
        }
    }
}

/// Whether a byte may stand in an unquoted name.
#[inline]
const fn is_word(byte: u8) -> bool {
    WORD[byte as usize]
}

/// Whether a byte begins a token whatever follows it: no blank, no comment.
#[inline]
const fn begins_token(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'(' | b')' | b',' | b'.' | b'=' | b'<' | b'>' | b'\'' | b'"' | b'*')
}

/// The bytes of unquoted names: most of a query's text is asked for one by one.
const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        word[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    word
};

/// Blanks beyond ASCII, those of no width among them.
fn is_blank(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}
