//! Bad requests: each is refused with the standard's error type, and a `detail` that names the member, the parameter
//! or the position (5.5.2, 6.3.2); none leaves anything behind.

use crate::harness::{Serving, Trifid};
use crate::wire::{JSON, LD_JSON, Wire, ask, is_well};

/// An entity with attributes of several kinds.
const KITE: &str = r#"{"id":"urn:kite:1","type":"Kite","height":{"type":"Property","value":40},
    "name":{"type":"LanguageProperty","languageMap":{"en":"Red"}},
    "owner":{"type":"Relationship","object":"urn:person:1"},
    "gauge":[{"value":1},{"value":2,"datasetId":"urn:gauge:2"}]}"#;

/// A server that holds [`KITE`] and nothing else.
fn serve() -> Serving {
    let serving = Trifid::new().serve(&["serve", "--listen", "127.0.0.1:0"]);
    let reply = ask(&serving, "POST", "/entities", JSON, KITE);
    assert_eq!(reply.status, 201, "{}", reply.text());
    serving
}

fn everything(serving: &Serving) -> String {
    ask(serving, "GET", "/entities?local=true&options=sysAttrs", "", "").text().into_owned()
}

/// One bad request: method, target, headers, body; the status, the error type and part of the detail.
struct Bad<'b> {
    method: &'b str,
    target: &'b str,
    headers: &'b str,
    body: &'b str,
    status: u16,
    kind: &'b str,
    part: &'b str,
}

fn check<'b>(bad: impl IntoIterator<Item = Bad<'b>>) {
    let serving = serve();
    let before = everything(&serving);
    for Bad { method, target, headers, body, status, kind, part } in bad {
        let reply = ask(&serving, method, target, headers, body);
        let said = format!("{method} {target} {headers}{body}: {}", reply.text());
        assert_eq!(reply.status, status, "{said}");
        assert!(reply.detail(kind).contains(part), "{said}");
    }
    assert_eq!(everything(&serving), before, "something was left behind");
    is_well(serving);
}

