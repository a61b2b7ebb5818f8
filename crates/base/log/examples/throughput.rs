//! How the log compares with its floor: the same bytes written one after the other, with one `fdatasync` per
//! wave.
//!
//! `cargo run --release -p trifid-base-log --example throughput -- [folder]`. Machines differ, so only the
//! ratio means anything; the two are run in turn, three times, and the median is shown.

#![allow(clippy::unwrap_used)] // a measuring program: a failure ends it

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trifid_base_log::{DataDir, Log, LogId, Options, Position, RealDisk};

const PAYLOAD: [u8; 1024] = [0x5a; 1024];
const ROUND: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 3;

fn main() {
    let dir = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(dir).unwrap();
    append_cost(dir.path());
    let mut out = std::io::stdout();
    writeln!(out, "                        log |                  floor | log/floor").unwrap();
    writeln!(out, "waiters  appends/s  flushes/s us CPU  appends/s  flushes/s us CPU  appends").unwrap();
    for waiters in [1, 16, 64, 256, 1024] {
        let (mut logs, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            floors.push(floor(dir.path(), waiters));
            logs.push(log(dir.path(), waiters));
        }
        let (log, floor) = (median(&mut logs), median(&mut floors));
        writeln!(
            out,
            "{waiters:7} {:10.0} {:10.0} {:6.2} {:10.0} {:10.0} {:6.2} {:8.2}",
            log.appends,
            log.flushes,
            log.cpu_micros,
            floor.appends,
            floor.flushes,
            floor.cpu_micros,
            log.appends / floor.appends
        )
        .unwrap();
    }
}

#[derive(Clone, Copy)]
struct Rate {
    appends: f64,
    flushes: f64,
    /// Processor time of all threads per append.
    cpu_micros: f64,
}

/// Processor time of this process so far, in the kernel's ticks of 10 ms.
fn cpu_micros() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() * 10_000.0
}

fn median(rates: &mut [Rate]) -> Rate {
    rates.sort_by(|a, b| a.appends.total_cmp(&b.appends));
    rates[rates.len() / 2]
}

fn floor(dir: &Path, waiters: usize) -> Rate {
    let file = File::create(dir.join("floor")).unwrap();
    let wave = PAYLOAD.repeat(waiters);
    let (started, cpu, mut waves) = (Instant::now(), cpu_micros(), 0u32);
    while started.elapsed() < ROUND {
        file.write_all_at(&wave, u64::from(waves) * wave.len() as u64).unwrap();
        file.sync_data().unwrap();
        waves += 1;
    }
    let flushes = f64::from(waves) / started.elapsed().as_secs_f64();
    let cpu_micros = (cpu_micros() - cpu) / (f64::from(waves) * waiters as f64);
    Rate { appends: flushes * waiters as f64, flushes, cpu_micros }
}

fn open(dir: &Path) -> (DataDir, Log) {
    let _ = std::fs::remove_dir_all(dir);
    let dir = DataDir::open(Arc::new(RealDisk::open(dir).unwrap()), Options::default()).unwrap();
    let log = dir.recover(LogId(1), Position::ZERO, &mut ()).unwrap().0.start(Arc::new(()));
    (dir, log)
}

fn log(dir: &Path, waiters: usize) -> Rate {
    let (_dir, log) = open(&dir.join("log"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (started, cpu) = (Instant::now(), cpu_micros());
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..waiters {
            let log = log.clone();
            tasks.spawn(async move {
                while started.elapsed() < ROUND {
                    log.append(&[&PAYLOAD]).unwrap().durable().await.unwrap();
                }
            });
        }
        tasks.join_all().await;
    });
    let (stats, seconds) = (log.stats(), started.elapsed().as_secs_f64());
    let cpu_micros = (cpu_micros() - cpu) / stats.frames as f64;
    Rate { appends: stats.frames as f64 / seconds, flushes: stats.batches as f64 / seconds, cpu_micros }
}

/// The caller's share alone: bursts that stay in the queue while a flush is under way.
fn append_cost(dir: &Path) {
    const BURST: u32 = 1000;
    let (_dir, log) = open(&dir.join("cost"));
    let (mut best, mut tickets) = (Duration::MAX, Vec::with_capacity(BURST as usize));
    for _ in 0..200 {
        let started = Instant::now();
        for _ in 0..BURST {
            tickets.push(log.append(&[&PAYLOAD]).unwrap());
        }
        best = best.min(started.elapsed());
        while tickets.last().is_some_and(|ticket| ticket.decided().is_none()) {
            std::thread::yield_now();
        }
        tickets.clear();
    }
    let nanos = best.as_nanos() as f64 / f64::from(BURST);
    let mut out = std::io::stdout();
    writeln!(out, "append of {} bytes: {nanos:.0} ns", PAYLOAD.len()).unwrap();
}
