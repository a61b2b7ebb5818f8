//! Idempotent producers of one shard (KIP-98): which batches of each were taken last.
//!
//! A batch names its producer, the producer's epoch and the sequence number of its first record. Per producer
//! the last five batches are remembered, as many as a client may have in flight: one of them sent again is
//! answered with the offsets that it got, what follows directly is taken, and everything else is refused with
//! the number that was expected. A higher epoch begins anew at sequence 0, a lower one is fenced off.
//! Sequence numbers wrap from 2^31 - 1 to 0.
//!
//! The state is part of the shard: it changes under the shard's lock, is taken back with batches that the
//! full disk refused, and is rebuilt at opening from a snapshot and the headers of the batches behind it.
//!
//! Memory is bounded: who published nothing for a day is forgotten, and when the table is full the one that
//! was idle longest. Once a shard has forgotten anybody, a sequence above 0 from a producer that it does not
//! know is answered as *unknown producer*, upon which clients begin a new epoch (KIP-360); before that it can
//! only be a batch that overtook a refused one, and is *out of sequence*.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::limits::PRODUCER_BATCHES;

/// What a batch's header says of its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The producer's id; never negative.
    pub(crate) id: i64,
    /// Its epoch.
    pub(crate) epoch: i16,
    /// The sequence number of the first record.
    pub(crate) sequence: i32,
    /// Records in the batch.
    pub(crate) records: u32,
}

impl Claim {
    /// The sequence number that follows.
    fn next(&self) -> i32 {
        after(self.sequence, self.records)
    }
}

/// Why a batch of an idempotent producer is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    OutOfSequence { expected: i32, got: i32 },
    Fenced { epoch: i16 },
    Unknown,
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It follows: append it, then [note](Producers::note) it.
    New,
    /// It is here already, at these offsets.
    Duplicate { base: u64, end: u64 },
}

/// How much of a publish is here already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// So many batches, from the first on.
    pub(crate) batches: usize,
    /// The offset that the first of them got.
    pub(crate) base: Option<u64>,
    /// The offset after the last of them.
    pub(crate) end: u64,
}

impl Known {
    fn add(&mut self, base: u64, end: u64) {
        self.batches += 1;
        self.base = self.base.or(Some(base));
        self.end = end;
    }
}

/// A batch that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) sequence: i32,
    pub(crate) records: u32,
    pub(crate) base: u64,
}

/// What is remembered of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) epoch: i16,
    /// The sequence number that the next batch must begin with.
    pub(crate) expected: i32,
    /// When it published last, in milliseconds of the broker's clock.
    pub(crate) seen_ms: i64,
    /// The last batches, oldest first.
    pub(crate) taken: SmallVec<[Taken; PRODUCER_BATCHES]>,
}

impl Producer {
    fn check(&self, claim: &Claim) -> Result<Verdict, Refusal> {
        let Claim { epoch, sequence, records, .. } = *claim;
        if epoch < self.epoch {
            return Err(Refusal::Fenced { epoch: self.epoch });
        }
        if epoch > self.epoch {
            return first(sequence);
        }
        let same = |taken: &&Taken| taken.sequence == sequence && taken.records == records;
        if let Some(taken) = self.taken.iter().rev().find(same) {
            let end = taken.base.saturating_add(u64::from(taken.records));
            return Ok(Verdict::Duplicate { base: taken.base, end });
        }
        match sequence == self.expected {
            true => Ok(Verdict::New),
            false => Err(Refusal::OutOfSequence { expected: self.expected, got: sequence }),
        }
    }

    fn note(&mut self, claim: &Claim, base: u64, now_ms: i64) {
        if claim.epoch != self.epoch {
            self.taken.clear();
        }
        if self.taken.len() == PRODUCER_BATCHES {
            self.taken.remove(0);
        }
        self.taken.push(Taken { sequence: claim.sequence, records: claim.records, base });
        self.epoch = claim.epoch;
        self.expected = claim.next();
        self.seen_ms = now_ms;
    }

    /// Nothing of it is left. (A raised epoch is: it fences.)
    fn is_blank(&self) -> bool {
        self.taken.is_empty() && self.expected == 0 && self.epoch == 0
    }

    /// A batch that was taken is not in the log: it is expected again.
    fn withdraw(&mut self, claim: &Claim, base: u64) {
        if claim.epoch == self.epoch {
            if self.taken.last().is_some_and(|last| last.base == base) {
                self.taken.pop();
            }
            self.expected = claim.sequence;
        }
    }
}

/// A producer's first batch of an epoch begins at 0.
fn first(sequence: i32) -> Result<Verdict, Refusal> {
    match sequence {
        0 => Ok(Verdict::New),
        got => Err(Refusal::OutOfSequence { expected: 0, got }),
    }
}

