//! The entity store in memory, and the engine under every store that keeps its working set there.
//!
//! ```text
//! identifier --hash--> shard table --> slot --> cell --> record        retrieve: no lock, no counting
//! type --> ordered chunks of slots ----------^                         list: the same
//! ```
//!
//! Writers hold one shard's lock while they apply a change and publish it; readers hold nothing. Changes of
//! a store with a [`Journal`] are applied at once but become visible in the order of the journal, when it
//! calls [`MemoryStore::publish`].

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trifid_context_model::record::Record;
use trifid_context_model::symbol::{Budget, Symbols};
use trifid_context_model::time::Instant;

use crate::action::{Action, Applied, EntityEffect, Op, OpError, is_expired};
use crate::journal::{Entry, Journal};
use crate::limits::{MAX_NAMES_OF_NEWCOMERS, MAX_TENANTS, SWEEP_STEP, WRITE_STEP};
use crate::store::{Answer, Discovery, EntityStore, Page, Query, Sink, StoreError, StoreStats};
use crate::tenant::TenantName;

mod cells;
mod counters;
mod ordered;
mod registry;
mod scan;
mod table;
mod tenant;

use cells::Cells;
use registry::{Entries, Registry};
use scan::Scan;
use tenant::{Dirty, Stored, Tenant};

/// What became of one change.
type Decided = Result<Applied, OpError>;

/// Seconds after which a client may look whether a full store has room again.
const FULL_RETRY_S: u32 = 60;

/// See the module.
pub struct MemoryStore {
    symbols: Arc<Symbols>,
    cells: Arc<Cells>,
    tenants: Registry<TenantName, Tenant>,
    journal: Option<Arc<dyn Journal>>,
    dirty: Dirty,
    position: AtomicU64,
    /// Pays for the names of requests to tenants that do not exist yet.
    newcomers: Arc<Budget>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store that forgets.
    pub fn new(symbols: Arc<Symbols>) -> Self {
        MemoryStore {
            symbols,
            cells: Arc::default(),
            tenants: Registry::default(),
            journal: None,
            dirty: Dirty::default(),
            position: AtomicU64::new(0),
            newcomers: Arc::new(Budget::new(MAX_NAMES_OF_NEWCOMERS)),
        }
    }

    /// The same store, whose changes go through `journal` from now on. Call [`MemoryStore::restore`] before.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Puts back a state that a journal or snapshot holds, visible at once: recovery.
    pub fn restore(
        &self,
        tenant: &TenantName,
        id: &str,
        after: Option<Record>,
        position: u64,
    ) -> Result<(), StoreError> {
        let tenant = self.tenant_or_new(tenant)?;
        tenant.bear();
        tenant.change(id, &self.dirty, |_, _| ((), Some(Stored { position: None, after })));
        self.position.fetch_max(position, Ordering::Relaxed);
        Ok(())
    }

    /// Pays for the names of a tenant that is about to be put back.
    pub fn restored_budget(&self, tenant: &TenantName) -> Result<Arc<Budget>, StoreError> {
        Ok(self.tenant_or_new(tenant)?.budget.clone())
    }

    /// Makes every change up to `position` visible. Called by the journal, in order, before it tells anybody
    /// that they are durable.
    pub fn publish(&self, position: u64) {
        self.dirty.publish(position);
        self.position.fetch_max(position, Ordering::Release);
    }

    /// Takes back the changes at `positions`, which the journal could not keep: the next change of their
    /// entities starts from what readers see. Called by the journal, in order with [`MemoryStore::publish`].
    pub fn withdraw(&self, positions: Range<u64>) {
        self.dirty.withdraw(&positions);
    }

    /// The position of the last change that readers see.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Walks all visible entities of a tenant, in order of identifier, expired ones included: for snapshots.
    pub fn for_each(&self, tenant: &TenantName, mut visit: impl FnMut(&Record)) {
        let tenants = self.tenants.load();
        let Some(tenant) = tenants.get(tenant) else { return };
        let mut cursor = tenant.all().cursor();
        while let Some(record) = cursor.next(&self.cells) {
            if let Some(record) = record.as_ref() {
                visit(record);
            }
        }
    }

