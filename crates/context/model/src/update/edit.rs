//! An entity while it is changed.
//!
//! Instances keep their places as long as the edit lasts: one that is removed leaves an empty place, a new one goes to
//! the end, and only the outcome brings the instances of each attribute together again. So places can be looked
//! up in a table, which is built when an entity has more than a few instances: an update of n of them costs n
//! steps and not n times n.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::merge::{self, Merge};
use super::{Effect, MISSING, Outcome, Touched, complete, own};
use crate::input::{AttributeInput, Change, Content, Invalid};
use crate::limits::{MAX_ENTITY_BYTES, MAX_INSTANCES, MAX_SCOPES, MAX_TYPES};
use crate::record::{Draft, Instance, InstanceDraft, Record};
use crate::symbol::Symbol;
use crate::time::Instant;

/// Instances among which one is found by looking at each.
const FEW: usize = 32;

/// Refuses what would be too much for one entity.
pub(super) fn check(draft: &Draft<'_>) -> Result<(), Invalid> {
    let bounds = [
        (draft.types.len(), MAX_TYPES, "types"),
        (draft.scopes.len(), MAX_SCOPES, "scopes"),
        (draft.instances.len(), MAX_INSTANCES, "attribute instances"),
        (draft.size(), MAX_ENTITY_BYTES, "bytes"),
    ];
    match bounds.into_iter().find(|(has, limit, _)| has > limit) {
        Some((_, limit, what)) => {
            Err(Invalid::new(format!("the entity would have more than {limit} {what}")))
        }
        None => Ok(()),
    }
}

fn is_at(draft: &Draft<'_>, at: usize, name: Symbol, dataset: Option<&str>) -> bool {
    let bytes = &draft.instances[at];
    let holds = |instance: Instance<'_>| instance.name() == name && instance.dataset() == dataset;
    !bytes.is_empty() && holds(Instance::of_bytes(bytes))
}

/// The places of instances by name and datasetId.
struct Places {
    table: HashTable<u32>,
    hasher: RandomState,
}

impl Places {
    fn of(draft: &Draft<'_>) -> Self {
        let mut places = Places { table: HashTable::new(), hasher: RandomState::default() };
        for (at, bytes) in draft.instances.iter().enumerate() {
            if !bytes.is_empty() {
                places.add(draft, at);
            }
        }
        places
    }

    fn hash_at(&self, draft: &Draft<'_>, at: usize) -> u64 {
        let instance = draft.instance(at);
        self.hasher.hash_one((instance.name(), instance.dataset()))
    }

    fn find(&self, draft: &Draft<'_>, name: Symbol, dataset: Option<&str>) -> Option<usize> {
        let hash = self.hasher.hash_one((name, dataset));
        self.table.find(hash, |at| is_at(draft, *at as usize, name, dataset)).map(|at| *at as usize)
    }

    fn add(&mut self, draft: &Draft<'_>, at: usize) {
        let hash = self.hash_at(draft, at);
        let hasher = &self.hasher;
        let again = |at: &u32| {
            let instance = draft.instance(*at as usize);
            hasher.hash_one((instance.name(), instance.dataset()))
        };
        self.table.insert_unique(hash, at as u32, again);
    }

    /// Forgets the place `at`, whose instance is about to go.
    fn remove(&mut self, draft: &Draft<'_>, at: usize) {
        let hash = self.hash_at(draft, at);
        if let Ok(entry) = self.table.find_entry(hash, |own| *own as usize == at) {
            entry.remove();
        }
    }
}

/// An entity under change.
pub(super) struct Edit<'r> {
    pub(super) draft: Draft<'r>,
    now: Instant,
    pub(super) touched: SmallVec<[Touched; 2]>,
    pub(super) not_updated: Vec<(String, &'static str)>,
    /// Types, scopes or `expiresAt` were written.
    members_written: bool,
    /// The instances of the record that is edited; those behind them are new.
    old_instances: usize,
    /// Where instances are, once many are asked for.
    places: Option<Places>,
}

impl<'r> Edit<'r> {
    pub(super) fn of(old: &'r Record, now: Instant) -> Self {
        Edit::with(Draft::of(old), now)
    }

    /// An edit that writes the entity anew, beginning without attributes.
    pub(super) fn anew(old: &'r Record, now: Instant) -> Self {
        let mut draft = Draft::of(old);
        draft.instances.clear();
        Edit { members_written: true, ..Edit::with(draft, now) }
    }

    fn with(draft: Draft<'r>, now: Instant) -> Self {
        Edit {
            old_instances: draft.instances.len(),
            draft,
            now,
            touched: SmallVec::new(),
            not_updated: Vec::new(),
            members_written: false,
            places: None,
        }
    }

    /// Where the instance of `name` with `dataset` is.
    pub(super) fn position(&mut self, name: Symbol, dataset: Option<&str>) -> Option<usize> {
        let draft = &self.draft;
        if draft.instances.len() <= FEW {
            return (0..draft.instances.len()).find(|at| is_at(draft, *at, name, dataset));
        }
        self.places.get_or_insert_with(|| Places::of(draft)).find(draft, name, dataset)
    }

