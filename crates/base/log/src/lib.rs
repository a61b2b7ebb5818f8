//! The segmented, checksummed, group-committing log.
//!
//! A [`Log`] is an ordered run of opaque payloads in segment files. Appending assigns a [`Position`] under
//! one short lock and never waits for the disk; one committer thread per data directory gathers what all logs
//! have ready, writes it once, flushes once, tells the log's [`Sink`] which positions became durable, and
//! then completes exactly the tickets of that batch.
//!
//! ```text
//!  append ──> queue of batches ──> committer: write, flush ──> sink.durable(range) ──> tickets
//!  (position, memcpy)               one per data directory      publish to readers      acknowledge
//! ```
//!
//! What holds, each by a test:
//!
//! - a payload whose ticket said durable survives `kill -9` and a power cut that forgets every unflushed byte
//!   and directory entry;
//! - a torn tail is repaired, damage below the durable mark is refused with file and offset
//!   ([`OpenError::Damaged`]);
//! - an error while flushing refuses every waiter and then ends the process ([`Options::on_fatal`]);
//! - a full disk refuses writers ([`CommitError::NoSpace`]) and serves readers, and heals by itself when
//!   there is room again;
//! - what waits for the disk is bounded ([`Options::inflight_bytes_max`]), and beyond it an append is
//!   refused, not queued.
//!
//! The crate does not know what a payload means, has no index (a reader scans from the start of a segment),
//! and has one durability mode: acknowledged after the flush. The bytes are drawn in `docs/log-format.md`.
//! All input and output goes through [`Disk`], so that a simulated disk can stand beneath it.

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
