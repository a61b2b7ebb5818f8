//! A watch: what is there, then every change, or the word that some were missed.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::changes::{Filter, Unread};
use super::limits::SCAN_ENTRIES_MAX;
use super::store::{Cache, Scanned};
use super::types::{CacheError, Change, ChangeKind, Event, Found};

/// What a watch does next.
enum Phase {
    /// Telling what is there, after this key, as of this revision.
    Values { after: Bytes, revision: u64 },
    /// Telling changes.
    Live,
    /// Nothing comes any more.
    Over,
}

/// A watch of one key or of a prefix. It is a slot in its cache and a position: no queue and no task.
///
/// What is there is told as it was when the watch began: what changes meanwhile is left out there, for it is
/// told as a change afterwards. So revisions of one key never go back.
pub struct Watch {
    cache: Arc<Cache>,
    filter: Filter,
    slot: usize,
    phase: Phase,
}

impl Watch {
    pub(super) fn begin(cache: Arc<Cache>, filter: Filter) -> Result<Self, CacheError> {
        let limit = super::limits::WATCHES_MAX;
        let begun = cache.changes().lock().watch(filter.clone());
        let (slot, revision) = begun.ok_or(CacheError::TooMany { count: limit + 1, limit })?;
        let phase = Phase::Values { after: Bytes::new(), revision };
        Ok(Watch { cache, filter, slot, phase })
    }

    /// The next events: about `max_bytes` of them, at least one.
    pub async fn next(&mut self, max_bytes: usize) -> Vec<Event> {
        poll_fn(|cx| self.poll_next(cx, max_bytes)).await
    }

    /// The next events: about `max_bytes` of them, at least one. After [`Event::Gone`] none come.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, max_bytes: usize) -> Poll<Vec<Event>> {
        loop {
            let events = match &mut self.phase {
                Phase::Over => return Poll::Pending,
                Phase::Values { .. } => self.values(max_bytes),
                Phase::Live => match self.changes(cx, max_bytes) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(events) => events,
                },
            };
            if !events.is_empty() {
                return Poll::Ready(events);
            }
        }
    }

    fn values(&mut self, max_bytes: usize) -> Vec<Event> {
        let Phase::Values { after, revision } = &mut self.phase else { return Vec::new() };
        let revision = *revision;
        let Scanned { entries, more } = match &self.filter {
            Filter::Prefix(prefix) => self.cache.scan_page(prefix, after, SCAN_ENTRIES_MAX, max_bytes),
            Filter::Key(key) => {
                let found = self.cache.peek(key).map(|found| (key.clone(), found));
                Scanned { entries: found.into_iter().collect(), more: false }
            }
        };
        if let Some((last, _)) = entries.last() {
            *after = last.clone();
        }
        let told = entries.into_iter().filter(|(_, found)| found.revision <= revision);
        let mut events: Vec<_> = told.map(|(key, found)| Event::Change(as_change(key, found))).collect();
        if !more {
            self.phase = Phase::Live;
            events.push(Event::Current { revision });
        }
        events
    }

    fn changes(&mut self, cx: &Context<'_>, max_bytes: usize) -> Poll<Vec<Event>> {
        let mut changes = self.cache.changes().lock();
        match changes.read(self.slot, max_bytes, cx.waker()) {
            Unread::Waiting => Poll::Pending,
            Unread::Changes(found) => Poll::Ready(found.into_iter().map(Event::Change).collect()),
            Unread::FellOff { from, to } => {
                self.phase = Phase::Values { after: Bytes::new(), revision: to - 1 };
                drop(changes);
                self.cache.count_resync();
                Poll::Ready(vec![Event::Resync { from, to }])
            }
            Unread::Gone => {
                self.phase = Phase::Over;
                Poll::Ready(vec![Event::Gone])
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.cache.changes().lock().unwatch(self.slot);
    }
}

fn as_change(key: Bytes, found: Found) -> Change {
    let Found { value, revision, expires_ms } = found;
    Change { key, revision, kind: ChangeKind::Put { value, expires_ms } }
}
