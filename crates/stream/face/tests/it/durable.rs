//! Streams on a disk: acknowledged after the flush, read back from it, there after a restart.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trifid_stream_client::{
    Client, Code, Durability, Event, GroupOptions, ProducerOptions, Record, Start, StreamSpec,
    SubscribeOptions, Subscription,
};

use crate::harness::{BOTH, House, on_runtime};

fn house(folder: &Path) -> House {
    let disk = trifid_base_log::RealDisk::open(folder).unwrap();
    House::with(
        |_| {},
        |broker| {
            broker.dir = Some(Arc::new(disk));
            // Little is kept in memory, so that readers have to go to the disk.
            broker.limits.tail_bytes_per_shard = 64 << 10;
            broker.limits.tail_bytes_total = 64 << 10;
        },
        None,
    )
}

fn spec(durability: Durability) -> StreamSpec {
    StreamSpec { shards: 2, durability, ..StreamSpec::default() }
}

async fn fill(client: &Client, name: &str, from: u32, to: u32) {
    let producer = client.producer(name, ProducerOptions::default()).await.unwrap();
    for n in from..to {
        let value = format!("{n:08}{}", "x".repeat(1000));
        producer.send(Record::new(value).shard(n % 2).timestamp_ms(1000 + i64::from(n))).await.unwrap();
    }
    producer.flush().await.unwrap();
}

/// The numbers of the next so many records, each shard in order.
async fn numbers(subscription: &mut Subscription, count: usize) -> Vec<u32> {
    let mut all = Vec::new();
    let mut last = [None, None];
    while all.len() < count {
        let Event::Batch(batch) = subscription.next().await.unwrap() else { panic!("nothing may be lost") };
        for record in batch.records().unwrap() {
            let value = record.value.unwrap();
            let number: u32 = std::str::from_utf8(&value[..8]).unwrap().parse().unwrap();
            let last = &mut last[record.shard as usize];
            assert!(last.is_none_or(|last| last < number), "out of order");
            *last = Some(number);
            all.push(number);
        }
    }
    all.sort_unstable();
    all
}

#[test]
fn a_backlog_on_the_disk_goes_over_into_what_is_new() {
    for (scheme, durability) in BOTH.into_iter().zip([Durability::OnCommit, Durability::PERIODIC]) {
        let folder = tempfile::tempdir().unwrap();
        let house = house(folder.path());
        on_runtime(async {
            let client = house.client(scheme).await;
            client.create_stream("deep", spec(durability)).await.unwrap();
            fill(&client, "deep", 0, 2000).await;
            let from = |start| client.subscribe("deep", SubscribeOptions::from(start));
            let (mut all, mut half) =
                (from(Start::Earliest).await.unwrap(), from(Start::Time(2000)).await.unwrap());
            let begun = numbers(&mut all, 1000).await;
            assert!(begun.len() >= 1000);
            fill(&client, "deep", 2000, 2100).await;
            assert_eq!(numbers(&mut half, 1100).await, (1000..2100).collect::<Vec<_>>());
        });
        assert!(house.metric("trifid_stream_disk_reads_total") > 0);
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    for scheme in BOTH {
        let folder = tempfile::tempdir().unwrap();
        on_runtime(async {
            let first = house(folder.path());
            let client = first.client(scheme).await;
            client.create_stream("kept", spec(Durability::OnCommit)).await.unwrap();
            fill(&client, "kept", 0, 500).await;
            let member = client.join_group("g", &["kept"], GroupOptions::default()).await.unwrap();
            let mut pulled = 0;
            while pulled < 500 {
                let deliveries = member.pull(1000, 1 << 20, Duration::from_secs(10)).await.unwrap();
                pulled += deliveries.iter().map(|delivery| delivery.records().unwrap().len()).sum::<usize>();
                assert_eq!(member.ack(&deliveries).await.unwrap().unknown, 0);
            }
            client.close().await;
            drop((member, client));
            tokio::task::spawn_blocking(move || {
                first.broker.drain();
                first.join();
            })
            .await
            .unwrap();
            let second = house(folder.path());
            let client = second.client(scheme).await;
            let mut all = client.subscribe("kept", SubscribeOptions::from(Start::Earliest)).await.unwrap();
            assert_eq!(numbers(&mut all, 500).await, (0..500).collect::<Vec<_>>());
            let committed = client.committed_offsets("g", None).await.unwrap();
            assert_eq!(committed.iter().map(|at| at.offset).collect::<Vec<_>>(), [250, 250]);
        });
    }
}

/// A broker that drains refuses what is new in words that a client understands.
#[test]
fn a_draining_broker_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path());
    on_runtime(async {
        let client = house.client("tls").await;
        client.create_stream("late", spec(Durability::OnCommit)).await.unwrap();
        house.broker.drain();
        let refused = client.create_stream("later", spec(Durability::OnCommit)).await;
        assert_eq!(refused.unwrap_err().code(), Some(Code::ShuttingDown));
    });
}

/// Many that lag behind share the few reads of the disk that a connection may have at a time; those without
/// credit stand in nobody's way.
#[test]
fn many_lagging_subscriptions_take_turns_at_the_disk() {
    use trifid_stream_client::{Policy, StreamName};
    use trifid_stream_model::frame::{Reply, request};

    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path());
    on_runtime(async {
        let client = house.client("tls").await;
        client.create_stream("crowd", spec(Durability::OnCommit)).await.unwrap();
        fill(&client, "crowd", 0, 1000).await;
        let mut raw = crate::raw::Raw::connect(&house, "tls").await;
        raw.greet().await;
        let subscribe = |credit_bytes| request::Subscribe {
            stream: StreamName::new("crowd").unwrap(),
            shard: None,
            start: Start::Earliest,
            resume: Vec::new(),
            policy: Policy::Block,
            budget_bytes: 1 << 20,
            credit_bytes,
            max_frame_bytes: 64 << 10,
        };
        // A few bytes of credit get one page each, and then no more.
        for _ in 0..20 {
            raw.send(subscribe(1)).await;
        }
        let whole = raw.send(subscribe(u64::MAX)).await;
        let mut ends = [0u64; 2];
        while ends != [500, 500] {
            let (id, reply) = raw.read().await.unwrap();
            if let Reply::Batch(batch) = reply
                && id == whole
            {
                let last = trifid_stream_model::batch::split(&batch.batches).last().unwrap().unwrap();
                let header = trifid_stream_model::batch::validate(&last).unwrap();
                ends[batch.shard as usize] = u64::try_from(header.next_offset()).unwrap();
            }
        }
    });
}
