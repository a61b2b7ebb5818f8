//! What survives: restarts, kills and power cuts, at any point.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use trifid_base_sim::{Fault, OpKind, SimDisk};
use trifid_stream_model::names::Tenant;
use trifid_stream_model::spec::{Durability, StreamSpec};

use crate::testing::*;
use crate::{Broker, Options, Policy, PublishError, Start, Step};

/// Publishes batches, some from an idempotent producer, until the power goes; answers what was acknowledged:
/// offset and value.
fn load(disk: &SimDisk, batches: u32) -> Option<BTreeMap<u64, Vec<u8>>> {
    let mut options = Options::on(Arc::new(disk.clone()));
    options.logs.preallocate = false;
    options.logs.segment_bytes = 6 << 10;
    options.logs.linger_max = Duration::ZERO;
    options.logs.on_fatal = Arc::new(|_| {});
    let broker = Broker::open(options).ok()?;
    let stream = broker.create(&Tenant::default(), &name("s"), StreamSpec::default()).ok()?;
    let shard = &stream.shards()[0];
    let mut acknowledged = BTreeMap::new();
    let mut waiting = Vec::new();
    for n in 0..batches {
        let values = [format!("{n}a").repeat(20).into_bytes(), format!("{n}b").into_bytes()];
        let producer = (n % 3 == 0).then_some((5, 0, (n / 3 * 2) as i32));
        let refs: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let Ok(published) = publish(shard, checked(&batch_at(START_MS, &refs, producer))) else { break };
        waiting.push((published.base_offset, values, published.ack));
        // Some wait at once, so that batches of one and of several are flushed.
        if n % 4 == 3 {
            for (base, values, ack) in waiting.drain(..) {
                if ack.wait().is_ok() {
                    acknowledged
                        .extend(values.into_iter().zip(base..).map(|(value, offset)| (offset, value)));
                }
            }
        }
        if n == batches / 2 {
            broker.tick(START_MS + 5000);
        }
    }
    Some(acknowledged)
}

/// Some thousand cuts: at each operation of the disk, ten times, each time with another fate for what was not flushed.
#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_point() {
    let total = {
        let disk = SimDisk::new();
        assert_eq!(load(&disk, 40).unwrap().len(), 80);
        disk.ops()
    };
    let mut seen = 0;
    for (round, cut) in (0..10).flat_map(|round| (0..total).map(move |cut| (round, cut))) {
        let disk = SimDisk::new();
        disk.cut_at(cut);
        let acknowledged = load(&disk, 40).unwrap_or_default();
        let rig =
            Rig::with(Some(disk.power_cut(cut * 31 + round)), |options| options.logs.segment_bytes = 6 << 10);
        let Ok(stream) = rig.broker.stream(&rig.tenant(), &name("s")) else {
            assert!(acknowledged.is_empty(), "cut {cut}: the stream is gone");
            continue;
        };
        let shard = &stream.shards()[0];
        let found = read_all(shard, 0);
        // Dense: nothing was refused, so no offset is missing.
        assert!(found.iter().map(|(offset, _)| *offset).eq(0..shard.end_offset()), "cut {cut}: a gap");
        for (offset, value) in &acknowledged {
            assert_eq!(
                found.get(*offset as usize).map(|(_, value)| value),
                Some(value),
                "cut {cut}: {offset} is lost"
            );
        }
        seen += acknowledged.len();
        producer_goes_on(shard, &found, cut);
        assert_eq!(put(shard, values(&[b"after"])), shard.end_offset() - 1);
    }
    assert!(seen > 10_000, "the cuts came too early to tell anything: {seen}");
}

/// The producer sends the last batch of its that is there again, which is a repetition, and then the next.
fn producer_goes_on(shard: &Arc<crate::Shard>, found: &[(u64, Vec<u8>)], cut: u64) {
    let of_producer = |n: u32| {
        let values = [format!("{n}a").repeat(20).into_bytes(), format!("{n}b").into_bytes()];
        let refs: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        batch_at(START_MS, &refs, Some((5, 0, (n / 3 * 2) as i32)))
    };
    let last = (0..found.len() as u32 / 2).rfind(|n| n % 3 == 0);
    if let Some(last) = last {
        let again = publish(shard, checked(&of_producer(last))).unwrap();
        assert!(again.duplicate, "cut {cut}: a repetition was taken twice");
        assert_eq!(again.base_offset, u64::from(last) * 2);
        again.ack.wait().unwrap();
    }
    let next = last.map_or(0, |last| last + 3);
    let skipped = publish(shard, checked(&of_producer(next + 3)));
    assert!(matches!(skipped, Err(PublishError::OutOfSequence { .. })), "cut {cut}: {skipped:?}");
    let published = publish(shard, checked(&of_producer(next))).unwrap();
    assert!(!published.duplicate, "cut {cut}: a new batch was taken for a repetition");
    published.ack.wait().unwrap();
}

