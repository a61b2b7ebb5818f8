//! The sparse index of a segment: where about a position, or a time, lies in the file.
//!
//! One entry stands for [`INDEX_STRIDE_BYTES`] of frames, so a reader follows at most so many bytes before the
//! frame it wants, and a segment of 64 MiB costs 48 KiB. The index is derived: whatever it says is checked
//! against the frames themselves, and a wrong one costs a scan, never a wrong answer.

use crate::limits::{INDEX_STRIDE_BYTES, SEGMENT_HEADER_BYTES};
use crate::position::Position;
use crate::record_batch::NO_STAMP;

/// A frame of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    pub(crate) offset: u64,
    /// The highest stamp of any frame of the segment before the next entry's.
    pub(crate) stamp: i64,
}

/// Where a segment's frames lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) entries: Vec<Entry>,
    /// The position after the last frame.
    pub(crate) end: Position,
    /// Where the next frame begins.
    pub(crate) end_offset: u64,
    /// The highest stamp of any frame.
    pub(crate) stamp: i64,
}

impl Index {
    /// The index of a segment without frames.
    pub(crate) fn new(base: Position) -> Self {
        Index { entries: Vec::new(), end: base, end_offset: SEGMENT_HEADER_BYTES, stamp: NO_STAMP }
    }

    /// Adds the frame that follows; a marker is a frame without records.
    pub(crate) fn add(&mut self, records: u32, frame_len: usize, stamp: i64) {
        self.stamp = self.stamp.max(stamp);
        match self.entries.last_mut() {
            Some(last) if records == 0 || self.end_offset < last.offset + INDEX_STRIDE_BYTES => {
                last.stamp = self.stamp;
            }
            None if records == 0 => {}
            _ => {
                let (position, offset) = (self.end, self.end_offset);
                self.entries.push(Entry { position, offset, stamp: self.stamp });
            }
        }
        self.end = self.end.advance(records);
        self.end_offset += frame_len as u64;
    }

    /// A frame at or before the one that holds `position`: its position and its offset.
    pub(crate) fn locate(&self, base: Position, position: Position) -> (Position, u64) {
        let after = self.entries.partition_point(|entry| entry.position <= position);
        match after.checked_sub(1).and_then(|at| self.entries.get(at)) {
            Some(entry) => (entry.position, entry.offset),
            None => (base, SEGMENT_HEADER_BYTES),
        }
    }

    /// A frame at or before the first one whose stamp is at least `stamp`; none if there is no such frame.
    pub(crate) fn locate_stamp(&self, stamp: i64) -> Option<(Position, u64)> {
        let at = self.entries.partition_point(|entry| entry.stamp < stamp);
        self.entries.get(at).map(|entry| (entry.position, entry.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 1 KiB and two records, stamped 0, 10, 20, and so on.
    fn index(frames: i64) -> Index {
        let mut index = Index::new(Position::new(100));
        (0..frames).for_each(|n| index.add(2, 1024, n * 10));
        index
    }

    #[test]
    fn one_entry_stands_for_a_stride() {
        let index = index(100);
        assert_eq!(index.entries.len(), 4);
        let second = Entry { position: Position::new(164), offset: 4096 + (32 << 10), stamp: 630 };
        assert_eq!(index.entries[1], second);
        assert_eq!((index.end, index.end_offset, index.stamp), (Position::new(300), 4096 + 102_400, 990));
    }

    #[test]
    fn a_position_lies_at_or_after_its_entry() {
        let index = index(100);
        let locate = |position| index.locate(Position::new(100), Position::new(position)).0.get();
        assert_eq!([100, 163, 164, 165, 299].map(locate), [100, 100, 164, 164, 292]);
    }

    #[test]
    fn the_first_frame_of_a_time_lies_at_or_after_its_entry() {
        let locate = |index: &Index, stamp| index.locate_stamp(stamp).map(|(position, _)| position.get());
        let even = index(100);
        assert_eq!(
            [-5, 310, 311, 990, 991].map(|at| locate(&even, at)),
            [Some(100), Some(100), Some(164), Some(292), None]
        );
        // A late one: what was stamped higher before it is found first.
        let mut uneven = index(40);
        uneven.add(1, 1024, 5);
        assert_eq!(locate(&uneven, 390), Some(164));
        assert_eq!(locate(&Index::new(Position::ZERO), 0), None);
    }

    #[test]
    fn a_marker_moves_the_end_only() {
        let mut index = Index::new(Position::ZERO);
        index.add(0, 64, NO_STAMP);
        assert_eq!((index.entries.len(), index.end_offset), (0, 4096 + 64));
        index.add(1, 72, 3);
        index.add(0, 64, NO_STAMP);
        assert_eq!((index.entries.len(), index.end, index.stamp), (1, Position::new(1), 3));
    }
}
