//! Query Entities, by GET and by POST.

use serde_json::json;

use crate::harness::{CITY, CORE, Door, JSON, LD_JSON, link};

async fn towers() -> Door {
    Door::with(&[
        r#"{"id":"urn:a:1","type":"Tower","height":100,"name":{"type":"Property","value":"Ähre"},
            "location":{"type":"GeoProperty","value":{"type":"Point","coordinates":[8.0,40.0]}}}"#,
        r#"{"id":"urn:a:2","type":"Tower","height":200,"name":{"type":"Property","value":"Zebra"},
            "location":{"type":"GeoProperty","value":{"type":"Point","coordinates":[9.0,40.0]}}}"#,
        r#"{"id":"urn:a:3","type":["Tower","Mast"],"height":300,"scope":"/a/b"}"#,
    ])
    .await
}

#[tokio::test]
async fn table_6_4_3_2_1_parameters_select() {
    let door = towers().await;
    for (query, ids) in [
        ("type=Tower", &[1, 2, 3][..]),
        ("type=*", &[1, 2, 3]),
        ("type=Mast,House", &[3]),
        ("type=(Tower;Mast)", &[3]),
        ("type=Tower&id=urn:a:1,urn:a:3", &[1, 3]),
        ("type=Tower&id=urn:a:1&id=urn:a:3", &[1, 3]),
        ("type=Tower&idPattern=%5Eurn:a:%5B12%5D%24", &[1, 2]),
        ("attrs=name", &[1, 2]),
        ("q=height%3E=200", &[2, 3]),
        ("q=height==100..200;name", &[1, 2]),
        ("type=Tower&scopeQ=/a/+", &[3]),
        ("type=Tower&scopeQ=/a/%23", &[3]),
        ("georel=near;maxDistance==1000&geometry=Point&coordinates=[8,40]", &[1]),
        ("type=Tower&orderBy=height;desc", &[3, 2, 1]),
        ("type=Tower&attrs=name&orderBy=name", &[2, 1]),
        ("type=Tower&attrs=name&orderBy=name&collation=de", &[1, 2]),
        ("type=Tower&attrs=location&orderBy=location;dist-desc&orderFrom=[8,40]", &[2, 1]),
        ("local=true", &[1, 2, 3]),
        ("local=true&splitEntities=true&csf=endpoint==%22x%22", &[1, 2, 3]),
    ] {
        let expected: Vec<String> = ids.iter().map(|id| format!("urn:a:{id}")).collect();
        assert_eq!(door.ids(&format!("/entities?{query}")).await, expected, "{query}");
    }
}

#[tokio::test]
async fn clause_5_7_2_4_queries_are_refused_with_their_parameter() {
    let door = towers().await;
    for (query, outcome, part) in [
        ("", "400 BadRequestData", "too wide"),
        ("id=urn:a:1", "400 BadRequestData", "too wide"),
        ("idPattern=.*", "400 BadRequestData", "too wide"),
        ("local=false", "400 BadRequestData", "too wide"),
        ("attrs=createdAt", "400 BadRequestData", "too wide"),
        ("q=modifiedAt%3E%222020-01-01T00:00:00Z%22", "400 BadRequestData", "too wide"),
        ("scopeQ=/a", "400 BadRequestData", "too wide"),
        ("type=*&local=false", "400 BadRequestData", "local"),
        ("type=Tower&local=maybe", "400 BadRequestData", "local"),
        ("type=Tower&id=nonsense", "400 BadRequestData", "id"),
        ("type=Tower&idPattern=(", "400 BadRequestData", "idPattern"),
        ("type=Tower&q=((", "400 BadRequestData", "q"),
        ("type=Tower&csf=))bad((", "400 BadRequestData", "csf"),
        ("type=Tower&q=in{name}==%22x%22", "400 BadRequestData", "join"),
        ("type=Tower&q=in{of{name}}==%22x%22&join=inline&joinLevel=1", "400 BadRequestData", "joinLevel"),
        ("type=Tower&pick=a{b{c}}&join=flat&joinLevel=1", "400 BadRequestData", "pick"),
        ("type=Tower&georel=touches&geometry=Point&coordinates=[1,2]", "400 BadRequestData", "georel"),
        ("type=Tower&georel=within", "400 BadRequestData", "geometry"),
        ("type=Tower&geoproperty=location", "400 InvalidRequest", "geoproperty"),
        ("type=Tower&orderBy=location;dist-asc", "400 BadRequestData", "orderFrom"),
        ("type=Tower&collation=!!nope", "400 BadRequestData", "collation"),
        ("type=Tower&expandValues=a", "400 BadRequestData", "expandValues"),
        ("type=Tower&lang=1%3B%3B", "400 BadRequestData", "lang"),
        ("type=Tower&datasetId=nonsense", "400 BadRequestData", "datasetId"),
        ("type=Tower&options=sysAttrs,nonsense", "400 InvalidRequest", "nonsense"),
        ("type=Tower&limit=0", "400 BadRequestData", "limit"),
        ("type=Tower&limit=1001", "403 TooManyResults", "limit"),
        ("type=Tower&limit=x", "400 BadRequestData", "limit"),
        ("type=Tower&drop=a", "400 InvalidRequest", "drop"),
        ("type=Tower&entityId=a", "400 InvalidRequest", "entityId"),
        ("type=Tower&entityMap=true", "400 InvalidRequest", "entityMap"),
    ] {
        let answer = door.get(&format!("/entities?{query}")).await;
        assert_eq!(answer.outcome(), outcome, "{query}: {}", answer.body);
        assert!(answer.json()["detail"].as_str().unwrap().contains(part), "{query}: {}", answer.body);
    }
}

