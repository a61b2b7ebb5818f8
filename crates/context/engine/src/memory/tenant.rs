//! The state of one tenant in memory.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use hashbrown::HashMap;
use parking_lot::Mutex;
use trifid_context_model::record::Record;
use trifid_context_model::symbol::{Budget, Symbol};
use trifid_context_model::time::Instant;

use super::cells::{Borrowed, Cells};
use super::counters::Counters;
use super::ordered::{Cursor, Ordered};
use super::registry::Registry;
use super::table::{Fill, Table};
use crate::limits::{MAX_NAMES_PER_TENANT, SHARDS};
use crate::store::Discovery;
use crate::tenant::TenantName;

type Hasher = foldhash::fast::RandomState;

/// A change that is applied but not yet durable, and so not yet visible.
struct Pending {
    position: u64,
    id: Arc<str>,
    after: Option<Record>,
}

/// What the writer of a shard holds.
#[derive(Default)]
pub(super) struct Writer {
    fill: Fill,
    /// In order of position.
    pending: VecDeque<Pending>,
    /// The newest pending state of an entity, which the next change starts from.
    heads: HashMap<Arc<str>, (u64, Option<Record>), Hasher>,
}

#[derive(Default)]
struct Shard {
    writer: Mutex<Writer>,
    table: TableCell,
}

struct TableCell(Table);

impl Default for TableCell {
    fn default() -> Self {
        TableCell(Table::new())
    }
}

/// See the module.
pub(super) struct Tenant {
    pub(super) name: TenantName,
    pub(super) budget: Arc<Budget>,
    /// Set by the first change accepted; until then the tenant does not exist for readers (4.14).
    born: AtomicBool,
    cells: Arc<Cells>,
    hasher: Hasher,
    shards: Box<[CachePadded<Shard>]>,
    all: Ordered,
    by_type: Registry<Symbol, Ordered>,
    counters: Mutex<Counters>,
    /// Entities with something that expires, by the first instant at which it does.
    expiries: Mutex<std::collections::BTreeSet<(Instant, Box<str>)>>,
    record_bytes: AtomicU64,
}

