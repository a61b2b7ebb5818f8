//! CreateTopics, DeleteTopics, CreatePartitions.
//!
//! A topic is a stream, a partition is a shard. The replication factor is 1, or left to the broker; partitions are
//! placed by nobody, as there is one broker.

use std::collections::HashMap;
use std::rc::Rc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, TopicName,
};
use trifid_stream_model::spec::StreamSpec;
use uuid::Uuid;

use super::caller::{Caller, blocking, name, text};
use super::codes;
use super::configs::{self, Refused};

/// Makes streams.
pub(crate) async fn create(
    caller: Rc<Caller>,
    request: CreateTopicsRequest,
    version: i16,
) -> CreateTopicsResponse {
    let mut times: HashMap<&str, usize> = HashMap::with_capacity(request.topics.len());
    for topic in &request.topics {
        *times.entry(&topic.name).or_default() += 1;
    }
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let is_twice = times.get(&**topic.name).is_some_and(|times| *times > 1);
        let made = match is_twice {
            true => Err(Refused::new(ResponseError::InvalidRequest, "the topic is named twice")),
            false => create_one(&caller, topic, request.validate_only).await,
        };
        results.push(created(topic, made, version));
    }
    CreateTopicsResponse::default().with_topics(results)
}

/// A stream as it was made, or would be.
struct Made {
    id: Uuid,
    spec: StreamSpec,
}

async fn create_one(
    caller: &Rc<Caller>,
    topic: &CreatableTopic,
    validate_only: bool,
) -> Result<Made, Refused> {
    if !caller.may_write() {
        return Err(ResponseError::TopicAuthorizationFailed.into());
    }
    let name = name(&topic.name).map_err(|error| {
        Refused::new(error, "a topic is `stream` or `namespace.stream`, of letters, digits, . _ -")
    })?;
    let spec = wanted(caller, topic)?;
    spec.validate().map_err(|error| Refused::new(codes::spec(&error), error.to_string()))?;
    if validate_only {
        return match caller.stream(&topic.name) {
            Ok(_) => Err(Refused::new(ResponseError::TopicAlreadyExists, "the stream exists")),
            Err(_) => Ok(Made { id: Uuid::nil(), spec }),
        };
    }
    let (broker, tenant) = (caller.broker().clone(), caller.tenant.clone());
    let made = blocking(move || broker.create(&tenant, &name, spec)).await?;
    let stream = made.map_err(|error| Refused::new(codes::create(&error), error.to_string()))?;
    Ok(Made { id: Uuid::from_bytes(stream.topic_id()), spec: (*stream.spec()).clone() })
}

/// What is asked for: the broker's policy for streams made on first use, changed by the request.
fn wanted(caller: &Caller, topic: &CreatableTopic) -> Result<StreamSpec, Refused> {
    let mut spec = caller.broker().policy().spec.clone();
    if topic.assignments.is_empty() {
        if !matches!(topic.replication_factor, -1 | 1) {
            return Err(Refused::new(
                ResponseError::InvalidReplicationFactor,
                "there is one broker: the replication factor is 1, or -1",
            ));
        }
        if topic.num_partitions != -1 {
            spec.shards = shards(topic.num_partitions)?;
        }
    } else {
        // Placement by hand: every partition once, each on this broker.
        let mut indices: Vec<i32> = topic.assignments.iter().map(|one| one.partition_index).collect();
        indices.sort_unstable();
        let is_dense = (0..).zip(&indices).all(|(at, index)| at == *index);
        let is_here = topic.assignments.iter().all(|one| *one.broker_ids == [super::cluster::NODE]);
        if !is_dense || !is_here {
            return Err(ResponseError::InvalidReplicaAssignment.into());
        }
        spec.shards = shards(i32::try_from(indices.len()).unwrap_or(i32::MAX))?;
    }
    // The policy comes last: `compact` alone does away with retention, whatever the order in which they came.
    let (policies, others): (Vec<_>, Vec<_>) =
        topic.configs.iter().partition(|config| &*config.name == "cleanup.policy");
    for config in others.into_iter().chain(policies) {
        configs::set(&mut spec, &config.name, config.value.as_deref())?;
    }
    Ok(spec)
}

fn shards(count: i32) -> Result<u32, Refused> {
    u32::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| Refused::new(ResponseError::InvalidPartitions, "a topic has at least one partition"))
}

