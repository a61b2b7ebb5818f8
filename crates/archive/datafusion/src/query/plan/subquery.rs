//! Subqueries as joins.
//!
//! - One that depends on nothing around it and is a value or a question whether there are rows is run beforehand.
//! - EXISTS and IN as a condition of their own are semi and anti joins; the conditions that tie the subquery to the
//!   select around it are the join's.
//! - Within an expression they are a column that says whether there is a partner (a mark join); IN then tells
//!   apart "no" and "unknown" by two more questions.
//! - A correlated subquery used as a value is grouped by what ties it ([`super::bound`]) and joined.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr as Logical, Filter, Join as Joining, JoinConstraint, LogicalPlan};
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{Body, ColumnRef, Expr, Kind, Literal, Query, Select, Value as Plain};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::eval::Context;

use super::from::{Conjunct, equation};
use super::near::{Near, Place, bucket_join};
use super::select::{check_columns, count};
use super::{
    Planned, Refused, Take, Translator, Value, column, is_null_type, named, placeholder, project, qualifier,
};
use crate::query::normal::normal;
use crate::query::scalar::{Failure, Scalar, argument};
use crate::query::walk;

/// The column by which a mark join says whether there is a partner.
const MARK: &str = "mark";

/// A subquery as the right side of a join.
pub(super) struct Tied {
    /// Its rows: columns of one relation, the subquery's own first.
    pub(super) plan: LogicalPlan,
    /// What is equal: an expression over the select around it and one over the subquery.
    pub(super) keys: Vec<(Logical, Logical)>,
    /// What else ties it.
    pub(super) filters: Vec<Logical>,
    /// Where its rows must lie; the condition is among the filters.
    pub(super) near: Option<Place>,
    /// Whether NULL ties to NULL.
    pub(super) nulls: NullEquality,
}

/// What an IN asks of a row.
enum Wanted<'t> {
    /// That its column equals the value.
    Equal(&'t Expr),
    /// That whether it does is unknown.
    Unknown(&'t Expr),
}

impl<'t> Wanted<'t> {
    const fn value(&self) -> &'t Expr {
        match self {
            Self::Equal(value) | Self::Unknown(value) => value,
        }
    }
}

impl<'t> Translator<'t> {
    /// Plans the subqueries of an expression that can be run before the plan it stands in.
    pub(super) fn run_beforehand(&mut self, expr: &'t Expr) -> Result<(), Refused> {
        for (one, query) in subqueries(expr) {
            let take = match &one.kind {
                Kind::Exists(_) => Take::Any,
                Kind::Scalar(_) => Take::Only,
                _ => continue,
            };
            if self.is_attached(one) || lift::is_correlated(query) {
                continue;
            }
            let planned = self.aside(query, Some(if take == Take::Any { 1 } else { 2 }))?;
            let value = self.value(planned, take, one.ty);
            self.put_attached(one, value);
        }
        Ok(())
    }

    /// A plan of its own.
    fn aside(&mut self, query: &'t Query, limit: Option<u64>) -> Result<Planned, Refused> {
        let mut apart = Translator::new(self.tables, self.seed);
        (apart.next, apart.places) = (self.next, self.places);
        let number = apart.number(1)?;
        let plan = apart.query(query, number, None, limit)?;
        (self.next, self.places) = (apart.next, apart.places);
        self.reusable &= apart.reusable;
        Ok(apart.planned(plan))
    }

    fn value(&mut self, planned: Planned, take: Take, ty: Type) -> Logical {
        self.values.push(Value { planned, take, ty });
        placeholder(self.values.len() - 1, ty)
    }

