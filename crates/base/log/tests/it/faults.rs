//! A disk that fails: flushes that report errors, a disk without room, writes that take less than given.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trifid_base_log::{
    AppendError, CommitError, DataDir, Durability, Log, LogId, LogOptions, Options, Position, ReplayFrom,
    Rewrite, Stepper, Ticket,
};
use trifid_base_sim::{Fault, OpKind, SimDisk};

use crate::support::{Heard, LOG, Stepped, open_from, open_with_sink, options, record_batch};

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

/// Three logs of a directory: two that flush on commit, one that flushes periodically.
fn three(disk: &SimDisk, options: Options) -> (DataDir, Stepper, [Log; 3]) {
    let (dir, stepper) = DataDir::open_stepped(Arc::new(disk.clone()), options).unwrap();
    let logs = [0, 1, 2].map(|id| {
        let interval = std::time::Duration::from_secs(3600);
        let durability = if id == 2 { Durability::Periodic { interval } } else { Durability::OnCommit };
        let settings = LogOptions { durability, segment_bytes: Some(5_000), ..LogOptions::default() };
        dir.recover_with(LogId(id), settings, ReplayFrom::Start, &mut ()).unwrap().0.start(Arc::new(()))
    });
    (dir, stepper, logs)
}

fn append(log: &Log, serial: u64) -> Ticket {
    log.append_batch(record_batch(1000, 900, serial), 1).unwrap()
}

#[test]
fn an_error_while_writing_refuses_the_waiters_of_all_logs() {
    let disk = SimDisk::new();
    let (options, failures) = counting_failures();
    let (_dir, mut stepper, logs) = three(&disk, options);
    let tickets: Vec<_> = logs.iter().map(|log| append(log, 1)).collect();
    disk.on_op(|op| {
        let hit = op.kind == OpKind::Write && op.path.starts_with("log/0000000000000001");
        hit.then_some(Fault::Fail(std::io::ErrorKind::Other))
    });
    stepper.step();
    assert!(tickets.iter().all(|ticket| ticket.decided() == Some(Err(CommitError::Failed))));
    assert_eq!(failures.load(Ordering::Relaxed), 1);
    assert!(logs.iter().all(|log| matches!(log.append(&[b"x"]), Err(AppendError::Failed))));
}

#[test]
fn a_log_without_room_harms_no_other() {
    let disk = SimDisk::new();
    let (_dir, mut stepper, logs) = three(&disk, counting_failures().0);
    let tickets: Vec<_> = logs.iter().map(|log| append(log, 1)).collect();
    disk.on_op(|op| {
        let hit = op.kind == OpKind::Write && op.path.starts_with("log/0000000000000001");
        hit.then_some(Fault::Fail(std::io::ErrorKind::StorageFull))
    });
    stepper.step();
    let decided: Vec<_> = tickets.iter().map(Ticket::decided).collect();
    assert_eq!(decided, [Some(Ok(())), Some(Err(CommitError::NoSpace)), Some(Ok(()))]);
    disk.on_op(|_| None);
    let ticket = append(&logs[1], 2);
    stepper.step();
    assert_eq!((ticket.position, ticket.decided()), (Position::new(1), Some(Ok(()))));
}

#[test]
fn a_flush_that_fails_side_by_side_refuses_the_waiters_of_its_wave() {
    let disk = SimDisk::new();
    let (mut options, _) = counting_failures();
    let (told, ended) = std::sync::mpsc::channel();
    options.on_fatal = Arc::new(move |failure| told.send(failure.to_string()).unwrap());
    let dir = DataDir::open(Arc::new(disk.clone()), options).unwrap();
    let logs: Vec<_> = (0..6)
        .map(|id| {
            let recovered = dir.recover_with(LogId(id), LogOptions::default(), ReplayFrom::Start, &mut ());
            recovered.unwrap().0.start(Arc::new(()))
        })
        .collect();
    disk.on_op(|op| {
        let hit = op.kind == OpKind::SyncData && op.path.starts_with("log/0000000000000003");
        hit.then_some(Fault::FailAndForget)
    });
    let tickets: Vec<_> = logs.iter().filter_map(|log| log.append(&[b"x"]).ok()).collect();
    assert_eq!(ended.recv().unwrap(), "flushing log/0000000000000003/00000000000000000000.seg failed");
    assert!(tickets.iter().all(|ticket| ticket.decided().is_some()));
    assert!(ended.try_recv().is_err(), "told once");
}

