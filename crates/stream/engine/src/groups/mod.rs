//! Consumer groups: committed offsets, native work groups, the classic coordinator.

mod classic;
mod error;
pub mod limits;
mod types;

use std::sync::Arc;

use crate::error::OpenError;
use crate::streams::Streams;

pub use classic::{ClassicError, JoinRequest, Joined, JoinedMember, Leaving, MemberRef, SyncRequest, Synced};
pub use error::GroupError;
pub use types::{
    Committed, GroupDescription, GroupListing, GroupSettings, MemberDescription, OffsetCommit, Progress,
    Protocol,
};

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
