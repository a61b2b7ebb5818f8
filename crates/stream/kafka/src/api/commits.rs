//! OffsetCommit, OffsetFetch, OffsetDelete: how far groups have come. The offsets are those of the native groups.

use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{
    GroupId, OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse,
    OffsetFetchRequest, OffsetFetchResponse, TopicName,
};
use trifid_stream_engine::groups::{Committed, MemberRef, OffsetCommit};
use trifid_stream_model::names::{GroupName, StreamName};

use super::caller::{Caller, distinct, name, shard, text};
use super::codes;
use super::members::group_name;

/// No offset is committed.
const NONE: i64 = -1;

/// Commits, and answers when the offsets are as durable as offsets are.
pub(crate) async fn commit(caller: Rc<Caller>, request: OffsetCommitRequest, _: i16) -> OffsetCommitResponse {
    let mut offsets = Vec::new();
    // A code for each partition, in the request's order; what is taken is none of these.
    let codes: Vec<Vec<i16>> = request
        .topics
        .iter()
        .map(|topic| {
            let one = |partition| wanted(&caller, &topic.name, partition).map(|offset| offsets.push(offset));
            topic.partitions.iter().map(one).map(code).collect()
        })
        .collect();
    let committed = code(commit_all(&caller, &request, offsets).await);
    let topics = request.topics.into_iter().zip(codes).map(|(topic, codes)| {
        let partitions = topic.partitions.iter().zip(codes).map(|(partition, code)| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(if code == 0 { committed } else { code })
        });
        let partitions = partitions.collect();
        OffsetCommitResponseTopic::default().with_name(topic.name).with_partitions(partitions)
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}

fn wanted(
    caller: &Caller,
    topic: &TopicName,
    partition: &kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition,
) -> Result<OffsetCommit, ResponseError> {
    let stream = caller.stream(topic)?;
    shard(&stream, partition.partition_index)?;
    Ok(OffsetCommit {
        stream: stream.name().clone(),
        shard: u32::try_from(partition.partition_index)
            .map_err(|_| ResponseError::UnknownTopicOrPartition)?,
        offset: u64::try_from(partition.committed_offset).map_err(|_| ResponseError::OffsetOutOfRange)?,
        note: partition.committed_metadata.as_deref().unwrap_or_default().into(),
    })
}

async fn commit_all(
    caller: &Caller,
    request: &OffsetCommitRequest,
    offsets: Vec<OffsetCommit>,
) -> Result<(), ResponseError> {
    let group = group_name(&request.group_id)?;
    let member = MemberRef {
        generation: request.generation_id_or_member_epoch,
        member_id: request.member_id.to_string(),
        instance_id: request.group_instance_id.as_ref().map(ToString::to_string),
    };
    let ack = caller.broker().groups().commit_as(&caller.tenant, &group, &member, &offsets);
    ack.map_err(|refusal| codes::commit_offsets(&refusal))?.await.map_err(codes::commit)
}

fn code(result: Result<(), ResponseError>) -> i16 {
    result.err().map_or(0, |error| error.code())
}

/// Tells how far groups have come: one group, or since version 8 several.
pub(crate) async fn fetch(
    caller: Rc<Caller>,
    request: OffsetFetchRequest,
    version: i16,
) -> OffsetFetchResponse {
    if version < 8 {
        let topics = request
            .topics
            .map(|topics| topics.into_iter().map(|topic| (topic.name, topic.partition_indexes)).collect());
        return match found(&caller, &request.group_id, topics) {
            Ok(found) => OffsetFetchResponse::default().with_topics(single(found)),
            Err(error) => OffsetFetchResponse::default().with_error_code(error.code()),
        };
    }
    let groups = distinct(request.groups, |group| (group.group_id.clone(), group.topics.is_none()));
    let groups = groups.into_iter().map(|group| {
        let topics = group
            .topics
            .map(|topics| topics.into_iter().map(|topic| (topic.name, topic.partition_indexes)).collect());
        let response = OffsetFetchResponseGroup::default();
        let response = match found(&caller, &group.group_id, topics) {
            Ok(found) => response.with_topics(several(found)),
            Err(error) => response.with_error_code(error.code()),
        };
        response.with_group_id(group.group_id)
    });
    OffsetFetchResponse::default().with_groups(groups.collect())
}

/// Topics with their partitions and what is committed of each.
type Found = Vec<(TopicName, Vec<(i32, Option<Committed>)>)>;

/// What is committed of these partitions, or of all there are.
fn found(
    caller: &Caller,
    group: &GroupId,
    topics: Option<Vec<(TopicName, Vec<i32>)>>,
) -> Result<Found, ResponseError> {
    let group = group_name(group)?;
    let Some(topics) = topics else { return Ok(all(caller, &group)) };
    let groups = caller.broker().groups();
    let topic = |(topic, indexes): (TopicName, Vec<i32>)| {
        let stream = name(&topic).ok();
        let one = |index: i32| {
            let shard = u32::try_from(index).ok()?;
            groups.committed(&caller.tenant, &group, stream.as_ref()?, shard)
        };
        let partitions = indexes.into_iter().map(|index| (index, one(index))).collect();
        (topic, partitions)
    };
    Ok(topics.into_iter().map(topic).collect())
}

fn all(caller: &Caller, group: &GroupName) -> Found {
    let mut topics: BTreeMap<StreamName, Vec<(i32, Option<Committed>)>> = BTreeMap::new();
    let committed = caller.broker().groups().all_committed(&caller.tenant, group, None);
    for (stream, shard, committed) in committed.unwrap_or_default() {
        let index = i32::try_from(shard).unwrap_or(i32::MAX);
        topics.entry(stream).or_default().push((index, Some(committed)));
    }
    topics.into_iter().map(|(stream, partitions)| (TopicName(text(stream.as_str())), partitions)).collect()
}

fn offset_of(committed: Option<&Committed>) -> (i64, Option<String>) {
    committed.map_or((NONE, Some(String::new())), |committed| {
        (i64::try_from(committed.offset).unwrap_or(i64::MAX), Some(committed.note.to_string()))
    })
}

fn single(found: Found) -> Vec<OffsetFetchResponseTopic> {
    let partition = |(index, committed): (i32, Option<Committed>)| {
        let (offset, note) = offset_of(committed.as_ref());
        OffsetFetchResponsePartition::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_metadata(note.map(text))
    };
    let topic = |(name, partitions): (TopicName, Vec<(i32, Option<Committed>)>)| {
        let partitions = partitions.into_iter().map(partition).collect();
        OffsetFetchResponseTopic::default().with_name(name).with_partitions(partitions)
    };
    found.into_iter().map(topic).collect()
}

fn several(found: Found) -> Vec<OffsetFetchResponseTopics> {
    let partition = |(index, committed): (i32, Option<Committed>)| {
        let (offset, note) = offset_of(committed.as_ref());
        OffsetFetchResponsePartitions::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_metadata(note.map(text))
    };
    let topic = |(name, partitions): (TopicName, Vec<(i32, Option<Committed>)>)| {
        let partitions = partitions.into_iter().map(partition).collect();
        OffsetFetchResponseTopics::default().with_name(name).with_partitions(partitions)
    };
    found.into_iter().map(topic).collect()
}

/// Forgets offsets of a group that nobody is in.
pub(crate) async fn delete(caller: Rc<Caller>, request: OffsetDeleteRequest, _: i16) -> OffsetDeleteResponse {
    let wanted = |topic: &OffsetDeleteRequestTopic| {
        let stream = name(&topic.name).ok();
        let shards: Vec<_> =
            topic.partitions.iter().map(|part| u32::try_from(part.partition_index)).collect();
        shards.into_iter().filter_map(move |shard| Some((stream.clone()?, shard.ok()?)))
    };
    let shards: Vec<_> = request.topics.iter().flat_map(wanted).collect();
    if let Err(error) = delete_all(&caller, &request.group_id, &shards).await {
        return OffsetDeleteResponse::default().with_error_code(error.code());
    }
    let topics = request.topics.into_iter().map(|topic| {
        let partition = |part: OffsetDeleteRequestPartition| {
            OffsetDeleteResponsePartition::default().with_partition_index(part.partition_index)
        };
        OffsetDeleteResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(topic.partitions.into_iter().map(partition).collect())
    });
    OffsetDeleteResponse::default().with_topics(topics.collect())
}

async fn delete_all(
    caller: &Caller,
    group: &GroupId,
    shards: &[(StreamName, u32)],
) -> Result<(), ResponseError> {
    if !caller.may_write() {
        return Err(ResponseError::GroupAuthorizationFailed);
    }
    let gone = caller.broker().groups().delete_offsets(&caller.tenant, &group_name(group)?, shards);
    gone.map_err(|error| codes::group(&error))?.await.map_err(codes::commit)
}
