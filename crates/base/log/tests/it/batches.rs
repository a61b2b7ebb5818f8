//! Record batches, pages, times, and logs that are flushed periodically: what a stream relies on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trifid_base_log::{
    AppendError, CommitError, DataDir, Durability, LogId, LogOptions, Page, Position, ReadError, ReplayFrom,
};
use trifid_base_sim::SimDisk;

use crate::support::{Content, Heard, LOG, Streamed, open_stream, options, record_batch, stream};

const PERIODIC: Durability = Durability::Periodic { interval: Duration::from_secs(3600) };

fn periodic() -> LogOptions {
    LogOptions { durability: PERIODIC, ..LogOptions::default() }
}

fn open(disk: &SimDisk) -> Streamed {
    open_stream(disk, LogOptions::default()).unwrap()
}

/// Appends batches of two records, stamped 1000, 1010, ..., and commits each.
fn write(opened: &mut Streamed, count: u64, bytes: usize) {
    for _ in 0..count {
        let next = opened.log.next_position().get();
        let ticket = opened.log.append_batch(record_batch(1000 + next as i64 * 5, bytes, next), 2).unwrap();
        opened.stepper.step();
        assert_eq!(ticket.decided(), Some(Ok(())));
    }
}

fn read(opened: &Streamed, from: u64, bytes_max: usize) -> Result<Page, ReadError> {
    opened.log.read_batches(Position::new(from), bytes_max)
}

fn positions(page: &Page) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.position.get()).collect()
}

#[test]
fn a_record_batch_is_stored_as_it_came_and_read_with_its_offset_and_epoch() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    for bytes in [10, 20_000, 10] {
        write(&mut opened, 1, bytes);
    }
    let page = read(&opened, 0, usize::MAX).unwrap();
    assert_eq!((positions(&page), page.next), (vec![0, 2, 4], Position::new(6)));
    for (entry, bytes) in page.entries.iter().zip([10, 20_000, 10]) {
        let position = entry.position.get();
        let appended = record_batch(1000 + position as i64 * 5, bytes, position);
        assert_eq!(entry.payload[..8], position.to_be_bytes());
        assert_eq!(entry.payload[8..12], appended[8..12]);
        assert_eq!(entry.payload[12..16], (opened.log.epoch() as i32).to_be_bytes());
        assert_eq!(entry.payload[16..], appended[16..]);
        assert_eq!((entry.records, entry.epoch, entry.is_record_batch), (2, opened.log.epoch(), true));
    }
    drop(opened);
    let opened = open(&disk);
    assert_eq!(opened.content.frames.len(), 3);
    assert_eq!(opened.content.frames[1].2, record_batch(1010, 20_000, 2));
    assert!(opened.log.epoch() > page.entries[0].epoch);
    assert_eq!(read(&opened, 0, usize::MAX).unwrap(), page);
}

#[test]
fn what_is_no_record_batch_is_refused() {
    let opened = open(&SimDisk::new());
    let mut wrong_length = record_batch(1, 10, 1).to_vec();
    wrong_length.push(0);
    for payload in [Bytes::new(), Bytes::from_static(&[0; 61]), wrong_length.into()] {
        assert!(matches!(opened.log.append_batch(payload, 1), Err(AppendError::NoRecordBatch)));
    }
    assert_eq!(opened.log.next_position(), Position::ZERO);
}

#[test]
fn flushes_are_counted_against_frames() {
    let mut opened = open_stream(&SimDisk::new(), ahead()).unwrap();
    write(&mut opened, 3, 10);
    for serial in 0..40 {
        let _ = opened.log.append_batch(record_batch(1, 10, serial), 1).unwrap();
    }
    opened.stepper.step();
    let stats = opened.log.stats();
    assert_eq!((stats.frames, stats.batches, stats.flushes), (43, 4, 4));
    assert_eq!((stats.batch_classes[0], stats.batch_classes[5]), (3, 1));
    opened.log.roll().unwrap();
    assert_eq!(opened.log.stats().flushes, 5);
    let dir = opened.dir.stats();
    assert_eq!((dir.waves, dir.logs_written, dir.flushes_awaited, dir.flushes_periodic), (4, 4, 4, 0));
}

