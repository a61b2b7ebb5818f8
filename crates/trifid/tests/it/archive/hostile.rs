//! Input that means harm, or was pasted from the wrong place: a clear refusal, in bounded time and memory.

use std::fmt::Write as _;

use super::{ask, demo, post};
use crate::harness::{Answer, Serving};

/// A refusal as DALI wants it: a VOTable that says what is wrong.
fn refused(answer: &Answer, status: u16, expected: &str) {
    assert_eq!(answer.status, status, "{}", answer.body);
    assert!(answer.body.contains("name=\"QUERY_STATUS\" value=\"ERROR\""), "{}", answer.body);
    assert!(answer.body.contains(expected), "{expected:?} is not in {}", answer.body);
}

#[test]
fn wrong_queries_are_refused_with_their_place() {
    let (serving, _) = demo();
    for (query, expected) in [
        ("SELECT hipp FROM demo.hipparcos", "did you mean hip?"),
        ("SELECT hip FROM demo.hiparcos", "did you mean demo.hipparcos?"),
        ("SELECT hip FROM demo.hipparcos LIMIT 5", "TOP"),
        ("SELECT hip FROM demo.hipparcos WHERE ra = 'ten'", "line 1, column"),
        ("SELECT hip + target FROM demo.hipparcos, demo.exposures", "line 1, column"),
        ("SELECT hip FROM demo.hipparcos WHERE 1=CONTAINS(POINT(ra, dec), CIRCLE(10, 20, -1))", "radius"),
        ("SELECT 1/(hip-hip) FROM demo.hipparcos", "zero"),
        ("SELECT CAST('x' AS INTEGER) AS n", "x"),
        ("SELECT \u{201c}hip\u{201d} FROM demo.hipparcos", "line 1, column 8"),
        ("", "QUERY"),
        ("DROP TABLE demo.hipparcos", "line 1, column 1"),
        ("SELECT hip FROM demo.hipparcos; DROP TABLE x", "line 1, column"),
    ] {
        refused(&ask(&serving, query, "votable"), 400, expected);
    }
    serving.stop_cleanly();
}

/// Each within the time of its own request, and the server lives.
#[test]
fn bombs_do_not_go_off() {
    let (serving, _) = demo();
    let nested = format!("SELECT {}1{} AS n", "(".repeat(100_000), ")".repeat(100_000));
    let joins = (0..1000).fold("SELECT COUNT(*) FROM demo.exposures AS t".to_owned(), |mut text, at| {
        let _ = write!(text, " JOIN demo.exposures AS t{at} ON t.ra = t{at}.ra");
        text
    });
    let huge = format!("SELECT '{}' AS n", "x".repeat(4 << 20));
    for query in [&nested, &joins] {
        let answer = ask(&serving, query, "votable");
        assert_eq!(answer.status, 400, "{}", &answer.body[..answer.body.len().min(500)]);
        assert!(answer.body.len() < 10_000, "the refusal repeats the attack: {} bytes", answer.body.len());
    }
    let answer = ask(&serving, &huge, "votable");
    assert!([400, 413].contains(&answer.status), "{}", answer.status);
    // Large, and in order.
    let terms = (0..10_000).map(|at| format!("hip = {at}")).collect::<Vec<_>>().join(" OR ");
    let found = super::rows(&serving, &format!("SELECT COUNT(*) AS n FROM demo.hipparcos WHERE {terms}"));
    assert_eq!(found.len(), 1);
    let list = (1..=10_000).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
    let found = super::rows(&serving, &format!("SELECT hip FROM demo.hipparcos WHERE hip IN ({list})"));
    assert_eq!(found[0].parse::<u32>().ok().filter(|hip| *hip <= 10_000), found[0].parse().ok());
    let random = "SELECT TOP 10 hip, RAND() AS r FROM demo.hipparcos WHERE RAND() < 0.5 ORDER BY RAND()";
    assert_eq!(super::rows(&serving, random).len(), 10);
    serving.stop_cleanly();
}

#[test]
fn a_product_without_end_is_refused() {
    let trifid = crate::harness::Trifid::new();
    let mut serving = trifid.serve(&[
        "demo",
        "--port",
        "0",
        "--set",
        "archive.sync_timeout=1s",
        "--set",
        "archive.query_memory=64MiB",
    ]);
    serving.printed_until("Ctrl-C");
    let query = "SELECT COUNT(*) AS n FROM demo.hipparcos AS a, demo.hipparcos AS b, demo.hipparcos AS c \
                 WHERE a.plx + b.plx + c.plx = 0.123";
    let answer = ask(&serving, query, "votable");
    refused(&answer, 400, "pairs of rows");
    // Few enough to be looked at, too many for the time.
    let query =
        "SELECT COUNT(*) AS n FROM demo.hipparcos AS a, demo.hipparcos AS b WHERE a.plx + b.plx = -123456.5";
    refused(&ask(&serving, query, "votable"), 503, "1 s");
    // The pool is free.
    assert_eq!(super::rows(&serving, "SELECT COUNT(*) AS n FROM demo.exposures"), ["360"]);
    serving.stop_cleanly();
}

