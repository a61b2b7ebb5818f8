//! Figures for metrics and for looking, read without stopping anybody for long.

use trifid_base_log::DirStats;
use trifid_stream_model::names::{StreamName, Tenant};

/// Publishes refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// No memory, or too much waits for the disk.
    pub overloaded: u64,
    /// A subscriber that may lose nothing is not done.
    pub held: u64,
    /// A batch larger than the stream takes.
    pub too_large: u64,
    /// A batch of an idempotent producer is missing.
    pub out_of_sequence: u64,
    /// A fenced producer.
    pub fenced: u64,
    /// A forgotten producer.
    pub unknown_producer: u64,
    /// The disk is full.
    pub no_space: u64,
    /// The broker was shutting down.
    pub shutting_down: u64,
    /// The stream was deleted, or the disk failed.
    pub gone: u64,
}

/// Where a shard stands and what it has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// The first offset.
    pub start: u64,
    /// The readable end.
    pub end: u64,
    /// The offset that the next record gets.
    pub next: u64,
    /// Batches published.
    pub batches_in: u64,
    /// Records published.
    pub records_in: u64,
    /// Bytes published.
    pub bytes_in: u64,
    /// Batches handed to readers.
    pub batches_out: u64,
    /// Offsets handed to readers.
    pub records_out: u64,
    /// Bytes handed to readers.
    pub bytes_out: u64,
    /// Pages read from the log.
    pub pages: u64,
    /// Batches that an idempotent producer sent again.
    pub duplicates: u64,
    /// Offsets that subscribers were told they lost, by their policy.
    pub dropped: u64,
    /// Offsets that were gone before a subscriber came to them.
    pub trimmed: u64,
    /// Publishes refused.
    pub rejected: Rejected,
    /// Subscribers.
    pub subscribers: usize,
    /// Records that the slowest subscriber is behind.
    pub lag_max: u64,
    /// Those who have waited for the shard to grow and may again.
    pub waiters: usize,
    /// Producers remembered.
    pub producers: usize,
    /// Batches in memory.
    pub tail_batches: usize,
    /// Bytes in memory.
    pub tail_bytes: usize,
    /// Batches that wait for the disk.
    pub pending_batches: usize,
    /// Waves of the committer in which the shard took part.
    pub commits: u64,
    /// Flushes of its log.
    pub flushes: u64,
    /// Bytes of its segments on the disk.
    pub log_bytes: u64,
    /// Bytes written to the log since it was opened.
    pub log_written: u64,
    /// Segments of the log.
    pub segments: usize,
    /// Compactions done.
    pub compactions: u64,
}

impl ShardStats {
    /// The figures of two shards together; offsets become counts of records.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        ShardStats {
            start: self.start + other.start,
            end: self.end + other.end,
            next: self.next + other.next,
            batches_in: self.batches_in + other.batches_in,
            records_in: self.records_in + other.records_in,
            bytes_in: self.bytes_in + other.bytes_in,
            batches_out: self.batches_out + other.batches_out,
            records_out: self.records_out + other.records_out,
            bytes_out: self.bytes_out + other.bytes_out,
            pages: self.pages + other.pages,
            duplicates: self.duplicates + other.duplicates,
            dropped: self.dropped + other.dropped,
            trimmed: self.trimmed + other.trimmed,
            rejected: self.rejected.plus(other.rejected),
            subscribers: self.subscribers + other.subscribers,
            lag_max: self.lag_max.max(other.lag_max),
            waiters: self.waiters + other.waiters,
            producers: self.producers + other.producers,
            tail_batches: self.tail_batches + other.tail_batches,
            tail_bytes: self.tail_bytes + other.tail_bytes,
            pending_batches: self.pending_batches + other.pending_batches,
            commits: self.commits + other.commits,
            flushes: self.flushes + other.flushes,
            log_bytes: self.log_bytes + other.log_bytes,
            log_written: self.log_written + other.log_written,
            segments: self.segments + other.segments,
            compactions: self.compactions + other.compactions,
        }
    }
}

impl Rejected {
    fn plus(self, other: Self) -> Self {
        Rejected {
            overloaded: self.overloaded + other.overloaded,
            held: self.held + other.held,
            too_large: self.too_large + other.too_large,
            out_of_sequence: self.out_of_sequence + other.out_of_sequence,
            fenced: self.fenced + other.fenced,
            unknown_producer: self.unknown_producer + other.unknown_producer,
            no_space: self.no_space + other.no_space,
            shutting_down: self.shutting_down + other.shutting_down,
            gone: self.gone + other.gone,
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        let Rejected { overloaded, held, too_large, out_of_sequence, fenced, .. } = *self;
        let Rejected { unknown_producer, no_space, shutting_down, gone, .. } = *self;
        let by_load = overloaded + held + too_large + no_space + shutting_down + gone;
        by_load + out_of_sequence + fenced + unknown_producer
    }
}

/// One stream's figures: the sum over its shards.
#[derive(Clone, Debug)]
pub struct StreamStats {
    /// Whose.
    pub tenant: Tenant,
    /// Which.
    pub name: StreamName,
    /// How many shards are summed up.
    pub shards: usize,
    /// The sum.
    pub sum: ShardStats,
}

/// What one tenant has in flight.
#[derive(Clone, Debug)]
pub struct TenantStats {
    /// Whose.
    pub tenant: Tenant,
    /// Bytes in flight.
    pub inflight_bytes: usize,
    /// Publishes that its share refused.
    pub refused: u64,
}

/// The broker's figures.
#[derive(Clone, Debug, Default)]
pub struct BrokerStats {
    /// Each stream.
    pub streams: Vec<StreamStats>,
    /// Each tenant.
    pub tenants: Vec<TenantStats>,
    /// Bytes in flight in the process.
    pub inflight_bytes: usize,
    /// Publishes that the process's limit refused.
    pub refused: u64,
    /// Bytes of recent batches of durable streams, and their bound.
    pub tail_bytes: (usize, usize),
    /// Bytes of memory streams, and their bound.
    pub memory_bytes: (usize, usize),
    /// What the committer of the data directory has done, if there is one.
    pub committer: Option<DirStats>,
}

/// Whether the broker can do its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Nothing new is taken: the broker is about to end.
    pub draining: bool,
    /// Streams that could not be written lately because the disk is full.
    pub full: Vec<String>,
    /// Logs that belong to no stream. They were left alone.
    pub orphans: Vec<String>,
    /// The last thing that went wrong in the background, if something did.
    pub problem: Option<String>,
}

impl Health {
    /// Whether publishes and fetches are served.
    pub fn is_ready(&self) -> bool {
        !self.draining
    }
}
