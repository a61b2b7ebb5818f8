//! Appending, acknowledging, reading back, dropping the front: what a store relies on.

use std::ops::ControlFlow;
use std::sync::Arc;

use trifid_base_log::{
    AppendError, DataDir, LogId, OpenError, Position, ReadError, limits::PAYLOAD_BYTES_MAX,
};
use trifid_base_sim::SimDisk;

use crate::support::{Content, Heard, LOG, Stepped, open_from, open_with_sink, options};

fn open(disk: &SimDisk) -> Stepped {
    open_from(Arc::new(disk.clone()), options(6_000, 1), 0).unwrap()
}

fn read(opened: &Stepped, from: u64) -> Result<Vec<u64>, ReadError> {
    let mut positions = Vec::new();
    opened.log.read_from(Position::new(from), &mut |frame| {
        positions.push(frame.position.get());
        ControlFlow::Continue(())
    })?;
    Ok(positions)
}

#[test]
fn what_is_appended_is_replayed() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    assert_eq!(opened.log.append_records(&[b"a", b"b"], 3).unwrap().position, Position::ZERO);
    assert_eq!(opened.log.append(&[]).unwrap().position, Position::new(3));
    opened.stepper.step();
    drop(opened);
    let opened = open(&disk);
    assert_eq!(opened.content.frames, [(0, 3, b"ab".to_vec()), (3, 1, Vec::new())]);
    assert_eq!((opened.recovery.next, &opened.recovery.repair), (Position::new(4), &None));
}

#[test]
fn the_sink_hears_before_the_ticket_and_nothing_is_visible_before() {
    let heard = Arc::new(Heard::default());
    let mut opened = open_with_sink(Arc::new(SimDisk::new()), options(6_000, 1), 0, heard.clone()).unwrap();
    let ticket = opened.log.append_records(&[b"x"], 2).unwrap();
    assert_eq!((ticket.decided(), opened.log.durable_mark()), (None, Position::ZERO));
    assert_eq!(read(&opened, 0).unwrap(), [] as [u64; 0]);
    assert!(opened.stepper.step());
    assert_eq!(heard.take(), ["durable 0..2"]);
    assert_eq!((ticket.decided(), opened.log.durable_mark()), (Some(Ok(())), Position::new(2)));
    assert_eq!(read(&opened, 0).unwrap(), [0]);
    assert!(!opened.stepper.step());
}

#[test]
fn a_batch_is_written_once_and_flushed_once() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    for _ in 0..100 {
        let _ = opened.log.append(&[b"payload"]).unwrap();
    }
    let before = disk.ops();
    opened.stepper.step();
    assert_eq!(disk.ops() - before, 2);
}

#[test]
fn an_idle_log_is_closed_off_once() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    opened.write(b"x");
    opened.stepper.idle();
    let before = disk.ops();
    opened.stepper.idle();
    assert_eq!(disk.ops(), before);
}

#[test]
fn reading_starts_anywhere_and_spans_segments() {
    let mut opened = open(&SimDisk::new());
    for _ in 0..10 {
        opened.write(&[7; 1_000]);
    }
    assert!(opened.log.stats().segments > 2);
    for from in 0..=10 {
        assert_eq!(read(&opened, from).unwrap(), (from..10).collect::<Vec<_>>());
    }
    let mut first = None;
    let next = opened.log.read_from(Position::new(2), &mut |frame| {
        first = Some(frame.position);
        ControlFlow::Break(())
    });
    assert_eq!((next.unwrap(), first), (Position::new(3), Some(Position::new(2))));
}

#[test]
fn replay_starts_at_the_wanted_position_and_tells_progress() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    for _ in 0..10 {
        opened.write(&[7; 1_000]);
    }
    drop(opened);
    let opened = open_from(Arc::new(disk.clone()), options(6_000, 2), 7).unwrap();
    let positions: Vec<u64> = opened.content.frames.iter().map(|frame| frame.0).collect();
    assert_eq!(positions, [7, 8, 9]);
    let last = opened.content.progress.last().unwrap();
    assert_eq!((last.bytes, last.position), (last.bytes_total, Position::new(10)));
    drop(opened);
    let error = open_from(Arc::new(disk), options(6_000, 2), 11).err().unwrap();
    assert!(matches!(error, OpenError::Behind { .. }), "{error}");
}

#[test]
fn the_front_is_dropped_by_whole_segments() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    for _ in 0..10 {
        opened.write(&[7; 1_000]);
    }
    let before = opened.log.stats();
    let removed = opened.log.truncate_front(Position::new(5)).unwrap();
    let after = opened.log.stats();
    assert!(removed > 0 && after.segments == before.segments - removed);
    assert!(after.first > Position::ZERO && after.first <= Position::new(5));
    assert_eq!(read(&opened, 5).unwrap(), [5, 6, 7, 8, 9]);
    assert!(matches!(read(&opened, 0), Err(ReadError::Truncated { first, .. }) if first == after.first));
    // The segment being written stays, whatever is asked.
    opened.log.truncate_front(Position::new(1_000)).unwrap();
    assert_eq!(opened.log.stats().segments, 1);
    drop(opened);
    let error = open_from(Arc::new(disk.clone()), options(6_000, 2), 0).err().unwrap();
    assert!(matches!(error, OpenError::Truncated { .. }), "{error}");
    assert_eq!(open_from(Arc::new(disk), options(6_000, 2), 9).unwrap().content.frames.len(), 1);
}

