//! What has been appended and not yet written, in order, bounded.
//!
//! Everything here happens under the log's one short lock: a position is assigned, a small payload is copied,
//! and the lock is free again. The order of positions is the order in which the lock was taken, so a caller
//! who holds a lock of its own while appending gets positions in the order of its own changes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::batch::{Batch, Prepared};
use crate::error::{AppendError, CommitError};
use crate::handoff::Rouse;
use crate::limits::{BATCH_BYTES, SPARE_CHUNKS_MAX};
use crate::outcome::Outcome;
use crate::position::{LogId, Position};

/// What an append got, and whether the committer should be told.
pub(crate) struct Admitted {
    pub(crate) position: Position,
    pub(crate) outcome: Arc<Outcome>,
    pub(crate) rouse: Rouse,
}

/// Why the queue takes nothing, if so. Later variants win over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gate {
    Open,
    Closed,
    Failed,
}

pub(crate) struct Queue {
    log: LogId,
    gate: Gate,
    /// The disk was full; what was under way is being refused.
    refusing: bool,
    next: Position,
    /// Positions up to `next` that were refused and about which the log on disk says nothing yet.
    void_from: Option<Position>,
    /// All refused positions since the log was opened, in order. Neighbours are joined, so a disk that stays
    /// full adds one.
    refused: Vec<Range<Position>>,
    /// The batch that is being written.
    flying: Option<(Range<Position>, Arc<Outcome>)>,
    batches: VecDeque<Batch>,
    spare: Vec<Vec<u8>>,
    /// Queued or being written.
    inflight_bytes: usize,
    inflight_bytes_max: usize,
    frames: usize,
    /// The committer lingers until so many frames are queued.
    lingers_for: Option<usize>,
}

impl Queue {
    pub(crate) fn new(log: LogId, next: Position, inflight_bytes_max: usize) -> Self {
        Queue {
            log,
            gate: Gate::Open,
            refusing: false,
            next,
            void_from: None,
            refused: Vec::new(),
            flying: None,
            batches: VecDeque::new(),
            spare: Vec::new(),
            inflight_bytes: 0,
            inflight_bytes_max,
            frames: 0,
            lingers_for: None,
        }
    }

    /// Gives the payload its position and takes it, or refuses it.
    pub(crate) fn push(&mut self, payload: Prepared<'_>) -> Result<Admitted, AppendError> {
        self.admit(payload.frame_len())?;
        self.push_admitted(payload)
    }

    /// The same, however much waits.
    pub(crate) fn push_admitted(&mut self, payload: Prepared<'_>) -> Result<Admitted, AppendError> {
        self.check_gate()?;
        let position = self.next;
        let outcome = self.append(payload);
        self.frames += 1;
        Ok(Admitted { position, outcome, rouse: self.rouse() })
    }

    fn check_gate(&self) -> Result<(), AppendError> {
        match self.gate {
            Gate::Failed => Err(AppendError::Failed),
            Gate::Closed => Err(AppendError::Closed),
            Gate::Open if self.refusing => Err(AppendError::NoSpace),
            Gate::Open => Ok(()),
        }
    }