#[test]
fn a_disk_that_panics_beside_the_committer_ends_the_process() {
    let disk = SimDisk::new();
    let (mut options, _) = counting_failures();
    let (told, ended) = std::sync::mpsc::channel();
    options.on_fatal = Arc::new(move |failure| told.send(failure.to_string()).unwrap());
    let dir = DataDir::open(Arc::new(disk.clone()), options).unwrap();
    let durability = Durability::Periodic { interval: std::time::Duration::ZERO };
    let settings = LogOptions { durability, ..LogOptions::default() };
    let log = dir.recover_with(LOG, settings, ReplayFrom::Start, &mut ()).unwrap().0.start(Arc::new(()));
    disk.on_op(|op| {
        assert!(op.kind != OpKind::SyncData, "a bug in a disk");
        None
    });
    let _ = log.append(&[b"x"]).unwrap();
    assert_eq!(ended.recv().unwrap(), "flushing log failed");
    while log.append(&[b"y"]).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn a_periodic_flush_that_fails_ends_the_process() {
    let disk = SimDisk::new();
    let (options, failures) = counting_failures();
    let (_dir, mut stepper, logs) = three(&disk, options);
    let ticket = append(&logs[2], 1);
    stepper.step();
    assert_eq!(ticket.decided(), Some(Ok(())));
    fail(&disk, OpKind::SyncData, Fault::FailAndForget);
    stepper.flush_periodic();
    assert_eq!((failures.load(Ordering::Relaxed), logs[2].flushed()), (1, Position::ZERO));
    assert!(logs.iter().all(|log| matches!(log.append(&[b"x"]), Err(AppendError::Failed))));
}

/// Twelve batches, each a segment.
fn written(disk: &SimDisk, options: Options) -> (DataDir, Stepper, [Log; 3]) {
    let (dir, mut stepper, logs) = three(disk, options);
    for serial in 0..12 {
        let ticket = append(&logs[0], serial);
        stepper.step();
        assert_eq!(ticket.decided(), Some(Ok(())));
    }
    (dir, stepper, logs)
}

fn count(log: &Log) -> usize {
    log.read_batches(log.first(), usize::MAX).unwrap().entries.len()
}

#[test]
fn a_segment_that_cannot_be_given_up_stays_and_is_tried_again() {
    for kind in [OpKind::Rename, OpKind::Remove] {
        let disk = SimDisk::new();
        let (options, failures) = counting_failures();
        let (_dir, _stepper, logs) = written(&disk, options);
        let before = logs[0].stats().segments;
        disk.on_op(move |op| {
            let hit = op.kind == kind && !op.path.to_str().unwrap().ends_with(".idx");
            hit.then_some(Fault::Fail(std::io::ErrorKind::PermissionDenied))
        });
        assert!(logs[0].truncate_front(Position::new(11)).is_err());
        let stuck = logs[0].stats().segments;
        // Two files are renamed to be kept; the others are removed.
        assert_eq!(stuck, if kind == OpKind::Rename { before } else { before - 2 });
        assert_eq!(count(&logs[0]), 12 - (before - stuck));
        disk.on_op(|_| None);
        logs[0].truncate_front(Position::new(11)).unwrap();
        assert_eq!((count(&logs[0]), failures.load(Ordering::Relaxed)), (1, 0));
    }
}

#[test]
fn a_folder_that_cannot_be_flushed_ends_the_process() {
    let disk = SimDisk::new();
    let (options, failures) = counting_failures();
    let (_dir, _stepper, logs) = written(&disk, options);
    fail(&disk, OpKind::SyncDir, Fault::FailAndForget);
    assert!(logs[0].truncate_front(Position::new(11)).is_err());
    assert_eq!(failures.load(Ordering::Relaxed), 1);
    assert!(matches!(logs[1].append(&[b"x"]), Err(AppendError::Failed)));
}

#[test]
fn a_file_that_cannot_be_reused_lets_the_old_segment_grow() {
    for kind in [OpKind::Rename, OpKind::Write] {
        let disk = SimDisk::new();
        let (options, failures) = counting_failures();
        let (_dir, mut stepper, logs) = written(&disk, options);
        logs[0].truncate_front(Position::new(11)).unwrap();
        disk.on_op(move |op| {
            let old = op.kind == kind && kind == OpKind::Write && op.path.extension().unwrap() == "old";
            let renamed = op.kind == kind && kind == OpKind::Rename;
            (old || renamed).then_some(Fault::Fail(std::io::ErrorKind::Other))
        });
        for serial in 0..8 {
            let ticket = append(&logs[0], serial);
            stepper.step();
            assert_eq!(ticket.decided(), Some(Ok(())));
        }
        assert_eq!((failures.load(Ordering::Relaxed), count(&logs[0])), (0, 9));
        drop((_dir, stepper, logs));
        let (_dir, _stepper, logs) = three(&disk.kill(), counting_failures().0);
        assert_eq!(count(&logs[0]), 9);
    }
}

#[test]
fn short_writes_are_carried_on_everywhere() {
    let disk = SimDisk::new();
    fail(&disk, OpKind::Write, Fault::Short(100));
    let (dir, stepper, logs) = written(&disk, counting_failures().0);
    let drop_half = &mut |entry: &trifid_base_log::Entry| match entry.position.get() % 2 {
        0 => Rewrite::Drop,
        _ => Rewrite::Keep,
    };
    logs[0].compact(Position::ZERO, drop_half).unwrap();
    let left = count(&logs[0]);
    assert_eq!(left, 11);
    drop((dir, stepper, logs));
    let (_dir, _stepper, logs) = three(&disk.kill(), counting_failures().0);
    assert_eq!(count(&logs[0]), left);
}

#[test]
fn a_read_only_disk_serves_readers() {
    let disk = SimDisk::new();
    let (_dir, mut stepper, logs) = written(&disk, counting_failures().0);
    disk.on_op(|_| Some(Fault::Fail(std::io::ErrorKind::ReadOnlyFilesystem)));
    let ticket = append(&logs[0], 13);
    stepper.step();
    assert_eq!(ticket.decided(), Some(Err(CommitError::Failed)));
    assert_eq!(count(&logs[0]), 12);
}