#[tokio::test]
async fn clause_6_3_10_pages_link_to_their_neighbours() {
    let door = towers().await;
    let answer = door.get("/entities/?type=Tower&limit=1&offset=1&count=true").await;
    assert_eq!(answer.header("ngsild-results-count"), "3");
    let page = |offset, rel| {
        format!(
            "</ngsi-ld/v1/entities?count=true&limit=1&offset={offset}&type=Tower>; rel=\"{rel}\";type=\"application/json\""
        )
    };
    // The context's link and the pages' links stand beside each other.
    assert_eq!(answer.all("link"), [format!("{}, {}, {}", link(CORE), page(0, "prev"), page(2, "next"))]);
    let answer = door.get_as("/entities?type=Tower&limit=2", "application/ld+json").await;
    assert_eq!(
        answer.all("link"),
        ["</ngsi-ld/v1/entities?limit=2&offset=2&type=Tower>; rel=\"next\";type=\"application/ld+json\""]
    );
    let answer = door.get("/entities?type=Tower&limit=0&count=true").await;
    assert_eq!((answer.body.as_str(), answer.header("ngsild-results-count")), ("[]", "3"));
    assert_eq!(answer.all("link"), [link(CORE)]);
    let answer = door.get("/entities?type=Tower&offset=7&limit=5").await;
    assert_eq!(answer.body, "[]");
    assert!(answer.header("link").contains("offset=2&"));
    assert_eq!(door.get("/entities?type=Tower").await.header("ngsild-results-count"), "");
}

#[tokio::test]
async fn clause_6_23_a_query_by_post_asks_the_same() {
    let door = towers().await;
    let post =
        async |query: &str, body: &str| door.post(&format!("/entityOperations/query{query}"), body).await;
    let answer = post(
        "?limit=1&count=true&options=keyValues",
        r#"{"type":"Query","entities":[{"type":"Tower","id":["urn:a:1","urn:a:3"]},{"type":"Mast"}],
            "q":"height<=300","pick":["id","height"],"ordering":{"orderBy":["height;desc"]}}"#,
    )
    .await;
    assert_eq!(answer.json(), json!([{"id": "urn:a:3", "height": 300}]));
    assert_eq!(answer.header("ngsild-results-count"), "2");
    assert!(answer.header("link").ends_with(
        "</ngsi-ld/v1/entityOperations/query?count=true&limit=1&offset=1&options=keyValues>; rel=\"next\";type=\"application/json\""
    ));
    let geo = r#"{"type":"Query","geoQ":{"georel":"near;maxDistance==10","geometry":"Point","coordinates":[9,40]}}"#;
    assert_eq!(post("", geo).await.json()[0]["id"], "urn:a:2");
    for (query, body, outcome) in [
        ("", r#"{"type":"Query"}"#, "400 BadRequestData"),
        ("", r#"{"entities":[{"type":"Tower"}]}"#, "400 BadRequestData"),
        ("?type=Tower", r#"{"type":"Query"}"#, "400 InvalidRequest"),
        ("?lang=en", r#"{"type":"Query","lang":"fr","entities":[{"type":"Tower"}]}"#, "400 BadRequestData"),
        ("", r#"{"type":"Query","entities":[{"type":"Tower","id":"x"}]}"#, "400 BadRequestData"),
        (
            "",
            r#"{"type":"Query","entities":[{"type":"Tower"}],"joinLevel":0,"join":"flat"}"#,
            "400 BadRequestData",
        ),
        ("", "[]", "400 InvalidRequest"),
    ] {
        assert_eq!(post(query, body).await.outcome(), outcome, "{query} {body}");
    }
}

#[tokio::test]
async fn clause_6_3_5_a_context_given_inside_a_query_gets_a_url() {
    let door = Door::new();
    let header = link(CITY);
    let tower = r#"{"id":"urn:a:1","type":"Building","height":1}"#;
    door.send("POST", "/entities", &[JSON, ("link", &header)], tower).await;
    let query = r#"{"type":"Query","entities":[{"type":"House"}],
        "@context":{"House":"https://example.org/city#Building","tall":"https://example.org/city#height"}}"#;
    let answer = door.send("POST", "/entityOperations/query", &[LD_JSON], query).await;
    assert_eq!(answer.json()[0]["type"], "House");
    let hosted = answer.header("link").split(['<', '>']).nth(1).unwrap().to_owned();
    assert!(hosted.starts_with("https://broker.example/ngsi-ld/v1/jsonldContexts/"), "{hosted}");
    let answer = door.send("GET", "/entities/urn:a:1", &[("link", &link(&hosted))], "").await;
    assert_eq!(answer.json()["tall"]["value"], 1);
    let answer = door
        .send("POST", "/entityOperations/query", &[LD_JSON, ("accept", "application/ld+json")], query)
        .await;
    assert_eq!(answer.json()[0]["@context"]["House"], "https://example.org/city#Building");
    assert_eq!(answer.header("link"), "");
}
