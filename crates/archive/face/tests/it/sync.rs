//! TAP 1.1 2.1 and DALI 1.1: queries that are answered at once.

use http::Method;

use crate::harness::{Door, MANY, encoded};

#[tokio::test]
async fn a_query_is_answered_by_get_and_by_post() {
    let door = Door::new();
    let query = "SELECT id, name FROM demo.stars WHERE id < 3 ORDER BY id";
    let expected = "id,name\n1,a\n2,\"<b>, \"\"c\"\"\"\n";
    let got = door.query(query, "FORMAT=csv&REQUEST=doQuery&VERSION=1.0&unknown=x").await;
    assert_eq!((got.status, got.text()), (200, expected));
    assert_eq!(got.header("content-type"), "text/csv;header=present;charset=utf-8");
    let form = format!("query={}&lang=ADQL-2.1&ResponseFormat=csv", encoded(query));
    let posted = door.post("/sync", "application/x-www-form-urlencoded", form).await;
    assert_eq!((posted.status, posted.text()), (200, expected));
    let parts = format!(
        "--b\r\nContent-Disposition: form-data; name=\"QUERY\"\r\n\r\n{query}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"RESPONSEFORMAT\"\r\n\r\ncsv\r\n--b--\r\n"
    );
    let posted = door.post("/sync?LANG=ADQL", "multipart/form-data; boundary=b", parts).await;
    assert_eq!((posted.status, posted.text()), (200, expected));
}

#[tokio::test]
async fn the_default_is_a_votable_that_says_ok_first() {
    let door = Door::new();
    let answer = door.query("SELECT id, ra FROM demo.stars", "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/x-votable+xml"));
    assert_eq!(answer.statuses(), ["OK"]);
    let xml = answer.xml();
    assert_eq!(xml.all("RESOURCE")[0].get("type"), "results");
    let fields = xml.all("FIELD");
    assert_eq!(fields.iter().map(|field| field.get("name")).collect::<Vec<_>>(), ["id", "ra"]);
    assert_eq!((fields[1].get("unit"), fields[1].get("ucd")), ("deg", "pos.eq.ra;meta.main"));
    assert_eq!(xml.all("BINARY2").len(), 1);
    let query = xml.all("INFO").into_iter().find(|info| info.get("name") == "QUERY").unwrap();
    assert_eq!(query.get("value"), "SELECT id, ra FROM demo.stars");
}

/// DALI 1.1 3.4.4 and 4.4.1: withheld or not, exactly, with TOP and without, ready or streamed.
#[tokio::test]
async fn overflow_is_exact() {
    let door = Door::new();
    for (query, most, rows, overflow) in [
        ("SELECT id FROM demo.stars", 5, 5, false),
        ("SELECT id FROM demo.stars", 4, 4, true),
        ("SELECT TOP 3 id FROM demo.stars", 3, 3, false),
        ("SELECT TOP 3 id FROM demo.stars", 2, 2, true),
        ("SELECT id FROM demo.stars WHERE id > 100", 0, 0, true),
        ("SELECT id FROM demo.stars WHERE id > 100", 1, 0, false),
        ("SELECT COUNT(*) AS c FROM demo.many", 1, 1, false),
        ("SELECT n FROM demo.many", MANY, MANY, false),
        ("SELECT n FROM demo.many", MANY - 1, MANY - 1, true),
    ] {
        let rest = |format: &str| format!("MAXREC={most}&RESPONSEFORMAT={format}");
        let votable = door.query(query, &rest("votable/td")).await;
        let statuses: &[&str] = if overflow { &["OK", "OVERFLOW"] } else { &["OK"] };
        assert_eq!(votable.statuses(), statuses, "{query} {most}");
        assert_eq!(votable.text().matches("<TR>").count() as i64, rows, "{query} {most}");
        let csv = door.query(query, &rest("csv")).await;
        assert_eq!(csv.text().lines().count() as i64, rows + 1);
        let told = csv.headers.get("tap-query-status").or(csv.trailers.get("tap-query-status"));
        assert_eq!(told.unwrap(), if overflow { "OVERFLOW" } else { "OK" }, "{query} {most}");
        let json = door.query(query, &rest("json")).await;
        assert!(json.text().contains(&format!("\"overflow\":{overflow}")), "{query} {most}");
    }
}

