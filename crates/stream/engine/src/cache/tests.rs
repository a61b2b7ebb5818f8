use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use trifid_base_sim::{Fault, OpKind, SimDisk};
use trifid_stream_model::frame::{Expect, Ttl};
use trifid_stream_model::spec::Durability;

use super::*;
use crate::error::CommitFailure;
use crate::testing::{Count, Rig, START_MS};

const ON_COMMIT: Durability = Durability::OnCommit;

fn cache_name(text: &str) -> CacheName {
    CacheName::new(text).unwrap()
}

fn spec(durability: Durability, budget_bytes: u64) -> CacheSpec {
    CacheSpec { durability, budget_bytes, default_ttl_ms: None }
}

fn make(rig: &Rig, spec: CacheSpec) -> Arc<Cache> {
    rig.broker.caches().create(&rig.tenant(), &cache_name("c"), spec).unwrap()
}

fn again(rig: &Rig) -> Arc<Cache> {
    rig.broker.caches().get(&rig.tenant(), &cache_name("c")).expect("the cache is still defined")
}

fn bytes(text: &str) -> Bytes {
    Bytes::from(text.to_owned())
}

fn put(cache: &Arc<Cache>, key: &str, value: &str) -> u64 {
    put_for(cache, key, value, Ttl::Default)
}

fn put_for(cache: &Arc<Cache>, key: &str, value: &str, ttl: Ttl) -> u64 {
    let written = cache.put(&bytes(key), &bytes(value), ttl, Expect::Any).unwrap();
    written.ack.wait().unwrap();
    written.revision
}

fn value(cache: &Cache, key: &str) -> Option<String> {
    cache.get(key.as_bytes()).map(|found| String::from_utf8(found.value.to_vec()).unwrap())
}

/// Everything that a watch says now.
fn hear(watch: &mut Watch, max_bytes: usize) -> Vec<String> {
    let mut heard = Vec::new();
    while let Poll::Ready(events) = watch.poll_next(&mut Context::from_waker(Waker::noop()), max_bytes) {
        assert!(!events.is_empty());
        heard.extend(events.iter().map(in_words));
    }
    heard
}

fn in_words(event: &Event) -> String {
    match event {
        Event::Change(change) => {
            let key = String::from_utf8_lossy(&change.key);
            match &change.kind {
                ChangeKind::Put { value, .. } => format!("{key}={}", String::from_utf8_lossy(value)),
                kind => format!("{key} {kind:?}"),
            }
        }
        Event::Current { .. } => "current".to_owned(),
        Event::Resync { .. } => "resync".to_owned(),
        Event::Gone => "gone".to_owned(),
    }
}

