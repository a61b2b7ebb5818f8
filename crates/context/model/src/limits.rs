//! Bounds on one entity, in one place. Those of contexts and of the query languages stand beside their modules.
//!
//! They hold for what an operation leaves behind and not only for what it brings: an entity grows by many small
//! requests as well as by one large one.

/// Greatest number of attribute instances of one entity.
pub const MAX_INSTANCES: usize = 10_000;

/// Greatest number of sub-attribute instances of one attribute instance.
pub const MAX_SUBS: usize = 1_000;

/// Greatest number of types of one entity. Discovery counts each attribute under each of them.
pub const MAX_TYPES: usize = 32;

/// Greatest number of scopes of one entity.
pub const MAX_SCOPES: usize = 1_000;

/// Greatest size of one entity in memory, in bytes.
pub const MAX_ENTITY_BYTES: usize = 16 << 20;

/// Greatest number of relationship targets, vocabulary terms or languages in one value.
pub const MAX_ITEMS: usize = 10_000;

const _: () = assert!(MAX_TYPES <= crate::record::MAX_TYPES && MAX_SCOPES <= crate::record::MAX_TYPES);
