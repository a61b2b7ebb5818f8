//! A server with a door that does as it is told, and a client that sends what it is told.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown as Half, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use tokio::sync::Semaphore;
use trifid_base_runtime::Shutdown;
use trifid_base_runtime::shutdown::Reason;
use trifid_base_web::{
    Access, Answer, Body, Face, HealthSource, Mount, Options, Readiness, Request, Resolved, Response, Role,
    Server, ShellProblem, auth, serve,
};

/// Long enough for any machine; a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of a body of `/door/files`.
pub(crate) const FILES_BYTES_MAX: u64 = 200_000;

/// The door: each path of it does one thing.
pub(crate) struct Door {
    arrivals: SyncSender<String>,
    gate: Arc<Semaphore>,
}

impl Face for Door {
    fn call<'a>(&'a self, request: Request) -> Answer<'a> {
        Box::pin(async move {
            match request.path().trim_start_matches("/door") {
                "/echo" => text(&describe(&request)),
                "/body" | "/files" => Response::new(Body::full(request.body)),
                "/wait" => self.wait(&request).await,
                "/block" => self.block(&request),
                "/never" => std::future::pending().await,
                "/panic" => panic!("told to"),
                "/big" => Response::new(Body::full(vec![b'x'; 32 << 20])),
                "/stream" => stream(true),
                "/torn" => stream(false),
                "/trailers" => trailers(),
                _ => status(StatusCode::NOT_FOUND),
            }
        })
    }

    fn problem(&self, problem: ShellProblem) -> Response {
        let mut response = text(&format!("door says: {}", problem.title()));
        *response.status_mut() = problem.status();
        response
    }

    fn access(&self, head: &Parts) -> Access {
        match head.uri.path() {
            "/door/body" => Access::Needs(Role::Read),
            "/door/echo" if head.uri.query() == Some("public") => Access::Public,
            _ => Access::of_method(&head.method),
        }
    }

    fn body_limit(&self, head: &Parts) -> Option<u64> {
        (head.uri.path() == "/door/files").then_some(FILES_BYTES_MAX)
    }

    fn tenant<'r>(&self, head: &'r Parts) -> &'r str {
        head.headers.get("tenant").and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

impl Door {
    async fn wait(&self, request: &Request) -> Response {
        self.arrivals.send(request.query().unwrap_or("").to_owned()).unwrap();
        self.gate.acquire().await.unwrap().forget();
        text("waited")
    }

    /// Blocks the core itself, so that nothing on it moves.
    fn block(&self, request: &Request) -> Response {
        self.arrivals.send(request.query().unwrap_or("").to_owned()).unwrap();
        while self.gate.try_acquire().map(|permit| permit.forget()).is_err() {
            std::thread::yield_now();
        }
        text("blocked")
    }
}

fn text(text: &str) -> Response {
    Response::new(Body::full(text.to_owned()))
}

fn status(code: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = code;
    response
}

fn describe(request: &Request) -> String {
    let target = request.uri.path_and_query().unwrap();
    let (length, role) = (request.body.len(), request.principal.role);
    format!("{} {target} {:?} {length} {role}", request.method, request.body_framing)
}

fn stream(finishes: bool) -> Response {
    let (sender, body) = Body::channel(1);
    tokio::task::spawn_local(async move {
        for piece in ["one ", "two ", "three"] {
            sender.send(Bytes::from(piece)).await.unwrap();
        }
        if finishes {
            sender.finish().await.unwrap();
        }
    });
    Response::new(body)
}

fn trailers() -> Response {
    let (sender, body) = Body::channel(1);
    tokio::task::spawn_local(async move {
        sender.send(Bytes::from("rows")).await.unwrap();
        let fields = [(http::HeaderName::from_static("outcome"), http::HeaderValue::from_static("whole"))];
        sender.finish_with(fields.into_iter().collect()).await.unwrap();
    });
    let mut response = Response::new(body);
    response.headers_mut().insert(http::header::TRAILER, http::HeaderValue::from_static("outcome"));
    response
}

/// A part of the program whose readiness a test sets.
pub(crate) struct Part(pub(crate) Mutex<Readiness>);

