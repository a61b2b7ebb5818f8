//! How appends rouse the committer: a list of logs that have something queued, behind one lock that an append
//! takes only when its log was empty.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::log::Shared;

#[derive(Default)]
struct State {
    ready: Vec<Arc<Shared>>,
    /// The count that the committer lingers for is reached.
    enough: bool,
    closing: bool,
}

#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    roused: Condvar,
}

/// Why the committer stopped waiting.
pub(crate) enum Roused {
    /// These logs have something queued.
    Ready(Vec<Arc<Shared>>),
    /// Nothing came in time.
    Idle,
    /// Nothing is queued and nothing will be.
    Closing,
}

impl Signal {
    pub(crate) fn ready(&self, log: Arc<Shared>) {
        self.state.lock().ready.push(log);
        self.roused.notify_one();
    }

    pub(crate) fn enough(&self) {
        self.state.lock().enough = true;
        self.roused.notify_one();
    }

    pub(crate) fn close(&self) {
        self.state.lock().closing = true;
        self.roused.notify_one();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    /// Waits for something to do, until `deadline` if there is one.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Roused {
        let mut state = self.state.lock();
        while state.ready.is_empty() && !state.closing {
            match deadline {
                None => self.roused.wait(&mut state),
                Some(deadline) => {
                    if self.roused.wait_until(&mut state, deadline).timed_out() && state.ready.is_empty() {
                        return Roused::Idle;
                    }
                }
            }
        }
        state.enough = false;
        if state.ready.is_empty() { Roused::Closing } else { Roused::Ready(std::mem::take(&mut state.ready)) }
    }

    /// What is ready now, without waiting.
    pub(crate) fn poll(&self) -> Vec<Arc<Shared>> {
        std::mem::take(&mut self.state.lock().ready)
    }

    /// Waits until [`enough`](Self::enough) is said, another log is ready, or the deadline; answers whether it
    /// was enough.
    pub(crate) fn linger(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while !state.enough && !state.closing && state.ready.is_empty() {
            if self.roused.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.enough
    }
}
