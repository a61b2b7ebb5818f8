//! Damage: every cut and every flipped byte gives a valid prefix or a refusal, never other data, and never
//! less than what is vouched for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use trifid_base_log::{Defect, OpenError, limits::SEGMENT_HEADER_BYTES};
use trifid_base_sim::SimDisk;

use crate::support::{Stepped, open_from, options};

fn open(disk: &SimDisk) -> Result<Stepped, OpenError> {
    open_from(Arc::new(disk.clone()), options(6_000, 1), 0)
}

/// A log of twelve payloads over some segments. The last is not vouched for when `closed` is false.
fn written(closed: bool) -> (SimDisk, Vec<Vec<u8>>) {
    let disk = SimDisk::new();
    let mut opened = open(&disk).unwrap();
    let payloads: Vec<Vec<u8>> = (0..12u8).map(|n| vec![n; 37 * usize::from(n) + 400]).collect();
    for payload in &payloads {
        opened.write(payload);
    }
    if closed {
        opened.stepper.idle();
    }
    drop(opened);
    (disk, payloads)
}

fn segments(disk: &SimDisk) -> Vec<PathBuf> {
    disk.files().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "seg")).collect()
}

/// Opens after `damage`: a refusal, or so many payloads of those written.
fn opened_after(closed: bool, damage: impl FnOnce(&SimDisk, &[PathBuf])) -> Result<usize, OpenError> {
    let (disk, payloads) = written(closed);
    damage(&disk, &segments(&disk));
    let opened = open(&disk)?;
    let found = opened.content.payloads();
    assert_eq!(found, payloads[..found.len()], "other data");
    Ok(found.len())
}

fn change(disk: &SimDisk, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut content = disk.content(path).unwrap();
    change(&mut content);
    disk.plant(path, content);
}

/// The byte at which the nth frame of a file begins.
fn frame_offset(content: &[u8], nth: usize) -> usize {
    let mut offset = SEGMENT_HEADER_BYTES as usize;
    for _ in 0..nth {
        let len = u32::from_le_bytes(content[offset + 44..offset + 48].try_into().unwrap()) as usize;
        offset += 64 + len.next_multiple_of(8);
    }
    offset
}

#[test]
fn the_undamaged_log_is_whole() {
    assert_eq!(opened_after(true, |_, files| assert!(files.len() > 2)).unwrap(), 12);
    assert_eq!(opened_after(false, |_, _| {}).unwrap(), 12);
}

