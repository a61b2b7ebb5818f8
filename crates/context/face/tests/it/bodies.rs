//! Bodies: framing, media types, JSON, and where the context stands.

use bytes::Bytes;
use trifid_base_web::Framing;

use crate::harness::{CITY, Door, JSON, LD_JSON, link};

#[tokio::test]
async fn clause_6_3_4_a_body_states_its_length() {
    let door = Door::new();
    let body = Bytes::from_static(b"{\"id\":\"urn:a:1\",\"type\":\"T\"}");
    for (method, path) in
        [("POST", "/entities"), ("PATCH", "/entities/urn:a:1/attrs/"), ("PUT", "/entities/urn:a:1")]
    {
        for framing in [Framing::Chunked, Framing::None] {
            // The precondition holds whatever else is wrong with the request.
            let headers = [("content-type", "application/xml"), ("ngsild-tenant", "nobody")];
            let answer = door.send_framed(method, path, &headers, body.clone(), framing).await;
            assert_eq!((answer.status, answer.body.as_str()), (411, ""), "{method} {framing:?}");
        }
    }
    assert_eq!(
        door.send_framed("DELETE", "/entities/urn:a:1", &[], Bytes::new(), Framing::None).await.status,
        404
    );
}

#[tokio::test]
async fn clause_6_3_4_a_body_is_json() {
    let door = Door::new();
    let entity = r#"{"id":"urn:a:1","type":"T"}"#;
    for (content_type, body, outcome) in [
        ("application/xml", entity, "415"),
        ("application/merge-patch+json", entity, "415"),
        ("application/json; charset=iso-8859-1", entity, "415"),
        ("application/json", "", "400 InvalidRequest"),
        ("application/json", "{\"id\":", "400 InvalidRequest"),
        ("application/json", "{\"id\":\"urn:a:1\",\"id\":\"urn:a:2\"}", "400 InvalidRequest"),
        ("application/json", "[]", "400 InvalidRequest"),
        ("application/json", "\"text\"", "400 InvalidRequest"),
        ("application/json; charset=UTF-8", entity, "201"),
    ] {
        let answer = door.send("POST", "/entities", &[("content-type", content_type)], body).await;
        assert_eq!(answer.outcome(), outcome, "{content_type} {body}");
    }
    let patch = [("content-type", "application/merge-patch+json")];
    assert_eq!(door.send("PATCH", "/entities/urn:a:1", &patch, r#"{"a":1}"#).await.status, 204);
    let answer = door.send("POST", "/entities", &[JSON], Bytes::from_static(b"{\"id\":\"urn:\xff\"}")).await;
    assert_eq!(answer.outcome(), "400 InvalidRequest");
    assert!(answer.body.contains("byte 11"), "{}", answer.body);
}

#[tokio::test]
async fn clause_6_3_5_there_is_one_place_for_the_context() {
    let door = Door::new();
    let header = link(CITY);
    let link = ("link", header.as_str());
    let with = format!(r#"{{"id":"urn:a:1","type":"T","@context":"{CITY}"}}"#);
    let without = r#"{"id":"urn:a:1","type":"T"}"#.to_owned();
    for (headers, body, part) in [
        (&[JSON][..], &with, "application/json must not have a member"),
        (&[JSON, link], &with, "application/json must not have a member"),
        (&[LD_JSON], &without, "needs a member `@context`"),
        (&[LD_JSON, link], &with, "must not name"),
        (&[LD_JSON, link], &without, "must not name"),
        (&[JSON, link, link], &without, "more than one JSON-LD context"),
        (&[JSON, ("link", "nonsense")], &without, "not of the form"),
    ] {
        let answer = door.send("POST", "/entities", headers, body.clone()).await;
        assert_eq!(answer.outcome(), "400 BadRequestData", "{headers:?}");
        assert!(answer.body.contains(part), "{headers:?}: {}", answer.body);
    }
    assert_eq!(door.send("POST", "/entities", &[LD_JSON], with).await.status, 201);
}

#[tokio::test]
async fn clause_5_5_6_a_context_that_cannot_be_had_is_told_from_one_that_is_none() {
    let door = Door::new();
    for (url, outcome) in [
        ("https://example.org/none.jsonld", "504 LdContextNotAvailable"),
        (
            "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-non-existing.jsonld",
            "504 LdContextNotAvailable",
        ),
        ("https://example.org/broken.jsonld", "400 BadRequestData"),
        ("not a url", "400 BadRequestData"),
    ] {
        let body = format!(r#"{{"id":"urn:a:1","type":"T","@context":"{url}"}}"#);
        assert_eq!(door.send("POST", "/entities", &[LD_JSON], body).await.outcome(), outcome, "{url}");
        let answer = door.send("GET", "/entities?type=T", &[("link", &link(url))], "").await;
        assert_eq!(answer.outcome(), outcome, "{url}");
    }
    assert_eq!(door.get("/entities/urn:a:1").await.status, 404);
}
