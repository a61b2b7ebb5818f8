//! Fetch and ListOffsets: what there is, what there is not yet, and what there is no more.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

use crate::harness::{Client, Harness, batch, fetch_request, produce_request, topic, values};

fn fetched(client: &mut Client, version: i16, request: &FetchRequest) -> (i16, i64, Vec<(i64, String)>) {
    let response = client.ask(version, request);
    assert_eq!((response.error_code, response.session_id), (0, 0));
    let partition = &response.responses[0].partitions[0];
    (partition.error_code, partition.high_watermark, values(partition.records.as_ref()))
}

#[test]
fn every_version_reads_the_same() {
    let harness = Harness::new();
    let mut client = harness.client();
    harness.stream("orders", StreamSpec::memory(1));
    client.produce("orders", &["one"]);
    client.produce("orders", &["two"]);
    for version in 4..=12 {
        let (code, end, got) = fetched(&mut client, version, &fetch_request("orders", 0, 1, 0));
        assert_eq!((code, end, got), (0, 2, vec![(1, "two".to_owned())]), "{version}");
    }
    let metadata = client.ask(12, &MetadataRequest::default().with_topics(None));
    let id = metadata.topics[0].topic_id;
    for version in 13..=16 {
        let mut request = fetch_request("orders", 0, 0, 0);
        request.topics[0].topic_id = id;
        let (code, end, got) = fetched(&mut client, version, &request);
        assert_eq!((code, end, got.len()), (0, 2, 2), "{version}");
        request.topics[0].topic_id = uuid::Uuid::from_u128(5);
        assert_eq!(fetched(&mut client, version, &request).0, ResponseError::UnknownTopicId.code());
    }
}

#[test]
fn a_fetch_at_the_end_waits_and_is_woken() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut reader = harness.client();
    let waiting = reader.send(12, &fetch_request("orders", 0, 0, 15_000));
    let mut writer = harness.client();
    assert_eq!(writer.produce("orders", &["late"]), (0, 0));
    let response = reader.receive::<FetchRequest>(12, waiting);
    assert_eq!(values(response.responses[0].partitions[0].records.as_ref()), [(0, "late".to_owned())]);
    // Nothing comes: the answer is empty.
    assert_eq!(fetched(&mut reader, 12, &fetch_request("orders", 0, 1, 1)), (0, 1, vec![]));
}

#[test]
fn a_fetch_waits_until_there_is_as_much_as_it_wants() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let (mut reader, mut writer) = (harness.client(), harness.client());
    let one = i32::try_from(batch(&["x"]).len()).unwrap();
    let request = fetch_request("orders", 0, 0, 15_000).with_min_bytes(3 * one);
    let waiting = reader.send(12, &request);
    for _ in 0..3 {
        writer.produce("orders", &["x"]);
    }
    let response = reader.receive::<FetchRequest>(12, waiting);
    assert_eq!(values(response.responses[0].partitions[0].records.as_ref()).len(), 3);
}

#[test]
fn what_cannot_be_fetched_has_its_code() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    client.produce("orders", &["one"]);
    let mut code =
        |topic, index, offset| fetched(&mut client, 12, &fetch_request(topic, index, offset, 5000)).0;
    assert_eq!(code("orders", 0, 2), ResponseError::OffsetOutOfRange.code());
    assert_eq!(code("orders", 0, -5), ResponseError::OffsetOutOfRange.code());
    assert_eq!(code("orders", 1, 0), ResponseError::UnknownTopicOrPartition.code());
    assert_eq!(code("absent", 0, 0), ResponseError::UnknownTopicOrPartition.code());
    let mut request = fetch_request("orders", 0, 0, 0);
    request.topics[0].partitions[0].current_leader_epoch = 1_000_000;
    assert_eq!(fetched(&mut client, 12, &request).0, ResponseError::UnknownLeaderEpoch.code());
    let response = client.ask(12, &fetch_request("orders", 0, 0, 0).with_session_id(5).with_session_epoch(1));
    assert_eq!(response.error_code, ResponseError::FetchSessionIdNotFound.code());
}

#[test]
fn limits_cut_an_answer_but_never_to_nothing() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(2));
    let mut client = harness.client();
    let large = "x".repeat(10_000);
    for index in [0, 1] {
        for _ in 0..4 {
            let response = client.ask(9, &produce_request("orders", index, batch(&[&large]), -1));
            assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
        }
    }
    let mut request = fetch_request("orders", 0, 0, 0);
    let second = request.topics[0].partitions[0].clone().with_partition(1);
    request.topics[0].partitions.push(second);
    let count = |client: &mut Client, request: &FetchRequest| -> Vec<usize> {
        let response = client.ask(12, request);
        response.responses[0].partitions.iter().map(|part| values(part.records.as_ref()).len()).collect()
    };
    assert_eq!(count(&mut client, &request), [4, 4]);
    assert_eq!(count(&mut client, &request.clone().with_max_bytes(1)), [1, 0]);
    assert_eq!(count(&mut client, &request.clone().with_max_bytes(25_000)), [2, 0]);
    request.topics[0].partitions[0].partition_max_bytes = 1;
    assert_eq!(count(&mut client, &request), [1, 4]);
}

