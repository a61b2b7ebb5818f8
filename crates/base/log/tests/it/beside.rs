//! Readers beside writers, retention, compaction and reused files, all at once on the real disk: a reader is given
//! the right payload, or is told that its place was dropped; nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use trifid_base_log::{
    DataDir, Log, LogId, LogOptions, Options, Page, Position, ReadError, RealDisk, ReplayFrom, Rewrite,
};

use crate::support::{options, record_batch};

const APPENDS: u64 = 3_000;
const WRITERS: u64 = 2;

/// The payload with this number; the number is its timestamp.
fn payload(number: u64) -> Bytes {
    record_batch(number as i64, 200 + (number * 37 % 3_000) as usize, number)
}

fn number(payload: &[u8]) -> u64 {
    u64::from_be_bytes(payload[35..43].try_into().unwrap())
}

fn write(log: &Log, writer: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for turn in 0..APPENDS {
        let ticket = log.append_batch(payload(turn * WRITERS + writer), 1 + (turn % 3) as u32).unwrap();
        if turn % 16 == 0 {
            runtime.block_on(ticket.durable()).unwrap();
        }
    }
}

fn keep_house(log: &Log, done: &AtomicBool) {
    let mut compacted = Position::ZERO;
    while !done.load(Ordering::Acquire) {
        log.apply_retention(0, None, Some(300_000)).unwrap();
        for segment in log.segments().unwrap() {
            if segment.sealed && segment.base >= compacted && segment.base.get() % 3 == 0 {
                let keep = |number: u64| if number.is_multiple_of(5) { Rewrite::Drop } else { Rewrite::Keep };
                let run = segment.base..segment.end;
                log.compact_as_one(run, &mut |entry| keep(number(&entry.payload))).unwrap();
                compacted = segment.end;
            }
        }
        std::thread::yield_now();
    }
}

fn check(page: &Page, from: Position) {
    let mut next = from;
    for (at, entry) in page.entries.iter().enumerate() {
        assert!(entry.position >= next || at == 0 && entry.end() > from, "in order");
        assert_eq!(entry.payload[..8], entry.position.get().to_be_bytes());
        assert_eq!(entry.payload[16..], payload(number(&entry.payload))[16..]);
        next = entry.end();
    }
    assert!(page.next >= next && page.next >= from);
}

/// Reads from some place on, and again from the front when that was dropped.
fn read(log: &Log, seed: u64, done: &AtomicBool) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut next = Position::ZERO;
    while !done.load(Ordering::Acquire) {
        match log.read_batches(next, rng.usize(..40_000)) {
            Ok(page) => {
                check(&page, next);
                next = page.next;
                if rng.u8(..20) == 0 {
                    next = Position::new(rng.u64(log.first().get()..=log.published().get()));
                }
            }
            Err(ReadError::Truncated { first, .. }) => {
                assert!(first > next);
                next = first;
            }
            Err(other) => panic!("{other}"),
        }
        let stamp = rng.i64(..(APPENDS * WRITERS) as i64);
        match log.position_for_time(stamp) {
            Ok(_) | Err(ReadError::Truncated { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn readers_are_given_what_was_written_or_told_that_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
    let few = Options { open_segments_max: 3, inflight_bytes_max: 64 << 20, ..options(0, 77) };
    let dir = DataDir::open(disk, few).unwrap();
    let settings =
        LogOptions { segment_bytes: Some(60_000), recycled_segments_max: 3, ..LogOptions::default() };
    let log = dir.recover_with(LogId(1), settings.clone(), ReplayFrom::Start, &mut ()).unwrap().0;
    let log = log.start(Arc::new(()));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let house = scope.spawn(|| keep_house(&log, &done));
        let readers: Vec<_> = (0..3)
            .map(|seed| {
                scope.spawn({
                    let (log, done) = (&log, &done);
                    move || read(log, seed, done)
                })
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let log = &log;
                    move || write(log, writer)
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        house.join().unwrap();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    drop(dir);
    let first = log.apply_retention(0, None, Some(300_000)).unwrap().first;
    assert!(
        matches!(log.read_batches(Position::ZERO, 1), Err(ReadError::Truncated { first: told, .. }) if told == first)
    );
    check(&log.read_batches(first, usize::MAX).unwrap(), first);
}
