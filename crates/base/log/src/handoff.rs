//! How an append comes to the committer: into the log's queue, and the log onto the committer's list.
//!
//! A log is on the list once, however much is queued. Who appends to an empty queue puts it there; the committer
//! strikes it off before it takes a batch, so what comes later lists it again; and it lists a log itself when a
//! batch is done and another waits. So nothing that was queued is forgotten, and no append tells the committer
//! what it knows already.

use std::sync::Arc;

use crate::signal::Signal;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// Whether the committer should be told of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rouse {
    /// It knows already.
    No,
    /// The log has become ready.
    Ready,
    /// As many frames are there as the committer lingers for.
    Enough,
}

/// A log as the committer's list sees it.
pub(crate) trait Listed: Sized {
    type Queue;
    fn queue(&self) -> &Mutex<Self::Queue>;
    /// Whether it is on the list.
    fn listed(&self) -> &AtomicBool;
    fn signal(&self) -> &Signal<Self>;
}

/// Queues something and tells the committer of it as the queue says.
pub(crate) fn append<L: Listed, T>(log: &Arc<L>, push: impl FnOnce(&mut L::Queue) -> (T, Rouse)) -> T {
    let (pushed, rouse) = push(&mut log.queue().lock());
    match rouse {
        Rouse::No => {}
        Rouse::Ready => list(log),
        Rouse::Enough => log.signal().enough(),
    }
    pushed
}

/// Puts the log on the committer's list unless it is there.
fn list<L: Listed>(log: &Arc<L>) {
    if !log.listed().swap(true, Ordering::AcqRel) {
        log.signal().ready(log.clone());
    }
}

/// Takes the log off the list, and off its queue what `take` says.
pub(crate) fn take<L: Listed, T>(log: &L, take: impl FnOnce(&mut L::Queue) -> T) -> T {
    log.listed().store(false, Ordering::Release);
    take(&mut log.queue().lock())
}

/// What was taken is done; the queue says whether there is more.
pub(crate) fn done<L: Listed>(log: &Arc<L>, done: impl FnOnce(&mut L::Queue) -> bool) {
    if done(&mut log.queue().lock()) {
        list(log);
    }
}
