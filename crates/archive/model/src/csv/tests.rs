//! CSV and TSV: what is written, what is read, and that the two agree.

use proptest::prelude::*;
use trifid_archive_adql::types::{Element, Field, Type};

use super::*;
use crate::read::TableReader;
use crate::sample::{self, Table, Value};
use crate::write::{End, TableWriter};

fn write(table: &Table, delimiter: Delimiter) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Box::new(Writer::new(table.fields.clone(), delimiter));
    writer.begin(&mut out);
    let batch = table.batch();
    let half = table.rows / 2;
    writer.rows(&batch, 0..half, &mut out).unwrap();
    writer.rows(&batch, half..table.rows, &mut out).unwrap();
    writer.finish(&End::Complete, &mut out);
    out
}

fn table(columns: Vec<(Type, Vec<Option<Value>>)>) -> Table {
    let types: Vec<Type> = columns.iter().map(|(ty, _)| *ty).collect();
    let rows = columns[0].1.len();
    Table {
        fields: sample::fields(&types),
        columns: columns.into_iter().map(|(_, values)| values).collect(),
        rows,
    }
}

fn text(value: &str) -> Option<Value> {
    Some(Value::Text(value.to_owned()))
}

fn reals(values: &[f64]) -> Option<Value> {
    Some(Value::Items(values.iter().map(|&value| Some(Value::Real(value))).collect()))
}

#[test]
fn cells_are_written_and_quoted() {
    let strings =
        vec![text("a"), text(""), None, text("b,\"c\""), text("two\nlines"), text(" x"), text("#1")];
    let numbers = [Some(1.0), Some(f64::NAN), Some(f64::INFINITY), Some(-0.0), Some(1e300), None, Some(0.1)];
    let numbers = numbers.into_iter().map(|value| value.map(Value::Real)).collect();
    let made = table(vec![(Type::Text, strings), (Type::Double, numbers)]);
    let expected = "c0,c1\na,1.0\n\"\",NaN\n,Infinity\n\"b,\"\"c\"\"\",-0.0\n\"two\nlines\",1e+300\n\
                    \" x\",\n\"#1\",0.1\n";
    assert_eq!(String::from_utf8(write(&made, Delimiter::Comma)).unwrap(), expected);
}

#[test]
fn arrays_are_dali_text_and_strings_json() {
    let names = Some(Value::Items(vec![text("a b"), None, text("q\"")]));
    let flags = Some(Value::Items(vec![Some(Value::Truth(true)), None]));
    let made = table(vec![
        (Type::Point, vec![reals(&[1.5, -2.0])]),
        (Type::Array(Element::Text), vec![names]),
        (Type::Array(Element::Boolean), vec![flags]),
        (Type::Timestamp, vec![Some(Value::Whole(1_577_836_800_500_000))]),
    ]);
    let expected = "c0\tc1\tc2\tc3\n\
                    1.5 -2.0\t\"[\"\"a b\"\",null,\"\"q\\\"\"\"\"]\"\ttrue NULL\t2020-01-01T00:00:00.500\n";
    assert_eq!(String::from_utf8(write(&made, Delimiter::Tab)).unwrap(), expected);
}

fn read(text: &[u8], options: &Options) -> Result<(Vec<Field>, Vec<String>), String> {
    let mut reader = Reader::new(text, options).map_err(|error| error.to_string())?;
    let fields = reader.fields().to_vec();
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch(3).map_err(|error| error.to_string())? {
        let mut out = Vec::new();
        Writer::new(fields.clone().into(), Delimiter::Pipe)
            .rows(&batch, 0..batch.num_rows(), &mut out)
            .unwrap();
        rows.extend(String::from_utf8(out).unwrap().lines().map(str::to_owned));
    }
    Ok((fields, rows))
}

#[test]
fn types_are_guessed() {
    let csv = "\u{feff}# made by hand\r\nid,big,x,flag,when,name,none,mixed,huge\r\n\
               1,5000000000,1.5,true,2020-01-01,a,,1,123456789012345678901\r\n\
               2,1,nan,FALSE,2020-01-01T10:00:00.25,\"\",,x,1\r\n\
               ,,,null,,,,,\r\n";
    let (fields, rows) = read(csv.as_bytes(), &Options::default()).unwrap();
    let types: Vec<Type> = fields.iter().map(|field| field.ty).collect();
    let expected = [
        Type::Int,
        Type::Long,
        Type::Double,
        Type::Boolean,
        Type::Timestamp,
        Type::Text,
        Type::Text,
        Type::Text,
        Type::Text,
    ];
    assert_eq!(types, expected);
    assert_eq!(
        rows,
        [
            "1|5000000000|1.5|true|2020-01-01T00:00:00|a||1|123456789012345678901",
            "2|1|NaN|false|2020-01-01T10:00:00.250|\"\"||x|1",
            "||||||||",
        ]
    );
}

#[test]
fn names_are_made_unique_and_lines_without_header_are_data() {
    let (fields, _) = read(b"a,a, b ,,a_2\n", &Options::default()).unwrap();
    let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["a", "a_2", "b", "col4", "a_2_2"]);
    let options = Options { header: Header::Absent, ..Options::new(Delimiter::Semicolon) };
    let (fields, rows) = read(b"1;x\n2;y", &options).unwrap();
    assert_eq!((&*fields[0].name, fields[0].ty, &*fields[1].name), ("col1", Type::Int, "col2"));
    assert_eq!(rows, ["1|x", "2|y"]);
}

