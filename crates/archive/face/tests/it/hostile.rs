//! Input that means no good: answered in bounded time, clearly.

use crate::harness::{Door, encoded};

async fn posted(door: &Door, query: &str) -> (u16, String) {
    let form = format!("LANG=ADQL&FORMAT=csv&QUERY={}", encoded(query));
    let answer = door.post("/sync", "application/x-www-form-urlencoded", form).await;
    (answer.status, answer.text().chars().take(400).collect())
}

#[tokio::test]
async fn monstrous_queries_are_refused_or_answered() {
    let door = Door::new();
    let terms = |count: usize| {
        let list: Vec<String> = (0..count).map(|at| format!("id = {at}")).collect();
        format!("SELECT id FROM demo.stars WHERE {}", list.join(" OR "))
    };
    for (what, query) in [
        ("many terms", terms(10_000)),
        ("a long literal", format!("SELECT '{}' AS x FROM demo.stars WHERE id = 1", "y".repeat(1 << 20))),
        ("parentheses", format!("SELECT {}1{} AS x", "(".repeat(100_000), ")".repeat(100_000))),
        ("signs", format!("SELECT {}1 AS x", "- ".repeat(100_000))),
        (
            "derived tables",
            format!("SELECT * FROM {}demo.stars{}", "(SELECT * FROM ".repeat(5000), ") AS t".repeat(5000)),
        ),
        (
            "joins",
            format!(
                "SELECT COUNT(*) FROM demo.stars AS a{}",
                (0..1000).map(|at| format!(", demo.stars AS b{at}")).collect::<String>()
            ),
        ),
        ("control characters", "SELECT \u{1}\u{7f}\u{200b} FROM demo.stars".to_owned()),
        ("an open string", "SELECT 'abc FROM demo.stars".to_owned()),
        ("an open comment", "SELECT 1 /* abc".to_owned()),
    ] {
        let (status, text) = posted(&door, &query).await;
        assert!(matches!(status, 200 | 400 | 413), "{what}: {status} {text}");
        if status != 200 {
            assert!(text.starts_with("ERROR\n") && text.len() > 10, "{what}: {text}");
        }
    }
}

#[tokio::test]
async fn whatever_is_in_a_message_the_document_is_well_formed() {
    let door = Door::new();
    for query in ["SELECT ]]> FROM <x>", "SELECT \u{0} &amp; \u{fffe}", "SELECT '\u{1b}[31m", "\"\u{c}\""] {
        let answer = door.query(query, "").await;
        assert_eq!((answer.status, answer.statuses()), (400, vec!["ERROR".to_owned()]), "{query:?}");
    }
}

#[tokio::test]
async fn parameters_are_bounded() {
    let door = Door::new();
    let many = door.get(&format!("/sync?{}", "a=b&".repeat(1000))).await;
    assert_eq!((many.status, many.statuses()), (400, vec!["ERROR".to_owned()]));
    let parts = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n".repeat(1000) + "--b--";
    assert_eq!(door.post("/sync", "multipart/form-data; boundary=b", parts).await.status, 400);
    let utf8 = door.get("/sync?QUERY=%FF%FE").await;
    assert_eq!((utf8.status, utf8.statuses()), (400, vec!["ERROR".to_owned()]));
}
