//! Queries written down: `testdata/corpus.adql`, one in a paragraph.

use super::tables::all;
use super::{backend, compare, resolved};

const CORPUS: &str = include_str!("../../../testdata/corpus.adql");

/// The queries of the corpus.
pub(crate) fn queries() -> impl Iterator<Item = String> {
    let plain = |paragraph: &str| {
        let lines = paragraph.lines().filter(|line| !line.trim_start().starts_with("--"));
        lines.collect::<Vec<_>>().join("\n")
    };
    CORPUS.split("\n\n").map(plain).filter(|query| !query.trim().is_empty())
}

#[test]
fn answers_are_those_of_the_reference() {
    let tables = all(3, 90);
    let mut wrong = Vec::new();
    for threads in [1, 3] {
        let backend = backend(threads);
        for text in queries() {
            let query = resolved(&text, &tables);
            if let Err(message) = compare(&backend, &query, &tables) {
                wrong.push(format!("{text}\n{query}\n{message}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} queries differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