#[test]
fn a_table_may_be_empty() {
    assert_eq!(read(b"", &Options::default()).unwrap(), (vec![], vec![]));
    assert_eq!(read(b"# only a remark", &Options::default()).unwrap(), (vec![], vec![]));
    assert_eq!(read(b"a,b", &Options::default()).unwrap().1, Vec::<String>::new());
    assert_eq!(read(b"a\n1\n\n2\n", &Options::default()).unwrap().1, ["1", "", "2"]);
    assert_eq!(read(b"a,b\n1,2\n\r\n\n3,4\n\n", &Options::default()).unwrap().1, ["1|2", "3|4"]);
}

fn refused(csv: &str, options: &Options, expected: &str) {
    let error = read(csv.as_bytes(), options).expect_err(csv);
    assert!(error.contains(expected), "{error:?} says {expected:?}");
}

#[test]
fn errors_name_the_place_the_value_and_the_type() {
    let declared = |ty| Options { declared: vec![Field::new("B", ty)], ..Options::default() };
    refused("a,b\n1,2\n3\n", &Options::default(), "line 3: 1 cells where the first line has 2");
    refused("a,b\n1,\"x\ny\"\n3,4,5\n", &Options::default(), "line 4: 3 cells");
    refused("a,b\n1,\"x\"y\n", &Options::default(), "line 2: a quoted value goes on");
    refused("a,b\n1,\"x\n", &Options::default(), "ends inside a quoted value");
    refused(
        "a,b\n1,2\n2,70000\n",
        &declared(Type::Short),
        "line 3 (row 2, column b): \"70000\" is not a whole number of 16 bits (SMALLINT)",
    );
    refused("a,b\n1,2\n", &declared(Type::Circle), "\"2\" is not a circle");
    refused("a,b\n1,x\n", &declared(Type::Timestamp), "is not an ISO 8601 timestamp");
}

#[test]
fn a_guess_from_the_beginning_may_fail_later_and_says_so() {
    let mut csv = String::from("a,b\n");
    (0..70_000).for_each(|row| csv += &format!("{row},x\n"));
    csv += "oops,x\n";
    let mut reader = Reader::new(csv.as_bytes(), &Options::default()).unwrap();
    assert!(!reader.inference().whole);
    let error = loop {
        match reader.next_batch(10_000) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the last line was taken"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.starts_with("line 70002 (row 70001, column a): \"oops\" is not a whole number"), "{error}");
    assert!(error.contains("let the whole file decide"), "{error}");
    let whole = infer(csv.as_bytes(), &Options::default()).unwrap();
    assert_eq!((whole.fields[0].ty, whole.rows, whole.whole), (Type::Text, 70_001, true));
    let options = Options { declared: whole.fields.to_vec(), ..Options::default() };
    let mut reader = Reader::new(csv.as_bytes(), &options).unwrap();
    let mut rows = 0;
    while let Some(batch) = reader.next_batch(usize::MAX).unwrap() {
        rows += batch.num_rows();
    }
    assert_eq!(rows, 70_001);
}

#[test]
fn a_long_cell_makes_room_for_itself() {
    let long = "x".repeat(700_000);
    let csv = format!("a,b\n1,{long}\n2,\"{long}\n{long}\"\n3,c\n");
    let (_, rows) = read(csv.as_bytes(), &Options::default()).unwrap();
    assert_eq!(rows.iter().map(String::len).collect::<Vec<_>>(), [700_002, 700_003, 700_001, 3]);
}

/// What CSV cannot tell apart: NULL among real numbers is NaN, an empty array of numbers is NULL.
fn as_csv_has_it(field: &Field, value: Option<Value>) -> Option<Value> {
    match value? {
        Value::Items(items) if items.is_empty() && field.ty != Type::Array(Element::Text) => None,
        Value::Items(items) => {
            Some(Value::Items(items.into_iter().map(|item| nan(field.ty, item)).collect()))
        }
        value => Some(value),
    }
}

fn nan(ty: Type, item: Option<Value>) -> Option<Value> {
    match (ty, item) {
        (Type::Array(Element::Float | Element::Double), None) => Some(Value::Real(f64::NAN)),
        (Type::Array(Element::FloatComplex | Element::DoubleComplex), None) => reals(&[f64::NAN, f64::NAN]),
        (_, item) => item,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_written_reads_back(table in sample::table(), tab in any::<bool>()) {
        let delimiter = if tab { Delimiter::Tab } else { Delimiter::Comma };
        let csv = write(&table, delimiter);
        let options = Options { declared: table.fields.to_vec(), ..Options::new(delimiter) };
        let mut reader = Reader::new(csv.as_slice(), &options).unwrap();
        let expected = table.map(as_csv_has_it).batch();
        match reader.next_batch(100).unwrap() {
            Some(batch) => {
                sample::assert_same(&batch, &expected);
                prop_assert!(reader.next_batch(100).unwrap().is_none());
            }
            None => prop_assert_eq!(table.rows, 0),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\n\r\t,\"é]{0,200}") {
        crate::csv::fuzz(text.as_bytes());
    }
}
