//! The promise to say when a write of a cache counts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::store::Cache;
use crate::ack::Ack;
use crate::error::CommitFailure;

/// Resolves when the write counts as the cache's durability has it; from then on it is read and watched. A
/// cache in memory needs no waiting. Dropping it takes nothing back.
#[must_use = "a durable write is acknowledged only after this resolves"]
pub struct WriteAck {
    cache: Option<Arc<Cache>>,
    ack: Ack,
}

impl WriteAck {
    pub(super) fn ready() -> Self {
        WriteAck { cache: None, ack: Ack::ready() }
    }

    pub(super) fn new(cache: Arc<Cache>, ack: Ack) -> Self {
        WriteAck { cache: Some(cache), ack }
    }

    /// Whether there is nothing to wait for.
    pub fn is_ready(&self) -> bool {
        self.cache.is_none()
    }

    /// Blocks the thread until it resolves: for callers who have no runtime.
    pub fn wait(self) -> Result<(), CommitFailure> {
        crate::wait::block_on(self)
    }
}

impl std::fmt::Debug for WriteAck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteAck").field("is_ready", &self.is_ready()).finish()
    }
}

impl Future for WriteAck {
    type Output = Result<(), CommitFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(fate) = Pin::new(&mut self.ack).poll(cx) else { return Poll::Pending };
        // Whoever hears that it counts must be able to read it.
        if let Some(cache) = self.cache.take() {
            cache.settle();
        }
        Poll::Ready(fate)
    }
}
