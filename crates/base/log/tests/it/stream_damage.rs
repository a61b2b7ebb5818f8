//! Damage to anything that a stream's log leaves on disk: record batches and opaque payloads, compacted and
//! reused segments, index files, files kept for reuse. Every cut and every flipped byte gives a valid prefix or a
//! refusal, and every read the right payload or an error.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use trifid_base_log::{
    DataDir, LogOptions, OpenError, Position, ReadError, ReplayFrom, Rewrite,
    limits::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES},
};
use trifid_base_sim::SimDisk;

use crate::support::{Content, LOG, Streamed, open_stream, options, record_batch};

struct Sample {
    disk: SimDisk,
    files: Vec<PathBuf>,
    /// What lies at which position, as it is read.
    entries: Vec<(u64, Vec<u8>)>,
    next: u64,
    /// The last of these is vouched for by nothing unless the log is closed off.
    closed: bool,
}

/// A log with a compacted, some reused, and some plain segments, and payloads of both kinds.
fn sample(closed: bool) -> Sample {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, LogOptions::default()).unwrap();
    write(&mut opened, 12);
    opened.log.truncate_front(Position::new(12)).unwrap();
    write(&mut opened, 20);
    let base = opened.log.first();
    opened
        .log
        .compact(base, &mut |entry| match entry.position.get() % 4 {
            0 => Rewrite::Drop,
            _ => Rewrite::Keep,
        })
        .unwrap();
    opened.log.truncate_front(Position::new(base.get() + 8)).unwrap();
    let base = opened.log.first();
    opened
        .log
        .compact(base, &mut |entry| if entry.records == 1 { Rewrite::Keep } else { Rewrite::Drop })
        .unwrap();
    if closed {
        opened.stepper.idle();
    }
    let page = opened.log.read_batches(opened.log.first(), usize::MAX).unwrap();
    let entries = page.entries.iter().map(|entry| (entry.position.get(), normal(&entry.payload))).collect();
    let files = disk.files();
    for extension in ["seg", "idx", "old"] {
        assert!(files.iter().any(|path| path.extension().unwrap() == extension), "{files:?}");
    }
    Sample { disk: disk.copy(), files, entries, next: page.next.get(), closed }
}

fn write(opened: &mut Streamed, count: u64) {
    for n in 0..count {
        let next = opened.log.next_position().get();
        let batch = record_batch(1000 + next as i64, 700 + 13 * n as usize, next);
        let ticket = match n % 3 {
            0 => opened.log.append(&[&batch]).unwrap(),
            _ => opened.log.append_batch(batch, 2).unwrap(),
        };
        opened.stepper.step();
        assert_eq!(ticket.decided(), Some(Ok(())));
    }
}

/// Opaque payloads are batches here too: a reader is given them as they are, but the comparison need not know.
fn normal(payload: &[u8]) -> Vec<u8> {
    payload[16..].to_vec()
}

static SAMPLES: LazyLock<[Sample; 2]> = LazyLock::new(|| [sample(false), sample(true)]);

impl Sample {
    /// Whether these are the first of the log's payloads.
    fn is_prefix(&self, found: &[(u64, Vec<u8>)], next: u64) -> bool {
        let below = self.entries.iter().filter(|(position, _)| *position < next);
        found.iter().eq(below)
    }

    /// What of the log is acknowledged beyond doubt.
    fn least(&self) -> u64 {
        if self.closed { self.next } else { self.next - 2 }
    }

    fn damaged(&self, file: prop::sample::Index, damage: impl FnOnce(&mut Vec<u8>)) -> (SimDisk, PathBuf) {
        let disk = self.disk.copy();
        let path = self.files[file.index(self.files.len())].clone();
        let mut content = disk.content(&path).unwrap();
        damage(&mut content);
        disk.plant(&path, content);
        (disk, path)
    }
}

/// The log opened whole: a refusal, or a prefix that holds what must be there.
fn check_whole(sample: &Sample, disk: &SimDisk, least: u64) -> Result<(), TestCaseError> {
    let opened = match open_stream(disk, LogOptions::default()) {
        Ok(opened) => opened,
        Err(OpenError::Damaged { .. } | OpenError::Unsupported { .. }) => return Ok(()),
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    };
    let next = opened.recovery.next.get();
    prop_assert!(next >= least, "ends at {next}");
    let replayed: Vec<_> =
        opened.content.frames.iter().map(|(position, _, payload)| (*position, normal(payload))).collect();
    prop_assert!(sample.is_prefix(&replayed, next));
    let page = opened.log.read_batches(opened.log.first(), usize::MAX).unwrap();
    let read: Vec<_> =
        page.entries.iter().map(|entry| (entry.position.get(), normal(&entry.payload))).collect();
    prop_assert_eq!(read, replayed);
    Ok(())
}

