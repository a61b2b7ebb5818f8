//! How appends rouse the committer: a list of logs that have something queued, behind one lock that an append
//! takes only when its log was empty.

use std::sync::Arc;
use std::time::Instant;

use crate::sync::{Condvar, Mutex};

struct State<L> {
    ready: Vec<Arc<L>>,
    /// The count that the committer lingers for is reached.
    enough: bool,
    closing: bool,
}

/// The committer's list, of logs of type `L`.
pub(crate) struct Signal<L> {
    state: Mutex<State<L>>,
    roused: Condvar,
}

impl<L> Default for Signal<L> {
    fn default() -> Self {
        let state = State { ready: Vec::new(), enough: false, closing: false };
        Signal { state: Mutex::new(state), roused: Condvar::default() }
    }
}

/// Why the committer stopped waiting.
pub(crate) enum Roused<L> {
    /// These logs have something queued.
    Ready(Vec<Arc<L>>),
    /// Nothing came in time.
    Idle,
    /// Nothing is queued and nothing will be.
    Closing,
}

impl<L> Signal<L> {
    pub(crate) fn ready(&self, log: Arc<L>) {
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
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Roused<L> {
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
    pub(crate) fn poll(&self) -> Vec<Arc<L>> {
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
