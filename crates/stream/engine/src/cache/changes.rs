//! The last changes of a cache, and who watches them.
//!
//! A watch is a slot: what it is interested in, the revision of the first change that it has not been told,
//! and a waker while it waits. A change looks its key up among the watched keys, compares itself with the
//! watched prefixes, notes itself in the slots that it concerns and wakes those that wait: a watch that a
//! change does not concern costs it nothing, and does not fall behind by it. Changes are kept while anybody
//! watches, up to a bound in number and bytes; a watch whose first untold change is no longer kept has fallen
//! off.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use hashbrown::HashMap;
use slab::Slab;
use smallvec::SmallVec;

use super::limits::{CHANGES_MAX, ENTRY_BYTES, PREFIX_WATCHES_MAX, WATCHES_MAX};
use super::types::{Change, ChangeKind};

/// Wakers to be called after the locks are free.
pub(super) type Wakers = SmallVec<[Waker; 4]>;

/// Everything has been told.
const ALL: u64 = u64::MAX;

/// What a watch is interested in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// One key.
    Key(Bytes),
    /// Keys that begin with this; empty: all.
    Prefix(Bytes),
}

impl Filter {
    fn matches(&self, key: &[u8]) -> bool {
        match self {
            Filter::Key(wanted) => wanted == key,
            Filter::Prefix(prefix) => key.starts_with(prefix),
        }
    }
}

struct Slot {
    filter: Filter,
    /// The first change that it has not been told.
    untold: u64,
    waker: Option<Waker>,
}

/// What a watch finds.
pub(super) enum Unread {
    /// Nothing: it is woken when there is.
    Waiting,
    /// These changes.
    Changes(Vec<Change>),
    /// Changes from one revision to before the other are no longer kept.
    FellOff { from: u64, to: u64 },
    /// The cache was deleted.
    Gone,
}

/// See the module.
pub(super) struct Changes {
    kept: VecDeque<Change>,
    bytes: usize,
    bytes_max: usize,
    /// Every change of this revision or later is kept, while anybody watches.
    from: u64,
    /// The newest revision.
    last: u64,
    slots: Slab<Slot>,
    keys: HashMap<Bytes, SmallVec<[usize; 2]>, foldhash::fast::RandomState>,
    prefixes: Vec<usize>,
    is_gone: bool,
}

impl Changes {
    pub(super) fn new(last: u64, bytes_max: usize) -> Self {
        Changes {
            kept: VecDeque::new(),
            bytes: 0,
            bytes_max,
            from: last + 1,
            last,
            slots: Slab::new(),
            keys: HashMap::default(),
            prefixes: Vec::new(),
            is_gone: false,
        }
    }

    /// The newest revision.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn watches(&self) -> usize {
        self.slots.len()
    }

    /// Takes a change with a revision of its own.
    pub(super) fn push(&mut self, key: &Bytes, revision: u64, kind: ChangeKind, wakers: &mut Wakers) {
        debug_assert!(revision > self.last, "revisions rise");
        self.last = revision;
        if self.slots.is_empty() {
            self.from = revision + 1;
            return;
        }
        self.notify(key, revision, wakers);
        self.bytes += cost(key, &kind);
        self.kept.push_back(Change { key: key.clone(), revision, kind });
        while self.kept.len() > CHANGES_MAX || (self.bytes > self.bytes_max && self.kept.len() > 1) {
            if let Some(change) = self.kept.pop_front() {
                self.bytes -= cost(&change.key, &change.kind);
                self.from = change.revision + 1;
            }
        }
    }

    /// Takes a change, and gives it the next revision.
    pub(super) fn push_next(&mut self, key: &Bytes, kind: ChangeKind, wakers: &mut Wakers) -> u64 {
        let revision = self.last + 1;
        self.push(key, revision, kind, wakers);
        revision
    }

    fn notify(&mut self, key: &Bytes, revision: u64, wakers: &mut Wakers) {
        let by_key = self.keys.get(key).into_iter().flatten();
        for &at in by_key.chain(&self.prefixes) {
            let slot = &mut self.slots[at];
            if slot.filter.matches(key) {
                slot.untold = slot.untold.min(revision);
                wakers.extend(slot.waker.take());
            }
        }
    }

    /// Begins a watch: its slot, and the revision that the values belong to which are there now.
    pub(super) fn watch(&mut self, filter: Filter) -> Option<(usize, u64)> {
        let is_full = match filter {
            Filter::Key(_) => false,
            Filter::Prefix(_) => self.prefixes.len() >= PREFIX_WATCHES_MAX,
        };
        if is_full || self.slots.len() >= WATCHES_MAX {
            return None;
        }
        let at = self.slots.insert(Slot { filter: filter.clone(), untold: ALL, waker: None });
        match filter {
            Filter::Key(key) => self.keys.entry(key).or_default().push(at),
            Filter::Prefix(_) => self.prefixes.push(at),
        }
        Some((at, self.last))
    }

    /// Ends a watch.
    pub(super) fn unwatch(&mut self, at: usize) {
        match self.slots.remove(at).filter {
            Filter::Prefix(_) => self.prefixes.retain(|&other| other != at),
            Filter::Key(key) => {
                if let Some(slots) = self.keys.get_mut(&key) {
                    slots.retain(|other| *other != at);
                    if slots.is_empty() {
                        self.keys.remove(&key);
                    }
                }
            }
        }
        if self.slots.is_empty() {
            (self.kept, self.bytes, self.from) = (VecDeque::new(), 0, self.last + 1);
            (self.slots, self.keys) = (Slab::new(), HashMap::default());
        }
    }

    /// The changes that a watch has not been told, about `max_bytes`, at least one; or it waits.
    pub(super) fn read(&mut self, at: usize, max_bytes: usize, waker: &Waker) -> Unread {
        if self.is_gone {
            return Unread::Gone;
        }
        let (from, last) = (self.from, self.last);
        let slot = &mut self.slots[at];
        if slot.untold == ALL {
            if !slot.waker.as_ref().is_some_and(|armed| armed.will_wake(waker)) {
                slot.waker = Some(waker.clone());
            }
            return Unread::Waiting;
        }
        if slot.untold < from {
            let fell = std::mem::replace(&mut slot.untold, ALL);
            return Unread::FellOff { from: fell, to: last + 1 };
        }
        let begin = self.kept.partition_point(|change| change.revision < slot.untold);
        let mut found = Vec::new();
        let mut bytes = 0;
        slot.untold = ALL;
        for change in self.kept.range(begin..).filter(|change| slot.filter.matches(&change.key)) {
            if !found.is_empty() && bytes + cost(&change.key, &change.kind) > max_bytes {
                slot.untold = change.revision;
                break;
            }
            bytes += cost(&change.key, &change.kind);
            found.push(change.clone());
        }
        Unread::Changes(found)
    }

    /// Everything is gone: all are told.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.is_gone = true;
        (self.kept, self.bytes) = (VecDeque::new(), 0);
        self.slots.iter_mut().filter_map(|(_, slot)| slot.waker.take()).collect()
    }
}

