//! A plain interpreter of whole trees: the executable specification, and an engine for small tables.
//!
//! It does what [`trifid_archive_adql::tree`] says, clause by clause and without a plan: FROM, WHERE, GROUP BY, HAVING,
//! the select list, DISTINCT, set operations, ORDER BY, OFFSET, TOP. Expressions are computed by
//! [`crate::eval`], as everywhere. Joins hash where a condition is an equality and try all pairs otherwise; a
//! query that refers to rows around it runs again for each of them. Its answers are what other engines are tested
//! against; it also answers where no other engine is built in, and over tables so small that a plan would cost
//! more than the query, such as TAP_SCHEMA.
//!
//! Rows stream through; what has to be held is bounded by [`Limits`], and between any two batches the
//! query ends if it was cancelled. Nothing is spilled to disk.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use futures_core::Stream;
use tokio::sync::mpsc;
use trifid_archive_adql::lift::{any, subquery};
use trifid_archive_adql::tree::{Body, Expr, Join, Query, Relation};
use trifid_archive_model::batch::batch;

pub use crate::backend::Cancel;
use crate::backend::{BatchStream, QueryBackend, Run};
use crate::catalogue::Tables;
use crate::error::QueryError;
use crate::limits::{REFERENCE_BYTES, REFERENCE_ROWS, SMALL_PRODUCT_ROWS};

mod block;
mod join;
mod order;
mod run;
mod scope;
mod select;

#[cfg(test)]
mod tests;

/// Batches that wait for a slow reader.
const QUEUED: usize = 2;

/// What a query may hold in memory at any one place: a side of a join, groups, rows to be sorted.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Rows.
    pub rows: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: REFERENCE_ROWS, bytes: REFERENCE_BYTES }
    }
}

/// The interpreter.
#[derive(Debug, Default)]
pub struct Interpreter {
    limits: Limits,
    /// Random numbers of each query come from the next seed.
    seed: AtomicU64,
}

impl Interpreter {
    /// One with these limits; `seed` is what random numbers begin with.
    pub const fn new(limits: Limits, seed: u64) -> Self {
        Self { limits, seed: AtomicU64::new(seed) }
    }

    /// Runs a query and gives its batches to `sink`, until it breaks off. Blocks.
    pub fn execute(
        &self,
        query: &Query,
        tables: &Tables,
        cancel: &Cancel,
        sink: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        execute(query, tables, self.limits, seed, cancel, sink)
    }

    /// All rows of a query at once. Blocks.
    pub fn collect(&self, query: &Query, tables: &Tables) -> Result<Vec<RecordBatch>, QueryError> {
        let mut batches = Vec::new();
        self.execute(query, tables, &Cancel::default(), &mut |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        })?;
        Ok(batches)
    }
}

fn execute(
    query: &Query,
    tables: &Tables,
    limits: Limits,
    seed: u64,
    cancel: &Cancel,
    sink: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<(), QueryError> {
    let run = run::Run::new(tables, limits, cancel, seed);
    let _ = run.query(query, None, &mut |rows| {
        let batch = batch(&query.fields, rows.columns, rows.count).map_err(QueryError::internal)?;
        Ok(sink(batch))
    })?;
    Ok(())
}

impl QueryBackend for Interpreter {
    fn run(&self, run: Run) -> Pin<Box<dyn Future<Output = Result<BatchStream, QueryError>> + Send + '_>> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        let limits = self.limits;
        Box::pin(async move {
            if effort(&run.query, &run.tables) <= SMALL_PRODUCT_ROWS {
                return ready(&run, limits, seed);
            }
            Ok(streamed(run, limits, seed))
        })
    }
}

/// The most pairings of rows that a query can come to: the product of all its tables' rows.
pub(crate) fn effort(query: &Query, tables: &Tables) -> u64 {
    let mut product: u64 = 1;
    each_table(query, &mut |relation| {
        if let Relation::Table(table) = relation {
            let rows = tables.get(&table.schema, &table.table).map_or(0, |table| table.rows());
            product = product.saturating_mul(rows.max(1));
        }
    });
    product
}

