//! The cells of BINARY and BINARY2 (VOTable 1.5 sections 5.3, 5.4 and 6): bytes into values.

use super::incoming::{Atom, Bad, Incoming, push_filled};
use super::sink::{Sink, Values};
use crate::votable::plan::Extent;

/// How NULL is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nulls {
    /// By a mask, BINARY2: values are what they are.
    Masked,
    /// By values, BINARY: NaN, blanks and what `VALUES null` says.
    Magic,
}

/// Pushes the value of a cell that holds `count` items in `bytes`.
pub(super) fn cell(
    column: &Incoming,
    nulls: Nulls,
    count: usize,
    bytes: &[u8],
    sink: &mut Sink,
) -> Result<(), Bad> {
    if nulls == Nulls::Magic && is_absent(column, bytes) {
        sink.push_null();
        return Ok(());
    }
    match &mut sink.values {
        Values::Text(..) | Values::Instant(_) => string(column, bytes, sink),
        Values::List(_, _, items) if matches!(items.values, Values::Text(..)) => strings(column, bytes, sink),
        Values::List(_, _, items) => {
            column.check_count(count)?;
            if column.is_bits() {
                bits(count, bytes, items);
            } else {
                each(column, bytes, |item| scalar(column, Nulls::Masked, item, items))?;
            }
            sink.end_list();
            Ok(())
        }
        Values::Tuple(_, _, items) if column.is_single() => {
            parts(column, bytes, items);
            sink.pushed();
            Ok(())
        }
        Values::Tuple(_, _, items) => {
            each(column, bytes, |item| scalar(column, Nulls::Masked, item, items))?;
            sink.pushed();
            Ok(())
        }
        _ => scalar(column, nulls, bytes, sink),
    }
}

/// Calls for each item of an array.
fn each(column: &Incoming, bytes: &[u8], call: impl FnMut(&[u8]) -> Result<(), Bad>) -> Result<(), Bad> {
    bytes.chunks_exact(column.atom.bytes(1)).try_for_each(call)
}

/// Whether a cell of BINARY stands for NULL as a whole: an empty variable array, or a fixed one of nothing but what
/// is NULL. A scalar is looked at where it is read.
fn is_absent(column: &Incoming, bytes: &[u8]) -> bool {
    if column.is_single() && !matches!(column.atom, Atom::FloatComplex | Atom::DoubleComplex) {
        return matches!(column.atom, Atom::Char | Atom::Wide) && bytes.iter().all(|&byte| byte == 0);
    }
    match column.extent {
        Extent::Variable | Extent::Multiple(_) if !column.is_single() && !column.is_tuple() => {
            bytes.is_empty()
        }
        _ => match column.atom {
            Atom::Char | Atom::Wide => bytes.iter().all(|&byte| byte == 0),
            Atom::Float | Atom::FloatComplex => {
                bytes.as_chunks::<4>().0.iter().all(|b| f32::from_be_bytes(*b).is_nan())
            }
            Atom::Double | Atom::DoubleComplex => {
                bytes.as_chunks::<8>().0.iter().all(|b| f64::from_be_bytes(*b).is_nan())
            }
            Atom::Boolean => bytes.iter().all(|byte| matches!(byte, 0 | b' ' | b'?')),
            Atom::Short | Atom::Int | Atom::Long => {
                column.null.is_some()
                    && bytes.chunks_exact(column.atom.bytes(1)).all(|b| column.is_null_whole(whole(b)))
            }
            Atom::Bit | Atom::Byte => false,
        },
    }
}

