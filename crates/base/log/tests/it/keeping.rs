//! What a log keeps: retention, compaction, reused files, index files, and removing it whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use trifid_base_log::{
    AppendError, CommitError, CompactError, LogId, LogOptions, Position, ReadError, RemoveError, ReplayFrom,
    Rewrite,
};
use trifid_base_sim::{Fault, OpKind, SimDisk};

use crate::support::{Heard, LOG, Streamed, open_stream, options, record_batch, stream};

fn open(disk: &SimDisk) -> Streamed {
    open_stream(disk, LogOptions::default()).unwrap()
}

/// Appends batches of two records, stamped 1000, 1010, ..., and commits each.
fn write(opened: &mut Streamed, count: u64) {
    for _ in 0..count {
        let next = opened.log.next_position().get();
        let ticket = opened.log.append_batch(record_batch(1000 + next as i64 * 5, 900, next), 2).unwrap();
        opened.stepper.step();
        assert_eq!(ticket.decided(), Some(Ok(())));
    }
}

/// The positions that can be read, from the first on.
fn positions(opened: &Streamed) -> Vec<u64> {
    let page = opened.log.read_batches(opened.log.first(), usize::MAX).unwrap();
    assert_eq!(page.next, opened.log.published());
    page.entries.iter().map(|entry| entry.position.get()).collect()
}

fn evens(from: u64, to: u64) -> Vec<u64> {
    (from..to).step_by(2).collect()
}

fn files(disk: &SimDisk, extension: &str) -> Vec<PathBuf> {
    let has = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    disk.files().into_iter().filter(has).collect()
}

fn change(disk: &SimDisk, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut content = disk.content(path).unwrap();
    change(&mut content);
    disk.plant(path, content);
}

#[test]
fn segments_are_told_with_their_ends_and_times() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 10);
    let told = opened.log.segments().unwrap();
    assert!(told.len() > 2);
    assert!(told.windows(2).all(|pair| pair[0].end == pair[1].base && pair[0].sealed));
    let last = told.last().unwrap();
    assert_eq!((last.end, last.sealed, last.stamp), (Position::new(20), false, Some(1090)));
    assert_eq!(told[0].stamp, Some(1000 + 5 * (told[0].end.get() as i64 - 2)));
    assert_eq!(told.iter().map(|segment| segment.bytes).sum::<u64>(), opened.log.bytes());
    drop(opened);
    // Opened anew it reads what it does not know. The last flush is vouched for by a marker now.
    let mut again = open(&disk).log.segments().unwrap();
    again.last_mut().unwrap().bytes -= 64;
    assert_eq!(again, told);
}

#[test]
fn retention_by_age_drops_what_is_older() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 20);
    let told = opened.log.segments().unwrap();
    assert_eq!(opened.log.apply_retention(1100, Some(200), None).unwrap().segments, 0);
    // All of the second segment is older than 100 ms.
    let now = told[1].stamp.unwrap() + 101;
    let dropped = opened.log.apply_retention(now, Some(100), None).unwrap();
    assert_eq!((dropped.segments, dropped.first), (2, told[2].base));
    assert_eq!(dropped.bytes, told[0].bytes + told[1].bytes);
    assert_eq!(positions(&opened), evens(told[2].base.get(), 40));
    assert!(matches!(
        opened.log.read_batches(Position::ZERO, 1),
        Err(ReadError::Truncated { first, .. }) if first == told[2].base
    ));
    // When all is too old, all goes.
    let dropped = opened.log.apply_retention(10_000, Some(100), None).unwrap();
    assert_eq!((dropped.first, positions(&opened)), (Position::new(40), Vec::new()));
    write(&mut opened, 2);
    assert_eq!(positions(&opened), evens(40, 44));
    drop(opened);
    assert_eq!(positions(&open(&disk)), evens(40, 44));
}