    /// Applies a conjunct that is EXISTS, NOT EXISTS or IN; says whether it was.
    pub(super) fn semi_join(
        &mut self,
        plan: LogicalPlan,
        conjunct: &'t Expr,
    ) -> Result<(LogicalPlan, bool), Refused> {
        let (kind, query, value) = match &conjunct.kind {
            Kind::Exists(query) => (JoinType::LeftSemi, query, None),
            Kind::InQuery(value, query) => (JoinType::LeftSemi, query, Some(&**value)),
            Kind::Not(inner) => match &inner.kind {
                Kind::Exists(query) => (JoinType::LeftAnti, query, None),
                _ => return Ok((plan, false)),
            },
            _ => return Ok((plan, false)),
        };
        let plan = match value {
            Some(value) => self.attach(plan, value)?,
            None => plan,
        };
        let number = self.number(1)?;
        Ok((self.partner_join(plan, kind, query, value.map(Wanted::Equal).as_ref(), number)?, true))
    }

    /// Joins what the subqueries of an expression need, so that it can be computed over the plan.
    pub(super) fn attach(&mut self, plan: LogicalPlan, expr: &'t Expr) -> Result<LogicalPlan, Refused> {
        self.run_beforehand(expr)?;
        let mut plan = plan;
        for (one, query) in subqueries(expr) {
            if self.is_attached(one) {
                continue;
            }
            let (joined, value) = match &one.kind {
                Kind::Exists(_) => self.mark(plan, query, None)?,
                Kind::InQuery(value, _) => self.contains(plan, value, query)?,
                _ => self.correlated_value(plan, query)?,
            };
            plan = joined;
            self.put_attached(one, value);
        }
        Ok(plan)
    }

    /// Joins a column that says whether a subquery has a row that is wanted.
    fn mark(
        &mut self,
        plan: LogicalPlan,
        query: &'t Arc<Query>,
        wanted: Option<&Wanted<'t>>,
    ) -> Result<(LogicalPlan, Logical), Refused> {
        let number = self.number(1)?;
        let plan = self.partner_join(plan, JoinType::LeftMark, query, wanted, number)?;
        // The join names its mark after the right side.
        Ok((plan, Logical::Column(Column::new(Some(qualifier(number)), MARK))))
    }

    /// IN within an expression: true, false or unknown.
    fn contains(
        &mut self,
        plan: LogicalPlan,
        value: &'t Expr,
        query: &'t Arc<Query>,
    ) -> Result<(LogicalPlan, Logical), Refused> {
        let (plan, found) = self.mark(plan, query, Some(&Wanted::Equal(value)))?;
        if lift::is_correlated(query) {
            let (plan, unknown) = self.mark(plan, query, Some(&Wanted::Unknown(value)))?;
            return Ok((plan, three_valued(found, unknown)));
        }
        let rows = self.aside(query, Some(1))?;
        let rows = self.value(rows, Take::Any, Type::Boolean);
        let nulls = self.null_rows(query)?;
        let nulls = self.value(nulls, Take::Any, Type::Boolean);
        let value = self.expr(value)?;
        Ok((plan, three_valued(found, nulls.or(rows.and(value.is_null())))))
    }

    /// A plan for the rows of a subquery whose column is NULL.
    fn null_rows(&mut self, query: &'t Query) -> Result<Planned, Refused> {
        let mut planned = self.aside(query, None)?;
        let first = planned.plan.schema().columns().into_iter().next();
        let first = first.ok_or_else(|| QueryError::internal("a subquery without a column"))?;
        let nulls = Filter::try_new(Logical::Column(first).is_null(), Arc::new(planned.plan))?;
        planned.plan = LogicalPlan::Filter(nulls);
        Ok(planned)
    }

