//! The crash drill: the real server under load is killed with SIGKILL, again and again, and what it had
//! acknowledged is looked for.
//!
//! ```text
//! cargo run -p trifid-context-backends --example crash_drill -- target/debug/trifid [rounds] [writers]
//! ```
//!
//! Each writer owns a counter entity, which it patches, and creates and deletes entities of its own. It notes
//! what was acknowledged and what was under way. After each kill the server is started again on the same folder
//! and asked for everything: an acknowledged creation, value or deletion that is not there is a loss. A request
//! that was under way may have happened or not. Snapshots are made to happen all the time. The drill ends with
//! status 1 if anything was lost.

#![allow(clippy::unwrap_used)] // a drill: whatever it does not expect ends it

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trifid_context_model::json::Doc;

const ENTITIES: &str = "/ngsi-ld/v1/entities";
const PAGE: usize = 1_000;
/// Long enough for a cold start on a busy machine.
const START: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let binary = arguments.next().expect("the path of the trifid binary");
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (rounds, writers) = (number(20), number(16));
    let folder = tempfile::tempdir().unwrap();
    let mut ledgers: Vec<Ledger> = (0..writers).map(Ledger::new).collect();
    let (mut losses, mut acknowledged) = (0, 0);
    for round in 0..rounds {
        let done = load_and_kill(Path::new(&binary), folder.path(), &mut ledgers, 150 + 367 * round % 2_400);
        acknowledged += done;
        let lost = check(Path::new(&binary), folder.path(), &mut ledgers);
        losses += lost.len();
        say(&format!("round {:2}: {done:5} acknowledged before the kill, {} lost", round + 1, lost.len()));
        lost.iter().take(5).for_each(|loss| say(&format!("  {loss}")));
    }
    let snapshot = newest_snapshot(folder.path());
    say(&format!(
        "{rounds} kills, {acknowledged} acknowledged writes, {losses} lost; newest snapshot {snapshot}"
    ));
    if losses == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(text: &str) {
    let mut out = io::stdout();
    writeln!(out, "{text}").unwrap();
}

