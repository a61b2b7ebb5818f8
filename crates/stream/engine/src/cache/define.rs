//! Which caches there are, kept in the broker's own stream `_caches` where there is a data directory.
//!
//! ```text
//!  key    tenant / name
//!  value  version u8 (1) | id u64 | durability u8 (0 memory, 1 periodic, 2 on commit) | interval_ms u32
//!         | budget_bytes u64 | default_ttl_ms u64 (u64::MAX: none)                   big endian
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, BufMut};
use trifid_stream_model::batch::RecordData;
use trifid_stream_model::names::{CacheName, Tenant};
use trifid_stream_model::spec::{CacheSpec, Durability};

use super::limits::CACHES_MAX;
use super::types::CacheCreateError;
use crate::error::{CommitFailure, CreateError, OpenError, PublishError};
use crate::shard::Shard;
use crate::streams::Streams;

const STREAM: &str = "_caches";
const VERSION: u8 = 1;
const VALUE_LEN: usize = 1 + 8 + 1 + 4 + 8 + 8;

/// A cache as it is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) id: u64,
    pub(super) tenant: Tenant,
    pub(super) name: CacheName,
    pub(super) spec: CacheSpec,
}

impl Definition {
    fn value(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(VALUE_LEN);
        out.put_u8(VERSION);
        out.put_u64(self.id);
        let (durability, interval_ms) = match self.spec.durability {
            Durability::Memory => (0, 0),
            Durability::Periodic { interval_ms } => (1, interval_ms),
            Durability::OnCommit => (2, 0),
        };
        out.put_u8(durability);
        out.put_u32(interval_ms);
        out.put_u64(self.spec.budget_bytes);
        out.put_u64(self.spec.default_ttl_ms.unwrap_or(u64::MAX));
        out
    }

    fn read(key: &[u8], mut value: &[u8]) -> Option<Self> {
        let (tenant, name) = read_key(key)?;
        if value.len() != VALUE_LEN || value.get_u8() != VERSION {
            return None;
        }
        let (id, durability, interval_ms) = (value.get_u64(), value.get_u8(), value.get_u32());
        let durability = match durability {
            0 => Durability::Memory,
            1 => Durability::Periodic { interval_ms },
            2 => Durability::OnCommit,
            _ => return None,
        };
        let budget_bytes = value.get_u64();
        let default_ttl_ms = Some(value.get_u64()).filter(|ms| *ms != u64::MAX);
        Some(Self { id, tenant, name, spec: CacheSpec { durability, budget_bytes, default_ttl_ms } })
    }
}

/// See [`super::fuzz`].
pub(super) fn fuzz(bytes: &[u8]) {
    let Some(definition) = Definition::read(b"default/c", bytes) else { return };
    let again = Definition::read(b"default/c", &definition.value());
    assert_eq!(again.as_ref(), Some(&definition));
    _ = read_key(bytes);
}

fn key(tenant: &Tenant, name: &CacheName) -> String {
    format!("{tenant}/{name}")
}

fn read_key(key: &[u8]) -> Option<(Tenant, CacheName)> {
    let (tenant, name) = std::str::from_utf8(key).ok()?.split_once('/')?;
    Some((Tenant::new(tenant).ok()?, CacheName::new(name).ok()?))
}

/// All definitions.
#[derive(Default)]
pub(super) struct Definitions {
    known: BTreeMap<(Tenant, CacheName), Definition>,
    next_id: u64,
    shard: Option<Arc<Shard>>,
}

impl Definitions {
    pub(super) fn open(streams: &Streams) -> Result<Self, OpenError> {
        if streams.dir.is_none() {
            return Ok(Definitions::default());
        }
        let spec = crate::journal::spec(Durability::OnCommit);
        let stream = streams.internal(&crate::journal::name(STREAM), spec);
        let stream = stream.map_err(|error| OpenError::Internal(format!("{STREAM}: {error}")))?;
        let shard = stream.shard(0).cloned();
        let mut definitions = Definitions { known: BTreeMap::new(), next_id: 0, shard: shard.clone() };
        let mut strange = None;
        if let Some(shard) = &shard {
            crate::journal::replay(shard, |record| {
                if let Err(error) = definitions.take(record.key.unwrap_or(&[]), record.value) {
                    strange.get_or_insert(error);
                }
            })?;
        }
        strange.map_or(Ok(definitions), Err)
    }

