//! From the syntax tree to the typed tree: names become places, types become explicit, spellings become one.
//!
//! One walk. A select is understood in the order FROM, WHERE, select list, GROUP BY, HAVING, ORDER BY; while its
//! expressions are, its relations are the innermost `scope::Scope`, and a name that is not there is sought further
//! out. Aggregates are collected where they are met; if there are any, or GROUP BY, a second walk over what comes
//! after grouping replaces what equals a key by the key (`group`).
//!
//! Types: numbers are promoted along UnsignedByte, Short, Int, Long, Double and along Float, Double; a literal takes
//! the type of what it meets, if it is one exactly, so that columns stay bare (`coerce`). A Float column and a
//! decimal literal meet in Double: the Float is widened, which is exact, and `mag = 6.1` is then true for no Float.
//! Units and UCDs are computed for select items alone, from the syntax tree (`measure`).
//!
//! Derived tables and CTEs see nothing around them. An aggregate belongs to the select that it stands in.
//!
//! Cost: linear in the query and in the columns of the tables that it names, apart from what is written once and
//! computed twice, which is bounded by [`limits::NODES`].

mod call;
mod coerce;
mod error;
mod expr;
mod from;
mod geometry;
mod group;
mod lookup;
mod measure;
mod output;
mod predicate;
mod query;
mod rewrite;
mod scope;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::ast;
use crate::catalogue::{Catalogue, Name};
use crate::lift;
use crate::limits;
use crate::span::Span;
use crate::tree::{Expr, Query, Slot, TableRef, Value};
use crate::types::{Field, Type};

pub use crate::lift::{Guard, Resolved};
pub use error::{Error, Problem};

use error::Result;
use scope::Scope;

/// The bounds of a query; each defaults to its name in [`crate::limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// See [`limits::RELATIONS`].
    pub relations: usize,
    /// See [`limits::TABLES`].
    pub tables: usize,
    /// See [`limits::ITEMS`].
    pub items: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { relations: limits::RELATIONS, tables: limits::TABLES, items: limits::ITEMS }
    }
}

/// Finds out what a query means.
///
/// ```
/// # use trifid_archive_adql::{catalogue::{Catalogue, Name, Table}, language::Language, parser::parse};
/// # use trifid_archive_adql::resolve::{Options, resolve};
/// # use trifid_archive_adql::types::{Field, Type};
/// # struct Stars;
/// # impl Catalogue for Stars {
/// #     fn find(&self, _: Option<&Name>, table: &Name) -> Vec<Table> {
/// #         let fields = vec![Field::new("ra", Type::Double), Field::new("dec", Type::Double)];
/// #         let table = Table { schema: "demo".into(), name: table.text.clone(), fields: fields.into() };
/// #         vec![table]
/// #     }
/// #     fn names(&self) -> Vec<String> { Vec::new() }
/// # }
/// let query = parse("SELECT ra FROM stars WHERE 1 = CONTAINS(POINT(ra, dec), CIRCLE(9, 8, 1))", Language::V2_1)?;
/// let resolved = resolve(&query, &Stars, &Options::default())?;
/// assert_eq!(
///     resolved.query.to_string(),
///     "SELECT t0.ra AS ra FROM demo.stars t0 WHERE Contains(Point(t0.ra, t0.dec), Circle(9.0, 8.0, 1.0))"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What does not exist, does not fit or is too much, with its place.
pub fn resolve(
    query: &ast::Query,
    catalogue: &dyn Catalogue,
    options: &Options,
) -> std::result::Result<Resolved, Error> {
    let mut resolver = Resolver::new(catalogue, options);
    let query = resolver.query(query).map_err(|error| *error)?;
    Ok(Resolved { query: Arc::new(query), guards: resolver.guards, tables: resolver.tables })
}

struct Resolver<'a> {
    catalogue: &'a dyn Catalogue,
    options: &'a Options,
    /// The selects around the place, innermost last.
    scopes: Vec<Scope>,
    /// How many of the scopes cannot be seen from here: those around a derived table.
    hidden: usize,
    ctes: Vec<Cte>,
    guards: Vec<Guard>,
    tables: Vec<TableRef>,
    /// Relations so far, those of CTEs counted at each use.
    relations: usize,
    /// How many queries the place stands in.
    depth: usize,
    /// The most that any place stood in, those of CTEs counted at each use.
    deepest: usize,
    /// Nodes that were written once and stand in the tree again.
    copied: usize,
}

/// A query of WITH.
struct Cte {
    name: Name,
    query: Arc<Query>,
    /// What its columns are called.
    fields: Arc<[Field]>,
    relations: usize,
    depth: usize,
}

impl<'a> Resolver<'a> {
    fn new(catalogue: &'a dyn Catalogue, options: &'a Options) -> Self {
        Self {
            catalogue,
            options,
            scopes: Vec::new(),
            hidden: 0,
            ctes: Vec::new(),
            guards: Vec::new(),
            tables: Vec::new(),
            relations: 0,
            depth: 0,
            deepest: 0,
            copied: 0,
        }
    }

    /// The innermost select.
    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("expressions stand in selects")
    }

    /// Requires a literal to have this value for the tree to be used again.
    fn require(&mut self, literal: &ast::Literal) {
        self.require_slot(literal.slot.0, &literal.value);
    }

    fn require_slot(&mut self, slot: Option<Slot>, value: &Value) {
        if let Some(slot) = slot {
            self.guard(Guard::Equal(slot, value.clone()));
        }
    }

    fn guard(&mut self, guard: Guard) {
        // The same literal is often asked twice in a row: for a value and for its unit.
        let recent = self.guards.len().saturating_sub(8);
        if !self.guards[recent..].contains(&guard) {
            self.guards.push(guard);
        }
    }

    /// Notes that a literal did not fit a type and made the result another.
    fn exceeds(&mut self, slot: Option<Slot>, ty: Type) {
        if let Some(slot) = slot {
            self.guard(Guard::Exceeds(slot, ty));
        }
    }

    /// Whether two expressions are one; if so, their literals must stay equal.
    fn same(&mut self, one: &Expr, other: &Expr) -> bool {
        let mut pairs = Vec::new();
        let same = lift::same(one, other, &mut pairs);
        if same {
            for (one, other) in pairs.into_iter().filter(|(one, other)| one != other) {
                self.guard(Guard::Same(one, other));
            }
        }
        same
    }

    /// A second copy of an expression, within bounds.
    fn copy(&mut self, expr: &Expr, span: Span) -> Result<Expr> {
        self.copied += lift::nodes(expr);
        self.bound(self.copied, limits::NODES, "terms, those that stand for several counted", span)?;
        Ok(expr.clone())
    }

    fn bound(&self, count: usize, limit: usize, what: &'static str, span: Span) -> Result<()> {
        if count > limit {
            return Err(Error::at(Problem::TooMany { what, limit }, span));
        }
        Ok(())
    }
}