    /// The tenants that exist, in order.
    pub fn tenant_names(&self) -> Vec<TenantName> {
        let tenants = self.tenants.load();
        let born = tenants.values().filter(|tenant| tenant.is_born());
        let mut names: Vec<_> = born.map(|tenant| tenant.name.clone()).collect();
        names.sort();
        names
    }

    fn tenant_or_new(&self, name: &TenantName) -> Result<Arc<Tenant>, StoreError> {
        let make = || Tenant::new(name.clone(), self.cells.clone());
        self.tenants.get_or_add(name, MAX_TENANTS, make).ok_or(StoreError::TooManyTenants)
    }

    /// Applies one change; answers it with its position.
    fn apply(&self, tenant: &Arc<Tenant>, op: Op<'_>, now: Instant) -> Result<Decided, StoreError> {
        let id = op.id.clone();
        tenant.change(&id, &self.dirty, |current, announce| {
            let mut applied = match op.apply(current, &self.symbols, now) {
                Ok(applied) if applied.effect == EntityEffect::Unchanged => return (Ok(Ok(applied)), None),
                Ok(applied) => applied,
                Err(error) => return (Ok(Err(error)), None),
            };
            let position = match self.place(&tenant.name, &id, &applied, announce, now) {
                Ok(position) => position,
                Err(error) => return (Err(error), None),
            };
            applied.position = position;
            let after = applied.after.clone();
            let position = self.journal.is_some().then_some(position);
            (Ok(Ok(applied)), Some(Stored { position, after }))
        })
    }

    /// Gives a change its place in the order of changes.
    fn place(
        &self,
        tenant: &TenantName,
        id: &str,
        applied: &Applied,
        announce: &dyn Fn(),
        now: Instant,
    ) -> Result<u64, StoreError> {
        let Some(journal) = &self.journal else {
            return Ok(self.position.fetch_add(1, Ordering::Relaxed) + 1);
        };
        announce();
        let (before, after) = (applied.before.as_ref(), applied.after.as_ref());
        journal.append(&Entry { tenant, id, before, after, touched: &applied.touched, now })
    }

    async fn durable(&self, position: u64) -> Result<(), StoreError> {
        match &self.journal {
            Some(journal) if position > 0 => journal.durable(position).await,
            _ => Ok(()),
        }
    }

