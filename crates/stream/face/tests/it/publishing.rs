//! Publishing: order, offsets, refusals, what is shed.

use bytes::Bytes;
use trifid_stream_client::{
    Client, Code, Event, ProducerOptions, PublishError, Record, RequestError, Start, SubscribeOptions,
};
use trifid_stream_model::frame::{Ack, Reply};

use crate::harness::{House, memory, on_runtime, over_both};
use crate::raw::{Raw, batch};

#[test]
fn records_get_their_offsets_in_order() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("orders", memory(1)).await.unwrap();
        let producer = client.producer("orders", ProducerOptions::default()).await.unwrap();
        let mut receipts = Vec::new();
        for n in 0..500u32 {
            receipts.push(producer.send(Record::new(n.to_string())).await.unwrap());
        }
        for (n, receipt) in (0..).zip(receipts) {
            assert_eq!(receipt.wait().await.unwrap().offset, Some(n));
        }
        producer.flush().await.unwrap();
        assert_eq!(producer.pending_bytes(), 0);
        let end = client.offsets("orders", None, Start::Latest).await.unwrap();
        assert_eq!(end[0].offset, 500);
        assert!(house.metric("trifid_stream_acknowledged_total") > 0);
    });
}

#[test]
fn keys_keep_to_their_shard_and_batches_come_whole() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("keyed", memory(4)).await.unwrap();
        let producer = client.producer("keyed", ProducerOptions::default()).await.unwrap();
        let first = producer.publish(Record::new("a").key("sensor")).await.unwrap();
        let second = producer.publish(Record::new("b").key("sensor")).await.unwrap();
        assert_eq!(first.shard, second.shard);
        assert_eq!(second.offset, Some(1));
        let shard = (first.shard + 1) % 4;
        let receipt = producer.send_batch(shard, batch(&[b"x", b"y", b"z"])).await.unwrap();
        assert_eq!(receipt.wait().await.unwrap().offset, Some(0));
        let refused = producer.send(Record::new("c").shard(4)).await;
        assert!(matches!(refused, Err(PublishError::Shard { shard: 4, shards: 4 })));
    });
}

#[test]
fn large_batches_travel_whole() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("large", memory(1)).await.unwrap();
        let options = ProducerOptions { batch_bytes: 900 << 10, ..ProducerOptions::default() };
        let producer = client.producer("large", options).await.unwrap();
        let value = Bytes::from(vec![7u8; 64 << 10]);
        let mut receipts = Vec::new();
        for _ in 0..64 {
            receipts.push(producer.send(Record::new(value.clone())).await.unwrap());
        }
        producer.flush().await.unwrap();
        for (n, receipt) in (0..).zip(receipts) {
            assert_eq!(receipt.wait().await.unwrap().offset, Some(n));
        }
    });
}

#[test]
fn what_cannot_be_is_refused_with_its_code() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        let missing = client.producer("nowhere", ProducerOptions::default()).await;
        assert_eq!(code(missing), Some(Code::UnknownStream));
        assert_eq!(code(client.describe_stream("nowhere").await), Some(Code::UnknownStream));
        assert_eq!(code(client.delete_stream("nowhere").await), Some(Code::UnknownStream));
        assert!(matches!(client.describe_stream("default.x").await, Err(RequestError::Name(_))));
        client.create_stream("twice", memory(1)).await.unwrap();
        client.create_stream("twice", memory(1)).await.unwrap();
        assert_eq!(code(client.create_stream("twice", memory(2)).await), Some(Code::AlreadyExists));
        let durable = trifid_stream_client::StreamSpec::default();
        assert_eq!(code(client.create_stream("durable", durable).await), Some(Code::Unsupported));
        let producer = client.producer("twice", ProducerOptions::default()).await.unwrap();
        let mut damaged = batch(&[b"x"]).to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let receipt = producer.send_batch(0, damaged.into()).await.unwrap();
        let refused = receipt.wait().await.unwrap_err();
        assert!(matches!(refused, PublishError::Refused(refusal) if refusal.code == Code::InvalidBatch));
        assert!(producer.flush().await.is_err());
        // One that was refused stands in nobody's way.
        assert_eq!(producer.publish(Record::new("good")).await.unwrap().offset, Some(0));
        client.delete_stream("twice").await.unwrap();
    });
}

/// Every size of packets that may be asked for carries a conversation: none starves in its handshake.
#[test]
fn packets_of_any_size_carry() {
    for (mtu, gso) in
        [(1200, true), (1452, false), (4096, true), (6000, false), (7000, true), (8192, true), (8900, false)]
    {
        let house = House::with(
            |options| {
                options.mtu = mtu;
                options.gso = gso;
            },
            |_| {},
            None,
        );
        on_runtime(async {
            let client = house.client("quic").await;
            client.create_stream("packed", memory(1)).await.unwrap();
            let producer = client.producer("packed", ProducerOptions::default()).await.unwrap();
            let mut all = client.subscribe("packed", SubscribeOptions::default()).await.unwrap();
            for _ in 0..20 {
                producer.send(Record::new(vec![1u8; 100_000])).await.unwrap();
            }
            producer.flush().await.unwrap();
            let mut records = 0;
            while records < 20 {
                if let Event::Batch(batch) = all.next().await.unwrap() {
                    records += batch.len();
                }
            }
            client.close().await;
        });
    }
}

fn code<T>(answer: Result<T, RequestError>) -> Option<Code> {
    answer.err().and_then(|error| error.code())
}

