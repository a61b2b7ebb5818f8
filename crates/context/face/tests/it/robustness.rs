//! Whatever comes, an answer goes, and it is never a 5xx of our own making.

use proptest::prelude::*;
use tokio::runtime::Builder;

use crate::harness::{Door, JSON, LD_JSON};

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("entities".to_owned()),
        Just("attrs".to_owned()),
        Just("types".to_owned()),
        Just("attributes".to_owned()),
        Just("jsonldContexts".to_owned()),
        Just("entityOperations".to_owned()),
        Just("query".to_owned()),
        Just("urn:a:1".to_owned()),
        "(%[0-9a-f]{2}|[a-z.%:~]){0,8}",
    ]
}

fn query() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("type"),
        Just("id"),
        Just("q"),
        Just("attrs"),
        Just("pick"),
        Just("omit"),
        Just("options"),
        Just("limit"),
        Just("offset"),
        Just("count"),
        Just("scopeQ"),
        Just("georel"),
        Just("geometry"),
        Just("coordinates"),
        Just("join"),
        Just("joinLevel"),
        Just("lang"),
        Just("orderBy"),
        Just("local"),
        Just("details"),
        Just("idPattern"),
        Just("datasetId"),
    ];
    let value = prop_oneof![
        Just("true".to_owned()),
        Just("T".to_owned()),
        Just("1".to_owned()),
        Just("urn:a:1".to_owned()),
        "[ -~]{0,12}",
    ];
    prop::collection::vec((name, value), 0..5)
        .prop_map(|pairs| pairs.iter().map(|(name, value)| format!("{name}={}&", encoded(value))).collect())
}

/// What a URI cannot hold raw, percent-encoded.
fn encoded(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":;=[]{}()*!,/@.-_~+".contains(c);
    text.chars().map(|c| if plain(c) { c.to_string() } else { format!("%{:02x}", c as u32) }).collect()
}

fn check(method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let answer = runtime.block_on(async {
        let door =
            Door::with(&[r#"{"id":"urn:a:1","type":"T","a":{"type":"Property","value":[1,{"b":null}]}}"#])
                .await;
        door.send(method, path, headers, body).await
    });
    assert!((200..500).contains(&answer.status) || answer.status == 504, "{method} {path}: {answer:?}");
    if answer.status >= 400 && !answer.body.is_empty() {
        assert!(answer.json()["detail"].is_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_path_and_query(
        method in prop_oneof![Just("GET"), Just("POST"), Just("PATCH"), Just("PUT"), Just("DELETE"), Just("OPTIONS")],
        segments in prop::collection::vec(segment(), 0..5),
        query in query(),
    ) {
        let path = format!("/{}?{query}", segments.join("/"));
        if path.parse::<http::Uri>().is_ok() {
            check(method, &path, &[JSON], b"{\"id\":\"urn:a:2\",\"type\":\"T\"}".to_vec());
        }
    }

    #[test]
    fn any_body(
        path in prop_oneof![
            Just("/entities"), Just("/entities/urn:a:1"), Just("/entities/urn:a:1/attrs"),
            Just("/entities/urn:a:1/attrs/a"), Just("/entityOperations/upsert"), Just("/entityOperations/delete"),
            Just("/entityOperations/query"), Just("/jsonldContexts"),
        ],
        method in prop_oneof![Just("POST"), Just("PATCH"), Just("PUT")],
        ld in any::<bool>(),
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "(\\{|\\}|\\[|\\]|,|:|\"(id|type|value|@context|urn:a:1|Query|entities|a)\"|1|null|true){0,16}"
                .prop_map(String::into_bytes),
        ],
    ) {
        check(method, path, &[if ld { LD_JSON } else { JSON }], body);
    }
}
