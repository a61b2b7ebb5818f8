//! Subscribing: from backlog to live, policies, slow readers, going on after a break.

use std::time::Duration;

use bytes::Bytes;
use trifid_stream_client::{
    Client, Event, Policy, ProducerOptions, Record, Start, SubscribeError, SubscribeOptions, Subscription,
};
use trifid_stream_model::frame::{Ack, Reply, request};
use trifid_stream_model::names::StreamName;

use crate::harness::{House, memory, on_runtime, over_both};
use crate::raw::{Raw, batch};

async fn filled(client: &Client, name: &str, shards: u32, records: u32) {
    client.create_stream(name, memory(shards)).await.unwrap();
    let producer = client.producer(name, ProducerOptions::default()).await.unwrap();
    for n in 0..records {
        producer.send(Record::new(n.to_string())).await.unwrap();
    }
    producer.flush().await.unwrap();
}

/// The offsets of the next so many records; nothing may be lost.
async fn offsets(subscription: &mut Subscription, count: usize) -> Vec<u64> {
    let mut offsets = Vec::new();
    while offsets.len() < count {
        match subscription.next().await.unwrap() {
            Event::Batch(batch) => {
                offsets.extend(batch.records().unwrap().iter().map(|record| record.offset));
            }
            Event::Lost { from, to, .. } => panic!("{from}..{to} are lost"),
        }
    }
    offsets
}

#[test]
fn a_backlog_goes_over_into_what_is_new() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        filled(&client, "log", 1, 100).await;
        let mut all = client.subscribe("log", SubscribeOptions::from(Start::Earliest)).await.unwrap();
        let mut late = client.subscribe("log", SubscribeOptions::from(Start::Offset(90))).await.unwrap();
        let mut new = client.subscribe("log", SubscribeOptions::default()).await.unwrap();
        let producer = client.producer("log", ProducerOptions::default()).await.unwrap();
        for n in 100..200u32 {
            producer.send(Record::new(n.to_string())).await.unwrap();
        }
        producer.flush().await.unwrap();
        assert_eq!(offsets(&mut all, 200).await, (0..200).collect::<Vec<_>>());
        assert_eq!(offsets(&mut late, 110).await, (90..200).collect::<Vec<_>>());
        assert_eq!(offsets(&mut new, 100).await, (100..200).collect::<Vec<_>>());
        assert_eq!(all.position()[0].offset, 200);
    });
}

#[test]
fn every_shard_is_read() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("wide", memory(8)).await.unwrap();
        let mut all = client.subscribe("wide", SubscribeOptions::from(Start::Earliest)).await.unwrap();
        let mut one =
            client.subscribe("wide", SubscribeOptions::from(Start::Earliest).shard(3)).await.unwrap();
        let producer = client.producer("wide", ProducerOptions::default()).await.unwrap();
        for n in 0..64u32 {
            producer.send(Record::new(n.to_string()).shard(n % 8)).await.unwrap();
        }
        let mut values: Vec<u32> = Vec::new();
        while values.len() < 64 {
            if let Event::Batch(batch) = all.next().await.unwrap() {
                let records = batch.records().unwrap();
                values.extend(records.iter().map(|record| {
                    let text = record.value.as_ref().unwrap();
                    std::str::from_utf8(text).unwrap().parse::<u32>().unwrap()
                }));
            }
        }
        values.sort_unstable();
        assert_eq!(values, (0..64).collect::<Vec<_>>());
        assert_eq!(offsets(&mut one, 8).await, (0..8).collect::<Vec<_>>());
    });
}

#[test]
fn places_that_are_not_there_are_refused() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        filled(&client, "short", 1, 3).await;
        let refused = client.subscribe("short", SubscribeOptions::from(Start::Offset(4))).await;
        let Err(SubscribeError::Request(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code(), Some(trifid_stream_client::Code::OffsetInFuture { end: 3 }));
        let refused = client.subscribe("none", SubscribeOptions::default()).await;
        assert!(matches!(refused, Err(SubscribeError::Request(_))));
    });
}

#[test]
fn a_deleted_stream_ends_its_subscriptions() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        filled(&client, "gone", 1, 1).await;
        let mut subscription = client.subscribe("gone", SubscribeOptions::default()).await.unwrap();
        client.delete_stream("gone").await.unwrap();
        assert!(matches!(subscription.next().await, Err(SubscribeError::Deleted)));
    });
}

