//! Every bound and every target of the rig, in one place, with units.

use std::time::Duration;

/// The longest response head that the scanner accepts, in bytes.
pub const HEAD_BYTES: usize = 16 * 1024;
/// The longest response body that the scanner accepts, in bytes.
pub const BODY_BYTES: u64 = 64 * 1024 * 1024;
/// The most connections that one generator opens.
pub const CLIENTS: usize = 4096;
/// How many characters of a server's last words are kept for an error message.
pub const LAST_WORDS_LINES: usize = 20;

/// How long a server may take until it names its address.
pub const START_WAIT: Duration = Duration::from_secs(10);
/// How long a server may take to stop after SIGTERM before it is killed.
pub const STOP_WAIT: Duration = Duration::from_secs(10);
/// How long a connection may take to be made.
pub const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long one answer may take before the measurement is given up.
pub const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// How long loading the catalogue may take.
pub const LOAD_WAIT: Duration = Duration::from_secs(300);
/// How long each step of starting PostgreSQL may take.
pub const POSTGRES_WAIT: Duration = Duration::from_secs(120);
/// How long a slow reader may take over a streamed result.
pub const STREAM_WAIT: Duration = Duration::from_secs(300);
/// The longest streamed result that is read, in bytes.
pub const STREAM_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// What the reader of a streamed result sets as MAXREC, in rows.
pub const STREAM_ROWS_MAX: u64 = 10_000_000;
/// How long a client asks a job to let it wait, in seconds.
pub const JOB_WAIT_S: u64 = 10;

/// The share of the broker's closed-loop rate at which both sides are paced.
pub const PACED_SHARE: f64 = 0.6;
/// A round whose generator was busier than this measured the generator: it is void.
pub const GENERATOR_BUSY_MAX: f64 = 0.90;
/// A paced round that achieved less than this share of the offered rate did not keep pace: it is void.
pub const PACE_KEPT_MIN: f64 = 0.98;

/// The longest latency that a histogram distinguishes, in nanoseconds.
pub const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Where the choice of queries begins.
pub const QUERY_SEED: u64 = 0x7a9;
/// Entities seeded for `shapes`.
pub const SEEDED_ENTITIES: usize = 100;
/// Entities asked for by the list.
pub const LIST_ENTITIES: usize = 20;
/// Clients of each shape.
pub const SHAPE_CLIENTS: usize = 50;
/// Clients of the updates that compare the stores.
pub const UPDATE_CLIENTS: usize = 256;
/// Entities of one batch of `memory`.
pub const BATCH_ENTITIES: usize = 1000;

/// Server CPU of a list of 20, in multiples of the floor: bound and goal.
pub const LIST_CPU: (f64, f64) = (4.0, 2.5);
/// Server CPU of a retrieve, in multiples of the floor: bound and goal.
pub const RETRIEVE_CPU: (f64, f64) = (2.5, 1.6);
/// Server CPU of a one-attribute PATCH, in multiples of the floor: bound and goal.
pub const PATCH_CPU: (f64, f64) = (5.0, 3.0);
/// Server CPU of a create, in multiples of the floor: bound and goal.
pub const CREATE_CPU: (f64, f64) = (8.0, 4.0);
/// Updates of the file store, as a share of the memory store's rate.
pub const FILE_RATE_MIN: f64 = 0.5;
/// Resident bytes of one five-attribute entity (1.5 KB).
pub const ENTITY_BYTES_MAX: f64 = 1500.0;
/// From the start of the process to the first 200, in milliseconds.
pub const FIRST_ANSWER_MS_MAX: f64 = 50.0;
/// Resident when idle, in MiB.
pub const IDLE_MIB_MAX: f64 = 15.0;
/// Server CPU of a lookup by id, in multiples of the floor.
pub const LOOKUP_CPU: f64 = 6.0;
/// Server CPU of a cone of half a degree, in multiples of the floor.
pub const CONE_CPU: f64 = 10.0;
/// Server CPU of the same cone, in multiples of the CPU of PostgreSQL's backend.
pub const CONE_CPU_OF_POSTGRES: f64 = 1.0;
/// CSV and TABLEDATA for a second of CPU, in millions of bytes.
pub const TEXT_MB_PER_CORE_S: f64 = 250.0;
/// BINARY2 for a second of CPU, in millions of bytes.
pub const BINARY_MB_PER_CORE_S: f64 = 600.0;
/// From the POST of a tiny job until it is seen COMPLETED, in milliseconds.
pub const JOB_MS_MAX: f64 = 30.0;
/// What a server may grow by for one streamed result, in MiB.
pub const STREAM_MIB_MAX: f64 = 8.0;
/// Loading the catalogue from CSV, in seconds.
pub const LOAD_S_MAX: f64 = 3.0;
/// Messages a second that wait for the disk, in multiples of the floor that does.
pub const COMMIT_OF_FLOOR_MIN: f64 = 0.5;
/// Messages a second that wait for the disk, in multiples of NATS with a flush for each.
pub const COMMIT_OF_NATS_MIN: f64 = 5.0;
/// Server CPU of a megabyte published to memory over TLS, in multiples of the floor.
pub const MEMORY_TLS_CPU: f64 = 1.5;
/// Server CPU of a megabyte published to memory over QUIC, in multiples of the floor.
pub const MEMORY_QUIC_CPU: f64 = 1.3;
/// Server CPU of a megabyte delivered to a hundred, in multiples of one delivered to one.
pub const FANOUT_CPU: f64 = 1.3;
/// What a server may grow by for ten thousand idle subscriptions, in millions of bytes.
pub const IDLE_SUBSCRIPTIONS_MB_MAX: f64 = 100.0;
/// Reading a log at start, in thousands of millions of bytes a second.
pub const RECOVERY_GB_PER_S_MIN: f64 = 1.0;
/// What a server may hold under everything at once, in MiB.
pub const PROCESS_MIB_MAX: f64 = 256.0;
/// The share of the closed-loop rate at which latency is measured.
pub const LATENCY_SHARE: f64 = 0.3;
/// Records a second at most when latency is measured: the generator wakes for each, and must not be what is late.
pub const LATENCY_RATE_MAX: f64 = 10_000.0;

const _: () = assert!(LIST_ENTITIES <= SEEDED_ENTITIES);
const _: () = assert!(SHAPE_CLIENTS <= CLIENTS && UPDATE_CLIENTS <= CLIENTS);
const _: () = assert!(PACED_SHARE < GENERATOR_BUSY_MAX);
