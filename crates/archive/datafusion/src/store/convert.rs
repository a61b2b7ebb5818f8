//! Foreign Arrow types as columns of ours.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, UInt8Array};
use arrow_schema::{DataType, Field as ArrowField};
use datafusion::arrow::compute::cast;
use trifid_archive_adql::types::{Element, Field, Type};
use trifid_archive_model::batch::{element, physical};

/// The column that an Arrow field is; `None` for types that no table of ours has (structs, maps, unions).
pub(super) fn field(arrow: &ArrowField) -> Option<Field> {
    let ty = column_type(arrow.data_type())?;
    Some(Field::new(arrow.name().as_str(), ty))
}

fn column_type(ty: &DataType) -> Option<Type> {
    Some(match ty {
        DataType::Null => Type::Text,
        DataType::Boolean => Type::Boolean,
        DataType::UInt8 => Type::UnsignedByte,
        DataType::Int8 | DataType::Int16 => Type::Short,
        DataType::UInt16 | DataType::Int32 => Type::Int,
        DataType::UInt32 | DataType::Int64 | DataType::UInt64 => Type::Long,
        DataType::Float16 | DataType::Float32 => Type::Float,
        DataType::Float64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Type::Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::Text,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Type::Timestamp,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Array(Element::UnsignedByte),
        DataType::Dictionary(_, values) => column_type(values)?,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Type::Array(element(column_type(item.data_type())?)?)
        }
        _ => return None,
    })
}

/// The values in the physical form of `ty`; the message says what does not fit.
pub(super) fn values(array: &ArrayRef, ty: Type) -> Result<ArrayRef, String> {
    let wanted = physical(ty);
    if *array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    if ty == Type::Array(Element::UnsignedByte)
        && matches!(array.data_type(), DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    {
        return bytes(array);
    }
    let made = cast(array, &wanted).map_err(|error| error.to_string())?;
    // A cast that cannot be made gives NULL, and a lost value must not pass.
    if made.null_count() > array.logical_null_count() {
        return Err(format!("a value of {} does not fit {wanted}", array.data_type()));
    }
    Ok(made)
}

/// Byte strings as lists of bytes.
fn bytes(array: &ArrayRef) -> Result<ArrayRef, String> {
    let plain = cast(array, &DataType::Binary).map_err(|error| error.to_string())?;
    let plain = plain.as_any().downcast_ref::<BinaryArray>().ok_or("an unexpected array of bytes")?;
    let (offsets, values, nulls) = plain.clone().into_parts();
    let values: ArrayRef = Arc::new(UInt8Array::new(values.into(), None));
    let item = trifid_archive_model::batch::item(DataType::UInt8);
    let made = ListArray::try_new(item, offsets, values, nulls).map_err(|error| error.to_string())?;
    Ok(Arc::new(made))
}
