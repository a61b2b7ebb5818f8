//! The physical form of a column: which Arrow type holds which [`Type`].
//!
//! One table, kept by every room of the door, so that a batch made by the engine, by DataFusion or by a reader of
//! uploads is the same thing to a writer. Arrays are flat lists in VOTable's order (first dimension fastest,
//! VOTable 1.5 section 2.2); their shape stays in [`Field::size`]. NULL is Arrow's null; NaN is a value.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};
use trifid_archive_adql::types::{Element, Field, Type};

/// The name of a list's item field.
pub const ITEM: &str = "item";

/// The Arrow type that holds values of this type.
pub fn physical(ty: Type) -> DataType {
    match ty {
        Type::Null => DataType::Null,
        Type::Boolean | Type::Bit => DataType::Boolean,
        Type::UnsignedByte => DataType::UInt8,
        Type::Short => DataType::Int16,
        Type::Int => DataType::Int32,
        Type::Long => DataType::Int64,
        Type::Float => DataType::Float32,
        Type::Double => DataType::Float64,
        Type::FloatComplex => fixed_list(DataType::Float32, 2),
        Type::DoubleComplex | Type::Point => fixed_list(DataType::Float64, 2),
        Type::Circle => fixed_list(DataType::Float64, 3),
        Type::Text | Type::Region => DataType::Utf8,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::Polygon => list(DataType::Float64),
        Type::Array(element) => list(physical(scalar(element))),
    }
}

/// The type of one element of an array, standing alone.
pub const fn scalar(element: Element) -> Type {
    match element {
        Element::Boolean => Type::Boolean,
        Element::Bit => Type::Bit,
        Element::UnsignedByte => Type::UnsignedByte,
        Element::Short => Type::Short,
        Element::Int => Type::Int,
        Element::Long => Type::Long,
        Element::Float => Type::Float,
        Element::Double => Type::Double,
        Element::FloatComplex => Type::FloatComplex,
        Element::DoubleComplex => Type::DoubleComplex,
        Element::Text => Type::Text,
    }
}

/// The array element of a scalar type, where arrays of it exist.
pub const fn element(ty: Type) -> Option<Element> {
    Some(match ty {
        Type::Boolean => Element::Boolean,
        Type::Bit => Element::Bit,
        Type::UnsignedByte => Element::UnsignedByte,
        Type::Short => Element::Short,
        Type::Int => Element::Int,
        Type::Long => Element::Long,
        Type::Float => Element::Float,
        Type::Double => Element::Double,
        Type::FloatComplex => Element::FloatComplex,
        Type::DoubleComplex => Element::DoubleComplex,
        Type::Text => Element::Text,
        Type::Null
        | Type::Timestamp
        | Type::Point
        | Type::Circle
        | Type::Polygon
        | Type::Region
        | Type::Array(_) => return None,
    })
}

/// The item field of every list: nullable, called "item".
pub fn item(ty: DataType) -> Arc<ArrowField> {
    Arc::new(ArrowField::new(ITEM, ty, true))
}

/// A list of any length of `ty`.
pub fn list(ty: DataType) -> DataType {
    DataType::List(item(ty))
}

/// A list of exactly `size` of `ty`.
pub fn fixed_list(ty: DataType, size: i32) -> DataType {
    DataType::FixedSizeList(item(ty), size)
}

/// The Arrow field of a column: its name and physical type, nullable.
pub fn arrow_field(field: &Field) -> ArrowField {
    ArrowField::new(field.name.as_ref(), physical(field.ty), true)
}

/// The Arrow schema of these columns.
pub fn schema(fields: &[Field]) -> SchemaRef {
    Arc::new(Schema::new(fields.iter().map(arrow_field).collect::<Vec<_>>()))
}

/// A batch of these columns without a row.
pub fn empty(fields: &[Field]) -> RecordBatch {
    RecordBatch::new_empty(schema(fields))
}

/// A batch of these columns; refused when a column has another physical type or length.
pub fn batch(
    fields: &[Field],
    columns: Vec<arrow_array::ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    batch_of(schema(fields), columns, rows)
}

/// The same with a schema that is kept: for results of a few rows making it is most of the work.
pub fn batch_of(
    schema: SchemaRef,
    columns: Vec<arrow_array::ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
}
