use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use proptest::prelude::*;
use trifid_base_sim::SimDisk;
use trifid_stream_model::spec::{Durability, StreamSpec};

use super::*;
use crate::error::PublishError;
use crate::testing::*;

fn memory_shard() -> (Rig, Arc<Shard>) {
    let rig = Rig::memory();
    let shard = rig.create("s", StreamSpec::memory(1)).shards()[0].clone();
    (rig, shard)
}

fn refused(start: Result<Cursor, FetchError>) -> String {
    start.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn begins_where_it_is_told() {
    let (_rig, shard) = memory_shard();
    for ms in 0..5 {
        put(&shard, checked(&batch_at(START_MS + ms * 10, &[b"a", b"b"], None)));
    }
    let at = |start| shard.subscribe(start, Policy::Block, 0).unwrap().position();
    assert_eq!(at(Start::Earliest), 0);
    assert_eq!(at(Start::Latest), 10);
    assert_eq!([0, 3, 10].map(|offset| at(Start::Offset(offset))), [0, 3, 10]);
    assert_eq!([0, 5, 40, 41].map(|ms| at(Start::Time(START_MS + ms))), [0, 2, 8, 10]);
    assert_eq!(refused(shard.subscribe(Start::Offset(11), Policy::Block, 0)), "the shard ends at 10");
    assert_eq!(shard.stats().subscribers, 0);
}

#[test]
fn an_idle_subscriber_is_small() {
    assert!(size_of::<Cursor>() <= 96, "{}", size_of::<Cursor>());
}

#[test]
fn a_subscriber_that_may_lose_nothing_holds_the_publisher() {
    let rig = Rig::with(None, |options| options.limits.memory_stream_bytes_max = 8 << 10);
    let shard = rig.create("s", StreamSpec::memory(1)).shards()[0].clone();
    let mut slow = shard.subscribe(Start::Latest, Policy::Block, 0).unwrap();
    let mut taken = 0;
    let refusal = loop {
        match publish(&shard, sized(1000)) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refusal, PublishError::Overloaded { retry_after_ms: 1.. }));
    assert_eq!((taken, slow.lag(), shard.stats().lag_max, shard.stats().rejected.held), (7, 7, 7, 1));
    assert!(matches!(slow.try_next(1), Some(Step::Batches(fetched)) if fetched.batches.len() == 1));
    assert!(publish(&shard, sized(1000)).is_ok());
    assert!(publish(&shard, sized(1000)).is_err());
    drop(slow);
    assert!((0..100).all(|_| publish(&shard, sized(1000)).is_ok()));
}

#[test]
fn seeking_goes_on_elsewhere_and_holds_there() {
    let rig = Rig::with(None, |options| options.limits.memory_stream_bytes_max = 8 << 10);
    let shard = rig.create("s", StreamSpec::memory(1)).shards()[0].clone();
    (0..5).for_each(|offset| assert_eq!(put(&shard, sized(1000)), offset));
    let mut cursor = shard.subscribe(Start::Latest, Policy::Block, 0).unwrap();
    cursor.seek(2).unwrap();
    assert!(cursor.seek(6).is_err());
    while publish(&shard, sized(1000)).is_ok() {}
    assert_eq!((shard.start_offset(), cursor.position()), (2, 2));
}

#[test]
fn deletion_is_told() {
    let (rig, shard) = memory_shard();
    let mut cursor = shard.subscribe(Start::Latest, Policy::Block, 0).unwrap();
    let (count, waker) = Count::waker();
    assert!(cursor.poll_next(&mut Context::from_waker(&waker), 1).is_pending());
    rig.broker.delete(&rig.tenant(), &name("s")).unwrap();
    assert_eq!(count.get(), 1);
    assert!(matches!(cursor.poll_next(&mut Context::from_waker(&waker), 1), Poll::Ready(Step::Gone)));
    assert!(refused(shard.subscribe(Start::Latest, Policy::Block, 0)).contains("deleted"));
}

