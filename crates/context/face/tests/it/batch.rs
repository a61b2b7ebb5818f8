//! `entityOperations/*`.

use serde_json::json;

use crate::harness::{CITY, CORE, Door, JSON, LD_JSON, link};

#[tokio::test]
async fn clause_6_14_items_succeed_and_fail_on_their_own() {
    let door = Door::new();
    let answer = door
        .post("/entityOperations/create", r#"[{"id":"urn:a:1","type":"T"},{"id":"urn:a:2","type":"T"}]"#)
        .await;
    assert_eq!((answer.status, answer.json()), (201, json!(["urn:a:1", "urn:a:2"])));
    let batch =
        r#"[{"id":"urn:a:2","type":"T"},{"id":"urn:a:3","type":"T"},{"id":"x","type":"T"},{"type":"T"}]"#;
    let answer = door.post("/entityOperations/create", batch).await;
    assert_eq!(answer.status, 207);
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    assert_eq!(body["success"], json!(["urn:a:3"]));
    let errors = body["errors"].as_array().unwrap();
    let ids: Vec<_> = errors.iter().filter_map(|error| error["entityId"].as_str()).collect();
    assert_eq!((errors.len(), ids.len()), (3, 2));
    assert!(ids.contains(&"urn:a:2") && ids.contains(&"x"));
    let exists = errors.iter().find(|error| error["entityId"] == "urn:a:2").unwrap();
    assert_eq!(exists["error"]["type"], "https://uri.etsi.org/ngsi-ld/errors/AlreadyExists");
    assert_eq!(exists["error"]["status"], 409);
}

#[tokio::test]
async fn clauses_6_15_to_6_17_and_6_31_the_other_batches() {
    let door = Door::with(&[r#"{"id":"urn:a:1","type":"T","a":1}"#]).await;
    let both = r#"[{"id":"urn:a:1","type":"T","b":2},{"id":"urn:a:2","type":"T"},{"id":"urn:a:2","type":"T","c":3}]"#;
    for (path, body, status, expected) in [
        // 5.5.11: what comes twice is new once.
        ("upsert?options=update", both, 201, json!(["urn:a:2"])),
        ("upsert", r#"[{"id":"urn:a:1","type":"T","b":3}]"#, 204, json!(null)),
        ("update", r#"[{"id":"urn:a:1","a":9}]"#, 204, json!(null)),
        ("merge", r#"[{"id":"urn:a:1","a":{"value":10}}]"#, 204, json!(null)),
        ("delete", r#"["urn:a:2"]"#, 204, json!(null)),
    ] {
        let answer = door.post(&format!("/entityOperations/{path}"), body).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        let body = if answer.body.is_empty() { json!(null) } else { answer.json() };
        assert_eq!(body, expected, "{path}");
    }
    let entity = door.get("/entities/urn:a:1?format=simplified").await.json();
    assert_eq!(entity, json!({"id": "urn:a:1", "type": "T", "b": 3, "a": 10}));
    let answer = door.post("/entityOperations/delete", r#"["urn:a:1","urn:a:9"]"#).await;
    assert_eq!((answer.status, &answer.json()["success"]), (207, &json!(["urn:a:1"])));
}

#[tokio::test]
async fn clause_5_6_9_4_an_attribute_left_alone_is_told() {
    let door = Door::with(&[r#"{"id":"urn:a:1","type":"T","a":1}"#]).await;
    let body = r#"[{"id":"urn:a:1","a":2,"b":3}]"#;
    let answer = door.post("/entityOperations/update?options=noOverwrite", body).await;
    assert_eq!((answer.status, &answer.json()["errors"][0]["entityId"]), (207, &json!("urn:a:1")));
    let entity = door.get("/entities/urn:a:1?format=simplified").await.json();
    assert_eq!(entity, json!({"id": "urn:a:1", "type": "T", "a": 1, "b": 3}));
}

#[tokio::test]
async fn clause_4_4_a_keyword_of_json_ld_names_nothing() {
    let door = Door::new();
    for (body, status) in [
        (r#"{"id":"urn:a:1","type":"type"}"#, 400),
        (r#"{"id":"urn:a:1","type":"T","vocab":{"type":"VocabProperty","vocab":"v"}}"#, 201),
    ] {
        let answer = door.post("/entities", body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
}

#[tokio::test]
async fn clause_5_6_7_4_a_batch_that_is_none_fails_as_a_whole() {
    let door = Door::new();
    for (body, outcome) in [
        ("[]", "400 BadRequestData"),
        ("{}", "400 BadRequestData"),
        (r#"[{"id":"urn:a:1","type":"T"},null]"#, "400 BadRequestData"),
        ("[", "400 InvalidRequest"),
    ] {
        for operation in ["create", "upsert", "update", "merge", "delete"] {
            let answer = door.post(&format!("/entityOperations/{operation}"), body).await;
            assert_eq!(answer.outcome(), outcome, "{operation} {body}");
        }
    }
    assert_eq!(door.get("/entities/urn:a:1").await.status, 404);
    assert_eq!(
        door.post("/entityOperations/create?options=update", "[]").await.outcome(),
        "400 InvalidRequest"
    );
    assert_eq!(door.get("/entityOperations/create").await.status, 405);
}

#[tokio::test]
async fn clause_6_3_5_every_item_has_a_context_of_its_own() {
    let door = Door::new();
    let batch = format!(
        r#"[{{"id":"urn:a:1","type":"Building","@context":"{CITY}"}},
            {{"id":"urn:a:2","type":"Building","@context":"{CORE}"}},
            {{"id":"urn:a:3","type":"Building"}},
            {{"id":"urn:a:4","type":"Building","@context":"https://example.org/none.jsonld"}},
            {{"id":"urn:a:5","type":"Building","@context":"https://example.org/broken.jsonld"}}]"#
    );
    let answer = door.send("POST", "/entityOperations/create", &[LD_JSON], batch.clone()).await;
    assert_eq!(answer.status, 207);
    assert_eq!(answer.json()["success"], json!(["urn:a:1", "urn:a:2"]));
    let kinds: Vec<_> = answer.json()["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["error"]["type"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["BadRequestData", "LdContextNotAvailable", "BadRequestData"]);
    assert_eq!(door.get("/entities/urn:a:1").await.json()["type"], "https://example.org/city#Building");
    let header = link(CITY);
    let answer = door.send("POST", "/entityOperations/create", &[LD_JSON, ("link", &header)], batch).await;
    assert_eq!(answer.outcome(), "400 BadRequestData");
    let item = r#"[{"id":"urn:a:9","type":"Building"}]"#;
    let answer = door.send("POST", "/entityOperations/create", &[JSON, ("link", &header)], item).await;
    assert_eq!(answer.status, 201);
    assert_eq!(door.get("/entities/urn:a:9").await.json()["type"], "https://example.org/city#Building");
}
