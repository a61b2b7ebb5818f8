//! From bytes to cells: where each record and each of its cells lies in a buffer, quotes and line ends seen
//! to.
//!
//! The buffer holds whole records; what is left of a record at its end moves to the front before the next
//! read. Memory is one buffer, which grows for a long record up to [`RECORD_BYTES_MAX`] and no further.

use std::borrow::Cow;
use std::io::Read;

use crate::limits::{COLUMNS_MAX, CSV_BUFFER_BYTES, CSV_RECORD_BYTES_MAX};
use crate::read::{At, Fault, ReadError};

/// Where a cell lies in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: u32,
    end: u32,
    quotes: Quotes,
}

/// How a cell was quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    None,
    /// Between quotes, which the span leaves out.
    Plain,
    /// Between quotes, with doubled quotes inside.
    Doubled,
}

/// Records in the buffer, all of the same number of cells.
#[derive(Debug, Default)]
pub(super) struct Records {
    spans: Vec<Span>,
    /// The line on which each record begins.
    lines: Vec<u64>,
    columns: usize,
}

impl Records {
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    fn clear(&mut self, columns: usize) {
        self.spans.clear();
        self.lines.clear();
        self.columns = columns;
    }
}

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Cell<'a> {
    /// Its bytes without quotes.
    pub(super) bytes: Cow<'a, [u8]>,
    /// Whether it stood between quotes: then it is no NULL when it is empty.
    pub(super) quoted: bool,
}

/// A source cut into records.
#[derive(Debug)]
pub(super) struct Splitter<R> {
    source: R,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not yet cut.
    start: usize,
    end: usize,
    at_end: bool,
    line: u64,
    delimiter: u8,
    records: Records,
}

/// What came of looking for a record.
enum Found {
    /// A record, which ends before this byte.
    Record(usize),
    /// The buffer ends first.
    More,
}

impl<R: Read> Splitter<R> {
    pub(super) fn new(source: R, delimiter: u8) -> Self {
        Self {
            source,
            buffer: vec![0; CSV_BUFFER_BYTES],
            start: 0,
            end: 0,
            at_end: false,
            line: 1,
            delimiter,
            records: Records::default(),
        }
    }

