//! Single expressions bound anew, and what a whole tree wants of its literals.

use std::sync::Arc;

use super::bind::{fit, rebind};
use super::visit::{any, each_expr, subquery};
use crate::tree::{Body, Expr, Kind, Literal, Query, Relation, Select, Slot, Value};
use crate::types::Type;

/// A copy of an expression with these values in its literals' slots; `None` if one does not fit.
pub fn bind_expr(expr: &Expr, literals: &[Value]) -> Option<Expr> {
    let mut bound = expr.clone();
    rebind(&mut bound, literals).then_some(bound)
}

/// Whether an expression has a literal with a slot; subqueries are not entered.
pub fn has_slot(expr: &Expr) -> bool {
    any(expr, &mut |node| matches!(&node.kind, Kind::Literal(Literal { slot: Some(_), .. })))
}

/// Whether an expression asks a query.
pub fn has_query(expr: &Expr) -> bool {
    any(expr, &mut |node| subquery(node).is_some())
}

/// The slots of a tree with the types that their values must fit ([`fit`]), each once.
pub fn slots(query: &Arc<Query>) -> Vec<(Slot, Type)> {
    let mut found = Vec::new();
    of_query(query, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether values, by slot, fit a tree with these slots.
pub fn fits(slots: &[(Slot, Type)], literals: &[Value]) -> bool {
    slots.iter().all(|(slot, ty)| literals.get(*slot as usize).is_some_and(|value| fit(value, *ty).is_some()))
}

fn of_query(query: &Query, found: &mut Vec<(Slot, Type)>) {
    let counts = query.top.iter().chain(&query.offset);
    found.extend(counts.filter_map(|count| Some((count.slot?, Type::Long))));
    match &query.body {
        Body::Select(select) => of_select(select, found),
        Body::Set { left, right, .. } => {
            of_query(left, found);
            of_query(right, found);
        }
    }
}

fn of_select(select: &Select, found: &mut Vec<(Slot, Type)>) {
    each_expr(select, &mut |expr| of_expr(expr, found));
    for relation in &select.relations {
        if let Relation::Query(query) = relation {
            of_query(query, found);
        }
    }
}

fn of_expr(expr: &Expr, found: &mut Vec<(Slot, Type)>) {
    any(expr, &mut |node| {
        if let Kind::Literal(Literal { slot: Some(slot), .. }) = &node.kind {
            found.push((*slot, node.ty));
        }
        if let Some(query) = subquery(node) {
            of_query(query, found);
        }
        false
    });
}
