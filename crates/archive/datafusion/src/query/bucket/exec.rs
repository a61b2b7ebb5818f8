//! The join as it runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchOptions, UInt32Array,
    new_null_array,
};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::coalesce::BatchCoalescer;
use arrow_select::filter::prep_null_mask_filter;
use arrow_select::take::take;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, apply_expression_roots,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures_util::{StreamExt as _, stream};
use tokio::sync::OnceCell;

use super::table::{Buckets, Radii};
use crate::limits::PAIRS_AT_ONCE;
use crate::query::scan::{Sky, tell};

/// One of the two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that is put into buckets.
    Build,
    /// The one that looks into them.
    Probe,
}

/// What the join is, besides its inputs.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// Which rows come out.
    pub(crate) kind: JoinType,
    /// Whether the left input is put into buckets.
    pub(crate) build_left: bool,
    /// Longitude and latitude of the rows in the buckets.
    pub(crate) build_at: [Arc<dyn PhysicalExpr>; 2],
    /// Of the rows that look into them.
    pub(crate) probe_at: [Arc<dyn PhysicalExpr>; 2],
    /// How far apart they may be; over the rows in the buckets.
    pub(crate) radius: Arc<dyn PhysicalExpr>,
    /// The whole condition, over the columns of both that it reads.
    pub(crate) filter: Arc<dyn PhysicalExpr>,
    /// Where those columns are from.
    pub(crate) filter_columns: Vec<(Side, usize)>,
    /// What they are.
    pub(crate) filter_schema: SchemaRef,
}

/// Which rows come out, told by role.
#[derive(Clone, Copy, Debug)]
struct Output {
    /// Pairs of partners.
    pairs: bool,
    /// Rows without a partner, with NULLs beside them.
    lone_build: bool,
    lone_probe: bool,
    /// Rows of one side by whether they have a partner.
    chosen: Option<(Side, Choice)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    With,
    Without,
    Marked,
}

impl Output {
    fn of(kind: JoinType, build_left: bool) -> Option<Self> {
        let left = if build_left { Side::Build } else { Side::Probe };
        let pairs = |keep_left: bool, keep_right: bool| Self {
            pairs: true,
            lone_build: if build_left { keep_left } else { keep_right },
            lone_probe: if build_left { keep_right } else { keep_left },
            chosen: None,
        };
        let chosen = |choice| Self {
            pairs: false,
            lone_build: false,
            lone_probe: false,
            chosen: Some((left, choice)),
        };
        Some(match kind {
            JoinType::Inner => pairs(false, false),
            JoinType::Left => pairs(true, false),
            JoinType::Right => pairs(false, true),
            JoinType::Full => pairs(true, true),
            JoinType::LeftSemi => chosen(Choice::With),
            JoinType::LeftAnti => chosen(Choice::Without),
            JoinType::LeftMark => chosen(Choice::Marked),
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => return None,
        })
    }

    /// Whether rows in the buckets come out at the end by whether they had a partner.
    fn remembers_build(&self) -> bool {
        self.lone_build || matches!(self.chosen, Some((Side::Build, _)))
    }

    /// Whether rows that look come out by whether they had a partner.
    fn remembers_probe(&self) -> bool {
        self.lone_probe || matches!(self.chosen, Some((Side::Probe, _)))
    }

    /// Whether a probe row without a partner matters to nobody.
    fn needs_partners_only(&self) -> bool {
        !self.lone_probe && !matches!(self.chosen, Some((Side::Probe, Choice::Without | Choice::Marked)))
    }
}

/// The join.
pub(crate) struct BucketJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    conditions: Arc<Conditions>,
    output: Output,
    /// Whom to tell where partners may be.
    sky: Option<Arc<Sky>>,
    properties: Arc<PlanProperties>,
    built: Arc<OnceCell<Arc<Built>>>,
}