#[test]
fn retention_by_size_keeps_at_least_so_much() {
    let mut opened = open(&SimDisk::new());
    write(&mut opened, 20);
    let keep = opened.log.bytes() / 2;
    opened.log.apply_retention(0, None, Some(keep)).unwrap();
    let told = opened.log.segments().unwrap();
    assert!(opened.log.bytes() >= keep && opened.log.bytes() - told[0].bytes < keep);
    opened.log.apply_retention(0, None, Some(0)).unwrap();
    assert_eq!(opened.log.segments().unwrap().len(), 1);
}

#[test]
fn payloads_without_a_time_have_no_age() {
    let mut opened = open(&SimDisk::new());
    for _ in 0..10 {
        let _ = opened.log.append(&[&[7; 1_000]]).unwrap();
        opened.stepper.step();
    }
    assert_eq!(opened.log.apply_retention(i64::MAX, Some(0), None).unwrap().segments, 0);
}

#[test]
fn dropped_segments_are_written_over() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    let first = files(&disk, "seg")[0].clone();
    let len = disk.content(&first).unwrap().len();
    opened.log.truncate_front(Position::new(12)).unwrap();
    assert_eq!(files(&disk, "old").len(), 2);
    disk.on_op(|op| (op.kind == OpKind::Create && op.path.extension().unwrap() == "seg").then(|| panic!()));
    write(&mut opened, 2);
    assert_eq!(files(&disk, "old").len(), 1);
    let reused = files(&disk, "seg").last().unwrap().clone();
    assert!(disk.content(&reused).unwrap().len() >= len);
    disk.on_op(|_| None);
    let (first, expected) = (opened.log.first(), positions(&opened));
    drop(opened);
    let opened = open(&disk);
    assert_eq!((opened.recovery.first, &opened.recovery.repair), (first, &None));
    assert_eq!(positions(&opened), expected);
}

/// A log whose newest segment was another before, and the position of the last batch.
fn recycled(disk: &SimDisk) -> Streamed {
    let mut opened = open(disk);
    write(&mut opened, 12);
    opened.log.truncate_front(Position::new(12)).unwrap();
    let before = opened.log.stats().segments;
    while opened.log.stats().segments == before {
        write(&mut opened, 1);
    }
    opened
}

#[test]
fn old_bytes_behind_the_end_are_no_frames_and_no_damage() {
    let disk = SimDisk::new();
    let opened = recycled(&disk);
    let expected = positions(&opened);
    for closed in [false, true] {
        let disk = disk.kill();
        let mut opened = open(&disk);
        assert_eq!((positions(&opened), &opened.recovery.repair), (expected.clone(), &None));
        if closed {
            opened.stepper.idle();
        }
        write(&mut opened, 7);
        let next = opened.log.published().get();
        drop(opened);
        let opened = open(&disk);
        assert_eq!(positions(&opened), evens(expected[0], next));
    }
}

#[test]
fn a_torn_write_over_old_bytes_is_cut_off() {
    let disk = SimDisk::new();
    let opened = recycled(&disk);
    let expected = positions(&opened);
    let disk = disk.kill();
    change(&disk, files(&disk, "seg").last().unwrap(), |content| content[4096 + 64 + 100] ^= 1);
    let opened = open(&disk);
    assert_eq!(positions(&opened), expected[..expected.len() - 1]);
    assert!(opened.recovery.repair.is_some());
}

#[test]
fn damage_below_the_mark_of_a_reused_segment_is_refused() {
    let disk = SimDisk::new();
    let mut opened = recycled(&disk);
    write(&mut opened, 1);
    let disk = disk.kill();
    change(&disk, files(&disk, "seg").last().unwrap(), |content| content[4096 + 64 + 100] ^= 1);
    assert!(open_stream(&disk, LogOptions::default()).is_err());
}

#[test]
fn a_full_disk_gets_the_kept_files_back() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    opened.log.truncate_front(Position::new(12)).unwrap();
    assert!(!files(&disk, "old").is_empty());
    disk.set_room(Some(0));
    let ticket = opened.log.append_batch(record_batch(1, 2_000, 1), 1).unwrap();
    opened.stepper.step();
    assert_eq!(ticket.decided(), Some(Err(CommitError::NoSpace)));
    assert!(files(&disk, "old").is_empty());
}

