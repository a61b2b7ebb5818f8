//! A filter that stays where it was put.
//!
//! A condition that can fail must not be computed for rows that something else leaves out: a planner that moves it
//! below a join would report an error that the query does not have. DataFusion moves every filter that it knows, so
//! these are a node of our own, which it does not.

use std::fmt;
use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_array::cast::AsArray as _;
use arrow_select::coalesce::BatchCoalescer;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchemaRef, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, apply_expression_roots};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures_util::{StreamExt as _, stream};

/// The filter in a logical plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct Sift {
    /// What must be true.
    pub(crate) predicate: Expr,
    /// Of which rows.
    pub(crate) input: LogicalPlan,
}

impl UserDefinedLogicalNodeCore for Sift {
    fn name(&self) -> &str {
        "Sift"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.predicate.clone()]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sift: {}", self.predicate)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (exprs.pop(), inputs.pop()) {
            (Some(predicate), Some(input)) => Ok(Self { predicate, input }),
            _ => plan_err!("a filter has a condition and an input"),
        }
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let read = self.predicate.column_refs();
        let schema = self.input.schema();
        let read = read.into_iter().filter_map(|column| schema.index_of_column(column).ok());
        let mut all: Vec<usize> = output.iter().copied().chain(read).collect();
        all.sort_unstable();
        all.dedup();
        Some(vec![all])
    }
}

/// The filter as it runs.
#[derive(Debug)]
pub(crate) struct SiftExec {
    predicate: Arc<dyn PhysicalExpr>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl SiftExec {
    /// A filter of an input's rows.
    pub(crate) fn new(predicate: Arc<dyn PhysicalExpr>, input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = Arc::new(PlanProperties::new(
            input.equivalence_properties().clone(),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        ));
        Self { predicate, input, properties }
    }
}

impl DisplayAs for SiftExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SiftExec: {}", self.predicate)
    }
}

impl ExecutionPlan for SiftExec {
    fn name(&self) -> &str {
        "SiftExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots([&self.predicate], f)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("a filter has an input") };
        Ok(Arc::new(Self::new(self.predicate.clone(), input)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let rows = context.session_config().batch_size();
        let sifting = Sifting {
            predicate: self.predicate.clone(),
            input: self.input.execute(partition, context)?,
            kept: BatchCoalescer::new(schema.clone(), rows),
            over: false,
        };
        let batches = stream::try_unfold(sifting, |mut sifting| async move {
            let batch = sifting.next().await?;
            Ok(batch.map(|batch| (batch, sifting)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

struct Sifting {
    predicate: Arc<dyn PhysicalExpr>,
    input: SendableRecordBatchStream,
    kept: BatchCoalescer,
    over: bool,
}

impl Sifting {
    async fn next(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch() {
                return Ok(Some(batch));
            }
            if self.over {
                return Ok(None);
            }
            match self.input.next().await {
                Some(batch) => {
                    let batch = batch?;
                    let truths = self.predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
                    let truths: &BooleanArray = truths.as_boolean();
                    self.kept.push_batch_with_filter(batch, truths)?;
                }
                None => {
                    self.over = true;
                    self.kept.finish_buffered_batch()?;
                }
            }
        }
    }
}
