use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use trifid_base_sim::SimDisk;
use trifid_stream_model::batch::{BatchBuilder, BuildOptions, Compression, RecordData, open};
use trifid_stream_model::spec::StreamSpec;

use super::*;
use crate::shard::Shard;
use crate::testing::*;

fn compacted() -> StreamSpec {
    StreamSpec { compact: true, ..StreamSpec::default() }
}

type Read = Vec<(u64, Option<String>, Option<String>)>;

/// Offset, key and value of everything.
fn read(shard: &Shard) -> Read {
    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let (mut all, mut from) = (Vec::new(), shard.start_offset());
    while from < shard.end_offset() {
        let fetched = shard.fetch(from, 1 << 16).unwrap();
        for entry in &fetched.batches {
            let opened = open(&entry.bytes, 1 << 20).unwrap();
            for record in opened.records() {
                let record = record.unwrap();
                let offset = entry.base + u64::from(record.delta);
                assert_eq!(record.offset, offset);
                all.push((offset, text(record.key), text(record.value)));
            }
        }
        assert!(fetched.next > from);
        from = fetched.next;
    }
    all
}

/// The last value of each key.
fn state(read: &Read) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for (_, key, value) in read {
        if let (Some(key), Some(value)) = (key, value) {
            state.insert(key.clone(), value.clone());
        } else if let Some(key) = key {
            state.remove(key);
        }
    }
    state
}

#[test]
fn the_last_record_of_each_key_stays_at_its_offset() {
    let rig = Rig::on_disk();
    let shard = rig.create("s", compacted()).shards()[0].clone();
    let filler = "x".repeat(200);
    for round in 0..40 {
        let value = format!("{round}{filler}");
        let all: Vec<_> = (0..10).map(|key| (format!("k{key}"), Some(value.clone()))).collect();
        let all: Vec<_> = all.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        put(&shard, checked(&keyed(START_MS, &all)));
    }
    put(&shard, checked(&batch_at(START_MS, &[b"without a key"], None)));
    let before = read(&shard);
    let segments = shard.stats().segments;
    assert!(segments > 3, "{segments}");
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.broker.health().problem, None);
    assert_eq!(shard.stats().compactions, 1);
    let after = read(&shard);
    assert!(after.len() < before.len() / 2, "{} of {}", after.len(), before.len());
    assert_eq!(state(&after), state(&before));
    assert!(after.iter().all(|record| before.contains(record)), "a record has another offset or content");
    assert_eq!(after.last(), before.last());
    // There is nothing to do again, also after a restart.
    rig.pass(Duration::from_secs(2));
    let rig = rig.restart();
    rig.pass(Duration::from_secs(2));
    let shard = rig.shard("s");
    assert_eq!(shard.stats().compactions, 0);
    assert_eq!(read(&shard), after);
    assert_eq!(shard.end_offset(), 401);
}

#[test]
fn tombstones_go_a_day_later() {
    let rig = Rig::on_disk();
    let shard = rig.create("s", compacted()).shards()[0].clone();
    let filler = "x".repeat(3000);
    let fill = |shard: &Arc<Shard>, key: &str| {
        for _ in 0..12 {
            put(shard, checked(&keyed(START_MS, &[(key, Some(&filler))])));
        }
    };
    put(&shard, checked(&keyed(START_MS, &[("gone", Some("value"))])));
    put(&shard, checked(&keyed(START_MS, &[("gone", None)])));
    fill(&shard, "a");
    let tombstones = |shard: &Arc<Shard>| read(shard).iter().filter(|(_, _, value)| value.is_none()).count();
    rig.pass(Duration::from_secs(2));
    assert_eq!((shard.stats().compactions, tombstones(&shard)), (1, 1));
    assert!(read(&shard).iter().all(|(offset, _, _)| *offset != 0), "what it deletes is gone");
    fill(&shard, "a");
    rig.pass(Duration::from_secs(2));
    assert_eq!((shard.stats().compactions, tombstones(&shard)), (2, 1));
    fill(&shard, "a");
    rig.pass(Duration::from_secs(25 * 60 * 60));
    assert_eq!((shard.stats().compactions, tombstones(&shard)), (3, 0));
}

#[test]
fn more_keys_than_fit_are_done_in_turns() {
    let rig = Rig::with(Some(SimDisk::new()), |options| options.limits.compaction_bytes_max = 20 * KEY_BYTES);
    let shard = rig.create("s", compacted()).shards()[0].clone();
    let filler = "x".repeat(500);
    for round in 0..200 {
        put(&shard, checked(&keyed(START_MS, &[(&format!("k{}", round % 50), Some(&filler))])));
    }
    let before = read(&shard);
    for _ in 0..30 {
        rig.pass(Duration::from_secs(2));
    }
    let after = read(&shard);
    assert_eq!(state(&after), state(&before));
    assert!(shard.stats().compactions > 1);
    // It ends when less than half of what is sealed is new.
    assert!(after.len() < 150, "{}", after.len());
}

#[test]
fn compressed_batches_are_compacted_too() {
    let rig = Rig::on_disk();
    let shard = rig.create("s", compacted()).shards()[0].clone();
    for round in 0..60_u32 {
        let options = BuildOptions { compression: Compression::Zstd, ..BuildOptions::default() };
        let mut builder = BatchBuilder::new(options);
        // Does not compress well, so that segments fill.
        let mut noise = fastrand::Rng::with_seed(round.into());
        let value: Vec<u8> = (0..1200).map(|_| noise.u8(..)).collect();
        for key in [b"a", b"b"] {
            let record =
                RecordData { timestamp: START_MS, key: Some(key), value: Some(&value), headers: &[] };
            builder.append(&record).unwrap();
        }
        put(&shard, checked(&builder.finish(None).unwrap().unwrap()));
    }
    let before = read(&shard);
    rig.pass(Duration::from_secs(2));
    let after = read(&shard);
    assert_eq!(state(&after), state(&before));
    assert!(after.len() < before.len() / 2, "{} of {}", after.len(), before.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_state_by_key_is_what_it_was(
        writes in prop::collection::vec((0..8_u8, prop::option::of(200..900_usize), 1..4_usize), 30..150),
        ticks in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let rig = Rig::on_disk();
        let shard = rig.create("s", compacted()).shards()[0].clone();
        let ticks: Vec<_> = ticks.iter().map(|at| at.index(writes.len())).collect();
        let mut all = Vec::new();
        for (at, (key, size, copies)) in writes.iter().enumerate() {
            let key = format!("k{key}");
            let value = size.map(|size| format!("{at}{}", "x".repeat(size)));
            let batch: Vec<_> = (0..*copies).map(|_| (key.as_str(), value.as_deref())).collect();
            let base = put(&shard, checked(&keyed(START_MS, &batch)));
            all.extend((0..*copies as u64).map(|n| (base + n, Some(key.clone()), value.clone())));
            if ticks.contains(&at) {
                rig.pass(Duration::from_secs(2));
            }
        }
        rig.pass(Duration::from_secs(2));
        prop_assert_eq!(rig.broker.health().problem, None);
        let after = read(&shard);
        prop_assert_eq!(state(&after), state(&all));
        prop_assert!(after.iter().all(|record| all.contains(record)));
        let rig = rig.reopen(SimDisk::kill);
        prop_assert_eq!(read(&rig.shard("s")), after);
    }
}
