//! What the log's committer tells a shard: these offsets count, or those never will.

use std::ops::Range;
use std::sync::atomic::Ordering;

use trifid_base_log::{Position, Sink};
use trifid_stream_model::batch::BatchHeader;

use super::ring::Slot;
use super::waiters::wake;
use super::{Core, State};
use crate::checked::claim;
use crate::producers::Claim;

impl Sink for Core {
    /// Moves what counts now to where readers see it, and wakes those who wait for it; then the log resolves
    /// the acknowledgements.
    fn durable(&self, positions: Range<Position>) {
        let end = positions.end.get();
        let wakers = {
            let mut state = self.state.lock();
            self.publish_pending(&mut state, end);
            state.upkeep.was_full = false;
            self.warm.store(true, Ordering::Relaxed);
            self.end.store(end, Ordering::Release);
            state.waiters.take(end)
        };
        wake(wakers);
    }

    /// The full disk refused everything from here on. The offsets were given out and stay empty.
    fn refused(&self, positions: Range<Position>) {
        let from = positions.start.get();
        let mut state = self.state.lock();
        let State { pending, producers, .. } = &mut *state;
        let kept = pending.partition_point(|slot| slot.entry.base < from);
        producers.withdraw(pending.range(kept..).rev().filter_map(claimed));
        pending.truncate(kept);
        state.taken = state.pending.back().map_or(state.total, Slot::after);
        state.upkeep.was_full = true;
    }
}

impl Core {
    fn publish_pending(&self, state: &mut State, end: u64) {
        while let Some(slot) = state.pending.pop_front_if(|slot| slot.entry.end <= end) {
            state.total = slot.after();
            self.room.tails.take(slot.cost());
            state.ring.push(slot);
        }
        // The newest batch stays if it can: who waits for it is about to come. Beyond the bound of all shards each
        // gives of its own, until the next upkeep takes from those that nobody reads.
        let tails = &self.room.tails;
        while match state.ring.len() {
            0 => false,
            1 => tails.is_far_over(),
            _ => state.ring.bytes() > state.keep.bytes || tails.is_over(),
        } {
            if let Some(slot) = state.ring.pop() {
                self.give_back(slot.cost());
            }
        }
        if state.pending.is_empty() && state.pending.capacity() > 64 {
            state.pending.shrink_to(16);
        }
    }
}

impl State {
    /// What is appended and does not count yet, newest first.
    pub(super) fn pending_claims(&self) -> impl Iterator<Item = (Claim, u64)> {
        self.pending.iter().rev().filter_map(claimed)
    }
}

/// What a batch says of its producer. It is read again where that is seldom needed, and not kept with every
/// batch.
fn claimed(slot: &Slot) -> Option<(Claim, u64)> {
    let header = BatchHeader::parse(&slot.entry.bytes).ok()?;
    Some((claim(&header)?, slot.entry.base))
}
