//! How much may be under way: bytes of publishes that were taken and not yet answered.
//!
//! Three counters stand in a row, the connection's, its tenant's and the process's, and a publish is let in
//! only when all three have room. What was let in is an [`Admitted`], which goes with the publish into its
//! acknowledgement and gives the bytes back when that is dropped. So memory is bounded wherever the bytes
//! are, also while the disk is slow, and one tenant cannot take all of it.
//!
//! It costs three atomic additions in and three out. A counter that stands at zero lets one publish through
//! whatever its size, so that a small limit slows a client and never locks it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::limits::{RETRY_CONNECTION_MS, RETRY_PROCESS_MS, RETRY_TENANT_MS};

/// Which counter refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The connection has too much in flight.
    Connection,
    /// All connections of the tenant have.
    Tenant,
    /// All connections have.
    Process,
}

/// A publish was not let in; nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes are in flight ({at:?}); try again in {retry_after_ms} ms")]
pub struct Overloaded {
    /// When to try again.
    pub retry_after_ms: u32,
    /// What was full.
    pub at: At,
}

/// One counter and its bound.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
    refused: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Budget { used: AtomicUsize::new(0), limit, refused: AtomicU64::new(0) }
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.give(bytes);
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// What one connection may have in flight, within its tenant's share and the process's.
#[derive(Debug)]
pub struct ConnectionBudget {
    connection: Budget,
    tenant: Arc<Budget>,
    process: Arc<Budget>,
}

impl ConnectionBudget {
    pub(crate) fn new(limit_bytes: usize, tenant: Arc<Budget>, process: Arc<Budget>) -> Arc<Self> {
        Arc::new(ConnectionBudget { connection: Budget::new(limit_bytes), tenant, process })
    }

    /// Lets `bytes` in, or refuses them.
    pub fn admit(self: &Arc<Self>, bytes: usize) -> Result<Admitted, Overloaded> {
        if !self.connection.take(bytes) {
            return Err(Overloaded { retry_after_ms: RETRY_CONNECTION_MS, at: At::Connection });
        }
        if !self.tenant.take(bytes) {
            self.connection.give(bytes);
            return Err(Overloaded { retry_after_ms: RETRY_TENANT_MS, at: At::Tenant });
        }
        if !self.process.take(bytes) {
            self.connection.give(bytes);
            self.tenant.give(bytes);
            return Err(Overloaded { retry_after_ms: RETRY_PROCESS_MS, at: At::Process });
        }
        Ok(Admitted { budget: Some(self.clone()), bytes })
    }

    /// Bytes of this connection in flight.
    pub fn inflight_bytes(&self) -> usize {
        self.connection.used()
    }
}

/// Bytes that were let in; dropping it gives them back.
#[must_use = "dropping it gives the bytes back"]
#[derive(Debug)]
pub struct Admitted {
    budget: Option<Arc<ConnectionBudget>>,
    bytes: usize,
}

impl Admitted {
    /// For what the broker itself publishes, which is bounded elsewhere.
    pub(crate) fn unmetered() -> Self {
        Admitted { budget: None, bytes: 0 }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.connection.give(self.bytes);
            budget.tenant.give(self.bytes);
            budget.process.give(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(connection: usize, tenant: usize, process: usize) -> Arc<ConnectionBudget> {
        ConnectionBudget::new(connection, Arc::new(Budget::new(tenant)), Arc::new(Budget::new(process)))
    }

    fn refused_at(budget: &Arc<ConnectionBudget>, bytes: usize) -> Option<At> {
        budget.admit(bytes).err().map(|refusal| refusal.at)
    }

    #[test]
    fn each_counter_refuses_beyond_its_bound_and_gives_back() {
        for (limits, at) in
            [((10, 100, 100), At::Connection), ((100, 10, 100), At::Tenant), ((100, 100, 10), At::Process)]
        {
            let budget = budgets(limits.0, limits.1, limits.2);
            let first = budget.admit(8).unwrap();
            assert_eq!(refused_at(&budget, 3), Some(at));
            assert_eq!(budget.inflight_bytes(), 8);
            drop(first);
            for counter in [&budget.connection, &*budget.tenant, &*budget.process] {
                assert_eq!(counter.used(), 0);
            }
            assert_eq!(refused_at(&budget, 3), None);
        }
    }

    #[test]
    fn one_publish_larger_than_the_bound_is_let_in_alone() {
        let budget = budgets(10, 10, 10);
        let first = budget.admit(50).unwrap();
        assert_eq!(refused_at(&budget, 1), Some(At::Connection));
        drop(first);
        assert_eq!(refused_at(&budget, 1), None);
    }

    #[test]
    fn a_tenant_leaves_room_for_others() {
        let process = Arc::new(Budget::new(100));
        let greedy = ConnectionBudget::new(1000, Arc::new(Budget::new(60)), process.clone());
        let modest = ConnectionBudget::new(1000, Arc::new(Budget::new(60)), process);
        let _held: Vec<_> = std::iter::from_fn(|| greedy.admit(10).ok()).collect();
        assert_eq!(greedy.inflight_bytes(), 60);
        assert_eq!(refused_at(&modest, 40), None);
    }
}
