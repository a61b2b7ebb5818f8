use std::sync::Arc;
use std::time::Duration;

use trifid_base_log::{Disk, LogId};
use trifid_base_sim::SimDisk;

use super::*;
use crate::testing::*;
use crate::{Broker, CreateError, DeleteError, Options, SpecChange};

fn names(rig: &Rig) -> Vec<String> {
    rig.broker.list(&rig.tenant(), "", None, 100).iter().map(|stream| stream.name().to_string()).collect()
}

#[test]
fn streams_are_there_after_a_restart_as_they_were() {
    let rig = Rig::on_disk();
    let specs = [
        ("memory", StreamSpec::memory(3)),
        ("demo.periodic", spec(Durability::Periodic { interval_ms: 70 })),
        (
            "kept",
            StreamSpec {
                retention_ms: Some(5000),
                retention_bytes: Some(1 << 30),
                compact: true,
                max_batch_bytes: 4096,
                kind: StreamKind::DeadLetter,
                ..StreamSpec::default()
            },
        ),
    ];
    for (stream, spec) in &specs {
        rig.create(stream, spec.clone());
    }
    rig.create("gone", StreamSpec::default());
    rig.broker.delete(&rig.tenant(), &name("gone")).unwrap();
    let change = SpecChange { shards: Some(5), retention_ms: Some(None), ..SpecChange::default() };
    rig.broker.alter(&rig.tenant(), &name("kept"), &change).unwrap();
    let ids = |rig: &Rig| {
        specs.each_ref().map(|(stream, _)| (rig.stream(stream).id(), rig.stream(stream).topic_id()))
    };
    let before = ids(&rig);
    let mut rig = rig;
    for round in 0..3 {
        rig = if round == 1 { rig.restart() } else { rig.reopen(SimDisk::kill) };
        assert_eq!(names(&rig), ["demo.periodic", "kept", "memory"]);
        assert_eq!(ids(&rig), before);
        assert_eq!(*rig.stream("memory").spec(), specs[0].1);
        assert_eq!(*rig.stream("demo.periodic").spec(), specs[1].1);
        let kept = StreamSpec { shards: 5, retention_ms: None, ..specs[2].1.clone() };
        assert_eq!(*rig.stream("kept").spec(), kept);
        assert_eq!(rig.stream("kept").shards().len(), 5);
    }
    let last = before.iter().map(|(id, _)| *id).max().unwrap();
    assert!(rig.create("new", StreamSpec::memory(1)).id() > last);
}

/// Records of version 1 as they were written stay readable.
#[test]
fn the_sample_of_version_1_is_read() {
    let mut book = Book::default();
    for line in include_str!("../../testdata/catalogue-1.jsonl").lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line, "it would be written otherwise");
        book.apply(record.change).unwrap();
    }
    let names: Vec<_> = book.streams.values().map(|listed| listed.name.as_str()).collect();
    assert_eq!(names, ["kept", "demo.readings", "memory"]);
    assert_eq!(book.streams[&2].spec.retention_ms, Some(60_000));
    assert_eq!(book.streams[&3].spec.durability, Durability::Periodic { interval_ms: 250 });
    assert_eq!((book.next_id, book.producers_below, book.installation), (8, 3000, 99));
    assert_eq!(book.deleted.into_iter().collect::<Vec<_>>(), [(7, 4)]);
}

