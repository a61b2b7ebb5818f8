//! A stream: its name, what its owner chose, and its shards.

use std::sync::Arc;

use trifid_stream_model::batch::Rules;
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

use crate::catalogue::Listed;
use crate::shard::Shard;
use crate::stats::{ShardStats, StreamStats};

/// A number that no other stream of this data directory has or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// A stream as it was when it was looked up. One that is altered is another `Stream` with the same shards, so
/// a handle that is kept goes on working and sees its old choices.
pub struct Stream {
    pub(crate) listed: Listed,
    spec: Arc<StreamSpec>,
    shards: Box<[Arc<Shard>]>,
    installation: u64,
}

impl Stream {
    pub(crate) fn new(listed: Listed, shards: Vec<Arc<Shard>>, installation: u64) -> Arc<Self> {
        let spec = Arc::new(listed.spec.clone());
        Arc::new(Stream { listed, spec, shards: shards.into(), installation })
    }

    /// Its full name.
    pub fn name(&self) -> &StreamName {
        &self.listed.name
    }

    /// Whose it is.
    pub fn tenant(&self) -> &Tenant {
        &self.listed.tenant
    }

    /// What its owner chose.
    pub fn spec(&self) -> Arc<StreamSpec> {
        self.spec.clone()
    }

    /// Its shards.
    pub fn shards(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    /// One of its shards.
    pub fn shard(&self, index: u32) -> Option<&Arc<Shard>> {
        self.shards.get(index as usize)
    }

    /// Its number.
    pub fn id(&self) -> StreamId {
        StreamId(self.listed.id)
    }

    /// Its number as Kafka's clients have it (KIP-516): unlike that of any stream elsewhere, and never zero.
    pub fn topic_id(&self) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.installation.to_be_bytes());
        id[8..].copy_from_slice(&self.listed.id.to_be_bytes());
        id
    }

    /// When it was made, in milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.listed.created_ms
    }

    /// Whether it was deleted meanwhile.
    pub fn is_deleted(&self) -> bool {
        self.shards.first().is_none_or(|shard| shard.is_deleted())
    }

    /// How a batch for it is checked.
    pub fn rules(&self) -> Rules {
        Rules::PRODUCED.max_bytes(self.spec.max_batch_bytes as usize)
    }

    /// The figures of its shards together.
    pub fn stats(&self) -> StreamStats {
        let sum = self.shards.iter().fold(ShardStats::default(), |sum, shard| sum.plus(shard.stats()));
        let (tenant, name) = (self.listed.tenant.clone(), self.listed.name.clone());
        StreamStats { tenant, name, shards: self.shards.len(), sum }
    }
}