    pub(super) fn touch(&mut self, name: Symbol, dataset: Option<Box<str>>, effect: Effect, changed: bool) {
        self.touched.push(Touched { name, dataset, effect, changed });
    }

    /// Types grow and never shrink (4.16, 5.6.2).
    pub(super) fn add_types(&mut self, types: &[Symbol]) {
        for symbol in types {
            if !self.draft.types.contains(symbol) {
                self.draft.types.push(*symbol);
                self.members_written = true;
            }
        }
    }

    pub(super) fn add_scopes(&mut self, scopes: Vec<Cow<'_, str>>) {
        for scope in scopes {
            if !self.draft.scopes.contains(&scope) {
                self.draft.scopes.push(Cow::Owned(scope.into_owned()));
                self.members_written = true;
            }
        }
    }

    pub(super) fn set_scopes(&mut self, change: Change<Vec<Cow<'_, str>>>) {
        let scopes = match change {
            Change::Keep => return,
            Change::Remove => Vec::new(),
            Change::Set(scopes) => scopes,
        };
        self.draft.scopes = scopes.into_iter().map(|scope| Cow::Owned(scope.into_owned())).collect();
        self.members_written = true;
    }

    pub(super) fn set_expires(&mut self, change: Change<Instant>) {
        self.members_written |= change.is_mentioned();
        change.apply_to(&mut self.draft.expires);
    }

    /// Writes a whole instance, new or in place of the one with its datasetId; a Null removes that one.
    pub(super) fn put(&mut self, attribute: AttributeInput<'_>) -> Result<(), Invalid> {
        let at = self.position(attribute.name, attribute.dataset.as_deref());
        let Content::Set(input) = attribute.content else {
            match at {
                Some(at) => self.remove_at(at),
                None => self.not_updated.push((attribute.spelled.into_owned(), MISSING)),
            }
            return Ok(());
        };
        let created = at.map_or(self.now, |at| self.draft.instance(at).created());
        let mut instance = complete(*input, created, self.now).map_err(|e| e.at(&attribute.spelled))?;
        instance.dataset = attribute.dataset;
        match at {
            Some(at) => self.write_at(at, attribute.name, &instance),
            None => self.insert(attribute.name, &instance),
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, attribute: AttributeInput<'_>, how: Merge<'_>) -> Result<(), Invalid> {
        let Some(at) = self.position(attribute.name, attribute.dataset.as_deref()) else {
            return self.merge_new(attribute, how);
        };
        match attribute.content {
            Content::Remove => self.remove_at(at),
            Content::Set(input) => {
                let mut instance = self.draft.instance(at).draft();
                merge::merge(&mut instance, *input, how, self.now).map_err(|e| e.at(&attribute.spelled))?;
                let instance = own(instance);
                self.write_at(at, attribute.name, &instance);
            }
        }
        Ok(())
    }

    fn merge_new(&mut self, attribute: AttributeInput<'_>, how: Merge<'_>) -> Result<(), Invalid> {
        let Content::Set(input) = attribute.content else { return Ok(()) };
        let mut instance = complete(*input, self.now, self.now).map_err(|e| e.at(&attribute.spelled))?;
        merge::finish_new(&mut instance, how)?;
        instance.dataset = attribute.dataset;
        self.insert(attribute.name, &instance);
        Ok(())
    }

    fn insert(&mut self, name: Symbol, instance: &InstanceDraft<'_>) {
        let mut bytes = Vec::with_capacity(instance.value.len() + 128);
        instance.encode(name, &mut bytes);
        self.draft.instances.push(Cow::Owned(bytes));
        if let Some(places) = &mut self.places {
            places.add(&self.draft, self.draft.instances.len() - 1);
        }
        self.touch(name, instance.dataset.as_deref().map(Into::into), Effect::Created, true);
    }

    pub(super) fn write_at(&mut self, at: usize, name: Symbol, instance: &InstanceDraft<'_>) {
        let mut bytes = Vec::with_capacity(self.draft.instances[at].len() + instance.value.len());
        instance.encode(name, &mut bytes);
        let old = std::mem::replace(&mut self.draft.instances[at], Cow::Owned(bytes));
        let before = Instance::of_bytes(&old);
        let changed = !before.same_content(self.draft.instance(at));
        self.touch(name, instance.dataset.as_deref().map(Into::into), Effect::Updated, changed);
    }

    pub(super) fn remove_at(&mut self, at: usize) {
        if let Some(places) = &mut self.places {
            places.remove(&self.draft, at);
        }
        let bytes = std::mem::take(&mut self.draft.instances[at]);
        let instance = Instance::of_bytes(&bytes);
        self.touch(instance.name(), instance.dataset().map(Into::into), Effect::Deleted, true);
    }

    /// The outcome of a change that can make the entity grow: refused where it grows too much.
    pub(super) fn checked(self) -> Result<Outcome, Invalid> {
        check(&self.draft)?;
        Ok(self.finish())
    }

    /// The outcome.
    pub(super) fn finish(mut self) -> Outcome {
        self.draft.bring_together(self.old_instances);
        let written = self.members_written || !self.touched.is_empty();
        if written {
            self.draft.modified = self.now;
        }
        Outcome {
            record: written.then(|| self.draft.encode()),
            touched: self.touched,
            not_updated: self.not_updated,
        }
    }
}
