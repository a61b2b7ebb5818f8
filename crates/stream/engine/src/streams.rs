//! All streams of a broker: making, changing, deleting and finding them, and what is done for them in the
//! background.
//!
//! Groups and caches stand on this, and [`crate::Broker`] on all three.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::{SpecError, StreamSpec};

use crate::catalogue::{Catalogue, Listed};
use crate::error::{CreateError, DeleteError, OpenError, UnknownStream};
use crate::limits::{COMPACTION_STEP_BYTES, SHARDS_MAX};
use crate::open::{self, Opening};
use crate::options::{CreatePolicy, Options};
use crate::room::Room;
use crate::shard::{Shard, Turn};
use crate::stats::{BrokerStats, Health, TenantStats};
use crate::store::{Dir, log_id, stream_of};
use crate::stream::Stream;

/// The tenant of the broker's own streams. Faces let nobody in as this tenant.
pub const SYSTEM_TENANT: &str = "_system";

/// What of a stream is to be otherwise. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecChange {
    /// More shards. Keys then go elsewhere: what was written under a key before stays where it is.
    pub shards: Option<u32>,
    /// Records older than this may go; `Some(None)` keeps them.
    pub retention_ms: Option<Option<u64>>,
    /// Bytes kept per shard; `Some(None)` keeps all.
    pub retention_bytes: Option<Option<u64>>,
    /// Whether the last record of each key is kept and the others go.
    pub compact: Option<bool>,
    /// The largest batch.
    pub max_batch_bytes: Option<u32>,
}

impl SpecChange {
    fn apply(&self, spec: &StreamSpec) -> Result<StreamSpec, CreateError> {
        let spec = StreamSpec {
            shards: self.shards.unwrap_or(spec.shards),
            retention_ms: self.retention_ms.unwrap_or(spec.retention_ms),
            retention_bytes: self.retention_bytes.unwrap_or(spec.retention_bytes),
            compact: self.compact.unwrap_or(spec.compact),
            max_batch_bytes: self.max_batch_bytes.unwrap_or(spec.max_batch_bytes),
            ..*spec
        };
        spec.validate()?;
        Ok(spec)
    }
}

/// Streams by tenant and name.
#[derive(Default)]
struct Map {
    tenants: BTreeMap<Tenant, BTreeMap<StreamName, Arc<Stream>>>,
    streams: usize,
    shards: usize,
}

impl Map {
    fn get(&self, tenant: &Tenant, name: &StreamName) -> Option<&Arc<Stream>> {
        self.tenants.get(tenant)?.get(name)
    }

    fn insert(&mut self, stream: Arc<Stream>) {
        self.shards += stream.shards().len();
        self.streams += 1;
        let names = self.tenants.entry(stream.tenant().clone()).or_default();
        if let Some(before) = names.insert(stream.name().clone(), stream) {
            self.shards -= before.shards().len();
            self.streams -= 1;
        }
    }

    fn remove(&mut self, tenant: &Tenant, name: &StreamName) -> Option<Arc<Stream>> {
        let names = self.tenants.get_mut(tenant)?;
        let stream = names.remove(name)?;
        if names.is_empty() {
            self.tenants.remove(tenant);
        }
        self.streams -= 1;
        self.shards -= stream.shards().len();
        Some(stream)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Stream>> {
        self.tenants.values().flat_map(BTreeMap::values)
    }
}

/// All streams of a broker.
pub(crate) struct Streams {
    pub(crate) room: Arc<Room>,
    create: CreatePolicy,
    map: RwLock<Map>,
    /// Held while streams are made, changed and deleted.
    changing: Mutex<()>,
    catalogue: Catalogue,
    /// Logs that belong to no stream.
    orphans: Vec<String>,
    problem: Mutex<Option<String>>,
    /// Last, so that the logs are closed when everything else is gone.
    pub(crate) dir: Option<Arc<Dir>>,
}

impl Streams {
    /// Opens what is there.
    pub(crate) fn open(options: Options) -> Result<Arc<Self>, OpenError> {
        let room = Room::new(options.clock, options.entropy, options.limits);
        let random = room.entropy.next_u64();
        let (dir, catalogue) = match options.dir {
            None => (None, Catalogue::in_memory(random)),
            Some(disk) => {
                let logs = open::log_options(options.logs, &room.limits);
                let dir = Dir::open(disk, logs).map_err(OpenError::Directory)?;
                let catalogue = Catalogue::open(&dir, random)?;
                (Some(Arc::new(dir)), catalogue)
            }
        };
        let mut map = Map::default();
        let found = dir.as_ref().map(|dir| open::sort_out(dir, &catalogue)).transpose()?.unwrap_or_default();
        let opening = Opening { room: &room, dir: dir.as_ref() };
        let listed = catalogue.streams();
        let opened = opening.reopen(&listed, &found)?;
        for (listed, shards) in listed.into_iter().zip(opened) {
            map.insert(Stream::new(listed, shards, catalogue.installation()));
        }
        tracing::info!(streams = map.streams, shards = map.shards, "streams are open");
        Ok(Arc::new(Streams {
            room,
            create: options.create,
            map: RwLock::new(map),
            changing: Mutex::new(()),
            catalogue,
            orphans: found.orphans,
            problem: Mutex::new(None),
            dir,
        }))
    }