#[derive(Clone, Debug)]
enum Act {
    Publish { batches: usize, bytes: usize },
    Poll { max_bytes: usize },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (1..6_usize, 100..2500_usize).prop_map(|(batches, bytes)| Act::Publish { batches, bytes }),
        (0..6000_usize).prop_map(|max_bytes| Act::Poll { max_bytes }),
    ]
}

/// The rules, told from the whole history instead of from a ring.
struct Oracle {
    policy: Policy,
    budget: u64,
    /// Size of each batch; every batch is one record, so the offset is the index.
    sizes: Vec<u64>,
    next: u64,
    is_live: bool,
    /// Bytes delivered since the lag rose above the budget.
    since_over: Option<u64>,
}

impl Oracle {
    fn new(policy: Policy, budget: usize, sizes: Vec<u64>, next: u64) -> Self {
        let is_live = next == sizes.len() as u64;
        Oracle { policy, budget: budget.max(1) as u64, sizes, next, is_live, since_over: None }
    }

    fn lag(&self, from: u64) -> u64 {
        self.sizes[from as usize..].iter().sum()
    }

    fn end(&self) -> u64 {
        self.sizes.len() as u64
    }

    fn is_over(&self) -> bool {
        self.is_live && self.lag(self.next) > self.budget
    }

    fn hear(&mut self, step: Option<&Step>, start: u64) -> Result<(), TestCaseError> {
        match step {
            None => {
                prop_assert_eq!(self.next, self.end(), "waits although there is something");
                (self.is_live, self.since_over) = (true, None);
            }
            Some(Step::Lost { from, to }) => self.hear_lost(*from, *to, start)?,
            Some(Step::Batches(fetched)) => self.hear_batches(fetched)?,
            Some(step) => prop_assert!(false, "{:?}", step),
        }
        Ok(())
    }

    fn hear_lost(&mut self, from: u64, to: u64, start: u64) -> Result<(), TestCaseError> {
        prop_assert_eq!(from, self.next);
        prop_assert!(to > from && to <= self.end());
        prop_assert!(self.policy != Policy::Block, "a subscriber that may lose nothing lost something");
        if from < start {
            prop_assert_eq!(to, start, "what is gone is told, and no more");
        } else {
            match self.policy {
                Policy::DropOld => {
                    prop_assert!(self.is_over(), "dropped within the budget");
                    let within = self.lag(to) <= self.budget || to + 1 == self.end();
                    prop_assert!(within, "{} bytes are still too many", self.lag(to));
                    // In memory not one batch more than needed goes.
                    let next_older = self.lag(to - 1) > self.budget;
                    prop_assert!(next_older, "more was dropped than the budget asks for");
                }
                _ => {
                    prop_assert_eq!(to, self.end(), "the newest are dropped up to the end");
                    let delivered = self.since_over.unwrap_or(0);
                    let next = self.sizes[from as usize];
                    prop_assert!(
                        delivered + next > self.budget,
                        "what lay within the budget was not delivered"
                    );
                    self.since_over = None;
                }
            }
        }
        self.next = to;
        Ok(())
    }

    fn hear_batches(&mut self, fetched: &Fetched) -> Result<(), TestCaseError> {
        if self.policy == Policy::DropOld && self.is_over() {
            prop_assert_eq!(self.next + 1, self.end(), "nothing was dropped above the budget");
        }
        if self.policy == Policy::DropNew && self.is_over() && self.since_over.is_none() {
            self.since_over = Some(0);
        }
        prop_assert!(!fetched.batches.is_empty());
        for entry in &fetched.batches {
            prop_assert_eq!((entry.base, entry.end), (self.next, self.next + 1), "a gap or a duplicate");
            prop_assert_eq!(entry.bytes.len() as u64, self.sizes[self.next as usize]);
            let value = &records(std::slice::from_ref(entry))[0].1;
            prop_assert_eq!(&value[..8], self.next.to_be_bytes(), "another batch's bytes");
            self.next += 1;
            if let Some(since) = &mut self.since_over {
                let alone = *since == 0;
                *since += entry.bytes.len() as u64;
                prop_assert!(*since <= self.budget || alone, "more than the budget after it was overrun");
            }
        }
        prop_assert_eq!(fetched.next, self.next);
        Ok(())
    }
}

