//! Every API in every version that the listener says it has: a well-filled request is answered, and the answer is
//! whole in that version.

use std::io::Write as _;

use kafka_protocol::messages::*;

use crate::harness::{Client, Harness};

#[path = "../../src/samples.rs"]
mod samples;

fn advertised(client: &mut Client) -> Vec<(ApiKey, i16, i16)> {
    let response = client.ask(3, &ApiVersionsRequest::default());
    assert_eq!(response.error_code, 0);
    let one = |api: &api_versions_response::ApiVersion| {
        (ApiKey::try_from(api.api_key).unwrap(), api.min_version, api.max_version)
    };
    response.api_keys.iter().map(one).collect()
}

#[test]
fn every_version_of_every_api_is_answered_in_its_own_form() {
    let harness = Harness::new();
    harness.client().produce("orders", &["a"]);
    let apis = advertised(&mut harness.client());
    assert!(apis.len() > 15);
    for (key, oldest, newest) in apis {
        for version in oldest..=newest {
            let mut client = harness.client();
            let frame = samples::framed(key, version, &samples::body(key, version));
            client.stream.write_all(&i32::try_from(frame.len()).unwrap().to_be_bytes()).unwrap();
            client.stream.write_all(&frame).unwrap();
            let mut answer = client.receive_frame().unwrap_or_else(|| panic!("{key:?} {version}: closed"));
            let head = key.response_header_version(version);
            let head =
                <ResponseHeader as kafka_protocol::protocol::Decodable>::decode(&mut answer, head).unwrap();
            assert_eq!(head.correlation_id, 7, "{key:?} {version}");
            let read = ResponseKind::decode(key, &mut answer, version);
            assert!(read.is_ok(), "{key:?} {version}: {read:?}");
            assert!(answer.is_empty(), "{key:?} {version}: {} bytes follow", answer.len());
        }
    }
    assert_eq!(harness.stats().malformed, 0);
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_the_oldest_form() {
    // KIP-511
    let harness = Harness::new();
    let mut client = harness.client();
    let body = samples::body(ApiKey::ApiVersions, 3);
    let mut frame = samples::framed(ApiKey::ApiVersions, 3, &body).to_vec();
    frame[2..4].copy_from_slice(&77i16.to_be_bytes());
    client.stream.write_all(&i32::try_from(frame.len()).unwrap().to_be_bytes()).unwrap();
    client.stream.write_all(&frame).unwrap();
    let response = client.receive::<ApiVersionsRequest>(0, 7);
    assert_eq!(response.error_code, 35);
    assert!(
        response.api_keys.iter().any(|api| api.api_key == ApiKey::ApiVersions as i16 && api.max_version == 4)
    );
    // The connection goes on.
    assert_eq!(client.ask(2, &ApiVersionsRequest::default()).error_code, 0);
}
