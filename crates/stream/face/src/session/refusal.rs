//! One table: what the engine refuses, as the protocol's codes. It names each of them, so that a new
//! one is not passed over.

use trifid_stream_engine::cache::{CacheCreateError, CacheError};
use trifid_stream_engine::groups::GroupError;
use trifid_stream_engine::{CommitFailure, CreateError, DeleteError, FetchError, Overloaded, PublishError};
use trifid_stream_model::batch::BatchError;
use trifid_stream_model::frame::{Code, FrameError, Refusal};

/// What a client waits for that meets a full disk, in milliseconds.
const NO_SPACE_RETRY_MS: u32 = 1000;
/// What a client waits for that meets a broker about to end, in milliseconds: for another one to begin.
const SHUTTING_DOWN_RETRY_MS: u32 = 500;

/// A refusal with the error's own words.
fn told(code: Code, error: &impl std::fmt::Display) -> Refusal {
    Refusal::new(code, error.to_string())
}

pub(super) fn of_frame(error: &FrameError) -> Refusal {
    let code = match error {
        FrameError::TooLarge { max, .. } => Code::TooLarge { max: *max as u64 },
        FrameError::Version(_) | FrameError::Flags(_) | FrameError::Kind(_) => Code::Unsupported,
        FrameError::Preface
        | FrameError::Reserved(_)
        | FrameError::Truncated(_)
        | FrameError::Trailing(_)
        | FrameError::Unknown { .. }
        | FrameError::TooMany { .. }
        | FrameError::Utf8
        | FrameError::Name(_)
        | FrameError::Spec(_) => Code::InvalidRequest,
    };
    told(code, error)
}

pub(super) fn of_batch(error: &BatchError) -> Refusal {
    let code = match error {
        BatchError::TooLarge { max, .. } => Code::TooLarge { max: *max as u64 },
        BatchError::Magic(_)
        | BatchError::Checksum { .. }
        | BatchError::Truncated { .. }
        | BatchError::Trailing(_)
        | BatchError::Length(_)
        | BatchError::Timestamps { .. }
        | BatchError::LogAppendTime
        | BatchError::Transactional
        | BatchError::Compressed(_)
        | BatchError::TooMany(_)
        | BatchError::Empty
        | BatchError::Attributes(_)
        | BatchError::Control
        | BatchError::Count { .. }
        | BatchError::TooManyRecords(_)
        | BatchError::Dense { .. }
        | BatchError::Producer { .. }
        | BatchError::Record { .. }
        | BatchError::Damaged(_)
        | BatchError::Inflated(_) => Code::InvalidBatch,
    };
    told(code, error)
}

pub(super) fn of_admission(error: Overloaded) -> Refusal {
    told(Code::Overloaded { shed: 0 }, &error).after(error.retry_after_ms)
}

pub(super) fn of_publish(error: &PublishError) -> Refusal {
    match error {
        PublishError::Overloaded { retry_after_ms } => {
            told(Code::Overloaded { shed: 0 }, error).after(*retry_after_ms)
        }
        PublishError::TooLarge { limit, .. } => told(Code::TooLarge { max: *limit as u64 }, error),
        PublishError::OutOfSequence { expected, .. } => {
            told(Code::OutOfSequence { expected: u64::try_from(*expected).unwrap_or(0) }, error)
        }
        PublishError::Fenced { epoch } => {
            told(Code::Fenced { epoch: u64::try_from(*epoch).unwrap_or(0) }, error)
        }
        PublishError::UnknownProducer => told(Code::UnknownProducer, error),
        PublishError::NoSpace => told(Code::NoSpace, error).after(NO_SPACE_RETRY_MS),
        PublishError::Deleted => told(Code::UnknownStream, error),
        PublishError::ShuttingDown => told(Code::ShuttingDown, error).after(SHUTTING_DOWN_RETRY_MS),
        PublishError::Invalid(batch) => of_batch(batch),
        PublishError::Failed => told(Code::Internal, error),
    }
}

pub(super) fn of_commit(error: CommitFailure) -> Refusal {
    match error {
        CommitFailure::NoSpace => told(Code::NoSpace, &error).after(NO_SPACE_RETRY_MS),
        CommitFailure::Deleted => told(Code::UnknownStream, &error),
        CommitFailure::Failed => told(Code::Internal, &error),
    }
}

pub(super) fn of_create(error: &CreateError) -> Refusal {
    match error {
        CreateError::Exists => told(Code::AlreadyExists, error),
        CreateError::Unknown => told(Code::UnknownStream, error),
        CreateError::NoDirectory => told(Code::Unsupported, error),
        CreateError::Spec(_) | CreateError::Shards { .. } => told(Code::InvalidRequest, error),
        CreateError::TooMany { limit, .. } => told(Code::TooLarge { max: *limit as u64 }, error),
        CreateError::Reserved => told(Code::Forbidden, error),
        CreateError::NoSpace => told(Code::NoSpace, error).after(NO_SPACE_RETRY_MS),
        CreateError::ShuttingDown => told(Code::ShuttingDown, error).after(SHUTTING_DOWN_RETRY_MS),
        CreateError::Failed => told(Code::Internal, error),
    }
}

