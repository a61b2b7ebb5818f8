//! Documents as others write them, and documents that are wrong.

use std::fmt::Write as _;

use trifid_archive_adql::types::{Element, Size, Type};

use crate::read::{Fault, ReadError, TableReader};
use crate::votable::*;

/// The rows of a document, printed: a line a row.
fn rows_of(document: &[u8], options: ReadOptions) -> Result<String, ReadError> {
    let mut reader = Reader::new(document, options)?;
    let mut out = String::new();
    while let Some(batch) = reader.next_batch(1000)? {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| cell(&format!("{:?}", column.slice(row, 1))));
            writeln!(out, "{}", cells.collect::<Vec<_>>().join(" | ")).unwrap();
        }
    }
    Ok(out)
}

/// What Arrow prints of an array of one row.
fn cell(debug: &str) -> String {
    let kept = debug.lines().map(str::trim).filter(|line| !line.contains("Array") && !"[],".contains(line));
    kept.collect::<String>().trim_end_matches(',').to_owned()
}

fn table(fields: &str, data: &str) -> String {
    format!(
        "<VOTABLE version=\"1.4\"><RESOURCE><TABLE>{fields}<DATA>{data}</DATA></TABLE></RESOURCE></VOTABLE>"
    )
}

fn check(document: &str, expected: &str) {
    let found = rows_of(document.as_bytes(), ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}: {document}"));
    assert_eq!(found.trim_end(), expected, "{document}");
}

fn fails(document: &str, expected: &str) {
    match rows_of(document.as_bytes(), ReadOptions::default()) {
        Ok(rows) => panic!("read {rows:?} of {document}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{document}"),
    }
}

const TWO: &str = r#"<FIELD name="a" datatype="int"/><FIELD name="b" datatype="char" arraysize="*"/>"#;

#[test]
fn xml_is_read_as_others_write_it() {
    let document = r#"<?xml version='1.0'?>
<!-- a comment with <b> & such -->
<?xml-stylesheet href="x"?>
<vot:VOTABLE xmlns:vot="http://www.ivoa.net/xml/VOTable/v1.3" version="1.3"
  ><vot:DEFINITIONS><vot:COOSYS ID="s" system="ICRS"/></vot:DEFINITIONS>
<vot:RESOURCE><vot:RESOURCE type='meta'><vot:PARAM name="p" datatype="int" value="1"/></vot:RESOURCE>
<vot:RESOURCE><vot:TABLE name='t' nrows="3">
 <vot:DESCRIPTION> about
 it </vot:DESCRIPTION>
 <vot:GROUP><vot:FIELDref ref="c"/><vot:GROUP><vot:PARAM name="x" datatype="int" value="1"/></vot:GROUP></vot:GROUP>
 <vot:FIELD name="a > b" ID="c" datatype="int" ref="s" unit = 'm'><vot:VALUES null="-1"><vot:MIN value="0"/></vot:VALUES><vot:LINK href="x"/></vot:FIELD>
 <vot:FIELD ID="d" datatype="char" arraysize="*" ucd="meta.id"><vot:DESCRIPTION><![CDATA[a<b]]></vot:DESCRIPTION></vot:FIELD>
 <vot:DATA><vot:TABLEDATA>
 <vot:TR> <vot:TD> 12 </vot:TD> <vot:TD>&lt;&#65;&#x42;<![CDATA[<&]]]>]]&gt;<!-- no -->&amp;</vot:TD> </vot:TR>
 <vot:TR><vot:TD>-1</vot:TD><vot:TD/></vot:TR>
 <vot:TR><vot:TD/><vot:TD
 > x </vot:TD></vot:TR>
 </vot:TABLEDATA></vot:DATA></vot:TABLE></vot:RESOURCE></vot:RESOURCE>
 </vot:VOTABLE>
 <!-- end -->
"#;
    check(document, "12 | \"<AB<&]]]>&\"\nnull | null\nnull | \" x \"");
    let reader = Reader::new(document.as_bytes(), ReadOptions::default()).unwrap();
    let [a, d] = reader.fields().as_ref() else { panic!() };
    assert_eq!((&*a.name, a.unit.as_deref()), ("a > b", Some("m")));
    assert_eq!((&*d.name, d.ucd.as_deref(), d.description.as_deref()), ("d", Some("meta.id"), Some("a<b")));
    let about = reader.about();
    assert_eq!((about.name.as_deref(), about.description.as_deref()), (Some("t"), Some("about\n it")));
}

