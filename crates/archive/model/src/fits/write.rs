//! From columns to the bytes of a binary table: header, rows, heap, padding (FITS 4.0 7.3.3).
//!
//! The heap follows all rows, so a table with variable arrays is walked twice: once for the rows, whose
//! descriptors count where each array will be, once for the arrays. Nothing is kept in between.

use std::ops::Range;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use super::card::{BLOCK, Cards, integer_card};
use super::form::{Code, Place};
use super::layout::{Layout, Plan};
use super::survey::Survey;
use crate::cell;
use crate::time::Timestamp;
use crate::votable::column::{Cells, Column, items_of};
use crate::votable::{Serialization, declare};
use crate::write::{End, Head, WriteError};

/// A binary table being written.
#[derive(Debug)]
pub struct Encoder {
    head: Head,
    layout: Layout,
    /// Rows that the header announces.
    announced: u64,
    rows: u64,
    heap: u64,
    /// Where the card with the number of rows stands.
    rows_at: u64,
    /// Bytes appended so far since the last block began.
    bytes: u64,
}

/// What broke, in the column of this index.
type Broken = (usize, &'static str);

const TOO_LONG: &str = "the text is longer than its column is wide";
const WRONG_COUNT: &str = "the array has not as many items as its column";
const IS_NULL_MARK: &str = "the number stands for NULL in this column";

impl Encoder {
    /// An encoder of the table that was surveyed.
    pub fn new(head: Head, survey: &Survey) -> Result<Self, WriteError> {
        let layout = Layout::new(survey)?;
        Ok(Self { head, layout, announced: survey.rows, rows: 0, heap: 0, rows_at: 0, bytes: 0 })
    }

    /// Whether the rows have to be gone through a second time, for [`Encoder::heap`].
    pub fn has_heap(&self) -> bool {
        self.layout.has_heap()
    }

    /// Appends the primary header and the table's.
    pub fn header(&mut self, end: &End, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let start = out.len();
        primary().finish(out);
        self.table_header(end, start, out)?;
        self.bytes = (out.len() - start) as u64;
        Ok(())
    }

    /// The card that tells another number of rows than the header announced, and where in the file it
    /// belongs.
    pub fn patch(&self, rows: u64) -> (u64, Vec<u8>) {
        (self.rows_at, integer_card("NAXIS2", i64::try_from(rows).unwrap_or(i64::MAX), "number of rows"))
    }

    /// Appends rows.
    pub fn rows(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let columns = cell::columns(&self.head.fields, batch)?;
        let whole = self.layout.row_bytes.saturating_mul(rows.len() as u64);
        out.reserve(usize::try_from(whole).unwrap_or(0).min(1 << 24));
        for row in rows {
            let start = out.len();
            let heap = self.heap;
            if let Err(broken) = self.row(&columns, row, out) {
                out.truncate(start);
                self.heap = heap;
                return Err(self.refused(broken));
            }
            self.rows += 1;
            self.bytes += (out.len() - start) as u64;
        }
        Ok(())
    }

    /// Appends the variable arrays of rows, after all rows were appended and in the same order.
    pub fn heap(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let columns = cell::columns(&self.head.fields, batch)?;
        let start = out.len();
        for row in rows {
            for (plan, column) in self.layout.plans.iter().zip(&columns) {
                if !matches!(plan.form.place, Place::Row(_)) && !column.is_null(row) {
                    array(plan, column, row, out);
                }
            }
        }
        self.bytes += (out.len() - start) as u64;
        Ok(())
    }

    /// Appends what fills the last block (FITS 4.0 3.3.2).
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let missing = self.bytes.next_multiple_of(BLOCK as u64) - self.bytes;
        out.resize(out.len() + missing as usize, 0);
        self.bytes += missing;
    }

    fn refused(&self, (column, reason): Broken) -> WriteError {
        WriteError::Value { row: self.rows, column: self.head.fields[column].name.clone(), reason }
    }

    fn row(&mut self, columns: &[Column<'_>], row: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
        for (at, (plan, column)) in self.layout.plans.iter().zip(columns).enumerate() {
            match plan.form.place {
                Place::Row(count) => {
                    let start = out.len();
                    fixed(plan, column, row, count, out).map_err(|reason| (at, reason))?;
                    debug_assert_eq!(plan.form.row_bytes(), Some((out.len() - start) as u64), "{plan:?}");
                }
                Place::Heap32(_) => {
                    let (count, bytes) = extent(plan, column, row);
                    out.extend_from_slice(&(count as u32).to_be_bytes());
                    out.extend_from_slice(&(self.heap as u32).to_be_bytes());
                    self.heap += bytes;
                }
                Place::Heap64(_) => {
                    let (count, bytes) = extent(plan, column, row);
                    out.extend_from_slice(&count.to_be_bytes());
                    out.extend_from_slice(&self.heap.to_be_bytes());
                    self.heap += bytes;
                }
            }
        }
        Ok(())
    }

    fn table_header(&mut self, end: &End, start: usize, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let number = |what, value: u64| {
            i64::try_from(value).map_err(|_| WriteError::TooLarge { what, limit: i64::MAX as u64 })
        };
        let mut cards = Cards::default();
        cards.text("XTENSION", "BINTABLE", "binary table");
        cards.integer("BITPIX", 8, "bytes");
        cards.integer("NAXIS", 2, "rows of bytes");
        cards.integer("NAXIS1", number("a row in bytes", self.layout.row_bytes)?, "bytes of a row");
        self.rows_at = (out.len() - start + cards.len()) as u64;
        cards.integer("NAXIS2", number("the number of rows", self.announced)?, "number of rows");
        cards.integer("PCOUNT", number("the heap in bytes", self.layout.heap_bytes)?, "bytes of the heap");
        cards.integer("GCOUNT", 1, "one table");
        cards.integer("TFIELDS", self.layout.plans.len() as i64, "number of columns");
        if let Some(name) = &self.head.name {
            cards.text("EXTNAME", name, "name of the table");
        }
        for (at, (field, plan)) in self.head.fields.iter().zip(&self.layout.plans).enumerate() {
            column(&mut cards, at + 1, field, plan);
        }
        self.about(&mut cards, end);
        cards.finish(out);
        Ok(())
    }

    /// How the result ended, and what is said of the table.
    fn about(&self, cards: &mut Cards, end: &End) {
        match end {
            End::Complete => cards.text("QSTATUS", "OK", "every row is here"),
            End::Overflow => cards.text("QSTATUS", "OVERFLOW", "more rows were withheld"),
            End::Failed(message) => {
                cards.text("QSTATUS", "ERROR", "the query failed");
                cards.wrapped(message);
            }
        }
        if let Some(description) = &self.head.description {
            cards.wrapped(description);
        }
        for info in &self.head.infos {
            cards.wrapped(&format!("{}: {}", info.name, info.value));
        }
    }
}

fn primary() -> Cards {
    let mut cards = Cards::default();
    cards.logical("SIMPLE", true, "FITS 4.0");
    cards.integer("BITPIX", 8, "bytes");
    cards.integer("NAXIS", 0, "no data here");
    cards.logical("EXTEND", true, "a table follows");
    cards
}

/// The keywords of a column. TCOMM, TUCD, TUTYP and TXTYP are no part of the standard; STIL reads the first
/// three.
fn column(cards: &mut Cards, ordinal: usize, field: &Field, plan: &Plan) {
    let declared = declare::declare(field, Serialization::Binary2);
    cards.text(&format!("TTYPE{ordinal}"), &field.name, "");
    cards.text(&format!("TFORM{ordinal}"), &plan.form.to_string(), "");
    if let Some(null) = plan.null {
        cards.integer(&format!("TNULL{ordinal}"), null, "");
    }
    if !plan.dims.is_empty() {
        let dims: Vec<String> = plan.dims.iter().map(u64::to_string).collect();
        cards.text(&format!("TDIM{ordinal}"), &format!("({})", dims.join(",")), "");
    }
    let xtype =
        if plan.is_json { Some("json") } else { declared.xtype.as_deref().filter(|xtype| *xtype != "json") };
    let optional = [
        ("TUNIT", field.unit.as_deref()),
        ("TUCD", field.ucd.as_deref()),
        ("TUTYP", field.utype.as_deref()),
        ("TXTYP", xtype),
        ("TCOMM", field.description.as_deref()),
    ];
    for (keyword, value) in optional {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            cards.text(&format!("{keyword}{ordinal}"), value, "");
        }
    }
}

