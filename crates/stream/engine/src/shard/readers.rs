//! Where the subscribers of a shard stand: for their lag, and for those of a memory stream who may lose
//! nothing.

use slab::Slab;

struct Reader {
    at: u64,
    holds: bool,
}

/// Sixteen bytes a subscriber. Offsets only rise, so the least held one that was computed last is a lower
/// bound until it is asked again: finding it costs one pass per ring, not per publish.
#[derive(Default)]
pub(crate) struct Readers {
    readers: Slab<Reader>,
    least_held: u64,
}

impl Readers {
    pub(crate) fn insert(&mut self, at: u64, holds: bool) -> usize {
        if holds {
            self.least_held = self.least_held.min(at);
        }
        self.readers.insert(Reader { at, holds })
    }

    pub(crate) fn advance(&mut self, key: usize, at: u64) {
        self.readers[key].at = at;
    }

    /// Like [`advance`](Self::advance), also backwards.
    pub(crate) fn seek(&mut self, key: usize, at: u64) {
        self.readers[key].at = at;
        self.least_held = self.least_held.min(at);
    }

    pub(crate) fn remove(&mut self, key: usize) {
        self.readers.remove(key);
        if self.readers.is_empty() {
            self.readers = Slab::new();
        }
    }

    /// Whether everything below `to` may be dropped: nobody holds it.
    pub(crate) fn lets_go(&mut self, to: u64) -> bool {
        if to <= self.least_held {
            return true;
        }
        let held = self.readers.iter().filter(|(_, reader)| reader.holds).map(|(_, reader)| reader.at);
        self.least_held = held.min().unwrap_or(u64::MAX);
        to <= self.least_held
    }

    pub(crate) fn len(&self) -> usize {
        self.readers.len()
    }

    /// How many records the slowest is behind.
    pub(crate) fn lag_max(&self, end: u64) -> u64 {
        self.readers.iter().map(|(_, reader)| end.saturating_sub(reader.at)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_holders_hold() {
        let mut readers = Readers::default();
        assert!(readers.lets_go(100));
        let other = readers.insert(5, false);
        assert!(readers.lets_go(100));
        let holder = readers.insert(50, true);
        assert!(!readers.lets_go(51) && readers.lets_go(50));
        readers.advance(holder, 60);
        assert!(readers.lets_go(51) && !readers.lets_go(61));
        assert_eq!((readers.len(), readers.lag_max(65)), (2, 60));
        readers.remove(holder);
        assert!(readers.lets_go(u64::MAX));
        readers.remove(other);
        assert_eq!(readers.len(), 0);
        readers.insert(7, true);
        assert!(!readers.lets_go(8));
    }
}
