//! One sample of every version of the format, opened for as long as that version is supported.
//!
//! The sample is written again with `TRIFID_BLESS=1`; a change of its bytes is a change of the format.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trifid_base_log::{CommitError, Position};
use trifid_base_sim::SimDisk;

use crate::support::{open_from, options};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1")
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

#[test]
fn version_1_is_written_as_ever() {
    let disk = write();
    if std::env::var_os("TRIFID_BLESS").is_some() {
        fs::create_dir_all(sample()).unwrap();
        for path in disk.files() {
            fs::write(sample().join(path.file_name().unwrap()), disk.content(&path).unwrap()).unwrap();
        }
    }
    let files = disk.files();
    assert_eq!(files.len(), fs::read_dir(sample()).unwrap().count());
    for path in files {
        let golden = fs::read(sample().join(path.file_name().unwrap())).unwrap();
        assert!(disk.content(&path).unwrap() == golden, "{} differs", path.display());
    }
}

#[test]
fn version_1_is_read() {
    let disk = SimDisk::new();
    for entry in fs::read_dir(sample()).unwrap() {
        let path = entry.unwrap().path();
        let there = Path::new("log/00000000000000ab").join(path.file_name().unwrap());
        disk.plant(&there, fs::read(&path).unwrap());
    }
    let opened = open_from(Arc::new(disk), options(6_000, 1), 0).unwrap();
    assert_eq!(opened.content.payloads(), payloads());
    let positions: Vec<_> = opened.content.frames.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(positions, [(0, 1), (1, 2), (3, 1), (7, 2), (9, 1), (10, 2)]);
    assert_eq!((opened.recovery.next, opened.recovery.repair), (Position::new(12), None));
}
