//! Batch operations (5.6.7 to 5.6.10, 5.6.20): each item on its own, in order, in one write.

use std::borrow::Cow;
use std::sync::Arc;

use trifid_context_model::input::{EntityInput, Invalid, Mode};
use trifid_context_model::json::Value;
use trifid_context_model::ld::Context;
use trifid_context_model::update::Merge;

use super::{Broker, Call, check_id};
use crate::action::{Action, Applied, EntityEffect, Op, Upsert};
use crate::error::Error;
use crate::limits::MAX_BATCH;
use crate::tenant::TenantName;

/// One entity of a batch, with the context that its names are under.
#[derive(Clone)]
pub struct BatchItem<'v> {
    /// The entity or fragment.
    pub value: Value<'v>,
    /// Its context; that of the request, or its own in JSON-LD (6.3.5).
    pub context: Arc<Context>,
}

impl std::fmt::Debug for BatchItem<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BatchItem").field(&self.value).finish()
    }
}

/// An item that failed (5.2.17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchError {
    /// The entity, as far as its identifier could be read.
    pub entity_id: Option<String>,
    /// Why.
    pub error: Error,
}

/// What a batch did (5.2.16).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BatchResult {
    /// Entities created, in order.
    pub created: Vec<String>,
    /// Entities changed, deleted or left as they were, in order.
    pub updated: Vec<String>,
    /// Items that failed.
    pub errors: Vec<BatchError>,
}

/// What a batch does with each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Create,
    Upsert(Upsert),
    Update { no_overwrite: bool },
    Merge,
}

impl Verb {
    fn mode(self) -> Mode {
        match self {
            Verb::Create | Verb::Upsert(Upsert::Replace) => Mode::default(),
            Verb::Upsert(Upsert::Update) | Verb::Update { .. } => Mode { nulls: true, ..Mode::default() },
            Verb::Merge => Mode { nulls: true, nested_nulls: true, simplified: false },
        }
    }

    fn action(self, input: EntityInput<'_>) -> Action<'_> {
        match self {
            Verb::Create => Action::Create(input),
            Verb::Upsert(how) => Action::Upsert(input, how),
            Verb::Update { no_overwrite } => Action::Append(input, no_overwrite),
            Verb::Merge => Action::Merge(input, Merge::default()),
        }
    }

    fn creates(self) -> bool {
        matches!(self, Verb::Create | Verb::Upsert(_))
    }
}

impl Broker {
    /// Batch Entity Creation (5.6.7).
    pub async fn batch_create(
        &self,
        tenant: &TenantName,
        items: Vec<BatchItem<'_>>,
    ) -> Result<BatchResult, Error> {
        self.batch(tenant, items, Verb::Create).await
    }

    /// Batch Entity Creation or Update (5.6.8).
    pub async fn batch_upsert(
        &self,
        tenant: &TenantName,
        items: Vec<BatchItem<'_>>,
        how: Upsert,
    ) -> Result<BatchResult, Error> {
        self.batch(tenant, items, Verb::Upsert(how)).await
    }

    /// Batch Entity Update (5.6.9).
    pub async fn batch_update(
        &self,
        tenant: &TenantName,
        items: Vec<BatchItem<'_>>,
        no_overwrite: bool,
    ) -> Result<BatchResult, Error> {
        self.batch(tenant, items, Verb::Update { no_overwrite }).await
    }

    /// Batch Entity Merge (5.6.20).
    pub async fn batch_merge(
        &self,
        tenant: &TenantName,
        items: Vec<BatchItem<'_>>,
    ) -> Result<BatchResult, Error> {
        self.batch(tenant, items, Verb::Merge).await
    }

