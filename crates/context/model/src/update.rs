//! The change operations of clause 5.6 as functions from one record and an input to the next record.
//!
//! Pure: the time of the change is an argument, and nothing is stored here. A store calls these under
//! whatever protects one entity, so they copy the instances that an operation leaves alone and take apart
//! only the ones it touches. `modifiedAt` moves for every instance that a request writes, also when the new
//! content is the same; [`Touched::changed`] says whether it is not.
//!
//! | operation | unit that is replaced |
//! |---|---|
//! | append, update (5.6.3, 5.6.2) | whole attribute instances, by datasetId |
//! | partial update (5.6.4, 5.5.8) | members of one attribute instance |
//! | merge (5.6.17, 5.5.12) | members to any depth, RFC 7396 inside compound values |
//! | replace (5.6.18, 5.6.19) | the entity, the attribute |

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::input::{AttributeInput, Change, Content, EntityInput, InstanceInput, Invalid};
use crate::name::DEFAULT_DATASET;
use crate::record::{Draft, InstanceDraft, Kind, Record};
use crate::symbol::Symbol;
use crate::time::Instant;

mod edit;
mod merge;

use edit::Edit;
pub use merge::Merge;

/// What happened to one attribute instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It did not exist before.
    Created,
    /// It was written.
    Updated,
    /// It is gone.
    Deleted,
}

/// One attribute instance that a change wrote or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The attribute.
    pub name: Symbol,
    /// Which instance; `None` is the default one.
    pub dataset: Option<Box<str>>,
    /// What happened.
    pub effect: Effect,
    /// False when the instance was rewritten with the same content.
    pub changed: bool,
}

/// The result of a change to one entity.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The entity after the change; `None` when nothing is to be stored.
    pub record: Option<Record>,
    /// The attribute instances touched.
    pub touched: SmallVec<[Touched; 2]>,
    /// Attributes left alone, as the client spelled them, with the reason (5.2.19).
    pub not_updated: Vec<(String, &'static str)>,
}

/// Why a change to an existing entity is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The input is wrong: `BadRequestData`.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The attribute, or the instance of it, does not exist: `ResourceNotFound`.
    #[error("the entity has no attribute \"{0}\" with this datasetId")]
    NoAttribute(String),
}

const EXISTS: &str = "the attribute exists and overwriting is off";
const MISSING: &str = "the attribute does not exist";
const NO_SCOPE: &str = "the entity has no scope to update";

/// A new entity (5.6.1).
pub fn create(input: EntityInput<'_>, now: Instant) -> Result<Record, Invalid> {
    let Some(id) = input.id else { return Err(Invalid::new("is missing").at("id")) };
    if input.types.is_empty() {
        return Err(Invalid::new("is missing").at("type"));
    }
    let mut draft = Draft {
        id,
        types: input.types,
        scopes: input.scopes.set().unwrap_or_default(),
        created: now,
        modified: now,
        expires: input.expires.set(),
        instances: Vec::with_capacity(input.attributes.len()),
    };
    for attribute in input.attributes {
        let bytes = encode_new(attribute, now, now)?;
        draft.instances.push(Cow::Owned(bytes));
    }
    edit::check(&draft)?;
    Ok(draft.encode())
}

/// Touched list of a record that is new or gone as a whole.
pub fn all_touched(record: &Record, effect: Effect) -> SmallVec<[Touched; 2]> {
    let touch = |instance: crate::record::Instance<'_>| Touched {
        name: instance.name(),
        dataset: instance.dataset().map(Into::into),
        effect,
        changed: true,
    };
    record.instances().map(touch).collect()
}

/// Replaces the whole entity but for its identifier and `createdAt` (5.6.18).
pub fn replace(old: &Record, input: EntityInput<'_>, now: Instant) -> Result<Outcome, Invalid> {
    let mut before = Edit::of(old, now);
    let mut change = Edit::anew(old, now);
    if !input.types.is_empty() {
        change.draft.types = input.types;
    }
    change.draft.scopes = input.scopes.set().unwrap_or_default();
    change.draft.expires = input.expires.set();
    let mut stays = vec![false; before.draft.instances.len()];
    for attribute in input.attributes {
        let at = before.position(attribute.name, attribute.dataset.as_deref());
        let was = at.map(|at| before.draft.instance(at));
        let name = attribute.name;
        let dataset = attribute.dataset.as_deref().map(Into::into);
        let bytes = encode_new(attribute, was.map_or(now, |own| own.created()), now)?;
        let changed = !was.is_some_and(|own| own.same_content(crate::record::Instance::of_bytes(&bytes)));
        let effect = if was.is_some() { Effect::Updated } else { Effect::Created };
        change.draft.instances.push(Cow::Owned(bytes));
        change.touch(name, dataset, effect, changed);
        at.into_iter().for_each(|at| stays[at] = true);
    }
    for (gone, _) in old.instances().zip(stays).filter(|(_, stays)| !stays) {
        change.touch(gone.name(), gone.dataset().map(Into::into), Effect::Deleted, true);
    }
    change.checked()
}

