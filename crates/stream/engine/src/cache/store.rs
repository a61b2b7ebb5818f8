//! One cache: put, get, delete, compare-and-set, several at once, scan.
//!
//! Reading takes the lock of one part of the table and copies nothing. Writing in memory takes that lock and
//! the one of the changes; writing durably takes the lock of the journal first (see [`super::durable`]).
//! Locks are always taken in the order journal, part, changes, and nobody is woken under any of them.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use trifid_stream_model::frame::{Expect, Ttl};
use trifid_stream_model::limits::{CACHE_KEY_BYTES_MAX, CACHE_OPS_MAX, CACHE_VALUE_BYTES_MAX};
use trifid_stream_model::names::{CacheName, Tenant};
use trifid_stream_model::spec::CacheSpec;

use super::ack::WriteAck;
use super::changes::{Changes, Filter, Wakers};
use super::durable::{Journal, Write};
use super::limits::{
    CHANGE_BYTES_MAX, EVICTED_AT_ONCE_MAX, EXPIRED_PER_TICK_MAX, PART_BYTES, PARTS_MAX, SCAN_BYTES_MAX,
    SCAN_ENTRIES_MAX,
};
use super::part::{Page, Part, Taken, cost};
use super::stats::{CacheStats, Counters};
use super::types::{CacheError, ChangeKind, Done, Found, Op};
use super::watch::Watch;
use crate::checked::own;
use crate::error::PublishError;
use crate::room::Room;
use crate::shard::Shard;

/// A cache. It keeps the broker's logs open.
pub struct Cache {
    pub(super) tenant: Tenant,
    pub(super) name: CacheName,
    pub(super) spec: CacheSpec,
    pub(super) id: u64,
    room: Arc<Room>,
    hasher: foldhash::fast::RandomState,
    parts: Box<[Mutex<Part>]>,
    used: AtomicUsize,
    next_victim: AtomicUsize,
    changes: Mutex<Changes>,
    journal: Option<Mutex<Journal>>,
    counters: Counters,
    gone: AtomicBool,
}

/// A write that was taken.
#[must_use = "a durable write counts when its acknowledgement says so"]
#[derive(Debug)]
pub struct Written {
    /// The revision of the change; zero: nothing changed.
    pub revision: u64,
    /// Resolves when it counts; then it is read and watched.
    pub ack: WriteAck,
}

/// Several operations that were taken.
#[must_use = "durable writes count when their acknowledgement says so"]
#[derive(Debug)]
pub struct Batch {
    /// What became of each.
    pub results: Vec<Result<Done, CacheError>>,
    /// Resolves when all writes count.
    pub ack: WriteAck,
}

/// A page of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// In the order of their keys.
    pub entries: Vec<(Bytes, Found)>,
    /// Whether there are more after the last; if there is no last, the key to go on after is the one that was
    /// given.
    pub more: bool,
}

impl Cache {
    pub(super) fn new(
        owner: (Tenant, CacheName),
        spec: CacheSpec,
        id: u64,
        room: Arc<Room>,
        shard: Option<Arc<Shard>>,
    ) -> Self {
        let parts = (spec.budget_bytes / PART_BYTES).clamp(1, PARTS_MAX as u64) as usize;
        let change_bytes = CHANGE_BYTES_MAX.min(usize::try_from(spec.budget_bytes / 4).unwrap_or(usize::MAX));
        // A cache in memory begins anew with each life of the broker. Its revisions begin at the time in
        // microseconds, so that one that a client remembers from a life before names nothing in this one.
        let last = match &shard {
            Some(shard) => shard.end_offset(),
            None => u64::try_from(room.clock.now().micros()).unwrap_or(0),
        };
        Cache {
            tenant: owner.0,
            name: owner.1,
            id,
            hasher: foldhash::fast::RandomState::default(),
            parts: (0..parts.next_power_of_two()).map(|_| Mutex::default()).collect(),
            used: AtomicUsize::new(0),
            next_victim: AtomicUsize::new(0),
            changes: Mutex::new(Changes::new(last, change_bytes)),
            journal: shard.map(|shard| Mutex::new(Journal::new(shard))),
            counters: Counters::default(),
            gone: AtomicBool::new(false),
            room,
            spec,
        }
    }

    /// Its full name.
    pub fn name(&self) -> &CacheName {
        &self.name
    }

    /// Whose it is.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// What its owner chose.
    pub fn spec(&self) -> &CacheSpec {
        &self.spec
    }

