//! Compaction by key: of each key the last record stays, the others go (Kafka's `cleanup.policy=compact`).
//!
//! Two passes, step by step so that nothing else in the background waits long. The first reads what was
//! written since the last time and remembers for each key the offset of its last record; when the memory for
//! keys is used up it ends there, and the rest is left to the next time. The second writes the sealed
//! segments below that end again, without the records whose key has a later one. Offsets stay: what is gone
//! leaves a gap.
//!
//! - A record without a key is never superseded.
//! - A tombstone (a record without a value) goes when it is older than [`TOMBSTONE_MS`] and an earlier
//!   compaction has taken away what it deletes: a reader who is that slow still hears of the deletion.
//! - The segment being written is not looked at.
//! - A batch that cannot be opened stays as it is.
//!
//! Keys are remembered as 128-bit hashes with random seeds: two keys in one shard of 2^32 keys are taken for
//! one with a chance of 2^-65. It begins when half of the sealed bytes are new, as Kafka does
//! (`min.cleanable.dirty.ratio`), so every byte is written again about twice as often as it is superseded.

use std::collections::VecDeque;

use bytes::Bytes;
use foldhash::quality::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;
use trifid_base_log::{CompactError, ReadError, Rewrite};
use trifid_stream_model::batch::{Filtered, Record, filter, open};
use trifid_stream_model::limits::INFLATED_BYTES_DEFAULT;

use crate::error::FetchError;
use crate::limits::{KEY_BYTES, PAGE_BYTES_MAX, TOMBSTONE_MS};
use crate::room::Room;
use crate::store::ShardLog;

/// Seeds of the two halves of a key's hash.
struct Hasher(FixedState, FixedState);

impl Hasher {
    fn hash(&self, key: &[u8]) -> u128 {
        u128::from(self.0.hash_one(key)) << 64 | u128::from(self.1.hash_one(key))
    }
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Everything below is compacted.
    pub(crate) to: u64,
    /// Batches that are gone as a whole.
    pub(crate) dropped: u64,
    /// Bytes that are free.
    pub(crate) bytes_freed: u64,
}

enum Phase {
    /// Reading keys, at this offset.
    Mapping(u64),
    /// Writing the segments that begin at these offsets again.
    Rewriting(VecDeque<u64>),
}

/// A compaction under way.
pub(crate) struct Compaction {
    hasher: Hasher,
    /// The offset of the last record of each key.
    last: HashMap<u128, u64, foldhash::fast::FixedState>,
    keys_max: usize,
    phase: Phase,
    /// What is done so far. It ends where the sealed segments end, or the keys that fit.
    done: Done,
    /// Below, a compaction saw every record already.
    cleaned: u64,
}

impl Compaction {
    /// Begins one if at least half of what is sealed was written since the last.
    pub(crate) fn begin(log: &ShardLog, cleaned: u64, room: &Room) -> Result<Option<Self>, ReadError> {
        let segments = log.segments()?;
        let sealed = || segments.iter().filter(|segment| segment.sealed);
        let total: u64 = sealed().map(|segment| segment.bytes).sum();
        let dirty = sealed().filter(|segment| segment.end.get() > cleaned);
        let dirty: u64 = dirty.map(|segment| segment.bytes).sum();
        let Some(to) = sealed().next_back().map(|segment| segment.end.get()) else { return Ok(None) };
        if dirty == 0 || dirty * 2 < total {
            return Ok(None);
        }
        let seed = || FixedState::with_seed(room.entropy.next_u64());
        let from = segments.first().map_or(0, |segment| segment.base.get());
        Ok(Some(Compaction {
            hasher: Hasher(seed(), seed()),
            last: HashMap::default(),
            keys_max: (room.limits.compaction_bytes_max / KEY_BYTES).max(1),
            phase: Phase::Mapping(cleaned.max(from)),
            done: Done { to, ..Done::default() },
            cleaned,
        }))
    }

