//! Bytes that are no frames, frames that are no messages, clients that go silent: refused, counted, and
//! nobody's harm.

use std::time::Duration;

use proptest::prelude::*;
use trifid_base_runtime::units::Span;
use trifid_stream_client::Code;
use trifid_stream_model::frame::{Ack, FrameHead, Reply, frame_head, request};

use crate::harness::{BOTH, House, on_runtime};
use crate::raw::{Raw, batch};

/// What the conversation ends with.
async fn end_of(house: &House, scheme: &str, bytes: &[u8]) -> Option<(u32, Reply)> {
    let mut raw = Raw::connect(house, scheme).await;
    raw.greet().await;
    raw.write(bytes).await;
    raw.read_to_end().await
}

fn is_refusal(end: Option<(u32, Reply)>, code: Code) -> bool {
    matches!(end, Some((0, Reply::Error(refusal))) if refusal.code == code)
}

#[test]
fn what_is_no_frame_ends_the_conversation_with_its_reason() {
    let house = House::new();
    for scheme in BOTH {
        on_runtime(async {
            let flags = FrameHead { len: 0, kind: request::kind::PING, flags: 1, id: 3 }.encode();
            assert!(is_refusal(end_of(&house, scheme, &flags).await, Code::Unsupported));
            let mut reserved = frame_head(request::kind::PING, 3, 0);
            reserved[5] = 1;
            assert!(is_refusal(end_of(&house, scheme, &reserved).await, Code::InvalidRequest));
            let huge = frame_head(request::kind::PUBLISH, 3, u32::MAX as usize);
            let max = 8 << 20;
            assert!(is_refusal(end_of(&house, scheme, &huge).await, Code::TooLarge { max }));
            // Not even a preface: nobody would understand an answer.
            let mut raw = Raw::connect(&house, scheme).await;
            raw.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
            assert!(raw.read().await.is_none());
        });
    }
    assert_eq!(house.metric("trifid_stream_malformed_total"), 8);
}

#[test]
fn what_is_no_message_is_refused_and_the_conversation_goes_on() {
    let house = House::new();
    for scheme in BOTH {
        on_runtime(async {
            let mut raw = Raw::connect(&house, scheme).await;
            raw.greet().await;
            let mut check = async |head: [u8; 12], body: &[u8], code: Code| {
                raw.write(&head).await;
                raw.write(body).await;
                let (id, reply) = raw.read().await.unwrap();
                assert_eq!(id, 77);
                assert!(matches!(reply, Reply::Error(ref refusal) if refusal.code == code), "{reply:?}");
            };
            check(frame_head(0x7f, 77, 0), b"", Code::Unsupported).await;
            check(frame_head(request::kind::PING, 77, 3), b"abc", Code::InvalidRequest).await;
            check(frame_head(request::kind::PING, 77, 9), b"123456789", Code::InvalidRequest).await;
            check(frame_head(request::kind::PUBLISH, 77, 2), b"ab", Code::InvalidRequest).await;
            check(
                frame_head(request::kind::GROUP_ACK, 77, 8),
                b"\0\0\0\0\xff\xff\xff\xff",
                Code::InvalidRequest,
            )
            .await;
            let id = raw.publish(999, Ack::One, batch(&[b"x"])).await;
            let (answered, reply) = raw.read().await.unwrap();
            assert_eq!(answered, id);
            assert!(matches!(reply, Reply::Error(refusal) if refusal.code == Code::InvalidRequest));
            raw.send(Raw::hello()).await;
            assert!(matches!(raw.read().await, Some((_, Reply::Error(_)))));
            raw.send(request::Ping { nonce: 5 }).await;
            assert!(matches!(raw.read().await, Some((_, Reply::Pong(pong))) if pong.nonce == 5));
        });
    }
}