impl HealthSource for Part {
    fn name(&self) -> &'static str {
        "door"
    }

    fn readiness(&self) -> Readiness {
        self.0.lock().unwrap().clone()
    }

    fn section(&self) -> serde_json::Value {
        serde_json::json!({ "store": { "entities": 7 } })
    }

    fn metrics(&self, out: &mut trifid_base_web::metrics::Exposition) {
        out.gauge("trifid_door_entities", "Entities.", 7u64);
    }
}

/// A running server; it is shut down and joined when dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: Shutdown,
    pub(crate) part: Arc<Part>,
    pub(crate) server: Option<Server>,
    arrivals: Receiver<String>,
    gate: Arc<Semaphore>,
}

/// Options for one core on a free port.
pub(crate) fn options() -> Options {
    Options { listen: "127.0.0.1:0".parse().unwrap(), cores: 1, ..Options::default() }
}

/// The default server.
pub(crate) fn start() -> Running {
    start_with(|_| ())
}

/// A server whose options a test changes.
pub(crate) fn start_with(change: impl FnOnce(&mut Options)) -> Running {
    let mut options = options();
    change(&mut options);
    run(options.resolve(&auth::Options::default()).unwrap())
}

/// A server on resolved options.
pub(crate) fn run(resolved: Resolved) -> Running {
    let shutdown = Shutdown::new();
    let (arrivals, arrived) = sync_channel(1024);
    let gate = Arc::new(Semaphore::new(0));
    let door = Door { arrivals, gate: Arc::clone(&gate) };
    let part = Arc::new(Part(Mutex::new(Readiness::Ready)));
    let mounts = vec![Mount::new("/door", Arc::new(door))];
    let server = serve(resolved, mounts, vec![Arc::clone(&part) as _], &shutdown).unwrap();
    Running { address: server.local_addr(), shutdown, part, server: Some(server), arrivals: arrived, gate }
}

impl Running {
    /// A new connection.
    pub(crate) fn connect(&self) -> Client {
        Client::new(self.address)
    }

    /// One request on a connection of its own; the whole answer.
    pub(crate) fn get(&self, path: &str) -> Answered {
        self.connect().get(path)
    }

    /// Waits until a request has arrived at `/wait` or `/block`; its query.
    pub(crate) fn arrival(&self) -> String {
        self.arrivals.recv_timeout(PATIENCE).expect("a request should arrive")
    }

    /// The same without blocking the client's own runtime.
    pub(crate) async fn arrival_async(&self) -> String {
        loop {
            match self.arrivals.try_recv() {
                Ok(arrival) => return arrival,
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    /// Lets so many waiting requests go.
    pub(crate) fn release(&self, count: usize) {
        self.gate.add_permits(count);
    }

    /// Begins the drain.
    pub(crate) fn stop(&self) {
        self.shutdown.trigger(Reason::Requested);
    }

    /// Waits for the end of the drain.
    pub(crate) fn join(mut self) {
        self.server.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.release(Semaphore::MAX_PERMITS / 2);
        if let Some(server) = self.server.take() {
            server.join().unwrap();
        }
    }
}

/// A client of raw bytes.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn get(&mut self, path: &str) -> Answered {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: t\r\n\r\n"));
        self.answer()
    }

    /// Sends the end of the stream.
    pub(crate) fn close_write(&self) {
        self.stream.shutdown(Half::Write).unwrap();
    }

    /// Reads one answer with its body of known length.
    pub(crate) fn answer(&mut self) -> Answered {
        let end = self.read_until(|buffer| find(buffer, b"\r\n\r\n").map(|at| at + 4));
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answered = Answered { status, head, body: Vec::new() };
        if let Some(length) = answered.header("content-length") {
            let length: usize = length.parse().unwrap();
            let end = self.read_until(|buffer| (buffer.len() >= length).then_some(length));
            answered.body = self.buffer.drain(..end).collect();
        }
        answered
    }

    /// Reads until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.stream.read_to_end(&mut self.buffer).expect("the server should close");
        std::mem::take(&mut self.buffer)
    }

    fn read_until(&mut self, mut done: impl FnMut(&[u8]) -> Option<usize>) -> usize {
        loop {
            if let Some(end) = done(&self.buffer) {
                return end;
            }
            let mut piece = [0; 65536];
            let count = self.stream.read(&mut piece).expect("an answer should come");
            assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&self.buffer));
            self.buffer.extend_from_slice(&piece[..count]);
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
