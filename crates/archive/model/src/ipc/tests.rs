//! Arrow streams: what is written reads back, and what others write becomes ours.

use std::collections::HashMap;

use arrow_array::types::{ArrowPrimitiveType, Float16Type, Int8Type};
use arrow_array::{
    Array, Date32Array, Decimal128Array, DictionaryArray, Float16Array, Int8Array, LargeStringArray,
    StringViewArray, TimestampNanosecondArray, UInt16Array, UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use proptest::prelude::*;
use trifid_archive_adql::types::{Element, Size, Type};

use super::*;
use crate::sample::{self, Table, Value};

fn write(table: &Table, end: &End) -> Vec<u8> {
    let head = Head {
        name: Some(Arc::from("t")),
        infos: vec![Info::new("QUERY", "SELECT 1")],
        ..Head::new(table.fields.clone())
    };
    let mut out = b"before".to_vec();
    let mut writer = Box::new(Writer::new(head));
    writer.begin(&mut out);
    let half = table.rows / 2;
    writer.rows(&table.batch(), 0..half, &mut out).unwrap();
    writer.rows(&table.batch(), half..table.rows, &mut out).unwrap();
    writer.finish(end, &mut out);
    assert!(out.starts_with(b"before"), "what the caller has is kept");
    out.split_off(6)
}

fn read(bytes: &[u8], max_rows: usize) -> Result<(Reader<&[u8]>, Option<RecordBatch>), ReadError> {
    let mut reader = Reader::new(bytes)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next_batch(max_rows)? {
        batches.push(batch);
    }
    let whole =
        batches.first().map(|first| arrow_select::concat::concat_batches(&first.schema(), &batches).unwrap());
    Ok((reader, whole))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_reads_back(table in sample::table(), max_rows in 1_usize..20) {
        for end in [End::Complete, End::Overflow, End::Failed(Arc::from("it broke"))] {
            let written = write(&table, &end);
            let (reader, found) = read(&written, max_rows).unwrap();
            let about = reader.about();
            prop_assert_eq!(about.name.as_deref(), Some("t"));
            prop_assert_eq!(&about.infos, &[Info::new("QUERY", "SELECT 1")]);
            for (found, field) in reader.fields().iter().zip(table.fields.iter()) {
                // NULL alone is text to VOTable, and strings without a common length JSON.
                if !matches!(field.ty, Type::Null | Type::Array(Element::Text)) {
                    prop_assert_eq!(found, field);
                }
                prop_assert_eq!(found.ty, field.ty);
            }
            match found {
                Some(found) => sample::assert_same(&found, &table.batch()),
                None => prop_assert_eq!(table.rows, 0),
            }
        }
    }

    #[test]
    fn any_change_of_a_byte_is_read_or_refused(
        table in sample::table(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut written = write(&table, &End::Complete);
        let at = at.index(written.len());
        written[at] = byte;
        fuzz(&written);
    }
}

/// The metadata of the last message.
fn last_metadata(bytes: &[u8]) -> HashMap<String, String> {
    let mut reader = Reader::new(bytes).unwrap();
    let mut last = HashMap::new();
    while let Some(length) = reader.prefix(&mut [0; 8]).unwrap() {
        let framed = reader.framed(length).unwrap();
        let said = root(&framed.metadata).unwrap().custom_metadata();
        let pair = |pair: arrow_ipc::KeyValue<'_>| {
            (pair.key().unwrap().to_owned(), pair.value().unwrap().to_owned())
        };
        last = said.iter().flatten().map(pair).collect();
    }
    last
}

#[test]
fn the_last_message_tells_how_the_result_ended() {
    let table = Table { fields: sample::fields(&[Type::Text]), columns: vec![vec![None]], rows: 1 };
    let status = |end| last_metadata(&write(&table, &end)).get(STATUS).cloned();
    assert_eq!(status(End::Complete), None);
    assert_eq!(status(End::Overflow).as_deref(), Some("OVERFLOW"));
    assert_eq!(status(End::Failed(Arc::from("x"))).as_deref(), Some("ERROR"));
}

/// A file of others, with columns that are not ours.
fn foreign() -> (Vec<u8>, Table) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(Int8Array::from(vec![Some(-1), None]))),
        ("u16", Arc::new(UInt16Array::from(vec![65_535, 0]))),
        ("u64", Arc::new(UInt64Array::from(vec![5, 6]))),
        ("f16", Arc::new(Float16Array::from_iter_values([0x3E00, 0x4000].map(half)))),
        ("dec", Arc::new(Decimal128Array::from(vec![150, -25]).with_precision_and_scale(5, 2).unwrap())),
        ("large", Arc::new(LargeStringArray::from(vec!["a", "b"]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("c"), None]))),
        ("day", Arc::new(Date32Array::from(vec![1, -1]))),
        ("nano", Arc::new(TimestampNanosecondArray::from(vec![1500, -1]))),
        ("dict", Arc::new(vec!["x", "y"].into_iter().collect::<DictionaryArray<Int8Type>>())),
    ];
    let fields: Vec<ArrowField> =
        columns.iter().map(|(name, array)| ArrowField::new(*name, array.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let mut file = FileWriter::try_new(Vec::new(), &schema).unwrap();
    file.write(&batch).unwrap();
    file.write(&batch).unwrap();
    file.finish().unwrap();
    let whole = |a, b| vec![Some(Value::Whole(a)), Some(Value::Whole(b))];
    let real = |a, b| vec![Some(Value::Real(a)), Some(Value::Real(b))];
    let text = |a: &str| Some(Value::Text(a.to_owned()));
    use Type::{Double, Float, Int, Long, Short, Text, Timestamp};
    let expected = Table {
        fields: sample::fields(&[Short, Int, Long, Float, Double, Text, Text, Timestamp, Timestamp, Text]),
        columns: vec![
            vec![Some(Value::Whole(-1)), None],
            whole(65_535, 0),
            whole(5, 6),
            real(1.5, 2.0),
            real(1.5, -0.25),
            vec![text("a"), text("b")],
            vec![text("c"), None],
            whole(86_400_000_000, -86_400_000_000),
            whole(1, -1),
            vec![text("x"), text("y")],
        ],
        rows: 2,
    };
    (file.into_inner().unwrap(), expected)
}

/// Binary16 by its bits.
const fn half(bits: u16) -> <Float16Type as ArrowPrimitiveType>::Native {
    <Float16Type as ArrowPrimitiveType>::Native::from_bits(bits)
}

#[test]
fn files_of_others_are_read() {
    let (file, expected) = foreign();
    let mut reader = Reader::new(file.as_slice()).unwrap();
    for _ in 0..2 {
        sample::assert_same(&reader.next_batch(10).unwrap().unwrap(), &expected.batch());
    }
    assert!(reader.next_batch(10).unwrap().is_none());
    assert!(reader.next_batch(10).unwrap().is_none());
}

fn one(array: ArrayRef) -> Result<Option<RecordBatch>, String> {
    let schema = Arc::new(Schema::new(vec![ArrowField::new("x", array.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![array]).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    stream.write(&batch).unwrap();
    let bytes = stream.into_inner().unwrap();
    read(&bytes, 10).map(|(_, batch)| batch).map_err(|error| error.to_string())
}

#[test]
fn what_has_no_place_is_told() {
    let error = one(Arc::new(UInt64Array::from(vec![1, u64::MAX]))).unwrap_err();
    assert!(error.starts_with("row 2, column x: \"18446744073709551615\" is not a whole number"), "{error}");
    let error = one(Arc::new(arrow_array::Time64MicrosecondArray::from(vec![1]))).unwrap_err();
    assert!(error.contains("column x is Time64"), "{error}");
    let text = |bytes: &[u8]| read(bytes, 10).map(|_| ()).unwrap_err().to_string();
    assert!(text(b"").contains("ends inside the schema"));
    assert!(text(b"hello, world").contains("no Arrow IPC"));
    assert!(text(&[0xff; 12]).contains("a message's metadata in bytes exceeds"));
    let (file, _) = foreign();
    assert!(text(&file[..file.len() / 2]).contains("ends inside a message"));
}

#[test]
fn lists_of_others_become_arrays() {
    let list = arrow_array::ListArray::from_iter_primitive::<arrow_array::types::UInt16Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
    ]);
    let batch = one(Arc::new(list)).unwrap().unwrap();
    let items = Some(Value::Items(vec![Some(Value::Whole(1)), None]));
    let field = Field { size: Size::Variable(None), ..Field::new("x", Type::Array(Element::Int)) };
    let expected = Table { fields: Arc::new([field]), columns: vec![vec![items, None]], rows: 2 };
    sample::assert_same(&batch, &expected.batch());
    let bytes = one(Arc::new(arrow_array::BinaryArray::from(vec![Some(b"ab".as_slice()), None]))).unwrap();
    assert_eq!(bytes.unwrap().schema().field(0).data_type(), &physical(Type::Array(Element::UnsignedByte)));
}
