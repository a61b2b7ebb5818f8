//! Small documents, byte for byte.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use trifid_archive_adql::types::{Field, Type};

use crate::batch;
use crate::votable::*;
use crate::write::{End, Head, Info, TableWriter, WriteError};

fn written(options: Options, head: Head, columns: Vec<ArrayRef>, end: &End) -> Result<String, WriteError> {
    let rows = columns.first().map_or(0, |column| column.len());
    let batch = batch::batch(&head.fields.clone(), columns, rows).unwrap();
    let mut writer = Box::new(Writer::new(options, head));
    let mut out = Vec::new();
    writer.begin(&mut out);
    writer.rows(&batch, 0..rows, &mut out)?;
    writer.finish(end, &mut out);
    Ok(String::from_utf8(out).unwrap())
}

fn stars() -> (Head, Vec<ArrayRef>) {
    let mut id = Field::new("id", Type::Int);
    id.ucd = Some("meta.id;meta.main".into());
    id.description = Some("number & name".into());
    let mut ra = Field::new("ra", Type::Double);
    ra.unit = Some("deg".into());
    let name = Field::new("na\"me", Type::Text);
    let mut head = Head::new([id, ra, name].into());
    head.infos.push(Info::new("QUERY", "SELECT * FROM t WHERE a < 1"));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(7), None])),
        Arc::new(Float64Array::from(vec![Some(-0.0), Some(f64::INFINITY)])),
        Arc::new(StringArray::from(vec![Some("a<b"), None])),
    ];
    (head, columns)
}

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3">
<RESOURCE type="results">
<INFO name="QUERY_STATUS" value="OK"/>
<INFO name="QUERY" value="SELECT * FROM t WHERE a &lt; 1"/>
<TABLE>
<FIELD name="id" datatype="int" ucd="meta.id;meta.main"><DESCRIPTION>number &amp; name</DESCRIPTION></FIELD>
<FIELD name="ra" datatype="double" unit="deg"/>
<FIELD name="na&quot;me" datatype="char" arraysize="*"/>
"#;

#[test]
fn a_tabledata_document() {
    let (head, columns) = stars();
    let options = Options { serialization: Serialization::TableData, version: Version::V1_4 };
    let expected = format!(
        "{HEAD}<DATA><TABLEDATA>
<TR><TD>7</TD><TD>-0.0</TD><TD>a&lt;b</TD></TR>
<TR><TD></TD><TD>+Inf</TD><TD></TD></TR>
</TABLEDATA></DATA>
</TABLE>
</RESOURCE>
</VOTABLE>
"
    );
    assert_eq!(written(options, head, columns, &End::Complete).unwrap(), expected);
}

#[test]
fn a_binary2_document() {
    let (head, columns) = stars();
    let expected = format!(
        "{HEAD}<DATA><BINARY2><STREAM encoding=\"base64\">
AAAAAAeAAAAAAAAAAAAAAANhPGKgAAAAAH/wAAAAAAAAAAAAAA==
</STREAM></BINARY2></DATA>
</TABLE>
<INFO name=\"QUERY_STATUS\" value=\"OVERFLOW\"/>
</RESOURCE>
</VOTABLE>
"
    );
    assert_eq!(written(Options::default(), head, columns, &End::Overflow).unwrap(), expected);
}

