//! Going away: what is in flight is answered, nothing new is begun, and it ends in time.

use std::time::Duration;

use trifid_base_runtime::units::Span;
use trifid_stream_client::Code;
use trifid_stream_model::frame::{Ack, Reply, request};

use crate::harness::{BOTH, House, memory, on_runtime};
use crate::raw::{Raw, batch};

#[test]
fn clients_are_told_and_what_they_sent_is_answered() {
    for scheme in BOTH {
        let house = House::new();
        on_runtime(async {
            let client = house.client(scheme).await;
            client.create_stream("last", memory(1)).await.unwrap();
            let mut raw = Raw::connect(&house, scheme).await;
            raw.greet().await;
            let handle = raw.open("last").await;
            let id = raw.publish(handle, Ack::One, batch(&[b"x"])).await;
            assert!(matches!(raw.read().await, Some((answered, Reply::Published(_))) if answered == id));
            house.stop();
            assert!(matches!(raw.read().await, Some((0, Reply::Goaway(_)))));
            assert!(raw.read().await.is_none(), "the conversation ends");
            drop(client);
            tokio::task::spawn_blocking(move || house.join()).await.unwrap();
        });
    }
}

/// A request that waits for data does not hold up the end for longer than the drain may take.
#[test]
fn the_drain_has_an_end() {
    let house = House::with(|options| options.drain_timeout = Span(Duration::from_millis(300)), |_| {}, None);
    on_runtime(async {
        let mut raw = Raw::connect(&house, "tls").await;
        raw.greet().await;
        // A frame that has begun and does not end.
        raw.write(&[100, 0, 0, 0]).await;
        tokio::task::spawn_blocking(move || house.join()).await.unwrap();
    });
}

#[test]
fn nothing_new_is_begun() {
    let house = House::new();
    on_runtime(async {
        let mut raw = Raw::connect(&house, "tls").await;
        raw.greet().await;
        house.stop();
        raw.send(request::Open { name: trifid_stream_client::StreamName::new("late").unwrap() }).await;
        while let Some((_, reply)) = raw.read().await {
            match reply {
                Reply::Goaway(_) => {}
                Reply::Error(refusal) => {
                    assert!(matches!(refusal.code, Code::ShuttingDown | Code::UnknownStream), "{refusal:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    });
}
