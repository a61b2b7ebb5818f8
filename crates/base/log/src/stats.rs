//! Counters of a log, for health and metrics. Only the committer adds to most of them, so they cost no
//! contention.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits::BATCH_CLASSES;
use crate::position::Position;

/// What a log has done since it was opened, and where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The first record that the log still has.
    pub first: Position,
    /// Everything below is flushed.
    pub durable: Position,
    /// Everything below is acknowledged and can be read.
    pub published: Position,
    /// The position of the next append.
    pub next: Position,
    /// Segment files.
    pub segments: usize,
    /// Bytes that wait for the disk.
    pub inflight_bytes: usize,
    /// Batches acknowledged.
    pub batches: u64,
    /// Frames acknowledged.
    pub frames: u64,
    /// Bytes acknowledged.
    pub bytes: u64,
    /// Batches by their frames: class `n` counts those of `2^n` frames up to the next class, the last class all
    /// that are larger.
    pub batch_classes: [u64; BATCH_CLASSES],
    /// Flushes of the log's files.
    pub flushes: u64,
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
    pub(crate) batch_classes: [AtomicU64; BATCH_CLASSES],
    pub(crate) disk_nanos: AtomicU64,
    pub(crate) refused_overload: AtomicU64,
    pub(crate) refused_space: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    /// A batch was acknowledged.
    pub(crate) fn batch(&self, frames: usize, bytes: usize) {
        let class = (frames.max(1).ilog2() as usize).min(BATCH_CLASSES - 1);
        Counters::add(&self.batches, 1);
        Counters::add(&self.frames, frames as u64);
        Counters::add(&self.bytes, bytes as u64);
        Counters::add(&self.batch_classes[class], 1);
    }

    pub(crate) fn read(&self) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            batches: load(&self.batches),
            frames: load(&self.frames),
            bytes: load(&self.bytes),
            batch_classes: self.batch_classes.each_ref().map(load),
            disk_time: Duration::from_nanos(load(&self.disk_nanos)),
            refused_overload: load(&self.refused_overload),
            refused_space: load(&self.refused_space),
            ..Stats::default()
        }
    }
}

/// What the committer of a data directory has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirStats {
    /// Rounds in which something was written.
    pub waves: u64,
    /// Logs written in these rounds, together.
    pub logs_written: u64,
    /// Flushes that a round waited for, of all logs.
    pub flushes_awaited: u64,
    /// Flushes that nobody waited for.
    pub flushes_periodic: u64,
}

#[derive(Debug, Default)]
pub(crate) struct DirCounters {
    pub(crate) waves: AtomicU64,
    pub(crate) logs_written: AtomicU64,
    pub(crate) flushes_awaited: AtomicU64,
    pub(crate) flushes_periodic: AtomicU64,
}

impl DirCounters {
    pub(crate) fn read(&self) -> DirStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DirStats {
            waves: load(&self.waves),
            logs_written: load(&self.logs_written),
            flushes_awaited: load(&self.flushes_awaited),
            flushes_periodic: load(&self.flushes_periodic),
        }
    }
}
