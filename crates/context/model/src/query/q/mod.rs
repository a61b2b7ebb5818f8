//! The query language `q` (4.9): text to syntax tree, tree to a bound query, and its evaluation.
//!
//! [`parse`] reads the grammar and knows no `@context`: its [`Query`] prints back as it was meant, which is
//! what subscriptions and forwarded requests need. [`Compiled`] has names expanded, constants parsed and
//! patterns compiled; it is evaluated against a record without allocating, except to decode a string with
//! escapes and to look up linked entities.
//!
//! Beyond the grammar: `!path` asks for the absence of an attribute, names may be compact or absolute IRIs,
//! spaces may stand around operators, and lists may hold URIs (as the clause's prose has it).

mod compile;
mod eval;
mod parse;

pub(crate) use compile::Target;
pub use compile::{Compiled, Options};
pub(crate) use eval::Found;
pub use eval::{Env, GaveUp, Links, Resolve};
pub(crate) use parse::attribute_path;

use super::error::Error;
use super::literal::Literal;
use super::names::Member;
use super::pattern::Pattern;

/// The syntax tree of a query. Nested alternatives are merged, so equal meaning of grouping is equal trees.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// Any of these, joined by `|`.
    Any(Vec<Query>),
    /// All of these, joined by `;`.
    All(Vec<Query>),
    /// One predicate.
    Term(Term),
}

/// One predicate: an attribute path and what is asked of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The path.
    pub path: Path,
    /// The predicate over the target element.
    pub test: Test,
}

/// An attribute path: relationships to follow, dotted names, members of a compound value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// Relationships to follow first, outermost first (4.5.23).
    pub hops: Vec<Hop>,
    /// The attribute, then sub-attributes.
    pub names: Vec<String>,
    /// What stands in square brackets: a language, `*`, or members of a compound value.
    pub member: Vec<String>,
}

/// One relationship to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The relationship's name.
    pub relationship: String,
    /// Types that the linked entity may have; any when empty.
    pub types: Vec<String>,
}

/// What is asked of a target element.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// It exists.
    Exists,
    /// It does not exist.
    Absent,
    /// `==` and, negated, `!=`.
    Equal {
        /// True for `!=`.
        negated: bool,
        /// What to compare with.
        operand: Operand,
    },
    /// `>`, `>=`, `<`, `<=`.
    Order {
        /// The operator.
        operator: Order,
        /// The bound.
        value: Literal,
    },
    /// `~=` and, negated, `!~=`.
    Pattern {
        /// True for `!~=`.
        negated: bool,
        /// The regular expression.
        pattern: Pattern,
    },
}

/// The right side of `==` and `!=`.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// One value.
    One(Literal),
    /// Any of two or more values.
    List(Vec<Literal>),
    /// A closed interval.
    Range(Literal, Literal),
}

/// An ordering operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum Order {
    Greater,
    GreaterEq,
    Less,
    LessEq,
}

/// Reads a query. Never panics; this is the entry point for fuzzing.
pub fn parse(text: &str) -> Result<Query, Error> {
    parse::query("q", text)
}

/// Reads the text of another parameter that is written in the same language, such as `csf`.
pub fn parse_as(parameter: &'static str, text: &str) -> Result<Query, Error> {
    parse::query(parameter, text)
}

/// Reads a comma separated list of attribute names: `expandValues`, `jsonKeys`.
pub fn parse_names(parameter: &'static str, text: &str) -> Result<Vec<String>, Error> {
    parse::names(parameter, text)
}

impl Query {
    /// The alternatives `parts`, merged with alternatives among them.
    pub fn any(parts: Vec<Query>) -> Query {
        Self::join(parts, true)
    }

    /// The conjunction of `parts`, merged with conjunctions among them.
    pub fn all(parts: Vec<Query>) -> Query {
        Self::join(parts, false)
    }

