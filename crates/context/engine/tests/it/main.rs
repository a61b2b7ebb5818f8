//! The store in memory under the behavioural suite, and under readers and writers at once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod concurrency;
mod memory;
