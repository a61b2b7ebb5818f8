//! From the bytes of a column to an array.
//!
//! The bytes of a column's cells are first gathered behind each other, so that each of the loops below is
//! over one slice. A value is NULL where FITS says that it is undefined: a whole number that is TNULLn, a
//! NaN, a logical of 0, a string that begins with NUL (FITS 4.0 7.3.2, 7.3.3.1). An array is NULL where it
//! has no item, or none that is defined.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt8Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, ListArray, NullArray, PrimitiveArray, StringArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use trifid_archive_adql::types::{Element, Type};

use super::ascii::Characters;
use super::columns::{Column, Scale};
use super::form::Code;
use crate::batch::{item, scalar};
use crate::csv::{parse_integer, parse_real};
use crate::time::Timestamp;

/// The cells of a column.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Their bytes.
    pub(super) data: Vec<u8>,
    /// How many elements each has.
    pub(super) counts: Vec<usize>,
}

/// A cell that could not be read: its row among those gathered, what stands there, what was expected.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) row: usize,
    pub(super) text: String,
    pub(super) expected: &'static str,
}

impl Gathered {
    /// The bytes of each cell.
    fn cells(&self, code: Code) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.data.as_slice();
        self.counts.iter().map(move |&count| {
            let bytes = code.bytes(count as u64).unwrap_or(0) as usize;
            let (cell, after) = rest.split_at(bytes.min(rest.len()));
            rest = after;
            cell
        })
    }

    /// The row that holds an element.
    fn row_of(&self, element: usize) -> usize {
        let mut before = 0;
        let holds = |count: &usize| {
            before += count;
            before > element
        };
        self.counts.iter().position(holds).unwrap_or(0)
    }
}

/// The array of these cells.
pub(super) fn column(column: &Column, cells: &Gathered) -> Result<ArrayRef, Broken> {
    let code = column.form.code;
    if let Some(characters) = &column.characters {
        return ascii(column, characters, cells);
    }
    Ok(match column.field.ty {
        Type::Null => Arc::new(NullArray::new(cells.counts.len())),
        Type::Text | Type::Region => Arc::new(cells.cells(code).map(string).collect::<StringArray>()),
        Type::Timestamp => Arc::new(instants(cells)?),
        Type::Point => tuples(parts(column, &cells.data), 2),
        Type::Circle => tuples(parts(column, &cells.data), 3),
        Type::Polygon => {
            let parts = reals(column, &cells.data);
            list(cells, &mask(&parts, |value: f64| !value.is_nan()), Arc::new(parts))
        }
        Type::Array(Element::Text) => {
            let width = usize::try_from(column.width.unwrap_or(1)).unwrap_or(1).max(1);
            let items: ArrayRef = Arc::new(cells.data.chunks(width).map(string).collect::<StringArray>());
            let counts = cells.counts.iter().map(|count| count / width).collect();
            list(&Gathered { data: Vec::new(), counts }, &items, items.clone())
        }
        Type::Array(element) => {
            let items = elements(column, scalar(element), cells)?;
            list(cells, &items, items.clone())
        }
        ty if cells.counts.first().is_some_and(|&count| count != 1) => {
            // A field without bytes (FITS 4.0 7.3.1).
            arrow_array::new_null_array(&crate::batch::physical(ty), cells.counts.len())
        }
        ty => elements(column, ty, cells)?,
    })
}

/// The array of these fields of an ASCII table.
fn ascii(column: &Column, characters: &Characters, cells: &Gathered) -> Result<ArrayRef, Broken> {
    let fields = || cells.cells(Code::Char).map(|field| characters.value(field));
    let (factor, zero) = match column.scale {
        Scale::Linear(factor, zero) => (factor, zero),
        _ => (1.0, 0.0),
    };
    Ok(match column.field.ty {
        Type::Text => {
            let texts =
                cells.cells(Code::Char).map(|field| characters.value(field).and_then(|_| string(field)));
            Arc::new(texts.collect::<StringArray>())
        }
        Type::Int => Arc::new(parsed::<Int32Type>(fields(), "a whole number", parse_integer)?),
        Type::Long => Arc::new(parsed::<Int64Type>(fields(), "a whole number", parse_integer)?),
        _ => {
            let real = |field: &[u8]| Some(parse_real(field)? * factor + zero);
            Arc::new(parsed::<Float64Type>(fields(), "a real number", real)?)
        }
    })
}

fn parsed<'a, T: ArrowPrimitiveType>(
    fields: impl Iterator<Item = Option<&'a [u8]>>,
    expected: &'static str,
    parse: impl Fn(&[u8]) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>, Broken> {
    let value = |(row, field): (usize, Option<&[u8]>)| match field {
        None => Ok(None),
        Some(field) => parse(field).map(Some).ok_or_else(|| Broken {
            row,
            text: string(field).unwrap_or_default().into_owned(),
            expected,
        }),
    };
    fields.enumerate().map(value).collect()
}

