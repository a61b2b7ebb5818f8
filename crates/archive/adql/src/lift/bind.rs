//! Other literals in a tree that is there already.

use std::sync::Arc;

use crate::tree::{Body, Expr, Join, Kind, Literal, Query, Relation, Select, Slot, TableRef, Value};
use crate::types::Type;

/// A query that was understood.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What it means.
    pub query: Arc<Query>,
    /// What other literals must fulfil for the tree to be theirs as well.
    pub guards: Vec<Guard>,
    /// The tables that it reads, each once.
    pub tables: Vec<TableRef>,
}

/// A condition on the literals of a query for a tree to be its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    /// The literal shaped the tree: it must have this value again.
    Equal(Slot, Value),
    /// The literal was too large for this type, and made another of the result: it must be too large again.
    Exceeds(Slot, Type),
    /// Two expressions were taken for one: these literals in them must be equal.
    Same(Slot, Slot),
}

impl Guard {
    /// Whether the literals of a query, by slot, fulfil it.
    pub fn holds(&self, literals: &[Value]) -> bool {
        let at = |slot: Slot| literals.get(slot as usize);
        match self {
            Self::Equal(slot, value) => at(*slot) == Some(value),
            Self::Exceeds(slot, ty) => at(*slot).is_some_and(|value| fit(value, *ty).is_none()),
            Self::Same(one, other) => at(*one).is_some() && at(*one) == at(*other),
        }
    }
}

impl Resolved {
    /// The tree with the literals of another query of the same fingerprint, by slot; `None` if the tree would not
    /// be the one that this query has, and it must be resolved.
    pub fn bind(&self, literals: &[Value]) -> Option<Arc<Query>> {
        if !self.guards.iter().all(|guard| guard.holds(literals)) {
            return None;
        }
        bind(&self.query, literals)
    }
}

/// The query with these values in its literals' slots; `None` if there is a value that does not fit where it would
/// stand. Shared as it is, if they are what it has.
pub fn bind(query: &Arc<Query>, literals: &[Value]) -> Option<Arc<Query>> {
    let mut bound = Arc::clone(query);
    rebind_shared(&mut bound, literals).then_some(bound)
}

/// The value as a literal of this type: exactly, or not at all.
pub fn fit(value: &Value, ty: Type) -> Option<Value> {
    match (value, ty) {
        (Value::Null, _) | (Value::Boolean(_), Type::Boolean) | (Value::Text(_), Type::Text) => {
            Some(value.clone())
        }
        (Value::Integer(whole), _) => fit_integer(*whole, ty),
        (Value::Double(_), Type::Double) => Some(value.clone()),
        (Value::Double(number), Type::Float) => is_float(*number).then(|| value.clone()),
        _ => None,
    }
}

fn fit_integer(whole: i64, ty: Type) -> Option<Value> {
    let fits = match ty {
        Type::UnsignedByte => u8::try_from(whole).is_ok(),
        Type::Short => i16::try_from(whole).is_ok(),
        Type::Int => i32::try_from(whole).is_ok(),
        Type::Long => true,
        Type::Float => {
            let exact = whole.unsigned_abs() <= 1 << f32::MANTISSA_DIGITS;
            return exact.then_some(Value::Double(whole as f64));
        }
        Type::Double => return Some(Value::Double(whole as f64)),
        _ => false,
    };
    fits.then_some(Value::Integer(whole))
}

fn is_float(number: f64) -> bool {
    f64::from(number as f32).to_bits() == number.to_bits()
}

/// Replaces the literals of a query that may be shared; it is copied only if one differs. Says whether all fit.
fn rebind_shared(query: &mut Arc<Query>, literals: &[Value]) -> bool {
    !query_differs(query, literals) || rebind_query(Arc::make_mut(query), literals)
}

fn rebind_query(query: &mut Query, literals: &[Value]) -> bool {
    let counts = query.top.iter_mut().chain(&mut query.offset);
    let counted = counts.fold(true, |fits, count| fits & rebind_literal(count, Type::Long, literals));
    counted
        && match &mut query.body {
            Body::Select(select) => rebind_select(select, literals),
            Body::Set { left, right, .. } => rebind_shared(left, literals) && rebind_shared(right, literals),
        }
}

