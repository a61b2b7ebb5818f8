//! One part of a cache's table: entries by hash, by key, by use and by the end of their life.
//!
//! Eviction is SIEVE: entries stand in a queue by age, a hand walks from the oldest to the newest, passes
//! over those that were read since it last came by (taking their mark), and takes the first that was not. A
//! read costs a mark and moves nothing; what is read once is gone sooner than what is read often.
//!
//! An entry costs [`ENTRY_BYTES`] beside its key and value.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;
use hashbrown::HashTable;
use slab::Slab;

use super::limits::ENTRY_BYTES;
use super::types::Found;

/// No entry.
const NONE: usize = usize::MAX;

struct Node {
    key: Bytes,
    value: Bytes,
    hash: u64,
    revision: u64,
    expires_ms: Option<i64>,
    visited: bool,
    newer: usize,
    older: usize,
}

/// An entry that was taken out.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) key: Bytes,
    pub(super) hash: u64,
    pub(super) found: Found,
}

impl Node {
    fn cost(&self) -> usize {
        cost(&self.key, &self.value)
    }

    fn is_alive(&self, now_ms: i64) -> bool {
        self.expires_ms.is_none_or(|end| end > now_ms)
    }

    fn found(&self) -> Found {
        Found { value: self.value.clone(), revision: self.revision, expires_ms: self.expires_ms }
    }
}

/// What an entry costs.
pub(super) fn cost(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + ENTRY_BYTES
}

/// A part of the table.
pub(super) struct Part {
    table: HashTable<usize>,
    nodes: Slab<Node>,
    order: BTreeMap<Bytes, usize>,
    ends: BTreeSet<(i64, usize)>,
    newest: usize,
    oldest: usize,
    hand: usize,
}

impl Default for Part {
    fn default() -> Self {
        Part {
            table: HashTable::new(),
            nodes: Slab::new(),
            order: BTreeMap::new(),
            ends: BTreeSet::new(),
            newest: NONE,
            oldest: NONE,
            hand: NONE,
        }
    }
}

impl Part {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        self.table.find(hash, |&at| self.nodes[at].key == key).copied()
    }

    /// Reads an entry, and marks it as read.
    pub(super) fn get(&mut self, hash: u64, key: &[u8], now_ms: i64) -> Option<Found> {
        let at = self.find(hash, key)?;
        let node = &mut self.nodes[at];
        if !node.is_alive(now_ms) {
            return None;
        }
        node.visited = true;
        Some(node.found())
    }

    /// Reads an entry, and leaves no mark.
    pub(super) fn peek(&self, hash: u64, key: &[u8], now_ms: i64) -> Option<Found> {
        let node = self.find(hash, key).map(|at| &self.nodes[at])?;
        node.is_alive(now_ms).then(|| node.found())
    }

    /// The revision of an entry; zero: there is none.
    pub(super) fn revision(&self, hash: u64, key: &[u8], now_ms: i64) -> u64 {
        let alive = self.find(hash, key).map(|at| &self.nodes[at]).filter(|node| node.is_alive(now_ms));
        alive.map_or(0, |node| node.revision)
    }

    /// The key as it is kept, so that it need not be copied again.
    pub(super) fn kept_key(&self, hash: u64, key: &[u8]) -> Option<Bytes> {
        self.find(hash, key).map(|at| self.nodes[at].key.clone())
    }

    /// Writes an entry. Answers the bytes that were there before, and that are there now.
    pub(super) fn put(&mut self, hash: u64, key: Bytes, found: Found) -> (usize, usize) {
        let Found { value, revision, expires_ms } = found;
        let (before, at) = match self.find(hash, &key) {
            Some(at) => (self.nodes[at].cost(), at),
            None => (0, self.insert(hash, key)),
        };
        let node = &mut self.nodes[at];
        if let Some(end) = node.expires_ms {
            self.ends.remove(&(end, at));
        }
        (node.value, node.revision, node.expires_ms) = (value, revision, expires_ms);
        // The first write is no second use; a later one is.
        node.visited = before > 0;
        let now = node.cost();
        if let Some(end) = expires_ms {
            self.ends.insert((end, at));
        }
        (before, now)
    }

    fn insert(&mut self, hash: u64, key: Bytes) -> usize {
        let node = Node {
            key: key.clone(),
            value: Bytes::new(),
            hash,
            revision: 0,
            expires_ms: None,
            visited: false,
            newer: NONE,
            older: self.newest,
        };
        let at = self.nodes.insert(node);
        match self.newest {
            NONE => self.oldest = at,
            newest => self.nodes[newest].newer = at,
        }
        self.newest = at;
        self.order.insert(key, at);
        let nodes = &self.nodes;
        self.table.insert_unique(hash, at, |&other| nodes[other].hash);
        at
    }

    /// Takes an entry out, alive or not.
    pub(super) fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Taken> {
        let at = self.find(hash, key)?;
        Some(self.take(at))
    }

    fn take(&mut self, at: usize) -> Taken {
        let node = self.nodes.remove(at);
        if let Ok(entry) = self.table.find_entry(node.hash, |&other| other == at) {
            entry.remove();
        }
        self.order.remove(&node.key);
        if let Some(end) = node.expires_ms {
            self.ends.remove(&(end, at));
        }
        match node.older {
            NONE => self.oldest = node.newer,
            older => self.nodes[older].newer = node.newer,
        }
        match node.newer {
            NONE => self.newest = node.older,
            newer => self.nodes[newer].older = node.older,
        }
        if self.hand == at {
            self.hand = node.newer;
        }
        if self.nodes.is_empty() {
            *self = Part::default();
        }
        let found = node.found();
        Taken { key: node.key, hash: node.hash, found }
    }

    /// Takes out the entry that is worth least, among those that `may_go`. Looks at each at most twice.
    pub(super) fn evict(&mut self, may_go: impl Fn(&Bytes) -> bool) -> Option<Taken> {
        for _ in 0..2 * self.nodes.len() {
            let at = if self.hand == NONE { self.oldest } else { self.hand };
            let node = self.nodes.get_mut(at)?;
            if !node.visited && may_go(&node.key) {
                return Some(self.take(at));
            }
            node.visited = false;
            self.hand = node.newer;
        }
        None
    }

    /// Entries whose life has ended, the first to end first.
    pub(super) fn ended(&self, now_ms: i64, max: usize) -> Vec<(Bytes, u64)> {
        let ended = self.ends.range(..=(now_ms, usize::MAX)).take(max);
        ended.map(|(_, at)| (self.nodes[*at].key.clone(), self.nodes[*at].hash)).collect()
    }

    /// Entries after `after` whose keys begin with `prefix`, in the order of keys, as many as fit; at least
    /// one. Answers whether there are more.
    pub(super) fn scan(&self, page: &Page<'_>, out: &mut Vec<(Bytes, Found)>) -> bool {
        let from = match page.after >= page.prefix && !page.after.is_empty() {
            true => Bound::Excluded(page.after),
            false => Bound::Included(page.prefix),
        };
        let (mut count, mut bytes) = (0, 0);
        for (key, &at) in self.order.range::<[u8], _>((from, Bound::Unbounded)) {
            if !key.starts_with(page.prefix) {
                return false;
            }
            let node = &self.nodes[at];
            if !node.is_alive(page.now_ms) {
                continue;
            }
            if count == page.entries_max || (count > 0 && bytes + node.cost() > page.bytes_max) {
                return true;
            }
            count += 1;
            bytes += node.cost();
            out.push((key.clone(), node.found()));
        }
        false
    }
}