/// All elements of all cells.
fn elements(column: &Column, ty: Type, cells: &Gathered) -> Result<ArrayRef, Broken> {
    let data = &cells.data;
    Ok(match (column.form.code, ty) {
        (Code::Logical, _) => Arc::new(logicals(cells)?),
        (Code::Bit, _) => Arc::new(bits(cells)),
        (Code::FloatComplex, _) => {
            let parts: ArrayRef = Arc::new(plain::<Float32Type, 4>(data, f32::from_be_bytes));
            tuples(parts, 2)
        }
        (Code::DoubleComplex, _) => {
            let parts: ArrayRef = Arc::new(plain::<Float64Type, 8>(data, f64::from_be_bytes));
            tuples(parts, 2)
        }
        (Code::Float, Type::Float) => real(&plain::<Float32Type, 4>(data, f32::from_be_bytes), f32::is_nan),
        (Code::Byte, Type::UnsignedByte) => {
            whole(plain::<UInt8Type, 1>(data, u8::from_be_bytes), column.null)
        }
        (Code::Short, Type::Short) => whole(plain::<Int16Type, 2>(data, i16::from_be_bytes), column.null),
        (Code::Int, Type::Int) => whole(plain::<Int32Type, 4>(data, i32::from_be_bytes), column.null),
        (Code::Long, Type::Long) if column.scale == Scale::None => {
            whole(plain::<Int64Type, 8>(data, i64::from_be_bytes), column.null)
        }
        (_, Type::Double) => real(&reals(column, data), f64::is_nan),
        _ => offset(column, ty, cells)?,
    })
}

/// Values as they are stored.
fn plain<T: ArrowPrimitiveType, const N: usize>(
    data: &[u8],
    read: fn([u8; N]) -> T::Native,
) -> PrimitiveArray<T> {
    let values: Vec<T::Native> = data.as_chunks::<N>().0.iter().map(|bytes| read(*bytes)).collect();
    PrimitiveArray::new(values.into(), None)
}

fn whole<T>(values: PrimitiveArray<T>, null: Option<i64>) -> ArrayRef
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i64>,
{
    match null.and_then(|null| T::Native::try_from(null).ok()) {
        Some(null) => mask(&values, |value| value != null),
        None => Arc::new(values),
    }
}

fn real<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, is_nan: fn(T::Native) -> bool) -> ArrayRef {
    mask(values, |value| !is_nan(value))
}

/// The same values, NULL where they are not defined.
fn mask<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    is_defined: impl Fn(T::Native) -> bool,
) -> ArrayRef {
    let nulls: NullBuffer = values.values().iter().map(|&value| is_defined(value)).collect::<Vec<_>>().into();
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    Arc::new(PrimitiveArray::<T>::new(values.values().clone(), nulls))
}

/// Whole numbers as they are stored, of any width.
fn stored(code: Code, data: &[u8]) -> Vec<i64> {
    match code {
        Code::Byte => data.iter().map(|&byte| byte.into()).collect(),
        Code::Short => {
            data.as_chunks::<2>().0.iter().map(|bytes| i16::from_be_bytes(*bytes).into()).collect()
        }
        Code::Int => data.as_chunks::<4>().0.iter().map(|bytes| i32::from_be_bytes(*bytes).into()).collect(),
        _ => data.as_chunks::<8>().0.iter().map(|bytes| i64::from_be_bytes(*bytes)).collect(),
    }
}

/// Binary64 of whatever is stored, scaled where the column says so.
fn reals(column: &Column, data: &[u8]) -> PrimitiveArray<Float64Type> {
    let (factor, zero) = match column.scale {
        Scale::Linear(factor, zero) => (factor, zero),
        _ => (1.0, 0.0),
    };
    let scaled = |value: f64| if (factor, zero) == (1.0, 0.0) { value } else { value * factor + zero };
    let values: Vec<f64> = match column.form.code {
        Code::Double => {
            data.as_chunks::<8>().0.iter().map(|bytes| scaled(f64::from_be_bytes(*bytes))).collect()
        }
        Code::Float => {
            data.as_chunks::<4>().0.iter().map(|bytes| scaled(f32::from_be_bytes(*bytes).into())).collect()
        }
        code => {
            let real = |value| if Some(value) == column.null { f64::NAN } else { scaled(value as f64) };
            stored(code, data).into_iter().map(real).collect()
        }
    };
    PrimitiveArray::new(values.into(), None)
}

