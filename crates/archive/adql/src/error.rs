//! What is wrong with the text of a query.

use std::borrow::Cow;

use thiserror::Error;

use crate::limits;
use crate::report::Report;
use crate::span::Span;

/// A query that is not ADQL, and where it ceases to be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct Error {
    /// What is wrong.
    pub problem: Problem,
    /// Where.
    pub span: Span,
    /// What its author may have meant.
    pub hint: Option<Cow<'static, str>>,
}

impl Error {
    /// A problem at a place.
    pub fn new(problem: Problem, span: Span) -> Self {
        Self { problem, span, hint: None }
    }

    /// With a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The message for people, with the line of `text` and a caret.
    pub fn report<'a>(&'a self, text: &'a str) -> Report<'a, &'a Problem> {
        Report { text, span: self.span, message: &self.problem, hint: self.hint.as_deref() }
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// The grammar wants something else here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What, in words.
        expected: Cow<'static, str>,
        /// What stands there, in words.
        found: Cow<'static, str>,
    },
    /// A character that begins nothing.
    #[error("{0} means nothing in ADQL")]
    Character(String),
    /// Something that is known from elsewhere and that we do not have.
    #[error("{0} is not supported")]
    Unsupported(Cow<'static, str>),
    /// A quote or a comment that does not end.
    #[error("this {0} does not end")]
    Unterminated(&'static str),
    /// `""`
    #[error("a name has at least one character")]
    EmptyName,
    /// `2mass`
    #[error("a name does not begin with a digit")]
    DigitFirst,
    /// A number that no value is for.
    #[error("this number is too large")]
    NumberTooLarge,
    /// Nothing but blanks.
    #[error("the query is empty")]
    Empty,
    /// More than [`limits::BYTES`].
    #[error("the query is longer than {} bytes", limits::BYTES)]
    TooLong,
    /// More than [`limits::TOKENS`].
    #[error("the query has more than {} words and signs", limits::TOKENS)]
    TooManyTokens,
    /// More than [`limits::DEPTH`] or [`limits::HEIGHT`].
    #[error("the query is nested too deeply")]
    TooDeep,
}
