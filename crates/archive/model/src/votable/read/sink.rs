//! Columns under construction: vectors of their own type that become Arrow arrays without a copy.

use std::sync::Arc;

use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeListArray, ListArray, NullArray, PrimitiveArray,
    StringArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use trifid_archive_adql::types::Type;

use crate::batch::{item, physical, scalar};

/// A column under construction.
pub(super) struct Sink {
    pub(super) values: Values,
    nulls: NullBufferBuilder,
}

/// The values of a column.
pub(super) enum Values {
    Nothing(usize),
    Boolean(BooleanBufferBuilder),
    Byte(Vec<u8>),
    Short(Vec<i16>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Instant(Vec<i64>),
    /// Where each text ends, and all of them.
    Text(Vec<i32>, Vec<u8>),
    /// So many items a row.
    Tuple(usize, Type, Box<Sink>),
    /// Where the items of each row end.
    List(Vec<i32>, Type, Box<Sink>),
}

impl Sink {
    pub(super) fn new(ty: Type) -> Self {
        let boxed = |ty| Box::new(Self::new(ty));
        let values = match ty {
            Type::Null => Values::Nothing(0),
            Type::Boolean | Type::Bit => Values::Boolean(BooleanBufferBuilder::new(0)),
            Type::UnsignedByte => Values::Byte(Vec::new()),
            Type::Short => Values::Short(Vec::new()),
            Type::Int => Values::Int(Vec::new()),
            Type::Long => Values::Long(Vec::new()),
            Type::Float => Values::Float(Vec::new()),
            Type::Double => Values::Double(Vec::new()),
            Type::Timestamp => Values::Instant(Vec::new()),
            Type::Text | Type::Region => Values::Text(vec![0], Vec::new()),
            Type::FloatComplex => Values::Tuple(2, Type::Float, boxed(Type::Float)),
            Type::DoubleComplex | Type::Point => Values::Tuple(2, Type::Double, boxed(Type::Double)),
            Type::Circle => Values::Tuple(3, Type::Double, boxed(Type::Double)),
            Type::Polygon => Values::List(vec![0], Type::Double, boxed(Type::Double)),
            Type::Array(element) => Values::List(vec![0], scalar(element), boxed(scalar(element))),
        };
        Self { values, nulls: NullBufferBuilder::new(0) }
    }

    /// Notes that a value has been pushed onto [`Self::values`].
    #[inline]
    pub(super) fn pushed(&mut self) {
        self.nulls.append_non_null();
    }

    pub(super) fn push_null(&mut self) {
        match &mut self.values {
            Values::Nothing(count) => *count += 1,
            Values::Boolean(values) => values.append(false),
            Values::Byte(values) => values.push(0),
            Values::Short(values) => values.push(0),
            Values::Int(values) => values.push(0),
            Values::Long(values) | Values::Instant(values) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Text(ends, _) | Values::List(ends, ..) => ends.push(ends.last().copied().unwrap_or(0)),
            Values::Tuple(size, _, items) => (0..*size).for_each(|_| items.push_null()),
        }
        self.nulls.append_null();
    }

    pub(super) fn push_text(&mut self, text: &str) {
        if let Values::Text(ends, bytes) = &mut self.values {
            bytes.extend_from_slice(text.as_bytes());
            ends.push(end(bytes.len()));
            self.nulls.append_non_null();
        }
    }

    /// Ends a row of a list: the items pushed onto it since the last row are its.
    pub(super) fn end_list(&mut self) {
        if let Values::List(ends, _, items) = &mut self.values {
            ends.push(end(items.nulls.len()));
            self.nulls.append_non_null();
        }
    }

    /// The array of what has been pushed; empty again afterwards.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let nulls = self.nulls.finish();
        Ok(match &mut self.values {
            Values::Nothing(count) => Arc::new(NullArray::new(std::mem::take(count))),
            Values::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Byte(values) => primitive::<UInt8Type>(values, nulls)?,
            Values::Short(values) => primitive::<Int16Type>(values, nulls)?,
            Values::Int(values) => primitive::<Int32Type>(values, nulls)?,
            Values::Long(values) => primitive::<Int64Type>(values, nulls)?,
            Values::Float(values) => primitive::<Float32Type>(values, nulls)?,
            Values::Double(values) => primitive::<Float64Type>(values, nulls)?,
            Values::Instant(values) => primitive::<TimestampMicrosecondType>(values, nulls)?,
            Values::Text(ends, bytes) => {
                let bytes = Buffer::from_vec(std::mem::take(bytes));
                Arc::new(StringArray::try_new(offsets(ends), bytes, nulls)?)
            }
            Values::Tuple(size, ty, items) => {
                let (size, field) = (*size as i32, item(physical(*ty)));
                Arc::new(FixedSizeListArray::try_new(field, size, items.finish()?, nulls)?)
            }
            Values::List(ends, ty, items) => {
                let field = item(physical(*ty));
                Arc::new(ListArray::try_new(field, offsets(ends), items.finish()?, nulls)?)
            }
        })
    }
}

/// The end of what a batch holds; the limits of a batch and a row keep it far below two to the 31.
fn end(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn offsets(ends: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(ends, vec![0])))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<arrow_buffer::NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let capacity = values.len();
    let values = std::mem::replace(values, Vec::with_capacity(capacity));
    Ok(Arc::new(PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?))
}
