//! What a stream and a cache are: what their owner chooses when making them.

use std::time::Duration;

use crate::limits::{
    BATCH_BYTES_DEFAULT, BATCH_BYTES_MAX, BATCH_BYTES_MIN, CACHE_BUDGET_BYTES_DEFAULT,
    CACHE_BUDGET_BYTES_MIN, FLUSH_INTERVAL_MS_DEFAULT, FLUSH_INTERVAL_MS_MAX, FLUSH_INTERVAL_MS_MIN,
    RETENTION_BYTES_MIN, RETENTION_MS_MIN, SHARDS_MAX,
};

/// What an acknowledgement promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Nothing is written to a disk; a restart forgets it all.
    Memory,
    /// Written at once and acknowledged, flushed each interval: a power cut loses the last interval, the end of the
    /// process loses nothing.
    Periodic {
        /// Milliseconds between flushes.
        interval_ms: u32,
    },
    /// Acknowledged after the flush.
    OnCommit,
}

impl Durability {
    /// Periodic with the usual interval.
    pub const PERIODIC: Self = Self::Periodic { interval_ms: FLUSH_INTERVAL_MS_DEFAULT };

    /// Whether it needs a data directory.
    pub fn is_durable(self) -> bool {
        self != Self::Memory
    }

    /// The time between flushes, of a periodic one.
    pub fn interval(self) -> Option<Duration> {
        match self {
            Self::Periodic { interval_ms } => Some(Duration::from_millis(interval_ms.into())),
            Self::Memory | Self::OnCommit => None,
        }
    }

    fn validate(self) -> Result<(), SpecError> {
        match self {
            Self::Periodic { interval_ms } => within(
                "interval_ms",
                interval_ms.into(),
                FLUSH_INTERVAL_MS_MIN.into(),
                FLUSH_INTERVAL_MS_MAX.into(),
            ),
            Self::Memory | Self::OnCommit => Ok(()),
        }
    }
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// An ordinary stream.
    #[default]
    Events,
    /// Where a group sets aside what could not be delivered; made by the broker.
    DeadLetter,
    /// The broker's own: committed offsets, the changes of a durable cache.
    Internal,
}

/// What the owner of a stream chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// Parts that are ordered, stored and owned on their own. Never changes: keys would move.
    pub shards: u32,
    /// What an acknowledgement promises.
    pub durability: Durability,
    /// Records older than this may go; `None` keeps them.
    pub retention_ms: Option<u64>,
    /// The oldest segments of a shard go when it is larger than this; `None` keeps them.
    pub retention_bytes: Option<u64>,
    /// Keep the last record of each key, whatever its age.
    pub compact: bool,
    /// The largest batch that is accepted, as it is on the wire.
    pub max_batch_bytes: u32,
    /// What it is for.
    pub kind: StreamKind,
}

impl Default for StreamSpec {
    fn default() -> Self {
        Self {
            shards: 1,
            durability: Durability::OnCommit,
            retention_ms: None,
            retention_bytes: None,
            compact: false,
            max_batch_bytes: BATCH_BYTES_DEFAULT,
            kind: StreamKind::Events,
        }
    }
}

impl StreamSpec {
    /// An ordinary stream that lives in memory.
    pub fn memory(shards: u32) -> Self {
        Self { shards, durability: Durability::Memory, ..Self::default() }
    }

    /// Whether the values lie within their limits and go together.
    pub fn validate(&self) -> Result<(), SpecError> {
        within("shards", self.shards.into(), 1, SHARDS_MAX.into())?;
        within(
            "max_batch_bytes",
            self.max_batch_bytes.into(),
            BATCH_BYTES_MIN.into(),
            BATCH_BYTES_MAX as u64,
        )?;
        if let Some(ms) = self.retention_ms {
            within("retention_ms", ms, RETENTION_MS_MIN, i64::MAX as u64)?;
        }
        if let Some(bytes) = self.retention_bytes {
            within("retention_bytes", bytes, RETENTION_BYTES_MIN, i64::MAX as u64)?;
        }
        if self.compact && !self.durability.is_durable() {
            return Err(SpecError::CompactMemory);
        }
        self.durability.validate()
    }
}

/// What the owner of a cache chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// What an acknowledged change survives.
    pub durability: Durability,
    /// Keys, values and their bookkeeping in memory; beyond it the least recently used go.
    pub budget_bytes: u64,
    /// The life of an entry whose writer names none; `None` keeps it.
    pub default_ttl_ms: Option<u64>,
}

impl Default for CacheSpec {
    fn default() -> Self {
        Self {
            durability: Durability::Memory,
            budget_bytes: CACHE_BUDGET_BYTES_DEFAULT,
            default_ttl_ms: None,
        }
    }
}

impl CacheSpec {
    /// Whether the values lie within their limits.
    pub fn validate(&self) -> Result<(), SpecError> {
        within("budget_bytes", self.budget_bytes, CACHE_BUDGET_BYTES_MIN, i64::MAX as u64)?;
        if let Some(ms) = self.default_ttl_ms {
            within("default_ttl_ms", ms, 1, i64::MAX as u64)?;
        }
        self.durability.validate()
    }
}

/// Why a specification is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A value outside its limits.
    #[error("{field} is {value}, and must lie between {min} and {max}")]
    OutOfRange {
        /// Which value.
        field: &'static str,
        /// What it is.
        value: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// Compaction of a stream without files.
    #[error("a stream in memory cannot be compacted")]
    CompactMemory,
}

fn within(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), SpecError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(SpecError::OutOfRange { field, value, min, max }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        assert_eq!(StreamSpec::default().validate(), Ok(()));
        assert_eq!(StreamSpec::memory(12).validate(), Ok(()));
        assert_eq!(CacheSpec::default().validate(), Ok(()));
    }

    #[test]
    fn bounds_are_kept() {
        let refused = |spec: StreamSpec| spec.validate().unwrap_err();
        let out = |field, value, min, max| SpecError::OutOfRange { field, value, min, max };
        assert_eq!(refused(StreamSpec::memory(0)), out("shards", 0, 1, 1024));
        assert_eq!(refused(StreamSpec { compact: true, ..StreamSpec::memory(1) }), SpecError::CompactMemory);
        let durability = Durability::Periodic { interval_ms: 0 };
        assert_eq!(
            refused(StreamSpec { durability, ..StreamSpec::default() }),
            out("interval_ms", 0, 5, 60_000)
        );
        let spec = CacheSpec { budget_bytes: 1, ..CacheSpec::default() };
        assert!(matches!(spec.validate(), Err(SpecError::OutOfRange { field: "budget_bytes", .. })));
    }
}
