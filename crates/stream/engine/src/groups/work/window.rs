//! What a group knows of one shard: which offsets are done, leased, waiting or to be set aside. Pure; times
//! come in.
//!
//! ```text
//!            committed                                                   next
//!   done ──────┤ leased │ waiting │ done │ leased │ set aside │ done │ ... ├── not yet delivered
//! ```
//!
//! The offsets between the first that is not done and the next to be delivered are covered by ranges without
//! gap or overlap; a range has one state. Done ranges melt together, and leave at the front: that is the
//! committed offset. So it never passes a record that is not done, and the memory is that of the ranges, not
//! of the records.

use std::collections::{BTreeMap, BTreeSet};

use crate::groups::limits::{WINDOW_OFFSETS_MAX, WINDOW_RANGES_MAX};

/// Why a record is set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Its last lease ran out.
    Timeout,
    /// It was given back for the last time.
    Refused,
    /// The member that held it last was lost.
    MemberLost,
}

impl Reason {
    pub(super) fn name(self) -> &'static str {
        match self {
            Reason::Timeout => "ack-timeout",
            Reason::Refused => "nack",
            Reason::MemberLost => "member-lost",
        }
    }
}

/// What becomes of the records of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A member has them until then.
    Leased { member: u64, until: u64 },
    /// They are delivered again from then on.
    Waiting { due: u64 },
    /// They were delivered too often.
    Dead { reason: Reason },
    /// They are on their way to the dead-letter stream.
    Leaving,
    /// Nothing more.
    Done,
}

/// A range of offsets in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) end: u64,
    /// How often it was delivered.
    pub(super) attempt: u16,
    pub(super) state: State,
}

/// What a settlement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) settled: u64,
    pub(super) unknown: u64,
}

/// Who takes records, when, and until when it holds them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    pub(super) member: u64,
    pub(super) until: u64,
    pub(super) now: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Window {
    ranges: BTreeMap<u64, Range>,
    base: u64,
    next: u64,
    max_deliveries: u16,
    leases: BTreeSet<(u64, u64)>,
    waits: BTreeSet<(u64, u64)>,
    held: BTreeSet<(u64, u64)>,
    dead: BTreeSet<u64>,
    leased: u64,
    waiting: u64,
}

impl Window {
    pub(super) fn new(base: u64, max_deliveries: u16) -> Self {
        Window {
            ranges: BTreeMap::new(),
            base,
            next: base,
            max_deliveries,
            leases: BTreeSet::new(),
            waits: BTreeSet::new(),
            held: BTreeSet::new(),
            dead: BTreeSet::new(),
            leased: 0,
            waiting: 0,
        }
    }

    /// The committed offset: everything before it is done.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The next offset that nobody has had.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Records that members hold.
    pub(super) fn leased(&self) -> u64 {
        self.leased
    }

