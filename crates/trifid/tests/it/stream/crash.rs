//! `kill -9` under load, again and again: what was acknowledged on commit is there, once, in its place.
//!
//! Four publishers go on through every death of the server: two that number their batches, over QUIC and over TLS, one
//! that does not, and a client of Kafka. Each notes what was acknowledged and where. A checker reads the whole stream
//! back: offsets are dense, each acknowledged record lies at the place that was told, and only the publisher without
//! numbers, who sends again what may have arrived, has anything twice.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use trifid_stream_client::{
    Client, ClientOptions, Event, ProducerOptions, Record, Start, SubscribeOptions, Trust,
};

use super::{Door, tool};
use crate::harness::Trifid;

const STREAM: &str = "crash.test";
const SHARDS: u32 = 3;
/// Records of one publisher that may wait for their acknowledgement.
const WINDOW: usize = 128;
/// Batches are small, so that many are under way when the end comes.
const BATCH_BYTES: usize = 512;
/// How long a server lives at most once it listens.
const LIFE_MS: u64 = 300;
/// Rounds between two checks of everything.
const CHECK_EVERY: u32 = 10;

#[test]
fn what_was_acknowledged_survives_four_kills() {
    println!("{}", killed(4));
}

/// `cargo nextest run -p trifid --run-ignored all --no-capture fifty_kills`
#[test]
#[ignore = "the short one runs always; run by name"]
fn what_was_acknowledged_survives_fifty_kills() {
    println!("{}", killed(50));
}

/// What a publisher knows: for each number that was acknowledged, where it lies.
#[derive(Clone, Default)]
struct Ledger {
    acknowledged: Vec<(u64, u32, u64)>,
    failed: Vec<String>,
}

type Shared = Arc<Mutex<Ledger>>;

