//! Text: a table with its columns below each other, for a terminal.
//!
//! ```text
//!  hip |     ra | name
//!      |    deg |
//! -----+--------+--------
//!    1 | 0.0009 | first
//!    2 | 0.0037 |
//! (2 rows; more were withheld)
//! ```
//!
//! The widths come from the first rows, which are held back until there are [`TEXT_ROWS`] of them or their
//! text passes [`TEXT_BYTES`]; a wider cell that comes later widens its column from there on. Width is
//! counted in code points, so scripts of double width stand crooked. Characters that would move the cursor or
//! change the terminal are replaced: a table of strangers must not be able to write to someone's screen at
//! will. NULL is blank.

use std::ops::Range;

use arrow_array::RecordBatch;

use crate::cell;
use crate::limits::{TEXT_BYTES, TEXT_ROWS};
use crate::votable::column::Column;
use crate::write::{End, Head, TableWriter, WriteError};

/// Text under way.
#[derive(Debug)]
pub struct Writer {
    head: Head,
    /// Whether a column's cells stand to the right.
    is_number: Vec<bool>,
    widths: Vec<usize>,
    cut: Option<usize>,
    /// Rows held back: nothing any more once the widths are decided.
    held: Option<Vec<Row>>,
    held_bytes: usize,
    rows: u64,
}

/// The cells of a row, one after the other, and where each ends.
#[derive(Debug, Default)]
struct Row {
    text: String,
    ends: Vec<usize>,
}

impl Row {
    fn cells(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }
}

impl Writer {
    /// A writer of this table that cuts nothing.
    pub fn new(head: Head) -> Self {
        let is_number = head.fields.iter().map(|field| field.ty.is_numeric()).collect();
        let titles = head.fields.iter().map(|field| {
            let unit = field.unit.as_deref().map_or(0, |unit| clean(unit).chars().count());
            clean(&field.name).chars().count().max(unit)
        });
        let widths = titles.collect();
        Self { head, is_number, widths, cut: None, held: Some(Vec::new()), held_bytes: 0, rows: 0 }
    }

    /// A writer that cuts cells longer than so many characters; `…` stands where something is missing.
    pub fn with_cut(head: Head, characters: usize) -> Self {
        Self { cut: Some(characters.max(1)), ..Self::new(head) }
    }

    fn row(&self, columns: &[Column<'_>], row: usize, scratch: &mut Vec<u8>) -> Row {
        let mut cells = Row::default();
        for column in columns {
            scratch.clear();
            if !column.is_null(row) {
                cell::write(&column.cells, row, scratch);
            }
            self.push(&String::from_utf8_lossy(scratch), &mut cells.text);
            cells.ends.push(cells.text.len());
        }
        cells
    }

    fn push(&self, text: &str, out: &mut String) {
        match self.cut {
            Some(cut) if text.chars().nth(cut).is_some() => {
                out.extend(text.chars().take(cut - 1).map(printable));
                out.push('…');
            }
            _ => out.extend(text.chars().map(printable)),
        }
    }

    fn widen(&mut self, row: &Row) {
        for (width, cell) in self.widths.iter_mut().zip(row.cells()) {
            *width = (*width).max(cell.chars().count());
        }
    }

    /// Decides the widths and lets the held rows go.
    fn release(&mut self, out: &mut Vec<u8>) {
        let Some(held) = self.held.take() else { return };
        held.iter().for_each(|row| self.widen(row));
        self.titles(out);
        held.iter().for_each(|row| self.line(row.cells(), out));
    }

    fn titles(&self, out: &mut Vec<u8>) {
        let names: Vec<String> = self.head.fields.iter().map(|field| clean(&field.name)).collect();
        self.line(names.iter().map(String::as_str), out);
        let units = self.head.fields.iter().map(|field| field.unit.as_deref().map(clean).unwrap_or_default());
        let units: Vec<String> = units.collect();
        if units.iter().any(|unit| !unit.is_empty()) {
            self.line(units.iter().map(String::as_str), out);
        }
        for (at, width) in self.widths.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"-" } else { b"+-" });
            out.resize(out.len() + width + usize::from(at + 1 < self.widths.len()), b'-');
        }
        out.push(b'\n');
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        for (at, cell) in cells.enumerate() {
            out.extend_from_slice(if at == 0 { b" " } else { b"| " });
            let (width, is_last) = (self.widths[at], at + 1 == self.widths.len());
            let missing = width - cell.chars().count().min(width);
            if self.is_number[at] {
                out.resize(out.len() + missing, b' ');
            }
            out.extend_from_slice(cell.as_bytes());
            if !self.is_number[at] && !is_last {
                out.resize(out.len() + missing, b' ');
            }
            if !is_last {
                out.push(b' ');
            }
        }
        while out.last() == Some(&b' ') {
            out.pop();
        }
        out.push(b'\n');
    }
}