    /// Works on about so many bytes as are left, and takes them off; answers whether it is done.
    pub(crate) fn step(
        &mut self,
        log: &ShardLog,
        now_ms: i64,
        left: &mut usize,
    ) -> Result<bool, CompactError> {
        while *left > 0 {
            let used = match &mut self.phase {
                Phase::Mapping(next) if *next >= self.done.to => {
                    self.phase = Phase::Rewriting(self.segments(log)?);
                    0
                }
                Phase::Mapping(next) => {
                    let from = *next;
                    self.map_page(log, from)?
                }
                Phase::Rewriting(segments) => match segments.pop_front() {
                    None => return Ok(true),
                    Some(base) => self.rewrite(log, base, now_ms)?,
                },
            };
            *left = left.saturating_sub(usize::try_from(used).unwrap_or(usize::MAX).max(1));
        }
        Ok(false)
    }

    pub(crate) fn done(&self) -> Done {
        self.done
    }

    fn segments(&self, log: &ShardLog) -> Result<VecDeque<u64>, ReadError> {
        let segments = log.segments()?.into_iter();
        let wanted = segments.filter(|segment| segment.sealed && segment.base.get() < self.done.to);
        Ok(wanted.map(|segment| segment.base.get()).collect())
    }

    /// Remembers the keys of one page; answers the bytes that it held.
    fn map_page(&mut self, log: &ShardLog, from: u64) -> Result<u64, CompactError> {
        let page = match log.read(from, PAGE_BYTES_MAX) {
            Ok(page) => page,
            // Retention was faster.
            Err(FetchError::TooOld { first }) => {
                self.phase = Phase::Mapping(first);
                return Ok(0);
            }
            Err(error) => return Err(unread(&error)),
        };
        let mut used = 0;
        for entry in &page.entries {
            used += entry.bytes.len() as u64;
            if entry.base >= self.done.to || !self.map_batch(entry.base, &entry.bytes) {
                self.done.to = self.done.to.min(entry.base);
                self.phase = Phase::Mapping(self.done.to);
                return Ok(used);
            }
        }
        self.phase = Phase::Mapping(page.next.max(from + 1));
        Ok(used)
    }

    /// Remembers the keys of a batch; answers whether they fit.
    fn map_batch(&mut self, base: u64, batch: &Bytes) -> bool {
        let Ok(opened) = open(batch, INFLATED_BYTES_DEFAULT) else { return true };
        let count = usize::try_from(opened.header().count).unwrap_or(0);
        // A first batch is taken however many keys it has: otherwise nothing would ever be done.
        if !self.last.is_empty() && self.last.len() + count > self.keys_max {
            return false;
        }
        for record in opened.records().filter_map(Result::ok) {
            if let Some(key) = record.key {
                self.last.insert(self.hasher.hash(key), base + u64::from(record.delta));
            }
        }
        true
    }

    /// Writes one segment again; answers the bytes that it had.
    fn rewrite(&mut self, log: &ShardLog, base: u64, now_ms: i64) -> Result<u64, CompactError> {
        let compacted = log.compact(base, |offset, batch| self.rewritten(offset, batch, now_ms));
        let compacted = match compacted {
            // Retention was faster.
            Err(CompactError::NoSegment(_)) => return Ok(0),
            compacted => compacted?,
        };
        self.done.dropped += compacted.dropped;
        self.done.bytes_freed += compacted.bytes_before.saturating_sub(compacted.bytes_after);
        Ok(compacted.bytes_before)
    }

    fn rewritten(&self, base: u64, batch: &Bytes, now_ms: i64) -> Rewrite {
        let kept = filter(batch, INFLATED_BYTES_DEFAULT, |record| {
            self.stays(base + u64::from(record.delta), record, now_ms)
        });
        match kept {
            Ok(Filtered::Whole) | Err(_) => Rewrite::Keep,
            Ok(Filtered::Part(batch)) => Rewrite::Replace(batch),
            Ok(Filtered::Nothing) => Rewrite::Drop,
        }
    }

    fn stays(&self, offset: u64, record: &Record<'_>, now_ms: i64) -> bool {
        let Some(key) = record.key else { return true };
        let last = self.last.get(&self.hasher.hash(key)).copied();
        if last.is_some_and(|last| offset < last) {
            return false;
        }
        let was_seen = offset < self.cleaned && record.timestamp < now_ms.saturating_sub(TOMBSTONE_MS);
        record.value.is_some() || !was_seen
    }
}

fn unread(error: &FetchError) -> CompactError {
    let source = std::io::Error::other(error.to_string());
    CompactError::Io { action: "reading", path: "log".into(), source }
}

#[cfg(test)]
mod tests;