/// Which entries a scan wants of a part.
pub(super) struct Page<'a> {
    pub(super) prefix: &'a [u8],
    pub(super) after: &'a [u8],
    pub(super) entries_max: usize,
    pub(super) bytes_max: usize,
    pub(super) now_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> Bytes {
        Bytes::from(n.to_be_bytes().to_vec())
    }

    fn put(part: &mut Part, n: u32, expires_ms: Option<i64>) {
        let found = Found { value: Bytes::from_static(b"v"), revision: u64::from(n) + 1, expires_ms };
        part.put(u64::from(n), key(n), found);
    }

    fn evicted(part: &mut Part) -> Option<u32> {
        part.evict(|_| true).map(|taken| u32::from_be_bytes(taken.key[..].try_into().unwrap()))
    }

    #[test]
    fn sieve_keeps_what_is_read() {
        let mut part = Part::default();
        (0..6).for_each(|n| put(&mut part, n, None));
        for n in [0, 2] {
            assert!(part.get(n, &key(n as u32), 0).is_some());
        }
        let order: Vec<_> = std::iter::from_fn(|| evicted(&mut part)).collect();
        assert_eq!(order, [1, 3, 4, 5, 0, 2]);
        assert_eq!(part.len(), 0);
    }

    #[test]
    fn what_may_not_go_stays() {
        let mut part = Part::default();
        (0..4).for_each(|n| put(&mut part, n, None));
        let only_three = |part: &mut Part| part.evict(|k| *k == key(3)).map(|taken| taken.key);
        assert_eq!(only_three(&mut part), Some(key(3)));
        assert_eq!(only_three(&mut part), None);
        assert_eq!(part.len(), 3);
    }

    #[test]
    fn an_ended_life_hides_at_once_and_is_found_in_order() {
        let mut part = Part::default();
        put(&mut part, 1, Some(50));
        put(&mut part, 2, Some(40));
        put(&mut part, 3, None);
        assert!(part.get(1, &key(1), 49).is_some() && part.get(1, &key(1), 50).is_none());
        assert_eq!(part.revision(2, &key(2), 40), 0);
        let ended: Vec<_> = part.ended(50, 10).into_iter().map(|(key, _)| key).collect();
        assert_eq!(ended, [key(2), key(1)]);
        // A new life replaces the old one.
        put(&mut part, 2, Some(90));
        assert_eq!(part.ended(50, 10).len(), 1);
    }

    #[test]
    fn a_scan_goes_on_where_it_stopped() {
        let mut part = Part::default();
        (0..10).for_each(|n| put(&mut part, n, None));
        let page = |after: &[u8], entries_max| {
            let mut out = Vec::new();
            let page = Page { prefix: &[0, 0], after, entries_max, bytes_max: 1 << 20, now_ms: 0 };
            let more = part.scan(&page, &mut out);
            (out.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), more)
        };
        assert_eq!(page(&[], 4), ((0..4).map(key).collect(), true));
        assert_eq!(page(&key(3), 6), ((4..10).map(key).collect(), false));
        assert_eq!(page(&key(9), 6), (vec![], false));
    }
}
