//! Every bound of the listener that is not an option, with its unit. The options' defaults stand in `options.rs`.

use std::time::Duration;

/// Bytes of a request before the client is known: room for `ApiVersions` and for a token, and for no more.
pub(crate) const STRANGER_REQUEST_BYTES_MAX: usize = 16 << 10;

/// Bytes of a request that carries no records.
pub(crate) const CONTROL_REQUEST_BYTES_MAX: usize = 1 << 20;

/// Elements of all arrays of one request together. A request of the largest size could claim millions, each of
/// which becomes a structure of some hundred bytes.
pub(crate) const ELEMENTS_MAX: usize = 20_000;

/// Bytes of the buffer that small requests are read into.
pub(crate) const READ_BUFFER_BYTES: usize = 16 << 10;

/// Bytes of records that are copied behind the head of an answer rather than written as a piece of their own.
pub(crate) const JOINED_BYTES_MAX: usize = 512;

/// Pieces of one vectored write.
pub(crate) const WRITE_PIECES_MAX: usize = 64;

/// Answers waiting to be written, in bytes, above which a connection begins no further request.
pub(crate) const UNWRITTEN_BYTES_MAX: usize = 1 << 20;

/// What a fetch may always answer, however little memory for answers is left.
pub(crate) const FETCH_BYTES_MIN: usize = 64 << 10;

/// How long a fetch may wait for records, whatever the client asks.
pub(crate) const FETCH_WAIT_MAX: Duration = Duration::from_secs(60);

/// How often a worker looks for connections whose time is over: the precision of every time limit.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// How long a worker waits after the system refused it a connection for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Workers, at most.
pub(crate) const WORKERS_MAX: usize = 64;

/// Workers when the options leave it open, at most.
pub(crate) const WORKERS_DEFAULT_MAX: usize = 8;

/// Threads of one worker for what touches the disk.
pub(crate) const BLOCKING_THREADS_MAX: usize = 4;

/// Topics that one connection remembers.
pub(crate) const TOPICS_REMEMBERED_MAX: usize = 256;

/// Bytes of a SASL message.
pub(crate) const SASL_BYTES_MAX: usize = 8 << 10;

/// Topics that one answer lists.
pub(crate) const TOPICS_LISTED_MAX: usize = 10_000;

/// Groups that one answer lists.
pub(crate) const GROUPS_LISTED_MAX: usize = 20_000;

const _: () = assert!(STRANGER_REQUEST_BYTES_MAX <= CONTROL_REQUEST_BYTES_MAX);
const _: () = assert!(SASL_BYTES_MAX <= STRANGER_REQUEST_BYTES_MAX);
