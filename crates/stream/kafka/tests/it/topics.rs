//! Topics: made, shown, changed, grown, deleted.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

use crate::harness::{Client, Harness, text, topic};

fn creatable(name: &str, partitions: i32, configs: &[(&str, &str)]) -> create_topics_request::CreatableTopic {
    let config = |(name, value): &(&str, &str)| {
        create_topics_request::CreatableTopicConfig::default()
            .with_name(text(name))
            .with_value(Some(text(value)))
    };
    create_topics_request::CreatableTopic::default()
        .with_name(topic(name))
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(configs.iter().map(config).collect())
}

fn create(client: &mut Client, one: create_topics_request::CreatableTopic) -> (i16, String) {
    let response = client.ask(7, &CreateTopicsRequest::default().with_topics(vec![one]));
    let result = &response.topics[0];
    (result.error_code, result.error_message.as_ref().map(ToString::to_string).unwrap_or_default())
}

fn spec(harness: &Harness, name: &str) -> StreamSpec {
    let stream = harness.broker.stream(&Tenant::default(), &StreamName::new(name).unwrap()).unwrap();
    (*stream.spec()).clone()
}

fn configs(client: &mut Client, name: &str) -> Vec<(String, String)> {
    let resource = describe_configs_request::DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text(name))
        .with_configuration_keys(None);
    let response = client.ask(4, &DescribeConfigsRequest::default().with_resources(vec![resource]));
    assert_eq!(response.results[0].error_code, 0);
    let pair = |config: &describe_configs_response::DescribeConfigsResourceResult| {
        (config.name.to_string(), config.value.as_ref().unwrap().to_string())
    };
    response.results[0].configs.iter().map(pair).collect()
}

fn value(configs: &[(String, String)], name: &str) -> String {
    configs.iter().find(|(key, _)| key == name).unwrap_or_else(|| panic!("{name}")).1.clone()
}

#[test]
fn a_topic_is_a_stream_with_these_settings() {
    let harness = Harness::new();
    let mut client = harness.client();
    let settings = [
        ("retention.ms", "86400000"),
        ("retention.bytes", "1000000"),
        ("max.message.bytes", "50000"),
        ("compression.type", "producer"),
    ];
    assert_eq!(create(&mut client, creatable("demo.readings", 4, &settings)), (0, String::new()));
    let made = spec(&harness, "demo.readings");
    let expected = StreamSpec {
        retention_ms: Some(86_400_000),
        retention_bytes: Some(1_000_000),
        max_batch_bytes: 50_000,
        ..StreamSpec::memory(4)
    };
    assert_eq!(made, expected);
    let shown = configs(&mut client, "demo.readings");
    for (name, expected) in
        settings.into_iter().chain([("cleanup.policy", "delete"), ("trifid.durability", "memory")])
    {
        assert_eq!(value(&shown, name), expected, "{name}");
    }
    let metadata = client.ask(12, &MetadataRequest::default().with_topics(None));
    let found = &metadata.topics[0];
    assert_eq!((found.partitions.len(), metadata.brokers.len()), (4, 1));
    assert!(found.partitions.iter().all(|part| part.leader_id == metadata.brokers[0].node_id));
    assert_eq!(i32::from(harness.address.port()), metadata.brokers[0].port);
    assert!(!found.topic_id.is_nil());
    let by_id =
        metadata_request::MetadataRequestTopic::default().with_name(None).with_topic_id(found.topic_id);
    let metadata = client.ask(12, &MetadataRequest::default().with_topics(Some(vec![by_id])));
    assert_eq!(metadata.topics[0].name, Some(topic("demo.readings")));
}

#[test]
fn compaction_is_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let harness = Harness::on(folder.path());
    let mut client = harness.client();
    let both = [("cleanup.policy", "compact,delete"), ("retention.ms", "60000")];
    assert_eq!(create(&mut client, creatable("both", 1, &both)).0, 0);
    assert_eq!(create(&mut client, creatable("last", 1, &[("cleanup.policy", "compact")])).0, 0);
    assert!(spec(&harness, "last").compact && spec(&harness, "last").retention_ms.is_none());
    assert_eq!(value(&configs(&mut client, "both"), "cleanup.policy"), "compact,delete");
    assert_eq!(value(&configs(&mut client, "last"), "cleanup.policy"), "compact");
    let durable = creatable("quick", 1, &[("trifid.durability", "periodic")]);
    assert_eq!(create(&mut client, durable).0, 0);
    assert_eq!(value(&configs(&mut client, "quick"), "trifid.durability"), "periodic");
}

