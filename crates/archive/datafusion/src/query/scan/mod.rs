//! The scan: a table's rows, only those that the indexes and statistics leave, only the columns that are read.
//!
//! Where to look is decided once, when the scan is planned ([`select`]); what is left is shared out among the
//! partitions in order, an equal number of rows to each. A partition works batch by batch: it reads the columns of the
//! conditions, evaluates them, and reads the other columns of a chunk only if a row of it stays. Rows without
//! conditions are slices of the stored arrays; the others are gathered into full batches. Decoding happens in
//! `poll`: this runs on the compute pool, whose threads are there for it.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::coalesce::BatchCoalescer;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures_core::Stream;
use trifid_archive_adql::tree::{ColumnRef, Expr};
use trifid_archive_engine::QueryError;
use trifid_archive_engine::access::select;

use trifid_archive_engine::eval::{self, Cells, Context, Input};
use trifid_archive_engine::table::{Bounds, Table};

use super::error::inward;
use super::source::Filters;
use super::walk;
use crate::limits::SCAN_STEPS;

mod learned;
mod pieces;

use learned::Learned;
pub(crate) use learned::Sky;
use pieces::{Piece, Rows, pieces, split};

/// What a scan is asked.
#[derive(Clone)]
pub(crate) struct Asked {
    /// The columns that come out, by place.
    pub(crate) projection: Vec<usize>,
    /// Which rows.
    pub(crate) filters: Filters,
    /// The most rows that are needed.
    pub(crate) fetch: Option<usize>,
    /// The most partitions.
    pub(crate) partitions: usize,
}

/// The scan of a table.
#[derive(Clone)]
pub(crate) struct Scan {
    table: Arc<Table>,
    asked: Asked,
    condition: Option<Expr>,
    pieces: Vec<Arc<[Piece]>>,
    candidates: usize,
    learned: Learned,
    properties: Arc<PlanProperties>,
}

impl Scan {
    /// Plans the scan; reads cells of the sky if a condition asks for them.
    pub(crate) fn new(table: Arc<Table>, schema: &Schema, asked: Asked) -> Result<Self, QueryError> {
        let selection = select(&table, &asked.filters.all())?;
        let candidates = selection.rows();
        let pieces = split(pieces(&table, selection), asked.partitions);
        let fields: Vec<_> = asked.projection.iter().map(|at| schema.fields()[*at].clone()).collect();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::new(Schema::new(fields))),
            Partitioning::UnknownPartitioning(pieces.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::NonCooperative);
        let condition = walk::all_of(asked.filters.exact.clone());
        let (learned, properties) = (Learned::default(), Arc::new(properties));
        Ok(Self { table, asked, condition, pieces, candidates, learned, properties })
    }

    /// The same scan, which is told where on the sky rows are wanted, if columns `lon` and `lat` of its output are the
    /// position that its rows are stored by.
    pub(crate) fn told(&self, lon: usize, lat: usize, sky: &Arc<Sky>) -> Option<Self> {
        let position = self.table.head.position?;
        let column = |at: usize| self.asked.projection.get(at).copied();
        if self.table.indexes.spatial.is_none()
            || column(lon) != Some(position.lon)
            || column(lat) != Some(position.lat)
        {
            return None;
        }
        let learned = Learned { sky: Some(sky.clone()), ..self.learned.clone() };
        Some(Self { learned, ..self.clone() })
    }

    fn statistics(&self, partition: Option<usize>) -> Statistics {
        let rows = partition
            .map_or(self.candidates, |one| self.pieces[one].iter().map(|piece| piece.rows.len()).sum());
        let mut statistics = Statistics::new_unknown(self.properties.eq_properties.schema());
        let decided = self.asked.filters.is_empty() && self.asked.fetch.is_none();
        statistics.num_rows =
            if decided { Precision::Exact(rows) } else { Precision::Inexact(self.estimate(rows)) };
        if partition.is_none() {
            for (column, known) in self.asked.projection.iter().zip(&mut statistics.column_statistics) {
                if let Some((least, greatest)) = extremes(&self.table, *column) {
                    known.min_value = Precision::Inexact(least);
                    known.max_value = Precision::Inexact(greatest);
                }
            }
        }
        statistics
    }

    /// How many rows of those looked at will stay: a third for each condition that an index did not serve.
    fn estimate(&self, rows: usize) -> usize {
        let conditions = self.asked.filters.exact.len().min(3) as u32;
        let stay =
            if (self.candidates as u64) < self.table.rows() { rows } else { rows / 3usize.pow(conditions) };
        stay.max(1).min(self.asked.fetch.unwrap_or(usize::MAX))
    }
}

