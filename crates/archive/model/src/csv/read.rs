//! The reader of CSV and TSV: columns are guessed or given, then every chunk of records is parsed column by
//! column.

use std::io::{Chain, Cursor, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::{Field, Type};

use super::Delimiter;
use super::column::Column;
use super::infer::{self, Inference};
use super::split::Splitter;
use crate::batch;
use crate::limits::{BATCH_BYTES, CSV_INFER_BYTES, CSV_INFER_ROWS};
use crate::read::{About, At, Fault, ReadError, TableReader};

/// Whether the first line holds the names of the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// It does.
    #[default]
    Present,
    /// It is data; the columns are called `col1`, `col2` and so on.
    Absent,
}

/// How a CSV is to be read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What stands between cells.
    pub delimiter: Delimiter,
    /// Whether there is a header.
    pub header: Header,
    /// Columns whose type is known: a column of the same name, exactly or else ignoring case, is read as this
    /// field and nothing about it is guessed.
    pub declared: Vec<Field>,
    /// Spellings of NULL beside the empty cell, for unquoted cells of every column. `NULL` in any case is one
    /// anyway, except in columns of text.
    pub nulls: Vec<String>,
}

impl Options {
    /// Options for a delimiter.
    pub fn new(delimiter: Delimiter) -> Self {
        Self { delimiter, ..Self::default() }
    }

    /// The column of this name: declared, or of a guessed type.
    pub(super) fn field(&self, name: &str, guess: Type) -> Field {
        let declared = self.declared_as(name).cloned();
        declared.map_or_else(|| Field::new(name, guess), |field| Field { name: Arc::from(name), ..field })
    }

    fn declared_as(&self, name: &str) -> Option<&Field> {
        let exact = self.declared.iter().find(|field| *field.name == *name);
        exact.or_else(|| self.declared.iter().find(|field| field.name.to_lowercase() == name.to_lowercase()))
    }
}

/// A CSV or TSV being read.
#[derive(Debug)]
pub struct Reader<R> {
    splitter: Splitter<Chain<Cursor<Vec<u8>>, R>>,
    inference: Inference,
    /// Which columns were guessed: their errors say so.
    guessed: Vec<bool>,
    nulls: Vec<Box<[u8]>>,
    rows: u64,
    /// Records that the header's reading left in the splitter.
    pending: usize,
}

impl<R: Read> Reader<R> {
    /// Reads the header and as much as it takes to guess the types of the columns: at most [`CSV_INFER_ROWS`]
    /// rows and about [`CSV_INFER_BYTES`] bytes.
    pub fn new(source: R, options: &Options) -> Result<Self, ReadError> {
        let delimiter = options.delimiter.byte();
        let mut splitter = Splitter::new(Tee { source, log: Vec::new() }, delimiter);
        let inference = infer::sample(&mut splitter, options, |splitter, rows| {
            rows < CSV_INFER_ROWS && splitter.source().log.len() < CSV_INFER_BYTES
        })?;
        let guessed =
            inference.fields.iter().map(|field| options.declared_as(&field.name).is_none()).collect();
        let Tee { source, log } = splitter.into_source();
        let mut splitter = Splitter::new(Cursor::new(log).chain(source), delimiter);
        splitter.skip_preamble()?;
        let header = splitter.first()?;
        let pending = usize::from(header.is_some() && options.header == Header::Absent);
        let nulls = options.nulls.iter().map(|null| Box::from(null.as_bytes())).collect();
        Ok(Self { splitter, inference, guessed, nulls, rows: 0, pending })
    }

    /// What was guessed.
    pub fn inference(&self) -> &Inference {
        &self.inference
    }

    /// Records ready in the splitter.
    fn records(&mut self, max_rows: usize) -> Result<usize, ReadError> {
        match std::mem::take(&mut self.pending) {
            0 => self.splitter.next(self.inference.fields.len(), max_rows),
            pending => Ok(pending),
        }
    }

    fn parse(&mut self, count: usize, columns: &mut [Column]) -> Result<usize, ReadError> {
        let mut bytes = 0;
        for (index, column) in columns.iter_mut().enumerate() {
            for row in 0..count {
                let cell = self.splitter.cell(row, index);
                let null = !cell.quoted && self.nulls.iter().any(|null| **null == *cell.bytes);
                let parsed = if null { column.push_null() } else { column.push(&cell) };
                bytes += cell.bytes.len();
                if let Err(expected) = parsed {
                    return Err(self.misfit(row, index, expected));
                }
            }
        }
        self.rows += count as u64;
        Ok(bytes)
    }

    fn misfit(&self, row: usize, column: usize, expected: &'static str) -> ReadError {
        let cell = self.splitter.cell(row, column);
        let name = self.inference.fields[column].name.clone();
        let line = Some(self.splitter.records().line(row));
        let at = At::Cell { row: self.rows + row as u64 + 1, column: name, line };
        let text = shorten(&cell.bytes);
        let fault = match self.guessed[column] && !self.inference.whole {
            false => Fault::Value { text, expected },
            true => Fault::Malformed(format!(
                "{text:?} is not {expected}, as the first {} rows are; declare the column's type, or let the \
                 whole file decide it",
                self.inference.rows
            )),
        };
        ReadError::new(at, fault)
    }
}

impl<R: Read + Send> TableReader for Reader<R> {
    fn fields(&self) -> &Arc<[Field]> {
        &self.inference.fields
    }

    fn next_batch(&mut self, max_rows: usize) -> Result<Option<RecordBatch>, ReadError> {
        let fields = self.inference.fields.clone();
        if fields.is_empty() {
            return Ok(None);
        }
        let mut columns: Vec<Column> = fields.iter().map(Column::new).collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < max_rows && bytes < BATCH_BYTES {
            let count = self.records(max_rows - rows)?;
            if count == 0 {
                break;
            }
            bytes += self.parse(count, &mut columns)?;
            rows += count;
        }
        if rows == 0 {
            return Ok(None);
        }
        let arrays = columns.into_iter().map(Column::finish).collect();
        let batch = batch::batch(&fields, arrays, rows);
        batch.map(Some).map_err(|error| ReadError::malformed(At::Document, error.to_string()))
    }

    fn about(&self) -> About {
        let rows = self.inference.whole.then_some(self.inference.rows);
        About { rows, ..About::default() }
    }
}

/// A value as an error shows it.
fn shorten(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let text = String::from_utf8_lossy(bytes.get(..4 * SHOWN).unwrap_or(bytes));
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < bytes.len() && text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// A source that keeps what was read of it.
#[derive(Debug)]
struct Tee<R> {
    source: R,
    log: Vec<u8>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.log.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}