fn upload(serving: &Serving, table: &str) -> Answer {
    upload_as(serving, "application/x-votable+xml", table.as_bytes(), "SELECT * FROM TAP_UPLOAD.mine")
}

fn upload_as(serving: &Serving, media: &str, table: &[u8], query: &str) -> Answer {
    let boundary = "b0undary";
    let part = |name: &str, value: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"t\"; filename=\"t\"\r\nContent-Type: {media}\r\n\r\n"
    );
    let head = part("LANG", "ADQL") + &part("QUERY", query) + &part("UPLOAD", "mine,param:t") + &file;
    let body = [head.as_bytes(), table, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
    let headers = format!("Content-Type: multipart/form-data; boundary={boundary}\r\n");
    serving.request("POST", "/tap/sync", &headers, &body)
}

#[cfg(feature = "archive-datafusion")]
#[test]
fn parquet_is_uploaded() {
    let (serving, _) = demo();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/archive/hipparcos.parquet");
    let file = std::fs::read(file).unwrap();
    let media = "application/vnd.apache.parquet";
    let query = "SELECT COUNT(*) AS n FROM TAP_UPLOAD.mine AS m JOIN demo.hipparcos AS h ON m.hip = h.hip";
    let answer = upload_as(&serving, media, &file, query);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer =
        upload_as(&serving, "application/octet-stream", &file, "SELECT TOP 1 hip FROM TAP_UPLOAD.mine");
    assert_eq!(answer.status, 200, "{}", answer.body);
    for broken in [&file[..file.len() - 100], &file[..1000], b"PAR1", b"PAR1PAR1", b"no Parquet"] {
        refused(&upload_as(&serving, media, broken, query), 400, "mine");
    }
    serving.stop_cleanly();
}

#[test]
fn broken_uploads_are_refused() {
    let (serving, _) = demo();
    let table = |fields: &str, data: &str| {
        format!(
            "<VOTABLE version=\"1.4\"><RESOURCE><TABLE>{fields}<DATA>{data}</DATA></TABLE></RESOURCE></VOTABLE>"
        )
    };
    let field = "<FIELD name=\"n\" datatype=\"int\"/>";
    for broken in [
        "not xml at all".to_owned(),
        "<VOTABLE><RESOURCE>".to_owned(),
        table(field, "<TABLEDATA><TR><TD>1</TD><TD>2</TD></TR></TABLEDATA>"),
        table(field, "<TABLEDATA><TR><TD>one</TD></TR></TABLEDATA>"),
        table(field, "<BINARY2><STREAM encoding=\"base64\">AAA=</STREAM></BINARY2>"),
        table("<FIELD name=\"n\" datatype=\"integer\"/>", "<TABLEDATA/>"),
        "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><VOTABLE>&b;</VOTABLE>".to_owned(),
        "SIMPLE  =                    T".to_owned(),
    ] {
        refused(&upload(&serving, &broken), 400, "mine");
    }
    let good = table(field, "<TABLEDATA><TR><TD>1</TD></TR><TR><TD/></TR></TABLEDATA>");
    assert_eq!(upload(&serving, &good).status, 200);
    refused(
        &post(
            &serving,
            "/tap/sync",
            &[("LANG", "ADQL"), ("QUERY", "SELECT 1"), ("UPLOAD", "x,http://127.0.0.1:1/t")],
        ),
        400,
        "may not fetch",
    );
    serving.stop_cleanly();
}

#[test]
fn wrong_parameters_are_refused() {
    let (serving, _) = demo();
    let query = ("QUERY", "SELECT TOP 1 hip FROM demo.hipparcos");
    for (form, expected) in [
        (&[("LANG", "SQL"), query][..], "LANG"),
        (&[("LANG", "ADQL"), query, ("MAXREC", "-1")], "MAXREC"),
        (&[("LANG", "ADQL"), query, ("MAXREC", "many")], "MAXREC"),
        (&[("LANG", "ADQL"), query, ("FORMAT", "xls")], "RESPONSEFORMAT"),
        (&[("LANG", "ADQL"), query, ("UPLOAD", "nonsense")], "UPLOAD"),
        (&[("LANG", "ADQL"), query, ("UPLOAD", "a,param:missing")], "missing"),
        (&[("LANG", "ADQL"), query, ("REQUEST", "dance")], "REQUEST"),
        (&[("LANG", "ADQL")], "QUERY"),
    ] {
        refused(&post(&serving, "/tap/sync", form), 400, expected);
    }
    serving.stop_cleanly();
}