    /// Makes a stream. On disk before it is answered.
    pub(crate) fn create(
        &self,
        tenant: &Tenant,
        name: &StreamName,
        spec: StreamSpec,
    ) -> Result<Arc<Stream>, CreateError> {
        self.check_spec(&spec)?;
        let _changing = self.changing.lock();
        self.check_room(tenant, name, spec.shards)?;
        let (tenant, name) = (tenant.clone(), name.clone());
        let (id, created_ms) = (self.catalogue.take_id(), self.room.now_ms());
        let listed = Listed { id, tenant, name, spec, created_ms };
        let shards = self.list_with(&listed, 0..listed.spec.shards)?;
        tracing::info!(tenant = %listed.tenant, stream = %listed.name, id, shards = listed.spec.shards,
            durability = ?listed.spec.durability, "stream created");
        Ok(self.publish(listed, shards))
    }

    /// Begins shards and lists the stream with them: files first, so that whatever is listed is there.
    fn list_with(&self, listed: &Listed, shards: Range<u32>) -> Result<Vec<Arc<Shard>>, CreateError> {
        if listed.spec.durability.is_durable() {
            self.check_free(listed.id, shards.clone())?;
        }
        let begun = self.opening().begin(listed, shards.clone());
        let done = begun.and_then(|begun| match self.catalogue.list(listed) {
            Ok(()) => Ok(begun),
            Err(error) => Err(error.into()),
        });
        if done.is_err() && listed.spec.durability.is_durable() {
            shards.for_each(|shard| self.remove_shard(listed.id, shard));
        }
        done
    }

    /// A number is given once, so only files that somebody brought along can be where a new shard's log is to
    /// be. They are left alone.
    fn check_free(&self, id: u64, mut shards: Range<u32>) -> Result<(), CreateError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        match shards.find(|shard| dir.has_files(log_id(id, *shard))) {
            None => Ok(()),
            Some(shard) => {
                self.note(format!(
                    "there are files where the log {} of a new shard is to be",
                    log_id(id, shard)
                ));
                Err(CreateError::Failed)
            }
        }
    }

    fn publish(&self, listed: Listed, shards: Vec<Arc<Shard>>) -> Arc<Stream> {
        let stream = Stream::new(listed, shards, self.catalogue.installation());
        self.map.write().insert(stream.clone());
        stream
    }

    fn check_spec(&self, spec: &StreamSpec) -> Result<(), CreateError> {
        spec.validate()?;
        let max = self.room.limits.shards_max.min(SHARDS_MAX);
        if spec.shards > max {
            let value = spec.shards.into();
            return Err(SpecError::OutOfRange { field: "shards", value, min: 1, max: max.into() }.into());
        }
        if spec.durability.is_durable() && self.dir.is_none() {
            return Err(CreateError::NoDirectory);
        }
        if self.room.is_draining() {
            return Err(CreateError::ShuttingDown);
        }
        Ok(())
    }

    fn check_room(&self, tenant: &Tenant, name: &StreamName, shards: u32) -> Result<(), CreateError> {
        let map = self.map.read();
        let limits = &self.room.limits;
        if map.get(tenant, name).is_some() {
            return Err(CreateError::Exists);
        }
        if map.streams >= limits.streams_max {
            return Err(CreateError::TooMany { what: "streams", limit: limits.streams_max });
        }
        self.check_shards(&map, shards)
    }

