use super::*;
use proptest::prelude::*;

fn claim(id: i64, epoch: i16, sequence: i32, records: u32) -> Claim {
    Claim { id, epoch, sequence, records }
}

/// Publishes as a shard does; answers what the client hears.
fn publish(producers: &mut Producers, next: &mut u64, claim: Claim) -> Result<(u64, bool), Refusal> {
    match producers.check(&claim)? {
        Verdict::Duplicate { base, .. } => Ok((base, true)),
        Verdict::New => {
            let base = *next;
            producers.note(&claim, base, 0);
            *next += u64::from(claim.records);
            Ok((base, false))
        }
    }
}

#[test]
fn follows_answers_again_and_refuses_gaps() {
    let (mut producers, mut next) = (Producers::new(10, false), 100);
    let mut say = |sequence, records| publish(&mut producers, &mut next, claim(7, 0, sequence, records));
    assert_eq!(say(0, 3), Ok((100, false)));
    assert_eq!(say(3, 2), Ok((103, false)));
    assert_eq!(say(0, 3), Ok((100, true)));
    assert_eq!(say(3, 2), Ok((103, true)));
    assert_eq!(say(6, 1), Err(Refusal::OutOfSequence { expected: 5, got: 6 }));
    // The same beginning with another count is not the same batch.
    assert_eq!(say(3, 1), Err(Refusal::OutOfSequence { expected: 5, got: 3 }));
    assert_eq!(say(5, 1), Ok((105, false)));
}

#[test]
fn remembers_five() {
    let (mut producers, mut next) = (Producers::new(10, false), 0);
    for sequence in 0..6 {
        publish(&mut producers, &mut next, claim(1, 0, sequence, 1)).unwrap();
    }
    let again = |sequence| producers.check(&claim(1, 0, sequence, 1));
    assert_eq!(again(0), Err(Refusal::OutOfSequence { expected: 6, got: 0 }));
    for sequence in 1..6 {
        let base = sequence as u64;
        assert_eq!(again(sequence), Ok(Verdict::Duplicate { base, end: base + 1 }));
    }
}

#[test]
fn a_higher_epoch_begins_anew_and_fences_the_lower() {
    let (mut producers, mut next) = (Producers::new(10, false), 0);
    let mut say = |epoch, sequence| publish(&mut producers, &mut next, claim(1, epoch, sequence, 1));
    say(0, 0).unwrap();
    assert_eq!(say(1, 1), Err(Refusal::OutOfSequence { expected: 0, got: 1 }));
    assert_eq!(say(1, 0), Ok((1, false)));
    assert_eq!(say(0, 1), Err(Refusal::Fenced { epoch: 1 }));
    assert_eq!(say(1, 0), Ok((1, true)));
}

#[test]
fn sequences_wrap() {
    assert_eq!(after(i32::MAX, 1), 0);
    assert_eq!(after(i32::MAX - 1, 1), i32::MAX);
    assert_eq!(after(i32::MAX - 1, 5), 3);
    let mut producers = Producers::new(10, false);
    producers.note(&claim(1, 0, i32::MAX - 1, 3), 0, 0);
    assert_eq!(producers.check(&claim(1, 0, 1, 1)), Ok(Verdict::New));
}

#[test]
fn an_overtaking_batch_is_out_of_sequence_and_a_forgotten_producer_unknown() {
    let late = claim(1, 0, 4, 1);
    assert_eq!(Producers::new(1, false).check(&late), Err(Refusal::OutOfSequence { expected: 0, got: 4 }));
    assert_eq!(Producers::new(1, true).check(&late), Err(Refusal::Unknown));
    let mut producers = Producers::new(10, false);
    producers.note(&claim(1, 0, 0, 1), 0, 50);
    assert_eq!((producers.expire(50), producers.forgot()), (0, false));
    assert_eq!((producers.expire(51), producers.forgot(), producers.len()), (1, true, 0));
    assert_eq!(producers.check(&late), Err(Refusal::Unknown));
    assert_eq!(producers.check(&claim(1, 0, 0, 1)), Ok(Verdict::New));
}

#[test]
fn a_full_table_forgets_the_idlest() {
    let mut producers = Producers::new(16, false);
    for id in 0..16 {
        producers.note(&claim(id, 0, 0, 1), 0, id);
    }
    producers.note(&claim(99, 0, 0, 1), 0, 99);
    assert!(producers.forgot());
    assert_eq!(producers.len(), 14);
    assert_eq!(producers.check(&claim(0, 0, 1, 1)), Err(Refusal::Unknown));
    assert_eq!(producers.check(&claim(15, 0, 1, 1)), Ok(Verdict::New));
}

