//! Consumer groups: committed offsets, native work groups, the classic coordinator.

use std::sync::Arc;

use crate::error::OpenError;
use crate::streams::Streams;

/// The consumer groups of a broker.
pub struct Groups {
    _streams: Arc<Streams>,
}

impl Groups {
    /// Reads back what was committed.
    pub(crate) fn open(streams: Arc<Streams>) -> Result<Self, OpenError> {
        Ok(Groups { _streams: streams })
    }

    /// Timeouts.
    pub(crate) fn tick(&self, _now_ms: i64) {}
}
