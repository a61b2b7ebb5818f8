//! DataFusion as we run it: which rules, how much memory, how many threads.
//!
//! Plans come nearly finished from [`super::plan`], so only the rules that can still do something are asked: limits and
//! conditions that sink, columns that are needed no further up, outer joins that are none, expressions that occur
//! twice. Small tables are not worth a second thread, so there are two sessions, with one and with all.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule as _;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner as _};
use datafusion::prelude::SessionConfig;
use datafusion::scalar::ScalarValue;
use trifid_archive_engine::QueryError;

use super::error::outward;
use super::plan::placeholder_number;
use super::planner::Planner;

/// How DataFusion is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most memory that all queries together may hold, in bytes: tables of joins, groups, rows to be sorted.
    pub memory: u64,
    /// How many threads one query may use.
    pub threads: usize,
    /// Where sorts and groups that outgrow the memory put their rows; without it they end.
    pub spill_dir: Option<PathBuf>,
    /// Rows in a batch.
    pub batch_rows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { memory: 1 << 30, threads: 1, spill_dir: None, batch_rows: 8192 }
    }
}

/// DataFusion, set up.
pub(crate) struct Session {
    optimizer: Optimizer,
    planner: DefaultPhysicalPlanner,
    /// With one thread and with all of them.
    states: [State; 2],
}

struct State {
    session: SessionState,
    /// The same without the rule that moves projections in finished plans: now and then it contradicts itself.
    cautious: SessionState,
    context: Arc<TaskContext>,
}

/// How many threads a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// One: the rows are few, or their order matters.
    One,
    /// All.
    All,
}

impl Session {
    /// DataFusion with these options.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let runtime = Arc::new(runtime(options)?);
        let state = |threads| State::new(options, threads, runtime.clone());
        Ok(Self {
            optimizer: Optimizer::with_rules(rules()),
            planner: DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Planner)]),
            states: [state(1), state(options.threads.max(1))],
        })
    }

    /// Bytes that running queries hold.
    #[cfg(test)]
    pub(crate) fn reserved(&self) -> usize {
        self.states[0].context.memory_pool().reserved()
    }

    fn state(&self, width: Width) -> &State {
        match width {
            Width::One => &self.states[0],
            Width::All => &self.states[1],
        }
    }

    /// The plan with everything moved to where it costs least.
    pub(crate) fn optimize(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.optimizer.optimize(plan, &self.state(Width::One).session, |_, _| {})
    }

    /// The plan that runs.
    pub(crate) async fn physical(&self, plan: &LogicalPlan, width: Width) -> Result<Arc<dyn ExecutionPlan>> {
        let state = self.state(width);
        match self.planner.create_physical_plan(plan, &state.session).await {
            Err(error) if matches!(outward(&error), QueryError::Internal(_)) => {
                tracing::debug!(%error, "a plan is made once more, with fewer rules");
                self.planner.create_physical_plan(plan, &state.cautious).await
            }
            made => made,
        }
    }

    /// Its rows.
    pub(crate) fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        width: Width,
    ) -> Result<SendableRecordBatchStream> {
        execute_stream(plan, self.state(width).context.clone())
    }
}

impl State {
    fn new(options: &Options, threads: usize, runtime: Arc<RuntimeEnv>) -> Self {
        let mut config = SessionConfig::new()
            .with_target_partitions(threads)
            .with_batch_size(options.batch_rows.max(1))
            .with_information_schema(false);
        // What a sort sets aside for merging what it spilled; the usual ten mebibytes may be more than there is.
        let aside = options.memory / 16 / threads as u64;
        let aside = usize::try_from(aside).unwrap_or(usize::MAX).min(SORT_ASIDE_BYTES);
        let options = config.options_mut();
        options.execution.sort_spill_reservation_bytes = aside;
        options.execution.sort_in_place_threshold_bytes = aside;
        options.optimizer.max_passes = 2;
        options.optimizer.skip_failed_rules = false;
        options.execution.collect_statistics = false;
        let session = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_analyzer_rules(Vec::new())
            .with_optimizer_rules(rules())
            .build();
        let mut steady = PhysicalOptimizer::new().rules;
        steady.retain(|rule| rule.name() != ProjectionPushdown::new().name());
        let cautious = SessionStateBuilder::new_from_existing(session.clone());
        let cautious = cautious.with_physical_optimizer_rules(steady).build();
        let context = session.task_ctx();
        Self { session, cautious, context }
    }
}

/// The most that a sort sets aside.
const SORT_ASIDE_BYTES: usize = 10 << 20;

fn runtime(options: &Options) -> Result<RuntimeEnv> {
    let mode = match &options.spill_dir {
        Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
        None => DiskManagerMode::Disabled,
    };
    let memory = usize::try_from(options.memory).unwrap_or(usize::MAX);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        .build()
}

fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateOuterJoin::new()),
        // Conditions do not sink below limits, so limits go first.
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// The plan with the values that were run first in place.
pub(crate) fn bind(plan: LogicalPlan, values: &[ScalarValue]) -> Result<LogicalPlan> {
    if values.is_empty() {
        return Ok(plan);
    }
    let value = |expr: Expr| match &expr {
        Expr::Placeholder(placeholder) => {
            let number = placeholder_number(&placeholder.id);
            let value = number.and_then(|number| values.get(number)).cloned();
            let value = value.ok_or_else(|| DataFusionError::Internal("a value that was not run".into()))?;
            Ok(Transformed::yes(Expr::Literal(value, None)))
        }
        _ => Ok(Transformed::no(expr)),
    };
    let bound = plan.transform_up(|node| node.map_expressions(|expr| expr.transform_up(value)))?;
    Ok(bound.data)
}