#[test]
fn what_the_disk_refused_is_expected_again() {
    let (mut producers, mut next) = (Producers::new(10, false), 0);
    let mut log = Vec::new();
    for sent in (0..9).map(|sequence| claim(1, 0, sequence, 1)).chain([claim(2, 0, 0, 1)]) {
        log.push((sent, publish(&mut producers, &mut next, sent).unwrap().0));
    }
    // More than are remembered: nothing tells how many a client may have in flight.
    producers.withdraw(log[2..].iter().copied().rev());
    assert_eq!(producers.check(&claim(1, 0, 2, 1)), Ok(Verdict::New));
    let refused = Refusal::OutOfSequence { expected: 2, got: 3 };
    assert_eq!(producers.check(&claim(1, 0, 3, 1)), Err(refused));
    assert_eq!(producers.len(), 1);
    assert_eq!(producers.check(&claim(2, 0, 0, 1)), Ok(Verdict::New));
}

#[test]
fn of_one_publish_the_beginning_may_be_here() {
    let mut producers = Producers::new(10, false);
    let three = [claim(1, 0, 0, 2), claim(1, 0, 2, 1), claim(1, 0, 3, 4)];
    let known = |batches, base, end| Ok(Known { batches, base, end });
    assert_eq!(producers.check_all(&[]), known(0, None, 0));
    assert_eq!(producers.check_all(&three), known(0, None, 0));
    let refused = |claims: &[Claim], expected, got| {
        let producers = Producers::new(10, false);
        assert_eq!(producers.check_all(claims), Err(Refusal::OutOfSequence { expected, got }));
    };
    refused(&[claim(1, 0, 0, 2), claim(1, 0, 3, 1)], 2, 3);
    refused(&[claim(1, 0, 0, 2), claim(1, 0, 0, 2)], 2, 0);
    refused(&[claim(1, 0, 0, 2), claim(2, 0, 2, 2)], 2, 2);
    refused(&[claim(1, 0, 4, 2), claim(1, 0, 6, 2)], 0, 4);
    producers.note(&three[0], 10, 0);
    assert_eq!(producers.check_all(&three), known(1, Some(10), 12));
    producers.note(&three[1], 15, 0);
    assert_eq!(producers.check_all(&three), known(2, Some(10), 16));
    let gap = [three[0], three[1], claim(1, 0, 4, 4)];
    assert_eq!(producers.check_all(&gap), Err(Refusal::OutOfSequence { expected: 3, got: 4 }));
    producers.note(&three[2], 16, 0);
    assert_eq!(producers.check_all(&three), known(3, Some(10), 20));
}

