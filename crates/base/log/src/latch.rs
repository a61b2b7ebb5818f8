//! Waiting until several have done their part.

use crate::sync::{Condvar, Mutex};

/// Open once everybody has arrived. Keeps the first failure.
pub(crate) struct Latch<E> {
    state: Mutex<State<E>>,
    open: Condvar,
}

struct State<E> {
    left: usize,
    failure: Option<E>,
}

impl<E> Latch<E> {
    pub(crate) fn new(count: usize) -> Self {
        Latch { state: Mutex::new(State { left: count, failure: None }), open: Condvar::default() }
    }

    pub(crate) fn arrive(&self, result: Result<(), E>) {
        let mut state = self.state.lock();
        state.left -= 1;
        if let Err(failure) = result {
            state.failure.get_or_insert(failure);
        }
        if state.left == 0 {
            self.open.notify_all();
        }
    }

    pub(crate) fn wait(&self) -> Result<(), E> {
        let mut state = self.state.lock();
        while state.left > 0 {
            self.open.wait(&mut state);
        }
        state.failure.take().map_or(Ok(()), Err)
    }
}
