//! Tables of every type for property tests: values, strategies that make them, and the arrays that hold them.

use std::sync::Arc;

use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, ListArray, NullArray, PrimitiveArray, RecordBatch,
    StringArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use proptest::prelude::*;
use trifid_archive_adql::types::{Element, Field, Type};

use crate::batch::{self, item, physical, scalar};

/// A value of any type; `None` is NULL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Truth(bool),
    Whole(i64),
    Real(f64),
    Text(String),
    Items(Vec<Option<Value>>),
}

/// A table by columns.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) fields: Arc<[Field]>,
    pub(crate) columns: Vec<Vec<Option<Value>>>,
    pub(crate) rows: usize,
}

impl Table {
    pub(crate) fn batch(&self) -> RecordBatch {
        let arrays =
            self.fields.iter().zip(&self.columns).map(|(field, values)| array(field.ty, values)).collect();
        batch::batch(&self.fields, arrays, self.rows).unwrap()
    }

    /// The same with every value changed.
    pub(crate) fn map(&self, change: impl Fn(&Field, Option<Value>) -> Option<Value>) -> Self {
        let columns = self
            .fields
            .iter()
            .zip(&self.columns)
            .map(|(field, values)| values.iter().map(|value| change(field, value.clone())).collect());
        Self { fields: self.fields.clone(), columns: columns.collect(), rows: self.rows }
    }
}

/// Every type there is.
pub(crate) const TYPES: [Type; 28] = [
    Type::Null,
    Type::Boolean,
    Type::Bit,
    Type::UnsignedByte,
    Type::Short,
    Type::Int,
    Type::Long,
    Type::Float,
    Type::Double,
    Type::FloatComplex,
    Type::DoubleComplex,
    Type::Text,
    Type::Timestamp,
    Type::Point,
    Type::Circle,
    Type::Polygon,
    Type::Region,
    Type::Array(Element::Boolean),
    Type::Array(Element::Bit),
    Type::Array(Element::UnsignedByte),
    Type::Array(Element::Short),
    Type::Array(Element::Int),
    Type::Array(Element::Long),
    Type::Array(Element::Float),
    Type::Array(Element::Double),
    Type::Array(Element::FloatComplex),
    Type::Array(Element::DoubleComplex),
    Type::Array(Element::Text),
];

/// Any table of up to eight columns and twelve rows.
pub(crate) fn table() -> impl Strategy<Value = Table> {
    let types = prop::collection::vec(prop::sample::select(TYPES.to_vec()), 1..8);
    (types, 0_usize..12).prop_flat_map(|(types, rows)| {
        let columns: Vec<_> = types
            .iter()
            .map(|&ty| prop::collection::vec(prop::option::weighted(0.8, value(ty)), rows))
            .collect();
        columns.prop_map(move |columns| Table { fields: fields(&types), columns, rows })
    })
}

/// Columns of these types, with metadata on some.
pub(crate) fn fields(types: &[Type]) -> Arc<[Field]> {
    let named = types.iter().enumerate().map(|(at, &ty)| {
        let mut field = Field::new(format!("c{at}"), ty);
        if at % 2 == 0 {
            field.unit = Some(Arc::from("km/s"));
            field.ucd = Some(Arc::from("meta.id;meta.main"));
            field.description = Some(Arc::from("what it's for, \"so\" & <more>"));
            field.utype = Some(Arc::from("a:b.c"));
        }
        field
    });
    named.collect()
}

/// Any value of a type.
pub(crate) fn value(ty: Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Null => Just(Value::Text(String::new())).boxed(),
        Type::Boolean | Type::Bit => any::<bool>().prop_map(Value::Truth).boxed(),
        Type::UnsignedByte => any::<u8>().prop_map(|v| Value::Whole(v.into())).boxed(),
        Type::Short => whole(i16::MIN.into(), i16::MAX.into()),
        Type::Int => whole(i32::MIN.into(), i32::MAX.into()),
        Type::Long => whole(i64::MIN, i64::MAX),
        Type::Float => single().prop_map(|v| Value::Real(v.into())).boxed(),
        Type::Double => double().prop_map(Value::Real).boxed(),
        Type::Text | Type::Region => text().prop_map(Value::Text).boxed(),
        Type::Timestamp => {
            (-62_135_596_800_000_000_i64..253_402_300_800_000_000).prop_map(Value::Whole).boxed()
        }
        Type::FloatComplex => items(single().prop_map(|v| Value::Real(v.into())).boxed(), 2, 2, false),
        Type::DoubleComplex | Type::Point => items(double().prop_map(Value::Real).boxed(), 2, 2, false),
        Type::Circle => items(double().prop_map(Value::Real).boxed(), 3, 3, false),
        Type::Polygon => items(double().prop_map(Value::Real).boxed(), 6, 10, false),
        Type::Array(element) => items(value(scalar(element)), 0, 5, true),
    }
}

fn whole(least: i64, most: i64) -> BoxedStrategy<Value> {
    prop_oneof![least..=most, Just(least), Just(most), -100_i64..100].prop_map(Value::Whole).boxed()
}

fn double() -> BoxedStrategy<f64> {
    let special = prop::sample::select(vec![
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        1e22,
        0.1,
    ]);
    prop_oneof![special, any::<u64>().prop_map(f64::from_bits), -1e6..1e6].boxed()
}

