//! The engine's refusals as error codes of the protocol ("Error Codes" of the protocol documentation).
//!
//! Clients act on codes: they repeat what is retriable, ask for metadata again, or give up. So each refusal gets the
//! code whose treatment fits it, and its words go into the message where an answer has room for one.

use kafka_protocol::ResponseError;
use trifid_stream_engine::groups::{ClassicError, CommitRefusal, GroupError};
use trifid_stream_engine::{CommitFailure, CreateError, DeleteError, FetchError, PublishError};
use trifid_stream_model::batch::BatchError;
use trifid_stream_model::spec::SpecError;

/// A publish that was not taken.
pub(crate) fn publish(error: &PublishError) -> ResponseError {
    match error {
        // Of the codes that every client repeats after a while, without asking for metadata first, this is the one
        // that says that nothing was stored.
        PublishError::Overloaded { .. } => ResponseError::NotEnoughReplicas,
        PublishError::TooLarge { .. } => ResponseError::MessageTooLarge,
        PublishError::OutOfSequence { .. } => ResponseError::OutOfOrderSequenceNumber,
        PublishError::Fenced { .. } => ResponseError::InvalidProducerEpoch,
        PublishError::UnknownProducer => ResponseError::UnknownProducerId,
        PublishError::NoSpace | PublishError::Failed => ResponseError::KafkaStorageError,
        PublishError::Deleted => ResponseError::UnknownTopicOrPartition,
        PublishError::ShuttingDown => ResponseError::NotLeaderOrFollower,
        PublishError::Invalid(error) => batch(error),
    }
}

/// Bytes that are no batch.
pub(crate) fn batch(error: &BatchError) -> ResponseError {
    match error {
        BatchError::TooLarge { .. } => ResponseError::MessageTooLarge,
        BatchError::Magic(_) => ResponseError::UnsupportedForMessageFormat,
        BatchError::Checksum { .. }
        | BatchError::Truncated { .. }
        | BatchError::Trailing(_)
        | BatchError::Length(_) => ResponseError::CorruptMessage,
        BatchError::Timestamps { .. } | BatchError::LogAppendTime => ResponseError::InvalidTimestamp,
        BatchError::Transactional => ResponseError::InvalidTxnState,
        BatchError::Compressed(_) => ResponseError::UnsupportedCompressionType,
        BatchError::TooMany(_)
        | BatchError::Empty
        | BatchError::Attributes(_)
        | BatchError::Control
        | BatchError::Count { .. }
        | BatchError::TooManyRecords(_)
        | BatchError::Dense { .. }
        | BatchError::Producer { .. }
        | BatchError::Record { .. }
        | BatchError::Damaged(_)
        | BatchError::Inflated(_) => ResponseError::InvalidRecord,
    }
}

/// A publish that was taken and did not reach the disk.
pub(crate) fn commit(failure: CommitFailure) -> ResponseError {
    match failure {
        CommitFailure::NoSpace | CommitFailure::Failed => ResponseError::KafkaStorageError,
        CommitFailure::Deleted => ResponseError::UnknownTopicOrPartition,
    }
}

/// Nothing to read.
pub(crate) fn fetch(error: &FetchError) -> ResponseError {
    match error {
        FetchError::TooOld { .. } | FetchError::InFuture { .. } => ResponseError::OffsetOutOfRange,
        FetchError::Damaged { .. } | FetchError::Io(_) => ResponseError::KafkaStorageError,
        FetchError::Gone => ResponseError::UnknownTopicOrPartition,
    }
}

/// A stream that was not made or changed.
pub(crate) fn create(error: &CreateError) -> ResponseError {
    match error {
        CreateError::Exists => ResponseError::TopicAlreadyExists,
        CreateError::Unknown => ResponseError::UnknownTopicOrPartition,
        CreateError::NoDirectory => ResponseError::InvalidConfig,
        CreateError::Spec(error) => spec(error),
        CreateError::Shards { .. } => ResponseError::InvalidPartitions,
        CreateError::TooMany { .. } => ResponseError::PolicyViolation,
        CreateError::Reserved => ResponseError::InvalidTopicException,
        CreateError::NoSpace | CreateError::Failed => ResponseError::KafkaStorageError,
        CreateError::ShuttingDown => ResponseError::NotController,
    }
}

