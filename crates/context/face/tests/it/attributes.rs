//! `entities/{id}/attrs/` and `entities/{id}/attrs/{attr}`.

use serde_json::json;

use crate::harness::{CORE, Door, JSON, LD_JSON};

const CAR: &str = r#"{"id":"urn:a:car","type":"Vehicle","speed":[{"type":"Property","value":1},
    {"type":"Property","value":2,"datasetId":"urn:d:2"}],"https://example.org/a/b":{"type":"Property","value":"x"}}"#;

#[tokio::test]
async fn clause_6_6_3_appending_and_updating_tell_what_they_left_alone() {
    let door = Door::with(&[CAR]).await;
    let path = "/entities/urn:a:car/attrs/";
    assert_eq!(door.post(path, r#"{"colour":"red"}"#).await.status, 204);
    let answer = door.post(&format!("{path}?options=noOverwrite"), r#"{"colour":"blue","doors":5}"#).await;
    assert_eq!(answer.status, 207);
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    // Names are fully qualified (6.3.5).
    assert_eq!(body["updated"], json!(["https://uri.etsi.org/ngsi-ld/default-context/doors"]));
    let left = &body["notUpdated"][0];
    assert_eq!(left["attributeName"], "https://uri.etsi.org/ngsi-ld/default-context/colour");
    assert!(!left["reason"].as_str().unwrap().is_empty());
    assert_eq!(
        door.patch(path, r#"{"colour":{"type":"Property","value":"urn:ngsi-ld:null"}}"#).await.status,
        204
    );
    assert!(door.get("/entities/urn:a:car").await.json().get("colour").is_none());
}

#[tokio::test]
async fn clause_6_7_3_one_attribute_is_updated_replaced_and_deleted() {
    let door = Door::with(&[CAR]).await;
    let path = "/entities/urn:a:car/attrs/speed";
    assert_eq!(door.patch(path, r#"{"value":7,"unitCode":"KMH"}"#).await.status, 204);
    let speed = door.get("/entities/urn:a:car?pick=speed").await.json()["speed"].clone();
    assert_eq!(speed[0], json!({"type": "Property", "value": 7, "unitCode": "KMH"}));
    for (method, query, body, outcome) in [
        ("PATCH", "?type=Building", r#"{"value":1}"#, "404 ResourceNotFound"),
        ("PATCH", "", r#"{"datasetId":"urn:d:none","value":1}"#, "404 ResourceNotFound"),
        ("PATCH", "?datasetId=urn:d:2", r#"{"value":1}"#, "400 InvalidRequest"),
        ("DELETE", "?datasetId=nonsense", "", "400 BadRequestData"),
        ("DELETE", "?datasetId=urn:d:2&deleteAll=true", "", "400 BadRequestData"),
        ("DELETE", "?deleteAll=True", "", "400 BadRequestData"),
        ("DELETE", "?datasetId=urn:d:none", "", "404 ResourceNotFound"),
        ("DELETE", "?datasetId=urn:d:2", "", "204"),
        ("DELETE", "?datasetId=@none", "", "204"),
        ("DELETE", "?deleteAll=true", "", "404 ResourceNotFound"),
        ("PUT", "", r#"{"type":"Property","value":1}"#, "404 ResourceNotFound"),
    ] {
        let answer = door.send(method, &format!("{path}{query}"), &[JSON], body).await;
        assert_eq!(answer.outcome(), outcome, "{method} {query}");
    }
}

#[tokio::test]
async fn a_slash_in_an_attribute_name_is_not_a_slash_of_the_path() {
    let door = Door::with(&[CAR]).await;
    let path = "/entities/urn:a:car/attrs/https%3A%2F%2Fexample.org%2Fa%2Fb";
    assert_eq!(door.put(path, r#"{"type":"Property","value":"y"}"#).await.status, 204);
    assert_eq!(door.get("/entities/urn:a:car").await.json()["https://example.org/a/b"]["value"], "y");
    assert_eq!(door.delete(path).await.status, 204);
    assert_eq!(door.delete("/entities/urn:a:car/attrs/%zz").await.outcome(), "400 BadRequestData");
    assert_eq!(
        door.delete("/entities/urn:a:car/attrs/https://example.org/a").await.outcome(),
        "404 ResourceNotFound"
    );
}

#[tokio::test]
async fn an_entity_id_that_is_missing_is_bad_data() {
    let door = Door::new();
    for (method, path) in [
        ("POST", "/entities//attrs/"),
        ("PATCH", "/entities//attrs"),
        ("PATCH", "/entities//attrs/speed"),
        ("DELETE", "/entities//attrs/speed"),
    ] {
        let answer = door.send(method, path, &[JSON], r#"{"a":1}"#).await;
        assert_eq!(answer.outcome(), "400 BadRequestData", "{method} {path}");
    }
    let answer = door.delete("/entities/urn:a:car/attrs/").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "POST, PATCH, OPTIONS"));
}

#[tokio::test]
async fn clause_6_3_5_a_fragment_in_json_ld_has_its_context_inside() {
    let door = Door::with(&[CAR]).await;
    let body = format!(r#"{{"value":9,"source":{{"type":"Property","value":"gps"}},"@context":"{CORE}"}}"#);
    let answer = door.send("PATCH", "/entities/urn:a:car/attrs/speed", &[LD_JSON], body).await;
    assert_eq!(answer.status, 204, "{}", answer.body);
    let speed = door.get("/entities/urn:a:car?pick=speed").await.json()["speed"][0].clone();
    assert_eq!(speed["source"]["value"], "gps");
    assert!(speed.get("@context").is_none());
    let answer = door.send("PATCH", "/entities/urn:a:car/attrs/speed", &[LD_JSON], r#"{"value":9}"#).await;
    assert_eq!(answer.outcome(), "400 BadRequestData");
}
