//! SELECT: from its relations to its items; and what a query adds around it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate as Grouping, Expr as Logical, Extension, Filter, Limit, LogicalPlan, Sort, SortExpr, lit,
};
use trifid_archive_adql::functions::Aggregator;
use trifid_archive_adql::tree::{Body, Expr, Literal, OrderKey, Query, Select, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;

use super::from::Conjunct;
use super::{Refused, Scope, Translator, column, is_null_type, named, project};
use crate::query::aggregate;
use crate::query::fallible::is_fallible;
use crate::query::normal::normal;
use crate::query::sift::Sift;

impl<'t> Translator<'t> {
    /// A query's plan: its columns are those of relation `number`, only the `used` ones if that is said.
    pub(super) fn query(
        &mut self,
        query: &'t Query,
        number: u32,
        used: Option<&BTreeSet<usize>>,
        limit: Option<u64>,
    ) -> Result<LogicalPlan, Refused> {
        let shown = query.fields.len();
        let mut kept: Option<BTreeSet<usize>> = used.cloned();
        if let Some(kept) = &mut kept {
            kept.extend(query.order.iter().map(|key| key.item));
        }
        let plan = match &query.body {
            Body::Select(select) => {
                self.enter(select)?;
                let plan = self.rows(select)?;
                self.select(select, plan, number, kept.as_ref(), &mut [])?
            }
            Body::Set { operator, all, left, right } => self.set(*operator, *all, [left, right], number)?,
        };
        let plan = self.ordered(query, plan, number, limit)?;
        if !query.order.iter().any(|key| key.item >= shown) {
            return Ok(plan);
        }
        let wanted = |place: &usize| used.is_none_or(|used| used.contains(place));
        let columns = (0..shown).filter(wanted).map(|place| Logical::Column(column(number, place)));
        project(columns.collect(), plan)
    }

    fn ordered(
        &mut self,
        query: &Query,
        plan: LogicalPlan,
        number: u32,
        limit: Option<u64>,
    ) -> Result<LogicalPlan, Refused> {
        let skip = query.offset.as_ref().map_or(Ok(0), count)?;
        let top = query.top.as_ref().map(count).transpose()?;
        let fetch = match (top, limit) {
            (Some(top), Some(limit)) => Some(top.min(limit)),
            (one, other) => one.or(other),
        };
        let mut plan = plan;
        let keys = sort_keys(&query.order, &item_types(query), number);
        if !keys.is_empty() {
            let fetch =
                fetch.map(|fetch| fetch.saturating_add(skip)).and_then(|all| usize::try_from(all).ok());
            plan = LogicalPlan::Sort(Sort { expr: keys, input: Arc::new(plan), fetch });
        }
        if skip == 0 && fetch.is_none() {
            return Ok(plan);
        }
        let rows = |count: u64| Box::new(lit(i64::try_from(count).unwrap_or(i64::MAX)));
        Ok(LogicalPlan::Limit(Limit {
            skip: (skip > 0).then(|| rows(skip)),
            fetch: fetch.map(rows),
            input: Arc::new(plan),
        }))
    }

    /// From the rows of a select to its items, hidden ones too, as the columns of relation `number`. What is `bound`
    /// comes along: rows are grouped by it and told apart by it; it follows the items. Leaves the select.
    pub(super) fn select(
        &mut self,
        select: &'t Select,
        rows: LogicalPlan,
        number: u32,
        used: Option<&BTreeSet<usize>>,
        bound: &mut [Logical],
    ) -> Result<LogicalPlan, Refused> {
        let plan = if select.grouped { self.group(select, rows, bound)? } else { rows };
        let plan = self.items(select, plan, number, used, bound)?;
        self.scopes.pop();
        Ok(plan)
    }

    /// Begins a select: its leaves get their numbers.
    pub(super) fn enter(&mut self, select: &'t Select) -> Result<(), Refused> {
        let base = self.number(select.relations.len())?;
        self.scopes.push(Scope { select, base, group: None });
        Ok(())
    }

    /// The rows that a select works on: FROM and WHERE.
    fn rows(&mut self, select: &'t Select) -> Result<LogicalPlan, Refused> {
        let conjuncts = self.conjuncts(select.filter.as_ref())?;
        let (side, left) = self.from(select, conjuncts)?;
        self.remaining(side.plan, left)
    }

    /// Which relations are leaves of the select.
    pub(super) fn own_relations(&self, select: &Select) -> impl Fn(u32) -> bool + use<> {
        let base = self.scopes.last().map_or(0, |scope| scope.base);
        let end = base + select.relations.len() as u32;
        move |relation| (base..end).contains(&relation)
    }

    /// Applies the conjuncts that the joins did not: first those that can do no harm, then subqueries, then what can
    /// fail, which waits until everything else has decided.
    pub(super) fn remaining(
        &mut self,
        plan: LogicalPlan,
        left: Vec<Conjunct<'t>>,
    ) -> Result<LogicalPlan, Refused> {
        let (easy, hard): (Vec<_>, Vec<_>) = left.into_iter().partition(|one| !one.fallible && !one.subquery);
        let conditions: Vec<&Expr> = easy.iter().map(|one| one.expr).collect();
        let mut plan = self.filter(plan, &conditions)?;
        let mut last = Vec::new();
        for one in hard {
            match self.semi_join(plan, one.expr)? {
                (joined, true) => plan = joined,
                (same, false) => {
                    plan = self.attach(same, one.expr)?;
                    last.push(one.expr);
                }
            }
        }
        self.filter(plan, &last)
    }

    /// The rows for which all conditions are true. If one can fail, the filter stays where it is put: below a join it
    /// would look at rows that do not matter.
    pub(super) fn filter(&mut self, plan: LogicalPlan, all: &[&Expr]) -> Result<LogicalPlan, Refused> {
        if all.is_empty() {
            return Ok(plan);
        }
        if all.iter().any(|one| is_fallible(one)) {
            let predicate = self.pinned(all)?;
            return stay(predicate, plan);
        }
        let conditions = all.iter().map(|one| self.expr(one)).collect::<Result<Vec<_>, _>>()?;
        let predicate =
            conjunction(conditions).ok_or_else(|| QueryError::internal("a filter without conditions"))?;
        check_columns([&predicate], &[&plan])?;
        Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?))
    }

    fn group(
        &mut self,
        select: &'t Select,
        plan: LogicalPlan,
        bound: &mut [Logical],
    ) -> Result<LogicalPlan, Refused> {
        let mut plan = plan;
        let arguments = || select.aggregates.iter().flat_map(|one| &one.arguments);
        for expr in select.keys.iter().chain(arguments()) {
            plan = self.attach(plan, expr)?;
        }
        let group = self.number(2)?;
        let input = group + 1;
        let mut columns = Vec::new();
        for key in &select.keys {
            let key = normal(self.expr(key)?, key.ty);
            columns.push(named(key, group, columns.len()));
        }
        let beyond = select.keys.len() + select.aggregates.len();
        for (at, expr) in bound.iter_mut().enumerate() {
            let place = Logical::Column(column(group, beyond + at));
            columns.push(named(std::mem::replace(expr, place), group, beyond + at));
        }
        let mut known: HashMap<Logical, usize> = HashMap::new();
        let mut calls = Vec::new();
        for (at, aggregate) in select.aggregates.iter().enumerate() {
            let mut places = Vec::new();
            for argument in &aggregate.arguments {
                let argument = self.expr(argument)?;
                let next = known.len();
                let place = *known.entry(argument.clone()).or_insert(next);
                if place == next {
                    columns.push(named(argument, input, place));
                }
                places.push(Logical::Column(column(input, place)));
            }
            self.ordered |= aggregate.aggregator == Aggregator::StringAgg;
            let call = aggregate::call(aggregate, places);
            calls.push(named(call, group, select.keys.len() + at));
        }
        let keys = (0..select.keys.len()).map(|place| Logical::Column(column(group, place)));
        let keys: Vec<_> = keys.chain(bound.iter().cloned()).collect();
        let plan = if columns.is_empty() { plan } else { project(columns, plan)? };
        let grouping = Grouping::try_new(Arc::new(plan), keys, calls)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.group = Some(group);
        }
        self.having(select, LogicalPlan::Aggregate(grouping))
    }

    fn having(&mut self, select: &'t Select, plan: LogicalPlan) -> Result<LogicalPlan, Refused> {
        let Some(having) = &select.having else { return Ok(plan) };
        let plan = self.attach(plan, having)?;
        self.filter(plan, &[having])
    }

    fn items(
        &mut self,
        select: &'t Select,
        plan: LogicalPlan,
        number: u32,
        used: Option<&BTreeSet<usize>>,
        bound: &mut [Logical],
    ) -> Result<LogicalPlan, Refused> {
        let used = used.filter(|_| !select.distinct);
        let wanted = |place: usize| used.is_none_or(|used| used.contains(&place));
        let items = || select.items.iter().enumerate().filter(|(place, _)| wanted(*place));
        let mut plan = plan;
        for (_, item) in items() {
            plan = self.attach(plan, item)?;
        }
        let mut columns = Vec::new();
        for (place, item) in items() {
            let expr = self.expr(item)?;
            let expr = if select.distinct { normal(expr, item.ty) } else { expr };
            columns.push(named(expr, number, place));
        }
        let count = select.items.len();
        for (at, expr) in bound.iter_mut().enumerate() {
            let place = Logical::Column(column(number, count + at));
            columns.push(named(std::mem::replace(expr, place), number, count + at));
        }
        let plan = project(columns, plan)?;
        if select.distinct { distinct(plan, number, 0..count + bound.len()) } else { Ok(plan) }
    }
}

