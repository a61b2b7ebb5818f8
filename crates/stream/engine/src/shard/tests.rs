use std::task::Poll;
use std::time::Duration;

use parking_lot::Condvar;
use trifid_base_sim::OpKind;
use trifid_stream_model::spec::{Durability, StreamSpec};

use super::{Arc, Core, Mutex, Shard, Tail};
use crate::error::{CommitFailure, FetchError, Gone, PublishError};
use crate::testing::*;
use crate::{Checked, Policy, Start};

const ALL: [Durability; 3] =
    [Durability::Memory, Durability::Periodic { interval_ms: 20 }, Durability::OnCommit];

fn shard_of(durability: Durability) -> (Rig, Arc<Shard>) {
    let rig = Rig::on_disk();
    let stream = rig.create("s", spec(durability));
    let shard = stream.shards()[0].clone();
    (rig, shard)
}

/// One conversation with a shard; what is heard must not depend on its durability.
fn conversation(durability: Durability) -> Vec<String> {
    let (rig, shard) = shard_of(durability);
    let mut heard = Vec::new();
    let mut say = |what: &str, answer: String| heard.push(format!("{what}: {answer}"));
    say("empty", format!("{:?}", (shard.start_offset(), shard.end_offset())));
    say("fetch of nothing", format!("{:?}", shard.fetch(0, 100).map(|f| (f.batches.len(), f.next))));
    say("first", put(&shard, values(&[b"a", b"b"])).to_string());
    say("second", put(&shard, values(&[b"c"])).to_string());
    let two: Vec<u8> =
        [batch_at(START_MS + 5, &[b"d"], None), batch_at(START_MS + 9, &[b"e", b"f"], None)].concat();
    let two = publish(&shard, Checked::payload(&two.into(), 1 << 20).unwrap()).unwrap();
    say(
        "two at once",
        format!("{:?}", (two.base_offset, two.end, two.duplicate, two.append_time_ms - START_MS)),
    );
    two.ack.wait().unwrap();
    for producer in [(5, 0, 0), (5, 0, 2), (5, 0, 0), (5, 0, 7), (5, 1, 0), (5, 0, 4)] {
        let answer = publish(&shard, checked(&batch_at(START_MS, &[b"p", b"q"], Some(producer))));
        let answer = answer.map(|published| {
            published.ack.wait().unwrap();
            (published.base_offset, published.end, published.duplicate)
        });
        say("producer", format!("{producer:?} {answer:?}"));
    }
    say("all", format!("{:?}", read_all(&shard, 0)));
    say(
        "from the middle of a batch",
        format!("{:?}", shard.fetch(4, 1).map(|f| (f.batches[0].base, f.next))),
    );
    say("beyond", format!("{:?}", shard.fetch(99, 1).map_err(|error| error.to_string())));
    for ms in [START_MS, START_MS + 1, START_MS + 6, START_MS + 10] {
        let found = shard.offset_for_time(ms).unwrap();
        say("time", format!("{:?}", found.map(|(offset, at)| (offset, at - START_MS))));
    }
    let large = publish(&shard, sized(1 << 20)).map(|published| published.base_offset);
    say("large", format!("{large:?}"));
    let altered = rig.broker.alter(
        &rig.tenant(),
        &name("s"),
        &crate::SpecChange { max_batch_bytes: Some(1024), ..Default::default() },
    );
    say("altered", altered.unwrap().spec().max_batch_bytes.to_string());
    let large = publish(&shard, sized(2000)).map(|published| published.base_offset);
    say("large now", format!("{large:?}"));
    let stats = shard.stats();
    say("figures", format!("{:?}", (stats.batches_in, stats.records_in, stats.duplicates, stats.rejected)));
    heard
}