/// One conversation; what is heard must not depend on the durability.
fn conversation(durability: Durability) -> Vec<String> {
    let rig = Rig::on_disk();
    let cache = make(&rig, spec(durability, 1 << 20));
    let mut watch = cache.watch(Filter::Prefix(Bytes::new())).unwrap();
    let mut heard = hear(&mut watch, 1000);
    let first = put(&cache, "a", "1");
    heard.push(format!("{:?} {:?}", value(&cache, "a"), value(&cache, "b")));
    let expecting = |expect| {
        let result = cache.put(&bytes("a"), &bytes("2"), Ttl::Forever, expect);
        result.map(|written| (written.ack.wait().unwrap(), written.revision - first))
    };
    heard.push(format!(
        "{:?}",
        expecting(Expect::Absent)
            .map_err(|e| matches!(e, CacheError::Conflict { revision } if revision == first))
    ));
    heard.push(format!("{:?}", expecting(Expect::Revision(first))));
    heard.push(format!(
        "{:?}",
        expecting(Expect::Revision(first)).map_err(|e| e != CacheError::Conflict { revision: first })
    ));
    put_for(&cache, "short", "lived", Ttl::Ms(500));
    rig.clock.advance(Duration::from_millis(499));
    heard.push(format!("{:?}", value(&cache, "short")));
    rig.clock.advance(Duration::from_millis(1));
    heard.push(format!("{:?} {}", value(&cache, "short"), cache.stats().entries));
    // What is not there any more can be made anew, and is.
    let anew = cache.put(&bytes("short"), &bytes("again"), Ttl::Ms(500), Expect::Absent).unwrap();
    anew.ack.wait().unwrap();
    rig.pass(Duration::from_millis(500));
    heard.extend(settle_ticks(&rig, &cache, || cache.stats().entries == 1));
    let removed = cache.delete(&bytes("a"), Expect::Any).unwrap();
    removed.ack.wait().unwrap();
    let nothing = cache.delete(&bytes("a"), Expect::Any).unwrap();
    heard.push(format!("{} {:?}", nothing.revision, nothing.ack.wait()));
    let ops = [
        Op::Put { key: bytes("x"), value: bytes("1"), ttl: Ttl::Default, expect: Expect::Absent },
        Op::Put { key: bytes("x"), value: bytes("2"), ttl: Ttl::Default, expect: Expect::Absent },
        Op::Delete { key: bytes("nothing"), expect: Expect::Any },
        Op::Put { key: Bytes::new(), value: bytes("2"), ttl: Ttl::Default, expect: Expect::Any },
        Op::Put { key: bytes("y"), value: bytes("3"), ttl: Ttl::Default, expect: Expect::Any },
        Op::Delete { key: bytes("y"), expect: Expect::Any },
        Op::Get { key: bytes("z") },
    ];
    let batch = cache.batch(&ops).unwrap();
    batch.ack.wait().unwrap();
    let kinds = batch.results.iter().map(|result| match result {
        Ok(Done::Changed(0)) => "nothing",
        Ok(Done::Changed(_)) => "changed",
        Ok(Done::Missing) => "missing",
        Ok(Done::Found(_)) => "found",
        Err(CacheError::Conflict { .. }) => "conflict",
        Err(_) => "refused",
    });
    heard.push(kinds.collect::<Vec<_>>().join(" "));
    heard.push(format!("{:?} {:?}", value(&cache, "x"), value(&cache, "y")));
    heard.extend(hear(&mut watch, 1));
    let stats = cache.stats();
    heard
        .push(format!("{:?}", (stats.entries, stats.expired, stats.conflicts, stats.pending, stats.watches)));
    rig.broker.caches().delete(&rig.tenant(), &cache_name("c")).unwrap();
    heard.extend(hear(&mut watch, 1000));
    let late = cache.put(&bytes("a"), &bytes("1"), Ttl::Default, Expect::Any).map(|written| written.revision);
    heard.push(format!("{late:?}"));
    heard
}

/// Ticks until what was written in the background counts.
fn settle_ticks(rig: &Rig, cache: &Arc<Cache>, until: impl Fn() -> bool) -> Option<String> {
    for _ in 0..10 {
        rig.pass(Duration::ZERO);
        cache.wait();
        if until() && cache.stats().pending == 0 {
            return None;
        }
    }
    Some(format!("never came: {:?}", cache.stats()))
}

#[test]
fn answers_do_not_depend_on_durability() {
    let memory = conversation(Durability::Memory);
    let wanted = [
        "current",
        "Some(\"1\") None",
        "Err(true)",
        "Ok(((), 1))",
        "Err(true)",
        "Some(\"lived\")",
        "None 2",
        "0 Ok(())",
        "changed conflict nothing refused changed changed missing",
        "Some(\"2\") None",
    ];
    let wanted = wanted.map(|line| line.replace("Some(\"2\") None", "Some(\"1\") None"));
    assert_eq!(memory[..wanted.len()], wanted, "{memory:#?}");
    let told =
        ["a=1", "a=2", "short=lived", "short=again", "short Expired", "a Deleted", "x=1", "y=3", "y Deleted"];
    assert_eq!(memory[wanted.len()..][..told.len()], told, "{memory:#?}");
    assert_eq!(memory[wanted.len() + told.len()..], ["(1, 1, 3, 0, 1)", "gone", "Err(Deleted)"]);
    assert_eq!(memory, conversation(ON_COMMIT));
    assert_eq!(memory, conversation(Durability::Periodic { interval_ms: 20 }));
}

