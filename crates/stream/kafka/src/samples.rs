//! One well-filled request of every API and version, written by `kafka-protocol`'s client side: what the shapes are
//! compared with, and where the fuzz replay begins.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Encodable, StrBytes};
use uuid::Uuid;

fn s(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn topic(text: &'static str) -> TopicName {
    TopicName(s(text))
}

fn group(text: &'static str) -> GroupId {
    GroupId(s(text))
}

/// A whole request without its length.
#[allow(dead_code)] // not everybody who includes this file wants whole requests
pub(crate) fn framed(key: ApiKey, version: i16, body: &[u8]) -> Bytes {
    let header = RequestHeader::default()
        .with_request_api_key(key as i16)
        .with_request_api_version(version)
        .with_correlation_id(7)
        .with_client_id(Some(s("samples")));
    let mut out = BytesMut::new();
    header.encode(&mut out, key.request_header_version(version)).unwrap();
    out.extend_from_slice(body);
    out.freeze()
}

fn bytes(message: &impl Encodable, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out, version).unwrap();
    out.freeze()
}

/// A well-filled request of this API in this version.
pub(crate) fn body(key: ApiKey, v: i16) -> Bytes {
    match key {
        ApiKey::Produce => bytes(&produce(), v),
        ApiKey::Fetch => bytes(&fetch(v), v),
        ApiKey::ListOffsets => bytes(&list_offsets(), v),
        ApiKey::Metadata => bytes(&metadata(), v),
        ApiKey::OffsetCommit => bytes(&offset_commit(v), v),
        ApiKey::OffsetFetch => bytes(&offset_fetch(v), v),
        ApiKey::FindCoordinator => bytes(&find_coordinator(v), v),
        ApiKey::JoinGroup => bytes(&join_group(v), v),
        ApiKey::Heartbeat => bytes(&heartbeat(v), v),
        ApiKey::LeaveGroup => bytes(&leave_group(v), v),
        ApiKey::SyncGroup => bytes(&sync_group(v), v),
        ApiKey::DescribeGroups => {
            bytes(&DescribeGroupsRequest::default().with_groups(vec![group("g"), group("h")]), v)
        }
        ApiKey::ListGroups => bytes(&list_groups(v), v),
        ApiKey::SaslHandshake => bytes(&SaslHandshakeRequest::default().with_mechanism(s("PLAIN")), v),
        ApiKey::ApiVersions => bytes(&api_versions(v), v),
        ApiKey::CreateTopics => bytes(&create_topics(), v),
        ApiKey::DeleteTopics => bytes(&delete_topics(v), v),
        ApiKey::InitProducerId => bytes(&InitProducerIdRequest::default().with_transaction_timeout_ms(9), v),
        ApiKey::OffsetForLeaderEpoch => bytes(&for_leader_epoch(), v),
        ApiKey::DescribeConfigs => bytes(&describe_configs(), v),
        ApiKey::AlterConfigs => bytes(&alter_configs(), v),
        ApiKey::SaslAuthenticate => {
            bytes(&SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from_static(b"\0a\0b")), v)
        }
        ApiKey::CreatePartitions => bytes(&create_partitions(), v),
        ApiKey::DeleteGroups => bytes(&DeleteGroupsRequest::default().with_groups_names(vec![group("g")]), v),
        ApiKey::IncrementalAlterConfigs => bytes(&incremental_alter_configs(), v),
        ApiKey::OffsetDelete => bytes(&offset_delete(), v),
        ApiKey::DescribeCluster => bytes(&DescribeClusterRequest::default(), v),
        other => panic!("{other:?} is in the table and has no sample"),
    }
}

fn produce() -> ProduceRequest {
    use produce_request::{PartitionProduceData, TopicProduceData};
    let partition = |index| {
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(Bytes::from_static(b"not a batch")))
            .with_unknown_tagged_fields([(9, Bytes::from_static(b"tag"))].into())
    };
    let data = TopicProduceData::default()
        .with_name(topic("orders"))
        .with_partition_data(vec![partition(0), partition(3)]);
    ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(1000)
        .with_topic_data(vec![data.clone(), data.with_name(topic("others"))])
}