#[test]
fn an_index_lies_beside_every_sealed_segment_and_is_used() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    let sealed = opened.log.stats().segments - 1;
    assert_eq!(files(&disk, "idx").len(), sealed);
    let told = opened.log.segments().unwrap();
    drop(opened);
    // What the files say of a segment is known without reading it.
    let damaged = disk.copy();
    change(&damaged, &files(&damaged, "seg")[0], |content| content[4096 + 64 + 100] ^= 1);
    let (dir, _) = trifid_base_log::DataDir::open_stepped(Arc::new(damaged), options(6_000, 1)).unwrap();
    let (recovered, _) = dir.recover_with(LOG, LogOptions::default(), ReplayFrom::Newest, &mut ()).unwrap();
    assert_eq!(recovered.start(Arc::new(())).segments().unwrap()[..sealed], told[..sealed]);
    for path in files(&disk, "idx") {
        disk.remove_for_good(&path);
    }
    let opened = open(&disk);
    opened.log.segments().unwrap();
    assert_eq!(files(&disk, "idx").len(), sealed, "made again");
    opened.log.truncate_front(Position::new(12)).unwrap();
    assert_eq!(files(&disk, "idx").len(), opened.log.stats().segments - 1);
}

#[test]
fn whatever_an_index_file_says_the_answers_are_the_same() {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, large_segments()).unwrap();
    write(&mut opened, 300);
    let expected = positions(&opened);
    drop(opened);
    let indexes = files(&disk, "idx");
    assert!(!indexes.is_empty());
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..60 {
        let disk = disk.kill();
        let content = disk.content(&indexes[0]).unwrap();
        change(&disk, &indexes[0], |bytes| match rng.u8(..4) {
            0 => bytes.truncate(rng.usize(..content.len())),
            1 => *bytes = disk.content(rng.choice(&indexes).unwrap()).unwrap(),
            2 => bytes.fill(0),
            _ => bytes[rng.usize(..content.len())] ^= rng.u8(1..),
        });
        let opened = open_stream(&disk, large_segments()).unwrap();
        assert_eq!(positions(&opened), expected);
        for from in [0, 77, 150, 299, 599] {
            let page = opened.log.read_batches(Position::new(from), 1).unwrap();
            assert_eq!(page.entries[0].position.get(), from / 2 * 2);
            let stamp = 1000 + from as i64 * 5;
            let found = opened.log.position_for_time(stamp).unwrap();
            assert_eq!(found, Some(Position::new(from.next_multiple_of(2))).filter(|at| at.get() < 600));
        }
    }
}

fn large_segments() -> LogOptions {
    LogOptions { segment_bytes: Some(150_000), ..LogOptions::default() }
}

#[test]
fn damage_is_told_where_it_is_read_and_not_far_from_it() {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, large_segments()).unwrap();
    write(&mut opened, 300);
    let path = files(&disk, "seg")[0].clone();
    drop(opened);
    change(&disk, &path, |content| content[90_000] ^= 1);
    let (dir, _) = trifid_base_log::DataDir::open_stepped(Arc::new(disk.clone()), options(6_000, 1)).unwrap();
    let opened = dir.recover_with(LOG, large_segments(), ReplayFrom::Newest, &mut ()).unwrap();
    let log = opened.0.start(Arc::new(()));
    let end = log.segments().unwrap()[0].end;
    let (mut next, mut bad, mut good) = (Position::ZERO, 0, 0);
    while next < end {
        match log.read_batches(next, 1) {
            Ok(page) => {
                good += 1;
                next = page.next;
            }
            Err(ReadError::Damaged { file, defect, .. }) => {
                assert_eq!((&file, defect), (&path, trifid_base_log::Defect::PayloadChecksum));
                bad += 1;
                // The caller goes past it as he can.
                next = next.advance(2);
            }
            Err(other) => panic!("{other}"),
        }
    }
    // What lies between the damage and the next entry of the index cannot be reached either.
    assert!((1..=35).contains(&bad) && good + bad == end.get() / 2, "{good} {bad}");
}

