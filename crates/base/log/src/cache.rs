//! Sealed segments that readers have open: the file, its header, its index.
//!
//! One cache serves all logs of a directory and holds a bounded number of them; the one that was not asked for
//! the longest goes. A segment is known by its serial, so a file that took another's name is never mistaken for
//! it, and a reader who holds one goes on when it is dropped from the cache, renamed or removed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::DiskFile;
use crate::index::Index;
use crate::segment::{Growing, SegmentHeader};

/// A sealed segment made ready for readers.
pub(crate) struct OpenSegment {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) header: SegmentHeader,
    pub(crate) index: Index,
}

impl From<Growing> for OpenSegment {
    fn from(growing: Growing) -> Self {
        OpenSegment { file: growing.file, header: growing.header, index: growing.index }
    }
}

pub(crate) struct Cache {
    capacity: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    segments: HashMap<u64, (Arc<OpenSegment>, u64)>,
    clock: u64,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Cache { capacity: capacity.max(1), held: Mutex::default() }
    }

    pub(crate) fn get(&self, serial: u64) -> Option<Arc<OpenSegment>> {
        let mut held = self.held.lock();
        held.clock += 1;
        let now = held.clock;
        let (segment, used) = held.segments.get_mut(&serial)?;
        *used = now;
        Some(segment.clone())
    }

    pub(crate) fn put(&self, serial: u64, segment: Arc<OpenSegment>) {
        let mut held = self.held.lock();
        held.clock += 1;
        let now = held.clock;
        if held.segments.len() >= self.capacity && !held.segments.contains_key(&serial) {
            let oldest = held.segments.iter().min_by_key(|(_, (_, used))| *used).map(|(serial, _)| *serial);
            oldest.map(|serial| held.segments.remove(&serial));
        }
        held.segments.insert(serial, (segment, now));
    }

    pub(crate) fn forget(&self, serial: u64) {
        self.held.lock().segments.remove(&serial);
    }
}
