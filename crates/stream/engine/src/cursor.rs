//! One subscriber of one shard: a position, a rule, and no queue.
//!
//! A cursor that stands in the ring clones references; one that stands before it reads pages of the log; one
//! at the head waits in a slot of the shard. Going from one to the other needs no hand-over, because all
//! three are the same position: so there is no gap and no duplicate between backlog and live, and an idle
//! subscriber costs the cursor, two slots of the shard (some 130 bytes together) and nothing else.
//!
//! The rule says what happens to a subscriber that is slower than the shard grows, by its lag in bytes behind
//! the readable end:
//!
//! - [`Policy::Block`] never skips. A durable stream serves it from the disk; of a memory stream nothing is
//!   dropped that it has not had, and publishers are refused as overloaded instead.
//! - [`Policy::DropOld`] jumps forward as soon as the lag is above the budget, to where it is within it.
//! - [`Policy::DropNew`] gets what lay within the budget when the lag rose above it, and then jumps to the
//!   end.
//!
//! The rules begin when the cursor has been at the end once (or began there): reading a backlog is not
//! falling behind. Every jump, and every record that retention took before the subscriber came to it, is told
//! as [`Step::Lost`], exactly once and in its place.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::FetchError;
use crate::shard::{Core, Fetched, Shard, State};

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first record that is there.
    Earliest,
    /// At the end: what comes from now on.
    Latest,
    /// At this offset.
    Offset(u64),
    /// At the first record whose time is at least this, in milliseconds; at the end if there is none.
    Time(i64),
}

/// What happens to a subscriber that is too slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It loses nothing.
    #[default]
    Block,
    /// It loses the newest.
    DropNew,
    /// It loses the oldest.
    DropOld,
}

/// What a subscriber gets next.
#[derive(Debug)]
pub enum Step {
    /// Batches. The first may begin before the cursor's first offset.
    Batches(Fetched),
    /// Older batches: call [`Cursor::read_page`] where waiting for the disk is fine, then poll again.
    NeedsDisk,
    /// The records in between are lost to this subscriber.
    Lost {
        /// The first lost offset.
        from: u64,
        /// The next offset that it gets.
        to: u64,
    },
    /// The stream was deleted.
    Gone,
    /// Nothing can be read here. The cursor stays where it is.
    Error(FetchError),
}

/// One subscriber of one shard.
pub struct Cursor {
    shard: Arc<Shard>,
    place: Place,
    waiter: Option<usize>,
}

/// Where a subscriber stands, and its rule.
struct Place {
    next: u64,
    /// Bytes that the shard had published up to `next`.
    seen: u64,
    budget: u64,
    /// Under [`Policy::DropNew`], while the lag was above the budget: what may still be delivered before the
    /// jump.
    left: Option<u64>,
    policy: Policy,
    /// It has been at the end.
    is_live: bool,
    reader: usize,
}

impl Shard {
    /// Begins a subscription. `budget_bytes` is the lag that the policy allows; of the dropping ones only
    /// what is in memory can be kept of it. May wait for the disk when it begins at a time.
    pub fn subscribe(
        self: &Arc<Self>,
        start: Start,
        policy: Policy,
        budget_bytes: usize,
    ) -> Result<Cursor, FetchError> {
        let at = match start {
            Start::Time(ms) => self.offset_for_time(ms)?.map(|(offset, _)| offset),
            Start::Offset(offset) => Some(offset),
            Start::Earliest | Start::Latest => None,
        };
        let mut state = self.core.state.lock();
        if state.is_gone() {
            return Err(FetchError::Gone);
        }
        let (first, end) = (self.core.start(), self.core.end());
        let next = match (start, at) {
            (Start::Earliest, _) => first,
            // What was found by its time may be gone by now.
            (Start::Time(_), Some(at)) => at.clamp(first, end),
            (_, Some(at)) if at < first => return Err(FetchError::TooOld { first }),
            (_, Some(at)) if at > end => return Err(FetchError::InFuture { end }),
            (_, Some(at)) => at,
            (_, None) => end,
        };
        let holds = policy == Policy::Block && !self.is_durable();
        let reader = state.readers.insert(next, holds);
        let seen = state.total;
        drop(state);
        let (budget, is_live) = ((budget_bytes as u64).max(1), next == end);
        let place = Place { next, seen, budget, left: None, policy, is_live, reader };
        Ok(Cursor { shard: self.clone(), place, waiter: None })
    }
}

