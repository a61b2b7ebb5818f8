//! What a data directory's logs can be told.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Chain, Failure};

/// Settings of all logs in a data directory.
#[derive(Clone)]
pub struct Options {
    /// A new segment is begun at the first batch after this many bytes.
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
            on_fatal: Arc::new(abort),
            salt: Arc::new(random),
        }
    }
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
