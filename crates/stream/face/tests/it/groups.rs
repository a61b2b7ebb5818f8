//! Groups: records are shared, leased, done, given back; committed offsets.

use std::time::Duration;

use trifid_stream_client::{
    Client, Code, CommittedOffset, Delivery, Group, GroupOptions, GroupState, ProducerOptions, Record,
    RequestError, Start, StreamName,
};

use crate::harness::{memory, over_both};

const WAIT: Duration = Duration::from_secs(10);

async fn filled(client: &Client, name: &str, records: u32) {
    client.create_stream(name, memory(1)).await.unwrap();
    let producer = client.producer(name, ProducerOptions::default()).await.unwrap();
    for n in 0..records {
        producer.send(Record::new(n.to_string())).await.unwrap();
    }
    producer.flush().await.unwrap();
}

fn values(deliveries: &[Delivery]) -> Vec<u32> {
    let records = deliveries.iter().flat_map(|delivery| delivery.records().unwrap());
    records.map(|record| std::str::from_utf8(&record.value.unwrap()).unwrap().parse().unwrap()).collect()
}

async fn pull(group: &Group, records: u32) -> Vec<Delivery> {
    group.pull(records, 1 << 20, WAIT).await.unwrap()
}

#[test]
fn records_are_shared_and_done() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        filled(&client, "work", 20).await;
        let one = client.join_group("workers", &["work"], GroupOptions::default()).await.unwrap();
        let two = client.join_group("workers", &["work"], GroupOptions::default()).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < 20 {
            for member in [&one, &two] {
                if seen.len() < 20 {
                    let deliveries = pull(member, 5).await;
                    seen.extend(values(&deliveries));
                    let settled = member.ack(&deliveries).await.unwrap();
                    assert_eq!(settled.unknown, 0);
                }
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
        assert!(one.pull(1, 1000, Duration::ZERO).await.unwrap().is_empty());
        let described = client.describe_group("workers").await.unwrap();
        assert_eq!(
            (described.state, described.classic, described.members.len()),
            (GroupState::Active, false, 2)
        );
        let committed = client.committed_offsets("workers", Some("work")).await.unwrap();
        assert_eq!((committed[0].shard, committed[0].offset), (0, 20));
        one.leave().await.unwrap();
        two.leave().await.unwrap();
        let (groups, more) = client.list_groups("work", "", 10).await.unwrap();
        assert_eq!((groups[0].name.as_str(), groups[0].members, more), ("workers", 0, false));
        let moved = client.reset_group("workers", "work", None, Start::Offset(7)).await.unwrap();
        assert_eq!(moved[0].offset, 7);
        client.delete_group("workers").await.unwrap();
        let gone = client.describe_group("workers").await;
        assert_eq!(gone.unwrap_err().code(), Some(Code::UnknownGroup));
    });
}

#[test]
fn what_is_given_back_comes_again() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_stream("again", memory(1)).await.unwrap();
        let producer = client.producer("again", ProducerOptions::default()).await.unwrap();
        let receipt = producer.send_batch(0, crate::raw::batch(&[b"0", b"1", b"2"])).await.unwrap();
        receipt.wait().await.unwrap();
        let member = client.join_group("g", &["again"], GroupOptions::default()).await.unwrap();
        let first = pull(&member, 3).await;
        assert_eq!((values(&first), first[0].attempt), (vec![0, 1, 2], 1));
        // One of three is done, the others come again, and are counted.
        let delivery = &first[0];
        member.ack([delivery.only(1).unwrap()]).await.unwrap();
        let back = [delivery.only(0).unwrap(), delivery.only(2).unwrap()];
        assert_eq!(member.nack(back, Duration::ZERO).await.unwrap().settled, 2);
        let mut again = pull(&member, 3).await;
        while values(&again).len() < 2 {
            again.extend(pull(&member, 3).await);
        }
        let mut seen = values(&again);
        seen.sort_unstable();
        assert_eq!((seen, again[0].attempt), (vec![0, 2], 2));
        let settled = member.ack([delivery.only(1).unwrap()]).await.unwrap();
        assert_eq!(settled.unknown, 1, "it was done before");
    });
}

/// A pull that waits is woken by what comes, and ends when its member leaves.
#[test]
fn a_pull_waits_for_records() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        filled(&client, "later", 0).await;
        let member = client.join_group("patient", &["later"], GroupOptions::default()).await.unwrap();
        let producer = client.producer("later", ProducerOptions::default()).await.unwrap();
        let (pulled, _) = tokio::join!(pull(&member, 1), async {
            producer.publish(Record::new("1")).await.unwrap();
        });
        assert_eq!(values(&pulled), [1]);
        member.ack(&pulled).await.unwrap();
    });
}

/// What a member that vanished held goes to another.
#[test]
fn a_lost_member_gives_back_what_it_held() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        filled(&client, "held", 1).await;
        let other = Client::connect(house.options(scheme)).await.unwrap();
        let lost = other.join_group("h", &["held"], GroupOptions::default()).await.unwrap();
        assert_eq!(values(&pull(&lost, 1).await), [0]);
        let member = client.join_group("h", &["held"], GroupOptions::default()).await.unwrap();
        assert!(member.pull(1, 1000, Duration::ZERO).await.unwrap().is_empty());
        other.close().await;
        drop((lost, other));
        let again = pull(&member, 1).await;
        assert_eq!((values(&again), again[0].attempt), (vec![0], 2));
    });
}

#[test]
fn consumers_that_keep_their_place_themselves_may_commit_it() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        filled(&client, "own", 3).await;
        assert!(client.committed_offsets("mine", None).await.unwrap().is_empty());
        let stream = StreamName::new("own").unwrap();
        let offset =
            |shard| CommittedOffset { stream: stream.clone(), shard, offset: 2, note: "n".to_owned() };
        client.commit_offsets("mine", vec![offset(0)]).await.unwrap();
        assert_eq!(client.committed_offsets("mine", None).await.unwrap(), [offset(0)]);
        let refused: Result<(), RequestError> = client.commit_offsets("mine", vec![offset(5)]).await;
        assert_eq!(refused.unwrap_err().code(), Some(Code::InvalidRequest));
        let unknown = client.join_group("g", &["nowhere"], GroupOptions::default()).await;
        assert_eq!(unknown.unwrap_err().code(), Some(Code::UnknownStream));
    });
}
