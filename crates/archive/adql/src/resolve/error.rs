//! What is wrong with the meaning of a query.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

use crate::report::Report;
use crate::span::Span;
use crate::types::Type;

/// A query that is ADQL and means nothing here, and where that shows.
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

/// What the resolver's steps give back.
pub(super) type Result<T> = std::result::Result<T, Box<Error>>;

impl Error {
    /// A problem at a place.
    pub(super) fn at(problem: Problem, span: Span) -> Box<Self> {
        Box::new(Self { problem, span, hint: None })
    }

    /// With a hint.
    pub(super) fn hint(mut self: Box<Self>, hint: impl Into<Cow<'static, str>>) -> Box<Self> {
        let hint = hint.into();
        self.hint = Some(if hint.len() > CLIPPED { Clipped(&hint).to_string().into() } else { hint });
        self
    }

    /// With a hint, if there is one.
    pub(super) fn hint_if(self: Box<Self>, hint: Option<impl Into<Cow<'static, str>>>) -> Box<Self> {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The message for people, with the line of `text` and a caret.
    pub fn report<'a>(&'a self, text: &'a str) -> Report<'a, &'a Problem> {
        Report { text, span: self.span, message: &self.problem, hint: self.hint.as_deref() }
    }

    /// A stable name of the kind of problem, for programs and for the page of remedies.
    pub const fn code(&self) -> &'static str {
        self.problem.code()
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// No such table.
    #[error("there is no table {}", Clipped(.0))]
    UnknownTable(String),
    /// Several tables of the name.
    #[error("{} may be {}", Clipped(name), OneOf(candidates))]
    AmbiguousTable {
        /// As written.
        name: String,
        /// Full names.
        candidates: Vec<String>,
    },
    /// No such column.
    #[error("there is no column {}", Clipped(.0))]
    UnknownColumn(String),
    /// Several columns of the name.
    #[error("{} may be {}", Clipped(name), OneOf(candidates))]
    AmbiguousColumn {
        /// As written.
        name: String,
        /// With what they belong to.
        candidates: Vec<String>,
    },
    /// What stands before the dot names nothing in FROM.
    #[error("no table in FROM is called {}", Clipped(.0))]
    UnknownQualifier(String),
    /// No such function.
    #[error("there is no function {}", Clipped(.0))]
    UnknownFunction(String),
    /// Two of one name where one may be.
    #[error("there are two {what} called {}", Clipped(name))]
    Duplicate {
        /// Of what, plural.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Arguments that no form of the function takes.
    #[error("{} takes {takes}, and is given {given}", Clipped(function))]
    Arguments {
        /// The function.
        function: String,
        /// What it takes.
        takes: Cow<'static, str>,
        /// What it was given.
        given: String,
    },
    /// A value of a type that does not fit.
    #[error("here {wanted} is wanted, and this is {}", Described(*found))]
    Type {
        /// What is wanted, with its article.
        wanted: Cow<'static, str>,
        /// What was found.
        found: Type,
    },
    /// Values that have no type in common.
    #[error("{} and {} cannot be {verb}", Described(*left), Described(*right))]
    Mismatch {
        /// The one.
        left: Type,
        /// The other.
        right: Type,
        /// What was to be done with both, as a participle.
        verb: &'static str,
    },
    /// A conversion that does not exist.
    #[error("{} cannot be cast to {to}", Described(*from))]
    Cast {
        /// What it is.
        from: Type,
        /// What it should become.
        to: &'static str,
    },
    /// An aggregate where rows are not grouped yet.
    #[error("an aggregate function cannot stand in {0}")]
    MisplacedAggregate(&'static str),
    /// A column that has many values in a group.
    #[error("{} has no single value in a group", Clipped(.0))]
    NotGrouped(String),
    /// ORDER BY something that SELECT DISTINCT left out.
    #[error("with DISTINCT, rows can be ordered only by what is selected")]
    OrderOfDistinct,
    /// ORDER BY something other than a result column of a set operation.
    #[error("rows of {0} can be ordered only by its columns: their names or positions")]
    OrderOfSet(&'static str),
    /// A position that is no column's.
    #[error("there is no column {} in the select list, which has {columns}", Clipped(position))]
    Position {
        /// As written.
        position: String,
        /// How many there are.
        columns: usize,
    },
    /// A query of several columns where a value should be.
    #[error("a query that stands for a value has one column, and this has {0}")]
    NotOneColumn(usize),
    /// Set operands or name lists of different lengths.
    #[error("{what}: {left} and {right}")]
    Columns {
        /// Whose numbers differ.
        what: &'static str,
        /// The one.
        left: usize,
        /// The other.
        right: usize,
    },
    /// A text that names no coordinate system.
    #[error("{} is not a coordinate system that we know", Clipped(.0))]
    UnknownFrame(String),
    /// Two geometries in different coordinate systems.
    #[error("these geometries are in different coordinate systems: {0} and {1}")]
    Frames(&'static str, &'static str),
    /// Something that must be written out.
    #[error("{0} must be a literal")]
    NotLiteral(&'static str),
    /// A unit that is none, or does not convert.
    #[error("{}", Clipped(.0))]
    Unit(String),
    /// A number out of range.
    #[error("{0}")]
    Range(String),
    /// Something that means something elsewhere.
    #[error("{0}")]
    Unsupported(Cow<'static, str>),
    /// More than a bound allows.
    #[error("the query has more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

impl Problem {
    /// See [`Error::code`].
    const fn code(&self) -> &'static str {
        match self {
            Self::UnknownTable(_) => "unknown-table",
            Self::AmbiguousTable { .. } => "ambiguous-table",
            Self::UnknownColumn(_) => "unknown-column",
            Self::AmbiguousColumn { .. } => "ambiguous-column",
            Self::UnknownQualifier(_) => "unknown-qualifier",
            Self::UnknownFunction(_) => "unknown-function",
            Self::Duplicate { .. } => "duplicate-name",
            Self::Arguments { .. } => "wrong-arguments",
            Self::Type { .. } => "wrong-type",
            Self::Mismatch { .. } => "type-mismatch",
            Self::Cast { .. } => "wrong-cast",
            Self::MisplacedAggregate(_) => "misplaced-aggregate",
            Self::NotGrouped(_) => "not-grouped",
            Self::OrderOfDistinct | Self::OrderOfSet(_) => "wrong-order",
            Self::Position { .. } => "wrong-position",
            Self::NotOneColumn(_) | Self::Columns { .. } => "wrong-column-count",
            Self::UnknownFrame(_) | Self::Frames(..) => "wrong-frame",
            Self::NotLiteral(_) => "not-a-literal",
            Self::Unit(_) => "wrong-unit",
            Self::Range(_) => "out-of-range",
            Self::Unsupported(_) => "unsupported",
            Self::TooMany { .. } => "too-many",
        }
    }
}

/// Bytes of a part of the query that a message repeats, and of a hint.
const CLIPPED: usize = 240;

/// A part of the query, the beginning of it if it is long.
struct Clipped<'a>(&'a str);

impl fmt::Display for Clipped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.floor_char_boundary(CLIPPED)];
        f.write_str(shown)?;
        if shown.len() < self.0.len() { f.write_str("…") } else { Ok(()) }
    }
}

/// `a, b or c`, the first few.
struct OneOf<'a>(&'a [String]);

/// Candidates that a message shows.
const SHOWN: usize = 5;

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = self.0.len() > SHOWN;
        let shown = &self.0[..self.0.len().min(SHOWN)];
        for (index, candidate) in shown.iter().enumerate() {
            let last = index + 1 == shown.len() && !more;
            f.write_str(match index {
                0 => "",
                _ if last => " or ",
                _ => ", ",
            })?;
            write!(f, "{}", Clipped(candidate))?;
        }
        if more { f.write_str(" and others") } else { Ok(()) }
    }
}

/// A type as a message names it.
struct Described(Type);

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Type::Null => "NULL",
            Type::Boolean | Type::Bit => "a truth value",
            Type::UnsignedByte | Type::Short | Type::Int | Type::Long | Type::Float | Type::Double => {
                "a number"
            }
            Type::FloatComplex | Type::DoubleComplex => "a complex number",
            Type::Text => "a text",
            Type::Timestamp => "a timestamp",
            Type::Point => "a point",
            Type::Circle => "a circle",
            Type::Polygon => "a polygon",
            Type::Region => "a region",
            Type::Array(_) => "an array",
        })
    }
}
