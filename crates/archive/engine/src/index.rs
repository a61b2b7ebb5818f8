//! What finds rows without reading them all.
//!
//! - [`Spatial`]: the rows are stored in the order of their HEALPix cells, so a region of the sky is a few ranges
//!   of rows. The cells are one more column of the table.
//! - [`Sorted`]: the distinct values of a column in order, and for each the rows that have it. It answers
//!   equality, IN, ranges, prefixes and ORDER BY; a column of few values costs four bytes a row, a unique one
//!   twelve.
//!
//! An index is never needed for a right answer, only for a fast one.

use arrow_array::{Float64Array, Int64Array, StringArray};

use crate::table::Row;

/// All indexes of a table.
#[derive(Debug, Default)]
pub struct Indexes {
    /// Over the position.
    pub spatial: Option<Spatial>,
    /// Over single columns.
    pub sorted: Vec<Sorted>,
}

/// The order of the rows over the sky: by cell, rows without a position last.
#[derive(Clone, Debug)]
pub struct Spatial {
    /// The column that holds the cells (Int64: HEALPix order 29, nested; `i64::MAX` without a position). It follows the
    /// table's own columns.
    pub column: usize,
    /// The first and last cell of each chunk.
    pub chunks: Vec<(i64, i64)>,
}

/// A column's values in order, and their rows.
#[derive(Debug)]
pub struct Sorted {
    /// The column.
    pub column: usize,
    /// The distinct values, ascending; NULL is not among them.
    pub values: Values,
    /// Where the rows of each value begin in `rows`, and at the end their number; `None` if each value has one row.
    pub starts: Option<Vec<u32>>,
    /// Rows by value, then by number; then those with NULL.
    pub rows: Vec<Row>,
}

/// Values of an indexed column.
#[derive(Clone, Debug)]
pub enum Values {
    /// Whole numbers, and timestamps in microseconds.
    Integer(Int64Array),
    /// Reals; Floats widened.
    Double(Float64Array),
    /// Texts.
    Text(StringArray),
}
