//! Parquet from strangers: read like any other, and no larger than it may become.
//!
//! Some bytes of Parquet can stand for any number of values: pages are compressed, equal values are counted, a
//! dictionary repeats a long text by a number. So before anything is unpacked the headers of all pages are added up
//! ([`super::headers`]), and batches have so few rows that even if each value were as large as the largest page they
//! stay within [`BATCH_BYTES`]. What comes out is counted as it comes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array as _, RecordBatch};
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use trifid_archive_adql::types::Field;
use trifid_archive_model::read::{At, Fault, ReadError, TableReader};

use super::headers::sizes;
use super::input::{self, BATCH_ROWS};
use crate::limits::{UPLOAD_BATCH_BYTES, UPLOAD_COLUMNS, UPLOAD_GROWTH};

/// How large a table may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Rows.
    pub rows: u64,
    /// Bytes of the pages, unpacked; in memory it may be a few times as large.
    pub bytes: u64,
}

/// A Parquet file in memory, from anybody, as a table to be read.
pub fn read_parquet(file: &Bytes, bounds: Bounds) -> Result<Box<dyn TableReader>, ReadError> {
    let limit = bounds.bytes.saturating_mul(UPLOAD_GROWTH);
    let reader = contained(|| opened(file, bounds, limit.min(UPLOAD_BATCH_BYTES)))?;
    let fields = Arc::clone(reader.fields());
    Ok(Box::new(Bounded { fields, reader: Some(reader), left: limit, limit }))
}

/// A reader whose batches are of at most so many bytes.
fn opened(file: &Bytes, bounds: Bounds, room: u64) -> Result<Box<dyn TableReader>, ReadError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone())
        .map_err(|error| malformed(&error.to_string()))?;
    let largest = survey(builder.metadata(), file, bounds)?.max(padding(builder.schema()));
    if largest > room {
        return Err(too_large("the size of a row", room));
    }
    // At least one: the largest is within the room.
    let rows = (room / largest.max(1)).min(BATCH_ROWS as u64) as usize;
    input::parquet_rows(builder, rows)
}

/// What the libraries that read Parquet do not foresee, they panic at; to us it is one more kind of damage.
fn contained<T>(work: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    // What was being worked on is dropped.
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(malformed("the file is damaged in a way that nobody foresaw")))
}

/// Adds up what all pages come to; gives what the largest pages of all columns come to together.
fn survey(footer: &ParquetMetaData, file: &Bytes, bounds: Bounds) -> Result<u64, ReadError> {
    let columns = footer.file_metadata().schema_descr().num_columns();
    if columns > UPLOAD_COLUMNS {
        return Err(too_large("the number of columns", UPLOAD_COLUMNS as u64));
    }
    let rows = footer.row_groups().iter().try_fold(0u64, |sum, group| {
        u64::try_from(group.num_rows()).ok().and_then(|rows| sum.checked_add(rows))
    });
    let rows = rows.ok_or_else(|| malformed("a row group has fewer than no rows"))?;
    if rows > bounds.rows {
        return Err(too_large("the number of rows", bounds.rows));
    }
    let (mut bytes, mut values) = (0u64, 0u64);
    let mut largest = vec![0u64; columns];
    for group in footer.row_groups() {
        for (column, largest) in group.columns().iter().zip(&mut largest) {
            let pages = chunk(column, file).and_then(|chunk| sizes(&chunk));
            let pages =
                pages.ok_or_else(|| malformed("the pages of a column are not where they should be"))?;
            bytes = bytes.saturating_add(pages.bytes);
            values = values.saturating_add(pages.values);
            *largest = pages.largest.max(*largest);
            if bytes > bounds.bytes {
                return Err(too_large("the size of the unpacked pages", bounds.bytes));
            }
            if values.saturating_mul(8) > bounds.bytes.saturating_mul(UPLOAD_GROWTH) {
                return Err(too_large(
                    "the number of values",
                    bounds.bytes.saturating_mul(UPLOAD_GROWTH) / 8,
                ));
            }
        }
    }
    Ok(largest.iter().fold(0, |sum: u64, one| sum.saturating_add(*one)))
}

/// The bytes of a column chunk.
fn chunk(column: &ColumnChunkMetaData, file: &Bytes) -> Option<Bytes> {
    let from = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let from = usize::try_from(from).ok()?;
    let end = from.checked_add(usize::try_from(column.compressed_size()).ok()?)?;
    (end <= file.len()).then(|| file.slice(from..end))
}

/// What a row takes even where it is NULL: values of a fixed size.
fn padding(schema: &Schema) -> u64 {
    fn of(ty: &DataType) -> u64 {
        match ty {
            DataType::FixedSizeBinary(size) => u64::try_from(*size).unwrap_or(u64::MAX),
            DataType::FixedSizeList(item, size) => {
                of(item.data_type()).saturating_mul(u64::try_from(*size).unwrap_or(u64::MAX))
            }
            DataType::Struct(fields) => {
                fields.iter().fold(0, |sum: u64, field| sum.saturating_add(of(field.data_type())))
            }
            _ => 16,
        }
    }
    schema.fields().iter().fold(0, |sum: u64, field| sum.saturating_add(of(field.data_type())))
}

fn malformed(message: &str) -> ReadError {
    ReadError::malformed(At::Document, message)
}

fn too_large(what: &'static str, limit: u64) -> ReadError {
    ReadError::new(At::Document, Fault::Limit { what, limit })
}

/// A table that ends where it becomes too large.
struct Bounded {
    fields: Arc<[Field]>,
    /// Gone after an error.
    reader: Option<Box<dyn TableReader>>,
    left: u64,
    limit: u64,
}

impl TableReader for Bounded {
    fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    fn next_batch(&mut self, most: usize) -> Result<Option<RecordBatch>, ReadError> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let (reader, batch) = contained(move || reader.next_batch(most).map(|batch| (reader, batch)))?;
        let Some(batch) = batch else { return Ok(None) };
        let bytes: usize = batch
            .columns()
            .iter()
            .map(|column| column.to_data().get_slice_memory_size().unwrap_or(usize::MAX))
            .fold(0, usize::saturating_add);
        self.left = self
            .left
            .checked_sub(bytes as u64)
            .ok_or_else(|| too_large("the size of the table in memory", self.limit))?;
        self.reader = Some(reader);
        Ok(Some(batch))
    }
}

#[cfg(test)]
mod tests;
