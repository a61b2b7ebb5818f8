//! ListOffsets and OffsetForLeaderEpoch: where a partition begins and ends, and where a time lies in it.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    TopicName,
};
use trifid_stream_engine::{FetchError, Shard};
use trifid_stream_model::batch::BatchHeader;

use super::caller::{Caller, blocking};
use super::codes;
use super::fetch::check_epoch;

/// The end.
const LATEST: i64 = -1;
/// The beginning.
const EARLIEST: i64 = -2;
/// The record with the largest timestamp (KIP-734).
const MAX_TIMESTAMP: i64 = -3;
/// The beginning of what lies on the broker itself (KIP-405), which is all of it.
const EARLIEST_LOCAL: i64 = -4;

/// Answers where each partition begins, ends, or reaches a time.
pub(crate) async fn list(
    caller: Rc<Caller>,
    request: ListOffsetsRequest,
    version: i16,
) -> ListOffsetsResponse {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in topic.partitions {
            partitions.push(one(&caller, &topic.name, partition, version).await);
        }
        topics.push(ListOffsetsTopicResponse::default().with_name(topic.name).with_partitions(partitions));
    }
    ListOffsetsResponse::default().with_topics(topics)
}

async fn one(
    caller: &Caller,
    topic: &TopicName,
    wanted: ListOffsetsPartition,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let response = ListOffsetsPartitionResponse::default().with_partition_index(wanted.partition_index);
    match place(caller, topic, &wanted).await {
        Ok(Place { offset, timestamp, epoch }) => {
            let epoch = if version >= 4 { epoch } else { -1 };
            response.with_offset(offset).with_timestamp(timestamp).with_leader_epoch(epoch)
        }
        Err(error) => response.with_error_code(error.code()).with_offset(-1).with_timestamp(-1),
    }
}

struct Place {
    offset: i64,
    timestamp: i64,
    epoch: i32,
}

async fn place(
    caller: &Caller,
    topic: &TopicName,
    wanted: &ListOffsetsPartition,
) -> Result<Place, ResponseError> {
    let shard = caller.shard(topic, wanted.partition_index)?;
    check_epoch(&shard, wanted.current_leader_epoch)?;
    let epoch = i32::try_from(shard.epoch()).unwrap_or(i32::MAX);
    let at = |offset| Place { offset: signed(offset), timestamp: -1, epoch };
    match wanted.timestamp {
        LATEST => Ok(at(shard.end_offset())),
        EARLIEST | EARLIEST_LOCAL => Ok(at(shard.start_offset())),
        MAX_TIMESTAMP => search(shard, max_time).await.map(|found| found_at(found, epoch)),
        time if time >= 0 => {
            search(shard, move |shard| shard.offset_for_time(time)).await.map(|found| found_at(found, epoch))
        }
        _ => Err(ResponseError::InvalidRequest),
    }
}

type Found = Option<(u64, i64)>;

/// A search may have to read the log.
async fn search(
    shard: Arc<Shard>,
    look: impl FnOnce(&Shard) -> Result<Found, FetchError> + Send + 'static,
) -> Result<Found, ResponseError> {
    blocking(move || look(&shard)).await?.map_err(|error| codes::fetch(&error))
}

/// The first record with the largest timestamp. Times mostly ascend, so the last batch has it, and one question whether
/// there is anything later settles it. Where they do not, the largest time is closed in on by doubling and halving.
fn max_time(shard: &Shard) -> Result<Found, FetchError> {
    let Some(last) = shard.end_offset().checked_sub(1).filter(|last| *last >= shard.start_offset()) else {
        return Ok(None);
    };
    let page = shard.fetch(last, 1)?;
    let header = page.batches.first().and_then(|entry| BatchHeader::parse(&entry.bytes).ok());
    let mut known = header.map_or(0, |header| header.max_timestamp.max(0));
    let (mut step, mut ceiling) = (1i64, None);
    let mut found = shard.offset_for_time(known)?;
    while ceiling.is_none_or(|ceiling| known < ceiling - 1) {
        let guess = match ceiling {
            None => known.saturating_add(step),
            Some(ceiling) => known + (ceiling - known) / 2,
        };
        match shard.offset_for_time(guess)? {
            Some((offset, time)) => {
                (known, found) = (time.max(guess), Some((offset, time)));
                step = step.saturating_mul(2);
            }
            None => ceiling = Some(guess),
        }
        if known == i64::MAX {
            break;
        }
    }
    Ok(found)
}

/// Nothing at or after the time: no offset and no time, and no error either.
fn found_at(found: Found, epoch: i32) -> Place {
    match found {
        Some((offset, timestamp)) => Place { offset: signed(offset), timestamp, epoch },
        None => Place { offset: -1, timestamp: -1, epoch: -1 },
    }
}

/// Answers where an epoch ended, by which a consumer finds out whether the log was cut behind its back (KIP-320): a
/// stream that is flushed now and then can lose its end with the power.
pub(crate) async fn for_epoch(
    caller: Rc<Caller>,
    request: OffsetForLeaderEpochRequest,
    _: i16,
) -> OffsetForLeaderEpochResponse {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for wanted in &topic.partitions {
            let response = EpochEndOffset::default().with_partition(wanted.partition);
            partitions.push(match epoch_end(&caller, &topic.topic, wanted).await {
                Ok((epoch, end)) => response.with_leader_epoch(epoch).with_end_offset(end),
                Err(error) => {
                    response.with_error_code(error.code()).with_leader_epoch(-1).with_end_offset(-1)
                }
            });
        }
        topics
            .push(OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(partitions));
    }
    OffsetForLeaderEpochResponse::default().with_topics(topics)
}

async fn epoch_end(
    caller: &Caller,
    topic: &TopicName,
    wanted: &OffsetForLeaderPartition,
) -> Result<(i32, i64), ResponseError> {
    let shard = caller.shard(topic, wanted.partition)?;
    check_epoch(&shard, wanted.current_leader_epoch)?;
    let Ok(epoch) = u32::try_from(wanted.leader_epoch) else { return Ok((-1, -1)) };
    match epoch.cmp(&shard.epoch()) {
        Ordering::Equal => Ok((wanted.leader_epoch, signed(shard.end_offset()))),
        // One that is yet to come.
        Ordering::Greater => Ok((-1, -1)),
        Ordering::Less => {
            let end = blocking(move || first_after(&shard, epoch)).await?;
            Ok((wanted.leader_epoch, signed(end.map_err(|error| codes::fetch(&error))?)))
        }
    }
}

/// The first offset whose batch was written in a later epoch. Epochs ascend with offsets, so some twenty batches are
/// looked at.
fn first_after(shard: &Shard, epoch: u32) -> Result<u64, FetchError> {
    let (mut low, mut high) = (shard.start_offset(), shard.end_offset());
    while low < high {
        let middle = low + (high - low) / 2;
        match shard.fetch(middle, 1)?.batches.first() {
            Some(entry) if entry.epoch <= epoch => low = entry.end,
            // The batch may begin before the middle, and the answer with it.
            Some(entry) if entry.base <= middle => high = entry.base.max(low),
            // Compaction left nothing between the middle and the batch.
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}

fn signed(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}
