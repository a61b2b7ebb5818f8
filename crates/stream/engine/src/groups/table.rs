//! All groups by tenant and name, and what is behind the lock of one.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};
use trifid_stream_model::names::{GroupName, StreamName, Tenant};

use super::classic::group::Group;
use super::error::GroupError;
use super::limits::GROUPS_MAX;
use super::types::Committed;
use super::work::{Figures, Work};
use crate::stream::StreamId;

/// A committed offset, and of which stream: one of the same name that was made later is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) stream: StreamId,
    pub(super) committed: Committed,
}

/// A shard of a stream.
pub(super) type At = (StreamName, u32);

/// Committed offsets of a group.
pub(super) type Offsets = BTreeMap<At, Stored>;

/// What is behind the lock of a group. The lock of its [`Work`] comes before this one.
#[derive(Default)]
pub(super) struct State {
    /// It was taken out of the table: look it up again.
    pub(super) is_dead: bool,
    pub(super) classic: Group,
    pub(super) work: Option<Arc<Work>>,
    pub(super) offsets: Offsets,
    /// What was counted of shards that its members do not read now; of those that it has offsets of.
    pub(super) figures: BTreeMap<At, Figures>,
    /// Some of its offsets are in force and not written.
    pub(super) owes: bool,
    /// When offsets of streams that are gone were last looked for.
    pub(super) purged_at: u64,
    /// When somebody last asked something of it.
    pub(super) active_at: u64,
}

impl State {
    /// Nobody is in it and nothing is known of it.
    pub(super) fn is_void(&self) -> bool {
        self.is_idle() && self.offsets.is_empty()
    }

    /// Nobody is in it, and no work is unfinished.
    pub(super) fn is_idle(&self) -> bool {
        self.classic.is_empty() && self.work.is_none()
    }
}

/// A group.
pub(super) struct Cell {
    pub(super) tenant: Tenant,
    pub(super) name: GroupName,
    state: Mutex<State>,
}

impl Cell {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

type Names = BTreeMap<GroupName, Arc<Cell>>;

#[derive(Default)]
struct Map {
    tenants: BTreeMap<Tenant, Names>,
    count: usize,
}

/// All groups.
#[derive(Default)]
pub(super) struct Table {
    map: RwLock<Map>,
}

impl Table {
    pub(super) fn get(&self, tenant: &Tenant, name: &GroupName) -> Option<Arc<Cell>> {
        self.map.read().tenants.get(tenant)?.get(name).cloned()
    }

    pub(super) fn get_or_make(&self, tenant: &Tenant, name: &GroupName) -> Result<Arc<Cell>, GroupError> {
        if let Some(cell) = self.get(tenant, name) {
            return Ok(cell);
        }
        let mut map = self.map.write();
        let count = map.count;
        let names = map.tenants.entry(tenant.clone()).or_default();
        if let Some(cell) = names.get(name) {
            return Ok(cell.clone());
        }
        if count >= GROUPS_MAX {
            return Err(GroupError::TooMany { what: "groups", limit: GROUPS_MAX });
        }
        let cell = Arc::new(Cell {
            tenant: tenant.clone(),
            name: name.clone(),
            state: Mutex::new(State::default()),
        });
        names.insert(name.clone(), cell.clone());
        map.count += 1;
        Ok(cell)
    }

    /// Takes a group out whose lock the caller holds and which it has marked as dead.
    pub(super) fn remove(&self, cell: &Cell) {
        let mut map = self.map.write();
        let Some(names) = map.tenants.get_mut(&cell.tenant) else { return };
        let removed = names.remove(&cell.name).is_some();
        if names.is_empty() {
            map.tenants.remove(&cell.tenant);
        }
        map.count -= usize::from(removed);
    }

    pub(super) fn list(
        &self,
        tenant: &Tenant,
        prefix: &str,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Vec<Arc<Cell>> {
        let map = self.map.read();
        let Some(names) = map.tenants.get(tenant) else { return Vec::new() };
        let from = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let range = names.range::<str, _>((from, Bound::Unbounded));
        range
            .take_while(|(name, _)| name.as_str().starts_with(prefix))
            .take(limit)
            .map(|(_, cell)| cell.clone())
            .collect()
    }

    pub(super) fn all(&self) -> Vec<Arc<Cell>> {
        self.map.read().tenants.values().flat_map(Names::values).cloned().collect()
    }
}