impl BucketJoinExec {
    /// A join of two inputs. The scan under the larger one is told where partners may be, if it can use it.
    pub(crate) fn new(
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        conditions: Arc<Conditions>,
        schema: SchemaRef,
    ) -> Result<Self> {
        let plain = Self::with_sky(left, right, conditions, schema.clone(), None)?;
        let sky = Arc::new(Sky::default());
        let [lon, lat] = &plain.conditions.probe_at;
        let (Some(lon), Some(lat), true) =
            (lon.downcast_ref::<Column>(), lat.downcast_ref::<Column>(), plain.output.needs_partners_only())
        else {
            return Ok(plain);
        };
        match tell(plain.probe(), lon.index(), lat.index(), &sky) {
            Some(told) if plain.conditions.build_left => {
                Self::with_sky(plain.left, told, plain.conditions, schema, Some(sky))
            }
            Some(told) => Self::with_sky(told, plain.right, plain.conditions, schema, Some(sky)),
            None => Ok(plain),
        }
    }

    fn with_sky(
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        conditions: Arc<Conditions>,
        schema: SchemaRef,
        sky: Option<Arc<Sky>>,
    ) -> Result<Self> {
        let Some(output) = Output::of(conditions.kind, conditions.build_left) else {
            return internal_err!("no bucket join of kind {}", conditions.kind);
        };
        let probe = if conditions.build_left { &right } else { &left };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(probe.output_partitioning().partition_count()),
            if output.remembers_build() { EmissionType::Both } else { EmissionType::Incremental },
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        Ok(Self { left, right, conditions, output, sky, properties, built: Arc::default() })
    }

    fn build(&self) -> &Arc<dyn ExecutionPlan> {
        if self.conditions.build_left { &self.left } else { &self.right }
    }

    fn probe(&self) -> &Arc<dyn ExecutionPlan> {
        if self.conditions.build_left { &self.right } else { &self.left }
    }

    fn sides<T>(&self, build: T, probe: T) -> Vec<T> {
        if self.conditions.build_left { vec![build, probe] } else { vec![probe, build] }
    }
}

impl fmt::Debug for BucketJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketJoinExec({})", self.conditions.kind)
    }
}

impl DisplayAs for BucketJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conditions { kind, build_left, radius, .. } = &*self.conditions;
        write!(
            f,
            "BucketJoinExec: {kind} within {radius}, {} in buckets",
            if *build_left { "left" } else { "right" }
        )
    }
}

