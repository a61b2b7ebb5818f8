//! SASL PLAIN: the user is the tenant, the password a token of the token file.

use std::io::Write as _;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use trifid_base_web::auth::hash_token;

use crate::harness::{Client, Harness, batch, produce_request, text};

const FILE: &[(&str, &str)] = &[("writer", "city write"), ("reader", "city read"), ("other", "town admin")];

fn write_tokens(path: &std::path::Path, tokens: &[(&str, &str)]) {
    let lines: String =
        tokens.iter().map(|(token, rest)| format!("{} {rest}\n", hash_token(token))).collect();
    std::fs::write(path, lines).unwrap();
}

fn harness() -> (tempfile::TempDir, Harness, std::sync::Arc<trifid_base_web::Tokens>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    write_tokens(&path, FILE);
    let (harness, tokens) = Harness::with_tokens(&path);
    (folder, harness, tokens)
}

fn authenticate(client: &mut Client, user: &str, token: &str) -> i16 {
    let handshake = client.ask(1, &SaslHandshakeRequest::default().with_mechanism(text("PLAIN")));
    assert_eq!(handshake.error_code, 0);
    let message = Bytes::from(format!("\0{user}\0{token}"));
    client.ask(2, &SaslAuthenticateRequest::default().with_auth_bytes(message)).error_code
}

fn topics(client: &mut Client) -> Vec<String> {
    let metadata = client.ask(12, &MetadataRequest::default().with_topics(None));
    metadata.topics.iter().map(|topic| topic.name.as_ref().unwrap().to_string()).collect()
}

fn make(client: &mut Client, name: &str) -> i16 {
    let topic =
        metadata_request::MetadataRequestTopic::default().with_name(Some(crate::harness::topic(name)));
    client.ask(12, &MetadataRequest::default().with_topics(Some(vec![topic]))).topics[0].error_code
}

#[test]
fn tenants_see_their_own() {
    let (_folder, harness, _) = harness();
    let (mut city, mut town) = (harness.client(), harness.client());
    assert_eq!(authenticate(&mut city, "city", "writer"), 0);
    assert_eq!(authenticate(&mut town, "town", "other"), 0);
    assert_eq!(make(&mut city, "orders"), 0);
    assert_eq!(city.produce("orders", &["one"]), (0, 0));
    assert_eq!(topics(&mut city), ["orders"]);
    assert!(topics(&mut town).is_empty());
    assert_eq!(town.produce("orders", &["one"]).0, ResponseError::UnknownTopicOrPartition.code());
}

#[test]
fn a_reader_changes_nothing() {
    let (_folder, harness, _) = harness();
    let (mut writer, mut reader) = (harness.client(), harness.client());
    authenticate(&mut writer, "city", "writer");
    authenticate(&mut reader, "city", "reader");
    make(&mut writer, "orders");
    assert_eq!(reader.produce("orders", &["one"]).0, ResponseError::TopicAuthorizationFailed.code());
    assert_eq!(make(&mut reader, "absent"), ResponseError::UnknownTopicOrPartition.code());
    let delete = DeleteTopicsRequest::default().with_topic_names(vec![crate::harness::topic("orders")]);
    let response = reader.ask(4, &delete);
    assert_eq!(response.responses[0].error_code, ResponseError::TopicAuthorizationFailed.code());
    let init = reader.ask(4, &InitProducerIdRequest::default());
    assert_eq!(init.error_code, ResponseError::ClusterAuthorizationFailed.code());
    assert_eq!(topics(&mut reader), ["orders"]);
}

#[test]
fn strangers_are_shown_out() {
    let (_folder, harness, _) = harness();
    let mut client = harness.client();
    assert_eq!(client.ask(3, &ApiVersionsRequest::default()).error_code, 0);
    client.send(12, &MetadataRequest::default());
    assert!(client.is_closed());
    // A stranger's request is small.
    let mut client = harness.client();
    client.stream.write_all(&[0, 1, 0, 0]).unwrap();
    assert!(client.is_closed());
    assert_eq!((harness.stats().strangers, harness.stats().too_large), (1, 1));
}

#[test]
fn a_wrong_token_is_answered_and_then_shown_out() {
    let (_folder, harness, _) = harness();
    for (user, token) in [("city", "wrong"), ("town", "writer"), ("", "")] {
        let mut client = harness.client();
        let code = authenticate(&mut client, user, token);
        assert_eq!(code, ResponseError::SaslAuthenticationFailed.code());
        assert!(client.is_closed());
    }
    assert_eq!(harness.stats().denied, 3);
}

#[test]
fn the_handshake_comes_first_and_knows_one_mechanism() {
    let (_folder, harness, _) = harness();
    let mut client = harness.client();
    let early = SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from_static(b"\0city\0writer"));
    assert_eq!(client.ask(2, &early).error_code, ResponseError::IllegalSaslState.code());
    let handshake = client.ask(1, &SaslHandshakeRequest::default().with_mechanism(text("GSSAPI")));
    assert_eq!(handshake.error_code, ResponseError::UnsupportedSaslMechanism.code());
    assert_eq!(handshake.mechanisms, [text("PLAIN")]);
    assert_eq!(authenticate(&mut client, "city", "writer"), 0);
    assert_eq!(client.ask(2, &early).error_code, ResponseError::IllegalSaslState.code());
}

#[test]
fn the_oldest_handshake_takes_a_token_without_a_head() {
    // KIP-43
    let (_folder, harness, _) = harness();
    let mut client = harness.client();
    assert_eq!(client.ask(0, &SaslHandshakeRequest::default().with_mechanism(text("PLAIN"))).error_code, 0);
    client.stream.write_all(b"\0\0\0\x0c\0city\0writer").unwrap();
    assert_eq!(client.receive_frame().as_deref(), Some(&b""[..]));
    assert_eq!(make(&mut client, "orders"), 0);
    let mut client = harness.client();
    client.ask(0, &SaslHandshakeRequest::default().with_mechanism(text("PLAIN")));
    client.stream.write_all(b"\0\0\0\x0b\0city\0wrong").unwrap();
    assert!(client.is_closed());
}

#[test]
fn tokens_that_are_read_again_are_asked_for_again() {
    let (folder, harness, tokens) = harness();
    let mut client = harness.client();
    authenticate(&mut client, "city", "writer");
    assert_eq!(make(&mut client, "orders"), 0);
    write_tokens(&folder.path().join("tokens"), &[("newer", "city write")]);
    tokens.reload().unwrap();
    client.send(9, &produce_request("orders", 0, batch(&["one"]), -1));
    assert!(client.is_closed());
    let mut client = harness.client();
    assert_eq!(authenticate(&mut client, "city", "newer"), 0);
    assert_eq!(client.produce("orders", &["one"]), (0, 0));
    assert_eq!(harness.stats().reauthentications, 1);
}

#[test]
fn without_tokens_the_user_still_names_the_tenant() {
    let harness = Harness::new();
    let (mut plain, mut city) = (harness.client(), harness.client());
    assert_eq!(authenticate(&mut city, "city", "anything"), 0);
    assert_eq!((make(&mut plain, "one"), make(&mut city, "two")), (0, 0));
    assert_eq!((topics(&mut plain), topics(&mut city)), (vec!["one".to_owned()], vec!["two".to_owned()]));
    let mut own = harness.client();
    assert_eq!(authenticate(&mut own, "_system", "anything"), ResponseError::SaslAuthenticationFailed.code());
}