/// One that does not read is pushed its credit and no more, and nobody else notices.
#[test]
fn a_slow_reader_harms_nobody() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("busy", memory(1)).await.unwrap();
        let name = StreamName::new("busy").unwrap();
        let mut slow = Raw::connect(&house, scheme).await;
        slow.greet().await;
        slow.send(request::Subscribe {
            stream: name,
            shard: None,
            start: Start::Earliest,
            resume: Vec::new(),
            policy: Policy::DropOld,
            budget_bytes: 1 << 20,
            credit_bytes: u64::MAX,
            max_frame_bytes: 0,
        })
        .await;
        let mut quick = client.subscribe("busy", SubscribeOptions::default()).await.unwrap();
        let producer = client.producer("busy", ProducerOptions::default()).await.unwrap();
        let value = Bytes::from(vec![1u8; 16 << 10]);
        let mut read = 0;
        for round in 0..64u64 {
            for _ in 0..32 {
                producer.send(Record::new(value.clone())).await.unwrap();
            }
            producer.flush().await.unwrap();
            let wanted = usize::try_from((round + 1) * 32 - read).unwrap();
            let seen = offsets(&mut quick, wanted).await;
            read += seen.len() as u64;
        }
        assert_eq!(read, 64 * 32);
        drop(quick);
        // What the slow one missed, it is told of.
        let mut has_lost = false;
        while !has_lost {
            let (_, reply) = slow.read().await.unwrap();
            has_lost = matches!(reply, Reply::Lost(lost) if lost.to > lost.from);
        }
    });
}

/// Credit is kept: without any, nothing comes; with some, about so much.
#[test]
fn no_more_is_pushed_than_credit_allows() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("metered", memory(1)).await.unwrap();
        let mut raw = Raw::connect(&house, scheme).await;
        raw.greet().await;
        let handle = raw.open("metered").await;
        for _ in 0..10 {
            raw.publish(handle, Ack::One, batch(&[&[0u8; 1000]])).await;
            assert!(matches!(raw.read().await, Some((_, Reply::Published(_)))));
        }
        let subscription = raw
            .send(request::Subscribe {
                stream: StreamName::new("metered").unwrap(),
                shard: Some(0),
                start: Start::Earliest,
                resume: Vec::new(),
                policy: Policy::Block,
                budget_bytes: 1 << 20,
                credit_bytes: 0,
                max_frame_bytes: 1,
            })
            .await;
        assert!(matches!(raw.read().await, Some((_, Reply::Subscribed(_)))));
        raw.send(request::Ping { nonce: 7 }).await;
        assert!(matches!(raw.read().await, Some((_, Reply::Pong(_)))), "nothing is pushed without credit");
        raw.send(request::Credit { subscription, bytes: 1500 }).await;
        for _ in 0..2 {
            assert!(matches!(raw.read().await, Some((id, Reply::Batch(_))) if id == subscription));
        }
        raw.send(request::Ping { nonce: 8 }).await;
        assert!(matches!(raw.read().await, Some((_, Reply::Pong(_)))), "the credit is used up");
        raw.send(request::Unsubscribe { subscription }).await;
        assert!(matches!(raw.read().await, Some((id, Reply::Ended(_))) if id == subscription));
    });
}

/// A subscription goes on where it was when the listener was away for a moment.
#[test]
fn a_subscription_goes_on_after_a_break() {
    for scheme in crate::harness::BOTH {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = crate::tokens::certificate(folder.path());
        let house = House::with(
            |options| {
                options.tls_certificate = Some(certificate.clone());
                options.tls_key = Some(key.clone());
            },
            |_| {},
            None,
        );
        on_runtime(async {
            let client = house.client(scheme).await;
            filled(&client, "kept", 1, 10).await;
            let mut subscription =
                client.subscribe("kept", SubscribeOptions::from(Start::Earliest)).await.unwrap();
            assert_eq!(offsets(&mut subscription, 10).await, (0..10).collect::<Vec<_>>());
            let producer = client.producer("kept", ProducerOptions::default()).await.unwrap();
            let (broker, address) = (house.broker.clone(), house.address);
            tokio::task::spawn_blocking(move || house.join()).await.unwrap();
            // Sent while nobody listens: it arrives when somebody does.
            let receipt = producer.send(Record::new("while away")).await.unwrap();
            let again = House::on(
                broker,
                |options| {
                    options.tls_certificate = Some(certificate.clone());
                    options.tls_key = Some(key.clone());
                },
                None,
                address,
            );
            assert_eq!(receipt.wait().await.unwrap().offset, Some(10));
            assert_eq!(offsets(&mut subscription, 1).await, [10]);
            drop(again);
        });
    }
}

#[test]
fn either_transport_will_do() {
    let house = House::new();
    on_runtime(async {
        let client = house.client("trifid").await;
        assert_eq!(client.transport().await, Some(trifid_stream_client::Transport::Quic));
        assert!(client.ping().await.unwrap() < Duration::from_secs(10));
        filled(&client, "any", 1, 1).await;
    });
}

/// Many subscriptions of one connection wait without work.
#[test]
fn many_subscriptions_share_a_connection() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("many", memory(1)).await.unwrap();
        let mut subscriptions = Vec::new();
        for _ in 0..500 {
            subscriptions.push(client.subscribe("many", SubscribeOptions::default()).await.unwrap());
        }
        let producer = client.producer("many", ProducerOptions::default()).await.unwrap();
        producer.publish(Record::new("to all")).await.unwrap();
        for subscription in &mut subscriptions {
            assert_eq!(offsets(subscription, 1).await, [0]);
        }
    });
}
