//! Append-only arrays whose elements never move, read without a lock.
//!
//! Symbol names, per-context term tables and the entity store's cells grow while readers use them. Buckets
//! double in size and are allocated on first use, so an empty array costs a few hundred bytes, a full one
//! at most twice its elements, and a reader pays two pointer hops and no shared write.

use std::sync::OnceLock;

/// Elements of the first bucket.
const FIRST: usize = 32;
const BUCKETS: usize = 26;

/// Greatest number of elements.
pub const CAPACITY: usize = (FIRST << BUCKETS) - FIRST;

/// An array of elements that begin as their default.
#[derive(Debug)]
pub struct Buckets<T> {
    buckets: [OnceLock<Box<[T]>>; BUCKETS],
}

impl<T: Default> Default for Buckets<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Bucket and place in it of element `index`.
fn place(index: usize) -> (usize, usize) {
    let shifted = index + FIRST;
    let bucket = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (bucket, shifted - (FIRST << bucket))
}

impl<T: Default> Buckets<T> {
    /// An empty array.
    pub fn new() -> Self {
        Buckets { buckets: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// The element at `index`, where its bucket exists.
    pub fn get(&self, index: usize) -> Option<&T> {
        let (bucket, at) = place(index);
        Some(&self.buckets.get(bucket)?.get()?[at])
    }

    /// The element at `index`, its bucket allocated when it is not yet; `None` beyond [`CAPACITY`].
    pub fn grow(&self, index: usize) -> Option<&T> {
        let (bucket, at) = place(index);
        let make = || (0..FIRST << bucket).map(|_| T::default()).collect();
        Some(&self.buckets.get(bucket)?.get_or_init(make)[at])
    }
}

/// An array whose elements are each set once.
#[derive(Debug, Default)]
pub struct Chunked<T> {
    cells: Buckets<OnceLock<T>>,
}

impl<T> Chunked<T> {
    /// An empty array.
    pub fn new() -> Self {
        Chunked { cells: Buckets::new() }
    }

    /// The element at `index` if it was set.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.cells.get(index)?.get()
    }

    /// The element at `index`, set from `make` when it is not yet; `None` beyond [`CAPACITY`].
    pub fn get_or_init(&self, index: usize, make: impl FnOnce() -> T) -> Option<&T> {
        Some(self.cells.grow(index)?.get_or_init(make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_set_once_and_stays() {
        let array = Chunked::new();
        assert_eq!(array.get(5000), None);
        assert_eq!(array.get_or_init(5000, || 1), Some(&1));
        assert_eq!(array.get_or_init(5000, || 2), Some(&1));
        assert_eq!(array.get(5000), Some(&1));
        assert_eq!(array.get_or_init(CAPACITY, || 3), None);
    }

    #[test]
    fn places_are_dense_and_distinct() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }
}
