//! The cells that hold the current record of each entity, by slot.
//!
//! A cell never moves and is swapped atomically, so that a reader borrows a record without a lock and
//! without counting a reference. Slots of removed entities are used again; whoever came by a slot through
//! an index must therefore look at the record's own identifier.

use arc_swap::{ArcSwapAny, Guard};
use parking_lot::Mutex;
use trifid_context_model::chunked::{Buckets, CAPACITY};
use trifid_context_model::record::Record;

/// Slots kept back for the requests that are under way when the last but these are taken.
const ROOM: usize = 64 * crate::limits::MAX_BATCH;

type Cell = ArcSwapAny<Option<Record>>;

/// A record borrowed from its cell; do not hold it across an await.
pub(super) type Borrowed = Guard<Option<Record>>;

#[derive(Default)]
struct Free {
    next: u32,
    returned: Vec<u32>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Cells {
    cells: Buckets<Cell>,
    free: Mutex<Free>,
}

impl Cells {
    /// True while a batch of any size that a request may have still finds slots. Their number, some two
    /// thousand million, is beyond the memory of today's machines; the check costs one uncontended lock.
    pub(super) fn has_room(&self) -> bool {
        (self.free.lock().next as usize) < CAPACITY - ROOM
    }

    /// The record in `slot`; nothing while the slot is free.
    pub(super) fn load(&self, slot: u32) -> Borrowed {
        match self.cells.get(slot as usize) {
            Some(cell) => cell.load(),
            None => Guard::from_inner(None),
        }
    }

    /// Puts a record into a free slot; `None` when there are as many entities as a store can hold.
    pub(super) fn add(&self, record: Record) -> Option<u32> {
        let slot = self.take_slot()?;
        self.cells.grow(slot as usize)?.store(Some(record));
        Some(slot)
    }

    fn take_slot(&self) -> Option<u32> {
        let mut free = self.free.lock();
        if let Some(slot) = free.returned.pop() {
            return Some(slot);
        }
        let slot = free.next;
        if slot as usize >= CAPACITY {
            return None;
        }
        free.next += 1;
        Some(slot)
    }

    /// Replaces the record in a slot that is in use.
    pub(super) fn replace(&self, slot: u32, record: Record) {
        if let Some(cell) = self.cells.get(slot as usize) {
            cell.store(Some(record));
        }
    }

    /// Empties a slot; it may be used again at once.
    pub(super) fn remove(&self, slot: u32) {
        if let Some(cell) = self.cells.get(slot as usize) {
            cell.store(None);
            self.free.lock().returned.push(slot);
        }
    }
}
