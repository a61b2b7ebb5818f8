//! Decoded columns, kept within a budget of bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Array as _, ArrayRef};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The name of one column of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnKey {
    /// The table, by [`ColumnCache::table_id`].
    pub table: u64,
    /// The chunk.
    pub chunk: u32,
    /// The column.
    pub column: u32,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<ColumnKey, ArrayRef> for Bytes {
    fn weight(&self, _: &ColumnKey, array: &ArrayRef) -> u64 {
        array.get_array_memory_size().max(1) as u64
    }
}

/// The columns that were read, the more useful the longer; shared by all tables of a process.
pub struct ColumnCache {
    columns: Cache<ColumnKey, ArrayRef, Bytes>,
    tables: AtomicU64,
}

impl ColumnCache {
    /// A cache of at most `bytes` of arrays.
    pub fn new(bytes: u64) -> Self {
        // An estimate: a chunk's column of 8-byte values takes half a mebibyte.
        let items = usize::try_from(bytes / (512 << 10)).unwrap_or(usize::MAX).clamp(64, 1 << 20);
        Self { columns: Cache::with_weighter(items, bytes, Bytes), tables: AtomicU64::new(0) }
    }

    /// A number for a table that nothing else in this cache has.
    pub fn table_id(&self) -> u64 {
        self.tables.fetch_add(1, Ordering::Relaxed)
    }

    /// The column, if it is here.
    pub fn get(&self, key: ColumnKey) -> Option<ArrayRef> {
        self.columns.get(&key)
    }

    /// Keeps a column, if it is worth its bytes.
    pub fn put(&self, key: ColumnKey, array: &ArrayRef) {
        self.columns.insert(key, array.clone());
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.columns.weight()
    }
}
