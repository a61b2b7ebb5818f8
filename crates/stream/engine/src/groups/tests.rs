use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use trifid_base_sim::SimDisk;
use trifid_stream_model::batch::open;
use trifid_stream_model::frame::{Delivery, OffsetRange};
use trifid_stream_model::spec::{Durability, StreamSpec};

use super::*;
use crate::SpecChange;
use crate::error::CommitFailure;
use crate::testing::{Count, Rig, batch_at, checked, keyed, name, put, read_all, spec};

const ON_COMMIT: Durability = Durability::OnCommit;

fn group() -> GroupName {
    GroupName::new("workers").unwrap()
}

fn settings() -> GroupSettings {
    GroupSettings { ack_timeout_ms: 1000, max_deliveries: 3, ..GroupSettings::default() }
}

fn join(rig: &Rig, streams: &[&str], settings: &GroupSettings) -> Result<Member, GroupError> {
    let streams: Vec<_> = streams.iter().map(|stream| name(stream)).collect();
    rig.broker.groups().join(&rig.tenant(), &group(), "test", &streams, settings)
}

fn member(rig: &Rig) -> Member {
    join(rig, &["s"], &settings()).unwrap()
}

/// One batch of records with these values.
fn publish(rig: &Rig, stream: &str, values: &[&str]) -> u64 {
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    put(&rig.shard(stream), checked(&batch_at(5, &values, None)))
}

/// What there is for a member now, from the disk if need be.
fn pull(member: &Member, max: u32) -> Vec<Delivery> {
    let polled = pin!(member.pull(max, 1 << 20)).poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Pending => Vec::new(),
        Poll::Ready(Ok(Pulled::Deliveries(deliveries))) => deliveries,
        Poll::Ready(Ok(Pulled::NeedsDisk)) => member.pull_from_disk(max, 1 << 20).unwrap(),
        Poll::Ready(Err(error)) => panic!("{error}"),
    }
}

/// Offset, value and attempt of each record that was delivered.
fn records(deliveries: &[Delivery]) -> Vec<(u64, String, u16)> {
    let mut all = Vec::new();
    for delivery in deliveries {
        let OffsetRange { first, last, .. } = delivery.range;
        for record in open(&delivery.batch, 1 << 20).unwrap().records() {
            let record = record.unwrap();
            if (first..=last).contains(&record.offset) {
                let value = String::from_utf8(record.value.unwrap_or_default().to_vec()).unwrap();
                all.push((record.offset, value, delivery.attempt));
            }
        }
    }
    all
}

fn offsets(deliveries: &[Delivery]) -> Vec<u64> {
    records(deliveries).into_iter().map(|(offset, ..)| offset).collect()
}

fn ranges(deliveries: &[Delivery]) -> Vec<OffsetRange> {
    deliveries.iter().map(|delivery| delivery.range.clone()).collect()
}

fn range(first: u64, last: u64) -> OffsetRange {
    OffsetRange { stream: 0, shard: 0, first, last }
}

fn ack(member: &Member, ranges: &[OffsetRange]) -> (u64, u64) {
    let settled = member.ack(ranges).unwrap();
    settled.ack.wait().unwrap();
    (settled.settled, settled.unknown)
}

fn committed(rig: &Rig) -> Option<u64> {
    rig.broker.groups().committed(&rig.tenant(), &group(), &name("s"), 0).map(|committed| committed.offset)
}

fn progress(rig: &Rig) -> Progress {
    let described = rig.broker.groups().describe(&rig.tenant(), &group()).unwrap();
    described.progress.into_iter().find(|progress| progress.stream == name("s")).unwrap()
}

fn commit(rig: &Rig, stream: &str, shard: u32, offset: u64) -> Result<(), GroupError> {
    let commit = OffsetCommit { stream: name(stream), shard, offset, note: "note".into() };
    let ack = rig.broker.groups().commit(&rig.tenant(), &group(), &[commit])?;
    assert_eq!(ack.wait(), Ok(()));
    Ok(())
}

#[test]
fn committed_offsets_survive_and_belong_to_their_stream() {
    let rig = Rig::on_disk();
    rig.create("s", spec(ON_COMMIT));
    rig.create("m", StreamSpec::memory(1));
    publish(&rig, "s", &["a", "b", "c"]);
    commit(&rig, "s", 0, 1).unwrap();
    commit(&rig, "s", 0, 2).unwrap();
    commit(&rig, "m", 0, 7).unwrap();
    assert_eq!(commit(&rig, "nowhere", 0, 1), Err(GroupError::UnknownStream(name("nowhere"))));
    assert_eq!(commit(&rig, "s", 1, 1), Err(GroupError::UnknownShard { stream: name("s"), shard: 1 }));
    let rig = rig.reopen(|disk| disk.power_cut(1));
    let groups = rig.broker.groups();
    let all = groups.all_committed(&rig.tenant(), &group(), None).unwrap();
    assert_eq!(all.len(), 1, "what is in memory is forgotten: {all:?}");
    assert_eq!((all[0].0.clone(), all[0].1, all[0].2.offset, &*all[0].2.note), (name("s"), 0, 2, "note"));
    let listed = groups.list(&rig.tenant(), "work", None, 10);
    assert_eq!((listed.len(), listed[0].state, listed[0].protocol), (1, GroupState::Empty, Protocol::None));
    // Another stream of the same name is another stream.
    rig.broker.delete(&rig.tenant(), &name("s")).unwrap();
    assert_eq!(committed(&rig), None);
    rig.create("s", spec(ON_COMMIT));
    assert_eq!(committed(&rig), None);
    (0..limits::PURGE_EVERY_MS / 5000).for_each(|_| rig.pass(Duration::from_secs(5)));
    assert!(rig.broker.groups().list(&rig.tenant(), "", None, 10).is_empty(), "nothing of it is left");
    // Deleted is deleted, after a restart too.
    commit(&rig, "s", 0, 0).unwrap();
    rig.broker.groups().delete(&rig.tenant(), &group()).unwrap().wait().unwrap();
    assert_eq!(rig.broker.groups().delete(&rig.tenant(), &group()).map(drop), Err(GroupError::Unknown));
    let rig = rig.reopen(|disk| disk.power_cut(2));
    assert!(rig.broker.groups().all_committed(&rig.tenant(), &group(), None).is_none());
}

