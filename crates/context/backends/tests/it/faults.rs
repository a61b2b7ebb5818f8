//! A disk that fails, and files that are damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use trifid_base_log::{DataDir, OpenError};
use trifid_base_sim::{Fault, OpKind, SimDisk};
use trifid_context_backends::file::Error;
use trifid_context_engine::testing::{Step, random_steps};

use crate::support::{Stepped, block_on, content, context, log_options, open, open_in, run};

fn create(id: u32) -> Step {
    Step::Create("", format!(r#"{{"id":"urn:a:{id}","type":"T"}}"#))
}

#[test]
fn a_full_disk_refuses_writers_and_serves_readers_until_there_is_room() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    run(&opened.store, &[create(1)]);
    disk.set_room(Some(0));
    let update = Step::Append("", "urn:a:1".to_owned(), r#"{"n":1}"#.to_owned(), false);
    let answers = run(&opened.store, &[create(2), update, Step::Query("", None, None)]);
    assert!(answers[..2].iter().all(|answer| answer.contains("the disk is full")), "{answers:?}");
    let untouched =
        |answer: &str| answer.contains("urn:a:1") && !answer.contains("urn:a:2") && !answer.contains("\"n\"");
    assert!(untouched(&answers[2]), "{}", answers[2]);
    assert!(block_on(opened.store.hosted().save(&context("a", "{}"))).is_err());
    disk.set_room(None);
    // The log takes writes again once it has undone what it refused, a moment after it said so.
    while run(&opened.store, &[create(3)])[0].contains("the disk is full") {
        std::thread::yield_now();
    }
    // What was refused is as if it had never been asked: it can be asked again.
    let answers = run(&opened.store, &[create(3), Step::Query("", None, None), create(2)]);
    assert!(answers[0].contains("AlreadyExists"), "{answers:?}");
    assert!(untouched(&answers[1]) && answers[1].contains("urn:a:3"), "{answers:?}");
    assert!(answers[2].ends_with("urn:a:2"), "{}", answers[2]);
    let before = content(&*opened.store.entities());
    drop(opened);
    let opened = open(Arc::new(disk)).unwrap();
    assert!(opened.contexts.is_empty());
    assert_eq!(content(&*opened.store.entities()), before);
}

#[test]
fn a_failed_flush_of_the_journal_refuses_the_writer() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    disk.on_op(|op| (op.kind == OpKind::SyncData).then_some(Fault::FailAndForget));
    let answers = run(&opened.store, &[create(1), create(2), Step::Query("", None, None)]);
    assert!(answers[..2].iter().all(|answer| answer.contains("the disk failed")), "{answers:?}");
    assert!(!answers[2].contains("urn:a:1"), "{}", answers[2]);
}

#[test]
fn a_failed_flush_of_a_snapshot_ends_the_process_and_a_full_disk_does_not() {
    let disk = SimDisk::new();
    let (told, ended) = std::sync::mpsc::channel();
    let mut options = log_options(1);
    options.on_fatal = Arc::new(move |failure| told.send(failure.to_string()).unwrap());
    let opened = open_in(Arc::new(DataDir::open(Arc::new(disk.clone()), options).unwrap())).unwrap();
    run(&opened.store, &random_steps(1, 50));
    let before = content(&*opened.store.entities());
    disk.on_op(|op| {
        let snapshot = op.kind == OpKind::Write && op.path.starts_with("context");
        snapshot.then_some(Fault::Fail(std::io::ErrorKind::StorageFull))
    });
    opened.store.snapshot().unwrap_err();
    assert!(!disk.files().iter().any(|path| path.starts_with("context")));
    ended.try_recv().unwrap_err();
    disk.on_op(|op| (op.kind == OpKind::SyncAll).then_some(Fault::FailAndForget));
    opened.store.snapshot().unwrap_err();
    assert_eq!(ended.try_recv().unwrap(), "flushing context/next.snapshot failed");
    drop(opened);
    assert_eq!(content(&*open(Arc::new(disk.kill())).unwrap().store.entities()), before);
}

/// A store with a snapshot and a journal behind it.
fn written() -> (SimDisk, Vec<PathBuf>) {
    let disk = SimDisk::new();
    let mut stepped = Stepped::open(&disk);
    stepped.run(&random_steps(1, 60));
    stepped.opened.store.snapshot().unwrap();
    stepped.run(&random_steps(2, 60));
    stepped.idle();
    let disk = disk.kill();
    let files = disk.files();
    (disk, files)
}

fn change(disk: &SimDisk, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.content(path).unwrap();
    change(&mut bytes);
    disk.plant(path, bytes);
}

#[test]
fn damage_is_refused_with_file_and_offset() {
    let (disk, files) = written();
    let snapshot = files.iter().find(|path| path.starts_with("context")).unwrap();
    change(&disk, snapshot, |bytes| bytes[100] ^= 1);
    match open(Arc::new(disk)).err().unwrap() {
        Error::Damaged { file, offset, what } => {
            assert_eq!((&file, offset), (snapshot, 64));
            assert_eq!(what, "the block's checksum does not match");
        }
        other => panic!("{other}"),
    }
    let (disk, files) = written();
    let journal = files.iter().find(|path| path.starts_with("log")).unwrap();
    change(&disk, journal, |bytes| bytes[5000] ^= 1);
    let error = open(Arc::new(disk)).err().unwrap();
    assert!(matches!(error, Error::Journal(OpenError::Damaged { .. })), "{error}");
}

#[test]
fn a_journal_that_does_not_reach_the_snapshot_is_refused() {
    let (disk, files) = written();
    let journal: Vec<_> = files.iter().filter(|path| path.starts_with("log")).collect();
    for path in &journal {
        use trifid_base_log::Disk;
        disk.remove(path).unwrap();
    }
    let error = open(Arc::new(disk)).err().unwrap();
    assert!(matches!(error, Error::Journal(OpenError::Behind { .. })), "{error}");
}

#[test]
fn a_snapshot_that_was_not_finished_is_removed() {
    let (disk, _) = written();
    disk.plant(Path::new("context/next.snapshot"), b"half".to_vec());
    open(Arc::new(disk.clone())).unwrap();
    assert_eq!(disk.content(Path::new("context/next.snapshot")), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_flipped_byte_is_refused_or_costs_nothing(
        file: prop::sample::Index,
        at: prop::sample::Index,
        flip in 1..=255u8,
    ) {
        let (disk, files) = written();
        let before = content(&*open(Arc::new(disk.kill())).unwrap().store.entities());
        let (disk, _) = written();
        let files: Vec<_> = files.iter().filter(|path| !path.ends_with("lock")).collect();
        change(&disk, files[file.index(files.len())], |bytes| {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        });
        match open(Arc::new(disk)) {
            Ok(opened) => prop_assert_eq!(content(&*opened.store.entities()), before),
            Err(Error::Damaged { .. } | Error::Journal(OpenError::Damaged { .. })) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
