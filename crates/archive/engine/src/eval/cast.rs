//! Conversions: CAST, and those that the resolver puts in.
//!
//! - Whole numbers that do not fit are an error. A real becomes whole by cutting its fraction off (ADQL 2.1 4.7 leaves
//!   it to the service); NaN and what is out of range are an error. A Double becomes the nearest Float.
//! - A truth is 1 or 0 (what CONTAINS is as a number).
//! - To text: what CSV shows of the value. From text: the same forms, with white space around them; what cannot be
//!   read is an error that quotes it.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt8Type,
};
use arrow_array::{Array as _, ArrayRef, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use trifid_archive_adql::types::Type;
use trifid_archive_model::time::Timestamp;

use super::cells::{Cells, Shape, boolean_array, booleans, map, primitive, primitive_array, texts};
use super::compare::each;
use super::regions;
use crate::error::QueryError;

/// How much of a text that cannot be read an error quotes.
const QUOTED: usize = 60;

/// Runs `$body` with `$t` standing for the Arrow type of a numeric `$ty`, or `$other`.
macro_rules! by_number {
    ($ty:expr, $t:ident => $body:expr, $other:expr) => {
        match $ty {
            Type::UnsignedByte => {
                type $t = UInt8Type;
                $body
            }
            Type::Short => {
                type $t = Int16Type;
                $body
            }
            Type::Int => {
                type $t = Int32Type;
                $body
            }
            Type::Long => {
                type $t = Int64Type;
                $body
            }
            Type::Float => {
                type $t = Float32Type;
                $body
            }
            Type::Double => {
                type $t = Float64Type;
                $body
            }
            _ => $other,
        }
    };
}

/// Values of type `from` as values of type `to`.
pub(super) fn cast(operand: &Cells, from: Type, to: Type) -> Result<Cells, QueryError> {
    let bit = |ty| if ty == Type::Bit { Type::Boolean } else { ty };
    if operand.is_null() {
        return Ok(Cells::null(to, operand.rows()));
    }
    if bit(from) == bit(to) {
        return Ok(operand.clone());
    }
    match (bit(from), bit(to)) {
        (Type::Boolean, Type::Text) => truth_to_text(operand),
        (Type::Text, Type::Boolean) => text_to_truth(operand),
        (Type::Boolean, _) if to.is_numeric() => truth_to_number(operand, to),
        (_, Type::Boolean) if from.is_numeric() => number_to_truth(operand, from),
        (_, Type::Text) if from.is_numeric() => number_to_text(operand, from),
        (Type::Text, _) if to.is_numeric() => text_to_number(operand, to),
        _ if from.is_numeric() && to.is_numeric() => number_to_number(operand, from, to),
        (Type::Text, Type::Timestamp) => text_to_instant(operand),
        (Type::Timestamp, Type::Text) => instant_to_text(operand),
        (Type::Text, _) if to.is_geometry() => regions::from_text(operand, to),
        (_, Type::Text) if from.is_geometry() => regions::to_text(operand, from),
        (_, Type::Region) if from.is_geometry() => regions::to_region(operand, from),
        _ => Err(QueryError::invalid(format!("{from} cannot be cast to {to}"))),
    }
}

/// A number on its way from one type to another.
trait Number: ArrowNativeType + std::fmt::Display {
    /// As a whole number, if it has a value that is one once its fraction is cut off.
    fn whole(self) -> Option<i64>;
    /// As a Double.
    fn real(self) -> f64;
}

macro_rules! whole_number {
    ($($native:ty),*) => {$(
        impl Number for $native {
            fn whole(self) -> Option<i64> { Some(i64::from(self)) }
            fn real(self) -> f64 { self as f64 }
        }
    )*};
}

macro_rules! real_number {
    ($($native:ty),*) => {$(
        impl Number for $native {
            fn whole(self) -> Option<i64> {
                let cut = f64::from(self).trunc();
                // 2^63 itself is out of range; -2^63 is in.
                (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&cut).then_some(cut as i64)
            }
            fn real(self) -> f64 { f64::from(self) }
        }
    )*};
}

whole_number!(u8, i16, i32, i64);
real_number!(f32, f64);

fn number_to_number(operand: &Cells, from: Type, to: Type) -> Result<Cells, QueryError> {
    by_number!(from, F => match to {
        Type::Double => map::<F, Float64Type>(operand, to, Number::real),
        // From Long by way of a Double would round twice.
        Type::Float if from == Type::Long => map::<Int64Type, Float32Type>(operand, to, |n| n as f32),
        Type::Float => map::<F, Float32Type>(operand, to, |n| n.real() as f32),
        Type::Long if from.is_integer() => map::<F, Int64Type>(operand, to, |n| n.whole().unwrap_or(0)),
        Type::UnsignedByte => narrow::<F, UInt8Type>(operand, to, |n| u8::try_from(n).ok()),
        Type::Short => narrow::<F, Int16Type>(operand, to, |n| i16::try_from(n).ok()),
        Type::Int => narrow::<F, Int32Type>(operand, to, |n| i32::try_from(n).ok()),
        Type::Long => narrow::<F, Int64Type>(operand, to, Some),
        _ => Err(not_a_number(to)),
    }, Err(not_a_number(from)))
}

/// To a whole type that may be too small.
fn narrow<F, T>(operand: &Cells, to: Type, f: impl Fn(i64) -> Option<T::Native>) -> Result<Cells, QueryError>
where
    F: ArrowPrimitiveType<Native: Number>,
    T: ArrowPrimitiveType,
{
    let array = primitive::<F>(operand)?;
    let convert = |number: F::Native| number.whole().and_then(&f);
    let mut failed = false;
    let values = array.values().iter().map(|number| {
        let fits = convert(*number);
        failed |= fits.is_none();
        fits.unwrap_or_default()
    });
    let values = values.collect();
    let wrong = |row: &usize| array.is_valid(*row) && convert(array.value(*row)).is_none();
    if failed && let Some(row) = (0..array.len()).find(wrong) {
        return Err(QueryError::invalid(format!("{} does not fit into {to}", array.value(row))));
    }
    Ok(shaped(operand, primitive_array::<T>(values, array.nulls().cloned())))
}

fn shaped(operand: &Cells, array: ArrayRef) -> Cells {
    Shape::of(&[operand], operand.rows()).cells(array)
}

fn truth_to_number(operand: &Cells, to: Type) -> Result<Cells, QueryError> {
    let array = booleans(operand)?;
    by_number!(to, T => {
        let one = |truth| if truth { T::default_one() } else { Default::default() };
        let values = array.values().iter().map(one).collect();
        Ok(shaped(operand, primitive_array::<T>(values, array.nulls().cloned())))
    }, Err(not_a_number(to)))
}

/// The number 1 of each type.
trait One: ArrowPrimitiveType {
    fn default_one() -> Self::Native;
}

macro_rules! one {
    ($($arrow:ty: $one:expr),*) => {$(
        impl One for $arrow {
            fn default_one() -> Self::Native { $one }
        }
    )*};
}

one!(UInt8Type: 1, Int16Type: 1, Int32Type: 1, Int64Type: 1, Float32Type: 1.0, Float64Type: 1.0);

fn number_to_truth(operand: &Cells, from: Type) -> Result<Cells, QueryError> {
    by_number!(from, F => {
        let array = primitive::<F>(operand)?;
        let zero = <F as ArrowPrimitiveType>::Native::default();
        let values = each(array.len(), |row| array.value(row) != zero);
        Ok(shaped(operand, boolean_array(values, array.nulls().cloned())))
    }, Err(not_a_number(from)))
}

fn truth_to_text(operand: &Cells) -> Result<Cells, QueryError> {
    let array = booleans(operand)?;
    let texts = array.iter().map(|truth| truth.map(|truth| if truth { "true" } else { "false" }));
    Ok(shaped(operand, Arc::new(texts.collect::<arrow_array::StringArray>())))
}

/// The words that VOTable 1.5 section 6 takes for truths.
fn text_to_truth(operand: &Cells) -> Result<Cells, QueryError> {
    let array = texts(operand)?;
    let truth = |text: &str| match text.trim() {
        "1" => Some(true),
        "0" => Some(false),
        word if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("t") => Some(true),
        word if word.eq_ignore_ascii_case("false") || word.eq_ignore_ascii_case("f") => Some(false),
        _ => None,
    };
    let unreadable = |text: &str| unreadable(text, Type::Boolean);
    let read = |text: Option<&str>| text.map(|text| truth(text).ok_or_else(|| unreadable(text))).transpose();
    let values = array.iter().map(read).collect::<Result<arrow_array::BooleanArray, _>>()?;
    Ok(shaped(operand, Arc::new(values)))
}

fn number_to_text(operand: &Cells, from: Type) -> Result<Cells, QueryError> {
    let texts = match from {
        Type::Double => real_texts(primitive::<Float64Type>(operand)?),
        Type::Float => real_texts(primitive::<Float32Type>(operand)?),
        _ => by_number!(from, F => whole_texts(primitive::<F>(operand)?), return Err(not_a_number(from))),
    };
    Ok(shaped(operand, texts))
}

fn whole_texts<T: ArrowPrimitiveType<Native: Number>>(array: &PrimitiveArray<T>) -> ArrayRef {
    let mut digits = itoa::Buffer::new();
    texts_of(array, |number, out| {
        let _ = out.write_str(digits.format(number.whole().unwrap_or(0)));
    })
}

fn real_texts<T: ArrowPrimitiveType<Native: zmij::Float + Number>>(array: &PrimitiveArray<T>) -> ArrayRef {
    let mut digits = zmij::Buffer::new();
    texts_of(array, |number, out| {
        let real = number.real();
        let _ = out.write_str(match real.is_finite() {
            true => digits.format_finite(number),
            false if real.is_nan() => "NaN",
            false if real > 0.0 => "Infinity",
            false => "-Infinity",
        });
    })
}

fn texts_of<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    mut write: impl FnMut(T::Native, &mut StringBuilder),
) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    for value in array {
        match value {
            None => builder.append_null(),
            Some(value) => {
                write(value, &mut builder);
                builder.append_value("");
            }
        }
    }
    Arc::new(builder.finish())
}

