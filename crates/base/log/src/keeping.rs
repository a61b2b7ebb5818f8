//! What a log keeps of its past: its segments, and dropping them by position, age and size.
//!
//! Segments go oldest first, one by one, and the folder is flushed after each: were they lost in another order,
//! a power cut would leave a gap. The segment that is being written never goes.

use std::io;
use std::sync::Arc;

use crate::error::{Chain, Failure, ReadError};
use crate::index_file;
use crate::log::{Log, Shared};
use crate::position::Position;
use crate::record_batch::NO_STAMP;
use crate::recycle;
use crate::segment::{Segment, Summary};

/// A segment as its log knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The position of its first record.
    pub base: Position,
    /// The position after its last record; of the one being written, of its last published record.
    pub end: Position,
    /// Bytes of its header and its frames.
    pub bytes: u64,
    /// The highest timestamp of its record batches, in milliseconds, if there is one.
    pub stamp: Option<i64>,
    /// Whether it is written no more.
    pub sealed: bool,
}

/// What a log has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// How many segments.
    pub segments: usize,
    /// How many bytes they held.
    pub bytes: u64,
    /// The first record that the log still has.
    pub first: Position,
}

impl Log {
    /// The log's segments, oldest first. What it does not know of one it reads.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>, ReadError> {
        let files = &self.shared.files;
        let listed = files.segments.lock().clone();
        let mut told = Vec::with_capacity(listed.len());
        for (at, segment) in listed.iter().enumerate() {
            let next = listed.get(at + 1).map(|next| next.base);
            let summary = match files.summary(segment) {
                Ok(summary) => summary,
                // It was dropped meanwhile.
                Err(_) if !files.has(segment) => continue,
                Err(error) => return Err(error),
            };
            told.push(SegmentInfo {
                base: segment.base,
                end: next.unwrap_or_else(|| self.published()),
                bytes: summary.bytes,
                stamp: (summary.stamp != NO_STAMP).then_some(summary.stamp),
                sealed: next.is_some(),
            });
        }
        Ok(told)
    }

    /// Seals the segment that is being written, so that it can be dropped or compacted, unless it holds no record.
    /// Waits for the disk. Where no new segment can be created, the old one stays as it is.
    pub fn roll(&self) -> io::Result<()> {
        self.shared.roll()
    }

    /// Removes the segments that hold only records below `position`, never the one being written; answers how
    /// many went. Waits for the disk. A segment that cannot be removed stays, and is tried again by the next
    /// call.
    pub fn truncate_front(&self, position: Position) -> io::Result<usize> {
        let _one_at_a_time = self.shared.housekeeping.lock();
        let dropped = self.shared.drop_while(|_, next| next <= position)?;
        Ok(dropped.segments)
    }

    /// Drops, oldest first, the segments whose record batches are all older than `age_ms_max` (a segment
    /// without a timestamp has no age and stays), and then those without which the log still holds at least
    /// `bytes_max`. Waits for the disk.
    ///
    /// When everything that the log holds is too old, the segment being written is sealed and dropped too.
    pub fn apply_retention(
        &self,
        now_ms: i64,
        age_ms_max: Option<u64>,
        bytes_max: Option<u64>,
    ) -> io::Result<Dropped> {
        let oldest = age_ms_max.map(|age| now_ms.saturating_sub_unsigned(age));
        let expired = |summary: Summary| {
            oldest.is_some_and(|oldest| summary.stamp != NO_STAMP && summary.stamp < oldest)
        };
        let shared = &self.shared;
        let _one_at_a_time = shared.housekeeping.lock();
        if shared.newest().is_some_and(|newest| newest.summary().is_some_and(expired)) {
            shared.roll()?;
        }
        let mut total = self.bytes();
        shared.drop_while(|segment, _| {
            let Some(summary) = shared.known(segment) else { return false };
            let spare = bytes_max.is_some_and(|max| total.saturating_sub(summary.bytes) >= max);
            let goes = spare || expired(summary);
            total -= if goes { summary.bytes } else { 0 };
            goes
        })
    }

    /// Bytes of the log's segments.
    pub fn bytes(&self) -> u64 {
        let listed = self.shared.files.segments.lock().clone();
        listed.iter().filter_map(|segment| self.shared.known(segment)).map(|summary| summary.bytes).sum()
    }
}

impl Shared {
    fn roll(&self) -> io::Result<()> {
        let rolled = self.writer.lock().roll();
        rolled.map_err(|failure| self.give_up(failure))
    }

    /// A flush failed: the process ends.
    pub(crate) fn give_up(&self, failure: Failure) -> io::Error {
        let kind = failure.source.kind();
        (self.on_failure)(failure);
        kind.into()
    }

    fn newest(&self) -> Option<Arc<Segment>> {
        self.files.segments.lock().last().cloned()
    }

    /// What is said of a segment; nothing if it cannot be read.
    fn known(&self, segment: &Segment) -> Option<Summary> {
        match self.files.summary(segment) {
            Ok(summary) => Some(summary),
            Err(error) => {
                if self.files.has(segment) {
                    tracing::warn!(log = %self.id, error = %Chain(&error), "a segment of unknown size and age is kept");
                }
                None
            }
        }
    }

    /// Drops segments from the oldest on while `goes` says so of a segment and the base of the next one.
    fn drop_while(&self, mut goes: impl FnMut(&Segment, Position) -> bool) -> io::Result<Dropped> {
        let mut dropped = Dropped::default();
        loop {
            let (oldest, next) = match self.files.segments.lock().as_slice() {
                [oldest, next, ..] => (oldest.clone(), Some(next.base)),
                [only] => (only.clone(), None),
                [] => return Ok(dropped),
            };
            dropped.first = oldest.base;
            if next.is_none_or(|next| !goes(&oldest, next)) {
                return Ok(dropped);
            }
            dropped.bytes += self.drop_segment(&oldest)?;
            dropped.segments += 1;
        }
    }

    /// Readers are told first: who finds the file gone can tell that from damage.
    fn drop_segment(&self, oldest: &Arc<Segment>) -> io::Result<u64> {
        let home = &self.files.home;
        self.files.segments.lock().remove(0);
        home.cache.forget(oldest.serial);
        if home.settings.store_indexes {
            recycle::remove(&*home.disk, &index_file::path(oldest));
        }
        let bytes = oldest.summary().map_or(0, |summary| summary.bytes);
        // A compacted segment is too short to be worth writing over.
        match home.pool.give_up(&*home.disk, oldest, bytes >= home.segment_bytes() / 2) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.files.segments.lock().insert(0, oldest.clone());
                return Err(error);
            }
            _ => {}
        }
        let synced = home.disk.sync_dir(&home.dir);
        synced.map_err(|error| self.give_up(Failure::new("flushing", &home.dir, error)))?;
        Ok(bytes)
    }
}