    fn check_shards(&self, map: &Map, more: u32) -> Result<(), CreateError> {
        let limit = self.room.limits.shards_total_max;
        match map.shards + more as usize > limit {
            true => Err(CreateError::TooMany { what: "shards", limit }),
            false => Ok(()),
        }
    }

    /// What happens when a stream is named that does not exist.
    pub(crate) fn policy(&self) -> &CreatePolicy {
        &self.create
    }

    /// One of the tenant's streams.
    pub(crate) fn find(&self, tenant: &Tenant, is_it: impl Fn(&Stream) -> bool) -> Option<Arc<Stream>> {
        self.map.read().tenants.get(tenant)?.values().find(|stream| is_it(stream)).cloned()
    }

    /// Changes a stream.
    pub(crate) fn alter(
        &self,
        tenant: &Tenant,
        name: &StreamName,
        change: &SpecChange,
    ) -> Result<Arc<Stream>, CreateError> {
        let _changing = self.changing.lock();
        let stream = self.stream(tenant, name).map_err(|UnknownStream| CreateError::Unknown)?;
        let spec = change.apply(&stream.spec())?;
        self.check_spec(&spec)?;
        let (have, wanted) = (stream.spec().shards, spec.shards);
        if wanted < have {
            return Err(CreateError::Shards { have, wanted });
        }
        self.check_shards(&self.map.read(), wanted - have)?;
        let listed = Listed { spec, ..stream.listed.clone() };
        let more = self.list_with(&listed, have..wanted)?;
        stream.shards().iter().for_each(|shard| shard.core.respecify(&listed.spec));
        let shards = stream.shards().iter().cloned().chain(more).collect();
        Ok(self.publish(listed, shards))
    }

    /// Deletes a stream and its files. Gone once it is answered, whatever happens then.
    pub(crate) fn delete(&self, tenant: &Tenant, name: &StreamName) -> Result<(), DeleteError> {
        let _changing = self.changing.lock();
        let stream = self.stream(tenant, name).map_err(|UnknownStream| DeleteError::Unknown)?;
        let (id, shards) = (stream.listed.id, stream.listed.spec.shards);
        self.catalogue.delete(id, shards)?;
        self.map.write().remove(tenant, name);
        stream.shards().iter().for_each(|shard| shard.core.close());
        tracing::info!(%tenant, stream = %name, id, "stream deleted");
        self.remove_files(id, shards);
        Ok(())
    }

    /// Removes the files of a deleted stream, and notes that they are gone. What fails is tried again at the
    /// next opening.
    fn remove_files(&self, id: u64, shards: u32) {
        if self.dir.is_some() {
            (0..shards).for_each(|shard| self.remove_shard(id, shard));
        }
        if let Err(error) = self.catalogue.removed(id) {
            self.note(format!("the removal of stream {id} could not be noted: {error:?}"));
        }
    }

    fn remove_shard(&self, id: u64, shard: u32) {
        if let Some(dir) = &self.dir
            && let Err(error) = dir.remove(log_id(id, shard))
        {
            self.note(format!(
                "the files of shard {shard} of the deleted stream {id} could not be removed: {error}"
            ));
        }
    }

