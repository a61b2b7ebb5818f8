//! What an expression or a query refers to.

use std::collections::BTreeSet;
use std::sync::Arc;

use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Body, ColumnRef, Expr, Join, Kind, Query, Relation, Select};

/// Something that an expression refers to, with the number of selects between it and where the walk began.
pub(super) enum Reference<'a> {
    /// A column.
    Column(ColumnRef),
    /// A query of its own, not one in such a query, whose answer is a value.
    Query(&'a Arc<Query>),
    /// Something that differs from row to row for no reason.
    Chance,
}

/// Calls `f` with everything that an expression refers to. A column's depth is counted from the expression: 0 is
/// the select that it stands in, whatever query in it names the column; columns of such queries' own are left
/// out.
pub(super) fn expr<'a>(expr: &'a Expr, f: &mut dyn FnMut(Reference<'a>)) {
    walk_expr(expr, 0, f);
}

/// Calls `f` with everything outside of a query that it refers to; depth 0 is the select around it.
pub(super) fn query<'a>(query: &'a Query, f: &mut dyn FnMut(Reference<'a>)) {
    walk_query(query, 1, f);
}

/// Every expression of a select, not those of queries in FROM.
pub(super) fn select_exprs(select: &Select) -> impl Iterator<Item = &Expr> {
    let mut ons = Vec::new();
    if let Some(from) = &select.from {
        conditions(from, &mut ons);
    }
    let aggregates = select.aggregates.iter().flat_map(|aggregate| &aggregate.arguments);
    select
        .filter
        .iter()
        .chain(&select.keys)
        .chain(aggregates)
        .chain(&select.having)
        .chain(&select.items)
        .chain(ons)
}

fn conditions<'a>(join: &'a Join, found: &mut Vec<&'a Expr>) {
    if let Join::Pair { left, right, on, .. } = join {
        conditions(left, found);
        conditions(right, found);
        found.extend(on);
    }
}

fn walk_query<'a>(query: &'a Query, level: u16, f: &mut dyn FnMut(Reference<'a>)) {
    match &query.body {
        Body::Select(select) => {
            select_exprs(select).for_each(|expr| walk_expr(expr, level, f));
            for relation in &select.relations {
                if let Relation::Query(inner) = relation {
                    walk_query(inner, level + 1, f);
                }
            }
        }
        Body::Set { left, right, .. } => {
            walk_query(left, level, f);
            walk_query(right, level, f);
        }
    }
}

fn walk_inner<'a>(inner: &'a Arc<Query>, level: u16, f: &mut dyn FnMut(Reference<'a>)) {
    if level == 0 {
        f(Reference::Query(inner));
    }
    walk_query(inner, level + 1, f);
}

fn walk_expr<'a>(expr: &'a Expr, level: u16, f: &mut dyn FnMut(Reference<'a>)) {
    match &expr.kind {
        Kind::Column(at) => {
            if let Some(depth) = at.depth.checked_sub(level) {
                f(Reference::Column(ColumnRef { depth, ..*at }));
            }
        }
        Kind::Literal(_) | Kind::Key(_) | Kind::Aggregate(_) => {}
        Kind::Negate(one) | Kind::Not(one) | Kind::IsNull(one) | Kind::Cast(one) => walk_expr(one, level, f),
        Kind::Arithmetic(_, left, right) | Kind::Compare(_, left, right) => {
            walk_expr(left, level, f);
            walk_expr(right, level, f);
        }
        Kind::Like { value, pattern, .. } => {
            walk_expr(value, level, f);
            walk_expr(pattern, level, f);
        }
        Kind::Between(value, low, high) => [value, low, high].iter().for_each(|one| walk_expr(one, level, f)),
        Kind::Concat(all) | Kind::And(all) | Kind::Or(all) => {
            all.iter().for_each(|one| walk_expr(one, level, f));
        }
        Kind::InList(value, list) => {
            walk_expr(value, level, f);
            list.iter().for_each(|one| walk_expr(one, level, f));
        }
        Kind::InQuery(value, inner) => {
            walk_expr(value, level, f);
            walk_inner(inner, level, f);
        }
        Kind::Exists(inner) | Kind::Scalar(inner) => walk_inner(inner, level, f),
        Kind::Case { branches, otherwise } => {
            for (condition, value) in branches {
                walk_expr(condition, level, f);
                walk_expr(value, level, f);
            }
            walk_expr(otherwise, level, f);
        }
        Kind::Call(function, arguments) => {
            if matches!(function, Function::Rand | Function::NormalRandom) {
                f(Reference::Chance);
            }
            arguments.iter().for_each(|one| walk_expr(one, level, f));
        }
    }
}

/// The conditions that all have to be true for a condition to be.
pub(super) fn conjuncts<'a>(condition: &'a Expr, found: &mut Vec<&'a Expr>) {
    match &condition.kind {
        Kind::And(all) => all.iter().for_each(|one| conjuncts(one, found)),
        _ => found.push(condition),
    }
}

/// The relations of its select whose columns an expression needs, if these and literals are all that it needs.
pub(super) fn relations(of: &Expr) -> Option<BTreeSet<u16>> {
    let mut found = BTreeSet::new();
    let mut simple = true;
    expr(of, &mut |reference| match reference {
        Reference::Column(at) if at.depth == 0 => {
            found.insert(at.relation);
        }
        Reference::Column(_) | Reference::Query(_) | Reference::Chance => simple = false,
    });
    simple.then_some(found)
}

/// Whether the answer of a query is the same in all rows around it.
pub(super) fn is_independent(of: &Query) -> bool {
    let mut free = true;
    query(of, &mut |reference| match reference {
        Reference::Column(_) => free = false,
        Reference::Query(_) | Reference::Chance => {}
    });
    free
}
