//! Any table is written and read back: what comes back is what the table in the module's documentation promises.

use std::sync::Arc;

use arrow_array::RecordBatch;
use proptest::prelude::*;
use trifid_archive_adql::types::{Element, Field, Size, Type};

use crate::read::TableReader;
use crate::sample::{self, Table, Value, assert_same};
use crate::votable::*;
use crate::write::{End, Head, Info, TableWriter};

/// The bytes of every string of an array of strings.
const WIDTH: u32 = 60;

/// How the size of a column is chosen.
#[derive(Clone, Copy, Debug)]
struct Choice {
    shape: u8,
    unicode: bool,
}

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    let choice = (0_u8..4, any::<bool>()).prop_map(|(shape, unicode)| Choice { shape, unicode });
    prop::collection::vec(choice, 8)
}

/// Gives the columns sizes, and the values what the sizes demand.
fn sized(table: &Table, choices: &[Choice]) -> Table {
    let mut fields = table.fields.to_vec();
    let mut columns = table.columns.clone();
    for ((field, column), choice) in fields.iter_mut().zip(&mut columns).zip(choices) {
        field.unicode = choice.unicode
            && matches!(field.ty, Type::Text | Type::Timestamp | Type::Region | Type::Array(Element::Text));
        let (size, count) = match (field.ty, choice.shape) {
            (Type::Array(Element::Text), 0 | 1) => (Size::Shape([WIDTH].into(), None), None),
            (Type::Array(Element::Text), 2) => (Size::Shape([WIDTH, 2].into(), None), Some(4)),
            (Type::Array(Element::Text), _) => (Size::Shape([WIDTH].into(), Some(3)), Some(3)),
            (Type::Array(_), 1) => (Size::Fixed(5), Some(5)),
            (Type::Array(_), 2) => (Size::Shape([2].into(), None), Some(4)),
            (Type::Array(_), 3) => (Size::Shape([2, 1].into(), Some(3)), Some(6)),
            (Type::Text, 1) => (Size::Fixed(WIDTH), None),
            (Type::Timestamp, 1) => (Size::Fixed(26), None),
            _ => continue,
        };
        field.size = size;
        let Some(count) = count else { continue };
        for value in column.iter_mut().flatten() {
            if let Value::Items(items) = value {
                let filler = items.first().cloned().unwrap_or(Some(zero(field.ty)));
                items.resize(count, filler);
            }
        }
    }
    Table { fields: fields.into(), columns, rows: table.rows }
}

fn zero(ty: Type) -> Value {
    match ty {
        Type::Array(Element::Boolean | Element::Bit) => Value::Truth(false),
        Type::Array(Element::Float | Element::Double) => Value::Real(0.0),
        Type::Array(Element::FloatComplex | Element::DoubleComplex) => {
            Value::Items(vec![Some(Value::Real(0.0)), Some(Value::Real(f64::NAN))])
        }
        Type::Array(Element::Text) => Value::Text(String::new()),
        _ => Value::Whole(0),
    }
}

const fn least(ty: Type) -> i64 {
    match ty {
        Type::Short | Type::Array(Element::Short) => i16::MIN as i64,
        Type::Int | Type::Array(Element::Int) => i32::MIN as i64,
        _ => i64::MIN,
    }
}

/// The value in place of one that the serialisation refuses.
fn admitted(field: &Field, value: Option<Value>, serialization: Serialization) -> Option<Value> {
    let binary = serialization == Serialization::Binary;
    match (field.ty, value) {
        (Type::Array(Element::Bit), None)
            if binary && matches!(field.size, Size::Fixed(_) | Size::Shape(_, Some(_))) =>
        {
            Some(Value::Items(vec![
                Some(Value::Truth(true));
                if field.size == Size::Fixed(5) { 5 } else { 6 }
            ]))
        }
        (Type::Short | Type::Int | Type::Long, Some(Value::Whole(value)))
            if binary && value == least(field.ty) =>
        {
            Some(Value::Whole(0))
        }
        (ty @ Type::Array(Element::Bit | Element::UnsignedByte), Some(Value::Items(items))) => {
            Some(Value::Items(items.into_iter().map(|item| item.or(Some(zero(ty)))).collect()))
        }
        (_, value) => value,
    }
}

/// The field that comes back.
fn declared(field: &Field, serialization: Serialization) -> Field {
    let mut field = field.clone();
    if serialization == Serialization::Binary && field.ty == Type::Array(Element::UnsignedByte) {
        // So that NULL can be told.
        field.size = match field.size {
            Size::Fixed(count) => Size::Variable(Some(count)),
            Size::Shape(fixed, _) => Size::Shape(fixed, None),
            size => size,
        };
    }
    match field.ty {
        Type::Null => (field.ty, field.size) = (Type::Text, Size::Variable(None)),
        Type::UnsignedByte if serialization == Serialization::Binary => field.ty = Type::Short,
        Type::Bit if serialization != Serialization::TableData => field.ty = Type::Boolean,
        _ => {}
    }
    field
}