fn with<T>(ledger: &Shared, work: impl FnOnce(&mut Ledger) -> T) -> T {
    work(&mut ledger.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Publishers by name, and what each knows.
struct Load {
    ledgers: Vec<(&'static str, Shared)>,
    stop: Arc<AtomicBool>,
    native: std::thread::JoinHandle<()>,
    kafka: Child,
    listener: std::thread::JoinHandle<()>,
}

/// Kills it so many times, and tells what came of it.
fn killed(rounds: u32) -> String {
    let (native, kafka) = (free_port(0), free_port(1));
    let settings = [
        format!("stream.listen=127.0.0.1:{native}"),
        format!("stream.kafka_listen=127.0.0.1:{kafka}"),
        "stream.segment=1MiB".to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut door = Door::on(Trifid::new(), &settings);
    door.hand(&["create", STREAM, "--shards", &SHARDS.to_string()]);
    let load = Load::begin(&door);
    let mut seed = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |now| now.subsec_nanos()).into();
    for round in 1..=rounds {
        std::thread::sleep(Duration::from_millis(chance(&mut seed) % LIFE_MS));
        let (status, logged) = door.serving.stop(Signal::KILL);
        assert_eq!(status.code(), None, "it ended by itself: {logged:#?}");
        door = Door::on(door.trifid, &settings);
        if round % CHECK_EVERY == 0 {
            // First what is known, then what is there: publishers go on meanwhile.
            let known = load.known();
            Found::read(&door).judge(&known);
        }
    }
    let known = load.end();
    let found = Found::read(&door);
    let told = found.judge(&known);
    door.serving.stop(Signal::TERM);
    format!("{rounds} rounds of kill -9: {told}")
}

fn chance(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// A port that stays the server's over its restarts: below those that the kernel gives away.
fn free_port(which: u32) -> u16 {
    let first = 12_000 + (std::process::id() * 2 + which) % 18_000;
    let is_free = |port: &u16| {
        TcpListener::bind(("127.0.0.1", *port)).is_ok() && UdpSocket::bind(("127.0.0.1", *port)).is_ok()
    };
    let ports = (0..500).map(|step| u16::try_from(first + 2 * step).unwrap());
    ports.into_iter().find(is_free).unwrap()
}

impl Load {
    fn begin(door: &Door) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let names = ["numbered-quic", "numbered-tls", "plain", "kafka"];
        let ledgers: Vec<(&'static str, Shared)> =
            names.into_iter().map(|name| (name, Shared::default())).collect();
        let mut kafka = Command::new(tool("python/bin/python"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stream/client_crash.py"))
            .args([&door.kafka.to_string(), STREAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, ledger) = (BufReader::new(kafka.stdout.take().unwrap()), Arc::clone(&ledgers[3].1));
        let listener = std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                with(&ledger, |ledger| ledger.note(&line));
            }
        });
        let publishers = ledgers[..3].to_vec();
        let (port, folder) = (door.native.port(), door.trifid.folder.path().join("trifid-data"));
        let stopping = Arc::clone(&stop);
        let native = std::thread::spawn(move || {
            runtime().block_on(async move {
                let mut tasks = Vec::new();
                for (name, ledger) in publishers {
                    let client = Client::lazy(options(name, port, &folder)).unwrap();
                    tasks.push(tokio::spawn(publish(client, name, ledger, Arc::clone(&stopping))));
                }
                for task in tasks {
                    task.await.unwrap();
                }
            });
        });
        Self { ledgers, stop, native, kafka, listener }
    }

    fn known(&self) -> Vec<(&'static str, Ledger)> {
        self.ledgers.iter().map(|(name, ledger)| (*name, with(ledger, |ledger| ledger.clone()))).collect()
    }

    /// Lets everybody finish what is under way.
    fn end(mut self) -> Vec<(&'static str, Ledger)> {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.kafka.stdin.take());
        self.native.join().unwrap();
        assert!(self.kafka.wait().unwrap().success());
        self.listener.join().unwrap();
        self.ledgers.iter().map(|(name, ledger)| (*name, with(ledger, |ledger| ledger.clone()))).collect()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn options(name: &str, port: u16, folder: &std::path::Path) -> ClientOptions {
    let transport = if name.ends_with("tls") { "tls" } else { "quic" };
    let mut options = ClientOptions::new(&format!("{transport}://localhost:{port}")).unwrap();
    options.reconnect_most = Duration::from_millis(100);
    options.trust(Trust::development(folder)).name(name)
}

/// Publishes until it is told to stop, at most a window ahead of the acknowledgements.
async fn publish(client: Client, name: &'static str, ledger: Shared, stop: Arc<AtomicBool>) {
    let idempotent = name != "plain";
    let options = ProducerOptions { idempotent, batch_bytes: BATCH_BYTES, ..ProducerOptions::default() };
    let producer = loop {
        match client.producer(STREAM, options.clone()).await {
            Ok(producer) => break producer,
            // It was killed meanwhile.
            Err(error) => assert!(error.code().is_none(), "{error}"),
        }
    };
    let (sender, mut receipts) = tokio::sync::mpsc::channel(WINDOW);
    let noting = tokio::spawn(async move {
        while let Some((number, receipt)) = receipts.recv().await {
            let receipt: trifid_stream_client::Receipt = receipt;
            match receipt.wait().await {
                Ok(place) => with(&ledger, |ledger| {
                    ledger.acknowledged.push((number, place.shard, place.offset.unwrap()));
                }),
                Err(error) => with(&ledger, |ledger| ledger.failed.push(format!("{number}: {error}"))),
            }
        }
    });
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let record = Record::new(format!("{name} {number}")).key((number % 16).to_string());
        sender.send((number, producer.send(record).await.unwrap())).await.unwrap();
        tokio::task::yield_now().await;
    }
    drop(sender);
    noting.await.unwrap();
}

impl Ledger {
    /// A line of the client of Kafka: number, shard, offset, or what went wrong.
    fn note(&mut self, line: &str) {
        let numbers: Vec<u64> = line.split(' ').map_while(|number| number.parse().ok()).collect();
        match numbers[..] {
            [number, shard, offset] => {
                self.acknowledged.push((number, u32::try_from(shard).unwrap(), offset));
            }
            _ => self.failed.push(line.to_owned()),
        }
    }
}

/// What lies in the stream: of each shard its values, by offset.
struct Found(Vec<Vec<String>>);

impl Found {
    fn read(door: &Door) -> Self {
        let options = options("checker", door.native.port(), &door.trifid.folder.path().join("trifid-data"));
        runtime().block_on(async {
            let client = Client::connect(options).await.unwrap();
            let ends = client.offsets(STREAM, None, Start::Latest).await.unwrap();
            let mut shards = vec![Vec::new(); ends.len()];
            let mut records =
                client.subscribe(STREAM, SubscribeOptions::from(Start::Earliest)).await.unwrap();
            while ends.iter().any(|end| (shards[end.shard as usize].len() as u64) < end.offset) {
                let Event::Batch(batch) = records.next().await.unwrap() else {
                    panic!("records are missing")
                };
                for record in batch.records().unwrap() {
                    let shard: &mut Vec<String> = &mut shards[record.shard as usize];
                    assert_eq!(
                        record.offset,
                        shard.len() as u64,
                        "offsets of shard {} are not dense",
                        record.shard
                    );
                    shard.push(String::from_utf8(record.value.unwrap().to_vec()).unwrap());
                }
            }
            client.close().await;
            Self(shards)
        })
    }

    /// Holds it against what the publishers know; tells the counts.
    fn judge(&self, known: &[(&'static str, Ledger)]) -> String {
        let mut times: HashMap<&str, u64> = HashMap::new();
        for value in self.0.iter().flatten() {
            *times.entry(value).or_default() += 1;
        }
        let mut told = format!("{} records, offsets dense", self.0.iter().map(Vec::len).sum::<usize>());
        for (name, ledger) in known {
            assert_eq!(ledger.failed, Vec::<String>::new(), "{name}");
            let lies = |(number, shard, offset): &&(u64, u32, u64)| {
                let value = self.0[*shard as usize].get(usize::try_from(*offset).unwrap());
                value.is_some_and(|value| *value == format!("{name} {number}"))
            };
            let lost: Vec<_> = ledger.acknowledged.iter().filter(|place| !lies(place)).collect();
            assert_eq!(lost, Vec::<&(u64, u32, u64)>::new(), "{name}: acknowledged, and not there");
            let of = |value: &&str| value.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
            let twice: u64 = times.iter().filter(|(value, _)| of(value)).map(|(_, times)| times - 1).sum();
            if *name != "plain" {
                assert_eq!(twice, 0, "{name}: records came twice");
                self.in_order(name);
            }
            let acknowledged = ledger.acknowledged.len();
            told +=
                &format!("; {name}: acknowledged {acknowledged}, lost {}, duplicated {twice}", lost.len());
        }
        told
    }

    /// In each shard, what a publisher sent first comes first.
    fn in_order(&self, name: &str) {
        for shard in &self.0 {
            let numbers =
                shard.iter().filter_map(|value| value.strip_prefix(name)?.trim().parse::<u64>().ok());
            let numbers: Vec<u64> = numbers.collect();
            assert!(numbers.is_sorted(), "{name}: records of one shard changed places");
        }
    }
}