#[test]
fn a_durable_cache_survives_and_a_memory_cache_is_defined_still() {
    let rig = Rig::on_disk();
    let cache = make(&rig, spec(ON_COMMIT, 1 << 20));
    let memory = CacheSpec { default_ttl_ms: Some(5), ..CacheSpec::default() };
    let names = (rig.tenant(), cache_name("n.m"));
    let other = rig.broker.caches().create(&names.0, &names.1, memory.clone()).unwrap();
    put(&other, "k", "v");
    put(&cache, "stays", "1");
    put(&cache, "changes", "1");
    let changed = put(&cache, "changes", "2");
    put_for(&cache, "ends", "x", Ttl::Ms(1000));
    put(&cache, "goes", "1");
    let last = cache.delete(&bytes("goes"), Expect::Any).unwrap();
    last.ack.wait().unwrap();
    let before = other.stats().revision;
    drop((cache, other));
    rig.clock.advance(Duration::from_millis(1));
    let rig = rig.reopen(|disk| disk.power_cut(3));
    let cache = again(&rig);
    let found = cache.get(b"changes").unwrap();
    assert_eq!((found.value, found.revision), (bytes("2"), changed));
    assert_eq!((value(&cache, "stays").as_deref(), value(&cache, "goes")), (Some("1"), None));
    assert_eq!(cache.get(b"ends").unwrap().expires_ms, Some(START_MS + 1000));
    assert_eq!(cache.stats().entries, 3);
    let other = rig.broker.caches().get(&names.0, &names.1).unwrap();
    assert_eq!((other.spec(), other.stats().entries), (&memory, 0));
    assert!(other.stats().revision > before, "a revision of a former life names nothing");
    assert!(put(&cache, "stays", "2") > last.revision, "revisions go on");
    rig.clock.advance(Duration::from_secs(1));
    assert_eq!(value(&cache, "ends"), None);
    assert_eq!(settle_ticks(&rig, &cache, || cache.stats().entries == 2), None);
    // Nothing that ended comes back, and neither does a deleted cache.
    drop((cache, other));
    let rig = rig.restart();
    assert_eq!(again(&rig).stats().entries, 2);
    rig.broker.caches().delete(&rig.tenant(), &cache_name("c")).unwrap();
    let rig = rig.reopen(|disk| disk.power_cut(4));
    assert!(rig.broker.caches().get(&rig.tenant(), &cache_name("c")).is_none());
    let streams = rig.broker.list(&Streams::system_tenant(), STREAM_PREFIX, None, 10);
    assert!(streams.is_empty(), "its stream is gone");
    assert_eq!(rig.broker.caches().list(&rig.tenant(), "", None, 10).len(), 1);
}

#[test]
fn creation_is_refused_for_a_reason() {
    let rig = Rig::memory();
    let create =
        |name: &str, spec| rig.broker.caches().create(&rig.tenant(), &cache_name(name), spec).map(drop);
    assert_eq!(create("c", spec(ON_COMMIT, 1 << 20)), Err(CacheCreateError::NoDirectory));
    assert!(matches!(create("c", spec(Durability::Memory, 1)), Err(CacheCreateError::Spec(_))));
    assert_eq!(create("_x.y", CacheSpec::default()), Err(CacheCreateError::Reserved));
    assert_eq!(create("c", CacheSpec::default()), Ok(()));
    assert_eq!(create("c", CacheSpec::default()), Ok(()), "the same one");
    assert_eq!(create("c", spec(Durability::Memory, 1 << 20)), Err(CacheCreateError::Exists));
    let delete = || rig.broker.caches().delete(&rig.tenant(), &cache_name("c"));
    assert_eq!((delete(), delete()), (Ok(()), Err(CacheCreateError::Unknown)));
    rig.broker.drain();
    let cache = Rig::memory();
    let cache = (make(&cache, CacheSpec::default()), cache);
    cache.1.broker.drain();
    let late = cache.0.put(&bytes("k"), &bytes("v"), Ttl::Default, Expect::Any).map(|w| w.revision);
    assert_eq!(late, Err(CacheError::ShuttingDown));
}