#[test]
fn a_stream_that_is_deleted_and_made_again_is_found_again() {
    let harness = Harness::new();
    let (tenant, name) = (Tenant::default(), StreamName::new("orders").unwrap());
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    client.produce("orders", &["one"]);
    let waiting = client.send(12, &fetch_request("orders", 0, 1, 15_000));
    harness.broker.delete(&tenant, &name).unwrap();
    let response = client.receive::<FetchRequest>(12, waiting);
    let gone = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(response.responses[0].partitions[0].error_code, gone);
    assert_eq!(client.produce("orders", &["two"]).0, gone);
    harness.stream("orders", StreamSpec::memory(1));
    assert_eq!(client.produce("orders", &["three"]), (0, 0));
}

#[test]
fn more_partitions_are_seen_by_a_connection_that_knew_fewer() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    client.produce("orders", &["one"]);
    let grown =
        create_partitions_request::CreatePartitionsTopic::default().with_name(topic("orders")).with_count(2);
    let response = client.ask(3, &CreatePartitionsRequest::default().with_topics(vec![grown]));
    assert_eq!(response.results[0].error_code, 0);
    let response = client.ask(9, &produce_request("orders", 1, batch(&["two"]), -1));
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

#[test]
fn offsets_are_listed_by_place_and_by_time() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    harness.stream("empty", StreamSpec::memory(1));
    let mut client = harness.client();
    // Times 1000, 1001, 1002 and then 1000, 1001.
    client.produce("orders", &["a", "b", "c"]);
    client.produce("orders", &["d", "e"]);
    let mut at = |name: &str, time: i64| {
        let partition = list_offsets_request::ListOffsetsPartition::default().with_timestamp(time);
        let wanted = list_offsets_request::ListOffsetsTopic::default()
            .with_name(topic(name))
            .with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![wanted]);
        let response = client.ask(7, &request);
        let partition = &response.topics[0].partitions[0];
        (partition.error_code, partition.offset, partition.timestamp)
    };
    assert_eq!(at("orders", -1), (0, 5, -1));
    assert_eq!(at("orders", -2), (0, 0, -1));
    assert_eq!(at("orders", -3), (0, 2, 1002), "the largest time is not that of the last batch");
    assert_eq!(at("orders", 1001), (0, 1, 1001));
    assert_eq!(at("orders", 5000), (0, -1, -1));
    assert_eq!(at("orders", -9).0, ResponseError::InvalidRequest.code());
    assert_eq!(at("absent", -1).0, ResponseError::UnknownTopicOrPartition.code());
    assert_eq!(at("empty", -3), (0, -1, -1));
    assert_eq!(at("empty", -1), (0, 0, -1));
}

#[test]
fn an_epoch_ends_where_the_shard_does() {
    use offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    client.produce("orders", &["a", "b", "c"]);
    let epoch =
        client.ask(9, &MetadataRequest::default().with_topics(None)).topics[0].partitions[0].leader_epoch;
    let mut end = |wanted| {
        let partition =
            OffsetForLeaderPartition::default().with_leader_epoch(wanted).with_current_leader_epoch(-1);
        let topic =
            OffsetForLeaderTopic::default().with_topic(topic("orders")).with_partitions(vec![partition]);
        let response = client.ask(4, &OffsetForLeaderEpochRequest::default().with_topics(vec![topic]));
        let found = &response.topics[0].partitions[0];
        (found.error_code, found.leader_epoch, found.end_offset)
    };
    assert_eq!(end(epoch), (0, epoch, 3));
    assert_eq!(end(epoch + 1), (0, -1, -1));
}

#[test]
fn an_epoch_before_a_restart_ends_where_the_next_begins() {
    use offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
    let folder = tempfile::tempdir().unwrap();
    let mut epochs = Vec::new();
    for round in 0..4 {
        let harness = Harness::on(folder.path());
        if round == 0 {
            harness.stream("orders", StreamSpec::default());
        }
        let mut client = harness.client();
        for _ in 0..=round {
            assert_eq!(client.produce("orders", &["a", "b", "c"]).0, 0);
        }
        epochs.push(
            client.ask(9, &MetadataRequest::default().with_topics(None)).topics[0].partitions[0].leader_epoch,
        );
    }
    let harness = Harness::on(folder.path());
    let mut client = harness.client();
    let partition =
        |epoch| OffsetForLeaderPartition::default().with_leader_epoch(epoch).with_current_leader_epoch(-1);
    let topic = OffsetForLeaderTopic::default()
        .with_topic(topic("orders"))
        .with_partitions(epochs.iter().map(|epoch| partition(*epoch)).collect());
    let response = client.ask(4, &OffsetForLeaderEpochRequest::default().with_topics(vec![topic]));
    let found: Vec<_> =
        response.topics[0].partitions.iter().map(|part| (part.leader_epoch, part.end_offset)).collect();
    let expected: Vec<_> = epochs.into_iter().zip([3, 9, 18, 30]).collect();
    assert_eq!(found, expected);
}