fn created(topic: &CreatableTopic, made: Result<Made, Refused>, version: i16) -> CreatableTopicResult {
    let result = CreatableTopicResult::default().with_name(topic.name.clone());
    match made {
        Ok(Made { id, spec }) => {
            let result = result
                .with_num_partitions(i32::try_from(spec.shards).unwrap_or(i32::MAX))
                .with_replication_factor(1)
                .with_topic_id(id);
            // KIP-525: since version 5 the answer tells the configuration.
            if version >= 5 { result.with_configs(Some(made_configs(&spec))) } else { result }
        }
        Err(Refused { error, message }) => {
            let message = message.map(text);
            result.with_error_code(error.code()).with_error_message(message).with_configs(None)
        }
    }
}

fn made_configs(spec: &StreamSpec) -> Vec<CreatableTopicConfigs> {
    let one = |config: configs::Shown| {
        CreatableTopicConfigs::default()
            .with_name(text(config.name))
            .with_value(Some(text(config.value)))
            .with_read_only(config.is_fixed)
            .with_config_source(config.source)
    };
    configs::shown(spec).map(one).collect()
}

/// Deletes streams, by name or by id.
pub(crate) async fn delete(
    caller: Rc<Caller>,
    request: DeleteTopicsRequest,
    version: i16,
) -> DeleteTopicsResponse {
    let named = |name: TopicName| DeleteTopicState::default().with_name(Some(name));
    let topics: Vec<_> = match version {
        6.. => request.topics,
        _ => request.topic_names.into_iter().map(named).collect(),
    };
    let mut results = Vec::with_capacity(topics.len());
    for topic in topics {
        let (name, gone) = delete_one(&caller, &topic).await;
        let result = DeletableTopicResult::default().with_name(name).with_topic_id(topic.topic_id);
        results.push(match gone {
            Ok(()) => result,
            Err(Refused { error, message }) => {
                result.with_error_code(error.code()).with_error_message(message.map(text))
            }
        });
    }
    DeleteTopicsResponse::default().with_responses(results)
}

async fn delete_one(
    caller: &Rc<Caller>,
    topic: &DeleteTopicState,
) -> (Option<TopicName>, Result<(), Refused>) {
    if !caller.may_write() {
        return (topic.name.clone(), Err(ResponseError::TopicAuthorizationFailed.into()));
    }
    let found = match &topic.name {
        Some(name) => caller.stream(name),
        None => caller.stream_of_id(topic.topic_id.into_bytes()),
    };
    let stream = match found {
        Ok(stream) => stream,
        Err(error) => return (topic.name.clone(), Err(error.into())),
    };
    let name = stream.name().clone();
    let shown = Some(TopicName(text(name.as_str())));
    let (broker, tenant) = (caller.broker().clone(), caller.tenant.clone());
    let gone = match blocking(move || broker.delete(&tenant, &name)).await {
        Ok(gone) => gone.map_err(|error| Refused::new(codes::delete(&error), error.to_string())),
        Err(error) => Err(error.into()),
    };
    (shown, gone)
}

/// Adds partitions. Keys move to other partitions by that, as everywhere.
pub(crate) async fn grow(
    caller: Rc<Caller>,
    request: CreatePartitionsRequest,
    _: i16,
) -> CreatePartitionsResponse {
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let result = CreatePartitionsTopicResult::default().with_name(topic.name.clone());
        results.push(match grow_one(&caller, &topic, request.validate_only).await {
            Ok(()) => result,
            Err(Refused { error, message }) => {
                result.with_error_code(error.code()).with_error_message(message.map(text))
            }
        });
    }
    CreatePartitionsResponse::default().with_results(results)
}

async fn grow_one(
    caller: &Rc<Caller>,
    topic: &CreatePartitionsTopic,
    validate_only: bool,
) -> Result<(), Refused> {
    if !caller.may_write() {
        return Err(ResponseError::TopicAuthorizationFailed.into());
    }
    let stream = caller.stream(&topic.name)?;
    let count = shards(topic.count)?;
    let have = u32::try_from(stream.shards().len()).unwrap_or(u32::MAX);
    if count <= have {
        let message = format!("the topic has {have} partitions; only more can be asked for");
        return Err(Refused::new(ResponseError::InvalidPartitions, message));
    }
    let placed = topic.assignments.as_deref().unwrap_or_default();
    if placed.iter().any(|one| *one.broker_ids != [super::cluster::NODE]) {
        return Err(ResponseError::InvalidReplicaAssignment.into());
    }
    let mut spec = (*stream.spec()).clone();
    spec.shards = count;
    spec.validate().map_err(|error| Refused::new(codes::spec(&error), error.to_string()))?;
    match validate_only {
        true => Ok(()),
        false => configs::change(caller, &stream, spec).await,
    }
}
