//! The face over an archive in memory: whole requests in, whole answers out, clause by clause.

#![allow(clippy::unwrap_used)]

mod harness;

mod cone;
mod documents;
mod formats;
mod hostile;
mod jobs;
mod page;
mod server;
mod sync;
mod upload;