fn cost(key: &Bytes, kind: &ChangeKind) -> usize {
    let value = match kind {
        ChangeKind::Put { value, .. } => value.len(),
        ChangeKind::Deleted | ChangeKind::Expired | ChangeKind::Evicted => 0,
    };
    key.len() + value + ENTRY_BYTES / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(changes: &mut Changes, key: &'static str) -> usize {
        let mut wakers = Wakers::new();
        changes.push_next(&Bytes::from(key), ChangeKind::Deleted, &mut wakers);
        wakers.len()
    }

    fn read(changes: &mut Changes, at: usize, max_bytes: usize) -> Vec<u64> {
        match changes.read(at, max_bytes, Waker::noop()) {
            Unread::Waiting => vec![],
            Unread::Changes(found) => found.iter().map(|change| change.revision).collect(),
            Unread::FellOff { from, to } => vec![u64::MAX, from, to],
            Unread::Gone => vec![0],
        }
    }

    #[test]
    fn a_watch_hears_of_its_keys_alone_and_is_woken_once() {
        let mut changes = Changes::new(0, 1 << 20);
        let (key, _) = changes.watch(Filter::Key(Bytes::from("a"))).unwrap();
        let (prefix, _) = changes.watch(Filter::Prefix(Bytes::from("b"))).unwrap();
        for at in [key, prefix] {
            assert!(read(&mut changes, at, 1000).is_empty());
        }
        assert_eq!(push(&mut changes, "c"), 0);
        assert_eq!(push(&mut changes, "a"), 1);
        assert_eq!(push(&mut changes, "a"), 0);
        assert_eq!(push(&mut changes, "bx"), 1);
        assert_eq!(read(&mut changes, key, 1000), [2, 3]);
        assert_eq!(read(&mut changes, prefix, 1000), [4]);
        assert!(read(&mut changes, key, 1000).is_empty());
    }

    #[test]
    fn pieces_of_any_size_hold_everything() {
        let mut changes = Changes::new(0, 1 << 20);
        let (at, _) = changes.watch(Filter::Prefix(Bytes::new())).unwrap();
        (0..5).for_each(|_| _ = push(&mut changes, "a"));
        let pieces: Vec<_> = (0..5).map(|_| read(&mut changes, at, 1)).collect();
        assert_eq!(pieces, [[1], [2], [3], [4], [5]]);
    }

    #[test]
    fn who_is_too_slow_is_told_and_who_was_not_concerned_is_not() {
        let mut changes = Changes::new(0, 1000);
        let (slow, _) = changes.watch(Filter::Key(Bytes::from("a"))).unwrap();
        let (calm, _) = changes.watch(Filter::Key(Bytes::from("b"))).unwrap();
        (0..100).for_each(|_| _ = push(&mut changes, "a"));
        assert_eq!(read(&mut changes, slow, 1000), [u64::MAX, 1, 101]);
        assert!(read(&mut changes, calm, 1000).is_empty());
        push(&mut changes, "b");
        assert_eq!(read(&mut changes, calm, 1000), [101]);
    }

    #[test]
    fn nothing_is_kept_for_nobody() {
        let mut changes = Changes::new(7, 1 << 20);
        push(&mut changes, "a");
        assert!(changes.kept.is_empty());
        let (at, last) = changes.watch(Filter::Prefix(Bytes::new())).unwrap();
        assert_eq!(last, 8);
        push(&mut changes, "a");
        assert_eq!(changes.kept.len(), 1);
        changes.unwatch(at);
        assert!(changes.kept.is_empty() && changes.keys.is_empty() && changes.bytes == 0);
    }
}
