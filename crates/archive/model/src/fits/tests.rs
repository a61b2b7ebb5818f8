//! Binary tables: what is written reads back, and what is broken is refused.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::RecordBatch;
use proptest::prelude::*;
use trifid_archive_adql::types::{Element, Field, Size, Type};

use super::card::{BLOCK, Cards};
use super::*;
use crate::read::TableReader;
use crate::sample::{self, Table, Value};
use crate::write::{End, Head, Info, WriteError};

fn survey(table: &Table) -> Survey {
    let mut survey = Survey::new(table.fields.clone());
    let batch = table.batch();
    let half = table.rows / 2;
    survey.add(&batch, 0..half).unwrap();
    survey.add(&batch, half..table.rows).unwrap();
    survey
}

fn write(table: &Table, survey: &Survey) -> Result<Vec<u8>, WriteError> {
    let batch = table.batch();
    let half = table.rows / 2;
    let mut encoder = Encoder::new(Head::new(table.fields.clone()), survey)?;
    let mut out = Vec::new();
    encoder.header(&End::Complete, &mut out)?;
    encoder.rows(&batch, 0..half, &mut out)?;
    encoder.rows(&batch, half..table.rows, &mut out)?;
    if encoder.has_heap() {
        encoder.heap(&batch, 0..half, &mut out)?;
        encoder.heap(&batch, half..table.rows, &mut out)?;
    }
    encoder.finish(&mut out);
    assert_eq!(out.len() % BLOCK, 0);
    Ok(out)
}

/// Field metadata, and everything in one batch: read in pieces, from a stream or a file.
fn read(bytes: &[u8], is_file: bool) -> Result<(Arc<[Field]>, Option<RecordBatch>), String> {
    let wanted = Wanted::FirstTable;
    let reader =
        if is_file { Reader::seekable(Cursor::new(bytes), &wanted) } else { Reader::new(bytes, &wanted) };
    let mut reader = reader.map_err(|error| error.to_string())?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next_batch(5).map_err(|error| error.to_string())? {
        batches.push(batch);
    }
    Ok((reader.fields().clone(), concat(&batches)))
}

fn concat(batches: &[RecordBatch]) -> Option<RecordBatch> {
    Some(arrow_select::concat::concat_batches(&batches.first()?.schema(), batches).unwrap())
}

/// What FITS makes of a value: see the module's list of what it cannot say.
fn as_fits_has_it(field: &Field, value: Option<Value>) -> Option<Value> {
    let value = value?;
    match (field.ty, value) {
        (Type::Float | Type::Double, Value::Real(real)) if real.is_nan() => None,
        (Type::Point | Type::Circle | Type::FloatComplex | Type::DoubleComplex | Type::Polygon, value) => {
            has_number(&value).then_some(value)
        }
        (Type::Array(_), Value::Items(items)) => {
            let items: Vec<_> = items.into_iter().map(as_item).collect();
            items.iter().any(Option::is_some).then_some(Value::Items(items))
        }
        (_, value) => Some(value),
    }
}

fn has_number(value: &Value) -> bool {
    match value {
        Value::Real(real) => !real.is_nan(),
        Value::Items(items) => items.iter().flatten().any(has_number),
        _ => true,
    }
}

fn as_item(item: Option<Value>) -> Option<Value> {
    item.filter(has_number)
}