/// Appends a cell that stands in the row.
#[inline]
fn fixed(
    plan: &Plan,
    column: &Column<'_>,
    row: usize,
    count: u64,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    if column.is_null(row) {
        nulls(plan, count, out);
        return Ok(());
    }
    match &column.cells {
        Cells::Text(values) => return text(values.value(row), count, out),
        Cells::Instant(values) => {
            let start = out.len();
            Timestamp(values[row]).write(out);
            out.resize(start + count as usize, 0);
        }
        Cells::List(offsets, items) => {
            let range = items_of(offsets, row);
            match (&items.cells, plan.width) {
                (Cells::Text(values), None) => {
                    let start = out.len();
                    cell::json_texts(values, range, out);
                    if (out.len() - start) as u64 > count {
                        return Err(TOO_LONG);
                    }
                    out.resize(start + count as usize, 0);
                }
                (Cells::Text(values), Some(width)) => {
                    for item in range {
                        match items.is_null(item) {
                            true => out.resize(out.len() + width as usize, 0),
                            false => text(values.value(item), width, out)?,
                        }
                    }
                }
                _ if range.len() as u64 != count => return Err(WRONG_COUNT),
                _ => sequence(plan, items, range, out)?,
            }
        }
        _ => return single(plan.form.code, plan.null, &column.cells, row, out),
    }
    Ok(())
}

