//! The one way to stop.
//!
//! A [`Shutdown`] is a token: cheap to clone, triggered once, observed by any number of tasks on any runtime.
//! Whoever triggers it gives a [`Reason`], and the first one stays. What a component does about it (drain,
//! flush, answer 503) is that component's business; the token only says that the time has come.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// Why the process stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The operating system asked, by the named signal.
    Signal(&'static str),
    /// A supervised task failed.
    Task(&'static str),
    /// The program itself was done.
    Requested,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(name) => write!(f, "signal {name}"),
            Self::Task(name) => write!(f, "failure of task {name}"),
            Self::Requested => f.write_str("request"),
        }
    }
}

/// A token that is triggered once and seen by every clone.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<watch::Sender<Option<Reason>>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A token that nobody has triggered.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Triggers the token; answers whether this call was the first.
    pub fn trigger(&self, reason: Reason) -> bool {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason);
            }
            first
        })
    }

    /// Whether the token has been triggered.
    pub fn is_triggered(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// The first reason given, once triggered.
    pub fn reason(&self) -> Option<Reason> {
        self.0.borrow().clone()
    }

    /// Returns when the token is triggered; at once if it already is.
    pub async fn triggered(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives in `self`, so the channel cannot close while this waits.
        let _ = receiver.wait_for(Option::is_some).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_clone_sees_the_first_reason() {
        let shutdown = Shutdown::new();
        let waiter = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.triggered().await }
        });
        assert!(!shutdown.is_triggered());
        assert!(shutdown.clone().trigger(Reason::Signal("SIGTERM")));
        assert!(!shutdown.trigger(Reason::Requested));
        waiter.await.unwrap();
        shutdown.triggered().await;
        assert_eq!(shutdown.reason(), Some(Reason::Signal("SIGTERM")));
    }
}
