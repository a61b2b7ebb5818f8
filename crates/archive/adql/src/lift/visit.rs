//! Walks over trees.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::functions::Function;
use crate::tree::{Body, ColumnRef, Expr, Join, Kind, Query, Relation, Select, Slot};

/// Calls `visit` with each expression that is an operand of this one, in the order of the text. A subquery is not
/// entered; its value to be compared is an operand.
pub fn each_child<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    match &expr.kind {
        Kind::Column(_)
        | Kind::Literal(_)
        | Kind::Key(_)
        | Kind::Aggregate(_)
        | Kind::Exists(_)
        | Kind::Scalar(_) => {}
        Kind::Negate(one) | Kind::Not(one) | Kind::IsNull(one) | Kind::Cast(one) | Kind::InQuery(one, _) => {
            visit(one);
        }
        Kind::Arithmetic(_, left, right) | Kind::Compare(_, left, right) => {
            visit(left);
            visit(right);
        }
        Kind::Like { value, pattern, .. } => {
            visit(value);
            visit(pattern);
        }
        Kind::Between(value, low, high) => {
            visit(value);
            visit(low);
            visit(high);
        }
        Kind::InList(value, list) => {
            visit(value);
            list.iter().for_each(visit);
        }
        Kind::Concat(list) | Kind::And(list) | Kind::Or(list) | Kind::Call(_, list) => {
            list.iter().for_each(visit);
        }
        Kind::Case { branches, otherwise } => {
            for (when, then) in branches {
                visit(when);
                visit(then);
            }
            visit(otherwise);
        }
    }
}

/// The query that an expression asks, if it does.
pub fn subquery(expr: &Expr) -> Option<&Arc<Query>> {
    match &expr.kind {
        Kind::InQuery(_, query) | Kind::Exists(query) | Kind::Scalar(query) => Some(query),
        _ => None,
    }
}

/// Whether the expression or any below it fits; subqueries are not entered.
pub fn any(expr: &Expr, fits: &mut dyn FnMut(&Expr) -> bool) -> bool {
    if fits(expr) {
        return true;
    }
    let mut found = false;
    each_child(expr, &mut |child| found = found || any(child, fits));
    found
}

/// How many nodes an expression has; subqueries count as one.
pub fn nodes(expr: &Expr) -> usize {
    let mut count = 1;
    each_child(expr, &mut |child| count += nodes(child));
    count
}

/// Calls `visit` with each column that the expression refers to of the select `level` selects further out: 0 is the
/// one that it stands in. Subqueries are entered.
pub fn each_column(expr: &Expr, level: u16, visit: &mut dyn FnMut(ColumnRef)) {
    if let Kind::Column(column) = expr.kind
        && column.depth == level
    {
        visit(column);
    }
    if let Some(query) = subquery(expr) {
        columns_of_query(query, level + 1, visit);
    }
    each_child(expr, &mut |child| each_column(child, level, visit));
}

/// The same of a query whose selects stand `level` selects below the one that is asked about.
fn columns_of_query(query: &Query, level: u16, visit: &mut dyn FnMut(ColumnRef)) {
    match &query.body {
        Body::Set { left, right, .. } => {
            columns_of_query(left, level, visit);
            columns_of_query(right, level, visit);
        }
        Body::Select(select) => {
            each_expr(select, &mut |expr| each_column(expr, level, visit));
            for relation in &select.relations {
                if let Relation::Query(derived) = relation {
                    columns_of_query(derived, level + 1, visit);
                }
            }
        }
    }
}

/// Calls `visit` with the roots of all expressions of a select.
pub(super) fn each_expr<'a>(select: &'a Select, visit: &mut dyn FnMut(&'a Expr)) {
    if let Some(join) = &select.from {
        each_condition(join, visit);
    }
    let arguments = select.aggregates.iter().flat_map(|aggregate| &aggregate.arguments);
    let all = select.filter.iter().chain(&select.keys).chain(arguments);
    all.chain(&select.having).chain(&select.items).for_each(visit);
}

fn each_condition<'a>(join: &'a Join, visit: &mut dyn FnMut(&'a Expr)) {
    if let Join::Pair { left, right, on, .. } = join {
        each_condition(left, visit);
        each_condition(right, visit);
        on.iter().for_each(visit);
    }
}

/// The columns that a select needs of each of its relations, those that its subqueries ask for included.
pub fn used_columns(select: &Select) -> Vec<BTreeSet<u32>> {
    let mut used = vec![BTreeSet::new(); select.relations.len()];
    let mut note = |column: ColumnRef| {
        if let Some(columns) = used.get_mut(usize::from(column.relation)) {
            columns.insert(column.column);
        }
    };
    each_expr(select, &mut |expr| each_column(expr, 0, &mut note));
    used
}

