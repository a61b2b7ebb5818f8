//! What a data directory and its logs can be told.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Chain, Failure};
use crate::limits::{FLUSHERS, OPEN_SEGMENTS_MAX, PREWRITE_BYTES, RECYCLED_SEGMENTS_MAX};
use crate::position::Position;

/// Settings of all logs in a data directory.
#[derive(Clone)]
pub struct Options {
    /// A new segment is begun at the first batch after this many bytes, unless the log says
    /// [otherwise](LogOptions::segment_bytes).
    pub segment_bytes: u64,
    /// Whether room for a whole segment is asked for when it is created (the file's length stays what was
    /// written).
    pub preallocate: bool,
    /// Bytes per log that may wait for the disk; beyond it an append is refused as
    /// [`Overloaded`](crate::AppendError::Overloaded).
    pub inflight_bytes_max: usize,
    /// How long the committer may wait for those whom it has just answered to come back with more. It waits less
    /// when too few do, never longer than two flushes take, and not at all when the log was idle.
    pub linger_max: Duration,
    /// After this long without an append the log is closed off: a marker vouches for the last batch.
    pub idle_after: Duration,
    /// Threads that help the committer flush several logs at once. They are started when they are first needed.
    pub flushers: usize,
    /// Segment files of all logs together that are kept open for readers.
    pub open_segments_max: usize,
    /// Called, after every waiter was refused, when a flush failed. It must not return to business: the
    /// default ends the process.
    pub on_fatal: Arc<dyn Fn(&Failure) + Send + Sync>,
    /// Where the random salt of a segment comes from.
    pub salt: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 64 << 20,
            preallocate: true,
            inflight_bytes_max: 64 << 20,
            linger_max: Duration::from_micros(500),
            idle_after: Duration::from_millis(250),
            flushers: FLUSHERS,
            open_segments_max: OPEN_SEGMENTS_MAX,
            on_fatal: Arc::new(abort),
            salt: Arc::new(random),
        }
    }
}

/// Settings of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// When a ticket is decided.
    pub durability: Durability,
    /// The log's own [`Options::segment_bytes`].
    pub segment_bytes: Option<u64>,
    /// So many dropped segments are kept and written over instead of created anew, so that a flush has no new
    /// length to record.
    pub recycled_segments_max: usize,
    /// So many bytes of zeros are written ahead of small writes, so that the flushes that follow have no new length
    /// and no new blocks to record. Costs as many bytes again on the disk's way, once a segment that is no reused
    /// file, and saves a third of a flush or more.
    pub prewrite_bytes: usize,
    /// Whether the sparse index of a sealed segment is written beside it. Without the file the index is made
    /// again by a scan when it is first wanted.
    pub store_indexes: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            durability: Durability::OnCommit,
            segment_bytes: None,
            recycled_segments_max: RECYCLED_SEGMENTS_MAX,
            prewrite_bytes: PREWRITE_BYTES,
            store_indexes: true,
        }
    }
}

impl LogOptions {
    /// For a log that is written, replayed from its start, and dropped at the front: no index files, nothing
    /// recycled, nothing written ahead.
    #[must_use]
    pub fn journal() -> Self {
        LogOptions {
            recycled_segments_max: 0,
            prewrite_bytes: 0,
            store_indexes: false,
            ..LogOptions::default()
        }
    }
}

/// When an appended payload counts: when its ticket is decided, and when readers see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the flush: what was acknowledged survives a power cut.
    #[default]
    OnCommit,
    /// After the write: what was acknowledged survives the death of the process. It is flushed so long after
    /// it was written, and until then a power cut takes it.
    Periodic {
        /// From a write to the flush that follows it.
        interval: Duration,
    },
}

/// What of a log is read, checked and handed to the replay when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayFrom {
    /// All that is there.
    Start,
    /// Everything from this position on; it must be there.
    Position(Position),
    /// The newest segment: the least that must be read to find the log's end. What lies before it is checked
    /// when it is read.
    Newest,
}

fn abort(failure: &Failure) {
    tracing::error!(error = %Chain(failure), "the disk failed; ending the process");
    std::process::abort();
}

/// The standard library keys its hash maps from the operating system's randomness; a salt needs no better
/// source.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