#[test]
fn pages_begin_anywhere_and_end_where_they_are_told() {
    let mut opened = open(&SimDisk::new());
    write(&mut opened, 40, 900);
    assert!(opened.log.stats().segments > 2);
    for from in 0..80 {
        let page = read(&opened, from, usize::MAX).unwrap();
        assert_eq!(positions(&page), (from / 2 * 2..80).step_by(2).collect::<Vec<_>>());
        assert_eq!(page.next, Position::new(80));
    }
    assert_eq!(read(&opened, 80, 1).unwrap(), Page { entries: Vec::new(), next: Position::new(80) });
    assert_eq!(read(&opened, 90, 1).unwrap().next, Position::new(90));
    // At least one payload, whatever the bound; then as many as fit.
    assert_eq!(positions(&read(&opened, 3, 0).unwrap()), [2]);
    assert_eq!(positions(&read(&opened, 3, 3_000).unwrap()), [2, 4, 6]);
    let mut next = Position::ZERO;
    let mut seen = Vec::new();
    while next < opened.log.published() {
        let page = opened.log.read_batches(next, 5_000).unwrap();
        seen.extend(positions(&page));
        next = page.next;
    }
    assert_eq!(seen, (0..80).step_by(2).collect::<Vec<_>>());
}

#[test]
fn a_payload_larger_than_a_page_comes_whole() {
    let mut opened = open(&SimDisk::new());
    write(&mut opened, 1, 10);
    write(&mut opened, 1, 3_000_000);
    write(&mut opened, 1, 10);
    let page = read(&opened, 2, 1_000).unwrap();
    assert_eq!((positions(&page), page.entries[0].payload.len()), (vec![2], 3_000_000 + 61));
    assert_eq!(positions(&read(&opened, 0, usize::MAX).unwrap()), [0, 2, 4]);
}

#[test]
fn opaque_payloads_and_record_batches_share_a_log() {
    let mut opened = open(&SimDisk::new());
    write(&mut opened, 1, 10);
    let ticket = opened.log.append(&[b"opaque"]).unwrap();
    opened.stepper.step();
    assert_eq!(ticket.decided(), Some(Ok(())));
    write(&mut opened, 1, 10);
    let page = read(&opened, 0, usize::MAX).unwrap();
    let kinds: Vec<_> =
        page.entries.iter().map(|entry| (entry.position.get(), entry.is_record_batch)).collect();
    assert_eq!(kinds, [(0, true), (2, false), (3, true)]);
    assert_eq!(page.entries[1].payload, "opaque");
}

#[test]
fn a_time_is_found_in_any_segment() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 40, 900);
    times_are_found(&opened);
    drop(opened);
    times_are_found(&open(&disk));
}

fn times_are_found(opened: &Streamed) {
    let find = |stamp| opened.log.position_for_time(stamp).unwrap().map(Position::get);
    assert_eq!(find(0), Some(0));
    for position in (0..80).step_by(2) {
        let stamp = 1000 + position as i64 * 5;
        assert_eq!(find(stamp), Some(position));
        assert_eq!(find(stamp - 9), Some(position));
    }
    assert_eq!(find(1391), None);
}

#[test]
fn only_the_newest_segment_is_read_when_that_is_asked() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 40, 900);
    let segments = opened.log.stats().segments;
    drop(opened);
    let (dir, _stepper) = DataDir::open_stepped(Arc::new(disk), options(6_000, 2)).unwrap();
    let mut content = Content::default();
    let (recovered, recovery) =
        dir.recover_with(LOG, LogOptions::default(), ReplayFrom::Newest, &mut content).unwrap();
    assert!(content.frames.len() < 10 && recovery.bytes < 20_000);
    assert_eq!((recovery.first, recovery.next), (Position::ZERO, Position::new(80)));
    let log = recovered.start(Arc::new(()));
    assert_eq!((log.stats().segments, log.first()), (segments, Position::ZERO));
    assert_eq!(log.read_batches(Position::ZERO, usize::MAX).unwrap().entries.len(), 40);
}