#[test]
fn a_killed_process_loses_nothing_of_a_periodic_stream() {
    let rig = Rig::on_disk();
    let shard = rig.create("s", spec(Durability::Periodic { interval_ms: 60_000 })).shards()[0].clone();
    for n in 0..50_u32 {
        assert_eq!(put(&shard, values(&[&n.to_be_bytes()])), u64::from(n));
    }
    drop(shard);
    let rig = rig.reopen(SimDisk::kill);
    assert_eq!(read_all(&rig.shard("s"), 0).len(), 50);
}

/// Publishes to a periodic stream and cuts the power: what is left is the beginning of what was published, and the
/// producer goes on from there.
#[test]
fn a_power_cut_leaves_the_beginning_of_a_periodic_stream() {
    let mut left = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let disk = SimDisk::new();
        let rig = Rig::with(Some(disk.clone()), |options| options.logs.segment_bytes = 6 << 10);
        let durability = Durability::Periodic { interval_ms: 60_000 };
        let shard = rig.create("s", spec(durability)).shards()[0].clone();
        let batch = |n: u32| batch_at(START_MS, &[&n.to_be_bytes().repeat(40)], Some((1, 0, n as i32)));
        // Segments that are full are flushed; how much of the last is there, the seed decides.
        (0..70).for_each(|n| assert_eq!(put(&shard, checked(&batch(n))), u64::from(n)));
        let rig = Rig::with(Some(disk.power_cut(seed)), |_| {});
        let shard = rig.shard("s");
        let found = read_all(&shard, 0);
        let whole = (0..70_u32).map(|n| (u64::from(n), n.to_be_bytes().repeat(40)));
        assert!(found.iter().cloned().eq(whole.take(found.len())), "seed {seed}");
        let next = found.len() as u32;
        if next > 0 {
            assert!(publish(&shard, checked(&batch(next - 1))).unwrap().duplicate, "seed {seed}");
        }
        assert_eq!(put(&shard, checked(&batch(next))), u64::from(next), "seed {seed}");
        left.insert(next);
    }
    assert!(left.len() > 1, "the cuts left always the same: {left:?}");
}

/// Without the flush the same check must fail: else it would not notice one that is missing.
#[test]
fn a_disk_that_lies_is_noticed() {
    let disk = SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let shard = rig.create("s", StreamSpec::default()).shards()[0].clone();
    disk.on_op(|op| matches!(op.kind, OpKind::SyncData | OpKind::SyncAll).then_some(Fault::Lie));
    for _ in 0..10 {
        put(&shard, values(&[b"said to be durable"]));
    }
    let lost = (0..20).any(|seed| {
        // Frames after a hole tell that it holds what was acknowledged: then the opening is refused.
        match Broker::open(Options::on(Arc::new(disk.power_cut(seed)))) {
            Ok(broker) => {
                let stream = broker.stream(&Tenant::default(), &name("s")).unwrap();
                stream.shards()[0].end_offset() < 10
            }
            Err(_) => true,
        }
    });
    assert!(lost);
}

/// A publish of several batches of which the power left the beginning is completed when it is sent again.
#[test]
fn a_publish_that_was_cut_in_two_is_completed() {
    let batches: Vec<_> = (0..5).map(|n| batch_at(START_MS, &[&[7; 900]], Some((3, 0, n)))).collect();
    let payload = bytes::Bytes::from(batches.concat());
    let mut left = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let disk = SimDisk::new();
        let rig = Rig::with(Some(disk.clone()), |_| {});
        let durability = Durability::Periodic { interval_ms: 60_000 };
        let shard = rig.create("s", spec(durability)).shards()[0].clone();
        assert_eq!(put(&shard, checked(&payload)), 0);
        let rig = Rig::with(Some(disk.power_cut(seed)), |_| {});
        let shard = rig.shard("s");
        let there = shard.end_offset();
        let again = publish(&shard, checked(&payload)).unwrap();
        assert_eq!((again.base_offset, again.end, again.duplicate), (0, 5, there == 5), "seed {seed}");
        again.ack.wait().unwrap();
        let found = read_all(&shard, 0);
        assert!(found.iter().map(|(offset, _)| *offset).eq(0..5), "seed {seed}");
        assert!(publish(&shard, checked(&payload)).unwrap().duplicate, "seed {seed}");
        left.insert(there);
    }
    assert!(left.iter().any(|there| (1..5).contains(there)), "never in two: {left:?}");
}

