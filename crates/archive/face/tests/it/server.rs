//! The face behind the shell: what only a connection shows.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown as Half, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trifid_archive_face::ROOT;
use trifid_base_runtime::Shutdown;
use trifid_base_runtime::shutdown::Reason;
use trifid_base_runtime::units::{Size, Span};
use trifid_base_web::{Mount, Options, Server, auth, serve};

use crate::harness::{Door, MANY, encoded};

/// Long enough for any machine; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A door behind a listener of its own.
pub(crate) struct Running {
    address: SocketAddr,
    door: Door,
    shutdown: Shutdown,
    server: Option<Server>,
}

impl Running {
    pub(crate) fn new(door: Door) -> Self {
        let options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            cores: 1,
            body_limit: Size(10_000),
            ..Options::default()
        };
        let shutdown = Shutdown::new();
        let mounts = vec![Mount::new(ROOT, Arc::clone(&door.face) as _)];
        let server =
            serve(options.resolve(&auth::Options::default()).unwrap(), mounts, Vec::new(), &shutdown);
        let server = server.unwrap();
        Self { address: server.local_addr(), door, shutdown, server: Some(server) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and reads everything until the server closes.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Waits until the engine has nothing to do for anybody.
    fn idle(&self) {
        self.wait("the engine becomes idle", || self.door.archive.compute().load() == (0, 0));
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.trigger(Reason::Requested);
        if let Some(server) = self.server.take() {
            server.join().unwrap();
        }
    }
}

fn get(query: &str, rest: &str, headers: &str) -> String {
    format!(
        "GET /tap/sync?QUERY={}&{rest} HTTP/1.1\r\nhost: t\r\n{headers}connection: close\r\n\r\n",
        encoded(query)
    )
}

/// A body without its chunks, which must be whole.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let line = memchr::memchr(b'\n', body).unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap().trim(), 16).unwrap();
        body = &body[line + 1..];
        if size == 0 {
            return out;
        }
        out.extend_from_slice(&body[..size]);
        body = &body[size + 2..];
    }
}

const ALL: &str = "SELECT n, x FROM demo.many";

/// More bytes than sockets take by themselves.
const WIDE: &str =
    "SELECT n, x, n AS n2, x AS x2, n AS n3, x AS x3, n AS n4, x AS x4, n AS n5, x AS x5 FROM demo.many";

#[test]
fn who_asks_for_trailers_learns_how_it_ended() {
    let running = Running::new(Door::new());
    for (rest, end) in [("FORMAT=csv", "OK"), ("FORMAT=csv&MAXREC=50000", "OVERFLOW")] {
        let answer = running.ask(&get(ALL, rest, "te: trailers\r\n"));
        assert!(answer.ends_with(&format!("\r\n0\r\ntap-query-status: {end}\r\n\r\n")), "{rest}");
    }
    let answer = running.ask(&get(ALL, "FORMAT=csv", ""));
    assert!(answer.ends_with("\r\n0\r\n\r\n"));
}

#[test]
fn a_small_answer_has_its_length() {
    let running = Running::new(Door::new());
    let answer = running.ask(&get("SELECT 1 AS one", "FORMAT=csv", ""));
    assert!(answer.contains("content-length: 6\r\n") && answer.ends_with("\r\n\r\none\n1\n"), "{answer}");
    let head = running.ask(&get(ALL, "FORMAT=csv", "").replace("GET", "HEAD"));
    assert!(
        head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n") && !head.contains("\n0,0"),
        "{head}"
    );
}

#[test]
fn uploads_may_be_larger_than_other_bodies() {
    let running = Running::new(Door::new());
    let post = |media: &str, body: &str| {
        let length = body.len();
        running.ask(&format!(
            "POST /tap/sync HTTP/1.1\r\nhost: t\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        ))
    };
    let rows: String = (0..5000).map(|row| format!("{row},x\n")).collect();
    let part = |name: &str, more: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{content}\r\n")
    };
    let body = [
        part("QUERY", "", "SELECT COUNT(*) AS c FROM TAP_UPLOAD.t"),
        part("UPLOAD", "", "t,param:f"),
        part("FORMAT", "", "csv"),
        part("f", "; filename=\"f.csv\"", &format!("n,s\n{rows}")),
        "--b--".into(),
    ]
    .concat();
    let answer = post("multipart/form-data; boundary=b", &body);
    assert!(answer.ends_with("c\n5000\n"), "{answer}");
    let long = format!("QUERY={}", "x".repeat(20_000));
    let answer = post("application/x-www-form-urlencoded", &long);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(
        answer.contains("QUERY_STATUS") && answer.contains("ERROR"),
        "the shell's refusals are VOTables too"
    );
}

#[test]
fn a_client_that_leaves_ends_its_query() {
    let running = Running::new(Door::with(|options| options.spool_after = Span(PATIENCE)));
    // Waiting for its first row, then for a reader.
    for query in ["SELECT COUNT(*) AS c FROM demo.many AS a, demo.many AS b", WIDE] {
        let mut stream = running.connect();
        stream.write_all(get(query, "FORMAT=votable/td", "").as_bytes()).unwrap();
        running.wait("the query runs", || running.door.archive.compute().load() != (0, 0));
        stream.shutdown(Half::Both).unwrap();
        drop(stream);
        running.idle();
    }
}

#[test]
fn a_client_that_does_not_read_holds_nothing_in_the_engine() {
    let running = Running::new(Door::with(|options| options.spool_after = Span(Duration::ZERO)));
    let mut stream = running.connect();
    stream.write_all(get(WIDE, "FORMAT=votable/td", "").as_bytes()).unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    running.idle();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let head = memchr::memmem::find(&rest, b"\r\n\r\n").unwrap() + 4;
    let body = unchunked(&rest[head..]);
    assert_eq!(memchr::memmem::find_iter(&body, b"<TR>").count() as i64, MANY);
}

#[test]
fn more_than_can_be_done_is_told_so() {
    let running = Running::new(Door::new());
    let slow = get("SELECT COUNT(*) AS c FROM demo.many AS a, demo.many AS b", "FORMAT=csv", "");
    let mut held = Vec::new();
    // Two run and four wait; whoever comes then is told.
    for load in 1..=6 {
        let mut stream = running.connect();
        stream.write_all(slow.as_bytes()).unwrap();
        held.push(stream);
        running.wait("the query is taken", || {
            let (running, waiting) = running.door.archive.compute().load();
            running + waiting == load
        });
    }
    let refused = running.ask(&slow);
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1\r\n"), "{refused}");
    // What needs no turn is answered all the same.
    let small = running.ask(&get("SELECT id FROM demo.stars WHERE id = 1", "FORMAT=csv", ""));
    assert!(small.ends_with("id\n1\n"), "{small}");
    let there = running.ask("GET /tap/availability HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
    assert!(there.contains("<vosi:available>true"), "{there}");
    drop(held);
    running.idle();
}
