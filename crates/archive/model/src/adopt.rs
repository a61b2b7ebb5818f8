//! Arrow tables of others made ours: which type each of their columns is, and its values in our physical
//! form.
//!
//! What has a place among the archive's types is taken: whole numbers with and without sign, reals, decimals
//! (as `double`), text and bytes of every layout, dates and instants of every unit, dictionaries, and lists
//! of those. A column that says of itself what VOTable would say, in the metadata keys `datatype`,
//! `arraysize` and `xtype` as [`crate::ipc`] writes them, is believed where its Arrow type agrees.
//! Structures, maps, unions, times of day, durations and lists of lists are refused by name.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, ListArray, PrimitiveArray, RecordBatch, StringArray, UInt8Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field as ArrowField, TimeUnit};
use trifid_archive_adql::types::{Element, Field, Size, Type};

use crate::batch::{self, item, physical, scalar};
use crate::read::{At, Fault, ReadError};
use crate::votable::declare;

/// What a value should have been.
type Expected = &'static str;

/// Why a column cannot be ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column} is {found}, which has no place among the types of a table")]
pub struct Unfit {
    /// Its name.
    pub column: String,
    /// Its Arrow type.
    pub found: String,
}

/// The column that one of another's table becomes.
pub fn field(arrow: &ArrowField) -> Result<Field, Unfit> {
    let unfit = || Unfit { column: arrow.name().clone(), found: arrow.data_type().to_string() };
    let said = |key: &str| arrow.metadata().get(key).map(|value| Arc::<str>::from(value.as_str()));
    let (ty, size) = declared(arrow).or_else(|| guessed(arrow.data_type())).ok_or_else(unfit)?;
    let plain = Field::new(arrow.name().as_str(), ty);
    Ok(Field {
        size: size.unwrap_or_else(|| plain.size.clone()),
        unicode: said("datatype").as_deref() == Some("unicodeChar"),
        xtype: said("xtype").or_else(|| plain.xtype.clone()),
        unit: said("unit"),
        ucd: said("ucd"),
        utype: said("utype"),
        description: said("description"),
        ..plain
    })
}

/// The type that the metadata tell, where the values agree.
fn declared(arrow: &ArrowField) -> Option<(Type, Option<Size>)> {
    let metadata = arrow.metadata();
    let size = declare::size(metadata.get("arraysize").map_or("", String::as_str))?;
    let xtype = metadata.get("xtype").map(String::as_str);
    let (ty, _) = declare::type_of(metadata.get("datatype")?, &size, xtype)?;
    is_same(&physical(ty), arrow.data_type()).then_some((ty, Some(size)))
}

/// Whether two types differ in no more than the names of items and whether they may be NULL.
fn is_same(ours: &DataType, theirs: &DataType) -> bool {
    match (ours, theirs) {
        (DataType::List(ours), DataType::List(theirs)) => is_same(ours.data_type(), theirs.data_type()),
        (DataType::FixedSizeList(ours, size), DataType::FixedSizeList(theirs, found)) => {
            size == found && is_same(ours.data_type(), theirs.data_type())
        }
        _ => ours == theirs,
    }
}

/// The type that the values tell.
fn guessed(ty: &DataType) -> Option<(Type, Option<Size>)> {
    let one = |ty| Some((ty, None));
    match ty {
        DataType::Null => one(Type::Null),
        DataType::Boolean => one(Type::Boolean),
        DataType::UInt8 => one(Type::UnsignedByte),
        DataType::Int8 | DataType::Int16 => one(Type::Short),
        DataType::UInt16 | DataType::Int32 => one(Type::Int),
        DataType::UInt32 | DataType::UInt64 | DataType::Int64 => one(Type::Long),
        DataType::Float16 | DataType::Float32 => one(Type::Float),
        DataType::Float64 | DataType::Decimal128(..) | DataType::Decimal256(..) => one(Type::Double),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => one(Type::Text),
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => one(Type::Timestamp),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            one(Type::Array(Element::UnsignedByte))
        }
        DataType::Dictionary(_, values) => guessed(values),
        DataType::List(item) | DataType::LargeList(item) => {
            let (ty, _) = guessed(item.data_type())?;
            one(Type::Array(batch::element(ty)?))
        }
        DataType::FixedSizeList(item, size) => {
            let (ty, _) = guessed(item.data_type())?;
            Some((Type::Array(batch::element(ty)?), Some(Size::Fixed(u32::try_from(*size).ok()?))))
        }
        _ => None,
    }
}

