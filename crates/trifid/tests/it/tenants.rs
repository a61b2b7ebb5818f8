//! Tenants (4.14, 5.5.10, 6.3.14): begun by the first entity, apart in all that they hold, and no burden on each other.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::{Serving, Trifid};
use crate::wire::{JSON, ROOT, Reply, Wire, ask, is_well, request};

fn serve() -> Serving {
    Trifid::new().serve(&["serve", "--listen", "127.0.0.1:0"])
}

/// The header that addresses a tenant; the default one has none.
fn header(tenant: &str) -> String {
    if tenant.is_empty() { String::new() } else { format!("NGSILD-Tenant: {tenant}\r\n") }
}

fn of(serving: &Serving, tenant: &str, method: &str, target: &str, body: &str) -> Reply {
    ask(serving, method, target, &format!("{}{JSON}", header(tenant)), body)
}

fn created(serving: &Serving, tenant: &str, body: &Value) {
    let reply = of(serving, tenant, "POST", "/entities", &body.to_string());
    assert_eq!(reply.status, 201, "{}", reply.text());
}

fn kite(id: &str, kind: &str, attribute: &str) -> Value {
    json!({"id": format!("urn:kite:{id}"), "type": kind, attribute: 1})
}

/// What a tenant shows of a list.
fn shown(serving: &Serving, tenant: &str, target: &str) -> Value {
    let reply = of(serving, tenant, "GET", target, "");
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    reply.json()
}

