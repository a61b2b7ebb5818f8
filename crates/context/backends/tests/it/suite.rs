//! The behavioural suite of the store port: the file store answers as the store in memory does.

use std::sync::Arc;

use trifid_base_sim::SimDisk;
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::testing::{Step, consistent, random_steps, scripted_steps, transcript};
use trifid_context_model::symbol::Symbols;

use crate::support::{block_on, content, open, run};

fn check(steps: &[Step]) {
    let memory = Arc::new(MemoryStore::new(Arc::new(Symbols::new())));
    let expected = block_on(transcript(memory.clone(), steps));
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    assert_eq!(run(&opened.store, steps), expected);
    let before = content(&*opened.store.entities());
    assert_eq!(before, content(&*memory));
    drop(opened);
    let opened = open(Arc::new(disk)).unwrap();
    assert_eq!(content(&*opened.store.entities()), before);
    block_on(consistent(opened.store.entities()));
}

#[test]
fn the_scripted_corpus_is_answered_alike_and_survives() {
    check(&scripted_steps());
}

#[test]
fn random_operations_are_answered_alike_and_survive() {
    for seed in 0..10 {
        check(&random_steps(seed, 300));
    }
}

#[test]
fn a_store_that_was_opened_again_goes_on_as_if_it_had_not() {
    let steps = random_steps(77, 600);
    let memory = Arc::new(MemoryStore::new(Arc::new(Symbols::new())));
    let bench = trifid_context_engine::testing::Bench::new(memory.clone());
    let disk = SimDisk::new();
    for chunk in steps.chunks(60) {
        let opened = open(Arc::new(disk.clone())).unwrap();
        // The clock of each bench begins anew; so does that of the reference.
        let expected = block_on(transcript(memory.clone(), chunk));
        assert_eq!(run(&opened.store, chunk), expected);
        opened.store.snapshot().unwrap().unwrap();
    }
    drop(bench);
}