/// What a client may do: send its next batch, send one again, skip one, begin an epoch; and what may happen
/// to the broker: it is restarted, the disk refuses the last offsets.
#[derive(Clone, Debug)]
enum Step {
    Next { producer: i64, records: u32 },
    Again { producer: i64, back: usize },
    Skip { producer: i64 },
    Bump { producer: i64 },
    Old { producer: i64 },
    Restart { snapshot_back: usize },
    Refuse { batches: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let producer = 0..3_i64;
    prop_oneof![
        6 => (producer.clone(), 1..4_u32).prop_map(|(producer, records)| Step::Next { producer, records }),
        4 => (producer.clone(), 0..8_usize).prop_map(|(producer, back)| Step::Again { producer, back }),
        1 => producer.clone().prop_map(|producer| Step::Skip { producer }),
        1 => producer.clone().prop_map(|producer| Step::Bump { producer }),
        1 => producer.prop_map(|producer| Step::Old { producer }),
        1 => (0..20_usize).prop_map(|snapshot_back| Step::Restart { snapshot_back }),
        1 => (0..12_usize).prop_map(|batches| Step::Refuse { batches }),
    ]
}

/// The oracle: the whole log, and each client's own counters.
#[derive(Default)]
struct World {
    log: Vec<(Claim, u64)>,
    next: u64,
    /// Epoch and next sequence of each client.
    clients: [(i16, i32); 3],
    /// How many of its last batches the broker must be able to answer for.
    remembered: [usize; 3],
}

impl World {
    fn of(&self, id: i64, epoch: i16) -> Vec<(Claim, u64)> {
        self.log.iter().filter(|(claim, _)| claim.id == id && claim.epoch == epoch).copied().collect()
    }
}

fn reopened(world: &World, snapshot_back: usize) -> Producers {
    let at = world.log.len().saturating_sub(snapshot_back);
    let mut first_life = Producers::new(100, false);
    world.log[..at].iter().for_each(|(claim, base)| first_life.replay(claim, *base, 0));
    // Some of it is not durable when the snapshot is made.
    let durable = at.saturating_sub(snapshot_back / 2);
    let pending = world.log[durable..at].iter().copied().rev();
    let mut producers = Producers::new(100, false);
    first_life.without(pending).into_iter().for_each(|(id, producer)| producers.restore(id, producer));
    world.log[durable..].iter().for_each(|(claim, base)| producers.replay(claim, *base, 0));
    producers
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut producers = Producers::new(100, false);
    let mut world = World::default();
    for step in steps {
        match *step {
            Step::Next { producer, records } => {
                let (epoch, sequence) = world.clients[producer as usize];
                let sent = claim(producer, epoch, sequence, records);
                let base = world.next;
                prop_assert_eq!(publish(&mut producers, &mut world.next, sent), Ok((base, false)));
                world.log.push((sent, base));
                world.clients[producer as usize].1 = after(sequence, records);
                world.remembered[producer as usize] =
                    PRODUCER_BATCHES.min(world.remembered[producer as usize] + 1);
            }
            Step::Again { producer, back } => {
                let taken = world.of(producer, world.clients[producer as usize].0);
                let Some(at) = taken.len().checked_sub(back + 1) else { continue };
                let (sent, base) = taken[at];
                let answer = publish(&mut producers, &mut world.next, sent);
                let refused = matches!(answer, Err(Refusal::OutOfSequence { .. }));
                // Between what it must know and what it may know, either is right; a second copy never is.
                let right = match back {
                    _ if back < world.remembered[producer as usize] => answer == Ok((base, true)),
                    PRODUCER_BATCHES.. => refused,
                    _ => refused || answer == Ok((base, true)),
                };
                prop_assert!(right, "{:?}", answer);
            }
            Step::Skip { producer } => {
                let (epoch, expected) = world.clients[producer as usize];
                let got = expected + 1;
                let answer = publish(&mut producers, &mut world.next, claim(producer, epoch, got, 1));
                prop_assert_eq!(answer, Err(Refusal::OutOfSequence { expected, got }));
            }
            Step::Bump { producer } => {
                let client = &mut world.clients[producer as usize];
                // An epoch that was never used leaves no trace in the broker.
                if client.1 > 0 {
                    *client = (client.0 + 1, 0);
                    let (sent, base) = (claim(producer, client.0, 0, 1), world.next);
                    prop_assert_eq!(publish(&mut producers, &mut world.next, sent), Ok((base, false)));
                    client.1 = 1;
                    world.log.push((sent, base));
                    world.remembered[producer as usize] = 1;
                }
            }
            Step::Old { producer } => {
                let (epoch, _) = world.clients[producer as usize];
                if epoch > 0 && !world.of(producer, epoch).is_empty() {
                    let answer = producers.check(&claim(producer, epoch - 1, 0, 1));
                    prop_assert_eq!(answer, Err(Refusal::Fenced { epoch }));
                }
            }
            Step::Restart { snapshot_back } => {
                producers = reopened(&world, snapshot_back);
                for (id, (epoch, _)) in world.clients.iter().enumerate() {
                    let batches = world.of(id as i64, *epoch).len();
                    // A snapshot of less than was remembered may lack the older ones.
                    world.remembered[id] = world.remembered[id].min(batches);
                }
            }
            Step::Refuse { batches } => {
                let at = world.log.len().saturating_sub(batches);
                let gone = world.log.split_off(at);
                producers.withdraw(gone.iter().copied().rev());
                for (claim, _) in gone.iter().rev() {
                    let client = &mut world.clients[claim.id as usize];
                    // A client never goes back to an older epoch.
                    if claim.epoch == client.0 {
                        client.1 = claim.sequence;
                    }
                    let remembered = &mut world.remembered[claim.id as usize];
                    *remembered = remembered.saturating_sub(1);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn each_batch_is_taken_once_in_order_whatever_happens(steps in prop::collection::vec(step(), 0..120)) {
        run(&steps)?;
    }
}
