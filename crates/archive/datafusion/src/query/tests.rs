//! Queries on DataFusion and on the reference interpreter: the answers are the same.

use std::sync::{Arc, LazyLock};

use arrow_array::{Array, RecordBatch};
use futures_util::StreamExt as _;
use tokio::runtime::{Builder, Runtime};
use trifid_archive_adql::language::Language;
use trifid_archive_adql::parser::parse;
use trifid_archive_adql::resolve::{Options as Resolving, resolve};
use trifid_archive_adql::tree::Query;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::backend::{Cancel, QueryBackend as _, Run};
use trifid_archive_engine::catalogue::Tables;
use trifid_archive_engine::reference::Interpreter;
use trifid_base_runtime::entropy::SeededEntropy;

use super::{DataFusionBackend, Options};

pub(super) mod corpus;
mod ending;
mod generated;
mod running;
pub(crate) mod tables;

/// DataFusion for tests.
pub(crate) fn backend(threads: usize) -> DataFusionBackend {
    let options = Options { memory: 256 << 20, threads, spill_dir: None, batch_rows: 1024 };
    DataFusionBackend::new(&options, Arc::new(SeededEntropy::new(7))).unwrap()
}

/// What a text means.
pub(crate) fn resolved(text: &str, tables: &Tables) -> Arc<Query> {
    let parsed = parse(text, Language::V2_1).unwrap_or_else(|error| panic!("{}", error.report(text)));
    let resolved = resolve(&parsed, tables, &Resolving::default());
    resolved.unwrap_or_else(|error| panic!("{}", error.report(text))).query
}

/// All rows that DataFusion gives.
pub(super) fn run(
    backend: &DataFusionBackend,
    query: &Arc<Query>,
    tables: &Arc<Tables>,
) -> Result<Vec<RecordBatch>, QueryError> {
    let run = Run {
        query: query.clone(),
        plan: None,
        tables: tables.clone(),
        limit: None,
        cancel: Cancel::default(),
    };
    runtime().block_on(async {
        let mut rows = backend.run(run).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    })
}

/// Where all tests run their queries.
fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap());
    &RUNTIME
}

/// A value of an answer.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Real(f64),
    Other(String),
}

impl Cell {
    fn of(array: &dyn Array, row: usize) -> Self {
        use arrow_array::cast::AsArray as _;
        use arrow_array::types::{Float32Type, Float64Type};
        use arrow_schema::DataType;
        if array.is_null(row) || array.data_type() == &DataType::Null {
            return Self::Null;
        }
        match array.data_type() {
            DataType::Float64 => Self::Real(array.as_primitive::<Float64Type>().value(row)),
            DataType::Float32 => Self::Real(array.as_primitive::<Float32Type>().value(row).into()),
            _ => Self::Other(format!("{:?}", array.slice(row, 1))),
        }
    }

    /// Equal, but for the last digits of reals and the sign of zero.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Real(one), Self::Real(other)) => {
                one == other
                    || one.is_nan() && other.is_nan()
                    || (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
            }
            (Self::Other(one), Self::Other(other)) => one == other,
            _ => false,
        }
    }

    /// What rows are sorted by before they are compared.
    fn coarse(&self) -> String {
        match self {
            Self::Null => "~".into(),
            Self::Real(value) if *value == 0.0 => "0".into(),
            Self::Real(value) => format!("{value:.6e}"),
            Self::Other(text) => text.clone(),
        }
    }
}

/// The rows of an answer.
pub(super) fn cells(batches: &[RecordBatch]) -> Vec<Vec<Cell>> {
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    rows.map(|(batch, row)| batch.columns().iter().map(|column| Cell::of(column, row)).collect()).collect()
}

fn is_same(one: &[Cell], other: &[Cell]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is(other))
}

/// Whether the rows are the same in some order.
pub(super) fn same_rows(one: &[Vec<Cell>], other: &[Vec<Cell>]) -> bool {
    let sorted = |rows: &[Vec<Cell>]| {
        let mut rows = rows.to_vec();
        rows.sort_by_cached_key(|row| row.iter().map(Cell::coarse).collect::<Vec<_>>());
        rows
    };
    let (one, mut other) = (sorted(one), sorted(other));
    if one.len() != other.len() {
        return false;
    }
    one.iter().all(|row| {
        // Rounding may have sorted neighbours otherwise.
        let place = other.iter().position(|candidate| is_same(row, candidate));
        place.map(|place| other.remove(place)).is_some()
    })
}

/// Whether the rows are in the same order, as far as the query's order tells rows apart.
fn same_order(query: &Query, one: &[Vec<Cell>], other: &[Vec<Cell>]) -> bool {
    let shown: Vec<usize> =
        query.order.iter().map(|key| key.item).take_while(|item| *item < query.fields.len()).collect();
    one.iter().zip(other).all(|(one, other)| shown.iter().all(|item| one[*item].is(&other[*item])))
}

/// Runs a query on both and compares. An error that only the reference meets is forgiven: a planner may look at fewer
/// rows.
pub(crate) fn compare(
    backend: &DataFusionBackend,
    query: &Arc<Query>,
    tables: &Arc<Tables>,
) -> Result<usize, String> {
    let expected = Interpreter::default().collect(query, tables);
    let found = run(backend, query, tables);
    let (expected, found) = match (expected, found) {
        (Ok(expected), Ok(found)) => (cells(&expected), cells(&found)),
        (Err(QueryError::Invalid(_)), Err(QueryError::Invalid(_)) | Ok(_)) => return Ok(0),
        (expected, found) => {
            let words =
                |outcome: Result<Vec<RecordBatch>, QueryError>| outcome.map(|batches| cells(&batches).len());
            return Err(format!("expected {:?}, found {:?}", words(expected), words(found)));
        }
    };
    if let Some(message) = difference(query, &expected, &found) {
        return Err(message);
    }
    Ok(found.len())
}

fn difference(query: &Query, expected: &[Vec<Cell>], found: &[Vec<Cell>]) -> Option<String> {
    let arbitrary = query.top.is_some() || query.offset.is_some();
    if arbitrary && query.order.is_empty() {
        return (expected.len() != found.len())
            .then(|| format!("expected {} rows, found {}", expected.len(), found.len()));
    }
    if !arbitrary && !same_rows(expected, found) || !same_order(query, expected, found) {
        return Some(format!(
            "expected {} rows {:?}\nfound {} rows {:?}",
            expected.len(),
            &expected[..expected.len().min(12)],
            found.len(),
            &found[..found.len().min(12)]
        ));
    }
    None
}
