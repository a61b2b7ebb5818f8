//! Products without end: a join that must look at every pair of rows is refused where there are too many.
//!
//! A join by equal keys or by distance looks at few pairs. One without either looks at all of them, and three tables
//! of a hundred thousand rows have a thousand million million. Such a query is a slip, or means harm; it is told so
//! before it begins, instead of being ended after minutes in which it kept a thread from everybody else.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use trifid_archive_engine::QueryError;

use super::error::inward;
use crate::limits::PAIRS;

/// Refuses a plan in which a join has more pairs to look at than [`PAIRS`], as far as the rows are known.
pub(crate) fn check(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    rows(plan, &StatisticsContext::new()).map(drop)
}

/// At most so many rows come out of a plan, as far as that is known.
fn rows(plan: &Arc<dyn ExecutionPlan>, context: &StatisticsContext) -> Result<u64> {
    let inputs =
        plan.children().into_iter().map(|input| rows(input, context)).collect::<Result<Vec<u64>>>()?;
    let is_product = plan.is::<CrossJoinExec>() || plan.is::<NestedLoopJoinExec>();
    if is_product {
        let pairs = inputs.iter().fold(1u64, |all, rows| all.saturating_mul((*rows).max(1)));
        return if pairs > PAIRS { Err(inward(too_many())) } else { Ok(pairs) };
    }
    let known =
        context.compute(&**plan, &StatisticsArgs::new())?.num_rows.get_value().map(|rows| *rows as u64);
    let most = inputs.into_iter().max();
    Ok(match (known, most) {
        (Some(known), Some(most)) => known.min(most),
        (Some(rows), None) | (None, Some(rows)) => rows,
        (None, None) => 0,
    })
}

fn too_many() -> QueryError {
    QueryError::TooLarge(
        format!(
            "the query joins tables in a way that makes it look at more than {PAIRS} pairs of rows; join them by equal \
             columns or by DISTANCE, or narrow them first"
        )
        .into(),
    )
}
