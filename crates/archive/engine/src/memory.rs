//! Tables in memory: uploads, TAP_SCHEMA, small catalogues that come with the program.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::take::take;
use std::sync::Arc;
use trifid_archive_model::batch;
use trifid_archive_model::healpix;

use crate::cache::ColumnCache;
use crate::error::QueryError;
use crate::index::{Indexes, NO_CELL, Sorted, Spatial};
use crate::limits::CHUNK_ROWS;
use crate::table::{Bounds, Chunk, ColumnSource, Position, Range, Row, Table, TableHead};

/// Columns in memory, by chunk.
#[derive(Debug)]
pub struct Resident(Vec<Vec<ArrayRef>>);

impl ColumnSource for Resident {
    fn read(&self, chunk: usize, column: usize) -> Result<ArrayRef, QueryError> {
        self.resident(chunk, column).ok_or_else(|| QueryError::internal("no such column in memory"))
    }

    fn resident(&self, chunk: usize, column: usize) -> Option<ArrayRef> {
        self.0.get(chunk)?.get(column).cloned()
    }
}

impl Table {
    /// A table of these rows, which must be in the physical types of the head's fields. If it has a position the rows
    /// are put in the order of the sky; the named columns get an index.
    pub fn in_memory(
        head: TableHead,
        batches: &[RecordBatch],
        indexed: &[usize],
    ) -> Result<Self, QueryError> {
        Self::in_chunks(head, batches, indexed, CHUNK_ROWS)
    }

    /// The same in chunks of so many rows.
    pub(crate) fn in_chunks(
        head: TableHead,
        batches: &[RecordBatch],
        indexed: &[usize],
        chunk_rows: usize,
    ) -> Result<Self, QueryError> {
        let mut columns = joined(&head, batches)?;
        if let Some(position) = head.position {
            columns = by_cell(&columns, position)?;
        }
        let rows = columns.first().map_or(0, |column| column.len());
        if Row::try_from(rows).is_err() {
            return Err(QueryError::TooLarge("a table has fewer than 2^32 rows".into()));
        }
        let width = head.fields.len();
        let indexes = Indexes {
            sorted: indexed.iter().filter_map(|at| Sorted::build(*at, &columns[*at..=*at])).collect(),
            spatial: columns.get(width).map(|cells| Spatial {
                column: width,
                chunks: spans(cells, chunk_rows),
                ordered: true,
            }),
        };
        let starts = (0..rows).step_by(chunk_rows);
        let cut = |start: usize| -> Vec<ArrayRef> {
            columns.iter().map(|column| column.slice(start, chunk_rows.min(rows - start))).collect()
        };
        let parts: Vec<Vec<ArrayRef>> = starts.map(cut).collect();
        let chunks = chunks(&parts, width);
        // Nothing here is ever decoded, so there is nothing to keep.
        Ok(Self::new(head, chunks, indexes, Arc::new(Resident(parts)), Arc::new(ColumnCache::new(0))))
    }
}

/// Each column as one array.
fn joined(head: &TableHead, batches: &[RecordBatch]) -> Result<Vec<ArrayRef>, QueryError> {
    let column = |(at, field): (usize, &trifid_archive_adql::types::Field)| {
        let physical = batch::physical(field.ty);
        let parts: Vec<&dyn Array> =
            batches.iter().filter_map(|b| b.columns().get(at)).map(AsRef::as_ref).collect();
        if let Some(strange) = parts.iter().find(|part| *part.data_type() != physical) {
            let found = strange.data_type();
            return Err(QueryError::internal(format_args!(
                "column {} holds {found}, not {physical}",
                field.name
            )));
        }
        match parts.as_slice() {
            [] => Ok(arrow_array::new_empty_array(&physical)),
            [_] => Ok(Arc::clone(batches[0].column(at))),
            _ => concat(&parts).map_err(QueryError::internal),
        }
    };
    head.fields.iter().enumerate().map(column).collect()
}

/// The columns with their rows in the order of the sky, and the cells as one more.
fn by_cell(columns: &[ArrayRef], position: Position) -> Result<Vec<ArrayRef>, QueryError> {
    let cells = cells(&columns[position.lon], &columns[position.lat]);
    let mut order: Vec<u32> = (0..cells.len() as u32).collect();
    order.sort_by_key(|row| cells[*row as usize]);
    let sorted = Int64Array::from_iter_values(order.iter().map(|row| cells[*row as usize]));
    let order = UInt32Array::from(order);
    let mut moved: Vec<ArrayRef> = columns
        .iter()
        .map(|column| take(column, &order, None))
        .collect::<Result<_, _>>()
        .map_err(QueryError::internal)?;
    moved.push(Arc::new(sorted));
    Ok(moved)
}