#[test]
fn a_periodically_flushed_log_acknowledges_after_the_write() {
    let disk = SimDisk::new();
    let heard = Arc::new(Heard::default());
    let mut opened = stream(&disk, options(6_000, 1), periodic(), heard.clone()).unwrap();
    let before = disk.ops();
    write(&mut opened, 3, 10);
    assert_eq!(disk.ops() - before, 3, "three writes");
    assert_eq!(heard.take(), ["durable 0..2", "durable 2..4", "durable 4..6"]);
    assert_eq!((opened.log.published(), opened.log.flushed()), (Position::new(6), Position::ZERO));
    assert_eq!(read(&opened, 0, usize::MAX).unwrap().entries.len(), 3);
    opened.stepper.flush_periodic();
    assert_eq!((disk.ops() - before, opened.log.flushed()), (4, Position::new(6)));
    opened.stepper.flush_periodic();
    assert_eq!(disk.ops() - before, 4, "nothing is owed");
    let stats = opened.log.stats();
    assert_eq!((stats.batches, stats.frames, stats.batch_classes[0]), (3, 3, 3));
}

#[test]
fn what_was_not_flushed_survives_a_kill_and_what_was_flushed_a_power_cut() {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, periodic()).unwrap();
    write(&mut opened, 2, 10);
    opened.stepper.flush_periodic();
    write(&mut opened, 2, 10);
    let killed = open_stream(&disk.kill(), periodic()).unwrap();
    assert_eq!(killed.content.frames.len(), 4);
    for seed in 0..50 {
        let cut = open_stream(&disk.power_cut(seed), periodic()).unwrap();
        assert!((2..=4).contains(&cut.content.frames.len()));
    }
}

#[test]
fn one_timer_flushes_what_is_owed() {
    let disk = SimDisk::new();
    let dir = DataDir::open(Arc::new(disk.clone()), options(1 << 20, 1)).unwrap();
    let interval = Duration::from_millis(1);
    let settings = LogOptions { durability: Durability::Periodic { interval }, ..LogOptions::default() };
    let logs: Vec<_> = (0..3)
        .map(|id| {
            let recovered = dir.recover_with(LogId(id), settings.clone(), ReplayFrom::Start, &mut ());
            recovered.unwrap().0.start(Arc::new(()))
        })
        .collect();
    for log in &logs {
        let _ = log.append_batch(record_batch(1, 10, 1), 1).unwrap();
    }
    while logs.iter().any(|log| log.flushed() < Position::new(1)) {
        std::thread::yield_now();
    }
    drop(dir);
    assert!(logs.iter().all(|log| log.published() == Position::new(1)));
}

#[test]
fn several_logs_are_flushed_side_by_side_and_each_ticket_is_answered() {
    let disk = SimDisk::new();
    let dir = DataDir::open(Arc::new(disk.clone()), options(100_000, 1)).unwrap();
    let logs: Vec<_> = (0..12)
        .map(|id| {
            let recovered = dir.recover_with(LogId(id), LogOptions::default(), ReplayFrom::Start, &mut ());
            recovered.unwrap().0.start(Arc::new(()))
        })
        .collect();
    for round in 0..50 {
        let append = |log: &trifid_base_log::Log| log.append_batch(record_batch(1, 100, round), 1).unwrap();
        let tickets: Vec<_> = logs.iter().map(append).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for ticket in tickets {
            assert_eq!(runtime.block_on(ticket.durable()), Ok(()));
        }
    }
    let stats = dir.stats();
    assert_eq!((stats.logs_written, stats.flushes_awaited), (600, 600));
    assert!(stats.waves <= 600);
    drop(dir);
    for id in 0..12 {
        let dir = DataDir::open(Arc::new(disk.clone()), options(100_000, 2)).unwrap();
        let mut content = Content::default();
        dir.recover_with(LogId(id), LogOptions::default(), ReplayFrom::Start, &mut content).unwrap();
        assert_eq!(content.frames.len(), 50);
    }
}