/// Appends a cell that stands in the heap.
fn array(plan: &Plan, column: &Column<'_>, row: usize, out: &mut Vec<u8>) {
    match &column.cells {
        Cells::Text(values) => {
            let text = values.value(row);
            out.extend(text.bytes().map(without_nul));
            match text.as_bytes().last() {
                None => out.push(b' '),
                Some(b' ') => out.push(0),
                Some(_) => {}
            }
        }
        Cells::List(offsets, items) => {
            let range = items_of(offsets, row);
            match &items.cells {
                Cells::Text(values) => cell::json_texts(values, range, out),
                // The survey saw every value, so none is the mark of NULL.
                _ => sequence(plan, items, range, out).unwrap_or_default(),
            }
        }
        _ => {}
    }
}

/// Elements and bytes of a cell that stands in the heap.
fn extent(plan: &Plan, column: &Column<'_>, row: usize) -> (u64, u64) {
    if column.is_null(row) {
        return (0, 0);
    }
    let count = match &column.cells {
        Cells::Text(values) => super::survey::stored_bytes(values.value(row)),
        Cells::List(offsets, items) => {
            let range = items_of(offsets, row);
            match &items.cells {
                Cells::Text(values) => {
                    let mut json = Vec::new();
                    cell::json_texts(values, range, &mut json);
                    json.len() as u64
                }
                _ => range.len() as u64,
            }
        }
        _ => 0,
    };
    (count, plan.form.code.bytes(count).unwrap_or(0))
}

/// Appends items one after the other; bits eight to a byte, the first the most significant (FITS 4.0
/// 7.3.3.1).
fn sequence(
    plan: &Plan,
    items: &Column<'_>,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    if let (Code::Bit, Cells::Boolean(values)) = (plan.form.code, &items.cells) {
        let mut bits = range.map(|item| values.value(item) && !items.is_null(item)).peekable();
        while bits.peek().is_some() {
            let byte = (0..8).fold(0, |byte, at| byte | u8::from(bits.next().unwrap_or(false)) << (7 - at));
            out.push(byte);
        }
        return Ok(());
    }
    for item in range {
        match items.is_null(item) {
            true => null(plan.form.code, plan.null, out),
            false => single(plan.form.code, plan.null, &items.cells, item, out)?,
        }
    }
    Ok(())
}

