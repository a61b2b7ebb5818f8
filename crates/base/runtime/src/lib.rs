//! What every part of Trifid stands on, and none of it speaks a protocol.
//!
//! ```text
//! config      layers -> resolved values with their origin      (read once, at start)
//! units       250ms, 64MiB as types
//! telemetry   structured logs on standard error
//! shutdown    one token; signals and failing tasks trigger it
//! supervise   long-lived tasks with a name and a noticed end
//! clock       where time comes from      \ seams: arguments everywhere,
//! entropy     where chance comes from    / so that tests own them
//! ```
//!
//! This crate does not know HTTP, doors, tenants or files other than the configuration; it holds no global
//! state but the logger, and it starts nothing by itself.

// The macro `section!` names this crate by its full name, also from inside it.
#[allow(unused_extern_crates)] // used by the expansion alone
extern crate self as trifid_base_runtime;

pub mod clock;
pub mod config;
pub mod entropy;
pub mod shutdown;
pub mod signals;
pub mod supervise;
pub mod telemetry;
pub mod units;

/// For the macro [`section!`].
#[doc(hidden)]
pub use serde;

pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use entropy::{Entropy, SeededEntropy, SystemEntropy};
pub use shutdown::Shutdown;
pub use supervise::Supervisor;
pub use units::{Size, Span};