/// Segments that are not full soon, and zeros ahead.
fn ahead() -> LogOptions {
    LogOptions { segment_bytes: Some(200_000), prewrite_bytes: 10_000, ..LogOptions::default() }
}

/// The length of the newest segment, and of its frames.
fn lengths(disk: &SimDisk, opened: &Streamed) -> (u64, u64) {
    let newest = disk.files().into_iter().rfind(|path| path.extension().unwrap() == "seg").unwrap();
    let frames = opened.log.segments().unwrap().last().unwrap().bytes;
    (disk.content(&newest).unwrap().len() as u64, frames)
}

#[test]
fn zeros_are_written_ahead_and_are_no_damage() {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, ahead()).unwrap();
    write(&mut opened, 1, 900);
    let (len, frames) = lengths(&disk, &opened);
    assert_eq!(len, frames + 10_000);
    let before = disk.ops();
    write(&mut opened, 3, 900);
    assert_eq!((disk.ops() - before, lengths(&disk, &opened).0), (6, len), "nothing grew");
    let killed = open_stream(&disk.copy(), ahead()).unwrap();
    assert_eq!((killed.content.frames.len(), &killed.recovery.repair), (4, &None));
    for seed in 0..50 {
        let cut = open_stream(&disk.power_cut(seed), ahead()).unwrap();
        assert_eq!((cut.content.frames.len(), &cut.recovery.repair), (4, &None));
    }
}

#[test]
fn a_torn_write_over_zeros_is_cut_off_and_told() {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, ahead()).unwrap();
    write(&mut opened, 3, 900);
    let (_, frames) = lengths(&disk, &opened);
    let path = disk.files().into_iter().rfind(|path| path.extension().unwrap() == "seg").unwrap();
    let disk = disk.copy();
    let mut content = disk.content(&path).unwrap();
    content[frames as usize - 200] ^= 1;
    disk.plant(&path, content);
    let mut opened = open_stream(&disk, ahead()).unwrap();
    assert!(opened.recovery.repair.is_some());
    assert_eq!(opened.content.frames.len(), 2);
    write(&mut opened, 3, 900);
    drop(opened);
    assert_eq!(open_stream(&disk, ahead()).unwrap().content.frames.len(), 5);
}

#[test]
fn zeros_give_way_to_payloads_on_a_full_disk() {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, ahead()).unwrap();
    disk.set_room(Some(disk.used() + 2_500));
    write(&mut opened, 2, 900);
    let (len, frames) = lengths(&disk, &opened);
    assert_eq!(len, frames);
    let ticket = opened.log.append_batch(record_batch(1, 900, 1), 1).unwrap();
    opened.stepper.step();
    assert_eq!(ticket.decided(), Some(Err(CommitError::NoSpace)));
    disk.set_room(None);
    write(&mut opened, 2, 900);
    drop(opened);
    assert_eq!(open_stream(&disk, ahead()).unwrap().content.frames.len(), 4);
}

#[test]
fn a_segment_that_was_sealed_early_gives_its_zeros_back() {
    let disk = SimDisk::new();
    let settings = LogOptions { prewrite_bytes: 100_000, ..ahead() };
    let mut opened = open_stream(&disk, settings.clone()).unwrap();
    write(&mut opened, 1, 900);
    opened.log.roll().unwrap();
    write(&mut opened, 1, 900);
    let sealed = disk.files().into_iter().find(|path| path.extension().unwrap() == "seg").unwrap();
    assert_eq!(disk.content(&sealed).unwrap().len() as u64, opened.log.segments().unwrap()[0].bytes);
    for seed in 0..20 {
        assert_eq!(open_stream(&disk.power_cut(seed), settings.clone()).unwrap().content.frames.len(), 2);
    }
}