#[test]
fn ends_of_lines_are_line_feeds() {
    let document = table(TWO, "<TABLEDATA><TR><TD>1</TD><TD>a\r\nb\rc&#13;d</TD></TR></TABLEDATA>");
    check(&document, "1 | \"a\\nb\\nc\\rd\"");
}

#[test]
fn every_type_has_its_spellings() {
    let one = |field: &str, cell: &str, expected: &str| {
        let field = format!("<FIELD name=\"x\" {field}/>");
        let data = format!("<TABLEDATA><TR><TD>{cell}</TD></TR></TABLEDATA>");
        check(&table(&field, &data), expected);
    };
    for (cell, expected) in
        [("T", "true"), ("t", "true"), ("1", "true"), ("TruE", "true"), ("0", "false"), ("f", "false")]
    {
        one("datatype='boolean'", cell, expected);
    }
    for cell in ["", " ", "?", " ? "] {
        one("datatype='boolean'", cell, "null");
    }
    one("datatype='short'", "0x7f", "127");
    one("datatype='unsignedByte'", " +255", "255");
    one("datatype='double'", "+Inf", "inf");
    one("datatype='double'", "-1.5E+3", "-1500.0");
    one("datatype='float'", "NaN", "NaN");
    one("datatype='floatComplex'", "1 -2", "1.0,-2.0");
    one("datatype='int' arraysize='*'", "1 2\n3", "1,2,3");
    one("datatype='int' arraysize='1'", "7", "7");
    one("datatype='bit' arraysize='4'", "10 1 1", "true,false,true,true");
    one("datatype='char' arraysize='2x*'", "abcd ", "\"ab\",\"cd\",\"\"");
    one("datatype='char' arraysize='*' xtype='timestamp'", "2020-01-02", "2020-01-02T00:00:00");
    one("datatype='float' arraysize='2' xtype='point'", "0.1 2", "0.1,2.0");
    one("datatype='double' arraysize='*' xtype='polygon'", "1 2 3 4 5 6", "1.0,2.0,3.0,4.0,5.0,6.0");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let data = |rows: &str| table(TWO, &format!("<TABLEDATA>\n{rows}\n</TABLEDATA>"));
    fails(&data("<TR><TD>1</TD></TR>"), "line 2: row 1 has 1 cells, the table 2 columns");
    fails(
        &data("<TR><TD>1</TD><TD/><TD>x</TD></TR>"),
        "line 2: row 1 has more than 2 cells, the table 2 columns",
    );
    fails(&data("<TR><TD>1</TD><TD/><TD/></TR>"), "line 2: row 1 has more than 2 cells, the table 2 columns");
    fails(
        &data("<TR><TD>1</TD><TD/></TR>\n<TR><TD>1.5</TD><TD/></TR>"),
        "line 3 (row 2, column a): \"1.5\" is not an int",
    );
    fails(&data("<TR><TD>1</TD><TD><b>x</b></TD></TR>"), "line 2: a TD holds an element");
    fails(
        &data("<TR><TD>1</TD><TD encoding='base64'>x</TD></TR>"),
        "line 2: a TD with an encoding is not supported",
    );
    fails(&data("<TR><TD>1</TD><TD>&nbsp;</TD></TR>"), "line 2: a reference to an unknown entity");
    fails(&data("<TR><TD>1</TD><TD>x</TR>"), "line 2: <TD> is closed by </TR>");
    fails(
        &data("<TR><TD>1</TD><TD>x</TD></TR>").replace("<TABLE>", "<TABLE nrows='2'>"),
        "line 3: nrows announces 2 rows, there are 1",
    );
    let field = |attributes: &str| table(&format!("<FIELD name='x' {attributes}/>"), "<TABLEDATA/>");
    fails(&field(""), "line 1: column x has no datatype");
    fails(&field("datatype='string'"), "line 1: column x: datatype \"string\" is not known");
    fails(&field("datatype='int' arraysize='*x2'"), "line 1: column x: arraysize \"*x2\" is not known");
    let array = table(
        "<FIELD name='x' datatype='int' arraysize='2'/>",
        "<TABLEDATA><TR><TD>1 2 3</TD></TR></TABLEDATA>",
    );
    fails(&array, "line 1 (row 1, column x): the cell has 3 items, its column declares 2");
    fails(
        "<!DOCTYPE VOTABLE [<!ENTITY a 'b'>]><VOTABLE/>",
        "line 1: a document type declaration is refused: a VOTable has none",
    );
    fails("<html><body/></html>", "line 1: the document is a \"html\", not a VOTABLE");
    fails("ra,dec\n1,2\n", "line 1: this is not XML");
    fails("", "line 1: the document ends inside nothing: there is no element");
    fails("<VOTABLE/>", "line 1: the document holds no table");
    fails("<VOTABLE/><VOTABLE/>", "line 1: a second element follows the document");
    fails(
        &table(TWO, "<FITS><STREAM/></FITS>"),
        "line 1: FITS within VOTable is not supported: send the FITS file itself, or TABLEDATA",
    );
    fails(
        &table(TWO, "<BINARY><STREAM href='http://x/'/></BINARY>"),
        "line 1: a STREAM elsewhere is not followed: send its bytes in the document",
    );
    fails(
        &table(TWO, "<BINARY><STREAM encoding='gzip'/></BINARY>"),
        "line 1: a STREAM that is not in base64 is not supported",
    );
}