/// Keeps every third batch and shortens another third.
fn every_third(opened: &Streamed, base: Position) -> Result<trifid_base_log::Compacted, CompactError> {
    opened.log.compact(base, &mut |entry| match entry.position.get() / 2 % 3 {
        0 => Rewrite::Keep,
        1 => Rewrite::Replace(record_batch(5, 8, entry.position.get())),
        _ => Rewrite::Drop,
    })
}

#[test]
fn compaction_leaves_positions_and_takes_payloads() {
    let disk = SimDisk::new();
    let mut opened = open_stream(&disk, large_segments()).unwrap();
    write(&mut opened, 300);
    let before = opened.log.segments().unwrap();
    let old = opened.log.read_batches(Position::ZERO, usize::MAX).unwrap();
    let compacted = every_third(&opened, before[0].base).unwrap();
    assert_eq!(compacted.bytes_before, before[0].bytes);
    assert!(compacted.bytes_after < before[0].bytes / 2);
    let after = opened.log.segments().unwrap();
    assert_eq!((after[0].end, after[0].bytes), (before[0].end, compacted.bytes_after));
    let check = |opened: &Streamed| {
        let page = opened.log.read_batches(Position::ZERO, usize::MAX).unwrap();
        let expected = old
            .entries
            .iter()
            .filter(|entry| entry.position >= before[0].end || entry.position.get() / 2 % 3 < 2);
        for (entry, was) in page.entries.iter().zip(expected) {
            assert_eq!((entry.position, entry.records, entry.epoch), (was.position, was.records, was.epoch));
            if entry.position < before[0].end && entry.position.get() / 2 % 3 == 1 {
                assert_eq!(entry.payload[16..], record_batch(5, 8, entry.position.get())[16..]);
            } else {
                assert_eq!(entry.payload, was.payload);
            }
        }
        assert_eq!(page.next, Position::new(600));
        // A dropped position is answered by what follows.
        let next = opened.log.read_batches(Position::new(4), 1).unwrap();
        assert_eq!(next.entries[0].position.get(), 6);
    };
    check(&opened);
    drop(opened);
    check(&open_stream(&disk, large_segments()).unwrap());
    assert!(files(&disk, "new").is_empty());
}

#[test]
fn everything_can_be_compacted_away_and_again() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    let told = opened.log.segments().unwrap();
    for segment in told.iter().filter(|segment| segment.sealed) {
        let compacted = opened.log.compact(segment.base, &mut |_| Rewrite::Drop).unwrap();
        assert_eq!(compacted.bytes_after, 4096 + 64 + 64);
        let again = opened.log.compact(segment.base, &mut |_| panic!("nothing is left")).unwrap();
        assert_eq!(again.bytes_after, 4096 + 64 + 64);
    }
    let last = told.last().unwrap().base.get();
    assert_eq!(positions(&opened), evens(last, 24));
    drop(opened);
    assert_eq!(positions(&open(&disk)), evens(last, 24));
}

#[test]
fn several_segments_are_compacted_into_one() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    let told = opened.log.segments().unwrap();
    let range = told[1].base..told[3].end;
    let keep = |entry: &trifid_base_log::Entry| entry.position.get().is_multiple_of(8);
    let compacted = opened
        .log
        .compact_as_one(range.clone(), &mut |entry| if keep(entry) { Rewrite::Keep } else { Rewrite::Drop })
        .unwrap();
    assert_eq!(compacted.bytes_before, told[1..4].iter().map(|segment| segment.bytes).sum::<u64>());
    let after = opened.log.segments().unwrap();
    assert_eq!(after.len(), told.len() - 2);
    assert_eq!((after[1].base..after[1].end, after[1].bytes), (range.clone(), compacted.bytes_after));
    let gone = |position: &u64| range.contains(&Position::new(*position)) && !position.is_multiple_of(8);
    let expected: Vec<u64> = evens(0, 24).into_iter().filter(|position| !gone(position)).collect();
    assert_eq!(positions(&opened), expected);
    assert_eq!(files(&disk, "seg").len(), after.len());
    drop(opened);
    assert_eq!(positions(&open(&disk)), expected);
    for bad in [range.start..range.start, range.end..range.start, range.start..Position::new(999)] {
        let error = open(&disk.copy()).log.compact_as_one(bad, &mut |_| Rewrite::Keep);
        assert!(matches!(error, Err(CompactError::NoSegment(_))));
    }
}