fn single() -> BoxedStrategy<f32> {
    let special =
        prop::sample::select(vec![0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, f32::MAX]);
    prop_oneof![special, any::<u32>().prop_map(f32::from_bits), -1e6_f32..1e6].boxed()
}

/// Text without NUL, which no format but Arrow's can hold.
fn text() -> BoxedStrategy<String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[a-z ]{0,3}[,;\t\"'\n\r#&<>|\\\\]{1,2}[a-z ]{0,3}",
        "[^\\x00]{0,6}",
        Just(String::new()),
        Just("NULL".to_owned()),
    ]
    .boxed()
}

fn items(item: BoxedStrategy<Value>, least: usize, most: usize, nulls: bool) -> BoxedStrategy<Value> {
    let item = match nulls {
        true => prop::option::weighted(0.8, item).boxed(),
        false => item.prop_map(Some).boxed(),
    };
    prop::collection::vec(item, least..=most).prop_map(Value::Items).boxed()
}

/// The array of these values.
pub(crate) fn array(ty: Type, values: &[Option<Value>]) -> ArrayRef {
    match ty {
        Type::Null => Arc::new(NullArray::new(values.len())),
        Type::Boolean | Type::Bit => {
            let truths = values.iter().map(|value| match value {
                Some(Value::Truth(value)) => Some(*value),
                _ => None,
            });
            Arc::new(truths.collect::<BooleanArray>())
        }
        Type::UnsignedByte => Arc::new(wholes(values).collect::<PrimitiveArray<UInt8Type>>()),
        Type::Short => Arc::new(wholes(values).collect::<PrimitiveArray<Int16Type>>()),
        Type::Int => Arc::new(wholes(values).collect::<PrimitiveArray<Int32Type>>()),
        Type::Long => Arc::new(wholes(values).collect::<PrimitiveArray<Int64Type>>()),
        Type::Timestamp => Arc::new(wholes(values).collect::<PrimitiveArray<TimestampMicrosecondType>>()),
        Type::Float => {
            Arc::new(reals(values).map(|v| v.map(|v| v as f32)).collect::<PrimitiveArray<Float32Type>>())
        }
        Type::Double => Arc::new(reals(values).collect::<PrimitiveArray<Float64Type>>()),
        Type::Text | Type::Region => Arc::new(texts(values)),
        Type::FloatComplex => tuples(Type::Float, 2, values),
        Type::DoubleComplex | Type::Point => tuples(Type::Double, 2, values),
        Type::Circle => tuples(Type::Double, 3, values),
        Type::Polygon => lists(Type::Double, values),
        Type::Array(element) => lists(scalar(element), values),
    }
}

fn wholes<T: TryFrom<i64, Error: std::fmt::Debug>>(
    values: &[Option<Value>],
) -> impl Iterator<Item = Option<T>> {
    values.iter().map(|value| match value {
        Some(Value::Whole(value)) => Some(T::try_from(*value).unwrap()),
        _ => None,
    })
}

fn reals(values: &[Option<Value>]) -> impl Iterator<Item = Option<f64>> {
    values.iter().map(|value| match value {
        Some(Value::Real(value)) => Some(*value),
        _ => None,
    })
}

fn texts(values: &[Option<Value>]) -> StringArray {
    let texts = values.iter().map(|value| match value {
        Some(Value::Text(value)) => Some(value.as_str()),
        _ => None,
    });
    texts.collect()
}

fn is_some(values: &[Option<Value>]) -> Option<NullBuffer> {
    Some(values.iter().map(Option::is_some).collect::<Vec<_>>().into())
}

fn tuples(part: Type, size: usize, values: &[Option<Value>]) -> ArrayRef {
    let parts = values.iter().flat_map(|value| match value {
        Some(Value::Items(items)) => items.clone(),
        _ => vec![None; size],
    });
    let parts = array(part, &parts.collect::<Vec<_>>());
    Arc::new(FixedSizeListArray::new(item(physical(part)), size as i32, parts, is_some(values)))
}

fn lists(part: Type, values: &[Option<Value>]) -> ArrayRef {
    let lengths = values.iter().map(|value| match value {
        Some(Value::Items(items)) => items.len(),
        _ => 0,
    });
    let offsets = OffsetBuffer::from_lengths(lengths);
    let parts = values.iter().flat_map(|value| match value {
        Some(Value::Items(items)) => items.clone(),
        _ => Vec::new(),
    });
    let parts = array(part, &parts.collect::<Vec<_>>());
    Arc::new(ListArray::new(item(physical(part)), offsets, parts, is_some(values)))
}

/// Whether two batches hold the same, bit for bit but for the payload of NaN.
pub(crate) fn assert_same(found: &RecordBatch, expected: &RecordBatch) {
    assert_eq!(found.num_rows(), expected.num_rows());
    assert_eq!(found.num_columns(), expected.num_columns());
    for (column, (found, expected)) in found.columns().iter().zip(expected.columns()).enumerate() {
        assert_eq!(found.data_type(), expected.data_type(), "column {column}");
        // Debug prints every value with its sign and NaN as NaN, and shows NULL for what is one.
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "column {column}");
    }
}
