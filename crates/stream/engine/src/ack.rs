//! The promise to say when a publish counts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use trifid_base_log::Durable;

use crate::admission::Admitted;
use crate::error::CommitFailure;

/// Resolves when the publish counts as its stream's durability has it: then readers see it. Acknowledgements
/// of one shard resolve in the order of their offsets, those of one flush together, so who awaits them in
/// order is woken once a flush. It holds no allocation of its own.
#[must_use = "a publish is acknowledged only after this resolves"]
#[derive(Debug)]
pub struct Ack {
    state: State,
    admitted: Option<Admitted>,
}

#[derive(Debug)]
enum State {
    Done(Result<(), CommitFailure>),
    Log(Durable),
}

impl Ack {
    /// Counts already.
    pub(crate) fn ready() -> Self {
        Ack { state: State::Done(Ok(())), admitted: None }
    }

    /// Does not count.
    pub(crate) fn failed(failure: CommitFailure) -> Self {
        Ack { state: State::Done(Err(failure)), admitted: None }
    }

    /// Counts when the log says so; until then the bytes are in flight.
    pub(crate) fn log(durable: Durable, admitted: Option<Admitted>) -> Self {
        Ack { state: State::Log(durable), admitted }
    }

    /// Another wait for the same fate.
    pub(crate) fn twin(&self) -> Self {
        let state = match &self.state {
            State::Done(fate) => State::Done(*fate),
            State::Log(durable) => State::Log(durable.clone()),
        };
        Ack { state, admitted: None }
    }

    /// What is known by now.
    pub(crate) fn fate(&mut self) -> Option<Result<(), CommitFailure>> {
        match Pin::new(self).poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(fate) => Some(fate),
            Poll::Pending => None,
        }
    }

    /// Whether it is known already to count.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Done(_))
    }

    /// Blocks the thread until it resolves: for callers who have no runtime.
    pub fn wait(self) -> Result<(), CommitFailure> {
        crate::wait::block_on(self)
    }
}

impl Future for Ack {
    type Output = Result<(), CommitFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let fate = match &mut self.state {
            State::Done(fate) => return Poll::Ready(*fate),
            State::Log(durable) => match Pin::new(durable).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(fate) => fate.map_err(CommitFailure::from),
            },
        };
        self.state = State::Done(fate);
        self.admitted = None;
        Poll::Ready(fate)
    }
}