#[test]
fn lag_never_counts_what_retention_took() {
    let rig = Rig::on_disk();
    let stream = StreamSpec { retention_bytes: Some(64 << 10), ..spec(ON_COMMIT) };
    rig.create("s", stream);
    commit(&rig, "s", 0, 0).unwrap();
    let large = "x".repeat(8000);
    (0..40).for_each(|_| _ = publish(&rig, "s", &[&large]));
    assert_eq!(progress(&rig).lag, Some(40));
    rig.pass(Duration::from_secs(5));
    let Progress { start, end, lag, committed, .. } = progress(&rig);
    assert!(start.unwrap() > 0 && committed == 0 && end == Some(40));
    assert_eq!(lag, Some(40 - start.unwrap()));
    // A member goes on where there is something, and the rest is told as lost.
    let member = member(&rig);
    assert_eq!(offsets(&pull(&member, 1)), [start.unwrap()]);
    assert_eq!((progress(&rig).lost, self::committed(&rig)), (start.unwrap(), start));
}

#[test]
fn resets_go_where_they_are_asked_to() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    publish(&rig, "s", &["a", "b", "c"]);
    let reset = |to| {
        let (offsets, ack) = rig.broker.groups().reset(&rig.tenant(), &group(), &name("s"), None, to)?;
        assert_eq!((ack.wait(), committed(&rig)), (Ok(()), Some(offsets[0].1)));
        Ok::<_, GroupError>(offsets[0].1)
    };
    assert_eq!(reset(Start::Latest), Ok(3));
    assert_eq!(reset(Start::Offset(1)), Ok(1));
    assert_eq!(reset(Start::Offset(99)), Ok(3));
    assert_eq!(reset(Start::Time(5)), Ok(0));
    assert_eq!(reset(Start::Time(6)), Ok(3));
    assert_eq!(reset(Start::Earliest), Ok(0));
    let member = member(&rig);
    assert_eq!(reset(Start::Latest), Err(GroupError::NotEmpty(group())));
    assert_eq!(commit(&rig, "s", 0, 2), Err(GroupError::OtherProtocol(group())));
    assert_eq!(offsets(&pull(&member, 10)), [0, 1, 2]);
    // Work that was left unfinished goes on from the reset, not from what it knew.
    drop(member);
    assert_eq!(reset(Start::Offset(2)), Ok(2));
    assert_eq!(offsets(&pull(&self::member(&rig), 10)), [2]);
}

#[test]
fn a_record_comes_again_until_it_is_done() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    publish(&rig, "s", &["a", "b", "c", "d"]);
    let member = member(&rig);
    let first = pull(&member, 3);
    assert_eq!(records(&first), [(0, "a".into(), 1), (1, "b".into(), 1), (2, "c".into(), 1)]);
    // The committed offset waits for the first.
    assert_eq!((ack(&member, &[range(1, 1)]), committed(&rig)), ((1, 0), Some(0)));
    assert_eq!((progress(&rig).in_flight, progress(&rig).lag), (2, Some(4)));
    assert_eq!(member.nack(&[range(2, 2)], 500).unwrap().settled, 1);
    assert_eq!((ack(&member, &[range(0, 0)]), committed(&rig)), ((1, 0), Some(2)));
    assert_eq!(offsets(&pull(&member, 10)), [3]);
    rig.pass(Duration::from_millis(499));
    assert!(pull(&member, 10).is_empty());
    rig.pass(Duration::from_millis(1));
    assert_eq!(records(&pull(&member, 10)), [(2, "c".into(), 2)]);
    // More time, and then the lease runs out all the same.
    assert_eq!(member.extend(&[range(2, 3)], 2000).unwrap().settled, 2);
    rig.pass(Duration::from_millis(1999));
    assert!(pull(&member, 10).is_empty());
    rig.pass(Duration::from_millis(1));
    assert_eq!(records(&pull(&member, 10)), [(2, "c".into(), 3), (3, "d".into(), 2)]);
    assert_eq!(ack(&member, &[range(0, 3)]), (2, 2), "the others were done already");
    assert_eq!((committed(&rig), progress(&rig).redelivered, progress(&rig).lag), (Some(4), 3, Some(0)));
    assert!(member.ack(&[range(9, 3)]).unwrap().settled == 0);
    assert_eq!(
        member.nack(&[], 86_400_001).map(drop).unwrap_err(),
        GroupError::OutOfRange { field: "delay_ms", value: 86_400_001, min: 0, max: 86_400_000 }
    );
}

