//! The reader of tables in FITS files.

use std::io::{Read, Seek};
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use super::columns::{Column, Columns};
use super::decode::{self, Gathered};
use super::form::Place;
use super::header::{Header, Wanted, broken, find};
use super::source::{Held, Seekable, Source, Stream};
use crate::batch;
use crate::limits::{BATCH_BYTES, FITS_HEAP_REUSE_MAX, FITS_HELD_BYTES_MAX, FITS_ROW_BYTES_MAX};
use crate::read::{About, At, Fault, ReadError, TableReader};
use crate::write::Info;

/// A binary table being read.
pub struct Reader<'a> {
    source: Box<dyn Source + Send + 'a>,
    fields: Arc<[Field]>,
    columns: Columns,
    about: About,
    heap: Heap,
    /// Rows that were read and not yet decoded.
    buffer: Vec<u8>,
    /// Rows not yet read, and rows already given.
    left: u64,
    given: u64,
}

/// The heap, as the header has it.
#[derive(Debug)]
struct Heap {
    bytes: u64,
    /// Bytes that arrays may still take up, counting those that share again and again.
    allowed: u64,
}

/// Where the parts of a table are.
struct Extent {
    rows: u64,
    /// From the first row to the heap, and from there to its end.
    heap_at: u64,
    heap_bytes: u64,
    /// Where the first row stands in the file.
    data_at: u64,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("fields", &self.fields)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    /// Reads from a source that cannot go back: tables with variable arrays up to [`FITS_HELD_BYTES_MAX`]
    /// only.
    pub fn new(mut source: impl Read + Send + 'a, wanted: &Wanted) -> Result<Self, ReadError> {
        let (header, at) = find(&mut source, wanted)?;
        let columns = Columns::new(&header)?;
        let extent = Extent::new(&header, &columns, at)?;
        if !columns.has_heap() {
            return Self::over(Box::new(Stream(source)), &header, columns, &extent);
        }
        let bytes = extent.heap_at.saturating_add(extent.heap_bytes);
        if bytes > FITS_HELD_BYTES_MAX {
            let fault = Fault::Unsupported(format!(
                "the table has arrays of variable length and {bytes} bytes, more than the {FITS_HELD_BYTES_MAX} \
                 that can be held; read it from an uncompressed file"
            ));
            return Err(ReadError::new(At::Document, fault));
        }
        let held = Held::read(&mut source, bytes, extent.heap_at).map_err(broken)?;
        Self::over(Box::new(held), &header, columns, &extent)
    }

    /// Reads from a source that can go back.
    pub fn seekable(mut source: impl Read + Seek + Send + 'a, wanted: &Wanted) -> Result<Self, ReadError> {
        let start = source.stream_position().map_err(broken)?;
        let (header, at) = find(&mut source, wanted)?;
        let columns = Columns::new(&header)?;
        let extent = Extent::new(&header, &columns, start.saturating_add(at))?;
        let seekable = Seekable::new(source, extent.data_at, extent.data_at.saturating_add(extent.heap_at));
        Self::over(Box::new(seekable), &header, columns, &extent)
    }

    fn over(
        source: Box<dyn Source + Send + 'a>,
        header: &Header,
        columns: Columns,
        extent: &Extent,
    ) -> Result<Self, ReadError> {
        let fields = columns.columns.iter().map(|column| column.field.clone()).collect();
        let heap = Heap {
            bytes: extent.heap_bytes,
            allowed: extent.heap_bytes.saturating_mul(FITS_HEAP_REUSE_MAX).saturating_add(1 << 20),
        };
        let about = about(header, extent.rows);
        Ok(Self { source, fields, columns, about, heap, buffer: Vec::new(), left: extent.rows, given: 0 })
    }