#[test]
fn answers_do_not_depend_on_durability() {
    let [memory, periodic, on_commit] = ALL.map(conversation);
    assert_eq!(memory, periodic);
    assert_eq!(memory, on_commit);
    assert!(memory.iter().any(|line| line == "two at once: (3, 6, false, 0)"), "{memory:#?}");
    assert!(memory.iter().any(|line| line.contains("(5, 0, 0) Ok((6, 8, true))")), "{memory:#?}");
    assert!(memory.iter().any(|line| line.contains("Fenced")), "{memory:#?}");
}

#[test]
fn nobody_sees_what_is_not_durable_yet() {
    let disk = trifid_base_sim::SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let shard = rig.create("s", spec(Durability::OnCommit)).shards()[0].clone();
    put(&shard, values(&[b"seen"]));
    let gate = Gatekeeper::hold_flushes(&disk);
    let (count, waker) = Count::waker();
    let mut beyond = shard.beyond(1);
    assert!(poll(&mut beyond, &waker).is_pending());
    let published = publish(&shard, values(&[b"unseen"])).unwrap();
    let mut ack = published.ack;
    assert!(poll(&mut ack, &waker).is_pending());
    gate.wait_for_a_flush();
    assert_eq!((shard.end_offset(), shard.stats().next, shard.stats().pending_batches), (1, 2, 1));
    assert!(matches!(shard.try_fetch_tail(1, 100), Tail::AtEnd));
    gate.open();
    ack.wait().unwrap();
    assert_eq!(shard.end_offset(), 2);
    assert_eq!(poll(&mut beyond, &waker), Poll::Ready(Ok(2)));
    assert!(count.get() >= 1);
}

#[test]
fn a_repetition_counts_when_the_first_sending_does() {
    let disk = trifid_base_sim::SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let shard = rig.create("s", spec(Durability::OnCommit)).shards()[0].clone();
    let gate = Gatekeeper::hold_flushes(&disk);
    let batch = batch_at(START_MS, &[b"once"], Some((1, 0, 0)));
    let first = publish(&shard, checked(&batch)).unwrap();
    let again = publish(&shard, checked(&batch)).unwrap();
    assert!(again.duplicate && !first.duplicate);
    let (_, waker) = Count::waker();
    let (mut first, mut again) = (first.ack, again.ack);
    assert!(poll(&mut first, &waker).is_pending() && poll(&mut again, &waker).is_pending());
    gate.open();
    assert_eq!((first.wait(), again.wait()), (Ok(()), Ok(())));
    assert!(publish(&shard, checked(&batch)).unwrap().ack.is_ready());
    assert_eq!(shard.end_offset(), 1);
}

#[test]
fn the_full_disk_takes_back_offsets_and_sequences() {
    let disk = trifid_base_sim::SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let shard = rig.create("s", spec(Durability::OnCommit)).shards()[0].clone();
    let value = [7; 3000];
    let batch = |sequence| checked(&batch_at(START_MS, &[&value], Some((1, 0, sequence))));
    put(&shard, batch(0));
    disk.set_room(Some(0));
    // Some may fit into room that the log had asked for before.
    let mut sequence = 1;
    let fate = loop {
        let published = publish(&shard, batch(sequence)).unwrap();
        match published.ack.wait() {
            Ok(()) => sequence += 1,
            Err(fate) => break fate,
        }
    };
    let end = u64::from(sequence.unsigned_abs());
    assert_eq!((fate, shard.end_offset()), (CommitFailure::NoSpace, end));
    assert_eq!(shard.stats().pending_batches, 0);
    assert!(shard.is_full());
    assert_eq!(rig.broker.health().full, ["default/s/0"]);
    disk.set_room(None);
    // It was never there, so it is no repetition. Its offset is not given again.
    let again = publish(&shard, batch(sequence)).unwrap();
    assert!(!again.duplicate);
    assert_eq!(again.base_offset, end + 1);
    again.ack.wait().unwrap();
    let offsets: Vec<_> = read_all(&shard, 0).into_iter().map(|(offset, _)| offset).collect();
    assert!(offsets.iter().copied().eq((0..end).chain([end + 1])));
    assert!(!shard.is_full());
    // A subscriber at the empty offset is not stuck.
    let mut cursor = shard.subscribe(Start::Offset(end), Policy::Block, 0).unwrap();
    assert!(matches!(cursor.try_next(100), Some(crate::Step::Batches(f)) if f.batches[0].base == end + 1));
}