#[test]
fn what_a_member_held_goes_to_the_others_at_once() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    publish(&rig, "s", &["a", "b", "c", "d"]);
    let (one, two, three) = (member(&rig), member(&rig), member(&rig));
    assert_eq!((offsets(&pull(&one, 2)), offsets(&pull(&two, 1))), (vec![0, 1], vec![2]));
    let (count, waker) = Count::waker();
    let mut waits = pin!(three.pull(10, 1000));
    // There is a record yet; then nothing.
    let polled = waits.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(Ok(Pulled::Deliveries(d))) if offsets(&d) == [3]));
    let mut waits = pin!(three.pull(10, 1000));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // Leaving in order does not count as a failure; being lost does.
    one.leave();
    assert_eq!(count.get(), 1);
    let polled = waits.as_mut().poll(&mut Context::from_waker(&waker));
    let Poll::Ready(Ok(Pulled::Deliveries(got))) = polled else { panic!("{polled:?}") };
    assert_eq!(records(&got), [(0, "a".into(), 1), (1, "b".into(), 1)]);
    drop(two);
    assert_eq!(records(&pull(&three, 10)), [(2, "c".into(), 2)]);
    assert_eq!(ack(&three, &[range(0, 3)]), (4, 0));
}

#[test]
fn pulls_share_what_there_is_and_are_woken_one_by_one() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    let members: Vec<Member> = (0..3).map(|_| member(&rig)).collect();
    let wakers: Vec<_> = (0..3).map(|_| Count::waker()).collect();
    let mut pulls: Vec<_> = members.iter().map(|member| Box::pin(member.pull(100, 1 << 20))).collect();
    for (pull, (_, waker)) in pulls.iter_mut().zip(&wakers) {
        assert!(pull.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    let counts = || wakers.iter().map(|(count, _)| count.get()).collect::<Vec<_>>();
    publish(&rig, "s", &["a", "b", "c", "d", "e", "f"]);
    assert_eq!(counts(), [1, 0, 0]);
    let mut got = Vec::new();
    for (at, pull) in pulls.iter_mut().enumerate() {
        assert_eq!(counts()[at], 1, "who takes wakes the next");
        let polled = pull.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(Pulled::Deliveries(deliveries))) = polled else { panic!("{polled:?}") };
        got.push(offsets(&deliveries));
    }
    assert_eq!(got, [vec![0, 1], vec![2, 3], vec![4, 5]]);
    drop(pulls);
    // A pull that goes away after it was woken passes the word on.
    let mut first = Box::pin(members[0].pull(1, 1000));
    let mut second = Box::pin(members[1].pull(1, 1000));
    for (pull, (_, waker)) in [&mut first, &mut second].into_iter().zip(&wakers) {
        assert!(pull.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    publish(&rig, "s", &["g"]);
    assert_eq!(counts(), [2, 1, 1]);
    drop(first);
    assert_eq!(counts(), [2, 2, 1]);
}

#[test]
fn what_cannot_be_done_is_set_aside_with_its_story() {
    for durability in [Durability::Memory, ON_COMMIT] {
        let rig = Rig::on_disk();
        rig.create("s", spec(durability));
        put(&rig.shard("s"), checked(&keyed(5, &[("k", Some("poison")), ("l", Some("fine"))])));
        let settings = GroupSettings { dead_letter: Some(name("s.dead")), ..settings() };
        let member = join(&rig, &["s"], &settings).unwrap();
        for attempt in 1..=3 {
            let got = pull(&member, 10);
            assert_eq!(records(&got)[0], (0, "poison".into(), attempt));
            _ = member.ack(&[range(1, 1)]).unwrap();
            assert_eq!(member.nack(&[range(0, 0)], 0).unwrap().settled, 1);
        }
        assert!(pull(&member, 10).is_empty());
        assert_eq!((committed(&rig), progress(&rig).lag), (Some(0), Some(2)), "not yet where it belongs");
        let dead = rig.shard("s.dead");
        // A tick publishes it; when that counts, another finds it done.
        rig.pass(Duration::ZERO);
        crate::wait::block_on(dead.beyond(0)).unwrap();
        rig.pass(Duration::ZERO);
        assert_eq!(
            (committed(&rig), progress(&rig).dead_lettered, progress(&rig).lag),
            (Some(2), 1, Some(0))
        );
        let fetched = dead.fetch(0, 1000).unwrap();
        let opened = open(&fetched.batches[0].bytes, 1000).unwrap();
        let record = opened.records().next().unwrap().unwrap();
        assert_eq!((record.key, record.value, record.timestamp), (Some(&b"k"[..]), Some(&b"poison"[..]), 5));
        let header = |name: String| {
            record.headers.get(&name).flatten().map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        let story = ["stream", "shard", "offset", "deliveries", "reason", "group"];
        let story = story.map(|what| header(format!("trifid-{what}")).unwrap());
        assert_eq!(story, ["s", "0", "0", "3", "nack", "workers"]);
        assert_eq!(dead.end_offset(), 1);
        let spec = rig.stream("s.dead").spec();
        assert!(spec.durability.is_durable());
    }
}

#[test]
fn without_a_dead_letter_stream_it_is_counted_and_passed_over() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    publish(&rig, "s", &["a", "b"]);
    let member = join(&rig, &["s"], &GroupSettings { max_deliveries: 1, ..settings() }).unwrap();
    assert_eq!(offsets(&pull(&member, 1)), [0]);
    rig.pass(Duration::from_secs(1));
    assert_eq!((committed(&rig), progress(&rig).passed_over), (Some(1), 1));
    assert_eq!(offsets(&pull(&member, 10)), [1]);
}

/// A record that ends its reader each time must not go round for ever, though nobody is left in between.
#[test]
fn deliveries_are_counted_while_nobody_is_there() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    publish(&rig, "s", &["poison"]);
    for attempt in 1..=3 {
        let doomed = member(&rig);
        assert_eq!(records(&pull(&doomed, 10)), [(0, "poison".into(), attempt)]);
        drop(doomed);
        rig.pass(Duration::from_secs(1));
    }
    assert!(pull(&member(&rig), 10).is_empty());
    assert_eq!((committed(&rig), progress(&rig).passed_over), (Some(1), 1));
}

#[test]
fn a_full_disk_holds_back_dead_letters_and_nothing_is_lost() {
    let disk = SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    rig.create("s", spec(ON_COMMIT));
    publish(&rig, "s", &["poison"]);
    let settings = GroupSettings { dead_letter: Some(name("dead")), max_deliveries: 1, ..settings() };
    let member = join(&rig, &["s"], &settings).unwrap();
    assert_eq!(offsets(&pull(&member, 10)), [0]);
    disk.set_room(Some(0));
    rig.pass(Duration::from_secs(1));
    for _ in 0..5 {
        rig.pass(Duration::from_secs(1));
    }
    assert_eq!((committed(&rig), progress(&rig).dead_lettered), (Some(0), 0));
    disk.set_room(None);
    let dead = rig.shard("dead");
    let mut rounds = 0;
    while committed(&rig) != Some(1) {
        rig.pass(Duration::from_secs(1));
        rounds += 1;
        assert!(rounds < 10_000, "{:?}", progress(&rig));
    }
    assert!(dead.end_offset() >= 1);
    assert_eq!(progress(&rig).dead_lettered, 1);
}

#[test]
fn a_commit_that_the_disk_refused_is_made_good() {
    let disk = SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    rig.create("s", spec(ON_COMMIT));
    publish(&rig, "s", &["a", "b"]);
    let member = member(&rig);
    assert_eq!(offsets(&pull(&member, 10)), [0, 1]);
    disk.set_room(Some(0));
    // Some fit into room that the log had asked for before.
    let other = GroupName::new("other").unwrap();
    for len in [4000, 0] {
        let note = "x".repeat(len).into();
        let filler = OffsetCommit { stream: name("s"), shard: 0, offset: 0, note };
        let fill = || rig.broker.groups().commit(&rig.tenant(), &other, std::slice::from_ref(&filler));
        while fill().is_ok_and(|ack| ack.wait().is_ok()) {}
    }
    let settled = member.ack(&[range(0, 1)]).unwrap();
    assert_eq!((settled.settled, settled.ack.wait()), (2, Err(CommitFailure::NoSpace)));
    assert_eq!(committed(&rig), Some(2), "in force all the same");
    disk.set_room(None);
    for _ in 0..50 {
        rig.pass(Duration::from_secs(1));
    }
    drop(member);
    let rig = rig.restart();
    assert_eq!(committed(&rig), Some(2));
}

#[test]
fn after_a_restart_the_rest_is_delivered_again() {
    let rig = Rig::on_disk();
    rig.create("s", spec(ON_COMMIT));
    let values: Vec<String> = (0..200).map(|n| format!("{n} {}", "x".repeat(200))).collect();
    for value in &values {
        publish(&rig, "s", &[value]);
    }
    let worker = member(&rig);
    let got = pull(&worker, 150);
    assert_eq!(ack(&worker, &ranges(&got[..100])), (100, 0));
    assert_eq!(ack(&worker, &ranges(&got[120..])), (30, 0));
    assert_eq!(committed(&rig), Some(100));
    drop(worker);
    let rig = rig.reopen(|disk| disk.power_cut(5));
    assert_eq!(committed(&rig), Some(100));
    // The ring does not reach that far back: these come from the disk.
    let worker = member(&rig);
    let mut seen = Vec::new();
    while seen.len() < 100 {
        let got = pull(&worker, 30);
        assert!(!got.is_empty(), "{seen:?}");
        seen.extend(records(&got).into_iter().map(|(offset, value, attempt)| {
            assert_eq!((value, attempt), (values[offset as usize].clone(), 1));
            offset
        }));
        ack(&worker, &ranges(&got));
    }
    assert_eq!(seen, (100..200).collect::<Vec<_>>());
    assert_eq!((committed(&rig), progress(&rig).lag), (Some(200), Some(0)));
}

/// A group that begins at the end is put there for good: what comes while it is away is not missed.
#[test]
fn the_beginning_is_committed() {
    let rig = Rig::on_disk();
    rig.create("s", spec(ON_COMMIT));
    publish(&rig, "s", &["before"]);
    let latest = GroupSettings { start: Start::Latest, ..settings() };
    let away = join(&rig, &["s"], &latest).unwrap();
    assert!(pull(&away, 10).is_empty());
    away.leave();
    let rig = rig.restart();
    publish(&rig, "s", &["meanwhile"]);
    let back = join(&rig, &["s"], &latest).unwrap();
    assert_eq!(offsets(&pull(&back, 10)), [1]);
}

#[test]
fn streams_may_grow_go_and_come_back() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    rig.create("t", StreamSpec::memory(1));
    let worker = join(&rig, &["s", "t"], &settings()).unwrap();
    let other = join(&rig, &["t"], &settings()).unwrap();
    let more = SpecChange { shards: Some(2), ..SpecChange::default() };
    rig.broker.alter(&rig.tenant(), &name("s"), &more).unwrap();
    put(&rig.stream("s").shards()[1], checked(&batch_at(5, &[b"new shard"], None)));
    rig.pass(Duration::ZERO);
    let got = pull(&worker, 10);
    assert_eq!((got.len(), got[0].range.stream, got[0].range.shard), (1, 0, 1));
    ack(&worker, &ranges(&got));
    rig.broker.delete(&rig.tenant(), &name("s")).unwrap();
    rig.pass(Duration::ZERO);
    assert!(pull(&worker, 10).is_empty());
    let (count, waker) = Count::waker();
    let mut waits = pin!(worker.pull(10, 1000));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    rig.create("s", StreamSpec::memory(1));
    publish(&rig, "s", &["second life"]);
    rig.pass(Duration::ZERO);
    assert_eq!(count.get(), 1, "who waits is told of the new stream");
    let Poll::Ready(Ok(Pulled::Deliveries(got))) = waits.as_mut().poll(&mut Context::from_waker(&waker))
    else {
        panic!("nothing came")
    };
    assert_eq!(records(&got), [(0, "second life".into(), 1)]);
    // Of what only one of them reads, the right one is woken.
    let (count, waker) = Count::waker();
    let mut waits_for_t = pin!(other.pull(10, 1000));
    let mut waits = pin!(worker.pull(10, 1000));
    assert!(waits_for_t.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    publish(&rig, "s", &["third"]);
    assert_eq!(count.get(), 1);
    assert!(waits_for_t.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[test]
fn twenty_thousand_members_come_and_are_lost() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    let values = vec!["v"; 1000];
    publish(&rig, "s", &values);
    let members: Vec<Member> = (0..20_000).map(|_| member(&rig)).collect();
    for some in members.iter().step_by(20) {
        assert_eq!(pull(some, 1).len(), 1);
    }
    assert_eq!(progress(&rig).in_flight, 1000);
    let stats = rig.broker.groups().stats().remove(0);
    assert_eq!((stats.members, stats.lag, stats.in_flight, stats.rebalances), (20_000, 1000, 1000, 0));
    drop(members);
    let last = member(&rig);
    assert_eq!(pull(&last, 2000).iter().map(|d| d.range.last - d.range.first + 1).sum::<u64>(), 1000);
}

#[test]
fn joins_are_refused_for_a_reason() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    let refused = |streams: &[&str], settings: &GroupSettings| join(&rig, streams, settings).err();
    assert_eq!(refused(&["x"], &settings()), Some(GroupError::UnknownStream(name("x"))));
    assert_eq!(refused(&["s", "s"], &settings()), Some(GroupError::Repeated(name("s"))));
    let own = GroupSettings { dead_letter: Some(name("s")), ..settings() };
    assert_eq!(refused(&["s"], &own), Some(GroupError::Repeated(name("s"))));
    assert!(matches!(refused(&[], &settings()), Some(GroupError::OutOfRange { field: "streams", .. })));
    let own = GroupSettings { dead_letter: Some(name("_s.t")), ..settings() };
    assert_eq!(refused(&["s"], &own), Some(GroupError::UnknownStream(name("_s.t"))));
    let short = GroupSettings { ack_timeout_ms: 1, ..settings() };
    assert!(matches!(refused(&["s"], &short), Some(GroupError::OutOfRange { field: "ack_timeout_ms", .. })));
    // The settings are those of the first member.
    let first = member(&rig);
    let second = join(&rig, &["s"], &GroupSettings { max_deliveries: 9, ..settings() }).unwrap();
    assert_eq!((second.settings(), first.settings()), (settings(), settings()));
    let delete = || rig.broker.groups().delete(&rig.tenant(), &group()).map(drop);
    assert_eq!(delete(), Err(GroupError::NotEmpty(group())));
    // Kafka's members do not fit in, nor the other way round.
    let request = kafka_join("");
    let answer = crate::wait::block_on(rig.broker.groups().classic().join(&rig.tenant(), request.clone()));
    assert_eq!(answer, Err(ClassicError::InconsistentGroupProtocol));
    first.leave();
    second.leave();
    rig.pass(Duration::ZERO);
    let _waits = rig.broker.groups().classic().join(&rig.tenant(), request);
    assert_eq!(refused(&["s"], &settings()), Some(GroupError::OtherProtocol(group())));
    rig.broker.drain();
    assert_eq!(refused(&["s"], &settings()), Some(GroupError::ShuttingDown));
}

fn kafka_join(member_id: &str) -> JoinRequest {
    JoinRequest {
        group: group(),
        member_id: member_id.to_owned(),
        instance_id: None,
        client_id: "kafka".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), "about me".into())],
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        require_member_id: true,
        can_skip_assignment: false,
    }
}

