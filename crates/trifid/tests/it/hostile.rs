//! Input that means harm, or might as well: bounded, answered, and the server is well afterwards.
//!
//! What stands here once cost a broker its memory, a core for minutes, or a crash.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::harness::{Serving, Trifid};
use crate::wire::{JSON, LD_JSON, ROOT, Reply, Wire, ask, encoded, is_well, request};

const FREE_PORT: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

fn serve() -> Serving {
    Trifid::new().serve(&FREE_PORT)
}

fn serve_with(settings: &[&str]) -> Serving {
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    Trifid::new().serve(&FREE_PORT.into_iter().chain(settings).collect::<Vec<_>>())
}

/// An entity with these members.
fn entity(id: &str, members: &str) -> String {
    format!(r#"{{"id":"urn:x:{id}","type":"T",{members}}}"#)
}

fn post(serving: &Serving, body: impl AsRef<[u8]>) -> Reply {
    ask(serving, "POST", "/entities", JSON, body)
}

fn created(serving: &Serving, body: impl AsRef<[u8]>) {
    let reply = post(serving, body);
    assert_eq!(reply.status, 201, "{}", reply.text());
}

/// The status and the detail of a refusal.
fn refused(reply: &Reply, status: u16, kind: &str, part: &str) {
    assert_eq!(reply.status, status, "{}", reply.text());
    let detail = reply.detail(kind);
    assert!(detail.contains(part), "{part:?} is not in {detail:?}");
}

/// `count` pieces of JSON with commas between them.
fn list(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(",")
}

fn query(serving: &Serving, headers: &str, members: &str) -> Reply {
    let body = format!(r#"{{"type":"Query",{members}}}"#);
    ask(serving, "POST", "/entityOperations/query", &format!("{JSON}{headers}"), body)
}

#[test]
fn texts_that_are_no_json_are_refused_where_they_go_wrong() {
    let serving = serve();
    let with = |bytes: &[u8]| [br#"{"id":"urn:x:1","type":"T","a":"#, bytes, b"}"].concat();
    let (open, close) = ("[".repeat(1_000_000), "]".repeat(1_000_000));
    let many = list(100_000, |n| format!(r#""k{n}":1"#));
    for (bytes, part) in [
        (with(open.as_bytes()), "nesting deeper than 64 levels at byte 94"),
        (with([open, close].concat().as_bytes()), "nesting deeper than 64 levels at byte 94"),
        (with(r#"{"a":"#.repeat(500_000).as_bytes()), "nesting deeper than 64 levels at byte 346"),
        (with(b"\"\xff\""), "invalid UTF-8 at byte 32"),
        (with(b"\"\xc0\xaf\""), "invalid UTF-8 at byte 32"),
        (with(b"\"\xed\xa0\x80\""), "invalid UTF-8 at byte 32"),
        (with(br#""\ud800""#), "lone surrogate in a string at byte 32"),
        (with(b"\"\0\""), "invalid string at byte 32"),
        (with(br#""\x41""#), "invalid string at byte 32"),
        (with("9".repeat(100_000).as_bytes()), "invalid number at byte 31"),
        (with(b"1e999"), "invalid number at byte 31"),
        (with(b"NaN"), "unexpected character at byte 31"),
        (with(format!(r#"{{{many},"k5":1}}"#).as_bytes()), r#"duplicate member name "k5""#),
        (with(br#"{"a":1,"\u0061":2}"#), r#"duplicate member name "a""#),
        (b"\xef\xbb\xbf{}".to_vec(), "unexpected character at byte 0"),
        (b"\xff\xfe{\0}\0".to_vec(), "invalid UTF-8 at byte 0"),
    ] {
        refused(&post(&serving, bytes), 400, "InvalidRequest", part);
    }
    is_well(serving);
}

#[test]
fn large_and_deep_entities_are_kept_or_refused() {
    let serving = serve();
    created(&serving, entity("array", &format!(r#""a":[{}]"#, vec!["7"; 1_000_000].join(","))));
    created(&serving, entity("objects", &format!(r#""a":[{}]"#, vec!["{}"; 500_000].join(","))));
    created(&serving, entity("deep", &format!(r#""a":{}{}"#, "[".repeat(62), "]".repeat(62))));
    let subs = format!("{}{}{}", r#""a":{"value":1,"#.repeat(60), r#""b":2"#, "}".repeat(60));
    created(&serving, entity("subs", &subs));
    for target in ["array", "objects", "deep", "subs"] {
        for query in ["", "?format=concise", "?format=simplified", "?options=sysAttrs"] {
            let reply = ask(&serving, "GET", &format!("/entities/urn:x:{target}{query}"), "", "");
            assert_eq!(reply.status, 200, "{target}{query}");
        }
    }
    let merged = ask(&serving, "PATCH", "/entities/urn:x:subs", JSON, format!("{{{subs}}}"));
    assert_eq!(merged.status, 204, "{}", merged.text());
    let long = "x".repeat(1_000_000);
    for (members, part) in [
        (list(100_000, |n| format!(r#""n{n}":1"#)), "more than 10000 attribute instances"),
        (
            format!(r#""a":[{}]"#, list(10_001, |n| format!(r#"{{"value":1,"datasetId":"urn:d:{n}"}}"#))),
            "more than 10000 attribute instances",
        ),
        (
            format!(r#""a":{{"value":1,{}}}"#, list(1_001, |n| format!(r#""s{n}":1"#))),
            "a: more than 1000 sub-attributes",
        ),
        (format!(r#""scope":[{}]"#, list(1_001, |n| format!(r#""/s{n}""#))), "scope: more than 1000 scopes"),
        (format!(r#""{long}":1"#), "xxx...\" is not a valid name"),
        (format!(r#""a":{{"type":"{long}","value":1}}"#), "xxx...\""),
        (format!(r#""a":{{"object":"{long}"}}"#), "xxx...\" is not a URI"),
    ] {
        refused(&post(&serving, entity("no", &members)), 400, "BadRequestData", part);
    }
    let types = list(33, |n| format!(r#""T{n}""#));
    let body = format!(r#"{{"id":"urn:x:types","type":[{types}]}}"#);
    refused(&post(&serving, body), 400, "BadRequestData", "type: more than 32 types");
    // What was refused has not used up the names that a tenant may introduce.
    created(&serving, entity("new", r#""quiteNew":1"#));
    is_well(serving);
}

/// Bounds hold for what many requests make of an entity, and no request costs the square of its size.
#[test]
fn entities_do_not_grow_beyond_their_bounds() {
    let serving = serve();
    created(&serving, entity("grows", r#""scope":"/a","a":{"value":{"m":1}},"r":{"object":"urn:x:1"}"#));
    let append = |members: &str| {
        let target = "/entities/urn:x:grows/attrs?options=noOverwrite";
        ask(&serving, "POST", target, JSON, format!("{{{members}}}"))
    };
    let scopes = |round: usize| format!(r#""scope":[{}]"#, list(900, |n| format!(r#""/s{round}_{n}""#)));
    assert_eq!(append(&scopes(0)).status, 204);
    refused(&append(&scopes(1)), 400, "BadRequestData", "more than 1000 scopes");
    let datasets = |round: usize| {
        format!(r#""a":[{}]"#, list(6_000, |n| format!(r#"{{"value":1,"datasetId":"urn:d:{round}:{n}"}}"#)))
    };
    assert_eq!(append(&datasets(0)).status, 204);
    refused(&append(&datasets(1)), 400, "BadRequestData", "more than 10000 attribute instances");
    let types = list(200, |n| format!(r#""T{n}""#));
    for (fragment, part) in [
        (format!(r#"{{"valueType":[{types}]}}"#), "r.valueType: belongs to properties alone"),
        (r#"{"unitCode":"KMH"}"#.to_owned(), "r.unitCode: a Relationship has no unit"),
    ] {
        let reply = ask(&serving, "PATCH", "/entities/urn:x:grows/attrs/r", JSON, fragment);
        refused(&reply, 400, "BadRequestData", part);
    }
    // All instances again, and all members of a large object again: these took a minute and more.
    let all = format!("{{{}}}", datasets(0));
    for (method, target) in [("POST", "/attrs"), ("PATCH", "/attrs"), ("PATCH", "")] {
        let reply = ask(&serving, method, &format!("/entities/urn:x:grows{target}"), JSON, &all);
        assert_eq!(reply.status, 204, "{method} {target}: {}", reply.text());
    }
    let object = format!(r#""a":{{"value":{{{}}}}}"#, list(100_000, |n| format!(r#""k{n}":1"#)));
    created(&serving, entity("object", &object));
    let reply = ask(&serving, "PATCH", "/entities/urn:x:object", JSON, format!("{{{object}}}"));
    assert_eq!(reply.status, 204, "{}", reply.text());
    is_well(serving);
}

#[test]
fn bodies_beyond_the_limit_are_refused_before_they_are_read() {
    let serving = serve();
    let head = format!("POST {ROOT}/entities HTTP/1.1\r\nHost: trifid\r\n{JSON}");
    let declared = format!("{head}Content-Length: 10485760\r\n\r\n");
    let expects = format!("{head}Expect: 100-continue\r\nContent-Length: 10485760\r\n\r\n");
    let sent = [declared.as_bytes(), &vec![b'x'; 10 << 20]].concat();
    let chunk = [b"100000\r\n", &*vec![b'x'; 1 << 20], b"\r\n"].concat();
    let chunked =
        [format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes(), &chunk.repeat(10)].concat();
    for (name, bytes) in [
        ("declared", declared.as_bytes()),
        ("expects", expects.as_bytes()),
        ("sent", &sent),
        ("chunked", &chunked),
    ] {
        let mut wire = Wire::to(&serving);
        wire.send(bytes);
        let reply = wire.answer("POST").unwrap_or_else(|| panic!("{name}: closed without an answer"));
        assert_eq!((reply.status, reply.body.len()), (413, 0), "{name}");
        // What it did not read cannot be taken for a request.
        wire.finish();
        assert!(wire.answer("POST").is_none(), "{name}: the connection goes on");
    }
    is_well(serving);
}

/// Requests that two readers might frame differently are refused or read in the one right way (RFC 9112 6.3).
#[test]
fn requests_are_framed_one_way() {
    let serving = serve();
    let get = format!("GET {ROOT}/types HTTP/1.1\r\nHost: trifid\r\n");
    let post = format!("POST {ROOT}/entities HTTP/1.1\r\nHost: trifid\r\nConnection: close\r\n{JSON}");
    for (request, statuses) in [
        ("\0\x01\x02\r\n\r\n".to_owned(), &[400][..]),
        (format!("GET {ROOT}/types\r\n\r\n"), &[400]),
        (format!("GET {ROOT}/types HTTP/3.0\r\nHost: trifid\r\n\r\n"), &[400]),
        (format!("{get}X: a\r\n b\r\n\r\n"), &[400]),
        (format!("{get}X : a\r\n\r\n"), &[400]),
        (format!("{get}X: a\0b\r\n\r\n"), &[400]),
        (format!("{post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), &[400]),
        (format!("{post}Content-Length: -5\r\n\r\n"), &[400]),
        (format!("{post}Content-Length: +5\r\n\r\nhello"), &[400]),
        (format!("{post}Content-Length: 99999999999999999999999\r\n\r\n"), &[400]),
        (format!("{post}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{{}}"), &[400]),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), &[400]),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"), &[411]),
        (
            format!("{post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"),
            &[411],
        ),
        // The body of a GET is read over, and is no request of its own.
        (format!("{get}Content-Length: 5\r\n\r\nhello{get}Connection: close\r\n\r\n"), &[200, 200]),
        (format!("GET {ROOT}/../../q/health HTTP/1.1\r\nHost: trifid\r\nConnection: close\r\n\r\n"), &[404]),
        (
            format!(
                "GET {ROOT}/%2e%2e/%2e%2e/q/health HTTP/1.1\r\nHost: trifid\r\nConnection: close\r\n\r\n"
            ),
            &[404],
        ),
        ("OPTIONS * HTTP/1.1\r\nHost: trifid\r\nConnection: close\r\n\r\n".to_owned(), &[204]),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(), &[404]),
    ] {
        let mut wire = Wire::to(&serving);
        wire.send(request.as_bytes());
        let got: Vec<u16> = std::iter::from_fn(|| wire.answer("GET")).map(|reply| reply.status).collect();
        assert_eq!(got, statuses, "{request:?}");
    }
    is_well(serving);
}

#[test]
fn heads_are_bounded() {
    let serving = serve();
    let start = format!("GET {ROOT}/types HTTP/1.1\r\nHost: trifid\r\n");
    let fields: String = (0..1000).map(|n| format!("X{n}: y\r\n")).collect();
    let target =
        format!("GET {ROOT}/entities/urn:x:{} HTTP/1.1\r\nHost: trifid\r\n\r\n", "y".repeat(1_000_000));
    for bomb in
        [format!("{start}{fields}\r\n"), format!("{start}X: {}\r\n\r\n", "y".repeat(1_000_000)), target]
    {
        let mut wire = Wire::to(&serving);
        wire.send(bomb.as_bytes());
        assert_eq!(wire.answer("GET").map(|reply| reply.status), Some(431), "{}", &bomb[..60]);
    }
    // Just below the limit the door itself answers, briefly.
    let long = format!("/entities/urn:x:{}", "y".repeat(30_000));
    refused(&ask(&serving, "GET", &long, "", ""), 400, "BadRequestData", "yyy...");
    let accept = format!("Accept: {}\r\n", vec!["text/x"; 4_000].join(","));
    assert_eq!(ask(&serving, "GET", "/types", &accept, "").status, 406);
    is_well(serving);
}

#[test]
fn slow_clients_are_not_waited_for() {
    let limits = ["http.head_timeout=200ms", "http.body_timeout=200ms", "http.idle_timeout=200ms"];
    let serving = serve_with(&limits);
    let whole = format!("GET {ROOT}/types HTTP/1.1\r\nHost: trifid\r\n\r\n");
    let body = format!("POST {ROOT}/entities HTTP/1.1\r\nHost: trifid\r\n{JSON}Content-Length: 50\r\n\r\n{{");
    for (sent, statuses) in [
        ("", &[][..]),
        ("GE", &[408]),
        (&whole[..whole.len() - 2], &[408]),
        (&body, &[408]),
        (&whole, &[200]),
        ("PRI * HTTP/2.0\r\n", &[]),
    ] {
        let mut wire = Wire::to(&serving);
        wire.send(sent.as_bytes());
        let got: Vec<u16> = if sent.starts_with("PRI") {
            // It answers with frames of HTTP/2; that it closes is what counts.
            wire.read_to_end(&mut Vec::new());
            Vec::new()
        } else {
            std::iter::from_fn(|| wire.answer("GET")).map(|reply| reply.status).collect()
        };
        assert_eq!(got, statuses, "{sent:?}");
    }
    is_well(serving);
}

#[test]
fn connections_that_only_wait_keep_nobody_out() {
    let serving = serve();
    let half = format!("GET {ROOT}/types HTTP/1.1\r\nHost: tri");
    let waiting: Vec<Wire> = (0..500)
        .map(|_| {
            let mut wire = Wire::to(&serving);
            wire.send(half.as_bytes());
            wire
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(ask(&serving, "GET", "/types", "", "").status, 200);
    }
    drop(waiting);
    is_well(serving);
}

#[test]
fn requests_in_one_breath_are_answered_in_order() {
    let serving = serve();
    let ids: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let one = |id: &String| {
        let body = entity(id, r#""a":1"#);
        let create = request("POST", "/entities", JSON, body.as_bytes());
        [create, request("GET", &format!("/entities/urn:x:{id}"), "", b"")].concat()
    };
    let mut wire = Wire::to(&serving);
    wire.send(&ids.iter().flat_map(one).collect::<Vec<u8>>());
    for id in &ids {
        assert_eq!(wire.answer("POST").unwrap().status, 201, "{id}");
        assert_eq!(wire.answer("GET").unwrap().json()["id"], format!("urn:x:{id}"));
    }
    is_well(serving);
}

/// A short generator of numbers, always the same ones.
fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
}

#[test]
fn noise_is_answered_or_cut() {
    let serving = serve();
    let start = request("POST", "/entities", JSON, entity("1", r#""a":1"#).as_bytes());
    for seed in 0..200 {
        let mut bytes: Vec<u8> = noise(seed).take(400).collect();
        if seed % 2 == 1 {
            // A request with some bytes changed.
            let noise = std::mem::replace(&mut bytes, start.clone());
            for pair in noise.chunks_exact(2).take(1 + seed as usize % 5) {
                let at = usize::from(pair[0]) % bytes.len();
                bytes[at] = pair[1];
            }
        }
        let mut wire = Wire::to(&serving);
        wire.send(&bytes);
        wire.finish();
        let mut rest = Vec::new();
        wire.read_to_end(&mut rest);
    }
    is_well(serving);
}

#[test]
fn identifiers_and_names_survive_the_path() {
    let serving = serve();
    let long = format!("urn:x:{}", "y".repeat(2_000));
    for id in [
        "urn:x:a/b",
        "urn:x:a//b",
        "http://example.org/a/b?c=d#e",
        "http://example.org/../a",
        "urn:x:..",
        "urn:x:.",
        "urn:x:100%",
        "urn:x:%2F",
        "urn:x:a%20b",
        "urn:x:a+b",
        "urn:x:a;b",
        "urn:x:a&b=c",
        "urn:x:'(a)*[b]",
        "urn:x:Průhonice",
        "urn:x:🪁",
        &long,
    ] {
        let body = serde_json::json!({"id": id, "type": "T", "a": 1}).to_string();
        let reply = post(&serving, body);
        assert_eq!(reply.status, 201, "{id}: {}", reply.text());
        let location = reply.header("location").unwrap().strip_prefix(ROOT).unwrap().to_owned();
        let path = format!("/entities/{}", encoded(id));
        let query = format!("/entities?type=T&id={}", encoded(id));
        for (target, found) in [(&location, ""), (&path, ""), (&query, "/0")] {
            let reply = ask(&serving, "GET", target, "", "");
            assert_eq!(reply.status, 200, "{target}: {}", reply.text());
            assert_eq!(reply.json().pointer(&format!("{found}/id")).unwrap(), id, "{target}");
        }
        for name in
            ["height", "http://example.org/a/b", "http://example.org/a?b=c#d", "ex:a%2Fb", "ex:..", "výška"]
        {
            let attrs = format!("{path}/attrs");
            let body = serde_json::json!({name: 5}).to_string();
            assert_eq!(ask(&serving, "POST", &attrs, JSON, body).status, 204, "{id} {name}");
            let one = format!("{attrs}/{}", encoded(name));
            assert_eq!(ask(&serving, "PATCH", &one, JSON, r#"{"value":6}"#).status, 204, "{one}");
            let value = ask(&serving, "GET", &path, "", "").json()[name]["value"].clone();
            assert_eq!(value, 6, "{one}");
            assert_eq!(ask(&serving, "DELETE", &one, "", "").status, 204, "{one}");
        }
        assert_eq!(ask(&serving, "DELETE", &path, "", "").status, 204, "{id}");
    }
    for id in [
        "urn:x:a b",
        "urn:x:<a>",
        "urn:x:{a}",
        "urn:x:a|b",
        "urn:x:\u{200b}",
        "urn:x:\u{202e}",
        "urn:x:\u{7f}",
    ] {
        let body = serde_json::json!({"id": id, "type": "T"}).to_string();
        refused(&post(&serving, body), 400, "BadRequestData", "id: ");
        let path = format!("/entities/{}", encoded(id));
        refused(&ask(&serving, "GET", &path, "", ""), 400, "BadRequestData", "is not an entity identifier");
    }
    is_well(serving);
}

/// Queries that are too much as they stand, before any entity is looked at.
#[test]
fn absurd_queries_are_too_complex() {
    let serving = serve();
    created(&serving, entity("1", r#""a":"x""#));
    let many = |piece: &str, count: usize, between: &str| vec![piece; count].join(between);
    for (target, kind, part) in [
        (
            format!("q={}", "(".repeat(10_000)),
            "TooComplexQuery",
            "q: nested deeper than 32 levels at character 33",
        ),
        (format!("q={}", many("a", 600, ";")), "TooComplexQuery", "q: more than 512 terms"),
        (format!("q=a=={}", many("5", 3_000, ",")), "TooComplexQuery", "q: more than 2000 values"),
        (format!("q={}", many("a", 30, ".")), "TooComplexQuery", "q: more than 16 names in a path"),
        (
            format!("type=T&id={}", many("urn:x:1", 3_000, ",")),
            "TooComplexQuery",
            "id: more than 2000 identifiers",
        ),
        (format!("type={}", many("T", 600, ",")), "TooComplexQuery", "type: more than 512 types"),
        (
            format!("type=T&scopeQ={}", many("/+", 5_000, "")),
            "TooComplexQuery",
            "scopeQ: more than 64 scope levels",
        ),
        (format!("type=T&pick={}", many("a", 600, ",")), "TooComplexQuery", "pick: more than 512 members"),
        (format!("type=T&lang={}", many("en", 100, ",")), "TooComplexQuery", "lang: more than 64 languages"),
        (format!("type=T&orderBy={}", many("a", 20, ",")), "TooComplexQuery", "orderBy: more than 16 keys"),
        (format!("q=a~=%22{}%22", many("a", 2_000, "")), "TooComplexQuery", "q: longer than 1024 bytes"),
    ] {
        let reply = ask(&serving, "GET", &format!("/entities?{target}"), "", "");
        refused(&reply, 403, kind, part);
    }
    for (target, part) in [
        (format!("q=a~=%22{}%22", encoded("a{1000}{1000}")), "too large when compiled"),
        (format!("type=T&idPattern={}", encoded(&"(".repeat(900))), "idPattern: regular expression"),
        (
            format!("type=T&join=inline&pick={}", "a{".repeat(5_000)),
            "pick: more than 10 linked entities in a row",
        ),
    ] {
        let reply = ask(&serving, "GET", &format!("/entities?{target}"), "", "");
        refused(&reply, 400, "BadRequestData", part);
    }
    let pairs = format!("/entities?{}", many("type=T", 100, "&"));
    refused(&ask(&serving, "GET", &pairs, "", ""), 400, "InvalidRequest", "more than 64 query parameters");
    let long = format!(r#""q":"{}""#, "(".repeat(1_000_000));
    refused(&query(&serving, "", &long), 403, "TooComplexQuery", "q: longer than 32768 bytes");
    is_well(serving);
}

/// Queries that are modest by themselves, asked of entities that are not.
#[test]
fn queries_of_large_values_are_bounded() {
    let serving = serve();
    created(&serving, entity("array", &format!(r#""a":[{}]"#, vec!["7"; 1_000_000].join(","))));
    created(&serving, entity("text", &format!(r#""t":"{}""#, "ab".repeat(1_000_000))));
    let values = list(2_000, |n| (n + 100_000).to_string());
    for q in [format!("a=={values}"), format!("a!={values}"), vec!["a==8"; 500].join("|")] {
        let reply = query(&serving, "", &format!(r#""q":"{q}""#));
        refused(&reply, 403, "TooComplexQuery", "q compares too much in one entity");
    }
    // Patterns that take other engines exponential time.
    for pattern in
        ["(a*)*c", "(x+x+)+y", "([ab]*)*([ab]*)*c", ".*.*.*=.*", "(a|b|ab)*c", "^(([a-z])+.)+[A-Z]([a-z])+$"]
    {
        let reply = query(&serving, "", &format!(r#""q":"t~=\"{pattern}\"""#));
        assert_eq!((reply.status, &*reply.text()), (200, "[]"), "{pattern}");
    }
    let reply = query(&serving, "", r#""q":"a==7","pick":["id"]"#);
    assert_eq!((reply.status, &*reply.text()), (200, r#"[{"id":"urn:x:array"}]"#));
    is_well(serving);
}

/// A circle of `count` positions around the origin, as a ring; a star when it has two radii.
fn ring(count: usize, radii: [f64; 2]) -> String {
    let position = |n: usize| {
        let (angle, radius) = (std::f64::consts::TAU * n as f64 / count as f64, radii[n % 2]);
        format!("[{:.6},{:.6}]", radius * angle.cos(), radius * angle.sin())
    };
    format!("[[{},{}]]", list(count, position), position(0))
}

#[test]
fn shapes_of_many_positions_are_bounded() {
    let serving = serve();
    let polygon = |coordinates: &str| format!(r#""g":{{"type":"Polygon","coordinates":{coordinates}}}"#);
    created(&serving, entity("circle", &polygon(&ring(19_998, [60.0, 60.0]))));
    created(&serving, entity("star", &polygon(&ring(2_998, [60.0, 10.0]))));
    let line = list(600_000, |_| "[1,2]".to_owned());
    let line = format!(r#""g":{{"type":"LineString","coordinates":[{line}]}}"#);
    refused(&post(&serving, entity("line", &line)), 400, "BadRequestData", "g: more than 20000 positions");
    refused(
        &post(&serving, entity("more", &polygon(&ring(20_000, [1.0, 1.0])))),
        400,
        "BadRequestData",
        "positions",
    );
    let ask = |relation: &str, shape: &str| {
        let geo =
            format!(r#""georel":"{relation}","geometry":"Polygon","coordinates":{shape},"geoproperty":"g""#);
        query(&serving, "", &format!(r#""geoQ":{{{geo}}},"pick":["id"]"#))
    };
    let star = ring(298, [50.0, 12.0]);
    for relation in
        ["intersects", "within", "contains", "overlaps", "disjoint", "equals", "near;maxDistance==9"]
    {
        assert_eq!(ask(relation, &star).status, 200, "{relation}");
    }
    refused(
        &ask("within", &ring(5_000, [1.0, 1.0])),
        400,
        "BadRequestData",
        "coordinates: more than 2000 positions",
    );
    is_well(serving);
}

/// One large entity that many link to is not sent as often as it is linked to.
#[test]
fn answers_are_bounded() {
    let serving = serve();
    created(&serving, entity("large", &format!(r#""t":"{}""#, "z".repeat(1_000_000))));
    let body = list(1_000, |n| format!(r#"{{"id":"urn:y:{n}","type":"S","r":{{"object":"urn:x:large"}}}}"#));
    let batch = ask(&serving, "POST", "/entityOperations/create", JSON, format!("[{body}]"));
    assert_eq!(batch.status, 201);
    let page =
        |limit: usize| ask(&serving, "GET", &format!("/entities?type=S&join=inline&limit={limit}"), "", "");
    refused(&page(1_000), 403, "TooManyResults", "ask for fewer with `limit`");
    let reply = page(5);
    assert_eq!(reply.status, 200);
    assert!(reply.body.len() > 5_000_000);
    is_well(serving);
}

#[test]
fn batches_are_bounded() {
    let serving = serve();
    let items = |count: usize| format!("[{}]", list(count, |n| entity(&n.to_string(), r#""a":1"#)));
    let create = |body: String| ask(&serving, "POST", "/entityOperations/create", JSON, body);
    refused(&create(items(10_001)), 403, "TooManyResults", "more than 10000 items in one batch");
    let bad = create(format!("[{}]", list(10_000, |n| format!(r#"{{"id":"x{n}"}}"#))));
    assert_eq!(bad.status, 207);
    assert_eq!(bad.json()["errors"].as_array().unwrap().len(), 10_000);
    assert_eq!(create(items(10_000)).status, 201);
    let twice = create(items(10_000));
    assert_eq!((twice.status, twice.json()["errors"].as_array().unwrap().len()), (207, 10_000));
    // Each item with a context of its own.
    let context = |n: usize| format!(r#"{{"id":"urn:z:{n}","type":"T","@context":{{"a":"http://x/{n}"}}}}"#);
    let body = format!("[{}]", list(2_000, context));
    assert_eq!(ask(&serving, "POST", "/entityOperations/create", LD_JSON, body).status, 201);
    assert_eq!(ask(&serving, "DELETE", "/entities?type=T", "", "").status, 204);
    is_well(serving);
}

#[test]
fn context_bombs_are_refused() {
    let serving = serve();
    let chain = |step: &str| {
        let terms = list(2_000, |n| format!(r#""p{}":"p{n}:{step}""#, n + 1));
        format!(r#"{{"p0":"http://x/",{terms}}}"#)
    };
    let backwards = list(100, |n| format!(r#""p{n}":"p{}:a""#, n + 1));
    for (context, part) in [
        (chain(&format!("{}/", "x".repeat(100))), "is too long, or its IRI is"),
        (format!(r#"{{{backwards},"p100":"http://x/"}}"#), "hangs on a chain of more than 32 definitions"),
        (format!("{{{}}}", list(60_000, |n| format!(r#""p{n}":"http://x/{n}""#))), "more than 50000 terms"),
        (format!("[{}]", list(1_000, |n| format!(r#"{{"a":"http://x/{n}"}}"#))), "more than 256 parts"),
        (
            format!("[{}]", list(100, |n| format!(r#""http://127.0.0.1:1/{n}""#))),
            "more than 32 remote documents",
        ),
        (
            format!("{{{}}}", list(1_000, |n| format!(r#""p{n}":"http://x/{}/""#, "y".repeat(n)))),
            "more than 256 different lengths",
        ),
        (format!(r#"{{"{}":"http://x/"}}"#, "x".repeat(1_000_000)), "is too long, or its IRI is"),
        (r#"{"a":"b:x","b":"c:x","c":"a:x"}"#.to_owned(), "is defined by itself"),
    ] {
        let body = entity("1", &format!(r#""a":1,"@context":{context}"#));
        let reply = ask(&serving, "POST", "/entities", LD_JSON, body);
        refused(&reply, 400, "BadRequestData", part);
        let reply = ask(&serving, "POST", "/jsonldContexts", JSON, format!(r#"{{"@context":{context}}}"#));
        assert!((400..=504).contains(&reply.status) || context.starts_with('['), "{}", reply.text());
    }
    is_well(serving);
}

/// Serves one context document to whoever asks, and counts them; answers its URL.
fn context_server(document: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/c.jsonld", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap_or(0) == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            let length = document.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/ld+json\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{document}"
            );
            // A client that has gone away is none of this server's business.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

fn linked(url: &str) -> String {
    format!("Link: <{url}>; rel=\"http://www.w3.org/ns/json-ld#context\"\r\n")
}

#[test]
fn private_addresses_are_fetched_only_where_that_is_allowed() {
    let url = context_server(r#"{"@context":{"height":"https://example.org/height"}}"#);
    let ld = entity("2", &format!(r#""height":1,"@context":"{url}""#));
    let serving = serve();
    for target in [
        &url,
        "http://10.0.0.1/c",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/c",
        "http://[::ffff:127.0.0.1]/c",
        "http://0.0.0.0/c",
        "http://localhost/c",
        "http://2130706433/c",
        "http://0x7f.1/c",
    ] {
        let headers = format!("{JSON}{}", linked(target));
        let reply = ask(&serving, "POST", "/entities", &headers, entity("1", r#""height":1"#));
        refused(&reply, 504, "LdContextNotAvailable", "egress.allow_private is not set");
    }
    let reply = ask(&serving, "POST", "/entities", LD_JSON, &ld);
    refused(&reply, 504, "LdContextNotAvailable", "is a loopback address");
    is_well(serving);

    let serving = serve_with(&["egress.allow_networks=127.0.0.0/8"]);
    assert_eq!(ask(&serving, "POST", "/entities", LD_JSON, &ld).status, 201);
    let headers = format!("{JSON}{}", linked(&url));
    let reply = ask(&serving, "POST", "/entities", &headers, entity("1", r#""height":1"#));
    assert_eq!(reply.status, 201, "{}", reply.text());
    let plain = ask(&serving, "GET", "/entities/urn:x:1", "", "").json();
    assert_eq!(plain["https://example.org/height"]["value"], 1, "{plain}");
    let short = ask(&serving, "GET", "/entities/urn:x:1", &linked(&url), "").json();
    assert_eq!(short["height"]["value"], 1, "{short}");
    is_well(serving);
}

/// A context that includes itself by way of another, and a server that answers with something else.
#[test]
fn remote_contexts_are_not_trusted() {
    let serving = serve_with(&["egress.allow_networks=127.0.0.0/8"]);
    for (document, part) in [
        ("no context at all", "is not valid JSON"),
        (r#"{"a":1}"#, "has no member @context"),
        (r#"{"@context":"c.jsonld"}"#, "includes itself"),
        (r#"{"@context":[{"a":"http://x/a"},"c.jsonld"]}"#, "includes itself"),
        (r#"{"@context":{"a":{"@id":"http://x/a","@context":{}}}}"#, "scoped @context"),
    ] {
        let headers = format!("{JSON}{}", linked(&context_server(document)));
        let reply = ask(&serving, "POST", "/entities", &headers, entity("1", r#""a":1"#));
        refused(&reply, 400, "BadRequestData", part);
    }
    is_well(serving);
}
