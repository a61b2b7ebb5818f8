//! FROM and WHERE: conditions sink to the leaves, and the leaves are joined by the conditions that are left.
//!
//! Inner joins and commas are one thing: a number of sides and a number of conditions. Sides that an equation
//! connects are joined first, in the order of the text, then those that lie near each other on the sky ([`near`]),
//! then the rest. An outer join is a side of its own; a condition of WHERE that no row without a partner can fulfil
//! makes it an inner one.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::{JoinType, NullEquality};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr as Logical, Filter, Join as Joining, JoinConstraint, LogicalPlan, TableScanBuilder,
};
use trifid_archive_adql::lift::{self, used_columns};
use trifid_archive_adql::tree::{Body, Comparison, Expr, Join, JoinKind, Kind, Query, Relation, Select};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;

use super::near::{Near, bucket_join, may_be_near};
use super::select::{check_columns, stay};
use super::{Refused, Translator, is_null_type, one_row, qualifier};
use crate::query::fallible::is_fallible;
use crate::query::normal::normal;
use crate::query::scalar::Failure;
use crate::query::source::Source;

/// A condition that must be true, and what matters about it.
#[derive(Clone)]
pub(super) struct Conjunct<'t> {
    pub(super) expr: &'t Expr,
    /// The leaves that it reads.
    pub(super) relations: BTreeSet<u32>,
    /// Whether it can fail in a row.
    pub(super) fallible: bool,
    /// Whether it holds a subquery that is not run beforehand.
    pub(super) subquery: bool,
    /// Whether it differs from one evaluation to the next.
    pub(super) volatile: bool,
}

impl Conjunct<'_> {
    /// Whether it may be computed as soon as its columns are there.
    pub(super) const fn is_free(&self) -> bool {
        !self.fallible && !self.subquery && !self.volatile
    }

    fn within(&self, relations: &BTreeSet<u32>) -> bool {
        self.relations.is_subset(relations)
    }
}

/// Rows that some leaves give together.
pub(super) struct Side {
    pub(super) plan: LogicalPlan,
    pub(super) relations: BTreeSet<u32>,
}

