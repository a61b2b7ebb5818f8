//! What all byte streams of one connection share: its place, its tenant and budget, its subscriptions.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use trifid_stream_engine::ConnectionBudget;
use trifid_stream_model::names::Tenant;

use crate::server::Ticket;

/// One connection's books.
#[derive(Debug)]
pub(crate) struct Account {
    _ticket: Option<Ticket>,
    tenancy: OnceCell<Tenancy>,
    subscriptions: Cell<usize>,
}

/// For whom a connection works, known from its first greeting on.
#[derive(Clone, Debug)]
pub(crate) struct Tenancy {
    pub(crate) tenant: Tenant,
    pub(crate) budget: Arc<ConnectionBudget>,
}

impl Account {
    pub(crate) fn new(ticket: impl Into<Option<Ticket>>) -> Self {
        Self { _ticket: ticket.into(), tenancy: OnceCell::new(), subscriptions: Cell::new(0) }
    }

    /// The tenancy, made by the first greeting; none if another greeting of this connection named another
    /// tenant.
    pub(crate) fn tenancy(
        &self,
        tenant: &Tenant,
        make: impl FnOnce() -> Arc<ConnectionBudget>,
    ) -> Option<Tenancy> {
        let known = self.tenancy.get_or_init(|| Tenancy { tenant: tenant.clone(), budget: make() });
        (known.tenant == *tenant).then(|| known.clone())
    }

    /// A place for one more subscription, if there is one.
    pub(crate) fn take_subscription(&self, limit: usize) -> bool {
        let taken = self.subscriptions.get();
        let fits = taken < limit;
        self.subscriptions.set(taken + usize::from(fits));
        fits
    }

    /// Gives so many places back.
    pub(crate) fn give_subscriptions(&self, count: usize) {
        self.subscriptions.set(self.subscriptions.get().saturating_sub(count));
    }
}
