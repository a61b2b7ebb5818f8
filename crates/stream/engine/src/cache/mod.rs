//! The key-value cache: entries with a life and a revision, compare-and-set, watches, and a budget that is
//! kept.
//!
//! ```text
//!  put ──> part of the table (by hash) ──> changes ──> watches
//!   └─ durable: a record of the cache's stream first; the rest when that counts
//! ```
//!
//! - A cache has a [budget](trifid_stream_model::spec::CacheSpec::budget_bytes) of bytes; beyond it the
//!   entries leave that are used least (SIEVE, see `part.rs`), counted and told to those who watch.
//! - Revisions rise with each change of a cache, over all its keys. A durable cache's are the offsets of its
//!   stream plus one; they go on after a restart, as do its entries and the ends of their lives.
//! - A watch is told every change of its keys, or that it missed some, never silently less (`watch.rs`).
//! - Ends of lives are times of day: a clock that jumps forward ends them early.
//!
//! Caches are defined in the broker's own stream `_caches` where there is a data directory, also those in
//! memory, whose entries a restart forgets.

mod ack;
mod changes;
mod define;
mod durable;
pub mod limits;
mod part;
mod stats;
mod store;
mod types;
mod watch;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use trifid_stream_model::names::{CacheName, StreamName, Tenant};
use trifid_stream_model::spec::CacheSpec;

use crate::error::OpenError;
use crate::shard::Shard;
use crate::streams::Streams;
use define::{Definition, Definitions};
use limits::CACHES_MAX;

pub use ack::WriteAck;
pub use changes::Filter;
pub use stats::CacheStats;
pub use store::{Batch, Cache, Scanned, Written};
pub use types::{CacheCreateError, CacheError, Change, ChangeKind, Done, Event, Found, Op};
pub use watch::Watch;

/// What the names of the streams of durable caches begin with.
const STREAM_PREFIX: &str = "cache.";

type Map = BTreeMap<Tenant, BTreeMap<CacheName, Arc<Cache>>>;

/// The caches of a broker.
pub struct Caches {
    streams: Arc<Streams>,
    map: RwLock<Map>,
    /// Held while caches are made and deleted.
    definitions: Mutex<Definitions>,
}

impl Caches {
    /// Reads back the definitions, and the entries of the durable ones.
    pub(crate) fn open(streams: Arc<Streams>) -> Result<Self, OpenError> {
        let definitions = Definitions::open(&streams)?;
        let caches =
            Caches { map: RwLock::default(), definitions: Mutex::new(Definitions::default()), streams };
        for definition in definitions.all() {
            let cache = caches.reopen(definition)?;
            tracing::debug!(tenant = %cache.tenant, cache = %cache.name, entries = cache.stats().entries,
                "cache is open");
            caches.insert(cache);
        }
        caches.remove_orphans(&definitions);
        *caches.definitions.lock() = definitions;
        Ok(caches)
    }

    fn reopen(&self, definition: &Definition) -> Result<Arc<Cache>, OpenError> {
        let failed = |error: &dyn std::fmt::Display| OpenError::Internal(error.to_string());
        let shard = self.shard(definition).map_err(|error| failed(&error))?;
        let cache = self.build(definition, shard.clone());
        if let Some(shard) = shard {
            crate::journal::replay(&shard, |record| {
                let expires_ms = durable::expires_of(record);
                cache.load(record.key.unwrap_or(&[]), record.value, record.offset + 1, expires_ms);
            })?;
            cache.loaded();
        }
        Ok(cache)
    }

    fn build(&self, definition: &Definition, shard: Option<Arc<Shard>>) -> Arc<Cache> {
        let owner = (definition.tenant.clone(), definition.name.clone());
        let room = self.streams.room.clone();
        Arc::new(Cache::new(owner, definition.spec.clone(), definition.id, room, shard))
    }

    /// The shard of the stream of a durable cache, made if it is not there.
    fn shard(&self, definition: &Definition) -> Result<Option<Arc<Shard>>, CacheCreateError> {
        let durability = definition.spec.durability;
        if !durability.is_durable() {
            return Ok(None);
        }
        let stream = self.streams.internal(&stream_name(definition.id), crate::journal::spec(durability))?;
        Ok(stream.shard(0).cloned())
    }