/// A big-endian whole number with its sign.
fn whole(bytes: &[u8]) -> i64 {
    match *bytes {
        [a] => i64::from(a),
        [a, b] => i64::from(i16::from_be_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// A big-endian real. Those of four bytes are widened, and come back the same when narrowed.
fn real(bytes: &[u8]) -> f64 {
    match *bytes {
        [a, b, c, d] => f64::from(f32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => f64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => f64::NAN,
    }
}

fn scalar(column: &Incoming, nulls: Nulls, bytes: &[u8], sink: &mut Sink) -> Result<(), Bad> {
    match &mut sink.values {
        Values::Byte(_) | Values::Short(_) | Values::Int(_) | Values::Long(_) => {
            return integer(column, whole(bytes), sink);
        }
        Values::Float(values) => {
            let value = real(bytes);
            if is_null(column, nulls, value) {
                sink.push_null();
                return Ok(());
            }
            values.push(value as f32);
        }
        Values::Double(values) => {
            let value = real(bytes);
            if is_null(column, nulls, value) {
                sink.push_null();
                return Ok(());
            }
            values.push(value);
        }
        Values::Boolean(values) if column.is_bits() => {
            // The first bit is the highest; some writers use a lower one for a bit alone.
            values.append(bytes.iter().any(|&byte| byte != 0));
        }
        Values::Boolean(values) => match bytes {
            [b'T' | b't' | b'1'] => values.append(true),
            [b'F' | b'f' | b'0'] => values.append(false),
            [0 | b' ' | b'?'] => {
                sink.push_null();
                return Ok(());
            }
            _ => return Err(Bad::Not("a boolean")),
        },
        Values::Tuple(_, _, items) => parts(column, bytes, items),
        Values::Text(..) | Values::Instant(_) | Values::List(..) | Values::Nothing(_) => {
            sink.push_null();
            return Ok(());
        }
    }
    sink.pushed();
    Ok(())
}

fn is_null(column: &Incoming, nulls: Nulls, value: f64) -> bool {
    column.is_null_real(value) || nulls == Nulls::Magic && value.is_nan()
}

fn integer(column: &Incoming, value: i64, sink: &mut Sink) -> Result<(), Bad> {
    if column.is_null_whole(value) {
        sink.push_null();
        return Ok(());
    }
    // Read from as many bytes as the column has, so that nothing is cut.
    match &mut sink.values {
        Values::Byte(values) => values.push(value as u8),
        Values::Short(values) => values.push(value as i16),
        Values::Int(values) => values.push(value as i32),
        Values::Long(values) => values.push(value),
        _ => {}
    }
    sink.pushed();
    Ok(())
}

/// Both parts of a complex number.
fn parts(column: &Incoming, bytes: &[u8], items: &mut Sink) {
    for part in bytes.chunks_exact((column.atom.bytes(1) / 2).max(1)) {
        match &mut items.values {
            Values::Float(values) => values.push(real(part) as f32),
            Values::Double(values) => values.push(real(part)),
            _ => {}
        }
        items.pushed();
    }
}

fn bits(count: usize, bytes: &[u8], items: &mut Sink) {
    for at in 0..count {
        if let Values::Boolean(values) = &mut items.values {
            values.append(bytes[at / 8] & 0x80 >> (at % 8) != 0);
        }
        items.pushed();
    }
}

fn string(column: &Incoming, bytes: &[u8], sink: &mut Sink) -> Result<(), Bad> {
    if column.is_wide() {
        let text = decode(column, bytes);
        return column.push_string(text.split('\0').next().unwrap_or_default(), sink);
    }
    let bytes = memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end]);
    match std::str::from_utf8(bytes) {
        Ok(text) => column.push_string(text, sink),
        Err(_) => column.push_string(&decode(column, bytes), sink),
    }
}

/// Strings of one length in bytes, one after the other.
fn strings(column: &Incoming, bytes: &[u8], sink: &mut Sink) -> Result<(), Bad> {
    let Values::List(_, _, items) = &mut sink.values else { return Ok(()) };
    let width = column.atom.bytes(column.width);
    if width == 0 {
        return column.end_strings(0, sink);
    }
    for string in bytes.chunks(width) {
        push_filled(&decode(column, string), items);
    }
    column.end_strings(bytes.len().div_ceil(width), sink)
}

/// All of a string with its NULs. What is not UTF-8 is taken for ISO 8859-1: before VOTable 1.6 a `char` was said to
/// be ASCII, and writers put into the other half what they had.
fn decode(column: &Incoming, bytes: &[u8]) -> String {
    if column.is_wide() {
        let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_be_bytes(*unit));
        return char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}
