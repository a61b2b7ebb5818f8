//! Every bound of the context engine, in one place, with units.

/// Tenants that may exist at once.
pub const MAX_TENANTS: usize = 10_000;
/// Distinct type and attribute names that one tenant may introduce.
pub const MAX_NAMES_PER_TENANT: u32 = 65_536;
/// Distinct names that requests may introduce for tenants that do not exist yet: most will begin to exist by that
/// request, the others must not grow the table of names without bound.
pub const MAX_NAMES_OF_NEWCOMERS: u32 = 1 << 20;
/// Longest tenant name, in bytes.
pub const MAX_TENANT_NAME: usize = 128;
/// Entities in one batch request.
pub const MAX_BATCH: usize = 10_000;
/// Entities that a sorted page may reach to, and identifiers that a purge may hold, at once.
pub const MAX_HELD: usize = 1_000_000;
/// Write shards of one tenant; a power of two, several times the cores.
pub(crate) const SHARDS: usize = 64;
/// Changes of one batch applied before other requests of the core run.
pub(crate) const WRITE_STEP: usize = 256;
/// Entities whose expiry one sweep step handles before it lets others run.
pub(crate) const SWEEP_STEP: usize = 1_000;

const _: () = assert!(SHARDS.is_power_of_two());
