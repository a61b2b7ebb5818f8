//! Plans that are kept, and used again with other constants.
//!
//! Translating a tree and optimising the plan costs more than most queries take to run, so the optimised plan of a
//! tree is kept under the tree's number. Constants that stood in the text are in it with their slots, inside our
//! own functions, where no rule of DataFusion's can look at them, let alone fold them; a run puts its own in. What
//! a constant decides about the plan's form, the counts of TOP and OFFSET, is part of the key. The physical plan is
//! made anew: only then are the constants, and so the rows that the indexes leave, known.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr as Logical, LogicalPlan};
use quick_cache::sync::Cache;
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{Expr, Kind, Literal, Query, Slot, Value as Constant};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::backend::Run;

use super::plan::{Planned, Value};
use super::source::function;
use super::walk;
use crate::limits::PLANS_KEPT;

/// What a plan is kept under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    tree: u64,
    /// Of the catalogue's snapshot.
    generation: u64,
    limit: Option<u64>,
    /// TOP and OFFSET of all queries in it.
    counts: Box<[Option<i64>]>,
}

impl Key {
    /// The key of a run's plan; `None` if it is not to be kept.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let tree = run.plan?;
        let mut counts = Vec::new();
        walk::counts_of_query(&run.query, &mut |count| {
            counts.push(match count {
                Some(Literal { value: Constant::Integer(count), .. }) => Some(*count),
                _ => None,
            });
        });
        let generation = run.tables.snapshot.generation;
        Some(Self { tree, generation, limit: run.limit, counts: counts.into() })
    }
}

/// The plans that are kept.
pub(crate) struct Plans(Cache<Key, Arc<Planned>>);

impl Plans {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Cache::new(PLANS_KEPT))
    }

    /// The plan of a run with the run's constants and seed.
    pub(crate) fn get(&self, key: &Key, query: &Query, seed: u64) -> Result<Option<Planned>> {
        let Some(kept) = self.0.get(key) else { return Ok(None) };
        let mut constants = HashMap::new();
        walk::literals_of_query(query, &mut |literal, ty| {
            if let Some(slot) = literal.slot {
                constants.insert((slot, ty), &literal.value);
            }
        });
        bound(&kept, &constants, seed).map(Some)
    }

    /// Keeps a plan.
    pub(crate) fn put(&self, key: Key, planned: &Planned) {
        self.0.insert(key, Arc::new(planned.clone()));
    }
}

/// The constants of a query by where they stood and what they are taken for.
type Constants<'a> = HashMap<(Slot, Type), &'a Constant>;

fn bound(planned: &Planned, constants: &Constants<'_>, seed: u64) -> Result<Planned> {
    let value =
        |value: &Value| Ok(Value { planned: bound(&value.planned, constants, seed)?, ..value.clone() });
    let values = planned.values.iter().map(value).collect::<Result<_>>()?;
    Ok(Planned { plan: bound_plan(planned.plan.clone(), constants, seed)?, values, ..*planned })
}

fn bound_plan(plan: LogicalPlan, constants: &Constants<'_>, seed: u64) -> Result<LogicalPlan> {
    let expr = |expr: Logical| {
        let Some(ours) = function(&expr) else { return Ok(Transformed::no(expr)) };
        let chance = lift::is_volatile(&ours.expr);
        if !chance && !lift::has_slot(&ours.expr) {
            return Ok(Transformed::no(expr));
        }
        let tree = bound_expr(&ours.expr, constants).map_err(super::error::inward)?;
        let again = ours.with(tree, seed);
        Ok(Transformed::yes(match expr {
            Logical::ScalarFunction(call) => again.call(call.args),
            other => other,
        }))
    };
    let bound = plan.transform_up(|node| node.map_expressions(|one| one.transform_up(expr)))?;
    Ok(bound.data)
}

fn bound_expr(expr: &Expr, constants: &Constants<'_>) -> std::result::Result<Expr, QueryError> {
    let Kind::Literal(Literal { slot: Some(slot), .. }) = expr.kind else {
        return walk::map_operands(expr, &mut |one| bound_expr(one, constants));
    };
    let value = constants.get(&(slot, expr.ty));
    let value =
        value.ok_or_else(|| QueryError::internal("a kept plan has a constant that the query has not"))?;
    Ok(Expr { kind: Kind::Literal(Literal { value: (*value).clone(), slot: Some(slot) }), ty: expr.ty })
}