/// The columns but those whose type changes: bits become logicals, nulls text, arrays of strings JSON.
fn without_changing_types(table: &Table) -> Table {
    let keeps = |ty| !matches!(ty, Type::Null | Type::Bit | Type::Array(Element::Text));
    let kept: Vec<usize> = (0..table.fields.len()).filter(|&at| keeps(table.fields[at].ty)).collect();
    Table {
        fields: kept.iter().map(|&at| table.fields[at].clone()).collect(),
        columns: kept.iter().map(|&at| table.columns[at].clone()).collect(),
        rows: table.rows,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_written_reads_back(table in sample::table(), is_file in any::<bool>()) {
        let table = without_changing_types(&table);
        prop_assume!(!table.fields.is_empty());
        let survey = survey(&table);
        let written = match write(&table, &survey) {
            Ok(written) => written,
            Err(error) => {
                // Both ends of 64 bits beside a NULL.
                prop_assert!(error.to_string().contains("neither is free"), "{}", error);
                return Ok(());
            }
        };
        let (fields, found) = read(&written, is_file).unwrap();
        for (found, field) in fields.iter().zip(table.fields.iter()) {
            prop_assert_eq!(&found.name, &field.name);
            prop_assert_eq!(&found.unit, &field.unit);
            prop_assert_eq!(&found.ucd, &field.ucd);
            prop_assert_eq!(&found.utype, &field.utype);
            prop_assert_eq!(&found.description, &field.description);
            prop_assert_eq!(&found.xtype, &field.xtype);
        }
        let expected = table.map(as_fits_has_it);
        match found {
            Some(found) => same(&found, &expected, &fields),
            None => prop_assert_eq!(table.rows, 0),
        }
    }

    #[test]
    fn any_change_of_a_byte_is_read_or_refused(
        table in sample::table(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        if let Ok(mut written) = write(&table, &survey(&table)) {
            let at = at.index(written.len());
            written[at] = byte;
            fuzz(&written);
        }
    }
}

/// Integers may have been widened to make room for NULL: then the values are compared.
fn same(found: &RecordBatch, expected: &Table, fields: &[Field]) {
    let widened = Table {
        fields: expected
            .fields
            .iter()
            .zip(fields)
            .map(|(field, found)| Field { ty: found.ty, ..field.clone() })
            .collect(),
        ..expected.clone()
    };
    for (field, found) in expected.fields.iter().zip(fields) {
        let is_wider = match (field.ty, found.ty) {
            (Type::UnsignedByte, Type::Short) | (Type::Short, Type::Int) | (Type::Int, Type::Long) => true,
            (Type::Array(Element::Short), Type::Array(Element::Int)) => true,
            (Type::Array(Element::Int), Type::Array(Element::Long)) => true,
            (Type::Array(Element::UnsignedByte), Type::Array(Element::Short)) => true,
            (Type::Array(Element::Bit), Type::Array(Element::Boolean)) => true,
            (field, found) => field == found,
        };
        assert!(is_wider, "{} becomes {:?}", field.name, found.ty);
    }
    sample::assert_same(found, &widened.batch());
}

fn column(ty: Type, size: Size, values: Vec<Option<Value>>) -> Table {
    let field = Field { size, ..Field::new("x", ty) };
    Table { rows: values.len(), fields: Arc::new([field]), columns: vec![values] }
}

fn wholes(values: &[i64]) -> Option<Value> {
    Some(Value::Items(values.iter().map(|&value| Some(Value::Whole(value))).collect()))
}

fn text(value: &str) -> Option<Value> {
    Some(Value::Text(value.to_owned()))
}

fn header_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[BLOCK..]).into_owned()
}

#[track_caller]
fn has_card(bytes: &[u8], card: &str) {
    assert!(header_of(bytes).contains(card), "{card} in {}", header_of(bytes));
}

