//! Queries that people run, over the demo's tables: the same rows from both engines, and as many as counted elsewhere.
//!
//! `corpus.txt` has a query a paragraph; the line before it says how many rows it gives and, after a slash, the sum of
//! the first column where that was computed too. The numbers were computed independently, with NumPy and astropy.

use super::rows;
use crate::harness::Trifid;

const CORPUS: &str = include_str!("corpus.txt");

struct Case<'a> {
    rows: usize,
    sum: Option<f64>,
    query: &'a str,
}

fn cases() -> Vec<Case<'static>> {
    let paragraphs = CORPUS.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    let case = |paragraph: &'static str| {
        let (head, query) = paragraph.split_once('\n').unwrap();
        let counted = head.strip_prefix("= ").unwrap_or_else(|| panic!("{paragraph}"));
        let (count, sum) =
            counted.split_once(" / ").map_or((counted, None), |(count, sum)| (count, Some(sum)));
        Case { rows: count.parse().unwrap(), sum: sum.map(|sum| sum.parse().unwrap()), query }
    };
    paragraphs.filter(|paragraph| !paragraph.starts_with('#')).map(case).collect()
}

#[test]
fn the_corpus_has_the_rows_that_were_counted() {
    let engine = |name: &str| {
        let setting = format!("archive.engine={name}");
        let mut serving = Trifid::new().serve(&["demo", "--port", "0", "--set", &setting]);
        serving.printed_until("Ctrl-C");
        serving
    };
    let (datafusion, reference) = (engine("datafusion"), engine("reference"));
    for case in cases() {
        let mut found = rows(&datafusion, case.query);
        assert_eq!(found.len(), case.rows, "{}", case.query);
        if let Some(sum) = case.sum {
            let total: f64 =
                found.iter().map(|row| row.split(',').next().unwrap().parse::<f64>().unwrap()).sum();
            assert!((total - sum).abs() <= 1e-9 * sum.abs().max(1.0), "{total} is not {sum}: {}", case.query);
        }
        let mut other = rows(&reference, case.query);
        if !case.query.contains("ORDER BY") {
            found.sort();
            other.sort();
        }
        assert_eq!(found, other, "the engines differ: {}", case.query);
    }
    datafusion.stop_cleanly();
    reference.stop_cleanly();
}
