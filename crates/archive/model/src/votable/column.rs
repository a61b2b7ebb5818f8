//! A batch's columns as slices of their own type: the downcast done once a batch, not once a cell.

use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeListArray, ListArray, StringArray};
use arrow_array::{cast::AsArray, types};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use trifid_archive_adql::types::Type;

use crate::batch::scalar;

/// One column of a batch.
pub(crate) struct Column<'a> {
    pub(crate) cells: Cells<'a>,
    /// Absent when nothing is null.
    nulls: Option<&'a NullBuffer>,
}

/// The values of a column; those under a null mean nothing.
pub(crate) enum Cells<'a> {
    Nothing,
    Boolean(&'a BooleanBuffer),
    Byte(&'a [u8]),
    Short(&'a [i16]),
    Int(&'a [i32]),
    Long(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Text(&'a StringArray),
    Instant(&'a [i64]),
    /// The same number of items in every row: complex numbers, points, circles.
    Tuple(usize, Box<Column<'a>>),
    /// Any number of items: those of row `i` begin at `offsets[i]`.
    List(&'a [i32], Box<Column<'a>>),
}

impl<'a> Column<'a> {
    /// The column as a column of this type, if that is its physical type.
    pub(crate) fn new(array: &'a ArrayRef, ty: Type) -> Option<Self> {
        let array = array.as_ref();
        let cells = match ty {
            Type::Null => Cells::Nothing,
            Type::Boolean | Type::Bit => {
                Cells::Boolean(array.as_any().downcast_ref::<BooleanArray>()?.values())
            }
            Type::UnsignedByte => Cells::Byte(array.as_primitive_opt::<types::UInt8Type>()?.values()),
            Type::Short => Cells::Short(array.as_primitive_opt::<types::Int16Type>()?.values()),
            Type::Int => Cells::Int(array.as_primitive_opt::<types::Int32Type>()?.values()),
            Type::Long => Cells::Long(array.as_primitive_opt::<types::Int64Type>()?.values()),
            Type::Float => Cells::Float(array.as_primitive_opt::<types::Float32Type>()?.values()),
            Type::Double => Cells::Double(array.as_primitive_opt::<types::Float64Type>()?.values()),
            Type::Text | Type::Region => Cells::Text(array.as_any().downcast_ref::<StringArray>()?),
            Type::Timestamp => {
                Cells::Instant(array.as_primitive_opt::<types::TimestampMicrosecondType>()?.values())
            }
            Type::FloatComplex => tuple(array, 2, Type::Float)?,
            Type::DoubleComplex | Type::Point => tuple(array, 2, Type::Double)?,
            Type::Circle => tuple(array, 3, Type::Double)?,
            Type::Polygon => list(array, Type::Double)?,
            Type::Array(element) => list(array, scalar(element))?,
        };
        Some(Self { cells, nulls: array.nulls().filter(|nulls| nulls.null_count() > 0) })
    }

    /// Whether the value in this row is NULL.
    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self.nulls {
            Some(nulls) => nulls.is_null(row),
            None => matches!(self.cells, Cells::Nothing),
        }
    }
}

fn tuple(array: &dyn Array, size: i32, item: Type) -> Option<Cells<'_>> {
    let array = array.as_any().downcast_ref::<FixedSizeListArray>()?;
    if array.value_length() != size {
        return None;
    }
    Some(Cells::Tuple(size.unsigned_abs() as usize, Box::new(Column::new(array.values(), item)?)))
}

fn list(array: &dyn Array, item: Type) -> Option<Cells<'_>> {
    let array = array.as_any().downcast_ref::<ListArray>()?;
    Some(Cells::List(array.value_offsets(), Box::new(Column::new(array.values(), item)?)))
}

/// The range of the items of a row.
#[inline]
pub(crate) fn items_of(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    // Arrow keeps offsets ascending and at least zero.
    offsets[row] as usize..offsets[row + 1] as usize
}