#[test]
fn nulls_of_whole_numbers_take_a_value_that_does_not_occur() {
    let check = |ty, values: &[Option<i64>], form: &str, null: &str| {
        let values = values.iter().map(|value| value.map(Value::Whole)).collect();
        let table = column(ty, Size::One, values);
        let written = write(&table, &survey(&table)).unwrap();
        has_card(&written, &format!("TFORM1  = '{form:<8}'"));
        assert_eq!(header_of(&written).contains("TNULL1"), !null.is_empty());
        has_card(&written, &if null.is_empty() { String::new() } else { format!("TNULL1  = {null:>20}") });
    };
    let every_byte: Vec<_> = (0..256).map(Some).chain([None]).collect();
    check(Type::UnsignedByte, &[Some(0), Some(255)], "1B", "");
    check(Type::UnsignedByte, &[Some(0), Some(255), None], "1B", "254");
    check(Type::UnsignedByte, &every_byte, "1I", "-32768");
    check(Type::Short, &[Some(-5), None], "1I", "-32768");
    check(Type::Short, &[Some(-32_768), None], "1I", "32767");
    check(Type::Short, &[Some(-32_768), Some(32_767), None], "1J", "-2147483648");
    check(Type::Int, &[Some(i32::MIN.into()), Some(i32::MAX.into()), None], "1K", "-9223372036854775808");
    check(Type::Long, &[Some(i64::MIN), Some(i64::MAX)], "1K", "");
    let both = vec![Some(Value::Whole(i64::MIN)), Some(Value::Whole(i64::MAX)), None];
    let table = column(Type::Long, Size::One, both);
    assert!(write(&table, &survey(&table)).is_err());
}

#[test]
fn text_is_as_wide_as_the_longest_or_goes_to_the_heap() {
    let values = vec![text("ab"), text(""), None, text(" "), text("x "), text("é")];
    let table = column(Type::Text, Size::Variable(None), values.clone());
    let written = write(&table, &survey(&table)).unwrap();
    has_card(&written, "TFORM1  = '3A      '");
    sample::assert_same(&read(&written, false).unwrap().1.unwrap(), &table.batch());

    let mut values: Vec<_> = std::iter::repeat_n(values, 100).flatten().collect();
    values.push(text(&"long ".repeat(20_000)));
    let table = column(Type::Text, Size::Variable(None), values);
    let written = write(&table, &survey(&table)).unwrap();
    has_card(&written, "TFORM1  = '1PA(100001)'");
    for is_file in [false, true] {
        sample::assert_same(&read(&written, is_file).unwrap().1.unwrap(), &table.batch());
    }
}

#[test]
fn arrays_of_one_length_stand_in_the_row() {
    let check = |ty, size, values: Vec<Option<Value>>, cards: &[&str], found_as: (Type, Size)| {
        let table = column(ty, size, values);
        let written = write(&table, &survey(&table)).unwrap();
        cards.iter().for_each(|card| has_card(&written, card));
        let (fields, found) = read(&written, true).unwrap();
        assert_eq!((fields[0].ty, fields[0].size.clone()), found_as);
        sample::assert_same(&found.unwrap(), &table.batch());
    };
    let ints = Type::Array(Element::Int);
    let strings = Type::Array(Element::Text);
    let six = vec![wholes(&[1, 2, 3, 4, 5, 6]), wholes(&[6, 5, 4, 3, 2, 1])];
    let shape = Size::Shape([2].into(), Some(3));
    check(ints, shape.clone(), six.clone(), &["'6J      '", "TDIM1   = '(2,3)   '"], (ints, shape.clone()));
    check(ints, Size::Shape([2].into(), None), six.clone(), &["TDIM1   = '(2,3)   '"], (ints, shape));
    check(ints, Size::Variable(None), six, &["'6J      '"], (ints, Size::Fixed(6)));
    let one = vec![wholes(&[1]), wholes(&[2])];
    check(ints, Size::Variable(None), one, &["'1J      '", "TDIM1   = '(1)     '"], (ints, Size::Fixed(1)));
    let ragged = vec![wholes(&[1]), wholes(&[1, 2]), None];
    check(
        ints,
        Size::Variable(None),
        ragged,
        &["'1PJ(2)  '", "PCOUNT  =                   12"],
        (ints, Size::Variable(Some(2))),
    );
    let names = |names: [&str; 2]| Some(Value::Items(names.iter().map(|name| text(name)).collect()));
    let pairs = vec![names(["a", "bcd"]), names(["", "x y"])];
    check(
        strings,
        Size::Variable(None),
        pairs,
        &["'6A      '", "TDIM1   = '(3,2)   '"],
        (strings, Size::Shape([3].into(), Some(2))),
    );
}