    async fn write_all(
        &self,
        tenant: &TenantName,
        ops: Vec<Op<'_>>,
        create_tenant: bool,
        now: Instant,
    ) -> Result<Vec<Result<Applied, OpError>>, StoreError> {
        let tenant = if create_tenant {
            self.tenant_or_new(tenant)?
        } else {
            match born(&self.tenants.load(), tenant)? {
                Some(tenant) => tenant.clone(),
                None => return Ok(ops.iter().map(|_| Err(OpError::NoEntity)).collect()),
            }
        };
        if !self.cells.has_room() {
            return Err(StoreError::Overloaded { retry_after_s: FULL_RETRY_S });
        }
        if let Some(journal) = &self.journal {
            journal.admit()?;
        }
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            answers.push(self.apply(&tenant, op, now)?);
            if answers.len() % WRITE_STEP == 0 {
                tokio::task::yield_now().await;
            }
        }
        let last = answers.iter().flatten().map(|applied| applied.position).max().unwrap_or(0);
        self.durable(last).await?;
        Ok(answers)
    }

    fn read_all(
        &self,
        tenant: &TenantName,
        ids: &[&str],
        now: Instant,
        sink: Sink<'_>,
    ) -> Result<(), StoreError> {
        let tenants = self.tenants.load();
        let Some(tenant) = born(&tenants, tenant)? else { return Ok(()) };
        for id in ids {
            let record = tenant.get(id);
            if let Some(record) = record.as_ref().and_then(|record| record.as_ref())
                && !is_expired(record, now)
            {
                sink(record);
            }
        }
        Ok(())
    }

    async fn run(&self, tenant: &TenantName, query: &Query<'_>, sink: Sink<'_>) -> Result<Page, StoreError> {
        let tenants = self.tenants.load();
        match born(&tenants, tenant)? {
            Some(tenant) => Scan::new(tenant, query, &self.symbols).page(sink).await,
            None => Ok(Page { total: query.count.then_some(0), more: false }),
        }
    }

    /// One round of expiry over one tenant; false when nothing is left to do.
    async fn expire_some(&self, tenant: &Arc<Tenant>, now: Instant) -> Result<usize, StoreError> {
        let due = tenant.due(now, SWEEP_STEP);
        let mut last = 0;
        for id in &due {
            let op = Op { id: (&**id).into(), gate: None, action: Action::Expire };
            if let Ok(applied) = self.apply(tenant, op, now)? {
                last = last.max(applied.position);
            }
        }
        self.durable(last).await?;
        Ok(due.len())
    }

    async fn expire_all(&self, now: Instant) -> Result<usize, StoreError> {
        let tenants: Vec<_> = self.tenants.load().values().cloned().collect();
        let mut total = 0;
        for tenant in tenants {
            loop {
                let done = self.expire_some(&tenant, now).await?;
                total += done;
                if done < SWEEP_STEP {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(total)
    }
}

/// A tenant that readers may see; the default one always exists, if only as nothing.
fn born<'t>(
    tenants: &'t Entries<TenantName, Tenant>,
    name: &TenantName,
) -> Result<Option<&'t Arc<Tenant>>, StoreError> {
    match tenants.get(name) {
        Some(tenant) if tenant.is_born() || name.is_default() => Ok(Some(tenant)),
        _ if name.is_default() => Ok(None),
        _ => Err(StoreError::NoTenant),
    }
}

impl EntityStore for MemoryStore {
    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn budget(&self, tenant: &TenantName) -> Result<Arc<Budget>, StoreError> {
        // Asked before the request is known to be good: it must not begin a tenant.
        let known = self.tenants.load().get(tenant).map(|tenant| tenant.budget.clone());
        Ok(known.unwrap_or_else(|| self.newcomers.clone()))
    }

    fn write<'a>(
        &'a self,
        tenant: &'a TenantName,
        ops: Vec<Op<'a>>,
        create_tenant: bool,
        now: Instant,
    ) -> Answer<'a, Vec<Result<Applied, OpError>>> {
        Box::pin(self.write_all(tenant, ops, create_tenant, now))
    }

    fn read<'a>(
        &'a self,
        tenant: &'a TenantName,
        ids: &'a [&'a str],
        now: Instant,
        sink: Sink<'a>,
    ) -> Answer<'a, ()> {
        Box::pin(async move { self.read_all(tenant, ids, now, sink) })
    }

    fn query<'a>(&'a self, tenant: &'a TenantName, query: Query<'a>, sink: Sink<'a>) -> Answer<'a, Page> {
        Box::pin(async move { self.run(tenant, &query, sink).await })
    }

    fn discovery<'a>(&'a self, tenant: &'a TenantName) -> Answer<'a, Discovery> {
        Box::pin(async move {
            Ok(born(&self.tenants.load(), tenant)?.map_or_else(Discovery::default, |own| own.discovery()))
        })
    }

    fn expire(&self, now: Instant) -> Answer<'_, usize> {
        Box::pin(self.expire_all(now))
    }

    fn tenants(&self) -> Answer<'_, Vec<TenantName>> {
        Box::pin(async move { Ok(self.tenant_names()) })
    }

    fn stats(&self) -> StoreStats {
        let tenants = self.tenants.load();
        let born = tenants.values().filter(|tenant| tenant.is_born());
        born.fold(StoreStats { position: self.position(), ..StoreStats::default() }, |sum, tenant| {
            StoreStats {
                tenants: sum.tenants + 1,
                entities: sum.entities + tenant.len(),
                record_bytes: sum.record_bytes + tenant.record_bytes(),
                ..sum
            }
        })
    }
}
