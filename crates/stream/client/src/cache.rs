//! A cache: values by key, with a life, conditions and watches.

use std::sync::Arc;

use bytes::Bytes;
use trifid_stream_model::frame::{
    CacheChange, CacheEntry, CacheOp, CacheResult, Code, EndReason, Expect, Reply, Request, Ttl, request,
};
use trifid_stream_model::names::CacheName;

use crate::error::RequestError;
use crate::inlet::{Inlet, Push};
use crate::line::Line;
use crate::pool::{Backoff, Pool};

/// Bytes of changes that a watch may have on the way.
const WATCH_CREDIT_BYTES: u64 = 1 << 20;

/// A cache.
#[derive(Clone, Debug)]
pub struct Cache {
    pool: Arc<Pool>,
    place: usize,
    name: CacheName,
}

impl Cache {
    pub(crate) fn new(pool: Arc<Pool>, name: CacheName) -> Self {
        let place = pool.place_of(&name);
        Self { pool, place, name }
    }

    /// Its full name.
    pub fn name(&self) -> &CacheName {
        &self.name
    }

    /// The entry of a key.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<CacheEntry>, RequestError> {
        let key = key.into();
        match self.ask(|handle| request::CacheGet { handle, key: key.clone() }.into()).await? {
            Reply::CacheValue(value) => Ok(value.entry),
            _ => Err(RequestError::Unexpected("CacheValue")),
        }
    }

    /// Writes an entry if what is expected is there; answers its revision. A condition that does not hold is
    /// refused with [`Code::Conflict`].
    pub async fn put(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        ttl: Ttl,
        expect: Expect,
    ) -> Result<u64, RequestError> {
        let (key, value) = (key.into(), value.into());
        let put = |handle| {
            let (key, value) = (key.clone(), value.clone());
            request::CachePut { handle, key, value, ttl, expect }.into()
        };
        self.changed(put).await
    }

    /// Removes an entry if what is expected is there; answers the revision of the removal, zero if nothing
    /// was there.
    pub async fn delete(&self, key: impl Into<Bytes>, expect: Expect) -> Result<u64, RequestError> {
        let key = key.into();
        self.changed(|handle| request::CacheDelete { handle, key: key.clone(), expect }.into()).await
    }

    /// Several operations in order, each with a result of its own.
    pub async fn batch(&self, ops: Vec<CacheOp>) -> Result<Vec<CacheResult>, RequestError> {
        match self.ask(|handle| request::CacheBatch { handle, ops: ops.clone() }.into()).await? {
            Reply::CacheResults(results) => Ok(results.results),
            _ => Err(RequestError::Unexpected("CacheResults")),
        }
    }

    /// A page of the entries whose keys begin with `prefix`, after the key `after`; and whether there are
    /// more.
    pub async fn scan(
        &self,
        prefix: impl Into<Bytes>,
        after: impl Into<Bytes>,
        limit: u32,
        keys_only: bool,
    ) -> Result<(Vec<CacheEntry>, bool), RequestError> {
        let (prefix, after) = (prefix.into(), after.into());
        let scan = |handle| {
            let (prefix, after) = (prefix.clone(), after.clone());
            request::CacheScan { handle, prefix, after, limit, keys_only }.into()
        };
        match self.ask(scan).await? {
            Reply::CachePage(page) => Ok((page.entries, page.more)),
            _ => Err(RequestError::Unexpected("CachePage")),
        }
    }

    /// The current value of a key, then every change.
    pub async fn watch(&self, key: impl Into<Bytes>) -> Result<Watch, RequestError> {
        Watch::open(self.clone(), key.into(), false).await
    }

    /// The current values of all keys that begin so, then every change.
    pub async fn watch_prefix(&self, prefix: impl Into<Bytes>) -> Result<Watch, RequestError> {
        Watch::open(self.clone(), prefix.into(), true).await
    }

    async fn changed(&self, request: impl Fn(u32) -> Request) -> Result<u64, RequestError> {
        match self.ask(request).await? {
            Reply::CacheChanged(changed) => Ok(changed.revision),
            _ => Err(RequestError::Unexpected("CacheChanged")),
        }
    }

    async fn ask(&self, request: impl Fn(u32) -> Request) -> Result<Reply, RequestError> {
        let line = self.pool.line(self.place).await?;
        let limit = self.pool.options.request_timeout;
        let handle = line.cache(&self.name, limit).await?;
        let answer = line.ask(&request(handle), limit).await;
        if matches!(&answer, Err(error) if error.code() == Some(Code::UnknownCache)) {
            line.forget_cache(&self.name);
        }
        answer
    }
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// An entry has changed, or is there.
    Change(CacheChange),
    /// Changes were missed, because this watch was slow or its connection was lost: the current values come
    /// again, and what is not among them is gone.
    Resync,
}

