//! BINARY and BINARY2 (VOTable 1.5 sections 5.3 and 5.4): big-endian values one after the other, before base64.
//!
//! ```text
//! BINARY   | cell | cell | ...
//! BINARY2  | null mask, one bit a column, first column in the highest bit | cell | cell | ...
//!
//! cell     scalar: its bytes                      fixed arraysize: the items
//!          variable arraysize: number of items in four bytes, then the items
//! ```
//!
//! A masked cell still takes its place: zeros, NaN for reals, an empty array for a variable one. A `char` is
//! ASCII, a `unicodeChar` a unit of UTF-16; what is short of a fixed length is filled with NUL.

use std::ops::Range;

use super::column::{Cells, Column, items_of};
use super::plan::{Extent, Plan};
use super::strings::{ascii, json, units, wide};
use super::tabledata::{NULL_ITEM, Reason, TOO_LONG, WRONG_COUNT};
use crate::time::Timestamp;

const CLASH: Reason = "the value stands for NULL in BINARY; BINARY2 or TABLEDATA can hold it";
const NULL_BITS: Reason = "BINARY has no NULL of a fixed array of bits; BINARY2 and TABLEDATA have";
const TOO_MANY: Reason = "the cell has more items than four bytes can count";

/// Appends a row of BINARY2.
pub(super) fn masked_row(
    plans: &[Plan],
    columns: &[Column<'_>],
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), (usize, Reason)> {
    let mask = out.len();
    out.resize(mask + columns.len().div_ceil(8), 0);
    for (at, (plan, column)) in plans.iter().zip(columns).enumerate() {
        if column.is_null(row) {
            out[mask + at / 8] |= 0x80 >> (at % 8);
            absent(plan, &column.cells, out);
        } else {
            value(plan, &column.cells, row, out).map_err(|reason| (at, reason))?;
        }
    }
    Ok(())
}

/// Appends a row of BINARY.
pub(super) fn plain_row(
    plans: &[Plan],
    columns: &[Column<'_>],
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), (usize, Reason)> {
    for (at, (plan, column)) in plans.iter().zip(columns).enumerate() {
        if !column.is_null(row) {
            is_free(plan, &column.cells, row)
                .and_then(|()| value(plan, &column.cells, row, out))
                .map_err(|reason| (at, reason))?;
        } else if plan.bits && matches!(plan.extent, Extent::Fixed(_)) {
            return Err((at, NULL_BITS));
        } else {
            absent(plan, &column.cells, out);
        }
    }
    Ok(())
}

/// Whether a value is not the one that was given up for NULL.
fn is_free(plan: &Plan, cells: &Cells<'_>, row: usize) -> Result<(), Reason> {
    let value = match cells {
        Cells::Short(values) => i64::from(values[row]),
        Cells::Int(values) => i64::from(values[row]),
        Cells::Long(values) => values[row],
        _ => return Ok(()),
    };
    if plan.null == Some(value) { Err(CLASH) } else { Ok(()) }
}

#[inline]
fn value(plan: &Plan, cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
    match cells {
        Cells::Nothing => absent(plan, cells, out),
        Cells::Boolean(values) => out.push(truth(values.value(row), plan.bits)),
        // A scalar with a value for NULL is declared `short`.
        Cells::Byte(values) if plan.null.is_some() => out.extend_from_slice(&[0, values[row]]),
        Cells::Byte(values) => out.push(values[row]),
        Cells::Short(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        Cells::Int(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        Cells::Long(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        Cells::Float(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        Cells::Double(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        Cells::Text(values) => text(plan, values.value(row), out)?,
        Cells::Instant(values) => instant(plan, values[row], out)?,
        Cells::Tuple(size, items) => numbers(plan, items, row * size..(row + 1) * size, out)?,
        Cells::List(offsets, items) => list(plan, items, items_of(offsets, row), out)?,
    }
    Ok(())
}

/// Appends what stands in the place of a NULL.
fn absent(plan: &Plan, cells: &Cells<'_>, out: &mut Vec<u8>) {
    match (cells, plan.extent) {
        (Cells::Nothing, _) => out.extend_from_slice(&[0; 4]),
        (Cells::Text(_) | Cells::Instant(_), Extent::Fixed(size)) => zeros(size * unit(plan), out),
        (Cells::List(_, items), Extent::Fixed(size)) => match &items.cells {
            Cells::Boolean(_) if plan.bits => zeros(size.div_ceil(8), out),
            Cells::Text(_) => zeros(size * plan.width * unit(plan), out),
            item => (0..size).for_each(|_| absent_item(plan, item, out)),
        },
        (Cells::Text(_) | Cells::Instant(_) | Cells::List(..), _) => out.extend_from_slice(&[0; 4]),
        (item, _) => absent_item(plan, item, out),
    }
}

/// Appends the NULL of a scalar.
fn absent_item(plan: &Plan, cells: &Cells<'_>, out: &mut Vec<u8>) {
    let null = plan.null.unwrap_or(0).to_be_bytes();
    match cells {
        Cells::Boolean(_) => out.push(if plan.bits { 0 } else { b'?' }),
        Cells::Byte(_) if plan.null.is_some() => out.extend_from_slice(&null[6..]),
        Cells::Byte(_) => out.push(0),
        Cells::Short(_) => out.extend_from_slice(&null[6..]),
        Cells::Int(_) => out.extend_from_slice(&null[4..]),
        Cells::Long(_) => out.extend_from_slice(&null),
        Cells::Float(_) => out.extend_from_slice(&f32::NAN.to_be_bytes()),
        Cells::Double(_) => out.extend_from_slice(&f64::NAN.to_be_bytes()),
        Cells::Tuple(size, items) => (0..*size).for_each(|_| absent_item(plan, &items.cells, out)),
        Cells::Nothing | Cells::Text(_) | Cells::Instant(_) | Cells::List(..) => {}
    }
}

fn list(plan: &Plan, items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Reason> {
    if let (Cells::Text(values), true) = (&items.cells, plan.json) {
        return text(plan, &json(values, range), out);
    }
    if !plan.admits(range.len()) {
        return Err(WRONG_COUNT);
    }
    if !matches!(plan.extent, Extent::Fixed(_)) {
        let count =
            if matches!(items.cells, Cells::Text(_)) { range.len() * plan.width } else { range.len() };
        length(count, out)?;
    }
    match &items.cells {
        Cells::Boolean(_) if plan.bits => bits(items, range, out),
        Cells::Text(_) => strings(plan, items, range, out),
        _ => numbers(plan, items, range, out),
    }
}

fn numbers(plan: &Plan, items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Reason> {
    for at in range {
        if !items.is_null(at) {
            value(plan, &items.cells, at, out)?;
        } else if matches!(items.cells, Cells::Byte(_)) {
            return Err(NULL_ITEM);
        } else {
            absent_item(plan, &items.cells, out);
        }
    }
    Ok(())
}

/// Bits, eight a byte, the first in the highest bit; the last byte is filled with zeros.
fn bits(items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Reason> {
    let Cells::Boolean(values) = &items.cells else { return Ok(()) };
    let start = out.len();
    out.resize(start + range.len().div_ceil(8), 0);
    for (bit, at) in range.enumerate() {
        if items.is_null(at) {
            return Err(NULL_ITEM);
        }
        if values.value(at) {
            out[start + bit / 8] |= 0x80 >> (bit % 8);
        }
    }
    Ok(())
}

fn strings(plan: &Plan, items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Reason> {
    let Cells::Text(values) = &items.cells else { return Ok(()) };
    for at in range {
        let text = if items.is_null(at) { "" } else { values.value(at) };
        filled(text, plan.width, plan.wide, out)?;
    }
    Ok(())
}

#[inline]
fn text(plan: &Plan, text: &str, out: &mut Vec<u8>) -> Result<(), Reason> {
    if let Extent::Fixed(size) = plan.extent {
        return filled(text, size, plan.wide, out);
    }
    if plan.wide {
        length(units(text, true), out)?;
        out.extend(wide(text));
    } else {
        let text = ascii(text);
        length(text.len(), out)?;
        out.extend_from_slice(text.as_bytes());
    }
    Ok(())
}

/// Appends an instant; a fixed length may leave the time of a midnight out (DALI 1.1 section 3.3.3).
fn instant(plan: &Plan, micros: i64, out: &mut Vec<u8>) -> Result<(), Reason> {
    let start = out.len();
    match plan.extent {
        Extent::Fixed(size) => {
            Timestamp(micros).write(out);
            let written = out.split_off(start);
            let written = std::str::from_utf8(&written).unwrap_or_default();
            let date = written.strip_suffix("T00:00:00").filter(|_| written.len() > size);
            filled(date.unwrap_or(written), size, plan.wide, out)
        }
        _ if plan.wide => {
            Timestamp(micros).write(out);
            let written = out.split_off(start);
            text(plan, std::str::from_utf8(&written).unwrap_or_default(), out)
        }
        _ => {
            out.extend_from_slice(&[0; 4]);
            Timestamp(micros).write(out);
            let count = (out.len() - start - 4) as u8;
            out[start + 3] = count;
            Ok(())
        }
    }
}

/// Appends text in exactly `size` units, filled with NUL.
fn filled(text: &str, size: usize, is_wide: bool, out: &mut Vec<u8>) -> Result<(), Reason> {
    let start = out.len();
    let bytes = if is_wide {
        out.extend(wide(text));
        size * 2
    } else {
        out.extend_from_slice(ascii(text).as_bytes());
        size
    };
    if out.len() - start > bytes {
        return Err(TOO_LONG);
    }
    out.resize(start + bytes, 0);
    Ok(())
}

#[inline]
fn length(count: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
    // Signed: some readers take the count for an `int`.
    let count = i32::try_from(count).map_err(|_| TOO_MANY)?;
    out.extend_from_slice(&count.to_be_bytes());
    Ok(())
}

const fn unit(plan: &Plan) -> usize {
    if plan.wide { 2 } else { 1 }
}

fn zeros(count: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + count, 0);
}

const fn truth(value: bool, as_bit: bool) -> u8 {
    match (value, as_bit) {
        (true, true) => 0x80,
        (false, true) => 0,
        (true, false) => b'T',
        (false, false) => b'F',
    }
}
