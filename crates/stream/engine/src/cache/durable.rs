//! How a durable cache keeps its changes: each is a record of a stream, and happens when that record counts.
//!
//! ```text
//!  put ──> record published ──> pending ──> the record counts ──> table, watches ──> acknowledgement
//!          (revision = offset + 1)
//! ```
//!
//! So nobody ever reads what a full disk or a power cut takes back. What a write expects is compared with
//! what is pending before it. Pending writes happen in order, under the lock of the journal, done by whoever
//! comes by: the acknowledgement of a write when it is polled, the next write, or the tick.
//!
//! What is evicted, or whose life ended, gets a record without a value, so that it does not come back after a
//! restart and compaction can forget it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use trifid_stream_model::batch::{Record, RecordData};

use super::limits::PENDING_MAX;
use super::types::ChangeKind;
use crate::ack::Ack;
use crate::error::PublishError;
use crate::shard::{Published, Shard};

/// The header that tells the end of an entry's life, milliseconds since 1970 as eight bytes, big endian.
const EXPIRES: &str = "expires";
/// In the place of an end that there is none of; such records have no header.
const NEVER: i64 = i64::MAX;

/// A change that was published.
pub(super) struct Write {
    pub(super) key: Bytes,
    pub(super) hash: u64,
    pub(super) kind: ChangeKind,
}

/// Changes of one record batch.
struct Pending {
    ack: Ack,
    base: u64,
    writes: SmallVec<[Write; 1]>,
}

/// What is known of a key whose change is pending.
struct Tentative {
    /// Its revision once everything has happened; zero: it will not be there.
    revision: u64,
    /// Changes of it that are pending.
    count: usize,
}

/// The stream of a durable cache, and what of it has not happened yet.
pub(super) struct Journal {
    shard: Arc<Shard>,
    pending: VecDeque<Pending>,
    writes: usize,
    by_key: HashMap<Bytes, Tentative, foldhash::fast::RandomState>,
    /// Keys that are gone here and not in the stream, because the disk was full.
    owed: HashSet<Bytes, foldhash::fast::RandomState>,
    failed: u64,
}

impl Journal {
    pub(super) fn new(shard: Arc<Shard>) -> Self {
        Journal {
            shard,
            pending: VecDeque::new(),
            writes: 0,
            by_key: HashMap::default(),
            owed: HashSet::default(),
            failed: 0,
        }
    }

    /// Writes that have not happened yet.
    pub(super) fn len(&self) -> usize {
        self.writes
    }

    /// Writes that the disk refused after they had been taken.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// The revision that a key will have, if a change of it is pending.
    pub(super) fn tentative(&self, key: &[u8]) -> Option<u64> {
        self.by_key.get(key).map(|tentative| tentative.revision)
    }

    /// Whether the stream may still hold a value of a key that is not there.
    pub(super) fn is_owed(&self, key: &[u8]) -> bool {
        self.owed.contains(key)
    }

    /// Keys whose end is still to be written.
    pub(super) fn owed(&self, max: usize) -> Vec<Bytes> {
        self.owed.iter().take(max).cloned().collect()
    }

    /// Another wait for the last change, which counts after all before it.
    pub(super) fn last_ack(&self) -> Ack {
        self.pending.back().map_or_else(Ack::ready, |pending| pending.ack.twin())
    }

    /// Publishes the changes together. Their revisions are one after the other, from the one that is
    /// answered.
    pub(super) fn publish(
        &mut self,
        writes: SmallVec<[Write; 1]>,
        now_ms: i64,
    ) -> Result<(u64, Ack), PublishError> {
        if self.writes + writes.len() > PENDING_MAX {
            return Err(PublishError::Overloaded { retry_after_ms: super::limits::RETRY_PENDING_MS });
        }
        let published = append(&self.shard, &writes, now_ms)?;
        let base = published.base_offset;
        for (write, revision) in writes.iter().zip(base + 1..) {
            let revision = if matches!(write.kind, ChangeKind::Put { .. }) { revision } else { 0 };
            self.owed.remove(&write.key);
            let tentative = self.by_key.entry(write.key.clone()).or_insert(Tentative { revision, count: 0 });
            tentative.revision = revision;
            tentative.count += 1;
        }
        self.writes += writes.len();
        let ack = published.ack.twin();
        self.pending.push_back(Pending { ack: published.ack, base, writes });
        Ok((base + 1, ack))
    }

    /// The next changes that count now, with the revision of the first. What the disk refused is dropped and
    /// counted.
    pub(super) fn next(&mut self) -> Option<(u64, SmallVec<[Write; 1]>)> {
        loop {
            let fate = self.pending.front_mut()?.ack.fate()?;
            let pending = self.pending.pop_front()?;
            self.writes -= pending.writes.len();
            for write in &pending.writes {
                self.forget(&write.key);
            }
            match fate {
                Ok(()) => return Some((pending.base + 1, pending.writes)),
                Err(_) => self.drop_refused(pending.writes),
            }
        }
    }

    fn drop_refused(&mut self, writes: SmallVec<[Write; 1]>) {
        self.failed += writes.len() as u64;
        // What was taken out already must not come back from the stream.
        let gone = writes.into_iter().filter(|w| matches!(w.kind, ChangeKind::Evicted | ChangeKind::Expired));
        self.owed.extend(gone.map(|write| write.key));
    }

    fn forget(&mut self, key: &Bytes) {
        if let Some(tentative) = self.by_key.get_mut(key) {
            tentative.count -= 1;
            if tentative.count == 0 {
                self.by_key.remove(key);
            }
        }
    }
}

/// Publishes the changes as one batch.
fn append(shard: &Arc<Shard>, writes: &[Write], now_ms: i64) -> Result<Published, PublishError> {
    // Records borrow their headers, so those are laid out first.
    let ends: SmallVec<[[u8; 8]; 1]> = writes.iter().map(|write| end(write).to_be_bytes()).collect();
    let headers: SmallVec<[_; 1]> = ends.iter().map(|end| [(EXPIRES, Some(&end[..]))]).collect();
    let records: SmallVec<[RecordData<'_>; 1]> =
        writes.iter().zip(&headers).map(|(write, headers)| record(write, headers, now_ms)).collect();
    crate::journal::publish(shard, &records)
}

fn end(write: &Write) -> i64 {
    match write.kind {
        ChangeKind::Put { expires_ms, .. } => expires_ms.unwrap_or(NEVER),
        ChangeKind::Deleted | ChangeKind::Expired | ChangeKind::Evicted => NEVER,
    }
}

fn record<'a>(write: &'a Write, headers: &'a [(&'a str, Option<&'a [u8]>)], now_ms: i64) -> RecordData<'a> {
    let (value, headers) = match &write.kind {
        ChangeKind::Put { value, expires_ms: Some(_) } => (Some(&value[..]), headers),
        ChangeKind::Put { value, expires_ms: None } => (Some(&value[..]), &[][..]),
        ChangeKind::Deleted | ChangeKind::Expired | ChangeKind::Evicted => (None, &[][..]),
    };
    RecordData { timestamp: now_ms.max(0), key: Some(&write.key), value, headers }
}

/// The end of the life of an entry, as its record has it.
pub(super) fn expires_of(record: &Record<'_>) -> Option<i64> {
    let bytes = record.headers.get(EXPIRES)??;
    bytes.try_into().ok().map(i64::from_be_bytes)
}
