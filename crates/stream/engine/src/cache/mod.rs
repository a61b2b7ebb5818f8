//! The key-value cache.

use std::sync::Arc;

use crate::error::OpenError;
use crate::streams::Streams;

/// The caches of a broker.
pub struct Caches {
    _streams: Arc<Streams>,
}

impl Caches {
    /// Reads back the durable ones.
    pub(crate) fn open(streams: Arc<Streams>) -> Result<Self, OpenError> {
        Ok(Caches { _streams: streams })
    }

    /// Expiry.
    pub(crate) fn tick(&self, _now_ms: i64) {}
}
