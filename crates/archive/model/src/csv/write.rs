//! The writer of CSV and TSV. Cost per row: one copy per cell, and a look for quotes only in batches that
//! have some.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use trifid_archive_adql::types::Field;

use super::Delimiter;
use crate::cell;
use crate::votable::column::{Cells, Column};
use crate::write::{End, TableWriter, WriteError};

/// CSV or TSV under way.
#[derive(Debug)]
pub struct Writer {
    fields: Arc<[Field]>,
    delimiter: u8,
}

impl Writer {
    /// A writer of these columns.
    pub fn new(fields: Arc<[Field]>, delimiter: Delimiter) -> Self {
        Self { fields, delimiter: delimiter.byte() }
    }

    fn columns<'a>(
        &self,
        batch: &'a RecordBatch,
        rows: &Range<usize>,
    ) -> Result<Vec<Quoted<'a>>, WriteError> {
        let columns = cell::columns(&self.fields, batch)?;
        Ok(columns.into_iter().map(|column| Quoted::of(column, self.delimiter, rows)).collect())
    }
}

impl TableWriter for Writer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        for (index, field) in self.fields.iter().enumerate() {
            if index > 0 {
                out.push(self.delimiter);
            }
            text(field.name.as_bytes(), self.delimiter, out);
        }
        out.push(b'\n');
    }

    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let columns = self.columns(batch, &rows)?;
        for row in rows {
            for column in &columns {
                column.write(row, self.delimiter, out);
                out.push(self.delimiter);
            }
            // The last delimiter becomes the line's end; a table without columns has lines all the same.
            match out.last_mut() {
                Some(last) if !columns.is_empty() => *last = b'\n',
                _ => out.push(b'\n'),
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _end: &End, _out: &mut Vec<u8>) {}
}

/// A column and how its cells are quoted.
struct Quoted<'a> {
    column: Column<'a>,
    quoting: Quoting,
}

/// What has to be looked at before a cell is written.
enum Quoting {
    /// Nothing: numbers, truths and instants need no quotes.
    Never,
    /// The ends of the cell: no byte of these rows is special.
    Ends,
    /// Every byte.
    Bytes,
}

impl<'a> Quoted<'a> {
    fn of(column: Column<'a>, delimiter: u8, rows: &Range<usize>) -> Self {
        let quoting = match &column.cells {
            Cells::Text(array) if is_clean(array, delimiter, rows) => Quoting::Ends,
            Cells::Text(_) => Quoting::Bytes,
            Cells::List(_, items) if matches!(items.cells, Cells::Text(_)) => Quoting::Bytes,
            _ => Quoting::Never,
        };
        Self { column, quoting }
    }

    #[inline]
    fn write(&self, row: usize, delimiter: u8, out: &mut Vec<u8>) {
        if self.column.is_null(row) {
            return;
        }
        match (&self.quoting, &self.column.cells) {
            (Quoting::Never, cells) => cell::write(cells, row, out),
            (Quoting::Ends, Cells::Text(array)) => clean(array.value(row).as_bytes(), out),
            (_, Cells::Text(array)) => text(array.value(row).as_bytes(), delimiter, out),
            (_, cells) => {
                let mut joined = Vec::new();
                cell::write(cells, row, &mut joined);
                text(&joined, delimiter, out);
            }
        }
    }
}

/// Whether no byte of these rows needs quotes: one pass at memory speed over the text of all rows.
fn is_clean(array: &StringArray, delimiter: u8, rows: &Range<usize>) -> bool {
    let offsets = array.value_offsets();
    let (Some(&start), Some(&end)) = (offsets.get(rows.start), offsets.get(rows.end)) else { return false };
    array.value_data().get(start as usize..end as usize).is_some_and(|bytes| !has_special(bytes, delimiter))
}

fn has_special(bytes: &[u8], delimiter: u8) -> bool {
    memchr::memchr3(delimiter, b'"', b'\n', bytes).is_some() || memchr::memchr(b'\r', bytes).is_some()
}

/// Whether the ends ask for quotes: an empty string is not NULL, readers trim blanks, some take `#` for a
/// comment.
fn has_odd_ends(bytes: &[u8]) -> bool {
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => matches!(first, b' ' | b'#' | b'\t') || matches!(last, b' ' | b'\t'),
        _ => true,
    }
}

#[inline]
fn clean(bytes: &[u8], out: &mut Vec<u8>) {
    if has_odd_ends(bytes) {
        quoted(bytes, out);
    } else {
        out.extend_from_slice(bytes);
    }
}

fn text(bytes: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    if has_special(bytes, delimiter) { quoted(bytes, out) } else { clean(bytes, out) }
}

/// RFC 4180 section 2, rules 5 to 7.
fn quoted(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = bytes;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        let (before, after) = rest.split_at(quote + 1);
        out.extend_from_slice(before);
        out.push(b'"');
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
