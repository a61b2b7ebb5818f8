//! Reading VOTable: rows out of a stream, in memory that a batch bounds.
//!
//! ```text
//! bytes --source--> UTF-8 --scan--> tags and text --document--> columns
//!                                               \--text-------> cells of TABLEDATA --sink--> Arrow
//!                                               \--base64--> bytes --binary--> cells --/
//! ```
//!
//! Nothing is kept of what has been passed but the columns, the INFO elements and the batch under construction: the
//! document may be of any length. Every other dimension has its bound in [`limits`].

mod binary;
mod document;
mod incoming;
mod scan;
mod sink;
mod source;
mod text;

use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::{Field, Type};

use self::binary::Nulls;
use self::document::{Document, shortened};
use self::incoming::{Bad, Incoming};
use self::scan::{Mark, Piece, Scanner, Text};
use self::sink::{Sink, Values};
use super::base64::Decoder;
use super::limits;
use super::plan::Extent;
use super::writer::Serialization;
use crate::batch;
use crate::read::{About, At, Fault, ReadError, TableReader};

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
    /// Rows read so far.
    count: u64,
}

/// What is left to be read.
enum Rows {
    Text(Text),
    Binary(Nulls, Stream),
    /// All rows have been read, the end of the document not yet.
    Tail,
    Done,
}

