//! Many requests on one connection: answers in the order of the requests, and bounded waiting.

use std::io::Write as _;
use std::net::Shutdown;

use kafka_protocol::messages::*;
use trifid_base_runtime::units::{Size, Span};
use trifid_stream_model::spec::StreamSpec;

use crate::harness::{Harness, batch, fetch_request, frame, produce_request, values};

#[test]
fn answers_come_in_the_order_of_the_requests() {
    let folder = tempfile::tempdir().unwrap();
    let harness = Harness::on(folder.path());
    harness.stream("orders", StreamSpec::default());
    let mut client = harness.client();
    // Two hundred requests in one write: some wait for the disk, some are answered at once.
    let mut bytes = Vec::new();
    for at in 0..200 {
        match at % 3 {
            2 => bytes.extend_from_slice(&frame(3, 9, at, &MetadataRequest::default().with_topics(None))),
            _ => {
                let request = produce_request("orders", 0, batch(&["one"]), -1);
                bytes.extend_from_slice(&frame(0, 9, at, &request));
            }
        }
    }
    client.stream.write_all(&bytes).unwrap();
    let mut next = 0;
    for at in 0..200 {
        match at % 3 {
            2 => assert_eq!(client.receive::<MetadataRequest>(9, at).topics.len(), 1),
            _ => {
                let response = client.receive::<ProduceRequest>(9, at);
                let partition = &response.responses[0].partition_responses[0];
                assert_eq!((partition.error_code, partition.base_offset), (0, next));
                next += 1;
            }
        }
    }
}

#[test]
fn a_request_behind_a_waiting_fetch_waits_too() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    let fetch = client.send(12, &fetch_request("orders", 0, 0, 15_000));
    let versions = client.send(3, &ApiVersionsRequest::default());
    harness.client().produce("orders", &["late"]);
    let response = client.receive::<FetchRequest>(12, fetch);
    assert_eq!(values(response.responses[0].partitions[0].records.as_ref()).len(), 1);
    assert_eq!(client.receive::<ApiVersionsRequest>(3, versions).error_code, 0);
}

#[test]
fn requests_arrive_in_any_pieces() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let mut client = harness.client();
    let large = "x".repeat(100_000);
    let bytes = [
        frame(0, 9, 1, &produce_request("orders", 0, batch(&["one"]), -1)),
        frame(0, 9, 2, &produce_request("orders", 0, batch(&[&large]), -1)),
        frame(0, 9, 3, &produce_request("orders", 0, batch(&["three"]), -1)),
    ]
    .concat();
    for piece in bytes.chunks(777) {
        client.stream.write_all(piece).unwrap();
    }
    for at in 1..=3 {
        let response = client.receive::<ProduceRequest>(9, at);
        assert_eq!(response.responses[0].partition_responses[0].base_offset, i64::from(at) - 1);
    }
}

#[test]
fn more_than_the_memory_for_requests_waits_its_turn() {
    let harness = Harness::with(|options, _| {
        options.kafka_request_limit = Size(1 << 20);
        options.kafka_request_memory = Size(1 << 20);
    });
    harness.stream("orders", StreamSpec::memory(1));
    let large = "x".repeat(600_000);
    let request = frame(0, 9, 1, &produce_request("orders", 0, batch(&[&large]), -1));
    // Each needs more than half of the memory, and both have begun.
    let (mut one, mut two) = (harness.client(), harness.client());
    one.stream.write_all(&request[..300_000]).unwrap();
    two.stream.write_all(&request[..300_000]).unwrap();
    two.stream.set_nonblocking(false).unwrap();
    let rest = request.slice(300_000..);
    let writer = std::thread::spawn({
        let mut stream = two.stream.try_clone().unwrap();
        let rest = rest.clone();
        move || stream.write_all(&rest).unwrap()
    });
    one.stream.write_all(&rest).unwrap();
    assert_eq!(one.receive::<ProduceRequest>(9, 1).responses[0].partition_responses[0].error_code, 0);
    assert_eq!(two.receive::<ProduceRequest>(9, 1).responses[0].partition_responses[0].error_code, 0);
    writer.join().unwrap();
}

#[test]
fn who_stops_in_the_middle_of_a_request_is_cut() {
    let harness = Harness::with(|options, _| {
        options.kafka_request_timeout = Span(std::time::Duration::from_millis(300));
    });
    let mut client = harness.client();
    client.stream.write_all(&[0, 0, 0, 50, 0, 3]).unwrap();
    assert!(client.is_closed());
    assert_eq!(harness.stats().slow_requests, 1);
}

