//! The real binary, in a folder of its own.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails here

#[cfg(all(feature = "context", feature = "rig"))]
mod bench;
mod config;
#[cfg(feature = "context")]
mod demo;
#[cfg(feature = "context")]
mod file_store;
mod harness;
mod serve;
mod token;
