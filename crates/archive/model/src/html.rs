//! HTML: a result as a table that a browser shows.
//!
//! Either the fragment alone, for a page that has its own frame, or a small page around it. Everything is
//! escaped; a cell that is a web address becomes a link, and nothing else does. What a column says of itself
//! is in the tooltip of its title, its unit below the name. NULL is an empty cell, an empty string too: this
//! is for people.

use std::ops::Range;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use crate::cell;
use crate::votable::column::{Cells, Column};
use crate::write::{End, Head, TableWriter, WriteError};

/// HTML under way.
#[derive(Debug)]
pub struct Writer {
    head: Head,
    is_page: bool,
    rows: u64,
    /// The text of a cell before it is escaped.
    scratch: Vec<u8>,
}

impl Writer {
    /// A writer of the table element and the sentence below it.
    pub fn fragment(head: Head) -> Self {
        Self { head, is_page: false, rows: 0, scratch: Vec::new() }
    }

    /// A writer of a whole page.
    pub fn page(head: Head) -> Self {
        Self { is_page: true, ..Self::fragment(head) }
    }
}

const STYLE: &str = "body{font:14px sans-serif;margin:1em}table{border-collapse:collapse}\
    th,td{border:1px solid #ccc;padding:2px 6px;text-align:left}td.n{text-align:right}\
    th small{display:block;font-weight:normal;color:#555}";

impl TableWriter for Writer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.is_page {
            let title = self.head.name.as_deref().unwrap_or("Result");
            out.extend_from_slice(
                b"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
            );
            escape(title.as_bytes(), out);
            out.extend_from_slice(b"</title><style>");
            out.extend_from_slice(STYLE.as_bytes());
            out.extend_from_slice(b"</style></head><body>\n");
        }
        if let Some(description) = &self.head.description {
            element(b"<p>", description, b"</p>\n", out);
        }
        out.extend_from_slice(b"<table class=\"result\">\n<thead><tr>");
        self.head.fields.iter().for_each(|field| title(field, out));
        out.extend_from_slice(b"</tr></thead>\n<tbody>\n");
    }

    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let columns = cell::columns(&self.head.fields, batch)?;
        self.rows += rows.len() as u64;
        for row in rows {
            out.extend_from_slice(b"<tr>");
            for (column, field) in columns.iter().zip(self.head.fields.iter()) {
                out.extend_from_slice(if field.ty.is_numeric() { b"<td class=\"n\">" } else { b"<td>" });
                if !column.is_null(row) {
                    value(column, row, &mut self.scratch, out);
                }
                out.extend_from_slice(b"</td>");
            }
            out.extend_from_slice(b"</tr>\n");
        }
        Ok(())
    }

    fn finish(self: Box<Self>, end: &End, out: &mut Vec<u8>) {
        out.extend_from_slice(b"</tbody>\n</table>\n<p class=\"end\">");
        cell::integer(self.rows, out);
        out.extend_from_slice(if self.rows == 1 { b" row" } else { b" rows" });
        match end {
            End::Complete => {}
            End::Overflow => out.extend_from_slice(b"; <strong>more rows were withheld (OVERFLOW)</strong>"),
            End::Failed(message) => element(b"; <strong>the query failed: ", message, b"</strong>", out),
        }
        out.extend_from_slice(b"</p>\n");
        if self.is_page {
            out.extend_from_slice(b"</body></html>\n");
        }
    }
}

fn title(field: &Field, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<th scope=\"col\"");
    let said = [&field.description, &field.ucd, &field.utype, &field.xtype];
    let labels = ["", "UCD: ", "utype: ", "xtype: "];
    let mut is_open = false;
    for (label, text) in labels.into_iter().zip(said) {
        let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else { continue };
        out.extend_from_slice(if is_open { b"&#10;" } else { b" title=\"" });
        is_open = true;
        out.extend_from_slice(label.as_bytes());
        escape(text.as_bytes(), out);
    }
    if is_open {
        out.push(b'"');
    }
    element(b">", &field.name, b"", out);
    if let Some(unit) = field.unit.as_deref().filter(|unit| !unit.is_empty()) {
        element(b"<small>", unit, b"</small>", out);
    }
    out.extend_from_slice(b"</th>");
}

