use std::io::Write as _;

use proptest::prelude::*;

use trifid_archive_model::write::{Head, TableWriter};

use super::*;
use crate::ExtraFormat;

const BOUNDS: Bounds = Bounds { rows: 10, bytes: 1 << 20 };

/// Reads a file where the roof brought no formats.
fn table(name: &str, file: &File, bounds: Bounds) -> Result<Table, Fault> {
    super::table(name, file, bounds, &Formats::new(Vec::new(), votable::Serialization::Binary2))
}

fn file(media: &str, bytes: impl Into<Bytes>) -> File {
    File { part: "t".into(), media: Some(media.into()), bytes: bytes.into() }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn names(table: &Table) -> Vec<&str> {
    table.head.fields.iter().map(|field| &*field.name).collect()
}

#[test]
fn upload_names_tables_and_places() {
    let found = specs(&["a,param:x; b , https://a.example/t?q=1", "TAP_upload.c,PARAM:y;"]).unwrap();
    let url = Place::Url("https://a.example/t?q=1".parse().unwrap());
    let wanted = [
        Spec { name: "a", place: Place::Part("x") },
        Spec { name: "b", place: url },
        Spec { name: "c", place: Place::Part("y") },
    ];
    assert_eq!(found, wanted);
}

#[test]
fn wrong_uploads_are_named() {
    for (value, word) in [
        ("a", "name,uri"),
        ("a,", "param:"),
        ("a,param:", "param:"),
        ("a,file:///etc/passwd", "param:"),
        ("a,ftp://x/y", "param:"),
        ("1a,param:x", "letter"),
        ("\"a b\",param:x", "letter"),
        ("a.b,param:x", "letter"),
        (",param:x", "letter"),
        ("a,param:x;A,param:y", "twice"),
    ] {
        let fault = specs(&[value]).unwrap_err();
        assert!(fault.message().contains(word), "{value}: {fault:?}");
    }
    let many: Vec<String> = (0..=UPLOADS_MAX).map(|at| format!("t{at},param:x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(specs(&many).unwrap_err().status(), 413);
    let long = format!("{},param:x", "n".repeat(UPLOAD_NAME_BYTES_MAX + 1));
    assert!(specs(&[&long]).is_err());
}

#[test]
fn tables_are_told_by_their_bytes() {
    for (media, bytes) in [
        ("text/csv", b"id,ra\n1,2.5\n".to_vec()),
        ("application/octet-stream", b"id\tra\n1\t2.5\n".to_vec()),
        ("application/gzip", gzip(b"id,ra\n1,2.5\n")),
    ] {
        let table = table("t", &file(media, bytes), BOUNDS).unwrap();
        assert_eq!((names(&table), table.rows()), (vec!["id", "ra"], 1), "{media}");
        assert_eq!((&*table.head.schema, &*table.head.name), ("TAP_UPLOAD", "t"));
    }
}

#[test]
fn rubbish_is_refused() {
    for bytes in [&b""[..], b"just words", b"<html/>", b"\x1f\x8b\x08broken", b"%PDF-1.4", b"PK\x03\x04"] {
        let fault = table("t", &file("", bytes), BOUNDS).unwrap_err();
        assert_eq!(fault.status(), 400, "{bytes:?}");
    }
    assert!(table("t", &file("text/csv", &b"a,b\n1,2\n3\n"[..]), BOUNDS).is_err(), "a row is too short");
}

#[test]
fn uploads_are_bounded() {
    let rows = |count: usize| format!("a,b\n{}", "1,2\n".repeat(count));
    assert!(table("t", &file("text/csv", rows(10)), BOUNDS).is_ok());
    let fault = table("t", &file("text/csv", rows(11)), BOUNDS).unwrap_err();
    assert_eq!((fault.status().as_u16(), fault.message().contains("10 rows")), (413, true));
    // A kilobyte that unpacks to gigabytes is not unpacked further than a table may be large.
    let bomb = gzip(&[b"a,b\n".to_vec(), vec![b'1'; 8 << 20]].concat());
    assert!(bomb.len() < 100_000);
    assert_eq!(table("t", &file("", bomb), BOUNDS).unwrap_err().status(), 413);
}

/// Reads files that begin like Parquet as CSV: a format of the roof's.
struct Roof;

impl ExtraFormat for Roof {
    fn media(&self) -> &'static str {
        "application/vnd.apache.parquet"
    }

    fn names(&self) -> &'static [&'static str] {
        &["parquet"]
    }

    fn extension(&self) -> &'static str {
        "parquet"
    }

    fn tells_end(&self) -> bool {
        true
    }

    fn writer(&self, _: Head) -> Box<dyn TableWriter> {
        unreachable!("nothing is written")
    }

    fn reader(&self, found: Format, file: &Bytes, bounds: Bounds) -> Option<crate::Read> {
        assert_eq!((found, bounds.rows), (Format::Parquet, 10));
        let text = std::io::Cursor::new(file.slice(4..));
        Some(boxed(csv::Reader::new(text, &csv::Options::new(Delimiter::Comma))))
    }
}

#[test]
fn parquet_is_read_by_whoever_can() {
    let roof = Formats::new(vec![Arc::new(Roof)], votable::Serialization::Binary2);
    let parquet = |text: &str| file("application/vnd.apache.parquet", format!("PAR1{text}"));
    let read = super::table("t", &parquet("id,ra\n1,2.5\n"), BOUNDS, &roof).unwrap();
    assert_eq!((names(&read), read.rows()), (vec!["id", "ra"], 1));
    assert_eq!(super::table("t", &parquet("a,b\n1\n"), BOUNDS, &roof).unwrap_err().status(), 400);
    let many = super::table("t", &parquet(&format!("a\n{}", "1\n".repeat(11))), BOUNDS, &roof);
    assert_eq!(many.unwrap_err().status(), 413);
    // Without one, and in gzip, it is told why not.
    let fault = table("t", &parquet("id\n1\n"), BOUNDS).unwrap_err();
    assert_eq!((fault.status().as_u16(), fault.message().contains("no format")), (400, true));
    let packed = file("application/gzip", gzip(b"PAR1id\n1\n"));
    let fault = super::table("t", &packed, BOUNDS, &roof).unwrap_err();
    assert_eq!((fault.status().as_u16(), fault.message().contains("Parquet in gzip")), (400, true));
}

#[test]
fn columns_get_names_of_their_own() {
    let fields: Arc<[Field]> = ["a", "", "a", "a_2"]
        .iter()
        .map(|name| Field::new(*name, trifid_archive_adql::types::Type::Int))
        .collect();
    let named: Vec<String> = unique(&fields).iter().map(|field| field.name.to_string()).collect();
    assert_eq!(named, ["a", "col2", "a_2", "a_2_2"]);
}

#[test]
fn parts_are_found_by_their_name() {
    let files = [file("", "x"), File { part: "T".into(), ..file("", "y") }];
    assert_eq!(part_of(&files, "T").unwrap().part, "T");
    assert_eq!(part_of(&files[1..], "t").unwrap().part, "T", "case is forgiven where it does not matter");
    assert!(part_of(&files, "u").is_err());
}

proptest! {
    #[test]
    fn any_value_is_answered(value in "[a-zA-Z0-9_,;: ./]{0,40}") {
        let _ = specs(&[&value]);
    }

    #[test]
    fn any_file_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = table("t", &file("text/csv", bytes.clone()), BOUNDS);
        let _ = table("t", &file("", gzip(&bytes)), BOUNDS);
    }
}
