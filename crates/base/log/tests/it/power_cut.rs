//! Invariant 1: an acknowledged write survives a power cut, and the tests notice when one flush is taken out.

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
fn no_acknowledged_write_is_lost_at_any_cut() {
    let mut count = 0;
    for (seed, cut, outcome) in cuts(0..30, &|_| {}).take(1_200) {
        outcome.unwrap_or_else(|loss| panic!("seed {seed}, cut {cut}: {loss}"));
        count += 1;
    }
    assert!(count >= 1_000, "only {count} cuts");
}

/// Runs the same test with flushes that answer and do nothing, and wants to see it fail.
fn fails_without(flush: impl Fn(OpKind, &str, Option<OpKind>) -> bool + Copy + Send + 'static) {
    let sabotage = move |disk: &SimDisk| {
        let mut before = None;
        disk.on_op(move |op| {
            let lies = flush(op.kind, op.path.to_str().unwrap(), before);
            before = Some(op.kind);
            lies.then_some(Fault::Lie)
        });
    };
    assert!(cuts(0..30, &sabotage).any(|(_, _, outcome)| outcome.is_err()), "nobody noticed");
}

#[test]
fn fails_without_the_flush_of_the_batch() {
    fails_without(|kind, _, _| kind == OpKind::SyncData);
}

#[test]
fn fails_without_the_flush_of_a_new_segment() {
    fails_without(|kind, _, before| kind == OpKind::SyncAll && before == Some(OpKind::Write));
}

#[test]
fn fails_without_the_flush_of_the_cut_tail() {
    fails_without(|kind, _, before| kind == OpKind::SyncAll && before == Some(OpKind::SetLen));
}

#[test]
fn fails_without_the_flush_of_the_data_directory() {
    fails_without(|kind, path, _| kind == OpKind::SyncDir && path.is_empty());
}

#[test]
fn fails_without_the_flush_of_the_folder_of_logs() {
    fails_without(|kind, path, _| kind == OpKind::SyncDir && path == "log");
}

#[test]
fn fails_without_the_flush_of_the_folder_of_the_log() {
    fails_without(|kind, path, _| kind == OpKind::SyncDir && path.starts_with("log/"));
}

#[test]
fn fails_without_the_flush_after_each_removal() {
    fails_without(|kind, _, before| kind == OpKind::SyncDir && before == Some(OpKind::Remove));
}