#[test]
fn appends_are_refused_beyond_the_bound_and_above_the_largest_payload() {
    let bounded = trifid_base_log::Options { inflight_bytes_max: 1_000, ..options(6_000, 1) };
    let mut opened = open_from(Arc::new(SimDisk::new()), bounded, 0).unwrap();
    let _ = opened.log.append(&[&[0; 900]]).unwrap();
    let refused = opened.log.append(&[&[0; 900]]).unwrap_err();
    assert!(matches!(refused, AppendError::Overloaded { limit_bytes: 1_000, .. }), "{refused}");
    assert!(matches!(opened.log.admit(), Ok(())));
    let _ = opened.log.append_admitted(&[&[0; 900]]).unwrap();
    assert!(matches!(opened.log.admit(), Err(AppendError::Overloaded { .. })));
    opened.stepper.step();
    let _ = opened.log.append(&[&[0; 900]]).unwrap();
    let huge = vec![0; PAYLOAD_BYTES_MAX + 1];
    assert!(matches!(opened.log.append(&[&huge]), Err(AppendError::TooLarge { .. })));
    assert_eq!(opened.log.stats().refused_overload, 2);
}

#[test]
fn a_running_log_can_be_read_from_outside() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    for _ in 0..10 {
        opened.write(&[7; 1_000]);
    }
    let mut content = Content::default();
    let outside: Arc<dyn trifid_base_log::Disk> = Arc::new(disk.clone());
    let peek = trifid_base_log::Peek::open(&outside, LOG).unwrap();
    opened.write(b"later");
    opened.log.truncate_front(Position::new(9)).unwrap();
    assert_eq!(peek.first(), Position::ZERO);
    let seen = peek.read(Position::new(3), &mut content).unwrap();
    assert_eq!((content.frames.len(), seen.next), (7, Position::new(10)));
}

#[test]
fn positions_are_answered_without_their_tickets() {
    let mut opened = open(&SimDisk::new());
    let position = opened.log.append(&[b"x"]).unwrap().position;
    let durable = opened.log.durable_at(position);
    opened.stepper.step();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(durable), Ok(()));
    assert_eq!(runtime.block_on(opened.log.durable_at(position)), Ok(()));
    assert!(runtime.block_on(opened.log.durable_at(Position::new(9))).is_err());
}

#[test]
fn a_directory_has_one_owner_and_a_log_one_handle() {
    let disk = SimDisk::new();
    let opened = open(&disk);
    let error = open_from(Arc::new(disk.clone()), options(6_000, 1), 0).err().unwrap();
    assert_eq!(error.to_string(), "the data directory is in use by process 1");
    let again = opened.dir.recover(LOG, Position::ZERO, &mut ());
    assert!(matches!(again.err().unwrap(), OpenError::AlreadyOpen(LOG)));
}

#[test]
fn logs_of_one_directory_share_a_wave_and_nothing_else() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    let (other, _) = opened.dir.recover(LogId(2), Position::ZERO, &mut ()).unwrap();
    let other = other.start(Arc::new(()));
    let tickets = [opened.log.append(&[b"first"]).unwrap(), other.append(&[b"second"]).unwrap()];
    assert_eq!(tickets.each_ref().map(|ticket| ticket.position), [Position::ZERO; 2]);
    opened.stepper.step();
    assert_eq!(tickets.each_ref().map(|ticket| ticket.decided()), [Some(Ok(())); 2]);
    drop(opened);
    let opened = open(&disk);
    assert_eq!(opened.content.payloads(), [b"first"]);
    let mut content = Content::default();
    opened.dir.recover(LogId(2), Position::ZERO, &mut content).unwrap();
    assert_eq!(content.payloads(), [b"second"]);
}

#[test]
fn closing_writes_what_is_queued_and_refuses_what_comes_later() {
    let disk = SimDisk::new();
    let dir = DataDir::open(Arc::new(disk.clone()), options(6_000, 1)).unwrap();
    let log = dir.recover(LOG, Position::ZERO, &mut ()).unwrap().0.start(Arc::new(()));
    let tickets: Vec<_> = (0..50).map(|_| log.append(&[b"queued"]).unwrap()).collect();
    drop(dir);
    assert!(tickets.iter().all(|ticket| ticket.decided() == Some(Ok(()))));
    assert!(matches!(log.append(&[b"late"]), Err(AppendError::Closed)));
    assert_eq!(open(&disk).content.frames.len(), 50);
}

#[test]
fn many_tasks_append_at_once_and_each_is_answered() {
    let disk = SimDisk::new();
    let dir = DataDir::open(Arc::new(disk.clone()), options(100_000, 1)).unwrap();
    let log = dir.recover(LOG, Position::ZERO, &mut ()).unwrap().0.start(Arc::new(()));
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            std::thread::spawn({
                let log = log.clone();
                move || append_many(&log, thread)
            })
        })
        .collect();
    let mut positions: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    positions.sort_unstable();
    assert_eq!(positions, (0..4 * 20 * 30).collect::<Vec<u64>>());
    let stats = log.stats();
    assert_eq!((stats.frames, stats.durable, stats.inflight_bytes), (2_400, Position::new(2_400), 0));
    drop((log, dir));
    assert_eq!(open(&disk).content.frames.len(), 2_400);
}

/// Twenty tasks of a thread, thirty appends each, one after the other.
fn append_many(log: &trifid_base_log::Log, thread: u64) -> Vec<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..20u64 {
            let log = log.clone();
            tasks.spawn(async move {
                let mut positions = Vec::new();
                for turn in 0..30u64 {
                    let payload = [thread, task, turn].map(u64::to_le_bytes).concat();
                    let ticket = log.append(&[&payload]).unwrap();
                    positions.push(ticket.position.get());
                    ticket.durable().await.unwrap();
                }
                positions
            });
        }
        tasks.join_all().await.concat()
    })
}
