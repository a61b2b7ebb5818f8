//! A disk that fails: flushes that report errors, a disk without room, writes that take less than given.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trifid_base_log::{AppendError, CommitError, DataDir, Options, Position};
use trifid_base_sim::{Fault, OpKind, SimDisk};

use crate::support::{Heard, LOG, Stepped, open_from, open_with_sink, options};

fn counting_failures() -> (Options, Arc<AtomicUsize>) {
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = failures.clone();
    let on_fatal = Arc::new(move |_: &trifid_base_log::Failure| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (Options { on_fatal, ..options(6_000, 1) }, failures)
}

fn fail(disk: &SimDisk, kind: OpKind, fault: Fault) {
    disk.on_op(move |op| (op.kind == kind).then_some(fault));
}

#[test]
fn a_failed_flush_refuses_every_waiter_and_then_ends_the_process() {
    let disk = SimDisk::new();
    let (options, failures) = counting_failures();
    let heard = Arc::new(Heard::default());
    let mut opened = open_with_sink(Arc::new(disk.clone()), options, 0, heard.clone()).unwrap();
    let ticket = opened.log.append(&[b"x"]).unwrap();
    fail(&disk, OpKind::SyncData, Fault::FailAndForget);
    opened.stepper.step();
    assert_eq!(ticket.decided(), Some(Err(CommitError::Failed)));
    assert_eq!(failures.load(Ordering::Relaxed), 1);
    assert!(heard.take().is_empty());
    assert_eq!(opened.log.durable_mark(), Position::ZERO);
    assert!(matches!(opened.log.append(&[b"y"]), Err(AppendError::Failed)));
}

#[test]
fn waiters_are_refused_before_the_process_is_ended() {
    let disk = SimDisk::new();
    let (mut options, _) = counting_failures();
    let (told, refused) = std::sync::mpsc::channel();
    options.on_fatal = Arc::new(move |failure| told.send(failure.to_string()).unwrap());
    let dir = DataDir::open(Arc::new(disk.clone()), options).unwrap();
    let log = dir.recover(LOG, Position::ZERO, &mut ()).unwrap().0.start(Arc::new(()));
    fail(&disk, OpKind::SyncData, Fault::Fail(std::io::ErrorKind::Other));
    let ticket = log.append(&[b"x"]).unwrap();
    assert_eq!(refused.recv().unwrap(), "flushing log/00000000000000ab/00000000000000000000.seg failed");
    assert_eq!(ticket.decided(), Some(Err(CommitError::Failed)));
}

#[test]
fn a_sink_that_panics_leaves_nobody_waiting() {
    struct Panics;
    impl trifid_base_log::Sink for Panics {
        fn durable(&self, _: std::ops::Range<Position>) {
            panic!("a bug in a sink");
        }
        fn refused(&self, _: std::ops::Range<Position>) {}
    }
    let (mut options, _) = counting_failures();
    let (told, ended) = std::sync::mpsc::channel();
    options.on_fatal = Arc::new(move |_| told.send(()).unwrap());
    let dir = DataDir::open(Arc::new(SimDisk::new()), options).unwrap();
    let log = dir.recover(LOG, Position::ZERO, &mut ()).unwrap().0.start(Arc::new(Panics));
    let ticket = log.append(&[b"x"]).unwrap();
    ended.recv().unwrap();
    assert_eq!(ticket.decided(), Some(Err(CommitError::Failed)));
    assert!(matches!(log.append(&[b"y"]), Err(AppendError::Failed)));
}

/// After a failed flush the kernel may call the lost bytes clean: a restarted process sees them, the disk
/// does not have them.
#[test]
fn bytes_that_a_failed_flush_forgot_are_written_again_before_they_count() {
    let disk = SimDisk::new();
    let mut opened = open_from(Arc::new(disk.clone()), options(6_000, 1), 0).unwrap();
    opened.write(b"safe");
    let _ = opened.log.append(&[b"forgotten"]).unwrap();
    fail(&disk, OpKind::SyncData, Fault::FailAndForget);
    opened.stepper.step();
    let disk = disk.kill();
    let opened = open_from(Arc::new(disk.clone()), options(6_000, 1), 0).unwrap();
    assert_eq!(opened.content.payloads(), [b"safe".as_slice(), b"forgotten"]);
    for seed in 0..50 {
        let disk = disk.power_cut(seed);
        let opened = open_from(Arc::new(disk), options(6_000, 1), 0).unwrap();
        assert_eq!(opened.content.payloads(), [b"safe".as_slice(), b"forgotten"]);
    }
}

#[test]
fn a_short_write_is_carried_on() {
    let disk = SimDisk::new();
    fail(&disk, OpKind::Write, Fault::Short(100));
    let mut opened = open_from(Arc::new(disk.clone()), options(6_000, 1), 0).unwrap();
    let payload = [9; 1_000];
    opened.write(&payload);
    assert_eq!(open_from(Arc::new(disk.kill()), options(6_000, 1), 0).unwrap().content.payloads(), [payload]);
}

/// Fills the disk while three payloads are under way.
fn full(disk: &SimDisk, heard: &Arc<Heard>) -> Stepped {
    let mut opened = open_with_sink(Arc::new(disk.clone()), options(60_000, 1), 0, heard.clone()).unwrap();
    opened.write(b"before");
    disk.set_room(Some(4096 + 300));
    let tickets: Vec<_> = (0..3).map(|_| opened.log.append(&[&[1; 200]]).unwrap()).collect();
    opened.stepper.step();
    assert!(tickets.iter().all(|ticket| ticket.decided() == Some(Err(CommitError::NoSpace))));
    assert_eq!(heard.take(), ["durable 0..1", "refused 1..4"]);
    opened
}

#[test]
fn a_full_disk_refuses_writers_serves_readers_and_heals() {
    let disk = SimDisk::new();
    let heard = Arc::new(Heard::default());
    let mut opened = full(&disk, &heard);
    assert_eq!((opened.log.next_position(), opened.log.durable_mark()), (Position::new(4), Position::new(1)));
    let mut seen = 0;
    opened
        .log
        .read_from(Position::ZERO, &mut |_| {
            seen += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen, 1);
    assert_eq!(opened.log.stats().refused_space, 3);
    disk.set_room(None);
    assert_eq!(opened.write(b"after"), 4);
    assert_eq!(heard.take(), ["durable 1..5"]);
    drop(opened);
    let opened = open_from(Arc::new(disk), options(6_000, 1), 0).unwrap();
    assert_eq!(opened.content.payloads(), [b"before".as_slice(), b"after"]);
}

#[test]
fn a_refused_payload_never_comes_back() {
    let disk = SimDisk::new();
    let mut opened = full(&disk, &Arc::new(Heard::default()));
    disk.set_room(None);
    opened.write(&[2; 200]);
    for seed in 0..100 {
        let disk = disk.power_cut(seed);
        let opened = open_from(Arc::new(disk), options(6_000, 1), 0).unwrap();
        assert_eq!(opened.content.payloads(), [b"before".as_slice(), &[2; 200]]);
    }
}

#[test]
fn a_segment_that_cannot_be_created_lets_the_old_one_grow() {
    let disk = SimDisk::new();
    let mut opened = open_from(Arc::new(disk.clone()), options(6_000, 1), 0).unwrap();
    fail(&disk, OpKind::Create, Fault::Fail(std::io::ErrorKind::Other));
    for _ in 0..5 {
        opened.write(&[3; 1_000]);
    }
    assert_eq!(opened.log.stats().segments, 1);
    disk.on_op(|_| None);
    opened.write(&[3; 1_000]);
    assert_eq!(opened.log.stats().segments, 2);
    drop(opened);
    assert_eq!(open_from(Arc::new(disk), options(6_000, 1), 0).unwrap().content.frames.len(), 6);
}

#[test]
fn a_segment_left_behind_by_a_failed_creation_is_removed() {
    let disk = SimDisk::new();
    let mut opened = open_from(Arc::new(disk.clone()), options(6_000, 1), 0).unwrap();
    for _ in 0..2 {
        opened.write(&[3; 1_000]);
    }
    disk.on_op(|op| match op.kind {
        OpKind::Write if op.path.ends_with("00000000000000000002.seg") => {
            Some(Fault::Fail(std::io::ErrorKind::StorageFull))
        }
        OpKind::Remove => Some(Fault::Fail(std::io::ErrorKind::Other)),
        _ => None,
    });
    opened.write(&[3; 1_000]);
    disk.on_op(|_| None);
    opened.write(&[3; 1_000]);
    opened.write(&[3; 1_000]);
    assert_eq!(disk.files().len(), 3, "{:?}", disk.files());
    drop(opened);
    assert_eq!(open_from(Arc::new(disk.clone()), options(6_000, 1), 0).unwrap().content.frames.len(), 5);
    assert_eq!(disk.files().len(), 2);
}
