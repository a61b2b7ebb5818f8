//! The join in a logical plan.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, JoinType, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::builder::build_join_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::query::plan::near::Place;

/// A join of two sides by place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BucketJoin {
    /// Which rows come out.
    pub(crate) kind: JoinType,
    /// The left side.
    pub(crate) left: LogicalPlan,
    /// The right side.
    pub(crate) right: LogicalPlan,
    /// Where partners lie and what they must fulfil.
    pub(crate) place: Place,
    /// The columns that come out.
    pub(crate) schema: DFSchemaRef,
}

impl BucketJoin {
    /// A join; its columns are those of a join of this kind.
    pub(crate) fn new(kind: JoinType, left: LogicalPlan, right: LogicalPlan, place: Place) -> Result<Self> {
        let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &kind)?);
        Ok(Self { kind, left, right, place, schema })
    }

    /// The columns of a side that the conditions read.
    fn read(&self, side: &LogicalPlan) -> Vec<usize> {
        let exprs = self.exprs();
        let columns = exprs.iter().flat_map(|expr| expr.column_refs());
        columns.filter_map(|column| side.schema().index_of_column(column).ok()).collect()
    }

    fn exprs(&self) -> Vec<Expr> {
        let Place { left, right, radius, filter } = &self.place;
        left.iter().chain(right).chain([radius, filter]).cloned().collect()
    }
}

// An order that is none: two joins are equal or not comparable.
impl PartialOrd for BucketJoin {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self == other).then_some(std::cmp::Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for BucketJoin {
    fn name(&self) -> &str {
        "BucketJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.exprs()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketJoin: {} within {}", self.kind, self.place.radius)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let exprs: std::result::Result<[Expr; 6], _> = exprs.try_into();
        let inputs: std::result::Result<[LogicalPlan; 2], _> = inputs.try_into();
        let (Ok([lon1, lat1, lon2, lat2, radius, filter]), Ok([left, right])) = (exprs, inputs) else {
            return plan_err!("a bucket join has six expressions and two inputs");
        };
        let place = Place { left: [lon1, lat1], right: [lon2, lat2], radius, filter };
        Self::new(self.kind, left, right, place)
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.left.schema().fields().len();
        let mut left: Vec<usize> = output.iter().copied().filter(|at| *at < width).collect();
        let mut right: Vec<usize> = match self.kind {
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                output.iter().filter_map(|at| at.checked_sub(width)).collect()
            }
            _ => Vec::new(),
        };
        left.extend(self.read(&self.left));
        right.extend(self.read(&self.right));
        for side in [&mut left, &mut right] {
            side.sort_unstable();
            side.dedup();
        }
        Some(vec![left, right])
    }
}