#[test]
fn a_durable_shard_reads_what_left_the_memory() {
    let (_rig, shard) = shard_of(Durability::OnCommit);
    let sent: Vec<_> = (0..200_u32).map(|n| (u64::from(n), n.to_be_bytes().repeat(50))).collect();
    for (offset, value) in &sent {
        assert_eq!(put(&shard, values(&[value])), *offset);
    }
    let stats = shard.stats();
    assert!(stats.tail_bytes <= 8 << 10 && stats.tail_batches < 100, "{stats:?}");
    assert!(stats.segments > 1);
    assert!(matches!(shard.try_fetch_tail(0, 100), Tail::NeedsDisk));
    assert_eq!(read_all(&shard, 0), sent);
    assert_eq!(read_all(&shard, 77), sent[77..]);
    assert!(shard.stats().pages > 0);
}

#[test]
fn a_time_is_found_on_the_disk_as_in_memory() {
    let mut noise = fastrand::Rng::with_seed(3);
    let times: Vec<i64> = (0..150).map(|n| START_MS + n * 10 + noise.i64(-40..40)).collect();
    let found = ALL.map(|durability| {
        let (_rig, shard) = shard_of(durability);
        for (n, ms) in times.iter().enumerate() {
            let value = (n as u32).to_be_bytes().repeat(60);
            put(&shard, checked(&batch_at(*ms, &[&value, b"second"], None)));
        }
        if durability.is_durable() {
            assert!(matches!(shard.try_fetch_tail(0, 1), Tail::NeedsDisk));
        }
        let asked = (-5..160).map(|n| START_MS + n * 10 + 3);
        asked.map(|ms| (ms, shard.offset_for_time(ms).unwrap())).collect::<Vec<_>>()
    });
    for (ms, answer) in &found[0] {
        let first = times.iter().position(|time| time >= ms);
        assert_eq!(*answer, first.map(|at| (at as u64 * 2, times[at])), "{ms}");
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}

#[test]
fn a_memory_stream_keeps_so_many_bytes_and_so_long() {
    let rig = Rig::memory();
    let retained =
        StreamSpec { retention_bytes: Some(64 << 10), retention_ms: Some(10_000), ..StreamSpec::memory(1) };
    let shard = rig.create("s", retained).shards()[0].clone();
    for _ in 0..100 {
        put(&shard, sized(1000));
    }
    let stats = shard.stats();
    assert!(stats.tail_bytes <= 64 << 10 && stats.tail_bytes > 60 << 10, "{stats:?}");
    assert_eq!(shard.start_offset(), 100 - stats.tail_batches as u64);
    assert!(matches!(shard.fetch(0, 1), Err(FetchError::TooOld { first }) if first == shard.start_offset()));
    rig.pass(Duration::from_secs(6));
    put(&shard, checked(&batch_at(START_MS + 6000, &[b"later"], None)));
    rig.pass(Duration::from_secs(6));
    assert_eq!((shard.start_offset(), shard.end_offset()), (100, 101));
    rig.pass(Duration::from_secs(60));
    assert_eq!((shard.start_offset(), shard.end_offset()), (101, 101));
    assert_eq!(rig.broker.stats().memory_bytes.0, 0);
    assert_eq!(put(&shard, sized(1000)), 101);
}

#[test]
fn memory_streams_share_what_there_is() {
    let rig = Rig::with(None, |options| options.limits.memory_bytes_total = 100 << 10);
    let (greedy, modest) =
        (rig.create("greedy", StreamSpec::memory(1)), rig.create("modest", StreamSpec::memory(1)));
    let (greedy, modest) = (&greedy.shards()[0], &modest.shards()[0]);
    for _ in 0..500 {
        put(greedy, sized(1000));
    }
    assert!(rig.broker.stats().memory_bytes.0 <= 100 << 10);
    let refused = publish(modest, sized(1000)).unwrap_err();
    assert!(matches!(refused, PublishError::Overloaded { .. }));
    // Looking after them gives each its share.
    rig.pass(Duration::from_secs(2));
    for _ in 0..40 {
        put(modest, sized(1000));
    }
    assert_eq!(modest.stats().tail_batches, 40);
    assert_eq!(modest.stats().rejected.overloaded, 1);
}

#[test]
fn cold_shards_give_their_memory_up() {
    let rig = Rig::with(Some(trifid_base_sim::SimDisk::new()), |options| {
        options.limits.tail_bytes_total = 10 << 10;
    });
    let stream = rig.create("s", StreamSpec { shards: 2, ..StreamSpec::default() });
    let (cold, hot) = (&stream.shards()[0], &stream.shards()[1]);
    for _ in 0..8 {
        put(cold, sized(1000));
    }
    rig.pass(Duration::from_secs(2));
    for _ in 0..8 {
        put(hot, sized(1000));
        assert!(rig.broker.stats().tail_bytes.0 <= 12 << 10);
    }
    rig.pass(Duration::from_secs(2));
    let _ = hot.fetch(7, 10);
    rig.pass(Duration::from_secs(2));
    assert_eq!(cold.stats().tail_batches, 0);
    assert!(hot.stats().tail_batches > 0);
    assert_eq!(read_all(cold, 0).len(), 8);
}

#[test]
fn many_hot_shards_stay_within_the_bound_of_all() {
    let rig = Rig::with(Some(trifid_base_sim::SimDisk::new()), |options| {
        options.limits.tail_bytes_total = 40 << 10;
    });
    let stream = rig.create("s", StreamSpec { shards: 64, ..StreamSpec::default() });
    for round in 0..3 {
        for shard in stream.shards() {
            put(shard, sized(3000));
            assert!(rig.broker.stats().tail_bytes.0 <= 50 << 10, "round {round}");
        }
    }
    assert!(stream.shards().iter().all(|shard| read_all(shard, 0).len() == 3));
}

#[test]
fn acknowledgements_awaited_in_order_wake_once_a_flush() {
    let disk = trifid_base_sim::SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let shard = rig.create("s", spec(Durability::OnCommit)).shards()[0].clone();
    let gate = Gatekeeper::hold_flushes(&disk);
    let held = publish(&shard, values(&[b"in the flush that is held"])).unwrap();
    gate.wait_for_a_flush();
    let mut acks: Vec<_> = (0..50).map(|_| publish(&shard, values(&[b"x"])).unwrap().ack).collect();
    let (count, waker) = Count::waker();
    assert!(poll(&mut acks[0], &waker).is_pending());
    gate.open();
    held.ack.wait().unwrap();
    let last = acks.pop().unwrap();
    last.wait().unwrap();
    for ack in &mut acks {
        assert_eq!(poll(ack, &waker), Poll::Ready(Ok(())));
    }
    assert_eq!(count.get(), 1);
}

#[test]
fn bytes_are_in_flight_until_they_count() {
    let disk = trifid_base_sim::SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |options| options.limits.tenant_inflight_bytes = 5000);
    let durable = rig.create("durable", spec(Durability::OnCommit)).shards()[0].clone();
    let memory = rig.create("memory", StreamSpec::memory(1)).shards()[0].clone();
    let budget = rig.broker.connection(&rig.tenant(), 1 << 20);
    let send = |shard: &Arc<Shard>| {
        let batch = sized(2000);
        let admitted = budget.admit(batch.bytes())?;
        Ok::<_, PublishError>(shard.publish(batch, admitted)?.ack)
    };
    assert!(send(&memory).unwrap().is_ready());
    assert_eq!(budget.inflight_bytes(), 0);
    let gate = Gatekeeper::hold_flushes(&disk);
    let acks = [send(&durable).unwrap(), send(&durable).unwrap()];
    let in_flight = budget.inflight_bytes();
    assert!(in_flight > 3900, "{in_flight}");
    assert!(matches!(send(&durable), Err(PublishError::Overloaded { retry_after_ms: 1.. })));
    assert_eq!(budget.inflight_bytes(), in_flight);
    gate.open();
    acks.into_iter().for_each(|ack| ack.wait().unwrap());
    assert_eq!(budget.inflight_bytes(), 0);
    assert!(send(&durable).unwrap().wait().is_ok());
    let tenants = rig.broker.stats().tenants;
    assert_eq!((tenants.len(), tenants[0].inflight_bytes, tenants[0].refused), (1, 0, 1));
}

