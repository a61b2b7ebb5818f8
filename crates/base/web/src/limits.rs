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
