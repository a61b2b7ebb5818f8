use std::sync::Arc;

use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::EntityStore;
use trifid_context_engine::testing::{consistent, random_steps, scripted_steps, transcript};
use trifid_context_model::symbol::Symbols;

fn store() -> Arc<dyn EntityStore> {
    Arc::new(MemoryStore::new(Arc::new(Symbols::new())))
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn the_scripted_corpus_is_answered_as_written_down() {
    let lines = block_on(transcript(store(), &scripted_steps()));
    let expected = include_str!("../../testdata/scripted.txt");
    if std::env::var_os("TRIFID_WRITE_TESTDATA").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/scripted.txt");
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    for (line, expected) in lines.iter().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.lines().count());
}

#[test]
fn indexes_and_counters_agree_with_the_entities_after_any_operations() {
    for seed in 0..20 {
        let store = store();
        let steps = random_steps(seed, 400);
        let first = block_on(transcript(store.clone(), &steps));
        block_on(consistent(store));
        let again = block_on(transcript(self::store(), &steps));
        assert_eq!(first, again, "seed {seed}: the same operations give the same answers");
    }
}
