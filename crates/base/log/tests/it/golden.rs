//! One sample of every version of the format, opened for as long as that version is supported.
//!
//! The sample is written again with `TRIFID_BLESS=1`; a change of its bytes is a change of the format.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trifid_base_log::{CommitError, LogOptions, Position, Rewrite};
use trifid_base_sim::SimDisk;

use crate::support::{open_from, options, record_batch, stream};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn payloads() -> Vec<Vec<u8>> {
    (0..6u8).map(|n| vec![b'a' + n; 300 * usize::from(n)]).collect()
}

/// The log that the sample is: six payloads, two segments, closed off in between and at the end, and
/// positions that a full disk refused.
fn write() -> SimDisk {
    let disk = SimDisk::new();
    let mut opened = open_from(Arc::new(disk.clone()), options(6_000, 0x5eed), 0).unwrap();
    for (n, payload) in payloads().iter().enumerate() {
        let ticket = opened.log.append_records(&[payload], 1 + n as u32 % 2).unwrap();
        opened.stepper.step();
        assert_eq!(ticket.decided(), Some(Ok(())));
        if n % 3 == 2 {
            opened.stepper.idle();
            disk.set_room(Some(0));
            let refused = opened.log.append_records(&[b"refused"], 3).unwrap();
            opened.stepper.step();
            assert_eq!(refused.decided(), Some(Err(CommitError::NoSpace)));
            disk.set_room(None);
        }
    }
    disk
}

/// Compares the files of a disk with those of a sample.
fn check_written(name: &str, disk: &SimDisk) {
    let sample = sample(name);
    if std::env::var_os("TRIFID_BLESS").is_some() {
        fs::create_dir_all(&sample).unwrap();
        for path in disk.files() {
            fs::write(sample.join(path.file_name().unwrap()), disk.content(&path).unwrap()).unwrap();
        }
    }
    let files = disk.files();
    assert_eq!(files.len(), fs::read_dir(&sample).unwrap().count());
    for path in files {
        let golden = fs::read(sample.join(path.file_name().unwrap())).unwrap();
        assert!(disk.content(&path).unwrap() == golden, "{} differs", path.display());
    }
}

/// A disk that holds a sample.
fn planted(name: &str) -> SimDisk {
    let disk = SimDisk::new();
    for entry in fs::read_dir(sample(name)).unwrap() {
        let path = entry.unwrap().path();
        let there = Path::new("log/00000000000000ab").join(path.file_name().unwrap());
        disk.plant(&there, fs::read(&path).unwrap());
    }
    disk
}

#[test]
fn version_1_is_written_as_ever() {
    check_written("v1", &write());
}

#[test]
fn version_1_is_read() {
    let disk = planted("v1");
    let opened = open_from(Arc::new(disk), options(6_000, 1), 0).unwrap();
    assert_eq!(opened.content.payloads(), payloads());
    let positions: Vec<_> = opened.content.frames.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(positions, [(0, 1), (1, 2), (3, 1), (7, 2), (9, 1), (10, 2)]);
    assert_eq!((opened.recovery.next, opened.recovery.repair), (Position::new(12), None));
}

/// The log of a stream: record batches and an opaque payload, a compacted segment, a segment that was another
/// before, a file kept for reuse, and the indexes of the sealed ones.
fn write_stream() -> SimDisk {
    let disk = SimDisk::new();
    let settings = LogOptions { segment_bytes: Some(5_500), ..LogOptions::default() };
    let mut opened = stream(&disk, options(6_000, 0x5eed), settings, Arc::new(())).unwrap();
    for n in 0..20u64 {
        let batch = record_batch(1_000 * n as i64, 400 + 10 * n as usize, n);
        let ticket = match n {
            16 => opened.log.append(&[b"opaque"]).unwrap(),
            _ => opened.log.append_batch(batch, 1 + n as u32 % 3).unwrap(),
        };
        opened.stepper.step();
        assert_eq!(ticket.decided(), Some(Ok(())));
        if n == 8 || n == 17 {
            opened.log.truncate_front(Position::new(ticket.position.get() - 5)).unwrap();
        }
    }
    let base = opened.log.first();
    let mut replaced = false;
    let compacted = opened.log.compact(base, &mut |entry| match entry.position == base {
        true => Rewrite::Drop,
        false if std::mem::replace(&mut replaced, true) => Rewrite::Keep,
        false => Rewrite::Replace(record_batch(99, 8, 99)),
    });
    assert_eq!(compacted.unwrap().dropped, 1);
    opened.stepper.idle();
    disk
}

#[test]
fn a_stream_is_written_as_ever() {
    let disk = write_stream();
    let extensions: BTreeSet<_> =
        disk.files().iter().map(|path| path.extension().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(extensions.into_iter().collect::<Vec<_>>(), ["idx", "old", "seg"]);
    check_written("stream", &disk);
}

#[test]
fn a_stream_is_read() {
    let disk = planted("stream");
    let settings = LogOptions { segment_bytes: Some(5_500), ..LogOptions::default() };
    let opened = stream(&disk, options(6_000, 1), settings, Arc::new(())).unwrap();
    assert_eq!((opened.recovery.next, &opened.recovery.repair), (Position::new(38), &None));
    let told: Vec<_> =
        opened.log.segments().unwrap().iter().map(|told| (told.base.get(), told.stamp)).collect();
    let page = opened.log.read_batches(opened.log.first(), usize::MAX).unwrap();
    let read: Vec<_> = page.entries.iter().map(|entry| (entry.position.get(), entry.records)).collect();
    assert_eq!(told, [(24, Some(14_000)), (30, Some(17_000)), (35, Some(19_000))]);
    assert_eq!(read, [(25, 2), (27, 3), (30, 1), (31, 1), (32, 3), (35, 1), (36, 2)]);
    for entry in &page.entries[1..] {
        if !entry.is_record_batch {
            assert_eq!(entry.payload, "opaque");
            continue;
        }
        let serial = entry.payload[61..69].try_into().map(u64::from_be_bytes).unwrap();
        assert_eq!(
            entry.payload[16..],
            record_batch(1_000 * serial as i64, 400 + 10 * serial as usize, serial)[16..]
        );
    }
    assert_eq!(page.entries[0].payload[16..], record_batch(99, 8, 99)[16..]);
}
