//! Publishing: offsets under one lock.

use bytes::BytesMut;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trifid_base_log::{AppendError, Ticket};
use trifid_stream_model::batch::patch;

use super::ring::{Entry, Slot};
use super::waiters::wake;
use super::{Core, Gate, Shard, State};
use crate::ack::Ack;
use crate::admission::Admitted;
use crate::checked::{Batch, Checked, own};
use crate::error::PublishError;
use crate::limits::{ENTRY_BYTES, RETRY_HELD_MS, RETRY_PROCESS_MS};
use crate::producers::Claim;
use crate::store::ShardLog;

/// A publish that was taken.
#[must_use = "it counts when its acknowledgement says so"]
#[derive(Debug)]
pub struct Published {
    /// Offset of the first record.
    pub base_offset: u64,
    /// Offset after the last record.
    pub end: u64,
    /// When it was taken, in milliseconds of the broker's clock.
    pub append_time_ms: i64,
    /// The first offset of the shard.
    pub log_start: u64,
    /// An idempotent producer had sent it before: these are the offsets that it got then. (Where only its first
    /// batches were here, the rest was taken now and this is false; the base offset is that of the first.)
    pub duplicate: bool,
    /// Resolves when it counts.
    pub ack: Ack,
}

/// A batch whose bytes are its own, so that its offset can be written into it.
struct Owned {
    bytes: BytesMut,
    span: u32,
    max_timestamp: i64,
    claim: Option<Claim>,
}

impl Owned {
    fn new(batch: Batch) -> Self {
        let Batch { bytes, span, max_timestamp, claim } = batch;
        Owned { bytes: own(bytes), span, max_timestamp, claim }
    }

    fn stamped(self, base: u64, epoch: u32, now_ms: i64, before: u64) -> Slot {
        let mut bytes = self.bytes;
        let stamped = patch(&mut bytes, base, epoch);
        debug_assert_eq!(stamped, Ok(()), "a checked batch has a header");
        let entry = Entry { base, end: base + u64::from(self.span), epoch, bytes: bytes.freeze() };
        Slot { entry, max_timestamp: self.max_timestamp, appended_ms: now_ms, before }
    }
}

impl Shard {
    /// Takes the batches, in the order of calls: all of them or none. Never waits. The broker's memory is
    /// bounded by `admission`, which goes with the batches until they count.
    pub fn publish(
        self: &Arc<Self>,
        batches: Checked,
        admission: Admitted,
    ) -> Result<Published, PublishError> {
        self.core.check_size(&batches)?;
        let now_ms = self.core.room.now_ms();
        let claims = batches.claims();
        let owned: SmallVec<[Owned; 1]> = batches.into_batches().into_iter().map(Owned::new).collect();
        let mut state = self.core.state.lock();
        let taken = self.take(&mut state, owned, &claims, now_ms);
        let taken = taken.inspect_err(|error| state.count_rejected(error))?;
        let (base_offset, end, duplicate) = (taken.base, taken.end, taken.duplicate);
        let wakers = match &self.log {
            None if !duplicate => state.waiters.take(end),
            _ => SmallVec::new(),
        };
        drop(state);
        wake(wakers);
        let ack = match taken.ticket {
            Some(ticket) => Ack::log(ticket.durable(), Some(admission)),
            None => self.ack_of_duplicate(end, duplicate),
        };
        let log_start = self.core.start();
        Ok(Published { base_offset, end, append_time_ms: now_ms, log_start, duplicate, ack })
    }

    /// A batch that is sent again counts when its first sending does.
    fn ack_of_duplicate(&self, end: u64, duplicate: bool) -> Ack {
        match &self.log {
            Some(log) if duplicate && end > self.core.end() => Ack::log(log.durable_at(end - 1), None),
            _ => Ack::ready(),
        }
    }

    fn take(
        &self,
        state: &mut State,
        mut owned: SmallVec<[Owned; 1]>,
        claims: &[Claim],
        now_ms: i64,
    ) -> Result<Taken, PublishError> {
        if state.gate == Gate::Deleted {
            return Err(PublishError::Deleted);
        }
        if self.core.room.is_draining() {
            return Err(PublishError::ShuttingDown);
        }
        let known = state.producers.check_all(claims)?;
        let Some(base) = known.base else { return self.take_new(state, owned, now_ms) };
        let duplicates = known.batches as u64;
        let taken = match known.batches == owned.len() {
            true => Taken { base, end: known.end, duplicate: true, ticket: None },
            false => {
                owned.drain(..known.batches);
                Taken { base, ..self.take_new(state, owned, now_ms)? }
            }
        };
        state.figures.duplicates += duplicates;
        Ok(taken)
    }

    fn take_new(
        &self,
        state: &mut State,
        owned: SmallVec<[Owned; 1]>,
        now_ms: i64,
    ) -> Result<Taken, PublishError> {
        match &self.log {
            None => self.core.take_in_memory(state, owned, now_ms),
            Some(log) => self.core.append(state, log, owned, now_ms),
        }
    }
}

/// What became of the batches.
struct Taken {
    base: u64,
    end: u64,
    duplicate: bool,
    ticket: Option<Ticket>,
}