#[test]
fn damage_is_told_where_it_lies_and_harms_nobody_else() {
    let disk = trifid_base_sim::SimDisk::new();
    let rig = Rig::with(Some(disk.clone()), |_| {});
    let stream = rig.create("s", StreamSpec { shards: 2, ..StreamSpec::default() });
    let (hurt, well) = (&stream.shards()[0], &stream.shards()[1]);
    for n in 0..60_u32 {
        let value = n.to_be_bytes().repeat(200);
        put(hurt, values(&[&value]));
        put(well, values(&[&value]));
    }
    let log = format!("log/{}", crate::store::log_id(stream.id().0, 0));
    let is_segment =
        |file: &std::path::PathBuf| file.starts_with(&log) && file.extension().is_some_and(|e| e == "seg");
    let oldest = disk.files().into_iter().filter(is_segment).min().unwrap();
    let mut content = disk.content(&oldest).unwrap();
    content[6000] ^= 1;
    disk.plant(&oldest, content);
    let read = |from| hurt.fetch(from, 300);
    let first_bad = (0..60).find(|from| read(*from).is_err()).unwrap();
    assert!(matches!(read(first_bad), Err(FetchError::Damaged { file, .. }) if file == oldest));
    let mut cursor = hurt.subscribe(Start::Offset(first_bad), Policy::Block, 0).unwrap();
    assert!(matches!(cursor.try_next(300), Some(crate::Step::NeedsDisk)));
    assert!(cursor.read_page(300).is_err());
    assert_eq!(cursor.position(), first_bad, "it stays, and is not told that anything is lost");
    assert_eq!(read_all(hurt, 30).len(), 30, "the next segment is whole");
    assert_eq!(read_all(well, 0).len(), 60);
    assert_eq!(put(hurt, values(&[b"goes on"])), 60);
}