#[test]
fn a_kafka_member_joins_commits_and_is_described() {
    let rig = Rig::on_disk();
    rig.create("s", spec(ON_COMMIT));
    publish(&rig, "s", &["a", "b"]);
    let (groups, tenant) = (rig.broker.groups(), rig.tenant());
    let classic = groups.classic();
    let asked = crate::wait::block_on(classic.join(&tenant, kafka_join("")));
    let Err(ClassicError::MemberIdRequired { member_id }) = asked else { panic!("{asked:?}") };
    assert!(member_id.starts_with("kafka-"));
    let (count, waker) = Count::waker();
    let mut answer = classic.join(&tenant, kafka_join(&member_id));
    assert!(crate::testing::poll(&mut answer, &waker).is_pending());
    rig.pass(Duration::from_millis(limits::INITIAL_REBALANCE_DELAY_MS));
    assert_eq!(count.get(), 1);
    let joined = crate::wait::block_on(answer).unwrap();
    let by = MemberRef { generation: joined.generation, member_id: member_id.clone(), instance_id: None };
    let sync = SyncRequest {
        group: group(),
        generation: joined.generation,
        member_id: member_id.clone(),
        instance_id: None,
        protocol_type: None,
        protocol: None,
        assignments: vec![(member_id.clone(), "all of it".into())],
    };
    assert_eq!(crate::wait::block_on(classic.sync(&tenant, sync)).unwrap().assignment, "all of it");
    assert_eq!(classic.heartbeat(&tenant, &group(), &by), Ok(()));
    let offset = [OffsetCommit { stream: name("s"), shard: 0, offset: 1, note: "".into() }];
    groups.commit_as(&tenant, &group(), &by, &offset).unwrap().wait().unwrap();
    assert_eq!(groups.commit(&tenant, &group(), &offset).map(drop), Err(GroupError::NotEmpty(group())));
    let described = groups.describe(&tenant, &group()).unwrap();
    let listing = &described.listing;
    assert_eq!((listing.kafka_state, listing.protocol, listing.members), ("Stable", Protocol::Classic, 1));
    assert_eq!(
        (&*listing.protocol_type, &*described.protocol_name, described.generation),
        ("consumer", "range", 1)
    );
    assert_eq!(
        (&*described.members[0].member, &*described.members[0].assignment),
        (&*member_id, &b"all of it"[..])
    );
    assert_eq!((described.progress[0].lag, listing.state), (Some(1), GroupState::Active));
    // A clock that jumps ends no session; silence does.
    rig.clock.advance(Duration::from_secs(100_000));
    rig.pass(Duration::ZERO);
    assert_eq!(classic.heartbeat(&tenant, &group(), &by), Ok(()));
    (0..3).for_each(|_| rig.pass(Duration::from_secs(5)));
    assert_eq!(classic.heartbeat(&tenant, &group(), &by), Err(ClassicError::UnknownMemberId));
    assert_eq!(groups.list(&tenant, "", None, 10)[0].kafka_state, "Empty");
    // The native members go on where Kafka's stopped.
    let native = member(&rig);
    assert_eq!(offsets(&pull(&native, 10)), [1]);
}

