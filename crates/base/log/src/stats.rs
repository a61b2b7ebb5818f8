//! Counters of a log, for health and metrics. Only the committer adds to most of them, so they cost no
//! contention.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::position::Position;

/// What a log has done since it was opened, and where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The first record that the log still has.
    pub first: Position,
    /// Everything below is durable.
    pub durable: Position,
    /// The position of the next append.
    pub next: Position,
    /// Segment files.
    pub segments: usize,
    /// Bytes that wait for the disk.
    pub inflight_bytes: usize,
    /// Batches made durable.
    pub batches: u64,
    /// Frames made durable.
    pub frames: u64,
    /// Bytes made durable.
    pub bytes: u64,
    /// Time spent in writes and flushes.
    pub disk_time: Duration,
    /// Appends refused because too much waited.
    pub refused_overload: u64,
    /// Records, and later appends, refused because the disk was full.
    pub refused_space: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) batches: AtomicU64,
    pub(crate) frames: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) disk_nanos: AtomicU64,
    pub(crate) refused_overload: AtomicU64,
    pub(crate) refused_space: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            batches: load(&self.batches),
            frames: load(&self.frames),
            bytes: load(&self.bytes),
            disk_time: Duration::from_nanos(load(&self.disk_nanos)),
            refused_overload: load(&self.refused_overload),
            refused_space: load(&self.refused_space),
            ..Stats::default()
        }
    }
}
