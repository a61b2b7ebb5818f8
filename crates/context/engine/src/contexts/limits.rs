//! Bounds of the store of contexts; sizes in bytes, times in microseconds unless said otherwise.

use std::time::Duration;

/// Documents downloaded and kept.
pub const MAX_CACHED: usize = 1_000;

/// Contexts given inside requests, or as arrays, and kept merged.
pub const MAX_INLINE: usize = 1_000;

/// Memory of all documents and merged contexts that can be had again.
pub const MAX_CACHE_BYTES: usize = 128 << 20;

/// Contexts that one tenant may have hosted, implicitly created ones included.
pub const MAX_HOSTED_PER_TENANT: usize = 1_000;

/// Implicitly created contexts that one tenant may have. Queries make them, so the longest unused gives way to the
/// next: reading must not use up what a tenant may host.
pub const MAX_IMPLICIT_PER_TENANT: usize = 100;

/// Text of the contexts that all tenants together may have hosted.
pub const MAX_HOSTED_BYTES: usize = 512 << 20;

/// Text of the contexts that one tenant may have hosted.
pub const MAX_HOSTED_BYTES_PER_TENANT: usize = 64 << 20;

/// Failed addresses that are remembered.
pub const MAX_FAILURES: usize = 1_000;

/// Downloads under way at once.
pub const MAX_DOWNLOADS: usize = 64;

/// How long all downloads for one request may take.
pub const RESOLVE_DEADLINE: Duration = Duration::from_secs(15);

/// How long an address that failed is not tried again.
pub const FAILURE_TTL: i64 = 5_000_000;

/// How long a merged context with a stale part is used before it is looked at again.
pub const STALE_RECHECK: i64 = 2_000_000;

/// Freshness of a document whose server says nothing about it, and the bounds of the guess from its age
/// (RFC 9111 4.2.2).
pub const HEURISTIC_DEFAULT: i64 = 3_600_000_000;
/// See [`HEURISTIC_DEFAULT`].
pub const HEURISTIC_MIN: i64 = 60_000_000;
/// See [`HEURISTIC_DEFAULT`].
pub const HEURISTIC_MAX: i64 = 86_400_000_000;

/// Longest freshness that is believed.
pub const FRESHNESS_MAX: i64 = 365 * 86_400_000_000;

/// How long a document that went stale may be used while a new one is fetched, where its server does not
/// say otherwise.
pub const STALE_WHILE_REVALIDATE: i64 = 3_600_000_000;

/// How long after it went stale an unused document is kept.
pub const RETENTION: i64 = 86_400_000_000;