#[test]
fn a_clock_that_jumps_loses_nothing_that_is_not_old() {
    let rig = Rig::on_disk();
    let kept = |durability| StreamSpec { retention_ms: Some(3_600_000), ..spec(durability) };
    let shards = ALL.map(|durability| {
        let name = format!("s{}", usize::from(durability.is_durable()) + usize::from(durability == ALL[2]));
        rig.create(&name, kept(durability)).shards()[0].clone()
    });
    let start = trifid_base_runtime::Timestamp::from_micros(START_MS * 1000);
    shards.iter().for_each(|shard| assert_eq!(put(shard, values(&[b"x"])), 0));
    for to_ms in [-1_000_000_000, 0, 1_800_000, -5] {
        rig.clock.set(trifid_base_runtime::Timestamp::from_micros(start.micros() + to_ms * 1000));
        rig.pass(Duration::from_secs(1));
        for shard in &shards {
            assert_eq!(read_all(shard, 0).len(), 1, "{to_ms}");
        }
    }
    let batch = |sequence| checked(&batch_at(START_MS, &[b"p"], Some((1, 0, sequence))));
    shards.iter().for_each(|shard| assert_eq!(put(shard, batch(0)), 1));
    rig.pass(Duration::from_secs(7200));
    assert!(shards.iter().all(|shard| shard.start_offset() == 2));
    assert!(shards.iter().all(|shard| put(shard, batch(1)) == 2), "a producer is known for a day");
    rig.pass(Duration::from_secs(100_000));
    for shard in &shards {
        assert!(matches!(publish(shard, batch(2)), Err(PublishError::UnknownProducer)));
        assert_eq!(put(shard, checked(&batch_at(START_MS, &[b"p"], Some((1, 1, 0))))), 3);
    }
}