    /// Whether a frame of so many bytes would be taken.
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), AppendError> {
        self.check_gate()?;
        // One frame is always let through when nothing waits, however small the bound.
        if self.inflight_bytes > 0 && self.inflight_bytes + bytes > self.inflight_bytes_max {
            return Err(AppendError::Overloaded {
                inflight_bytes: self.inflight_bytes,
                limit_bytes: self.inflight_bytes_max,
            });
        }
        Ok(())
    }

    fn append(&mut self, payload: Prepared<'_>) -> Arc<Outcome> {
        let full = |batch: &Batch| batch.bytes + payload.frame_len() > BATCH_BYTES && batch.bytes > 0;
        if self.batches.back().is_none_or(full) {
            let batch = match self.void_from.take() {
                None => Batch::new(self.next),
                Some(from) => Batch::after_void(self.log, from, self.next, &mut self.spare),
            };
            self.inflight_bytes += batch.bytes;
            self.batches.push_back(batch);
        }
        let last = self.batches.len() - 1;
        let batch = &mut self.batches[last];
        self.inflight_bytes += payload.frame_len();
        batch.push(self.log, payload, &mut self.spare);
        self.next = batch.end;
        batch.outcome.clone()
    }

    fn rouse(&self) -> Rouse {
        if self.frames == 1 {
            Rouse::Ready
        } else if self.lingers_for == Some(self.frames) {
            Rouse::Enough
        } else {
            Rouse::No
        }
    }

    /// The next batch to write.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        self.lingers_for = None;
        let batch = self.batches.pop_front()?;
        self.frames = self.batches.iter().map(Batch::frames).sum();
        self.flying = Some((batch.positions(), batch.outcome.clone()));
        Some(batch)
    }

    /// A taken batch is on disk; its buffers come back. Answers whether more is queued.
    pub(crate) fn committed(&mut self, batch: Batch) -> bool {
        // What was drained meanwhile is not counted any more.
        self.inflight_bytes = self.inflight_bytes.saturating_sub(batch.bytes);
        self.flying = None;
        let room = SPARE_CHUNKS_MAX.saturating_sub(self.spare.len());
        self.spare.extend(batch.into_spare().take(room));
        !self.batches.is_empty()
    }

    /// Frames queued; asks to be told when there are `enough` unless they are there.
    pub(crate) fn linger_for(&mut self, enough: usize) -> bool {
        let waits = self.frames < enough && self.gate == Gate::Open;
        self.lingers_for = waits.then_some(enough);
        waits
    }

    /// The taken batch did not fit on the disk: it and all that follows is refused. Nothing is let in until
    /// [`reopen`](Self::reopen).
    pub(crate) fn refuse_from(&mut self, first: Position) -> (Range<Position>, Vec<Arc<Outcome>>) {
        self.refusing = true;
        let refused = first..self.next;
        self.void_from = Some(first);
        match self.refused.last_mut() {
            Some(last) if last.end >= first => last.end = refused.end,
            _ => self.refused.push(refused.clone()),
        }
        (refused, self.drain())
    }

    /// What was refused is undone.
    pub(crate) fn reopen(&mut self) {
        self.refusing = false;
    }

    /// What will become, or became, of a position that was given out. Everything below `published` is decided.
    pub(crate) fn outcome(&self, position: Position, published: Position) -> Arc<Outcome> {
        let after = self.refused.partition_point(|range| range.end <= position);
        if self.refused.get(after).is_some_and(|range| range.start <= position) {
            return Outcome::already(Err(CommitError::NoSpace));
        }
        if position < published {
            return Outcome::already(Ok(()));
        }
        let flying = self.flying.iter().map(|(range, outcome)| (range.end, outcome));
        let queued = self.batches.iter().map(|batch| (batch.end, &batch.outcome));
        match flying.chain(queued).find(|(end, _)| position < *end) {
            Some((_, outcome)) => outcome.clone(),
            // Only a failed queue forgets what it gave out.
            None => Outcome::already(Err(CommitError::Failed)),
        }
    }

    /// Takes nothing any more; what is queued will still be written.
    pub(crate) fn close(&mut self) {
        self.gate = self.gate.max(Gate::Closed);
    }

    /// The disk failed.
    pub(crate) fn fail(&mut self) -> Vec<Arc<Outcome>> {
        self.gate = Gate::Failed;
        self.drain()
    }

    /// Lets go of what is queued.
    pub(crate) fn drain(&mut self) -> Vec<Arc<Outcome>> {
        self.frames = 0;
        self.inflight_bytes = 0;
        self.flying = None;
        self.batches.drain(..).map(|batch| batch.outcome).collect()
    }

    /// Whether nothing is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Gives the kept buffers back to the allocator.
    pub(crate) fn shed_spare(&mut self) {
        self.spare = Vec::new();
    }

    pub(crate) fn next(&self) -> Position {
        self.next
    }

    /// Frames queued.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    pub(crate) fn inflight_bytes(&self) -> usize {
        self.inflight_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue::new(LogId(1), Position::new(10), 1000)
    }

    fn push(queue: &mut Queue, bytes: usize, count: u32) -> Result<(u64, Rouse), AppendError> {
        let payload = vec![0; bytes];
        let admitted = queue.push(Prepared::new(&[&payload], count))?;
        Ok((admitted.position.get(), admitted.rouse))
    }

    #[test]
    fn positions_follow_and_only_the_first_append_rouses() {
        let mut queue = queue();
        assert_eq!(push(&mut queue, 8, 3), Ok((10, Rouse::Ready)));
        assert_eq!(push(&mut queue, 8, 1), Ok((13, Rouse::No)));
        let batch = queue.take().unwrap();
        assert_eq!((batch.positions(), batch.frames()), (Position::new(10)..Position::new(14), 2));
        assert_eq!(push(&mut queue, 8, 1), Ok((14, Rouse::Ready)));
        assert!(queue.committed(batch));
    }

    #[test]
    fn bytes_are_bounded_until_they_are_committed() {
        let mut queue = queue();
        push(&mut queue, 800, 1).unwrap();
        let refused = AppendError::Overloaded { inflight_bytes: 864, limit_bytes: 1000 };
        assert_eq!(push(&mut queue, 100, 1), Err(refused));
        let batch = queue.take().unwrap();
        assert_eq!(push(&mut queue, 100, 1), Err(refused));
        queue.committed(batch);
        assert_eq!(push(&mut queue, 2000, 1), Ok((11, Rouse::Ready)));
    }

    #[test]
    fn a_full_batch_is_followed_by_another() {
        let mut queue = Queue::new(LogId(1), Position::ZERO, usize::MAX);
        for _ in 0..3 {
            push(&mut queue, BATCH_BYTES / 2 - 100, 1).unwrap();
        }
        assert_eq!(queue.take().unwrap().positions(), Position::ZERO..Position::new(2));
        assert_eq!(queue.take().unwrap().positions(), Position::new(2)..Position::new(3));
        assert!(queue.take().is_none());
    }

    #[test]
    fn lingering_ends_at_the_wanted_count() {
        let mut queue = queue();
        push(&mut queue, 8, 1).unwrap();
        assert!(queue.linger_for(3));
        assert_eq!(push(&mut queue, 8, 1), Ok((11, Rouse::No)));
        assert_eq!(push(&mut queue, 8, 1), Ok((12, Rouse::Enough)));
        assert!(!queue.linger_for(3));
    }

    #[test]
    fn refused_positions_are_never_given_again() {
        let mut queue = queue();
        push(&mut queue, 8, 1).unwrap();
        let batch = queue.take().unwrap();
        push(&mut queue, 8, 1).unwrap();
        let (refused, outcomes) = queue.refuse_from(batch.first);
        assert_eq!((refused, outcomes.len()), (Position::new(10)..Position::new(12), 1));
        assert_eq!(push(&mut queue, 8, 1), Err(AppendError::NoSpace));
        queue.reopen();
        assert_eq!(push(&mut queue, 8, 1), Ok((12, Rouse::Ready)));
        let batch = queue.take().unwrap();
        assert_eq!((batch.positions(), batch.frames()), (Position::new(10)..Position::new(13), 2));
        // The disk is still full.
        assert_eq!(queue.refuse_from(batch.first).0, Position::new(10)..Position::new(13));
        assert_eq!(queue.refused, [Position::new(10)..Position::new(13)]);
        queue.reopen();
        push(&mut queue, 8, 1).unwrap();
        let batch = queue.take().unwrap();
        queue.committed(batch);
        let fate = |position| queue.outcome(Position::new(position), Position::new(14)).decided();
        let no_space = Some(Err(CommitError::NoSpace));
        assert_eq!([9, 10, 12, 13].map(fate), [Some(Ok(())), no_space, no_space, Some(Ok(()))]);
    }

    #[test]
    fn a_position_is_found_wherever_its_batch_is() {
        let mut queue = Queue::new(LogId(1), Position::ZERO, usize::MAX);
        for _ in 0..3 {
            push(&mut queue, BATCH_BYTES / 2 + 1, 1).unwrap();
        }
        let flying = queue.take().unwrap();
        let found = |position| queue.outcome(Position::new(position), Position::ZERO);
        assert!(Arc::ptr_eq(&found(0), &flying.outcome));
        let (second, third) = (found(1), found(2));
        assert!([&second, &third].iter().all(|outcome| outcome.decided().is_none()));
        assert!(!Arc::ptr_eq(&second, &third));
        queue.fail();
        let lost = queue.outcome(Position::new(2), Position::ZERO);
        assert_eq!(lost.decided(), Some(Err(CommitError::Failed)));
    }

    #[test]
    fn closed_keeps_what_is_queued_and_failed_does_not() {
        let mut queue = queue();
        push(&mut queue, 8, 1).unwrap();
        queue.close();
        assert_eq!(push(&mut queue, 8, 1), Err(AppendError::Closed));
        assert_eq!(queue.fail().len(), 1);
        queue.close();
        assert_eq!(push(&mut queue, 8, 1), Err(AppendError::Failed));
    }
}
