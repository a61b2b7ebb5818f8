//! JSON: one object that holds the columns, the rows as arrays, and how the result ended.
//!
//! ```text
//! {"metadata":[{"name":"ra","datatype":"double","unit":"deg","ucd":"pos.eq.ra;meta.main"},...],
//! "data":[
//! [1.5,"x",null],
//! [2.5,"y",[1,2]]
//! ],
//! "overflow":false}
//! ```
//!
//! `datatype`, `arraysize` and `xtype` are VOTable's (VOTable 1.5 section 4.1); what a column does not say is
//! left out. Numbers are numbers in the fewest digits that read back, and JSON's have no limit: a reader in
//! JavaScript keeps 53 bits of a `long`. NaN and the infinities, which JSON lacks, are the strings `"NaN"`,
//! `"Infinity"` and `"-Infinity"`, as `Number()` and `float()` take them, so that NaN is not taken for NULL.
//! Arrays and geometries are arrays of numbers, complex numbers pairs, timestamps and regions strings. A
//! result that broke off has the member `error` at its end, and is well-formed JSON all the same.

use std::ops::Range;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::{Field, Type};

use crate::cell;
use crate::time::Timestamp;
use crate::votable::column::{Cells, Column, items_of};
use crate::votable::{Serialization, declare};
use crate::write::{End, Head, TableWriter, WriteError};

/// JSON under way.
#[derive(Debug)]
pub struct Writer {
    head: Head,
    is_first: bool,
}

impl Writer {
    /// A writer of this table.
    pub fn new(head: Head) -> Self {
        Self { head, is_first: true }
    }
}

impl TableWriter for Writer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.push(b'{');
        about(&self.head, out);
        out.extend_from_slice(b"\"metadata\":[");
        for (at, field) in self.head.fields.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\n" } else { b",\n" });
            column(field, out);
        }
        out.extend_from_slice(b"],\n\"data\":[");
    }

    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let columns = cell::columns(&self.head.fields, batch)?;
        for row in rows {
            out.extend_from_slice(if self.is_first { b"\n[" } else { b",\n[" });
            self.is_first = false;
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                value(column, row, out);
            }
            out.push(b']');
        }
        Ok(())
    }

    fn finish(self: Box<Self>, end: &End, out: &mut Vec<u8>) {
        let overflow: &[u8] = if *end == End::Overflow { b"true" } else { b"false" };
        out.extend_from_slice(b"\n],\n\"overflow\":");
        out.extend_from_slice(overflow);
        if let End::Failed(message) = end {
            member("error", message, true, out);
        }
        out.extend_from_slice(b"}\n");
    }
}

/// What is said of the table, before the columns.
fn about(head: &Head, out: &mut Vec<u8>) {
    for (name, value) in [("name", &head.name), ("description", &head.description)] {
        if let Some(value) = value {
            member(name, value, false, out);
            out.extend_from_slice(b",\n");
        }
    }
    if head.infos.is_empty() {
        return;
    }
    out.extend_from_slice(b"\"infos\":[");
    for (at, info) in head.infos.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"{" } else { b",{" });
        member("name", &info.name, false, out);
        member("value", &info.value, true, out);
        if let Some(text) = &info.text {
            member("text", text, true, out);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"],\n");
}

fn column(field: &Field, out: &mut Vec<u8>) {
    let declared = declare::declare(field, Serialization::TableData);
    out.push(b'{');
    member("name", &field.name, false, out);
    member("datatype", declared.datatype, true, out);
    let xtype = match field.ty {
        // Arrays of strings are arrays here.
        Type::Array(_) => field.xtype.as_deref(),
        _ => declared.xtype.as_deref(),
    };
    let optional = [
        ("arraysize", declared.arraysize.as_deref()),
        ("xtype", xtype),
        ("unit", field.unit.as_deref()),
        ("ucd", field.ucd.as_deref()),
        ("utype", field.utype.as_deref()),
        ("description", field.description.as_deref()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            member(name, value, true, out);
        }
    }
    out.push(b'}');
}

fn member(name: &str, value: &str, is_further: bool, out: &mut Vec<u8>) {
    if is_further {
        out.push(b',');
    }
    cell::json_text(name, out);
    out.push(b':');
    cell::json_text(value, out);
}

fn value(column: &Column<'_>, row: usize, out: &mut Vec<u8>) {
    if column.is_null(row) {
        return out.extend_from_slice(b"null");
    }
    match &column.cells {
        Cells::Text(values) => cell::json_text(values.value(row), out),
        Cells::Float(values) if !values[row].is_finite() => quoted(|out| cell::float(values[row], out), out),
        Cells::Double(values) if !values[row].is_finite() => {
            quoted(|out| cell::double(values[row], out), out);
        }
        Cells::Instant(values) => quoted(|out| Timestamp(values[row]).write(out), out),
        Cells::Tuple(size, items) => array(items, row * size..(row + 1) * size, out),
        Cells::List(offsets, items) => array(items, items_of(offsets, row), out),
        cells => cell::write(cells, row, out),
    }
}

fn array(items: &Column<'_>, range: Range<usize>, out: &mut Vec<u8>) {
    out.push(b'[');
    for item in range.clone() {
        if item > range.start {
            out.push(b',');
        }
        value(items, item, out);
    }
    out.push(b']');
}

