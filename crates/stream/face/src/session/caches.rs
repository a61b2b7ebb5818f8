//! Caches: definitions, entries, watches.

use std::sync::Arc;

use bytes::Bytes;
use slab::Slab;
use trifid_stream_engine::cache::{
    Cache, CacheCreateError, Change, ChangeKind, Done, Event, Filter, Found, Op, Watch, Written,
};
use trifid_stream_model::frame::{
    CacheChange, CacheEntry, CacheListing, CacheOp, CacheResult, Code, EndReason, Refusal, Reply, reply,
    request,
};
use trifid_stream_model::names::CacheName;

use super::serving::Serving;
use super::streams::page_of;
use super::tasks::{Answer, blocking};
use super::{Output, refusal};
use crate::limits::HANDLES_MAX;

/// Caches that were opened on this byte stream.
#[derive(Default)]
pub(super) struct CacheHandles {
    caches: Slab<Arc<Cache>>,
}

impl CacheHandles {
    fn open(&mut self, cache: &Arc<Cache>) -> Option<u32> {
        let known = self.caches.iter().find(|(_, known)| Arc::ptr_eq(known, cache)).map(|(key, _)| key);
        let key = match known {
            Some(key) => key,
            None if self.caches.len() >= HANDLES_MAX => return None,
            None => self.caches.insert(Arc::clone(cache)),
        };
        u32::try_from(key).ok()
    }

    fn get(&self, handle: u32) -> Result<&Arc<Cache>, Refusal> {
        let found = usize::try_from(handle).ok().and_then(|key| self.caches.get(key));
        found.ok_or_else(refusal::unknown_handle)
    }
}

impl Serving {
    pub(super) fn create_cache(&mut self, id: u32, create: request::CacheCreate) {
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        self.tasks.answer(id, async move {
            let request::CacheCreate { name, spec } = create;
            blocking(move || match broker.caches().create(&tenant, &name, spec.clone()) {
                Ok(_) => Ok(reply::Done {}.into()),
                // Made already, the same way: as if this request had made it.
                Err(CacheCreateError::Exists)
                    if broker.caches().get(&tenant, &name).is_some_and(|cache| *cache.spec() == spec) =>
                {
                    Ok(reply::Done {}.into())
                }
                Err(error) => Err(refusal::of_cache_create(&error)),
            })
            .await?
        });
    }

    pub(super) fn drop_cache(&mut self, id: u32, drop: request::CacheDrop) {
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        self.tasks.answer(id, async move {
            let dropped = blocking(move || broker.caches().delete(&tenant, &drop.name)).await?;
            dropped.map(|()| reply::Done {}.into()).map_err(|error| refusal::of_cache_create(&error))
        });
    }

    pub(super) fn list_caches(&self, list: &request::CacheList) -> Answer {
        let (limit, after) = page_of(&list.page, |name| CacheName::new(name).ok())?;
        let caches = self.core.broker.caches();
        let found = caches.list(&self.tenancy.tenant, &list.prefix, after.as_ref(), limit + 1);
        let more = found.len() > limit;
        let listing =
            |cache: &Arc<Cache>| CacheListing { name: cache.name().clone(), spec: cache.spec().clone() };
        Ok(reply::Caches { caches: found.iter().take(limit).map(listing).collect(), more }.into())
    }

    pub(super) fn open_cache(&mut self, name: &CacheName) -> Answer {
        let unknown = || Refusal::new(Code::UnknownCache, "there is no cache of this name");
        let cache = self.core.broker.caches().get(&self.tenancy.tenant, name).ok_or_else(unknown)?;
        let full =
            || Refusal::new(Code::Overloaded { shed: 0 }, "too many caches are open on this connection");
        let handle = self.caches.open(&cache).ok_or_else(full)?;
        Ok(reply::CacheOpened { handle, spec: cache.spec().clone() }.into())
    }

    pub(super) fn cache_get(&self, get: &request::CacheGet) -> Answer {
        let cache = self.caches.get(get.handle)?;
        check_alive(cache)?;
        let entry = cache.get(&get.key).map(|found| self.entry(get.key.clone(), found));
        Ok(reply::CacheValue { entry }.into())
    }

    pub(super) fn cache_put(&mut self, id: u32, put: &request::CachePut, out: &mut Output) {
        let written = self.caches.get(put.handle).and_then(|cache| {
            cache.put(&put.key, &put.value, put.ttl, put.expect).map_err(|error| refusal::of_cache(&error))
        });
        self.written(id, written, out);
    }

    pub(super) fn cache_delete(&mut self, id: u32, delete: &request::CacheDelete, out: &mut Output) {
        let written = self.caches.get(delete.handle).and_then(|cache| {
            cache.delete(&delete.key, delete.expect).map_err(|error| refusal::of_cache(&error))
        });
        self.written(id, written, out);
    }

    /// Answers a write at once if it counts, and when it does otherwise.
    fn written(&mut self, id: u32, written: Result<Written, Refusal>, out: &mut Output) {
        match written {
            Err(refusal) => out.refuse(id, refusal),
            Ok(Written { revision, ack }) if ack.is_ready() => {
                out.reply(id, reply::CacheChanged { revision });
            }
            Ok(Written { revision, ack }) => self.tasks.answer(id, async move {
                ack.await.map_err(refusal::of_commit)?;
                Ok(reply::CacheChanged { revision }.into())
            }),
        }
    }

