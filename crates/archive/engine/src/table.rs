//! A table's rows: chunks of Arrow columns, resident or read when first needed.
//!
//! A table is immutable: loading makes a new one and the catalogue's snapshot changes hands, so a running query
//! keeps the rows it began with. Rows are numbered from 0 in stored order, which for a table with a
//! position is the order of its HEALPix cells (order 29, nested), rows without a position last; a chunk is some
//! ten thousand consecutive rows. Columns come from a [`ColumnSource`]: arrays in memory (uploads, TAP_SCHEMA) or
//! a file reader; what a reader decodes stays in the [`ColumnCache`], within its budget.

use std::sync::Arc;

use arrow_array::ArrayRef;
use trifid_archive_adql::types::Field;

use crate::cache::{ColumnCache, ColumnKey};
use crate::error::QueryError;
use crate::index::Indexes;

/// A row's number in its table; a table has fewer than 2^32 rows.
pub type Row = u32;

/// Which columns hold a row's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Longitude in degrees (UCD `pos.eq.ra;meta.main`).
    pub lon: usize,
    /// Latitude in degrees (UCD `pos.eq.dec;meta.main`).
    pub lat: usize,
}

/// What a query needs to know of a table besides its rows.
#[derive(Clone, Debug)]
pub struct TableHead {
    /// The schema as declared.
    pub schema: Arc<str>,
    /// The name as declared, without its schema.
    pub name: Arc<str>,
    /// The columns in order.
    pub fields: Arc<[Field]>,
    /// Where its rows are on the sky, if they are anywhere.
    pub position: Option<Position>,
}

/// Where the columns of a table come from. Called from a thread that may block.
pub trait ColumnSource: Send + Sync + 'static {
    /// The values of one column of one chunk, as many as the chunk has rows, in the physical type of the
    /// column's field.
    fn read(&self, chunk: usize, column: usize) -> Result<ArrayRef, QueryError>;

    /// The same where it costs nothing, because the source is memory; such arrays are not cached.
    fn resident(&self, chunk: usize, column: usize) -> Option<ArrayRef> {
        let _ = (chunk, column);
        None
    }
}

/// Consecutive rows.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The number of its first row.
    pub first: Row,
    /// How many rows.
    pub rows: u32,
    /// The least and greatest value of each column, where they are known; chunks may share them.
    pub ranges: Arc<[Option<Range>]>,
}

/// What is known of the values of one column in one chunk. Bounds are inclusive and may be wider than the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Bounds of the values that are not NULL; `None` if there are no such values.
    pub bounds: Option<Bounds>,
    /// Whether NULLs occur (or may).
    pub nulls: bool,
}

/// Least and greatest value. NaN is above all numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// Of whole numbers and timestamps (microseconds).
    Integer(i64, i64),
    /// Of reals.
    Double(f64, f64),
    /// Of texts, by code point.
    Text(Arc<str>, Arc<str>),
}

/// A table.
pub struct Table {
    /// What it is.
    pub head: TableHead,
    /// Its rows in order.
    pub chunks: Vec<Chunk>,
    /// What finds rows without reading them all.
    pub indexes: Indexes,
    source: Arc<dyn ColumnSource>,
    cache: Arc<ColumnCache>,
    id: u64,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}.{}, {} rows)", self.head.schema, self.head.name, self.rows())
    }
}

impl Table {
    /// A table whose columns `source` reads and `cache` keeps.
    pub fn new(
        head: TableHead,
        chunks: Vec<Chunk>,
        indexes: Indexes,
        source: Arc<dyn ColumnSource>,
        cache: Arc<ColumnCache>,
    ) -> Self {
        let id = cache.table_id();
        Self { head, chunks, indexes, source, cache, id }
    }

    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.chunks.last().map_or(0, |chunk| u64::from(chunk.first) + u64::from(chunk.rows))
    }

    /// The values of a column in a chunk; reads them if they are not at hand, which may take milliseconds.
    pub fn column(&self, chunk: usize, column: usize) -> Result<ArrayRef, QueryError> {
        let key = ColumnKey { table: self.id, chunk: chunk as u32, column: column as u32 };
        if let Some(array) = self.resident(chunk, column) {
            return Ok(array);
        }
        let array = self.source.read(chunk, column)?;
        self.cache.put(key, &array);
        Ok(array)
    }

    /// The values of a column in a chunk if they are at hand.
    pub fn resident(&self, chunk: usize, column: usize) -> Option<ArrayRef> {
        let cached =
            || self.cache.get(ColumnKey { table: self.id, chunk: chunk as u32, column: column as u32 });
        self.source.resident(chunk, column).or_else(cached)
    }

    /// The chunk that holds a row.
    pub fn chunk_of(&self, row: Row) -> usize {
        self.chunks.partition_point(|chunk| chunk.first <= row).saturating_sub(1)
    }
}