#[test]
fn what_cannot_be_made_is_refused_by_name() {
    let harness = Harness::new();
    let mut client = harness.client();
    assert_eq!(create(&mut client, creatable("orders", 1, &[])).0, 0);
    let mut check = |one: create_topics_request::CreatableTopic, error: ResponseError, word: &str| {
        let (code, message) = create(&mut client, one);
        assert_eq!(code, error.code(), "{message}");
        assert!(message.contains(word), "{message}");
    };
    check(creatable("orders", 1, &[]), ResponseError::TopicAlreadyExists, "exists");
    check(creatable("two words", 1, &[]), ResponseError::InvalidTopicException, "namespace");
    check(creatable("default.orders", 1, &[]), ResponseError::InvalidTopicException, "");
    check(creatable("_own.orders", 1, &[]), ResponseError::InvalidTopicException, "");
    check(creatable("none", 0, &[]), ResponseError::InvalidPartitions, "one partition");
    check(creatable("many", 100_000, &[]), ResponseError::InvalidPartitions, "shards");
    check(
        creatable("safe", 1, &[]).with_replication_factor(3),
        ResponseError::InvalidReplicationFactor,
        "one broker",
    );
    check(creatable("odd", 1, &[("segment.ms", "5")]), ResponseError::InvalidConfig, "segment.ms");
    check(creatable("odd", 1, &[("retention.ms", "soon")]), ResponseError::InvalidConfig, "soon");
    check(creatable("odd", 1, &[("compression.type", "gzip")]), ResponseError::InvalidConfig, "producer");
    check(creatable("odd", 1, &[("cleanup.policy", "compact")]), ResponseError::InvalidConfig, "memory");
    check(
        creatable("odd", 1, &[("trifid.durability", "on-commit")]),
        ResponseError::InvalidConfig,
        "directory",
    );
}

#[test]
fn validation_makes_nothing() {
    let harness = Harness::new();
    let mut client = harness.client();
    let request = CreateTopicsRequest::default()
        .with_topics(vec![creatable("orders", -1, &[])])
        .with_validate_only(true);
    let response = client.ask(7, &request);
    assert_eq!((response.topics[0].error_code, response.topics[0].num_partitions), (0, 1));
    assert!(client.ask(12, &MetadataRequest::default().with_topics(None)).topics.is_empty());
}

#[test]
fn a_topic_named_twice_is_made_not_once() {
    let harness = Harness::new();
    let mut client = harness.client();
    let twice = vec![creatable("orders", 1, &[]), creatable("orders", 2, &[])];
    let response = client.ask(7, &CreateTopicsRequest::default().with_topics(twice));
    let invalid = ResponseError::InvalidRequest.code();
    assert!(response.topics.iter().all(|topic| topic.error_code == invalid));
}

#[test]
fn a_topic_named_a_thousand_times_is_told_once() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(200));
    let named = metadata_request::MetadataRequestTopic::default().with_name(Some(topic("orders")));
    let request = MetadataRequest::default().with_topics(Some(vec![named; 1000]));
    let metadata = harness.client().ask(12, &request);
    assert_eq!((metadata.topics.len(), metadata.topics[0].partitions.len()), (1, 200));
}

#[test]
fn topics_are_made_on_first_use_where_that_is_allowed() {
    let named = |name| metadata_request::MetadataRequestTopic::default().with_name(Some(topic(name)));
    let harness = Harness::new();
    let mut client = harness.client();
    let asked = MetadataRequest::default().with_topics(Some(vec![named("first.use")]));
    let refused = client.ask(12, &asked.clone().with_allow_auto_topic_creation(false));
    assert_eq!(refused.topics[0].error_code, ResponseError::UnknownTopicOrPartition.code());
    let made = client.ask(12, &asked);
    assert_eq!((made.topics[0].error_code, made.topics[0].partitions.len()), (0, 1));
    let harness = Harness::with(|_, engine| engine.create.auto_create = false);
    let refused = harness.client().ask(12, &asked);
    assert_eq!(refused.topics[0].error_code, ResponseError::UnknownTopicOrPartition.code());
}

