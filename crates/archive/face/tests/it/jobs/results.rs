//! Results: whole, in part, and over a real connection.

use http::Method;

use super::{Limits, Office, stores};
use crate::harness::MANY;
use crate::server::Running;

#[tokio::test]
async fn a_result_is_sent_whole_or_in_part() {
    for (store, _folder) in stores() {
        let office = Office::over(store, Limits::default(), |_| ());
        // Larger than what is sent at once.
        let path = office.run("SELECT n, x FROM demo.many", "FORMAT=csv").await;
        let job = office.ended(&path).await;
        assert_eq!(job.texts("rows"), [MANY.to_string()]);
        let whole = office.result(&path).await;
        assert_eq!((whole.status, whole.header("accept-ranges")), (200, "bytes"));
        let length = whole.bytes.len();
        assert!(length > 1 << 20, "{length}");
        assert_eq!(whole.header("content-length"), length.to_string());
        assert_eq!(job.all("result")[0].get("size"), length.to_string());
        assert_eq!(whole.text().lines().count() as i64, MANY + 1);
        let tag = whole.header("etag").to_owned();
        for (range, start, end) in [
            ("bytes=0-9", 0, 10),
            ("bytes=500000-", 500_000, length),
            ("bytes=-7", length - 7, length),
            ("bytes=0-99999999999999999999", 0, length),
            ("bytes=-99999999999999999999", 0, length),
            ("BYTES = 3-3", 3, 4),
        ] {
            let part = office.ranged(&path, &[("range", range), ("if-range", &tag)]).await;
            assert_eq!(part.status, 206, "{range}");
            assert_eq!(
                part.header("content-range"),
                format!("bytes {start}-{}/{length}", end - 1),
                "{range}"
            );
            assert_eq!(part.header("content-length"), (end - start).to_string(), "{range}");
            assert_eq!(part.bytes, whole.bytes.slice(start..end), "{range}");
        }
    }
}

impl Office {
    async fn ranged(&self, path: &str, headers: &[(&str, &str)]) -> crate::harness::Answer {
        self.send(None, Method::GET, &format!("{path}/results/result"), headers, "").await
    }
}

#[tokio::test]
async fn what_is_no_range_or_of_another_state_is_the_whole() {
    let office = Office::new();
    let path = office.run("SELECT id FROM demo.stars ORDER BY id", "FORMAT=csv").await;
    office.ended(&path).await;
    let whole = office.result(&path).await;
    for headers in [
        &[("range", "bytes=1-2,4-5")][..],
        &[("range", "lines=1-2")],
        &[("range", "bytes=2-1")],
        &[("range", "bytes=a-b")],
        &[("range", "bytes=-")],
        &[("range", "bytes")],
        &[("range", "bytes=1-2"), ("range", "bytes=1-2")],
        &[("range", "bytes=1-2"), ("if-range", "\"other\"")],
        &[("range", "bytes=1-2"), ("if-range", "Thu, 01 Jan 2026 00:00:00 GMT")],
    ] {
        let answer = office.ranged(&path, headers).await;
        assert_eq!((answer.status, &answer.bytes), (200, &whole.bytes), "{headers:?}");
    }
    for range in ["bytes=13-", "bytes=99999999999999999999-", "bytes=-0", "bytes=100-200"] {
        let answer = office.ranged(&path, &[("range", range)]).await;
        assert_eq!((answer.status, answer.header("content-range")), (416, "bytes */13"), "{range}");
        assert_eq!(answer.statuses(), ["ERROR"]);
    }
}

#[tokio::test]
async fn head_tells_what_get_would_send() {
    let office = Office::new();
    let path = office.run("SELECT n FROM demo.many", "FORMAT=csv").await;
    office.ended(&path).await;
    let whole = office.result(&path).await;
    let result = format!("{path}/results/result");
    let head = office.send(None, Method::HEAD, &result, &[], "").await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    for header in ["content-length", "content-type", "etag", "content-disposition", "accept-ranges"] {
        assert_eq!(head.header(header), whole.header(header), "{header}");
    }
    let part = office.send(None, Method::HEAD, &result, &[("range", "bytes=0-0")], "").await;
    assert_eq!((part.status, part.header("content-length")), (206, "1"));
}

#[tokio::test]
async fn other_results_are_not_there() {
    let office = Office::new();
    let path = office.run("SELECT 1 AS one", "").await;
    office.ended(&path).await;
    for name in ["Result", "results", "..", "%2e%2e%2fjob.json", "%ff", "%"] {
        let answer = office.get(&format!("{path}/results/{name}")).await;
        assert_eq!((answer.status, answer.statuses()), (404, vec!["ERROR".to_owned()]), "{name}");
    }
    let pending = office.made("").await;
    let early = office.result(&pending).await;
    assert_eq!(early.status, 404);
    assert!(early.text().contains("PENDING"), "{}", early.text());
}

/// DALI 1.1 4.4.1: a failure after the first rows ends the job; what was written is not kept.
#[tokio::test]
async fn a_result_that_fails_late_is_none() {
    let office = Office::new();
    let path = office.run(&format!("SELECT n, 1 / ({} - n) AS q FROM demo.many", MANY - 1), "").await;
    let job = office.ended(&path).await;
    assert_eq!((job.texts("phase"), job.all("result").len()), (vec!["ERROR".into()], 0));
    assert!(job.texts("message")[0].contains("zero"), "{job:?}");
    assert_eq!(office.result(&path).await.status, 404);
}

/// What only a connection shows: the length of a streamed body, and none for HEAD.
#[test]
fn results_have_their_length_on_the_wire() {
    let office = Office::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = runtime.block_on(async {
        let path = office.run("SELECT n, x FROM demo.many", "FORMAT=csv").await;
        office.ended(&path).await;
        path
    });
    let running = Running::new(office.door);
    let ask = |method: &str, more: &str| {
        running.ask(&format!(
            "{method} /tap{path}/results/result HTTP/1.1\r\nhost: t\r\n{more}connection: close\r\n\r\n"
        ))
    };
    let whole = ask("GET", "");
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert_eq!(body.lines().count() as i64, MANY + 1);
    let bare = ask("HEAD", "");
    assert!(bare.contains(&format!("content-length: {}\r\n", body.len())), "{bare}");
    assert!(bare.ends_with("\r\n\r\n"), "{bare}");
    let part = ask("GET", "range: bytes=600000-\r\n");
    assert!(part.starts_with("HTTP/1.1 206"), "{part}");
    assert!(part.ends_with(&body[600_000..]));
    let beyond = ask("GET", "range: bytes=99999999-\r\n");
    assert!(beyond.starts_with("HTTP/1.1 416") && beyond.contains("QUERY_STATUS"), "{beyond}");
}
