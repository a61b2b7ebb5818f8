//! Cells as text, for the formats that people and spreadsheets read.
//!
//! The text is DALI's (DALI 1.1 section 3): numbers in the fewest digits that read back to the same bits,
//! timestamps in ISO 8601, arrays and geometries as their numbers with blanks between. Arrays of strings are
//! JSON arrays, since blanks inside strings would be taken for blanks between them. CSV, TSV, text and HTML
//! share this; JSON shares the numbers. What a NULL cell looks like is the format's affair.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StringArray};
use trifid_archive_adql::types::Field;

use crate::batch::physical;
use crate::time::Timestamp;
use crate::votable::column::{Cells, Column, items_of};
use crate::write::WriteError;

/// Every column of a batch, which is as announced.
pub(crate) fn columns<'a>(fields: &[Field], batch: &'a RecordBatch) -> Result<Vec<Column<'a>>, WriteError> {
    if batch.num_columns() != fields.len() {
        return Err(WriteError::Physical {
            column: Arc::from("*"),
            expected: format!("{} columns", fields.len()),
            found: format!("{} columns", batch.num_columns()),
        });
    }
    let pairs = fields.iter().zip(batch.columns());
    pairs
        .map(|(field, array)| {
            Column::new(array, field.ty).ok_or_else(|| WriteError::Physical {
                column: field.name.clone(),
                expected: physical(field.ty).to_string(),
                found: array.data_type().to_string(),
            })
        })
        .collect()
}

/// Appends a cell, which is not NULL, as text.
#[inline]
pub(crate) fn write(cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) {
    match cells {
        Cells::Nothing => {}
        Cells::Boolean(values) => out.extend_from_slice(truth(values.value(row))),
        Cells::Byte(values) => integer(values[row], out),
        Cells::Short(values) => integer(values[row], out),
        Cells::Int(values) => integer(values[row], out),
        Cells::Long(values) => integer(values[row], out),
        Cells::Float(values) => float(values[row], out),
        Cells::Double(values) => double(values[row], out),
        Cells::Text(values) => out.extend_from_slice(values.value(row).as_bytes()),
        Cells::Instant(values) => Timestamp(values[row]).write(out),
        Cells::Tuple(size, items) => write_items(items, row * size..(row + 1) * size, out),
        Cells::List(offsets, items) => write_items(items, items_of(offsets, row), out),
    }
}

/// The items of an array. A NULL among real numbers is `NaN`, as VOTable has it; among others it is `NULL`.
fn write_items(items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) {
    match &items.cells {
        Cells::Text(values) => return json_texts(values, range, out),
        Cells::Tuple(size, parts) => return write_items(parts, range.start * size..range.end * size, out),
        _ => {}
    }
    for item in range.clone() {
        if item > range.start {
            out.push(b' ');
        }
        match &items.cells {
            Cells::Float(_) | Cells::Double(_) if items.is_null(item) => out.extend_from_slice(b"NaN"),
            _ if items.is_null(item) => out.extend_from_slice(b"NULL"),
            cells => write(cells, item, out),
        }
    }
}

/// Strings as a JSON array.
pub(crate) fn json_texts(values: &StringArray, range: Range<usize>, out: &mut Vec<u8>) {
    out.push(b'[');
    for item in range.clone() {
        if item > range.start {
            out.push(b',');
        }
        match values.is_null(item) {
            true => out.extend_from_slice(b"null"),
            false => json_text(values.value(item), out),
        }
    }
    out.push(b']');
}

/// A string in JSON (RFC 8259 section 7). `</` and `<!` are escaped so that it may stand in a script of a
/// page.
pub(crate) fn json_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        if !JSON_SPECIAL[byte as usize] {
            continue;
        }
        out.extend_from_slice(&bytes[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

const JSON_SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special[b'<' as usize] = true;
    special
};

pub(crate) const fn truth(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

#[inline]
pub(crate) fn integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Shortest digits that read back; the words for what is no number are those that Java and Python both read.
#[inline]
pub(crate) fn double(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(no_number(value));
    }
}

#[inline]
pub(crate) fn float(value: f32, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(no_number(f64::from(value)));
    }
}

fn no_number(value: f64) -> &'static [u8] {
    if value.is_nan() {
        b"NaN"
    } else if value > 0.0 {
        b"Infinity"
    } else {
        b"-Infinity"
    }
}
