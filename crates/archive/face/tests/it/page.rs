//! The page for people.

use crate::harness::{Door, encoded};

#[tokio::test]
async fn the_page_shows_tables_editor_and_examples() {
    let door = Door::new();
    let answer = door.get("").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/html; charset=utf-8"));
    let page = answer.text();
    for part in ["demo.stars", "<textarea", "action=\"/tap/sync\"", "phot.mag", "/tap/examples", "data-query"]
    {
        assert!(page.contains(part), "{part}");
    }
    let policy = answer.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!page.contains("<script>") && !page.contains("style=") && !page.contains("onclick"));
}

#[tokio::test]
async fn everything_on_it_is_escaped() {
    let door = Door::with(|options| options.title = "<b>\"&".into());
    let query = "</textarea><script>alert('x')</script>";
    let answer = door.get(&format!("?QUERY={}", encoded(query))).await;
    let page = answer.text();
    assert_eq!(page.matches("<script").count(), 1, "its own alone");
    assert_eq!(page.matches("</textarea>").count(), 1);
    assert!(page.contains("&lt;/textarea&gt;") && page.contains("<title>&lt;b&gt;&quot;&amp;</title>"));
}

#[tokio::test]
async fn its_files_come_from_the_binary() {
    let door = Door::new();
    for (name, media) in
        [("page.css", "text/css; charset=utf-8"), ("page.js", "text/javascript; charset=utf-8")]
    {
        let answer = door.get(&format!("/assets/{name}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, media));
        assert!(!answer.text().contains("http://") || name == "page.js", "nothing comes from elsewhere");
    }
    assert_eq!(door.get("/assets/..%2Fsecret").await.status, 404);
}

#[tokio::test]
async fn its_links_lead_where_clients_see_it() {
    let door = Door::with(|options| options.public_url = Some("https://vo.example/archive/tap".into()));
    let page = door.get("").await;
    assert!(page.text().contains("action=\"/archive/tap/sync\"") && !page.text().contains("\"/tap"));
}
