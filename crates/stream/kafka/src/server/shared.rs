//! What the workers share: almost all of it read, little of it written, while requests are served.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, watch};
use trifid_base_web::Tokens;
use trifid_stream_engine::Broker;

use super::stats::{AllCounts, Stats};
use crate::options::Resolved;

/// Bytes that one permit of the memory for requests stands for.
pub(crate) const PERMIT_BYTES: usize = 1024;

/// The state that workers share.
pub(crate) struct Shared {
    pub(crate) resolved: Resolved,
    pub(crate) broker: Broker,
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) counts: AllCounts,
    /// Room for requests that are larger than a read buffer, in [`PERMIT_BYTES`].
    pub(crate) request_memory: Arc<Semaphore>,
    closed: watch::Sender<bool>,
    connections: AtomicUsize,
    fetched_bytes: AtomicUsize,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(resolved: Resolved, broker: Broker, tokens: Option<Arc<Tokens>>) -> Arc<Self> {
        let permits = resolved.limits.request_memory_bytes.div_ceil(PERMIT_BYTES);
        Arc::new(Self {
            broker,
            tokens,
            counts: AllCounts::new(resolved.workers),
            request_memory: Arc::new(Semaphore::new(permits)),
            closed: watch::Sender::new(false),
            connections: AtomicUsize::new(0),
            fetched_bytes: AtomicUsize::new(0),
            resolved,
        })
    }

    /// Ends every worker.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Returns once the server is closed.
    pub(crate) async fn closed(&self) {
        // The sender lives in `self`, so the channel cannot close while this waits.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// What has been counted.
    pub(crate) fn stats(&self) -> Stats {
        self.counts.sum(self.connections.load(Ordering::Relaxed))
    }

    /// Takes one of the connections that may be open; it is given back when the ticket is dropped.
    pub(crate) fn take_connection(self: &Arc<Self>) -> Option<Ticket> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket(Arc::clone(self));
        (before < self.resolved.limits.connections).then_some(ticket)
    }

    /// What the next answer to a fetch may hold, given what waits to be sent elsewhere.
    pub(crate) fn fetch_room(&self) -> usize {
        let limits = &self.resolved.limits;
        let taken = self.fetched_bytes.load(Ordering::Relaxed);
        limits.fetch_bytes.min(limits.fetch_memory_bytes.saturating_sub(taken))
    }

    /// Counts bytes of an answer to a fetch until they are sent.
    pub(crate) fn hold_fetched(self: &Arc<Self>, bytes: usize) -> Held {
        self.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
        Held { shared: Arc::clone(self), bytes }
    }
}

/// One of the connections that may be open.
#[derive(Debug)]
pub(crate) struct Ticket(Arc<Shared>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes of answers to fetches that are not sent yet.
#[derive(Debug)]
pub(crate) struct Held {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.fetched_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
