//! The broker: everything that a face may ask.

use std::sync::Arc;

use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

use crate::admission::ConnectionBudget;
use crate::cache::Caches;
use crate::error::{CreateError, DeleteError, OpenError, UnknownStream};
use crate::groups::Groups;
use crate::options::{CreatePolicy, Options};
use crate::stats::{BrokerStats, Health};
use crate::stream::Stream;
use crate::streams::{SYSTEM_TENANT, SpecChange, Streams};

/// An identity for an idempotent producer (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// Never given before, by any life of this data directory.
    pub id: i64,
    /// Its first epoch.
    pub epoch: i16,
}

/// A single node's streams, groups and caches. Cheap to clone.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    groups: Groups,
    caches: Caches,
    streams: Arc<Streams>,
}

impl Broker {
    /// Opens what is there: catalogue, logs, producers, then groups and caches. Reads the disk.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let streams = Streams::open(options)?;
        let groups = Groups::open(streams.clone())?;
        let caches = Caches::open(streams.clone())?;
        Ok(Broker { inner: Arc::new(Inner { groups, caches, streams }) })
    }

    /// Makes a stream. A durable one is on disk before it is answered, and is refused without a data
    /// directory. May wait for the disk.
    pub fn create(
        &self,
        tenant: &Tenant,
        name: &StreamName,
        spec: StreamSpec,
    ) -> Result<Arc<Stream>, CreateError> {
        if is_reserved(tenant, name) {
            return Err(CreateError::Reserved);
        }
        self.inner.streams.create(tenant, name, spec)
    }

    /// Changes a stream. May wait for the disk.
    pub fn alter(
        &self,
        tenant: &Tenant,
        name: &StreamName,
        change: &SpecChange,
    ) -> Result<Arc<Stream>, CreateError> {
        if is_reserved(tenant, name) {
            return Err(CreateError::Reserved);
        }
        self.inner.streams.alter(tenant, name, change)
    }

    /// Deletes a stream and its files. Whoever reads or writes it is told. May wait for the disk.
    pub fn delete(&self, tenant: &Tenant, name: &StreamName) -> Result<(), DeleteError> {
        if is_reserved(tenant, name) {
            return Err(DeleteError::Reserved);
        }
        self.inner.streams.delete(tenant, name)
    }

    /// A stream.
    pub fn stream(&self, tenant: &Tenant, name: &StreamName) -> Result<Arc<Stream>, UnknownStream> {
        self.inner.streams.stream(tenant, name)
    }

    /// A stream, made if the [policy](crate::CreatePolicy) says so. Then it may wait for the disk.
    pub fn stream_or_create(&self, tenant: &Tenant, name: &StreamName) -> Result<Arc<Stream>, CreateError> {
        match is_reserved(tenant, name) {
            true => self.stream(tenant, name).map_err(|UnknownStream| CreateError::Reserved),
            false => self.inner.streams.stream_or_create(tenant, name),
        }
    }

    /// The tenant's stream of this [topic id](Stream::topic_id). Looks at all of the tenant's streams.
    pub fn stream_of_topic(&self, tenant: &Tenant, id: [u8; 16]) -> Result<Arc<Stream>, UnknownStream> {
        self.inner.streams.find(tenant, |stream| stream.topic_id() == id).ok_or(UnknownStream)
    }

    /// What happens when a stream is named that does not exist.
    pub fn policy(&self) -> &CreatePolicy {
        self.inner.streams.policy()
    }

    /// At most `limit` of the tenant's streams whose names begin with `prefix`, in order of name, after
    /// `after`.
    pub fn list(
        &self,
        tenant: &Tenant,
        prefix: &str,
        after: Option<&StreamName>,
        limit: usize,
    ) -> Vec<Arc<Stream>> {
        self.inner.streams.list(tenant, prefix, after, limit)
    }

    /// An identity for an idempotent producer. Every thousandth call waits for the disk.
    pub fn init_producer(&self, _tenant: &Tenant) -> Result<ProducerIdentity, CreateError> {
        Ok(ProducerIdentity { id: self.inner.streams.take_producer()?, epoch: 0 })
    }

    /// What a connection of the tenant may have in flight: `limit_bytes`, within the shares of tenant and
    /// process.
    pub fn connection(&self, tenant: &Tenant, limit_bytes: usize) -> Arc<ConnectionBudget> {
        self.inner.streams.room.connection(tenant, limit_bytes)
    }

    /// Consumer groups.
    pub fn groups(&self) -> &Groups {
        &self.inner.groups
    }

    /// Caches.
    pub fn caches(&self) -> &Caches {
        &self.inner.caches
    }

    /// The time of the broker's clock, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.inner.streams.room.now_ms()
    }

    /// What is done in the background: retention, compaction, expiry, timeouts. To be called every 100 ms to
    /// 1 s, from a thread that may wait for the disk.
    pub fn tick(&self, now_ms: i64) {
        self.inner.groups.tick(now_ms);
        self.inner.caches.tick(now_ms);
        self.inner.streams.tick(now_ms);
    }

    /// Figures for metrics.
    pub fn stats(&self) -> BrokerStats {
        self.inner.streams.stats()
    }

    /// Whether the broker can do its work.
    pub fn health(&self) -> Health {
        self.inner.streams.health()
    }

    /// Takes nothing new, and waits until all that was taken counts. Reads go on. Dropping the last handle
    /// then closes the logs.
    pub fn drain(&self) {
        self.inner.streams.drain();
    }
}

/// The broker's own streams are made, changed and deleted by itself alone.
fn is_reserved(tenant: &Tenant, name: &StreamName) -> bool {
    tenant.as_str() == SYSTEM_TENANT || name.is_internal()
}