/// A filter that no planner moves.
pub(super) fn stay(predicate: Logical, plan: LogicalPlan) -> Result<LogicalPlan, Refused> {
    check_columns([&predicate], &[&plan])?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(Sift { predicate, input: plan }) }))
}

/// Equal rows once; reals are in their one form.
pub(super) fn distinct(
    plan: LogicalPlan,
    number: u32,
    places: std::ops::Range<usize>,
) -> Result<LogicalPlan, Refused> {
    let keys = places.map(|place| Logical::Column(column(number, place))).collect();
    Ok(LogicalPlan::Aggregate(Grouping::try_new(Arc::new(plan), keys, Vec::new())?))
}

/// ORDER BY over the columns of a relation: NULL above everything, NaN next, -0 as 0.
pub(super) fn sort_keys(order: &[OrderKey], types: &[Type], number: u32) -> Vec<SortExpr> {
    let keys = order.iter().filter_map(|key| {
        let ty = *types.get(key.item)?;
        let expr = normal(Logical::Column(column(number, key.item)), ty);
        (!is_null_type(ty)).then(|| SortExpr::new(expr, !key.descending, key.descending))
    });
    keys.collect()
}

/// The types of a query's items, hidden ones too.
pub(super) fn item_types(query: &Query) -> Vec<Type> {
    match &query.body {
        Body::Select(select) => select.items.iter().map(|item| item.ty).collect(),
        Body::Set { .. } => query.fields.iter().map(|field| field.ty).collect(),
    }
}

/// Whether the plans have the columns that expressions read. A subquery may reach for columns of a select further
/// out that are not there: then there is no plan of this form.
pub(super) fn check_columns<'e>(
    exprs: impl IntoIterator<Item = &'e Logical>,
    plans: &[&LogicalPlan],
) -> Result<(), Refused> {
    for expr in exprs {
        let there = |column: &&Column| plans.iter().any(|plan| plan.schema().has_column(column));
        if !expr.column_refs().iter().all(there) {
            return Err(Refused::Unsupported("a column of a select further out in this place"));
        }
    }
    Ok(())
}

/// A number of rows.
pub(super) fn count(literal: &Literal) -> Result<u64, QueryError> {
    match literal.value {
        Value::Integer(count) if count >= 0 => Ok(count as u64),
        _ => Err(QueryError::invalid("TOP and OFFSET want a whole number that is not negative")),
    }
}
