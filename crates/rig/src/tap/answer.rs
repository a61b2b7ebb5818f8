//! Reading results, the least that comparing them needs: rows of numbers out of CSV and VOTable.
//!
//! Not a codec: it knows what the queries of this suite can answer, and refuses everything else. It shares
//! nothing with the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A row of numbers; nothing where there is no value.
pub(super) type Row = Vec<Option<f64>>;

/// The format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    TableData,
    Binary2,
}

impl Format {
    /// The value of RESPONSEFORMAT.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::TableData => "votable/td",
            Format::Binary2 => "votable/b2",
        }
    }

    /// The name in a report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Csv => "CSV",
            Format::TableData => "TABLEDATA",
            Format::Binary2 => "BINARY2",
        }
    }

    /// The rows of a result.
    pub(super) fn rows(self, body: &[u8]) -> Result<Vec<Row>, String> {
        let text = std::str::from_utf8(body).map_err(|_| "a result that is not UTF-8".to_owned())?;
        match self {
            Format::Csv => csv(text),
            Format::TableData => votable(text).and_then(table_data),
            Format::Binary2 => votable(text).and_then(binary2),
        }
    }
}

fn cell(text: &str) -> Result<Option<f64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| format!("a cell that is no number: {text:.50}"))
}

fn csv(text: &str) -> Result<Vec<Row>, String> {
    text.lines().skip(1).map(|line| line.split(',').map(cell).collect()).collect()
}

/// A result as VOTable that says of itself that it is well.
fn votable(text: &str) -> Result<&str, String> {
    for wrong in [r#"name="QUERY_STATUS" value="ERROR""#, r#"name="QUERY_STATUS" value="OVERFLOW""#] {
        if text.contains(wrong) {
            return Err(format!("a result with {wrong}"));
        }
    }
    let well = text.contains(r#"name="QUERY_STATUS" value="OK""#) && text.trim_end().ends_with("</VOTABLE>");
    if well { Ok(text) } else { Err(format!("no VOTable: {text:.200}")) }
}

/// What lies between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Result<&'a str, String> {
    let found = text.split_once(from).and_then(|(_, rest)| rest.split_once(to));
    found.map(|(inner, _)| inner).ok_or_else(|| format!("no {from} … {to}: {text:.200}"))
}

fn table_data(text: &str) -> Result<Vec<Row>, String> {
    let rows = between(text, "<TABLEDATA>", "</TABLEDATA>")?;
    let lines = rows.split("<TR>").skip(1);
    lines
        .map(|row| {
            let cells = row.split("<TD").skip(1);
            cells
                .map(
                    |rest| if rest.starts_with("/>") { Ok(None) } else { cell(between(rest, ">", "</TD>")?) },
                )
                .collect()
        })
        .collect()
}

/// A type of VOTable (2.1) that the table has.
#[derive(Clone, Copy)]
enum Datatype {
    Short,
    Int,
    Long,
    Float,
    Double,
}

impl Datatype {
    fn named(name: &str) -> Result<Datatype, String> {
        Ok(match name {
            "short" => Datatype::Short,
            "int" => Datatype::Int,
            "long" => Datatype::Long,
            "float" => Datatype::Float,
            "double" => Datatype::Double,
            other => return Err(format!("a column of type {other}")),
        })
    }

    /// Takes a value off the front, big endian (VOTable 1.5 5.4).
    fn take(self, bytes: &mut &[u8]) -> Option<f64> {
        Some(match self {
            Datatype::Short => f64::from(i16::from_be_bytes(front(bytes)?)),
            Datatype::Int => f64::from(i32::from_be_bytes(front(bytes)?)),
            Datatype::Long => i64::from_be_bytes(front(bytes)?) as f64,
            Datatype::Float => f64::from(f32::from_be_bytes(front(bytes)?)),
            Datatype::Double => f64::from_be_bytes(front(bytes)?),
        })
    }
}

fn front<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*front)
}

fn binary2(text: &str) -> Result<Vec<Row>, String> {
    let fields = text.split("<FIELD ").skip(1).map(|field| between(field, "datatype=\"", "\""));
    let types: Vec<Datatype> = fields.map(|name| Datatype::named(name?)).collect::<Result<_, _>>()?;
    let stream = between(text, "<STREAM encoding=\"base64\">", "</STREAM>")?;
    let packed: Vec<u8> = stream.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(packed).map_err(|error| format!("a stream that is not base64: {error}"))?;
    let (mut rest, mut rows) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        rows.push(binary_row(&types, &mut rest).ok_or("a stream that ends within a row")?);
    }
    Ok(rows)
}

/// A row begins with a bit for each column, the first one highest, that tells whether it has no value.
fn binary_row(types: &[Datatype], bytes: &mut &[u8]) -> Option<Row> {
    let (flags, rest) = bytes.split_at_checked(types.len().div_ceil(8))?;
    *bytes = rest;
    let cells = types.iter().enumerate().map(|(at, datatype)| {
        let value = datatype.take(bytes)?;
        let missing = flags[at / 8] & (0x80 >> (at % 8)) != 0;
        Some((!missing).then_some(value))
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn document(data: &str) -> String {
        format!(
            "<VOTABLE><RESOURCE><INFO name=\"QUERY_STATUS\" value=\"OK\"/><TABLE>\
             <FIELD name=\"hip\" datatype=\"int\"/><FIELD ucd=\"x\" datatype=\"double\"/>\
             <DATA>{data}</DATA></TABLE></RESOURCE></VOTABLE>\n"
        )
    }

    #[test]
    fn one_table_in_three_formats() {
        let bytes =
            [&[0][..], &7_i32.to_be_bytes(), &1.5_f64.to_be_bytes(), &[0x40], &8_i32.to_be_bytes(), &[0; 8]];
        let stream = STANDARD.encode(bytes.concat());
        let (head, tail) = stream.split_at(13);
        let binary =
            document(&format!("<BINARY2><STREAM encoding=\"base64\">\n{head}\n{tail}\n</STREAM></BINARY2>"));
        let text =
            document("<TABLEDATA>\n<TR><TD>7</TD><TD>1.5</TD></TR>\n<TR><TD>8</TD><TD/></TR>\n</TABLEDATA>");
        let expected = [vec![Some(7.0), Some(1.5)], vec![Some(8.0), None]];
        for (format, body) in
            [(Format::Csv, "a,b\n7,1.5\n8,\n"), (Format::TableData, &text), (Format::Binary2, &binary)]
        {
            assert_eq!(format.rows(body.as_bytes()).unwrap(), expected, "{format:?}");
        }
    }

    #[test]
    fn what_is_not_well_is_refused() {
        let check = |format: Format, body: &str, what: &str| {
            let error = format.rows(body.as_bytes()).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        check(Format::Csv, "a\nx\n", "no number");
        check(Format::TableData, "<html>", "no VOTable");
        check(Format::TableData, &document("").replace("OK", "OVERFLOW"), "OVERFLOW");
        check(Format::Binary2, &document("").replace("double", "char"), "type char");
        check(Format::Binary2, &document("<STREAM encoding=\"base64\">AAAA</STREAM>"), "ends within a row");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in "[ -~]{0,200}") {
            for format in [Format::Csv, Format::TableData, Format::Binary2] {
                let _ = format.rows(document(&data).as_bytes());
                let _ = format.rows(data.as_bytes());
            }
        }
    }
}