fn quoted(write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use trifid_archive_adql::types::Element;

    use super::*;
    use crate::sample::{self, Table, Value};
    use crate::write::Info;

    fn write(head: Head, table: &Table, end: &End) -> String {
        let mut out = Vec::new();
        let mut writer = Box::new(Writer::new(head));
        writer.begin(&mut out);
        writer.rows(&table.batch(), 0..table.rows, &mut out).unwrap();
        writer.finish(end, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn small() -> Table {
        let list = |values: &[Option<Value>]| Some(Value::Items(values.to_vec()));
        let text = |value: &str| Some(Value::Text(value.to_owned()));
        Table {
            fields: sample::fields(&[Type::Double, Type::Text, Type::Array(Element::Text), Type::Timestamp]),
            columns: vec![
                vec![Some(Value::Real(f64::NAN)), None],
                vec![text("a\"b\u{1}"), text("</script>")],
                vec![list(&[text("x"), None]), list(&[])],
                vec![Some(Value::Whole(0)), None],
            ],
            rows: 2,
        }
    }

    #[test]
    fn a_result_is_one_object() {
        let table = small();
        let mut head = Head::new(table.fields.clone());
        head.infos.push(Info::new("QUERY", "SELECT 1"));
        let expected = concat!(
            r#"{"infos":[{"name":"QUERY","value":"SELECT 1"}],"#,
            "\n",
            r#""metadata":["#,
            "\n",
            r#"{"name":"c0","datatype":"double","unit":"km/s","ucd":"meta.id;meta.main","utype":"a:b.c","#,
            r#""description":"what it's for, \"so\" & \u003cmore>"},"#,
            "\n",
            r#"{"name":"c1","datatype":"char","arraysize":"*"},"#,
            "\n",
            r#"{"name":"c2","datatype":"char","arraysize":"*","unit":"km/s","ucd":"meta.id;meta.main","#,
            r#""utype":"a:b.c","description":"what it's for, \"so\" & \u003cmore>"},"#,
            "\n",
            r#"{"name":"c3","datatype":"char","arraysize":"*","xtype":"timestamp"}],"#,
            "\n",
            r#""data":["#,
            "\n",
            r#"["NaN","a\"b\u0001",["x",null],"1970-01-01T00:00:00"],"#,
            "\n",
            r#"[null,"\u003c/script>",[],null]"#,
            "\n",
            "],\n\"overflow\":true}\n",
        );
        assert_eq!(write(head, &table, &End::Overflow), expected);
    }

    #[test]
    fn a_failure_is_told_at_the_end() {
        let table = Table { rows: 0, columns: vec![vec![]; 4], ..small() };
        let text = write(Head::new(table.fields.clone()), &table, &End::Failed(Arc::from("it \"broke\"")));
        assert!(
            text.ends_with("\"data\":[\n],\n\"overflow\":false,\"error\":\"it \\\"broke\\\"\"}\n"),
            "{text}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn every_table_is_well_formed(table in sample::table()) {
            let text = write(Head::new(table.fields.clone()), &table, &End::Complete);
            let parsed = well_formed::check(&text);
            prop_assert!(parsed, "{}", text);
        }
    }

    /// Just enough of RFC 8259 to tell whether a text is one value.
    mod well_formed {
        pub(super) fn check(text: &str) -> bool {
            value(text.trim()).is_some_and(str::is_empty)
        }

        fn value(text: &str) -> Option<&str> {
            let text = text.trim_start();
            match text.chars().next()? {
                '{' => members(&text[1..], '}', |text| {
                    value(string(text.trim_start())?.trim_start().strip_prefix(':')?)
                }),
                '[' => members(&text[1..], ']', value),
                '"' => string(text),
                't' => text.strip_prefix("true"),
                'f' => text.strip_prefix("false"),
                'n' => text.strip_prefix("null"),
                _ => number(text),
            }
        }

        fn members<'a>(
            text: &'a str,
            end: char,
            member: impl Fn(&'a str) -> Option<&'a str>,
        ) -> Option<&'a str> {
            if let Some(rest) = text.trim_start().strip_prefix(end) {
                return Some(rest);
            }
            let mut rest = text;
            loop {
                rest = member(rest)?.trim_start();
                match rest.strip_prefix(',') {
                    Some(more) => rest = more,
                    None => return rest.strip_prefix(end),
                }
            }
        }

        fn string(text: &str) -> Option<&str> {
            let mut rest = text.strip_prefix('"')?.chars();
            loop {
                match rest.next()? {
                    '"' => return Some(rest.as_str()),
                    '\\' => {
                        rest.next()?;
                    }
                    c if c < ' ' => return None,
                    _ => {}
                }
            }
        }

        fn number(text: &str) -> Option<&str> {
            let length =
                text.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(text.len());
            let (number, rest) = text.split_at(length);
            let digits = number.strip_prefix('-').unwrap_or(number);
            let starts_well = digits.starts_with(|c: char| c.is_ascii_digit());
            let zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
            (starts_well && !zero && !digits.ends_with('.') && number.parse::<f64>().is_ok()).then_some(rest)
        }
    }
}