fn text_to_number(operand: &Cells, to: Type) -> Result<Cells, QueryError> {
    by_number!(to, T => {
        let array = texts(operand)?;
        let parse = |text: &str| text.trim().parse().map_err(|_| unreadable(text, to));
        let values = array.iter().map(|text| text.map(parse).transpose());
        let values = values.collect::<Result<PrimitiveArray<T>, QueryError>>()?;
        Ok(shaped(operand, Arc::new(values)))
    }, Err(not_a_number(to)))
}

fn text_to_instant(operand: &Cells) -> Result<Cells, QueryError> {
    let parse = |text: &str| match Timestamp::parse(text) {
        Some(instant) => Ok(instant.0),
        None => Err(unreadable(text, Type::Timestamp)),
    };
    let values = texts(operand)?.iter().map(|text| text.map(parse).transpose());
    let values = values.collect::<Result<PrimitiveArray<TimestampMicrosecondType>, QueryError>>()?;
    Ok(shaped(operand, Arc::new(values)))
}

fn instant_to_text(operand: &Cells) -> Result<Cells, QueryError> {
    let array = primitive::<TimestampMicrosecondType>(operand)?;
    let mut written = Vec::new();
    let texts = texts_of(array, |instant, out| {
        written.clear();
        Timestamp(instant).write(&mut written);
        // Digits and signs: always a text.
        let _ = out.write_str(std::str::from_utf8(&written).unwrap_or_default());
    });
    Ok(shaped(operand, texts))
}

/// A text that is no value of a type.
pub(super) fn unreadable(text: &str, ty: Type) -> QueryError {
    let mut quoted: String = text.chars().take(QUOTED).collect();
    if quoted.len() < text.len() {
        quoted.push_str("...");
    }
    QueryError::invalid(format!("'{quoted}' cannot be read as {ty}"))
}

fn not_a_number(ty: Type) -> QueryError {
    QueryError::internal(format_args!("{ty} is no number"))
}