#[test]
fn a_tenant_begins_with_its_first_entity() {
    let serving = serve();
    let targets = [
        ("GET", "/entities?local=true", ""),
        ("GET", "/entities/urn:kite:1", ""),
        ("DELETE", "/entities/urn:kite:1", ""),
        ("DELETE", "/entities?type=Kite", ""),
        ("PATCH", "/entities/urn:kite:1", r#"{"a":1}"#),
        ("POST", "/entities/urn:kite:1/attrs", r#"{"a":1}"#),
        ("GET", "/types", ""),
        ("GET", "/attributes", ""),
        ("POST", "/entityOperations/query", r#"{"type":"Query","q":"a"}"#),
    ];
    for (method, target, body) in targets {
        let reply = of(&serving, "north", method, target, body);
        assert_eq!(reply.status, 404, "{method} {target}: {}", reply.text());
        assert_eq!(reply.detail("NonexistentTenant"), "the tenant does not exist", "{method} {target}");
        assert_eq!(reply.header("ngsild-tenant"), Some("north"), "{method} {target}");
    }
    // An entity that is refused begins nothing.
    assert_eq!(of(&serving, "north", "POST", "/entities", r#"{"id":"x","type":"Kite"}"#).status, 400);
    assert_eq!(of(&serving, "north", "GET", "/types", "").status, 404);
    created(&serving, "north", &kite("1", "Kite", "height"));
    for (method, target, body) in targets {
        let reply = of(&serving, "north", method, target, body);
        assert!(!reply.text().contains("NonexistentTenant"), "{method} {target}: {}", reply.text());
        assert_eq!(reply.header("ngsild-tenant"), Some("north"), "{method} {target}");
    }
    // The default tenant is always there.
    assert_eq!(shown(&serving, "", "/entities?local=true"), json!([]));
    // A batch begins one too, and so does an upsert.
    for (tenant, operation) in [("east", "create"), ("west", "upsert")] {
        let body = json!([kite("1", "Kite", "height")]).to_string();
        let reply = of(&serving, tenant, "POST", &format!("/entityOperations/{operation}"), &body);
        assert_eq!((reply.status, reply.header("ngsild-tenant")), (201, Some(tenant)), "{}", reply.text());
        assert_eq!(shown(&serving, tenant, "/entities?type=Kite").as_array().unwrap().len(), 1);
    }
    is_well(serving);
}

#[test]
fn names_that_no_tenant_can_have_are_refused() {
    let serving = serve();
    let long = "x".repeat(200);
    for name in [" ", "-a", ".a", "a b", "a/b", "../a", "é", "a,b", &long] {
        for (method, target, body) in
            [("POST", "/entities", kite("1", "Kite", "a").to_string()), ("GET", "/types", String::new())]
        {
            let headers = format!("NGSILD-Tenant: {name}\r\n{JSON}");
            let reply = ask(&serving, method, target, &headers, body);
            assert_eq!(reply.status, 400, "{name:?}: {}", reply.text());
            assert!(reply.detail("BadRequestData").contains("header `NGSILD-Tenant`"), "{}", reply.text());
        }
    }
    is_well(serving);
}

#[test]
fn tenants_share_nothing() {
    let serving = serve();
    let tenants = [("", "Kite", "height"), ("north", "Balloon", "volume"), ("south", "Glider", "span")];
    for (tenant, kind, attribute) in tenants {
        // The same identifier everywhere, and another entity of a type that the others have not.
        created(&serving, tenant, &json!({"id": "urn:kite:1", "type": "Kite", "owner": tenant}));
        created(&serving, tenant, &kite("2", kind, attribute));
        let again = of(&serving, tenant, "POST", "/entities", &kite("1", "Kite", "a").to_string());
        assert_eq!(again.status, 409);
    }
    for (tenant, kind, attribute) in tenants {
        let own = shown(&serving, tenant, "/entities/urn:kite:1?format=simplified");
        assert_eq!(own["owner"], tenant);
        let all = shown(&serving, tenant, "/entities?local=true&pick=id");
        assert_eq!(all, json!([{"id": "urn:kite:1"}, {"id": "urn:kite:2"}]));
        let mut types = vec!["Kite", kind];
        types.sort_unstable();
        types.dedup();
        assert_eq!(shown(&serving, tenant, "/types")["typeList"], json!(types));
        let mut attributes = vec![attribute, "owner"];
        attributes.sort_unstable();
        assert_eq!(shown(&serving, tenant, "/attributes")["attributeList"], json!(attributes));
        for (_, other, theirs) in tenants.into_iter().filter(|(other, ..)| *other != tenant) {
            for target in [format!("/types/{other}"), format!("/attributes/{theirs}")] {
                let known = other == "Kite" && target.starts_with("/types");
                let status = of(&serving, tenant, "GET", &target, "").status;
                assert_eq!(status, if known { 200 } else { 404 }, "{tenant} {target}");
            }
            assert_eq!(shown(&serving, tenant, &format!("/entities?q={theirs}==1")), json!([]));
        }
    }
    // A change, a removal and a purge reach one tenant alone.
    assert_eq!(of(&serving, "north", "PATCH", "/entities/urn:kite:1", r#"{"owner":"nobody"}"#).status, 204);
    assert_eq!(of(&serving, "south", "DELETE", "/entities/urn:kite:1", "").status, 204);
    assert_eq!(of(&serving, "south", "DELETE", "/entities?type=Glider", "").status, 204);
    assert_eq!(shown(&serving, "", "/entities/urn:kite:1?format=simplified")["owner"], "");
    assert_eq!(shown(&serving, "north", "/entities/urn:kite:1?format=simplified")["owner"], "nobody");
    assert_eq!(shown(&serving, "south", "/entities?local=true"), json!([]));
    assert_eq!(shown(&serving, "south", "/types")["typeList"], json!([]));
    assert_eq!(shown(&serving, "", "/entities?local=true").as_array().unwrap().len(), 2);
    // Links between entities do not lead out of a tenant (4.5.23).
    created(
        &serving,
        "north",
        &json!({"id": "urn:kite:3", "type": "Kite", "next": {"object": "urn:kite:4"}}),
    );
    created(&serving, "", &kite("4", "Kite", "height"));
    let joined = shown(&serving, "north", "/entities/urn:kite:3?join=inline");
    assert_eq!(joined["next"], json!({"type": "Relationship", "object": "urn:kite:4"}));
    is_well(serving);
}

#[test]
fn contexts_that_a_tenant_keeps_are_its_own() {
    let serving = serve();
    let keep = |tenant: &str, iri: &str| {
        let body = json!({"@context": {"height": iri}}).to_string();
        let reply = of(&serving, tenant, "POST", "/jsonldContexts", &body);
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.header("location").unwrap().strip_prefix(ROOT).unwrap().to_owned()
    };
    let (north, south) = (keep("north", "http://north/height"), keep("south", "http://south/height"));
    let link = |path: &str| {
        format!(
            "{JSON}Link: <http://{}{ROOT}{path}>; rel=\"http://www.w3.org/ns/json-ld#context\"\r\n",
            serving.address
        )
    };
    assert_eq!(of(&serving, "north", "GET", &north, "").json()["@context"]["height"], "http://north/height");
    for (tenant, path) in [("south", &north), ("", &north), ("north", &south)] {
        for method in ["GET", "DELETE"] {
            let reply = of(&serving, tenant, method, path, "");
            assert_eq!(reply.status, 404, "{tenant} {method}: {}", reply.text());
            reply.detail("ResourceNotFound");
        }
        // Neither can it be used: the address is the broker's own, which it does not fetch from.
        let headers = format!("{}{}", header(tenant), link(path));
        let reply = ask(&serving, "POST", "/entities", &headers, kite("1", "Kite", "height").to_string());
        assert_eq!(reply.status, 504, "{tenant}: {}", reply.text());
    }
    let headers = format!("{}{}", header("north"), link(&north));
    let reply = ask(&serving, "POST", "/entities", &headers, kite("1", "Kite", "height").to_string());
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!(shown(&serving, "north", "/entities/urn:kite:1")["http://north/height"]["value"], 1);
    let listed =
        |tenant: &str| shown(&serving, tenant, "/jsonldContexts?kind=Hosted").as_array().unwrap().len();
    assert_eq!((listed("north"), listed("south"), listed("")), (1, 1, 0));
    assert_eq!(of(&serving, "north", "DELETE", &north, "").status, 204);
    assert_eq!((listed("north"), listed("south")), (0, 1));
    is_well(serving);
}

/// One tenant asks for all that it can on many connections; another is answered every time.
#[test]
fn a_noisy_neighbour_keeps_nobody_out() {
    let trifid = Trifid::new();
    // Few requests at a time, so that the flood is beyond what is there for everybody.
    let serving = trifid.serve(&["serve", "--listen", "127.0.0.1:0", "--set", "http.in_flight=16"]);
    let many: Vec<Value> = (0..200).map(|n| kite(&n.to_string(), "Kite", "height")).collect();
    let batch = Value::Array(many).to_string();
    assert_eq!(of(&serving, "noisy", "POST", "/entityOperations/create", &batch).status, 201);
    created(&serving, "quiet", &kite("1", "Kite", "height"));
    let (address, done) = (serving.address, AtomicBool::new(false));
    let page = request("GET", "/entities?q=height==1&limit=100", &header("noisy"), b"");
    std::thread::scope(|scope| {
        let enough = Enough(&done);
        for _ in 0..40 {
            scope.spawn(|| flood(address, &page, &done));
        }
        for n in 0..60 {
            let read = of(&serving, "quiet", "GET", "/entities/urn:kite:1", "");
            let write =
                of(&serving, "quiet", "PATCH", "/entities/urn:kite:1", &format!(r#"{{"height":{n}}}"#));
            assert_eq!((read.status, write.status), (200, 204), "{n}");
        }
        drop(enough);
    });
    is_well(serving);
}

/// Ends the flood, also when the test fails half way.
struct Enough<'d>(&'d AtomicBool);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks as much as a connection carries; some of it is refused for want of room, which may end the connection.
fn flood(address: SocketAddr, page: &[u8], done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let mut wire = Wire::connect(address);
        wire.send(&page.repeat(8));
        let answers = std::iter::from_fn(|| wire.answer("GET")).take(8);
        answers.for_each(|reply| assert!(matches!(reply.status, 200 | 429 | 503), "{}", reply.status));
    }
}