#[test]
fn a_restart_goes_on_where_it_was() {
    let mut rig = Rig::on_disk();
    rig.create("s", StreamSpec::default());
    for round in 0..4 {
        let shard = rig.shard("s");
        assert_eq!(shard.end_offset(), round as u64);
        let batch = |sequence| checked(&batch_at(START_MS, &[b"x"], Some((9, 0, sequence))));
        if round > 0 {
            assert!(publish(&shard, batch(round - 1)).unwrap().duplicate, "round {round}");
        }
        assert_eq!(put(&shard, batch(round)), round as u64);
        drop(shard);
        rig = match round {
            0 => rig.restart(),
            1 => rig.reopen(SimDisk::kill),
            2 => rig.reopen(|disk| disk.power_cut(1)),
            _ => rig,
        };
    }
}

/// The file saves time and nothing else: where little would be read again it is not written, however often the
/// broker ends.
#[test]
fn an_orderly_end_stores_producers_where_it_pays() {
    let mut rig = Rig::on_disk();
    let id = rig.create("s", StreamSpec::default()).id();
    let file = format!("producers/{}", crate::store::log_id(id.0, 0));
    let is_there = |rig: &Rig| {
        rig.disk.as_ref().unwrap().files().iter().any(|path| path.as_path() == std::path::Path::new(&file))
    };
    let large = vec![7; 300_000];
    for sequence in 0..5 {
        let batch = checked(&batch_at(START_MS, &[&large], Some((9, 0, sequence))));
        put(&rig.shard("s"), batch);
        rig = rig.restart();
        assert_eq!(is_there(&rig), sequence >= 3, "{sequence}");
    }
}

#[test]
fn a_torn_or_foreign_snapshot_is_not_believed() {
    for damage in ["flip", "ahead", "gone"] {
        let rig = Rig::on_disk();
        let id = rig.create("s", StreamSpec::default()).id();
        let large = vec![7; 500_000];
        let batch = |sequence| checked(&batch_at(START_MS, &[&large], Some((9, 0, sequence))));
        (0..3).for_each(|sequence| assert_eq!(put(&rig.shard("s"), batch(sequence)), sequence as u64));
        let rig = rig.restart();
        let file = format!("producers/{}", crate::store::log_id(id.0, 0));
        let rig = rig.reopen(|disk| {
            let disk = disk.kill();
            let mut bytes = disk.content(file.as_ref()).expect("an orderly end leaves a snapshot");
            match damage {
                "flip" => bytes[20] ^= 1,
                "ahead" => {
                    let nobody = crate::producers::Producers::new(1, false);
                    bytes = crate::snapshot::encode(100, 0, &nobody, std::iter::empty());
                }
                _ => bytes.clear(),
            }
            disk.plant(file.as_ref(), bytes);
            disk
        });
        let shard = rig.shard("s");
        assert!(publish(&shard, batch(2)).unwrap().duplicate, "{damage}");
        assert_eq!(put(&shard, batch(3)), 3, "{damage}");
    }
}

#[test]
fn retention_drops_whole_segments_and_tells_who_read_them() {
    let rig = Rig::on_disk();
    let kept = StreamSpec {
        retention_bytes: Some(64 << 10),
        retention_ms: Some(3_600_000),
        ..StreamSpec::default()
    };
    let shard = rig.create("s", kept).shards()[0].clone();
    let mut slow = shard.subscribe(Start::Earliest, Policy::Block, 0).unwrap();
    for n in 0..200_u64 {
        assert_eq!(put(&shard, sized(1000)), n);
    }
    rig.pass(Duration::from_secs(2));
    let start = shard.start_offset();
    assert!(start > 50 && start < 150, "{start}");
    let first = slow.try_next(1000);
    assert!(matches!(first, Some(Step::Lost { from: 0, to }) if to == start), "{first:?}");
    assert_eq!(read_all(&shard, start).len() as u64, 200 - start);
    assert_eq!(shard.stats().trimmed, start);
    // What is too old goes too, to the last record.
    rig.pass(Duration::from_secs(2 * 3600));
    assert_eq!((shard.start_offset(), shard.end_offset()), (200, 200));
    assert_eq!(put(&shard, sized(1000)), 200);
    drop((slow, shard));
    let rig = rig.reopen(SimDisk::kill);
    assert_eq!(rig.shard("s").start_offset(), 200);
}