/// Numbers all of which are values, NaN too: the parts of what is NULL as a whole or not at all.
fn parts(column: &Column, data: &[u8]) -> ArrayRef {
    Arc::new(reals(column, data))
}

/// Numbers of the other sign convention.
fn offset(column: &Column, ty: Type, cells: &Gathered) -> Result<ArrayRef, Broken> {
    let added = match column.scale {
        Scale::Offset(added) => added,
        _ => 0,
    };
    let mut values = Vec::with_capacity(cells.counts.len());
    for (at, value) in stored(column.form.code, &cells.data).into_iter().enumerate() {
        if Some(value) == column.null {
            values.push(None);
            continue;
        }
        let value = i128::from(value) + added;
        values.push(Some(i64::try_from(value).map_err(|_| Broken {
            row: cells.row_of(at),
            text: value.to_string(),
            expected: "a whole number of 64 bits with a sign, the widest that ADQL has",
        })?));
    }
    // The sum fits the wider type: the offset is that of the narrower one.
    Ok(match ty {
        Type::Short => {
            Arc::new(values.iter().map(|v| v.map(|v| v as i16)).collect::<PrimitiveArray<Int16Type>>())
        }
        Type::Int => {
            Arc::new(values.iter().map(|v| v.map(|v| v as i32)).collect::<PrimitiveArray<Int32Type>>())
        }
        _ => Arc::new(values.into_iter().collect::<PrimitiveArray<Int64Type>>()),
    })
}

fn logicals(cells: &Gathered) -> Result<BooleanArray, Broken> {
    let value = |(at, &byte): (usize, &u8)| match byte {
        b'T' | b't' => Ok(Some(true)),
        b'F' | b'f' => Ok(Some(false)),
        0 | b' ' | b'?' => Ok(None),
        _ => Err(Broken { row: cells.row_of(at), text: format!("byte {byte}"), expected: "T, F or 0" }),
    };
    cells.data.iter().enumerate().map(value).collect()
}

fn bits(cells: &Gathered) -> BooleanArray {
    let mut values = Vec::new();
    for (cell, &count) in cells.cells(Code::Bit).zip(&cells.counts) {
        values.extend(
            (0..count).map(|bit| cell.get(bit / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1)),
        );
    }
    values.into()
}

/// A string: up to a NUL, or without the blanks at its end.
fn string(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let text = match memchr::memchr(0, bytes) {
        Some(0) => return None,
        Some(end) => &bytes[..end],
        None if bytes.is_empty() => return None,
        None => &bytes[..bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)],
    };
    // The standard allows ASCII; what is neither that nor UTF-8 is Latin-1 by custom.
    let latin = || Cow::Owned(text.iter().map(|&byte| char::from(byte)).collect());
    Some(std::str::from_utf8(text).map_or_else(|_| latin(), Cow::Borrowed))
}

fn instants(cells: &Gathered) -> Result<PrimitiveArray<TimestampMicrosecondType>, Broken> {
    let instant = |(row, cell): (usize, &[u8])| {
        let Some(text) = string(cell).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        match Timestamp::parse(&text) {
            Some(instant) => Ok(Some(instant.0)),
            None => Err(Broken { row, text: text.into_owned(), expected: "an ISO 8601 timestamp" }),
        }
    };
    cells.cells(Code::Char).enumerate().map(instant).collect()
}

/// Rows of so many numbers; one without any number is NULL.
fn tuples(parts: ArrayRef, size: usize) -> ArrayRef {
    let is_nan = |at: usize| match parts.as_any().downcast_ref::<PrimitiveArray<Float64Type>>() {
        Some(parts) => parts.value(at).is_nan(),
        None => {
            parts.as_any().downcast_ref::<PrimitiveArray<Float32Type>>().is_some_and(|p| p.value(at).is_nan())
        }
    };
    let rows = parts.len() / size;
    let nulls: Vec<bool> = (0..rows).map(|row| !(row * size..(row + 1) * size).all(is_nan)).collect();
    let field = item(parts.data_type().clone());
    Arc::new(FixedSizeListArray::new(field, size as i32, parts, Some(nulls.into())))
}

/// Rows of any number of items; one without any that is defined is NULL.
fn list(cells: &Gathered, items: &ArrayRef, stored: ArrayRef) -> ArrayRef {
    let offsets = OffsetBuffer::<i32>::from_lengths(cells.counts.iter().copied());
    let is_defined = |range: &[i32]| (range[0]..range[1]).any(|at| !items.is_null(at as usize));
    let nulls: Vec<bool> = offsets.windows(2).map(is_defined).collect();
    let field = item(stored.data_type().clone());
    Arc::new(ListArray::new(field, offsets, stored, Some(nulls.into())))
}