#[test]
fn keys_and_values_are_bounded() {
    let rig = Rig::memory();
    let cache = make(&rig, spec(Durability::Memory, 64 << 10));
    let put = |key: usize, value: usize| {
        let (key, value) = (Bytes::from(vec![1; key]), Bytes::from(vec![2; value]));
        cache.put(&key, &value, Ttl::Default, Expect::Any).map(|written| written.revision > 0)
    };
    assert_eq!((put(1, 0), put(1024, 60 << 10)), (Ok(true), Ok(true)));
    assert!(matches!(put(0, 1), Err(CacheError::Key { .. })));
    assert!(matches!(put(1025, 1), Err(CacheError::Key { .. })));
    assert!(matches!(put(1, 64 << 10), Err(CacheError::TooLarge { .. })));
    let large = make_large(&rig);
    let value = Bytes::from(vec![0; (4 << 20) + 1]);
    assert!(matches!(
        large.put(&bytes("k"), &value, Ttl::Default, Expect::Any),
        Err(CacheError::TooLarge { .. })
    ));
    large.put(&bytes("k"), &value.slice(1..), Ttl::Default, Expect::Any).unwrap().ack.wait().unwrap();
    let ops = vec![Op::Get { key: bytes("k") }; 4097];
    assert!(matches!(large.batch(&ops), Err(CacheError::TooMany { count: 4097, .. })));
}

fn make_large(rig: &Rig) -> Arc<Cache> {
    rig.broker.caches().create(&rig.tenant(), &cache_name("large"), CacheSpec::default()).unwrap()
}

#[test]
fn the_budget_is_kept_and_what_is_read_stays() {
    for durability in [Durability::Memory, ON_COMMIT] {
        let rig = Rig::on_disk();
        let cache = make(&rig, spec(durability, 128 << 10));
        let mut watch = cache.watch(Filter::Prefix(bytes("k"))).unwrap();
        put(&cache, "hot", "read all the time");
        let text = "v".repeat(100);
        let mut told = 0;
        for n in 0..1500 {
            put(&cache, &format!("k{n}"), &text);
            assert!(value(&cache, "hot").is_some());
            assert!(cache.stats().bytes as u64 <= cache.spec().budget_bytes, "{:?}", cache.stats());
            told += hear(&mut watch, 1000).iter().filter(|event| event.ends_with("Evicted")).count();
        }
        assert_eq!(settle_ticks(&rig, &cache, || true), None);
        told += hear(&mut watch, 1000).iter().filter(|event| event.ends_with("Evicted")).count();
        let stats = cache.stats();
        assert_eq!(stats.evicted as usize + stats.entries, 1501);
        assert_eq!(told, stats.evicted as usize, "evictions are told");
        // A restart brings back what was there, and nothing that had left.
        if durability == ON_COMMIT {
            let there = |cache: &Cache| {
                cache.scan(b"", b"", 10_000).entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
            };
            let before = there(&cache);
            drop((watch, cache));
            let rig = rig.restart();
            assert_eq!(there(&again(&rig)), before);
        }
    }
}

#[test]
fn watches_hear_of_their_keys_and_are_woken() {
    let rig = Rig::memory();
    let cache = make(&rig, CacheSpec::default());
    put(&cache, "a", "0");
    put(&cache, "b", "0");
    let mut one = cache.watch(Filter::Key(bytes("a"))).unwrap();
    let mut none = cache.watch(Filter::Key(bytes("z"))).unwrap();
    let mut some = cache.watch(Filter::Prefix(bytes("b"))).unwrap();
    assert_eq!(hear(&mut one, 1000), ["a=0", "current"]);
    assert_eq!(hear(&mut none, 1000), ["current"]);
    assert_eq!(hear(&mut some, 1000), ["b=0", "current"]);
    let (count, waker) = Count::waker();
    assert!(one.poll_next(&mut Context::from_waker(&waker), 1000).is_pending());
    put(&cache, "b", "1");
    assert_eq!(count.get(), 0, "another key wakes nobody");
    put(&cache, "a", "1");
    put(&cache, "a", "2");
    assert_eq!(count.get(), 1);
    assert_eq!(hear(&mut one, 1), ["a=1", "a=2"]);
    assert_eq!(hear(&mut some, 1), ["b=1"]);
    assert_eq!(cache.stats().watches, 3);
    drop((one, none, some));
    assert_eq!(cache.stats().watches, 0);
}

#[test]
fn a_slow_watch_is_told_that_it_is_and_everything_again() {
    let rig = Rig::memory();
    let cache = make(&rig, spec(Durability::Memory, 64 << 10));
    put(&cache, "gone", "soon");
    let mut slow = cache.watch(Filter::Prefix(Bytes::new())).unwrap();
    assert_eq!(hear(&mut slow, 1000).len(), 2);
    _ = cache.delete(&bytes("gone"), Expect::Any).unwrap();
    for n in 0..500 {
        put(&cache, &format!("k{}", n % 3), &n.to_string());
    }
    assert_eq!(hear(&mut slow, 1000), ["resync", "k0=498", "k1=499", "k2=497", "current"]);
    put(&cache, "k1", "new");
    assert_eq!(hear(&mut slow, 1000), ["k1=new"]);
    assert_eq!(cache.stats().resyncs, 1);
}