    /// Fills the buffer with rows; tells how many there are.
    fn fill(&mut self, max_rows: usize) -> Result<usize, ReadError> {
        let row_bytes = self.columns.row_bytes.max(1) as usize;
        let held = self.buffer.len() / row_bytes;
        let most = (BATCH_BYTES / self.columns.row_units.max(1) as usize).max(1);
        let wanted = max_rows.min(most).saturating_sub(held);
        let read = usize::try_from(self.left).unwrap_or(usize::MAX).min(wanted);
        let start = self.buffer.len();
        self.buffer.resize(start + read * row_bytes, 0);
        if let Err(error) = self.source.rows(&mut self.buffer[start..]) {
            let fault = broken(error).fault;
            return Err(ReadError::new(At::Row(self.given + held as u64 + 1), fault));
        }
        self.left -= read as u64;
        Ok((held + read).min(max_rows))
    }

    /// How many of the first rows have no more in the heap together than a batch may hold; one at least.
    fn affordable(&mut self, rows: usize) -> Result<usize, ReadError> {
        let row_bytes = self.columns.row_bytes as usize;
        let mut total = 0;
        for row in 0..rows {
            let bytes = &self.buffer[row * row_bytes..(row + 1) * row_bytes];
            let mut taken = 0;
            for column in &self.columns.columns {
                let Some(descriptor) = Descriptor::of(column, bytes) else { continue };
                taken += self.heap.check(column, descriptor, self.given + row as u64 + 1)?;
            }
            if row > 0 && total + taken > BATCH_BYTES as u64 {
                return Ok(row);
            }
            total += taken;
            self.heap.allowed = self.heap.allowed.checked_sub(taken).ok_or_else(|| {
                let fault =
                    Fault::Limit { what: "the shared use of the heap, in times", limit: FITS_HEAP_REUSE_MAX };
                ReadError::new(At::Row(self.given + row as u64 + 1), fault)
            })?;
        }
        Ok(rows)
    }

    fn gather(&mut self, column: usize, rows: usize) -> Result<Gathered, ReadError> {
        let Self { source, columns, buffer, .. } = self;
        let row_bytes = columns.row_bytes as usize;
        let column = &columns.columns[column];
        let mut cells = Gathered::default();
        for row in 0..rows {
            let bytes = &buffer[row * row_bytes..(row + 1) * row_bytes];
            match (column.form.place, Descriptor::of(column, bytes)) {
                (_, Some(Descriptor { count, at })) => {
                    let length = column.form.code.bytes(count).unwrap_or(0) as usize;
                    if length > 0 {
                        cells.data.extend_from_slice(source.heap(at, length).map_err(broken)?);
                    }
                    cells.counts.push(count as usize);
                }
                (Place::Row(count), _) => {
                    let length = column.form.code.bytes(count).unwrap_or(0) as usize;
                    cells.data.extend_from_slice(&bytes[column.offset..column.offset + length]);
                    cells.counts.push(count as usize);
                }
                _ => {}
            }
        }
        Ok(cells)
    }

    fn decode(&mut self, rows: usize) -> Result<RecordBatch, ReadError> {
        let mut arrays = Vec::with_capacity(self.fields.len());
        for column in 0..self.fields.len() {
            let cells = self.gather(column, rows)?;
            let decoded = decode::column(&self.columns.columns[column], &cells);
            arrays.push(decoded.map_err(|broken| {
                let row = self.given + broken.row as u64 + 1;
                let at = At::Cell { row, column: self.fields[column].name.clone(), line: None };
                ReadError::new(at, Fault::Value { text: broken.text, expected: broken.expected })
            })?);
        }
        let batch = batch::batch(&self.fields, arrays, rows);
        batch.map_err(|error| ReadError::malformed(At::Document, error.to_string()))
    }
}

impl TableReader for Reader<'_> {
    fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    fn next_batch(&mut self, max_rows: usize) -> Result<Option<RecordBatch>, ReadError> {
        let rows = self.fill(max_rows)?;
        let rows = self.affordable(rows)?;
        if rows == 0 {
            return Ok(None);
        }
        let batch = self.decode(rows)?;
        self.buffer.drain(..rows * self.columns.row_bytes as usize);
        self.given += rows as u64;
        Ok(Some(batch))
    }

    fn about(&self) -> About {
        self.about.clone()
    }
}

