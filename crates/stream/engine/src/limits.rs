//! Every bound of the engine in one place, with units.

use std::time::Duration;

/// What a broker may hold; the defaults fit a machine that gives it 256 MiB.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of publishes in the whole process that wait for their acknowledgement.
    pub process_inflight_bytes: usize,
    /// Bytes of publishes of one tenant that wait for their acknowledgement.
    pub tenant_inflight_bytes: usize,
    /// Bytes of recent batches that a shard of a durable stream keeps in memory.
    pub tail_bytes_per_shard: usize,
    /// Bytes of recent batches that all shards of durable streams keep in memory together.
    pub tail_bytes_total: usize,
    /// Bytes that a shard of a memory stream keeps when its retention names no smaller size.
    pub memory_stream_bytes_max: usize,
    /// Bytes that all memory streams keep together.
    pub memory_bytes_total: usize,
    /// Streams of all tenants.
    pub streams_max: usize,
    /// Shards of one stream.
    pub shards_max: u32,
    /// Shards of all streams.
    pub shards_total_max: usize,
    /// Producers that a shard remembers.
    pub producers_max: usize,
    /// A producer that published nothing for this long is forgotten.
    pub producer_idle: Duration,
    /// Bytes of memory that one compaction may take for its keys.
    pub compaction_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            process_inflight_bytes: 64 << 20,
            tenant_inflight_bytes: 32 << 20,
            tail_bytes_per_shard: 4 << 20,
            tail_bytes_total: 64 << 20,
            memory_stream_bytes_max: 16 << 20,
            memory_bytes_total: 64 << 20,
            streams_max: 10_000,
            shards_max: SHARDS_MAX,
            shards_total_max: 20_000,
            producers_max: 10_000,
            producer_idle: Duration::from_secs(24 * 60 * 60),
            compaction_bytes_max: 16 << 20,
        }
    }
}

/// Shards of one stream, whatever is configured: a shard's number is part of its log's number.
pub const SHARDS_MAX: u32 = 256;
/// Batches that are remembered per producer and shard, as many as a client may have in flight
/// (`max.in.flight.requests.per.connection` with `enable.idempotence`).
pub const PRODUCER_BATCHES: usize = 5;
/// Producer identities that are taken from the catalogue at a time.
pub(crate) const PRODUCER_IDS_BLOCK: i64 = 1000;
/// Bytes appended to a shard between two snapshots of its producers: what an opening has to read again.
pub(crate) const SNAPSHOT_BYTES: u64 = 64 << 20;
/// The same at an orderly end: less is read again sooner than a snapshot is flushed.
pub(crate) const SETTLED_BYTES: u64 = 1 << 20;
/// The smallest segment that a stream's retention leads to, in bytes.
pub(crate) const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// The newest segments of all shards of a stream together, in bytes, as far as they do not become too small.
pub(crate) const SEGMENT_BYTES_PER_STREAM: u64 = 128 << 20;
/// Segments of compacted streams, in bytes.
pub(crate) const SEGMENT_BYTES_COMPACTED: u64 = 16 << 20;
/// Segments of the broker's own streams, in bytes, and of streams of many shards.
pub(crate) const SEGMENT_BYTES_INTERNAL: u64 = 4 << 20;
/// A log writes zeros ahead of small writes, at most such a part of a segment at a time: a shard that is seldom
/// written should not write much more than it is given.
pub(crate) const PREWRITTEN_PARTS: u64 = 64;
/// Threads that open shards at the start.
pub(crate) const OPENERS_MAX: usize = 8;
/// Records of the catalogue beyond twice the streams, after which it is written anew.
pub(crate) const CATALOGUE_SLACK: usize = 1000;
/// Bytes that a page from the log holds at most, unless one batch is larger.
pub const PAGE_BYTES_MAX: usize = 1 << 20;
/// What a batch in memory costs beside its bytes.
pub(crate) const ENTRY_BYTES: usize = 128;
/// What a compaction needs per key, in bytes.
pub(crate) const KEY_BYTES: usize = 48;
/// Bytes that all compactions together read or write before the rest of the background work gets its turn.
pub(crate) const COMPACTION_STEP_BYTES: usize = 16 << 20;
/// How long a shard is left alone after a compaction of it failed, in milliseconds.
pub(crate) const COMPACTION_RETRY_MS: i64 = 60_000;
/// A tombstone stays at least this long, in milliseconds (`delete.retention.ms`).
pub const TOMBSTONE_MS: i64 = 24 * 60 * 60 * 1000;
/// What a client refused for what its connection has in flight should wait, in milliseconds: its own
/// acknowledgements are on their way.
pub(crate) const RETRY_CONNECTION_MS: u32 = 5;
/// What a client refused for its tenant's share should wait, in milliseconds.
pub(crate) const RETRY_TENANT_MS: u32 = 20;
/// What a client refused for the whole process should wait, in milliseconds.
pub(crate) const RETRY_PROCESS_MS: u32 = 50;
/// What a client refused for a subscriber that is not done should wait, in milliseconds.
pub(crate) const RETRY_HELD_MS: u32 = 20;
/// How often a shard is looked at for retention, snapshots and compaction, in milliseconds.
pub(crate) const UPKEEP_EVERY_MS: i64 = 1000;

const _: () = assert!(SHARDS_MAX <= 1 << 16);
// Publishes refused for these two reasons are counted apart, by their hint.
const _: () = assert!(RETRY_HELD_MS != RETRY_PROCESS_MS);
const _: () = assert!(PRODUCER_BATCHES >= 1 && PRODUCER_BATCHES <= u8::MAX as usize);