#[test]
fn idle_groups_are_forgotten_and_busy_ones_are_not() {
    let rig = Rig::memory();
    rig.create("s", StreamSpec::memory(1));
    commit(&rig, "s", 0, 0).unwrap();
    let busy = GroupName::new("busy").unwrap();
    let worker = rig.broker.groups().join(&rig.tenant(), &busy, "", &[name("s")], &settings()).unwrap();
    let names = || {
        let listed = rig.broker.groups().list(&rig.tenant(), "", None, 10);
        listed.into_iter().map(|group| group.name.to_string()).collect::<Vec<_>>()
    };
    // Steps that the broker takes for a clock that goes on, and no more than those.
    let steps = limits::IDLE_GROUP_MS / limits::CLOCK_STEP_MS_MAX.unsigned_abs();
    let step = Duration::from_millis(limits::CLOCK_STEP_MS_MAX.unsigned_abs());
    (0..steps - 1).for_each(|_| rig.pass(step));
    assert_eq!(names(), ["busy", "workers"]);
    (0..2).for_each(|_| rig.pass(step));
    assert_eq!(names(), ["busy"]);
    worker.leave();
}

#[derive(Clone, Debug)]
enum Step {
    Publish { records: usize },
    Pull { who: usize, max: u32 },
    Ack { who: usize, take: usize },
    Nack { who: usize, take: usize, delay: u32 },
    Extend { who: usize },
    Leave { who: usize },
    Lose { who: usize },
    Pass { ms: u64 },
    Restart { cut: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0_usize..3;
    let step = prop_oneof![
        3 => (1_usize..6).prop_map(|records| Step::Publish { records }),
        6 => (who.clone(), 1_u32..6).prop_map(|(who, max)| Step::Pull { who, max }),
        4 => (who.clone(), 1_usize..4).prop_map(|(who, take)| Step::Ack { who, take }),
        2 => (who.clone(), 1_usize..3, 0_u32..50)
            .prop_map(|(who, take, delay)| Step::Nack { who, take, delay }),
        1 => who.clone().prop_map(|who| Step::Extend { who }),
        1 => who.clone().prop_map(|who| Step::Leave { who }),
        1 => who.prop_map(|who| Step::Lose { who }),
        3 => (0_u64..60).prop_map(|ms| Step::Pass { ms }),
        1 => any::<bool>().prop_map(|cut| Step::Restart { cut }),
    ];
    prop::collection::vec(step, 1..50)
}

/// A group at work, and what is known of each record from outside.
struct World {
    rig: Rig,
    members: Vec<Option<Member>>,
    held: Vec<Vec<OffsetRange>>,
    published: u64,
    /// Records that were acknowledged by a member that held them.
    acked: Vec<bool>,
    /// Records among those that a member acknowledged too late, in part.
    perhaps: Vec<bool>,
}

impl World {
    fn settings() -> GroupSettings {
        GroupSettings {
            ack_timeout_ms: 50,
            max_deliveries: 3,
            dead_letter: Some(name("dead")),
            ..GroupSettings::default()
        }
    }