/// Appends one value that is not NULL, in this form.
#[inline]
fn single(
    code: Code,
    null: Option<i64>,
    cells: &Cells<'_>,
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    match cells {
        Cells::Boolean(values) => out.push(if values.value(row) { b'T' } else { b'F' }),
        Cells::Byte(values) => return whole(code, null, values[row].into(), out),
        Cells::Short(values) => return whole(code, null, values[row].into(), out),
        Cells::Int(values) => return whole(code, null, values[row].into(), out),
        Cells::Long(values) => return whole(code, null, values[row], out),
        Cells::Float(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        Cells::Double(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        Cells::Tuple(size, parts) => {
            for part in row * size..(row + 1) * size {
                match (&parts.cells, parts.is_null(part)) {
                    (Cells::Float(_), true) => out.extend_from_slice(&f32::NAN.to_be_bytes()),
                    (_, true) => out.extend_from_slice(&f64::NAN.to_be_bytes()),
                    (cells, false) => single(code, null, cells, part, out)?,
                }
            }
        }
        Cells::Nothing | Cells::Text(_) | Cells::Instant(_) | Cells::List(..) => {}
    }
    Ok(())
}

#[inline]
fn whole(code: Code, null: Option<i64>, value: i64, out: &mut Vec<u8>) -> Result<(), &'static str> {
    if null == Some(value) {
        return Err(IS_NULL_MARK);
    }
    put_whole(code, value, out);
    Ok(())
}

/// The plan made the form wide enough for every value.
#[inline]
fn put_whole(code: Code, value: i64, out: &mut Vec<u8>) {
    match code {
        Code::Byte => out.push(value as u8),
        Code::Short => out.extend_from_slice(&(value as i16).to_be_bytes()),
        Code::Int => out.extend_from_slice(&(value as i32).to_be_bytes()),
        _ => out.extend_from_slice(&value.to_be_bytes()),
    }
}

/// Appends a string, filled up: NUL behind it, or blanks where it is empty, since a field that begins with
/// NUL is no string at all (FITS 4.0 7.3.3.1).
fn text(text: &str, width: u64, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let start = out.len();
    if text.len() as u64 > width {
        return Err(TOO_LONG);
    }
    out.extend(text.bytes().map(without_nul));
    out.resize(start + width as usize, if text.is_empty() { b' ' } else { 0 });
    Ok(())
}

/// A NUL would end the string.
const fn without_nul(byte: u8) -> u8 {
    if byte == 0 { b' ' } else { byte }
}

/// Appends a row's worth of NULL.
fn nulls(plan: &Plan, count: u64, out: &mut Vec<u8>) {
    match plan.form.code {
        Code::Char | Code::Logical => out.resize(out.len() + count as usize, 0),
        Code::Bit => out.resize(out.len() + count.div_ceil(8) as usize, 0),
        code => (0..count).for_each(|_| null(code, plan.null, out)),
    }
}

/// Appends one item that is NULL.
fn null(code: Code, null: Option<i64>, out: &mut Vec<u8>) {
    match code {
        Code::Float => out.extend_from_slice(&f32::NAN.to_be_bytes()),
        Code::Double => out.extend_from_slice(&f64::NAN.to_be_bytes()),
        Code::FloatComplex => (0..2).for_each(|_| out.extend_from_slice(&f32::NAN.to_be_bytes())),
        Code::DoubleComplex => (0..2).for_each(|_| out.extend_from_slice(&f64::NAN.to_be_bytes())),
        Code::Logical | Code::Bit | Code::Char => out.push(0),
        Code::Byte | Code::Short | Code::Int | Code::Long => put_whole(code, null.unwrap_or(0), out),
    }
}