/// A batch of another's table in our form. The rows counted so far say where an error is.
pub fn batch(
    fields: &Arc<[Field]>,
    theirs: &RecordBatch,
    rows_before: u64,
) -> Result<RecordBatch, ReadError> {
    let mut columns = Vec::with_capacity(fields.len());
    for (field, array) in fields.iter().zip(theirs.columns()) {
        columns.push(column(array, field.ty).map_err(|(row, expected)| {
            let at = At::Cell { row: rows_before + row as u64 + 1, column: field.name.clone(), line: None };
            ReadError::new(at, Fault::Value { text: printed(array, row), expected })
        })?);
    }
    let batch = batch::batch(fields, columns, theirs.num_rows());
    batch.map_err(|error| ReadError::malformed(At::Row(rows_before + 1), error.to_string()))
}

/// The values of one column in the physical form of `ty`; the message says what does not fit.
pub fn values(array: &ArrayRef, ty: Type) -> Result<ArrayRef, String> {
    column(array, ty).map_err(|(row, expected)| format!("{} is not {expected}", printed(array, row)))
}

/// A value for an error: numbers are told, the rest by its type.
fn printed(array: &ArrayRef, row: usize) -> String {
    match array.as_primitive_opt::<UInt64Type>() {
        Some(values) if row < values.len() => values.value(row).to_string(),
        _ => format!("a value of {}", array.data_type()),
    }
}

const NO_FIT: (usize, Expected) = (0, "of a type that the column was announced with");
const NO_LONG: Expected = "a whole number of 64 bits with a sign, the widest that ADQL has";
const NO_INSTANT: Expected = "an instant within 290,000 years of 1970";

/// The values of a column whose type [`field`] told.
fn column(array: &ArrayRef, ty: Type) -> Result<ArrayRef, (usize, Expected)> {
    let target = physical(ty);
    if *array.data_type() == target {
        return Ok(array.clone());
    }
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt().ok_or(NO_FIT)?;
            let values = arrow_select::take::take(dictionary.values().as_ref(), dictionary.keys(), None);
            column(&values.map_err(|_| NO_FIT)?, ty)
        }
        DataType::LargeUtf8 => Ok(Arc::new(array.as_string::<i64>().iter().collect::<StringArray>())),
        DataType::Utf8View => Ok(Arc::new(array.as_string_view().iter().collect::<StringArray>())),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            relisted(lists.values(), lists.offsets().clone(), array, ty)
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let lengths = lists.offsets().windows(2).map(|pair| (pair[1] - pair[0]) as usize);
            let start = lists.offsets().first().map_or(0, |&first| first as usize);
            let length = lists.offsets().last().map_or(0, |&last| last as usize) - start;
            relisted(&lists.values().slice(start, length), OffsetBuffer::from_lengths(lengths), array, ty)
        }
        DataType::FixedSizeList(_, size) => fixed_lists(array, *size, ty, &target),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            bytes(array)
        }
        _ => number(array),
    }
}

/// Lists with items of our form, and of our name for them.
fn relisted(
    items: &ArrayRef,
    offsets: OffsetBuffer<i32>,
    array: &ArrayRef,
    ty: Type,
) -> Result<ArrayRef, (usize, Expected)> {
    let part = match ty {
        Type::Array(element) => scalar(element),
        Type::Polygon => Type::Double,
        _ => return Err(NO_FIT),
    };
    let items = column(items, part).map_err(|(_, expected)| (0, expected))?;
    Ok(Arc::new(
        ListArray::try_new(item(physical(part)), offsets, items, array.nulls().cloned())
            .map_err(|_| NO_FIT)?,
    ))
}

/// Lists of one length: tuples of ours, or arrays.
fn fixed_lists(
    array: &ArrayRef,
    size: i32,
    ty: Type,
    target: &DataType,
) -> Result<ArrayRef, (usize, Expected)> {
    let lists = array.as_fixed_size_list();
    if let DataType::FixedSizeList(part, found) = target {
        if *found != size || !is_same(part.data_type(), lists.values().data_type()) {
            return Err(NO_FIT);
        }
        let tuples =
            FixedSizeListArray::try_new(part.clone(), size, lists.values().clone(), lists.nulls().cloned());
        return Ok(Arc::new(tuples.map_err(|_| NO_FIT)?));
    }
    let offsets = OffsetBuffer::from_repeated_length(size as usize, lists.len());
    relisted(lists.values(), offsets, array, ty)
}