#[test]
fn waiting_ends_with_growth_or_deletion() {
    let rig = Rig::memory();
    let shard = rig.create("s", StreamSpec::memory(1)).shards()[0].clone();
    let (count, waker) = Count::waker();
    let mut near = shard.beyond(0);
    let mut far = shard.beyond(1);
    assert!(poll(&mut near, &waker).is_pending() && poll(&mut far, &waker).is_pending());
    put(&shard, values(&[b"x"]));
    assert_eq!(count.get(), 1);
    assert_eq!(poll(&mut near, &waker), Poll::Ready(Ok(1)));
    assert!(poll(&mut far, &waker).is_pending());
    rig.broker.delete(&rig.tenant(), &name("s")).unwrap();
    assert_eq!(count.get(), 2);
    assert_eq!(poll(&mut far, &waker), Poll::Ready(Err(Gone)));
    drop((near, far));
    assert_eq!(shard.stats().waiters, 0);
    assert!(matches!(publish(&shard, values(&[b"x"])), Err(PublishError::Deleted)));
    assert!(matches!(shard.fetch(0, 1), Err(FetchError::Gone)));
}

#[test]
fn draining_refuses_and_settles() {
    let (rig, shard) = shard_of(Durability::OnCommit);
    let published = publish(&shard, values(&[b"x"])).unwrap();
    rig.broker.drain();
    assert_eq!(shard.end_offset(), 1);
    let (_, waker) = Count::waker();
    let mut ack = published.ack;
    assert_eq!(poll(&mut ack, &waker), Poll::Ready(Ok(())));
    assert!(matches!(publish(&shard, values(&[b"x"])), Err(PublishError::ShuttingDown)));
    assert_eq!(read_all(&shard, 0).len(), 1);
    assert!(!rig.broker.health().is_ready());
}

#[test]
fn an_idle_shard_is_small() {
    assert!(size_of::<Core>() <= 640, "{}", size_of::<Core>());
}

#[derive(Default)]
struct Gate {
    is_open: bool,
    came: bool,
}

/// Holds every flush of a disk until it is opened. Nothing else may use the disk meanwhile.
struct Gatekeeper(Arc<(Mutex<Gate>, Condvar)>);

impl Gatekeeper {
    fn hold_flushes(disk: &trifid_base_sim::SimDisk) -> Self {
        let shared = Arc::<(Mutex<Gate>, Condvar)>::default();
        let gate = shared.clone();
        disk.on_op(move |op| {
            if matches!(op.kind, OpKind::SyncData | OpKind::SyncAll) {
                let mut state = gate.0.lock();
                state.came = true;
                gate.1.notify_all();
                while !state.is_open {
                    gate.1.wait(&mut state);
                }
            }
            None
        });
        Gatekeeper(shared)
    }

    fn wait_for_a_flush(&self) {
        let mut state = self.0.0.lock();
        while !state.came {
            self.0.1.wait(&mut state);
        }
    }

    fn open(&self) {
        self.0.0.lock().is_open = true;
        self.0.1.notify_all();
    }
}

impl Drop for Gatekeeper {
    fn drop(&mut self) {
        self.open();
    }
}
