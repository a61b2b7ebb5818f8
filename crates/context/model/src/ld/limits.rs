//! Every bound on what a JSON-LD context may cost, in one place.

/// Greatest size of one context document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 5 << 20;

/// Greatest number of distinct remote documents that one context may need, nested ones included.
pub const MAX_DOCUMENTS: usize = 32;

/// Greatest number of context pieces merged into one active context, repeated ones counted each time: what
/// keeps documents that include each other twice over from costing exponential time.
pub const MAX_PIECES: usize = 256;

/// Greatest number of terms that one active context may define.
pub const MAX_TERMS: usize = 50_000;

/// Greatest length of an IRI or a term, in bytes.
pub const MAX_IRI_BYTES: usize = 2048;

/// Greatest sum of the IRIs and terms of one active context, in bytes: a chain of prefixes may make each
/// term longer than the one before.
pub const MAX_CONTEXT_BYTES: usize = 16 << 20;

/// Greatest number of definitions that one definition may hang on (`a` as `b:x`, `b` as `c:y`, ...).
pub const MAX_CHAIN: usize = 32;

/// Greatest number of different lengths that the IRIs of prefixes may have: each costs one look-up when an
/// IRI without a term is compacted.
pub const MAX_PREFIX_LENGTHS: usize = 256;

/// Greatest number of defined compact IRIs (`a:b`) that stand for something else than prefix `a` says: each may
/// cost one vain try when an IRI is compacted.
pub const MAX_CONFLICTS: usize = 64;

const _: () = assert!(MAX_CHAIN < crate::json::MAX_DEPTH, "both bound recursion on the same stack");
