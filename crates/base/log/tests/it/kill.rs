//! The real thing: a process that appends to a log on the real disk is killed with SIGKILL, and what it had
//! acknowledged is looked for.
//!
//! The child is this test binary itself, told by a variable to play the writer. It prints every acknowledged
//! position, so what the parent read from the pipe was acknowledged before the kill.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use trifid_base_log::{DataDir, Log, Options, Position, RealDisk};

use crate::support::{Content, LOG, options};

const DIR: &str = "TRIFID_TEST_LOG_DIR";
const ROUNDS: usize = 8;
const TASKS: u64 = 16;

fn open(dir: &Path, content: &mut Content) -> (DataDir, Log) {
    let disk = Arc::new(RealDisk::open(dir).unwrap());
    let dir = DataDir::open(disk, Options { segment_bytes: 64 << 10, ..options(0, 1) }).unwrap();
    let (recovered, _) = dir.recover(LOG, Position::ZERO, content).unwrap();
    let log = recovered.start(Arc::new(()));
    (dir, log)
}

/// What lies at a position, so that the checker needs no list.
fn payload(task: u64, turn: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(task << 32 | turn);
    let len = rng.usize(..2_000);
    [task, turn].into_iter().flat_map(u64::to_le_bytes).chain((0..len).map(|_| rng.u8(..))).collect()
}

fn identity(payload: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().unwrap());
    (word(0), word(8))
}

/// Plays the writer when told to; on its own it has nothing to do.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let mut content = Content::default();
    let (_dir, log) = open(Path::new(&dir), &mut content);
    let turn = content.frames.len() as u64;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            tasks.spawn(append_for_ever(log.clone(), task, turn));
        }
        tasks.join_all().await;
    });
}

async fn append_for_ever(log: Log, task: u64, from: u64) {
    for turn in from.. {
        let ticket = log.append(&[&payload(task, turn)]).unwrap();
        let position = ticket.position;
        ticket.durable().await.unwrap();
        let line = format!("ack {position} {task} {turn}\n");
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}

/// Lets a child write until it has acknowledged so many, kills it, and answers all that it acknowledged.
fn round(dir: &Path, acknowledgements: usize) -> Vec<(u64, u64, u64)> {
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
        if let [position, task, turn] = numbers[..] {
            acknowledged.push((position, task, turn));
        }
        if acknowledged.len() == acknowledgements {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= acknowledgements, "the child ended by itself");
    acknowledged
}

#[test]
fn no_acknowledged_write_is_lost_by_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for number in 0..ROUNDS {
        acknowledged.extend(round(dir.path(), 40 + 61 * number));
        let mut content = Content::default();
        drop(open(dir.path(), &mut content));
        for (position, records, found) in &content.frames {
            let (task, turn) = identity(found);
            assert_eq!(*found, payload(task, turn), "position {position} holds something else");
            assert_eq!(*records, 1);
        }
        for (position, task, turn) in &acknowledged {
            let (at, _, found) = &content.frames[*position as usize];
            assert_eq!((at, identity(found)), (position, (*task, *turn)), "an acknowledged write is lost");
        }
    }
    let segments = std::fs::read_dir(dir.path().join("log/00000000000000ab")).unwrap().count();
    assert!(segments > 1, "no roll was under way");
}

#[test]
fn a_second_process_is_told_who_holds_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let held = open(dir.path(), &mut Content::default());
    let disk = Arc::new(RealDisk::open(dir.path()).unwrap());
    let error = DataDir::open(disk, Options::default()).err().unwrap();
    assert_eq!(error.to_string(), format!("the data directory is in use by process {}", std::process::id()));
    drop(held);
}
