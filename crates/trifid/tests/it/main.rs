//! The real binary, in a folder of its own.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails here

#[cfg(all(feature = "context", feature = "archive-datafusion"))]
mod archive;
#[cfg(feature = "context")]
mod bad_input;
#[cfg(all(feature = "context", feature = "rig"))]
mod bench;
mod config;
#[cfg(feature = "context")]
mod demo;
#[cfg(feature = "context")]
mod file_store;
mod harness;
#[cfg(feature = "context")]
mod hostile;
#[cfg(feature = "context")]
mod round_trip;
mod serve;
#[cfg(feature = "stream")]
mod stream;
#[cfg(feature = "context")]
mod tenants;
mod token;
#[cfg(feature = "context")]
mod wire;