/// The cell of each row: order 29, nested; [`NO_CELL`] where there is no position.
pub fn cells(lon: &ArrayRef, lat: &ArrayRef) -> Vec<i64> {
    let (lon, lat) = (degrees(lon), degrees(lat));
    let cell = |(lon, lat): (&f64, &f64)| healpix::hash29(*lon, *lat).map_or(NO_CELL, |cell| cell as i64);
    lon.iter().zip(&lat).map(cell).collect()
}

/// The values as reals, NaN where there are none.
fn degrees(column: &ArrayRef) -> Vec<f64> {
    let valid = |at: usize| column.is_valid(at);
    match column.data_type() {
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().values();
            values.iter().enumerate().map(|(at, v)| if valid(at) { *v } else { f64::NAN }).collect()
        }
        DataType::Float32 => {
            let values = column.as_primitive::<Float32Type>().values();
            values
                .iter()
                .enumerate()
                .map(|(at, v)| if valid(at) { f64::from(*v) } else { f64::NAN })
                .collect()
        }
        _ => vec![f64::NAN; column.len()],
    }
}

/// The first and last cell of each chunk.
fn spans(cells: &ArrayRef, chunk_rows: usize) -> Vec<(i64, i64)> {
    let cells = cells.as_primitive::<Int64Type>().values();
    cells.chunks(chunk_rows).map(|chunk| (chunk[0], chunk[chunk.len() - 1])).collect()
}

fn chunks(parts: &[Vec<ArrayRef>], width: usize) -> Vec<Chunk> {
    let mut first: Row = 0;
    let mut chunk = |columns: &Vec<ArrayRef>| {
        let rows = columns.first().map_or(0, |column| column.len()) as u32;
        let ranges = columns.iter().take(width).map(range).collect();
        let made = Chunk { first, rows, ranges };
        first += rows;
        made
    };
    parts.iter().map(&mut chunk).collect()
}

/// Least and greatest value of an array, for types with an order.
pub fn range(array: &ArrayRef) -> Option<Range> {
    let bounds = match array.data_type() {
        DataType::UInt8 => integers(array, |at| array.as_primitive::<UInt8Type>().value(at).into()),
        DataType::Int16 => integers(array, |at| array.as_primitive::<Int16Type>().value(at).into()),
        DataType::Int32 => integers(array, |at| array.as_primitive::<Int32Type>().value(at).into()),
        DataType::Int64 => integers(array, |at| array.as_primitive::<Int64Type>().value(at)),
        DataType::Timestamp(..) => {
            integers(array, |at| array.as_primitive::<TimestampMicrosecondType>().value(at))
        }
        DataType::Float32 => doubles(array, |at| array.as_primitive::<Float32Type>().value(at).into()),
        DataType::Float64 => doubles(array, |at| array.as_primitive::<Float64Type>().value(at)),
        DataType::Utf8 => texts(array),
        _ => return None,
    };
    Some(Range { bounds, nulls: array.null_count() > 0 })
}

fn valid(array: &ArrayRef) -> impl Iterator<Item = usize> + '_ {
    (0..array.len()).filter(|at| array.is_valid(*at))
}

fn integers(array: &ArrayRef, value: impl Fn(usize) -> i64) -> Option<Bounds> {
    let mut values = valid(array).map(value);
    let first = values.next()?;
    let (least, greatest) =
        values.fold((first, first), |(least, greatest), v| (least.min(v), greatest.max(v)));
    Some(Bounds::Integer(least, greatest))
}

/// NaN counts as the greatest of all.
fn doubles(array: &ArrayRef, value: impl Fn(usize) -> f64) -> Option<Bounds> {
    let above = |a: f64, b: f64| if a.is_nan() || a > b { a } else { b };
    let below = |a: f64, b: f64| if b.is_nan() || a < b { a } else { b };
    let mut values = valid(array).map(value);
    let first = values.next()?;
    let (least, greatest) =
        values.fold((first, first), |(least, greatest), v| (below(least, v), above(greatest, v)));
    Some(Bounds::Double(least, greatest))
}

fn texts(array: &ArrayRef) -> Option<Bounds> {
    let mut values = array.as_string::<i32>().iter().flatten();
    let first = values.next()?;
    let (least, greatest) =
        values.fold((first, first), |(least, greatest), v| (least.min(v), greatest.max(v)));
    Some(Bounds::Text(least.into(), greatest.into()))
}