    /// Records that wait to be delivered again.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(super) fn set_max_deliveries(&mut self, max_deliveries: u16) {
        self.max_deliveries = max_deliveries;
    }

    /// Everything that was delivered is done.
    pub(super) fn is_clean(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many more offsets may be handed out.
    pub(super) fn room(&self) -> u64 {
        match self.ranges.len() < WINDOW_RANGES_MAX {
            true => (self.base + WINDOW_OFFSETS_MAX).saturating_sub(self.next),
            false => 0,
        }
    }

    fn insert(&mut self, start: u64, range: Range) {
        let len = range.end - start;
        match range.state {
            State::Leased { member, until } => {
                self.leases.insert((until, start));
                self.held.insert((member, start));
                self.leased += len;
            }
            State::Waiting { due } => {
                self.waits.insert((due, start));
                self.waiting += len;
            }
            State::Dead { .. } => _ = self.dead.insert(start),
            State::Leaving => {}
            State::Done => return self.insert_done(start, range.end),
        }
        self.ranges.insert(start, range);
    }

    /// Melts together with done neighbours, or with what is done at the front.
    fn insert_done(&mut self, mut start: u64, mut end: u64) {
        if let Some((&before, range)) = self.ranges.range(..start).next_back()
            && range.state == State::Done
            && range.end == start
        {
            start = before;
        }
        if let Some(range) = self.ranges.get(&end).filter(|range| range.state == State::Done) {
            let after = end;
            end = range.end;
            self.ranges.remove(&after);
        }
        self.ranges.insert(start, Range { end, attempt: 0, state: State::Done });
        if start == self.base {
            self.ranges.remove(&start);
            self.base = end;
        }
    }

    fn remove(&mut self, start: u64) -> Option<Range> {
        let range = self.ranges.remove(&start)?;
        let len = range.end - start;
        match range.state {
            State::Leased { member, until } => {
                self.leases.remove(&(until, start));
                self.held.remove(&(member, start));
                self.leased -= len;
            }
            State::Waiting { due } => {
                self.waits.remove(&(due, start));
                self.waiting -= len;
            }
            State::Dead { .. } => _ = self.dead.remove(&start),
            State::Leaving | State::Done => {}
        }
        Some(range)
    }

    fn change(&mut self, start: u64, to: impl FnOnce(Range) -> State) {
        if let Some(range) = self.remove(start) {
            self.insert(start, Range { state: to(range), ..range });
        }
    }

    /// Makes `at` the beginning of a range, if it lies within one.
    fn cut(&mut self, at: u64) {
        let Some((&start, range)) = self.ranges.range(..at).next_back() else { return };
        if range.end <= at || range.state == State::Done {
            return;
        }
        if let Some(range) = self.remove(start) {
            self.insert(start, Range { end: at, ..range });
            self.insert(at, range);
        }
    }

    /// Hands out the next offsets for the first time.
    pub(super) fn lease_new(&mut self, end: u64, member: u64, until: u64) {
        let start = self.next;
        debug_assert!(start < end);
        self.next = end;
        self.insert(start, Range { end, attempt: 1, state: State::Leased { member, until } });
    }

    /// What was not delivered yet up to `to` is not there: nobody needs to do it.
    pub(super) fn skip_to(&mut self, to: u64) {
        if to > self.next {
            let start = std::mem::replace(&mut self.next, to);
            self.insert_done(start, to);
        }
    }

    /// What lies before `to` is gone from the shard. What a member holds of it may still be acknowledged; if
    /// it is not, it is lost later. Answers how many offsets are lost now.
    pub(super) fn lose_before(&mut self, to: u64) -> u64 {
        let mut lost = 0;
        let to_cut = to.min(self.next);
        self.cut(to_cut);
        let starts: Vec<u64> = self.ranges.range(..to_cut).map(|(start, _)| *start).collect();
        for start in starts {
            if let Some(range) = self.ranges.get(&start)
                && matches!(range.state, State::Waiting { .. } | State::Dead { .. })
            {
                lost += range.end - start;
                self.change(start, |_| State::Done);
            }
        }
        lost += to.saturating_sub(self.next);
        self.skip_to(to);
        lost
    }

    /// What waits from `start` to before `end` is not in the shard any more, compacted away: it is done.
    pub(super) fn vanish(&mut self, start: u64, end: u64) {
        self.cut(start);
        self.cut(end);
        let inside = self.ranges.range(start..end.max(start));
        let waiting = inside.filter(|(_, range)| matches!(range.state, State::Waiting { .. }));
        let starts: Vec<u64> = waiting.map(|(start, _)| *start).collect();
        starts.into_iter().for_each(|start| self.change(start, |_| State::Done));
    }

    /// The first range that waits to be delivered again and may be.
    pub(super) fn due(&self, now: u64) -> Option<(u64, Range)> {
        let (due, start) = self.waits.first()?;
        let range = self.ranges.get(start)?;
        (*due <= now).then_some((*start, *range))
    }

    /// When the next range is due that waits.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.waits.first().map(|(due, _)| *due)
    }

    /// Hands out what waits from `start` on again, and with it the ranges that follow at once, are due, and
    /// were delivered as often; not beyond `limit`. Answers where that ends, and how often it was delivered
    /// with this time.
    pub(super) fn lease_again(&mut self, start: u64, limit: u64, taker: Taker) -> Option<(u64, u16)> {
        self.cut(limit);
        let mut end = start;
        let mut attempt = None;
        while end < limit
            && let Some(range) = self.ranges.get(&end)
            && matches!(range.state, State::Waiting { due } if due <= taker.now)
            && attempt.is_none_or(|attempt| attempt == range.attempt)
        {
            attempt = Some(range.attempt);
            let after = range.end;
            self.remove(end);
            end = after;
        }
        let attempt = attempt?.saturating_add(1);
        let Taker { member, until, .. } = taker;
        self.insert(start, Range { end, attempt, state: State::Leased { member, until } });
        Some((end, attempt))
    }

    /// Settles what the member holds of the offsets from `first` to before `end`.
    fn settle(&mut self, member: u64, first: u64, end: u64, mut to: impl FnMut(Range) -> State) -> Count {
        let mut count = Count { settled: 0, unknown: end.saturating_sub(first) };
        if self.ranges.len() < 2 * WINDOW_RANGES_MAX {
            self.cut(first);
            self.cut(end);
        }
        let held =
            |range: &Range| matches!(range.state, State::Leased { member: holder, .. } if holder == member);
        let inside = self.ranges.range(first..end.max(first));
        let starts: Vec<u64> =
            inside.filter(|(_, range)| range.end <= end && held(range)).map(|(start, _)| *start).collect();
        for start in starts {
            let Some(range) = self.remove(start) else { continue };
            count.settled += range.end - start;
            self.insert(start, Range { state: to(range), ..range });
        }
        count.unknown -= count.settled;
        count
    }

    /// The member has done them.
    pub(super) fn ack(&mut self, member: u64, first: u64, end: u64) -> Count {
        self.settle(member, first, end, |_| State::Done)
    }

    /// The member gives them back.
    pub(super) fn nack(&mut self, member: u64, first: u64, end: u64, due: u64) -> Count {
        let max = self.max_deliveries;
        self.settle(member, first, end, |range| failed(range, max, due, Reason::Refused))
    }

    /// The member needs more time.
    pub(super) fn extend(&mut self, member: u64, first: u64, end: u64, until: u64) -> Count {
        self.settle(member, first, end, |_| State::Leased { member, until })
    }

    /// The member is gone: what it held is delivered again at once. That it was lost counts as a delivery
    /// that failed; that it left does not. Answers how many records it held.
    pub(super) fn release(&mut self, member: u64, now: u64, lost: bool) -> u64 {
        let held = self.held.range((member, 0)..=(member, u64::MAX));
        let starts: Vec<u64> = held.map(|(_, start)| *start).collect();
        let max = self.max_deliveries;
        let mut count = 0;
        for start in starts {
            let Some(range) = self.remove(start) else { continue };
            count += range.end - start;
            let range = match lost {
                true => Range { state: failed(range, max, now, Reason::MemberLost), ..range },
                false => {
                    let attempt = range.attempt.saturating_sub(1);
                    Range { attempt, state: State::Waiting { due: now }, ..range }
                }
            };
            self.insert(start, range);
        }
        count
    }

    /// Ends leases that have run out, at most `max`. Answers what was held by whom.
    pub(super) fn expire(&mut self, now: u64, due: u64, max: usize) -> Vec<(u64, u64)> {
        let mut ended = Vec::new();
        while ended.len() < max
            && let Some(&(until, start)) = self.leases.first()
            && until <= now
        {
            let Some(range) = self.remove(start) else { break };
            if let State::Leased { member, .. } = range.state {
                ended.push((member, range.end - start));
            }
            let state = failed(range, self.max_deliveries, due, Reason::Timeout);
            self.insert(start, Range { state, ..range });
        }
        ended
    }

    /// Ranges that were delivered too often, at most `max`; they are on their way out from now on.
    pub(super) fn take_dead(&mut self, max: usize) -> Vec<(u64, Range)> {
        let starts: Vec<u64> = self.dead.iter().take(max).copied().collect();
        let taken = starts.iter().filter_map(|start| Some((*start, *self.ranges.get(start)?)));
        let taken: Vec<(u64, Range)> = taken.collect();
        starts.into_iter().for_each(|start| self.change(start, |_| State::Leaving));
        taken
    }

    pub(super) fn has_dead(&self) -> bool {
        !self.dead.is_empty()
    }

    /// What was on its way out has arrived, or is to be tried again.
    pub(super) fn left(&mut self, start: u64, end: u64, retry: Option<Reason>) {
        self.cut(start);
        self.cut(end);
        let inside = self.ranges.range(start..end).filter(|(_, range)| range.state == State::Leaving);
        let starts: Vec<u64> = inside.map(|(start, _)| *start).collect();
        for start in starts {
            self.change(start, |_| match retry {
                Some(reason) => State::Dead { reason },
                None => State::Done,
            });
        }
    }

    #[cfg(test)]
    pub(super) fn ranges(&self) -> Vec<(u64, Range)> {
        self.ranges.iter().map(|(start, range)| (*start, *range)).collect()
    }

    /// What the module promises.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut at = self.base;
        let mut before = State::Done;
        for (&start, range) in &self.ranges {
            assert_eq!(start, at, "gap or overlap");
            assert!(range.end > start);
            assert!(!(before == State::Done && range.state == State::Done), "done ranges melt together");
            (at, before) = (range.end, range.state);
        }
        assert_eq!(at, self.next);
        let of = |wanted: fn(&State) -> bool| {
            self.ranges
                .iter()
                .filter(move |(_, range)| wanted(&range.state))
                .map(|(start, range)| range.end - start)
        };
        assert_eq!(self.leased, of(|state| matches!(state, State::Leased { .. })).sum::<u64>());
        assert_eq!(self.waiting, of(|state| matches!(state, State::Waiting { .. })).sum::<u64>());
        assert_eq!(self.leases.len(), of(|state| matches!(state, State::Leased { .. })).count());
        assert_eq!(self.held.len(), self.leases.len());
        assert_eq!(self.waits.len(), of(|state| matches!(state, State::Waiting { .. })).count());
        assert_eq!(self.dead.len(), of(|state| matches!(state, State::Dead { .. })).count());
    }
}

/// A delivery failed: the range waits, or was delivered too often.
fn failed(range: Range, max_deliveries: u16, due: u64, reason: Reason) -> State {
    match max_deliveries > 0 && range.attempt >= max_deliveries {
        true => State::Dead { reason },
        false => State::Waiting { due },
    }
}

#[cfg(test)]
mod tests;