fn rebind_select(select: &mut Select, literals: &[Value]) -> bool {
    let arguments = select.aggregates.iter_mut().flat_map(|aggregate| &mut aggregate.arguments);
    let mut all = select.filter.iter_mut().chain(&mut select.keys).chain(arguments);
    all.all(|expr| rebind(expr, literals))
        && select.having.iter_mut().chain(&mut select.items).all(|expr| rebind(expr, literals))
        && select.from.iter_mut().all(|join| rebind_join(join, literals))
        && select.relations.iter_mut().all(|relation| match relation {
            Relation::Table(_) => true,
            Relation::Query(query) => rebind_shared(query, literals),
        })
}

fn rebind_join(join: &mut Join, literals: &[Value]) -> bool {
    match join {
        Join::Leaf(_) => true,
        Join::Pair { left, right, on, .. } => {
            rebind_join(left, literals)
                && rebind_join(right, literals)
                && on.iter_mut().all(|condition| rebind(condition, literals))
        }
    }
}

pub(super) fn rebind(expr: &mut Expr, literals: &[Value]) -> bool {
    match &mut expr.kind {
        Kind::Literal(literal) => rebind_literal(literal, expr.ty, literals),
        Kind::Column(_) | Kind::Key(_) | Kind::Aggregate(_) => true,
        Kind::Exists(query) | Kind::Scalar(query) => rebind_shared(query, literals),
        Kind::InQuery(value, query) => rebind(value, literals) && rebind_shared(query, literals),
        Kind::Negate(one) | Kind::Not(one) | Kind::IsNull(one) | Kind::Cast(one) => rebind(one, literals),
        Kind::Arithmetic(_, left, right) | Kind::Compare(_, left, right) => {
            rebind(left, literals) && rebind(right, literals)
        }
        Kind::Like { value, pattern, .. } => rebind(value, literals) && rebind(pattern, literals),
        Kind::Between(value, low, high) => {
            rebind(value, literals) && rebind(low, literals) && rebind(high, literals)
        }
        Kind::InList(value, list) => rebind(value, literals) && rebind_all(list, literals),
        Kind::Concat(list) | Kind::And(list) | Kind::Or(list) | Kind::Call(_, list) => {
            rebind_all(list, literals)
        }
        Kind::Case { branches, otherwise } => {
            branches.iter_mut().all(|(when, then)| rebind(when, literals) && rebind(then, literals))
                && rebind(otherwise, literals)
        }
    }
}

fn rebind_all(list: &mut [Expr], literals: &[Value]) -> bool {
    list.iter_mut().all(|one| rebind(one, literals))
}

fn rebind_literal(literal: &mut Literal, ty: Type, literals: &[Value]) -> bool {
    let Some(slot) = literal.slot else { return true };
    let value = literals.get(slot as usize).and_then(|value| fit(value, ty));
    let fits = value.is_some();
    literal.value = value.unwrap_or(Value::Null);
    fits
}

/// Whether any literal of the query differs from what is given for its slot.
fn query_differs(query: &Query, literals: &[Value]) -> bool {
    let counts = query.top.iter().chain(&query.offset);
    counts.into_iter().any(|count| literal_differs(count, Type::Long, literals))
        || match &query.body {
            Body::Select(select) => select_differs(select, literals),
            Body::Set { left, right, .. } => query_differs(left, literals) || query_differs(right, literals),
        }
}

fn select_differs(select: &Select, literals: &[Value]) -> bool {
    let mut found = false;
    super::visit::each_expr(select, &mut |expr| found = found || differs(expr, literals));
    found
        || select.relations.iter().any(|relation| match relation {
            Relation::Table(_) => false,
            Relation::Query(query) => query_differs(query, literals),
        })
}

fn differs(expr: &Expr, literals: &[Value]) -> bool {
    super::visit::any(expr, &mut |node| match &node.kind {
        Kind::Literal(literal) => literal_differs(literal, node.ty, literals),
        _ => super::visit::subquery(node).is_some_and(|query| query_differs(query, literals)),
    })
}

fn literal_differs(literal: &Literal, ty: Type, literals: &[Value]) -> bool {
    let Some(slot) = literal.slot else { return false };
    let value = literals.get(slot as usize).and_then(|value| fit(value, ty));
    value.as_ref() != Some(&literal.value)
}
