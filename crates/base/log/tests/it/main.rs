//! The log through its public surface: on the simulated disk, and on the real one.

// The whole binary is tests; the lint's own exception sees `#[test]` functions only.
#![allow(clippy::unwrap_used)]

mod appending;
mod batches;
mod beside;
mod damage;
mod drill;
mod faults;
mod golden;
mod keeping;
mod kill;
mod power_cut;
mod stream_damage;
mod streams;
mod support;
