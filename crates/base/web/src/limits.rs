//! Every bound of the shell that is not an option, with its unit. The options' defaults stand in `options.rs`.

use std::time::Duration;

/// How often a core looks for deadlines that have passed: the precision of every time limit of the shell.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Bytes of a client's `x-request-id` that are kept.
pub(crate) const REQUEST_ID_BYTES_MAX: usize = 128;

/// Connections that wait in one listener's accept queue.
pub(crate) const ACCEPT_BACKLOG: i32 = 1024;

/// Bytes of a token file.
pub(crate) const TOKEN_FILE_BYTES_MAX: u64 = 1 << 20;

/// Tokens in a token file. Each one costs every request a comparison.
pub(crate) const TOKENS_MAX: usize = 1024;

/// Bytes of a bearer token.
pub(crate) const TOKEN_BYTES_MAX: usize = 4096;

/// Bytes of a tenant's name in a token file, and of a name that admission tracks.
pub(crate) const TENANT_BYTES_MAX: usize = 256;

/// Tenants whose requests in flight one core tells apart.
pub(crate) const TENANTS_TRACKED_MAX: usize = 1024;

/// Bytes that a connection reads at a time, at most: what one connection holds before its requests are counted.
pub(crate) const READ_BUFFER_BYTES_MAX: usize = 64 << 10;

/// Bytes of the first read of a connection, which tells HTTP/2 from HTTP/1.1.
pub(crate) const SNIFF_BYTES: usize = 1024;

/// Bytes of an answer that is copied into one piece rather than written as a vector of pieces.
pub(crate) const JOINED_WRITE_BYTES_MAX: usize = 16 << 10;

/// How long a connection that was told to close may still be read from, so that its client sees the answer.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// Bytes that are read and thrown away from a connection that was told to close.
pub(crate) const LINGER_BYTES_MAX: u64 = 64 << 20;

/// Connections over the limit that one core answers at a time; more are closed without an answer.
pub(crate) const TURNED_AWAY_MAX: usize = 64;

/// How long a core waits after the system refused it a connection for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes set aside for the first of many frames of a body whose length is not known.
pub(crate) const BODY_BYTES_FIRST: usize = 64 << 10;

/// What `Retry-After` says, in seconds.
pub(crate) const RETRY_AFTER_S: u32 = 1;

/// One in so many requests has its duration measured.
pub(crate) const DURATION_SAMPLE: u64 = 16;

/// Weights of tenants, at most.
pub(crate) const WEIGHT_MAX: u32 = 1000;

/// How often a free port is looked for when the port is not given.
pub(crate) const BIND_ATTEMPTS: usize = 16;

/// Addresses of one host that are tried, one after the other.
pub(crate) const ADDRESSES_TRIED_MAX: usize = 4;

/// Bytes of the head of an answer from elsewhere.
pub(crate) const ANSWER_HEAD_BYTES_MAX: usize = 64 << 10;