#[test]
fn types_that_fits_lacks_become_the_nearest() {
    let names = vec![Some(Value::Items(vec![text("a"), None])), Some(Value::Items(vec![]))];
    let table = Table {
        fields: sample::fields(&[Type::Bit, Type::Null, Type::Array(Element::Text)]),
        columns: vec![vec![Some(Value::Truth(true)), None], vec![None, None], names],
        rows: 2,
    };
    let written = write(&table, &survey(&table)).unwrap();
    let (fields, found) = read(&written, false).unwrap();
    assert_eq!([fields[0].ty, fields[1].ty, fields[2].ty], [Type::Boolean, Type::Text, Type::Text]);
    assert_eq!(fields[2].xtype.as_deref(), Some("json"));
    let columns = vec![table.columns[0].clone(), vec![None, None], vec![text("[\"a\",null]"), text("[]")]];
    let expected = Table { fields, columns, rows: 2 };
    sample::assert_same(&found.unwrap(), &expected.batch());
}

#[test]
fn a_table_can_be_written_without_a_look_and_patched() {
    let fields: Arc<[Field]> = Arc::new([
        Field { size: Size::Variable(Some(5)), ..Field::new("name", Type::Text) },
        Field::new("n", Type::Short),
        Field { size: Size::Fixed(2), ..Field::new("v", Type::Array(Element::UnsignedByte)) },
    ]);
    let columns = vec![
        vec![text("abc"), None, text("12345"), text("123456")],
        vec![Some(Value::Whole(3)), None, Some(Value::Whole(i16::MIN.into())), Some(Value::Whole(1))],
        vec![wholes(&[1, 255]), None, wholes(&[0, 0]), wholes(&[0, 0])],
    ];
    let table = Table { fields: fields.clone(), columns, rows: 4 };
    let batch = table.batch();
    let mut out = Vec::new();
    let mut encoder = Encoder::new(Head::new(fields.clone()), &Survey::declared(fields.clone())).unwrap();
    encoder.header(&End::Complete, &mut out).unwrap();
    encoder.rows(&batch, 0..2, &mut out).unwrap();
    let written = out.len();
    for (row, reason) in [(2, "stands for NULL"), (3, "longer than its column")] {
        let error = encoder.rows(&batch, row..row + 1, &mut out).unwrap_err().to_string();
        assert!(error.starts_with("row 2 of column") && error.contains(reason), "{error}");
        assert_eq!(out.len(), written, "nothing of a refused row is written");
    }
    encoder.finish(&mut out);
    let (at, card) = encoder.patch(2);
    let at = at as usize;
    assert!(out[at..].starts_with(b"NAXIS2  ="));
    out[at..at + card.len()].copy_from_slice(&card);
    let (found_fields, found) = read(&out, false).unwrap();
    assert_eq!(found_fields[2].ty, Type::Array(Element::Short), "a byte beside NULL");
    assert_eq!(found.unwrap().num_rows(), 2);
    let open: Arc<[Field]> = Arc::new([Field::new("t", Type::Text)]);
    assert!(Encoder::new(Head::new(open.clone()), &Survey::declared(open)).is_err());
}

