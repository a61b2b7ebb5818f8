//! A map that is read by every request and grows a few times in its life: tenants, types.
//!
//! Readers borrow the whole map without counting a reference, so that many cores may ask for the same entry
//! without writing to a shared line. Adding an entry copies the map.

use std::hash::Hash;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use hashbrown::HashMap;
use parking_lot::Mutex;

type Hasher = foldhash::fast::RandomState;

/// The map as readers borrow it.
pub(super) type Entries<K, V> = HashMap<K, Arc<V>, Hasher>;

/// See the module.
pub(super) struct Registry<K, V> {
    entries: ArcSwap<Entries<K, V>>,
    writer: Mutex<()>,
}

impl<K, V> Default for Registry<K, V> {
    fn default() -> Self {
        Registry { entries: ArcSwap::from_pointee(HashMap::default()), writer: Mutex::new(()) }
    }
}

impl<K: Hash + Eq + Clone, V> Registry<K, V> {
    /// The map at this moment.
    pub(super) fn load(&self) -> Guard<Arc<Entries<K, V>>> {
        self.entries.load()
    }

    /// The entry of `key`, made when there is none; `None` when there are `limit` of them already.
    pub(super) fn get_or_add(&self, key: &K, limit: usize, make: impl FnOnce() -> V) -> Option<Arc<V>> {
        if let Some(found) = self.load().get(key) {
            return Some(found.clone());
        }
        let _writer = self.writer.lock();
        let entries = self.load();
        if let Some(found) = entries.get(key) {
            return Some(found.clone());
        }
        if entries.len() >= limit {
            return None;
        }
        let added = Arc::new(make());
        let mut copy = Entries::clone(&entries);
        copy.insert(key.clone(), added.clone());
        self.entries.store(Arc::new(copy));
        Some(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_made_once_and_bounded() {
        let registry: Registry<u32, u32> = Registry::default();
        let first = registry.get_or_add(&1, 2, || 10).unwrap();
        assert!(Arc::ptr_eq(&first, &registry.get_or_add(&1, 2, || 11).unwrap()));
        assert!(registry.get_or_add(&2, 2, || 20).is_some());
        assert!(registry.get_or_add(&3, 2, || 30).is_none());
        assert_eq!(registry.load().len(), 2);
    }
}
