//! Correlated subqueries that cannot be mere conditions of a join: values, groups, the first few rows.
//!
//! Such a subquery means something for each combination of values that the select around it brings. If equations
//! alone tie it, its rows carry their side of the equations along: they are grouped, told apart and counted by it,
//! and the result is joined. Otherwise the distinct combinations are computed first and joined into the subquery,
//! under whatever conditions tie it, and carried along likewise: every correlation of a select can be cut loose so,
//! at the price of computing the outer rows twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality, ScalarValue};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Aggregate as Grouping, Expr as Logical, Filter, Join as Joining, JoinConstraint, LogicalPlan, Window,
    WindowFrame, WindowFunctionDefinition, lit,
};
use trifid_archive_adql::functions::Aggregator;
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{Aggregate, Body, ColumnRef, Expr, Kind, Literal, Query, Select, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;

use super::from::{Conjunct, Side, equation};
use super::select::{check_columns, count, distinct, item_types, sort_keys};
use super::subquery::Tied;
use super::{Refused, Translator, column, named, project};
use crate::query::aggregate;
use crate::query::normal::normal;
use crate::query::only::only;
use crate::query::walk;

impl<'t> Translator<'t> {
    /// A correlated subquery with what ties it: columns of relation `number`, the subquery's own first, then those that
    /// must equal the keys.
    pub(super) fn bound(
        &mut self,
        plan: &LogicalPlan,
        query: &'t Query,
        number: u32,
    ) -> Result<Tied, Refused> {
        let Body::Select(select) = &query.body else {
            return Err(Refused::Unsupported("a correlated set operation"));
        };
        let outer = self.outer_columns(query)?;
        self.enter(select)?;
        let conjuncts = self.conjuncts(select.filter.as_ref())?;
        let (side, left) = self.from(select, conjuncts)?;
        let own = self.own_relations(select);
        let is_tie = |one: &Conjunct<'_>| !one.relations.iter().all(|relation| own(*relation));
        let (ties, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_tie);
        let bound = match self.equations(select, &ties)? {
            Some([keys, bound]) if !self.reaches_out(select)? => {
                let rows = self.remaining(side.plan, rest)?;
                Bound { rows, keys, bound, nulls: NullEquality::NullEqualsNothing, shown: Vec::new() }
            }
            _ => self.cut_loose(plan, side, &outer, ties, rest)?,
        };
        let mut carried = bound.bound;
        let rows = self.select(select, bound.rows, number, None, &mut carried)?;
        let rows = self.first_of_each(query, rows, number, &carried)?;
        for key in bound.shown {
            self.stand_ins.remove(&key);
        }
        let keys = bound.keys.into_iter().zip(carried).collect();
        Ok(Tied { plan: rows, keys, filters: Vec::new(), near: None, nulls: bound.nulls })
    }

    /// The equations that tie a subquery, if nothing else does: the outer sides and the inner ones.
    fn equations(
        &mut self,
        select: &Select,
        ties: &[Conjunct<'t>],
    ) -> Result<Option<[Vec<Logical>; 2]>, Refused> {
        let own = self.own_relations(select);
        let (mut keys, mut bound) = (Vec::new(), Vec::new());
        for one in ties {
            let (inner, outer): (BTreeSet<u32>, BTreeSet<u32>) =
                one.relations.iter().copied().partition(|relation| own(*relation));
            let Some((out, within)) = equation(one.expr, &outer, &inner, self) else { return Ok(None) };
            keys.push(self.key(out)?);
            bound.push(self.key(within)?);
        }
        Ok((!keys.is_empty()).then_some([keys, bound]))
    }

    /// Whether something besides the conditions reads a column of a select further out.
    fn reaches_out(&self, select: &Select) -> Result<bool, Refused> {
        let arguments = select.aggregates.iter().flat_map(|one| &one.arguments);
        let others = select.keys.iter().chain(arguments).chain(&select.having).chain(&select.items);
        let own = self.own_relations(select);
        for one in others {
            if !self.relations(one)?.iter().all(|relation| own(*relation)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The columns of selects further out that a query in the present select reads.
    fn outer_columns(&self, query: &Query) -> Result<Vec<(u32, usize, Type, Logical)>, Refused> {
        let mut found: Vec<ColumnRef> = Vec::new();
        let mut types = Vec::new();
        walk::typed_columns_of_query(query, 0, &mut |level, at, ty| {
            if at.depth > level {
                let at = ColumnRef { depth: at.depth - level - 1, ..at };
                if !found.contains(&at) {
                    found.push(at);
                    types.push(ty);
                }
            }
        });
        let one = |(at, ty): (ColumnRef, Type)| {
            let relation = self.relation(at)?;
            Ok((relation, at.column as usize, ty, self.column(at)?))
        };
        found.into_iter().zip(types).map(one).collect()
    }

    /// The rows of a subquery for each combination of the outer columns.
    fn cut_loose(
        &mut self,
        plan: &LogicalPlan,
        side: Side,
        outer: &[(u32, usize, Type, Logical)],
        ties: Vec<Conjunct<'t>>,
        rest: Vec<Conjunct<'t>>,
    ) -> Result<Bound, Refused> {
        if is_volatile(plan) {
            return Err(Refused::Unsupported("a correlated subquery over rows that chance chose"));
        }
        let number = self.number(1)?;
        let key = |ty: Type, expr: &Logical| normal(expr.clone(), ty);
        let keys: Vec<Logical> = outer.iter().map(|(_, _, ty, expr)| key(*ty, expr)).collect();
        check_columns(&keys, &[plan])?;
        let columns = keys.iter().enumerate().map(|(at, key)| named(key.clone(), number, at)).collect();
        let combinations = distinct(project(columns, plan.clone())?, number, 0..keys.len())?;
        let mut shown = Vec::new();
        for (at, (relation, place, ..)) in outer.iter().enumerate() {
            if self.stand_ins.insert((*relation, *place), column(number, at)).is_none() {
                shown.push((*relation, *place));
            }
        }
        let relations = ties.iter().flat_map(|one| one.relations.iter().copied());
        let relations = relations.filter(|one| !side.relations.contains(one)).collect();
        let left = Side { plan: combinations, relations };
        let (on, mut later): (Vec<_>, Vec<_>) = ties.into_iter().partition(Conjunct::is_free);
        let joined = self.join(JoinType::Inner, left, side, &on)?;
        later.extend(rest);
        let rows = self.remaining(joined.plan, later)?;
        let bound = (0..keys.len()).map(|at| Logical::Column(column(number, at))).collect();
        Ok(Bound { rows, keys, bound, nulls: NullEquality::NullEqualsNull, shown })
    }

    /// TOP and OFFSET for each combination.
    fn first_of_each(
        &mut self,
        query: &Query,
        rows: LogicalPlan,
        number: u32,
        carried: &[Logical],
    ) -> Result<LogicalPlan, Refused> {
        let skip = query.offset.as_ref().map_or(Ok(0), count)?;
        let top = query.top.as_ref().map(count).transpose()?;
        if skip == 0 && top.is_none() {
            return Ok(rows);
        }
        let numbered = Logical::WindowFunction(Box::new(WindowFunction {
            fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
            params: WindowFunctionParams {
                args: Vec::new(),
                partition_by: carried.to_vec(),
                order_by: sort_keys(&query.order, &item_types(query), number),
                window_frame: WindowFrame::new(None),
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        }));
        let mut columns: Vec<Logical> = rows.schema().columns().into_iter().map(Logical::Column).collect();
        let plan = LogicalPlan::Window(Window::try_new(vec![numbered], Arc::new(rows))?);
        let place =
            plan.schema().columns().pop().ok_or_else(|| QueryError::internal("a window without a column"))?;
        let place = Logical::Column(place);
        let mut wanted = place.clone().gt(lit(skip));
        if let Some(top) = top {
            wanted = wanted.and(place.lt_eq(lit(top.saturating_add(skip))));
        }
        let plan = LogicalPlan::Filter(Filter::try_new(wanted, Arc::new(plan))?);
        columns.dedup();
        project(columns, plan)
    }

    /// Joins the value of a correlated subquery.
    pub(super) fn correlated_value(
        &mut self,
        plan: LogicalPlan,
        query: &'t Query,
    ) -> Result<(LogicalPlan, Logical), Refused> {
        let number = self.number(2)?;
        let result = number + 1;
        let tied = self.bound(&plan, query, number)?;
        let item = Logical::Column(column(number, 0));
        let mut columns: Vec<Logical> = Vec::new();
        let mut keys = Vec::new();
        for (out, within) in tied.keys {
            let place = columns.len() + 2;
            columns.push(named(within, result, place));
            keys.push((out, Logical::Column(column(result, place))));
        }
        let (right, without) = match whole_table(query) {
            // One row for each combination that has rows at all.
            Some(select) => {
                columns.push(named(item, result, 0));
                columns.push(named(lit(1i64), result, 1));
                (project(columns, tied.plan)?, self.without_rows(select)?)
            }
            None => (counted(columns, item, tied.plan, result)?, None),
        };
        check_columns(keys.iter().map(|key| &key.0), &[&plan])?;
        let (left, right) = (Arc::new(plan), Arc::new(right));
        let on = JoinConstraint::On;
        let join = Joining::try_new(left, right, keys, None, JoinType::Left, on, tied.nulls, false)?;
        let value = Logical::Column(column(result, 0));
        let rows = Logical::Column(column(result, 1));
        Ok((LogicalPlan::Join(join), only(value, rows, without)))
    }
}

impl Translator<'_> {
    /// What an aggregate of all rows is where there are none: NULL, or what a count of 0 makes of it.
    fn without_rows(&mut self, select: &Select) -> Result<Option<Logical>, Refused> {
        let nothing = |expr: &Expr| {
            let expr = without(expr, select);
            let known = lift::is_constant(&expr);
            known.then_some(expr).ok_or(Refused::Unsupported("an aggregate of nothing and an outer column"))
        };
        let Some(having) = &select.having else {
            let item =
                select.items.first().ok_or_else(|| QueryError::internal("a subquery without an item"))?;
            let counts = select.aggregates.iter().any(|one| one.aggregator == Aggregator::Count);
            // Without a count it is NULL in nearly all cases, but COALESCE may make something of that.
            let plain = matches!(item.kind, Kind::Aggregate(_)) && !counts;
            return if plain { Ok(None) } else { self.expr(&nothing(item)?).map(Some) };
        };
        // A group that HAVING left out and one without rows look the same from outside.
        self.reusable = false;
        let kept = super::expr::constant(&nothing(having)?)?;
        if ScalarValue::try_from_array(&kept, 0)? == ScalarValue::Boolean(Some(true)) {
            return Err(Refused::Unsupported("HAVING that an aggregate of nothing fulfils"));
        }
        Ok(None)
    }
}

/// A subquery's rows with the values that tie them.
struct Bound {
    rows: LogicalPlan,
    /// Over the plan around it.
    keys: Vec<Logical>,
    /// Over the rows.
    bound: Vec<Logical>,
    nulls: NullEquality,
    /// The stand-ins that are to be forgotten afterwards.
    shown: Vec<(u32, usize)>,
}

/// Whether computing the plan again may give other rows.
fn is_volatile(plan: &LogicalPlan) -> bool {
    use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
    let mut found = false;
    let visited = plan.apply(|node| {
        found |= matches!(node, LogicalPlan::Limit(_)) || node.expressions().iter().any(chance);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || visited.is_err()
}

fn chance(expr: &Logical) -> bool {
    use datafusion::common::tree_node::TreeNode as _;
    expr.exists(|one| Ok(crate::query::source::function(one).is_some_and(|one| lift::is_volatile(&one.expr))))
        .unwrap_or(true)
}

/// The select of a query that aggregates all its rows into one.
fn whole_table(query: &Query) -> Option<&Select> {
    match &query.body {
        Body::Select(select) if select.grouped && select.keys.is_empty() => Some(select),
        _ => None,
    }
}

/// The expression with its aggregates as they are without rows.
fn without(expr: &Expr, select: &Select) -> Expr {
    if let Kind::Aggregate(index) = &expr.kind {
        let counts = select.aggregates.get(*index).is_some_and(|one| one.aggregator == Aggregator::Count);
        let value = if counts { Value::Integer(0) } else { Value::Null };
        return Expr { kind: Kind::Literal(Literal { value, slot: None }), ty: expr.ty };
    }
    let mapped: Result<Expr, std::convert::Infallible> =
        walk::map_operands(expr, &mut |one| Ok(without(one, select)));
    match mapped {
        Ok(expr) => expr,
        Err(never) => match never {},
    }
}

/// For each combination of keys the first value and how many there are.
fn counted(
    keys: Vec<Logical>,
    item: Logical,
    plan: LogicalPlan,
    result: u32,
) -> Result<LogicalPlan, Refused> {
    let mut columns = keys;
    let places: Vec<Logical> = (0..columns.len()).map(|at| Logical::Column(column(result, at + 2))).collect();
    columns.push(named(item, result, 0));
    let plan = project(columns, plan)?;
    let value = Logical::Column(column(result, 0));
    let first = AggregateFunction::new_udf(first_value_udaf(), vec![value], false, None, Vec::new(), None);
    let rows =
        Aggregate { aggregator: Aggregator::Count, arguments: Vec::new(), distinct: false, ty: Type::Long };
    let calls = vec![
        Logical::AggregateFunction(first).alias_qualified(Some(super::qualifier(result)), "first"),
        named(aggregate::call(&rows, Vec::new()), result, 1),
    ];
    let grouping = LogicalPlan::Aggregate(Grouping::try_new(Arc::new(plan), places.clone(), calls)?);
    let mut columns = places;
    let first = Logical::Column(Column::new(Some(super::qualifier(result)), "first"));
    columns.push(named(first, result, 0));
    columns.push(Logical::Column(column(result, 1)));
    project(columns, grouping)
}
