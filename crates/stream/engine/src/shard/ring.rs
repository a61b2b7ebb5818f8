//! The recent batches of a shard, in memory, as readers get them.
//!
//! Each batch is one shared buffer with its offset and epoch written into it, so a reader clones a reference.
//! The ring covers every offset from [`Ring::from`] to its end: an offset in there is answered without the
//! disk. Of a durable stream it is a cache, which may be given up at any time; of a memory stream it is the
//! stream.
//!
//! Every batch knows how many bytes the shard had taken before it, so that the lag of a reader in bytes is
//! one subtraction.

use std::collections::VecDeque;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::limits::ENTRY_BYTES;

/// Batches of one fetch.
pub type Entries = SmallVec<[Entry; 2]>;

/// One batch as readers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Offset of its first record.
    pub base: u64,
    /// Offset after its last record.
    pub end: u64,
    /// Epoch of the shard when it was taken.
    pub epoch: u32,
    /// The whole batch; base offset and partition leader epoch are these.
    pub bytes: Bytes,
}

/// A batch in the ring.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) entry: Entry,
    pub(crate) max_timestamp: i64,
    pub(crate) appended_ms: i64,
    /// Bytes that the shard had taken before this batch.
    pub(crate) before: u64,
}

impl Slot {
    /// What it is too old by: its newest record's time, as for a segment of a log; when it was taken, if it
    /// tells none.
    pub(crate) fn time_ms(&self) -> i64 {
        if self.max_timestamp < 0 { self.appended_ms } else { self.max_timestamp }
    }

    /// What it costs to keep.
    pub(crate) fn cost(&self) -> usize {
        self.entry.bytes.len() + ENTRY_BYTES
    }

    /// Bytes that the shard had taken with this batch.
    pub(crate) fn after(&self) -> u64 {
        self.before + self.entry.bytes.len() as u64
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ring {
    from: u64,
    slots: VecDeque<Slot>,
    bytes: usize,
}

impl Ring {
    /// A ring that covers nothing and begins at `from`.
    pub(crate) fn starting_at(from: u64) -> Self {
        Ring { from, slots: VecDeque::new(), bytes: 0 }
    }

    /// Every offset from here to the end of the shard is covered.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        self.bytes += slot.cost();
        self.slots.push_back(slot);
    }

    pub(crate) fn front(&self) -> Option<&Slot> {
        self.slots.front()
    }

    /// Drops the oldest batch.
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        let slot = self.slots.pop_front()?;
        self.bytes -= slot.cost();
        self.from = slot.entry.end;
        Some(slot)
    }

    /// Drops all, and covers what comes at or after `end`; answers the bytes that are free now.
    pub(crate) fn clear(&mut self, end: u64) -> usize {
        let freed = std::mem::take(&mut self.bytes);
        *self = Ring::starting_at(end);
        freed
    }

    /// The index of the first batch that ends after `offset`.
    fn index(&self, offset: u64) -> usize {
        self.slots.partition_point(|slot| slot.entry.end <= offset)
    }

    /// The batches from the one that holds `from` on: about `max_bytes`, at least one if there is one. With
    /// them the bytes that the shard had taken at their end.
    pub(crate) fn collect(&self, from: u64, max_bytes: usize) -> (Entries, Option<u64>) {
        let (mut entries, mut bytes, mut after) = (Entries::new(), 0, None);
        for slot in self.slots.range(self.index(from)..) {
            bytes += slot.entry.bytes.len();
            if bytes > max_bytes && !entries.is_empty() {
                break;
            }
            after = Some(slot.after());
            entries.push(slot.entry.clone());
        }
        (entries, after)
    }

    /// The size of the batch that a reader at `from` gets next.
    pub(crate) fn size_at(&self, from: u64) -> Option<usize> {
        self.slots.get(self.index(from)).map(|slot| slot.entry.bytes.len())
    }