#[test]
fn damage_below_the_mark_is_refused_with_file_and_offset() {
    let mut planted = None;
    let error = opened_after(true, |disk, files| {
        change(disk, &files[1], |content| {
            let offset = frame_offset(content, 1);
            content[offset + 70] ^= 1;
            planted = Some((files[1].clone(), offset as u64));
        });
    });
    match error.unwrap_err() {
        OpenError::Damaged { file, offset, defect, position, mark } => {
            assert_eq!(Some((file, offset)), planted);
            assert_eq!(defect, Defect::PayloadChecksum);
            assert!(position < mark);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_damaged_last_flush_is_cut_off_unless_a_marker_vouches_for_it() {
    let damage_last = |disk: &SimDisk, files: &[PathBuf]| {
        let last = files.last().unwrap();
        change(disk, last, |content| {
            let mut nth = 0;
            while content.get(frame_offset(content, nth + 1)).is_some_and(|_| {
                let next = frame_offset(content, nth + 1);
                content[next + 5] == 0
            }) {
                nth += 1;
            }
            let offset = frame_offset(content, nth);
            content[offset + 64] ^= 1;
        });
    };
    assert_eq!(opened_after(false, damage_last).unwrap(), 11);
    assert!(matches!(opened_after(true, damage_last), Err(OpenError::Damaged { .. })));
}

#[test]
fn a_damaged_marker_costs_nothing() {
    let damage = |disk: &SimDisk, files: &[PathBuf]| {
        change(disk, files.last().unwrap(), |content| {
            let at = content.len() - 30;
            content[at] ^= 1;
        });
    };
    assert_eq!(opened_after(true, damage).unwrap(), 12);
}

#[test]
fn a_missing_segment_is_refused() {
    for missing in [1, 2] {
        let error = opened_after(true, |disk, files| {
            use trifid_base_log::Disk;
            disk.remove(&files[missing]).unwrap();
        });
        match error.unwrap_err() {
            OpenError::Damaged { defect, .. } => assert_eq!(defect, Defect::Gap),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_segment_of_another_log_or_place_is_refused() {
    let error = opened_after(true, |disk, files| disk.plant(&files[1], disk.content(&files[2]).unwrap()));
    assert!(matches!(error.unwrap_err(), OpenError::Damaged { defect: Defect::Foreign, offset: 0, .. }));
}

#[test]
fn frames_of_an_earlier_life_of_the_disk_do_not_pass() {
    // The whole of a dead segment's frames lies behind the end, as if its blocks had been given to this file.
    let frames = opened_after(false, |disk, files| {
        let dead = disk.content(&files[0]).unwrap();
        change(disk, files.last().unwrap(), |content| {
            content.extend_from_slice(&dead[SEGMENT_HEADER_BYTES as usize..]);
        });
    });
    assert_eq!(frames.unwrap(), 12);
}

#[test]
fn a_payload_that_is_itself_a_log_does_not_confuse_the_search() {
    let (disk, _) = written(true);
    let copy = disk.content(&segments(&disk)[1]).unwrap();
    let disk = SimDisk::new();
    let mut opened = open(&disk).unwrap();
    opened.write(b"first");
    opened.write(&copy);
    drop(opened);
    change(&disk, &segments(&disk)[0], |content| {
        let offset = frame_offset(content, 1);
        content[offset + 20] ^= 1;
    });
    assert_eq!(open(&disk).unwrap().content.payloads(), [b"first"]);
}

#[test]
fn a_newer_format_is_named() {
    let error = opened_after(true, |disk, files| {
        change(disk, &files[0], |content| {
            content[8] = 2;
            let crc = crc32c(&content[..60]);
            content[60..64].copy_from_slice(&crc.to_le_bytes());
        });
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("segment version 2"), "{text}");
}

/// Bit by bit, so that the test does not share the code it tests.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_flipped_byte_costs_nothing_acknowledged(closed: bool, file: prop::sample::Index, at: prop::sample::Index, flip in 1..=255u8) {
        let found = opened_after(closed, |disk, files| {
            change(disk, &files[file.index(files.len())], |content| {
                let at = at.index(content.len());
                content[at] ^= flip;
            });
        });
        // Without a marker the last flush is vouched for by nothing.
        let least = if closed { 12 } else { 11 };
        match found {
            Ok(found) => prop_assert!(found >= least, "{found}"),
            Err(OpenError::Damaged { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_cut_file_gives_a_prefix_or_a_refusal(closed: bool, file: prop::sample::Index, at: prop::sample::Index) {
        let mut last = false;
        let found = opened_after(closed, |disk, files| {
            let path = &files[file.index(files.len())];
            last = Some(path) == files.last();
            change(disk, path, |content| content.truncate(at.index(content.len())));
        });
        // A file that merely ends early says nothing about what it lost, unless another follows.
        let refused = matches!(found, Err(OpenError::Damaged { .. } | OpenError::Truncated { .. }));
        prop_assert!(last || refused);
    }

    #[test]
    fn garbage_at_the_end_is_cut_off(closed: bool, garbage in prop::collection::vec(any::<u8>(), 1..300)) {
        let found = opened_after(closed, |disk, files| {
            change(disk, files.last().unwrap(), |content| content.extend_from_slice(&garbage));
        });
        prop_assert_eq!(found.unwrap(), 12);
    }
}