fn about(header: &Header, rows: u64) -> About {
    let mut about =
        About { rows: Some(rows), name: header.text("EXTNAME").map(Arc::from), ..About::default() };
    if let Some(status) = header.text("QSTATUS") {
        about.infos.push(Info::new("QUERY_STATUS", status));
    }
    about
}

impl Extent {
    /// FITS 4.0 7.3.1, table 17: what a binary table must say of itself.
    fn new(header: &Header, columns: &Columns, data_at: u64) -> Result<Self, ReadError> {
        for (keyword, expected) in [("BITPIX", 8), ("NAXIS", 2), ("GCOUNT", 1)] {
            let found = header.integer(keyword)?;
            if found != expected {
                return Err(header.wrong(format!("{keyword} is {found}, but {expected} in every table")));
            }
        }
        if header.is_true("ZTABLE") {
            return Err(header.wrong("the table is compressed by tiles, which is not supported"));
        }
        let rows = header.count("NAXIS2")?;
        if rows > 0 && columns.row_bytes == 0 {
            return Err(header.wrong(format!("NAXIS1 is 0, so that the {rows} rows have no bytes")));
        }
        let after_rows = header.count("PCOUNT")?;
        let too_large = || header.wrong("the table is larger than 64 bits can count");
        let bytes = rows.checked_mul(columns.row_bytes).ok_or_else(too_large)?;
        let end = bytes.checked_add(after_rows).ok_or_else(too_large)?;
        let heap_at = if header.value("THEAP").is_some() { header.count("THEAP")? } else { bytes };
        if heap_at < bytes || heap_at > end {
            let message = format!(
                "THEAP is {heap_at}, which is not between the rows' end, {bytes}, and PCOUNT's, {end}"
            );
            return Err(header.wrong(message));
        }
        Ok(Self { rows, heap_at, heap_bytes: end - heap_at, data_at })
    }
}

/// Where an array is in the heap.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    count: u64,
    at: u64,
}

impl Descriptor {
    /// The descriptor in a row (FITS 4.0 7.3.5); nothing for a column that has none.
    fn of(column: &Column, row: &[u8]) -> Option<Self> {
        let bytes = row.get(column.offset..)?;
        match column.form.place {
            Place::Row(_) => None,
            Place::Heap32(_) => {
                let (count, rest) = bytes.split_first_chunk()?;
                let at = rest.first_chunk()?;
                Some(Self { count: u32::from_be_bytes(*count).into(), at: u32::from_be_bytes(*at).into() })
            }
            Place::Heap64(_) => {
                let (count, rest) = bytes.split_first_chunk()?;
                Some(Self { count: u64::from_be_bytes(*count), at: u64::from_be_bytes(*rest.first_chunk()?) })
            }
        }
    }
}

impl Heap {
    /// Bytes of an array that lies within the heap and within the limit.
    fn check(&self, column: &Column, descriptor: Descriptor, row: u64) -> Result<u64, ReadError> {
        let Descriptor { count, at } = descriptor;
        let bytes = column.form.code.bytes(count);
        let end = bytes.and_then(|bytes| bytes.checked_add(at));
        let is_inside = count == 0 || end.is_some_and(|end| end <= self.bytes);
        let place = || At::Cell { row, column: column.field.name.clone(), line: None };
        let Some(bytes) = bytes.filter(|_| is_inside) else {
            let message = format!(
                "an array of {count} elements at {at} does not lie in the heap of {} bytes",
                self.bytes
            );
            return Err(ReadError::malformed(place(), message));
        };
        if bytes.max(count) > FITS_ROW_BYTES_MAX {
            let fault = Fault::Limit { what: "an array in bytes or items", limit: FITS_ROW_BYTES_MAX };
            return Err(ReadError::new(place(), fault));
        }
        Ok(bytes.max(count))
    }
}
