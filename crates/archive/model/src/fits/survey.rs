//! What has to be known of a table before its header can be written.
//!
//! A FITS header comes first and says everything: how many rows there are, how wide each string is, which
//! value stands for NULL. So a table is looked at once before it is written. The look costs no memory but
//! these few numbers a column, and runs at the speed of memory for numbers.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use crate::cell;
use crate::votable::column::{Cells, Column, items_of};
use crate::write::WriteError;

/// The numbers of a table.
#[derive(Clone, Debug)]
pub struct Survey {
    pub(super) fields: Arc<[Field]>,
    pub(super) columns: Vec<Seen>,
    pub(super) rows: u64,
    /// Whether the table was looked at, or its columns are believed what they declare.
    pub(super) is_seen: bool,
}

/// The numbers of a column.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Rows that are NULL.
    pub(super) nulls: u64,
    /// Whether a single value is NULL: of a column of them, or within an array.
    pub(super) has_null_items: bool,
    /// Least and greatest whole number.
    pub(super) least: i64,
    pub(super) most: i64,
    /// Bytes that occur, where the column is of bytes.
    pub(super) bytes: Option<Box<[bool; 256]>>,
    /// Units of a row, NULL apart: bytes of text as it is stored, items of an array.
    pub(super) shortest: u64,
    pub(super) longest: u64,
    /// Bytes of the widest string, stored, of an array of them.
    pub(super) width: u64,
    /// Sum of the units over all rows.
    pub(super) units: u64,
    /// Arrays of strings as JSON: bytes of the longest, and of all.
    pub(super) longest_json: u64,
    pub(super) json: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            nulls: 0,
            has_null_items: false,
            least: i64::MAX,
            most: i64::MIN,
            bytes: None,
            shortest: u64::MAX,
            longest: 0,
            width: 0,
            units: 0,
            longest_json: 0,
            json: 0,
        }
    }
}

impl Survey {
    /// A survey of these columns, without a row so far.
    pub fn new(fields: Arc<[Field]>) -> Self {
        let columns = fields.iter().map(|_| Seen::default()).collect();
        Self { fields, columns, rows: 0, is_seen: true }
    }

    /// What the columns declare of themselves, to write a table without looking at it. Arrays and text of
    /// unknown length are then refused, and so is a value that is needed to stand for NULL.
    pub fn declared(fields: Arc<[Field]>) -> Self {
        Self { is_seen: false, ..Self::new(fields) }
    }

    /// Looks at these rows.
    pub fn add(&mut self, batch: &RecordBatch, rows: Range<usize>) -> Result<(), WriteError> {
        let columns = cell::columns(&self.fields, batch)?;
        for (column, seen) in columns.iter().zip(&mut self.columns) {
            seen.column(column, rows.clone());
        }
        self.rows += rows.len() as u64;
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl Seen {
    fn column(&mut self, column: &Column<'_>, rows: Range<usize>) {
        match &column.cells {
            Cells::Text(values) => {
                for row in rows {
                    match column.is_null(row) {
                        true => self.null(),
                        false => self.row(stored_bytes(values.value(row))),
                    }
                }
            }
            Cells::List(offsets, items) => {
                for row in rows {
                    match column.is_null(row) {
                        true => self.null(),
                        false => self.list(items, items_of(offsets, row)),
                    }
                }
            }
            _ => self.scalars(column, rows),
        }
    }

    fn null(&mut self) {
        self.nulls += 1;
    }

    fn row(&mut self, units: u64) {
        self.shortest = self.shortest.min(units);
        self.longest = self.longest.max(units);
        self.units += units;
    }

    fn list(&mut self, items: &Column<'_>, range: Range<usize>) {
        let count = range.len() as u64;
        match &items.cells {
            Cells::Text(values) => {
                let widths = range.clone().filter(|item| !items.is_null(*item));
                let widest = widths.map(|item| stored_bytes(values.value(item))).max();
                self.width = self.width.max(widest.unwrap_or(0));
                self.row(count);
                // As a JSON array, should the arrays turn out to have no common length.
                let mut json = Vec::new();
                cell::json_texts(values, range, &mut json);
                self.longest_json = self.longest_json.max(json.len() as u64);
                self.json += json.len() as u64;
            }
            _ => {
                self.row(count);
                self.scalars(items, range);
            }
        }
    }

    /// Single values: the rows of a column, or the items of one row.
    fn scalars(&mut self, column: &Column<'_>, range: Range<usize>) {
        if range.clone().any(|row| column.is_null(row)) {
            self.has_null_items = true;
        }
        match &column.cells {
            Cells::Byte(values) => self.see_bytes(column, &values[range.clone()], range.start),
            Cells::Short(values) => self.extremes(values[range].iter().map(|&value| i64::from(value))),
            Cells::Int(values) => self.extremes(values[range].iter().map(|&value| i64::from(value))),
            Cells::Long(values) => self.extremes(values[range].iter().copied()),
            _ => {}
        }
    }

    /// A value under a NULL may be counted: it then forbids itself as the mark of NULL for no reason, which
    /// is harmless.
    fn extremes(&mut self, values: impl Iterator<Item = i64>) {
        for value in values {
            self.least = self.least.min(value);
            self.most = self.most.max(value);
        }
    }

    fn see_bytes(&mut self, column: &Column<'_>, values: &[u8], start: usize) {
        let used = self.bytes.get_or_insert_with(|| Box::new([false; 256]));
        for (at, &value) in values.iter().enumerate() {
            used[usize::from(value)] |= !column.is_null(start + at);
        }
    }
}

/// Bytes that a string takes: an empty one is a blank, since none at all is NULL; one that ends in a blank is
/// closed by a NUL, since blanks at the end of a field mean nothing (FITS 4.0 7.3.3.1).
pub(super) fn stored_bytes(text: &str) -> u64 {
    match text.as_bytes().last() {
        None => 1,
        Some(b' ') => text.len() as u64 + 1,
        Some(_) => text.len() as u64,
    }
}
