//! The fuzz targets' entry points on the stable toolchain: their corpus, and what proptest thinks of.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::Path;

use proptest::prelude::*;
use trifid_context_model::fuzz;

/// Every file of one target's corpus.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files: Vec<_> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(!files.is_empty(), "{target} has a corpus");
    files
}

fn replay_text(target: &str, entry: fn(&str)) {
    for bytes in corpus(target) {
        if let Ok(text) = std::str::from_utf8(&bytes) {
            entry(text);
        }
    }
}

#[test]
fn the_corpus_of_every_target_is_answered() {
    corpus("entity").iter().for_each(|bytes| fuzz::entity(bytes));
    corpus("context_document").iter().for_each(|bytes| fuzz::context_document(bytes));
    replay_text("q", fuzz::query);
    replay_text("geo", fuzz::geo_query);
    replay_text("selection", fuzz::selection);
}

/// A corpus file with some bytes changed, dropped or doubled: close enough to valid to get deep.
fn mutated(target: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 0..6);
    (prop::sample::select(corpus(target)), edits).prop_map(|(mut bytes, edits)| {
        for (at, byte, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[at]),
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn bodies_close_to_entities(bytes in mutated("entity")) {
        fuzz::entity(&bytes);
    }

    #[test]
    fn documents_close_to_contexts(bytes in mutated("context_document")) {
        fuzz::context_document(&bytes);
    }

    #[test]
    fn texts_close_to_queries(bytes in mutated("q")) {
        fuzz::query(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn texts_close_to_geo_queries(bytes in mutated("geo")) {
        fuzz::geo_query(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn texts_close_to_selections(bytes in mutated("selection")) {
        fuzz::selection(&String::from_utf8_lossy(&bytes));
    }
}
