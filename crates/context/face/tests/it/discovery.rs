//! `types/`, `attributes/` and `info/sourceIdentity`.

use std::time::Duration;

use serde_json::json;

use crate::harness::{CITY, CORE, Door, JSON, VOCAB, link};

async fn city() -> Door {
    let door = Door::new();
    let header = link(CITY);
    for entity in [
        r#"{"id":"urn:a:1","type":"Building","name":"x","height":1}"#,
        r#"{"id":"urn:a:2","type":["Building","Plain"],"name":{"type":"LanguageProperty","languageMap":{"en":"x"}}}"#,
    ] {
        assert_eq!(door.send("POST", "/entities", &[JSON, ("link", &header)], entity).await.status, 201);
    }
    door
}

#[tokio::test]
async fn clauses_5_7_5_to_5_7_7_types_are_told() {
    let door = city().await;
    let header = link(CITY);
    let get = async |path: &str| door.send("GET", path, &[("link", &header)], "").await;
    let list = get("/types").await;
    assert_eq!(list.json()["type"], "EntityTypeList");
    assert_eq!(list.json()["typeList"], json!(["Building", "Plain"]));
    assert_eq!(list.header("link"), header);
    let details = get("/types/?details=true").await.json();
    assert_eq!(
        details[0],
        json!({"id": format!("{VOCAB}Building"), "type": "EntityType", "typeName": "Building",
               "attributeNames": ["height", "name"]})
    );
    let info = get("/types/Building").await.json();
    assert_eq!((&info["type"], &info["entityCount"]), (&json!("EntityTypeInfo"), &json!(2)));
    let name = &info["attributeDetails"][1];
    assert_eq!(name["attributeName"], "name");
    assert_eq!(name["attributeTypes"], json!(["Property", "LanguageProperty"]));
    assert_eq!(get("/types/https%3A%2F%2Fexample.org%2Fcity%23Building").await.status, 200);
    assert_eq!(door.get("/types/Building").await.outcome(), "404 ResourceNotFound");
    assert_eq!(door.get("/types/Building?details=true").await.outcome(), "400 InvalidRequest");
    assert_eq!(door.get("/types?details=yes").await.outcome(), "400 BadRequestData");
    let answer = door.get_as("/types", "application/ld+json").await;
    assert_eq!((answer.json()["@context"].as_str(), answer.header("link")), (Some(CORE), ""));
}

#[tokio::test]
async fn clauses_5_7_8_to_5_7_10_attributes_are_told() {
    let door = city().await;
    let header = link(CITY);
    let get = async |path: &str| door.send("GET", path, &[("link", &header)], "").await;
    assert_eq!(get("/attributes").await.json()["attributeList"], json!(["height", "name"]));
    let details = get("/attributes?details=true").await.json();
    assert_eq!(
        details[1],
        json!({"id": format!("{VOCAB}name"), "type": "Attribute", "attributeName": "name",
               "typeNames": ["Building", "Plain"]})
    );
    let info = get("/attributes/name").await.json();
    assert_eq!(info["attributeCount"], 2);
    assert_eq!(info["typeNames"], json!(["Building", "Plain"]));
    assert_eq!(get("/attributes/colour").await.outcome(), "404 ResourceNotFound");
    for name in ["id", "type", "scope", "createdAt"] {
        assert_eq!(get(&format!("/attributes/{name}")).await.outcome(), "404 ResourceNotFound", "{name}");
    }
}

#[tokio::test]
async fn clause_5_15_1_the_source_says_who_it_is() {
    let door = Door::new();
    door.clock.advance(Duration::from_secs(3661));
    let answer = door.get("/info/sourceIdentity").await.json();
    assert_eq!(
        answer,
        json!({"id": "urn:ngsi-ld:ContextSourceIdentity:trifid", "type": "ContextSourceIdentity",
               "contextSourceAlias": "trifid", "contextSourceUptime": "PT1H1M1S",
               "contextSourceTimeAt": "2026-01-01T01:01:01Z"})
    );
    let answer = door.send("GET", "/info/sourceIdentity", &[("ngsild-tenant", "blue")], "").await;
    assert_eq!(answer.json()["contextSourceAlias"], "trifid~blue");
    assert_eq!(door.get("/info/sourceIdentity?details=true").await.outcome(), "400 InvalidRequest");
}