impl Cursor {
    /// What comes next: about `max_bytes` of batches, at least one. Pending, it wakes the task when there is
    /// something.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, max_bytes: usize) -> Poll<Step> {
        let mut state = self.shard.core.state.lock();
        match self.place.step(&self.shard.core, &mut state, max_bytes) {
            Some(step) => Poll::Ready(step),
            None => {
                let replaced = state.wait(&mut self.waiter, self.place.next, cx);
                drop(state);
                drop(replaced);
                Poll::Pending
            }
        }
    }

    /// What is there now; none if nothing is.
    pub fn try_next(&mut self, max_bytes: usize) -> Option<Step> {
        let mut state = self.shard.core.state.lock();
        self.place.step(&self.shard.core, &mut state, max_bytes)
    }

    /// Reads from the disk what [`Step::NeedsDisk`] spoke of.
    pub fn read_page(&mut self, max_bytes: usize) -> Result<Step, FetchError> {
        let place = &mut self.place;
        let page = self.shard.read_page(place.next, place.allowed(max_bytes));
        let mut state = self.shard.core.state.lock();
        match page {
            // A page has at least one batch, and that one may be too large for what is left.
            Ok(fetched)
                if place.left.is_some_and(|left| left < place.budget && fetched.bytes() as u64 > left) =>
            {
                let end = self.shard.core.end();
                Ok(place.jump_to(end, &mut state))
            }
            Ok(fetched) => {
                let seen = place.seen.saturating_add(fetched.bytes() as u64).min(state.total);
                place.pass(&mut state, &fetched, seen);
                Ok(Step::Batches(fetched))
            }
            Err(FetchError::TooOld { first }) if first > place.next => {
                let seen = place.seen;
                Ok(place.lose(&mut state, first, seen, false))
            }
            Err(FetchError::Gone) => Ok(Step::Gone),
            Err(error) => Err(error),
        }
    }

    /// The next offset that it gets.
    pub fn position(&self) -> u64 {
        self.place.next
    }

    /// How many records it is behind the readable end.
    pub fn lag(&self) -> u64 {
        self.shard.end_offset().saturating_sub(self.place.next)
    }

    /// The shard that it reads.
    pub fn shard(&self) -> &Arc<Shard> {
        &self.shard
    }

    /// Goes on at another offset, as if it had begun there.
    pub fn seek(&mut self, offset: u64) -> Result<(), FetchError> {
        let mut state = self.shard.core.state.lock();
        let (first, end) = (self.shard.core.start(), self.shard.core.end());
        if offset < first {
            return Err(FetchError::TooOld { first });
        }
        if offset > end {
            return Err(FetchError::InFuture { end });
        }
        let place = &mut self.place;
        (place.next, place.seen, place.left, place.is_live) = (offset, state.total, None, offset == end);
        state.readers.seek(place.reader, offset);
        Ok(())
    }
}

impl Place {
    fn step(&mut self, core: &Core, state: &mut State, max_bytes: usize) -> Option<Step> {
        if state.is_gone() {
            return Some(Step::Gone);
        }
        let (start, end) = (core.start(), core.end());
        if self.next < start {
            let seen = state.total - state.ring.bytes_after(start);
            return Some(self.lose(state, start, seen, false));
        }
        if self.next >= end {
            self.is_live = true;
            self.seen = state.total;
            self.left = None;
            return None;
        }
        if let Some(lost) = self.obey(state, end) {
            return Some(lost);
        }
        if self.next < state.ring.from() {
            return Some(Step::NeedsDisk);
        }
        let (fetched, seen) = core.collect(state, self.next, self.allowed(max_bytes));
        self.pass(state, &fetched, seen);
        Some(Step::Batches(fetched))
    }

    fn allowed(&self, max_bytes: usize) -> usize {
        let left = self.left.and_then(|left| usize::try_from(left).ok());
        left.unwrap_or(usize::MAX).min(max_bytes)
    }

    /// Applies the policy to the lag.
    fn obey(&mut self, state: &mut State, end: u64) -> Option<Step> {
        if !self.is_live || self.policy == Policy::Block {
            return None;
        }
        let is_over = state.total.saturating_sub(self.seen) > self.budget;
        match self.policy {
            Policy::DropOld if is_over => {
                let kept = state.ring.within(state.total, self.budget);
                let (to, seen) = kept.map_or((end, state.total), |slot| (slot.entry.base, slot.before));
                (to > self.next).then(|| self.lose(state, to, seen, true))
            }
            Policy::DropNew => {
                if is_over && self.left.is_none() {
                    self.left = Some(self.budget);
                }
                let left = self.left?;
                // What lies on the disk is read within what is left.
                let fits = self.next < state.ring.from()
                    || state.ring.size_at(self.next).is_none_or(|size| size as u64 <= left);
                // A single batch above the budget is delivered all the same: otherwise nothing ever would be.
                if left > 0 && (fits || left == self.budget) {
                    return None;
                }
                Some(self.jump_to(end, state))
            }
            Policy::Block | Policy::DropOld => None,
        }
    }

    fn jump_to(&mut self, end: u64, state: &mut State) -> Step {
        self.left = None;
        let seen = state.total;
        self.lose(state, end, seen, true)
    }

    fn lose(&mut self, state: &mut State, to: u64, seen: u64, by_policy: bool) -> Step {
        let from = self.next;
        state.count_lost(to - from, by_policy);
        self.next = to;
        self.seen = seen;
        state.readers.advance(self.reader, to);
        Step::Lost { from, to }
    }

    fn pass(&mut self, state: &mut State, fetched: &Fetched, seen: u64) {
        self.next = fetched.next.max(self.next);
        self.seen = seen;
        self.left = self.left.map(|left| left.saturating_sub(fetched.bytes() as u64));
        state.readers.advance(self.reader, self.next);
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let mut state = self.shard.core.state.lock();
        state.readers.remove(self.place.reader);
        let waker = state.stop_waiting(self.waiter);
        drop(state);
        drop(waker);
    }
}

#[cfg(test)]
mod tests;
