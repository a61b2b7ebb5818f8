//! The broker: the operations of clause 5 as methods.

use std::sync::Arc;

use trifid_context_model::input::{AttributeInput, EntityInput, Invalid, Mode, Reader};
use trifid_context_model::json::Value;
use trifid_context_model::ld::Context;
use trifid_context_model::name;
use trifid_context_model::symbol::Symbols;
use trifid_context_model::time::Instant;

use crate::action::{Action, Applied, Op, OpError};
use crate::error::Error;
use crate::store::EntityStore;
use crate::tenant::TenantName;
use crate::time::Now;

mod batch;
mod consumption;
mod discovery;
mod provision;
mod purge;

pub use batch::{BatchError, BatchItem, BatchResult};
pub use consumption::Paging;
pub use discovery::{AttributeInfo, TypeInfo, TypeList};
pub use provision::{AttributeSelector, MergeOptions, NotUpdated, UpdateResult};
pub use purge::Purged;

/// For whom and under which context an operation runs.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The tenant (4.14).
    pub tenant: &'a TenantName,
    /// Expands the names of the request.
    pub context: &'a Context,
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("tenant", self.tenant).finish_non_exhaustive()
    }
}

/// An NGSI-LD context broker over one entity store.
pub struct Broker {
    store: Arc<dyn EntityStore>,
    now: Now,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}

impl Broker {
    /// A broker over `store` that reads the time from `now`.
    pub fn new(store: Arc<dyn EntityStore>, now: Now) -> Self {
        Broker { store, now }
    }

    /// The names that records use.
    pub fn symbols(&self) -> &Symbols {
        self.store.symbols()
    }

    /// The store beneath.
    pub fn store(&self) -> &dyn EntityStore {
        &*self.store
    }

    /// The present instant.
    pub fn now(&self) -> Instant {
        self.now.instant()
    }

    /// Reads an Entity or an Entity Fragment under the call's context.
    fn entity<'v>(&self, call: Call<'_>, value: Value<'v>, mode: Mode) -> Result<EntityInput<'v>, Error> {
        let budget = self.store.budget(call.tenant)?;
        let reader = Reader { context: call.context, symbols: self.symbols(), budget: &budget, mode };
        Ok(reader.entity(value)?)
    }

    /// Reads an attribute given apart from its entity.
    fn attribute<'v>(
        &self,
        call: Call<'_>,
        name: &'v str,
        value: Value<'v>,
        mode: Mode,
    ) -> Result<Vec<AttributeInput<'v>>, Error> {
        let budget = self.store.budget(call.tenant)?;
        let reader = Reader { context: call.context, symbols: self.symbols(), budget: &budget, mode };
        Ok(reader.attribute(name.into(), value)?)
    }

    /// Applies one change and waits until it is as durable as the store promises.
    async fn write_one(&self, call: Call<'_>, op: Op<'_>) -> Result<Applied, Error> {
        let create = matches!(op.action, Action::Create(_));
        let id = op.id.clone();
        let mut answers = self.store.write(call.tenant, vec![op], create, self.now()).await?;
        match answers.pop() {
            Some(answer) => answer.map_err(|error| refusal(&id, error)),
            None => Err(Error::Internal("the store gave no answer".to_owned())),
        }
    }
}

/// The refusal of a change to one entity, which it names.
fn refusal(id: &str, error: OpError) -> Error {
    let named = |what: &str| format!("the entity \"{}\" {what}", name::shown(id));
    match error {
        OpError::AlreadyExists => Error::AlreadyExists(named("exists already")),
        OpError::NoEntity => Error::ResourceNotFound(named("does not exist")),
        OpError::Invalid(_) | OpError::NoAttribute(_) => error.into(),
    }
}

/// Refuses what cannot identify an entity (4.5.1).
fn check_id(id: &str) -> Result<(), Error> {
    if id == name::NULL || !name::is_uri(id) {
        return Err(Error::BadRequestData(format!(
            "\"{}\" is not an entity identifier: it must be a URI such as urn:ngsi-ld:Vehicle:1 (4.5.1)",
            name::shown(id)
        )));
    }
    Ok(())
}

/// The identifier in a fragment, where there is one, must be that of the entity addressed.
fn check_same_id(id: &str, input: &EntityInput<'_>) -> Result<(), Error> {
    match &input.id {
        Some(own) if own != id => {
            let (own, id) = (name::shown(own), name::shown(id));
            Err(Invalid::new(format!("\"{own}\" is not the entity \"{id}\" that is addressed"))
                .at("id")
                .into())
        }
        _ => Ok(()),
    }
}