#[test]
fn deleting_goes_by_name_and_by_id() {
    let harness = Harness::new();
    let mut client = harness.client();
    for name in ["one", "two"] {
        harness.stream(name, StreamSpec::memory(1));
    }
    let response =
        client.ask(4, &DeleteTopicsRequest::default().with_topic_names(vec![topic("one"), topic("none")]));
    let codes: Vec<_> = response.responses.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [0, ResponseError::UnknownTopicOrPartition.code()]);
    let id = client.ask(12, &MetadataRequest::default().with_topics(None)).topics[0].topic_id;
    let state = delete_topics_request::DeleteTopicState::default().with_topic_id(id);
    let response = client.ask(6, &DeleteTopicsRequest::default().with_topics(vec![state.clone()]));
    assert_eq!(
        (response.responses[0].error_code, response.responses[0].name.clone()),
        (0, Some(topic("two")))
    );
    let again = client.ask(6, &DeleteTopicsRequest::default().with_topics(vec![state]));
    assert_eq!(again.responses[0].error_code, ResponseError::UnknownTopicId.code());
}

#[test]
fn partitions_only_become_more() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(2));
    let mut client = harness.client();
    let mut grow = |name: &str, count| {
        let one = create_partitions_request::CreatePartitionsTopic::default()
            .with_name(topic(name))
            .with_count(count);
        client.ask(3, &CreatePartitionsRequest::default().with_topics(vec![one])).results[0].error_code
    };
    assert_eq!(grow("orders", 2), ResponseError::InvalidPartitions.code());
    assert_eq!(grow("absent", 2), ResponseError::UnknownTopicOrPartition.code());
    assert_eq!(grow("orders", 5), 0);
    assert_eq!(spec(&harness, "orders").shards, 5);
}

#[test]
fn settings_are_changed_one_by_one_or_all_at_once() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec { retention_bytes: Some(1 << 20), ..StreamSpec::memory(1) });
    let mut client = harness.client();
    let mut change = |name: &str, operation: i8, value: Option<&str>| {
        let config = incremental_alter_configs_request::AlterableConfig::default()
            .with_name(text(name))
            .with_config_operation(operation)
            .with_value(value.map(text));
        let resource = incremental_alter_configs_request::AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text("orders"))
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        client.ask(1, &request).responses[0].error_code
    };
    assert_eq!(change("retention.ms", 0, Some("60000")), 0);
    assert_eq!(spec(&harness, "orders").retention_ms, Some(60_000));
    assert_eq!(change("retention.bytes", 1, None), 0);
    assert_eq!(spec(&harness, "orders").retention_bytes, None);
    let invalid = ResponseError::InvalidConfig.code();
    assert_eq!(
        change("cleanup.policy", 2, Some("compact")),
        invalid,
        "a stream in memory cannot be compacted"
    );
    assert_eq!(change("retention.ms", 2, Some("5")), invalid);
    assert_eq!(change("trifid.durability", 0, Some("on-commit")), invalid);
    assert_eq!(change("flush.ms", 0, Some("5")), invalid);
    assert_eq!(spec(&harness, "orders").retention_ms, Some(60_000));
    let config = alter_configs_request::AlterableConfig::default()
        .with_name(text("max.message.bytes"))
        .with_value(Some(text("4096")));
    let resource = alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text("orders"))
        .with_configs(vec![config]);
    let response = client.ask(2, &AlterConfigsRequest::default().with_resources(vec![resource]));
    assert_eq!(response.responses[0].error_code, 0);
    let changed = spec(&harness, "orders");
    assert_eq!((changed.max_batch_bytes, changed.retention_ms), (4096, None), "what is not named is reset");
}

#[test]
fn the_broker_tells_of_itself() {
    let harness = Harness::new();
    let mut client = harness.client();
    let cluster = client.ask(1, &DescribeClusterRequest::default());
    assert_eq!((cluster.error_code, cluster.brokers.len()), (0, 1));
    assert_eq!(cluster.brokers[0].broker_id, cluster.controller_id);
    let resource = describe_configs_request::DescribeConfigsResource::default()
        .with_resource_type(4)
        .with_resource_name(text("1"))
        .with_configuration_keys(Some(vec![text("auto.create.topics.enable")]));
    let request =
        DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_documentation(true);
    let response = client.ask(4, &request);
    let configs = &response.results[0].configs;
    assert_eq!((configs.len(), configs[0].value.clone()), (1, Some(text("true"))));
    assert!(configs[0].documentation.is_some() && configs[0].read_only);
}
