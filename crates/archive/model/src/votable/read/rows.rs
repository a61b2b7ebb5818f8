//! One row after the other into the columns under construction.

use std::io::Read;

use trifid_archive_adql::types::Type;

use super::binary::{self, Nulls};
use super::document::shortened;
use super::incoming::{Bad, Incoming};
use super::scan::{Mark, Scanner, Text};
use super::sink::{Sink, Values};
use super::stream::Stream;
use super::{ReadOptions, Reader, text};
use crate::read::{At, Fault, ReadError};
use crate::votable::limits;

/// What is left to be read of a document.
pub(super) enum Rows {
    /// Rows of TABLEDATA, with room for a cell.
    Text(Text),
    /// Rows of BINARY or BINARY2.
    Binary(Nulls, Stream),
    /// All rows have been read, the end of the document not yet.
    Tail,
    /// Nothing, or nothing that could be read.
    Done,
}

/// How many cells a TR holds.
#[derive(Clone, Copy)]
enum Cells {
    Few(usize),
    TooMany,
}

impl<R: Read> Reader<R> {
    /// Reads a row; its size in bytes, or nothing when there is none.
    pub(super) fn row(&mut self) -> Result<Option<usize>, ReadError> {
        let size = match &self.rows {
            Rows::Text(_) => self.text_row()?,
            Rows::Binary(nulls, _) => self.binary_row(*nulls)?,
            Rows::Tail | Rows::Done => return Ok(None),
        };
        if size.is_none() {
            self.rows = Rows::Tail;
        }
        Ok(size)
    }

    /// Reads a TR.
    fn text_row(&mut self) -> Result<Option<usize>, ReadError> {
        match self.scanner.next()? {
            Mark::Start if self.scanner.tag.name() == b"TR" => {}
            Mark::Start => return Err(self.scanner.malformed("TABLEDATA holds something that is no TR")),
            Mark::End | Mark::Eof => return Ok(None),
        }
        let (mut size, mut at) = (0, 0);
        while let Some(length) = self.text_cell(at)? {
            size += length;
            at += 1;
            if size > limits::ROW_BYTES {
                return Err(self.scanner.limit("a row in bytes", limits::ROW_BYTES));
            }
        }
        if at < self.columns.len() { Err(self.wrong_count(Cells::Few(at))) } else { Ok(Some(size)) }
    }

    /// Reads a TD; its size, or nothing when the TR ends.
    #[inline]
    fn text_cell(&mut self, at: usize) -> Result<Option<usize>, ReadError> {
        let Some(length) = self.scanner.plain_cell() else { return self.any_cell(at) };
        let (Some(column), Some(sink)) = (self.columns.get(at), self.sinks.get_mut(at)) else {
            return Err(self.wrong_count(Cells::TooMany));
        };
        let text = &self.scanner.source.window()[..length];
        match push_text(column, self.options, text, sink) {
            Ok(()) => {
                self.scanner.source.consume(length + Scanner::<R>::PLAIN_END);
                Ok(Some(length))
            }
            Err(bad) => Err(self.bad_cell(at, text, bad)),
        }
    }

    /// Reads a TD in whatever way it is written.
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
        let text = std::mem::take(&mut text.bytes);
        let (Some(column), Some(sink)) = (self.columns.get(at), self.sinks.get_mut(at)) else {
            return Err(self.wrong_count(Cells::TooMany));
        };
        push_text(column, self.options, &text, sink).map_err(|bad| self.bad_cell(at, &text, bad))?;
        let length = text.len();
        if let Rows::Text(room) = &mut self.rows {
            room.bytes = text;
        }
        Ok(Some(length))
    }

    /// Reads a row of the stream.
    fn binary_row(&mut self, nulls: Nulls) -> Result<Option<usize>, ReadError> {
        let Rows::Binary(_, stream) = &mut self.rows else { return Ok(None) };
        if !stream.has_row(&mut self.scanner)? {
            return Ok(None);
        }
        let row = self.count + 1;
        let mut size = 0;
        if nulls == Nulls::Masked {
            size = self.columns.len().div_ceil(8);
            self.mask.clear();
            self.mask.extend_from_slice(stream.take(&mut self.scanner, size, row)?);
        }
        for (at, (column, sink)) in self.columns.iter().zip(&mut self.sinks).enumerate() {
            let place = || At::Cell { row, column: column.field.name.clone(), line: None };
            let count = match column.items {
                Some(count) => count,
                None => {
                    size += 4;
                    stream.count(&mut self.scanner, row)?
                }
            };
            let length = column.atom.bytes(count);
            if length > limits::CELL_BYTES {
                let fault = Fault::Limit { what: "a cell in bytes", limit: limits::CELL_BYTES as u64 };
                return Err(ReadError::new(place(), fault));
            }
            size += length;
            let bytes = stream.take(&mut self.scanner, length, row)?;
            let is_masked = self.mask.get(at / 8).is_some_and(|mask| mask & 0x80 >> (at % 8) != 0);
            if is_masked || self.options.nan_is_null && is_nan(column, bytes) {
                sink.push_null();
            } else {
                binary::cell(column, nulls, count, bytes, sink)
                    .map_err(|bad| ReadError::new(place(), fault(bytes, bad)))?;
            }
        }
        if size == 0 || size > limits::ROW_BYTES {
            return Err(ReadError::malformed(At::Row(row), "a row of no bytes, or of too many"));
        }
        Ok(Some(size))
    }

    fn wrong_count(&self, found: Cells) -> ReadError {
        let (row, columns) = (self.count + 1, self.columns.len());
        let found = match found {
            Cells::Few(count) => count.to_string(),
            Cells::TooMany => format!("more than {columns}"),
        };
        self.scanner.malformed(format!("row {row} has {found} cells, the table {columns} columns"))
    }

    fn bad_cell(&self, at: usize, text: &[u8], bad: Bad) -> ReadError {
        let column = self.columns.get(at).map_or_else(|| "".into(), |column| column.field.name.clone());
        let at = At::Cell { row: self.count + 1, column, line: Some(self.scanner.source.line()) };
        ReadError::new(at, fault(text, bad))
    }
}

fn push_text(column: &Incoming, options: ReadOptions, text: &[u8], sink: &mut Sink) -> Result<(), Bad> {
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

fn fault(text: &[u8], bad: Bad) -> Fault {
    match bad {
        Bad::Not(expected) => {
            let text = String::from_utf8_lossy(text);
            Fault::Value { text: shortened(&text).to_owned(), expected }
        }
        Bad::Count { found, expected } => {
            Fault::Malformed(format!("the cell has {found} items, its column declares {expected}"))
        }
        Bad::Cut => {
            Fault::Malformed("a character lies across the end of a string of fixed length".to_owned())
        }
    }
}