fn representable(field: &Field, text: &str, as_text: bool) -> String {
    if !as_text {
        return if field.unicode { text.to_owned() } else { text.replace(|c: char| !c.is_ascii(), "?") };
    }
    let is_lost = |c: char| c < ' ' && !"\t\n\r".contains(c) || "\u{FFFE}\u{FFFF}".contains(c);
    text.replace(is_lost, "\u{FFFD}")
}

/// The value that comes back.
fn expected(field: &Field, value: Option<Value>, serialization: Serialization) -> Option<Value> {
    let as_text = serialization == Serialization::TableData;
    let binary = serialization == Serialization::Binary;
    let value = match (field.ty, value?) {
        (Type::Null, _) => return None,
        (_, Value::Text(text)) => Value::Text(representable(field, &text, as_text)),
        (Type::Array(element), Value::Items(items)) => {
            Value::Items(items.into_iter().map(|item| expected_item(field, element, item, as_text)).collect())
        }
        (_, value) => value,
    };
    let is_lost = match &value {
        Value::Text(text) => text.is_empty(),
        Value::Real(value) => binary && value.is_nan(),
        Value::Items(items) if items.is_empty() => true,
        // A fixed array of nothing but NULL.
        Value::Items(items) => {
            let is_fixed = matches!(field.size, Size::Fixed(_) | Size::One | Size::Shape(_, Some(_)))
                && !matches!(field.ty, Type::Array(Element::Bit | Element::UnsignedByte) | Type::Polygon);
            binary && is_fixed && items.iter().all(is_nothing)
        }
        _ => false,
    };
    if is_lost && serialization != Serialization::Binary2 { None } else { Some(value) }
}

fn is_nothing(item: &Option<Value>) -> bool {
    match item {
        None => true,
        Some(Value::Real(value)) => value.is_nan(),
        Some(Value::Text(text)) => text.is_empty(),
        Some(Value::Items(items)) => items.iter().all(is_nothing),
        Some(_) => false,
    }
}

fn expected_item(field: &Field, element: Element, item: Option<Value>, as_text: bool) -> Option<Value> {
    let nan = || Some(Value::Real(f64::NAN));
    match (element, item) {
        (Element::Float | Element::Double, None) => nan(),
        (Element::FloatComplex | Element::DoubleComplex, None) => Some(Value::Items(vec![nan(), nan()])),
        (Element::Text, item) => {
            let Some(Value::Text(text)) = item else { return Some(Value::Text(String::new())) };
            Some(Value::Text(representable(field, &text, as_text).trim_end_matches(' ').to_owned()))
        }
        (_, Some(Value::Whole(value))) if value == least(Type::Array(element)) => None,
        (_, item) => item,
    }
}

fn write(table: &Table, batch: &RecordBatch, serialization: Serialization) -> Vec<u8> {
    let mut head = Head::new(Arc::clone(&table.fields));
    head.name = Some("a <table>".into());
    head.infos.push(Info::new("QUERY", "a\nb").with_text("c & d"));
    let mut writer = Box::new(Writer::new(Options { serialization, version: Version::V1_4 }, head));
    let mut out = Vec::new();
    writer.begin(&mut out);
    let half = table.rows / 2;
    writer.rows(batch, 0..half, &mut out).unwrap();
    writer.rows(batch, half..table.rows, &mut out).unwrap();
    writer.finish(&End::Overflow, &mut out);
    out
}

fn check(table: &Table, serialization: Serialization) {
    let table = table.map(|field, value| admitted(field, value, serialization));
    let document = write(&table, &table.batch(), serialization);
    let wanted = table.map(|field, value| expected(field, value, serialization));
    let fields = table.fields.iter().map(|field| declared(field, serialization)).collect();
    let wanted = Table { fields, ..wanted };
    let mut reader = Reader::new(document.as_slice(), ReadOptions::default()).unwrap();
    assert_eq!(reader.fields(), &wanted.fields);
    let mut at = 0;
    while let Some(batch) = reader.next_batch(5).unwrap() {
        assert!(batch.num_rows() > 0 && batch.num_rows() <= 5);
        assert_same(&batch, &wanted.batch().slice(at, batch.num_rows()));
        at += batch.num_rows();
    }
    assert_eq!(at, table.rows);
    let about = reader.about();
    assert_eq!(about.name.as_deref(), Some("a <table>"));
    let infos =
        about.infos.iter().map(|info| (&*info.name, &*info.value, info.text.as_deref())).collect::<Vec<_>>();
    assert_eq!(
        infos,
        [("QUERY_STATUS", "OK", None), ("QUERY", "a\nb", Some("c & d")), ("QUERY_STATUS", "OVERFLOW", None)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tabledata(table in sample::table(), choices in choices()) {
        check(&sized(&table, &choices), Serialization::TableData);
    }

    #[test]
    fn binary(table in sample::table(), choices in choices()) {
        check(&sized(&table, &choices), Serialization::Binary);
    }

    #[test]
    fn binary2(table in sample::table(), choices in choices()) {
        check(&sized(&table, &choices), Serialization::Binary2);
    }
}