/// The bytes of BINARY or BINARY2, decoded as far as needed.
#[derive(Default)]
struct Stream {
    decoder: Decoder,
    bytes: Vec<u8>,
    start: usize,
    ended: bool,
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
            Some(serialization) => {
                stream(&mut scanner)?;
                check_widths(&scanner, &table.columns)?;
                let masked = serialization == Serialization::Binary2;
                Rows::Binary(if masked { Nulls::Masked } else { Nulls::Magic }, Stream::default())
            }
        };
        let (columns, about) = (table.columns, table.about);
        Ok(Self { scanner, document, options, fields, columns, sinks, about, rows, count: 0 })
    }

    /// Reads rows until there are so many, or so many bytes of them, or no more; how many.
    fn gather(&mut self, max_rows: usize) -> Result<usize, ReadError> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < max_rows && bytes < limits::BATCH_BYTES {
            let read = match &mut self.rows {
                Rows::Text(_) => self.text_row()?,
                Rows::Binary(..) => self.binary_row()?,
                Rows::Tail | Rows::Done => None,
            };
            let Some(size) = read else {
                if !matches!(self.rows, Rows::Done) {
                    self.rows = Rows::Tail;
                }
                break;
            };
            rows += 1;
            bytes += size + self.columns.len() * 8;
            self.count += 1;
        }
        Ok(rows)
    }

    /// Reads a TR; its size in bytes, or nothing when there is none.
    fn text_row(&mut self) -> Result<Option<usize>, ReadError> {
        loop {
            match self.scanner.next()? {
                Mark::Start if self.scanner.tag.name() == b"TR" => break,
                Mark::Start => return Err(self.scanner.malformed("TABLEDATA holds something that is no TR")),
                Mark::End | Mark::Eof => return Ok(None),
            }
        }
        let (mut size, mut at) = (0, 0);
        loop {
            if let Some(length) = self.scanner.plain_cell() {
                let fault = match (self.columns.get(at), self.sinks.get_mut(at)) {
                    (Some(column), Some(sink)) => {
                        text_cell(column, self.options, &self.scanner.source.window()[..length], sink).err()
                    }
                    _ => return Err(self.wrong_count(">")),
                };
                if let Some(bad) = fault {
                    let text = self.scanner.source.window()[..length].to_vec();
                    return Err(self.bad_cell(at, &text, bad));
                }
                self.scanner.source.consume(length + Scanner::<R>::PLAIN_END);
                size += length;
            } else {
                match self.any_cell(at)? {
                    Some(length) => size += length,
                    None => break,
                }
            }
            at += 1;
            if size > limits::ROW_BYTES {
                return Err(self.scanner.limit("a row in bytes", limits::ROW_BYTES));
            }
        }
        if at < self.columns.len() {
            return Err(self.wrong_count(&at.to_string()));
        }
        Ok(Some(size))
    }

    /// Reads a TD in whatever way it is written; its size, or nothing when the TR ends.
    fn any_cell(&mut self, at: usize) -> Result<Option<usize>, ReadError> {
        match self.scanner.next()? {
            Mark::Start if self.scanner.tag.name() == b"TD" => {}
            Mark::Start => return Err(self.scanner.malformed("a TR holds something that is no TD")),
            Mark::End | Mark::Eof => return Ok(None),
        }
        if self.scanner.attribute("encoding")?.is_some_and(|encoding| !encoding.is_empty()) {
            let message = "a TD with an encoding is not supported";
            return Err(ReadError::new(self.scanner.at(), Fault::Unsupported(message.into())));
        }
        let Rows::Text(text) = &mut self.rows else { return Ok(None) };
        text.clear();
        if self.scanner.next_with_text(text, limits::CELL_BYTES)? == Mark::Start {
            return Err(self.scanner.malformed("a TD holds an element"));
        }
        let (Some(column), Some(sink)) = (self.columns.get(at), self.sinks.get_mut(at)) else {
            return Err(self.wrong_count(">"));
        };
        let length = text.bytes.len();
        match text_cell(column, self.options, &text.bytes, sink) {
            Ok(()) => Ok(Some(length)),
            Err(bad) => {
                let text = text.bytes.clone();
                Err(self.bad_cell(at, &text, bad))
            }
        }
    }

    /// Reads a row of the stream; its size in bytes, or nothing when there is none.
    fn binary_row(&mut self) -> Result<Option<usize>, ReadError> {
        let Rows::Binary(nulls, stream) = &mut self.rows else { return Ok(None) };
        let nulls = *nulls;
        if !stream.fill(&mut self.scanner, 1)? {
            return Ok(None);
        }
        let row = At::Row(self.count + 1);
        let mask_bytes = if nulls == Nulls::Masked { self.columns.len().div_ceil(8) } else { 0 };
        let mask = stream.take(&mut self.scanner, mask_bytes, &row)?.to_vec();
        let mut size = mask_bytes;
        for (at, (column, sink)) in self.columns.iter().zip(&mut self.sinks).enumerate() {
            let place = || At::Cell { row: self.count + 1, column: column.field.name.clone(), line: None };
            let count = match column.count() {
                Some(count) => count,
                None => {
                    size += 4;
                    stream.count(&mut self.scanner, &row)?
                }
            };
            let bytes = column.atom.bytes(count);
            if bytes > limits::CELL_BYTES {
                let what = "a cell in bytes";
                return Err(ReadError::new(place(), Fault::Limit { what, limit: limits::CELL_BYTES as u64 }));
            }
            size += bytes;
            let bytes = stream.take(&mut self.scanner, bytes, &row)?;
            let is_null = mask.get(at / 8).is_some_and(|mask| mask & 0x80 >> (at % 8) != 0);
            if is_null || self.options.nan_is_null && is_nan(column, bytes) {
                sink.push_null();
            } else {
                binary::cell(column, nulls, count, bytes, sink)
                    .map_err(|bad| ReadError::new(place(), fault(&String::from_utf8_lossy(bytes), bad)))?;
            }
        }
        if size == 0 || size > limits::ROW_BYTES {
            return Err(ReadError::malformed(row, "a row of no bytes, or of too many"));
        }
        Ok(Some(size))
    }

    fn wrong_count(&self, found: &str) -> ReadError {
        let columns = self.columns.len();
        let found = if found == ">" { format!("more than {columns}") } else { found.to_owned() };
        self.scanner
            .malformed(format!("row {} has {found} cells, the table {columns} columns", self.count + 1))
    }

    fn bad_cell(&self, at: usize, text: &[u8], bad: Bad) -> ReadError {
        let column = self.columns.get(at).map_or_else(|| "".into(), |column| column.field.name.clone());
        let at = At::Cell { row: self.count + 1, column, line: Some(self.scanner.source.line()) };
        ReadError::new(at, fault(&String::from_utf8_lossy(text), bad))
    }

    /// Reads what follows the rows, and compares what was announced.
    fn finish(&mut self) -> Result<(), ReadError> {
        self.rows = Rows::Done;
        let infos = self.document.finish(&mut self.scanner)?;
        self.about.infos = infos;
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

impl Incoming {
    /// The number of items of a cell in BINARY, where it is fixed; characters for text.
    fn count(&self) -> Option<usize> {
        if self.is_single() {
            return Some(1);
        }
        match (self.extent, self.field.ty) {
            (_, Type::Point) => Some(2),
            (_, Type::Circle) => Some(3),
            (Extent::Fixed(count), Type::Array(_)) if self.width > 0 => {
                Some(count.saturating_mul(self.width))
            }
            (Extent::Fixed(count), _) => Some(count),
            (Extent::Variable | Extent::Multiple(_), _) => None,
        }
    }
}

impl Stream {
    /// Decodes until there are so many bytes; false when the stream ends before.
    fn fill<R: Read>(&mut self, scanner: &mut Scanner<R>, count: usize) -> Result<bool, ReadError> {
        while self.bytes.len() - self.start < count {
            if self.ended {
                return Ok(false);
            }
            self.bytes.drain(..self.start);
            self.start = 0;
            self.read(scanner)?;
        }
        Ok(true)
    }

    /// Decodes a piece of the document.
    fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), ReadError> {
        let mut one = [0; 4];
        let decoded = match scanner.piece()? {
            Piece::Text(length) => {
                let decoded = self.decoder.decode(&scanner.source.window()[..length], &mut self.bytes);
                if decoded.is_ok() {
                    scanner.source.consume(length);
                }
                decoded
            }
            Piece::Character(character) => {
                self.decoder.decode(character.encode_utf8(&mut one).as_bytes(), &mut self.bytes)
            }
            Piece::Tag => {
                if scanner.next()? != Mark::End {
                    return Err(scanner.malformed("a STREAM holds an element"));
                }
                self.ended = true;
                if !self.decoder.is_complete() {
                    return Err(scanner.malformed("the base64 text is cut short"));
                }
                Ok(())
            }
            Piece::Eof => return Err(ReadError::new(scanner.at(), Fault::Truncated("a STREAM"))),
        };
        decoded.map_err(|stray| {
            scanner.malformed(format!("{:?} does not belong into base64 text there", char::from(stray.0)))
        })
    }

    fn take<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        count: usize,
        row: &At,
    ) -> Result<&[u8], ReadError> {
        if !self.fill(scanner, count)? {
            return Err(ReadError::new(row.clone(), Fault::Truncated("a row")));
        }
        self.start += count;
        Ok(&self.bytes[self.start - count..self.start])
    }

    /// The number of items that a variable array begins with.
    fn count<R: Read>(&mut self, scanner: &mut Scanner<R>, row: &At) -> Result<usize, ReadError> {
        let bytes = self.take(scanner, 4, row)?;
        let count = bytes.iter().fold(0_u32, |count, &byte| count << 8 | u32::from(byte));
        Ok(count as usize)
    }
}

