//! What a cache counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counted without a lock.
#[derive(Debug, Default)]
pub(super) struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    pub(super) puts: AtomicU64,
    pub(super) deletes: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) conflicts: AtomicU64,
    pub(super) resyncs: AtomicU64,
}

impl Counters {
    pub(super) fn count_read(&self, hit: bool) {
        let counter = if hit { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> CacheStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            hits: of(&self.hits),
            misses: of(&self.misses),
            puts: of(&self.puts),
            deletes: of(&self.deletes),
            evicted: of(&self.evicted),
            expired: of(&self.expired),
            conflicts: of(&self.conflicts),
            resyncs: of(&self.resyncs),
            ..CacheStats::default()
        }
    }
}

/// Where a cache stands and what it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Entries in the table, those among them whose life has ended and that the next ticks take out.
    pub entries: usize,
    /// What they cost.
    pub bytes: usize,
    /// What they may cost.
    pub budget_bytes: u64,
    /// The newest revision.
    pub revision: u64,
    /// Reads that found something.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Writes.
    pub puts: u64,
    /// Removals.
    pub deletes: u64,
    /// Entries that gave way to others.
    pub evicted: u64,
    /// Entries whose life ended.
    pub expired: u64,
    /// Writes and removals that did not find what they expected.
    pub conflicts: u64,
    /// Watches there are.
    pub watches: usize,
    /// How often a watch was too slow and was told everything anew.
    pub resyncs: u64,
    /// Writes that wait for the disk.
    pub pending: usize,
    /// Writes that were taken and then refused by the disk.
    pub failed: u64,
}