/// A watch. It goes on by itself when its connection is lost.
#[derive(Debug)]
pub struct Watch {
    cache: Cache,
    key: Bytes,
    is_prefix: bool,
    inlet: Arc<Inlet>,
    source: Option<(Arc<Line>, u32)>,
    ready: std::collections::VecDeque<CacheChange>,
    /// Bytes that were read and for which no credit was given yet.
    read_bytes: u64,
}

impl Watch {
    async fn open(cache: Cache, key: Bytes, is_prefix: bool) -> Result<Self, RequestError> {
        let mut watch = Self {
            cache,
            key,
            is_prefix,
            inlet: Arc::default(),
            source: None,
            ready: std::collections::VecDeque::new(),
            read_bytes: 0,
        };
        watch.begin().await?;
        Ok(watch)
    }

    async fn begin(&mut self) -> Result<(), RequestError> {
        let Cache { pool, place, name } = &self.cache;
        let line = pool.line(*place).await?;
        let limit = pool.options.request_timeout;
        let handle = line.cache(name, limit).await?;
        let inlet = Arc::<Inlet>::default();
        let watch = request::CacheWatch {
            handle,
            key: self.key.clone(),
            prefix: self.is_prefix,
            credit_bytes: WATCH_CREDIT_BYTES,
        };
        let (id, waiting) = line.subscribe(&watch.into(), &inlet)?;
        match tokio::time::timeout(limit, waiting).await {
            Ok(Ok(Ok(Reply::Done(_)))) => {}
            Ok(Ok(Ok(_))) => return Err(RequestError::Unexpected("Done")),
            Ok(Ok(Err(refusal))) => return Err(refusal.into()),
            Ok(Err(_)) => return Err(RequestError::Lost),
            Err(_) => return Err(RequestError::Timeout(limit)),
        }
        (self.inlet, self.source, self.read_bytes) = (inlet, Some((line, id)), 0);
        Ok(())
    }

    /// The next event. Dropping the future loses nothing. An error is final where trying again cannot help.
    pub async fn next(&mut self) -> Result<WatchEvent, RequestError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(WatchEvent::Change(change));
            }
            if self.source.is_none() {
                self.mend().await?;
                return Ok(WatchEvent::Resync);
            }
            self.give_credit();
            match self.inlet.next().await {
                Push::Changes(changes) => {
                    self.read_bytes += changes.iter().map(CacheChange::cost).sum::<u64>();
                    self.ready.extend(changes);
                }
                Push::Skipped(_) => return Ok(WatchEvent::Resync),
                Push::Ended(ended) if ended.reason == EndReason::Deleted => {
                    self.source = None;
                    let refusal = trifid_stream_model::frame::Refusal::new(Code::UnknownCache, ended.message);
                    return Err(refusal.into());
                }
                Push::Ended(_) | Push::Lost => self.source = None,
                Push::Batch(_) => {}
            }
        }
    }

    async fn mend(&mut self) -> Result<(), RequestError> {
        let mut backoff = Backoff::new(&self.cache.pool.options);
        loop {
            match self.begin().await {
                Ok(()) => return Ok(()),
                Err(RequestError::Lost | RequestError::Timeout(_)) => {}
                Err(RequestError::Connect(error)) if error.is_retriable() => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(backoff.step()).await;
        }
    }

    fn give_credit(&mut self) {
        if self.read_bytes >= WATCH_CREDIT_BYTES / 2
            && let Some((line, id)) = &self.source
        {
            line.credit(*id, std::mem::take(&mut self.read_bytes));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((line, id)) = self.source.take() {
            line.unsubscribe(id);
        }
    }
}
