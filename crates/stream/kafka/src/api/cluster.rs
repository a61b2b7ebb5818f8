//! What a client asks first: which APIs there are, and which broker has which topics. There is one broker, which
//! leads every partition and coordinates every group.

use std::rc::Rc;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    ApiVersionsResponse, BrokerId, DescribeClusterRequest, DescribeClusterResponse, MetadataRequest,
    MetadataResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use trifid_stream_engine::Stream;
use uuid::Uuid;

use super::caller::{Caller, blocking, distinct, name, text};
use super::table::APIS;
use super::{Answer, codes, encode};
use crate::limits::TOPICS_LISTED_MAX;
use crate::wire::head::Head;

/// The broker's number.
pub(crate) const NODE: BrokerId = BrokerId(1);

/// The cluster's name.
const CLUSTER: &str = "trifid";

/// Tells which APIs there are.
pub(crate) fn api_versions(head: &Head) -> Answer {
    encode(head, &ApiVersionsResponse::default().with_api_keys(versions()))
}

/// Tells a client of an unknown version the same in the oldest form (KIP-511).
pub(crate) fn api_versions_refused(head: &Head) -> Answer {
    let oldest = Head { version: 0, client: None, ..head.clone() };
    let response = ApiVersionsResponse::default()
        .with_error_code(ResponseError::UnsupportedVersion.code())
        .with_api_keys(versions());
    encode(&oldest, &response)
}

fn versions() -> Vec<ApiVersion> {
    let one = |api: &super::table::Api| {
        ApiVersion::default()
            .with_api_key(api.key as i16)
            .with_min_version(api.oldest)
            .with_max_version(api.newest)
    };
    APIS.iter().map(one).collect()
}

/// Tells of this broker.
pub(crate) async fn describe(
    caller: Rc<Caller>,
    _: DescribeClusterRequest,
    _: i16,
) -> DescribeClusterResponse {
    let broker = DescribeClusterBroker::default()
        .with_broker_id(NODE)
        .with_host(text(&*caller.endpoint.host))
        .with_port(caller.endpoint.port.into());
    DescribeClusterResponse::default()
        .with_cluster_id(StrBytes::from_static_str(CLUSTER))
        .with_controller_id(NODE)
        .with_brokers(vec![broker])
}

/// Tells of topics, and makes those that are named for the first time where the broker's policy and the client allow
/// it.
pub(crate) async fn metadata(caller: Rc<Caller>, request: MetadataRequest, version: i16) -> MetadataResponse {
    let topics = match request.topics {
        Some(topics) if version > 0 || !topics.is_empty() => {
            let create = request.allow_auto_topic_creation && caller.may_write();
            let topics = distinct(topics, |topic| (topic.name.clone(), topic.topic_id));
            let mut found = Vec::with_capacity(topics.len());
            for topic in topics {
                found.push(one(&caller, topic, create).await);
            }
            found
        }
        // Version 0 asks for all topics by naming none, later ones by a missing list.
        _ => all(&caller),
    };
    let broker = MetadataResponseBroker::default()
        .with_node_id(NODE)
        .with_host(text(&*caller.endpoint.host))
        .with_port(caller.endpoint.port.into());
    MetadataResponse::default()
        .with_brokers(vec![broker])
        .with_cluster_id(Some(StrBytes::from_static_str(CLUSTER)))
        .with_controller_id(NODE)
        .with_topics(topics)
}

async fn one(caller: &Rc<Caller>, topic: MetadataRequestTopic, create: bool) -> MetadataResponseTopic {
    let Some(named) = topic.name else {
        let id = topic.topic_id;
        return match caller.stream_of_id(id.into_bytes()) {
            Ok(stream) => found(&stream),
            Err(error) => MetadataResponseTopic::default()
                .with_error_code(error.code())
                .with_name(None)
                .with_topic_id(id),
        };
    };
    let stream = match caller.stream(&named) {
        Err(ResponseError::UnknownTopicOrPartition) if create => make(caller, &named).await,
        found => found,
    };
    match stream {
        Ok(stream) => found(&stream),
        Err(error) => MetadataResponseTopic::default().with_error_code(error.code()).with_name(Some(named)),
    }
}

/// Makes a stream on its first use; the policy may say no.
async fn make(caller: &Rc<Caller>, topic: &TopicName) -> Result<Arc<Stream>, ResponseError> {
    let name = name(topic)?;
    let (broker, tenant) = (caller.broker().clone(), caller.tenant.clone());
    let made = blocking(move || broker.stream_or_create(&tenant, &name)).await?;
    made.map_err(|error| codes::create(&error))
}

fn all(caller: &Caller) -> Vec<MetadataResponseTopic> {
    let streams = caller.broker().list(&caller.tenant, "", None, TOPICS_LISTED_MAX);
    streams.iter().map(|stream| found(stream)).collect()
}

fn found(stream: &Stream) -> MetadataResponseTopic {
    let partition = |(index, epoch)| {
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(NODE)
            .with_leader_epoch(epoch)
            .with_replica_nodes(vec![NODE])
            .with_isr_nodes(vec![NODE])
    };
    let epochs = stream.shards().iter().map(|shard| i32::try_from(shard.epoch()).unwrap_or(i32::MAX));
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(text(stream.name().as_str()))))
        .with_topic_id(Uuid::from_bytes(stream.topic_id()))
        .with_is_internal(stream.name().is_internal())
        .with_partitions((0..).zip(epochs).map(partition).collect())
}
