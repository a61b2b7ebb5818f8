//! The cells of TABLEDATA (VOTable 1.5 sections 5.1 and 6): text into values.

use super::incoming::{Bad, Incoming, whole};
use super::sink::{Sink, Values};
use crate::votable::plan::Extent;

/// Pushes the value that the text of a cell tells. An empty cell is NULL for every type.
#[inline]
pub(super) fn cell(column: &Incoming, text: &[u8], sink: &mut Sink) -> Result<(), Bad> {
    match &mut sink.values {
        Values::Text(..) => {
            let text = std::str::from_utf8(text).map_err(|_| Bad::Not("UTF-8"))?;
            if text.is_empty() {
                sink.push_null();
            } else {
                check_length(column, text)?;
                sink.push_text(text);
            }
            return Ok(());
        }
        Values::List(..) => return list(column, text, sink),
        Values::Tuple(size, _, items) => {
            let text = text.trim_ascii();
            if text.is_empty() {
                sink.push_null();
                return Ok(());
            }
            let size = *size;
            let count = tokens(text).try_fold(0, |count, token| {
                // No more than belong there, whatever the cell holds.
                if count < size {
                    scalar(column, token, items)?;
                }
                Ok(count + 1)
            })?;
            if count != size {
                return Err(Bad::Count { found: count, expected: size });
            }
            sink.pushed();
            return Ok(());
        }
        _ => {}
    }
    let text = text.trim_ascii();
    if text.is_empty() {
        sink.push_null();
        return Ok(());
    }
    scalar(column, text, sink)
}

/// Refuses text that is longer than its column declares. Characters are counted, as writers of TABLEDATA do.
#[inline]
fn check_length(column: &Incoming, text: &str) -> Result<(), Bad> {
    match column.extent {
        Extent::Fixed(size) if text.len() > size && text.chars().count() > size => {
            Err(Bad::Count { found: text.chars().count(), expected: size })
        }
        _ => Ok(()),
    }
}

/// Pushes a value that is not empty; the values of arrays as well as those that stand alone.
fn scalar(column: &Incoming, text: &[u8], sink: &mut Sink) -> Result<(), Bad> {
    match &mut sink.values {
        Values::Double(values) => match real(column, text, "a double")? {
            Some(value) => values.push(value),
            None => return null(sink),
        },
        Values::Float(values) => match real(column, text, "a float")? {
            Some(value) => values.push(value),
            None => return null(sink),
        },
        Values::Long(values) => match integer(column, text, 64, "a long")? {
            Some(value) => values.push(value),
            None => return null(sink),
        },
        Values::Int(values) => match integer(column, text, 32, "an int")? {
            Some(value) => values.push(value),
            None => return null(sink),
        },
        Values::Short(values) => match integer(column, text, 16, "a short")? {
            Some(value) => values.push(value),
            None => return null(sink),
        },
        Values::Byte(values) => match integer(column, text, 8, "an unsignedByte")? {
            Some(value) => values.push(value),
            None => return null(sink),
        },
        Values::Boolean(values) => match truth(text)? {
            Some(value) => values.append(value),
            None => return null(sink),
        },
        Values::Instant(_) => {
            let text = std::str::from_utf8(text).map_err(|_| Bad::Not("UTF-8"))?;
            return column.push_string(text, sink);
        }
        Values::Tuple(..) | Values::List(..) | Values::Text(..) | Values::Nothing(_) => return null(sink),
    }
    sink.pushed();
    Ok(())
}

fn null(sink: &mut Sink) -> Result<(), Bad> {
    sink.push_null();
    Ok(())
}

fn real<F: std::str::FromStr>(column: &Incoming, text: &[u8], kind: &'static str) -> Result<Option<F>, Bad> {
    if column.null.as_ref().is_some_and(|null| null.is_text(text)) {
        return Ok(None);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or(Bad::Not(kind))
}

fn integer<I: TryFrom<i64>>(
    column: &Incoming,
    text: &[u8],
    bits: u32,
    kind: &'static str,
) -> Result<Option<I>, Bad> {
    let value = whole(text, bits).ok_or(Bad::Not(kind))?;
    if column.is_null_whole(value) {
        return Ok(None);
    }
    I::try_from(value).map(Some).map_err(|_| Bad::Not(kind))
}

/// VOTable 1.5 section 6, Logical; `0` and `1` serve bits as well.
fn truth(text: &[u8]) -> Result<Option<bool>, Bad> {
    match text {
        b"T" | b"t" | b"1" => Ok(Some(true)),
        b"F" | b"f" | b"0" => Ok(Some(false)),
        b"?" => Ok(None),
        _ if text.eq_ignore_ascii_case(b"true") => Ok(Some(true)),
        _ if text.eq_ignore_ascii_case(b"false") => Ok(Some(false)),
        _ => Err(Bad::Not("a boolean")),
    }
}

fn list(column: &Incoming, text: &[u8], sink: &mut Sink) -> Result<(), Bad> {
    let is_blank = match column.width {
        0 => text.trim_ascii().is_empty(),
        _ => text.is_empty(),
    };
    if is_blank {
        return null(sink);
    }
    let Values::List(_, _, items) = &mut sink.values else { return null(sink) };
    let count = match &mut items.values {
        Values::Text(..) => {
            let text = std::str::from_utf8(text).map_err(|_| Bad::Not("UTF-8"))?;
            return column.push_strings(text, sink);
        }
        Values::Boolean(_) if column.is_bits() => bits(text, items)?,
        Values::Tuple(size, _, parts) => {
            let size = *size;
            let parts =
                tokens(text).try_fold(0, |count, token| scalar(column, token, parts).map(|()| count + 1))?;
            if parts % size != 0 {
                return Err(Bad::Not("pairs of reals"));
            }
            (0..parts / size).for_each(|_| items.pushed());
            parts / size
        }
        _ => tokens(text).try_fold(0, |count, token| scalar(column, token, items).map(|()| count + 1))?,
    };
    column.check_count(count)?;
    sink.end_list();
    Ok(())
}

/// Zeros and ones, with or without blanks between.
fn bits(text: &[u8], items: &mut Sink) -> Result<usize, Bad> {
    let mut count = 0;
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        let Values::Boolean(values) = &mut items.values else { break };
        match byte {
            b'0' => values.append(false),
            b'1' => values.append(true),
            _ => return Err(Bad::Not("a row of bits")),
        }
        items.pushed();
        count += 1;
    }
    Ok(count)
}

/// The items of an array; commas are taken for blanks, as old documents have them.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| byte.is_ascii_whitespace() || *byte == b',').filter(|token| !token.is_empty())
}