/// The sequence number after `records` records, wrapping at 2^31 (`DefaultRecordBatch`, KIP-98).
fn after(sequence: i32, records: u32) -> i32 {
    let next = (i64::from(sequence) + i64::from(records)) % (i64::from(i32::MAX) + 1);
    next as i32
}

/// The table of one shard. Empty, it holds no memory.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    known: HashMap<i64, Producer, foldhash::fast::RandomState>,
    /// Somebody who published here is not known any more.
    forgot: bool,
    max: usize,
}

impl Producers {
    /// A table of at most `max`. `forgot` says that an earlier life may have known more.
    pub(crate) fn new(max: usize, forgot: bool) -> Self {
        Producers { known: HashMap::default(), forgot, max: max.max(1) }
    }

    /// What to do with a batch.
    pub(crate) fn check(&self, claim: &Claim) -> Result<Verdict, Refusal> {
        match self.known.get(&claim.id) {
            Some(producer) => producer.check(claim),
            None if self.forgot && claim.sequence != 0 => Err(Refusal::Unknown),
            None => first(claim.sequence),
        }
    }

    /// What to do with the batches of one publish. Those that are here already come first: a power cut, or a full
    /// disk, may have left the beginning of a publish that its client sends again.
    pub(crate) fn check_all(&self, claims: &[Claim]) -> Result<Known, Refusal> {
        let mut known = Known::default();
        for claim in claims {
            match self.check(claim) {
                Ok(Verdict::Duplicate { base, end }) => known.add(base, end),
                Ok(Verdict::New) | Err(_) => break,
            }
        }
        let rest = &claims[known.batches..];
        rest.first().map(|first| self.check(first)).transpose()?;
        for pair in rest.windows(2) {
            let (expected, got) = (pair[0].next(), &pair[1]);
            if (got.id, got.epoch, got.sequence) != (pair[0].id, pair[0].epoch, expected) {
                return Err(Refusal::OutOfSequence { expected, got: got.sequence });
            }
        }
        Ok(known)
    }

    /// Remembers a batch that was appended at `base`.
    pub(crate) fn note(&mut self, claim: &Claim, base: u64, now_ms: i64) {
        if !self.known.contains_key(&claim.id) && self.known.len() >= self.max {
            self.forget_idlest();
        }
        let fresh = || Producer { epoch: claim.epoch, expected: 0, seen_ms: now_ms, taken: SmallVec::new() };
        self.known.entry(claim.id).or_insert_with(fresh).note(claim, base, now_ms);
    }

    /// Takes batches back that are not in the log. They come newest first, and none that came after them is
    /// left.
    pub(crate) fn withdraw(&mut self, batches: impl Iterator<Item = (Claim, u64)>) {
        for (claim, base) in batches {
            if let Some(producer) = self.known.get_mut(&claim.id) {
                producer.withdraw(&claim, base);
            }
        }
        self.known.retain(|_, producer| !producer.is_blank());
    }

    /// Forgets who published nothing since `since_ms`; answers how many.
    pub(crate) fn expire(&mut self, since_ms: i64) -> usize {
        let before = self.known.len();
        self.known.retain(|_, producer| producer.seen_ms >= since_ms);
        let gone = before - self.known.len();
        self.forgot |= gone > 0;
        if self.known.is_empty() {
            self.known.shrink_to_fit();
        }
        gone
    }

    /// A full table makes room for an eighth at once, so that a flood of producers costs little each.
    fn forget_idlest(&mut self) {
        let mut seen: Vec<i64> = self.known.values().map(|producer| producer.seen_ms).collect();
        let at = seen.len() / 8;
        let (_, until, _) = seen.select_nth_unstable(at);
        let until = *until;
        let mut room = at + 1;
        self.known.retain(|_, producer| {
            let goes = producer.seen_ms <= until && room > 0;
            room -= usize::from(goes);
            !goes
        });
        self.forgot = true;
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn forgot(&self) -> bool {
        self.forgot
    }

    /// What is known without the last batches, newest first; in order of id. For a snapshot.
    pub(crate) fn without(&self, batches: impl Iterator<Item = (Claim, u64)>) -> Vec<(i64, Producer)> {
        let mut copy = Producers { known: self.known.clone(), ..Producers::default() };
        copy.withdraw(batches);
        let mut all: Vec<_> = copy.known.into_iter().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// Takes one out of a snapshot.
    pub(crate) fn restore(&mut self, id: i64, producer: Producer) {
        self.known.insert(id, producer);
    }

    /// Takes a batch out of the log at opening: what is in the log was right when it was appended.
    pub(crate) fn replay(&mut self, claim: &Claim, base: u64, now_ms: i64) {
        let stale = self.known.get(&claim.id).is_some_and(|known| known.epoch > claim.epoch);
        if !stale {
            self.note(claim, base, now_ms);
        }
    }
}

#[cfg(test)]
mod tests;
