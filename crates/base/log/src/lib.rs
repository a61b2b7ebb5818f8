//! The segmented, checksummed, group-committing log.
//!
//! A [`Log`] is an ordered run of payloads in segment files: opaque bytes, or Kafka record batches whose own
//! checksum serves as the frame's. Appending assigns a [`Position`] under one short lock and never waits for the
//! disk; one committer thread per data directory gathers what all logs have ready, writes each log once, flushes
//! their files side by side, tells each log's [`Sink`] which positions count now, and then completes exactly the
//! tickets of that wave.
//!
//! ```text
//!  append ──> queue of batches ──> committer: write, flush ──> sink.durable(range) ──> tickets
//!  (position, memcpy)               one per data directory      publish to readers      acknowledge
//! ```
//!
//! What holds, each by a test:
//!
//! - a payload whose ticket said durable survives `kill -9` and a power cut that forgets every unflushed byte
//!   and directory entry, also while segments are begun, written over, dropped and compacted. A log that is flushed
//!   [periodically](Durability::Periodic) promises the first alone until it is [flushed](Log::flushed);
//! - a torn tail is repaired, damage below the durable mark is refused with file and offset
//!   ([`OpenError::Damaged`]), and every read is checked;
//! - an error while flushing refuses every waiter and then ends the process ([`Options::on_fatal`]);
//! - a full disk refuses writers ([`CommitError::NoSpace`]) and serves readers, and heals by itself when
//!   there is room again;
//! - what waits for the disk is bounded ([`Options::inflight_bytes_max`]), and beyond it an append is
//!   refused, not queued;
//! - what is derived (the sparse indexes of position and time) is never trusted: it is made again on any doubt.
//!
//! Memory: a log costs its queued bytes and some hundred bytes a segment; the indexes of sealed segments lie in one
//! bounded cache. Compaction can join the small segments that it leaves ([`Log::compact_as_one`]).
//!
//! The crate does not know what a payload means. The bytes are drawn in `docs/log-format.md`. All input and output
//! goes through [`Disk`], so that a simulated disk can stand beneath it. The path of an append to the committer is
//! tried in every order of its threads by `loom/`, a package of its own:
//! `cargo run --release --manifest-path crates/base/log/loom/Cargo.toml --target-dir target/loom`.

mod batch;
mod cache;
mod committer;
mod compact;
mod crc;
mod dir;
mod disk;
mod error;
mod files;
mod flush;
mod frame;
pub mod fuzz;
mod handoff;
mod index;
mod index_file;
mod keeping;
mod latch;
pub mod limits;
mod log;
mod options;
mod outcome;
mod page;
mod position;
mod queue;
mod read;
mod real;
mod record_batch;
mod recover;
mod recycle;
mod removal;
mod scan;
#[cfg(target_os = "linux")]
mod sched;
mod segment;
mod signal;
mod stats;
mod sync;
mod writer;

pub use compact::{Compacted, Rewrite};
pub use dir::{DataDir, Recovered, Stepper};
pub use disk::{Disk, DiskFile, DiskLock, OpenMode};
pub use error::{AppendError, CommitError, CompactError, Defect, Failure, OpenError, ReadError, RemoveError};
pub use keeping::{Dropped, SegmentInfo};
pub use log::{Log, Sink, Ticket};
pub use options::{Durability, LogOptions, Options, ReplayFrom};
pub use outcome::Durable;
pub use page::{Entry, Page};
pub use position::{LogId, Position};
pub use read::Frame;
pub use real::RealDisk;
pub use recover::{Peek, Progress, Recovery, Repair, Replay};
pub use stats::{DirStats, Stats};
