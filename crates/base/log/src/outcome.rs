//! What became of a batch, and those who wait to hear it.
//!
//! All tickets of a batch share one [`Outcome`]. It is decided once; then exactly its waiters are woken.
//! Asking after the decision is one atomic load; waiting takes one short lock that only the tickets of the
//! same batch share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::error::CommitError;
use crate::sync::{AtomicU8, Mutex, Ordering};

const PENDING: u8 = 0;
const DURABLE: u8 = 1;
const NO_SPACE: u8 = 2;
const REMOVED: u8 = 3;
const FAILED: u8 = 4;

/// The fate of one batch.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    state: AtomicU8,
    waiters: Mutex<Vec<Waker>>,
}

impl Outcome {
    /// An outcome that is decided from the start.
    pub(crate) fn already(fate: Result<(), CommitError>) -> Arc<Self> {
        let outcome = Outcome::default();
        outcome.decide(fate);
        Arc::new(outcome)
    }

    /// Decides the fate and wakes the waiters of this batch, nobody else. The first decision stands.
    pub(crate) fn decide(&self, fate: Result<(), CommitError>) {
        let state = match fate {
            Ok(()) => DURABLE,
            Err(CommitError::NoSpace) => NO_SPACE,
            Err(CommitError::Removed) => REMOVED,
            Err(CommitError::Failed) => FAILED,
        };
        let waiters = {
            let mut waiters = self.waiters.lock();
            if self.state.load(Ordering::Relaxed) != PENDING {
                return;
            }
            self.state.store(state, Ordering::Release);
            std::mem::take(&mut *waiters)
        };
        for waiter in waiters {
            waiter.wake();
        }
    }

    pub(crate) fn decided(&self) -> Option<Result<(), CommitError>> {
        match self.state.load(Ordering::Acquire) {
            DURABLE => Some(Ok(())),
            NO_SPACE => Some(Err(CommitError::NoSpace)),
            REMOVED => Some(Err(CommitError::Removed)),
            FAILED => Some(Err(CommitError::Failed)),
            _ => None,
        }
    }

    /// The fate, or a promise to wake the waker when it is decided.
    fn decided_or_wake(&self, waker: &Waker) -> Option<Result<(), CommitError>> {
        let mut waiters = self.waiters.lock();
        let decided = self.decided();
        if decided.is_none() {
            waiters.push(waker.clone());
        }
        decided
    }
}

/// Resolves when the payload's batch is on disk and published, or was refused.
#[must_use = "a payload is acknowledged only after this resolves"]
#[derive(Debug)]
pub struct Durable {
    outcome: Arc<Outcome>,
    /// The waker that is registered, so that polling again does not register twice.
    registered: Option<Waker>,
}

impl Durable {
    pub(crate) fn new(outcome: Arc<Outcome>) -> Self {
        Durable { outcome, registered: None }
    }
}

/// Another wait for the same fate.
impl Clone for Durable {
    fn clone(&self) -> Self {
        Durable::new(self.outcome.clone())
    }
}

impl Future for Durable {
    type Output = Result<(), CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(fate) = self.outcome.decided() {
            return Poll::Ready(fate);
        }
        if self.registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        match self.outcome.decided_or_wake(context.waker()) {
            Some(fate) => Poll::Ready(fate),
            None => {
                self.registered = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll(durable: &mut Durable, waker: &Waker) -> Poll<Result<(), CommitError>> {
        Pin::new(durable).poll(&mut Context::from_waker(waker))
    }

    #[test]
    fn wakes_a_waiter_once_however_often_it_polled() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let outcome = Arc::new(Outcome::default());
        let mut durable = Durable::new(outcome.clone());
        for _ in 0..3 {
            assert!(poll(&mut durable, &waker).is_pending());
        }
        outcome.decide(Ok(()));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(poll(&mut durable, &waker), Poll::Ready(Ok(())));
    }

    #[test]
    fn follows_a_task_that_moved() {
        let (first, second) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let outcome = Arc::new(Outcome::default());
        let mut durable = Durable::new(outcome.clone());
        assert!(poll(&mut durable, &first.into()).is_pending());
        assert!(poll(&mut durable, &second.clone().into()).is_pending());
        outcome.decide(Err(CommitError::NoSpace));
        assert_eq!(second.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_first_decision_stands() {
        let outcome = Outcome::default();
        outcome.decide(Err(CommitError::NoSpace));
        outcome.decide(Ok(()));
        assert_eq!(outcome.decided(), Some(Err(CommitError::NoSpace)));
    }
}