    /// Streams of caches whose making or deletion was cut short.
    fn remove_orphans(&self, definitions: &Definitions) {
        let tenant = Streams::system_tenant();
        let known: Vec<StreamName> = definitions.all().map(|known| stream_name(known.id)).collect();
        for stream in self.streams.list(&tenant, STREAM_PREFIX, None, usize::MAX) {
            if !known.contains(stream.name()) {
                self.remove_stream(stream.name());
            }
        }
    }

    fn remove_stream(&self, name: &StreamName) {
        if let Err(error) = self.streams.delete(&Streams::system_tenant(), name) {
            tracing::warn!(stream = %name, %error, "the stream of a deleted cache could not be removed");
        }
    }

    fn insert(&self, cache: Arc<Cache>) {
        self.map.write().entry(cache.tenant.clone()).or_default().insert(cache.name.clone(), cache);
    }

    /// Makes a cache, or finds the one that is made the same way. A durable one is on disk before it is
    /// answered, and is refused without a data directory. May wait for the disk.
    pub fn create(
        &self,
        tenant: &Tenant,
        name: &CacheName,
        spec: CacheSpec,
    ) -> Result<Arc<Cache>, CacheCreateError> {
        if name.is_internal() {
            return Err(CacheCreateError::Reserved);
        }
        spec.validate()?;
        if spec.durability.is_durable() && self.streams.dir.is_none() {
            return Err(CacheCreateError::NoDirectory);
        }
        let mut definitions = self.definitions.lock();
        if let Some(cache) = self.get(tenant, name) {
            return if cache.spec == spec { Ok(cache) } else { Err(CacheCreateError::Exists) };
        }
        if definitions.len() >= CACHES_MAX {
            return Err(CacheCreateError::TooMany { limit: CACHES_MAX });
        }
        let definition =
            Definition { id: definitions.next_id(), tenant: tenant.clone(), name: name.clone(), spec };
        let shard = self.shard(&definition)?;
        if let Err(error) = definitions.add(&definition, self.streams.room.now_ms()) {
            if shard.is_some() {
                self.remove_stream(&stream_name(definition.id));
            }
            return Err(error);
        }
        let cache = self.build(&definition, shard);
        self.insert(cache.clone());
        tracing::info!(%tenant, cache = %name, durability = ?cache.spec.durability, "cache created");
        Ok(cache)
    }

    /// A cache.
    pub fn get(&self, tenant: &Tenant, name: &CacheName) -> Option<Arc<Cache>> {
        self.map.read().get(tenant)?.get(name).cloned()
    }

    /// At most `limit` of the tenant's caches whose names begin with `prefix`, in order of name, after
    /// `after`.
    pub fn list(
        &self,
        tenant: &Tenant,
        prefix: &str,
        after: Option<&CacheName>,
        limit: usize,
    ) -> Vec<Arc<Cache>> {
        let map = self.map.read();
        let Some(names) = map.get(tenant) else { return Vec::new() };
        let from = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let range = names.range::<str, _>((from, Bound::Unbounded));
        let found = range.take_while(|(name, _)| name.as_str().starts_with(prefix));
        found.take(limit).map(|(_, cache)| cache.clone()).collect()
    }

    /// Deletes a cache with all that is in it. Who watches it is told. May wait for the disk.
    pub fn delete(&self, tenant: &Tenant, name: &CacheName) -> Result<(), CacheCreateError> {
        let mut definitions = self.definitions.lock();
        let cache = self.get(tenant, name).ok_or(CacheCreateError::Unknown)?;
        definitions.remove(tenant, name, self.streams.room.now_ms())?;
        let mut map = self.map.write();
        if let Some(names) = map.get_mut(tenant) {
            names.remove(name);
            if names.is_empty() {
                map.remove(tenant);
            }
        }
        drop(map);
        cache.close();
        if cache.spec.durability.is_durable() {
            self.remove_stream(&stream_name(cache.id));
        }
        tracing::info!(%tenant, cache = %name, "cache deleted");
        Ok(())
    }

    /// Every cache, of all tenants.
    pub fn all(&self) -> Vec<Arc<Cache>> {
        self.map.read().values().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Expiry, and what pending writes ask for.
    pub(crate) fn tick(&self, now_ms: i64) {
        self.all().iter().for_each(|cache| cache.tick(now_ms));
    }
}

/// For [`crate::fuzz`]: any bytes as the definition of a cache. What is read is written and read again as the same.
pub(crate) fn fuzz(bytes: &[u8]) {
    define::fuzz(bytes);
}

fn stream_name(id: u64) -> StreamName {
    crate::journal::name(&format!("{STREAM_PREFIX}{id}"))
}

#[cfg(test)]
mod tests;
