//! The key-value cache.
