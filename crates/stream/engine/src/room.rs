//! What all shards of a broker share: clock, limits, and the pools of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use trifid_base_runtime::{Clock, Entropy};
use trifid_stream_model::names::Tenant;

use crate::admission::{Budget, ConnectionBudget};
use crate::limits::Limits;

/// Bytes of batches in memory, and their bound.
#[derive(Debug)]
pub(crate) struct Pool {
    used: AtomicUsize,
    limit: usize,
}

impl Pool {
    fn new(limit: usize) -> Self {
        Pool { used: AtomicUsize::new(0), limit }
    }

    /// Takes the bytes if they fit, also when they are alone and do not.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    /// Takes the bytes, also beyond the bound: the caller gives others back.
    pub(crate) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.used() > self.limit
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// By more than a quarter.
    pub(crate) fn is_far_over(&self) -> bool {
        self.used() > self.limit + self.limit / 4
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}

/// What all shards of a broker share.
pub(crate) struct Room {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) limits: Limits,
    /// Nothing new is taken.
    draining: AtomicBool,
    /// Recent batches of durable streams.
    pub(crate) tails: Pool,
    /// Batches of memory streams.
    pub(crate) memory: Pool,
    process: Arc<Budget>,
    tenants: Mutex<HashMap<Tenant, Arc<Budget>, foldhash::fast::RandomState>>,
}

impl Room {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, limits: Limits) -> Arc<Self> {
        Arc::new(Room {
            draining: AtomicBool::new(false),
            tails: Pool::new(limits.tail_bytes_total),
            memory: Pool::new(limits.memory_bytes_total),
            process: Arc::new(Budget::new(limits.process_inflight_bytes)),
            tenants: Mutex::default(),
            clock,
            entropy,
            limits,
        })
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().micros().div_euclid(1000)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// What a connection of the tenant may have in flight. Tenants are few and known, so their counters stay.
    pub(crate) fn connection(&self, tenant: &Tenant, limit_bytes: usize) -> Arc<ConnectionBudget> {
        let share = {
            let mut tenants = self.tenants.lock();
            let share = || Arc::new(Budget::new(self.limits.tenant_inflight_bytes));
            tenants.entry(tenant.clone()).or_insert_with(share).clone()
        };
        ConnectionBudget::new(limit_bytes, share, self.process.clone())
    }

    pub(crate) fn process(&self) -> &Budget {
        &self.process
    }

    pub(crate) fn tenants(&self) -> Vec<(Tenant, Arc<Budget>)> {
        self.tenants.lock().iter().map(|(tenant, share)| (tenant.clone(), share.clone())).collect()
    }
}
