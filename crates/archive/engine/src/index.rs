//! What finds rows without reading them all.
//!
//! - [`Spatial`]: the rows are stored in the order of their HEALPix cells, so a region of the sky is a few ranges
//!   of rows. The cells are one more column of the table.
//! - [`Sorted`]: the distinct values of a column in order, and for each the rows that have it. It answers
//!   equality, IN, ranges, prefixes and ORDER BY; a column of few values costs four bytes a row, a unique one
//!   twelve.
//!
//! An index is never needed for a right answer, only for a fast one.

mod build;
mod codec;
#[cfg(test)]
mod tests;

use std::ops::{Bound, Range};

use arrow_array::{Array as _, Float64Array, Int64Array, StringArray};

pub use codec::{CodecError, decode, encode};

use crate::table::Row;

/// All indexes of a table.
#[derive(Debug, Default)]
pub struct Indexes {
    /// Over the position.
    pub spatial: Option<Spatial>,
    /// Over single columns.
    pub sorted: Vec<Sorted>,
}

impl Indexes {
    /// The index over a column.
    pub fn sorted(&self, column: usize) -> Option<&Sorted> {
        self.sorted.iter().find(|sorted| sorted.column == column)
    }
}

/// The order of the rows over the sky: by cell, rows without a position last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// The column that holds the cells (Int64: HEALPix order 29, nested; [`NO_CELL`] without a position). It
    /// follows the table's own columns.
    pub column: usize,
    /// The least and greatest cell of each chunk.
    pub chunks: Vec<(i64, i64)>,
    /// Whether the rows are known to be in the order of the cells within each chunk; files of others only say so.
    pub ordered: bool,
}

/// The cell of a row without a position: above every cell of the sky.
pub const NO_CELL: i64 = i64::MAX;

/// A column's values in order, and their rows.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers, and timestamps in microseconds.
    Integer(Int64Array),
    /// Reals; Floats widened. NaN is last, -0 was made 0.
    Double(Float64Array),
    /// Texts, by code point.
    Text(StringArray),
}

/// A value that is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted<'a> {
    /// In a column of whole numbers or timestamps.
    Integer(i64),
    /// In a column of reals.
    Double(f64),
    /// In a column of texts.
    Text(&'a str),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Integer(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// How many distinct values are below `wanted` (or not above it, if `inclusive`); `None` if the kinds differ.
    fn below(&self, wanted: Wanted<'_>, inclusive: bool) -> Option<usize> {
        Some(match (self, wanted) {
            (Self::Integer(values), Wanted::Integer(wanted)) => {
                values.values().partition_point(|value| *value < wanted || (inclusive && *value == wanted))
            }
            (Self::Double(values), Wanted::Double(wanted)) => {
                let wanted = wanted + 0.0;
                values.values().partition_point(|value| {
                    let order = value.total_cmp(&canonical(wanted));
                    order.is_lt() || (inclusive && order.is_eq())
                })
            }
            (Self::Text(values), Wanted::Text(wanted)) => {
                text_partition(values, |value| value < wanted || (inclusive && value == wanted))
            }
            _ => return None,
        })
    }
}

/// One NaN for all.
fn canonical(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// The number of leading texts for which `first_half` holds.
fn text_partition(values: &StringArray, first_half: impl Fn(&str) -> bool) -> usize {
    let (mut low, mut high) = (0, values.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if first_half(values.value(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Sorted {
    /// How many rows have a value.
    pub fn valued(&self) -> usize {
        let distinct = self.values.len();
        self.starts.as_ref().map_or(distinct, |starts| starts.last().map_or(0, |end| *end as usize))
    }

    /// How many distinct values there are.
    pub fn distinct(&self) -> usize {
        self.values.len()
    }

    /// The places in [`Self::rows`] of the rows whose value is within bounds; `None` if the column holds another kind
    /// of values.
    pub fn range(&self, low: Bound<Wanted<'_>>, high: Bound<Wanted<'_>>) -> Option<Range<usize>> {
        let first = match low {
            Bound::Unbounded => 0,
            Bound::Included(low) => self.values.below(low, false)?,
            Bound::Excluded(low) => self.values.below(low, true)?,
        };
        let end = match high {
            Bound::Unbounded => self.values.len(),
            Bound::Included(high) => self.values.below(high, true)?,
            Bound::Excluded(high) => self.values.below(high, false)?,
        };
        Some(self.place(first)..self.place(end.max(first)))
    }

    /// The places of the rows with exactly this value.
    pub fn equal(&self, wanted: Wanted<'_>) -> Option<Range<usize>> {
        self.range(Bound::Included(wanted), Bound::Included(wanted))
    }

    /// The places of the rows whose text begins with `prefix`.
    pub fn prefixed(&self, prefix: &str) -> Option<Range<usize>> {
        let Values::Text(values) = &self.values else { return None };
        let first = text_partition(values, |value| value < prefix);
        let end = text_partition(values, |value| value < prefix || value.starts_with(prefix));
        Some(self.place(first)..self.place(end))
    }

    /// Where the rows of the distinct value with this ordinal begin.
    fn place(&self, value: usize) -> usize {
        self.starts.as_ref().map_or(value, |starts| starts.get(value).map_or(0, |place| *place as usize))
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Integer(values) => values.get_array_memory_size(),
            Values::Double(values) => values.get_array_memory_size(),
            Values::Text(values) => values.get_array_memory_size(),
        };
        values + 4 * (self.rows.len() + self.starts.as_ref().map_or(0, Vec::len))
    }
}