    /// Batch Entity Delete (5.6.10).
    pub async fn batch_delete(&self, tenant: &TenantName, ids: Value<'_>) -> Result<BatchResult, Error> {
        let ids = array(ids)?;
        let mut result = BatchResult::default();
        let mut ops = Vec::with_capacity(ids.len());
        for item in ids {
            let id = item.as_str().ok_or_else(|| not_an(item, "an entity identifier"))?;
            match check_id(&id) {
                Ok(()) => ops.push(Op { id, gate: None, action: Action::Delete }),
                Err(error) => result.errors.push(BatchError { entity_id: Some(id.into_owned()), error }),
            }
        }
        self.run(tenant, ops, false, &mut result).await?;
        Ok(result)
    }

    async fn batch(
        &self,
        tenant: &TenantName,
        items: Vec<BatchItem<'_>>,
        verb: Verb,
    ) -> Result<BatchResult, Error> {
        check_length(items.len())?;
        let mut result = BatchResult::default();
        let mut ops = Vec::with_capacity(items.len());
        for item in &items {
            // 5.5.4 through 5.6.7.4: what is not even an entity fails the request, not the item.
            if !item.value.is_object() {
                return Err(not_an(item.value, "an entity"));
            }
            let call = Call { tenant, context: &item.context };
            match self.item(call, item.value, verb) {
                Ok(op) => ops.push(op),
                Err(error) => result.errors.push(BatchError { entity_id: id_of(item.value), error }),
            }
        }
        self.run(tenant, ops, verb.creates(), &mut result).await?;
        Ok(result)
    }

    fn item<'v>(&self, call: Call<'_>, value: Value<'v>, verb: Verb) -> Result<Op<'v>, Error> {
        let input = self.entity(call, value, verb.mode())?;
        let id: Cow<'v, str> = input.id.clone().ok_or_else(|| Invalid::new("is missing").at("id"))?;
        check_id(&id)?;
        Ok(Op { id, gate: None, action: verb.action(input) })
    }

    async fn run(
        &self,
        tenant: &TenantName,
        ops: Vec<Op<'_>>,
        create_tenant: bool,
        result: &mut BatchResult,
    ) -> Result<(), Error> {
        let ids: Vec<String> = ops.iter().map(|op| op.id.clone().into_owned()).collect();
        let answers = self.store().write(tenant, ops, create_tenant, self.now()).await?;
        for (id, answer) in ids.into_iter().zip(answers) {
            match answer {
                Ok(applied) if applied.effect == EntityEffect::Created => result.created.push(id),
                Ok(applied) if !applied.not_updated.is_empty() => {
                    result.errors.push(BatchError { entity_id: Some(id), error: left_alone(&applied) });
                }
                Ok(_) => result.updated.push(id),
                Err(error) => {
                    result.errors.push(BatchError { entity_id: Some(id), error: error.into() });
                }
            }
        }
        Ok(())
    }
}

/// 5.6.9.4: an entity some of whose attributes were left alone has not succeeded as a whole.
fn left_alone(applied: &Applied) -> Error {
    let names: Vec<&str> = applied.not_updated.iter().map(|(name, _)| name.as_str()).collect();
    let reason = applied.not_updated.first().map_or("", |(_, reason)| reason);
    Error::BadRequestData(format!("not updated: {} ({reason})", names.join(", ")))
}

fn id_of(value: Value<'_>) -> Option<String> {
    let id = value.get("id").or_else(|| value.get("@id"))?;
    id.as_str().map(Cow::into_owned)
}

fn not_an(value: Value<'_>, what: &str) -> Error {
    Error::BadRequestData(format!("the item at byte {} is not {what}", value.offset()))
}

fn check_length(length: usize) -> Result<(), Error> {
    match length {
        0 => Err(Error::BadRequestData("the array is empty".to_owned())),
        1..=MAX_BATCH => Ok(()),
        _ => Err(Error::TooManyResults(format!("more than {MAX_BATCH} items in one batch"))),
    }
}

fn array<'v>(value: Value<'v>) -> Result<Vec<Value<'v>>, Error> {
    if !value.is_array() {
        return Err(Error::BadRequestData("the body must be an array".to_owned()));
    }
    let items: Vec<_> = value.items().collect();
    check_length(items.len())?;
    Ok(items)
}