fn fetch(v: i16) -> FetchRequest {
    use fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
    let partition = |index| {
        FetchPartition::default().with_partition(index).with_fetch_offset(5).with_partition_max_bytes(1000)
    };
    let named = match v {
        ..=12 => FetchTopic::default().with_topic(topic("orders")),
        _ => FetchTopic::default().with_topic_id(Uuid::from_u128(77)),
    };
    let forgotten = match v {
        ..=12 => ForgottenTopic::default().with_topic(topic("orders")),
        _ => ForgottenTopic::default().with_topic_id(Uuid::from_u128(77)),
    };
    let request = FetchRequest::default()
        .with_max_wait_ms(1)
        .with_min_bytes(1)
        .with_max_bytes(1000)
        .with_topics(vec![named.with_partitions(vec![partition(0), partition(1)])]);
    match v {
        ..=6 => request,
        7..=10 => request.with_forgotten_topics_data(vec![forgotten.with_partitions(vec![1, 2])]),
        _ => request
            .with_forgotten_topics_data(vec![forgotten.with_partitions(vec![1, 2])])
            .with_rack_id(s("rack")),
    }
}

fn list_offsets() -> ListOffsetsRequest {
    use list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let partition =
        |index, time| ListOffsetsPartition::default().with_partition_index(index).with_timestamp(time);
    let wanted = ListOffsetsTopic::default().with_name(topic("orders")).with_partitions(vec![
        partition(0, -1),
        partition(0, -2),
        partition(0, -3),
        partition(0, 4),
    ]);
    ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![wanted])
}

fn metadata() -> MetadataRequest {
    let one = |name| metadata_request::MetadataRequestTopic::default().with_name(Some(topic(name)));
    MetadataRequest::default().with_topics(Some(vec![one("orders"), one("no topic")]))
}

fn offset_commit(v: i16) -> OffsetCommitRequest {
    use offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(5)
        .with_committed_metadata(Some(s("note")));
    let committed = OffsetCommitRequestTopic::default()
        .with_name(topic("orders"))
        .with_partitions(vec![partition.clone(), partition.with_partition_index(1)]);
    let request = OffsetCommitRequest::default()
        .with_group_id(group("g"))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![committed]);
    if v >= 7 { request.with_group_instance_id(Some(s("static"))) } else { request }
}

fn offset_fetch(v: i16) -> OffsetFetchRequest {
    use offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics};
    if v <= 7 {
        let wanted =
            OffsetFetchRequestTopic::default().with_name(topic("orders")).with_partition_indexes(vec![0, 1]);
        return OffsetFetchRequest::default().with_group_id(group("g")).with_topics(Some(vec![wanted]));
    }
    let wanted =
        OffsetFetchRequestTopics::default().with_name(topic("orders")).with_partition_indexes(vec![0, 1]);
    let one = OffsetFetchRequestGroup::default().with_group_id(group("g")).with_topics(Some(vec![wanted]));
    let all = OffsetFetchRequestGroup::default().with_group_id(group("h")).with_topics(None);
    OffsetFetchRequest::default().with_groups(vec![one, all])
}

fn find_coordinator(v: i16) -> FindCoordinatorRequest {
    match v {
        ..=3 => FindCoordinatorRequest::default().with_key(s("g")),
        _ => FindCoordinatorRequest::default().with_coordinator_keys(vec![s("g"), s("h")]),
    }
}

fn join_group(v: i16) -> JoinGroupRequest {
    use join_group_request::JoinGroupRequestProtocol;
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(s("range"))
        .with_metadata(Bytes::from_static(b"subscription"));
    let request = JoinGroupRequest::default()
        .with_group_id(group("g"))
        .with_session_timeout_ms(1000)
        .with_protocol_type(s("consumer"))
        .with_protocols(vec![protocol.clone(), protocol.with_name(s("sticky"))]);
    let request = if v >= 1 { request.with_rebalance_timeout_ms(20) } else { request };
    let request = if v >= 5 { request.with_group_instance_id(Some(s("static"))) } else { request };
    if v >= 8 { request.with_reason(Some(s("because"))) } else { request }
}

fn sync_group(v: i16) -> SyncGroupRequest {
    let assigned = sync_group_request::SyncGroupRequestAssignment::default()
        .with_member_id(s("m"))
        .with_assignment(Bytes::from_static(b"assignment"));
    let request = SyncGroupRequest::default()
        .with_group_id(group("g"))
        .with_member_id(s("m"))
        .with_assignments(vec![assigned]);
    match v {
        5.. => request.with_protocol_type(Some(s("consumer"))).with_protocol_name(Some(s("range"))),
        _ => request,
    }
}

fn heartbeat(v: i16) -> HeartbeatRequest {
    let request = HeartbeatRequest::default().with_group_id(group("g")).with_member_id(s("m"));
    if v >= 3 { request.with_group_instance_id(Some(s("static"))) } else { request }
}

