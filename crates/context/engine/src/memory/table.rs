//! The map from identifier to slot of one shard: open addressing over atomics.
//!
//! One writer at a time (the shard's lock holder) inserts and removes; readers probe without a lock and
//! without writing anything. An entry is a slot number and half a hash, eight bytes, so the identifiers
//! themselves live in the records alone. A table that fills up is copied into a larger one and swapped in;
//! a reader on the old one sees the entries of that moment, which is what it would have seen had it been
//! a little faster.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

const EMPTY: u64 = 0;
const REMOVED: u64 = 1;
/// Slots are stored above the two marks.
const MARKS: u64 = 2;
const SMALLEST: usize = 8;

struct Entries {
    entries: Box<[AtomicU64]>,
}

impl Entries {
    fn new(capacity: usize) -> Self {
        Entries { entries: (0..capacity).map(|_| AtomicU64::new(EMPTY)).collect() }
    }

    fn mask(&self) -> usize {
        self.entries.len() - 1
    }

    /// The first entry with this hash that `is_it` accepts: its place and its slot.
    fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<(usize, u32)> {
        let mask = self.mask();
        let mut at = hash as usize & mask;
        for _ in 0..self.entries.len() {
            let entry = self.entries[at].load(Ordering::Acquire);
            if entry == EMPTY {
                return None;
            }
            if entry != REMOVED && entry >> 32 == hash >> 32 {
                let slot = (entry as u32).wrapping_sub(MARKS as u32);
                if is_it(slot) {
                    return Some((at, slot));
                }
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Puts an entry in the first free place; true when that place had never been used.
    fn place(&self, hash: u64, slot: u32) -> bool {
        let mask = self.mask();
        let mut at = hash as usize & mask;
        loop {
            let entry = self.entries[at].load(Ordering::Relaxed);
            if entry <= REMOVED {
                let new = (hash >> 32 << 32) | u64::from(slot.wrapping_add(MARKS as u32));
                self.entries[at].store(new, Ordering::Release);
                return entry == EMPTY;
            }
            at = (at + 1) & mask;
        }
    }
}

/// See the module. Slots must stay below `u32::MAX - 2`.
pub(super) struct Table {
    entries: ArcSwap<Entries>,
}

/// What the writer knows of a table; kept under the shard's lock.
#[derive(Debug, Default)]
pub(super) struct Fill {
    live: usize,
    /// Places that are not empty: live ones and removed ones.
    used: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Table { entries: ArcSwap::from_pointee(Entries::new(SMALLEST)) }
    }

    /// The slot with this hash that `is_it` accepts.
    pub(super) fn get(&self, hash: u64, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.entries.load().find(hash, is_it).map(|(_, slot)| slot)
    }

    /// Adds an entry that is not there; `hash_of` gives the hash of any slot, for copying into a larger table.
    pub(super) fn insert(&self, fill: &mut Fill, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        let entries = self.entries.load();
        if (fill.used + 1) * 4 > entries.entries.len() * 3 {
            self.rebuild(fill, hash_of);
        }
        fill.used += usize::from(self.entries.load().place(hash, slot));
        fill.live += 1;
    }

    /// Removes the entry of `slot`.
    pub(super) fn remove(&self, fill: &mut Fill, hash: u64, slot: u32) {
        let entries = self.entries.load();
        if let Some((at, _)) = entries.find(hash, |own| own == slot) {
            entries.entries[at].store(REMOVED, Ordering::Release);
            fill.live -= 1;
        }
    }

    fn rebuild(&self, fill: &mut Fill, hash_of: impl Fn(u32) -> u64) {
        let capacity = ((fill.live + 1) * 2).next_power_of_two().max(SMALLEST);
        let larger = Entries::new(capacity);
        for entry in &self.entries.load().entries {
            let entry = entry.load(Ordering::Relaxed);
            if entry > REMOVED {
                let slot = (entry as u32).wrapping_sub(MARKS as u32);
                larger.place(hash_of(slot), slot);
            }
        }
        fill.used = fill.live;
        self.entries.store(Arc::new(larger));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A poor hash, so that probing and half-hash collisions are exercised.
    fn hash(slot: u32) -> u64 {
        u64::from(slot % 7) << 32 | u64::from(slot % 5)
    }

    #[test]
    fn agrees_with_a_map_over_many_inserts_and_removals() {
        let (table, mut fill) = (Table::new(), Fill::default());
        let mut model = HashMap::new();
        let mut random = 1u32;
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = random >> 16 & 0xFF;
            if model.remove(&slot).is_some() {
                table.remove(&mut fill, hash(slot), slot);
            } else {
                table.insert(&mut fill, hash(slot), slot, hash);
                model.insert(slot, ());
            }
            assert_eq!(fill.live, model.len());
        }
        for slot in 0..256 {
            let found = table.get(hash(slot), |own| own == slot);
            assert_eq!(found.is_some(), model.contains_key(&slot), "{slot}");
        }
    }
}
