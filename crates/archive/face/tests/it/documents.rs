//! VOSI 1.1, TAPRegExt 1.0 and DALI examples.

use http::Method;
use trifid_base_web::{Access, Face as _, Role};

use crate::harness::{Door, Xml};

#[tokio::test]
async fn there_is_exactly_one_capability_of_tap() {
    let answer = Door::new().get("/capabilities").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/xml"));
    let xml = answer.xml();
    let standards: Vec<String> =
        xml.all("capability").iter().map(|capability| capability.get("standardID").to_owned()).collect();
    let expected = [
        "ivo://ivoa.net/std/TAP",
        "ivo://ivoa.net/std/VOSI#capabilities",
        "ivo://ivoa.net/std/VOSI#availability",
        "ivo://ivoa.net/std/VOSI#tables-1.1",
        "ivo://ivoa.net/std/DALI#examples",
    ];
    assert_eq!(standards, expected);
    let interface = &xml.all("interface")[0];
    assert_eq!(
        (interface.get("xsi:type"), interface.get("role"), interface.get("version")),
        ("vs:ParamHTTP", "std", "1.1")
    );
    let urls = xml.all("accessURL");
    assert_eq!((urls[0].text.as_str(), urls[0].get("use")), ("http://archive.example:9090/tap", "base"));
    assert_eq!(urls[3].text, "http://archive.example:9090/tap/tables");
}

#[tokio::test]
async fn the_language_and_its_features_are_declared() {
    let xml = Door::new().get("/capabilities").await.xml();
    assert_eq!(xml.texts("version"), ["2.0", "2.1"]);
    let groups: Vec<String> =
        xml.all("languageFeatures").iter().map(|group| group.get("type").to_owned()).collect();
    assert!(
        groups.iter().all(|group| group.starts_with("ivo://ivoa.net/std/TAPRegExt#features-")),
        "{groups:?}"
    );
    let forms = xml.texts("form");
    assert!(forms.iter().any(|form| form == "DISTANCE"), "{forms:?}");
    assert!(forms.iter().any(|form| form.starts_with("ivo_healpix_index(")), "{forms:?}");
}

#[tokio::test]
async fn limits_and_methods_are_those_of_the_options() {
    let door = Door::with(|options| {
        (options.output_default, options.output_limit, options.upload_rows) = (11, 22, 33);
        options.upload_hosts = vec!["data.example".into()];
    });
    let xml = door.get("/capabilities").await.xml();
    let limits = |path: &str| -> Vec<String> {
        xml.0
            .iter()
            .filter(|found| found.path.contains(path) && !found.text.trim().is_empty())
            .map(|found| found.text.clone())
            .collect()
    };
    assert_eq!(limits("outputLimit/"), ["11", "22"]);
    assert_eq!(limits("uploadLimit/"), ["33", "33"]);
    assert_eq!(limits("executionDuration/"), ["3600", "86400"]);
    let methods: Vec<String> =
        xml.all("uploadMethod").iter().map(|method| method.get("ivo-id").to_owned()).collect();
    let method = |name: &str| format!("ivo://ivoa.net/std/TAPRegExt#upload-{name}");
    assert_eq!(methods, [method("inline"), method("http"), method("https")]);
    let door = Door::with(|options| options.upload_hosts.clear());
    assert_eq!(door.get("/capabilities").await.xml().all("uploadMethod").len(), 1);
    assert!(xml.all("dataModel").is_empty(), "there is no ivoa.obscore");
}

#[tokio::test]
async fn urls_follow_the_host_or_the_option() {
    let door = Door::new();
    let xml = door.send(Method::GET, "/capabilities", &[("host", "evil\"><x>")], "").await;
    assert!(!xml.text().contains("<x>"));
    let door = Door::with(|options| options.public_url = Some("https://vo.example/archive/tap/".into()));
    let xml = door.get("/capabilities").await.xml();
    assert_eq!(xml.texts("accessURL")[0], "https://vo.example/archive/tap");
}

#[tokio::test]
async fn it_is_available() {
    let xml = Door::new().get("/availability").await.xml();
    assert_eq!(xml.texts("available"), ["true"]);
    assert_eq!(xml.texts("upSince"), ["2026-01-01T00:00:00Z"]);
}

fn names(xml: &Xml, path: &str) -> Vec<String> {
    xml.0.iter().filter(|element| element.path == path).map(|element| element.text.clone()).collect()
}

#[tokio::test]
async fn all_tables_are_described() {
    let door = Door::new();
    let answer = door.get("/tables").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/xml"));
    let xml = answer.xml();
    assert_eq!(names(&xml, "/tableset/schema/name"), ["demo", "TAP_SCHEMA"]);
    let tables = names(&xml, "/tableset/schema/table/name");
    assert_eq!(&tables[..4], ["demo.stars", "demo.many", "demo.\"I/355/odd\"", "TAP_SCHEMA.schemas"]);
    assert_eq!(names(&xml, "/tableset/schema/table/description")[0], "A few <stars> & more");
    let columns = names(&xml, "/tableset/schema/table/column/name");
    assert_eq!(&columns[..7], ["id", "ra", "dec", "mag", "name", "n", "x"]);
    assert!(
        columns.contains(&"\"odd column\"".to_owned()) && columns.contains(&"\"size\"".to_owned()),
        "{columns:?}"
    );
    let kinds = xml.all("dataType");
    assert_eq!(
        (kinds[0].text.as_str(), kinds[4].text.as_str(), kinds[4].get("arraysize")),
        ("long", "char", "*")
    );
    assert_eq!(xml.texts("targetTable").len(), xml.texts("fkColumn").len());
    assert!(names(&xml, "/tableset/schema/table/column/flag").contains(&"indexed".to_owned()));
}