    /// Whether it was deleted meanwhile.
    pub fn is_deleted(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn part(&self, hash: u64) -> &Mutex<Part> {
        // The table uses the upper bits and the lowest; these are in between.
        &self.parts[(hash >> 32) as usize & (self.parts.len() - 1)]
    }

    /// Reads an entry.
    pub fn get(&self, key: &[u8]) -> Option<Found> {
        let hash = self.hash(key);
        let found = self.part(hash).lock().get(hash, key, self.room.now_ms());
        self.counters.count_read(found.is_some());
        found
    }

    /// Writes an entry, if what is there is as expected. What is pending counts as being there.
    pub fn put(
        self: &Arc<Self>,
        key: &Bytes,
        value: &Bytes,
        ttl: Ttl,
        expect: Expect,
    ) -> Result<Written, CacheError> {
        let op = Op::Put { key: key.clone(), value: value.clone(), ttl, expect };
        self.write_one(&op)
    }

    /// Removes an entry, if what is there is as expected. The revision is zero if nothing was there.
    pub fn delete(self: &Arc<Self>, key: &Bytes, expect: Expect) -> Result<Written, CacheError> {
        self.write_one(&Op::Delete { key: key.clone(), expect })
    }

    fn write_one(self: &Arc<Self>, op: &Op) -> Result<Written, CacheError> {
        self.check_open(std::slice::from_ref(op))?;
        let (result, ack) = match &self.journal {
            None => {
                let mut wakers = Wakers::new();
                let result = self.apply_now(op, &mut wakers);
                self.evict_in_memory(&mut wakers);
                wakers.into_iter().for_each(std::task::Waker::wake);
                (Some(result), WriteAck::ready())
            }
            Some(journal) => {
                let mut batch = self.batch_durably(journal, std::slice::from_ref(op))?;
                (batch.results.pop(), batch.ack)
            }
        };
        match result {
            Some(Ok(Done::Changed(revision))) => Ok(Written { revision, ack }),
            Some(Err(error)) => Err(error),
            Some(Ok(Done::Missing | Done::Found(_))) | None => Err(CacheError::Failed),
        }
    }

    fn check_open(&self, ops: &[Op]) -> Result<(), CacheError> {
        if self.is_deleted() {
            return Err(CacheError::Deleted);
        }
        if self.room.is_draining() && ops.iter().any(|op| !matches!(op, Op::Get { .. })) {
            return Err(CacheError::ShuttingDown);
        }
        Ok(())
    }

    /// Carries out several operations in their order, each on its own: one that is refused does not keep the
    /// others from happening. Durable writes among them share one record batch, and count together or not at
    /// all; those that are read after being written in the same batch are read as they were before.
    pub fn batch(self: &Arc<Self>, ops: &[Op]) -> Result<Batch, CacheError> {
        if ops.len() > CACHE_OPS_MAX {
            return Err(CacheError::TooMany { count: ops.len(), limit: CACHE_OPS_MAX });
        }
        self.check_open(ops)?;
        match &self.journal {
            None => Ok(self.batch_in_memory(ops)),
            Some(journal) => self.batch_durably(journal, ops),
        }
    }

    fn batch_in_memory(&self, ops: &[Op]) -> Batch {
        let mut wakers = Wakers::new();
        let results = ops.iter().map(|op| self.apply_now(op, &mut wakers)).collect();
        self.evict_in_memory(&mut wakers);
        wakers.into_iter().for_each(std::task::Waker::wake);
        Batch { results, ack: WriteAck::ready() }
    }

    fn apply_now(&self, op: &Op, wakers: &mut Wakers) -> Result<Done, CacheError> {
        let (key, expect) = match op {
            Op::Get { key } => return Ok(self.get(key).map_or(Done::Missing, Done::Found)),
            Op::Put { key, value, expect, .. } => {
                self.check_size(key, value)?;
                (key, *expect)
            }
            Op::Delete { key, expect } => {
                self.check_size(key, &[])?;
                (key, *expect)
            }
        };
        let (now_ms, hash) = (self.room.now_ms(), self.hash(key));
        let mut part = self.part(hash).lock();
        let there = part.revision(hash, key, now_ms);
        self.check_expected(expect, there)?;
        let kept = part.kept_key(hash, key);
        let Some(kind) = self.kind_of(op, now_ms) else { return Ok(Done::Missing) };
        if there == 0 && kind == ChangeKind::Deleted {
            return Ok(Done::Changed(0));
        }
        let key = kept.unwrap_or_else(|| Bytes::copy_from_slice(key));
        let revision = self.changes.lock().push_next(&key, kind.clone(), wakers);
        self.apply(&mut part, key, hash, kind, revision);
        Ok(Done::Changed(revision))
    }

    fn check_size(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        if key.is_empty() || key.len() > CACHE_KEY_BYTES_MAX {
            return Err(CacheError::Key { bytes: key.len(), limit: CACHE_KEY_BYTES_MAX });
        }
        let limit = usize::try_from(self.spec.budget_bytes).unwrap_or(usize::MAX);
        let limit = limit.min(cost(key, &[]) + CACHE_VALUE_BYTES_MAX);
        let bytes = cost(key, value);
        if bytes > limit { Err(CacheError::TooLarge { bytes, limit }) } else { Ok(()) }
    }

    fn check_expected(&self, expect: Expect, revision: u64) -> Result<(), CacheError> {
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => revision == 0,
            Expect::Revision(wanted) => revision == wanted && wanted != 0,
        };
        if holds {
            return Ok(());
        }
        self.counters.conflicts.fetch_add(1, Ordering::Relaxed);
        Err(CacheError::Conflict { revision })
    }