/// Appends attributes (5.6.3); with `no_overwrite` existing ones stay.
pub fn append(
    old: &Record,
    input: EntityInput<'_>,
    now: Instant,
    no_overwrite: bool,
) -> Result<Outcome, Invalid> {
    let mut change = Edit::of(old, now);
    change.add_types(&input.types);
    match input.scopes {
        Change::Set(scopes) if no_overwrite => change.add_scopes(scopes),
        other => change.set_scopes(other),
    }
    change.set_expires(input.expires);
    for attribute in input.attributes {
        let exists = no_overwrite && change.position(attribute.name, attribute.dataset.as_deref()).is_some();
        if exists {
            change.not_updated.push((attribute.spelled.into_owned(), EXISTS));
        } else {
            change.put(attribute)?;
        }
    }
    change.checked()
}

/// Updates attributes, or appends them (5.6.2); deletions of what is not there are reported as not updated.
pub fn update(old: &Record, input: EntityInput<'_>, now: Instant) -> Result<Outcome, Invalid> {
    let mut change = Edit::of(old, now);
    change.add_types(&input.types);
    if input.scopes.is_mentioned() && change.draft.scopes.is_empty() {
        change.not_updated.push(("scope".to_owned(), NO_SCOPE));
    } else {
        change.set_scopes(input.scopes);
    }
    change.set_expires(input.expires);
    for attribute in input.attributes {
        // 5.6.2.4: what the entity does not have yet is appended; only a Null needs something to delete.
        change.put(attribute)?;
    }
    change.checked()
}

/// Overwrites members of one attribute instance (5.6.4, 5.5.8).
pub fn partial_update(old: &Record, attribute: AttributeInput<'_>, now: Instant) -> Result<Outcome, Refused> {
    let mut change = Edit::of(old, now);
    let Some(at) = change.position(attribute.name, attribute.dataset.as_deref()) else {
        return Err(Refused::NoAttribute(attribute.spelled.into_owned()));
    };
    match attribute.content {
        Content::Remove => change.remove_at(at),
        Content::Set(input) => {
            let mut instance = change.draft.instance(at).draft();
            merge::overwrite(&mut instance, *input, now).map_err(|error| error.at(&attribute.spelled))?;
            let instance = own(instance);
            change.write_at(at, attribute.name, &instance);
        }
    }
    Ok(change.checked()?)
}

/// Replaces an attribute with all its instances (5.6.19).
pub fn replace_attribute(
    old: &Record,
    instances: Vec<AttributeInput<'_>>,
    now: Instant,
) -> Result<Outcome, Refused> {
    let mut change = Edit::of(old, now);
    for attribute in instances {
        if change.position(attribute.name, attribute.dataset.as_deref()).is_none() {
            return Err(Refused::NoAttribute(attribute.spelled.into_owned()));
        }
        change.put(attribute)?;
    }
    Ok(change.checked()?)
}

/// Which instances [`delete_attribute`] removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    /// All of them (`deleteAll`).
    All,
    /// The default instance.
    Default,
    /// The instance of this datasetId.
    Dataset(&'a str),
}

/// Deletes an attribute or one instance of it (5.6.5).
pub fn delete_attribute(
    old: &Record,
    name: Symbol,
    spelled: &str,
    which: Which<'_>,
    now: Instant,
) -> Result<Outcome, Refused> {
    let mut change = Edit::of(old, now);
    let doomed = |dataset: Option<&str>| match which {
        Which::All => true,
        Which::Default => dataset.is_none(),
        Which::Dataset(DEFAULT_DATASET) => dataset.is_none(),
        Which::Dataset(id) => dataset == Some(id),
    };
    for at in (0..change.draft.instances.len()).rev() {
        let instance = change.draft.instance(at);
        if instance.name() == name && doomed(instance.dataset()) {
            change.remove_at(at);
        }
    }
    if change.touched.is_empty() {
        return Err(Refused::NoAttribute(spelled.to_owned()));
    }
    Ok(change.finish())
}

