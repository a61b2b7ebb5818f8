//! What can go wrong, by what the caller asked for.

use std::time::Duration;

use trifid_stream_model::batch::{BatchError, BuildError};
use trifid_stream_model::frame::{Code, FrameError, Refusal, Retry};
use trifid_stream_model::names::NameError;

use crate::transport::DialError;

/// Why there is no conversation with the broker.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The broker does not want this client, or not now.
    #[error("the broker refuses the connection: {0}")]
    Refused(#[source] Refusal),
    /// The other side speaks something else.
    #[error("the other side does not speak this protocol")]
    Protocol(#[source] FrameError),
    /// The connection ended during the greeting.
    #[error("the connection ended during the greeting")]
    Ended,
    /// The greeting took too long.
    #[error("no greeting within {0:?}")]
    Timeout(Duration),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

impl ConnectError {
    /// Whether trying again can help.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Dial(DialError::Name(_)) | Self::Protocol(_) | Self::Closed => false,
            Self::Refused(refusal) => refusal.code.retry() != Retry::Never,
            Self::Dial(_) | Self::Ended | Self::Timeout(_) => true,
        }
    }
}

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The broker refuses it.
    #[error("the broker refuses: {0}")]
    Refused(#[from] Refusal),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection was lost before the answer; whether the request was carried out is not known.
    #[error("the connection was lost before the answer came")]
    Lost,
    /// The answer did not come in time; whether the request was carried out is not known.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The answer is of another kind than the request's.
    #[error("the broker answered with something else than {0}")]
    Unexpected(&'static str),
}

impl RequestError {
    /// The broker's code, if it was the broker who refused.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused(refusal) | Self::Connect(ConnectError::Refused(refusal)) => Some(refusal.code),
            Self::Connect(_) | Self::Lost | Self::Timeout(_) | Self::Name(_) | Self::Unexpected(_) => None,
        }
    }
}

/// Why a record was not published.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PublishError {
    /// The broker refuses the batch that it was in.
    #[error("the broker refuses the batch: {0}")]
    Refused(#[from] Refusal),
    /// The record cannot be one.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It could not be delivered in the time for it; whether it was is not known.
    #[error("not delivered within {0:?}: {1}")]
    Expired(Duration, String),
    /// No such shard.
    #[error("shard {shard} of a stream of {shards}")]
    Shard {
        /// What was asked for.
        shard: u32,
        /// How many there are.
        shards: u32,
    },
    /// The producer was closed before it was delivered.
    #[error("the producer is closed")]
    Closed,
}

/// Why a subscription cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// The broker refuses it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// What came is no batch.
    #[error("a batch cannot be read")]
    Batch(#[from] BatchError),
    /// The stream was deleted.
    #[error("the stream was deleted")]
    Deleted,
    /// The broker cannot read the stream.
    #[error("the broker cannot read the stream: {0}")]
    Failed(String),
}