#[test]
fn a_joined_segment_that_a_power_cut_left_behind_is_removed() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    let told = opened.log.segments().unwrap();
    let expected = positions(&opened);
    let before = disk.copy();
    opened.log.compact_as_one(told[1].base..told[3].end, &mut |_| Rewrite::Keep).unwrap();
    drop(opened);
    // As if the removal had not lasted.
    for segment in &told[2..4] {
        let path = PathBuf::from(format!("log/00000000000000ab/{:020}.seg", segment.base.get()));
        disk.plant(&path, before.content(&path).unwrap());
    }
    let (dir, _) = trifid_base_log::DataDir::open_stepped(Arc::new(disk.copy()), options(6_000, 1)).unwrap();
    let newest = dir.recover_with(LOG, LogOptions::default(), ReplayFrom::Newest, &mut ()).unwrap().0;
    let page = newest.start(Arc::new(())).read_batches(Position::ZERO, usize::MAX).unwrap();
    assert!(page.entries.iter().map(|entry| entry.position.get()).eq(expected.iter().copied()));
    let opened = open(&disk);
    assert_eq!(opened.content.frames.len(), 12);
    assert_eq!(positions(&opened), expected);
    assert_eq!(files(&disk, "seg").len(), told.len() - 2);
}

#[test]
fn compaction_is_refused_where_it_makes_no_sense() {
    let mut opened = open(&SimDisk::new());
    write(&mut opened, 12);
    let newest = opened.log.segments().unwrap().last().unwrap().base;
    for base in [newest, Position::new(1), Position::new(999)] {
        assert!(matches!(every_third(&opened, base), Err(CompactError::NoSegment(at)) if at == base));
    }
    let garbage =
        opened.log.compact(Position::ZERO, &mut |_| Rewrite::Replace(Bytes::from_static(b"no batch")));
    assert!(matches!(garbage, Err(CompactError::NoRecordBatch(at)) if at == Position::ZERO));
    assert_eq!(positions(&opened), evens(0, 24));
    let kept = opened.log.compact(Position::ZERO, &mut |_| Rewrite::Keep).unwrap();
    assert_eq!((kept.dropped, kept.bytes_before), (0, kept.bytes_after));
}

#[test]
fn a_failed_compaction_changes_nothing() {
    for (kind, extension) in [(OpKind::Create, "new"), (OpKind::Write, "new"), (OpKind::Rename, "seg")] {
        let disk = SimDisk::new();
        let mut opened = open(&disk);
        write(&mut opened, 12);
        let before = positions(&opened);
        disk.on_op(move |op| {
            let hit = op.kind == kind && op.path.extension().is_some_and(|found| found == extension);
            hit.then_some(Fault::Fail(std::io::ErrorKind::StorageFull))
        });
        let failed = every_third(&opened, Position::ZERO);
        assert!(matches!(failed, Err(CompactError::Io { .. })), "{failed:?}");
        disk.on_op(|_| None);
        assert_eq!(positions(&opened), before);
        assert!(files(&disk, "new").is_empty());
        every_third(&opened, Position::ZERO).unwrap();
    }
}

#[test]
fn a_flush_that_fails_while_compacting_ends_the_process() {
    for kind in [OpKind::SyncAll, OpKind::SyncDir] {
        let disk = SimDisk::new();
        let mut opened = open(&disk);
        write(&mut opened, 12);
        disk.on_op(move |op| (op.kind == kind).then_some(Fault::FailAndForget));
        assert!(every_third(&opened, Position::ZERO).is_err());
        assert!(matches!(opened.log.append(&[b"x"]), Err(AppendError::Failed)));
    }
}