/// Deletes the scopes (5.6.5 with the name `scope`).
pub fn delete_scope(old: &Record, now: Instant) -> Result<Outcome, Refused> {
    let mut change = Edit::of(old, now);
    if change.draft.scopes.is_empty() {
        return Err(Refused::NoAttribute("scope".to_owned()));
    }
    change.set_scopes(Change::Remove);
    Ok(change.finish())
}

/// Removes the attributes that `doomed` names (purge with `keep` or `drop`, 5.6.21).
pub fn remove_attributes(old: &Record, doomed: impl Fn(Symbol) -> bool, now: Instant) -> Outcome {
    let mut change = Edit::of(old, now);
    for at in (0..change.draft.instances.len()).rev() {
        if doomed(change.draft.instance(at).name()) {
            change.remove_at(at);
        }
    }
    change.finish()
}

/// Removes the instances that are past their `expiresAt` (4.22).
pub fn remove_expired(old: &Record, now: Instant) -> Outcome {
    let mut change = Edit::of(old, now);
    for at in (0..change.draft.instances.len()).rev() {
        if change.draft.instance(at).expires().is_some_and(|expires| expires <= now) {
            change.remove_at(at);
        }
    }
    change.finish()
}

/// Merges a fragment into the entity (5.6.17, 5.5.12).
pub fn merge(old: &Record, input: EntityInput<'_>, how: Merge<'_>, now: Instant) -> Result<Outcome, Invalid> {
    let mut change = Edit::of(old, now);
    change.add_types(&input.types);
    change.set_scopes(input.scopes);
    change.set_expires(input.expires);
    for attribute in input.attributes {
        change.merge(attribute, how)?;
    }
    change.checked()
}

/// A full instance from an input that must have a kind and a value.
fn complete(input: InstanceInput<'_>, created: Instant, now: Instant) -> Result<InstanceDraft<'_>, Invalid> {
    let (Some(kind), Some(value)) = (input.kind, input.value) else {
        let member = input.kind.map_or("value", Kind::value_member);
        return Err(Invalid::new("is missing").at(member));
    };
    let mut draft = InstanceDraft::new(kind, value);
    draft.created = created;
    draft.modified = now;
    draft.observed = input.observed.set();
    draft.expires = input.expires.set();
    draft.unit_code = input.unit_code.set();
    draft.sealed_id = input.sealed_id.set();
    draft.slots = input.slots.into_iter().filter_map(|(tag, slot)| Some((tag, slot.set()?))).collect();
    for sub in input.subs {
        // A sub-attribute that the input deletes is simply not part of a new instance.
        if let Content::Set(content) = sub.content {
            let mut inner = complete(*content, now, now).map_err(|error| error.at(&sub.spelled))?;
            inner.dataset = sub.dataset;
            draft.subs.push((sub.name, inner));
        }
    }
    Ok(draft)
}

fn encode_new(attribute: AttributeInput<'_>, created: Instant, now: Instant) -> Result<Vec<u8>, Invalid> {
    let Content::Set(input) = attribute.content else {
        return Err(
            Invalid::new("the NGSI-LD Null is not allowed in this operation (5.5.4)").at(&attribute.spelled)
        );
    };
    let mut draft = complete(*input, created, now).map_err(|error| error.at(&attribute.spelled))?;
    draft.dataset = attribute.dataset;
    let mut bytes = Vec::with_capacity(draft.value.len() + 128);
    draft.encode(attribute.name, &mut bytes);
    Ok(bytes)
}

/// Detaches an instance from the record that it was read from.
fn own(draft: InstanceDraft<'_>) -> InstanceDraft<'static> {
    let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    InstanceDraft {
        kind: draft.kind,
        value: text(draft.value),
        dataset: draft.dataset.map(text),
        observed: draft.observed.map(|(at, spelled)| (at, text(spelled))),
        expires: draft.expires,
        unit_code: draft.unit_code.map(text),
        sealed_id: draft.sealed_id.map(text),
        slots: draft.slots,
        subs: draft.subs.into_iter().map(|(name, sub)| (name, own(sub))).collect(),
        created: draft.created,
        modified: draft.modified,
    }
}

#[cfg(test)]
mod tests;
