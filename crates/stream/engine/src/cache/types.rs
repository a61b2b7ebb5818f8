//! What caches are asked for, and what they tell.

use bytes::Bytes;
use trifid_stream_model::frame::{Expect, Ttl};
use trifid_stream_model::spec::SpecError;

/// Why a cache did not do something. Nothing of it was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// Empty, or longer than allowed.
    #[error("a key of {bytes} bytes; between 1 and {limit} are allowed")]
    Key {
        /// What it has.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// Longer than a value may be, or than the whole cache.
    #[error("an entry of {bytes} bytes is larger than the {limit} allowed")]
    TooLarge {
        /// What it has, with its key.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// More operations at once than allowed.
    #[error("{count} operations at once, more than the {limit} allowed")]
    TooMany {
        /// How many came.
        count: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Something else is there than was expected: an entry with this revision, or none (zero).
    #[error("the revision is {revision}")]
    Conflict {
        /// The revision that is there; zero: none.
        revision: u64,
    },
    /// Too much is under way; try again.
    #[error("overloaded; try again in {retry_after_ms} ms")]
    Overloaded {
        /// When.
        retry_after_ms: u32,
    },
    /// The disk is full; try again later.
    #[error("no space left on the disk")]
    NoSpace,
    /// The cache was deleted.
    #[error("the cache was deleted")]
    Deleted,
    /// The broker is about to end.
    #[error("the broker is shutting down")]
    ShuttingDown,
    /// The disk failed.
    #[error("the disk failed")]
    Failed,
}

/// Why a cache was not made or deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheCreateError {
    /// There is one of this name that is made differently.
    #[error("the cache exists, and is made differently")]
    Exists,
    /// There is none of this name.
    #[error("the cache does not exist")]
    Unknown,
    /// A durable cache needs a data directory; it is never made less durable instead.
    #[error("a durable cache needs a data directory")]
    NoDirectory,
    /// Values outside their limits.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The name is the broker's own.
    #[error("names that begin with an underscore and have a dot are the broker's own")]
    Reserved,
    /// A limit of this broker.
    #[error("this broker holds at most {limit} caches")]
    TooMany {
        /// How many.
        limit: usize,
    },
    /// The disk is full; try again later.
    #[error("no space left on the disk")]
    NoSpace,
    /// The broker is about to end.
    #[error("the broker is shutting down")]
    ShuttingDown,
    /// The disk failed.
    #[error("the disk failed")]
    Failed,
}

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its value.
    pub value: Bytes,
    /// The revision of the change that wrote it.
    pub revision: u64,
    /// When its life ends, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
}

/// One of several operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read an entry.
    Get {
        /// Its key.
        key: Bytes,
    },
    /// Write an entry.
    Put {
        /// Its key.
        key: Bytes,
        /// Its value.
        value: Bytes,
        /// How long it lives.
        ttl: Ttl,
        /// What must be there.
        expect: Expect,
    },
    /// Remove an entry.
    Delete {
        /// Its key.
        key: Bytes,
        /// What must be there.
        expect: Expect,
    },
}

/// What became of one of several operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Read: nothing is there.
    Missing,
    /// Read.
    Found(Found),
    /// Written or removed, with the revision of the change; zero: there was nothing to remove.
    Changed(u64),
}

/// A change of a cache, as a watch is told. Revisions rise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which entry.
    pub key: Bytes,
    /// The revision of the change.
    pub revision: u64,
    /// What became of it.
    pub kind: ChangeKind,
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was written.
    Put {
        /// Its value.
        value: Bytes,
        /// When its life ends, in milliseconds since 1970.
        expires_ms: Option<i64>,
    },
    /// It was deleted.
    Deleted,
    /// Its life ended.
    Expired,
    /// It gave way to others.
    Evicted,
}

/// What a watch is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A value that is there (before [`Event::Current`]), or a change (after it).
    Change(Change),
    /// Every value that is there was told; changes after this revision follow, every one of them.
    Current {
        /// The revision that the values belong to.
        revision: u64,
    },
    /// The watch was too slow, and changes from one revision to before the other may be missing: what is
    /// there is told again, ended by [`Event::Current`]. A key that is not told then is not there.
    Resync {
        /// The first revision that may be missing.
        from: u64,
        /// The revision after the last.
        to: u64,
    },
    /// The cache was deleted: nothing more comes.
    Gone,
}