    fn take(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), OpenError> {
        let strange = || OpenError::Internal(format!("{STREAM}: the record of {}", key.escape_ascii()));
        match value {
            None => _ = self.known.remove(&read_key(key).ok_or_else(strange)?),
            Some(value) => {
                let definition = Definition::read(key, value).ok_or_else(strange)?;
                self.next_id = self.next_id.max(definition.id + 1);
                self.known.insert((definition.tenant.clone(), definition.name.clone()), definition);
            }
        }
        Ok(())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Definition> {
        self.known.values()
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// A number that no cache has.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// On disk before it is answered.
    pub(super) fn add(&mut self, definition: &Definition, now_ms: i64) -> Result<(), CacheCreateError> {
        self.write(&key(&definition.tenant, &definition.name), Some(&definition.value()), now_ms)?;
        self.next_id = definition.id + 1;
        self.known.insert((definition.tenant.clone(), definition.name.clone()), definition.clone());
        Ok(())
    }

    /// On disk before it is answered.
    pub(super) fn remove(
        &mut self,
        tenant: &Tenant,
        name: &CacheName,
        now_ms: i64,
    ) -> Result<(), CacheCreateError> {
        self.write(&key(tenant, name), None, now_ms)?;
        self.known.remove(&(tenant.clone(), name.clone()));
        Ok(())
    }

    fn write(&self, key: &str, value: Option<&[u8]>, now_ms: i64) -> Result<(), CacheCreateError> {
        let Some(shard) = &self.shard else { return Ok(()) };
        let record = RecordData {
            timestamp: now_ms.max(0),
            key: Some(key.as_bytes()),
            value,
            ..RecordData::default()
        };
        crate::journal::publish(shard, &[record])?.ack.wait()?;
        Ok(())
    }
}

impl From<PublishError> for CacheCreateError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::NoSpace => CacheCreateError::NoSpace,
            PublishError::ShuttingDown => CacheCreateError::ShuttingDown,
            _ => CacheCreateError::Failed,
        }
    }
}

impl From<CommitFailure> for CacheCreateError {
    fn from(error: CommitFailure) -> Self {
        match error {
            CommitFailure::NoSpace => CacheCreateError::NoSpace,
            CommitFailure::Deleted | CommitFailure::Failed => CacheCreateError::Failed,
        }
    }
}

impl From<CreateError> for CacheCreateError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::NoSpace => CacheCreateError::NoSpace,
            CreateError::ShuttingDown => CacheCreateError::ShuttingDown,
            CreateError::TooMany { .. } => CacheCreateError::TooMany { limit: CACHES_MAX },
            _ => CacheCreateError::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lies on disks already.
    #[test]
    fn the_bytes_are_what_they_were() {
        let definition = Definition {
            id: 2,
            tenant: Tenant::default(),
            name: CacheName::new("n.c").unwrap(),
            spec: CacheSpec {
                durability: Durability::Periodic { interval_ms: 250 },
                budget_bytes: 1 << 20,
                default_ttl_ms: None,
            },
        };
        let value = definition.value();
        assert_eq!(
            value,
            b"\x01\0\0\0\0\0\0\0\x02\x01\0\0\0\xfa\0\0\0\0\0\x10\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
        );
        let key = key(&definition.tenant, &definition.name);
        assert_eq!(key, "default/n.c");
        assert_eq!(Definition::read(key.as_bytes(), &value), Some(definition));
        assert_eq!(Definition::read(b"default/n.c", &value[1..]), None);
        assert_eq!(Definition::read(b"no tenant", &value), None);
    }
}