fn leave_group(v: i16) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(group("g"));
    if v <= 2 {
        return request.with_member_id(s("m"));
    }
    let member = leave_group_request::MemberIdentity::default().with_member_id(s("m"));
    let member = if v >= 5 { member.with_reason(Some(s("because"))) } else { member };
    request.with_members(vec![member])
}

fn list_groups(v: i16) -> ListGroupsRequest {
    let request = ListGroupsRequest::default();
    let request = if v >= 4 { request.with_states_filter(vec![s("Stable")]) } else { request };
    if v >= 5 { request.with_types_filter(vec![s("classic")]) } else { request }
}

fn api_versions(v: i16) -> ApiVersionsRequest {
    match v {
        3.. => ApiVersionsRequest::default()
            .with_client_software_name(s("samples"))
            .with_client_software_version(s("1")),
        _ => ApiVersionsRequest::default(),
    }
}

fn create_topics() -> CreateTopicsRequest {
    use create_topics_request::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig};
    let config = CreatableTopicConfig::default().with_name(s("retention.ms")).with_value(Some(s("86400000")));
    let made = CreatableTopic::default().with_num_partitions(2).with_replication_factor(1);
    let placed =
        CreatableReplicaAssignment::default().with_partition_index(0).with_broker_ids(vec![BrokerId(1)]);
    CreateTopicsRequest::default().with_timeout_ms(9).with_validate_only(true).with_topics(vec![
        made.clone().with_name(topic("orders")).with_configs(vec![config]),
        made.with_name(topic("placed")).with_num_partitions(-1).with_assignments(vec![placed]),
    ])
}

fn delete_topics(v: i16) -> DeleteTopicsRequest {
    let request = DeleteTopicsRequest::default().with_timeout_ms(9);
    if v < 6 {
        return request.with_topic_names(vec![topic("gone"), topic("also")]);
    }
    let one = delete_topics_request::DeleteTopicState::default();
    request
        .with_topics(vec![one.clone().with_name(Some(topic("gone"))), one.with_topic_id(Uuid::from_u128(3))])
}

fn for_leader_epoch() -> OffsetForLeaderEpochRequest {
    use offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
    let partition = OffsetForLeaderPartition::default().with_leader_epoch(0).with_current_leader_epoch(-1);
    let wanted = OffsetForLeaderTopic::default().with_topic(topic("orders")).with_partitions(vec![partition]);
    OffsetForLeaderEpochRequest::default().with_topics(vec![wanted])
}

fn describe_configs() -> DescribeConfigsRequest {
    let one = |kind, name, keys| {
        describe_configs_request::DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(s(name))
            .with_configuration_keys(keys)
    };
    DescribeConfigsRequest::default().with_resources(vec![
        one(2, "orders", None),
        one(2, "orders", Some(vec![s("retention.ms"), s("cleanup.policy")])),
        one(4, "1", None),
    ])
}

fn alter_configs() -> AlterConfigsRequest {
    let config = alter_configs_request::AlterableConfig::default()
        .with_name(s("retention.ms"))
        .with_value(Some(s("86400000")));
    let resource = alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(s("orders"))
        .with_configs(vec![config]);
    AlterConfigsRequest::default().with_resources(vec![resource])
}

fn incremental_alter_configs() -> IncrementalAlterConfigsRequest {
    let config = |name, operation, value| {
        incremental_alter_configs_request::AlterableConfig::default()
            .with_name(s(name))
            .with_config_operation(operation)
            .with_value(value)
    };
    let resource = incremental_alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(s("orders"))
        .with_configs(vec![
            config("retention.ms", 0, Some(s("86400000"))),
            config("retention.bytes", 1, None),
        ]);
    IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
}

fn create_partitions() -> CreatePartitionsRequest {
    use create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
    let placed = CreatePartitionsAssignment::default().with_broker_ids(vec![BrokerId(1)]);
    let one = |name, placed| {
        CreatePartitionsTopic::default().with_name(topic(name)).with_count(3).with_assignments(placed)
    };
    CreatePartitionsRequest::default()
        .with_timeout_ms(9)
        .with_topics(vec![one("orders", None), one("gone", Some(vec![placed]))])
}

fn offset_delete() -> OffsetDeleteRequest {
    use offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
    let partition = |index| OffsetDeleteRequestPartition::default().with_partition_index(index);
    let gone = OffsetDeleteRequestTopic::default()
        .with_name(topic("orders"))
        .with_partitions(vec![partition(0), partition(1)]);
    OffsetDeleteRequest::default().with_group_id(group("g")).with_topics(vec![gone])
}
