//! The port through which the memory engine becomes durable.
//!
//! The file store is this engine with a journal beneath it: a change is appended while the entity's shard
//! is held, so the order of the journal is the order in which changes were applied, and it becomes visible
//! to readers only when the journal says that it is durable ([`crate::memory::MemoryStore::publish`]).

use trifid_context_model::record::Record;
use trifid_context_model::time::Instant;
use trifid_context_model::update::Touched;

use crate::store::{Answer, StoreError};
use crate::tenant::TenantName;

/// One change to be journaled.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Whose entity.
    pub tenant: &'a TenantName,
    /// The entity.
    pub id: &'a str,
    /// Before the change; `None` when it did not exist.
    pub before: Option<&'a Record>,
    /// After it; `None` when it is gone.
    pub after: Option<&'a Record>,
    /// The attribute instances that the change wrote or removed.
    pub touched: &'a [Touched],
    /// When.
    pub now: Instant,
}

/// A journal of changes.
pub trait Journal: Send + Sync + 'static {
    /// Makes sure that there is room for one request more, or refuses it: called before any of its changes
    /// is applied, so that a request is refused as a whole.
    fn admit(&self) -> Result<(), StoreError>;

    /// Appends a change and answers its position, at least one and greater than every one before. Called
    /// with the shard held: it must not wait for I/O. Refused, the change is not made.
    ///
    /// A journal that cannot keep what it took (a full disk) says so by
    /// [`MemoryStore::withdraw`](crate::memory::MemoryStore::withdraw), of everything it has not made durable and
    /// before it takes anything again, so that no change rests on a withdrawn one.
    fn append(&self, entry: &Entry<'_>) -> Result<u64, StoreError>;

    /// Answers when everything up to `position` is durable and published.
    fn durable(&self, position: u64) -> Answer<'_, ()>;
}