    /// What the operation does to its entry.
    fn kind_of(&self, op: &Op, now_ms: i64) -> Option<ChangeKind> {
        match op {
            Op::Get { .. } => None,
            Op::Delete { .. } => Some(ChangeKind::Deleted),
            Op::Put { value, ttl, .. } => {
                let ttl_ms = match ttl {
                    Ttl::Default => self.spec.default_ttl_ms,
                    Ttl::Forever => None,
                    Ttl::Ms(ms) => Some(*ms),
                };
                let end = |ms| now_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
                // A part of a larger buffer would keep all of it.
                let value = own(value.clone()).freeze();
                Some(ChangeKind::Put { value, expires_ms: ttl_ms.map(end) })
            }
        }
    }

    /// The change happens in the table.
    fn apply(&self, part: &mut Part, key: Bytes, hash: u64, kind: ChangeKind, revision: u64) {
        match kind {
            ChangeKind::Put { value, expires_ms } => {
                let (before, now) = part.put(hash, key, Found { value, revision, expires_ms });
                self.used.fetch_add(now, Ordering::Relaxed);
                self.used.fetch_sub(before, Ordering::Relaxed);
                self.counters.puts.fetch_add(1, Ordering::Relaxed);
            }
            ChangeKind::Deleted => {
                self.counters.deletes.fetch_add(1, Ordering::Relaxed);
                self.take_out(part, hash, &key);
            }
            ChangeKind::Expired | ChangeKind::Evicted => {
                self.take_out(part, hash, &key);
            }
        }
    }

    fn take_out(&self, part: &mut Part, hash: u64, key: &[u8]) -> Option<Taken> {
        let taken = part.remove(hash, key)?;
        self.used.fetch_sub(cost(&taken.key, &taken.found.value), Ordering::Relaxed);
        Some(taken)
    }

    fn is_over(&self) -> bool {
        self.used.load(Ordering::Relaxed) as u64 > self.spec.budget_bytes
    }

    /// Takes one entry out that may go, from the next part that has one.
    fn evict_one(&self, may_go: impl Fn(&Bytes) -> bool + Copy) -> Option<Taken> {
        (0..self.parts.len()).find_map(|_| {
            let at = self.next_victim.fetch_add(1, Ordering::Relaxed) & (self.parts.len() - 1);
            let mut part = self.parts[at].lock();
            let taken = part.evict(may_go)?;
            self.used.fetch_sub(cost(&taken.key, &taken.found.value), Ordering::Relaxed);
            Some(taken)
        })
    }

    /// Entries leave until the rest is within the budget. The change is told under the lock of the part, so
    /// that it comes before the key's next one.
    fn evict_in_memory(&self, wakers: &mut Wakers) {
        for _ in 0..EVICTED_AT_ONCE_MAX {
            if !self.is_over() {
                return;
            }
            let at = self.next_victim.fetch_add(1, Ordering::Relaxed) & (self.parts.len() - 1);
            let mut part = self.parts[at].lock();
            let Some(taken) = part.evict(|_| true) else { continue };
            self.used.fetch_sub(cost(&taken.key, &taken.found.value), Ordering::Relaxed);
            self.counters.evicted.fetch_add(1, Ordering::Relaxed);
            self.changes.lock().push_next(&taken.key, ChangeKind::Evicted, wakers);
        }
    }

