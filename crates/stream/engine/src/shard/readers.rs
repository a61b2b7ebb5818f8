//! Where the subscribers of a shard stand: for their lag, and for those of a memory stream who may lose
//! nothing.

use slab::Slab;

struct Reader {
    at: u64,
    holds: bool,
}

/// Sixteen bytes a subscriber. The least held offset is looked for again only when the one who held it has moved:
/// about once per ring, and not per publish that is refused for it.
pub(crate) struct Readers {
    readers: Slab<Reader>,
    /// No holder stands below; one stands there unless it is stale.
    least_held: u64,
    is_stale: bool,
}

impl Default for Readers {
    fn default() -> Self {
        Readers { readers: Slab::new(), least_held: u64::MAX, is_stale: false }
    }
}

impl Readers {
    pub(crate) fn insert(&mut self, at: u64, holds: bool) -> usize {
        if holds {
            self.least_held = self.least_held.min(at);
        }
        self.readers.insert(Reader { at, holds })
    }

    pub(crate) fn advance(&mut self, key: usize, at: u64) {
        let reader = &mut self.readers[key];
        self.is_stale |= reader.at == self.least_held;
        reader.at = at;
    }

    /// Like [`advance`](Self::advance), also backwards.
    pub(crate) fn seek(&mut self, key: usize, at: u64) {
        self.advance(key, at);
        if self.readers[key].holds {
            self.least_held = self.least_held.min(at);
        }
    }

    pub(crate) fn remove(&mut self, key: usize) {
        self.is_stale |= self.readers.remove(key).at == self.least_held;
        if self.readers.is_empty() {
            self.readers = Slab::new();
        }
    }

    /// Whether everything below `to` may be dropped: nobody holds it.
    pub(crate) fn lets_go(&mut self, to: u64) -> bool {
        if to > self.least_held && self.is_stale {
            let held = self.readers.iter().filter(|(_, reader)| reader.holds).map(|(_, reader)| reader.at);
            self.least_held = held.min().unwrap_or(u64::MAX);
            self.is_stale = false;
        }
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
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn what_is_held_is_what_a_look_at_all_would_find(
            acts in prop::collection::vec((0..5_u8, 0..6_usize, 0..50_u64, any::<bool>()), 1..80),
        ) {
            let mut readers = Readers::default();
            let mut plain: Vec<(usize, u64, bool)> = Vec::new();
            for (act, which, at, holds) in acts {
                let len = plain.len().max(1);
                match (act, plain.get_mut(which % len)) {
                    (0, _) => plain.push((readers.insert(at, holds), at, holds)),
                    (1, Some(reader)) => {
                        reader.1 += at;
                        readers.advance(reader.0, reader.1);
                    }
                    (2, Some(reader)) => {
                        reader.1 = at;
                        readers.seek(reader.0, at);
                    }
                    (3, Some(_)) => readers.remove(plain.swap_remove(which % len).0),
                    _ => {
                        let held = plain.iter().any(|(_, held, holds)| *holds && *held < at);
                        prop_assert_eq!(readers.lets_go(at), !held);
                    }
                }
            }
        }
    }
}