    pub(super) fn cache_batch(&mut self, id: u32, batch: request::CacheBatch, out: &mut Output) {
        let ops: Vec<Op> = batch.ops.iter().map(op).collect();
        let done = self
            .caches
            .get(batch.handle)
            .and_then(|cache| cache.batch(&ops).map_err(|error| refusal::of_cache(&error)));
        let done = match done {
            Ok(done) => done,
            Err(refusal) => return out.refuse(id, refusal),
        };
        let results = batch.ops.into_iter().zip(done.results).map(|(op, result)| match result {
            Ok(Done::Missing) => CacheResult::Missing,
            Ok(Done::Found(found)) => CacheResult::Found { entry: self.entry(key_of(op), found) },
            Ok(Done::Changed(revision)) => CacheResult::Changed { revision },
            Err(error) => CacheResult::Refused { refusal: refusal::of_cache(&error) },
        });
        let results = Reply::from(reply::CacheResults { results: results.collect() });
        if done.ack.is_ready() {
            return out.reply(id, results);
        }
        self.tasks.answer(id, async move {
            done.ack.await.map_err(refusal::of_commit)?;
            Ok(results)
        });
    }

    pub(super) fn cache_scan(&self, scan: &request::CacheScan) -> Answer {
        let cache = self.caches.get(scan.handle)?;
        check_alive(cache)?;
        let found = cache.scan(&scan.prefix, &scan.after, scan.limit as usize);
        let entry = |(key, found)| {
            let entry = self.entry(key, found);
            if scan.keys_only { CacheEntry { value: Bytes::new(), ..entry } } else { entry }
        };
        Ok(reply::CachePage { entries: found.entries.into_iter().map(entry).collect(), more: found.more }
            .into())
    }

    pub(super) fn cache_watch(&mut self, id: u32, watch: &request::CacheWatch, out: &mut Output) {
        // It is kept for long: not with the buffer that it came in.
        let key = Bytes::copy_from_slice(&watch.key);
        let filter = if watch.prefix { Filter::Prefix(key) } else { Filter::Key(key) };
        let begun = self
            .caches
            .get(watch.handle)
            .and_then(|cache| cache.watch(filter).map_err(|error| refusal::of_cache(&error)));
        match begun {
            Ok(begun) => self.watching(id, begun, watch.credit_bytes, out),
            Err(refusal) => out.refuse(id, refusal),
        }
    }

    fn watching(&mut self, id: u32, watch: Watch, credit: u64, out: &mut Output) {
        match self.take_place(id, 1) {
            Ok(()) => {
                out.reply(id, reply::Done {});
                self.sources.insert_watch(id, watch, credit);
            }
            Err(refusal) => out.refuse(id, refusal),
        }
    }

    /// Tells a watch what has happened, and counts it against its credit.
    pub(super) fn tell(&mut self, id: u32, events: Vec<Event>, out: &mut Output) {
        let mut changes = Vec::with_capacity(events.len());
        let mut bytes = 0;
        for event in events {
            match event {
                Event::Change(change) => {
                    let change = self.change(change);
                    bytes += change.cost();
                    changes.push(change);
                }
                Event::Current { revision } => {
                    let current = CacheChange::Current { revision };
                    bytes += current.cost();
                    changes.push(current);
                }
                Event::Resync { from, to } => {
                    flush(id, &mut changes, out);
                    out.reply(id, reply::Lost { shard: 0, from, to });
                }
                Event::Gone => {
                    flush(id, &mut changes, out);
                    return self.end(id, EndReason::Deleted, String::new(), out);
                }
            }
        }
        flush(id, &mut changes, out);
        self.sources.spend(id, bytes);
    }

    fn change(&self, change: Change) -> CacheChange {
        let Change { key, revision, kind } = change;
        match kind {
            ChangeKind::Put { value, expires_ms } => {
                CacheChange::Put { entry: self.entry(key, Found { value, revision, expires_ms }) }
            }
            ChangeKind::Deleted => CacheChange::Deleted { key, revision },
            ChangeKind::Expired => CacheChange::Expired { key, revision },
            ChangeKind::Evicted => CacheChange::Evicted { key, revision },
        }
    }

    /// An entry as the protocol has it: with what is left of its life.
    fn entry(&self, key: Bytes, found: Found) -> CacheEntry {
        let Found { value, revision, expires_ms } = found;
        let left = |at: i64| u64::try_from(at.saturating_sub(self.core.broker.now_ms())).unwrap_or(0);
        CacheEntry { key, value, revision, ttl_ms: expires_ms.map(left) }
    }
}

fn flush(id: u32, changes: &mut Vec<CacheChange>, out: &mut Output) {
    if !changes.is_empty() {
        out.reply(id, reply::CacheEvents { changes: std::mem::take(changes) });
    }
}

/// A cache that was deleted answers nothing any more.
fn check_alive(cache: &Cache) -> Result<(), Refusal> {
    if cache.is_deleted() { Err(Refusal::new(Code::UnknownCache, "the cache was deleted")) } else { Ok(()) }
}

fn op(op: &CacheOp) -> Op {
    match op {
        CacheOp::Get { key } => Op::Get { key: key.clone() },
        CacheOp::Put { key, value, ttl, expect } => {
            Op::Put { key: key.clone(), value: value.clone(), ttl: *ttl, expect: *expect }
        }
        CacheOp::Delete { key, expect } => Op::Delete { key: key.clone(), expect: *expect },
    }
}

fn key_of(op: CacheOp) -> Bytes {
    match op {
        CacheOp::Get { key } | CacheOp::Put { key, .. } | CacheOp::Delete { key, .. } => key,
    }
}
