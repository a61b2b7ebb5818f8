//! `jsonldContexts/`.

use serde_json::json;

use crate::harness::{CITY, CORE, Door, JSON, link};

const DOCUMENT: &str = r#"{"@context":{"Haus":"https://example.org/city#Building"},"more":1}"#;

#[tokio::test]
async fn clauses_5_13_2_to_5_13_5_a_context_is_hosted_used_and_deleted() {
    let door = Door::new();
    let answer = door.post("/jsonldContexts", DOCUMENT).await;
    assert_eq!((answer.status, answer.body.as_str()), (201, ""));
    let path = answer.header("location").strip_prefix("/ngsi-ld/v1").unwrap().to_owned();
    assert_eq!(
        door.get(&path).await.json(),
        json!({"@context": {"Haus": "https://example.org/city#Building"}})
    );
    let details = door.get(&format!("{path}?details=true")).await.json();
    assert_eq!(
        (details["kind"].as_str(), details["createdAt"].as_str()),
        (Some("Hosted"), Some("2026-01-01T00:00:00Z"))
    );
    let url = details["URL"].as_str().unwrap();
    let entity = r#"{"id":"urn:a:1","type":"Haus"}"#;
    assert_eq!(door.send("POST", "/entities", &[JSON, ("link", &link(url))], entity).await.status, 201);
    assert_eq!(door.get("/entities/urn:a:1").await.json()["type"], "https://example.org/city#Building");
    assert_eq!(door.get("/jsonldContexts?kind=Hosted").await.json(), json!([url]));
    // Another tenant sees none of it.
    let other = [("ngsild-tenant", "blue")];
    for (method, path) in [("GET", path.as_str()), ("DELETE", &path)] {
        assert_eq!(door.send(method, path, &other, "").await.outcome(), "404 ResourceNotFound", "{method}");
    }
    assert!(!door.send("GET", "/jsonldContexts", &other, "").await.body.contains(url));
    assert_eq!(door.delete(&format!("{path}?reload=true")).await.outcome(), "400 BadRequestData");
    assert_eq!(door.delete(&path).await.status, 204);
    assert_eq!(door.get(&path).await.outcome(), "404 ResourceNotFound");
}

#[tokio::test]
async fn clause_5_13_4_cached_copies_are_told_of_and_not_served() {
    let door = Door::new();
    door.send("GET", "/entities?type=T", &[("link", &link(CITY))], "").await;
    let listed = door.get("/jsonldContexts?kind=Cached&details=true").await.json();
    assert!(listed.as_array().unwrap().iter().any(|entry| entry["URL"] == CITY));
    let path = "/jsonldContexts/https%3A%2F%2Fexample.org%2Fcity.jsonld";
    assert_eq!(door.get(path).await.outcome(), "422 OperationNotSupported");
    assert_eq!(door.get(&format!("{path}?details=true")).await.json()["kind"], "Cached");
    assert_eq!(door.delete(&format!("{path}?reload=true")).await.status, 204);
    assert_eq!(door.delete(path).await.status, 204);
    assert_eq!(door.get(&format!("{path}?details=true")).await.outcome(), "404 ResourceNotFound");
    let core = format!("/jsonldContexts/{}", CORE.replace(':', "%3A").replace('/', "%2F"));
    assert_eq!(door.delete(&core).await.outcome(), "400 BadRequestData");
}

#[tokio::test]
async fn clause_5_13_2_4_what_is_no_context_is_refused() {
    let door = Door::new();
    for (body, outcome) in [
        ("{", "400 InvalidRequest"),
        ("[]", "400 InvalidRequest"),
        (r#"{"context":{}}"#, "400 InvalidRequest"),
        (r#"{"@context":5}"#, "400 BadRequestData"),
        (r#"{"@context":true}"#, "400 BadRequestData"),
        (r#"{"@context":[{},5]}"#, "400 BadRequestData"),
    ] {
        let answer = door.post("/jsonldContexts", body).await;
        assert_eq!(answer.outcome(), outcome, "{body}");
        assert_eq!(answer.header("location"), "");
    }
    for (path, outcome) in [
        ("/jsonldContexts?kind=other", "400 BadRequestData"),
        ("/jsonldContexts?details=other", "400 BadRequestData"),
        ("/jsonldContexts?reload=true", "400 InvalidRequest"),
        ("/jsonldContexts/none", "404 ResourceNotFound"),
        ("/jsonldContexts/none?details=other", "400 BadRequestData"),
    ] {
        assert_eq!(door.get(path).await.outcome(), outcome, "{path}");
    }
    assert_eq!(
        door.send("POST", "/jsonldContexts", &[("content-type", "text/plain")], DOCUMENT).await.status,
        415
    );
}
