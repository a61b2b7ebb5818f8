//! Steps through the tree beside those of [`trifid_archive_adql::lift`].

use trifid_archive_adql::lift::{each_child, subquery};
use trifid_archive_adql::tree::{Body, ColumnRef, Expr, Join, Kind, Literal, Query, Relation, Select};
use trifid_archive_adql::types::Type;

/// The expression with each direct operand replaced.
pub(crate) fn map_operands<E>(expr: &Expr, f: &mut dyn FnMut(&Expr) -> Result<Expr, E>) -> Result<Expr, E> {
    let mut boxed = |one: &Expr| f(one).map(Box::new);
    let kind = match &expr.kind {
        Kind::Arithmetic(operator, left, right) => Kind::Arithmetic(*operator, boxed(left)?, boxed(right)?),
        Kind::Compare(comparison, left, right) => Kind::Compare(*comparison, boxed(left)?, boxed(right)?),
        Kind::Negate(inner) => Kind::Negate(boxed(inner)?),
        Kind::Not(inner) => Kind::Not(boxed(inner)?),
        Kind::IsNull(inner) => Kind::IsNull(boxed(inner)?),
        Kind::Cast(inner) => Kind::Cast(boxed(inner)?),
        Kind::InQuery(value, query) => Kind::InQuery(boxed(value)?, query.clone()),
        Kind::Between(value, low, high) => Kind::Between(boxed(value)?, boxed(low)?, boxed(high)?),
        Kind::InList(value, list) => Kind::InList(boxed(value)?, map_all(list, f)?),
        Kind::Like { value, pattern, ignore_case } => {
            Kind::Like { value: boxed(value)?, pattern: boxed(pattern)?, ignore_case: *ignore_case }
        }
        Kind::Concat(all) => Kind::Concat(map_all(all, f)?),
        Kind::And(all) => Kind::And(map_all(all, f)?),
        Kind::Or(all) => Kind::Or(map_all(all, f)?),
        Kind::Call(function, all) => Kind::Call(*function, map_all(all, f)?),
        Kind::Case { branches, otherwise } => {
            let otherwise = boxed(otherwise)?;
            let pair = |(condition, value): &(Expr, Expr)| Ok((f(condition)?, f(value)?));
            Kind::Case { branches: branches.iter().map(pair).collect::<Result<_, E>>()?, otherwise }
        }
        leaf @ (Kind::Column(_)
        | Kind::Literal(_)
        | Kind::Key(_)
        | Kind::Aggregate(_)
        | Kind::Exists(_)
        | Kind::Scalar(_)) => leaf.clone(),
    };
    Ok(Expr { kind, ty: expr.ty })
}

fn map_all<E>(all: &[Expr], f: &mut dyn FnMut(&Expr) -> Result<Expr, E>) -> Result<Vec<Expr>, E> {
    all.iter().map(f).collect()
}

/// Calls `f` with every column that the expression names, in queries too; with each comes how many selects deeper
/// than the expression it stands.
pub(crate) fn columns(expr: &Expr, level: u16, f: &mut dyn FnMut(u16, ColumnRef)) {
    typed_columns(expr, level, &mut |level, column, _| f(level, column));
}

fn typed_columns(expr: &Expr, level: u16, f: &mut dyn FnMut(u16, ColumnRef, Type)) {
    if let Kind::Column(column) = &expr.kind {
        f(level, *column, expr.ty);
    }
    each_child(expr, &mut |one| typed_columns(one, level, f));
    if let Some(query) = subquery(expr) {
        typed_columns_of_query(query, level + 1, f);
    }
}

/// Calls `f` with every column, and its type, named in a query whose selects stand `level` deeper than the point of
/// view.
pub(crate) fn typed_columns_of_query(query: &Query, level: u16, f: &mut dyn FnMut(u16, ColumnRef, Type)) {
    match &query.body {
        Body::Select(select) => typed_columns_of_select(select, level, f),
        Body::Set { left, right, .. } => {
            typed_columns_of_query(left, level, f);
            typed_columns_of_query(right, level, f);
        }
    }
}

fn typed_columns_of_select(select: &Select, level: u16, f: &mut dyn FnMut(u16, ColumnRef, Type)) {
    expressions(select, &mut |expr| typed_columns(expr, level, f));
    for relation in &select.relations {
        if let Relation::Query(query) = relation {
            typed_columns_of_query(query, level + 1, f);
        }
    }
}

/// Calls `f` with every expression of a select.
pub(crate) fn expressions<'t>(select: &'t Select, f: &mut dyn FnMut(&'t Expr)) {
    if let Some(from) = &select.from {
        conditions(from, f);
    }
    select.filter.iter().for_each(&mut *f);
    select.keys.iter().for_each(&mut *f);
    select.aggregates.iter().flat_map(|one| &one.arguments).for_each(&mut *f);
    select.having.iter().for_each(&mut *f);
    select.items.iter().for_each(f);
}

fn conditions<'t>(join: &'t Join, f: &mut dyn FnMut(&'t Expr)) {
    if let Join::Pair { left, right, on, .. } = join {
        conditions(left, f);
        conditions(right, f);
        on.iter().for_each(f);
    }
}

/// Calls `f` with every constant of a query that an expression holds, and its type.
pub(crate) fn literals_of_query<'t>(query: &'t Query, f: &mut dyn FnMut(&'t Literal, Type)) {
    each_select(query, &mut |select| expressions(select, &mut |expr| literals(expr, f)));
}

fn literals<'t>(expr: &'t Expr, f: &mut dyn FnMut(&'t Literal, Type)) {
    if let Kind::Literal(literal) = &expr.kind {
        f(literal, expr.ty);
    }
    each_child(expr, &mut |one| literals(one, f));
    if let Some(query) = subquery(expr) {
        literals_of_query(query, f);
    }
}

/// Calls `f` with each select of a query that is not inside an expression.
fn each_select<'t>(query: &'t Query, f: &mut dyn FnMut(&'t Select)) {
    match &query.body {
        Body::Set { left, right, .. } => {
            each_select(left, f);
            each_select(right, f);
        }
        Body::Select(select) => {
            f(select);
            for relation in &select.relations {
                if let Relation::Query(query) = relation {
                    each_select(query, f);
                }
            }
        }
    }
}

/// Calls `f` with OFFSET and TOP of a query and all queries in it.
pub(crate) fn counts_of_query(query: &Query, f: &mut dyn FnMut(Option<&Literal>)) {
    f(query.offset.as_ref());
    f(query.top.as_ref());
    match &query.body {
        Body::Set { left, right, .. } => {
            counts_of_query(left, f);
            counts_of_query(right, f);
        }
        Body::Select(select) => {
            expressions(select, &mut |expr| counts(expr, f));
            for relation in &select.relations {
                if let Relation::Query(query) = relation {
                    counts_of_query(query, f);
                }
            }
        }
    }
}

fn counts(expr: &Expr, f: &mut dyn FnMut(Option<&Literal>)) {
    each_child(expr, &mut |one| counts(one, f));
    if let Some(query) = subquery(expr) {
        counts_of_query(query, f);
    }
}

/// All of them as one condition.
pub(crate) fn all_of(mut conjuncts: Vec<Expr>) -> Option<Expr> {
    match conjuncts.len() {
        0 => None,
        1 => conjuncts.pop(),
        _ => Some(Expr { kind: Kind::And(conjuncts), ty: Type::Boolean }),
    }
}
