//! What is known of attached files before they are read: their row groups, and the pages of those.
//!
//! A chunk of an attached table is a row group, or, where the column of cells has a page index (Parquet format,
//! PageIndex), the rows of one or more of its pages: a cone then reads the pages that it touches, and of every other
//! column those with the same rows. Pages of fewer than [`PAGE_CHUNK_ROWS`] rows go together.
//!
//! To learn that, every footer must be read once. What was learned is kept beside the description of the table, with
//! the size and the time of each file; as long as these are the same a table is opened by one small file and the first
//! footer, and the other footers are read when a query comes to their rows. It is a cache: whatever does not fit is
//! learned anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow_schema::Schema;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use serde::{Deserialize, Serialize};
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::table::{Bounds, Chunk, Range, Row};

use super::manifest::Kept;
use super::segment::CELLS;
use super::source::Group;
use super::{StoreError, replace};
use crate::limits::{ATTACHED_RANGES, PAGE_CHUNK_ROWS};

/// The version of what is kept.
const LAYOUT: u32 = 1;

/// What was learned of the files of a table.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Survey {
    layout: u32,
    /// The names of the table's columns: the ranges are theirs.
    columns: Vec<String>,
    files: Vec<Known>,
    row_groups: Vec<RowGroup>,
}

/// A file as it was.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    path: PathBuf,
    bytes: u64,
    /// In nanoseconds.
    modified: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RowGroup {
    file: usize,
    row_group: usize,
    rows: u32,
    /// One for each column, or none at all.
    ranges: Vec<Option<Kept>>,
    parts: Vec<Part>,
}

/// The rows of one or more pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    rows: u32,
    /// The least and the greatest cell.
    cells: (i64, i64),
}

/// Any cell.
const ANYWHERE: (i64, i64) = (i64::MIN, i64::MAX);

/// The columns of an attached table, in the table and in its files.
pub(super) struct Columns<'a> {
    pub(super) fields: &'a [Field],
    pub(super) places: &'a [usize],
    pub(super) schema: &'a Schema,
}

impl Columns<'_> {
    /// The column of cells.
    pub(super) fn cells(&self) -> Option<usize> {
        self.fields.iter().position(|field| *field.name == *CELLS && field.ty == Type::Long)
    }
}

impl Survey {
    /// Nothing yet of these files.
    pub(super) fn new(columns: &Columns<'_>, files: &[PathBuf]) -> Result<Self, StoreError> {
        Ok(Self {
            layout: LAYOUT,
            columns: columns.fields.iter().map(|field| field.name.to_string()).collect(),
            files: files.iter().map(|path| known(path)).collect::<Result<_, _>>()?,
            row_groups: Vec::new(),
        })
    }

    /// What was learned before of the same files, if anything was kept.
    pub(super) fn kept(&self, path: &Path) -> Option<Self> {
        let kept: Self = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let same = kept.layout == self.layout && kept.columns == self.columns && kept.files == self.files;
        same.then_some(kept)
    }

    /// Keeps what was learned. A folder that cannot be written to is one that is learned anew.
    pub(super) fn keep(&self, path: &Path) {
        let kept = serde_json::to_vec(self).map_err(std::io::Error::other);
        if let Err(error) = kept.and_then(|kept| replace(path, &kept).map_err(std::io::Error::other)) {
            tracing::warn!(%error, "what is known of attached files could not be kept");
        }
    }

    /// Takes up a file's footer.
    pub(super) fn learn(&mut self, file: usize, footer: &ParquetMetaData, columns: &Columns<'_>) {
        let leaves: Vec<Option<usize>> =
            columns.places.iter().map(|place| leaf(columns.schema, *place)).collect();
        let cells = columns.cells();
        for (row_group, group) in footer.row_groups().iter().enumerate() {
            let rows = u32::try_from(group.num_rows()).unwrap_or(u32::MAX);
            if rows == 0 {
                continue;
            }
            let range = |(field, leaf): (&Field, &Option<usize>)| range(group, (*leaf)?, field.ty);
            let ranges: Vec<Option<Range>> = columns.fields.iter().zip(&leaves).map(range).collect();
            let whole = Part { rows, cells: cells.map_or(ANYWHERE, |cells| span(ranges[cells].as_ref())) };
            let leaf = cells.and_then(|cells| leaves[cells]);
            let pages = leaf.and_then(|leaf| pages(footer, row_group, leaf, rows));
            let room = (self.row_groups.len() + 1).saturating_mul(ranges.len()) <= ATTACHED_RANGES;
            let ranges = if room { ranges } else { Vec::new() };
            self.row_groups.push(RowGroup {
                file,
                row_group,
                rows,
                ranges: ranges.iter().map(|range| range.as_ref().map(Kept::from)).collect(),
                parts: pages.map_or_else(|| vec![whole], together),
            });
        }
    }

