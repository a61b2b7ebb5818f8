//! The stream broker: streams of shards, publish and subscribe, consumer groups, and the cache.
//!
//! ```text
//!  face ──> Broker ──> Stream ──> Shard ── publish ──> log ──> ring ──> Cursor, fetch
//!             │                     └─ offsets, producers, admission, retention, compaction
//!             ├─ groups   committed offsets, work groups, the classic coordinator
//!             └─ cache    key-value, over a stream where it is durable
//! ```
//!
//! The unit is one record batch (Kafka's RecordBatch v2) as shared bytes: checked once, given its offset,
//! never encoded again. Whatever waits is a future that one waker wakes; there is no task, timer or queue per
//! subscriber, and no runtime is assumed.
//!
//! What this crate does not know: sockets, frames, Kafka's requests, files other than through base/log. Time
//! and chance come through base/runtime.
//!
//! Invariants, each by a test: a reader never sees what may yet be refused; offsets of a shard are given
//! once, in the order of its log; what was acknowledged is there after a restart, at its offset, as its
//! durability promises; nothing is lost to a subscriber without being told; everything held is bounded by
//! [`limits`].

mod ack;
pub mod admission;
mod broker;
pub mod cache;
mod catalogue;
mod checked;
mod compaction;
mod cursor;
mod error;
pub mod fuzz;
pub mod groups;
mod journal;
pub mod limits;
mod open;
mod options;
mod producers;
mod room;
mod shard;
mod snapshot;
mod stats;
mod store;
mod stream;
mod streams;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod wait;

pub use ack::Ack;
pub use admission::{Admitted, ConnectionBudget, Overloaded};
pub use broker::{Broker, ProducerIdentity};
pub use checked::Checked;
pub use cursor::{Cursor, Policy, Start, Step};
pub use error::{
    CommitFailure, CreateError, DeleteError, FetchError, Gone, OpenError, PublishError, UnknownStream,
};
pub use limits::Limits;
pub use options::{CreatePolicy, Options};
pub use shard::{Beyond, Entries, Entry, Fetched, Published, Shard, Tail};
pub use stats::{BrokerStats, Health, Rejected, ShardStats, StreamStats, TenantStats};
pub use stream::{Stream, StreamId};
pub use streams::{SYSTEM_TENANT, SpecChange};
