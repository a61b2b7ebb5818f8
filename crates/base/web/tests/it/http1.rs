//! HTTP/1.1 on the wire: keep-alive, pipelining, bodies, framing, ids, CORS.

use std::io::ErrorKind;

use trifid_base_web::{Mount, auth, serve};

use super::support::{options, start, start_with};

#[test]
fn a_connection_serves_many_requests() {
    let running = start();
    let mut client = running.connect();
    for n in 0..20 {
        assert_eq!(
            client.get(&format!("/door/echo?n={n}")).text(),
            format!("GET /door/echo?n={n} None 0 admin")
        );
    }
}

#[test]
fn a_request_names_its_host_once() {
    let running = start();
    let mut client = running.connect();
    for (version, hosts, status) in [
        ("1.1", "", 400),
        ("1.1", "host: a\r\nhost: b\r\n", 400),
        ("1.1", "host: a\r\n", 200),
        ("1.0", "connection: keep-alive\r\n", 200),
    ] {
        client.send(format!("GET /door/echo HTTP/{version}\r\n{hosts}\r\n"));
        assert_eq!(client.answer().status, status, "{version} {hosts:?}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let running = start();
    let mut client = running.connect();
    let requests: String =
        (0..50).map(|n| format!("GET /door/echo?{n} HTTP/1.1\r\nhost: t\r\n\r\n")).collect();
    client.send(requests);
    for n in 0..50 {
        assert!(client.answer().text().starts_with(&format!("GET /door/echo?{n} ")));
    }
}

#[test]
fn an_answer_does_not_wait_for_the_head_that_follows_it() {
    let running = start();
    let mut client = running.connect();
    client.send("GET /door/echo?1 HTTP/1.1\r\nhost: t\r\n\r\nGET /door/echo?2 HT");
    assert!(client.answer().text().starts_with("GET /door/echo?1 "));
    client.send("TP/1.1\r\nhost: t\r\n\r\n");
    assert!(client.answer().text().starts_with("GET /door/echo?2 "));
}

#[test]
fn a_head_may_come_in_pieces() {
    let running = start();
    let mut client = running.connect();
    for piece in ["P", "OS", "T /door/body HTTP/1.1\r\nho", "st: t\r\ncontent-length: 3\r\n\r", "\nab", "c"] {
        client.send(piece);
    }
    assert_eq!(client.answer().text(), "abc");
}

#[test]
fn the_framing_of_a_body_is_told() {
    let running = start();
    let mut client = running.connect();
    for (rest, told) in [
        ("\r\n", "None 0"),
        ("content-length: 0\r\n\r\n", "ContentLength(0) 0"),
        ("content-length: 5\r\n\r\nhello", "ContentLength(5) 5"),
        ("transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Chunked 5"),
        ("transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nx-trailer: 1\r\n\r\n", "Chunked 5"),
        ("transfer-encoding: chunked\r\n\r\n0\r\n\r\n", "Chunked 0"),
    ] {
        client.send(format!("POST /door/echo HTTP/1.1\r\nhost: t\r\n{rest}"));
        assert_eq!(client.answer().text(), format!("POST /door/echo {told} admin"), "{rest:?}");
    }
}

#[test]
fn a_body_of_many_frames_comes_back_whole() {
    let running = start();
    let mut client = running.connect();
    let body: Vec<u8> = (0..3_000_000u32).map(|n| n.to_le_bytes()[0]).collect();
    client.send(format!("POST /door/body HTTP/1.1\r\nhost: t\r\ncontent-length: {}\r\n\r\n", body.len()));
    client.send(&body);
    assert!(client.answer().body == body);
    client.send("POST /door/body HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n");
    for chunk in body.chunks(100_000) {
        client.send(format!("{:x}\r\n", chunk.len()));
        client.send(chunk);
        client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    assert!(client.answer().body == body);
}

#[test]
fn a_body_is_asked_for_when_its_client_waits() {
    let running = start();
    let mut client = running.connect();
    client.send("POST /door/body HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
    assert_eq!(client.answer().status, 100);
    client.send("ok");
    assert_eq!(client.answer().text(), "ok");
}

#[test]
fn a_raw_path_reaches_the_door_as_it_was_sent() {
    let running = start();
    let path = "/door/a%2Fb//%2e%2e/../x?q=%20";
    assert_eq!(running.get(path).status, 404);
    assert_eq!(running.get("/door/echo").status, 200);
    assert!(running.get("/Door/echo").text().contains("No door"));
    assert_eq!(running.get("//door/echo").status, 404);
}

#[test]
fn a_streamed_body_is_whole_or_visibly_torn() {
    let running = start();
    let mut client = running.connect();
    client.send("GET /door/stream HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
    let whole = String::from_utf8(client.rest()).unwrap();
    assert!(whole.ends_with("4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n"), "{whole}");
    let mut client = running.connect();
    client.send("GET /door/torn HTTP/1.1\r\nhost: t\r\n\r\n");
    let torn = String::from_utf8(client.rest()).unwrap();
    assert!(torn.starts_with("HTTP/1.1 200") && !torn.ends_with("0\r\n\r\n"), "{torn}");
}

#[test]
fn trailers_reach_who_asks_for_them() {
    let running = start();
    for (te, end) in
        [("te: trailers\r\n", "4\r\nrows\r\n0\r\noutcome: whole\r\n\r\n"), ("", "rows\r\n0\r\n\r\n")]
    {
        let mut client = running.connect();
        client.send(format!("GET /door/trailers HTTP/1.1\r\nhost: t\r\n{te}connection: close\r\n\r\n"));
        let answer = String::from_utf8(client.rest()).unwrap();
        assert!(answer.ends_with(end), "{answer}");
    }
}

#[test]
fn a_given_id_is_echoed_and_a_made_one_marks_errors() {
    let running = start();
    let mut client = running.connect();
    client.send("GET /door/echo HTTP/1.1\r\nhost: t\r\nx-request-id: mine-1\r\n\r\n");
    assert_eq!(client.answer().header("x-request-id"), Some("mine-1"));
    client.send("GET /door/echo HTTP/1.1\r\nhost: t\r\nx-request-id: not mine\r\n\r\n");
    assert_eq!(client.answer().header("x-request-id"), None);
    let (first, second) = (client.get("/door/none"), client.get("/door/none"));
    assert_eq!(first.status, 404);
    assert!(first.header("x-request-id").is_some());
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
}

#[test]
fn head_and_options_are_answered() {
    let running = start();
    let mut client = running.connect();
    client.send("OPTIONS * HTTP/1.1\r\nhost: t\r\n\r\n");
    assert_eq!(client.answer().status, 204);
    client.send("HEAD /door/echo HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
    let answer = String::from_utf8(client.rest()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn a_refused_target_is_told_why() {
    let running = start();
    let mut client = running.connect();
    client.send("GET /door/echo?q=speed>20 HTTP/1.1\r\nhost: t\r\n\r\n");
    let answer = String::from_utf8(client.rest()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("(> is %3E)"), "{answer}");
}

#[test]
fn nonsense_is_answered_400_and_closed() {
    let running = start();
    for nonsense in [
        "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        "\u{1}\u{2}\u{3} nonsense\r\n\r\n",
        "GET /\u{7f} HTTP/1.1\r\n\r\n",
        "POST /door/echo HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST /door/echo HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "POST /door/echo HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        "PRINT / HTTP/1.1\r\nbad header\r\n\r\n",
    ] {
        let mut client = running.connect();
        client.send(nonsense);
        let answer = String::from_utf8_lossy(&client.rest()).into_owned();
        // A method that begins like the HTTP/2 preface is taken for it and simply closed.
        assert!(answer.starts_with("HTTP/1.1 400") || nonsense.starts_with("PRI"), "{nonsense:?}: {answer}");
    }
}

#[test]
fn cross_origin_requests_are_marked_only_when_asked_for() {
    let silent = start();
    let mut client = silent.connect();
    client.send("GET /door/echo HTTP/1.1\r\nhost: t\r\norigin: https://a.example\r\n\r\n");
    assert_eq!(client.answer().header("access-control-allow-origin"), None);
    let open = start_with(|options| options.cors_origins = vec!["https://a.example".into()]);
    let mut client = open.connect();
    client.send("GET /door/echo HTTP/1.1\r\nhost: t\r\norigin: https://a.example\r\n\r\n");
    assert_eq!(client.answer().header("access-control-allow-origin"), Some("https://a.example"));
    client.send(
        "OPTIONS /door/x HTTP/1.1\r\nhost: t\r\norigin: https://a.example\r\n\
         access-control-request-method: PATCH\r\n\r\n",
    );
    let preflight = client.answer();
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-methods").unwrap().contains("PATCH"));
}

#[test]
fn a_panic_costs_one_request() {
    let running = start();
    let mut client = running.connect();
    let answer = client.get("/door/panic");
    assert_eq!((answer.status, answer.text()), (500, "door says: Internal error"));
    assert_eq!(client.get("/door/echo").status, 200, "the connection and the core go on");
}

#[test]
fn every_core_answers_on_the_same_port() {
    let running = start_with(|options| options.cores = 3);
    for _ in 0..30 {
        assert_eq!(running.get("/door/echo").status, 200);
    }
    assert_eq!(running.get("/q/health").json()["cores"], 3);
}

#[test]
fn a_second_server_on_the_port_is_refused() {
    let running = start_with(|options| options.cores = 2);
    let mut second = options();
    second.listen = running.address;
    let resolved = second.resolve(&auth::Options::default()).unwrap();
    let error = serve(resolved, Vec::<Mount>::new(), Vec::new(), &running.shutdown).unwrap_err();
    match error {
        trifid_base_web::ServeError::Listen { source, .. } => assert_eq!(source.kind(), ErrorKind::AddrInUse),
        other => panic!("{other}"),
    }
}