/// The name of the newest snapshot, to show that there was one.
fn newest_snapshot(folder: &Path) -> String {
    let files = std::fs::read_dir(folder.join("context")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
    names.max().unwrap_or_else(|| "none".to_owned())
}

/// The server, running.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(binary: &Path, folder: &Path) -> Self {
        let address = free_address();
        let child = Command::new(binary)
            .args(["serve", "--listen", &address.to_string()])
            .env("TRIFID_DATA_DIR", folder)
            .env("TRIFID_DOORS", "context")
            .env("TRIFID_CONTEXT_STORE", "file")
            .env("TRIFID_CONTEXT_SNAPSHOT_AFTER", "64KiB")
            .env("TRIFID_LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server { child, address };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&mut self) {
        let started = Instant::now();
        loop {
            let answer = Client::open(self.address).and_then(|mut client| client.ask("GET", "/q/ready", ""));
            if answer.is_ok_and(|(status, _)| status == 200) {
                return;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended while starting: {status}");
            }
            assert!(started.elapsed() < START, "the server does not get ready");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// One connection.
struct Client(BufReader<TcpStream>);

impl Client {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(START))?;
        Ok(Client(BufReader::new(stream)))
    }

    /// Status and body of the answer.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<(u16, String)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: drill\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status.ok_or(io::ErrorKind::InvalidData)?, String::from_utf8_lossy(&body).into_owned()))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// What one writer was promised.
struct Ledger {
    writer: u64,
    serial: u64,
    /// Entities that must be there, with their value.
    present: BTreeMap<String, u64>,
    /// Entities that must not be there.
    absent: Vec<String>,
    /// The request whose answer never came: the entity and what it would hold then.
    under_way: Option<(String, Option<u64>)>,
}

impl Ledger {
    fn new(writer: u64) -> Self {
        Ledger { writer, serial: 0, present: BTreeMap::new(), absent: Vec::new(), under_way: None }
    }

    fn id(&self, what: &str) -> String {
        format!("urn:drill:{}:{what}", self.writer)
    }

    /// Writes until the connection breaks.
    fn write(&mut self, address: SocketAddr, acknowledged: &AtomicU64) {
        let Ok(mut client) = Client::open(address) else { return };
        loop {
            self.serial += 1;
            let (method, path, body, id, value) = self.request();
            self.under_way = Some((id.clone(), value));
            let Ok((status, answer)) = client.ask(method, &path, &body) else { return };
            assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
            self.under_way = None;
            self.note(id, value);
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn note(&mut self, id: String, value: Option<u64>) {
        match value {
            Some(value) => {
                self.present.insert(id, value);
            }
            None => {
                self.present.remove(&id);
                self.absent.push(id);
            }
        }
    }

    fn request(&self) -> (&'static str, String, String, String, Option<u64>) {
        let (serial, counter) = (self.serial, self.id("counter"));
        let create =
            |id: &str| format!(r#"{{"id":"{id}","type":"Drill","n":{serial},"pad":"{:0>200}"}}"#, serial);
        let oldest = self.present.keys().find(|id| **id != counter);
        if !self.present.contains_key(&counter) {
            return ("POST", ENTITIES.to_owned(), create(&counter), counter, Some(serial));
        }
        match (serial % 5, oldest) {
            (0, Some(id)) => ("DELETE", format!("{ENTITIES}/{id}"), String::new(), id.clone(), None),
            (1 | 2, _) => {
                let id = self.id(&serial.to_string());
                ("POST", ENTITIES.to_owned(), create(&id), id, Some(serial))
            }
            _ => {
                let path = format!("{ENTITIES}/{counter}/attrs");
                ("PATCH", path, format!(r#"{{"n":{serial}}}"#), counter, Some(serial))
            }
        }
    }

    /// What is lost, given what was found; what was under way is settled by what was found.
    fn check(&mut self, found: &BTreeMap<String, u64>) -> Vec<String> {
        if let Some((id, value)) = self.under_way.take()
            && found.get(&id).copied() == value
        {
            self.note(id, value);
        }
        let present = self.present.iter().filter(|(id, value)| found.get(*id) != Some(value));
        let present =
            present.map(|(id, value)| format!("{id}: {value} acknowledged, {:?} found", found.get(id)));
        let absent = self.absent.iter().filter(|id| found.contains_key(*id));
        present.chain(absent.map(|id| format!("{id}: deleted, and found"))).collect()
    }
}

/// Starts the server, has all writers write, kills it in the middle; answers how much was acknowledged.
fn load_and_kill(binary: &Path, folder: &Path, ledgers: &mut [Ledger], millis: u64) -> u64 {
    let server = Server::start(binary, folder);
    let (address, acknowledged) = (server.address, AtomicU64::new(0));
    thread::scope(|scope| {
        for ledger in ledgers.iter_mut() {
            let acknowledged = &acknowledged;
            scope.spawn(move || ledger.write(address, acknowledged));
        }
        thread::sleep(Duration::from_millis(millis));
        server.kill();
    });
    acknowledged.into_inner()
}

/// Starts the server again and looks for everything.
fn check(binary: &Path, folder: &Path, ledgers: &mut [Ledger]) -> Vec<String> {
    let server = Server::start(binary, folder);
    let found = everything(server.address).unwrap();
    server.kill();
    ledgers.iter_mut().flat_map(|ledger| ledger.check(&found)).collect()
}

fn everything(address: SocketAddr) -> io::Result<BTreeMap<String, u64>> {
    let mut client = Client::open(address)?;
    let mut found = BTreeMap::new();
    loop {
        let path =
            format!("{ENTITIES}?type=Drill&format=simplified&attrs=n&limit={PAGE}&offset={}", found.len());
        let (status, body) = client.ask("GET", &path, "")?;
        assert_eq!(status, 200, "{body}");
        let page = read_page(&body);
        let count = page.len();
        found.extend(page);
        if count < PAGE {
            return Ok(found);
        }
    }
}

fn read_page(body: &str) -> Vec<(String, u64)> {
    let doc = Doc::parse(body.as_bytes()).unwrap();
    let entity = |value: trifid_context_model::json::Value<'_>| {
        let id = value.get("id").and_then(|id| id.as_str()).unwrap().into_owned();
        let n = value.get("n").map(|n| n.raw().parse().unwrap()).unwrap_or_default();
        (id, n)
    };
    doc.root().items().map(entity).collect()
}