fn each_table(query: &Query, f: &mut dyn FnMut(&Relation)) {
    let select = match &query.body {
        Body::Select(select) => select,
        Body::Set { left, right, .. } => {
            each_table(left, f);
            return each_table(right, f);
        }
    };
    for relation in &select.relations {
        f(relation);
        if let Relation::Query(inner) = relation {
            each_table(inner, f);
        }
    }
    let arguments = select.aggregates.iter().flat_map(|aggregate| &aggregate.arguments);
    let exprs = select.filter.iter().chain(&select.having).chain(&select.keys).chain(&select.items);
    for expr in exprs.chain(arguments).chain(select.from.iter().flat_map(conditions)) {
        any(expr, &mut |node| {
            if let Some(inner) = subquery(node) {
                each_table(inner, f);
            }
            false
        });
    }
}

/// The conditions of a join and of those under it.
fn conditions(join: &Join) -> Vec<&Expr> {
    match join {
        Join::Leaf(_) => Vec::new(),
        Join::Pair { left, right, on, .. } => {
            let mut all = conditions(left);
            all.extend(conditions(right));
            all.extend(on);
            all
        }
    }
}

/// Adds batches up to a number of rows.
struct Limited {
    left: Option<u64>,
}

impl Limited {
    /// The part of a batch that is within the limit, and whether more is.
    fn cut(&mut self, batch: RecordBatch) -> (RecordBatch, ControlFlow<()>) {
        let Some(left) = &mut self.left else { return (batch, ControlFlow::Continue(())) };
        let rows = usize::try_from(*left).unwrap_or(usize::MAX).min(batch.num_rows());
        *left -= rows as u64;
        let flow = if *left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        (batch.slice(0, rows), flow)
    }
}

/// A query so small that it is answered here and now.
fn ready(run: &Run, limits: Limits, seed: u64) -> Result<BatchStream, QueryError> {
    let mut batches = std::collections::VecDeque::new();
    let mut limited = Limited { left: run.limit };
    execute(&run.query, &run.tables, limits, seed, &run.cancel, &mut |batch| {
        let (batch, flow) = limited.cut(batch);
        batches.push_back(batch);
        flow
    })?;
    Ok(Box::pin(Ready(batches)))
}

struct Ready(std::collections::VecDeque<RecordBatch>);

impl Stream for Ready {
    type Item = Result<RecordBatch, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// A query that runs on a thread of its own, as far ahead of its reader as [`QUEUED`] batches.
fn streamed(run: Run, limits: Limits, seed: u64) -> BatchStream {
    let (sender, receiver) = mpsc::channel(QUEUED);
    let stop = run.cancel.clone();
    tokio::task::spawn_blocking(move || {
        let mut limited = Limited { left: run.limit };
        let done = execute(&run.query, &run.tables, limits, seed, &run.cancel, &mut |batch| {
            let (batch, flow) = limited.cut(batch);
            match sender.blocking_send(Event::Rows(batch)) {
                Ok(()) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        });
        // Nobody listens any more if this fails.
        let _ = sender.blocking_send(match done {
            Ok(()) => Event::End,
            Err(error) => Event::Failed(error),
        });
    });
    Box::pin(Streamed { receiver: Some(receiver), stop })
}

enum Event {
    Rows(RecordBatch),
    Failed(QueryError),
    End,
}

struct Streamed {
    receiver: Option<mpsc::Receiver<Event>>,
    stop: Cancel,
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.stop.set();
    }
}

impl Stream for Streamed {
    type Item = Result<RecordBatch, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
        let Poll::Ready(event) = receiver.poll_recv(context) else { return Poll::Pending };
        if let Some(Event::Rows(batch)) = event {
            return Poll::Ready(Some(Ok(batch)));
        }
        self.receiver = None;
        Poll::Ready(match event {
            Some(Event::End) => None,
            Some(Event::Failed(error)) => Some(Err(error)),
            // Without a word: the thread is gone.
            Some(Event::Rows(_)) | None => Some(Err(QueryError::internal("the query's thread ended early"))),
        })
    }
}