/// The least and greatest value of a column, from the chunks'.
fn extremes(table: &Table, column: usize) -> Option<(ScalarValue, ScalarValue)> {
    let ty = trifid_archive_model::batch::physical(table.head.fields[column].ty);
    let mut both: Option<(ScalarValue, ScalarValue)> = None;
    for chunk in &table.chunks {
        let range = chunk.ranges.get(column)?.as_ref()?;
        let Some(bounds) = &range.bounds else { continue };
        let (least, greatest) = match bounds {
            Bounds::Integer(least, greatest) => {
                (ScalarValue::Int64(Some(*least)), ScalarValue::Int64(Some(*greatest)))
            }
            Bounds::Double(least, greatest) if greatest.is_finite() => {
                (ScalarValue::Float64(Some(*least)), ScalarValue::Float64(Some(*greatest)))
            }
            _ => return None,
        };
        let (least, greatest) = (least.cast_to(&ty).ok()?, greatest.cast_to(&ty).ok()?);
        both = Some(match both {
            None => (least, greatest),
            Some((low, high)) => {
                (if least < low { least } else { low }, if greatest > high { greatest } else { high })
            }
        });
    }
    both
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan({:?}, {} candidates)", self.table, self.candidates)
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = &self.table.head;
        write!(
            f,
            "Scan: {}.{} columns={:?} conditions={} candidates={} fetch={:?}",
            head.schema,
            head.name,
            self.asked.projection,
            self.asked.filters.exact.len() + self.asked.filters.lenient.len(),
            self.candidates,
            self.asked.fetch,
        )
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &str {
        "Scan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = context.session_config().batch_size();
        Ok(Box::pin(ScanStream::new(self, partition, rows)))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        offered: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters: Vec<_> = offered.parent_filters.iter().map(|one| one.filter.clone()).collect();
        let refused = FilterPushdownPropagation::all_unsupported(offered);
        if phase != FilterPushdownPhase::Post || filters.is_empty() {
            return Ok(refused);
        }
        let mut learned = self.learned.clone();
        learned.filters.extend(filters);
        Ok(refused.with_updated_node(Arc::new(Self { learned, ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(&self.learned.filters, f)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.statistics(args.partition())))
    }
}

/// The rows of one partition.
struct ScanStream {
    schema: SchemaRef,
    table: Arc<Table>,
    projection: Vec<usize>,
    condition: Option<Expr>,
    lenient: Vec<Expr>,
    constants: Vec<ArrayRef>,
    context: Context,
    pieces: Arc<[Piece]>,
    /// The piece at work and how many of its rows are done.
    at: (usize, usize),
    /// Columns of the chunk at work.
    columns: HashMap<usize, ArrayRef>,
    chunk: usize,
    batch_rows: usize,
    room: usize,
    gathered: BatchCoalescer,
    /// What else decides which rows, asked when the first are wanted.
    learned: Option<Learned>,
    over: bool,
}

/// What a scan comes upon.
enum Found {
    Rows(RecordBatch),
    Looked,
    Over,
}

impl ScanStream {
    fn new(scan: &Scan, partition: usize, batch_rows: usize) -> Self {
        let schema = scan.properties.eq_properties.schema().clone();
        Self {
            gathered: BatchCoalescer::new(schema.clone(), batch_rows),
            schema,
            table: scan.table.clone(),
            projection: scan.asked.projection.clone(),
            condition: scan.condition.clone(),
            lenient: scan.asked.filters.lenient.clone(),
            constants: scan.asked.filters.constants.clone(),
            context: Context { seed: scan.asked.filters.seed, place: 0 },
            pieces: scan.pieces[partition].clone(),
            at: (0, 0),
            columns: HashMap::new(),
            chunk: usize::MAX,
            batch_rows,
            room: scan.asked.fetch.unwrap_or(usize::MAX),
            learned: Some(scan.learned.clone()),
            over: false,
        }
    }

    /// The next rows; `Over` after the last, `Looked` when a while went by without any.
    fn next(&mut self) -> Result<Found> {
        if let Some(learned) = self.learned.take() {
            let narrowed = learned.narrow(&self.table, &self.projection, &self.pieces).map_err(inward)?;
            self.pieces = narrowed.map_or(self.pieces.clone(), Arc::from);
        }
        let mut steps = 0;
        loop {
            if let Some(batch) = self.gathered.next_completed_batch() {
                return Ok(Found::Rows(batch));
            }
            if self.over || self.room == 0 {
                if self.gathered.is_empty() {
                    return Ok(Found::Over);
                }
                self.gathered.finish_buffered_batch()?;
                continue;
            }
            if steps == SCAN_STEPS {
                return Ok(Found::Looked);
            }
            steps += 1;
            let Some((chunk, rows)) = self.step() else {
                self.over = true;
                continue;
            };
            if let Some(batch) = self.work(chunk, &rows)? {
                return Ok(Found::Rows(batch));
            }
        }
    }

    /// The next rows to look at.
    fn step(&mut self) -> Option<(usize, Rows)> {
        let (piece, done) = self.at;
        let piece = self.pieces.get(piece)?;
        let count = (piece.rows.len() - done).min(self.batch_rows);
        let rows = piece.rows.part(done, count);
        let chunk = piece.chunk;
        self.at =
            if done + count == piece.rows.len() { (self.at.0 + 1, 0) } else { (self.at.0, done + count) };
        Some((chunk, rows))
    }

    /// Looks at rows: gives them if all stay and they lie together, gathers them otherwise.
    fn work(&mut self, chunk: usize, rows: &Rows) -> Result<Option<RecordBatch>> {
        if chunk != self.chunk {
            self.columns.clear();
            self.chunk = chunk;
        }
        let stay = self.stay(chunk, rows).map_err(inward)?;
        let count = stay.as_ref().map_or(rows.len(), BooleanArray::true_count);
        if count == 0 {
            return Ok(None);
        }
        let mut batch = self.batch(chunk, rows)?;
        let mut stay = stay.filter(|_| count < rows.len());
        if count > self.room {
            let (end, rest) = cut_after(stay.as_ref(), self.room);
            batch = batch.slice(0, end);
            stay = rest;
        }
        self.room -= count.min(self.room);
        match stay {
            None if self.gathered.is_empty() => return Ok(Some(batch)),
            None => self.gathered.push_batch(batch)?,
            Some(stay) => self.gathered.push_batch_with_filter(batch, &stay)?,
        }
        Ok(None)
    }

    /// Which of the rows stay; `None` for all.
    fn stay(&mut self, chunk: usize, rows: &Rows) -> Result<Option<BooleanArray>, QueryError> {
        if self.condition.is_none() && self.lenient.is_empty() {
            return Ok(None);
        }
        for expr in self.condition.iter().chain(&self.lenient) {
            walk_columns(expr, &mut |column| load(&mut self.columns, &self.table, chunk, column))?;
        }
        let first = self.table.chunks[chunk].first;
        let input = Window { columns: &self.columns, constants: &self.constants, rows, first };
        let mut stay: Option<BooleanArray> = None;
        for expr in &self.lenient {
            match eval::filter(expr, &input, &self.context) {
                Ok(these) => stay = Some(both(stay, these)),
                Err(QueryError::Invalid(_)) => {}
                Err(other) => return Err(other),
            }
        }
        if let Some(condition) = &self.condition {
            stay = Some(both(stay, eval::filter(condition, &input, &self.context)?));
        }
        Ok(stay)
    }

    fn batch(&mut self, chunk: usize, rows: &Rows) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.projection.len());
        for column in &self.projection {
            load(&mut self.columns, &self.table, chunk, *column).map_err(inward)?;
            columns.push(window(&self.columns[column], rows).map_err(inward)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// How many rows to keep so that `room` of them stay, and which of those stay.
fn cut_after(stay: Option<&BooleanArray>, room: usize) -> (usize, Option<BooleanArray>) {
    let Some(stay) = stay else { return (room, None) };
    let end = stay.values().set_indices().nth(room - 1).map_or(stay.len(), |last| last + 1);
    (end, Some(stay.slice(0, end)))
}

fn both(left: Option<BooleanArray>, right: BooleanArray) -> BooleanArray {
    match left {
        None => right,
        Some(left) => BooleanArray::new(left.values() & right.values(), None),
    }
}

fn walk_columns(expr: &Expr, f: &mut dyn FnMut(usize) -> Result<(), QueryError>) -> Result<(), QueryError> {
    let mut result = Ok(());
    walk::columns(expr, 0, &mut |_, column| {
        if column.relation == 0 && result.is_ok() {
            result = f(column.column as usize);
        }
    });
    result
}

fn load(
    columns: &mut HashMap<usize, ArrayRef>,
    table: &Table,
    chunk: usize,
    column: usize,
) -> Result<(), QueryError> {
    if let std::collections::hash_map::Entry::Vacant(entry) = columns.entry(column) {
        entry.insert(table.column(chunk, column)?);
    }
    Ok(())
}

/// The values of some rows of a chunk's column.
fn window(column: &ArrayRef, rows: &Rows) -> Result<ArrayRef, QueryError> {
    match rows {
        Rows::Run(run) if run.len() == column.len() => Ok(column.clone()),
        Rows::Run(run) => Ok(column.slice(run.start as usize, run.len())),
        Rows::List(list) => {
            let places = UInt32Array::from(list.to_vec());
            arrow_select::take::take(column, &places, None).map_err(QueryError::internal)
        }
    }
}

/// Rows of a chunk, as conditions see them.
struct Window<'a> {
    columns: &'a HashMap<usize, ArrayRef>,
    constants: &'a [ArrayRef],
    rows: &'a Rows,
    first: u32,
}

impl Input for Window<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn column(&self, at: ColumnRef) -> Result<Cells, QueryError> {
        let place = at.column as usize;
        if at.relation == 1 {
            let constant =
                self.constants.get(place).ok_or_else(|| QueryError::internal("no such constant"))?;
            return Ok(Cells::Constant(constant.clone(), self.rows()));
        }
        let column = self.columns.get(&place).ok_or_else(|| QueryError::internal("a column was not read"))?;
        window(column, self.rows).map(Cells::from)
    }

    fn row(&self, place: usize) -> u64 {
        u64::from(self.first + self.rows.at(place))
    }
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        match self.get_mut().next() {
            Ok(Found::Rows(batch)) => Poll::Ready(Some(Ok(batch))),
            Ok(Found::Over) => Poll::Ready(None),
            // A scan that finds nothing for long must still hear that nobody waits for it.
            Ok(Found::Looked) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// A plan whose scan is told where on the sky rows are wanted, if columns `lon` and `lat` are, through projections and
/// filters, those of a scan that can use it.
pub(crate) fn tell(
    plan: &Arc<dyn ExecutionPlan>,
    lon: usize,
    lat: usize,
    sky: &Arc<Sky>,
) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = plan.downcast_ref::<Scan>() {
        return Some(Arc::new(scan.told(lon, lat, sky)?));
    }
    let (lon, lat) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column = |at: usize| Some(projection.expr().get(at)?.expr.downcast_ref::<Column>()?.index());
        (column(lon)?, column(lat)?)
    } else if plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.projection().is_none()) {
        (lon, lat)
    } else {
        return None;
    };
    let [input] = plan.children()[..] else { return None };
    let told = tell(input, lon, lat, sky)?;
    let same = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.clone().replace_children(vec![told], same).ok()
}