    fn join(parts: Vec<Query>, any: bool) -> Query {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Query::Any(own) if any => flat.extend(own),
                Query::All(own) if !any => flat.extend(own),
                other => flat.push(other),
            }
        }
        match flat.len() {
            1 => flat.remove(0),
            _ if any => Query::Any(flat),
            _ => Query::All(flat),
        }
    }

    /// All terms, from left to right.
    pub fn terms(&self) -> Vec<&Term> {
        match self {
            Query::Term(term) => vec![term],
            Query::Any(parts) | Query::All(parts) => parts.iter().flat_map(Query::terms).collect(),
        }
    }

    /// True when some term is about an attribute that clients define, not only about system attributes:
    /// what 5.7.2.4 asks of a query that is the only restriction.
    pub fn names_attribute(&self) -> bool {
        let system = |path: &Path| {
            let first = path.names.first().and_then(|name| Member::from_term(name));
            path.hops.is_empty() && path.names.len() == 1 && first.is_some_and(Member::is_of_entity)
        };
        self.terms().iter().any(|term| !system(&term.path))
    }

    /// The greatest number of linked entities in a row that a term follows; compare with `joinLevel`
    /// (5.7.2.4).
    pub fn hops(&self) -> usize {
        self.terms().iter().map(|term| term.path.hops.len()).max().unwrap_or(0)
    }
}

impl std::fmt::Display for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Query::Term(term) => write!(f, "{term}"),
            Query::Any(parts) => parts.iter().enumerate().try_for_each(|(n, part)| {
                f.write_str(if n == 0 { "" } else { "|" })?;
                write!(f, "{part}")
            }),
            Query::All(parts) => parts.iter().enumerate().try_for_each(|(n, part)| {
                f.write_str(if n == 0 { "" } else { ";" })?;
                // The conjunction binds tighter: alternatives inside it need parentheses.
                if matches!(part, Query::Any(_)) { write!(f, "({part})") } else { write!(f, "{part}") }
            }),
        }
    }
}

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = &self.path;
        match &self.test {
            Test::Exists => write!(f, "{path}"),
            Test::Absent => write!(f, "!{path}"),
            Test::Equal { negated, operand } => {
                write!(f, "{path}{}{operand}", if *negated { "!=" } else { "==" })
            }
            Test::Order { operator, value } => write!(f, "{path}{}{value}", operator.token()),
            Test::Pattern { negated, pattern } => {
                let quoted = crate::json::quoted(pattern.source());
                write!(f, "{path}{}{quoted}", if *negated { "!~=" } else { "~=" })
            }
        }
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for hop in &self.hops {
            write!(f, "{}{{", hop.relationship)?;
            if !hop.types.is_empty() {
                write!(f, "{}:", hop.types.join(","))?;
            }
        }
        f.write_str(&self.names.join("."))?;
        if !self.member.is_empty() {
            write!(f, "[{}]", self.member.join("."))?;
        }
        self.hops.iter().try_for_each(|_| f.write_str("}"))
    }
}

impl std::fmt::Display for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Operand::One(value) => write!(f, "{value}"),
            Operand::Range(low, high) => write!(f, "{low}..{high}"),
            Operand::List(values) => values.iter().enumerate().try_for_each(|(n, value)| {
                f.write_str(if n == 0 { "" } else { "," })?;
                write!(f, "{value}")
            }),
        }
    }
}

impl Order {
    /// The operator as it is written.
    pub fn token(self) -> &'static str {
        match self {
            Order::Greater => ">",
            Order::GreaterEq => ">=",
            Order::Less => "<",
            Order::LessEq => "<=",
        }
    }

    /// True when a target that compares as `found` with the bound satisfies the operator.
    pub(crate) fn admits(self, found: std::cmp::Ordering) -> bool {
        match self {
            Order::Greater => found.is_gt(),
            Order::GreaterEq => found.is_ge(),
            Order::Less => found.is_lt(),
            Order::LessEq => found.is_le(),
        }
    }
}

#[cfg(test)]
mod tests;