#[test]
fn the_first_frame_has_to_be_a_greeting() {
    let house = House::new();
    for scheme in BOTH {
        on_runtime(async {
            let mut raw = Raw::connect(&house, scheme).await;
            raw.preface().await;
            raw.send(request::Ping { nonce: 1 }).await;
            let (_, reply) = raw.read_to_end().await.unwrap();
            assert!(matches!(reply, Reply::Error(refusal) if refusal.code == Code::InvalidRequest));
        });
    }
}

#[test]
fn another_protocol_is_refused_in_the_handshake() {
    let house = House::new();
    on_runtime(async {
        assert!(Raw::try_connect(&house, "quic", b"h3").await.is_err());
        assert!(Raw::try_connect(&house, "tls", b"h2").await.is_err());
        // Without any protocol TLS succeeds, and nothing comes after it.
        let mut raw = Raw::try_connect(&house, "tls", b"").await.unwrap();
        raw.preface().await;
        assert!(raw.read().await.is_none());
    });
}

/// Who connects and says nothing, or greets and goes silent, is let go.
#[test]
fn silence_ends_a_connection() {
    let quick = Span(Duration::from_millis(300));
    let house = House::with(
        |options| {
            options.handshake_timeout = quick;
            options.idle_timeout = quick;
        },
        |_| {},
        None,
    );
    on_runtime(async {
        let silent = tokio::net::TcpStream::connect(house.address).await.unwrap();
        let mut ungreeted = Raw::connect(&house, "tls").await;
        let mut half_open = Raw::connect(&house, "tls").await;
        half_open.greet().await;
        assert!(ungreeted.read().await.is_none());
        assert!(half_open.read().await.is_none());
        while house.metric("trifid_stream_handshakes_failed_total") < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(house.metric("trifid_stream_half_open_total"), 1);
        drop(silent);
    });
}

#[test]
fn connections_and_subscriptions_are_bounded() {
    let house = House::with(
        |options| {
            options.connections = std::num::NonZeroUsize::new(2).unwrap();
            options.subscriptions = std::num::NonZeroUsize::new(3).unwrap();
        },
        |_| {},
        None,
    );
    on_runtime(async {
        let client = house.client("tls").await;
        client.create_stream("few", crate::harness::memory(1)).await.unwrap();
        let mut raw = Raw::connect(&house, "quic").await;
        raw.greet().await;
        assert!(Raw::try_connect(&house, "quic", trifid_stream_face::ALPN).await.is_err());
        let subscribe = || request::Subscribe {
            stream: trifid_stream_client::StreamName::new("few").unwrap(),
            shard: None,
            start: trifid_stream_client::Start::Latest,
            resume: Vec::new(),
            policy: trifid_stream_client::Policy::Block,
            budget_bytes: 1,
            credit_bytes: 1,
            max_frame_bytes: 0,
        };
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(raw.send(subscribe()).await);
            assert!(matches!(raw.read().await, Some((_, Reply::Subscribed(_)))));
        }
        raw.send(subscribe()).await;
        let (_, reply) = raw.read().await.unwrap();
        assert!(matches!(reply, Reply::Error(refusal) if matches!(refusal.code, Code::Overloaded { .. })));
        raw.send(request::Unsubscribe { subscription: ids[0] }).await;
        assert!(matches!(raw.read().await, Some((_, Reply::Ended(_)))));
        raw.send(subscribe()).await;
        assert!(matches!(raw.read().await, Some((_, Reply::Subscribed(_)))));
    });
    assert_eq!(house.metric("trifid_stream_turned_away_total"), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever comes after the greeting, others are served.
    #[test]
    fn garbage_harms_nobody(bytes in proptest::collection::vec(any::<u8>(), 0..600), is_quic: bool) {
        static HOUSE: std::sync::OnceLock<House> = std::sync::OnceLock::new();
        let house = HOUSE.get_or_init(House::new);
        on_runtime(async {
            let mut raw = Raw::connect(house, if is_quic { "quic" } else { "tls" }).await;
            raw.greet().await;
            raw.write(&bytes).await;
            drop(raw);
            let client = house.client("tls").await;
            client.ping().await.unwrap();
        });
    }
}
