//! From tokens to the syntax tree: recursive descent, and precedence climbing for operators.
//!
//! One token is looked at, another one or two where the grammar leaves no choice; no token is read twice for
//! having guessed wrong. `((SELECT ...` is the one place where what stands in parentheses shows only after them:
//! there the parser goes on with what it has, a query or a value.
//!
//! What people paste is understood where it has one meaning: TOP before DISTINCT, reserved words as names, `;` at
//! the end, synonyms of types. What has none gets a message with the place, the words expected and a hint
//! (module `hints`).
//!
//! Cost: linear in the text. Bounds: recursion by [`limits::DEPTH`], the height of the tree by [`limits::HEIGHT`].

mod expr;
mod from;
mod hints;
mod primary;
mod query;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::ast::{Ident, Literal, Query};
use crate::error::{Error, Problem};
use crate::language::Language;
use crate::lexer::Lexer;
use crate::limits;
use crate::span::{Aside, Span};
use crate::token::{Keyword, Kind, Token};
use crate::tree::{Slot, Value};

/// Reads a query.
///
/// ```
/// use trifid_archive_adql::{language::Language, parser::parse};
/// let query = parse("SELECT TOP 5 ra, dec FROM t WHERE mag < 10;", Language::V2_1)?;
/// assert_eq!(query.to_string(), "SELECT TOP 5 ra, dec FROM t WHERE mag < 10");
/// # Ok::<(), trifid_archive_adql::error::Error>(())
/// ```
pub fn parse(text: &str, language: Language) -> Result<Query, Error> {
    Parser::new(text, language).and_then(|mut parser| parser.whole()).map_err(|error| *error)
}

pub(crate) use expr::Power;

type Parsed<T> = Result<T, Box<Error>>;

struct Parser<'a> {
    lexer: Lexer<'a>,
    language: Language,
    /// The token to be read next.
    token: Token,
    /// The keyword that it is.
    keyword: Option<Keyword>,
    /// The token read last.
    previous: Token,
    /// Tokens so far.
    tokens: u32,
    /// Literal tokens so far, without [`Self::token`].
    slots: Slot,
    /// How deep the recursion is, in the measure of [`limits::DEPTH`].
    depth: u32,
    /// The height of the highest tree read in this scope.
    height: u32,
    /// The last clause of the query read last: tells what could have gone on.
    clause: Clause,
}

