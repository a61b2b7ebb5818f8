//! What the log costs a stream: opening, reading, appending, flushing several logs, writing over old files.
//!
//! `cargo run --release -p trifid-base-log --example stream_cost -- [folder]`. What is read lies in the page cache.

#![allow(clippy::unwrap_used)] // a measuring program: a failure ends it

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trifid_base_log::{
    DataDir, Durability, Log, LogId, LogOptions, Options, Position, RealDisk, ReplayFrom, Ticket,
};

const ROUND: Duration = Duration::from_millis(1500);
const STORED_BYTES: u64 = 768 << 20;
const PERIODIC: Durability = Durability::Periodic { interval: Duration::from_millis(200) };

fn main() {
    let dir = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(dir).unwrap();
    for bytes in [1 << 10, 4 << 10, 64 << 10] {
        stored(&dir.path().join("stored"), bytes);
    }
    for (logs, tasks) in [(1, 16), (4, 4), (16, 1), (16, 16)] {
        waves(&dir.path().join("waves"), logs, tasks);
    }
    for recycled in [0, 4] {
        rolls(&dir.path().join("rolls"), recycled);
    }
}

fn tell(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
}

fn open(dir: &Path, options: Options) -> DataDir {
    DataDir::open(Arc::new(RealDisk::open(dir).unwrap()), options).unwrap()
}

fn start(dir: &DataDir, id: u64, settings: LogOptions, from: ReplayFrom) -> Log {
    dir.recover_with(LogId(id), settings, from, &mut ()).unwrap().0.start(Arc::new(()))
}

/// A Kafka `RecordBatch` of so many bytes.
fn record_batch(stamp: i64, bytes: usize) -> Bytes {
    let mut batch: Vec<u8> = (0..bytes).map(|at| (at * 7) as u8).collect();
    batch[8..12].copy_from_slice(&((bytes - 12) as u32).to_be_bytes());
    batch[16] = 2;
    batch[35..43].copy_from_slice(&stamp.to_be_bytes());
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch.into()
}

fn wait(ticket: &Ticket) {
    while ticket.decided().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(ticket.decided(), Some(Ok(())));
}

fn gigabytes(bytes: u64, since: Instant) -> f64 {
    bytes as f64 / since.elapsed().as_secs_f64() / 1e9
}

/// Writes a log, opens it again, and reads it.
fn stored(dir: &Path, bytes: usize) {
    let settings = LogOptions { durability: PERIODIC, ..LogOptions::default() };
    let batch = record_batch(1, bytes);
    let started = Instant::now();
    {
        let dir = open(dir, Options::default());
        let log = start(&dir, 1, settings.clone(), ReplayFrom::Start);
        let mut last = None;
        while log.stats().bytes < STORED_BYTES {
            match log.append_batch(batch.clone(), 1) {
                Ok(ticket) => last = Some(ticket),
                Err(_) => std::thread::yield_now(),
            }
        }
        wait(&last.unwrap());
    }
    let written = gigabytes(STORED_BYTES, started);

    let owned = open(dir, Options::default());
    let started = Instant::now();
    let (recovered, recovery) =
        owned.recover_with(LogId(1), settings.clone(), ReplayFrom::Start, &mut ()).unwrap();
    let scanned = gigabytes(recovery.bytes, started);
    drop((recovered, owned));

    let owned = open(dir, Options::default());
    let started = Instant::now();
    let log = start(&owned, 1, settings, ReplayFrom::Newest);
    let newest = started.elapsed();
    let (read, at_random) = (sequential(&log), random(&log));
    tell(&format!(
        "batches of {bytes:6}: written {written:.2} GB/s, opened {scanned:.2} GB/s, opened at the newest segment in \
         {:.1} ms, read {read:.2} GB/s, a page anywhere {at_random:.1} us",
        newest.as_secs_f64() * 1e3
    ));
    drop((log, owned));
    std::fs::remove_dir_all(dir).unwrap();
}

fn sequential(log: &Log) -> f64 {
    let (started, mut next, mut bytes) = (Instant::now(), log.first(), 0);
    while next < log.published() {
        let page = log.read_batches(next, 1 << 20).unwrap();
        bytes += page.entries.iter().map(|entry| entry.payload.len() as u64).sum::<u64>();
        next = page.next;
    }
    gigabytes(bytes, started)
}

/// Microseconds to read one batch anywhere.
fn random(log: &Log) -> f64 {
    const READS: u32 = 20_000;
    let (started, end) = (Instant::now(), log.published().get());
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..READS {
        log.read_batches(Position::new(rng.u64(..end)), 1).unwrap();
    }
    started.elapsed().as_secs_f64() * 1e6 / f64::from(READS)
}

/// So many tasks a log append and wait, on so many logs.
fn waves(dir: &Path, logs: u64, tasks: usize) {
    let owned = open(dir, Options::default());
    let logs: Vec<Log> =
        (0..logs).map(|id| start(&owned, id, LogOptions::default(), ReplayFrom::Start)).collect();
    let batch = record_batch(1, 4 << 10);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let started = Instant::now();
    runtime.block_on(async {
        let mut set = tokio::task::JoinSet::new();
        for log in logs.iter().flat_map(|log| std::iter::repeat_n(log, tasks)) {
            let (log, batch) = (log.clone(), batch.clone());
            set.spawn(async move {
                while started.elapsed() < ROUND {
                    log.append_batch(batch.clone(), 1).unwrap().durable().await.unwrap();
                }
            });
        }
        set.join_all().await;
    });
    let seconds = started.elapsed().as_secs_f64();
    let stats = owned.stats();
    let frames: u64 = logs.iter().map(|log| log.stats().frames).sum();
    let flushes: u64 = logs.iter().map(|log| log.stats().flushes).sum();
    tell(&format!(
        "{:2} logs, {tasks:2} tasks each: {:.0} appends/s, {:.0} waves/s of {:.1} logs, {:.2} flushes a frame",
        logs.len(),
        frames as f64 / seconds,
        stats.waves as f64 / seconds,
        stats.logs_written as f64 / stats.waves as f64,
        flushes as f64 / frames as f64
    ));
    drop((logs, owned));
    std::fs::remove_dir_all(dir).unwrap();
}

/// One append after the other over many segments, with dropped files written over or not.
fn rolls(dir: &Path, recycled: usize) {
    let owned = open(dir, Options::default());
    let segment_bytes = Some(2 << 20);
    let settings = LogOptions { segment_bytes, recycled_segments_max: recycled, ..LogOptions::default() };
    let log = start(&owned, 1, settings, ReplayFrom::Start);
    let batch = record_batch(1, 4 << 10);
    let mut times = Vec::new();
    let started = Instant::now();
    while started.elapsed() < ROUND * 2 {
        let before = Instant::now();
        wait(&log.append_batch(batch.clone(), 1).unwrap());
        times.push(before.elapsed());
        if times.len() % 512 == 0 {
            log.apply_retention(0, None, Some(4 << 20)).unwrap();
        }
    }
    times.drain(..times.len() / 4);
    times.sort_unstable();
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    tell(&format!(
        "{recycled} files kept for reuse: an append takes {:.0} us at the median, {:.0} at 99 %, {:.0} at 99.9 %",
        at(0.5),
        at(0.99),
        at(0.999)
    ));
    drop((log, owned));
    std::fs::remove_dir_all(dir).unwrap();
}