/// The log opened at its end, so that older segments are first seen by their readers.
fn check_reads(sample: &Sample, disk: &SimDisk) -> Result<(), TestCaseError> {
    let Ok((dir, _stepper)) = DataDir::open_stepped(Arc::new(disk.clone()), options(6_000, 5)) else {
        return Err(TestCaseError::fail("the directory does not open"));
    };
    let mut content = Content::default();
    let Ok((recovered, _)) = dir.recover_with(LOG, LogOptions::default(), ReplayFrom::Newest, &mut content)
    else {
        return Ok(());
    };
    let log = recovered.start(Arc::new(()));
    for (position, payload) in &sample.entries {
        match log.read_batches(Position::new(*position), 1) {
            Ok(page) if page.entries.is_empty() => prop_assert!(page.next == log.published()),
            Ok(page) => {
                let entry = &page.entries[0];
                prop_assert_eq!((entry.position.get(), normal(&entry.payload)), (*position, payload.clone()));
            }
            Err(ReadError::Damaged { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        let _ = log.position_for_time(1000 + *position as i64);
    }
    Ok(())
}

#[test]
fn the_undamaged_logs_are_whole() {
    for sample in &*SAMPLES {
        check_whole(sample, &sample.disk.copy(), sample.next).unwrap();
        check_reads(sample, &sample.disk.copy()).unwrap();
    }
}

#[test]
fn every_byte_of_the_headers_flipped() {
    let sample = &SAMPLES[1];
    for path in sample.files.iter().filter(|path| path.extension().unwrap() == "seg") {
        let frame = SEGMENT_HEADER_BYTES as usize;
        for at in (0..64).chain(frame..frame + FRAME_HEADER_BYTES + 61) {
            let disk = sample.disk.copy();
            let mut content = disk.content(path).unwrap();
            content[at] ^= 0x10;
            disk.plant(path, content);
            check_whole(sample, &disk, sample.least()).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_flipped_byte_costs_nothing_acknowledged(
        closed: bool, file: prop::sample::Index, at: prop::sample::Index, flip in 1..=255u8,
    ) {
        let sample = &SAMPLES[usize::from(closed)];
        let flip = |content: &mut Vec<u8>| {
            let at = at.index(content.len());
            content[at] ^= flip;
        };
        let (disk, _) = sample.damaged(file, flip);
        check_reads(sample, &disk.copy())?;
        check_whole(sample, &disk, sample.least())?;
    }

    #[test]
    fn a_cut_file_gives_a_prefix_or_a_refusal(
        closed: bool, file: prop::sample::Index, at: prop::sample::Index,
    ) {
        let sample = &SAMPLES[usize::from(closed)];
        let (disk, path) = sample.damaged(file, |content| content.truncate(at.index(content.len())));
        check_reads(sample, &disk.copy())?;
        // The newest segment that merely ends early says nothing about what it lost.
        let newest = sample.files.iter().rfind(|path| path.extension().unwrap() == "seg") == Some(&path);
        check_whole(sample, &disk, if newest { 0 } else { sample.least() })?;
    }

    #[test]
    fn a_run_of_other_bytes_gives_a_prefix_or_a_refusal(
        file: prop::sample::Index, other: prop::sample::Index, at: prop::sample::Index, len in 1..3_000usize,
    ) {
        // Bytes of another place, as a misdirected write would leave them.
        let sample = &SAMPLES[1];
        let (disk, _) = sample.damaged(file, |content| {
            let from = sample.disk.copy().content(&sample.files[other.index(sample.files.len())]).unwrap();
            let at = at.index(content.len().min(from.len()));
            let len = len.min(content.len() - at).min(from.len() - at);
            content[at..at + len].copy_from_slice(&from[at..at + len]);
        });
        check_reads(sample, &disk.copy())?;
        check_whole(sample, &disk, 0)?;
    }
}