/// What was asked of a stream.
pub(crate) fn spec(error: &SpecError) -> ResponseError {
    match error {
        SpecError::OutOfRange { field: "shards", .. } => ResponseError::InvalidPartitions,
        SpecError::OutOfRange { .. } | SpecError::CompactMemory => ResponseError::InvalidConfig,
    }
}

/// A stream that was not deleted.
pub(crate) fn delete(error: &DeleteError) -> ResponseError {
    match error {
        DeleteError::Unknown => ResponseError::UnknownTopicOrPartition,
        DeleteError::Reserved => ResponseError::InvalidTopicException,
        DeleteError::NoSpace | DeleteError::Failed => ResponseError::KafkaStorageError,
        DeleteError::ShuttingDown => ResponseError::NotController,
    }
}

/// A member of a classic group that is refused.
pub(crate) fn classic(error: &ClassicError) -> ResponseError {
    match error {
        ClassicError::UnknownMemberId => ResponseError::UnknownMemberId,
        ClassicError::IllegalGeneration { .. } => ResponseError::IllegalGeneration,
        ClassicError::RebalanceInProgress => ResponseError::RebalanceInProgress,
        ClassicError::InconsistentGroupProtocol => ResponseError::InconsistentGroupProtocol,
        ClassicError::MemberIdRequired { .. } => ResponseError::MemberIdRequired,
        ClassicError::FencedInstanceId => ResponseError::FencedInstanceId,
        ClassicError::GroupMaxSizeReached => ResponseError::GroupMaxSizeReached,
        ClassicError::InvalidSessionTimeout { .. } => ResponseError::InvalidSessionTimeout,
        ClassicError::TooLarge { .. } => ResponseError::InvalidRequest,
        ClassicError::NotAvailable => ResponseError::CoordinatorNotAvailable,
    }
}

/// Something that was not done for a group.
pub(crate) fn group(error: &GroupError) -> ResponseError {
    match error {
        GroupError::Unknown => ResponseError::GroupIdNotFound,
        GroupError::Gone => ResponseError::UnknownMemberId,
        GroupError::UnknownStream(_) | GroupError::UnknownShard { .. } => {
            ResponseError::UnknownTopicOrPartition
        }
        GroupError::NotEmpty(_) => ResponseError::NonEmptyGroup,
        GroupError::OtherProtocol(_) => ResponseError::InconsistentGroupProtocol,
        GroupError::OutOfRange { field: "note", .. } => ResponseError::OffsetMetadataTooLarge,
        GroupError::OutOfRange { .. } | GroupError::Repeated(_) => ResponseError::InvalidRequest,
        GroupError::TooMany { .. } | GroupError::Overloaded { .. } => ResponseError::CoordinatorNotAvailable,
        GroupError::NoSpace | GroupError::Failed => ResponseError::KafkaStorageError,
        GroupError::ShuttingDown => ResponseError::NotCoordinator,
    }
}

/// Offsets that were not committed.
pub(crate) fn commit_offsets(refusal: &CommitRefusal) -> ResponseError {
    match refusal {
        CommitRefusal::Member(error) => classic(error),
        CommitRefusal::Offsets(error) => group(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_tried_again() {
        let passing = [
            publish(&PublishError::Overloaded { retry_after_ms: 5 }),
            publish(&PublishError::NoSpace),
            publish(&PublishError::ShuttingDown),
            publish(&PublishError::Deleted),
            commit(CommitFailure::NoSpace),
            create(&CreateError::NoSpace),
            create(&CreateError::ShuttingDown),
            delete(&DeleteError::ShuttingDown),
            classic(&ClassicError::NotAvailable),
            group(&GroupError::Overloaded { retry_after_ms: 5 }),
            group(&GroupError::ShuttingDown),
        ];
        assert!(passing.iter().all(ResponseError::is_retriable), "{passing:?}");
    }

    #[test]
    fn what_is_wrong_with_the_request_is_not() {
        let lasting = [
            publish(&PublishError::TooLarge { bytes: 2, limit: 1 }),
            publish(&PublishError::Fenced { epoch: 1 }),
            publish(&PublishError::Invalid(BatchError::Magic(1))),
            publish(&PublishError::Invalid(BatchError::Control)),
            create(&CreateError::Exists),
            create(&CreateError::NoDirectory),
            create(&CreateError::Reserved),
            classic(&ClassicError::FencedInstanceId),
            group(&GroupError::Unknown),
        ];
        assert!(!lasting.iter().any(ResponseError::is_retriable), "{lasting:?}");
    }
}