    fn new() -> Self {
        let rig = Rig::on_disk();
        rig.create("s", spec(ON_COMMIT));
        let (members, held) = ((0..3).map(|_| None).collect(), vec![Vec::new(); 3]);
        World { rig, members, held, published: 0, acked: Vec::new(), perhaps: Vec::new() }
    }

    fn member(&mut self, who: usize) -> &Member {
        let rig = &self.rig;
        self.members[who].get_or_insert_with(|| join(rig, &["s"], &Self::settings()).unwrap())
    }

    fn take(mut self, step: &Step) -> Self {
        match *step {
            Step::Publish { records } => {
                let values = vec!["v"; records];
                assert_eq!(publish(&self.rig, "s", &values), self.published);
                self.published += records as u64;
                self.acked.resize(self.published as usize, false);
                self.perhaps.resize(self.published as usize, false);
            }
            Step::Pull { who, max } => {
                let got = pull(self.member(who), max);
                let count: u64 =
                    got.iter().map(|delivery| delivery.range.last - delivery.range.first + 1).sum();
                assert!(count <= max.into());
                for delivery in &got {
                    for offset in delivery.range.first..=delivery.range.last {
                        assert!(!self.acked[offset as usize], "{offset} is done and comes again");
                        assert!((1..=3).contains(&delivery.attempt));
                    }
                }
                self.held[who].extend(ranges(&got));
            }
            Step::Ack { who, take } => {
                let some: Vec<_> = self.drain(who, take);
                for one in some {
                    let settled = self.member(who).ack(std::slice::from_ref(&one)).unwrap();
                    settled.ack.wait().unwrap();
                    assert_eq!(settled.settled + settled.unknown, one.last - one.first + 1);
                    // If it was too late for some of them, only the group knows for which.
                    let marks = if settled.unknown == 0 { &mut self.acked } else { &mut self.perhaps };
                    (one.first..=one.last).for_each(|offset| marks[offset as usize] = true);
                }
            }
            Step::Nack { who, take, delay } => {
                let some = self.drain(who, take);
                _ = self.member(who).nack(&some, delay).unwrap();
            }
            Step::Extend { who } => {
                let all = self.held[who].clone();
                _ = self.member(who).extend(&all, 40).unwrap();
            }
            Step::Leave { who } => {
                self.held[who].clear();
                if let Some(member) = self.members[who].take() {
                    member.leave();
                }
            }
            Step::Lose { who } => {
                self.held[who].clear();
                self.members[who] = None;
            }
            Step::Pass { ms } => self.rig.pass(Duration::from_millis(ms)),
            Step::Restart { cut } => return self.restart(cut),
        }
        self.check();
        self
    }

