//! Drivers behind the ports of the context engine, one feature each.
//!
//! | feature | ports | driver |
//! |---|---|---|
//! | `file` | `Journal`, `HostedContexts` | a journal on `base/log` and snapshots under the engine in memory |

#[cfg(feature = "file")]
pub mod file;
