//! Queries that stop when they are told to.
//!
//! Who leaves a query drops it, and a query that is polled hears of that only when the poll returns. Most plans return
//! often: scans give way to others after some batches. A join does not if it finds many pairs, or none, in what it
//! was given: between two batches of one side lie all rows of the other. So a plan with joins is changed before it
//! runs:
//!
//! ```text
//! all pairs      the right side comes in slices, so few rows that one poll looks at [`PAIRS_AT_ONCE`]; its condition
//!                asks with every batch of pairs whether the query is to end
//! by equal keys  its condition asks too
//! any            what comes out gives way to others after so many rows
//! ```
//!
//! A slice has [`SLICE_SHARE`] of a batch at least: from there on DataFusion looks at the right rows of one left row at
//! a time, which costs a fraction of putting every pair together first. What is then left of a long poll is ended by
//! the condition. A plan without joins is not touched.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures_core::Stream;
use trifid_archive_engine::backend::Cancel;

use super::bucket::BucketJoinExec;
use super::error::inward;
use crate::limits::PAIRS_AT_ONCE;

/// The plan, so that it stops soon after `cancel` says so.
pub(crate) fn heed(plan: Arc<dyn ExecutionPlan>, cancel: &Cancel) -> Result<Arc<dyn ExecutionPlan>> {
    let inputs = plan.children().into_iter().map(|input| heed(input.clone(), cancel));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let plan = replace_children_if_necessary(plan, inputs)?;
    let joined: Arc<dyn ExecutionPlan> = if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        all_pairs(join, cancel)?
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let filter = join.filter().map(|filter| asking(filter, cancel));
        if filter.is_some() { join.builder().with_filter(filter).build_exec()? } else { plan }
    } else if plan.is::<CrossJoinExec>() || plan.is::<BucketJoinExec>() {
        plan
    } else {
        return Ok(plan);
    };
    Ok(Paced::over(joined, Role::Pass, cancel))
}

fn all_pairs(join: &NestedLoopJoinExec, cancel: &Cancel) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = Arc::new(AtomicUsize::new(0));
    let left = Paced::over(join.left().clone(), Role::Count(rows.clone()), cancel);
    let right = Paced::over(join.right().clone(), Role::Slice(rows), cancel);
    let made = NestedLoopJoinExecBuilder::new(left, right, *join.join_type())
        .with_filter(join.filter().map(|filter| asking(filter, cancel)))
        .with_projection_ref(join.projection().clone())
        .build()?;
    Ok(Arc::new(made))
}

fn asking(filter: &JoinFilter, cancel: &Cancel) -> JoinFilter {
    let expr = Asking { expr: filter.expression().clone(), cancel: cancel.clone() };
    JoinFilter::new(Arc::new(expr), filter.column_indices().to_vec(), filter.schema().clone())
}

/// A condition that asks first whether anybody wants to know.
#[derive(Debug)]
struct Asking {
    expr: Arc<dyn PhysicalExpr>,
    cancel: Cancel,
}

impl fmt::Display for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        self.expr.eq(&other.expr)
    }
}

impl Eq for Asking {}

impl Hash for Asking {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expr.hash(state);
    }
}

impl PhysicalExpr for Asking {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.expr.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.expr.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancel.check().map_err(inward)?;
        self.expr.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.expr]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(expr) = children.pop() else { return internal_err!("a condition has one child") };
        Ok(Arc::new(Self { expr, cancel: self.cancel.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt_sql(f)
    }
}

/// What is done to rows on their way.
#[derive(Clone, Debug)]
enum Role {
    /// Nothing.
    Pass,
    /// They are counted: the side of a join that is held.
    Count(Arc<AtomicUsize>),
    /// They come in slices, so that few of them meet the rows that were counted.
    Slice(Arc<AtomicUsize>),
}

/// A plan whose rows come as they were, with pauses.
#[derive(Debug)]
struct Paced {
    input: Arc<dyn ExecutionPlan>,
    role: Role,
    cancel: Cancel,
}

impl Paced {
    fn over(input: Arc<dyn ExecutionPlan>, role: Role, cancel: &Cancel) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input, role, cancel: cancel.clone() })
    }
}

impl DisplayAs for Paced {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Paced")
    }
}

impl ExecutionPlan for Paced {
    fn name(&self) -> &str {
        "Paced"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        // The very same ones: whoever is above need not think again.
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("rows come from an input") };
        Ok(Self::over(input, self.role.clone(), &self.cancel))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("rows come from an input") };
        Ok(Self::over(input, self.role.clone(), &self.cancel))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let least = context.session_config().batch_size() / SLICE_SHARE + 1;
        let input = self.input.execute(partition, context)?;
        let (role, cancel) = (self.role.clone(), self.cancel.clone());
        Ok(Box::pin(Pacing { input, role, cancel, least, counted: 0, work: 0, rest: None }))
    }
}

/// The least slice is this part of a batch.
const SLICE_SHARE: usize = 10;

struct Pacing {
    input: SendableRecordBatchStream,
    role: Role,
    cancel: Cancel,
    /// Rows of the least slice.
    least: usize,
    /// Rows that were counted here.
    counted: usize,
    /// Pairs, or rows, since the last pause.
    work: usize,
    /// What is left of a batch.
    rest: Option<RecordBatch>,
}

impl Pacing {
    /// The rows to hand out of a batch, when others have been kept back.
    fn hand(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows();
        match &self.role {
            Role::Pass => self.work += rows,
            Role::Count(count) => {
                self.work += rows;
                self.counted += rows;
                // A join that is short of memory reads its side once more.
                count.fetch_max(self.counted, Ordering::Relaxed);
            }
            Role::Slice(count) => {
                let others = count.load(Ordering::Relaxed).max(1);
                let slice = (PAIRS_AT_ONCE / others).max(self.least).min(rows);
                self.work = self.work.saturating_add(slice.saturating_mul(others));
                self.rest = (slice < rows).then(|| batch.slice(slice, rows - slice));
                return batch.slice(0, slice);
            }
        }
        batch
    }
}

impl Stream for Pacing {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.work >= PAIRS_AT_ONCE {
            self.work = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Err(ended) = self.cancel.check() {
            return Poll::Ready(Some(Err(inward(ended))));
        }
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match ready!(self.input.as_mut().poll_next(cx)) {
                Some(Ok(batch)) => batch,
                end => return Poll::Ready(end),
            },
        };
        Poll::Ready(Some(Ok(self.hand(batch))))
    }
}

impl RecordBatchStream for Pacing {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
