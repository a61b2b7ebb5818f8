//! An append-only array whose elements never move, read without a lock.
//!
//! Symbol names and per-context term tables grow while readers use them. Chunks are allocated on first use
//! and each element is written once, so a reader pays two pointer hops and no shared write.

use std::sync::OnceLock;

const CHUNK: usize = 1 << 10;
const CHUNKS: usize = 1 << 12;

/// Greatest number of elements.
pub(crate) const CAPACITY: usize = CHUNK * CHUNKS;

type Chunk<T> = Box<[OnceLock<T>]>;

/// See the module.
pub(crate) struct Chunked<T> {
    chunks: Box<[OnceLock<Chunk<T>>]>,
}

impl<T> Chunked<T> {
    /// An empty array; costs one table of chunk pointers that the system backs lazily.
    pub(crate) fn new() -> Self {
        Chunked { chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect() }
    }

    /// The element at `index` if it was set.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get()?[index % CHUNK].get()
    }

    /// The element at `index`, set from `make` when it is not yet; `None` beyond [`CAPACITY`].
    pub(crate) fn get_or_init(&self, index: usize, make: impl FnOnce() -> T) -> Option<&T> {
        let chunk = self.chunks.get(index / CHUNK)?;
        let chunk = chunk.get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        Some(chunk[index % CHUNK].get_or_init(make))
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
}
