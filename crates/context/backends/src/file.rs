//! The file store: the engine in memory with a journal beneath it and snapshots beside it.
//!
//! ```text
//!  write ──> engine: shard held ──> journal record appended ──> group commit ──> published ──> acknowledged
//!                                                                                   │
//!                    background: all entities ──> context/next.snapshot ──> renamed ──> old segments dropped
//! ```
//!
//! A change is acknowledged, and seen by readers, only after the flush that made it durable. Opening reads the
//! newest snapshot and replays the journal behind it; damage refuses to open and names the file and the byte. A
//! snapshot is written while the store works: changes carry whole entities, so replaying those that came while
//! it was written does no harm. The bytes are drawn in `docs/context-store-format.md`.
//!
//! What it costs: one encoding of the entity per change, no file access on reads, memory for all entities. Disk
//! space is at most about twice the entities plus what was written since the last snapshot.
//!
//! Limits: a full disk refuses writers until there is room (readers are served on): what it refused is taken back
//! whole, so that no later change rests on it. One process owns the directory.

mod encoding;
mod error;
mod export;
mod journal;
mod keeper;
mod limits;
mod loader;
mod payload;
mod snapshot;
mod store;

pub use error::Error;
pub use export::{Exported, export, import};
pub use keeper::Written;
pub use loader::{Progress, Stage};
pub use store::{FileStats, FileStore, Options};

use std::path::{Path, PathBuf};

use trifid_base_log::LogId;

/// The journal's log: its id spells "context".
const JOURNAL: LogId = LogId(u64::from_be_bytes(*b"\0context"));
/// Where snapshots lie.
const DIR: &str = "context";
const SUFFIX: &str = ".snapshot";

/// A snapshot that is being written.
fn unfinished() -> PathBuf {
    Path::new(DIR).join("next.snapshot")
}

/// The snapshot at a position.
fn finished(position: u64) -> PathBuf {
    Path::new(DIR).join(format!("{position:020}{SUFFIX}"))
}

/// The position in the name of a finished snapshot.
fn position_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}
