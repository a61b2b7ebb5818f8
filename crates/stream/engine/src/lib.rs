//! The stream broker: streams, shards, publish, subscribe, consumer groups and the cache.

pub mod cache;
pub mod groups;
