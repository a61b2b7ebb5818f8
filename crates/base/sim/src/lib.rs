//! Seeded faults; development only.
//!
//! [`SimDisk`] is a disk in memory that keeps only what it promised: bytes of a file last after a flush of
//! the file, names in a directory after a flush of the directory. [`SimDisk::power_cut`] forgets, tears and
//! reorders everything else as a seed decides, and [`SimDisk::kill`] forgets nothing, like the death of a
//! process. Faults (a short write, a failed flush, a full disk, a flush that lies) are decided by a closure
//! per operation, so that a test can show that it would notice a missing flush.
//!
//! It does not model the tearing of bytes that had lasted before: a disk that loses an old sector while a new
//! one is written needs redundancy that no single file has.

mod crash;
mod disk;
mod fault;
mod state;

pub use disk::SimDisk;
pub use fault::{Fault, Op, OpKind};
