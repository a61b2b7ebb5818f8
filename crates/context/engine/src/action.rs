//! One change to one entity, as data: what a store applies under whatever protects that entity.
//!
//! [`Op::apply`] is the only place where an operation of clause 5.6 meets the current state, so every
//! store gives the same answers. It is pure but for the record it makes.

use std::borrow::Cow;

use smallvec::SmallVec;
use trifid_context_model::input::{AttributeInput, EntityInput, Invalid};
use trifid_context_model::query::types::Types;
use trifid_context_model::record::Record;
use trifid_context_model::symbol::{Symbol, Symbols};
use trifid_context_model::time::Instant;
use trifid_context_model::update::{self, Effect, Merge, Outcome, Refused, Touched, Which};

/// A change and the entity that it is for.
#[derive(Debug)]
pub struct Op<'a> {
    /// The entity.
    pub id: Cow<'a, str>,
    /// The entity must match this type selection, or it counts as absent (`type` parameter).
    pub gate: Option<&'a Types>,
    /// What to do.
    pub action: Action<'a>,
}

/// What an upsert does with an entity that exists (5.6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsert {
    /// `options=replace`, the default.
    Replace,
    /// `options=update`.
    Update,
}

/// Attributes that a purge leaves or takes (5.6.21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// The entity goes as a whole.
    Entity,
    /// These attributes go.
    Drop(Vec<Symbol>),
    /// All others go.
    Keep(Vec<Symbol>),
}