    fn opening(&self) -> Opening<'_> {
        Opening { room: &self.room, dir: self.dir.as_ref() }
    }

    /// A stream.
    pub(crate) fn stream(&self, tenant: &Tenant, name: &StreamName) -> Result<Arc<Stream>, UnknownStream> {
        self.map.read().get(tenant, name).cloned().ok_or(UnknownStream)
    }

    /// A stream, made if the policy says so.
    pub(crate) fn stream_or_create(
        &self,
        tenant: &Tenant,
        name: &StreamName,
    ) -> Result<Arc<Stream>, CreateError> {
        if let Ok(stream) = self.stream(tenant, name) {
            return Ok(stream);
        }
        if !self.create.auto_create {
            return Err(CreateError::Unknown);
        }
        match self.create(tenant, name, self.create.spec.clone()) {
            // Somebody else was faster.
            Err(CreateError::Exists) => {
                self.stream(tenant, name).map_err(|UnknownStream| CreateError::Unknown)
            }
            made => made,
        }
    }

    /// The tenant's streams whose names begin like this, in order of name, after `after`.
    pub(crate) fn list(
        &self,
        tenant: &Tenant,
        prefix: &str,
        after: Option<&StreamName>,
        limit: usize,
    ) -> Vec<Arc<Stream>> {
        let map = self.map.read();
        let Some(names) = map.tenants.get(tenant) else { return Vec::new() };
        let from = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let range = names.range::<str, _>((from, Bound::Unbounded));
        let found = range.take_while(|(name, _)| name.as_str().starts_with(prefix));
        found.take(limit).map(|(_, stream)| stream.clone()).collect()
    }

    /// Every stream, of all tenants.
    pub(crate) fn all(&self) -> Vec<Arc<Stream>> {
        self.map.read().all().cloned().collect()
    }

    /// The tenant of the broker's own streams.
    pub(crate) fn system_tenant() -> Tenant {
        Tenant::new(SYSTEM_TENANT).expect("the name is valid")
    }

    /// One of the broker's own streams, made if it is not there.
    pub(crate) fn internal(&self, name: &StreamName, spec: StreamSpec) -> Result<Arc<Stream>, CreateError> {
        let tenant = Self::system_tenant();
        match self.stream(&tenant, name) {
            Ok(stream) => Ok(stream),
            Err(UnknownStream) => self.create(&tenant, name, spec),
        }
    }

    /// An identity for a producer; none if the disk has no room to remember that it was given.
    pub(crate) fn take_producer(&self) -> Result<i64, CreateError> {
        Ok(self.catalogue.take_producer()?)
    }

    /// What is done in the background: retention, snapshots of producers, compaction, and taking memory from
    /// those that do not use it. May wait for the disk.
    pub(crate) fn tick(&self, now_ms: i64) {
        let streams = self.all();
        let fair = self.fair_share(&streams);
        let mut turn = Turn { now_ms, fair, compaction_bytes: COMPACTION_STEP_BYTES };
        for stream in &streams {
            for shard in stream.shards() {
                if let Err(problem) = shard.tend(&stream.spec(), self.dir.as_deref(), &mut turn) {
                    self.note(problem);
                }
            }
        }
    }

    /// What a shard in memory may keep while memory is short.
    fn fair_share(&self, streams: &[Arc<Stream>]) -> Option<usize> {
        let memory = &self.room.memory;
        let is_short = memory.used() > memory.limit() / 8 * 7;
        let in_memory = || streams.iter().filter(|stream| !stream.spec().durability.is_durable());
        is_short.then(|| {
            memory.limit() / 8 * 7 / in_memory().map(|stream| stream.shards().len()).sum::<usize>().max(1)
        })
    }

    fn note(&self, problem: String) {
        tracing::warn!("{problem}");
        *self.problem.lock() = Some(problem);
    }

    pub(crate) fn health(&self) -> Health {
        let mut full = Vec::new();
        for stream in self.all() {
            full.extend(
                stream.shards().iter().filter(|shard| shard.is_full()).map(|shard| shard.core.label.clone()),
            );
        }
        Health {
            draining: self.room.is_draining(),
            full,
            orphans: self.orphans.clone(),
            problem: self.problem.lock().clone(),
        }
    }

    pub(crate) fn stats(&self) -> BrokerStats {
        let tenants = self.room.tenants().into_iter().map(|(tenant, share)| TenantStats {
            tenant,
            inflight_bytes: share.used(),
            refused: share.refused(),
        });
        BrokerStats {
            streams: self.all().iter().map(|stream| stream.stats()).collect(),
            tenants: tenants.collect(),
            inflight_bytes: self.room.process().used(),
            refused: self.room.process().refused(),
            tail_bytes: (self.room.tails.used(), self.room.tails.limit()),
            memory_bytes: (self.room.memory.used(), self.room.memory.limit()),
            committer: self.dir.as_ref().map(|dir| dir.stats()),
        }
    }

    /// Takes nothing new, waits until everything taken is on disk, and stores what the next opening is faster
    /// with.
    pub(crate) fn drain(&self) {
        self.room.drain();
        for stream in self.all() {
            for shard in stream.shards() {
                if let Err(problem) = shard.settle(self.dir.as_deref()) {
                    self.note(problem);
                }
            }
        }
    }
}

/// Numbers of streams that the logs on disk are of.
pub(crate) fn streams_of(logs: &[trifid_base_log::LogId]) -> Vec<u64> {
    let mut ids: Vec<u64> = logs.iter().map(|log| stream_of(*log)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