/// Whether a query, standing in an expression or in FROM, refers to the select that it stands in or further out.
pub fn is_correlated(query: &Query) -> bool {
    reaches(query, 1, &|_| true)
}

/// Whether a query refers to the select `level` selects further out; 1 is the one that it stands in.
pub fn refers_to(query: &Query, level: u16) -> bool {
    reaches(query, level, &|over| over == 0)
}

/// Whether a query has a reference that goes `level` selects out from its own, and so many over that as fit.
fn reaches(query: &Query, level: u16, fits: &dyn Fn(u16) -> bool) -> bool {
    match &query.body {
        Body::Set { left, right, .. } => reaches(left, level, fits) || reaches(right, level, fits),
        Body::Select(select) => {
            let mut found = false;
            each_expr(select, &mut |expr| found = found || expr_reaches(expr, level, fits));
            found
                || select.relations.iter().any(|relation| match relation {
                    Relation::Query(derived) => reaches(derived, level + 1, fits),
                    Relation::Table(_) => false,
                })
        }
    }
}

fn expr_reaches(expr: &Expr, level: u16, fits: &dyn Fn(u16) -> bool) -> bool {
    any(expr, &mut |node| match node.kind {
        Kind::Column(column) => column.depth.checked_sub(level).is_some_and(fits),
        _ => subquery(node).is_some_and(|query| reaches(query, level + 1, fits)),
    })
}

/// Whether an expression has the same value in every row: no column, no subquery, nothing random.
pub fn is_constant(expr: &Expr) -> bool {
    !any(expr, &mut |node| {
        is_random(node)
            || subquery(node).is_some()
            || matches!(node.kind, Kind::Column(_) | Kind::Key(_) | Kind::Aggregate(_))
    })
}

/// Whether an expression may differ from one computation to the next; subqueries are not looked into.
pub fn is_volatile(expr: &Expr) -> bool {
    any(expr, &mut is_random)
}

fn is_random(expr: &Expr) -> bool {
    matches!(expr.kind, Kind::Call(Function::Rand | Function::NormalRandom, _))
}

/// The conditions that must all hold for this one to hold: AND taken apart.
pub fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    let mut parts = Vec::new();
    part(condition, &mut parts);
    parts
}

fn part<'a>(condition: &'a Expr, parts: &mut Vec<&'a Expr>) {
    match &condition.kind {
        Kind::And(list) => list.iter().for_each(|one| part(one, parts)),
        _ => parts.push(condition),
    }
}

/// [`conjuncts`] of what one owns.
pub fn into_conjuncts(condition: Expr) -> Vec<Expr> {
    match condition.kind {
        Kind::And(list) => list.into_iter().flat_map(into_conjuncts).collect(),
        _ => vec![condition],
    }
}

/// Whether two expressions compute the same, wherever in the text they stand. The slots of literals that had to be
/// equal for that are added to `pairs`; what is there is of no use if they are not the same. Subqueries are the same
/// if they are one, and random numbers never are.
pub fn same(a: &Expr, b: &Expr, pairs: &mut Vec<(Slot, Slot)>) -> bool {
    if a.ty != b.ty {
        return false;
    }
    match (&a.kind, &b.kind) {
        (Kind::Literal(one), Kind::Literal(other)) => {
            if let (Some(one), Some(other)) = (one.slot, other.slot) {
                pairs.push((one, other));
            }
            // A literal and what was computed may be equal by chance only.
            one.value == other.value && one.slot.is_some() == other.slot.is_some()
        }
        (Kind::Column(one), Kind::Column(other)) => one == other,
        (Kind::Key(one), Kind::Key(other)) | (Kind::Aggregate(one), Kind::Aggregate(other)) => one == other,
        (Kind::Exists(one), Kind::Exists(other)) | (Kind::Scalar(one), Kind::Scalar(other)) => {
            Arc::ptr_eq(one, other)
        }
        (Kind::InQuery(_, one), Kind::InQuery(_, other)) => {
            Arc::ptr_eq(one, other) && same_children(a, b, pairs)
        }
        _ => !is_random(a) && same_node(a, b) && same_children(a, b, pairs),
    }
}

/// Whether two nodes differ in their children at most.
fn same_node(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Arithmetic(one, ..), Kind::Arithmetic(other, ..)) => one == other,
        (Kind::Compare(one, ..), Kind::Compare(other, ..)) => one == other,
        (Kind::Like { ignore_case: one, .. }, Kind::Like { ignore_case: other, .. }) => one == other,
        (Kind::Call(one, _), Kind::Call(other, _)) => one == other,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

fn same_children(a: &Expr, b: &Expr, pairs: &mut Vec<(Slot, Slot)>) -> bool {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    each_child(a, &mut |child| left.push(child));
    each_child(b, &mut |child| right.push(child));
    left.len() == right.len() && left.iter().zip(&right).all(|(one, other)| same(one, other, pairs))
}
