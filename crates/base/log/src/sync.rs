//! The locks and atomics of the commit path. `loom/` builds the modules of that path with another `sync`, which
//! tries every order in which threads may take turns.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

pub(crate) use parking_lot::{Condvar, Mutex};
