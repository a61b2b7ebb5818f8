//! What groups refuse.

use trifid_stream_model::names::{GroupName, StreamName};

/// Why something was not done for a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// There is none of this name.
    #[error("the group does not exist")]
    Unknown,
    /// The member left, was expelled, or its group was deleted.
    #[error("the member is no longer in its group")]
    Gone,
    /// One of the streams does not exist.
    #[error("the stream {0} does not exist")]
    UnknownStream(StreamName),
    /// A shard that the stream does not have.
    #[error("the stream {stream} has no shard {shard}")]
    UnknownShard {
        /// The stream.
        stream: StreamName,
        /// The shard.
        shard: u32,
    },
    /// It has members: they would be surprised.
    #[error("the group {0} has members")]
    NotEmpty(GroupName),
    /// Its members speak Kafka's protocol, and native ones asked; or the other way round.
    #[error("the members of the group {0} speak another protocol")]
    OtherProtocol(GroupName),
    /// A value outside its limits.
    #[error("{field} is {value}, and must lie between {min} and {max}")]
    OutOfRange {
        /// Which value.
        field: &'static str,
        /// What it is.
        value: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// A limit of this broker.
    #[error("at most {limit} {what} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        limit: usize,
    },
    /// The same stream twice, or a dead-letter stream that is read itself.
    #[error("the streams of a member must differ from each other and from its dead-letter stream: {0}")]
    Repeated(StreamName),
    /// Too much is under way; try again.
    #[error("overloaded; try again in {retry_after_ms} ms")]
    Overloaded {
        /// When.
        retry_after_ms: u32,
    },
    /// The disk is full; try again later.
    #[error("no space left on the disk")]
    NoSpace,
    /// The broker is about to end.
    #[error("the broker is shutting down")]
    ShuttingDown,
    /// The disk failed, or what lies there is damaged; told in the broker's log.
    #[error("the disk failed")]
    Failed,
}