    /// The chunks of the table, where they are, and which cells they span.
    pub(super) fn chunks(&self) -> Result<Chunks, StoreError> {
        let (mut chunks, mut groups, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut first: u64 = 0;
        for group in &self.row_groups {
            let ranges = group.ranges.iter().map(|range| range.as_ref().map(Range::from));
            let ranges: Arc<[Option<Range>]> = ranges.collect();
            let mut from: u32 = 0;
            for Part { rows, cells } in group.parts.iter().copied() {
                chunks.push(Chunk { first: row(first)?, rows, ranges: ranges.clone() });
                let (file, row_group, of) = (group.file, group.row_group, group.rows);
                groups.push(Group { file, row_group, of, from, rows });
                spans.push(cells);
                first += u64::from(rows);
                from = from.saturating_add(rows);
            }
        }
        row(first)?;
        Ok((chunks, groups, spans))
    }
}

/// Chunks, where they are, and the cells that each spans.
pub(super) type Chunks = (Vec<Chunk>, Vec<Group>, Vec<(i64, i64)>);

fn known(path: &Path) -> Result<Known, StoreError> {
    let read = fs::metadata(path).and_then(|found| Ok((found.len(), found.modified()?)));
    let (bytes, modified) = read.map_err(StoreError::io(path.display().to_string()))?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    Ok(Known { path: path.to_owned(), bytes, modified })
}

fn row(number: u64) -> Result<Row, StoreError> {
    Row::try_from(number).map_err(|_| StoreError::Mismatch("a table has fewer than 2^32 rows".into()))
}

/// The leaf column of a flat column: nested ones before it have several leaves.
fn leaf(schema: &Schema, place: usize) -> Option<usize> {
    let leaves = |ty: &arrow_schema::DataType| -> usize {
        match ty {
            arrow_schema::DataType::Struct(_) | arrow_schema::DataType::Map(..) => usize::MAX,
            _ => 1,
        }
    };
    schema.fields()[..place].iter().try_fold(0usize, |sum, field| sum.checked_add(leaves(field.data_type())))
}

fn span(range: Option<&Range>) -> (i64, i64) {
    match range.and_then(|range| range.bounds.as_ref()) {
        Some(Bounds::Integer(least, greatest)) => (*least, *greatest),
        _ => ANYWHERE,
    }
}

/// The pages of a row group's column of cells, if the file says where they are and what they hold.
fn pages(footer: &ParquetMetaData, row_group: usize, leaf: usize, rows: u32) -> Option<Vec<Part>> {
    let places = footer.offset_index()?.get(row_group)?.get(leaf)?.page_locations();
    let ColumnIndexMetaData::INT64(cells) = footer.column_index()?.get(row_group)?.get(leaf)? else {
        return None;
    };
    if places.is_empty() || cells.num_pages() != places.len() as u64 {
        return None;
    }
    let firsts = places.iter().map(|place| u32::try_from(place.first_row_index).ok());
    let mut firsts: Vec<u32> = firsts.collect::<Option<_>>()?;
    firsts.push(rows);
    // What is wrong here would give wrong rows.
    if firsts[0] != 0 || !firsts.is_sorted_by(|one, next| one < next) {
        return None;
    }
    let part = |(at, ends): (usize, &[u32])| {
        let cells = cells.min_value(at).zip(cells.max_value(at)).filter(|(least, most)| least <= most);
        Part { rows: ends[1] - ends[0], cells: cells.map_or(ANYWHERE, |(least, most)| (*least, *most)) }
    };
    Some(firsts.windows(2).enumerate().map(part).collect())
}

/// The same with small pages put together.
fn together(pages: Vec<Part>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for page in pages {
        match parts.last_mut() {
            Some(part) if part.rows < PAGE_CHUNK_ROWS => {
                part.rows += page.rows;
                part.cells = (part.cells.0.min(page.cells.0), part.cells.1.max(page.cells.1));
            }
            _ => parts.push(page),
        }
    }
    parts
}

/// What statistics tell of a column. They leave NaN out, which is above all numbers, so that there is no greatest
/// real that can be trusted.
fn range(group: &RowGroupMetaData, leaf: usize, ty: Type) -> Option<Range> {
    let statistics = group.columns().get(leaf)?.statistics()?;
    let nulls = statistics.null_count_opt() != Some(0);
    let bounds = match (statistics, ty) {
        (Statistics::Int32(values), Type::Short | Type::Int | Type::UnsignedByte | Type::Long) => {
            Bounds::Integer((*values.min_opt()?).into(), (*values.max_opt()?).into())
        }
        (Statistics::Int64(values), Type::Long) => Bounds::Integer(*values.min_opt()?, *values.max_opt()?),
        (Statistics::Double(values), Type::Double) => Bounds::Double(*values.min_opt()?, f64::NAN),
        (Statistics::Float(values), Type::Float) => Bounds::Double((*values.min_opt()?).into(), f64::NAN),
        _ => return None,
    };
    // Unsigned numbers are kept in signed ones, and their order with them.
    let turned = matches!(bounds, Bounds::Integer(least, greatest) if least > greatest || least < 0);
    (!turned || matches!(ty, Type::Short | Type::Int)).then_some(Range { bounds: Some(bounds), nulls })
}
