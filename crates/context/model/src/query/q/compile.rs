//! From syntax to a query that can be evaluated: names expanded by the request's context (5.5.7), constants
//! expanded where `expandValues` says so, members of the core context told apart from attributes.

use super::{Operand, Path, Query, Term, Test};
use crate::query::error::Error;
use crate::query::literal::Literal;
use crate::query::names::{Expand, Member, Name};
use crate::symbol::{Symbol, Symbols};

/// What accompanies `q` in a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Attributes whose query values are expanded into URIs (parameter `expandValues`).
    pub expand_values: &'a [String],
    /// Attributes whose values are opaque JSON and never expanded (parameter `jsonKeys`).
    pub json_keys: &'a [String],
}

/// A query ready for evaluation against records.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    pub(super) root: Node,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Any(Box<[Node]>),
    All(Box<[Node]>),
    Term(Box<Bound>),
}

/// A term with expanded names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bound {
    pub(super) hops: Box<[BoundHop]>,
    pub(super) target: Target,
    pub(super) test: Test,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundHop {
    pub(super) relationship: Name,
    pub(super) types: Box<[Name]>,
}

/// The target element of a path within one entity (4.9); also what `orderBy` sorts by (4.23).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) first: First,
    pub(crate) rest: Box<[Name]>,
    pub(crate) last: Option<Member>,
    pub(crate) member: Box<[Box<str>]>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum First {
    Attribute(Name),
    Entity(Member),
}

impl Target {
    /// Binds a path that follows no relationship.
    pub(crate) fn bind(parameter: &'static str, path: &Path, expand: &Expand<'_>) -> Result<Self, Error> {
        let name = |term: &String| Name::expand(parameter, term, expand);
        let member = path.member.iter().map(|member| member.as_str().into()).collect();
        let (first, rest) = path.names.split_first().expect("a parsed path has a name");
        let of_entity = Member::from_term(first).filter(|member| member.is_of_entity() && rest.is_empty());
        if let Some(own) = of_entity {
            return Ok(Target { first: First::Entity(own), rest: [].into(), last: None, member });
        }
        let last = rest.last().and_then(|term| Member::from_term(term)).filter(|own| *own != Member::Scope);
        let rest = &rest[..rest.len() - usize::from(last.is_some())];
        let rest = rest.iter().map(name).collect::<Result<_, _>>()?;
        Ok(Target { first: First::Attribute(name(first)?), rest, last, member })
    }
}

impl Compiled {
    /// Binds `query` to the names of a context. `parameter` is named in refusals.
    pub fn new(
        parameter: &'static str,
        query: &Query,
        options: Options<'_>,
        expand: &Expand<'_>,
    ) -> Result<Self, Error> {
        let binder = Binder { parameter, options, expand };
        Ok(Compiled { root: binder.node(query)? })
    }

    /// Attributes without which no entity matches; `None` when no entity can match, because an attribute
    /// that is needed has no symbol yet. Meant for prefilters: what has them may still not match.
    pub fn required(&self, symbols: &Symbols) -> Option<Vec<Symbol>> {
        self.root.required(symbols)
    }
}

impl Node {
    fn required(&self, symbols: &Symbols) -> Option<Vec<Symbol>> {
        match self {
            Node::Term(term) => term.required(symbols),
            Node::All(parts) => {
                let parts = parts.iter().map(|part| part.required(symbols));
                let mut all: Vec<Symbol> = parts.collect::<Option<Vec<_>>>()?.concat();
                all.sort_unstable();
                all.dedup();
                Some(all)
            }
            Node::Any(parts) => parts
                .iter()
                .filter_map(|part| part.required(symbols))
                .reduce(|a, b| a.into_iter().filter(|symbol| b.contains(symbol)).collect()),
        }
    }
}

impl Bound {
    fn required(&self, symbols: &Symbols) -> Option<Vec<Symbol>> {
        let first = match (self.hops.first(), &self.target.first) {
            _ if self.test == Test::Absent => None,
            (Some(hop), _) => Some(&hop.relationship),
            (None, First::Attribute(name)) => Some(name),
            (None, First::Entity(_)) => None,
        };
        first.map_or(Some(Vec::new()), |name| name.symbol(symbols).map(|symbol| vec![symbol]))
    }
}

struct Binder<'a> {
    parameter: &'static str,
    options: Options<'a>,
    expand: &'a Expand<'a>,
}

impl Binder<'_> {
    fn node(&self, query: &Query) -> Result<Node, Error> {
        let parts = |parts: &[Query]| -> Result<Box<[Node]>, Error> {
            parts.iter().map(|part| self.node(part)).collect()
        };
        Ok(match query {
            Query::Any(own) => Node::Any(parts(own)?),
            Query::All(own) => Node::All(parts(own)?),
            Query::Term(term) => Node::Term(Box::new(self.term(term)?)),
        })
    }

    fn term(&self, term: &Term) -> Result<Bound, Error> {
        let path = &term.path;
        if let Some(name @ ("id" | "type")) = path.names.first().map(String::as_str) {
            let why = format!("\"{name}\" is not an attribute; use the parameter {name}");
            return Err(Error::invalid(self.parameter, why));
        }
        let hops = path.hops.iter().map(|hop| {
            let types = hop.types.iter().map(|name| self.name(name)).collect::<Result<_, _>>()?;
            Ok(BoundHop { relationship: self.name(&hop.relationship)?, types })
        });
        let target = Target::bind(self.parameter, path, self.expand)?;
        let test = if self.expands(path, &target) { self.expanded(&term.test)? } else { term.test.clone() };
        Ok(Bound { hops: hops.collect::<Result<_, _>>()?, target, test })
    }

    fn name(&self, term: &str) -> Result<Name, Error> {
        Name::expand(self.parameter, term, self.expand)
    }

    /// True when the values compared with this path are to be expanded: `expandValues` names the attribute
    /// or the target element, or the target is a member that holds type names.
    fn expands(&self, path: &Path, target: &Target) -> bool {
        let ends = [path.names.first(), path.names.last()];
        let listed = |list: &[String]| ends.iter().flatten().any(|name| list.contains(name));
        target.last.is_some_and(Member::is_expanded)
            || (listed(self.options.expand_values) && !listed(self.options.json_keys))
    }

    fn expanded(&self, test: &Test) -> Result<Test, Error> {
        let Test::Equal { negated, operand } = test else { return Ok(test.clone()) };
        let operand = match operand {
            Operand::One(value) => Operand::One(self.expand_value(value)?),
            Operand::List(values) => {
                Operand::List(values.iter().map(|value| self.expand_value(value)).collect::<Result<_, _>>()?)
            }
            Operand::Range(..) => operand.clone(),
        };
        Ok(Test::Equal { negated: *negated, operand })
    }

    fn expand_value(&self, value: &Literal) -> Result<Literal, Error> {
        match value {
            Literal::Text(text, _) | Literal::Uri(text) => Ok(Literal::Uri(self.name(text)?.iri().into())),
            other => Ok(other.clone()),
        }
    }
}
