//! Tables that come with a query (TAP 1.1 2.7.6).

use crate::harness::Door;

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
