//! One shard: an ordered run of batches, published under one short lock and read without copying.
//!
//! ```text
//!                    ┌──────────────────── lock ───────────────────┐
//!  publish ──────────┤ producers, offsets ──> pending ──┐           │
//!     │              │        (memory: straight)        ▼           │
//!     └─> log ──> committer: durable(range) ───────> ring ──> waiters woken ──> fetch, subscribe
//!         (same order, appended under the lock)         └ older: pages of the log
//! ```
//!
//! - The order of calls is the order of offsets, and of the log: the append happens under the shard's lock.
//! - Readers see a batch when it counts: at once in memory, after the write or the flush of a durable stream.
//!   They never see what may yet be refused.
//! - The full disk takes back the pending batches and what their producers are known for; their offsets stay
//!   empty.
//!
//! The lock is held for some hundred nanoseconds: no input, no output, no waking. Cost of an idle shard:
//! under 500 bytes beside its log.

mod commit;
mod fetch;
mod publish;
pub(crate) mod readers;
pub(crate) mod ring;
mod upkeep;
pub(crate) mod waiters;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use trifid_stream_model::spec::StreamSpec;

use crate::compaction::Compaction;
use crate::limits::Limits;
use crate::producers::Producers;
use crate::room::Room;
use crate::stats::{Rejected, ShardStats};
use crate::store::ShardLog;
use readers::Readers;
use ring::{Ring, Slot};
use waiters::{Waiters, wake};

pub use fetch::{Beyond, Fetched, Tail};
pub use publish::Published;
pub use ring::{Entries, Entry};
pub(crate) use upkeep::{Stored, Turn};

/// One shard of a stream.
pub struct Shard {
    pub(crate) core: Arc<Core>,
    /// None: the stream lives in memory.
    pub(crate) log: Option<ShardLog>,
    compaction: Mutex<Option<Box<Compaction>>>,
}

/// What the handles of a shard and its log's committer share.
pub(crate) struct Core {
    pub(crate) room: Arc<Room>,
    /// `tenant/stream/shard`, to tell of it.
    pub(crate) label: String,
    pub(crate) state: Mutex<State>,
    /// The first offset. Changes under the lock.
    start: AtomicU64,
    /// The readable end. Changes under the lock.
    end: AtomicU64,
    epoch: AtomicU32,
    max_batch_bytes: AtomicU32,
    /// Read or written lately: keeps its ring.
    warm: AtomicBool,
    /// The ring is the stream: it is never given up.
    is_memory: bool,
    compactions: AtomicU64,
}

/// What the lock protects.
pub(crate) struct State {
    gate: Gate,
    /// The offset that the next record gets.
    next: u64,
    pub(crate) ring: Ring,
    /// Appended to the log, and not to be read yet.
    pending: VecDeque<Slot>,
    pub(crate) producers: Producers,
    waiters: Waiters,
    pub(crate) readers: Readers,
    /// Bytes that were published, pending ones too.
    taken: u64,
    /// Bytes that readers may see.
    pub(crate) total: u64,
    keep: Keep,
    figures: Figures,
    upkeep: upkeep::Marks,
}

/// Whether anything is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    Deleted,
}

/// How much a shard keeps in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Keep {
    bytes: usize,
    ms: Option<u64>,
}

/// Counted under the lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    batches_in: u64,
    records_in: u64,
    bytes_in: u64,
    batches_out: u64,
    records_out: u64,
    bytes_out: u64,
    pages: u64,
    duplicates: u64,
    dropped: u64,
    trimmed: u64,
    rejected: Rejected,
}

/// What a shard begins with.
pub(crate) struct Beginning {
    pub(crate) label: String,
    pub(crate) start: u64,
    pub(crate) next: u64,
    pub(crate) epoch: u32,
    pub(crate) producers: Producers,
    pub(crate) stored: Stored,
}

impl Core {
    pub(crate) fn new(room: Arc<Room>, spec: &StreamSpec, beginning: Beginning) -> Arc<Self> {
        let Beginning { label, start, next, epoch, producers, stored } = beginning;
        let keep = Keep::of(spec, &room.limits);
        Arc::new(Core {
            room,
            label,
            state: Mutex::new(State {
                gate: Gate::Open,
                next,
                ring: Ring::starting_at(next),
                pending: VecDeque::new(),
                producers,
                waiters: Waiters::default(),
                readers: Readers::default(),
                taken: 0,
                total: 0,
                keep,
                figures: Figures::default(),
                upkeep: upkeep::Marks::new(stored),
            }),
            start: AtomicU64::new(start),
            end: AtomicU64::new(next),
            epoch: AtomicU32::new(epoch),
            max_batch_bytes: AtomicU32::new(spec.max_batch_bytes),
            warm: AtomicBool::new(false),
            is_memory: !spec.durability.is_durable(),
            compactions: AtomicU64::new(0),
        })
    }