impl Tenant {
    pub(super) fn new(name: TenantName, cells: Arc<Cells>) -> Self {
        Tenant {
            name,
            budget: Arc::new(Budget::new(MAX_NAMES_PER_TENANT)),
            born: AtomicBool::new(false),
            cells,
            hasher: Hasher::default(),
            shards: (0..SHARDS).map(|_| CachePadded::new(Shard::default())).collect(),
            all: Ordered::default(),
            by_type: Registry::default(),
            counters: Mutex::default(),
            expiries: Mutex::default(),
            record_bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn is_born(&self) -> bool {
        self.born.load(Ordering::Acquire)
    }

    pub(super) fn bear(&self) {
        if !self.is_born() {
            self.born.store(true, Ordering::Release);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn record_bytes(&self) -> u64 {
        self.record_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn cells(&self) -> &Cells {
        &self.cells
    }

    fn hash(&self, id: &str) -> u64 {
        self.hasher.hash_one(id)
    }

    fn shard(&self, hash: u64) -> &Shard {
        // The table uses the low bits, the half-hash the high ones.
        &self.shards[(hash >> 24) as usize & (SHARDS - 1)]
    }

    fn slot(&self, hash: u64, id: &str) -> Option<u32> {
        let is_it = |slot| self.cells.load(slot).as_ref().is_some_and(|record| record.id() == id);
        self.shard(hash).table.0.get(hash, is_it)
    }

    /// The record of `id` as readers see it.
    pub(super) fn get(&self, id: &str) -> Option<Borrowed> {
        let slot = self.slot(self.hash(id), id)?;
        let record = self.cells.load(slot);
        // The slot may have been reused between the two looks.
        record.as_ref().is_some_and(|record| record.id() == id).then_some(record)
    }

    /// A walk over the entities of `entity_type`.
    pub(super) fn of_type(&self, entity_type: Symbol) -> Option<Cursor> {
        Some(self.by_type.load().get(&entity_type)?.cursor())
    }

    /// The index over all entities.
    pub(super) fn all(&self) -> &Ordered {
        &self.all
    }

    pub(super) fn discovery(&self) -> Discovery {
        self.counters.lock().discovery()
    }

    /// True while nothing in the tenant can expire.
    pub(super) fn is_durable_only(&self) -> bool {
        self.expiries.lock().is_empty()
    }

    /// Entities with something past its time.
    pub(super) fn due(&self, now: Instant, limit: usize) -> Vec<Box<str>> {
        let expiries = self.expiries.lock();
        expiries.iter().take_while(|(at, _)| *at <= now).take(limit).map(|(_, id)| id.clone()).collect()
    }

    /// Runs `change` with the entity's shard held, on its newest state. What it answers as the new state is
    /// visible at once when it gives no position, else once that position is published. Before it takes a
    /// position it calls what it is given, so that a publication of that position, which may come at any
    /// moment from then on, finds the shard and waits for it.
    pub(super) fn change<T>(
        self: &Arc<Self>,
        id: &str,
        dirty: &Dirty,
        change: impl FnOnce(Option<&Record>, &dyn Fn()) -> (T, Option<Stored>),
    ) -> T {
        let hash = self.hash(id);
        let shard = self.shard(hash);
        let mut writer = shard.writer.lock();
        let idle = writer.pending.is_empty();
        let announce = || {
            if idle {
                dirty.add(self.clone(), hash);
            }
        };
        let visible;
        let current = match writer.heads.get(id) {
            Some((_, head)) => head.as_ref(),
            None => {
                visible = self.get(id);
                visible.as_ref().and_then(|record| record.as_ref())
            }
        };
        let (answer, stored) = change(current, &announce);
        match stored {
            None => {}
            Some(Stored { position: None, after }) => self.publish_one(&mut writer, hash, id, after),
            Some(Stored { position: Some(position), after }) => {
                let id: Arc<str> = id.into();
                writer.heads.insert(id.clone(), (position, after.clone()));
                writer.pending.push_back(Pending { position, id, after });
            }
        }
        answer
    }

    /// Makes the pending changes of one shard visible up to `position`; true when some remain.
    fn publish_shard(&self, shard_hash: u64, position: u64) -> bool {
        let mut writer = self.shard(shard_hash).writer.lock();
        while writer.pending.front().is_some_and(|pending| pending.position <= position) {
            let Some(pending) = writer.pending.pop_front() else { break };
            if writer.heads.get(&pending.id).is_some_and(|(head, _)| *head == pending.position) {
                writer.heads.remove(&pending.id);
            }
            self.publish_one(&mut writer, self.hash(&pending.id), &pending.id, pending.after);
        }
        !writer.pending.is_empty()
    }

    /// Forgets the pending changes of one shard at `positions`; true when some remain.
    fn withdraw_shard(&self, shard_hash: u64, positions: &Range<u64>) -> bool {
        let mut writer = self.shard(shard_hash).writer.lock();
        writer.pending.retain(|pending| !positions.contains(&pending.position));
        writer.heads.retain(|_, (head, _)| !positions.contains(head));
        !writer.pending.is_empty()
    }

    fn publish_one(&self, writer: &mut Writer, hash: u64, id: &str, after: Option<Record>) {
        let slot = self.slot(hash, id);
        let before = slot.and_then(|slot| self.cells.load(slot).as_ref().cloned());
        self.keep_expiry(id, before.as_ref(), after.as_ref());
        match (slot, before, after) {
            (Some(slot), Some(before), Some(after)) => self.publish_update(slot, &before, &after),
            (Some(slot), Some(before), None) => self.publish_delete(writer, hash, slot, &before),
            (_, _, Some(after)) => self.publish_create(writer, hash, &after),
            (_, _, None) => {}
        }
    }

    fn publish_create(&self, writer: &mut Writer, hash: u64, record: &Record) {
        self.record_bytes.fetch_add(record.size() as u64, Ordering::Relaxed);
        self.counters.lock().add(record);
        // The store refuses writes before slots run out: see `Cells::has_room`.
        let Some(slot) = self.cells.add(record.clone()) else { return };
        let hash_of = |slot| self.cells.load(slot).as_ref().map_or(0, |record| self.hash(record.id()));
        self.shard(hash).table.0.insert(&mut writer.fill, hash, slot, hash_of);
        self.all.insert(&self.cells, slot, record.id());
        for entity_type in record.types() {
            self.type_index(entity_type).insert(&self.cells, slot, record.id());
        }
        self.bear();
    }

    fn publish_update(&self, slot: u32, before: &Record, after: &Record) {
        self.record_bytes.fetch_add(after.size() as u64, Ordering::Relaxed);
        self.record_bytes.fetch_sub(before.size() as u64, Ordering::Relaxed);
        let alike = Counters::alike(before, after);
        self.cells.replace(slot, after.clone());
        if alike {
            return;
        }
        {
            let mut counters = self.counters.lock();
            counters.subtract(before);
            counters.add(after);
        }
        for entity_type in before.types().filter(|own| !after.types().any(|new| new == *own)) {
            self.type_index(entity_type).remove(&self.cells, slot, before.id());
        }
        for entity_type in after.types() {
            self.type_index(entity_type).insert(&self.cells, slot, after.id());
        }
    }

    fn publish_delete(&self, writer: &mut Writer, hash: u64, slot: u32, before: &Record) {
        self.record_bytes.fetch_sub(before.size() as u64, Ordering::Relaxed);
        self.counters.lock().subtract(before);
        // Indexes first: a slot in an index must be in use.
        self.all.remove(&self.cells, slot, before.id());
        for entity_type in before.types() {
            self.type_index(entity_type).remove(&self.cells, slot, before.id());
        }
        self.shard(hash).table.0.remove(&mut writer.fill, hash, slot);
        self.cells.remove(slot);
    }

    fn type_index(&self, entity_type: Symbol) -> Arc<Ordered> {
        // Types are names, whose number the tenant's budget bounds.
        let index = self.by_type.get_or_add(&entity_type, usize::MAX, Ordered::default);
        index.expect("there is no limit but the number of names")
    }

    fn keep_expiry(&self, id: &str, before: Option<&Record>, after: Option<&Record>) {
        let (old, new) = (before.and_then(Record::first_expiry), after.and_then(Record::first_expiry));
        if old == new {
            return;
        }
        let mut expiries = self.expiries.lock();
        if let Some(at) = old {
            expiries.remove(&(at, id.into()));
        }
        if let Some(at) = new {
            expiries.insert((at, id.into()));
        }
    }
}

/// The new state that a change leaves.
pub(super) struct Stored {
    /// Visible once this position is durable; at once when there is no journal.
    pub(super) position: Option<u64>,
    /// The record; `None` when the entity is gone.
    pub(super) after: Option<Record>,
}

/// Shards that have changes waiting to become durable.
#[derive(Default)]
pub(super) struct Dirty {
    shards: Mutex<Vec<(Arc<Tenant>, u64)>>,
}

impl Dirty {
    fn add(&self, tenant: Arc<Tenant>, hash: u64) {
        self.shards.lock().push((tenant, hash));
    }

    /// Publishes everything up to `position`.
    pub(super) fn publish(&self, position: u64) {
        self.visit(|tenant, hash| tenant.publish_shard(hash, position));
    }

    /// Forgets everything at `positions`.
    pub(super) fn withdraw(&self, positions: &Range<u64>) {
        self.visit(|tenant, hash| tenant.withdraw_shard(hash, positions));
    }

    /// Visits the shards; those keep their place that `visit` answers true for. Its shard's lock decides:
    /// whoever finds a shard with nothing pending announces it anew.
    fn visit(&self, visit: impl Fn(&Tenant, u64) -> bool) {
        let shards = std::mem::take(&mut *self.shards.lock());
        for (tenant, hash) in shards {
            if visit(&tenant, hash) {
                self.add(tenant, hash);
            }
        }
    }
}