impl TableWriter for Writer {
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let columns = cell::columns(&self.head.fields, batch)?;
        self.rows += rows.len() as u64;
        let mut scratch = Vec::new();
        for row in rows {
            let cells = self.row(&columns, row, &mut scratch);
            let Some(held) = &mut self.held else {
                self.widen(&cells);
                self.line(cells.cells(), out);
                continue;
            };
            self.held_bytes += cells.text.len() + cells.ends.len();
            held.push(cells);
            if held.len() >= TEXT_ROWS || self.held_bytes >= TEXT_BYTES {
                self.release(out);
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, end: &End, out: &mut Vec<u8>) {
        self.release(out);
        out.push(b'(');
        cell::integer(self.rows, out);
        out.extend_from_slice(if self.rows == 1 { b" row" } else { b" rows" });
        match end {
            End::Complete => {}
            End::Overflow => out.extend_from_slice(b"; more were withheld"),
            End::Failed(message) => {
                out.extend_from_slice(b"; the query failed: ");
                out.extend_from_slice(clean(message).as_bytes());
            }
        }
        out.extend_from_slice(b")\n");
    }
}

fn clean(text: &str) -> String {
    text.chars().map(printable).collect()
}

/// The character, or what stands for one that is not to reach a terminal: controls, and the marks that turn
/// the direction of text.
fn printable(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
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

    fn table(ids: &[i64], names: &[&str]) -> Table {
        Table {
            fields: sample::fields(&[Type::Int, Type::Text, Type::Double]),
            columns: vec![
                ids.iter().map(|&id| Some(Value::Whole(id))).collect(),
                names.iter().map(|&name| Some(Value::Text(name.to_owned()))).collect(),
                ids.iter().map(|&id| (id != 2).then_some(Value::Real(0.5))).collect(),
            ],
            rows: ids.len(),
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        let table = table(&[1, 2, 30_000], &["a", "\u{1b}[2Jx\ny", "äöü"]);
        let text = write(Box::new(Writer::new(Head::new(table.fields.clone()))), &table, &End::Overflow);
        let expected = "    c0 | c1      |   c2\n  km/s |         | km/s\n-------+---------+-----\n\
                        \x20    1 | a       |  0.5\n     2 | \u{fffd}[2Jx y |\n 30000 | äöü     |  0.5\n\
                        (3 rows; more were withheld)\n";
        let (found, expected): (Vec<_>, Vec<_>) = (text.lines().collect(), expected.lines().collect());
        assert_eq!(found, expected);
    }

    #[test]
    fn long_cells_may_be_cut_and_failures_are_told() {
        let table = table(&[1], &["abcdefgh"]);
        let writer = Writer::with_cut(Head::new(table.fields.clone()), 4);
        let text = write(Box::new(writer), &table, &End::Failed(Arc::from("no\x07")));
        assert!(text.contains("| abc… |"), "{text}");
        assert!(text.ends_with("(1 row; the query failed: no\u{fffd})\n"), "{text}");
    }

    #[test]
    fn later_rows_widen_their_column() {
        let ids: Vec<i64> = (1..=TEXT_ROWS as i64 + 1).collect();
        let mut names = vec!["a"; ids.len()];
        *names.last_mut().unwrap() = "a long name";
        let table = table(&ids, &names);
        let text = write(Box::new(Writer::new(Head::new(table.fields.clone()))), &table, &End::Complete);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3 + ids.len() + 1);
        assert!(lines[lines.len() - 2].contains("| a long name |"));
        assert!(lines[lines.len() - 3].contains("| a  |"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn every_row_is_one_line_that_cannot_steer_a_terminal(table in sample::table()) {
            let writer = Writer::new(Head::new(table.fields.clone()));
            let text = write(Box::new(writer), &table, &End::Complete);
            prop_assert_eq!(text.split('\n').count(), table.rows + 3 + 2);
            prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        }
    }
}
