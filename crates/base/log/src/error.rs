//! What can go wrong, one enum per family of operations.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::position::{LogId, Position};

/// Why a data directory or a log did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process owns the directory.
    #[error("the data directory is in use{}", held_by(.holder))]
    Locked {
        /// What the holder wrote into the lock file: its process id.
        holder: Option<String>,
    },
    /// The log is open already in this process.
    #[error("log {0} is already open")]
    AlreadyOpen(LogId),
    /// Acknowledged bytes are damaged. Restore the file from a copy, or move the log away to start empty.
    #[error(
        "{} is damaged at byte {offset}: {defect}; records from {position} are unreadable, and those below \
         {mark} were acknowledged",
        file.display()
    )]
    Damaged {
        /// The file, relative to the data directory.
        file: PathBuf,
        /// The byte at which the damaged frame or header begins.
        offset: u64,
        /// What is wrong there.
        defect: Defect,
        /// The first record that cannot be read.
        position: Position,
        /// Everything below was acknowledged.
        mark: Position,
    },
    /// The file was written by a version of the format that this program does not know.
    #[error("{} is written in a format that this version does not read: {what}", file.display())]
    Unsupported {
        /// The file, relative to the data directory.
        file: PathBuf,
        /// What is unknown.
        what: String,
    },
    /// The log begins above the position from which replay was asked.
    #[error("the log begins at {first}, after the wanted {wanted}")]
    Truncated {
        /// The first record that is there.
        first: Position,
        /// The first record that was asked for.
        wanted: Position,
    },
    /// The log ends below the position from which replay was asked: records that were acknowledged are
    /// missing.
    #[error("the log ends at {next}, before the wanted {wanted}")]
    Behind {
        /// Where the log ends.
        next: Position,
        /// The first record that was asked for.
        wanted: Position,
    },
    /// The receiver of the replay refused a frame.
    #[error("the frame at {position} cannot be replayed")]
    Replay {
        /// Where the frame begins.
        position: Position,
        /// The receiver's reason.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The disk failed.
    #[error("{action} {} failed", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path, relative to the data directory.
        path: PathBuf,
        /// The disk's answer.
        #[source]
        source: io::Error,
    },
}

fn held_by(holder: &Option<String>) -> String {
    holder.as_ref().map(|pid| format!(" by process {pid}")).unwrap_or_default()
}

/// What makes bytes invalid as a frame or a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// Fewer bytes than a header.
    #[error("the file ends inside a header")]
    ShortHeader,
    /// No magic.
    #[error("no header begins here")]
    Magic,
    /// The header's checksum differs.
    #[error("the header's checksum does not match")]
    HeaderChecksum,
    /// The header belongs elsewhere.
    #[error("the header belongs to another log or segment")]
    Foreign,
    /// The base position is not the end of the previous frame.
    #[error("the position does not follow")]
    Position,
    /// The epoch is below the previous one.
    #[error("the epoch falls")]
    Epoch,
    /// The durable mark lies above the frame.
    #[error("the durable mark lies above the frame")]
    Mark,
    /// Count or length is outside its range.
    #[error("a count or length is out of range")]
    Range,
    /// Fewer bytes than the payload's length.
    #[error("the file ends inside a payload")]
    ShortPayload,
    /// The payload's checksum differs.
    #[error("the payload's checksum does not match")]
    PayloadChecksum,
    /// The record batch is not the one that its frame tells of.
    #[error("the record batch does not agree with its frame")]
    RecordBatch,
    /// A segment is missing.
    #[error("the next segment is missing")]
    Gap,
}

/// Why an append was refused; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Too much waits for the disk; try again later.
    #[error("{inflight_bytes} bytes wait for the disk, the limit is {limit_bytes}")]
    Overloaded {
        /// What waits now.
        inflight_bytes: usize,
        /// The bound.
        limit_bytes: usize,
    },
    /// The payload is larger than a frame may be.
    #[error("a payload of {bytes} bytes is above the limit of {limit_bytes}")]
    TooLarge {
        /// The payload's size.
        bytes: usize,
        /// The bound.
        limit_bytes: usize,
    },
    /// The payload was said to be a record batch and is none: its length, its magic, or its stated size.
    #[error("the payload is no record batch of magic 2")]
    NoRecordBatch,
    /// The disk is full and what was under way is being refused; try again later.
    #[error("no space left on the disk")]
    NoSpace,
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
    /// The disk failed; the process is ending.
    #[error("the disk failed")]
    Failed,
}

/// Why an appended payload did not become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The disk is full; the payload is not in the log and never will be.
    #[error("no space left on the disk")]
    NoSpace,
    /// The log was removed.
    #[error("the log was removed")]
    Removed,
    /// The disk failed; whether the payload survives is unknown, and the process is ending.
    #[error("the disk failed")]
    Failed,
}

/// Why the log's frames could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The log begins above the wanted position: its front was dropped.
    #[error("the log begins at {first}, after the wanted {wanted}")]
    Truncated {
        /// The first record that is there.
        first: Position,
        /// The first record that was asked for.
        wanted: Position,
    },
    /// Durable bytes are damaged.
    #[error("{} is damaged at byte {offset}: {defect}", file.display())]
    Damaged {
        /// The file, relative to the data directory.
        file: PathBuf,
        /// The byte at which the damaged frame or header begins.
        offset: u64,
        /// What is wrong there.
        defect: Defect,
    },
    /// The disk failed.
    #[error("reading {} failed", path.display())]
    Io {
        /// On which path, relative to the data directory.
        path: PathBuf,
        /// The disk's answer.
        #[source]
        source: io::Error,
    },
}

/// Why a segment was not compacted; it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// No sealed segment begins, or ends, at this position.
    #[error("no sealed segment begins or ends at {0}")]
    NoSegment(Position),
    /// More positions than one compacted segment can cover; compact fewer segments as one.
    #[error("too many positions from {0} on for one segment")]
    TooLong(Position),
    /// The replacement of a record batch is none.
    #[error("the replacement of the record batch at {0} is no record batch")]
    NoRecordBatch(Position),
    /// The replacement is larger than a frame may be.
    #[error("the replacement of the payload at {0} is too large")]
    TooLarge(Position),
    /// The segment could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The disk failed, or is full.
    #[error("{action} {} failed", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path, relative to the data directory.
        path: PathBuf,
        /// The disk's answer.
        #[source]
        source: io::Error,
    },
}

/// Why a log was not removed. Removing it again goes on where this ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// There is no such log.
    #[error("there is no log {0}")]
    NoLog(LogId),
    /// The disk failed.
    #[error("{action} {} failed", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path, relative to the data directory.
        path: PathBuf,
        /// The disk's answer.
        #[source]
        source: io::Error,
    },
}

/// A failure after which nothing that the log says can be trusted: the process must end.
#[derive(Debug, thiserror::Error)]
#[error("{action} {} failed", path.display())]
pub struct Failure {
    /// What was tried.
    pub action: &'static str,
    /// On which path, relative to the data directory.
    pub path: PathBuf,
    /// The disk's answer.
    #[source]
    pub source: io::Error,
}

impl Failure {
    pub(crate) fn new(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Failure { action, path: path.into(), source }
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        OpenError::Io { action: failure.action, path: failure.path, source: failure.source }
    }
}

/// The error and its causes in one line, for logs.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
