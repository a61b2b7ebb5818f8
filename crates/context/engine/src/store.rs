//! The port behind which entities are kept.
//!
//! Batch-shaped: a write takes many changes of one tenant and answers each; a read names many entities or
//! one query. A store that is a server away can therefore answer each call in one round trip. Reading hands
//! records to a sink instead of returning a list, so that a store in memory lends them without counting
//! references.
//!
//! Every implementation runs the behavioural suite of [`crate::testing`].

use std::future::Future;
use std::pin::Pin;

use trifid_context_model::query::entity::Filter;
use trifid_context_model::query::order::Ordering;
use trifid_context_model::record::{Kind, Record};
use trifid_context_model::symbol::{Budget, Symbol, Symbols};
use trifid_context_model::time::Instant;

use crate::action::{Applied, Op, OpError};
use crate::tenant::TenantName;

/// A future that a store answers with.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Receives the records of an answer, in order.
pub type Sink<'a> = &'a mut (dyn FnMut(&Record) + Send);

/// Why a store cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No tenant of this name exists (5.5.10).
    #[error("the tenant does not exist")]
    NoTenant,
    /// No further tenant may be created.
    #[error("no further tenant can be created")]
    TooManyTenants,
    /// The store takes no more work now; try again after so many seconds.
    #[error("the store is busy; retry after {retry_after_s} s")]
    Overloaded {
        /// Seconds to wait.
        retry_after_s: u32,
    },
    /// The query would hold more than the store allows.
    #[error("{0}")]
    TooComplex(&'static str),
    /// The store failed; what it is asked may or may not have happened.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// One query over the entities of a tenant.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// What matches.
    pub filter: &'q Filter,
    /// Sort keys; without them entities come in order of identifier.
    pub order: Option<&'q Ordering>,
    /// Matching entities to skip.
    pub offset: usize,
    /// Matching entities to give at most.
    pub limit: usize,
    /// Count all matches.
    pub count: bool,
    /// Entities past this instant do not exist.
    pub now: Instant,
}

/// What a query says beside its entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Page {
    /// All matches, where asked for.
    pub total: Option<usize>,
    /// Entities follow after this page.
    pub more: bool,
}

/// One line of the discovery counters: so many entities of a type have an attribute of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttributeCount {
    /// The entity type.
    pub entity_type: Symbol,
    /// The attribute.
    pub attribute: Symbol,
    /// Its kind in those entities.
    pub kind: Kind,
    /// How many entities.
    pub count: usize,
}

/// What exists in a tenant, from counters that writes keep (5.7.5 to 5.7.10).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Entities by type.
    pub types: Vec<(Symbol, usize)>,
    /// Entities by type, attribute and kind.
    pub attributes: Vec<AttributeCount>,
    /// Entities by attribute, each counted once whatever its types.
    pub totals: Vec<(Symbol, usize)>,
}

/// A tenant's size, for health and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreStats {
    /// Tenants that exist.
    pub tenants: usize,
    /// Entities in all of them.
    pub entities: usize,
    /// Bytes of all current records.
    pub record_bytes: u64,
    /// The position of the last change that readers see.
    pub position: u64,
}

/// A store of entities.
pub trait EntityStore: Send + Sync + 'static {
    /// The table of names that this store's records use.
    fn symbols(&self) -> &Symbols;

    /// The budget of names of a tenant, which exists or is about to.
    fn budget(&self, tenant: &TenantName) -> Result<std::sync::Arc<Budget>, StoreError>;

    /// Applies changes in order, each on its own: one refusal does not touch the others. The answer comes
    /// when the accepted ones are as durable as the store promises. A tenant that does not exist is created
    /// when `create_tenant` is set.
    fn write<'a>(
        &'a self,
        tenant: &'a TenantName,
        ops: Vec<Op<'a>>,
        create_tenant: bool,
        now: Instant,
    ) -> Answer<'a, Vec<Result<Applied, OpError>>>;

    /// Gives the entities of these identifiers that exist, in the order asked for.
    fn read<'a>(
        &'a self,
        tenant: &'a TenantName,
        ids: &'a [&'a str],
        now: Instant,
        sink: Sink<'a>,
    ) -> Answer<'a, ()>;

    /// Gives one page of the entities that match.
    fn query<'a>(&'a self, tenant: &'a TenantName, query: Query<'a>, sink: Sink<'a>) -> Answer<'a, Page>;

    /// What types and attributes exist.
    fn discovery<'a>(&'a self, tenant: &'a TenantName) -> Answer<'a, Discovery>;

    /// Removes what is past its `expiresAt`; answers how many entities and attributes went.
    fn expire(&self, now: Instant) -> Answer<'_, usize>;

    /// The names of the tenants that exist.
    fn tenants(&self) -> Answer<'_, Vec<TenantName>>;

    /// Figures for health and metrics.
    fn stats(&self) -> StoreStats;
}
