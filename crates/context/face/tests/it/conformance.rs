//! Clients of earlier versions of the standard (4.3.6.8).

use serde_json::json;

use crate::harness::Door;

const ENTITY: &str = r#"{"id":"urn:a:1","type":"T",
    "vocab1":{"type":"VocabProperty","vocab":["a","https://example.org/b"],"unit":{"type":"JsonProperty","json":{"x":1}}},
    "words":{"type":"LanguageProperty","languageMap":{"en":"hi"}},
    "list":{"type":"ListProperty","valueList":[1,2]},
    "route":{"type":"ListRelationship","objectList":["urn:a:2","urn:a:3"]},
    "plain":{"type":"Property","value":1}}"#;

#[tokio::test]
async fn kinds_that_a_version_does_not_know_become_properties() {
    let door = Door::with(&[ENTITY]).await;
    let prefer =
        async |version: &str| door.send("GET", "/entities/urn:a:1", &[("prefer", version)], "").await;
    let answer = prefer("ngsi-ld=1.5").await;
    assert_eq!((answer.status, answer.header("preference-applied")), (203, "ngsi-ld=1.5"));
    let body = answer.json();
    assert_eq!(
        body["vocab1"],
        json!({"type": "Property", "value": ["a", "https://example.org/b"],
               "unit": {"type": "Property", "value": {"x": 1}}})
    );
    assert_eq!(body["words"]["type"], "LanguageProperty");
    assert_eq!(body["list"], json!({"type": "Property", "value": [1, 2]}));
    assert_eq!(body["route"], json!({"type": "Property", "value": ["urn:a:2", "urn:a:3"]}));
    assert_eq!(
        prefer("ngsi-ld=1.3").await.json()["words"],
        json!({"type": "Property", "value": {"en": "hi"}})
    );
    for native in ["ngsi-ld=1.8", "ngsi-ld=1.9"] {
        let answer = prefer(native).await;
        assert_eq!((answer.status, answer.header("preference-applied")), (200, native));
        assert_eq!(answer.json()["vocab1"]["type"], "VocabProperty");
    }
    let answer = prefer("ngsi-ld=2.0").await;
    assert_eq!((answer.status, answer.header("preference-applied")), (200, ""));
    let list = door.send("GET", "/entities?type=T", &[("prefer", "ngsi-ld=1.5")], "").await;
    assert_eq!((list.status, list.json()[0]["list"]["type"].as_str()), (203, Some("Property")));
}