#[test]
fn binary_gives_up_a_value_for_null() {
    let options = Options { serialization: Serialization::Binary, version: Version::V1_3 };
    let head = || Head::new([Field::new("a", Type::Long), Field::new("b", Type::UnsignedByte)].into());
    let bytes: ArrayRef = Arc::new(arrow_array::UInt8Array::from(vec![Some(255), None]));
    let columns = vec![Arc::new(Int64Array::from(vec![None, Some(1)])) as ArrayRef, bytes];
    let document = written(options, head(), columns, &End::Failed("it\0 broke".into())).unwrap();
    assert!(
        document.contains(r#"<FIELD name="a" datatype="long"><VALUES null="-9223372036854775808"/></FIELD>"#)
    );
    assert!(document.contains(r#"<FIELD name="b" datatype="short"><VALUES null="-32768"/></FIELD>"#));
    assert!(document.contains("\ngAAAAAAAAAAA/wAAAAAAAAABgAA=\n"), "{document}");
    assert!(
        document.contains("<INFO name=\"QUERY_STATUS\" value=\"ERROR\">it\u{FFFD} broke</INFO>\n</RESOURCE>")
    );

    let bytes: ArrayRef = Arc::new(arrow_array::UInt8Array::from(vec![Some(0)]));
    let clash = vec![Arc::new(Int64Array::from(vec![i64::MIN])) as ArrayRef, bytes];
    let refused = written(options, head(), clash, &End::Complete).unwrap_err();
    assert!(matches!(refused, WriteError::Value { row: 0, ref column, .. } if &**column == "a"));
}

#[test]
fn an_error_document() {
    let mut out = Vec::new();
    error_document(Version::V1_5, "a < b\n\u{1b}[31m", &[Info::new("LINE", "1")], &mut out);
    let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<VOTABLE version=\"1.5\" xmlns=\"http://www.ivoa.net/xml/VOTable/v1.3\">
<RESOURCE type=\"results\">
<INFO name=\"QUERY_STATUS\" value=\"ERROR\">a &lt; b
\u{FFFD}[31m</INFO>
<INFO name=\"LINE\" value=\"1\"/>
</RESOURCE>
</VOTABLE>
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_batch_of_another_type_is_refused() {
    let (head, _) = stars();
    let other = [Field::new("id", Type::Long), Field::new("ra", Type::Double), Field::new("n", Type::Text)];
    let mut writer = Writer::new(Options::default(), head);
    let refused = writer.rows(&batch::empty(&other), 0..0, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, WriteError::Physical { ref column, .. } if &**column == "id"));
    let refused = writer.rows(&batch::empty(&other[..2]), 0..0, &mut Vec::new());
    assert!(matches!(refused, Err(WriteError::Physical { .. })));
}

#[test]
fn ids_are_unique_and_valid() {
    let fields = ["a", "2mass", "a b", "a_b", "-", "é"].map(|name| Field::new(name, Type::Int));
    let ids: Vec<_> = (0..fields.len()).map(|at| field_id(&fields, at)).collect();
    assert_eq!(ids, ["a", "_2mass", "a_b..2", "a_b..3", "_-", "_"]);
    let rendered = String::from_utf8(render_fields(&fields, Serialization::Binary2, true).to_vec()).unwrap();
    assert!(
        rendered.starts_with(
            "<FIELD name=\"a\" ID=\"a\" datatype=\"int\"/>\n<FIELD name=\"2mass\" ID=\"_2mass\""
        )
    );
}

#[test]
fn the_columns_of_a_plan_are_rendered_once() {
    let (mut head, columns) = stars();
    let again = written(Options::default(), head.clone(), columns.clone(), &End::Complete).unwrap();
    head.rendered = Some(render_fields(&head.fields, Serialization::Binary2, false));
    assert_eq!(written(Options::default(), head, columns, &End::Complete).unwrap(), again);
}

#[test]
fn descriptors_follow_the_results() {
    let (mut head, columns) = stars();
    head.descriptors = Some(Arc::from(b"<RESOURCE type=\"meta\" utype=\"adhoc:service\"/>\n".as_slice()));
    let document = written(Options::default(), head, columns, &End::Complete).unwrap();
    assert!(document.contains("<FIELD name=\"ra\" ID=\"ra\" datatype=\"double\" unit=\"deg\"/>"));
    assert!(
        document.ends_with("</RESOURCE>\n<RESOURCE type=\"meta\" utype=\"adhoc:service\"/>\n</VOTABLE>\n")
    );
}