impl<'t> Translator<'t> {
    /// The conjuncts of a condition.
    pub(super) fn conjuncts(&mut self, condition: Option<&'t Expr>) -> Result<Vec<Conjunct<'t>>, Refused> {
        condition.into_iter().flat_map(lift::conjuncts).map(|one| self.conjunct(one)).collect()
    }

    fn conjunct(&mut self, expr: &'t Expr) -> Result<Conjunct<'t>, Refused> {
        self.run_beforehand(expr)?;
        let subquery = lift::any(expr, &mut |one| lift::subquery(one).is_some() && !self.is_attached(one));
        Ok(Conjunct {
            expr,
            relations: self.relations(expr)?,
            fallible: is_fallible(expr),
            subquery,
            volatile: lift::is_volatile(expr),
        })
    }

    /// The rows of FROM under these conditions, and the conditions that were not applied.
    pub(super) fn from(
        &mut self,
        select: &'t Select,
        mut conjuncts: Vec<Conjunct<'t>>,
    ) -> Result<(Side, Vec<Conjunct<'t>>), Refused> {
        let Some(from) = &select.from else {
            return Ok((Side { plan: one_row(), relations: BTreeSet::new() }, conjuncts));
        };
        let used = used_columns(select);
        let mut building = Building { select, used, base: self.scopes.last().map_or(0, |scope| scope.base) };
        let side = self.side(&mut building, from, &mut conjuncts)?;
        Ok((side, conjuncts))
    }

    /// A part of FROM; conditions that it applies are taken out.
    fn side(
        &mut self,
        building: &mut Building<'t>,
        join: &'t Join,
        conjuncts: &mut Vec<Conjunct<'t>>,
    ) -> Result<Side, Refused> {
        match join {
            Join::Leaf(leaf) => self.table(building, *leaf, conjuncts),
            Join::Pair { kind, left, right, on } => {
                let outer = self.outer(building, *kind, left, right, on.as_ref(), conjuncts)?;
                match outer {
                    Some(side) => Ok(side),
                    None => self.inner(building, join, conjuncts),
                }
            }
        }
    }

    /// Sides that inner joins connect, joined.
    fn inner(
        &mut self,
        building: &mut Building<'t>,
        join: &'t Join,
        conjuncts: &mut Vec<Conjunct<'t>>,
    ) -> Result<Side, Refused> {
        let mut parts = Vec::new();
        self.parts(building, join, &mut parts, conjuncts)?;
        let mut sides = Vec::new();
        for part in parts {
            sides.push(self.side(building, part, conjuncts)?);
        }
        self.connect(sides, conjuncts)
    }

    fn parts(
        &mut self,
        building: &Building<'t>,
        join: &'t Join,
        parts: &mut Vec<&'t Join>,
        conjuncts: &mut Vec<Conjunct<'t>>,
    ) -> Result<(), Refused> {
        match join {
            Join::Pair { kind, left, right, on } if building.is_inner(*kind, left, right, conjuncts) => {
                self.parts(building, left, parts, conjuncts)?;
                self.parts(building, right, parts, conjuncts)?;
                conjuncts.extend(self.conjuncts(on.as_ref())?);
            }
            _ => parts.push(join),
        }
        Ok(())
    }

    /// An outer join; `None` if it is none.
    fn outer(
        &mut self,
        building: &mut Building<'t>,
        kind: JoinKind,
        left: &'t Join,
        right: &'t Join,
        on: Option<&'t Expr>,
        conjuncts: &mut Vec<Conjunct<'t>>,
    ) -> Result<Option<Side>, Refused> {
        if building.is_inner(kind, left, right, conjuncts) {
            return Ok(None);
        }
        let (left, right) = if kind == JoinKind::Right { (right, left) } else { (left, right) };
        let on = self.conjuncts(on)?;
        if on.iter().any(|one| one.subquery) {
            return Err(Refused::Unsupported("a subquery in the condition of an outer join"));
        }
        if kind == JoinKind::Full {
            let left = self.side(building, left, &mut Vec::new())?;
            let right = self.side(building, right, &mut Vec::new())?;
            return self.join(JoinType::Full, left, right, &on).map(Some);
        }
        // WHERE holds for the rows of the left whatever their partners are; ON may choose among those of the right.
        let (mut for_left, above) = split(conjuncts, &building.leaves(left));
        let left = self.side(building, left, &mut for_left)?;
        *conjuncts = above;
        conjuncts.append(&mut for_left);
        let mut on = on;
        let (mut for_right, mut rest) = split(&mut on, &building.leaves(right));
        let right = self.side(building, right, &mut for_right)?;
        rest.append(&mut for_right);
        self.join(JoinType::Left, left, right, &rest).map(Some)
    }

    /// A leaf under the conditions that are about it alone.
    fn table(
        &mut self,
        building: &mut Building<'t>,
        leaf: usize,
        conjuncts: &mut Vec<Conjunct<'t>>,
    ) -> Result<Side, Refused> {
        let number = building.base + leaf as u32;
        let relations = BTreeSet::from([number]);
        let relation = building.select.relations.get(leaf);
        let relation = relation.ok_or_else(|| QueryError::internal("FROM names a leaf that is not there"))?;
        let plan = match relation {
            Relation::Table(_) => None,
            Relation::Query(query) => Some(self.derived(query, number, &building.used[leaf])?),
        };
        let shaky = match relation {
            Relation::Query(query) => fallible_columns(query),
            Relation::Table(_) => BTreeSet::new(),
        };
        let (mut conditions, mut above) = (Vec::new(), Vec::new());
        let mut kept = Vec::new();
        for one in conjuncts.drain(..) {
            // One without columns decides for all rows; it is cheapest here.
            if !one.within(&relations) || one.subquery || one.volatile && plan.is_some() {
                kept.push(one);
                continue;
            }
            let alone = building.select.relations.len() == 1 && plan.is_none();
            if one.fallible && !alone {
                conditions.push(self.expr_with(one.expr, Failure::Defer)?);
                kept.push(one);
            } else if reads(one.expr, &shaky) {
                // Within the derived table it would look at rows that do not come out of it.
                above.push(one.expr);
            } else {
                conditions.push(self.expr(one.expr)?);
            }
        }
        *conjuncts = kept;
        let plan = match (plan, relation) {
            (Some(plan), _) => {
                let plan = sift(plan, conditions)?;
                if above.is_empty() { plan } else { stay(self.pinned(&above)?, plan)? }
            }
            (None, Relation::Table(table)) => {
                let found = self.tables.get(&table.schema, &table.table);
                let found = found.ok_or_else(|| QueryError::internal("a table is gone"))?;
                let source = Arc::new(Source::new(found.clone()));
                self.rows = self.rows.saturating_add(found.rows());
                let columns = building.columns(leaf, found.head.fields.len());
                LogicalPlan::TableScan(
                    TableScanBuilder::new(qualifier(number), source)
                        .with_projection(Some(columns))
                        .with_filters(conditions)
                        .build()?,
                )
            }
            (None, Relation::Query(_)) => {
                return Err(QueryError::internal("a derived table without a plan").into());
            }
        };
        Ok(Side { plan, relations })
    }

    fn derived(
        &mut self,
        query: &'t Query,
        number: u32,
        used: &BTreeSet<u32>,
    ) -> Result<LogicalPlan, Refused> {
        let mut used: BTreeSet<usize> = used.iter().map(|column| *column as usize).collect();
        if used.is_empty() {
            used.insert(0);
        }
        self.query(query, number, Some(&used), None)
    }

    /// All sides as one.
    fn connect(&mut self, sides: Vec<Side>, conjuncts: &mut Vec<Conjunct<'t>>) -> Result<Side, Refused> {
        let mut waiting: std::collections::VecDeque<Side> = sides.into();
        let mut done: Vec<Side> = Vec::new();
        while let Some(mut side) = waiting.pop_front() {
            while let Some(next) = connected(&side, &waiting, conjuncts) {
                let other = waiting.remove(next).ok_or_else(|| QueryError::internal("a side is gone"))?;
                side = self.join_inner(side, other, conjuncts)?;
            }
            done.push(side);
        }
        let mut done = done.into_iter();
        let mut whole = done.next().ok_or_else(|| QueryError::internal("FROM without a leaf"))?;
        for side in done {
            whole = self.join_inner(whole, side, conjuncts)?;
        }
        Ok(whole)
    }

    fn join_inner(
        &mut self,
        left: Side,
        right: Side,
        conjuncts: &mut Vec<Conjunct<'t>>,
    ) -> Result<Side, Refused> {
        let both: BTreeSet<u32> = left.relations.union(&right.relations).copied().collect();
        let (usable, rest): (Vec<_>, Vec<_>) = conjuncts.drain(..).partition(|one| {
            one.within(&both) && (one.is_free() || one.fallible && !one.subquery && !one.volatile)
        });
        *conjuncts = rest;
        // What can fail waits above; as a key it fails for no partner.
        let is_key =
            |one: &Conjunct<'_>| equation(one.expr, &left.relations, &right.relations, self).is_some();
        let (on, above): (Vec<_>, Vec<_>) = usable.into_iter().partition(|one| !one.fallible || is_key(one));
        conjuncts.extend(above);
        self.join(JoinType::Inner, left, right, &on)
    }

    /// Two sides joined under conditions.
    pub(super) fn join(
        &mut self,
        kind: JoinType,
        left: Side,
        right: Side,
        on: &[Conjunct<'t>],
    ) -> Result<Side, Refused> {
        let relations = match kind {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.relations.clone(),
            _ => left.relations.union(&right.relations).copied().collect(),
        };
        if let Some(plan) = self.near_join(kind, &left, &right, on)? {
            return Ok(Side { plan, relations });
        }
        let mut keys = Vec::new();
        let mut rest = Vec::new();
        for one in on {
            match equation(one.expr, &left.relations, &right.relations, self) {
                Some((l, r)) => keys.push((self.key(l)?, self.key(r)?)),
                None => rest.push(one.expr),
            }
        }
        let filter = if rest.is_empty() { None } else { Some(self.join_filter(&rest)?) };
        check_columns(keys.iter().map(|key| &key.0), &[&left.plan])?;
        check_columns(keys.iter().map(|key| &key.1), &[&right.plan])?;
        check_columns(&filter, &[&left.plan, &right.plan])?;
        let plan = Joining::try_new(
            Arc::new(left.plan),
            Arc::new(right.plan),
            keys,
            filter,
            kind,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        Ok(Side { plan: LogicalPlan::Join(plan), relations })
    }

    pub(super) fn join_filter(&mut self, rest: &[&Expr]) -> Result<Logical, Refused> {
        if rest.iter().any(|one| is_fallible(one)) {
            return self.pinned(rest);
        }
        let all = rest.iter().map(|one| self.expr(one)).collect::<Result<Vec<_>, _>>()?;
        conjunction(all).ok_or_else(|| QueryError::internal("a join without a condition").into())
    }

    pub(super) fn key(&mut self, expr: &Expr) -> Result<Logical, Refused> {
        Ok(normal(self.expr_with(expr, Failure::Defer)?, expr.ty))
    }

    fn near_join(
        &mut self,
        kind: JoinType,
        left: &Side,
        right: &Side,
        on: &[Conjunct<'t>],
    ) -> Result<Option<LogicalPlan>, Refused> {
        let sides = |expr: &Expr| self.relations(expr).ok();
        let found = on.iter().find_map(|one| Near::of(one.expr, &left.relations, &right.relations, &sides));
        let Some(found) = found else { return Ok(None) };
        let keyed =
            on.iter().any(|one| equation(one.expr, &left.relations, &right.relations, self).is_some());
        if keyed && !found.is_close() {
            return Ok(None);
        }
        let whole: Vec<&Expr> = on.iter().map(|one| one.expr).collect();
        let place = self.near_place(&found, &whole)?;
        bucket_join(kind, &left.plan, &right.plan, place).map(Some)
    }

    /// Whether two values are equal is asked: each from one side.
    pub(super) fn side_of(&self, expr: &Expr, side: &BTreeSet<u32>) -> bool {
        self.relations(expr).is_ok_and(|relations| !relations.is_empty() && relations.is_subset(side))
    }
}

/// What is needed while the sides of one FROM are built.
struct Building<'t> {
    select: &'t Select,
    used: Vec<BTreeSet<u32>>,
    base: u32,
}

impl<'t> Building<'t> {
    fn leaves(&self, join: &Join) -> BTreeSet<u32> {
        let mut all = BTreeSet::new();
        leaves(join, self.base, &mut all);
        all
    }

    /// Whether no row without a partner can come out, as `conjuncts` hold above.
    fn is_inner(&self, kind: JoinKind, left: &Join, right: &Join, conjuncts: &[Conjunct<'t>]) -> bool {
        let optional = match kind {
            JoinKind::Inner => return true,
            JoinKind::Left => self.leaves(right),
            JoinKind::Right => self.leaves(left),
            JoinKind::Full => return false,
        };
        conjuncts.iter().any(|one| !one.subquery && self.refuses_nulls(one.expr, &optional))
    }

    /// Whether the condition is not true where all columns of these leaves are NULL.
    fn refuses_nulls(&self, expr: &Expr, leaves: &BTreeSet<u32>) -> bool {
        match &expr.kind {
            Kind::Compare(_, left, right) => self.is_null(left, leaves) || self.is_null(right, leaves),
            Kind::Between(value, low, high) => {
                [value, low, high].into_iter().any(|one| self.is_null(one, leaves))
            }
            Kind::InList(value, _) => self.is_null(value, leaves),
            Kind::Like { value, pattern, .. } => self.is_null(value, leaves) || self.is_null(pattern, leaves),
            Kind::Not(inner) => match &inner.kind {
                Kind::IsNull(value) => self.is_null(value, leaves),
                _ => false,
            },
            Kind::And(all) => all.iter().any(|one| self.refuses_nulls(one, leaves)),
            Kind::Or(all) => all.iter().all(|one| self.refuses_nulls(one, leaves)),
            _ => false,
        }
    }

    /// Whether the value is NULL where all columns of these leaves are.
    fn is_null(&self, expr: &Expr, leaves: &BTreeSet<u32>) -> bool {
        match &expr.kind {
            Kind::Column(column) => {
                column.depth == 0 && leaves.contains(&(self.base + u32::from(column.relation)))
            }
            Kind::Arithmetic(_, left, right) => self.is_null(left, leaves) || self.is_null(right, leaves),
            Kind::Negate(inner) | Kind::Cast(inner) => self.is_null(inner, leaves),
            _ => false,
        }
    }

    /// The columns of a table that are read; the first where none is, for there must be rows.
    fn columns(&self, leaf: usize, count: usize) -> Vec<usize> {
        let used = &self.used[leaf];
        if used.is_empty() && self.select.relations.len() > 1 && count > 0 {
            return vec![0];
        }
        used.iter().map(|column| *column as usize).collect()
    }
}

fn leaves(join: &Join, base: u32, all: &mut BTreeSet<u32>) {
    match join {
        Join::Leaf(leaf) => {
            all.insert(base + *leaf as u32);
        }
        Join::Pair { left, right, .. } => {
            leaves(left, base, all);
            leaves(right, base, all);
        }
    }
}

/// Takes out the conditions that are about these leaves alone.
fn split<'t>(
    conjuncts: &mut Vec<Conjunct<'t>>,
    leaves: &BTreeSet<u32>,
) -> (Vec<Conjunct<'t>>, Vec<Conjunct<'t>>) {
    conjuncts.drain(..).partition(|one| one.within(leaves) && !one.relations.is_empty() && !one.subquery)
}

/// The side that is best joined next: the first that an equation connects, else the first that lies near.
fn connected(
    side: &Side,
    others: &std::collections::VecDeque<Side>,
    conjuncts: &[Conjunct<'_>],
) -> Option<usize> {
    let crosses = |one: &Conjunct<'_>, other: &Side| {
        let in_both =
            |relation: &u32| side.relations.contains(relation) || other.relations.contains(relation);
        one.relations.iter().all(in_both)
            && one.relations.iter().any(|relation| side.relations.contains(relation))
            && one.relations.iter().any(|relation| other.relations.contains(relation))
    };
    let by = |is: fn(&Expr) -> bool| {
        others.iter().position(|other| conjuncts.iter().any(|one| is(one.expr) && crosses(one, other)))
    };
    by(|expr| matches!(expr.kind, Kind::Compare(Comparison::Equal, ..)))
        .or_else(|| by(may_be_near))
        .or_else(|| by(|_| true))
}

/// The two sides of an equation between the left and the right.
pub(super) fn equation<'e>(
    expr: &'e Expr,
    left: &BTreeSet<u32>,
    right: &BTreeSet<u32>,
    translator: &Translator<'_>,
) -> Option<(&'e Expr, &'e Expr)> {
    let Kind::Compare(Comparison::Equal, one, other) = &expr.kind else { return None };
    let plain = !lift::is_volatile(expr) && !lift::has_query(expr);
    if !plain || is_null_type(one.ty) || matches!(one.ty, Type::Array(_)) {
        return None;
    }
    if translator.side_of(one, left) && translator.side_of(other, right) {
        return Some((one, other));
    }
    (translator.side_of(other, left) && translator.side_of(one, right)).then_some((other, one))
}

/// The columns of a query that can fail to be computed in a row.
fn fallible_columns(query: &Query) -> BTreeSet<u32> {
    let select = match &query.body {
        Body::Set { left, right, .. } => return &fallible_columns(left) | &fallible_columns(right),
        Body::Select(select) => select,
    };
    let derived: Vec<BTreeSet<u32>> = select.relations.iter().map(of_relation).collect();
    let fails = |expr: &Expr| {
        let mut shaky = is_fallible(expr);
        lift::each_column(expr, 0, &mut |column| {
            let of = derived.get(usize::from(column.relation));
            shaky |= of.is_some_and(|of| of.contains(&column.column));
        });
        shaky
    };
    let item = |item: &Expr| match &item.kind {
        Kind::Key(key) => select.keys.get(*key).is_some_and(fails),
        _ => fails(item),
    };
    (0u32..).zip(&select.items).filter(|(_, one)| item(one)).map(|(at, _)| at).collect()
}

fn of_relation(relation: &Relation) -> BTreeSet<u32> {
    match relation {
        Relation::Query(query) => fallible_columns(query),
        Relation::Table(_) => BTreeSet::new(),
    }
}

/// Whether an expression reads one of these columns.
fn reads(expr: &Expr, columns: &BTreeSet<u32>) -> bool {
    let mut found = false;
    lift::each_column(expr, 0, &mut |column| found |= columns.contains(&column.column));
    found
}

/// The rows for which all conditions are true.
fn sift(plan: LogicalPlan, conditions: Vec<Logical>) -> Result<LogicalPlan, Refused> {
    match conjunction(conditions) {
        None => Ok(plan),
        Some(all) => Ok(LogicalPlan::Filter(Filter::try_new(all, Arc::new(plan))?)),
    }
}