    /// The first ranges that a member holds.
    fn drain(&mut self, who: usize, take: usize) -> Vec<OffsetRange> {
        let take = take.min(self.held[who].len());
        self.held[who].drain(..take).collect()
    }

    fn restart(self, cut: bool) -> Self {
        let World { rig, members, published, perhaps, .. } = self;
        drop(members);
        let rig = if cut { rig.reopen(|disk| disk.power_cut(published)) } else { rig.restart() };
        // What was acknowledged behind a gap may come again.
        let committed = committed(&rig).unwrap_or(0);
        let acked = (0..published).map(|offset| offset < committed).collect();
        let (members, held) = ((0..3).map(|_| None).collect(), vec![Vec::new(); 3]);
        World { rig, members, held, published, acked, perhaps }
    }

    /// The committed offset passes acknowledged records, and those that are in the dead-letter stream, and no
    /// others.
    fn check(&self) {
        let Some(committed) = committed(&self.rig) else { return };
        assert!(committed <= self.published);
        let described = self.rig.broker.groups().describe(&self.rig.tenant(), &group()).unwrap();
        let held: u64 = described.members.iter().map(|member| member.in_flight).sum();
        assert_eq!(held, described.progress.iter().map(|progress| progress.in_flight).sum::<u64>());
        let dead = self.dead();
        for offset in 0..committed {
            let is_done = self.acked[offset as usize] || dead.contains_key(&offset);
            let is_done = is_done || self.perhaps[offset as usize];
            assert!(is_done, "{offset} is committed and was not done");
        }
    }

    /// Offsets in the dead-letter stream, and how often each was delivered.
    fn dead(&self) -> BTreeMap<u64, u16> {
        let mut dead = BTreeMap::new();
        let Ok(stream) = self.rig.broker.stream(&self.rig.tenant(), &name("dead")) else { return dead };
        let (mut from, shard) = (0, stream.shards()[0].clone());
        while from < shard.end_offset() {
            let fetched = shard.fetch(from, 1 << 20).unwrap();
            for entry in &fetched.batches {
                for record in open(&entry.bytes, 1 << 20).unwrap().records() {
                    let headers = record.unwrap().headers;
                    let number = |name| -> u64 {
                        std::str::from_utf8(headers.get(name).flatten().unwrap()).unwrap().parse().unwrap()
                    };
                    dead.insert(number("trifid-offset"), number("trifid-deliveries") as u16);
                }
            }
            from = fetched.next;
        }
        dead
    }