#[test]
fn the_header_tells_how_the_result_ended_and_what_it_is() {
    let table = column(Type::Int, Size::One, vec![Some(Value::Whole(1))]);
    let head = Head {
        name: Some(Arc::from("a 'name'")),
        description: Some(Arc::from("what it is ".repeat(12).trim())),
        infos: vec![Info::new("QUERY", "SELECT é")],
        ..Head::new(table.fields.clone())
    };
    for (end, status) in [
        (End::Complete, "OK      "),
        (End::Overflow, "OVERFLOW"),
        (End::Failed(Arc::from("it broke")), "ERROR   "),
    ] {
        let mut encoder = Encoder::new(head.clone(), &survey(&table)).unwrap();
        let mut out = Vec::new();
        encoder.header(&end, &mut out).unwrap();
        encoder.rows(&table.batch(), 0..1, &mut out).unwrap();
        encoder.finish(&mut out);
        has_card(&out, &format!("QSTATUS = '{status}'"));
        has_card(&out, "EXTNAME = 'a ''name'''");
        has_card(&out, "COMMENT QUERY: SELECT ?");
        let reader = Reader::new(out.as_slice(), &Wanted::Name("A 'NAME'".to_owned())).unwrap();
        let about = reader.about();
        assert_eq!((about.name.as_deref(), about.rows), (Some("a 'name'"), Some(1)));
        assert_eq!(*about.infos[0].value, *status.trim());
    }
}

#[test]
fn long_names_and_too_many_columns() {
    let name = "column_".repeat(40);
    let table = Table {
        fields: Arc::new([Field::new(name.as_str(), Type::Int)]),
        columns: vec![vec![Some(Value::Whole(1))]],
        rows: 1,
    };
    let written = write(&table, &survey(&table)).unwrap();
    assert_eq!(*read(&written, true).unwrap().0[0].name, *name);
    let fields = sample::fields(&vec![Type::Int; 1000]);
    assert!(Encoder::new(Head::new(fields.clone()), &Survey::new(fields)).is_err());
}

/// A file of one table with these cards and this data.
fn file(cards: &[(&str, i64)], texts: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut primary = Cards::default();
    primary.logical("SIMPLE", true, "");
    primary.integer("BITPIX", 16, "");
    primary.integer("NAXIS", 1, "");
    primary.integer("NAXIS1", 3000, "");
    primary.finish(&mut out);
    out.resize(out.len() + 2 * (6000_usize.next_multiple_of(BLOCK) / 2), 7);
    let mut header = Cards::default();
    header.text("XTENSION", "BINTABLE", "");
    for (keyword, value) in [("BITPIX", 8), ("NAXIS", 2), ("PCOUNT", 0), ("GCOUNT", 1)] {
        if !cards.iter().any(|(given, _)| *given == keyword) {
            header.integer(keyword, value, "");
        }
    }
    cards.iter().for_each(|(keyword, value)| header.integer(keyword, *value, ""));
    texts.iter().for_each(|(keyword, value)| header.text(keyword, value, ""));
    header.finish(&mut out);
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
    out
}

#[test]
fn scaled_and_unsigned_numbers_are_read() {
    let cards = [
        ("NAXIS1", 1 + 2 + 4 + 8 + 2 + 4),
        ("NAXIS2", 2),
        ("TFIELDS", 6),
        ("TZERO1", -128),
        ("TZERO2", 32_768),
        ("TZERO3", 2_147_483_648),
        ("TSCAL5", 2),
        ("TZERO5", 1),
        ("TNULL5", 7),
        ("TNULL3", -1),
        ("TSCAL6", 3),
    ];
    let texts = [
        ("TFORM1", "B"),
        ("TFORM2", "I"),
        ("TFORM3", "J"),
        ("TFORM4", "K"),
        ("TFORM5", "I"),
        ("TFORM6", "E"),
        ("TTYPE1", "a"),
        ("TTYPE2", "a"),
    ];
    let mut data = vec![0, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff];
    data.extend_from_slice(&(-1_i64).to_be_bytes());
    data.extend_from_slice(&7_i16.to_be_bytes());
    data.extend_from_slice(&1.5_f32.to_be_bytes());
    data.extend_from_slice(&[0xff, 0x80, 0, 0xff, 0xff, 0xff, 0xff]);
    data.extend_from_slice(&5_i64.to_be_bytes());
    data.extend_from_slice(&8_i16.to_be_bytes());
    data.extend_from_slice(&f32::NAN.to_be_bytes());
    let (fields, batch) = read(&file(&cards, &texts, &data), false).unwrap();
    let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["a", "a_2", "col3", "col4", "col5", "col6"]);
    let whole = |value| Some(Value::Whole(value));
    let expected = Table {
        fields: sample::fields(&[Type::Short, Type::Int, Type::Long, Type::Long, Type::Double, Type::Double]),
        columns: vec![
            vec![whole(-128), whole(127)],
            vec![whole(32_767), whole(0)],
            vec![whole(4_294_967_295), None],
            vec![whole(-1), whole(5)],
            vec![None, Some(Value::Real(17.0))],
            vec![Some(Value::Real(4.5)), None],
        ],
        rows: 2,
    };
    sample::assert_same(&batch.unwrap(), &expected.batch());
}

