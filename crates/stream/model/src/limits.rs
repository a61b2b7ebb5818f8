//! Every bound of this crate, by name.

/// The largest body of a frame that anybody may negotiate.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The largest body of a frame where nothing was negotiated.
pub const FRAME_BYTES_DEFAULT: usize = 4 * 1024 * 1024;
/// The smallest limit that a side may ask for: less would not carry the messages themselves.
pub const FRAME_BYTES_MIN: usize = 64 * 1024;
/// The largest body of a frame before Welcome: an unknown client gets little memory.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

/// The largest record batch that a stream may allow. It fits into a frame with its head.
pub const BATCH_BYTES_MAX: usize = FRAME_BYTES_MAX - 64 * 1024;
/// What a stream allows unless it says otherwise: what Kafka's brokers allow.
pub const BATCH_BYTES_DEFAULT: u32 = 1_048_588;
/// The smallest limit of a stream.
pub const BATCH_BYTES_MIN: u32 = 1024;
/// Batches in one publish.
pub const BATCHES_PER_PUBLISH_MAX: usize = 4096;
/// Records in one batch. The count is bounded by the bytes too where the records are not compressed.
pub const RECORDS_PER_BATCH_MAX: u32 = 1_000_000;
/// Headers of one record.
pub const HEADERS_PER_RECORD_MAX: usize = 1024;
/// What the records of one compressed batch may inflate to, unless the reader says otherwise.
pub const INFLATED_BYTES_DEFAULT: usize = 64 * 1024 * 1024;

/// Bytes of a topic's name, as Kafka has it.
pub const STREAM_NAME_BYTES_MAX: usize = 249;
/// Bytes of a tenant's name and of a namespace's.
pub const SCOPE_NAME_BYTES_MAX: usize = 64;
/// Bytes of a group's name.
pub const GROUP_NAME_BYTES_MAX: usize = 255;

/// Shards of one stream.
pub const SHARDS_MAX: u32 = 1024;
/// The longest interval between flushes of a stream with periodic durability.
pub const FLUSH_INTERVAL_MS_MAX: u32 = 60_000;
/// The shortest.
pub const FLUSH_INTERVAL_MS_MIN: u32 = 5;
/// The flush interval of a periodic stream unless it says otherwise.
pub const FLUSH_INTERVAL_MS_DEFAULT: u32 = 250;
/// The smallest retention by bytes: below it nothing would be kept.
pub const RETENTION_BYTES_MIN: u64 = 64 * 1024;
/// The smallest retention by age.
pub const RETENTION_MS_MIN: u64 = 1000;

/// Bytes of a token in Hello.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Bytes of any short text: a client's name, the note beside a committed offset, the message of an error.
pub const TEXT_BYTES_MAX: usize = 4096;
/// Entries of any list in a message.
pub const LIST_ENTRIES_MAX: usize = 65_536;
/// Streams of one group member.
pub const GROUP_STREAMS_MAX: usize = 1024;
/// Entries of one page.
pub const PAGE_ENTRIES_MAX: u32 = 10_000;
/// The longest wait of a pull.
pub const PULL_WAIT_MS_MAX: u32 = 60_000;
/// The longest lease, delay or extension of a delivery: a day.
pub const LEASE_MS_MAX: u32 = 86_400_000;
/// The lease of a delivery unless the group says otherwise.
pub const LEASE_MS_DEFAULT: u32 = 30_000;
/// Deliveries of one record before it is set aside, unless the group says otherwise.
pub const DELIVERIES_DEFAULT: u16 = 5;

/// Bytes of a key in a cache.
pub const CACHE_KEY_BYTES_MAX: usize = 1024;
/// Bytes of a value in a cache.
pub const CACHE_VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Operations in one batch on a cache.
pub const CACHE_OPS_MAX: usize = 4096;
/// The budget of a cache unless it says otherwise.
pub const CACHE_BUDGET_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;
/// The smallest budget of a cache.
pub const CACHE_BUDGET_BYTES_MIN: u64 = 64 * 1024;

const _: () = assert!(BATCH_BYTES_MAX < FRAME_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_DEFAULT as usize <= FRAME_BYTES_DEFAULT);
const _: () = assert!(TOKEN_BYTES_MAX + TEXT_BYTES_MAX < HELLO_BYTES_MAX);
const _: () = assert!(FRAME_BYTES_MIN <= FRAME_BYTES_DEFAULT && FRAME_BYTES_DEFAULT <= FRAME_BYTES_MAX);