/// A batch of one record that tells its own offset.
fn telling(offset: u64, bytes: usize) -> Bytes {
    let mut value = vec![0; bytes];
    value[..8].copy_from_slice(&offset.to_be_bytes());
    batch_at(START_MS, &[&value], None)
}

/// Publishes and reads as told; everything that is heard must agree with the oracle.
fn follow(
    shard: &Arc<Shard>,
    cursor: &mut Cursor,
    oracle: &mut Oracle,
    acts: &[Act],
) -> Result<(), TestCaseError> {
    let (count, waker) = Count::waker();
    let mut wakes_due = 0;
    let drain = Act::Poll { max_bytes: 700 };
    for act in acts.iter().chain(std::iter::repeat_n(&drain, 400)) {
        match act {
            Act::Publish { batches, bytes } => {
                for _ in 0..*batches {
                    let batch = telling(shard.end_offset(), *bytes);
                    match publish(shard, checked(&batch)) {
                        Ok(published) => {
                            published.ack.wait().unwrap();
                            oracle.sizes.push(batch.len() as u64);
                            prop_assert_eq!(count.get(), wakes_due, "one wake a wait");
                        }
                        Err(PublishError::Overloaded { .. }) => prop_assert_eq!(oracle.policy, Policy::Block),
                        Err(error) => prop_assert!(false, "{}", error),
                    }
                }
            }
            Act::Poll { max_bytes } => {
                let step = match cursor.poll_next(&mut Context::from_waker(&waker), *max_bytes) {
                    Poll::Pending => None,
                    Poll::Ready(Step::NeedsDisk) => Some(cursor.read_page(*max_bytes).unwrap()),
                    Poll::Ready(step) => Some(step),
                };
                if step.is_none() {
                    wakes_due = count.get() + 1;
                }
                oracle.hear(step.as_ref(), shard.start_offset())?;
            }
        }
        prop_assert_eq!(cursor.position(), oracle.next);
    }
    prop_assert_eq!(oracle.next, oracle.end(), "the rest was neither delivered nor told as lost");
    Ok(())
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![Just(Policy::Block), Just(Policy::DropNew), Just(Policy::DropOld)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn in_memory_nothing_is_lost_untold_or_twice(
        policy in policies(),
        budget in 0..12_000_usize,
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let rig = Rig::with(None, |options| options.limits.memory_stream_bytes_max = 16 << 10);
        let shard = rig.create("s", StreamSpec::memory(1)).shards()[0].clone();
        let mut cursor = shard.subscribe(Start::Latest, policy, budget).unwrap();
        follow(&shard, &mut cursor, &mut Oracle::new(policy, budget, Vec::new(), 0), &acts)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn from_backlog_to_live_there_is_no_gap_and_no_duplicate(
        policy in policies(),
        // What the shard's ring can keep: the dropping policies are exact within it.
        budget in 0..4_000_usize,
        periodic in any::<bool>(),
        before in 0..30_usize,
        from in any::<prop::sample::Index>(),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let rig = Rig::with(Some(SimDisk::new()), |_| {});
        let durability = if periodic { Durability::PERIODIC } else { Durability::OnCommit };
        let shard = rig.create("s", spec(durability)).shards()[0].clone();
        let batches: Vec<_> = (0..before as u64).map(|offset| telling(offset, 900)).collect();
        batches.iter().zip(0..).for_each(|(batch, offset)| assert_eq!(put(&shard, checked(batch)), offset));
        let sizes = batches.iter().map(|batch| batch.len() as u64).collect();
        let from = from.index(before + 1) as u64;
        let mut cursor = shard.subscribe(Start::Offset(from), policy, budget).unwrap();
        follow(&shard, &mut cursor, &mut Oracle::new(policy, budget, sizes, from), &acts)?;
    }
}
