//! `entities/` and `entities/{id}`: create, retrieve, replace, merge, delete, purge.

use serde_json::json;

use crate::harness::{CITY, CORE, Door, JSON, link};

const TOWER: &str = r#"{"id":"urn:a:tower","type":"Building","name":{"type":"Property","value":"Tower"},
    "height":{"type":"Property","value":324,"unitCode":"MTR"}}"#;

#[tokio::test]
async fn clause_6_4_3_1_a_new_entity_has_a_location() {
    let door = Door::new();
    let answer = door.post("/entities/", r#"{"id":"urn:a:1 2","type":"T"}"#).await;
    assert_eq!(answer.outcome(), "400 BadRequestData");
    let answer = door.post("/entities/", r#"{"id":"urn:a:1/2?3","type":"T"}"#).await;
    assert_eq!((answer.status, answer.body.as_str()), (201, ""));
    assert_eq!(answer.header("location"), "/ngsi-ld/v1/entities/urn:a:1%2F2%3F3");
    let found = door.get(answer.header("location").strip_prefix("/ngsi-ld/v1").unwrap()).await;
    assert_eq!(found.json()["id"], "urn:a:1/2?3");
    assert_eq!(
        door.post("/entities", r#"{"id":"urn:a:1/2?3","type":"T"}"#).await.outcome(),
        "409 AlreadyExists"
    );
}

#[tokio::test]
async fn clause_6_5_3_1_an_entity_comes_back_in_every_form() {
    let door = Door::with(&[TOWER]).await;
    let path = "/entities/urn:a:tower";
    let answer = door.get(path).await;
    assert_eq!(answer.json()["height"], json!({"type": "Property", "value": 324, "unitCode": "MTR"}));
    assert_eq!(answer.all("link"), [link(CORE)]);
    assert_eq!(door.get(&format!("{path}?format=simplified")).await.json()["height"], 324);
    assert_eq!(
        door.get(&format!("{path}?options=concise")).await.json()["height"],
        json!({"value": 324, "unitCode": "MTR"})
    );
    let answer = door.get(&format!("{path}?options=sysAttrs&format=keyValues")).await;
    assert_eq!(answer.json()["createdAt"], "2026-01-01T00:00:00Z");
    let answer = door.get_as(path, "application/ld+json").await;
    assert_eq!((answer.json()["@context"].as_str(), answer.header("link")), (Some(CORE), ""));
}

#[tokio::test]
async fn clause_5_7_1_4_what_is_not_there_is_not_found() {
    let door = Door::with(&[TOWER]).await;
    for (path, outcome) in [
        ("/entities/urn:a:none", "404 ResourceNotFound"),
        ("/entities/tower", "400 BadRequestData"),
        ("/entities/urn:a:tower?type=Vehicle", "404 ResourceNotFound"),
        ("/entities/urn:a:tower?type=Vehicle,Building", "200"),
        ("/entities/urn:a:tower?attrs=colour", "404 ResourceNotFound"),
        ("/entities/urn:a:tower?attrs=colour,name", "200"),
        ("/entities/urn:a:tower?pick=colour", "404 ResourceNotFound"),
        ("/entities/urn:a:tower?omit=id,type,name,height", "404 ResourceNotFound"),
        ("/entities/urn:a:tower?pick=name&omit=name", "400 BadRequestData"),
        ("/entities/urn:a:tower?pick=name&attrs=height", "400 BadRequestData"),
        ("/entities/urn:a:tower?pick=owner{name}", "400 BadRequestData"),
        ("/entities/urn:a:tower?geometryProperty=location", "400 BadRequestData"),
        ("/entities/urn:a:tower?join=inline&joinLevel=11", "400 BadRequestData"),
        ("/entities/urn:a:tower?join=outline", "400 BadRequestData"),
        ("/entities/urn:a:tower?containedBy=x&join=inline", "400 BadRequestData"),
        ("/entities/urn:a:tower?limit=1", "400 InvalidRequest"),
        ("/entities/urn:a:tower?format=x", "400 InvalidRequest"),
    ] {
        assert_eq!(door.get(path).await.outcome(), outcome, "{path}");
    }
}

#[tokio::test]
async fn clause_4_5_23_linked_entities_are_joined() {
    let door = Door::with(&[
        r#"{"id":"urn:a:b","type":"B","in":{"type":"Relationship","object":"urn:a:c"}}"#,
        r#"{"id":"urn:a:c","type":"C","in":{"type":"Relationship","object":["urn:a:d","urn:a:b"]}}"#,
        r#"{"id":"urn:a:d","type":"D","name":"x"}"#,
    ])
    .await;
    let ids = |answer: &serde_json::Value| -> Vec<String> {
        answer.as_array().unwrap().iter().map(|entity| entity["id"].as_str().unwrap().to_owned()).collect()
    };
    let flat = door.get("/entities/urn:a:b?join=flat&joinLevel=2").await.json();
    assert_eq!(ids(&flat), ["urn:a:b", "urn:a:c", "urn:a:d"]);
    assert!(door.get("/entities/urn:a:d?join=flat").await.json().is_object());
    let inline = door.get("/entities/urn:a:b?join=inline&joinLevel=2&format=simplified").await.json();
    assert_eq!(inline["in"]["in"][0]["name"], "x");
    // The loop back to where the walk began is cut (5.7.1.5).
    assert_eq!(inline["in"]["in"][1], "urn:a:b");
    let inline = door.get("/entities/urn:a:b?join=inline&containedBy=urn:a:c").await.json();
    assert!(inline["in"].get("entity").is_none());
    let list = door.get("/entities?type=B&join=flat").await.json();
    assert_eq!(ids(&list), ["urn:a:b", "urn:a:c"]);
}

#[tokio::test]
async fn clauses_6_5_3_2_to_6_5_3_4_an_entity_is_replaced_merged_and_deleted() {
    let door = Door::with(&[TOWER]).await;
    let path = "/entities/urn:a:tower";
    let answer = door.put(path, r#"{"id":"urn:a:tower","type":"Building","name":"New"}"#).await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    assert_eq!(
        door.get(path).await.json(),
        json!({"id": "urn:a:tower", "type": "Building", "name": {"type": "Property", "value": "New"}})
    );
    let merge = format!("{path}?observedAt=2026-01-02T00:00:00Z");
    assert_eq!(door.patch(&merge, r#"{"name":{"value":"Newer"}}"#).await.status, 204);
    assert_eq!(door.get(path).await.json()["name"]["observedAt"], "2026-01-02T00:00:00Z");
    for (method, path, outcome) in [
        ("PATCH", "/entities/urn:a:tower?observedAt=yesterday", "400 BadRequestData"),
        ("PATCH", "/entities/urn:a:tower?options=sysAttrs", "400 InvalidRequest"),
        ("PATCH", "/entities/urn:a:none", "404 ResourceNotFound"),
        ("PATCH", "/entities/none", "400 BadRequestData"),
        ("PUT", "/entities/", "400 BadRequestData"),
        ("PATCH", "/entities/", "400 BadRequestData"),
        ("PUT", "/entities", "405"),
        ("DELETE", "/entities/urn:a:tower?type=Vehicle", "404 ResourceNotFound"),
        ("DELETE", "/entities/urn:a:tower", "204"),
        ("DELETE", "/entities/urn:a:tower", "404 ResourceNotFound"),
    ] {
        assert_eq!(door.send(method, path, &[JSON], "{}").await.outcome(), outcome, "{method} {path}");
    }
}

#[tokio::test]
async fn clause_5_6_21_a_purge_is_narrow_and_takes_what_it_names() {
    let door = Door::with(&[TOWER, r#"{"id":"urn:a:car","type":"Vehicle","name":"Car"}"#]).await;
    for (query, outcome) in [
        ("", "400 BadRequestData"),
        ("?id=urn:a:tower", "400 BadRequestData"),
        ("?idPattern=.*", "400 BadRequestData"),
        ("?attrs=createdAt", "400 BadRequestData"),
        ("?q=modifiedAt%3E%222020-01-01T00:00:00Z%22", "400 BadRequestData"),
        ("?type=Building&drop=name&keep=height", "400 BadRequestData"),
        ("?type=Building&q=owner{name}==%22x%22", "400 BadRequestData"),
        ("?type=Building&attrs=owner{name}", "400 BadRequestData"),
        ("?type=Building&limit=5", "400 InvalidRequest"),
        ("?type=Building&drop=name", "204"),
    ] {
        assert_eq!(door.delete(&format!("/entities{query}")).await.outcome(), outcome, "{query}");
    }
    assert!(door.get("/entities/urn:a:tower").await.json().get("name").is_none());
    assert_eq!(door.delete("/entities?type=Vehicle").await.status, 204);
    assert_eq!(door.ids("/entities?local=true").await, ["urn:a:tower"]);
    assert_eq!(door.delete("/entities?local=true").await.status, 204);
    assert!(door.ids("/entities?local=true").await.is_empty());
}

#[tokio::test]
async fn clause_5_5_7_names_are_those_of_each_requests_context() {
    let door = Door::new();
    let header = link(CITY);
    let headers = [JSON, ("link", header.as_str())];
    assert_eq!(door.send("POST", "/entities", &headers, TOWER).await.status, 201);
    let plain = door.get("/entities/urn:a:tower").await.json();
    assert_eq!(plain["type"], "https://example.org/city#Building");
    let answer = door.send("GET", "/entities/urn:a:tower", &[("link", &header)], "").await;
    assert_eq!(answer.json()["name"]["value"], "Tower");
    // The client's own header names the context of the answer (6.3.5).
    assert_eq!(answer.all("link"), [header.as_str()]);
    assert!(door.ids("/entities?type=Building").await.is_empty());
    let query = door.send("GET", "/entities?type=Building&q=height==324", &[("link", &header)], "").await;
    assert_eq!(query.json()[0]["id"], "urn:a:tower");
}
