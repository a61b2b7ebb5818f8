//! The compacted names of one context by symbol: what an answer writes before each value.
//!
//! Leaves of a few dozen names in an append-only array, each name made once. A reader takes no lock and
//! writes nothing shared. A context pays for the leaves that it has rendered names of, not for the size of
//! the symbol table: one that has rendered nothing costs a few hundred bytes.

use std::sync::OnceLock;

use crate::chunked::Chunked;

const LEAF: usize = 64;

type Leaf = Box<[OnceLock<Box<[u8]>>]>;

/// See the module.
pub(super) struct Keys {
    leaves: Chunked<Leaf>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// A table without names.
    pub(super) fn new() -> Keys {
        Keys { leaves: Chunked::new() }
    }

    /// The key at `index`, made when it is not there yet; `None` beyond the capacity of a symbol table.
    #[inline]
    pub(super) fn get_or_init(&self, index: usize, make: impl FnOnce() -> Box<[u8]>) -> Option<&[u8]> {
        let empty = || (0..LEAF).map(|_| OnceLock::new()).collect();
        let leaf = self.leaves.get_or_init(index / LEAF, empty)?;
        Some(leaf[index % LEAF].get_or_init(make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_at_any_index() {
        let keys = Keys::new();
        for index in [0, 1, LEAF - 1, LEAF, 1000, 100_000] {
            let text = index.to_string();
            let key = keys.get_or_init(index, || text.as_bytes().into());
            assert_eq!(key, Some(text.as_bytes()));
            assert_eq!(keys.get_or_init(index, || unreachable!()), key);
        }
    }
}