    /// With a member that does its work, everything is done: acknowledged, or set aside after three
    /// deliveries.
    fn finish(mut self) {
        for who in 0..3 {
            self.members[who] = None;
        }
        if self.published == 0 {
            return;
        }
        let worker = join(&self.rig, &["s"], &Self::settings()).unwrap();
        let mut rounds = 0;
        while committed(&self.rig) != Some(self.published) {
            let got = pull(&worker, 100);
            for offset in offsets(&got) {
                assert!(!self.acked[offset as usize]);
                self.acked[offset as usize] = true;
            }
            ack(&worker, &ranges(&got));
            self.rig.pass(Duration::from_millis(60));
            rounds += 1;
            assert!(rounds < 10_000, "{:?}", progress(&self.rig));
        }
        let dead = self.dead();
        assert!(dead.values().all(|deliveries| *deliveries == 3), "{dead:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever members do, and whenever the power fails: every record is acknowledged, set aside, or comes
    /// again.
    #[test]
    fn every_record_is_done_in_the_end(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world = world.take(step);
        }
        world.finish();
    }
}

/// Everything at once, from several threads: nothing is lost, and nothing waits for itself.
#[test]
fn members_of_several_threads_do_every_record() {
    let rig = Rig::on_disk();
    rig.create("s", StreamSpec { shards: 2, ..spec(ON_COMMIT) });
    const RECORDS: u64 = 400;
    let done = parking_lot::Mutex::new(std::collections::BTreeSet::new());
    let is_done = || done.lock().len() as u64 == RECORDS;
    let (rig, done) = (&rig, &done);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..RECORDS {
                let shard = &rig.stream("s").shards()[n as usize % 2].clone();
                put(shard, checked(&batch_at(5, &[n.to_string().as_bytes()], None)));
            }
        });
        for who in 0..3 {
            scope.spawn(move || {
                let endless = GroupSettings { max_deliveries: 0, ..settings() };
                let join = || join(rig, &["s"], &endless).unwrap();
                let mut worker = join();
                let mut pulled = 0;
                while !is_done() {
                    let got = pull(&worker, 7);
                    pulled += 1;
                    match pulled % 11 {
                        3 => drop(worker.nack(&ranges(&got), 0).unwrap()),
                        5 if who == 0 => worker = join(),
                        _ => {
                            done.lock().extend(records(&got).into_iter().map(|(_, value, _)| value));
                            drop(worker.ack(&ranges(&got)).unwrap());
                        }
                    }
                }
            });
        }
        scope.spawn(move || {
            while !is_done() {
                rig.pass(Duration::ZERO);
                rig.broker.groups().describe(&rig.tenant(), &group());
                rig.broker.groups().list(&rig.tenant(), "", None, 10);
                std::thread::yield_now();
            }
        });
    });
    assert_eq!(progress(rig).dead_lettered, 0);
}

/// What compaction took is not there to be done: the group goes past it, also where it was being delivered again.
#[test]
fn a_group_goes_past_what_compaction_took() {
    let rig = Rig::on_disk();
    rig.create("s", StreamSpec { compact: true, ..spec(ON_COMMIT) });
    let endless = GroupSettings { max_deliveries: 0, ..settings() };
    let worker = join(&rig, &["s"], &endless).unwrap();
    let large = "x".repeat(900);
    for n in 0..100 {
        let key = format!("k{}", n % 3);
        put(&rig.shard("s"), checked(&keyed(5, &[(&key, Some(&format!("{n} {large}")))])));
    }
    let first = pull(&worker, 10);
    assert_eq!(offsets(&first), (0..10).collect::<Vec<_>>());
    _ = worker.nack(&ranges(&first), 0).unwrap();
    (0..10).for_each(|_| rig.pass(Duration::from_secs(1)));
    assert!(rig.shard("s").stats().compactions > 0);
    // The pages that it has read go with the last member.
    worker.leave();
    let worker = join(&rig, &["s"], &endless).unwrap();
    let mut seen = Vec::new();
    for _ in 0..100 {
        let got = pull(&worker, 50);
        seen.extend(records(&got).into_iter().map(|(_, value, _)| value));
        ack(&worker, &ranges(&got));
    }
    assert!(seen.len() < 20, "{}", seen.len());
    for last in 97..100 {
        assert!(
            seen.iter().any(|value| value.starts_with(&format!("{last} "))),
            "the last of each key is there"
        );
    }
    assert_eq!((committed(&rig), progress(&rig).lag, progress(&rig).lost), (Some(100), Some(0), 0));
}

/// What a member holds may be acknowledged after retention took it; what nobody does is lost, and counted once.
#[test]
fn retention_does_not_wait_for_members() {
    let rig = Rig::on_disk();
    rig.create("s", StreamSpec { retention_bytes: Some(64 << 10), ..spec(ON_COMMIT) });
    let worker = member(&rig);
    let large = "x".repeat(8000);
    (0..4).for_each(|_| _ = publish(&rig, "s", &[&large]));
    let held = pull(&worker, 4);
    assert_eq!(offsets(&held), [0, 1, 2, 3]);
    (0..40).for_each(|_| _ = publish(&rig, "s", &[&large]));
    rig.clock.advance(Duration::from_millis(500));
    rig.broker.tick(rig.broker.now_ms() + 5000);
    let first = rig.shard("s").start_offset();
    assert!(first > 4);
    assert_eq!(offsets(&pull(&worker, 1)), [first]);
    assert_eq!(progress(&rig).lost, first - 4);
    assert_eq!((ack(&worker, &[range(0, 1)]), committed(&rig)), ((2, 0), Some(2)));
    rig.pass(Duration::from_millis(1000));
    _ = pull(&worker, 1);
    assert_eq!((committed(&rig), progress(&rig).lost), (Some(first), first - 2));
    let described = rig.broker.groups().describe(&rig.tenant(), &group()).unwrap();
    assert_eq!(described.members[0].in_flight, progress(&rig).in_flight);
}

/// The stream of committed offsets is compacted, and tells the same afterwards.
#[test]
fn a_thousand_commits_are_soon_one() {
    let rig = Rig::on_disk();
    rig.create("s", spec(ON_COMMIT));
    rig.create("t", spec(ON_COMMIT));
    commit(&rig, "t", 0, 7).unwrap();
    (0..1000).for_each(|n| commit(&rig, "s", 0, n).unwrap());
    let system =
        || rig.broker.stream(&Streams::system_tenant(), &name("_groups")).unwrap().shards()[0].clone();
    (0..10).for_each(|_| rig.pass(Duration::from_secs(1)));
    assert!(system().stats().compactions > 0);
    let left = read_all(&system(), system().start_offset()).len();
    assert!(left < 500, "{left}");
    let rig = rig.reopen(|disk| disk.power_cut(9));
    assert_eq!(committed(&rig), Some(999));
    let other = rig.broker.groups().committed(&rig.tenant(), &group(), &name("t"), 0);
    assert_eq!(other.map(|committed| committed.offset), Some(7));
}
