//! Reading: from the ring without copying, from the log in pages, and waiting for more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use trifid_stream_model::batch::{BatchHeader, open};

use super::ring::{Entries, Entry};
use super::{Core, Gate, Shard, State};
use crate::error::{FetchError, Gone};
use crate::limits::PAGE_BYTES_MAX;

/// Batches that follow one another. Between them nothing is missing but what compaction took or a full disk
/// refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The batches. The first may begin before the wanted offset.
    pub batches: Entries,
    /// Where to read on.
    pub next: u64,
    /// The readable end of the shard.
    pub end: u64,
    /// Its first offset.
    pub start: u64,
}

impl Fetched {
    /// Bytes of the batches.
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(|entry| entry.bytes.len()).sum()
    }
}

/// What is there without reading the disk.
#[derive(Debug)]
pub enum Tail {
    /// These batches.
    Batches(Fetched),
    /// Nothing yet: the offset is the end.
    AtEnd,
    /// Older batches: [`Shard::fetch`] reads them.
    NeedsDisk,
    /// Nothing can be read from there.
    Error(FetchError),
}

impl Shard {
    /// Batches from memory, from the one that holds `from` on: about `max_bytes`, at least one.
    pub fn try_fetch_tail(&self, from: u64, max_bytes: usize) -> Tail {
        let mut state = self.core.state.lock();
        let (start, end) = (self.core.start(), self.core.end());
        match () {
            () if state.gate == Gate::Deleted => Tail::Error(FetchError::Gone),
            () if from < start => Tail::Error(FetchError::TooOld { first: start }),
            () if from > end => Tail::Error(FetchError::InFuture { end }),
            () if from == end => Tail::AtEnd,
            () if from < state.ring.from() => Tail::NeedsDisk,
            () => Tail::Batches(self.core.collect(&mut state, from, max_bytes).0),
        }
    }

    /// Batches from memory or the disk, from the one that holds `from` on: about `max_bytes`, at least one if
    /// there is one. At the end it answers none. May wait for the disk.
    pub fn fetch(&self, from: u64, max_bytes: usize) -> Result<Fetched, FetchError> {
        match self.try_fetch_tail(from, max_bytes) {
            Tail::Batches(fetched) => Ok(fetched),
            Tail::AtEnd => Ok(self.core.nothing(from)),
            Tail::Error(error) => Err(error),
            Tail::NeedsDisk => self.read_page(from, max_bytes),
        }
    }

    /// A page from the log.
    pub(crate) fn read_page(&self, from: u64, max_bytes: usize) -> Result<Fetched, FetchError> {
        let Some(log) = &self.log else {
            return Err(FetchError::TooOld { first: self.core.start() });
        };
        let page = log.read(from, max_bytes.min(PAGE_BYTES_MAX))?;
        self.core.warm.store(true, Ordering::Relaxed);
        let fetched = Fetched { next: page.next, batches: page.entries, ..self.core.nothing(from) };
        let mut state = self.core.state.lock();
        state.figures.pages += 1;
        state.count_out(&fetched.batches);
        Ok(fetched)
    }

    /// Resolves when the readable end is above `offset`, or the stream is deleted. It waits in one slot of
    /// the shard, which it gives back when it is dropped.
    pub fn beyond(&self, offset: u64) -> Beyond {
        Beyond { core: self.core.clone(), above: offset, key: None }
    }

    /// The first record whose time is at least `ms`, as its producer gave it: its offset and its time. Of a
    /// batch that is compressed and cannot be opened, the batch's first offset. May wait for the disk.
    pub fn offset_for_time(&self, ms: i64) -> Result<Option<(u64, i64)>, FetchError> {
        let in_ring = {
            let state = self.core.state.lock();
            let covers = state.ring.from() <= self.core.start();
            covers.then(|| state.ring.at_time(ms).map(|slot| slot.entry.clone()))
        };
        let entry = match (in_ring, &self.log) {
            (Some(entry), _) => entry,
            (None, None) => None,
            (None, Some(log)) => match log.position_for_time(ms)? {
                Some(offset) => self.fetch(offset, 1)?.batches.into_iter().next(),
                None => None,
            },
        };
        Ok(entry.map(|entry| first_at(&entry, ms)))
    }
}

/// The first record of the batch that is late enough.
fn first_at(entry: &Entry, ms: i64) -> (u64, i64) {
    let opened = open(&entry.bytes, PAGE_BYTES_MAX);
    let found = opened.as_ref().ok().and_then(|batch| {
        let mut records = batch.records().filter_map(Result::ok);
        records
            .find(|record| record.timestamp >= ms)
            .map(|record| (entry.base + u64::from(record.delta), record.timestamp))
    });
    match found {
        Some(found) => found,
        None => {
            let header = BatchHeader::parse(&entry.bytes);
            (entry.base, header.map_or(ms, |header| header.max_timestamp))
        }
    }
}

impl Core {
    fn nothing(&self, from: u64) -> Fetched {
        Fetched { batches: Entries::new(), next: from, end: self.end(), start: self.start() }
    }

    /// Batches from the ring, which covers `from`. With them the bytes that the shard had taken at their end.
    pub(crate) fn collect(&self, state: &mut State, from: u64, max_bytes: usize) -> (Fetched, u64) {
        self.warm.store(true, Ordering::Relaxed);
        let (batches, after) = state.ring.collect(from, max_bytes);
        state.count_out(&batches);
        // Nothing behind `from`: what is there holds no batch.
        let end = self.end();
        let next = batches.last().map_or(end, |entry| entry.end);
        (Fetched { batches, next, end, start: self.start() }, after.unwrap_or(state.total))
    }
}

impl State {
    pub(super) fn count_out(&mut self, batches: &Entries) {
        self.figures.batches_out += batches.len() as u64;
        for entry in batches {
            self.figures.bytes_out += entry.bytes.len() as u64;
            self.figures.records_out += entry.end - entry.base;
        }
    }

    /// What a subscriber is told that it lost.
    pub(crate) fn count_lost(&mut self, offsets: u64, by_policy: bool) {
        match by_policy {
            true => self.figures.dropped += offsets,
            false => self.figures.trimmed += offsets,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gate == Gate::Deleted
    }

    /// Waits until the readable end is above `above`. The answer is to be dropped without the lock.
    pub(crate) fn wait(&mut self, key: &mut Option<usize>, above: u64, cx: &Context<'_>) -> Option<Waker> {
        self.waiters.arm(key, above, cx.waker())
    }

    /// Gives a slot back. The answer is to be dropped without the lock.
    pub(crate) fn stop_waiting(&mut self, key: Option<usize>) -> Option<Waker> {
        self.waiters.remove(key?)
    }
}

/// See [`Shard::beyond`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Beyond {
    core: Arc<Core>,
    above: u64,
    key: Option<usize>,
}

impl Future for Beyond {
    type Output = Result<u64, Gone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let end = self.core.end();
        if end > self.above {
            return Poll::Ready(Ok(end));
        }
        let Beyond { core, above, key } = &mut *self;
        let mut state = core.state.lock();
        if state.is_gone() {
            return Poll::Ready(Err(Gone));
        }
        let end = core.end();
        if end > *above {
            return Poll::Ready(Ok(end));
        }
        let replaced = state.wait(key, *above, cx);
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        let waker = self.core.state.lock().stop_waiting(self.key);
        drop(waker);
    }
}