    /// Entries whose life has ended leave, a bounded number at a time; they were not given out since it did.
    /// Also does what pending writes and the budget ask for.
    pub(super) fn tick(&self, now_ms: i64) {
        let mut wakers = Wakers::new();
        match &self.journal {
            None => {
                self.expire_in_memory(now_ms, &mut wakers);
                self.evict_in_memory(&mut wakers);
            }
            Some(journal) => {
                let mut journal = journal.lock();
                self.happen(&mut journal, &mut wakers);
                self.expire_durably(&mut journal, now_ms);
                self.evict_durably(&mut journal, now_ms);
                self.pay(&mut journal, now_ms);
            }
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    fn expire_in_memory(&self, now_ms: i64, wakers: &mut Wakers) {
        for part in &self.parts {
            let mut part = part.lock();
            for (key, hash) in part.ended(now_ms, EXPIRED_PER_TICK_MAX / self.parts.len()) {
                self.take_out(&mut part, hash, &key);
                self.counters.expired.fetch_add(1, Ordering::Relaxed);
                self.changes.lock().push_next(&key, ChangeKind::Expired, wakers);
            }
        }
    }

    fn batch_durably(self: &Arc<Self>, journal: &Mutex<Journal>, ops: &[Op]) -> Result<Batch, CacheError> {
        let now_ms = self.room.now_ms();
        let mut wakers = Wakers::new();
        let mut plan = Plan::default();
        let mut journal = journal.lock();
        self.happen(&mut journal, &mut wakers);
        let results: Vec<_> = ops.iter().map(|op| self.plan(&journal, &mut plan, op, now_ms)).collect();
        let published = match (plan.writes.is_empty(), plan.waits) {
            (true, false) => Ok((0, None)),
            (true, true) => Ok((0, Some(journal.last_ack()))),
            (false, _) => {
                let published = journal.publish(plan.writes, now_ms);
                published.map(|(first, ack)| (first, Some(ack))).map_err(|error| refused(&error))
            }
        };
        drop(journal);
        wakers.into_iter().for_each(std::task::Waker::wake);
        let (first, ack) = published?;
        let results = results.into_iter().map(|result| result.map(|planned| planned.done(first))).collect();
        let ack = ack.map_or_else(WriteAck::ready, |ack| WriteAck::new(self.clone(), ack));
        Ok(Batch { results, ack })
    }

    fn plan(&self, journal: &Journal, plan: &mut Plan, op: &Op, now_ms: i64) -> Result<Planned, CacheError> {
        let (key, expect) = match op {
            Op::Get { key } => return Ok(Planned::Read(self.get(key))),
            Op::Put { key, value, expect, .. } => {
                self.check_size(key, value)?;
                (key, *expect)
            }
            Op::Delete { key, expect } => {
                self.check_size(key, &[])?;
                (key, *expect)
            }
        };
        let hash = self.hash(key);
        let in_table = || self.part(hash).lock().revision(hash, key, now_ms);
        // Zero stands for what is not there; a revision of this batch is not known yet, and nobody can expect
        // it.
        let revision = match plan.there.get(key) {
            Some(false) => 0,
            Some(true) => u64::MAX,
            None => journal.tentative(key).unwrap_or_else(in_table),
        };
        self.check_expected(expect, revision)?;
        let Some(kind) = self.kind_of(op, now_ms) else { return Ok(Planned::Nothing) };
        if kind == ChangeKind::Deleted && revision == 0 && !journal.is_owed(key) {
            // Whatever removes it may not count yet.
            plan.waits |= journal.tentative(key).is_some();
            return Ok(Planned::Nothing);
        }
        let kept = self.part(hash).lock().kept_key(hash, key);
        let key = kept.unwrap_or_else(|| Bytes::copy_from_slice(key));
        plan.there.insert(key.clone(), kind != ChangeKind::Deleted);
        plan.writes.push(Write { key, hash, kind });
        Ok(Planned::Write(plan.writes.len() as u64 - 1))
    }

    /// What counts by now happens: in the table, and for those who watch.
    fn happen(&self, journal: &mut Journal, wakers: &mut Wakers) {
        while let Some((first, writes)) = journal.next() {
            for (Write { key, hash, kind }, revision) in writes.into_iter().zip(first..) {
                let mut part = self.part(hash).lock();
                self.changes.lock().push(&key, revision, kind.clone(), wakers);
                self.apply(&mut part, key, hash, kind, revision);
            }
        }
        if self.is_over() {
            self.evict_durably(journal, self.room.now_ms());
        }
    }

    /// For an acknowledgement that has come, or a tick.
    pub(super) fn settle(&self) {
        let Some(journal) = &self.journal else { return };
        let mut wakers = Wakers::new();
        self.happen(&mut journal.lock(), &mut wakers);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// Until what is pending counts.
    #[cfg(test)]
    pub(super) fn wait(&self) {
        if let Some(journal) = &self.journal {
            let last = journal.lock().last_ack();
            assert_eq!(last.wait(), Ok(()));
            self.settle();
        }
    }

    fn expire_durably(&self, journal: &mut Journal, now_ms: i64) {
        let max = EXPIRED_PER_TICK_MAX / self.parts.len();
        for part in &self.parts {
            let mut part = part.lock();
            let ended =
                part.ended(now_ms, max).into_iter().filter(|(key, _)| journal.tentative(key).is_none());
            let ended: Vec<_> = ended.collect();
            let taken: Vec<_> =
                ended.iter().filter_map(|(key, hash)| self.take_out(&mut part, *hash, key)).collect();
            drop(part);
            let count = taken.len() as u64;
            if self.leave(journal, taken, &ChangeKind::Expired, now_ms) {
                self.counters.expired.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    fn evict_durably(&self, journal: &mut Journal, now_ms: i64) {
        let mut taken = Vec::new();
        while self.is_over() && taken.len() < EVICTED_AT_ONCE_MAX {
            match self.evict_one(|key| journal.tentative(key).is_none()) {
                Some(victim) => taken.push(victim),
                None => break,
            }
        }
        let count = taken.len() as u64;
        if self.leave(journal, taken, &ChangeKind::Evicted, now_ms) {
            self.counters.evicted.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Writes that these entries, which were taken out, are gone; puts them back if that is refused.
    fn leave(&self, journal: &mut Journal, taken: Vec<Taken>, kind: &ChangeKind, now_ms: i64) -> bool {
        if taken.is_empty() {
            return false;
        }
        let write = |taken: &Taken| Write { key: taken.key.clone(), hash: taken.hash, kind: kind.clone() };
        let published = journal.publish(taken.iter().map(write).collect(), now_ms);
        if let Err(error) = &published {
            tracing::debug!(cache = %self.name, %error, "entries cannot leave yet");
            for Taken { key, hash, found } in taken {
                let (_, now) = self.part(hash).lock().put(hash, key, found);
                self.used.fetch_add(now, Ordering::Relaxed);
            }
        }
        published.is_ok()
    }

    /// Writes what the disk was too full for.
    fn pay(&self, journal: &mut Journal, now_ms: i64) {
        let owed = journal.owed(EVICTED_AT_ONCE_MAX);
        let writes: SmallVec<[Write; 1]> = owed
            .into_iter()
            .map(|key| Write { hash: self.hash(&key), key, kind: ChangeKind::Evicted })
            .collect();
        if !writes.is_empty() {
            // Refused again: they stay owed.
            _ = journal.publish(writes, now_ms);
        }
    }

    /// Entries whose keys begin with `prefix`, after the key `after` (empty: from the first), in the order of
    /// keys. At most `limit`; perhaps fewer, also when there are more. Entries that change meanwhile are
    /// given as they were or as they are.
    pub fn scan(&self, prefix: &[u8], after: &[u8], limit: usize) -> Scanned {
        self.scan_page(prefix, after, limit.clamp(1, SCAN_ENTRIES_MAX), SCAN_BYTES_MAX)
    }

    /// Each part gives a share of the page. What lies beyond the last key of a part that has more may be
    /// preceded by what that part did not give, and is left for the next page.
    pub(super) fn scan_page(&self, prefix: &[u8], after: &[u8], limit: usize, bytes_max: usize) -> Scanned {
        let parts = self.parts.len();
        let page = Page {
            prefix,
            after,
            entries_max: limit / parts + 1,
            bytes_max: bytes_max / parts,
            now_ms: self.room.now_ms(),
        };
        let mut entries = Vec::new();
        let mut known: Option<Bytes> = None;
        for part in &self.parts {
            let more = part.lock().scan(&page, &mut entries);
            let last = entries.last().filter(|_| more).map(|(key, _)| key);
            if let Some(last) = last
                && known.as_ref().is_none_or(|known| last < known)
            {
                known = Some(last.clone());
            }
        }
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let more = known.is_some();
        if let Some(known) = known {
            entries.truncate(entries.partition_point(|(key, _)| *key <= known));
        }
        let cut = entries.len() > limit;
        entries.truncate(limit);
        Scanned { entries, more: more || cut }
    }

    /// Watches a key, or all keys that begin with something: the values that are there, then every change.
    pub fn watch(self: &Arc<Self>, filter: Filter) -> Result<Watch, CacheError> {
        if self.is_deleted() {
            return Err(CacheError::Deleted);
        }
        Watch::begin(self.clone(), filter)
    }

    pub(super) fn changes(&self) -> &Mutex<Changes> {
        &self.changes
    }

    pub(super) fn count_resync(&self) {
        self.counters.resyncs.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads an entry without marking it, for a watch.
    pub(super) fn peek(&self, key: &[u8]) -> Option<Found> {
        let hash = self.hash(key);
        self.part(hash).lock().peek(hash, key, self.room.now_ms())
    }

    /// An entry as its record has it, while the cache is opened.
    pub(super) fn load(&self, key: &[u8], value: Option<&[u8]>, revision: u64, expires_ms: Option<i64>) {
        let (hash, key) = (self.hash(key), Bytes::copy_from_slice(key));
        let kind = match value {
            None => ChangeKind::Deleted,
            Some(value) => ChangeKind::Put { value: Bytes::copy_from_slice(value), expires_ms },
        };
        self.apply(&mut self.part(hash).lock(), key, hash, kind, revision);
    }

    /// After loading: what was counted meanwhile was not asked for by anybody.
    pub(super) fn loaded(&self) {
        self.counters.puts.store(0, Ordering::Relaxed);
        self.counters.deletes.store(0, Ordering::Relaxed);
        self.tick(self.room.now_ms());
    }

    /// Deleted: who watches is told, and the memory is given back.
    pub(super) fn close(&self) {
        self.gone.store(true, Ordering::Release);
        let wakers = self.changes.lock().close();
        wakers.into_iter().for_each(std::task::Waker::wake);
        for part in &self.parts {
            *part.lock() = Part::default();
        }
        self.used.store(0, Ordering::Relaxed);
    }

    /// Figures for metrics.
    pub fn stats(&self) -> CacheStats {
        let (pending, failed) = self
            .journal
            .as_ref()
            .map(Mutex::lock)
            .map_or((0, 0), |journal| (journal.len(), journal.failed()));
        let changes = self.changes.lock();
        let (watches, revision) = (changes.watches(), changes.last());
        drop(changes);
        CacheStats {
            entries: self.parts.iter().map(|part| part.lock().len()).sum(),
            bytes: self.used.load(Ordering::Relaxed),
            budget_bytes: self.spec.budget_bytes,
            revision,
            watches,
            pending,
            failed,
            ..self.counters.read()
        }
    }
}

/// The writes of a batch, before they are published.
#[derive(Default)]
struct Plan {
    writes: SmallVec<[Write; 1]>,
    /// What is answered depends on changes that are pending.
    waits: bool,
    /// Whether a key will be there that the batch has written already.
    there: HashMap<Bytes, bool, foldhash::fast::RandomState>,
}

/// What becomes of an operation once its batch is published.
enum Planned {
    Read(Option<Found>),
    Nothing,
    /// The place among the writes.
    Write(u64),
}

impl Planned {
    fn done(self, first: u64) -> Done {
        match self {
            Planned::Read(found) => found.map_or(Done::Missing, Done::Found),
            Planned::Nothing => Done::Changed(0),
            Planned::Write(at) => Done::Changed(first + at),
        }
    }
}

fn refused(error: &PublishError) -> CacheError {
    match *error {
        PublishError::Overloaded { retry_after_ms } => CacheError::Overloaded { retry_after_ms },
        PublishError::TooLarge { bytes, limit } => CacheError::TooLarge { bytes, limit },
        PublishError::NoSpace => CacheError::NoSpace,
        PublishError::Deleted => CacheError::Deleted,
        PublishError::ShuttingDown => CacheError::ShuttingDown,
        _ => CacheError::Failed,
    }
}