/// The clauses of a query, each named by what may come after it.
#[derive(Clone, Copy, Debug)]
enum Clause {
    Items,
    /// [`Self::Items`] whose last has an alias.
    Aliased,
    From,
    Where,
    Group,
    Having,
    Order,
    Offset,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, language: Language) -> Parsed<Self> {
        let start = Token { kind: Kind::End, span: Span::default() };
        let mut parser = Self {
            lexer: Lexer::new(text)?,
            language,
            token: start,
            keyword: None,
            previous: start,
            tokens: 0,
            slots: 0,
            depth: 0,
            height: 0,
            clause: Clause::Items,
        };
        parser.advance()?;
        Ok(parser)
    }

    /// The query, and nothing after it but semicolons.
    fn whole(&mut self) -> Parsed<Query> {
        if self.token.kind == Kind::End {
            return Err(Box::new(Error::new(Problem::Empty, self.token.span)));
        }
        let query = self.query()?;
        let mut ended = false;
        while self.accept(Kind::Semicolon)? {
            ended = true;
        }
        match self.token.kind {
            Kind::End => Ok(query),
            _ if ended => Err(self.unexpected("the end of the query: one at a time")),
            _ => Err(self.unexpected_after_query("the end of the query")),
        }
    }

    // ---- tokens

    /// Goes on to the next token; the one it leaves is [`Self::previous`].
    fn advance(&mut self) -> Parsed<()> {
        self.slots += Slot::from(self.token.kind.is_literal());
        self.tokens += 1;
        self.previous = self.token;
        self.token = self.lexer.next()?;
        if self.tokens > limits::TOKENS {
            return Err(Box::new(Error::new(Problem::TooManyTokens, self.token.span)));
        }
        self.keyword = match self.token.kind {
            Kind::Word if !self.lexer.at_dot() => Keyword::of(self.lexer.slice(self.token.span)),
            _ => None,
        };
        Ok(())
    }

    /// The token after the next; what is no token shows when it is reached.
    fn peek(&self) -> Option<Token> {
        let mut ahead = self.lexer;
        ahead.next().ok()
    }

    fn peek_kind(&self) -> Option<Kind> {
        self.peek().map(|token| token.kind)
    }

    fn peek_keyword(&self) -> Option<Keyword> {
        let token = self.peek().filter(|token| token.kind == Kind::Word)?;
        Keyword::of(self.lexer.slice(token.span))
    }

    fn accept(&mut self, kind: Kind) -> Parsed<bool> {
        let there = self.token.kind == kind;
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    fn accept_word(&mut self, keyword: Keyword) -> Parsed<bool> {
        let there = self.keyword == Some(keyword);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    fn expect(&mut self, kind: Kind, expected: &'static str) -> Parsed<()> {
        if self.accept(kind)? { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn expect_word(&mut self, keyword: Keyword) -> Parsed<()> {
        if self.accept_word(keyword)? { Ok(()) } else { Err(self.unexpected(keyword.text())) }
    }

    /// The parenthesis that ends a list or an expression.
    fn close(&mut self) -> Parsed<()> {
        self.expect(Kind::RightParen, "`,`, an operator or `)`")
    }

    /// The parenthesis that ends a query.
    fn close_query(&mut self) -> Parsed<()> {
        if self.accept(Kind::RightParen)? { Ok(()) } else { Err(self.unexpected_after_query("`)`")) }
    }

    /// From the beginning of `start` to the end of the token read last.
    fn since(&self, start: Span) -> Aside<Span> {
        Aside(start.to(self.previous.span))
    }

    // ---- leaves

    /// The token as a name, whatever word it is.
    fn take_ident(&mut self) -> Parsed<Ident> {
        let ident = Ident { name: self.lexer.name(self.token), at: Aside(self.token.span) };
        self.advance()?;
        Ok(ident)
    }

    /// A name where any word is one: after a dot or AS.
    fn any_ident(&mut self, expected: &'static str) -> Parsed<Ident> {
        match self.token.kind {
            Kind::Word | Kind::Quoted => self.take_ident(),
            _ => Err(self.unexpected(expected)),
        }
    }

    /// A name where a reserved word would be taken for itself.
    fn ident(&mut self, expected: &'static str) -> Parsed<Ident> {
        if self.is_reserved() { Err(self.unexpected_name(expected)) } else { self.any_ident(expected) }
    }

    /// Whether the token is a word that is no name where names stand bare.
    fn is_reserved(&self) -> bool {
        self.keyword.is_some_and(Keyword::is_reserved)
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let value = self.lexer.value(self.token)?;
        let literal = Literal { value, slot: Aside(Some(self.slots)), at: Aside(self.token.span) };
        self.advance()?;
        Ok(literal)
    }

    /// A whole number: of TOP, OFFSET and lengths.
    fn count(&mut self, expected: &'static str) -> Parsed<Literal> {
        if !matches!(self.token.kind, Kind::Integer | Kind::Hex) {
            return Err(self.unexpected(expected));
        }
        let literal = self.literal()?;
        match literal.value {
            Value::Integer(_) => Ok(literal),
            _ => Err(Box::new(Error::new(Problem::NumberTooLarge, literal.span()))),
        }
    }

    // ---- lists and bounds

    /// One or more, parted by commas.
    fn list<T>(&mut self, one: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.accept(Kind::Comma)? {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// `(a, b, ...)` of names.
    fn idents(&mut self) -> Parsed<Vec<Ident>> {
        self.expect(Kind::LeftParen, "`(`")?;
        let all = self.list(|parser| parser.ident("the name of a column"))?;
        self.expect(Kind::RightParen, "`,` or `)`")?;
        Ok(all)
    }

    /// Goes down by `cost`; [`Self::leave`] goes up again.
    fn enter(&mut self, cost: u32) -> Parsed<()> {
        self.depth += cost;
        if self.depth > limits::DEPTH { Err(self.too_deep()) } else { Ok(()) }
    }

    fn leave(&mut self, cost: u32) {
        self.depth -= cost;
    }

    /// Counts a node on top of the highest tree of this scope.
    fn raise(&mut self) -> Parsed<()> {
        self.height += 1;
        if self.height > limits::HEIGHT { Err(self.too_deep()) } else { Ok(()) }
    }

    fn too_deep(&self) -> Box<Error> {
        let hint = format!(
            "at most {} levels, and at most {} terms in one chain of operators: parentheses around \
             halves of a chain make it half as high",
            limits::DEPTH,
            limits::HEIGHT
        );
        Box::new(Error::new(Problem::TooDeep, self.token.span).hint(hint))
    }

    /// Reads something whose height is counted apart from what was read before it.
    fn apart<T>(&mut self, read: fn(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let above = std::mem::take(&mut self.height);
        let result = read(self)?;
        self.height = self.height.max(above);
        Ok(result)
    }

    // ---- mistakes

    /// Something else stands here.
    fn unexpected(&self, expected: impl Into<Cow<'static, str>>) -> Box<Error> {
        let problem = Problem::Unexpected { expected: expected.into(), found: self.found() };
        let error = Error::new(problem, self.token.span);
        Box::new(match self.hint() {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// Something else stands where a name could, perhaps a reserved word meant as one.
    fn unexpected_name(&self, expected: &'static str) -> Box<Error> {
        let error = self.unexpected(expected);
        match self.keyword {
            Some(keyword) if error.hint.is_none() && self.is_meant_as_name() => {
                let written = self.lexer.slice(self.token.span);
                let word = keyword.text();
                Box::new(error.hint(format!("{word} is a reserved word; as a name write \"{written}\"")))
            }
            _ => error,
        }
    }

    /// Something stands here that does not go on with the query before it.
    fn unexpected_after_query(&self, end: &str) -> Box<Error> {
        let clauses = match self.clause {
            Clause::Items => "`,`, an alias, FROM, WHERE",
            Clause::Aliased => "`,`, FROM, WHERE",
            Clause::From => "`,`, JOIN, WHERE, GROUP BY, HAVING, ORDER BY",
            Clause::Where => "AND, OR, GROUP BY, HAVING, ORDER BY",
            Clause::Group => "`,`, HAVING, ORDER BY",
            Clause::Having => "AND, OR, ORDER BY",
            Clause::Order => "`,`, ASC, DESC, OFFSET",
            Clause::Offset => return self.unexpected(end.to_owned()),
        };
        self.unexpected(format!("{clauses} or {end}"))
    }

    fn unsupported(&self, what: &'static str, span: Span) -> Error {
        Error::new(Problem::Unsupported(what.into()), span)
    }
}
