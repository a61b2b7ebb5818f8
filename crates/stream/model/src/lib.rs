//! The stream door's nouns: record batches, names, the partitioner, and the frames of the wire. Pure: no I/O, no
//! clock, no global state.
//!
//! ```text
//!  producer ── RecordBatch v2 ──> frame (Publish) ──> log entry ──> frame (Push) ──> consumer
//!              the same bytes all the way; a broker writes the first sixteen of them, and nothing else
//! ```
//!
//! - [`batch`] reads, checks, splits, stamps, builds and filters Kafka's RecordBatch v2, the one unit of everything;
//! - [`frame`] is the protocol of the door over QUIC and TCP (`docs/stream-protocol.md` draws its bytes);
//! - [`names`] says what a tenant, a stream, a cache and a group may be called;
//! - [`spec`] says what a stream and a cache are;
//! - [`partition`] says which shard a key belongs to.
//!
//! What holds: nothing here panics for any input, every input is bounded by a limit of [`limits`], and no function
//! copies the records of a batch unless its documentation says so.
//!

pub mod batch;
pub mod frame;
pub mod fuzz;
pub mod limits;
pub mod names;
pub mod partition;
pub mod spec;
