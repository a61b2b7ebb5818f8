//! What a version of a table consists of, in JSON.

use serde::{Deserialize, Serialize};
use trifid_archive_engine::table::{Bounds, Range};

/// The version of the layout that is written.
pub(super) const LAYOUT: u32 = 1;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) layout: u32,
    pub(super) rows: u64,
    /// The columns of the position in whose cells' order the rows are: longitude, latitude. The cells are one more
    /// column then.
    pub(super) position: Option<(usize, usize)>,
    pub(super) chunks: Vec<Chunk>,
    /// The columns that have an index.
    pub(super) indexed: Vec<usize>,
}

/// Rows of one row group.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub(super) segment: u32,
    pub(super) row_group: u32,
    pub(super) rows: u32,
    /// First and last cell.
    pub(super) cells: Option<(i64, i64)>,
    /// One for each column.
    pub(super) ranges: Vec<Option<Kept>>,
}

/// The range of a column in a chunk. Reals are kept as bits: JSON has no NaN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    nulls: bool,
    bounds: Option<KeptBounds>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeptBounds {
    Integer(i64, i64),
    Double(u64, u64),
    Text(String, String),
}

impl From<&Range> for Kept {
    fn from(range: &Range) -> Self {
        let bounds = range.bounds.as_ref().map(|bounds| match bounds {
            Bounds::Integer(low, high) => KeptBounds::Integer(*low, *high),
            Bounds::Double(low, high) => KeptBounds::Double(low.to_bits(), high.to_bits()),
            Bounds::Text(low, high) => KeptBounds::Text(low.to_string(), high.to_string()),
        });
        Self { nulls: range.nulls, bounds }
    }
}

impl From<&Kept> for Range {
    fn from(kept: &Kept) -> Self {
        let bounds = kept.bounds.as_ref().map(|bounds| match bounds {
            KeptBounds::Integer(low, high) => Bounds::Integer(*low, *high),
            KeptBounds::Double(low, high) => Bounds::Double(f64::from_bits(*low), f64::from_bits(*high)),
            KeptBounds::Text(low, high) => Bounds::Text(low.as_str().into(), high.as_str().into()),
        });
        Self { nulls: kept.nulls, bounds }
    }
}