#[test]
fn binary_may_not_be_cut_short() {
    let data =
        |text: &str| table(TWO, &format!("<BINARY>\n<STREAM encoding='base64'>{text}</STREAM></BINARY>"));
    check(&data("AAAABwAAAAFh"), "7 | \"a\"");
    check(&data(" AAAABw\r\nAA <!-- half -->\nAAFh <![CDATA[AAAABwAA]]>AAA= "), "7 | \"a\"\n7 | null");
    check(&data(""), "");
    fails(&data("AAAABwAAAAI="), "row 1: the document ends inside a row");
    fails(&data("AAAABwAAAAFhAA=="), "row 2: the document ends inside a row");
    fails(&data("AAAABwAAAAF"), "line 2: the base64 text is cut short");
    fails(&data("AAAABw#AAAF"), "line 2: '#' does not belong into base64 text there");
    fails(&data("AAAAB/////8="), "row 1, column b: a cell in bytes exceeds the limit of 16777216");
}

#[test]
fn nulls_of_binary_are_values() {
    let fields = "<FIELD name='a' datatype='unsignedByte'><VALUES null='7'/></FIELD>\
        <FIELD name='b' datatype='float'/><FIELD name='c' datatype='boolean'/>\
        <FIELD name='d' datatype='unicodeChar' arraysize='2'/><FIELD name='e' datatype='short' arraysize='2'>\
        <VALUES null='-1'/></FIELD>";
    // 7, NaN, '?', two NULs, -1 -1; then 8, 1.0, 'F', 'é' and a NUL, -1 0.
    let rows = "B3/AAAA/AAAAAP////8IP4AAAEYA6QAA//8AAA==";
    let document =
        |kind: &str| table(fields, &format!("<{kind}><STREAM encoding='base64'>{rows}</STREAM></{kind}>"));
    check(&document("BINARY"), "null | null | null | null | null\n8 | 1.0 | false | \"é\" | null,0");
    // The same bytes after a mask of 0x58: b, d and e are null.
    let masked = "<BINARY2><STREAM encoding='base64'>WAd/wAAAPwAAAAD/////</STREAM></BINARY2>";
    check(&table(fields, masked), "null | null | null | null | null");
}

#[test]
fn documents_may_be_in_other_encodings() {
    let document = table(TWO, "<TABLEDATA><TR><TD>1</TD><TD>é</TD></TR></TABLEDATA>");
    let latin = format!("<?xml version='1.0' encoding='ISO-8859-1'?>{document}");
    let latin = latin.chars().map(|c| c as u8).collect::<Vec<_>>();
    let wide = document.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    for bytes in [latin, wide] {
        assert_eq!(rows_of(&bytes, ReadOptions::default()).unwrap(), "1 | \"é\"\n");
    }
    let broken = document
        .replace('é', "\u{1}")
        .into_bytes()
        .iter()
        .map(|&b| if b == 1 { 0xE9 } else { b })
        .collect::<Vec<_>>();
    let error = rows_of(&broken, ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "line 1 (row 1, column b): \"\u{FFFD}\" is not UTF-8");
}

#[test]
fn one_of_several_tables_is_read() {
    let part = |id: &str, cell: &str| {
        format!(
            "<TABLE ID='{id}'><FIELD name='{id}' datatype='int'/><DATA><TABLEDATA><TR><TD>{cell}</TD></TR></TABLEDATA></DATA></TABLE>"
        )
    };
    let bare = "<TABLE><FIELD name='n' datatype='int'/></TABLE>";
    let copy = "<TABLE ref='p'><DATA><TABLEDATA><TR><TD>3</TD></TR></TABLEDATA></DATA></TABLE>";
    let document =
        format!("<VOTABLE><RESOURCE>{bare}{}{}{copy}</RESOURCE></VOTABLE>", part("p", "1"), part("q", "2"));
    for (table, expected) in [(0, "1\n"), (1, "2\n"), (2, "3\n")] {
        let options = ReadOptions { table, ..ReadOptions::default() };
        assert_eq!(rows_of(document.as_bytes(), options).unwrap(), expected);
    }
    let options = ReadOptions { table: 3, ..ReadOptions::default() };
    let error = rows_of(document.as_bytes(), options).unwrap_err().to_string();
    assert_eq!(error, "line 1: the document holds 3 tables, not a number 4");
    check(&format!("<VOTABLE><RESOURCE>{bare}</RESOURCE></VOTABLE>"), "");
}

