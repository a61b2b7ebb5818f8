//! The real thing: a process that appends to several logs on the real disk is killed with SIGKILL, and what it
//! had acknowledged is looked for.
//!
//! The child is this test binary itself, told by a variable to play the writer. It prints every acknowledged
//! position, so what the parent read from the pipe was acknowledged before the kill. One log is a journal, one a
//! stream that flushes on commit and is compacted and dropped at the front meanwhile, one a stream that flushes
//! periodically: the death of a process takes nothing from that either.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trifid_base_log::{
    DataDir, Durability, Entry, Log, LogId, LogOptions, Options, Position, RealDisk, ReplayFrom, Rewrite,
    Ticket,
};

use crate::support::{options, record_batch};

const DIR: &str = "TRIFID_TEST_LOG_DIR";
const TASKS: u64 = 6;
const LOGS: [LogId; 3] = [LogId(0), LogId(1), LogId(2)];
/// Payloads whose number divides by this survive the compaction.
const KEPT: u64 = 3;
/// The compacted log is dropped at the front by this size.
const BYTES_KEPT: u64 = 600_000;

fn settings(log: LogId) -> LogOptions {
    let interval = Duration::from_millis(50);
    match log.0 {
        0 => LogOptions::journal(),
        1 => LogOptions::default(),
        _ => LogOptions { durability: Durability::Periodic { interval }, ..LogOptions::default() },
    }
}

fn open(dir: &Path) -> (DataDir, Vec<Log>) {
    let disk = Arc::new(RealDisk::open(dir).unwrap());
    let options = Options { segment_bytes: 64 << 10, preallocate: true, ..options(0, fastrand::u64(..)) };
    let dir = DataDir::open(disk, options).unwrap();
    let log = |id| {
        let (recovered, _) = dir.recover_with(id, settings(id), ReplayFrom::Start, &mut ()).unwrap();
        recovered.start(Arc::new(()))
    };
    let logs = LOGS.map(log).to_vec();
    (dir, logs)
}

/// What lies at a position, so that the checker needs no list.
fn payload(task: u64, turn: u64) -> Bytes {
    let mut rng = fastrand::Rng::with_seed(task << 32 | turn);
    record_batch((task << 32 | turn) as i64, 16 + rng.usize(..2_000), turn)
}

fn append(log: &Log, payload: Bytes) -> Ticket {
    match log.id().0 {
        0 => log.append(&[&payload]).unwrap(),
        _ => log.append_batch(payload, 1).unwrap(),
    }
}

fn number(payload: &[u8]) -> u64 {
    u64::from_be_bytes(payload[35..43].try_into().unwrap())
}

/// Plays the writer when told to; on its own it has nothing to do.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let (_dir, logs) = open(Path::new(&dir));
    let turn = logs.iter().map(|log| log.next_position().get()).max().unwrap();
    let compacted = logs[1].clone();
    std::thread::spawn(move || keep_house(&compacted));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for (log, task) in logs.iter().flat_map(|log| (0..TASKS).map(move |task| (log, task))) {
            tasks.spawn(append_for_ever(log.clone(), task, turn));
        }
        tasks.join_all().await;
    });
}

async fn append_for_ever(log: Log, task: u64, from: u64) {
    for turn in from.. {
        let ticket = append(&log, payload(task, turn));
        let position = ticket.position;
        ticket.durable().await.unwrap();
        let line = format!("ack {} {position} {task} {turn}\n", log.id().0);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}

fn keep_house(log: &Log) {
    let wanted = |entry: &Entry| match number(&entry.payload) % KEPT {
        0 => Rewrite::Keep,
        _ => Rewrite::Drop,
    };
    loop {
        log.apply_retention(0, None, Some(BYTES_KEPT)).unwrap();
        for segment in log.segments().unwrap() {
            if segment.sealed {
                log.compact(segment.base, &mut |entry| wanted(entry)).unwrap();
            }
        }
        std::thread::yield_now();
    }
}

/// A log, a position in it, and what was acknowledged there.
type Acknowledged = (usize, u64, u64, u64);

/// Lets a child write until it has acknowledged so many, kills it, and answers all that it acknowledged.
fn round(dir: &Path, acknowledgements: usize) -> Vec<Acknowledged> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // A line that the kill cut short is no acknowledgement that anybody read.
        let Some(numbers) = line.strip_prefix("ack ") else { continue };
        let numbers: Vec<u64> = numbers.split(' ').map_while(|number| number.parse().ok()).collect();
        if let [log, position, task, turn] = numbers[..] {
            acknowledged.push((log as usize, position, task, turn));
        }
        if acknowledged.len() == acknowledgements {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= acknowledgements, "the child ended by itself");
    acknowledged
}

/// All that a log has, by position.
fn content(log: &Log) -> std::collections::BTreeMap<u64, Bytes> {
    let (mut next, mut content) = (log.first(), std::collections::BTreeMap::new());
    while next < log.published() {
        let page = log.read_batches(next, 1 << 20).unwrap();
        content.extend(page.entries.into_iter().map(|entry| (entry.position.get(), entry.payload)));
        next = page.next;
    }
    content
}

fn check(dir: &Path, acknowledged: &[Acknowledged]) {
    let (_dir, logs) = open(dir);
    let contents: Vec<_> = logs.iter().map(content).collect();
    for (log, content) in logs.iter().zip(&contents) {
        for (position, found) in content {
            let (task, turn) = (number(found) >> 32, number(found) & u64::from(u32::MAX));
            assert_eq!(found[16..], payload(task, turn)[16..], "log {} at {position}", log.id());
        }
        if log.id().0 != 1 {
            let positions = content.keys().copied();
            assert!(positions.eq(0..log.published().get()), "positions are dense");
        }
    }
    for (log, position, task, turn) in acknowledged {
        let number_there = contents[*log].get(position).map(|found| number(found));
        let wanted = task << 32 | turn;
        let may_be_gone = *log == 1 && (wanted % KEPT != 0 || Position::new(*position) < logs[1].first());
        match number_there {
            Some(found) => assert_eq!(found, wanted, "log {log} at {position}"),
            None => assert!(may_be_gone, "an acknowledged write is lost: log {log} at {position}"),
        }
    }
    assert!(logs[1].bytes() < 2 * BYTES_KEPT);
}

/// `TRIFID_KILLS` says how often.
#[test]
fn no_acknowledged_write_is_lost_by_a_kill() {
    let rounds = std::env::var("TRIFID_KILLS").map_or(8, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for number in 0..rounds {
        acknowledged.extend(round(dir.path(), 80 + 61 * (number % 17)));
        check(dir.path(), &acknowledged);
    }
    let segments = std::fs::read_dir(dir.path().join("log/0000000000000000")).unwrap().count();
    assert!(segments > 1, "no roll was under way");
}

#[test]
fn a_second_process_is_told_who_holds_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let held = open(dir.path());
    let disk = Arc::new(RealDisk::open(dir.path()).unwrap());
    let error = DataDir::open(disk, Options::default()).err().unwrap();
    assert_eq!(error.to_string(), format!("the data directory is in use by process {}", std::process::id()));
    drop(held);
}