impl ExecutionPlan for BucketJoinExec {
    fn name(&self) -> &str {
        "BucketJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let needed = self.sides(Distribution::SinglePartition, Distribution::UnspecifiedDistribution);
        InputDistributionRequirements::new(needed)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.sides(false, true)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let Conditions { build_at, probe_at, radius, filter, .. } = &*self.conditions;
        apply_expression_roots(build_at.iter().chain(probe_at).chain([radius, filter]), f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let inputs: std::result::Result<[Arc<dyn ExecutionPlan>; 2], _> = children.try_into();
        let Ok([left, right]) = inputs else { return internal_err!("a bucket join has two inputs") };
        let sky = self.sky.clone();
        Ok(Arc::new(Self::with_sky(left, right, self.conditions.clone(), self.schema(), sky)?))
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
        let building = Building {
            conditions: self.conditions.clone(),
            output: self.output,
            input: self.build().clone(),
            partitions: self.properties.partitioning.partition_count(),
            built: self.built.clone(),
            sky: self.sky.clone(),
            context: context.clone(),
        };
        let joining = Joining {
            conditions: self.conditions.clone(),
            output: self.output,
            build_schema: self.build().schema(),
            probe: self.probe().execute(partition, context)?,
            out: BatchCoalescer::new(schema.clone(), rows),
            schema: schema.clone(),
            rows,
            looked: 0,
            phase: Phase::Begin(building),
        };
        let batches = stream::try_unfold(joining, |mut joining| async move {
            let batch = joining.next().await?;
            Ok(batch.map(|batch| (batch, joining)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// The side in buckets.
struct Built {
    batch: RecordBatch,
    buckets: Buckets,
    /// Which rows had a partner, one bit each; empty if nobody asks.
    partnered: Vec<AtomicU64>,
    /// Partitions that have not come to their end.
    running: AtomicUsize,
    _memory: MemoryReservation,
}

impl Built {
    fn remember(&self, row: u32) {
        if let Some(word) = self.partnered.get(row as usize / 64) {
            word.fetch_or(1 << (row % 64), Ordering::Relaxed);
        }
    }

    fn had_partner(&self, row: usize) -> bool {
        self.partnered.get(row / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (row % 64) & 1 == 1)
    }
}

/// What fills the buckets; whichever partition comes first does it for all.
struct Building {
    conditions: Arc<Conditions>,
    output: Output,
    input: Arc<dyn ExecutionPlan>,
    partitions: usize,
    built: Arc<OnceCell<Arc<Built>>>,
    sky: Option<Arc<Sky>>,
    context: Arc<TaskContext>,
}

impl Building {
    async fn built(&self) -> Result<Arc<Built>> {
        let work = || async {
            let memory = MemoryConsumer::new("BucketJoin").register(self.context.memory_pool());
            let batch = self.collect(&memory).await?;
            Ok(Arc::new(self.fill(batch, memory)?))
        };
        self.built.get_or_try_init(work).await.cloned()
    }

    async fn collect(&self, memory: &MemoryReservation) -> Result<RecordBatch> {
        let mut input = self.input.execute(0, self.context.clone())?;
        let schema = input.schema();
        let mut batches = Vec::new();
        while let Some(batch) = input.next().await {
            let batch = batch?;
            // Once as it comes and once put together.
            memory.try_grow(bytes(&batch) * 2)?;
            batches.push(batch);
        }
        let batch = arrow_select::concat::concat_batches(&schema, &batches)?;
        memory.try_resize(bytes(&batch))?;
        Ok(batch)
    }

    fn fill(&self, batch: RecordBatch, memory: MemoryReservation) -> Result<Built> {
        let rows = batch.num_rows();
        if u32::try_from(rows).is_err() {
            return internal_err!("too many rows for buckets");
        }
        memory.try_grow(rows.saturating_mul(ROW_BYTES))?;
        let [lon, lat] = positions(&self.conditions.build_at, &batch)?;
        let radii = match self.conditions.radius.evaluate(&batch)? {
            ColumnarValue::Scalar(ScalarValue::Float64(radius)) => Radii::One(radius),
            radii => Radii::Each(radii.into_array(rows)?.as_primitive::<Float64Type>().clone()),
        };
        let buckets = Buckets::new(&lon, &lat, &radii);
        memory.try_resize(bytes(&batch) + buckets.bytes())?;
        if let Some(sky) = &self.sky {
            sky.tell(buckets.ranges());
        }
        let words = if self.output.remembers_build() { rows.div_ceil(64) } else { 0 };
        Ok(Built {
            batch,
            buckets,
            partnered: (0..words).map(|_| AtomicU64::new(0)).collect(),
            running: AtomicUsize::new(self.partitions),
            _memory: memory,
        })
    }
}

/// What a row in the buckets takes besides its columns, about, while they are made.
const ROW_BYTES: usize = 96;

/// What rows take. Batches of a scan are slices of whole chunks, which must not count once for each.
fn bytes(batch: &RecordBatch) -> usize {
    let column = |column: &ArrayRef| {
        column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(column).sum()
}

fn positions(at: &[Arc<dyn PhysicalExpr>; 2], batch: &RecordBatch) -> Result<[Float64Array; 2]> {
    let degrees = |expr: &Arc<dyn PhysicalExpr>| -> Result<Float64Array> {
        Ok(expr.evaluate(batch)?.into_array(batch.num_rows())?.as_primitive::<Float64Type>().clone())
    };
    Ok([degrees(&at[0])?, degrees(&at[1])?])
}

/// The work of one partition.
struct Joining {
    conditions: Arc<Conditions>,
    output: Output,
    build_schema: SchemaRef,
    probe: SendableRecordBatchStream,
    out: BatchCoalescer,
    schema: SchemaRef,
    rows: usize,
    /// The work since others last had their turn, in pairs of a plain join.
    looked: usize,
    phase: Phase,
}

enum Phase {
    Begin(Building),
    Probe(Arc<Built>),
    Look(Arc<Built>, Box<Look>),
    Rest(Arc<Built>, usize),
    End,
}

/// A batch that looks into the buckets.
struct Look {
    batch: RecordBatch,
    lon: Float64Array,
    lat: Float64Array,
    /// The next row.
    next: usize,
    /// Which rows had a partner; empty if nobody asks.
    partnered: Vec<bool>,
}

/// Places of candidates on both sides.
#[derive(Default)]
struct Pairs {
    probe: Vec<u32>,
    build: Vec<u32>,
}

impl Joining {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.out.next_completed_batch() {
                return Ok(Some(batch));
            }
            match std::mem::replace(&mut self.phase, Phase::End) {
                Phase::Begin(building) => self.phase = Phase::Probe(building.built().await?),
                Phase::Probe(built) => match self.probe.next().await {
                    Some(batch) => self.phase = Phase::Look(built, Box::new(self.look(batch?)?)),
                    None if self.is_last(&built) => self.phase = Phase::Rest(built, 0),
                    None => {}
                },
                Phase::Look(built, mut look) => {
                    let done = self.step(&built, &mut look)?;
                    if self.looked >= PAIRS_AT_ONCE {
                        self.looked = 0;
                        tokio::task::yield_now().await;
                    }
                    self.phase = if done { Phase::Probe(built) } else { Phase::Look(built, look) };
                }
                Phase::Rest(built, from) => {
                    let end = (from + self.rows).min(built.batch.num_rows());
                    self.rest(&built, from, end)?;
                    if end < built.batch.num_rows() {
                        self.phase = Phase::Rest(built, end);
                    }
                }
                Phase::End if self.out.is_empty() => return Ok(None),
                Phase::End => self.out.finish_buffered_batch()?,
            }
        }
    }

    /// Whether no other partition is still looking, and what had no partner is to be given.
    fn is_last(&self, built: &Built) -> bool {
        built.running.fetch_sub(1, Ordering::AcqRel) == 1 && self.output.remembers_build()
    }

    fn look(&self, batch: RecordBatch) -> Result<Look> {
        let [lon, lat] = positions(&self.conditions.probe_at, &batch)?;
        let asked = if self.output.remembers_probe() { batch.num_rows() } else { 0 };
        Ok(Look { batch, lon, lat, next: 0, partnered: vec![false; asked] })
    }

    /// Looks for a batch of pairs; says whether the rows are at their end.
    fn step(&mut self, built: &Built, look: &mut Look) -> Result<bool> {
        let mut pairs = Pairs::default();
        while look.next < look.batch.num_rows() && pairs.build.len() < self.rows {
            let row = look.next;
            look.next += 1;
            if look.lon.is_valid(row) && look.lat.is_valid(row) {
                built.buckets.candidates(look.lon.value(row), look.lat.value(row), &mut pairs.build);
                pairs.probe.resize(pairs.build.len(), row as u32);
            }
        }
        // A distance costs more than a comparison.
        self.looked += pairs.build.len() * 8;
        for (probe, build) in pairs.probe.chunks(self.rows).zip(pairs.build.chunks(self.rows)) {
            self.judge(built, look, &probe.to_vec().into(), &build.to_vec().into())?;
        }
        let done = look.next == look.batch.num_rows();
        if done {
            self.finish(look)?;
        }
        Ok(done)
    }

    /// Evaluates the condition for candidates and gives the pairs that fulfil it.
    fn judge(
        &mut self,
        built: &Built,
        look: &mut Look,
        probe: &UInt32Array,
        build: &UInt32Array,
    ) -> Result<()> {
        let true_for = self.condition(built, look, probe, build)?;
        if true_for.true_count() == 0 {
            return Ok(());
        }
        let kept = |places: &UInt32Array| -> Result<UInt32Array> {
            Ok(arrow_select::filter::filter(places, &true_for)?.as_primitive().clone())
        };
        let (probe, build) = (kept(probe)?, kept(build)?);
        for row in probe.values() {
            if let Some(partnered) = look.partnered.get_mut(*row as usize) {
                *partnered = true;
            }
        }
        if self.output.remembers_build() {
            build.values().iter().for_each(|row| built.remember(*row));
        }
        if self.output.pairs {
            let build = taken(built.batch.columns(), &build)?;
            let rows = probe.len();
            let probe = taken(look.batch.columns(), &probe)?;
            self.give(build, probe, rows)?;
        }
        Ok(())
    }

    fn condition(
        &self,
        built: &Built,
        look: &Look,
        probe: &UInt32Array,
        build: &UInt32Array,
    ) -> Result<BooleanArray> {
        let Conditions { filter, filter_columns, filter_schema, .. } = &*self.conditions;
        let column = |(side, at): &(Side, usize)| match side {
            Side::Build => take(built.batch.column(*at), build, None),
            Side::Probe => take(look.batch.column(*at), probe, None),
        };
        let columns = filter_columns.iter().map(column).collect::<std::result::Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(probe.len()));
        let batch = RecordBatch::try_new_with_options(filter_schema.clone(), columns, &options)?;
        let truths = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
        let truths = truths.as_boolean();
        Ok(if truths.null_count() > 0 { prep_null_mask_filter(truths) } else { truths.clone() })
    }

    /// Gives the rows of a batch that come out by whether they had a partner.
    fn finish(&mut self, look: &Look) -> Result<()> {
        if !self.output.remembers_probe() {
            return Ok(());
        }
        let partnered = BooleanArray::from(look.partnered.clone());
        if self.output.lone_probe {
            let lone = arrow_select::filter::filter_record_batch(&look.batch, &arrow_not(&partnered))?;
            let rows = lone.num_rows();
            return self.give(nulls(&self.build_schema, rows), lone.columns().to_vec(), rows);
        }
        self.choose(&look.batch, &partnered)
    }

    /// Gives rows of the side in buckets by whether they had a partner.
    fn rest(&mut self, built: &Built, from: usize, end: usize) -> Result<()> {
        let batch = built.batch.slice(from, end - from);
        let partnered: BooleanArray = (from..end).map(|row| Some(built.had_partner(row))).collect();
        if self.output.lone_build {
            let lone = arrow_select::filter::filter_record_batch(&batch, &arrow_not(&partnered))?;
            let rows = lone.num_rows();
            return self.give(lone.columns().to_vec(), nulls(&self.probe.schema(), rows), rows);
        }
        self.choose(&batch, &partnered)
    }

    /// Gives rows with, or without, or all with the mark of, a partner.
    fn choose(&mut self, batch: &RecordBatch, partnered: &BooleanArray) -> Result<()> {
        let Some((_, choice)) = self.output.chosen else { return Ok(()) };
        let chosen = match choice {
            Choice::With => arrow_select::filter::filter_record_batch(batch, partnered)?,
            Choice::Without => arrow_select::filter::filter_record_batch(batch, &arrow_not(partnered))?,
            Choice::Marked => {
                let mut columns = batch.columns().to_vec();
                columns.push(Arc::new(partnered.clone()));
                RecordBatch::try_new(self.schema.clone(), columns)?
            }
        };
        self.push(chosen.columns().to_vec(), chosen.num_rows())
    }

    fn give(&mut self, build: Vec<ArrayRef>, probe: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let (mut first, second) = if self.conditions.build_left { (build, probe) } else { (probe, build) };
        first.extend(second);
        self.push(first, rows)
    }

    fn push(&mut self, columns: Vec<ArrayRef>, rows: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        Ok(self.out.push_batch(batch)?)
    }
}

fn taken(columns: &[ArrayRef], places: &UInt32Array) -> Result<Vec<ArrayRef>> {
    let taken = columns.iter().map(|column| take(column, places, None));
    Ok(taken.collect::<std::result::Result<_, _>>()?)
}

fn nulls(schema: &Schema, rows: usize) -> Vec<ArrayRef> {
    schema.fields().iter().map(|field| new_null_array(field.data_type(), rows)).collect()
}

fn arrow_not(truths: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!truths.values(), None)
}
