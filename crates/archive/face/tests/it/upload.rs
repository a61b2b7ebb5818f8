//! Tables that come with a query (TAP 1.1 2.7.6).

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use trifid_archive_face::Options;
use trifid_base_runtime::units::Size;
use trifid_base_web::egress;

use crate::harness::{Door, encoded};

fn body(query: &str, upload: &str, part: &str, media: &str, content: &str) -> String {
    format!(
        "--b\r\nContent-Disposition: form-data; name=\"QUERY\"\r\n\r\n{query}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"UPLOAD\"\r\n\r\n{upload}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"RESPONSEFORMAT\"\r\n\r\ncsv\r\n\
         --b\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"t\"\r\nContent-Type: {media}\r\n\r\n\
         {content}\r\n--b--\r\n"
    )
}

const MULTIPART: &str = "multipart/form-data; boundary=b";

#[tokio::test]
async fn an_uploaded_table_is_joined() {
    let door = Door::new();
    let query =
        "SELECT s.id, u.label FROM demo.stars AS s JOIN TAP_UPLOAD.mine AS u ON s.id = u.id ORDER BY s.id";
    let content = "id,label\n4,four\n1,one\n99,none\n";
    let answer = door.post("/sync", MULTIPART, body(query, "mine,param:t", "t", "text/csv", content)).await;
    assert_eq!((answer.status, answer.text()), (200, "id,label\n1,one\n4,four\n"));
}

#[tokio::test]
async fn an_uploaded_votable_keeps_its_rows_in_order() {
    let door = Door::new();
    let content = "<VOTABLE version=\"1.3\" xmlns=\"http://www.ivoa.net/xml/VOTable/v1.3\"><RESOURCE><TABLE>\
        <FIELD name=\"select\" datatype=\"int\"/><FIELD name=\"a b\" datatype=\"char\" arraysize=\"*\"/>\
        <DATA><TABLEDATA><TR><TD>3</TD><TD>x</TD></TR><TR><TD></TD><TD>y</TD></TR><TR><TD>1</TD><TD/></TR>\
        </TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>";
    let query = "SELECT \"select\", \"a b\" FROM TAP_UPLOAD.t";
    let answer = door
        .post("/sync", MULTIPART, body(query, "t,param:t", "t", "application/x-votable+xml", content))
        .await;
    assert_eq!((answer.status, answer.text()), (200, "select,a b\n3,x\n,y\n1,\n"));
}

#[tokio::test]
async fn uploads_are_gone_with_their_query() {
    let door = Door::new();
    let query = "SELECT COUNT(*) AS c FROM tap_upload.t";
    let answer = door.post("/sync", MULTIPART, body(query, "t,param:x", "x", "text/csv", "a,b\n1,2\n")).await;
    assert_eq!((answer.status, answer.text()), (200, "c\n1\n"));
    assert_eq!(door.query(query, "").await.status, 400);
    let listed = door.csv("SELECT table_name FROM TAP_SCHEMA.tables WHERE schema_name = 'TAP_UPLOAD'").await;
    assert_eq!(listed, "");
}

#[tokio::test]
async fn wrong_uploads_are_refused() {
    let door = Door::with(|options| options.upload_rows = 2);
    let query = "SELECT * FROM TAP_UPLOAD.t";
    for (upload, content, status) in [
        ("t,param:other", "a,b\n1,2\n", 400),
        ("t,http://127.0.0.1:1/x", "a,b\n1,2\n", 400),
        ("t", "a,b\n1,2\n", 400),
        ("t,param:t", "<VOTABLE><broken", 400),
        ("t,param:t", "rubbish", 400),
        ("t,param:t", "a,b\n1,2\n1,2\n1,2\n", 413),
    ] {
        let answer = door.post("/sync", MULTIPART, body(query, upload, "t", "text/plain", content)).await;
        assert_eq!(answer.status, status, "{upload} {content}: {}", answer.text());
        assert!(answer.text().starts_with("ERROR\n"), "in the family of csv");
    }
}

/// A server that gives each request the next of these answers; its port.
fn elsewhere(answers: Vec<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            // A client that has seen enough may be gone.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn answer(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// TAP 1.1 2.7.6: http and https, within the operator's bounds.
#[tokio::test]
async fn tables_are_fetched_from_hosts_that_are_listed() {
    let options =
        Options { upload_hosts: vec!["127.0.0.1".into()], upload_bytes: Size(1000), ..Options::default() };
    let door =
        Door::fetching(options, &egress::Options { allow_private: true, ..egress::Options::default() });
    let port = elsewhere(vec![
        answer("200 OK", "content-type: text/csv\r\n", "id,x\n1,2\n3,4\n"),
        answer("200 OK", "", &format!("id,x\n{}", "1,2\n".repeat(1000))),
        answer("302 Found", "location: http://localhost/\r\n", ""),
        answer("404 Not Found", "", "no"),
    ]);
    let query = encoded("SELECT COUNT(*) AS c, SUM(x) AS s FROM TAP_UPLOAD.t");
    let ask = async |url: &str| {
        door.get(&format!("/sync?FORMAT=csv&QUERY={query}&UPLOAD=t,{}", encoded(url))).await
    };
    let here = format!("http://127.0.0.1:{port}/table");
    let found = ask(&here).await;
    assert_eq!((found.status, found.text()), (200, "c,s\n2,6\n"));
    assert_eq!(ask(&here).await.status, 413);
    for (status, word) in [("302", "302"), ("404", "404")] {
        let refused = ask(&here).await;
        assert_eq!(refused.status, 400, "{status}");
        assert!(refused.text().contains(word), "{}", refused.text());
    }
    let elsewhere = ask(&format!("http://localhost:{port}/table")).await;
    assert_eq!((elsewhere.status, elsewhere.text().contains("does not fetch")), (400, true));
}

#[tokio::test]
async fn the_guard_stands_before_every_fetch() {
    let door = Door::new();
    let query = encoded("SELECT * FROM TAP_UPLOAD.t");
    for url in [
        "http://127.0.0.1:1/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "http://user:x@example.org/",
    ] {
        let answer = door.get(&format!("/sync?FORMAT=csv&QUERY={query}&UPLOAD=t,{}", encoded(url))).await;
        assert_eq!(answer.status, 400, "{url}");
        assert!(answer.text().contains("may not fetch"), "{url}: {}", answer.text());
    }
}
