//! Slots in order of their entities' identifiers: what paging walks.
//!
//! A list of chunks of up to [`CHUNK`] slots. Chunks are immutable and swapped, so readers walk without a
//! lock; one writer at a time copies the one chunk that changes (two kilobytes) and, when it splits, the
//! list of chunks. Costs four to eight bytes an entity. An index of its own exists for each type, and one
//! over all entities of the tenant.
//!
//! A reader may hold a chunk that a writer has just replaced: it then sees the page as it was a moment ago,
//! but for entities removed since, whose cells are empty and passed over, and for reused slots, whose record
//! may stand out of order: whoever walks must look that identifiers ascend.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::cells::{Borrowed, Cells};

/// Slots in one chunk at most.
const CHUNK: usize = 512;

type Chunk = Box<[u32]>;
type Chunks = Vec<ArcSwap<Chunk>>;

/// See the module.
pub(super) struct Ordered {
    chunks: ArcSwap<Chunks>,
    writer: Mutex<()>,
    len: AtomicUsize,
}

impl Default for Ordered {
    fn default() -> Self {
        Ordered {
            chunks: ArcSwap::from_pointee(Vec::new()),
            writer: Mutex::new(()),
            len: AtomicUsize::new(0),
        }
    }
}

fn compare(cells: &Cells, slot: u32, id: &str) -> std::cmp::Ordering {
    // A slot in the index is in use: it leaves the index before its cell is emptied.
    cells.load(slot).as_ref().map_or("", |record| record.id()).cmp(id)
}

impl Ordered {
    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The chunk where `id` stands or would stand.
    fn chunk_of(chunks: &Chunks, cells: &Cells, id: &str) -> usize {
        let begins_before = |chunk: &ArcSwap<Chunk>| {
            chunk.load().first().is_some_and(|slot| compare(cells, *slot, id).is_le())
        };
        chunks.partition_point(begins_before).saturating_sub(1)
    }

    /// Adds a slot whose cell already holds the entity `id`; does nothing when it is there.
    pub(super) fn insert(&self, cells: &Cells, slot: u32, id: &str) {
        let _writer = self.writer.lock();
        let chunks = self.chunks.load();
        if chunks.is_empty() {
            let first: Chunk = [slot].into();
            self.chunks.store(Arc::new(vec![ArcSwap::from_pointee(first)]));
            self.len.store(1, Ordering::Relaxed);
            return;
        }
        let index = Self::chunk_of(&chunks, cells, id);
        let old = chunks[index].load();
        let at = old.partition_point(|own| compare(cells, *own, id).is_lt());
        if old.get(at) == Some(&slot) {
            return;
        }
        let mut new = Vec::with_capacity(old.len() + 1);
        new.extend_from_slice(&old[..at]);
        new.push(slot);
        new.extend_from_slice(&old[at..]);
        if new.len() <= CHUNK {
            chunks[index].store(Arc::new(new.into_boxed_slice()));
        } else {
            // Identifiers mostly arrive in order: the last chunk splits at its end, so that chunks stay full.
            let last = index + 1 == chunks.len() && at + 1 == new.len();
            let right = new.split_off(if last { CHUNK } else { CHUNK / 2 });
            self.replace_chunk(&chunks, index, [new, right]);
        }
        self.len.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a slot, whose cell still holds the entity `id`.
    pub(super) fn remove(&self, cells: &Cells, slot: u32, id: &str) {
        let _writer = self.writer.lock();
        let chunks = self.chunks.load();
        if chunks.is_empty() {
            return;
        }
        let index = Self::chunk_of(&chunks, cells, id);
        let old = chunks[index].load();
        let at = old.partition_point(|own| compare(cells, *own, id).is_lt());
        if old.get(at) != Some(&slot) {
            return;
        }
        let mut new = old.to_vec();
        new.remove(at);
        if new.is_empty() {
            self.replace_chunk(&chunks, index, []);
        } else {
            chunks[index].store(Arc::new(new.into_boxed_slice()));
        }
        self.len.fetch_sub(1, Ordering::Relaxed);
    }

    fn replace_chunk<const N: usize>(&self, chunks: &Chunks, index: usize, by: [Vec<u32>; N]) {
        let keep = |chunk: &ArcSwap<Chunk>| ArcSwap::new(chunk.load_full());
        let mut new: Chunks = Vec::with_capacity(chunks.len() + 1);
        new.extend(chunks[..index].iter().map(keep));
        new.extend(by.into_iter().map(|slots| ArcSwap::from_pointee(slots.into_boxed_slice())));
        new.extend(chunks[index + 1..].iter().map(keep));
        self.chunks.store(Arc::new(new));
    }

    /// A walk from the beginning.
    pub(super) fn cursor(&self) -> Cursor {
        Cursor { chunks: self.chunks.load(), chunk: 0, slots: None, at: 0 }
    }
}

/// A walk over an [`Ordered`] index.
pub(super) struct Cursor {
    chunks: Guard<Arc<Chunks>>,
    chunk: usize,
    slots: Option<Guard<Arc<Chunk>>>,
    at: usize,
}

impl Cursor {
    /// The record of the next slot in use, in order of identifiers.
    pub(super) fn next(&mut self, cells: &Cells) -> Option<Borrowed> {
        loop {
            if self.slots.is_none() {
                self.slots = Some(self.chunks.get(self.chunk)?.load());
                self.chunk += 1;
                self.at = 0;
            }
            let slot = self.slots.as_ref().and_then(|slots| slots.get(self.at)).copied();
            self.at += 1;
            match slot {
                None => self.slots = None,
                Some(slot) => {
                    let record = cells.load(slot);
                    if record.is_some() {
                        return Some(record);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use trifid_context_model::record::{Draft, Record};
    use trifid_context_model::time::Instant;

    use super::*;

    fn record(id: &str) -> Record {
        Draft {
            id: id.into(),
            types: Default::default(),
            scopes: Vec::new(),
            created: Instant(0),
            modified: Instant(0),
            expires: None,
            instances: Vec::new(),
        }
        .encode()
    }

    fn ids(index: &Ordered, cells: &Cells) -> Vec<String> {
        let mut cursor = index.cursor();
        std::iter::from_fn(|| cursor.next(cells))
            .filter_map(|record| record.as_ref().map(|record| record.id().to_owned()))
            .collect()
    }

    #[test]
    fn walks_in_order_whatever_came_and_went() {
        let (index, cells) = (Ordered::default(), Cells::default());
        let mut model = BTreeMap::new();
        let mut random = 7u32;
        for _ in 0..30_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = format!("urn:x:{}", random >> 12 & 0xFFF);
            if let Some(slot) = model.remove(&id) {
                index.remove(&cells, slot, &id);
                cells.remove(slot);
            } else {
                let slot = cells.add(record(&id)).unwrap();
                index.insert(&cells, slot, &id);
                model.insert(id, slot);
            }
        }
        assert_eq!(index.len(), model.len());
        assert_eq!(ids(&index, &cells), model.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn ascending_identifiers_fill_their_chunks() {
        let (index, cells) = (Ordered::default(), Cells::default());
        for n in 0..5_000 {
            let id = format!("urn:x:{n:06}");
            let slot = cells.add(record(&id)).unwrap();
            index.insert(&cells, slot, &id);
        }
        assert_eq!(index.chunks.load().len(), 5_000_usize.div_ceil(CHUNK));
        assert_eq!(ids(&index, &cells).len(), 5_000);
    }
}
