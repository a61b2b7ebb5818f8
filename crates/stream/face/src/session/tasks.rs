//! Requests whose answers take their time: those that wait for the disk, and those that wait for data.
//!
//! What may block runs on the worker's few threads for that ([`BLOCKING_THREADS_MAX`]). Answers come in any
//! order, under their ids.
//!
//! [`BLOCKING_THREADS_MAX`]: crate::limits::BLOCKING_THREADS_MAX

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream as _;
use futures_util::stream::FuturesUnordered;
use trifid_stream_model::frame::{Code, Refusal, Reply};

use super::serving::Serving;
use crate::limits::TASKS_MAX;

/// What a task does in the session when it is over.
pub(super) type Ending = Box<dyn FnOnce(&mut Serving, &mut super::Output)>;

/// The answer to a request.
pub(super) type Answer = Result<Reply, Refusal>;

/// Requests under way.
#[derive(Default)]
pub(super) struct Tasks {
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = Ending>>>>,
}

impl Tasks {
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether no more may begin.
    pub(super) fn is_full(&self) -> bool {
        self.under_way.len() >= TASKS_MAX
    }

    /// Begins a task.
    pub(super) fn begin(&mut self, task: impl Future<Output = Ending> + 'static) {
        self.under_way.push(Box::pin(task));
    }

    /// Begins a task that ends in an answer.
    pub(super) fn answer(&mut self, id: u32, task: impl Future<Output = Answer> + 'static) {
        self.begin(async move {
            let answer = task.await;
            Box::new(move |_: &mut Serving, out: &mut super::Output| match answer {
                Ok(reply) => out.reply(id, reply),
                Err(refusal) => out.refuse(id, refusal),
            }) as Ending
        });
    }

    /// The end of a task that is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Ending> {
        match Pin::new(&mut self.under_way).poll_next(cx) {
            Poll::Ready(ending) => ending,
            Poll::Pending => None,
        }
    }
}

/// Runs what may block on a thread for it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(Code::Internal, "the request failed; the broker's log tells why");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}