#[test]
fn another_version_is_refused() {
    let frame = |payload| Frame { position: Position::ZERO, records: 1, payload };
    let refused = Book::default().frame(frame(br#"{"v":2,"removed":{"id":1}}"#)).unwrap_err();
    assert_eq!(refused.to_string(), "version 2 of the catalogue is not known");
    assert!(Book::default().frame(frame(br#"{"v":1,"renamed":{"id":1}}"#)).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    let rig = Rig::with(None, |options| {
        options.limits.streams_max = 3;
        options.limits.shards_total_max = 20;
        options.limits.shards_max = 12;
    });
    let create = |stream: &str, spec| match rig.broker.create(&rig.tenant(), &name(stream), spec) {
        Ok(_) => "made".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(create("d", StreamSpec::default()), "a durable stream needs a data directory");
    assert_eq!(create("_broker.own", StreamSpec::memory(1)), CreateError::Reserved.to_string());
    assert_eq!(create("wide", StreamSpec::memory(13)), "shards is 13, and must lie between 1 and 12");
    assert_eq!(create("a", StreamSpec::memory(12)), "made");
    assert_eq!(create("a", StreamSpec::memory(12)), "the stream exists");
    assert_eq!(create("b", StreamSpec::memory(12)), "this broker holds at most 20 shards");
    assert_eq!(create("b", StreamSpec::memory(1)), "made");
    assert_eq!(create("c", StreamSpec::memory(1)), "made");
    assert_eq!(create("d", StreamSpec::memory(1)), "this broker holds at most 3 streams");
    let alter = |change: SpecChange| match rig.broker.alter(&rig.tenant(), &name("a"), &change) {
        Ok(stream) => stream.shards().len().to_string(),
        Err(error) => error.to_string(),
    };
    let shards = |shards| SpecChange { shards: Some(shards), ..SpecChange::default() };
    assert_eq!(alter(shards(2)), "a stream of 12 shards cannot have 2");
    assert_eq!(alter(shards(12)), "12");
    assert_eq!(
        alter(SpecChange { compact: Some(true), ..SpecChange::default() }),
        "a stream in memory cannot be compacted"
    );
    assert!(matches!(rig.broker.delete(&rig.tenant(), &name("nope")), Err(DeleteError::Unknown)));
    rig.broker.delete(&rig.tenant(), &name("b")).unwrap();
    assert_eq!(create("d", StreamSpec::memory(1)), "made");
}

#[test]
fn on_first_use_by_policy_alone() {
    let rig = Rig::memory();
    let missing = rig.broker.stream_or_create(&rig.tenant(), &name("s"));
    assert!(matches!(missing, Err(CreateError::Unknown)));
    let rig = Rig::with(None, |options| {
        options.create = crate::CreatePolicy { auto_create: true, spec: StreamSpec::memory(4) };
    });
    let made = rig.broker.stream_or_create(&rig.tenant(), &name("s")).unwrap();
    assert_eq!(made.shards().len(), 4);
    let again = rig.broker.stream_or_create(&rig.tenant(), &name("s")).unwrap();
    assert!(Arc::ptr_eq(&made, &again));
    let reserved = rig.broker.stream_or_create(&rig.tenant(), &name("_x.y"));
    assert!(matches!(reserved, Err(CreateError::Reserved)));
}

#[test]
fn lists_by_prefix_in_pages() {
    let rig = Rig::memory();
    for stream in ["b", "a.x", "a.y", "a.z", "c"] {
        rig.create(stream, StreamSpec::memory(1));
    }
    let list = |prefix: &str, after: Option<&str>, limit| {
        let after = after.map(name);
        let found = rig.broker.list(&rig.tenant(), prefix, after.as_ref(), limit);
        found.iter().map(|stream| stream.name().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list("", None, 10), "a.x a.y a.z b c");
    assert_eq!(list("a.", None, 2), "a.x a.y");
    assert_eq!(list("a.", Some("a.y"), 2), "a.z");
    assert_eq!(list("b", Some("a.y"), 2), "b");
    assert_eq!(list("d", None, 2), "");
    let other = Tenant::new("other").unwrap();
    assert!(rig.broker.list(&other, "", None, 10).is_empty());
}

#[test]
fn producers_are_never_given_the_same_identity() {
    let mut rig = Rig::on_disk();
    let mut given = std::collections::BTreeSet::new();
    for round in 0..6 {
        for _ in 0..700 {
            assert!(given.insert(rig.broker.init_producer(&rig.tenant()).unwrap().id));
        }
        rig = rig.reopen(|disk| if round % 2 == 0 { disk.kill() } else { disk.power_cut(round) });
    }
}

#[test]
fn the_catalogue_does_not_grow_without_end() {
    let rig = Rig::on_disk();
    rig.create("s", StreamSpec::default());
    for round in 0..3000 {
        let change = SpecChange { retention_ms: Some(Some(5000 + round)), ..SpecChange::default() };
        rig.broker.alter(&rig.tenant(), &name("s"), &change).unwrap();
    }
    let rig = rig.reopen(SimDisk::kill);
    assert_eq!(rig.stream("s").spec().retention_ms, Some(7999));
    let bytes: usize = rig.disk.as_ref().map_or(0, |disk| {
        let files = disk.files();
        let own = files.iter().filter(|path| path.starts_with("log/0000000000000000"));
        own.filter_map(|path| disk.content(path)).map(|content| content.len()).sum()
    });
    assert!(bytes < 2 << 20, "{bytes} bytes");
}

#[test]
fn a_log_of_no_stream_is_left_alone_and_told() {
    let rig = Rig::on_disk();
    let kept = rig.create("kept", StreamSpec::default()).id();
    let disk = rig.disk.as_ref().unwrap().kill();
    drop(rig);
    // A log that no record names, as an operator might bring along.
    let orphan = crate::store::log_id(kept.0 + 5, 0);
    let from = format!("log/{}", crate::store::log_id(kept.0, 0));
    for path in disk.files().iter().filter(|path| path.starts_with(&from)) {
        let moved = path.to_str().unwrap().replace(&from, &format!("log/{orphan}"));
        disk.plant(moved.as_ref(), disk.content(path).unwrap());
    }
    let rig = Rig::with(Some(disk.clone()), |_| {});
    assert_eq!(rig.broker.health().orphans, [orphan.to_string()]);
    assert!(rig.create("new", StreamSpec::default()).id().0 > kept.0 + 5);
    let is_there = |log: &str| disk.files().iter().any(|path| path.starts_with(format!("log/{log}")));
    rig.broker.delete(&rig.tenant(), &name("kept")).unwrap();
    assert!(is_there(&orphan.to_string()));
    // Nor are files where a shard's log is to be taken for it, or removed.
    let new = rig.stream("new").id();
    let foreign = crate::store::log_id(new.0, 1).to_string();
    disk.plant(format!("log/{foreign}/note").as_ref(), b"mine".to_vec());
    let more = SpecChange { shards: Some(2), ..SpecChange::default() };
    let refused = rig.broker.alter(&rig.tenant(), &name("new"), &more);
    assert!(matches!(refused, Err(CreateError::Failed)));
    assert!(is_there(&foreign));
}

#[test]
fn a_missing_log_is_told_and_not_begun_anew() {
    let rig = Rig::on_disk();
    let id = rig.create("s", StreamSpec::default()).id();
    let Rig { broker, disk, .. } = rig;
    drop(broker);
    let disk = disk.unwrap().kill();
    let log = format!("log/{}", LogId(id.0 << 16));
    for path in disk.files().iter().filter(|path| path.starts_with(&log)) {
        disk.remove(path).unwrap();
    }
    let opened = Broker::open(Options::on(Arc::new(disk))).err().unwrap();
    assert!(matches!(opened, OpenError::Missing { shard: 0, .. }), "{opened}");
}

#[test]
fn a_full_disk_makes_no_stream_and_leaves_nothing() {
    let disk = SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    rig.create("first", StreamSpec::default());
    disk.set_room(Some(0));
    let refused = rig.broker.create(&rig.tenant(), &name("second"), StreamSpec::default());
    assert!(matches!(refused, Err(CreateError::NoSpace)), "{:?}", refused.err());
    disk.set_room(None);
    rig.create("second", StreamSpec::default());
    let rig = rig.reopen(SimDisk::kill);
    assert_eq!(names(&rig), ["first", "second"]);
    assert!(rig.broker.health().orphans.is_empty());
}

/// Whenever the power goes while streams are made and deleted, the next opening knows what was answered, and
/// no file is left that belongs to nothing.
#[test]
fn making_and_deleting_survive_a_power_cut_at_any_point() {
    let total = {
        let disk = SimDisk::new();
        make_and_delete(&disk);
        disk.ops()
    };
    for cut in 0..total {
        let disk = SimDisk::new();
        disk.cut_at(cut);
        let answered = make_and_delete(&disk);
        let rig = Rig::with(Some(disk.power_cut(cut)), |_| {});
        let found = names(&rig);
        for (stream, should_be) in answered {
            match should_be {
                Some(true) => assert!(found.contains(&stream), "cut {cut}: {stream} was made"),
                Some(false) => assert!(!found.contains(&stream), "cut {cut}: {stream} was deleted"),
                None => {}
            }
        }
        for stream in &found {
            let stream = rig.stream(stream);
            stream.shards().iter().for_each(|shard| assert_eq!(put(shard, values(&[b"works"])), 0));
        }
        let orphans = rig.broker.health().orphans;
        assert!(orphans.len() <= 2, "cut {cut}: at most the shard that was being made: {orphans:?}");
    }
}

/// What was answered: the stream is there, it is not, or nobody knows.
fn make_and_delete(disk: &SimDisk) -> Vec<(String, Option<bool>)> {
    let mut answered = Vec::new();
    let mut options = Options::on(Arc::new(disk.clone()));
    options.logs.preallocate = false;
    options.logs.idle_after = Duration::from_secs(3600);
    options.logs.on_fatal = Arc::new(|_| {});
    let Ok(broker) = Broker::open(options) else { return answered };
    let tenant = Tenant::default();
    for stream in ["a", "b"] {
        let made = broker.create(&tenant, &name(stream), StreamSpec::default());
        answered.push((stream.to_owned(), made.is_ok().then_some(true)));
    }
    let more = SpecChange { shards: Some(3), ..SpecChange::default() };
    if answered[1].1 == Some(true) && broker.alter(&tenant, &name("b"), &more).is_ok() {
        answered.push(("b".to_owned(), Some(true)));
    }
    if answered[0].1 == Some(true) {
        let deleted = broker.delete(&tenant, &name("a"));
        answered[0].1 = deleted.is_ok().then_some(false);
    }
    answered
}