/// What was sent without acknowledgement before the client closed in good order is there.
#[test]
fn unacknowledged_records_arrive() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("quiet", memory(1)).await.unwrap();
        let options = ProducerOptions { acknowledged: false, ..ProducerOptions::default() };
        let producer = client.producer("quiet", options).await.unwrap();
        let first = producer.publish(Record::new("0")).await.unwrap();
        assert_eq!(first.offset, None);
        for n in 1..2000u32 {
            producer.send(Record::new(format!("{n}{}", "x".repeat(1000)))).await.unwrap();
        }
        producer.flush().await.unwrap();
        client.close().await;
        let other = house.client(scheme).await;
        let end = other.offsets("quiet", None, Start::Latest).await.unwrap();
        assert_eq!(end[0].offset, 2000);
        other.close().await;
        assert!(client.ping().await.is_err());
    });
}

#[test]
fn streams_are_listed_in_pages() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        for name in ["a.one", "a.two", "b.one"] {
            client.create_stream(name, memory(2)).await.unwrap();
        }
        let (page, more) = client.list_streams("a.", "", 1).await.unwrap();
        assert_eq!((page[0].name.as_str(), more), ("a.one", true));
        let (page, more) = client.list_streams("a.", "a.one", 10).await.unwrap();
        assert_eq!((page[0].name.as_str(), page.len(), more), ("a.two", 1, false));
        let described = client.describe_stream("b.one").await.unwrap();
        assert_eq!((described.shards.len(), described.spec), (2, memory(2)));
    });
}

/// A publish that is refused for load says so, with a hint; one that nobody waits for is told in sum.
#[test]
fn overload_is_told() {
    let cramped = || {
        House::with(
            |_| {},
            |broker| {
                broker.limits.process_inflight_bytes = 1;
                broker.limits.tenant_inflight_bytes = 1;
            },
            None,
        )
    };
    for scheme in crate::harness::BOTH {
        let house = cramped();
        on_runtime(async {
            // A budget that is used up lets one publish through: a subscriber that reads nothing uses it up.
            let mut raw = Raw::connect(&house, scheme).await;
            raw.greet().await;
            let client = house.client(scheme).await;
            client.create_stream("full", memory(1)).await.unwrap();
            let handle = raw.open("full").await;
            let budget = house.broker.connection(&trifid_stream_client::Tenant::default(), 100);
            let _held = budget.admit(50).unwrap();
            let id = raw.publish(handle, Ack::One, batch(&[b"x"])).await;
            let (answered, reply) = raw.read().await.unwrap();
            assert_eq!(answered, id);
            let Reply::Error(refusal) = reply else { panic!("{reply:?}") };
            assert_eq!(refusal.code, Code::Overloaded { shed: 0 });
            assert!(refusal.retry_after_ms > 0);
            let id = raw.publish(handle, Ack::None, batch(&[b"x", b"y", b"z"])).await;
            let (answered, reply) = raw.read().await.unwrap();
            assert_eq!(answered, id);
            let Reply::Error(refusal) = reply else { panic!("{reply:?}") };
            assert_eq!(refusal.code, Code::Overloaded { shed: 3 });
            assert_eq!(house.metric("trifid_stream_shed_total"), 3);
            assert_eq!(house.metric("trifid_stream_overloaded_total"), 2);
        });
    }
}

#[test]
fn a_producer_waits_out_an_overload() {
    let house = House::with(|_| {}, |broker| broker.limits.process_inflight_bytes = 1, None);
    on_runtime(async {
        let client = house.client("tls").await;
        client.create_stream("full", memory(1)).await.unwrap();
        let budget = house.broker.connection(&trifid_stream_client::Tenant::default(), 100);
        let held = budget.admit(50).unwrap();
        let producer = client.producer("full", ProducerOptions::default()).await.unwrap();
        let receipt = producer.send(Record::new("x")).await.unwrap();
        while house.metric("trifid_stream_overloaded_total") == 0 {
            tokio::task::yield_now().await;
        }
        drop(held);
        assert_eq!(receipt.wait().await.unwrap().offset, Some(0));
    });
}

/// Nothing is lost or doubled when connections break under a producer: the listener goes and comes back many
/// times.
#[test]
fn a_producer_survives_its_connections() {
    for scheme in crate::harness::BOTH {
        let folder = tempfile::tempdir().unwrap();
        let files = crate::tokens::certificate(folder.path());
        let listen = |broker, address| {
            let change = |options: &mut trifid_stream_face::Options| {
                options.tls_certificate = Some(files.0.clone());
                options.tls_key = Some(files.1.clone());
            };
            House::on(broker, change, None, address)
        };
        let broker = trifid_stream_engine::Broker::open(trifid_stream_engine::Options::memory()).unwrap();
        let mut house = listen(broker.clone(), "127.0.0.1:0".parse().unwrap());
        let address = house.address;
        on_runtime(async {
            let mut options = house.options(scheme);
            options.reconnect_most = std::time::Duration::from_millis(100);
            let client = Client::connect(options).await.unwrap();
            client.create_stream("broken", memory(1)).await.unwrap();
            let options = ProducerOptions { linger: std::time::Duration::ZERO, ..ProducerOptions::default() };
            let producer = client.producer("broken", options).await.unwrap();
            let mut receipts = Vec::new();
            for round in 0..4u32 {
                for n in 0..100u32 {
                    receipts.push(producer.send(Record::new(format!("{round}.{n}"))).await.unwrap());
                }
                tokio::task::spawn_blocking(move || house.join()).await.unwrap();
                house = listen(broker.clone(), address);
            }
            for (n, receipt) in (0..).zip(receipts) {
                assert_eq!(receipt.wait().await.unwrap().offset, Some(n));
            }
            let end = client.offsets("broken", None, Start::Latest).await.unwrap();
            assert_eq!(end[0].offset, 400);
        });
    }
}