    /// Joins a subquery for what its rows say about each row of the plan.
    fn partner_join(
        &mut self,
        plan: LogicalPlan,
        kind: JoinType,
        query: &'t Arc<Query>,
        wanted: Option<&Wanted<'t>>,
        number: u32,
    ) -> Result<LogicalPlan, Refused> {
        let value = wanted.map(|wanted| self.expr(wanted.value())).transpose()?;
        let mut tied = self.tied(&plan, query, number)?;
        if let (Some(value), Some(wanted)) = (value, wanted) {
            self.want(&mut tied, wanted, value, number)?;
        }
        if let (Some(near), true) = (&tied.near, tied.keys.is_empty()) {
            return bucket_join(kind, &plan, &tied.plan, near.clone());
        }
        check_columns(tied.keys.iter().map(|key| &key.0), &[&plan])?;
        check_columns(&tied.filters, &[&plan, &tied.plan])?;
        let filter = conjunction(tied.filters);
        let (left, right) = (Arc::new(plan), Arc::new(tied.plan));
        let join =
            Joining::try_new(left, right, tied.keys, filter, kind, JoinConstraint::On, tied.nulls, false)?;
        Ok(LogicalPlan::Join(join))
    }

    /// Adds what an IN asks.
    fn want(
        &mut self,
        tied: &mut Tied,
        wanted: &Wanted<'t>,
        value: Logical,
        number: u32,
    ) -> Result<(), Refused> {
        let ty = wanted.value().ty;
        if is_null_type(ty) {
            return Err(Refused::Unsupported("IN for a value without a type"));
        }
        let item = Logical::Column(column(number, 0));
        match wanted {
            Wanted::Unknown(_) => tied.filters.push(value.is_null().or(item.is_null())),
            Wanted::Equal(_) => {
                // NULL is in nothing, even where the tie lets NULL meet NULL.
                let there = Filter::try_new(item.clone().is_not_null(), Arc::new(tied.plan.clone()))?;
                tied.plan = LogicalPlan::Filter(there);
                tied.keys.push((normal(value, ty), normal(item, ty)));
            }
        }
        Ok(())
    }

    /// A subquery as the right side of a join, its columns those of relation `number`.
    fn tied(&mut self, plan: &LogicalPlan, query: &'t Arc<Query>, number: u32) -> Result<Tied, Refused> {
        if !lift::is_correlated(query) {
            let plan = self.query(query, number, None, None)?;
            let nulls = NullEquality::NullEqualsNothing;
            return Ok(Tied { plan, keys: Vec::new(), filters: Vec::new(), near: None, nulls });
        }
        if let Body::Select(select) = &query.body
            && !select.grouped
            && query.offset.as_ref().map_or(Ok(0), count)? == 0
            && query.top.as_ref().map_or(Ok(1), count)? > 0
            && let Some(tied) = self.plainly_tied(select, number)?
        {
            return Ok(tied);
        }
        self.bound(plan, query, number)
    }

    /// A subquery whose ties can all be conditions of the join; `None` if one holds a subquery itself.
    fn plainly_tied(&mut self, select: &'t Select, number: u32) -> Result<Option<Tied>, Refused> {
        self.enter(select)?;
        let conjuncts = self.conjuncts(select.filter.as_ref())?;
        let own = self.own_relations(select);
        let is_tie = |one: &Conjunct<'_>| !one.relations.iter().all(|relation| own(*relation));
        if conjuncts.iter().any(|one| one.subquery && is_tie(one)) {
            self.scopes.pop();
            return Ok(None);
        }
        let (side, left) = self.from(select, conjuncts)?;
        let (ties, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_tie);
        let rows = self.remaining(side.plan, rest)?;
        let tied = self.tie(select, rows, &ties, number)?;
        self.scopes.pop();
        Ok(Some(tied))
    }