/// The operations of clause 5.6 on one entity.
#[derive(Debug)]
pub enum Action<'a> {
    /// 5.6.1, 5.6.7.
    Create(EntityInput<'a>),
    /// 5.6.8.
    Upsert(EntityInput<'a>, Upsert),
    /// 5.6.18.
    Replace(EntityInput<'a>),
    /// 5.6.3; the flag is `noOverwrite`.
    Append(EntityInput<'a>, bool),
    /// 5.6.2.
    Update(EntityInput<'a>),
    /// 5.6.17.
    Merge(EntityInput<'a>, Merge<'a>),
    /// 5.6.4.
    PartialUpdate(AttributeInput<'a>),
    /// 5.6.19.
    ReplaceAttribute(Vec<AttributeInput<'a>>),
    /// 5.6.5: the attribute, its spelling, which instances.
    DeleteAttribute(Symbol, &'a str, Which<'a>),
    /// 5.6.5 for `scope`.
    DeleteScope,
    /// 5.6.6.
    Delete,
    /// 5.6.21 on one matching entity.
    Purge(&'a Purge),
    /// What is past its `expiresAt` goes (4.22).
    Expire,
}

/// What a change did to the entity as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityEffect {
    /// It did not exist before.
    Created,
    /// It was written.
    Updated,
    /// It is gone.
    Deleted,
    /// Nothing was stored.
    Unchanged,
}

/// The result of one change: the change record that matchers and feeds read.
#[derive(Debug)]
pub struct Applied {
    /// What happened to the entity.
    pub effect: EntityEffect,
    /// The entity before; `None` when it did not exist.
    pub before: Option<Record>,
    /// The entity after; `None` when it is gone.
    pub after: Option<Record>,
    /// The attribute instances touched.
    pub touched: SmallVec<[Touched; 2]>,
    /// Attributes left alone, with the reason.
    pub not_updated: Vec<(String, &'static str)>,
    /// Where the change stands in the store's order; 0 until the store has assigned it.
    pub position: u64,
}

/// Why a change to one entity is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// The input is wrong.
    #[error(transparent)]
    Invalid(Invalid),
    /// The entity to be created exists.
    #[error("the entity already exists")]
    AlreadyExists,
    /// The entity does not exist, or not with the types asked for.
    #[error("the entity does not exist")]
    NoEntity,
    /// The attribute does not exist.
    #[error("the entity has no attribute \"{0}\" with this datasetId")]
    NoAttribute(String),
}

impl From<Invalid> for OpError {
    fn from(error: Invalid) -> Self {
        OpError::Invalid(error)
    }
}

impl From<Refused> for OpError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(error) => OpError::Invalid(error),
            Refused::NoAttribute(name) => OpError::NoAttribute(name),
        }
    }
}

/// True when the entity is past its `expiresAt` and therefore no longer exists (4.22).
pub fn is_expired(record: &Record, now: Instant) -> bool {
    record.expires().is_some_and(|expires| expires <= now)
}

impl Op<'_> {
    /// Applies the change to the entity as it is now.
    pub fn apply(
        self,
        current: Option<&Record>,
        symbols: &Symbols,
        now: Instant,
    ) -> Result<Applied, OpError> {
        if matches!(self.action, Action::Expire) {
            return expire(current.ok_or(OpError::NoEntity)?, now);
        }
        let stale = current.filter(|record| is_expired(record, now));
        let alive = current.filter(|record| !is_expired(record, now));
        let matching = match self.gate {
            Some(gate) => alive.filter(|record| gate.matches(record.types(), symbols)),
            None => alive,
        };
        let existing = || matching.ok_or(OpError::NoEntity);
        let outcome = match self.action {
            Action::Create(input) => return create(alive, stale, input, now),
            Action::Upsert(input, how) => match (alive, how) {
                (None, _) => return create(None, stale, input, now),
                (Some(old), Upsert::Replace) => update::replace(old, input, now)?,
                (Some(old), Upsert::Update) => update::append(old, input, now, false)?,
            },
            Action::Replace(input) => update::replace(existing()?, input, now)?,
            Action::Append(input, no_overwrite) => update::append(existing()?, input, now, no_overwrite)?,
            Action::Update(input) => update::update(existing()?, input, now)?,
            Action::Merge(input, how) => update::merge(existing()?, input, how, now)?,
            Action::PartialUpdate(input) => update::partial_update(existing()?, input, now)?,
            Action::ReplaceAttribute(inputs) => update::replace_attribute(existing()?, inputs, now)?,
            Action::DeleteAttribute(name, spelled, which) => {
                update::delete_attribute(existing()?, name, spelled, which, now)?
            }
            Action::DeleteScope => update::delete_scope(existing()?, now)?,
            Action::Delete | Action::Purge(Purge::Entity) => return Ok(delete(existing()?)),
            Action::Purge(Purge::Drop(names)) => {
                update::remove_attributes(existing()?, |name| names.contains(&name), now)
            }
            Action::Purge(Purge::Keep(names)) => {
                update::remove_attributes(existing()?, |name| !names.contains(&name), now)
            }
            Action::Expire => return expire(existing()?, now),
        };
        Ok(changed(existing().or(alive.ok_or(OpError::NoEntity))?, outcome))
    }
}

fn create(
    alive: Option<&Record>,
    stale: Option<&Record>,
    input: EntityInput<'_>,
    now: Instant,
) -> Result<Applied, OpError> {
    if alive.is_some() {
        return Err(OpError::AlreadyExists);
    }
    let record = update::create(input, now)?;
    Ok(Applied {
        effect: EntityEffect::Created,
        before: stale.cloned(),
        touched: update::all_touched(&record, Effect::Created),
        after: Some(record),
        not_updated: Vec::new(),
        position: 0,
    })
}

fn delete(old: &Record) -> Applied {
    Applied {
        effect: EntityEffect::Deleted,
        before: Some(old.clone()),
        after: None,
        touched: update::all_touched(old, Effect::Deleted),
        not_updated: Vec::new(),
        position: 0,
    }
}

fn expire(old: &Record, now: Instant) -> Result<Applied, OpError> {
    if is_expired(old, now) {
        return Ok(delete(old));
    }
    Ok(changed(old, update::remove_expired(old, now)))
}

fn changed(old: &Record, outcome: Outcome) -> Applied {
    let effect = if outcome.record.is_some() { EntityEffect::Updated } else { EntityEffect::Unchanged };
    Applied {
        effect,
        before: Some(old.clone()),
        after: outcome.record.or_else(|| Some(old.clone())),
        touched: outcome.touched,
        not_updated: outcome.not_updated,
        position: 0,
    }
}
