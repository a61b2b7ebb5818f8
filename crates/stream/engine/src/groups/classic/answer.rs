//! An answer that comes later: to a join, when the others have joined; to a sync, when the leader has
//! assigned.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::types::ClassicError;

enum State<T> {
    Open(Option<Waker>),
    Given(Result<T, ClassicError>),
    Taken,
}

type Shared<T> = Arc<Mutex<State<T>>>;

/// What a group keeps: it gives the answer, once. Dropped without it, it answers that the group is not there
/// any more.
pub(super) struct Promise<T>(Option<Shared<T>>);

/// What a member waits for. Resolves once; dropping it is not leaving, but while nobody waits the session
/// runs.
#[must_use = "a future does nothing unless it is polled"]
pub struct Answer<T>(Shared<T>);

/// Wakers to be called after the locks are free.
pub(super) type Wakers = Vec<Waker>;

/// A promise and its answer.
pub(super) fn pair<T>() -> (Promise<T>, Answer<T>) {
    let shared = Arc::new(Mutex::new(State::Open(None)));
    (Promise(Some(shared.clone())), Answer(shared))
}

impl<T> Answer<T> {
    /// Known at once.
    pub(super) fn ready(result: Result<T, ClassicError>) -> Self {
        Answer(Arc::new(Mutex::new(State::Given(result))))
    }
}

impl<T> Promise<T> {
    /// Whether nobody waits any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.0.as_ref().is_none_or(|shared| Arc::strong_count(shared) == 1)
    }

    /// Answers.
    pub(super) fn give(mut self, result: Result<T, ClassicError>, wakers: &mut Wakers) {
        if let Some(shared) = self.0.take() {
            wakers.extend(put(&shared, result));
        }
    }
}

fn put<T>(shared: &Shared<T>, result: Result<T, ClassicError>) -> Option<Waker> {
    match std::mem::replace(&mut *shared.lock(), State::Given(result)) {
        State::Open(waker) => waker,
        State::Given(_) | State::Taken => None,
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take()
            && let Some(waker) = put(&shared, Err(ClassicError::NotAvailable))
        {
            waker.wake();
        }
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T, ClassicError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Open(_) => {
                *state = State::Open(Some(cx.waker().clone()));
                Poll::Pending
            }
            State::Given(result) => Poll::Ready(result),
            // Polled again after it resolved: nothing comes any more.
            State::Taken => Poll::Pending,
        }
    }
}