pub(super) fn of_delete(error: &DeleteError) -> Refusal {
    match error {
        DeleteError::Unknown => told(Code::UnknownStream, error),
        DeleteError::Reserved => told(Code::Forbidden, error),
        DeleteError::NoSpace => told(Code::NoSpace, error).after(NO_SPACE_RETRY_MS),
        DeleteError::ShuttingDown => told(Code::ShuttingDown, error).after(SHUTTING_DOWN_RETRY_MS),
        DeleteError::Failed => told(Code::Internal, error),
    }
}

pub(super) fn of_fetch(error: &FetchError) -> Refusal {
    match error {
        FetchError::TooOld { first } => told(Code::OffsetTooOld { first: *first }, error),
        FetchError::InFuture { end } => told(Code::OffsetInFuture { end: *end }, error),
        FetchError::Gone => told(Code::UnknownStream, error),
        FetchError::Damaged { .. } | FetchError::Io(_) => {
            tracing::error!(%error, "a stream cannot be read");
            told(Code::Internal, error)
        }
    }
}

pub(super) fn of_cache(error: &CacheError) -> Refusal {
    match error {
        CacheError::Key { .. } => told(Code::InvalidRequest, error),
        CacheError::TooLarge { limit, .. } | CacheError::TooMany { limit, .. } => {
            told(Code::TooLarge { max: *limit as u64 }, error)
        }
        CacheError::Conflict { revision } => told(Code::Conflict { revision: *revision }, error),
        CacheError::Overloaded { retry_after_ms } => {
            told(Code::Overloaded { shed: 0 }, error).after(*retry_after_ms)
        }
        CacheError::NoSpace => told(Code::NoSpace, error).after(NO_SPACE_RETRY_MS),
        CacheError::Deleted => told(Code::UnknownCache, error),
        CacheError::ShuttingDown => told(Code::ShuttingDown, error).after(SHUTTING_DOWN_RETRY_MS),
        CacheError::Failed => told(Code::Internal, error),
    }
}

pub(super) fn of_cache_create(error: &CacheCreateError) -> Refusal {
    match error {
        CacheCreateError::Exists => told(Code::AlreadyExists, error),
        CacheCreateError::Unknown => told(Code::UnknownCache, error),
        CacheCreateError::NoDirectory => told(Code::Unsupported, error),
        CacheCreateError::Spec(_) => told(Code::InvalidRequest, error),
        CacheCreateError::Reserved => told(Code::Forbidden, error),
        CacheCreateError::TooMany { limit } => told(Code::TooLarge { max: *limit as u64 }, error),
        CacheCreateError::NoSpace => told(Code::NoSpace, error).after(NO_SPACE_RETRY_MS),
        CacheCreateError::ShuttingDown => told(Code::ShuttingDown, error).after(SHUTTING_DOWN_RETRY_MS),
        CacheCreateError::Failed => told(Code::Internal, error),
    }
}

pub(super) fn of_group(error: &GroupError) -> Refusal {
    match error {
        GroupError::Unknown | GroupError::Gone => told(Code::UnknownGroup, error),
        GroupError::UnknownStream(_) => told(Code::UnknownStream, error),
        GroupError::UnknownShard { .. }
        | GroupError::NotEmpty(_)
        | GroupError::OutOfRange { .. }
        | GroupError::Repeated(_) => told(Code::InvalidRequest, error),
        GroupError::OtherProtocol(_) => told(Code::Unsupported, error),
        GroupError::TooMany { limit, .. } => told(Code::TooLarge { max: *limit as u64 }, error),
        GroupError::Overloaded { retry_after_ms } => {
            told(Code::Overloaded { shed: 0 }, error).after(*retry_after_ms)
        }
        GroupError::NoSpace => told(Code::NoSpace, error).after(NO_SPACE_RETRY_MS),
        GroupError::ShuttingDown => told(Code::ShuttingDown, error).after(SHUTTING_DOWN_RETRY_MS),
        GroupError::Failed => told(Code::Internal, error),
    }
}

/// A broker that is going away takes nothing new.
pub(super) fn leaving() -> Refusal {
    Refusal::new(Code::ShuttingDown, "the broker is shutting down").after(SHUTTING_DOWN_RETRY_MS)
}

pub(super) fn unknown_stream() -> Refusal {
    Refusal::new(Code::UnknownStream, "there is no stream of this name")
}

pub(super) fn unknown_handle() -> Refusal {
    Refusal::new(Code::InvalidRequest, "this connection was not given this handle")
}