    /// Bytes of the batches that end after `offset`.
    pub(crate) fn bytes_after(&self, offset: u64) -> u64 {
        match (self.slots.get(self.index(offset)), self.slots.back()) {
            (Some(first), Some(last)) => last.after() - first.before,
            _ => 0,
        }
    }

    /// The oldest batch behind whose beginning the shard has taken at most `budget` bytes; the newest one if
    /// even that is larger.
    pub(crate) fn within(&self, total: u64, budget: u64) -> Option<&Slot> {
        let at = self.slots.partition_point(|slot| total - slot.before > budget);
        self.slots.get(at).or_else(|| self.slots.back())
    }

    /// The first batch with a record as late as `stamp`.
    pub(crate) fn at_time(&self, stamp: i64) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.max_timestamp >= stamp)
    }

    /// Gives room back that a busier time needed.
    pub(crate) fn shrink(&mut self) {
        if self.slots.capacity() > 64 && self.slots.len() < self.slots.capacity() / 4 {
            self.slots.shrink_to(self.slots.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(sizes: &[usize]) -> Ring {
        let mut ring = Ring::starting_at(10);
        let (mut base, mut before) = (10, 0);
        for size in sizes {
            let bytes = Bytes::from(vec![0; *size]);
            let entry = Entry { base, end: base + 2, epoch: 1, bytes };
            ring.push(Slot { entry, max_timestamp: base as i64, appended_ms: 0, before });
            base += 2;
            before += *size as u64;
        }
        ring
    }

    fn bases(entries: &Entries) -> Vec<u64> {
        entries.iter().map(|entry| entry.base).collect()
    }

    #[test]
    fn an_offset_within_a_batch_finds_it() {
        let ring = ring(&[5, 5, 5]);
        for (from, found) in
            [(10, vec![10, 12, 14]), (11, vec![10, 12, 14]), (12, vec![12, 14]), (16, vec![])]
        {
            assert_eq!(bases(&ring.collect(from, 100).0), found, "{from}");
        }
        assert_eq!(ring.collect(12, 100).1, Some(15));
        assert_eq!(ring.collect(16, 100).1, None);
    }

    #[test]
    fn at_least_one_and_no_more_than_fit() {
        let ring = ring(&[5, 5, 5]);
        assert_eq!(bases(&ring.collect(10, 0).0), [10]);
        assert_eq!(bases(&ring.collect(10, 9).0), [10]);
        assert_eq!(bases(&ring.collect(10, 10).0), [10, 12]);
        assert_eq!(ring.size_at(12), Some(5));
        assert_eq!(ring.size_at(16), None);
    }

    #[test]
    fn a_budget_names_the_oldest_batch_within_it() {
        let ring = ring(&[5, 7, 9]);
        let base = |budget| ring.within(21, budget).map(|slot| slot.entry.base);
        assert_eq!([21, 20, 16, 15, 9, 8, 0].map(base), [10, 12, 12, 14, 14, 14, 14].map(Some));
        assert!(Ring::starting_at(3).within(21, 5).is_none());
    }

    #[test]
    fn dropping_moves_what_is_covered() {
        let mut ring = ring(&[5, 7]);
        assert_eq!(ring.bytes(), 12 + 2 * ENTRY_BYTES);
        ring.pop();
        assert_eq!((ring.from(), ring.bytes(), ring.len()), (12, 7 + ENTRY_BYTES, 1));
        assert_eq!(ring.clear(14), 7 + ENTRY_BYTES);
        assert_eq!((ring.from(), ring.bytes(), ring.len()), (14, 0, 0));
    }

    #[test]
    fn finds_by_time() {
        let ring = ring(&[5, 5, 5]);
        let base = |stamp| ring.at_time(stamp).map(|slot| slot.entry.base);
        assert_eq!([0, 10, 11, 14, 15].map(base), [Some(10), Some(10), Some(12), Some(14), None]);
    }
}