    /// Passes over a byte order mark and over lines of commentary before the first record.
    pub(super) fn skip_preamble(&mut self) -> Result<(), ReadError> {
        self.fill()?;
        match self.unread() {
            [0xEF, 0xBB, 0xBF, ..] => self.start += 3,
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
                return Err(self.malformed("this is UTF-16; save it as UTF-8"));
            }
            _ => {}
        }
        while self.unread().first() == Some(&b'#') {
            match memchr::memchr(b'\n', self.unread()) {
                Some(newline) => {
                    self.start += newline + 1;
                    self.line += 1;
                }
                None if self.at_end => self.start = self.end,
                None => self.fill()?,
            }
        }
        Ok(())
    }

    /// The first record, whatever its length; nothing where there is none.
    pub(super) fn first(&mut self) -> Result<Option<usize>, ReadError> {
        self.records.clear(0);
        loop {
            if self.start == self.end && self.at_end {
                return Ok(None);
            }
            match self.record()? {
                Found::Record(next) => {
                    self.records.columns = self.records.spans.len();
                    self.records.lines.push(self.line);
                    self.consume(next);
                    return Ok(Some(self.records.columns));
                }
                Found::More => self.fill()?,
            }
        }
    }

    /// Up to `max` further records of `columns` cells; none at the end of the source. They stay readable by
    /// [`Splitter::cell`] until the next call.
    pub(super) fn next(&mut self, columns: usize, max: usize) -> Result<usize, ReadError> {
        self.records.clear(columns);
        while self.records.len() < max {
            if columns > 1 && self.skip_blank_line() {
                continue;
            }
            if self.start == self.end && self.at_end {
                break;
            }
            match self.record()? {
                Found::Record(next) => self.take(next, columns)?,
                // What was cut must stay where it is, so the buffer is filled only when nothing was.
                Found::More if self.records.len() > 0 => break,
                Found::More => self.fill()?,
            }
        }
        Ok(self.records.len())
    }

    /// The records last found.
    pub(super) fn records(&self) -> &Records {
        &self.records
    }

    /// A cell of the records last found.
    #[inline]
    pub(super) fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let span = self.records.spans[row * self.records.columns + column];
        let bytes = &self.buffer[span.start as usize..span.end as usize];
        match span.quotes {
            Quotes::None => Cell { bytes: Cow::Borrowed(bytes), quoted: false },
            Quotes::Plain => Cell { bytes: Cow::Borrowed(bytes), quoted: true },
            Quotes::Doubled => Cell { bytes: Cow::Owned(undouble(bytes)), quoted: true },
        }
    }

    /// The source, as far as it was read.
    pub(super) fn into_source(self) -> R {
        self.source
    }

    /// The source, as far as it was read.
    pub(super) fn source(&self) -> &R {
        &self.source
    }

    /// Whether every record was given.
    pub(super) fn is_exhausted(&self) -> bool {
        self.at_end && self.start == self.end
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn malformed(&self, message: impl Into<String>) -> ReadError {
        ReadError::malformed(At::Line(self.line), message)
    }

    /// An empty line between records is nothing, unless the table has one column.
    fn skip_blank_line(&mut self) -> bool {
        let blank = match self.unread() {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return false,
        };
        self.start += blank;
        self.line += 1;
        true
    }

    fn take(&mut self, next: usize, columns: usize) -> Result<(), ReadError> {
        let found = self.records.spans.len() - self.records.lines.len() * columns;
        if found != columns {
            return Err(self.malformed(format!("{found} cells where the first line has {columns}")));
        }
        self.records.lines.push(self.line);
        self.consume(next);
        Ok(())
    }

    /// Moves behind a record that was found, counting the lines inside its quotes.
    fn consume(&mut self, next: usize) {
        let record = &self.buffer[self.start..next];
        let mut cells = self.records.spans.iter().rev().take(self.records.columns);
        self.line += 1;
        if cells.any(|span| span.quotes != Quotes::None) {
            let ends = memchr::memchr_iter(b'\n', record).count() as u64;
            self.line += ends.saturating_sub(u64::from(record.ends_with(b"\n")));
        }
        self.start = next;
    }

    /// Finds the cells of the record that begins at `start` and appends their spans; on [`Found::More`]
    /// appends none.
    fn record(&mut self) -> Result<Found, ReadError> {
        let spans_before = self.records.spans.len();
        let mut at = self.start;
        loop {
            let cell = match self.buffer.get(at) {
                Some(b'"') if at < self.end => self.quoted_cell(at)?,
                _ => self.plain_cell(at),
            };
            let Some((span, stop)) = cell else {
                self.records.spans.truncate(spans_before);
                return Ok(Found::More);
            };
            self.records.spans.push(span);
            if self.records.spans.len() - spans_before > COLUMNS_MAX {
                let limit = COLUMNS_MAX as u64;
                return Err(ReadError::new(
                    At::Line(self.line),
                    Fault::Limit { what: "cells of a line", limit },
                ));
            }
            // The byte at `stop` is a delimiter or a line's end, or the source ended.
            if stop < self.end && self.buffer[stop] == self.delimiter {
                at = stop + 1;
                continue;
            }
            return Ok(Found::Record((stop + 1).min(self.end)));
        }
    }

    /// The cell at `at` and where it stops; nothing where the buffer ends before it does.
    #[inline]
    fn plain_cell(&self, at: usize) -> Option<(Span, usize)> {
        let rest = &self.buffer[at..self.end];
        let length = match memchr::memchr2(self.delimiter, b'\n', rest) {
            Some(length) => length,
            None if self.at_end => rest.len(),
            None => return None,
        };
        let stop = at + length;
        let ends_line = stop == self.end || self.buffer[stop] == b'\n';
        let carriage = ends_line && length > 0 && self.buffer[stop - 1] == b'\r';
        let end = stop - usize::from(carriage);
        Some((Span { start: at as u32, end: end as u32, quotes: Quotes::None }, stop))
    }

    fn quoted_cell(&self, quote: usize) -> Result<Option<(Span, usize)>, ReadError> {
        let start = quote + 1;
        let mut at = start;
        let mut quotes = Quotes::Plain;
        loop {
            let Some(length) = memchr::memchr(b'"', &self.buffer[at..self.end]) else {
                return match self.at_end {
                    true => Err(ReadError::new(At::Line(self.line), Fault::Truncated("a quoted value"))),
                    false => Ok(None),
                };
            };
            let end = at + length;
            let after = &self.buffer[end + 1..self.end];
            let stop = match after {
                [] | [b'\r'] if !self.at_end => return Ok(None),
                [b'"', ..] => {
                    quotes = Quotes::Doubled;
                    at = end + 2;
                    continue;
                }
                [b'\r', b'\n', ..] | [b'\r'] => end + 2,
                [] | [b'\n', ..] => end + 1,
                [byte, ..] if *byte == self.delimiter => end + 1,
                _ => return Err(self.malformed("a quoted value goes on after its closing quote")),
            };
            return Ok(Some((Span { start: start as u32, end: end as u32, quotes }, stop)));
        }
    }

    /// Reads on, after moving what is not yet cut to the front.
    fn fill(&mut self) -> Result<(), ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.buffer.len() >= CSV_RECORD_BYTES_MAX {
                let limit = CSV_RECORD_BYTES_MAX as u64;
                return Err(ReadError::new(
                    At::Line(self.line),
                    Fault::Limit { what: "a line in bytes", limit },
                ));
            }
            self.buffer.resize((self.buffer.len() * 2).min(CSV_RECORD_BYTES_MAX), 0);
        }
        while self.end < self.buffer.len() && !self.at_end {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::new(At::Line(self.line), Fault::Io(error))),
            }
        }
        Ok(())
    }
}

fn undouble(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=quote]);
        rest = rest.get(quote + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}
