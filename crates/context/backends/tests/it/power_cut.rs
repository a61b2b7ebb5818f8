//! Invariant 1 through the file store: an acknowledged change survives a power cut, snapshots under way
//! included, and the tests notice when one flush is taken out.

use std::ops::Range;

use trifid_base_sim::{Fault, OpKind, SimDisk};

use crate::drill;

/// Every operation of every seed is a cut; what each loses, if anything.
fn cuts(
    seeds: Range<u64>,
    prepare: &dyn Fn(&SimDisk),
) -> impl Iterator<Item = (u64, u64, Result<(), String>)> {
    seeds
        .flat_map(|seed| (0..drill::length(seed)).map(move |cut| (seed, cut)))
        .map(move |(seed, cut)| (seed, cut, drill::run(seed, cut, prepare)))
}

#[test]
fn no_acknowledged_change_is_lost_at_any_cut() {
    let mut count = 0;
    for (seed, cut, outcome) in cuts(0..30, &|_| {}).take(1_100) {
        outcome.unwrap_or_else(|loss| panic!("seed {seed}, cut {cut}: {loss}"));
        count += 1;
    }
    assert!(count >= 1_000, "only {count} cuts");
}

/// Runs the same test with flushes that answer and do nothing, and wants to see it fail.
fn fails_without(flush: impl Fn(OpKind, &str) -> bool + Copy + Send + 'static) {
    let sabotage = move |disk: &SimDisk| {
        disk.on_op(move |op| flush(op.kind, op.path.to_str().unwrap()).then_some(Fault::Lie));
    };
    assert!(cuts(0..16, &sabotage).any(|(_, _, outcome)| outcome.is_err()), "nobody noticed");
}

#[test]
fn fails_without_the_flush_of_the_journal() {
    fails_without(|kind, path| kind == OpKind::SyncData && path.starts_with("log/"));
}

#[test]
fn fails_without_the_flush_of_the_snapshot() {
    fails_without(|kind, path| kind == OpKind::SyncAll && path.starts_with("context/"));
}

#[test]
fn fails_without_the_flush_of_the_folder_of_snapshots() {
    fails_without(|kind, path| kind == OpKind::SyncDir && path == "context");
}
