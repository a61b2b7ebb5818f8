//! A member of a native group: pulls, acknowledges, gives back, asks for time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use trifid_stream_model::frame::{Delivery, OffsetRange};

use super::super::error::GroupError;
use super::super::limits::LEASE_MS_MIN;
use super::super::shared::Shared;
use super::super::table::Cell;
use super::super::types::{GroupSettings, lease};
use super::{Work, place};
use crate::ack::Ack;

/// How often a blocking pull reads a page before it answers that there is nothing.
const PAGES_PER_PULL: usize = 64;

/// A member of a native group. It keeps the broker's logs open. Dropping it without [`leave`](Member::leave)
/// means that it was lost: what it held counts as a delivery that failed.
pub struct Member {
    shared: Arc<Shared>,
    cell: Arc<Cell>,
    work: Arc<Work>,
    id: u64,
}

/// What a pull has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// Leased records, at least one. Their streams are named by their place in the list that was joined.
    Deliveries(Vec<Delivery>),
    /// The next records are on the disk: call [`Member::pull_from_disk`] where waiting for it is fine.
    NeedsDisk,
}

/// What is to be done with records that a member holds.
#[derive(Clone, Copy)]
pub(super) enum Settlement {
    Ack,
    Nack { due: u64 },
    Extend { until: u64 },
}

/// What a settlement did.
#[derive(Debug)]
pub struct Settled {
    /// Records that it was carried out for.
    pub settled: u64,
    /// Records that were not leased to the member, or no longer.
    pub unknown: u64,
    /// Resolves when the committed offset that follows from it counts; at once if none does.
    pub ack: Ack,
}

impl Member {
    pub(super) fn new(shared: Arc<Shared>, cell: Arc<Cell>, work: Arc<Work>, id: u64) -> Self {
        Member { shared, cell, work, id }
    }

    /// Its number in the group.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What the group does: what its first member asked for.
    pub fn settings(&self) -> GroupSettings {
        self.work.settings()
    }

    /// Waits until there are records for the member: at most `max_records`, about `max_bytes` of batches and
    /// at least one. Dropping it takes nothing back that it has not answered.
    pub fn pull(&self, max_records: u32, max_bytes: usize) -> Pull<'_> {
        Pull { member: self, max_records: max_records.max(1), max_bytes, key: None }
    }

    /// Records that are there, read from the disk if need be; none if there are none.
    pub fn pull_from_disk(&self, max_records: u32, max_bytes: usize) -> Result<Vec<Delivery>, GroupError> {
        for _ in 0..PAGES_PER_PULL {
            let taken =
                self.work.take(&self.shared, &self.cell, self.id, max_records.max(1), max_bytes, 0)?;
            if !taken.deliveries.is_empty() || !taken.needs_disk {
                return Ok(taken.deliveries);
            }
            while let Some((place, shard, at)) = self.work.wanted(self.id) {
                self.work.turn_to(place, at, place::read(&shard, at))?;
            }
        }
        Ok(Vec::new())
    }

    /// The records are done.
    pub fn ack(&self, ranges: &[OffsetRange]) -> Result<Settled, GroupError> {
        self.settle(ranges, Settlement::Ack)
    }

    /// The records are to be delivered again, to whomever, after a while.
    pub fn nack(&self, ranges: &[OffsetRange], delay_ms: u32) -> Result<Settled, GroupError> {
        lease("delay_ms", delay_ms, 0)?;
        self.settle(ranges, Settlement::Nack { due: self.shared.now() + u64::from(delay_ms) })
    }

    /// The member needs the records for so long from now.
    pub fn extend(&self, ranges: &[OffsetRange], lease_ms: u32) -> Result<Settled, GroupError> {
        lease("lease_ms", lease_ms, LEASE_MS_MIN)?;
        self.settle(ranges, Settlement::Extend { until: self.shared.now() + u64::from(lease_ms) })
    }

    fn settle(&self, ranges: &[OffsetRange], how: Settlement) -> Result<Settled, GroupError> {
        self.work.settle(&self.shared, &self.cell, self.id, ranges, how)
    }

    /// Leaves in order: what it holds is delivered again at once, and as if it never had been.
    pub fn leave(self) {
        self.work.remove(&self.shared, &self.cell, self.id, false);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // After `leave` it is not there any more.
        self.work.remove(&self.shared, &self.cell, self.id, true);
    }
}

/// See [`Member::pull`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Pull<'a> {
    member: &'a Member,
    max_records: u32,
    max_bytes: usize,
    key: Option<usize>,
}

impl Pull<'_> {
    fn try_take(&mut self) -> Result<Option<Pulled>, GroupError> {
        let Member { shared, cell, work, id } = self.member;
        let rivals = work.queue.rivals(self.key);
        let taken = work.take(shared, cell, *id, self.max_records, self.max_bytes, rivals)?;
        let pulled = match (taken.deliveries.is_empty(), taken.needs_disk) {
            (false, _) => Pulled::Deliveries(taken.deliveries),
            (true, true) => Pulled::NeedsDisk,
            (true, false) => return Ok(None),
        };
        work.queue.leave(&mut self.key);
        if taken.more {
            work.queue.rouse();
        }
        Ok(Some(pulled))
    }
}

impl Future for Pull<'_> {
    type Output = Result<Pulled, GroupError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.try_take().transpose() {
            return Poll::Ready(result);
        }
        let pull = &mut *self;
        let Member { shared, work, id, .. } = pull.member;
        work.queue.wait(&mut pull.key, cx.waker());
        // What came before it stood in the queue has woken somebody else, or nobody.
        if work.wait(*id, shared.now())
            && let Some(result) = pull.try_take().transpose()
        {
            return Poll::Ready(result);
        }
        Poll::Pending
    }
}

impl Drop for Pull<'_> {
    fn drop(&mut self) {
        if self.member.work.queue.leave(&mut self.key) {
            self.member.work.queue.rouse();
        }
    }
}