#[test]
fn a_reader_goes_on_with_the_file_it_has() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    let outside: Arc<dyn trifid_base_log::Disk> = Arc::new(disk.clone());
    let peek = trifid_base_log::Peek::open(&outside, LOG).unwrap();
    every_third(&opened, Position::ZERO).unwrap();
    let mut content = crate::support::Content::default();
    peek.read(Position::ZERO, &mut content).unwrap();
    assert_eq!(content.frames.len(), 12);
}

#[test]
fn a_file_that_is_reused_while_it_is_looked_at_is_as_good_as_gone() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    write(&mut opened, 12);
    let outside: Arc<dyn trifid_base_log::Disk> = Arc::new(disk.clone());
    let peek = trifid_base_log::Peek::open(&outside, LOG).unwrap();
    opened.log.truncate_front(Position::new(12)).unwrap();
    write(&mut opened, 12);
    match peek.read(Position::ZERO, &mut ()) {
        Err(trifid_base_log::OpenError::Io { source, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn logs_are_listed_and_removed() {
    let disk = SimDisk::new();
    let mut opened = open(&disk);
    assert_eq!(opened.dir.list().unwrap(), [LOG]);
    let (other, _) =
        opened.dir.recover_with(LogId(7), LogOptions::default(), ReplayFrom::Start, &mut ()).unwrap();
    let other = other.start(Arc::new(Heard::default()));
    write(&mut opened, 12);
    let waiting = opened.log.append(&[b"waits"]).unwrap();
    let _ = other.append(&[b"other"]).unwrap();
    assert_eq!(opened.dir.list().unwrap(), [LogId(7), LOG]);
    opened.dir.remove(LOG).unwrap();
    assert_eq!(waiting.decided(), Some(Err(CommitError::Removed)));
    assert!(matches!(opened.log.append(&[b"x"]), Err(AppendError::Closed)));
    assert!(opened.log.read_batches(Position::ZERO, 1).is_err());
    assert_eq!(opened.dir.list().unwrap(), [LogId(7)]);
    assert!(matches!(opened.dir.remove(LOG), Err(RemoveError::NoLog(LOG))));
    opened.stepper.step();
    assert_eq!(other.published(), Position::new(1));
    // The number can be used again.
    let (again, recovery) =
        opened.dir.recover_with(LOG, LogOptions::default(), ReplayFrom::Start, &mut ()).unwrap();
    assert_eq!(recovery.next, Position::ZERO);
    let _ = again.start(Arc::new(())).append(&[b"new"]).unwrap();
    opened.stepper.step();
    for seed in 0..20 {
        assert_eq!(open(&disk.power_cut(seed)).content.payloads(), [b"new"]);
    }
}

#[test]
fn a_removal_that_is_cut_short_happened_or_did_not() {
    let (mut happened, mut did_not) = (0, 0);
    for (cut, seed) in (0..18).flat_map(|cut| (0..4).map(move |seed| (cut, seed))) {
        let disk = SimDisk::new();
        let mut opened = open(&disk);
        write(&mut opened, 12);
        disk.cut_at(disk.ops() + cut);
        let removed = opened.dir.remove(LOG);
        let after = disk.power_cut(seed);
        let opened = open(&after);
        match opened.content.frames.len() {
            0 => happened += 1,
            12 if removed.is_err() => did_not += 1,
            other => panic!("cut {cut}: {other} frames, {removed:?}"),
        }
    }
    assert!(happened > 10 && did_not > 0, "{happened} {did_not}");
}

#[test]
fn a_roll_by_hand_between_write_and_flush_is_harmless() {
    let disk = SimDisk::new();
    let heard = Arc::new(Heard::default());
    let mut opened = stream(&disk, options(6_000, 1), LogOptions::default(), heard).unwrap();
    opened.log.roll().unwrap();
    assert_eq!(opened.log.stats().segments, 1, "nothing to seal");
    write(&mut opened, 1);
    opened.log.roll().unwrap();
    opened.log.roll().unwrap();
    assert_eq!(opened.log.stats().segments, 2);
    write(&mut opened, 1);
    assert_eq!(positions(&opened), [0, 2]);
}
