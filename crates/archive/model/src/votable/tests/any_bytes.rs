//! The corpus of the fuzz target, and the same with something wrong at every place.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::votable::fuzz::document;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/votable");
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    files.sort();
    assert!(!files.is_empty());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn the_corpus_is_read() {
    corpus().iter().for_each(|bytes| document(bytes));
}

/// Bytes that mean something to the reader.
const MARKS: &[u8] = b"<>/=\"' &;![]x*0-9A\0\xFF\r\n?";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn mutations_of_the_corpus_are_read_or_refused(
        file in 0_usize..16,
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(MARKS), 0_u8..4), 1..4),
    ) {
        let corpus = corpus();
        let mut bytes = corpus[file % corpus.len()].clone();
        for (at, mark, kind) in edits {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = mark,
                1 => bytes.insert(at, mark),
                2 => drop(bytes.remove(at)),
                _ => bytes[at] ^= 1 << (mark & 7),
            }
        }
        document(&bytes);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        document(&bytes);
    }
}