/// While the values are told, a change to one of them is told once and in its place: after them.
#[test]
fn values_and_changes_never_go_back() {
    let rig = Rig::memory();
    let cache = make(&rig, CacheSpec::default());
    (0..50).for_each(|n| _ = put(&cache, &format!("k{n:02}"), "old"));
    let mut watch = cache.watch(Filter::Prefix(bytes("k"))).unwrap();
    let mut heard = Vec::new();
    for n in 0..50 {
        let polled = watch.poll_next(&mut Context::from_waker(Waker::noop()), 600);
        if let Poll::Ready(events) = polled {
            heard.extend(events);
        }
        put(&cache, &format!("k{:02}", 49 - n), "new");
    }
    while let Poll::Ready(events) = watch.poll_next(&mut Context::from_waker(Waker::noop()), 600) {
        heard.extend(events);
    }
    let mut revisions: BTreeMap<Bytes, u64> = BTreeMap::new();
    for event in &heard {
        if let Event::Change(change) = event {
            let before = revisions.insert(change.key.clone(), change.revision);
            assert!(before.is_none_or(|before| before < change.revision), "{change:?}");
        }
    }
    assert_eq!(revisions.len(), 50);
    assert!(heard.iter().filter(|event| matches!(event, Event::Current { .. })).count() == 1);
    let news = heard.iter().filter(|event| in_words(event).ends_with("=new")).count();
    assert_eq!(news, 50, "every change is told");
}

#[test]
fn nobody_reads_what_the_full_disk_takes_back() {
    let disk = SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let cache = make(&rig, spec(ON_COMMIT, 1 << 20));
    let first = put(&cache, "k", "1");
    let mut watch = cache.watch(Filter::Key(bytes("k"))).unwrap();
    assert_eq!(hear(&mut watch, 1000), ["k=1", "current"]);
    disk.set_room(Some(0));
    // Some fit into room that the log had asked for before.
    for len in [2000, 1] {
        let filler = bytes(&"x".repeat(len));
        let fill = || cache.put(&bytes("filler"), &filler, Ttl::Default, Expect::Any);
        while fill().is_ok_and(|written| written.ack.wait().is_ok()) {}
    }
    let refused = cache.put(&bytes("k"), &bytes("2"), Ttl::Default, Expect::Revision(first));
    let refused = refused.map(|written| (written.revision, written.ack.wait()));
    let refused = match refused {
        Ok((revision, fate)) => {
            assert_eq!(fate, Err(CommitFailure::NoSpace));
            revision
        }
        // The log knows by now, and does not even try.
        Err(error) => {
            assert_eq!(error, CacheError::NoSpace);
            first
        }
    };
    assert_eq!(value(&cache, "k").as_deref(), Some("1"));
    assert!(cache.stats().failed >= 1);
    assert!(hear(&mut watch, 1000).is_empty());
    disk.set_room(None);
    // The log takes writes again once it has looked.
    let mut taken = None;
    for _ in 0..1000 {
        rig.pass(Duration::from_secs(1));
        let written = cache.put(&bytes("k"), &bytes("3"), Ttl::Default, Expect::Revision(first));
        if let Ok(written) = written
            && written.ack.wait().is_ok()
        {
            taken = Some(written.revision);
            break;
        }
    }
    assert!(taken.is_some_and(|revision| revision > refused), "{taken:?}");
    assert_eq!(hear(&mut watch, 1000), ["k=3"]);
}

