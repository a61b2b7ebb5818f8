//! Every bound of groups, with units.

/// Groups of all tenants.
pub const GROUPS_MAX: usize = 20_000;
/// Members of one group.
pub const MEMBERS_MAX: usize = 32_768;
/// Committed offsets of one group: shards of all streams that it ever read.
pub const OFFSETS_PER_GROUP_MAX: usize = 16_384;
/// Bytes of the note beside a committed offset (Kafka: `offset.metadata.max.bytes`).
pub const NOTE_BYTES_MAX: usize = 4096;
/// A group without members whose offsets nobody committed for this long is forgotten, in milliseconds of
/// running broker (Kafka: `offsets.retention.minutes`, seven days).
pub const IDLE_GROUP_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Groups that one tick looks through for offsets of streams that are gone.
pub(crate) const PURGES_PER_TICK_MAX: usize = 64;
/// How often a group is looked through for offsets of streams that are gone, in milliseconds.
pub(crate) const PURGE_EVERY_MS: u64 = 60 * 1000;

/// The shortest lease: less would run out on the way.
pub const LEASE_MS_MIN: u32 = 10;
/// Offsets between the first record of a shard that is not done and the last that was delivered. Beyond it
/// the group hands out nothing new of the shard, whatever was acknowledged behind the gap.
pub const WINDOW_OFFSETS_MAX: u64 = 262_144;
/// Ranges that a group tells apart in one shard.
pub const WINDOW_RANGES_MAX: usize = 16_384;
/// Records that one member may hold without having acknowledged them.
pub const IN_FLIGHT_PER_MEMBER_MAX: u64 = 65_536;
/// Leases that one look at a group lets run out; the rest come with the next look.
pub const EXPIRED_PER_TICK_MAX: usize = 4_096;
/// A native group whose last member left unfinished work is remembered for so long, in milliseconds: how
/// often its records were delivered, above all, so that a record that ends its readers is set aside all the
/// same.
pub const UNFINISHED_GROUP_MS: u64 = 60 * 60 * 1000;
/// Members of native groups that wait to be told how their commits fared; beyond it the oldest are looked at.
pub(crate) const UNSETTLED_MAX: usize = 1_024;
/// Ranges that one tick takes to the dead-letter stream, per group.
pub const DEAD_PER_TICK_MAX: usize = 256;
/// Bytes that a page from the log may have when a group reads on.
pub const PULL_BYTES_MAX: usize = 4 << 20;

/// The session timeouts that a Kafka consumer may ask for (`group.min.session.timeout.ms`).
pub const SESSION_TIMEOUT_MS_MIN: u32 = 1_000;
/// The longest session (`group.max.session.timeout.ms`).
pub const SESSION_TIMEOUT_MS_MAX: u32 = 30 * 60 * 1000;
/// The longest wait for members to join again; who asks for more gets this.
pub const REBALANCE_TIMEOUT_MS_MAX: u32 = 60 * 60 * 1000;
/// How long a group that was empty waits for more members (`group.initial.rebalance.delay.ms`).
pub const INITIAL_REBALANCE_DELAY_MS: u64 = 200;
/// Bytes of a member id, an instance id, a protocol's name or type.
pub const ID_BYTES_MAX: usize = 1024;
/// Bytes of a client's name that go into the id of its member.
pub const ID_NAME_BYTES_MAX: usize = 200;
/// Protocols that a member may offer.
pub const PROTOCOLS_MAX: usize = 32;
/// Bytes that a member may tell about itself, for all protocols.
pub const METADATA_BYTES_MAX: usize = 256 << 10;
/// Bytes that all members of a group may tell about themselves.
pub const GROUP_METADATA_BYTES_MAX: usize = 32 << 20;
/// Bytes that a leader may assign to one member.
pub const ASSIGNMENT_BYTES_MAX: usize = 1 << 20;
/// Bytes that a leader may assign to all.
pub const GROUP_ASSIGNMENT_BYTES_MAX: usize = 32 << 20;
/// Sessions that one tick lets end, over all groups; the rest come with the next tick.
pub const SESSIONS_PER_TICK_MAX: usize = 2_048;
/// The most that time moves on between two looks at the clock, in milliseconds: a clock that jumps forward
/// ends no session and no lease.
pub const CLOCK_STEP_MS_MAX: i64 = 5_000;

const _: () = assert!(IN_FLIGHT_PER_MEMBER_MAX <= WINDOW_OFFSETS_MAX);
const _: () = assert!(METADATA_BYTES_MAX <= GROUP_METADATA_BYTES_MAX);