/// Reads the STREAM tag of BINARY or BINARY2.
fn stream<R: Read>(scanner: &mut Scanner<R>) -> Result<(), ReadError> {
    if scanner.next()? != Mark::Start || scanner.tag.name() != b"STREAM" {
        return Err(scanner.malformed("BINARY without a STREAM"));
    }
    let unsupported = |message: &str| Err(ReadError::new(scanner.at(), Fault::Unsupported(message.into())));
    if scanner.attribute("href")?.is_some_and(|href| !href.is_empty()) {
        return unsupported("a STREAM elsewhere is not followed: send its bytes in the document");
    }
    match scanner.attribute("encoding")?.as_deref().map(str::trim) {
        Some("base64") => Ok(()),
        _ => unsupported("a STREAM that is not in base64 is not supported"),
    }
}

/// Refuses columns that would make each row too large.
fn check_widths<R>(scanner: &Scanner<R>, columns: &[Incoming]) -> Result<(), ReadError>
where
    R: Read,
{
    let width = |column: &Incoming| column.count().map_or(4, |count| column.atom.bytes(count));
    let row = columns.iter().map(width).fold(0, usize::saturating_add);
    if row > limits::ROW_BYTES { Err(scanner.limit("a row in bytes", limits::ROW_BYTES)) } else { Ok(()) }
}

fn text_cell(column: &Incoming, options: ReadOptions, text: &[u8], sink: &mut Sink) -> Result<(), Bad> {
    let is_real = matches!(sink.values, Values::Float(_) | Values::Double(_));
    if options.nan_is_null && is_real && text.trim_ascii().eq_ignore_ascii_case(b"nan") {
        sink.push_null();
        return Ok(());
    }
    text::cell(column, text, sink)
}

fn is_nan(column: &Incoming, bytes: &[u8]) -> bool {
    match (column.field.ty, bytes) {
        (Type::Float, [a, b, c, d]) => f32::from_be_bytes([*a, *b, *c, *d]).is_nan(),
        (Type::Double, bytes) => bytes.try_into().is_ok_and(|bytes| f64::from_be_bytes(bytes).is_nan()),
        _ => false,
    }
}

fn fault(text: &str, bad: Bad) -> Fault {
    match bad {
        Bad::Not(expected) => Fault::Value { text: shortened(text).to_owned(), expected },
        Bad::Count { found, expected } => {
            Fault::Malformed(format!("the array has {found} items, its column declares {expected}"))
        }
        Bad::Cut => {
            Fault::Malformed("a character lies across the end of a string of fixed length".to_owned())
        }
    }
}