#[tokio::test]
async fn detail_is_the_clients_choice() {
    let door = Door::new();
    let least = door.get("/tables?detail=min").await.xml();
    assert!(least.all("column").is_empty() && least.all("foreignKey").is_empty());
    assert_eq!(names(&least, "/tableset/schema/table/name").len(), 8);
    assert!(!door.get("/tables?DETAIL=max").await.xml().all("column").is_empty());
    assert_eq!(door.get("/tables?detail=some").await.status, 400);
}

#[tokio::test]
async fn one_table_alone_or_none() {
    let door = Door::new();
    for path in [
        "demo.stars",
        "DEMO.Stars",
        "demo.%22I%2F355%2Fodd%22",
        "demo.%22I/355/odd%22",
        "demo.I/355/odd",
        "demo.stars/",
    ] {
        let answer = door.get(&format!("/tables/{path}")).await;
        assert_eq!(answer.status, 200, "{path}");
        let xml = answer.xml();
        assert_eq!(xml.0[0].path, "/table");
        assert!(!xml.all("column").is_empty());
    }
    for path in ["demo.nothing", "demo", "stars", "demo.%ff", "%20", &"x".repeat(2000)] {
        let answer = door.get(&format!("/tables/{path}")).await;
        assert_eq!((answer.status, answer.statuses()), (404, vec!["ERROR".to_owned()]), "{path}");
    }
}

#[tokio::test]
async fn who_has_the_tables_already_is_told_so() {
    let door = Door::new();
    let first = door.get("/tables").await;
    let tag = first.header("etag").to_owned();
    assert!(!tag.is_empty());
    let again = door.send(Method::GET, "/tables", &[("if-none-match", &tag)], "").await;
    assert_eq!((again.status, again.bytes.len(), again.header("etag")), (304, 0, tag.as_str()));
    let least = door.send(Method::GET, "/tables?detail=min", &[("if-none-match", &tag)], "").await;
    assert_eq!(least.status, 200, "another document, another tag");
    let zipped = door.send(Method::GET, "/tables", &[("accept-encoding", "gzip")], "").await;
    assert_eq!(zipped.header("content-encoding"), "gzip");
    assert_eq!(crate::sync::decoded("gzip", &zipped.bytes), first.bytes);
}

#[tokio::test]
async fn another_snapshot_is_another_document() {
    let door = Door::new();
    let first = door.get("/tables").await;
    door.archive
        .publish(|_, generation| {
            trifid_archive_engine::tap_schema::with_tap_schema(generation, Vec::new(), Vec::new())
        })
        .unwrap();
    let second = door.get("/tables").await;
    assert_ne!(first.header("etag"), second.header("etag"));
    assert_eq!(names(&second.xml(), "/tableset/schema/name"), ["TAP_SCHEMA"]);
    assert_eq!(door.get("/tables/demo.stars").await.status, 404);
}

/// DALI 1.1 2.3.1 and TAP 1.1 2.6: each example runs.
#[tokio::test]
async fn examples_are_for_programs_too() {
    let door = Door::new();
    let answer = door.get("/examples").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/xhtml+xml"));
    let xml = answer.xml();
    let examples: Vec<_> = xml.all("div").into_iter().filter(|div| div.get("typeof") == "example").collect();
    assert!(examples.len() > 3);
    for example in &examples {
        assert_eq!(example.get("resource"), format!("#{}", example.get("id")));
    }
    let queries: Vec<_> = xml.all("pre").into_iter().filter(|pre| pre.get("property") == "query").collect();
    assert_eq!(queries.len(), examples.len());
    for query in queries {
        let answered = door.query(&query.text, "FORMAT=csv").await;
        assert_eq!(answered.status, 200, "{}: {}", query.text, answered.text());
    }
}

/// VOSI 1.1 2: these two are for everybody; a query is reading, however it is sent.
#[tokio::test]
async fn who_may_ask_what() {
    let door = Door::new();
    for (method, path, needed) in [
        (Method::GET, "/tap/capabilities", Access::Public),
        (Method::HEAD, "/tap/availability", Access::Public),
        (Method::GET, "/tap/tables", Access::Needs(Role::Read)),
        (Method::POST, "/tap/sync", Access::Needs(Role::Read)),
        (Method::HEAD, "/tap/sync", Access::Needs(Role::Read)),
        (Method::GET, "/tap", Access::Needs(Role::Read)),
        (Method::DELETE, "/tap/tables", Access::Needs(Role::Write)),
    ] {
        let request = http::Request::builder().method(&method).uri(path).body(()).unwrap();
        assert_eq!(door.face.access(&request.into_parts().0), needed, "{method} {path}");
    }
}
