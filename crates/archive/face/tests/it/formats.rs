//! Every format of the list, by every name (DALI 1.1 3.4.3).

use crate::harness::Door;

#[tokio::test]
async fn the_answer_has_the_media_type_that_was_asked_for() {
    let door = Door::new();
    for (asked, media) in [
        ("votable", "application/x-votable+xml"),
        ("votable/td", "application/x-votable+xml;serialization=TABLEDATA"),
        ("votable%2Fb2", "application/x-votable+xml;serialization=BINARY2"),
        ("application%2Fx-votable%2Bxml", "application/x-votable+xml"),
        ("text%2Fxml", "text/xml"),
        ("csv", "text/csv;header=present;charset=utf-8"),
        ("text%2Fcsv", "text/csv"),
        ("tsv", "text/tab-separated-values;charset=utf-8"),
        ("json", "application/json"),
        ("application%2Fjson", "application/json"),
        ("text", "text/plain;charset=utf-8"),
        ("html", "text/html;charset=utf-8"),
        ("text%2Fhtml", "text/html"),
    ] {
        let answer =
            door.query("SELECT id, ra, mag, name FROM demo.stars", &format!("RESPONSEFORMAT={asked}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, media), "{asked}");
    }
}

#[tokio::test]
async fn everything_declared_can_be_asked_for() {
    let door = Door::new();
    let capabilities = door.get("/capabilities").await.xml();
    let mut names = capabilities.texts("mime");
    names.extend(capabilities.texts("alias"));
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let rest = format!("RESPONSEFORMAT={}", crate::harness::encoded(&name));
        let answer = door.query("SELECT id, ra, mag, name FROM demo.stars", &rest).await;
        assert_eq!(answer.status, 200, "{name}");
        if name.contains('/') && !name.starts_with("votable/") {
            assert_eq!(answer.header("content-type"), name);
        }
        let none = door.query("SELECT id FROM demo.stars WHERE id > 9", &rest).await;
        assert_eq!(none.status, 200, "{name}");
        let many = door.query("SELECT n FROM demo.many", &rest).await;
        assert!(many.status == 200 && many.bytes.len() > 200_000, "{name}");
    }
}

#[tokio::test]
async fn votables_have_the_version_that_was_asked_for() {
    let door = Door::new();
    for version in ["1.3", "1.4", "1.5"] {
        let rest = format!("RESPONSEFORMAT=application/x-votable%2Bxml;version={version}");
        let answer = door.query("SELECT 1 AS one", &rest).await;
        assert_eq!(answer.xml().all("VOTABLE")[0].get("version"), version);
    }
}

#[tokio::test]
async fn pages_let_nothing_run() {
    let door = Door::new();
    let answer = door.query("SELECT * FROM demo.\"I/355/odd\"", "FORMAT=html").await;
    assert_eq!(answer.status, 200);
    assert!(!answer.text().contains("<script"), "{}", answer.text());
    assert!(answer.header("content-security-policy").contains("default-src 'none'"));
}