/// A write is compared with what is pending before it, and read when it counts.
#[test]
fn pending_writes_are_expected_and_not_read() {
    let disk = SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let cache = make(&rig, spec(ON_COMMIT, 1 << 20));
    let gate = Arc::new((Mutex::new(false), parking_lot::Condvar::new()));
    let held = gate.clone();
    disk.on_op(move |op| {
        if matches!(op.kind, OpKind::SyncData | OpKind::SyncAll) {
            let mut open = held.0.lock();
            while !*open {
                held.1.wait(&mut open);
            }
        }
        None::<Fault>
    });
    let key = bytes("k");
    let first = cache.put(&key, &bytes("1"), Ttl::Default, Expect::Absent).unwrap();
    let second = cache.put(&key, &bytes("2"), Ttl::Default, Expect::Revision(first.revision)).unwrap();
    let absent = cache.put(&key, &bytes("x"), Ttl::Default, Expect::Absent).map(|w| w.revision);
    assert_eq!(absent, Err(CacheError::Conflict { revision: second.revision }));
    let gone = cache.delete(&key, Expect::Revision(second.revision)).unwrap();
    let nothing = cache.delete(&key, Expect::Any).unwrap();
    assert_eq!((nothing.revision, nothing.ack.is_ready()), (0, false), "it waits for what removed the entry");
    let reads = cache.batch(&[Op::Get { key: key.clone() }]).unwrap();
    assert_eq!(
        (reads.results, reads.ack.is_ready()),
        (vec![Ok(Done::Missing)], true),
        "reading waits for nothing"
    );
    let third = cache.put(&key, &bytes("3"), Ttl::Default, Expect::Absent).unwrap();
    assert_eq!((value(&cache, "k"), cache.stats().pending), (None, 4));
    *gate.0.lock() = true;
    gate.1.notify_all();
    for ack in [nothing.ack, gone.ack, first.ack, second.ack] {
        ack.wait().unwrap();
    }
    third.ack.wait().unwrap();
    assert_eq!((value(&cache, "k").as_deref(), cache.stats().pending), (Some("3"), 0));
}

#[derive(Clone, Debug)]
enum Step {
    Put { key: u8, value: u8, ttl: Option<u64>, expect: u8 },
    Delete { key: u8, expect: u8 },
    Get { key: u8 },
    Scan { prefix: Option<u8>, after: u8, limit: usize },
    Pass { ms: u64 },
    Tick,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (key, expect) = (0_u8..12, 0_u8..4);
    let step = prop_oneof![
        6 => (key.clone(), any::<u8>(), prop::option::weighted(0.3, 1_u64..50), expect.clone())
            .prop_map(|(key, value, ttl, expect)| Step::Put { key, value, ttl, expect }),
        2 => (key.clone(), expect).prop_map(|(key, expect)| Step::Delete { key, expect }),
        3 => key.clone().prop_map(|key| Step::Get { key }),
        1 => (prop::option::of(0_u8..4), key, 1_usize..6)
            .prop_map(|(prefix, after, limit)| Step::Scan { prefix, after, limit }),
        1 => (0_u64..30).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Tick),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..50)
}

/// Key 7 is `1/7` and so on: four prefixes.
fn key_of(key: u8) -> Bytes {
    Bytes::from(format!("{}/{key:02}", key % 4))
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    value: Bytes,
    revision: u64,
    end: Option<i64>,
}

/// A cache, and a map that says what it should hold.
struct Both {
    rig: Rig,
    cache: Arc<Cache>,
    plain: BTreeMap<Bytes, Plain>,
    last: u64,
    durable: bool,
    /// What a watch of everything was told, put together.
    watch: Watch,
    told: BTreeMap<Bytes, Bytes>,
}

impl Both {
    fn new(durability: Durability) -> Self {
        let rig = Rig::on_disk();
        // Two parts, so that scans have to merge.
        let cache = make(&rig, spec(durability, 2 << 20));
        let watch = cache.watch(Filter::Prefix(Bytes::new())).unwrap();
        let (plain, told) = (BTreeMap::new(), BTreeMap::new());
        Both { rig, cache, plain, last: 0, durable: durability.is_durable(), watch, told }
    }

    fn now(&self) -> i64 {
        self.rig.broker.now_ms()
    }

    fn alive(&self, key: &Bytes) -> Option<&Plain> {
        self.plain.get(key).filter(|plain| plain.end.is_none_or(|end| end > self.now()))
    }

    fn expect(&self, key: &Bytes, which: u8) -> (Expect, bool) {
        let revision = self.alive(key).map(|plain| plain.revision);
        match which {
            0 | 1 => (Expect::Any, true),
            2 => (Expect::Absent, revision.is_none()),
            // The present revision; of what is not there, one that cannot be.
            _ => (Expect::Revision(revision.unwrap_or(1)), revision.is_some()),
        }
    }

