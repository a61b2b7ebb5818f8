//! Produce: what is taken, what is refused, and with which code.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use trifid_stream_model::batch::Producer;
use trifid_stream_model::spec::StreamSpec;

use crate::harness::{Harness, batch, batch_of, fetch_request, produce_request, values};

fn code(error: ResponseError) -> i16 {
    error.code()
}

fn produce(harness: &Harness, version: i16, request: &ProduceRequest) -> (i16, i64) {
    let response = harness.client().ask(version, request);
    let partition = &response.responses[0].partition_responses[0];
    (partition.error_code, partition.base_offset)
}

#[test]
fn what_is_produced_is_fetched_byte_for_byte() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    for (at, version) in (3..=12).enumerate() {
        let sent = batch(&["one", "two"]);
        let base = 2 * i64::try_from(at).unwrap();
        assert_eq!(produce(&harness, version, &produce_request("orders", 0, sent.clone(), -1)), (0, base));
        let response = harness.client().ask(12, &fetch_request("orders", 0, base, 0));
        let got = response.responses[0].partitions[0].records.clone().unwrap();
        // Offset and epoch are the broker's; from the magic on every byte is the producer's.
        assert_eq!(got[16..], sent[16..]);
        assert_eq!(got[..8], base.to_be_bytes());
        assert_eq!(values(Some(&got)), [(base, "one".into()), (base + 1, "two".into())]);
    }
}

#[test]
fn large_and_small_batches_of_one_request_all_arrive() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(3));
    let large = "x".repeat(200_000);
    let mut request = produce_request("orders", 0, batch(&[&large]), 1);
    let partitions = &mut request.topic_data[0].partition_data;
    for index in [1, 2, 9] {
        let part = partitions[0].clone().with_index(index).with_records(Some(batch(&["small"])));
        partitions.push(part);
    }
    let response = harness.client().ask(9, &request);
    let codes: Vec<_> =
        response.responses[0].partition_responses.iter().map(|part| part.error_code).collect();
    assert_eq!(codes, [0, 0, 0, code(ResponseError::UnknownTopicOrPartition)]);
    for (index, expected) in [(0, large.as_str()), (1, "small"), (2, "small")] {
        let response = harness.client().ask(12, &fetch_request("orders", index, 0, 0));
        let got = values(response.responses[0].partitions[0].records.as_ref());
        assert_eq!(got, [(0, expected.to_owned())]);
    }
    let stats = harness.stats();
    assert_eq!((stats.batches_in, stats.refused), (3, 1));
}

#[test]
fn what_is_no_batch_is_refused_by_name() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec { max_batch_bytes: 2000, ..StreamSpec::memory(1) });
    let good = batch(&["one"]);
    let change = |at: usize, byte: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        Bytes::from(bytes)
    };
    // A message set of format 1: offset, size, crc, magic 1, ...
    let old = [&[0; 8][..], &[0, 0, 0, 22], &[0; 4], &[1, 0], &[0; 16]].concat();
    let cases = [
        ("a format before 0.11", Bytes::from(old), ResponseError::UnsupportedForMessageFormat),
        ("a flipped bit", change(70, good[70] ^ 1), ResponseError::CorruptMessage),
        ("a cut", good.slice(..good.len() - 1), ResponseError::CorruptMessage),
        ("nothing", Bytes::new(), ResponseError::InvalidRecord),
        ("too much", batch(&["x".repeat(3000).as_str()]), ResponseError::MessageTooLarge),
    ];
    for (what, records, expected) in cases {
        let (error, offset) = produce(&harness, 9, &produce_request("orders", 0, records, -1));
        assert_eq!((error, offset), (expected.code(), -1), "{what}");
    }
    assert_eq!(produce(&harness, 9, &produce_request("orders", 0, good, -1)), (0, 0));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let request = |acks| produce_request("orders", 0, batch(&["one"]), acks);
    assert_eq!(produce(&harness, 9, &request(2)).0, code(ResponseError::InvalidRequiredAcks));
    let transactional =
        request(-1).with_transactional_id(Some(TransactionalId(StrBytes::from_static_str("t"))));
    assert_eq!(
        produce(&harness, 9, &transactional).0,
        code(ResponseError::TransactionalIdAuthorizationFailed)
    );
    let absent = produce_request("absent", 0, batch(&["one"]), -1);
    assert_eq!(produce(&harness, 9, &absent).0, code(ResponseError::UnknownTopicOrPartition));
    let unnameable = produce_request("default.orders", 0, batch(&["one"]), -1);
    assert_eq!(produce(&harness, 9, &unnameable).0, code(ResponseError::InvalidTopicException));
}

#[test]
fn without_acknowledgement_there_is_no_answer_but_the_end_of_the_connection() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    client.send(9, &produce_request("orders", 0, batch(&["one"]), 0));
    // The next answer is that of the next request.
    assert_eq!(client.produce("orders", &["two"]), (0, 1));
    client.send(9, &produce_request("absent", 0, batch(&["one"]), 0));
    assert!(client.is_closed());
    assert_eq!(harness.stats().unacknowledged_failures, 1);
}

#[test]
fn a_retry_of_an_idempotent_producer_is_stored_once() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    let identity = client.ask(4, &InitProducerIdRequest::default().with_transactional_id(None));
    assert_eq!((identity.error_code, identity.producer_epoch), (0, 0));
    let send = |client: &mut crate::harness::Client, sequence, epoch| {
        let producer = Producer { id: identity.producer_id.0, epoch, sequence };
        let request = produce_request("orders", 0, batch_of(&["a", "b"], Some(producer)), -1);
        let response = client.ask(9, &request);
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    };
    assert_eq!(send(&mut client, 0, 0), (0, 0));
    assert_eq!(send(&mut client, 2, 0), (0, 2));
    assert_eq!(send(&mut client, 2, 0), (0, 2), "the retry is answered like the first");
    assert_eq!(send(&mut client, 7, 0).0, code(ResponseError::OutOfOrderSequenceNumber));
    assert_eq!(send(&mut client, 4, 0), (0, 4));
    let other = client.ask(4, &InitProducerIdRequest::default().with_transactional_id(None));
    assert_ne!(other.producer_id, identity.producer_id);
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    {
        let harness = Harness::on(folder.path());
        harness.stream("orders", StreamSpec::default());
        let mut client = harness.client();
        assert_eq!(client.produce("orders", &["one", "two"]), (0, 0));
        assert_eq!(client.produce("orders", &["three"]), (0, 2));
    }
    let harness = Harness::on(folder.path());
    let mut client = harness.client();
    let response = client.ask(12, &fetch_request("orders", 0, 0, 1000));
    let got = values(response.responses[0].partitions[0].records.as_ref());
    assert_eq!(got, [(0, "one".into()), (1, "two".into()), (2, "three".into())]);
    assert!(harness.stats().disk_fetches > 0, "the tail is empty after a restart");
    assert_eq!(client.produce("orders", &["four"]), (0, 3));
}