fn value(column: &Column<'_>, row: usize, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    match &column.cells {
        Cells::Text(values) if is_address(values.value(row)) => {
            element(b"<a rel=\"noopener noreferrer\" href=\"", values.value(row), b"\">", out);
            element(b"", values.value(row), b"</a>", out);
        }
        Cells::Text(values) => escape(values.value(row).as_bytes(), out),
        Cells::List(_, items) if matches!(items.cells, Cells::Text(_)) => {
            scratch.clear();
            cell::write(&column.cells, row, scratch);
            escape(scratch, out);
        }
        cells => cell::write(cells, row, out),
    }
}

/// Only these schemes: a `javascript:` of someone's table must not become a link.
fn is_address(text: &str) -> bool {
    (text.starts_with("https://") || text.starts_with("http://"))
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn element(before: &[u8], text: &str, after: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(before);
    escape(text.as_bytes(), out);
    out.extend_from_slice(after);
}

/// Appends text so that it is text, in an element as in a quoted attribute.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    let mut plain = 0;
    for (at, &byte) in text.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            b'\'' => b"&#39;",
            // Not allowed in HTML, even as references.
            0..=8 | 11 | 12 | 14..=31 | 127 => "\u{fffd}".as_bytes(),
            _ => continue,
        };
        out.extend_from_slice(&text[plain..at]);
        out.extend_from_slice(escaped);
        plain = at + 1;
    }
    out.extend_from_slice(&text[plain..]);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use trifid_archive_adql::types::Type;

    use super::*;
    use crate::sample::{self, Table, Value};

    fn write(mut writer: Box<Writer>, table: &Table, end: &End) -> String {
        let mut out = Vec::new();
        writer.begin(&mut out);
        writer.rows(&table.batch(), 0..table.rows, &mut out).unwrap();
        writer.finish(end, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_fragment_escapes_and_links() {
        let texts = ["<b>", "https://a.example/?x=1&y=\"", "javascript:alert(1)", "https://a b"];
        let table = Table {
            fields: sample::fields(&[Type::Text]),
            columns: vec![texts.iter().map(|text| Some(Value::Text((*text).to_owned()))).collect()],
            rows: 4,
        };
        let text = write(Box::new(Writer::fragment(Head::new(table.fields.clone()))), &table, &End::Overflow);
        let expected = "<table class=\"result\">\n<thead><tr><th scope=\"col\" \
            title=\"what it&#39;s for, &quot;so&quot; &amp; &lt;more&gt;&#10;UCD: meta.id;meta.main&#10;utype: a:b.c\">\
            c0<small>km/s</small></th></tr></thead>\n<tbody>\n\
            <tr><td>&lt;b&gt;</td></tr>\n\
            <tr><td><a rel=\"noopener noreferrer\" href=\"https://a.example/?x=1&amp;y=&quot;\">\
            https://a.example/?x=1&amp;y=&quot;</a></td></tr>\n\
            <tr><td>javascript:alert(1)</td></tr>\n<tr><td>https://a b</td></tr>\n\
            </tbody>\n</table>\n<p class=\"end\">4 rows; <strong>more rows were withheld (OVERFLOW)</strong></p>\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_page_has_a_frame_and_tells_a_failure() {
        let table = Table { fields: sample::fields(&[Type::Int]), columns: vec![vec![None]], rows: 1 };
        let head = Head { name: Some(Arc::from("a<b")), ..Head::new(table.fields.clone()) };
        let text = write(Box::new(Writer::page(head)), &table, &End::Failed(Arc::from("x & y")));
        assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</body></html>\n"));
        assert!(text.contains("<title>a&lt;b</title>") && text.contains("<td class=\"n\"></td>"));
        assert!(text.contains("1 row; <strong>the query failed: x &amp; y</strong>"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn no_cell_breaks_out(table in sample::table()) {
            let text = write(Box::new(Writer::fragment(Head::new(table.fields.clone()))), &table, &End::Complete);
            prop_assert_eq!(text.matches("<tr>").count(), table.rows + 1);
            prop_assert_eq!(text.matches("</td>").count(), table.rows * table.fields.len());
            let is_bad = |c: char| c.is_ascii_control() && !c.is_whitespace();
            prop_assert!(!text.contains(is_bad));
        }
    }
}
