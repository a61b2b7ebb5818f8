//! Bytes that are no request, or not one that anybody serves: the connection ends, the others go on.

use std::io::Write as _;

use kafka_protocol::messages::*;
use trifid_stream_kafka::Stats;

use crate::harness::{Harness, batch, frame, produce_request};

/// Sends the bytes, expects the end of the connection, and that others are served.
fn check(harness: &Harness, bytes: &[u8], count: fn(&Stats) -> u64) {
    let before = count(&harness.stats());
    let mut client = harness.client();
    client.stream.write_all(bytes).unwrap();
    assert!(client.is_closed(), "{bytes:?}");
    assert_eq!(harness.client().ask(3, &ApiVersionsRequest::default()).error_code, 0);
    assert_eq!(count(&harness.stats()), before + 1, "{bytes:?}");
}

/// A head of this key and version with a client's name, then a body.
fn request(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&key.to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 1, 0, 1, b'x']);
    bytes.extend_from_slice(body);
    let mut framed = i32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    framed.append(&mut bytes);
    framed
}

#[test]
fn lengths_that_nobody_sends() {
    let harness = Harness::new();
    check(&harness, &[0xff, 0xff, 0xff, 0xff], |stats| stats.too_large);
    check(&harness, &[0x7f, 0xff, 0xff, 0xff], |stats| stats.too_large);
    // Another protocol altogether.
    check(&harness, b"GET / HTTP/1.1\r\n\r\n", |stats| stats.too_large);
    check(&harness, &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc], |stats| stats.too_large);
}

#[test]
fn apis_and_versions_that_nobody_serves() {
    let harness = Harness::new();
    check(&harness, &request(999, 0, b""), |stats| stats.unsupported);
    check(&harness, &request(-1, -1, b""), |stats| stats.unsupported);
    check(&harness, &request(3, 99, b""), |stats| stats.unsupported);
    check(&harness, &request(0, 2, b""), |stats| stats.unsupported);
    // Of Kafka's, and not of ours: a share fetch.
    check(&harness, &request(78, 1, b"\0"), |stats| stats.unsupported);
}

#[test]
fn bodies_that_end_too_early_or_never() {
    let harness = Harness::new();
    check(&harness, &[0, 0, 0, 1, 0], |stats| stats.malformed);
    check(&harness, &[0, 0, 0, 0], |stats| stats.malformed);
    // A client's name of 200 bytes in a request of eleven.
    check(&harness, &[0, 0, 0, 11, 0, 3, 0, 1, 0, 0, 0, 1, 0, 200, b'x'], |stats| stats.malformed);
    check(&harness, &request(3, 1, &[0, 0, 0, 1, 0, 5, b'a']), |stats| stats.malformed);
    // Two thousand million topics, and as many tagged fields.
    check(&harness, &request(3, 1, &[0x7f, 0xff, 0xff, 0xff]), |stats| stats.malformed);
    check(&harness, &request(3, 9, &[0, 0xff, 0xff, 0xff, 0xff, 0x0f]), |stats| stats.malformed);
    check(&harness, &request(3, 9, &[0, 1, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]), |stats| stats.malformed);
    // A text that is none.
    check(&harness, &request(3, 1, &[0, 0, 0, 1, 0, 2, 0xff, 0xfe]), |stats| stats.malformed);
}

#[test]
fn a_request_without_records_may_not_be_large() {
    let harness = Harness::new();
    let body = vec![0; 2 << 20];
    check(&harness, &request(3, 1, &body), |stats| stats.too_large);
}

#[test]
fn every_cut_of_a_request_is_survived() {
    let harness = Harness::new();
    let whole = frame(0, 9, 1, &produce_request("orders", 0, batch(&["one"]), -1));
    for cut in 4..whole.len() {
        let mut bytes = whole[..cut].to_vec();
        let length = i32::try_from(cut - 4).unwrap();
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        let mut client = harness.client();
        client.stream.write_all(&bytes).unwrap();
        assert!(client.is_closed(), "{cut}");
    }
    assert_eq!(harness.client().ask(3, &ApiVersionsRequest::default()).error_code, 0);
}

#[test]
fn every_flipped_byte_of_a_request_is_survived() {
    let harness = Harness::new();
    let whole = frame(0, 9, 1, &produce_request("orders", 0, batch(&["one"]), -1));
    for at in 4..whole.len() {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 0x81;
        let mut client = harness.client();
        client.stream.write_all(&bytes).unwrap();
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        // Answered or closed: both end here.
        while client.receive_frame().is_some() {}
    }
    assert_eq!(harness.client().ask(3, &ApiVersionsRequest::default()).error_code, 0);
}
