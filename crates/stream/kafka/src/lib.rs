//! The Kafka protocol over the stream door's engine: any Kafka client produces, consumes, joins groups.
//!
//! ```text
//! socket -> server: frames, order, limits -> api: who asks, what for -> engine
//!                                               |
//!                                               wire: shapes, records without a copy
//! ```
//!
//! A topic is a stream of the client's tenant, a partition is a shard, an offset is an offset; a consumer group's
//! committed offsets are those of the native groups. RecordBatch v2 is stored as it came. There is one broker, which
//! leads every partition and coordinates every group.
//!
//! What it does not know: files, replication, transactions, and how records are compressed.
//!
//! Invariants:
//! - No count, length or version of a request is believed before it is checked; nothing a client sends ends more than
//!   its own connection.
//! - Answers leave in the order of the requests.
//! - Records are not copied between the socket and the engine, nor on the way back, but for small batches.
//! - Every wait is a waker's; no connection has a thread, and none a timer of its own but a fetch that waits.
//! - Every refusal is counted and, where the protocol has a place for words, explained.
mod api;
pub mod fuzz;
mod limits;
mod options;
#[cfg(test)]
mod samples;
mod server;
mod wire;

pub use options::{Options, OptionsError, Resolved};
pub use server::{Counters, ServeError, Server, Stats, WorkerPanic, serve};
