//! `t.types`, a column of each type with odd values in it, and `t.few`.

use std::sync::{Arc, OnceLock};

use arrow_array::builder::{Float64Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, StringArray, TimestampMicrosecondArray, UInt8Array,
};
use arrow_buffer::NullBuffer;
use trifid_archive_adql::types::{Element, Field, Type};
use trifid_archive_model::batch::{batch, item};

use crate::catalogue::{Published, Snapshot, TableInfo, Tables};
use crate::table::{Table, TableHead};

/// The names and types of `t.types`.
pub(super) const TYPES: [(&str, Type); 17] = [
    ("truth", Type::Boolean),
    ("bits", Type::Bit),
    ("small", Type::UnsignedByte),
    ("short", Type::Short),
    ("whole", Type::Int),
    ("long", Type::Long),
    ("single", Type::Float),
    ("real_", Type::Double),
    ("fcomplex", Type::FloatComplex),
    ("dcomplex", Type::DoubleComplex),
    ("txt", Type::Text),
    ("instant", Type::Timestamp),
    ("pt", Type::Point),
    ("circ", Type::Circle),
    ("poly", Type::Polygon),
    ("reg", Type::Region),
    ("arr", Type::Array(Element::Double)),
];

/// The tables.
pub(super) fn all() -> &'static Arc<Tables> {
    static TABLES: OnceLock<Arc<Tables>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let columns = TYPES.iter().map(|(name, ty)| (*name, *ty, column(*ty))).collect();
        let few = vec![
            ("whole", Type::Int, Arc::new(Int32Array::from(vec![Some(1), Some(7), None])) as ArrayRef),
            ("txt", Type::Text, Arc::new(StringArray::from(vec![Some("a"), None, Some("M 31")]))),
        ];
        let tables = vec![table("types", columns), table("few", few)];
        let snapshot = Arc::new(Snapshot::new(1, Vec::new(), tables));
        Arc::new(Tables { snapshot, uploads: Vec::new() })
    })
}

fn table(name: &str, columns: Vec<(&str, Type, ArrayRef)>) -> Arc<Published> {
    let rows = columns.first().map_or(0, |column| column.2.len());
    let fields: Arc<[Field]> = columns.iter().map(|(name, ty, _)| Field::new(*name, *ty)).collect();
    let arrays = columns.into_iter().map(|column| column.2).collect();
    let rows = batch(&fields, arrays, rows).expect("every column is made in its physical type");
    let head = TableHead { schema: "t".into(), name: name.into(), fields, position: None };
    // Chunks of two rows: what works on batches works on several.
    let table = Table::in_chunks(head, &[rows], &[], 2).expect("five rows fit");
    Arc::new(Published { table: Arc::new(table), info: TableInfo::default() })
}

/// Five values of a type; the last is NULL.
fn column(ty: Type) -> ArrayRef {
    match ty {
        Type::Null => Arc::new(arrow_array::NullArray::new(5)),
        Type::Boolean | Type::Bit => Arc::new(BooleanArray::from(with_null([true, false, true, false]))),
        Type::UnsignedByte => Arc::new(UInt8Array::from(with_null([0, 1, 200, u8::MAX]))),
        Type::Short => Arc::new(Int16Array::from(with_null([0, -7, 100, i16::MIN]))),
        Type::Int => Arc::new(Int32Array::from(with_null([0, -7, 1, i32::MAX]))),
        Type::Long => Arc::new(Int64Array::from(with_null([0, -7, i64::MIN, i64::MAX]))),
        Type::Float => Arc::new(Float32Array::from(with_null([0.0, -1.5, f32::NAN, f32::INFINITY]))),
        Type::Double => Arc::new(Float64Array::from(with_null([0.0, -1.5, f64::NAN, 1e300]))),
        Type::FloatComplex => {
            let values = Arc::new(Float32Array::from(vec![1.0; 10]));
            let item = item(arrow_schema::DataType::Float32);
            Arc::new(FixedSizeListArray::new(item, 2, values, Some(last_null())))
        }
        Type::DoubleComplex => tuples(2, vec![1.0; 10]),
        Type::Text => {
            Arc::new(StringArray::from(with_null(["", "M 31", "2000-01-01T00:00:00", "circle 1 2 3"])))
        }
        Type::Timestamp => {
            let values = with_null([0, -1, 946_728_000_000_000, 253_402_300_799_999_999]);
            Arc::new(TimestampMicrosecondArray::from(values))
        }
        Type::Point => tuples(2, vec![0.0, 0.0, 359.0, -89.0, 10.0, 90.0, f64::NAN, 95.0, 0.0, 0.0]),
        Type::Circle => {
            let numbers =
                [[0.0, 0.0, 1.0], [350.0, 80.0, 20.0], [1.0, 2.0, -3.0], [5.0, 5.0, 180.0], [0.0; 3]];
            tuples(3, numbers.concat())
        }
        Type::Polygon | Type::Array(_) => lists(),
        Type::Region => Arc::new(StringArray::from(with_null([
            "circle 1 2 3",
            "Polygon ICRS 0 0 5 0 5 5",
            "this is no region",
            "union (circle 0 0 1 box icrs 9 9 1 1)",
        ]))),
    }
}

fn with_null<T, const N: usize>(values: [T; N]) -> Vec<Option<T>> {
    values.into_iter().map(Some).chain([None]).collect()
}

fn last_null() -> NullBuffer {
    NullBuffer::from(vec![true, true, true, true, false])
}

fn tuples(size: i32, values: Vec<f64>) -> ArrayRef {
    let item = item(arrow_schema::DataType::Float64);
    Arc::new(FixedSizeListArray::new(item, size, Arc::new(Float64Array::from(values)), Some(last_null())))
}

/// Polygons, some of which are none.
fn lists() -> ArrayRef {
    let mut lists = ListBuilder::new(Float64Builder::new()).with_field(item(arrow_schema::DataType::Float64));
    let square: &[f64] = &[0.0, 0.0, 2.0, 0.0, 2.0, 2.0, 0.0, 2.0];
    for values in [square, &[10.0, 80.0, 130.0, 80.0, 250.0, 80.0], &[1.0, 2.0], &[]] {
        lists.values().append_slice(values);
        lists.append(true);
    }
    lists.append_null();
    Arc::new(lists.finish())
}
