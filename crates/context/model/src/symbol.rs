//! Interned names: one number for each expanded type, attribute or term name.
//!
//! A record names its types and attributes by [`Symbol`], so comparing names is comparing integers and a
//! context's term table is an array. Only names are interned, never entity ids or values, and only writes
//! intern: a query for an unknown name finds no symbol and therefore nothing. Each tenant has a [`Budget`]
//! of names that it may introduce, so that no client can grow the table without bound.
//! Reading takes no lock; a new name takes one short lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::chunked::{CAPACITY, Chunked};

/// The number of an interned name; valid for the [`Symbols`] that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(u32);

impl Symbol {
    /// The number itself, for indexing and for the record layout.
    pub fn index(self) -> u32 {
        self.0
    }

    pub(crate) fn from_index(index: u32) -> Self {
        Symbol(index)
    }
}

/// How many new names a tenant may still introduce.
#[derive(Debug)]
pub struct Budget {
    used: AtomicU32,
    limit: u32,
}

impl Budget {
    /// A budget of `limit` names.
    pub fn new(limit: u32) -> Self {
        Budget { used: AtomicU32::new(0), limit }
    }

    /// Names charged so far.
    pub fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    fn charge(&self) -> bool {
        let add = |used: u32| (used < self.limit).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

/// The table refused a new name: this many are all that there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this tenant has introduced {0} distinct names of types and attributes and may introduce no more")]
pub struct Full(pub u32);

type Hasher = foldhash::fast::RandomState;

/// The table of names.
pub struct Symbols {
    by_name: papaya::HashMap<Arc<str>, Symbol, Hasher>,
    names: Chunked<Arc<str>>,
    next: Mutex<u32>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Symbols {
    /// An empty table.
    pub fn new() -> Self {
        Symbols {
            by_name: papaya::HashMap::with_hasher(Hasher::default()),
            names: Chunked::new(),
            next: Mutex::new(0),
        }
    }

    /// The symbol of `name` if some write has introduced it.
    pub fn get(&self, name: &str) -> Option<Symbol> {
        self.by_name.pin().get(name).copied()
    }

    /// The symbol of `name`, introduced at the cost of `budget` when it is new.
    pub fn intern(&self, name: &str, budget: &Budget) -> Result<Symbol, Full> {
        match self.get(name) {
            Some(symbol) => Ok(symbol),
            None => self.introduce(name, budget),
        }
    }

    fn introduce(&self, name: &str, budget: &Budget) -> Result<Symbol, Full> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(symbol) = self.get(name) {
            return Ok(symbol);
        }
        if *next as usize >= CAPACITY || !budget.charge() {
            return Err(Full(budget.used()));
        }
        let symbol = Symbol(*next);
        let name: Arc<str> = name.into();
        self.names.get_or_init(symbol.0 as usize, || name.clone());
        self.by_name.pin().insert(name, symbol);
        *next += 1;
        Ok(symbol)
    }

    /// The expanded name of `symbol`.
    ///
    /// # Panics
    /// When the symbol comes from another table, which is a defect of the caller.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.names.get(symbol.0 as usize).expect("a symbol is given out after its name is stored")
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) as usize
    }

    /// True before the first name.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_symbol_and_reading_introduces_none() {
        let symbols = Symbols::new();
        let budget = Budget::new(2);
        let a = symbols.intern("a", &budget).unwrap();
        assert_eq!(symbols.intern("a", &budget).unwrap(), a);
        assert_eq!(symbols.get("b"), None);
        assert_eq!(symbols.name(a), "a");
        assert_eq!(symbols.len(), 1);
    }

    #[test]
    fn a_tenant_cannot_introduce_more_than_its_budget() {
        let symbols = Symbols::new();
        let (small, other) = (Budget::new(1), Budget::new(1));
        symbols.intern("a", &small).unwrap();
        assert_eq!(symbols.intern("b", &small), Err(Full(1)));
        assert!(symbols.intern("a", &small).is_ok());
        assert!(symbols.intern("b", &other).is_ok());
        assert_eq!((small.used(), other.used()), (1, 1));
    }
}