#[test]
fn unsigned_numbers_of_64_bits_are_read_as_far_as_they_fit() {
    let texts = [("TFORM1", "K")];
    let data = [0x80_u8, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut bytes = file(&[("NAXIS1", 8), ("NAXIS2", 2), ("TFIELDS", 1)], &texts, &data);
    // The offset needs more digits than 64 bits have.
    let at = String::from_utf8_lossy(&bytes).find("TFORM1").unwrap();
    let mut card = format!("{:<80}", "TZERO1  =  9223372036854775808").into_bytes();
    card.extend_from_slice(&bytes[at..at + 80]);
    bytes[at..at + 160].copy_from_slice(&card);
    let end = at + 160;
    bytes[end..end + 80].copy_from_slice(format!("{:<80}", "END").as_bytes());
    let error = read(&bytes, true).unwrap_err();
    assert_eq!(
        error,
        "row 2, column col1: \"9223372036854775808\" is not a whole number of 64 bits with a sign, the widest that \
         ADQL has"
    );
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    for is_file in [false, true] {
        let error = read(bytes, is_file).expect_err(expected);
        assert!(error.contains(expected), "{error:?} says {expected:?}");
    }
}

#[test]
fn wrong_headers_are_told() {
    let cards = |change: &[(&'static str, i64)], without: &str| {
        let mut cards = vec![("NAXIS1", 4), ("NAXIS2", 2), ("TFIELDS", 1)];
        cards.retain(|(keyword, _)| {
            !change.iter().any(|(changed, _)| changed == keyword) && *keyword != without
        });
        cards.extend_from_slice(change);
        cards
    };
    let check = |change: &[(&'static str, i64)], without, form, expected| {
        refused(&file(&cards(change, without), &[("TFORM1", form)], &[0; 8]), expected);
    };
    check(&[], "NAXIS1", "J", "header 1: NAXIS1 is missing");
    check(&[], "TFIELDS", "J", "TFIELDS is missing");
    check(&[], "NAXIS2", "J", "NAXIS2 is missing");
    check(&[("NAXIS1", 5)], "", "J", "NAXIS1 says that a row has 5 bytes, but the columns have 4");
    check(&[("NAXIS1", 3)], "", "J", "NAXIS1 says that a row has 3 bytes, but the columns have 4");
    check(&[("NAXIS1", -4)], "", "J", "NAXIS1 is -4, less than 0");
    check(&[("NAXIS2", -1)], "", "J", "NAXIS2 is -1, less than 0");
    check(&[("TFIELDS", 1000)], "", "J", "TFIELDS is 1000, more than 999");
    check(&[("TFIELDS", 2)], "", "J", "TFORM2 is missing");
    check(&[("PCOUNT", -1)], "", "J", "PCOUNT is -1");
    check(&[("GCOUNT", 2)], "", "J", "GCOUNT is 2, but 1 in every table");
    check(&[("BITPIX", 16)], "", "J", "BITPIX is 16");
    check(&[("THEAP", 4)], "", "J", "THEAP is 4, which is not between");
    check(&[], "", "Y", "TFORM1 is \"Y\", which is no form");
    check(&[], "", "9223372036854775807M", "which is too large");
    check(&[("NAXIS1", 1 << 40)], "", "1099511627776B", "a row in bytes or elements exceeds the limit");
    check(&[("NAXIS1", 0)], "", "0J", "the 2 rows have no bytes");
    check(&[("NAXIS2", i64::MAX)], "", "J", "larger than 64 bits can count");
    check(&[("NAXIS2", 1 << 40)], "", "J", "the document ends inside the table's data");
    refused(b"", "the file has no table");
    refused(b"SIMPLE  =                    T", "the document ends inside a header");
    refused(&[b' '; BLOCK * 2], "the document ends inside a header");
}

#[test]
fn arrays_must_lie_in_the_heap() {
    let check = |count: u32, at: u32, expected: &str| {
        let mut data = count.to_be_bytes().to_vec();
        data.extend_from_slice(&at.to_be_bytes());
        data.extend_from_slice(&[0; 8]);
        let cards = [("NAXIS1", 8), ("NAXIS2", 1), ("TFIELDS", 1), ("PCOUNT", 8)];
        refused(&file(&cards, &[("TFORM1", "1PJ(2)")], &data), expected);
    };
    check(3, 0, "row 1, column col1: an array of 3 elements at 0 does not lie in the heap of 8 bytes");
    check(1, 5, "does not lie in the heap");
    check(u32::MAX, u32::MAX, "does not lie in the heap");
}

#[test]
fn a_small_heap_does_not_make_an_endless_table() {
    // Sixty-four thousand rows share one array of a thousand bytes.
    let mut data = Vec::new();
    for _ in 0..64_000 {
        data.extend_from_slice(&1000_u32.to_be_bytes());
        data.extend_from_slice(&0_u32.to_be_bytes());
    }
    data.resize(data.len() + 1000, 0);
    let cards = [("NAXIS1", 8), ("NAXIS2", 64_000), ("TFIELDS", 1), ("PCOUNT", 1000)];
    refused(&file(&cards, &[("TFORM1", "1PB")], &data), "the shared use of the heap");
}

#[test]
fn ascii_tables_are_read() {
    let row = |id: &str, real: &str, name: &str, last: &str| format!("{id:>5}{real:>7}{name:<3}{last:>5} ");
    let rows = row("12", "1.5", "abc", "-3") + &row("", "-2.5D1", "", "9999");
    let cards = [
        ("NAXIS1", 21),
        ("NAXIS2", 2),
        ("TFIELDS", 4),
        ("TBCOL1", 1),
        ("TBCOL2", 6),
        ("TBCOL3", 13),
        ("TBCOL4", 16),
        ("TSCAL2", 2),
    ];
    let texts =
        [("TFORM1", "I5"), ("TFORM2", "D7.1"), ("TFORM3", "A3"), ("TFORM4", "I5"), ("TNULL4", "9999")];
    let make = |rows: &str| {
        let bytes = file(&cards, &texts, rows.as_bytes());
        let at = String::from_utf8_lossy(&bytes).find("BINTABLE").unwrap();
        [&bytes[..at], b"TABLE   ".as_slice(), &bytes[at + 8..]].concat()
    };
    let (fields, batch) = read(&make(&rows), true).unwrap();
    assert_eq!(fields[2].size, Size::Variable(Some(3)));
    let expected = Table {
        fields: sample::fields(&[Type::Int, Type::Double, Type::Text, Type::Int]),
        columns: vec![
            vec![Some(Value::Whole(12)), None],
            vec![Some(Value::Real(3.0)), Some(Value::Real(-50.0))],
            vec![text("abc"), None],
            vec![Some(Value::Whole(-3)), None],
        ],
        rows: 2,
    };
    sample::assert_same(&batch.unwrap(), &expected.batch());
    refused(&make(&rows.replace("1.5", "1,5")), "row 1, column col2: \"1,5\" is not a real number");
}
