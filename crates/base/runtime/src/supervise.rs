//! Tasks that somebody watches.
//!
//! A task spawned bare and lost is how a server goes on answering while its sweeper has been dead for a week.
//! Here every long-lived task has a name and an end that is noticed: an error or a panic triggers the
//! shutdown token and is kept, so that the process stops and its exit status says why.

use std::any::Any;
use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::shutdown::{Reason, Shutdown};

/// How a supervised task ended when it ought not to have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The task answered an error.
    #[error("task {task} failed: {error}")]
    Error {
        /// The task's name.
        task: &'static str,
        /// What it said, with its causes.
        error: String,
    },
    /// The task panicked.
    #[error("task {task} panicked: {message}")]
    Panic {
        /// The task's name.
        task: &'static str,
        /// The panic's message.
        message: String,
    },
    /// Tasks went on past the time they were given to stop.
    #[error("{count} tasks did not stop within {limit:?}")]
    Stuck {
        /// How many.
        count: usize,
        /// The time they were given.
        limit: Duration,
    },
}

/// Spawns tasks and waits for them.
#[derive(Debug)]
pub struct Supervisor {
    shutdown: Shutdown,
    failures: Arc<Mutex<Vec<Failure>>>,
    tasks: JoinSet<()>,
}

impl Supervisor {
    /// Watches on behalf of `shutdown`.
    pub fn new(shutdown: Shutdown) -> Self {
        Self { shutdown, failures: Arc::default(), tasks: JoinSet::new() }
    }

    /// The token that a failing task triggers.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Runs `task` on the current runtime until it ends; an error or a panic stops everything.
    pub fn spawn<F, E>(&mut self, name: &'static str, task: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        let (shutdown, failures) = (self.shutdown.clone(), Arc::clone(&self.failures));
        self.tasks.spawn(async move {
            if let Err(failure) = watched(name, task).await {
                tracing::error!(task = name, %failure, "a supervised task failed");
                failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                shutdown.trigger(Reason::Task(name));
            }
        });
    }

    /// Waits until the token is triggered and every task has ended, which they get `limit` for.
    /// Answers the first failure.
    pub async fn join(mut self, limit: Duration) -> Result<(), Failure> {
        self.shutdown.triggered().await;
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, all).await.is_err() {
            let count = self.tasks.len();
            self.tasks.abort_all();
            self.push(Failure::Stuck { count, limit });
        }
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.first().cloned().map_or(Ok(()), Err)
    }

    fn push(&self, failure: Failure) {
        tracing::error!(%failure, "the drain was cut short");
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

/// Polls `task` with its panics caught.
async fn watched<F, E>(name: &'static str, task: F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), E>>,
    E: Display,
{
    let mut task = pin!(task);
    let caught = std::future::poll_fn(|context| {
        // The future is dropped, never polled again, after a panic: no broken state is observed.
        match std::panic::catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(outcome)) => Poll::Ready(Ok(outcome)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    });
    match caught.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::Error { task: name, error: error.to_string() }),
        Err(panic) => Err(Failure::Panic { task: name, message: message_of(&*panic) }),
    }
}

/// The text of a panic, which is a string in all but exotic cases.
fn message_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    literal.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    async fn outcome(
        task: impl Future<Output = Result<(), &'static str>> + Send + 'static,
    ) -> (Result<(), Failure>, Shutdown) {
        let shutdown = Shutdown::new();
        let mut supervisor = Supervisor::new(shutdown.clone());
        supervisor.spawn("probe", task);
        (supervisor.join(LIMIT).await, shutdown)
    }

    #[tokio::test]
    async fn an_error_stops_everything_and_is_reported() {
        let (joined, shutdown) = outcome(async { Err("no disk") }).await;
        assert_eq!(joined, Err(Failure::Error { task: "probe", error: "no disk".to_owned() }));
        assert_eq!(shutdown.reason(), Some(Reason::Task("probe")));
    }

    #[tokio::test]
    async fn a_panic_stops_everything_and_is_reported() {
        let (joined, _) = outcome(async {
            tokio::task::yield_now().await;
            panic!("broken {}", "invariant")
        })
        .await;
        assert_eq!(joined, Err(Failure::Panic { task: "probe", message: "broken invariant".to_owned() }));
    }

    #[tokio::test]
    async fn a_task_that_ends_well_stops_nothing() {
        let shutdown = Shutdown::new();
        let mut supervisor = Supervisor::new(shutdown.clone());
        supervisor.spawn("done", async { Ok::<(), &str>(()) });
        supervisor.spawn("waiting", {
            let shutdown = shutdown.clone();
            async move {
                shutdown.triggered().await;
                Ok::<(), &str>(())
            }
        });
        tokio::task::yield_now().await;
        assert!(!shutdown.is_triggered());
        shutdown.trigger(Reason::Requested);
        assert_eq!(supervisor.join(LIMIT).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_will_not_stop_is_cut_off_and_counted() {
        let mut supervisor = Supervisor::new(Shutdown::new());
        supervisor.spawn("stubborn", std::future::pending::<Result<(), &str>>());
        supervisor.shutdown().trigger(Reason::Requested);
        assert_eq!(supervisor.join(LIMIT).await, Err(Failure::Stuck { count: 1, limit: LIMIT }));
    }
}
