//! Where a subscription's pushes wait for who reads them.
//!
//! The broker sends no more than it was given credit for, so what waits here is bounded by that credit.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;
use trifid_stream_model::frame::{CacheChange, reply};

/// What the broker sends without being asked each time.
#[derive(Debug)]
pub(crate) enum Push {
    Batch(reply::Batch),
    Skipped(reply::Lost),
    Changes(Vec<CacheChange>),
    Ended(reply::Ended),
    /// The line is over.
    Lost,
}

/// A queue with one reader.
#[derive(Debug, Default)]
pub(crate) struct Inlet {
    queue: Mutex<VecDeque<Push>>,
    pushed: Notify,
}

impl Inlet {
    pub(crate) fn push(&self, push: Push) {
        self.queue.lock().push_back(push);
        self.pushed.notify_one();
    }

    /// The next push, in the order in which they came. Dropping the future loses nothing.
    pub(crate) async fn next(&self) -> Push {
        loop {
            if let Some(push) = self.queue.lock().pop_front() {
                return push;
            }
            self.pushed.notified().await;
        }
    }

    /// The next push, if there is one already.
    pub(crate) fn ready(&self) -> Option<Push> {
        self.queue.lock().pop_front()
    }
}
