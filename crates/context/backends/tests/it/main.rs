//! The file store through its public surface: on the simulated disk, and on the real one.

// The whole binary is tests; the lint's own exception sees `#[test]` functions only.
#![allow(clippy::unwrap_used)]

mod drill;
mod export;
mod faults;
mod golden;
mod power_cut;
mod reopening;
mod suite;
mod support;