    fn take(mut self, step: &Step) -> Self {
        match step {
            Step::Put { key, value, ttl, expect } => {
                let (key, value) = (key_of(*key), Bytes::from(vec![*value; 3]));
                let (expect, holds) = self.expect(&key, *expect);
                let ttl_ms = ttl.map_or(Ttl::Forever, Ttl::Ms);
                let written = self.cache.put(&key, &value, ttl_ms, expect);
                assert_eq!(written.is_ok(), holds, "{written:?}");
                if let Ok(written) = written {
                    written.ack.wait().unwrap();
                    assert!(written.revision > self.last);
                    self.last = written.revision;
                    let end = ttl.map(|ms| self.now() + ms as i64);
                    self.plain.insert(key, Plain { value, revision: written.revision, end });
                }
            }
            Step::Delete { key, expect } => {
                let key = key_of(*key);
                let (expect, holds) = self.expect(&key, *expect);
                let was_there = self.alive(&key).is_some();
                let written = self.cache.delete(&key, expect);
                assert_eq!(written.is_ok(), holds, "{written:?}");
                if let Ok(written) = written {
                    written.ack.wait().unwrap();
                    assert_eq!(written.revision > 0, was_there);
                    self.last = self.last.max(written.revision);
                    if was_there {
                        self.plain.remove(&key);
                    }
                }
            }
            Step::Get { key } => {
                let found = self.cache.get(&key_of(*key));
                let found = found.map(|f| Plain { value: f.value, revision: f.revision, end: f.expires_ms });
                assert_eq!(found.as_ref(), self.alive(&key_of(*key)));
            }
            Step::Scan { prefix, after, limit } => self.scan(*prefix, *after, *limit),
            Step::Pass { ms } => _ = self.rig.clock.advance(Duration::from_millis(*ms)),
            Step::Tick => self.rig.pass(Duration::ZERO),
            Step::Restart => return self.restart(),
        }
        self.listen();
        self
    }

    fn scan(&self, prefix: Option<u8>, after: u8, limit: usize) {
        let prefix = prefix.map(|prefix| format!("{prefix}/")).unwrap_or_default();
        let after = key_of(after);
        let mut from = after.clone();
        let mut all = Vec::new();
        loop {
            let page = self.cache.scan(prefix.as_bytes(), &from, limit);
            assert!(page.entries.len() <= limit && (!page.more || !page.entries.is_empty()));
            if let Some((last, _)) = page.entries.last() {
                from = last.clone();
            }
            all.extend(page.entries.into_iter().map(|(key, _)| key));
            if !page.more {
                break;
            }
        }
        let wanted = self.plain.keys().filter(|key| key.starts_with(prefix.as_bytes()) && **key > after);
        let wanted: Vec<_> = wanted.filter(|key| self.alive(key).is_some()).cloned().collect();
        assert_eq!(all, wanted);
    }

    fn restart(self) -> Self {
        let Both { rig, cache, mut plain, last, durable, watch, .. } = self;
        drop((cache, watch));
        // A life lasts for more than a microsecond per change.
        rig.clock.advance(Duration::from_millis(1));
        let rig = rig.reopen(|disk| disk.power_cut(last));
        if !durable {
            plain.clear();
        }
        let cache = again(&rig);
        let watch = cache.watch(Filter::Prefix(Bytes::new())).unwrap();
        Both { rig, cache, plain, last, durable, watch, told: BTreeMap::new() }
    }