#[test]
fn types_follow_xtypes_and_sizes() {
    let fields = "<FIELD name='' datatype='char' arraysize='8x3'/><FIELD datatype='short' arraysize='2x3'/>\
        <FIELD name='r' datatype='char' arraysize='*' xtype='adql:REGION'/><FIELD name='i' datatype='double' arraysize='2' xtype='interval'/>";
    let document = table(fields, "<TABLEDATA/>");
    let reader = Reader::new(document.as_bytes(), ReadOptions::default()).unwrap();
    let found = reader
        .fields()
        .iter()
        .map(|field| (field.name.to_string(), field.ty, field.size.clone()))
        .collect::<Vec<_>>();
    let expected = [
        ("column_1".to_owned(), Type::Array(Element::Text), Size::Shape([8].into(), Some(3))),
        ("column_2".to_owned(), Type::Array(Element::Short), Size::Shape([2].into(), Some(3))),
        ("r".to_owned(), Type::Region, Size::Variable(None)),
        ("i".to_owned(), Type::Array(Element::Double), Size::Fixed(2)),
    ];
    assert_eq!(found, expected);
    assert_eq!(reader.fields()[3].xtype.as_deref(), Some("interval"));
}

#[test]
fn nan_may_be_null() {
    let document =
        table("<FIELD name='x' datatype='float'/>", "<TABLEDATA><TR><TD>NaN</TD></TR></TABLEDATA>");
    let options = ReadOptions { nan_is_null: true, ..ReadOptions::default() };
    assert_eq!(rows_of(document.as_bytes(), options).unwrap(), "null\n");
    check(&document, "NaN");
}

#[test]
fn no_beginning_of_a_document_is_a_document() {
    let tabledata = table(TWO, "<TABLEDATA><TR><TD>1</TD><TD>&amp;<![CDATA[x]]></TD></TR></TABLEDATA>");
    let binary = table(TWO, "<BINARY2><STREAM encoding='base64'>AAAAAAcAAAABYQ==</STREAM></BINARY2>");
    for document in [tabledata, binary] {
        check(&document, if document.contains("BINARY2") { "7 | \"a\"" } else { "1 | \"&x\"" });
        for end in 0..document.len() {
            assert!(
                rows_of(&document.as_bytes()[..end], ReadOptions::default()).is_err(),
                "{}",
                &document[..end]
            );
        }
    }
}

#[test]
fn everything_is_bounded() {
    let deep = format!("<VOTABLE>{}", "<RESOURCE>".repeat(limits::DEPTH));
    let wide = format!("<VOTABLE><INFO name='{}", "a".repeat(limits::TAG_BYTES + (64 << 10)));
    let many = table(&"<FIELD name='a' datatype='int'/>".repeat(limits::FIELDS + 1), "<TABLEDATA/>");
    let long = table(TWO, &format!("<TABLEDATA><TR><TD/><TD>&amp;{}", "a".repeat(limits::CELL_BYTES + 1)));
    let huge = table(
        "<FIELD name='a' datatype='double' arraysize='99999999x99999'/>",
        "<BINARY><STREAM encoding='base64'/></BINARY>",
    );
    for document in [deep, wide, many, long, huge] {
        let error = rows_of(document.as_bytes(), ReadOptions::default()).unwrap_err();
        assert!(matches!(error.fault, Fault::Limit { .. }), "{error}");
    }
}

#[test]
fn a_batch_is_bounded_by_its_bytes() {
    let row = format!("<TR><TD>1</TD><TD>{}</TD></TR>", "x".repeat(3 << 20));
    let document = table(TWO, &format!("<TABLEDATA>{}</TABLEDATA>", row.repeat(5)));
    let mut reader = Reader::new(document.as_bytes(), ReadOptions::default()).unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = reader.next_batch(1000).unwrap() {
        sizes.push(batch.num_rows());
    }
    assert_eq!(sizes, [3, 2]);
}
