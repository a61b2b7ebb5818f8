//! What can be refused, one enum per family of operations.

use std::path::PathBuf;

use trifid_base_log::{CommitError, LogId};
use trifid_stream_model::batch::BatchError;
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::SpecError;

use crate::admission::Overloaded;
use crate::producers::Refusal;

/// Why a broker did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory, or one of its logs.
    #[error("the streams' data directory does not open")]
    Directory(#[source] trifid_base_log::OpenError),
    /// One shard of a stream.
    #[error("shard {shard} of stream {stream} of tenant {tenant} (log {log}) does not open")]
    Shard {
        /// Whose.
        tenant: Tenant,
        /// Which stream.
        stream: StreamName,
        /// Which shard.
        shard: u32,
        /// Its log.
        log: LogId,
        /// Why.
        #[source]
        source: trifid_base_log::OpenError,
    },
    /// The catalogue lists a shard whose log is not there.
    #[error(
        "shard {shard} of stream {stream} of tenant {tenant} has no log {log}: its files were removed by hand"
    )]
    Missing {
        /// Whose.
        tenant: Tenant,
        /// Which stream.
        stream: StreamName,
        /// Which shard.
        shard: u32,
        /// Its log.
        log: LogId,
    },
    /// A record of the catalogue cannot be read.
    #[error("the catalogue of streams cannot be read: {0}")]
    Catalogue(String),
    /// A group or a cache could not be read back.
    #[error("the broker's own streams cannot be read: {0}")]
    Internal(String),
    /// The disk failed.
    #[error("{action} {} failed", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path, relative to the data directory.
        path: PathBuf,
        /// The disk's answer.
        #[source]
        source: std::io::Error,
    },
}

/// Why a stream was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is one of this name.
    #[error("the stream exists")]
    Exists,
    /// There is none to change, and none is made on first use.
    #[error("the stream does not exist")]
    Unknown,
    /// A durable stream needs a data directory; it is never made less durable instead.
    #[error("a durable stream needs a data directory")]
    NoDirectory,
    /// Values outside their limits.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Shards can only be added.
    #[error("a stream of {have} shards cannot have {wanted}")]
    Shards {
        /// What it has.
        have: u32,
        /// What was asked for.
        wanted: u32,
    },
    /// A limit of this broker.
    #[error("this broker holds at most {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        limit: usize,
    },
    /// The name is the broker's own.
    #[error("names that begin with an underscore and have a dot are the broker's own")]
    Reserved,
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

/// Why a stream was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// There is none of this name.
    #[error("the stream does not exist")]
    Unknown,
    /// The name is the broker's own.
    #[error("names that begin with an underscore and have a dot are the broker's own")]
    Reserved,
    /// The disk is full; try again later.
    #[error("no space left on the disk")]
    NoSpace,
    /// The broker is about to end.
    #[error("the broker is shutting down")]
    ShuttingDown,
    /// The disk failed. The stream is gone as soon as it can be read again.
    #[error("the disk failed")]
    Failed,
}

/// There is no such stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream does not exist")]
pub struct UnknownStream;

/// Why a publish was refused; nothing of it is in the stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Too much is under way, or a subscriber that may lose nothing is not done; try again.
    #[error("overloaded; try again in {retry_after_ms} ms")]
    Overloaded {
        /// When.
        retry_after_ms: u32,
    },
    /// A batch is larger than the stream takes.
    #[error("a batch of {bytes} bytes is larger than the {limit} that the stream takes")]
    TooLarge {
        /// What it has.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A batch of an idempotent producer is missing before this one.
    #[error("sequence {got} does not follow, {expected} was expected")]
    OutOfSequence {
        /// What should have come.
        expected: i32,
        /// What came.
        got: i32,
    },
    /// A newer instance of the producer is at work.
    #[error("the producer is fenced off by epoch {epoch}")]
    Fenced {
        /// The epoch of the newer instance.
        epoch: i16,
    },
    /// The producer has been forgotten; it should begin a new epoch.
    #[error("the producer is not known here any more")]
    UnknownProducer,
    /// The disk is full; try again later.
    #[error("no space left on the disk")]
    NoSpace,
    /// The stream was deleted.
    #[error("the stream was deleted")]
    Deleted,
    /// The broker is about to end.
    #[error("the broker is shutting down")]
    ShuttingDown,
    /// The payload is no batch that is taken here.
    #[error(transparent)]
    Invalid(#[from] BatchError),
    /// The disk failed.
    #[error("the disk failed")]
    Failed,
}

impl From<Overloaded> for PublishError {
    fn from(overloaded: Overloaded) -> Self {
        PublishError::Overloaded { retry_after_ms: overloaded.retry_after_ms }
    }
}

impl From<Refusal> for PublishError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OutOfSequence { expected, got } => PublishError::OutOfSequence { expected, got },
            Refusal::Fenced { epoch } => PublishError::Fenced { epoch },
            Refusal::Unknown => PublishError::UnknownProducer,
        }
    }
}

/// Why a publish that was taken is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitFailure {
    /// The disk is full; the batch (of several, the last at least) is not in the stream and never will be.
    #[error("no space left on the disk")]
    NoSpace,
    /// The stream was deleted.
    #[error("the stream was deleted")]
    Deleted,
    /// The disk failed; whether the batch survives is unknown.
    #[error("the disk failed")]
    Failed,
}

impl From<CommitError> for CommitFailure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::NoSpace => CommitFailure::NoSpace,
            CommitError::Removed => CommitFailure::Deleted,
            _ => CommitFailure::Failed,
        }
    }
}

/// Why nothing can be read from an offset.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The records there are gone.
    #[error("the shard begins at {first}")]
    TooOld {
        /// The first offset that is there.
        first: u64,
    },
    /// Nothing was written there yet.
    #[error("the shard ends at {end}")]
    InFuture {
        /// The readable end.
        end: u64,
    },
    /// What lies there is damaged.
    #[error("{} is damaged at byte {at}", file.display())]
    Damaged {
        /// The file, relative to the data directory.
        file: PathBuf,
        /// Where the damaged frame begins.
        at: u64,
    },
    /// The disk failed.
    #[error("reading failed")]
    Io(#[source] std::io::Error),
    /// The stream was deleted.
    #[error("the stream was deleted")]
    Gone,
}

/// The stream was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream was deleted")]
pub struct Gone;
