//! Bearer tokens on the wire.

use std::path::Path;
use std::sync::{Arc, Mutex};

use trifid_base_web::auth::{self, hash_token};

use super::support::{Answered, Running, options, run};

fn write(path: &Path, lines: &[(&str, &str, &str)]) {
    let text: String = lines
        .iter()
        .map(|(token, tenant, role)| format!("{} {tenant} {role}\n", hash_token(token)))
        .collect();
    std::fs::write(path, text).unwrap();
}

const TOKENS: &[(&str, &str, &str)] = &[
    ("reader", "*", "read"),
    ("writer", "*", "write"),
    ("city-writer", "city", "write"),
    ("default-reader", "-", "read"),
];

fn start(path: &Path) -> Running {
    write(path, TOKENS);
    let auth = auth::Options { tokens_file: Some(path.to_owned()), ..auth::Options::default() };
    run(options().resolve(&auth).unwrap())
}

fn ask(running: &Running, method: &str, path: &str, token: &str, tenant: &str) -> Answered {
    let mut client = running.connect();
    let token = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
    let tenant = if tenant.is_empty() { String::new() } else { format!("tenant: {tenant}\r\n") };
    client.send(format!("{method} {path} HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n{token}{tenant}\r\n"));
    client.answer()
}

#[test]
fn tokens_decide_who_may_do_what() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder.path().join("tokens"));
    for (method, path, token, tenant, status) in [
        ("GET", "/door/echo", "", "", 401),
        ("GET", "/door/echo", "stranger", "", 401),
        ("GET", "/door/echo", "reader", "", 200),
        ("OPTIONS", "/door/echo", "reader", "", 200),
        ("POST", "/door/echo", "reader", "", 403),
        ("POST", "/door/body", "reader", "", 200), // the door declares it a read
        ("POST", "/door/echo", "writer", "", 200),
        ("POST", "/door/echo", "writer", "city", 200),
        ("POST", "/door/echo", "city-writer", "city", 200),
        ("GET", "/door/echo", "city-writer", "", 403),
        ("GET", "/door/echo", "city-writer", "town", 403),
        ("GET", "/door/echo", "default-reader", "", 200),
        ("GET", "/door/echo", "default-reader", "city", 403),
        ("GET", "/door/echo?public", "", "", 200),
    ] {
        let answer = ask(&running, method, path, token, tenant);
        assert_eq!(answer.status, status, "{method} {path} {token} {tenant}: {answer:?}");
    }
}

#[test]
fn refusals_say_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder.path().join("tokens"));
    let challenge = |token: &str, method: &str| {
        ask(&running, method, "/door/echo", token, "").header("www-authenticate").unwrap().to_owned()
    };
    assert_eq!(challenge("", "GET"), "Bearer realm=\"trifid\"");
    assert!(challenge("stranger", "GET").contains("invalid_token"));
    assert!(challenge("reader", "POST").contains("insufficient_scope"));
}

/// Where the log of this process goes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_log_tells_requests_and_no_secrets() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder.path().join("tokens"));
    assert_eq!(ask(&running, "GET", "/door/echo?q=private", "reader", "").status, 200);
    assert_eq!(ask(&running, "GET", "/door/echo", "guessed-secret", "").status, 401);
    let ours = |line: &&str| line.contains("trifid");
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    // Where tests share a process, requests of other tests stand in this log too.
    let parts = ["trifid::access", "method=GET", "path=\"/door/echo\"", "status=200", "request="];
    assert!(text.lines().any(|line| parts.iter().all(|part| line.contains(part))), "{parts:?} in {text}");
    for secret in ["Bearer", "reader\"", "guessed-secret", "private", &hash_token("reader")[..16]] {
        assert!(!text.lines().filter(ours).any(|line| line.contains(secret)), "{secret} in {text}");
    }
}

#[test]
fn a_reload_takes_effect_on_open_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let running = start(&path);
    let mut client = running.connect();
    let mut status = |token: &str| {
        client.send(format!("GET /door/echo HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {token}\r\n\r\n"));
        client.answer().status
    };
    assert_eq!((status("reader"), status("fresh")), (200, 401));
    write(&path, &[("fresh", "*", "read")]);
    let reload = running.server.as_ref().unwrap().reload();
    reload.run().unwrap();
    assert_eq!((status("reader"), status("fresh")), (401, 200));
    std::fs::write(&path, "nonsense").unwrap();
    assert!(reload.run().is_err());
    assert_eq!(status("fresh"), 200, "a file that cannot be used changes nothing");
}

#[test]
fn probes_need_no_token_and_details_do() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder.path().join("tokens"));
    let bare = ask(&running, "GET", "/q/health", "", "");
    assert_eq!((bare.status, bare.json()), (200, serde_json::json!({ "status": "up" })));
    assert_eq!(ask(&running, "GET", "/q/ready", "", "").status, 200);
    assert_eq!(
        ask(&running, "GET", "/q/health", "reader", "").json()["doors"]["door"]["store"]["entities"],
        7
    );
    assert_eq!(ask(&running, "GET", "/q/metrics", "", "").status, 401);
    assert_eq!(ask(&running, "GET", "/q/metrics", "city-writer", "").status, 403);
    assert_eq!(ask(&running, "GET", "/q/metrics", "reader", "").status, 200);
}