    pub(crate) fn start(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }

    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Takes what a changed specification says.
    pub(crate) fn respecify(&self, spec: &StreamSpec) {
        self.max_batch_bytes.store(spec.max_batch_bytes, Ordering::Relaxed);
        self.state.lock().keep = Keep::of(spec, &self.room.limits);
    }

    /// The stream is gone: nothing is taken or given any more, and who waits is told.
    pub(crate) fn close(&self) {
        let wakers = {
            let mut state = self.state.lock();
            state.gate = Gate::Deleted;
            state.pending.clear();
            self.give_back(state.ring.bytes());
            let end = self.end();
            state.ring.clear(end);
            state.producers = Producers::new(1, true);
            state.waiters.take(u64::MAX)
        };
        wake(wakers);
    }

    /// Bytes of the ring are free.
    fn give_back(&self, bytes: usize) {
        self.pool().give(bytes);
    }

    fn pool(&self) -> &crate::room::Pool {
        if self.is_memory { &self.room.memory } else { &self.room.tails }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let bytes = self.state.get_mut().ring.bytes();
        self.give_back(bytes);
    }
}

impl Keep {
    fn of(spec: &StreamSpec, limits: &Limits) -> Self {
        let bytes = match spec.durability.is_durable() {
            true => limits.tail_bytes_per_shard,
            false => {
                let wanted = spec.retention_bytes.and_then(|bytes| usize::try_from(bytes).ok());
                wanted.unwrap_or(usize::MAX).min(limits.memory_stream_bytes_max)
            }
        };
        Keep { bytes, ms: spec.retention_ms }
    }
}

impl Shard {
    pub(crate) fn new(core: Arc<Core>, log: Option<ShardLog>) -> Arc<Self> {
        Arc::new(Shard { core, log, compaction: Mutex::new(None) })
    }

    /// The first offset that is there.
    pub fn start_offset(&self) -> u64 {
        self.core.start()
    }

    /// The readable end, Kafka's high watermark: the offset that the next readable record gets.
    pub fn end_offset(&self) -> u64 {
        self.core.end()
    }

    /// The shard's epoch: raised when it is opened.
    pub fn epoch(&self) -> u32 {
        match &self.log {
            Some(log) => log.epoch(),
            None => self.core.epoch.load(Ordering::Relaxed),
        }
    }

    /// Whether the stream was deleted.
    pub fn is_deleted(&self) -> bool {
        self.core.state.lock().gate == Gate::Deleted
    }

    /// Whether fetches may read the disk.
    pub fn is_durable(&self) -> bool {
        self.log.is_some()
    }

    /// Where it stands and what it has done.
    pub fn stats(&self) -> ShardStats {
        let log = self.log.as_ref().map(ShardLog::stats).unwrap_or_default();
        let state = self.core.state.lock();
        let figures = state.figures;
        let end = self.core.end();
        ShardStats {
            start: self.core.start(),
            end,
            next: state.next,
            batches_in: figures.batches_in,
            records_in: figures.records_in,
            bytes_in: figures.bytes_in,
            batches_out: figures.batches_out,
            records_out: figures.records_out,
            bytes_out: figures.bytes_out,
            pages: figures.pages,
            duplicates: figures.duplicates,
            dropped: figures.dropped,
            trimmed: figures.trimmed,
            rejected: figures.rejected,
            subscribers: state.readers.len(),
            lag_max: state.readers.lag_max(end),
            waiters: state.waiters.len(),
            producers: state.producers.len(),
            tail_batches: state.ring.len(),
            tail_bytes: state.ring.bytes(),
            pending_batches: state.pending.len(),
            commits: log.batches,
            flushes: log.flushes,
            log_bytes: self.log.as_ref().map_or(0, ShardLog::bytes),
            log_written: log.bytes,
            segments: log.segments,
            compactions: self.core.compactions.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