/// Bodies of "create entity": the members beside `id` and `type`.
#[test]
fn members_that_cannot_be_are_refused_by_name() {
    let rows = [
        (r#""a":null"#, "a: must not be null"),
        (r#""a":"urn:ngsi-ld:null""#, "a: the NGSI-LD Null"),
        (r#""a":{"type":"Property"}"#, "a.value: is missing"),
        (r#""a":{"type":"Property","value":{"b":["urn:ngsi-ld:null"]}}"#, "a.value: the NGSI-LD Null"),
        (r#""a":{"type":"Number","value":1}"#, r#"a.type: "Number" is no attribute type"#),
        (r#""a":{"type":"Relationship","object":5}"#, "a.object: must be a URI"),
        (r#""a":{"type":"Relationship","object":"x"}"#, r#"a.object: "x" is not a URI"#),
        (r#""a":{"type":"Relationship","value":1}"#, "a.value: does not belong to a Relationship"),
        (r#""a":{"type":"GeoProperty","value":"x"}"#, "a.value: is no GeoJSON geometry"),
        (
            r#""a":{"type":"Point","coordinates":[1]}"#,
            "a: coordinates must be an array of two or more numbers",
        ),
        (r#""a":{"type":"Point","coordinates":[1,91]}"#, "a: coordinates has the latitude 91"),
        (
            r#""a":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#,
            "a: coordinates[0] is not closed",
        ),
        (
            r#""a":{"type":"GeometryCollection","geometries":[]}"#,
            r#"a: "GeometryCollection" is not a geometry type"#,
        ),
        (r#""location":{"type":"Property","value":1}"#, "location: must be a GeoProperty"),
        (r#""a":{"languageMap":{"en":5}}"#, "a.languageMap.en: must be a string"),
        (r#""a":{"vocab":5}"#, "a.vocab: must be a string"),
        (r#""a":{"json":5}"#, "a.json: must be a JSON object or an array"),
        (r#""a":{"valueList":5}"#, "a.valueList: must be an array"),
        (r#""a":{"objectList":["x"]}"#, r#"a.objectList: "x" is not a URI"#),
        (r#""a":{"value":1,"object":"urn:b:1"}"#, "a: has more than one of value, object"),
        (r#""a":{"value":1,"observedAt":"yesterday"}"#, r#"a.observedAt: "yesterday" is not a UTC dateTime"#),
        (r#""a":{"value":1,"unitCode":5}"#, "a.unitCode: must be a string"),
        (r#""a":{"object":"urn:b:1","unitCode":"KMH"}"#, "a.unitCode: a Relationship has no unit"),
        (r#""a":{"value":1,"datasetId":"x"}"#, r#"a.datasetId: "x" is not a URI"#),
        (r#""a":[{"value":1},{"value":2}]"#, "a: two instances with the datasetId @none"),
        (r#""a":{"value":1,"b":{"type":"Property"}}"#, "a.b.value: is missing"),
        (r#""a":{"value":1,"@context":{}}"#, "a.@context: is allowed in the entity alone"),
        (r#""a":{"value":1,"previousValue":1}"#, "a.previousValue: is for notifications alone"),
        (
            r#""a":{"type":"Property","@type":"Property","value":1}"#,
            "a.type: type and @type are the same member",
        ),
        (r#""@type":"Kite""#, "type: type and @type are the same member"),
        (r#""@id":"urn:kite:9""#, "id: id and @id are the same member"),
        (r#""scope":"/a b""#, r#"scope: "/a b" is not a scope"#),
        (r#""expiresAt":5"#, "expiresAt: must be a string holding a dateTime"),
        (r#""observedAt":"2026-01-01T00:00:00Z""#, "observedAt: belongs inside an attribute"),
        (r#""my height":1"#, r#""my height" is not a valid name"#),
        (r#""":1"#, r#""" is not a valid name"#),
    ];
    let bodies: Vec<String> =
        rows.iter().map(|(members, _)| format!(r#"{{"id":"urn:kite:9","type":"Kite",{members}}}"#)).collect();
    check(bodies.iter().zip(rows).map(|(body, (_, part))| Bad {
        method: "POST",
        target: "/entities",
        headers: JSON,
        body,
        status: 400,
        kind: "BadRequestData",
        part,
    }));
}

/// Whole bodies, and the operations that they are sent to.
#[test]
fn bodies_that_do_not_fit_the_operation_are_refused() {
    const QUERY: &str = "/entityOperations/query";
    let rows = [
        ("POST", "/entities", "", "InvalidRequest", "unexpected end of JSON text at byte 0"),
        ("POST", "/entities", r#"{"id":"urn:kite:9",}"#, "InvalidRequest", "unexpected character at byte 19"),
        ("POST", "/entities", "[]", "InvalidRequest", "not a JSON object"),
        (
            "POST",
            "/entities",
            r#"{"a":1,"b":2,"a":3}"#,
            "InvalidRequest",
            r#"duplicate member name "a" at byte 13"#,
        ),
        ("POST", "/entities", "{}", "BadRequestData", "id: is missing"),
        ("POST", "/entities", r#"{"id":"urn:kite:9"}"#, "BadRequestData", "type: is missing"),
        (
            "POST",
            "/entities",
            r#"{"id":"kite","type":"Kite"}"#,
            "BadRequestData",
            r#"id: "kite" is not a URI"#,
        ),
        (
            "POST",
            "/entities",
            r#"{"id":"urn:kite:9","type":[]}"#,
            "BadRequestData",
            "type: must name at least one",
        ),
        (
            "POST",
            "/entities",
            r#"{"id":"urn:kite:9","type":"a b"}"#,
            "BadRequestData",
            r#"type: "a b" is not"#,
        ),
        (
            "PATCH",
            "/entities/urn:kite:1",
            r#"{"id":"urn:kite:2"}"#,
            "BadRequestData",
            r#"id: "urn:kite:2" is not"#,
        ),
        (
            "PATCH",
            "/entities/urn:kite:1",
            r#"{"type":"urn:ngsi-ld:null"}"#,
            "BadRequestData",
            "type: a type cannot",
        ),
        (
            "PATCH",
            "/entities/urn:kite:1?lang=e",
            r#"{"height":{"object":"urn:a:1"}}"#,
            "BadRequestData",
            "height: is a Property",
        ),
        (
            "PUT",
            "/entities/urn:kite:1",
            r#"{"type":"Kite","a":{"type":"Property"}}"#,
            "BadRequestData",
            "a.value: is missing",
        ),
        (
            "POST",
            "/entities/urn:kite:1/attrs",
            r#"{"a":"urn:ngsi-ld:null"}"#,
            "BadRequestData",
            "a: the NGSI-LD Null",
        ),
        (
            "PATCH",
            "/entities/urn:kite:1/attrs/height",
            r#"{"type":"Relationship","object":"urn:a:1"}"#,
            "BadRequestData",
            "height: is a Property and cannot become a Relationship",
        ),
        (
            "PATCH",
            "/entities/urn:kite:1/attrs/owner",
            r#"{"unitCode":"KMH"}"#,
            "BadRequestData",
            "owner.unitCode: a Relationship has no unit",
        ),
        (
            "PATCH",
            "/entities/urn:kite:1/attrs/scope",
            r#"{"value":"/a"}"#,
            "BadRequestData",
            r#""scope" is no attribute"#,
        ),
        (
            "PUT",
            "/entities/urn:kite:1/attrs/height",
            r#"{"type":"Property"}"#,
            "BadRequestData",
            "height.value: is missing",
        ),
        (
            "POST",
            "/entityOperations/create",
            "{}",
            "BadRequestData",
            "an array of entities that is not empty",
        ),
        ("POST", "/entityOperations/upsert", "[5]", "BadRequestData", "item 0 is not an entity"),
        ("POST", "/entityOperations/delete", r#"["urn:kite:9",5]"#, "BadRequestData", "byte 14"),
        ("POST", QUERY, "{}", "BadRequestData", "`type`"),
        ("POST", QUERY, r#"{"type":"Query"}"#, "BadRequestData", "too wide"),
        ("POST", QUERY, r#"{"type":"Query","q":5}"#, "BadRequestData", "`q` is a string"),
        ("POST", QUERY, r#"{"type":"Query","colour":5}"#, "BadRequestData", "`colour`"),
        (
            "POST",
            QUERY,
            r#"{"type":"Query","entities":[{"id":"urn:a:1"}]}"#,
            "BadRequestData",
            "`entities.type`",
        ),
        ("POST", "/jsonldContexts", "{}", "InvalidRequest", "@context"),
        ("POST", "/jsonldContexts", r#"{"@context":{"a":{"@id":5}}}"#, "BadRequestData", r#"the term "a""#),
    ];
    check(rows.map(|(method, target, body, kind, part)| Bad {
        method,
        target,
        headers: JSON,
        body,
        status: 400,
        kind,
        part,
    }));
}

/// The query string of "query entities", and those of others.
#[test]
fn parameters_are_refused_by_name_and_position() {
    let rows = [
        ("", "too wide: name an entity type"),
        ("id=urn:kite:1", "too wide"),
        ("q=createdAt%3E1", "too wide"),
        ("type=", "type: expected an entity type at character 1"),
        ("type=(Kite;", "type: expected an entity type at character 7"),
        ("type=*&local=false", "`local=false`"),
        ("id=kite&type=Kite", r#"id: "kite" is not a URI"#),
        ("type=Kite&idPattern=(", "idPattern: regular expression not accepted: unclosed group"),
        ("q=height%3E%3D%3D1", "q: expected a value at character 9"),
        ("q=(height==1", r#"q: expected ";", "|" or ")" at character 11"#),
        ("q=height==%22a", "q: unterminated string at character 9"),
        ("q=height~=%22(%22", "q: regular expression not accepted"),
        ("q=id==1", "use the parameter id"),
        ("q=%ff", "parameter `q`: the decoded bytes are not UTF-8"),
        ("q=%4", "parameter `q`: `%` is not followed"),
        ("georel=beside&geometry=Point&coordinates=[1,2]", "georel: expected near, within"),
        (
            "georel=near;maxDistance==-1&geometry=Point&coordinates=[1,2]",
            "georel: expected a positive number",
        ),
        ("georel=within&geometry=Blob&coordinates=[1,2]", r#"geometry: "Blob""#),
        ("georel=within&geometry=Polygon&coordinates=[1,2]", "coordinates: coordinates[0] must be an array"),
        ("georel=within&geometry=Point&coordinates=[1,2", "coordinates: not a JSON array"),
        ("type=Kite&geometry=Point&coordinates=[1,2]", "georel: required"),
        ("type=Kite&scopeQ=//", "scopeQ: expected a scope level"),
        ("type=Kite&pick=a,,b", "pick: expected a member name at character 3"),
        ("type=Kite&pick=owner{name}", "`pick` is about linked entities, which needs `join`"),
        ("type=Kite&pick=a&omit=a", r#"omit: "a" is named by pick too"#),
        ("type=Kite&attrs=a&pick=a", "pick: not allowed together with attrs"),
        ("type=Kite&lang=en;q=5", "lang: expected a weight"),
        ("type=Kite&join=sideways", "`join` is `flat`, `inline` or `@none`"),
        ("type=Kite&join=inline&joinLevel=0", "`joinLevel` is a positive integer"),
        ("type=Kite&orderBy=height;sideways", "orderBy: expected asc"),
        ("type=Kite&orderBy=height;dist-asc", "orderFrom: required"),
        ("type=Kite&collation=x-y-z&orderBy=height", "collation: "),
        ("type=Kite&datasetId=x", r#"datasetId: "x" is neither a URI"#),
        ("type=Kite&limit=-1", "`limit` is a natural number, not `-1`"),
        ("type=Kite&limit=0", "`limit=0` needs `count=true`"),
        ("type=Kite&offset=1e9", "`offset` is a natural number"),
        ("type=Kite&count=maybe", "`count` is `true` or `false`"),
        ("type=Kite&geometryProperty=location", "`geometryProperty`"),
        ("type=Kite&expandValues=a", "`expandValues`"),
    ];
    let targets: Vec<String> = rows.iter().map(|(query, _)| format!("/entities?{query}")).collect();
    let queries =
        targets.iter().zip(rows).map(|(target, (_, part))| (&**target, 400, "BadRequestData", part));
    let others = [
        ("/entities?type=Kite&colour=red", 400, "InvalidRequest", "unknown parameter `colour`"),
        ("/entities?type=Kite&Limit=5", 400, "InvalidRequest", "did you mean `limit`?"),
        ("/entities?type=Kite&limit=1&limit=2", 400, "InvalidRequest", "`limit` is there twice"),
        ("/entities?type=Kite&deleteAll=true", 400, "InvalidRequest", "`deleteAll` has no meaning"),
        ("/entities?type=Kite&format=tabular", 400, "InvalidRequest", "`format` cannot be `tabular`"),
        ("/entities?type=Kite&options=loud", 400, "InvalidRequest", "`options` cannot contain `loud`"),
        ("/entities?type=Kite&limit=1001", 403, "TooManyResults", "`limit` is 1001"),
        ("/entities?type=Kite&offset=99999999", 403, "TooManyResults", "`offset` is 99999999"),
        ("/types?details=5", 400, "BadRequestData", "`details` is `true` or `false`"),
        ("/jsonldContexts?kind=Warm", 400, "BadRequestData", "`kind` is `Hosted`"),
    ];
    check(queries.chain(others).map(|(target, status, kind, part)| Bad {
        method: "GET",
        target,
        headers: "",
        body: "",
        status,
        kind,
        part,
    }));
}

#[test]
fn paths_that_lead_nowhere_are_refused() {
    let rows = [
        ("GET", "/kites", 404, "ResourceNotFound", "no such resource"),
        ("GET", "/entities/urn:kite:1/wings", 404, "ResourceNotFound", "no such resource"),
        ("GET", "/entities/urn:kite:2", 404, "ResourceNotFound", r#"no entity "urn:kite:2""#),
        ("GET", "/entities/urn:kite:1?type=Balloon", 404, "ResourceNotFound", "`type`"),
        ("GET", "/entities/urn:kite:1?attrs=wings", 404, "ResourceNotFound", "`attrs`"),
        ("GET", "/entities/kite", 400, "BadRequestData", r#""kite" is not an entity identifier"#),
        (
            "GET",
            "/entities/urn:kite:%ff",
            400,
            "BadRequestData",
            "the identifier in the path: the decoded bytes",
        ),
        ("GET", "/entities/urn:kite:%", 400, "BadRequestData", "the identifier in the path: `%`"),
        (
            "DELETE",
            "/entities/urn:kite:2",
            404,
            "ResourceNotFound",
            r#"the entity "urn:kite:2" does not exist"#,
        ),
        (
            "DELETE",
            "/entities/urn:kite:1/attrs/a%20b",
            400,
            "BadRequestData",
            r#""a b" is not an attribute name"#,
        ),
        ("DELETE", "/entities/urn:kite:1/attrs/wings", 404, "ResourceNotFound", r#"no attribute "wings""#),
        ("DELETE", "/entities/urn:kite:1/attrs/gauge?datasetId=x", 400, "BadRequestData", "`datasetId`"),
        ("DELETE", "/entities/urn:kite:1/attrs/gauge?deleteAll=1", 400, "BadRequestData", "`deleteAll`"),
        ("DELETE", "/entities//attrs/height", 400, "BadRequestData", "not an entity identifier"),
        ("DELETE", "/entities", 400, "BadRequestData", "too wide"),
        ("DELETE", "/entities?type=Kite&drop=a&keep=b", 400, "BadRequestData", "`drop` and `keep`"),
        ("GET", "/types/Balloon", 404, "ResourceNotFound", r#"no entity of type "Balloon""#),
        ("GET", "/attributes/wings", 404, "ResourceNotFound", r#"no entity has an attribute "wings""#),
        ("GET", "/jsonldContexts/none", 404, "ResourceNotFound", r#""none""#),
        ("DELETE", "/jsonldContexts/none", 404, "ResourceNotFound", r#""none""#),
        ("POST", "/entities", 409, "AlreadyExists", r#"the entity "urn:kite:1" exists already"#),
    ];
    check(rows.map(|(method, target, status, kind, part)| Bad {
        method,
        target,
        headers: if method == "POST" { JSON } else { "" },
        body: if method == "POST" { KITE } else { "" },
        status,
        kind,
        part,
    }));
}

#[test]
fn headers_that_cannot_be_followed_are_refused() {
    const BODY: &str = r#"{"id":"urn:kite:9","type":"Kite"}"#;
    let link = |targets: &[&str]| {
        let rel = r#"rel="http://www.w3.org/ns/json-ld#context""#;
        let links: Vec<String> = targets.iter().map(|target| format!("<{target}>; {rel}")).collect();
        format!("{JSON}Link: {}\r\n", links.join(", "))
    };
    let with = |header: &str| format!("{JSON}{header}\r\n");
    let rows = [
        (with("Link: http://a/c"), 400, "BadRequestData", "header `Link` is not of the form"),
        (link(&["http://a/c", "http://b/c"]), 400, "BadRequestData", "more than one JSON-LD context"),
        (link(&["c.jsonld"]), 400, "BadRequestData", r#""c.jsonld" is not an absolute http or https URL"#),
        (link(&["file:///etc/passwd"]), 400, "BadRequestData", "not an absolute http or https URL"),
        (link(&["http://127.0.0.1:9/c"]), 504, "LdContextNotAvailable", "127.0.0.1 is a loopback address"),
        (with("NGSILD-Tenant: a b"), 400, "BadRequestData", "header `NGSILD-Tenant`"),
        (with("NGSILD-Tenant: ../a"), 400, "BadRequestData", "header `NGSILD-Tenant`"),
        (
            with("NGSILD-Tenant: a\r\nNGSILD-Tenant: b"),
            400,
            "BadRequestData",
            "`NGSILD-Tenant` is there twice",
        ),
    ];
    check(rows.iter().map(|(headers, status, kind, part)| Bad {
        method: "POST",
        target: "/entities",
        headers,
        body: BODY,
        status: *status,
        kind,
        part,
    }));
}

/// The `@context` of a body (6.3.5), and what can be wrong with it (5.5.7).
#[test]
fn contexts_that_cannot_be_used_are_refused() {
    let rows = [
        (JSON, r#""@context":{}"#, "must not have a member `@context`"),
        (LD_JSON, r#""a":1"#, "needs a member `@context`"),
        (LD_JSON, r#""@context":5"#, "not a number"),
        (LD_JSON, r#""@context":[true]"#, "not a boolean"),
        (LD_JSON, r#""@context":"c.jsonld""#, r#""c.jsonld" is not an absolute"#),
        (LD_JSON, r#""@context":{"a":5}"#, r#"the term "a" is defined neither"#),
        (LD_JSON, r#""@context":{"a":{"@id":"x:y","@context":{}}}"#, r#"the term "a" has a scoped @context"#),
        (LD_JSON, r#""@context":{"a":"b:x","b":"a:x"}"#, r#"is defined by itself"#),
        (LD_JSON, r#""@context":{"@vocab":5}"#, "@vocab is neither a string nor null"),
        (LD_JSON, r#""@context":{"@id":"x:y"}"#, r#"the term "@id" is a keyword"#),
        (LD_JSON, r#""@context":{"a":null},"a":1"#, r#"takes the term "a" out of use"#),
        (LD_JSON, r#""@context":{"a":"x:y","b":"x:y"},"a":1,"b":2"#, "b: expands to the same name"),
    ];
    let bodies: Vec<String> = rows
        .iter()
        .map(|(_, member, _)| format!(r#"{{"id":"urn:kite:9","type":"Kite",{member}}}"#))
        .collect();
    check(bodies.iter().zip(rows).map(|(body, (headers, _, part))| Bad {
        method: "POST",
        target: "/entities",
        headers,
        body,
        status: 400,
        kind: "BadRequestData",
        part,
    }));
    let serving = serve();
    let both = format!("{LD_JSON}Link: <http://a/c>; rel=\"http://www.w3.org/ns/json-ld#context\"\r\n");
    let reply = ask(&serving, "POST", "/entities", &both, r#"{"id":"urn:a:1","type":"T","@context":{}}"#);
    assert!(reply.detail("BadRequestData").contains("`Link`"), "{}", reply.text());
    is_well(serving);
}

/// Refusals without a document of the standard's: 405, 406, 411, 415 (6.3.2, 6.3.4).
#[test]
fn bare_refusals() {
    let serving = serve();
    for headers in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/geo+json\r\n",
        "Content-Type: application/merge-patch+json\r\n",
        "Content-Type: application/json; charset=latin1\r\n",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
    ] {
        let reply = ask(&serving, "POST", "/entities", headers, KITE);
        assert_eq!((reply.status, reply.body.len()), (415, 0), "{headers}");
    }
    for accept in ["text/html", "application/json;q=0", "x", "*/*;q=0"] {
        let reply = ask(&serving, "GET", "/entities/urn:kite:1", &format!("Accept: {accept}\r\n"), "");
        assert_eq!(reply.status, 406, "{accept}");
        let offered = ["application/json", "application/ld+json", "application/geo+json"];
        assert_eq!(reply.json()["representations"], serde_json::json!(offered), "{accept}");
    }
    for (method, target, allow) in [
        ("PUT", "/entities", "GET, POST, DELETE, HEAD, OPTIONS"),
        ("POST", "/entities/urn:kite:1", "GET, PUT, PATCH, DELETE, HEAD, OPTIONS"),
        ("DELETE", "/entities/urn:kite:1/attrs", "POST, PATCH, OPTIONS"),
        ("GET", "/entityOperations/create", "POST, OPTIONS"),
        ("TRACE", "/types", "GET, HEAD, OPTIONS"),
        ("BREW", "/info/sourceIdentity", "GET, HEAD, OPTIONS"),
    ] {
        let reply = ask(&serving, method, target, JSON, "");
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {target}");
        let reply = ask(&serving, "OPTIONS", target, "", "");
        assert_eq!((reply.status, reply.header("allow")), (204, Some(allow)), "OPTIONS {target}");
    }
    for (target, status) in [("/entities/urn:kite:1", 200), ("/entities/urn:kite:2", 404), ("/entities", 400)]
    {
        let (get, head) = (ask(&serving, "GET", target, "", ""), ask(&serving, "HEAD", target, "", ""));
        assert_eq!((get.status, head.status), (status, status), "{target}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{target}");
        assert!(head.body.is_empty(), "{target}");
    }
    for method in ["POST", "PUT", "PATCH"] {
        let mut wire = Wire::to(&serving);
        let target =
            if method == "POST" { "/ngsi-ld/v1/entities" } else { "/ngsi-ld/v1/entities/urn:kite:1" };
        wire.send(format!("{method} {target} HTTP/1.1\r\nHost: trifid\r\n{JSON}\r\n").as_bytes());
        let reply = wire.answer(method).unwrap();
        assert_eq!((reply.status, reply.body.len()), (411, 0), "{method}");
    }
    is_well(serving);
}

/// One bad item of a batch does not fail the others, and is named with its own refusal (5.6.7.4).
#[test]
fn a_batch_names_its_bad_items() {
    let serving = serve();
    let items = r#"[{"id":"urn:kite:7","type":"Kite"},{"id":"kite","type":"Kite"},{"id":"urn:kite:1","type":"Kite"},
        {"type":"Kite"},{"id":"urn:kite:8","type":"Kite","a":{"type":"Property"}}]"#;
    let reply = ask(&serving, "POST", "/entityOperations/create", JSON, items);
    assert_eq!(reply.status, 207);
    let result = reply.json();
    assert_eq!(result["success"], serde_json::json!(["urn:kite:7"]));
    let errors: Vec<(Option<&str>, &str)> = result["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["entityId"].as_str(), item["error"]["detail"].as_str().unwrap()))
        .collect();
    for (id, part) in [
        (Some("kite"), "is not a URI"),
        (Some("urn:kite:1"), "already exists"),
        (None, "id: is missing"),
        (Some("urn:kite:8"), "a.value: is missing"),
    ] {
        assert!(errors.iter().any(|(own, detail)| *own == id && detail.contains(part)), "{id:?}: {errors:?}");
    }
    assert_eq!(errors.len(), 4);
    is_well(serving);
}
