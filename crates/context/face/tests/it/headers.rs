//! Methods, negotiation, tenants and preferences.

use crate::harness::{CORE, Door, JSON, link};

#[tokio::test]
async fn resources_of_other_doors_and_later_days_are_unknown() {
    let door = Door::new();
    for path in [
        "/subscriptions",
        "/temporal/entities",
        "/csourceRegistrations/",
        "/entityMaps",
        "/snapshots",
        "/",
        "",
    ] {
        assert_eq!(door.get(path).await.outcome(), "404 ResourceNotFound", "{path}");
    }
}

#[tokio::test]
async fn a_resource_tells_its_methods() {
    let door = Door::with(&[r#"{"id":"urn:a:1","type":"T"}"#]).await;
    for (path, allow) in [
        ("/entities", "GET, POST, DELETE, HEAD, OPTIONS"),
        ("/entities/", "GET, POST, DELETE, HEAD, OPTIONS"),
        ("/entities/urn:a:1", "GET, PUT, PATCH, DELETE, HEAD, OPTIONS"),
        ("/entities/urn:a:1/attrs/x", "PATCH, PUT, DELETE, OPTIONS"),
        ("/types/T", "GET, HEAD, OPTIONS"),
        ("/entityOperations/query", "POST, OPTIONS"),
        ("/jsonldContexts", "GET, POST, HEAD, OPTIONS"),
    ] {
        let answer = door.send("OPTIONS", path, &[], "").await;
        assert_eq!((answer.status, answer.header("allow")), (204, allow), "{path}");
        let answer = door.send("BREW", path, &[JSON], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, allow), "{path}");
    }
    let head = door.send("HEAD", "/entities/urn:a:1", &[], "").await;
    assert_eq!((head.status, head.header("content-type")), (200, "application/json"));
}

#[tokio::test]
async fn clause_6_3_4_what_cannot_be_represented_is_not_acceptable() {
    let door = Door::with(&[r#"{"id":"urn:a:1","type":"T"}"#]).await;
    for (path, accept, outcome) in [
        ("/entities/urn:a:1", "application/xml", 406),
        ("/entities/urn:a:none", "application/xml", 406),
        ("/entities?type=T", "text/html", 406),
        ("/entities?type=T", "text/html, */*;q=0.1", 200),
        ("/types", "application/geo+json", 406),
        ("/types", "application/geo+json, application/ld+json", 200),
        ("/info/sourceIdentity", "application/geo+json", 406),
        ("/jsonldContexts", "application/geo+json", 406),
    ] {
        let answer = door.get_as(path, accept).await;
        assert_eq!(answer.status, outcome, "{path} {accept}");
        if outcome == 406 {
            assert_eq!(answer.json()["representations"][0], "application/json");
        }
    }
}

#[tokio::test]
async fn clause_6_3_6_geojson_has_its_context_where_the_client_prefers() {
    let entity = r#"{"id":"urn:a:1","type":"T","location":{"type":"GeoProperty",
        "value":{"type":"Point","coordinates":[8.5,41.2]}}}"#;
    let door = Door::with(&[entity]).await;
    let geo = ("accept", "application/geo+json");
    let answer = door.send("GET", "/entities?type=T", &[geo], "").await;
    assert_eq!(answer.header("content-type"), "application/geo+json");
    let body = answer.json();
    assert_eq!((body["type"].as_str(), body["@context"].as_str()), (Some("FeatureCollection"), Some(CORE)));
    assert_eq!(body["features"][0]["geometry"]["coordinates"][0], 8.5);
    assert_eq!(answer.header("link"), "");
    let answer = door.send("GET", "/entities/urn:a:1", &[geo, ("prefer", "body=json")], "").await;
    assert!(answer.json().get("@context").is_none());
    assert_eq!((answer.header("link"), answer.header("preference-applied")), (&*link(CORE), "body=json"));
    let answer = door.send("GET", "/entities/urn:a:1?geometryProperty=position", &[geo], "").await;
    assert!(answer.json()["geometry"].is_null());
}

#[tokio::test]
async fn clause_6_3_14_tenants_are_isolated_and_echoed() {
    let door = Door::new();
    let of = |tenant: &'static str| ("ngsild-tenant", tenant);
    let query = "/entities?type=T";
    let answer = door.send("GET", query, &[of("blue")], "").await;
    assert_eq!(
        (answer.outcome().as_str(), answer.header("ngsild-tenant")),
        ("404 NonexistentTenant", "blue")
    );
    let entity = r#"{"id":"urn:a:1","type":"T"}"#;
    let answer = door.send("POST", "/entities", &[JSON, of("blue")], entity).await;
    assert_eq!((answer.status, answer.header("ngsild-tenant")), (201, "blue"));
    assert_eq!(door.send("GET", query, &[of("blue")], "").await.json().as_array().unwrap().len(), 1);
    assert!(door.ids(query).await.is_empty());
    assert_eq!(door.get(query).await.header("ngsild-tenant"), "");
    assert_eq!(
        door.send("DELETE", "/entities/urn:a:1", &[of("red")], "").await.outcome(),
        "404 NonexistentTenant"
    );
    for bad in ["", "two words", "../x", "~x"] {
        assert_eq!(
            door.send("GET", query, &[("ngsild-tenant", bad)], "").await.outcome(),
            "400 BadRequestData",
            "{bad}"
        );
    }
    assert_eq!(door.send("GET", query, &[of("blue"), of("red")], "").await.outcome(), "400 BadRequestData");
}

#[tokio::test]
async fn clause_4_14_requests_for_snapshots_are_not_answered_from_live_data() {
    let door = Door::with(&[r#"{"id":"urn:a:1","type":"T"}"#]).await;
    let snapshot = ("ngsild-snapshot", "urn:ngsi-ld:Snapshot:1");
    assert_eq!(
        door.send("GET", "/entities/urn:a:1", &[snapshot], "").await.outcome(),
        "404 ResourceNotFound"
    );
}
