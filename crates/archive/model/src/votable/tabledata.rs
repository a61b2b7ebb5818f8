//! TABLEDATA (VOTable 1.5 section 5.1): a row is a TR, a cell is a TD, a value is text.
//!
//! Reals are the shortest text that reads back as the same number. An empty cell is NULL for every type (section 6);
//! a boolean says `?`.

use std::ops::Range;

use arrow_array::Array;

use super::column::{Cells, Column, items_of};
use super::plan::Plan;
use super::strings::{json, units};
use super::xml;
use crate::time::Timestamp;

/// Why a value cannot be written.
pub(super) type Reason = &'static str;

pub(super) const WRONG_COUNT: Reason = "the array has not the number of items that arraysize declares";
pub(super) const TOO_LONG: Reason = "the string is longer than arraysize declares";
pub(super) const NULL_ITEM: Reason = "a NULL among bits or bytes cannot be written";

/// Appends a row.
pub(super) fn row(
    plans: &[Plan],
    columns: &[Column<'_>],
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), (usize, Reason)> {
    let mut before: &[u8] = b"<TR><TD>";
    for (at, (plan, column)) in plans.iter().zip(columns).enumerate() {
        out.extend_from_slice(before);
        before = b"</TD><TD>";
        if !column.is_null(row) {
            value(plan, &column.cells, row, out).map_err(|reason| (at, reason))?;
        } else if matches!(column.cells, Cells::Boolean(_)) && !plan.bits {
            out.push(b'?');
        }
    }
    out.extend_from_slice(if columns.is_empty() { b"<TR></TR>\n" } else { b"</TD></TR>\n" });
    Ok(())
}

#[inline]
fn value(plan: &Plan, cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
    match cells {
        Cells::Nothing => {}
        Cells::Boolean(values) => out.push(truth(values.value(row), plan.bits)),
        Cells::Byte(values) => integer(values[row], out),
        Cells::Short(values) => integer(values[row], out),
        Cells::Int(values) => integer(values[row], out),
        Cells::Long(values) => integer(values[row], out),
        Cells::Float(values) => real(values[row], out),
        Cells::Double(values) => real(values[row], out),
        Cells::Text(values) => xml::text(values.value(row), out),
        Cells::Instant(values) => Timestamp(values[row]).write(out),
        Cells::Tuple(size, items) => numbers(plan, items, row * size..(row + 1) * size, out)?,
        Cells::List(offsets, items) => list(plan, items, items_of(offsets, row), out)?,
    }
    Ok(())
}

fn list(plan: &Plan, items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Reason> {
    if let (Cells::Text(values), true) = (&items.cells, plan.json) {
        xml::text(&json(values, range), out);
        return Ok(());
    }
    if !plan.admits(range.len()) {
        return Err(WRONG_COUNT);
    }
    match &items.cells {
        Cells::Text(_) => strings(plan, items, range, out),
        Cells::Tuple(size, parts) => numbers(plan, parts, range.start * size..range.end * size, out),
        _ => numbers(plan, items, range, out),
    }
}

/// Numbers and truths, separated by blanks.
fn numbers(plan: &Plan, items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Reason> {
    for at in range.clone() {
        if at != range.start {
            out.push(b' ');
        }
        if items.is_null(at) {
            null_item(plan, &items.cells, out)?;
        } else {
            value(plan, &items.cells, at, out)?;
        }
    }
    Ok(())
}

fn null_item(plan: &Plan, cells: &Cells<'_>, out: &mut Vec<u8>) -> Result<(), Reason> {
    match (cells, plan.null) {
        (Cells::Boolean(_), _) if !plan.bits => out.push(b'?'),
        (Cells::Float(_) | Cells::Double(_), _) => out.extend_from_slice(b"NaN"),
        (_, Some(null)) => integer(null, out),
        _ => return Err(NULL_ITEM),
    }
    Ok(())
}

/// Strings of one length, one after the other without a separator, filled up with blanks.
fn strings(plan: &Plan, items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Reason> {
    let Cells::Text(values) = &items.cells else { return Ok(()) };
    for at in range {
        let text = xml::representable(if values.is_null(at) { "" } else { values.value(at) });
        let missing = plan.width.checked_sub(units(&text, plan.wide)).ok_or(TOO_LONG)?;
        xml::text(&text, out);
        out.resize(out.len() + missing, b' ');
    }
    Ok(())
}

const fn truth(value: bool, as_bit: bool) -> u8 {
    match (value, as_bit) {
        (true, true) => b'1',
        (false, true) => b'0',
        (true, false) => b'T',
        (false, false) => b'F',
    }
}

#[inline]
fn integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a real, with VOTable's spelling of what is not finite (section 6).
#[inline]
fn real<F: zmij::Float + Into<f64> + Copy>(value: F, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    if wide.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(match (wide.is_nan(), wide > 0.0) {
            (true, _) => b"NaN",
            (false, true) => b"+Inf",
            (false, false) => b"-Inf",
        });
    }
}