#[test]
fn a_stream_that_is_deleted_under_load_is_gone_and_begins_anew() {
    for durability in [Durability::Memory, Durability::OnCommit] {
        let rig = Rig::on_disk();
        let shard = rig.create("s", spec(durability)).shards()[0].clone();
        std::thread::scope(|scope| {
            let publisher = scope.spawn(|| {
                loop {
                    match publish(&shard, values(&[b"x"])) {
                        // Taken, and then deleted: that is told or not, as it comes.
                        Ok(published) => drop(published.ack.wait()),
                        Err(error) => return error,
                    }
                }
            });
            let mut cursor = shard.subscribe(Start::Earliest, Policy::Block, 0).unwrap();
            let subscriber = scope.spawn(move || {
                loop {
                    let step = crate::wait::block_on(std::future::poll_fn(|cx| cursor.poll_next(cx, 4000)));
                    let step = match step {
                        Step::NeedsDisk => cursor.read_page(4000),
                        step => Ok(step),
                    };
                    // A page may be read while the files go.
                    if !matches!(step, Ok(Step::Batches(_) | Step::Lost { .. }) | Err(_)) {
                        return step.unwrap();
                    }
                }
            });
            while shard.end_offset() < 50 {
                std::thread::yield_now();
            }
            rig.broker.delete(&rig.tenant(), &name("s")).unwrap();
            assert_eq!(publisher.join().unwrap(), PublishError::Deleted);
            assert!(matches!(subscriber.join().unwrap(), Step::Gone));
        });
        let again = rig.create("s", spec(durability));
        assert_eq!((put(&again.shards()[0], values(&[b"new"])), again.shards()[0].start_offset()), (0, 0));
        drop((shard, again));
        let rig = rig.reopen(SimDisk::kill);
        assert!(rig.broker.health().orphans.is_empty());
        let left = if durability.is_durable() { 1 } else { 0 };
        assert_eq!(read_all(&rig.shard("s"), 0).len(), left);
    }
}

/// Publishers and subscribers at once: everybody sees the same, in the order of offsets, and each publisher's
/// own batches in its own order.
#[test]
fn publishers_and_subscribers_at_once_agree() {
    const PUBLISHERS: u64 = 4;
    const EACH: u64 = 300;
    for durability in [Durability::Memory, Durability::PERIODIC, Durability::OnCommit] {
        let rig = Rig::on_disk();
        let shard = rig.create("s", spec(durability)).shards()[0].clone();
        let total = PUBLISHERS * EACH;
        let published = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        let seen: Vec<Vec<(u64, Vec<u8>)>> = std::thread::scope(|scope| {
            let subscribers: Vec<_> = (0..3)
                .map(|_| {
                    let mut cursor = shard.subscribe(Start::Earliest, Policy::Block, 0).unwrap();
                    scope.spawn(move || {
                        let mut all = Vec::new();
                        while (all.len() as u64) < total {
                            match crate::wait::block_on(std::future::poll_fn(|cx| cursor.poll_next(cx, 4000)))
                            {
                                Step::Batches(fetched) => all.extend(records(&fetched.batches)),
                                Step::NeedsDisk => match cursor.read_page(4000).unwrap() {
                                    Step::Batches(fetched) => all.extend(records(&fetched.batches)),
                                    step => panic!("{step:?}"),
                                },
                                step => panic!("{step:?}"),
                            }
                        }
                        all
                    })
                })
                .collect();
            let ticker = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    rig.pass(Duration::from_secs(2));
                    std::thread::yield_now();
                }
            });
            let publishers: Vec<_> = (0..PUBLISHERS)
                .map(|publisher| {
                    let (shard, published) = (&shard, &published);
                    scope.spawn(move || {
                        for n in 0..EACH {
                            let value = [publisher.to_be_bytes(), n.to_be_bytes()].concat();
                            let mut taken = publish(shard, values(&[&value])).unwrap();
                            if n % 7 == 0 {
                                let end = taken.end;
                                std::mem::replace(&mut taken.ack, crate::Ack::ready()).wait().unwrap();
                                assert!(shard.end_offset() >= end, "acknowledged and not readable");
                            }
                            published.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
            let seen = subscribers.into_iter().map(|subscriber| subscriber.join().unwrap()).collect();
            done.store(true, Ordering::Relaxed);
            ticker.join().unwrap();
            seen
        });
        assert_eq!(published.load(Ordering::Relaxed), total);
        assert!(seen.iter().all(|all| *all == seen[0]));
        assert!(seen[0].iter().map(|(offset, _)| *offset).eq(0..total));
        for publisher in 0..PUBLISHERS {
            let own = seen[0].iter().filter(|(_, value)| value[..8] == publisher.to_be_bytes());
            let order = own.map(|(_, value)| u64::from_be_bytes(value[8..].try_into().unwrap()));
            assert!(order.eq(0..EACH));
        }
    }
}
