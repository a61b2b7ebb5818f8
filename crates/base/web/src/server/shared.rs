//! What the cores share: all of it read, almost none of it written, while requests are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::watch;

use super::stats::Stats;
use crate::face::Mount;
use crate::health::HealthSource;
use crate::options::Resolved;

/// How far the server is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It serves.
    Serving,
    /// Health says 503; everything else is as before.
    Leaving,
    /// Listeners are closed, requests in flight finish.
    Closing,
}

/// The state that cores share.
pub(crate) struct Shared {
    pub(crate) resolved: Resolved,
    /// Longest prefix first.
    pub(crate) mounts: Vec<Mount>,
    pub(crate) sources: Vec<Arc<dyn HealthSource>>,
    pub(crate) stats: Stats,
    pub(crate) started: Instant,
    /// Tells this process's request ids from those of the one before.
    pub(crate) boot: u32,
    pub(crate) stage: watch::Sender<Stage>,
    /// Written once per connection, not per request.
    open: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(
        resolved: Resolved,
        mut mounts: Vec<Mount>,
        sources: Vec<Arc<dyn HealthSource>>,
        boot: u32,
    ) -> Arc<Self> {
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.prefix.len()));
        Arc::new(Self {
            stats: Stats::new(resolved.cores),
            started: Instant::now(),
            boot,
            stage: watch::Sender::new(Stage::Serving),
            open: AtomicUsize::new(0),
            resolved,
            mounts,
            sources,
        })
    }

    /// The mount that a raw path belongs to.
    pub(crate) fn mount(&self, path: &str) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.covers(path))
    }

    /// Connections open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Takes one of the connections that may be open; it is given back when the ticket is dropped.
    pub(crate) fn take_connection(self: &Arc<Self>) -> Option<Ticket> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket(Arc::clone(self));
        (before < self.resolved.limits.connections).then_some(ticket)
    }
}

/// One of the connections that may be open.
pub(crate) struct Ticket(Arc<Shared>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