    /// What the watch is told, put together, is what is there.
    fn listen(&mut self) {
        while let Poll::Ready(events) = self.watch.poll_next(&mut Context::from_waker(Waker::noop()), 64) {
            for event in events {
                match event {
                    Event::Change(Change { key, kind: ChangeKind::Put { value, .. }, .. }) => {
                        _ = self.told.insert(key, value);
                    }
                    Event::Change(Change { key, .. }) => _ = self.told.remove(&key),
                    Event::Current { .. } => {}
                    Event::Resync { .. } | Event::Gone => panic!("{event:?}"),
                }
            }
        }
        for (key, plain) in &self.plain {
            let is_alive = self.alive(key).is_some();
            assert!(!is_alive || self.told.get(key) == Some(&plain.value), "{key:?} {:?}", self.told);
        }
        assert!(self.told.keys().all(|key| self.plain.contains_key(key)), "{:?} {:?}", self.told, self.plain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// With eviction out of play, a cache is a map with revisions and ends; what a watch is told amounts to
    /// it; what was acknowledged durably survives the power cut.
    #[test]
    fn a_cache_is_a_map(steps in steps(), durable in any::<bool>()) {
        let mut both = Both::new(if durable { ON_COMMIT } else { Durability::Memory });
        for step in &steps {
            both = both.take(step);
        }
    }
}

/// The stream of a cache is compacted, and the cache is the same after a restart.
#[test]
fn many_changes_of_few_keys_take_little_room() {
    let rig = Rig::on_disk();
    let cache = make(&rig, spec(ON_COMMIT, 1 << 20));
    let large = "x".repeat(500);
    put_for(&cache, "early", "and never again", Ttl::Ms(1 << 40));
    for n in 0..300 {
        put(&cache, &format!("k{}", n % 4), &format!("{n} {large}"));
    }
    cache.delete(&bytes("k0"), Expect::Any).unwrap().ack.wait().unwrap();
    let stream =
        || rig.broker.stream(&Streams::system_tenant(), &stream_name(0)).unwrap().shards()[0].clone();
    (0..10).for_each(|_| rig.pass(Duration::from_secs(1)));
    assert!(stream().stats().compactions > 0);
    let left = crate::testing::read_all(&stream(), stream().start_offset()).len();
    assert!(left < 150, "{left}");
    let there = |cache: &Cache| cache.scan(b"", b"", 100).entries;
    let wanted = there(&cache);
    assert_eq!(wanted.len(), 4);
    drop(cache);
    let rig = rig.reopen(|disk| disk.power_cut(9));
    assert_eq!(there(&again(&rig)), wanted);
}

/// Writers, readers, a watch and the tick at once: revisions rise as they are told, compare-and-set counts every
/// success once, and nothing waits for itself.
#[test]
fn several_threads_agree() {
    for durability in [Durability::Memory, ON_COMMIT] {
        let rig = &Rig::on_disk();
        let cache = make(rig, spec(durability, 64 << 10));
        put(&cache, "counter", "0");
        let mut watch = cache.watch(Filter::Key(bytes("counter"))).unwrap();
        const EACH: u32 = 100;
        let done = std::sync::atomic::AtomicUsize::new(0);
        let is_done = || done.load(std::sync::atomic::Ordering::SeqCst) == 3;
        let (cache, done) = (&cache, &done);
        let told = std::thread::scope(|scope| {
            for who in 0..3 {
                scope.spawn(move || {
                    for n in 0..EACH {
                        _ = put(cache, &format!("{who} {n}"), &"x".repeat(500));
                        // Adds one, whoever else does meanwhile.
                        loop {
                            let Some(found) = cache.get(b"counter") else {
                                panic!("what is read all the time stays")
                            };
                            let next = std::str::from_utf8(&found.value).unwrap().parse::<u32>().unwrap() + 1;
                            let expect = Expect::Revision(found.revision);
                            let written =
                                cache.put(&bytes("counter"), &bytes(&next.to_string()), Ttl::Default, expect);
                            match written {
                                Ok(written) => break written.ack.wait().unwrap(),
                                Err(error) => assert!(matches!(error, CacheError::Conflict { .. })),
                            }
                        }
                    }
                    done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                });
            }
            let mut told = Vec::new();
            while !is_done() {
                rig.pass(Duration::ZERO);
                told.extend(hear(&mut watch, 100));
                std::thread::yield_now();
            }
            told
        });
        let mut told = told;
        told.extend(hear(&mut watch, 100));
        let mut last = None;
        for event in told {
            match event.strip_prefix("counter=").map(|count| count.parse::<u32>().unwrap()) {
                // Every one of them, or the word that some are missing.
                Some(count) => assert!(last.replace(count).is_none_or(|last| count == last + 1), "{count}"),
                None if event == "resync" => last = None,
                None => assert_eq!(event, "current"),
            }
        }
        assert_eq!(last, Some(3 * EACH));
        assert_eq!(value(cache, "counter"), Some((3 * EACH).to_string()));
        assert!(cache.stats().evicted > 0);
    }
}
