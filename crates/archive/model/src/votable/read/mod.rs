//! Reading VOTable: rows out of a stream, in memory that a batch bounds.
//!
//! ```text
//! bytes --source--> UTF-8 --scan--> tags and text --document--> columns
//!                                     |--text---------------------> cells of TABLEDATA --|
//!                                     '--stream--> bytes --binary-> cells of BINARY -----'--sink--> Arrow
//! ```
//!
//! Nothing is kept of what has been passed but the columns, the INFO elements and the batch under construction: the
//! document may be of any length. Every other dimension has its bound in [`limits`].

mod binary;
mod document;
mod incoming;
mod rows;
mod scan;
mod sink;
mod source;
mod stream;
mod text;

use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use self::binary::Nulls;
use self::document::Document;
use self::incoming::Incoming;
use self::rows::Rows;
use self::scan::{Mark, Scanner, Text};
use self::sink::Sink;
use self::stream::Stream;
use super::limits;
use super::writer::Serialization;
use crate::batch;
use crate::read::{About, At, ReadError, TableReader};

/// What is read of a document, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which of the tables that have data, from 0.
    pub table: usize,
    /// Whether NaN alone in a cell is NULL. Common tools write NULL so; in BINARY it is always taken so.
    pub nan_is_null: bool,
}

/// A table of a VOTable document being read.
pub struct Reader<R> {
    scanner: Scanner<R>,
    document: Document,
    options: ReadOptions,
    fields: Arc<[Field]>,
    columns: Arc<[Incoming]>,
    sinks: Vec<Sink>,
    about: About,
    rows: Rows,
    /// The nulls of a row of BINARY2.
    mask: Vec<u8>,
    /// Rows read so far.
    count: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the head of a document up to the first row.
    pub fn new(source: R, options: ReadOptions) -> Result<Self, ReadError> {
        let mut scanner = Scanner::new(source)?;
        let mut document = Document::new(options.table);
        let table = document.find(&mut scanner)?;
        let fields = table.columns.iter().map(|column| column.field.clone()).collect::<Arc<[_]>>();
        let sinks = fields.iter().map(|field| Sink::new(field.ty)).collect();
        let rows = match table.serialization {
            None => Rows::Done,
            Some(Serialization::TableData) => Rows::Text(Text::default()),
            Some(Serialization::Binary) => {
                Rows::Binary(Nulls::Magic, Stream::open(&mut scanner, &table.columns)?)
            }
            Some(Serialization::Binary2) => {
                Rows::Binary(Nulls::Masked, Stream::open(&mut scanner, &table.columns)?)
            }
        };
        let (columns, about) = (table.columns, table.about);
        Ok(Self {
            scanner,
            document,
            options,
            fields,
            columns,
            sinks,
            about,
            rows,
            mask: Vec::new(),
            count: 0,
        })
    }

    /// Reads rows until there are so many, or so many bytes of them, or no more; how many.
    fn gather(&mut self, max_rows: usize) -> Result<usize, ReadError> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < max_rows && bytes < limits::BATCH_BYTES {
            let Some(size) = self.row()? else { break };
            rows += 1;
            // What has no text or no bytes takes room all the same.
            bytes += size + self.columns.len() * 8;
            self.count += 1;
        }
        Ok(rows)
    }

    /// Reads what follows the rows, and compares what was announced.
    fn finish(&mut self) -> Result<(), ReadError> {
        self.rows = Rows::Done;
        self.about.infos = self.document.finish(&mut self.scanner)?;
        match self.about.rows {
            Some(rows) if rows != self.count => {
                Err(self.scanner.malformed(format!("nrows announces {rows} rows, there are {}", self.count)))
            }
            _ => Ok(()),
        }
    }

    fn batch(&mut self, rows: usize) -> Result<RecordBatch, ReadError> {
        let broken = |error: arrow_schema::ArrowError| ReadError::malformed(At::Document, error.to_string());
        let columns =
            self.sinks.iter_mut().map(Sink::finish).collect::<Result<Vec<_>, _>>().map_err(broken)?;
        batch::batch(&self.fields, columns, rows).map_err(broken)
    }
}

impl<R: Read + Send> TableReader for Reader<R> {
    fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    fn next_batch(&mut self, max_rows: usize) -> Result<Option<RecordBatch>, ReadError> {
        let read = self.gather(max_rows.max(1));
        if read.is_err() {
            self.rows = Rows::Done;
        }
        match read? {
            0 if matches!(self.rows, Rows::Tail) => self.finish().map(|()| None),
            0 => Ok(None),
            rows => self.batch(rows).map(Some),
        }
    }

    fn about(&self) -> About {
        self.about.clone()
    }
}

/// Reads a document for nothing but its form.
pub(super) fn scan_all(document: &[u8]) -> Result<(), ReadError> {
    let mut scanner = Scanner::new(document)?;
    while scanner.next()? != Mark::Eof {}
    Ok(())
}