impl Core {
    fn check_size(&self, batches: &Checked) -> Result<(), PublishError> {
        let limit = self.max_batch_bytes.load(Ordering::Relaxed) as usize;
        let bytes = batches.largest();
        if bytes > limit {
            let error = PublishError::TooLarge { bytes, limit };
            self.state.lock().count_rejected(&error);
            return Err(error);
        }
        Ok(())
    }

    /// In memory everything happens at once. The caller wakes who waits.
    fn take_in_memory(
        &self,
        state: &mut State,
        owned: SmallVec<[Owned; 1]>,
        now_ms: i64,
    ) -> Result<Taken, PublishError> {
        self.make_room(state, owned.iter().map(|batch| batch.bytes.len() + ENTRY_BYTES).sum())?;
        let base = state.next;
        let epoch = self.epoch.load(Ordering::Relaxed);
        for batch in owned {
            let claim = batch.claim;
            let slot = batch.stamped(state.next, epoch, now_ms, state.taken);
            state.count_in(&slot, claim.as_ref(), now_ms);
            state.total = state.taken;
            state.ring.push(slot);
        }
        self.end.store(state.next, Ordering::Release);
        Ok(Taken { base, end: state.next, duplicate: false, ticket: None })
    }

    /// Drops the oldest batches of a memory stream until the new ones fit, but none that a subscriber holds
    /// who may lose nothing. Takes the bytes from the pool.
    fn make_room(&self, state: &mut State, bytes: usize) -> Result<(), PublishError> {
        let keep = state.keep.bytes.max(bytes);
        loop {
            let fits = state.ring.bytes() + bytes <= keep;
            if fits && self.room.memory.try_take(bytes) {
                return Ok(());
            }
            match state.ring.front().map(|slot| slot.entry.end) {
                Some(end) if state.readers.lets_go(end) => self.drop_oldest(state),
                Some(_) => return Err(PublishError::Overloaded { retry_after_ms: RETRY_HELD_MS }),
                None => return Err(PublishError::Overloaded { retry_after_ms: RETRY_PROCESS_MS }),
            }
        }
    }

    /// Drops the oldest batch of a memory stream for good.
    pub(super) fn drop_oldest(&self, state: &mut State) {
        if let Some(slot) = state.ring.pop() {
            self.give_back(slot.cost());
            self.start.store(state.ring.from(), Ordering::Release);
        }
    }

    fn append(
        &self,
        state: &mut State,
        log: &ShardLog,
        owned: SmallVec<[Owned; 1]>,
        now_ms: i64,
    ) -> Result<Taken, PublishError> {
        let base = state.next;
        let mut ticket = None;
        for (index, batch) in owned.into_iter().enumerate() {
            let (claim, span) = (batch.claim, batch.span);
            let slot = batch.stamped(state.next, log.epoch(), now_ms, state.taken);
            let appended = log.append(slot.entry.bytes.clone(), span);
            // Only a log that closes or fails takes the first and not the second: what becomes of it is
            // unknown.
            let appended =
                appended.map_err(|error| if index == 0 { refused(error) } else { PublishError::Failed })?;
            assert_eq!(appended.position.get(), state.next, "nobody else appends to a shard's log");
            ticket = Some(appended);
            state.count_in(&slot, claim.as_ref(), now_ms);
            state.pending.push_back(slot);
        }
        Ok(Taken { base, end: state.next, duplicate: false, ticket })
    }
}

fn refused(error: AppendError) -> PublishError {
    match error {
        AppendError::Overloaded { .. } => PublishError::Overloaded { retry_after_ms: RETRY_PROCESS_MS },
        AppendError::NoSpace => PublishError::NoSpace,
        AppendError::TooLarge { bytes, limit_bytes } => PublishError::TooLarge { bytes, limit: limit_bytes },
        AppendError::Closed => PublishError::ShuttingDown,
        _ => PublishError::Failed,
    }
}

impl State {
    /// A batch gets its offsets.
    fn count_in(&mut self, slot: &Slot, claim: Option<&Claim>, now_ms: i64) {
        self.next = slot.entry.end;
        self.taken = slot.after();
        self.figures.batches_in += 1;
        self.figures.records_in += slot.entry.end - slot.entry.base;
        self.figures.bytes_in += slot.entry.bytes.len() as u64;
        if let Some(claim) = claim {
            self.producers.note(claim, slot.entry.base, now_ms);
        }
    }

    pub(super) fn count_rejected(&mut self, error: &PublishError) {
        let rejected = &mut self.figures.rejected;
        let counter = match error {
            PublishError::Overloaded { retry_after_ms: RETRY_HELD_MS } => &mut rejected.held,
            PublishError::Overloaded { .. } => &mut rejected.overloaded,
            PublishError::TooLarge { .. } | PublishError::Invalid(_) => &mut rejected.too_large,
            PublishError::OutOfSequence { .. } => &mut rejected.out_of_sequence,
            PublishError::Fenced { .. } => &mut rejected.fenced,
            PublishError::UnknownProducer => &mut rejected.unknown_producer,
            PublishError::NoSpace => &mut rejected.no_space,
            PublishError::ShuttingDown => &mut rejected.shutting_down,
            PublishError::Deleted | PublishError::Failed => &mut rejected.gone,
        };
        *counter += 1;
    }
}
