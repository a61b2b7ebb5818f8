//! Every bound of caches, with units. The model has those of keys, values and batches.

/// Caches of all tenants.
pub const CACHES_MAX: usize = 1_000;
/// Watches of one cache.
pub const WATCHES_MAX: usize = 65_536;
/// Watches of what keys begin with, of one cache: each change is compared with each of them.
pub const PREFIX_WATCHES_MAX: usize = 1_024;
/// Changes that a cache with watches keeps for the slow among them.
pub const CHANGES_MAX: usize = 16_384;
/// Bytes of changes that a cache keeps, and at most a quarter of its budget.
pub const CHANGE_BYTES_MAX: usize = 8 << 20;
/// What an entry costs beside its key and value: places in the table, the order of keys, of use and of
/// expiry.
pub const ENTRY_BYTES: usize = 240;
/// Entries whose life one tick ends, per cache; the others are not given out any more either.
pub const EXPIRED_PER_TICK_MAX: usize = 4_096;
/// Entries of one page of a scan.
pub const SCAN_ENTRIES_MAX: usize = 10_000;
/// Bytes of one page of a scan, unless one entry is larger.
pub const SCAN_BYTES_MAX: usize = 4 << 20;
/// Parts of a cache's table, each behind a lock of its own.
pub const PARTS_MAX: usize = 16;
/// A table has one part for so much of its budget.
pub const PART_BYTES: u64 = 1 << 20;
/// Writes that wait for the disk, per cache.
pub const PENDING_MAX: usize = 65_536;
/// Entries that one put may push out before it lets another push on: an entry of four megabytes may outweigh
/// many.
pub const EVICTED_AT_ONCE_MAX: usize = 4_096;
/// When to try again if too many do, in milliseconds.
pub const RETRY_PENDING_MS: u32 = 20;

const _: () = assert!(PARTS_MAX.is_power_of_two());
