use proptest::prelude::*;

use crate::language::Language;
use crate::parser::parse;

const CORPUS: &str = include_str!("../../testdata/corpus.adql");

/// The queries of the corpus with their names.
fn corpus() -> impl Iterator<Item = (&'static str, &'static str)> {
    CORPUS.split("-- ## ").skip(1).map(|entry| entry.split_once('\n').expect("a query follows its name"))
}

#[test]
fn every_query_of_the_corpus_is_understood() {
    let mut count = 0;
    for (name, text) in corpus() {
        for language in [Language::V2_0, Language::V2_1] {
            if let Err(error) = parse(text, language) {
                panic!("{name}: {}", error.report(text));
            }
        }
        super::query(text.as_bytes());
        count += 1;
    }
    assert!(count > 80, "the whole corpus was read");
}

/// The queries of the corpus with something wrong in place of one byte, at every place.
#[test]
fn queries_with_one_mistake_are_answered() {
    const WRONG: [&[u8]; 7] = [b"", b"'", b"(", b" , ", b"\xe2", b"\"", b")"];
    let mut wrongs = WRONG.iter().cycle();
    for (_, text) in corpus() {
        for at in 0..text.len() {
            let wrong = wrongs.next().expect("a cycle does not end");
            super::query(&[&text.as_bytes()[..at], wrong, &text.as_bytes()[at + 1..]].concat());
        }
    }
}

/// Pieces of queries, to be strewn together.
const PIECES: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "UNION",
    "INTERSECT ALL",
    "EXCEPT",
    "WITH a AS (",
    "TOP 5",
    "DISTINCT",
    "OFFSET 2",
    "AS",
    "JOIN",
    "LEFT JOIN",
    "NATURAL JOIN",
    "ON",
    "USING (",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "IN (",
    "LIKE",
    "ILIKE",
    "IS NULL",
    "IS NOT TRUE",
    "EXISTS (",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "CAST(",
    "AS CHAR(3))",
    "COUNT(*)",
    "f(",
    "TIMESTAMP '2000-01-01'",
    "(",
    "(",
    ")",
    ")",
    ",",
    ",",
    ".",
    "*",
    "+",
    "-",
    "/",
    "||",
    "=",
    "<",
    "!=",
    "a",
    "t",
    "t.a",
    "\"A b\"",
    "1",
    "2.5",
    ".5e3",
    "'x'",
    "''''",
    "0xF",
    ";",
    "-- c\n",
    "/* c */",
    "NULL",
    "DESC",
    "date",
    "size",
    "limit",
    "\u{a0}",
    "‘",
    "`",
    "2mass",
    "'",
    "\"",
];

/// A query with pieces taken out, put in or doubled.
fn strewn() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..40)
        .prop_map(|pieces| format!("SELECT {}", pieces.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn printed_trees_are_read_again(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        super::tree(&bytes);
    }

    #[test]
    fn printed_trees_are_queries_like_any_other(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        super::query(super::generate::query(&bytes).to_string().as_bytes());
    }

    #[test]
    fn strewn_pieces_are_answered(text in strewn()) {
        super::query(text.as_bytes());
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,80}") {
        super::query(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        super::query(&bytes);
    }

    #[test]
    fn queries_cut_off_anywhere_are_answered(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cut in any::<proptest::sample::Index>(),
    ) {
        let text = super::generate::query(&bytes).to_string();
        super::query(&text.as_bytes()[..cut.index(text.len())]);
    }
}