    fn tie(
        &mut self,
        select: &'t Select,
        rows: LogicalPlan,
        ties: &[Conjunct<'t>],
        number: u32,
    ) -> Result<Tied, Refused> {
        let mut rows = rows;
        let own = self.own_relations(select);
        let inner = |one: &Conjunct<'_>| one.relations.iter().copied().filter(|one| own(*one)).collect();
        let outer = |one: &Conjunct<'_>| one.relations.iter().copied().filter(|one| !own(*one)).collect();
        let mut columns = Vec::new();
        if let Some(item) = select.items.first() {
            rows = self.attach(rows, item)?;
            columns.push(named(self.expr(item)?, number, 0));
        }
        let mut keys = Vec::new();
        let mut others = Vec::new();
        for one in ties {
            let Some((out, within)) = equation(one.expr, &outer(one), &inner(one), self) else {
                others.push(one);
                continue;
            };
            let place = columns.len();
            columns.push(named(self.key(within)?, number, place));
            keys.push((self.key(out)?, Logical::Column(column(number, place))));
        }
        // The other conditions see the subquery's columns under the names that they have at the join.
        let mut shown = Vec::new();
        for one in &others {
            self.show(one.expr, number, &mut columns, &mut shown)?;
        }
        let filters =
            others.iter().map(|one| self.join_filter(&[one.expr])).collect::<Result<Vec<_>, _>>()?;
        let near = match others.as_slice() {
            [one] => self.place(one.expr, &outer(one), &inner(one))?,
            _ => None,
        };
        for key in shown {
            self.stand_ins.remove(&key);
        }
        let plan = project(columns, rows)?;
        Ok(Tied { plan, keys, filters, near, nulls: NullEquality::NullEqualsNothing })
    }

    /// Puts the subquery's columns that a condition reads among those of relation `number`.
    fn show(
        &mut self,
        expr: &Expr,
        number: u32,
        columns: &mut Vec<Logical>,
        shown: &mut Vec<(u32, usize)>,
    ) -> Result<(), Refused> {
        let mut read = Vec::new();
        walk::columns(expr, 0, &mut |level, at| {
            if at.depth == level {
                read.push(ColumnRef { depth: 0, ..at });
            }
        });
        for at in read {
            let key = (self.relation(at)?, at.column as usize);
            if let std::collections::hash_map::Entry::Vacant(entry) = self.stand_ins.entry(key) {
                let place = columns.len();
                columns.push(named(Logical::Column(column(key.0, key.1)), number, place));
                entry.insert(column(number, place));
                shown.push(key);
            }
        }
        Ok(())
    }

    /// Where the partners of a row lie, if a condition says that they are near it.
    fn place(
        &mut self,
        expr: &Expr,
        left: &std::collections::BTreeSet<u32>,
        right: &std::collections::BTreeSet<u32>,
    ) -> Result<Option<Place>, Refused> {
        let sides = |expr: &Expr| self.relations(expr).ok();
        match Near::of(expr, left, right, &sides) {
            Some(near) => self.near_place(&near, &[expr]).map(Some),
            None => Ok(None),
        }
    }
}

/// The subqueries of an expression, the inner ones first; those within them are not entered.
fn subqueries(expr: &Expr) -> Vec<(&Expr, &Arc<Query>)> {
    fn collect<'t>(expr: &'t Expr, into: &mut Vec<(&'t Expr, &'t Arc<Query>)>) {
        lift::each_child(expr, &mut |one| collect(one, into));
        if let Some(query) = lift::subquery(expr) {
            into.push((expr, query));
        }
    }
    let mut all = Vec::new();
    collect(expr, &mut all);
    all
}

/// True where `found`, NULL where it is `unknown`, else false.
fn three_valued(found: Logical, unknown: Logical) -> Logical {
    let truth = |place| Expr { kind: Kind::Column(argument(place)), ty: Type::Boolean };
    let constant = |value| Expr { kind: Kind::Literal(Literal { value, slot: None }), ty: Type::Boolean };
    let branches = vec![(truth(0), constant(Plain::Boolean(true))), (truth(1), constant(Plain::Null))];
    let kind = Kind::Case { branches, otherwise: Box::new(constant(Plain::Boolean(false))) };
    let expr = Arc::new(Expr { kind, ty: Type::Boolean });
    Scalar::new(expr, Failure::Raise, Context::default()).call(vec![found, unknown])
}