#[test]
fn who_asks_nothing_is_closed_after_a_while() {
    let harness =
        Harness::with(|options, _| options.kafka_idle_timeout = Span(std::time::Duration::from_millis(300)));
    let mut client = harness.client();
    assert_eq!(client.ask(3, &ApiVersionsRequest::default()).error_code, 0);
    assert!(client.is_closed());
    assert_eq!(harness.stats().idle_closed, 1);
}

#[test]
fn who_does_not_read_is_cut_and_harms_nobody() {
    let harness =
        Harness::with(|options, _| options.kafka_write_timeout = Span(std::time::Duration::from_millis(300)));
    harness.stream("orders", StreamSpec::memory(1));
    let mut writer = harness.client();
    let large = "x".repeat(900_000);
    for _ in 0..8 {
        writer.produce("orders", &[&large]);
    }
    // Asks for far more than socket buffers hold, and reads nothing of it.
    let mut slow = harness.client();
    let mut request = fetch_request("orders", 0, 0, 0).with_max_bytes(i32::MAX);
    request.topics[0].partitions[0].partition_max_bytes = i32::MAX;
    for _ in 0..20 {
        slow.send(12, &request);
    }
    while harness.stats().slow_readers == 0 {
        assert_eq!(writer.produce("orders", &["meanwhile"]).0, 0);
    }
    assert_eq!(harness.stats().slow_readers, 1);
}

#[test]
fn who_shuts_its_side_still_gets_its_acknowledgements() {
    let folder = tempfile::tempdir().unwrap();
    let harness = Harness::on(folder.path());
    harness.stream("orders", StreamSpec::default());
    let mut client = harness.client();
    let sent = client.send(9, &produce_request("orders", 0, batch(&["one"]), -1));
    client.stream.shutdown(Shutdown::Write).unwrap();
    let response = client.receive::<ProduceRequest>(9, sent);
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    assert!(client.is_closed());
}

#[test]
fn too_many_connections_are_turned_away() {
    let harness = Harness::with(|options, _| options.kafka_connections = std::num::NonZeroUsize::MIN);
    let mut first = harness.client();
    assert_eq!(first.ask(3, &ApiVersionsRequest::default()).error_code, 0);
    assert!(harness.client().is_closed());
    assert_eq!(first.ask(3, &ApiVersionsRequest::default()).error_code, 0);
    assert_eq!(harness.stats().turned_away, 1);
    assert_eq!(harness.stats().connections, 1);
}

#[test]
fn a_drain_lets_go_of_those_who_wait() {
    let mut harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(1));
    let (mut idle, mut waiting) = (harness.client(), harness.client());
    assert_eq!(idle.ask(3, &ApiVersionsRequest::default()).error_code, 0);
    waiting.send(12, &fetch_request("orders", 0, 0, 60_000));
    harness.stop();
    assert!(idle.is_closed() && waiting.is_closed());
    assert!(std::net::TcpStream::connect(harness.address).is_err());
}

#[test]
fn what_came_before_the_end_is_answered_and_what_comes_after_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let harness = Harness::on(folder.path());
    harness.stream("orders", StreamSpec::default());
    let mut client = harness.client();
    let request = |at| frame(0, 9, at, &produce_request("orders", 0, batch(&["one"]), -1));
    let unknown = [0, 0, 0, 11, 0x7f, 0, 0, 0, 0, 0, 0, 9, 0, 1, b'x'];
    client.stream.write_all(&[&request(1), &unknown[..], &request(2)].concat()).unwrap();
    let response = client.receive::<ProduceRequest>(9, 1);
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    assert!(client.is_closed());
    assert_eq!(harness.client().produce("orders", &["next"]), (0, 1));
}

#[test]
fn a_backlog_of_its_own_is_waited_for_and_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    let harness = Harness::durable(folder.path(), |_, engine| {
        engine.limits.process_inflight_bytes = 1 << 20;
        engine.limits.tenant_inflight_bytes = 1 << 20;
    });
    harness.stream("orders", StreamSpec::default());
    let mut client = harness.client();
    let large = "x".repeat(400_000);
    let mut writer = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for at in 0..30 {
            let request = produce_request("orders", 0, batch(&[&large]), -1);
            writer.write_all(&frame(0, 9, at, &request)).unwrap();
        }
    });
    for at in 0..30 {
        let response = client.receive::<ProduceRequest>(9, at);
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!((partition.error_code, partition.base_offset), (0, i64::from(at)));
    }
    sending.join().unwrap();
    assert_eq!(harness.stats().overloaded, 0);
}