#[tokio::test]
async fn the_services_own_limits_clamp() {
    let door = Door::with(|options| (options.output_default, options.output_limit) = (2, 3));
    for (query, rest, rows) in [
        ("SELECT id FROM demo.stars", "", 2),
        ("SELECT TOP 1000000000 id FROM demo.stars", "MAXREC=1000000000", 3),
        ("SELECT id FROM demo.stars", "MAXREC=99999999999999999999999", 3),
        ("SELECT id FROM demo.stars", "MAXREC=1", 1),
    ] {
        let answer = door.query(query, &format!("{rest}&FORMAT=votable/td")).await;
        assert_eq!(answer.text().matches("<TR>").count(), rows, "{query} {rest}");
        assert_eq!(answer.statuses(), ["OK", "OVERFLOW"]);
    }
}

#[tokio::test]
async fn no_rows_are_asked_for_and_none_are_computed() {
    let door = Door::new();
    // Running it would fail: MAXREC=0 need not.
    let query = "SELECT id / (id - id) AS q FROM demo.stars";
    let answer = door.query(query, "MAXREC=0").await;
    assert_eq!((answer.status, answer.statuses()), (200, vec!["OK".to_owned(), "OVERFLOW".to_owned()]));
    assert_eq!(answer.xml().all("FIELD").len(), 1);
    assert_eq!(door.query(query, "").await.status, 400);
}

#[tokio::test]
async fn mistakes_are_told_with_a_fitting_status_in_the_family_asked_for() {
    let door = Door::new();
    for (rest, status, word) in [
        ("QUERY=SELEC+1", 400, "SELEC"),
        ("QUERY=SELECT+nothing+FROM+demo.stars", 400, "nothing"),
        ("QUERY=SELECT+*+FROM+demo.star", 400, "demo.stars"),
        ("", 400, "QUERY"),
        ("QUERY=++", 400, "QUERY"),
        ("QUERY=SELECT+1&LANG=PQL", 400, "PQL"),
        ("QUERY=SELECT+1&MAXREC=-1", 400, "MAXREC"),
        ("QUERY=SELECT+1&QUERY=SELECT+2", 400, "more than once"),
        ("QUERY=SELECT+1&REQUEST=explode", 400, "REQUEST"),
        ("QUERY=SELECT+1&UPLOAD=a", 400, "UPLOAD"),
    ] {
        let answer = door.get(&format!("/sync?{rest}")).await;
        assert_eq!(answer.status, status, "{rest}");
        assert_eq!(answer.header("content-type"), "application/x-votable+xml");
        assert_eq!(answer.statuses(), ["ERROR"], "{rest}");
        let info = answer.xml().all("INFO")[0].clone();
        assert!(info.text.contains(word), "{rest}: {}", info.text);
        let answer = door.get(&format!("/sync?{rest}&FORMAT=csv")).await;
        assert_eq!((answer.status, answer.header("content-type")), (status, "text/plain; charset=utf-8"));
        assert!(answer.text().contains(word), "{rest}");
        let answer = door.get(&format!("/sync?{rest}&FORMAT=json")).await;
        assert!(answer.text().starts_with("{\"status\":\"ERROR\""), "{rest}");
        assert!(answer.header("cache-control").contains("no-store"));
    }
    let answer = door.get("/sync?QUERY=SELECT+1&FORMAT=punchcard").await;
    assert_eq!((answer.status, answer.statuses()), (400, vec!["ERROR".to_owned()]));
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_in_form() {
    let door = Door::new();
    let lost = door.get("/nothing").await;
    assert_eq!((lost.status, lost.statuses()), (404, vec!["ERROR".to_owned()]));
    let wrong = door.send(Method::DELETE, "/sync", &[], "").await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, "GET, POST, HEAD, OPTIONS"));
    assert_eq!(wrong.statuses(), ["ERROR"]);
    let options = door.send(Method::OPTIONS, "/sync", &[], "").await;
    assert_eq!((options.status, options.header("allow")), (204, "GET, POST, HEAD, OPTIONS"));
    let json = door.post("/sync", "application/json", "{}").await;
    assert_eq!((json.status, json.statuses()), (415, vec!["ERROR".to_owned()]));
}

