//! The operations of a disk, and what can go wrong with one.

use std::io;
use std::path::Path;

/// What a caller asks of the disk. Reading is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A directory is created.
    CreateDir,
    /// A file is created.
    Create,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Remove,
    /// An empty directory is removed.
    RemoveDir,
    /// A file's bytes are written.
    Write,
    /// A file's length is set.
    SetLen,
    /// A file's bytes are flushed.
    SyncData,
    /// A file's bytes and length are flushed.
    SyncAll,
    /// A directory's names are flushed.
    SyncDir,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// What is asked.
    pub kind: OpKind,
    /// Of which file or directory.
    pub path: &'a Path,
    /// How many operations went before.
    pub ordinal: u64,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A flush answers that all is well and does nothing.
    Lie,
    /// The operation fails and has no effect.
    Fail(io::ErrorKind),
    /// A flush fails, and what it should have flushed counts as clean from now on: a later flush will not
    /// write it.
    FailAndForget,
    /// A write takes at most this many bytes.
    Short(usize),
}

/// Decides which operations go wrong.
pub(crate) type FaultHook = Box<dyn FnMut(&Op<'_>) -> Option<Fault> + Send>;