fn bytes(array: &ArrayRef) -> Result<ArrayRef, (usize, Expected)> {
    let cell = |row: usize| -> &[u8] {
        match array.data_type() {
            DataType::Binary => array.as_binary::<i32>().value(row),
            DataType::LargeBinary => array.as_binary::<i64>().value(row),
            DataType::BinaryView => array.as_binary_view().value(row),
            _ => array.as_fixed_size_binary().value(row),
        }
    };
    let cells = (0..array.len()).map(|row| if array.is_null(row) { &[] } else { cell(row) });
    let lengths = OffsetBuffer::from_lengths(cells.clone().map(<[u8]>::len));
    let items: UInt8Array = cells.flatten().copied().map(Some).collect();
    let lists = ListArray::try_new(item(DataType::UInt8), lengths, Arc::new(items), array.nulls().cloned());
    Ok(Arc::new(lists.map_err(|_| NO_FIT)?))
}

fn number(array: &ArrayRef) -> Result<ArrayRef, (usize, Expected)> {
    Ok(match array.data_type() {
        DataType::Int8 => widened::<Int8Type, Int16Type>(array),
        DataType::UInt16 => widened::<UInt16Type, Int32Type>(array),
        DataType::UInt32 => widened::<UInt32Type, Int64Type>(array),
        DataType::UInt64 => {
            converted::<UInt64Type, Int64Type>(array, NO_LONG, |value| i64::try_from(value).ok())?
        }
        DataType::Float16 => widened::<Float16Type, Float32Type>(array),
        DataType::Decimal128(_, scale) => {
            let factor = 10_f64.powi(i32::from(*scale));
            let real = |value: i128| Some(value as f64 / factor);
            converted::<Decimal128Type, arrow_array::types::Float64Type>(array, "a number", real)?
        }
        DataType::Decimal256(_, scale) => {
            let factor = 10_f64.powi(i32::from(*scale));
            let real =
                |value: arrow_buffer::i256| value.to_string().parse::<f64>().ok().map(|value| value / factor);
            converted::<Decimal256Type, arrow_array::types::Float64Type>(array, "a number", real)?
        }
        DataType::Date32 => {
            instants::<Date32Type>(array, |days| i64::from(days).checked_mul(86_400_000_000))?
        }
        DataType::Date64 => instants::<Date64Type>(array, |millis| millis.checked_mul(1000))?,
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => instants::<TimestampSecondType>(array, |value| value.checked_mul(1_000_000))?,
            TimeUnit::Millisecond => {
                instants::<TimestampMillisecondType>(array, |value| value.checked_mul(1000))?
            }
            TimeUnit::Microsecond => instants::<TimestampMicrosecondType>(array, Some)?,
            TimeUnit::Nanosecond => {
                instants::<TimestampNanosecondType>(array, |value| Some(value.div_euclid(1000)))?
            }
        },
        _ => return Err(NO_FIT),
    })
}

fn widened<T, U>(array: &ArrayRef) -> ArrayRef
where
    T: ArrowPrimitiveType,
    U: ArrowPrimitiveType<Native: From<T::Native>>,
{
    let values: PrimitiveArray<U> = array.as_primitive::<T>().unary(U::Native::from);
    Arc::new(values)
}

fn instants<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    convert: impl Fn(T::Native) -> Option<i64>,
) -> Result<ArrayRef, (usize, Expected)> {
    converted::<T, TimestampMicrosecondType>(array, NO_INSTANT, convert)
}

fn converted<T: ArrowPrimitiveType, U: ArrowPrimitiveType>(
    array: &ArrayRef,
    expected: Expected,
    convert: impl Fn(T::Native) -> Option<U::Native>,
) -> Result<ArrayRef, (usize, Expected)> {
    let values = array.as_primitive::<T>().iter().enumerate().map(|(row, value)| match value {
        Some(value) => convert(value).map(Some).ok_or((row, expected)),
        None => Ok(None),
    });
    Ok(Arc::new(values.collect::<Result<PrimitiveArray<U>, _>>()?))
}