#[tokio::test]
async fn head_says_what_would_be_answered_without_running_it() {
    let door = Door::new();
    let query = encoded("SELECT id / (id - id) AS q FROM demo.stars");
    let answer = door.send(Method::HEAD, &format!("/sync?FORMAT=csv&QUERY={query}"), &[], "").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/csv;header=present;charset=utf-8")
    );
    assert!(answer.bytes.is_empty());
    let answer = door.send(Method::HEAD, "/sync?QUERY=SELEC", &[], "").await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn old_clients_may_ask_for_the_capabilities_here() {
    let answer = Door::new().get("/sync?REQUEST=getCapabilities").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.xml().0[0].path, "/capabilities");
}

#[tokio::test]
async fn large_results_stream_whole() {
    let door = Door::new();
    let csv = door.query("SELECT n, x FROM demo.many", "FORMAT=csv").await;
    assert_eq!(csv.status, 200);
    assert_eq!(csv.header("trailer"), "tap-query-status");
    assert_eq!(csv.trailers["tap-query-status"], "OK");
    let mut lines = csv.text().lines();
    assert_eq!(lines.next(), Some("n,x"));
    for n in 0..MANY {
        let line = lines.next().unwrap();
        assert_eq!(line.split(',').next().unwrap().parse::<i64>().unwrap(), n);
    }
    assert_eq!(lines.next(), None);
}

/// A failure after the first rows is told in the tail of the one document (TAP 1.1 3.3).
#[tokio::test]
async fn a_late_failure_is_told_in_the_tail() {
    let door = Door::new();
    let query = format!("SELECT n, 1 / ({} - n) AS q FROM demo.many", MANY - 1);
    let votable = door.query(&query, "FORMAT=votable/td").await;
    if votable.status == 200 {
        assert_eq!(votable.statuses(), ["OK", "ERROR"]);
        assert_eq!(votable.xml().all("VOTABLE").len(), 1);
    } else {
        // The engine found it before the first row.
        assert_eq!((votable.status, votable.statuses()), (400, vec!["ERROR".to_owned()]));
    }
}

#[tokio::test]
async fn what_is_sent_can_be_compressed() {
    let door = Door::new();
    let query = "SELECT n, x FROM demo.many";
    let plain = door.query(query, "FORMAT=csv").await;
    for (coding, sent) in [("gzip", "gzip"), ("gzip, zstd", "zstd"), ("identity", ""), ("gzip;q=0", "")] {
        let answer = door.coded(query, "FORMAT=csv", coding).await;
        assert_eq!((answer.status, answer.header("content-encoding")), (200, sent));
        assert_eq!(answer.header("vary"), "accept-encoding");
        assert_eq!(decoded(sent, &answer.bytes), plain.bytes);
        // A tiny body is not worth it.
        let small = door.coded("SELECT 1 AS one", "FORMAT=csv", coding).await;
        assert_eq!((small.header("content-encoding"), small.text()), ("", "one\n1\n"));
    }
    let some = door.coded("SELECT TOP 400 n FROM demo.many", "FORMAT=csv", "gzip").await;
    assert_eq!(some.header("content-encoding"), "gzip");
    assert_eq!(decoded("gzip", &some.bytes).iter().filter(|byte| **byte == b'\n').count(), 401);
    let off = Door::with(|options| options.compression = false);
    assert_eq!(off.coded(query, "FORMAT=csv", "gzip").await.header("content-encoding"), "");
}

pub(crate) fn decoded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        "gzip" => std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut out).unwrap(),
        "zstd" => zstd::stream::copy_decode(bytes, &mut out).map(|()| 0).unwrap(),
        _ => return bytes.to_vec(),
    };
    out
}

#[tokio::test]
async fn results_say_how_they_may_be_kept() {
    let door = Door::new();
    let answer = door.query("SELECT 1 AS one", "FORMAT=csv").await;
    assert_eq!(answer.header("cache-control"), "no-cache");
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"result.csv\"");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}
