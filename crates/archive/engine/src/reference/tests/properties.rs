use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use trifid_archive_adql::types::Type;

use super::{answer, longs, table, tables};
use crate::catalogue::Tables;

/// Two tables `a` and `b` of two small numbers, some NULL.
fn two_tables() -> impl Strategy<Value = (Vec<Row>, Vec<Row>)> {
    let number = || prop::option::weighted(0.8, 0i64..4);
    let rows = || prop::collection::vec((number(), number()), 0..9);
    (rows(), rows())
}

type Row = (Option<i64>, Option<i64>);

fn published(a: &[Row], b: &[Row]) -> Arc<Tables> {
    let columns = |rows: &[Row]| {
        let (x, y): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
        vec![("x", Type::Long, longs(&x)), ("y", Type::Long, longs(&y))]
    };
    tables(vec![table("a", columns(a)), table("b", columns(b))])
}

fn sorted(text: &str, tables: &Tables) -> Vec<String> {
    let mut rows = answer(text, tables).unwrap();
    rows.sort();
    rows
}

fn line(row: &Row) -> String {
    let cell = |cell: Option<i64>| cell.map_or_else(|| "-".to_owned(), |cell| cell.to_string());
    format!("{}|{}", cell(row.0), cell(row.1))
}

fn counts(rows: &[Row]) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(line(row)).or_default() += 1);
    counts
}

/// So many of each row.
fn repeated(counts: BTreeMap<String, i64>) -> Vec<String> {
    counts.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row, count.max(0) as usize)).collect()
}

/// A join as it is defined.
fn joined(a: &[Row], b: &[Row], kind: &str, on: impl Fn(&Row, &Row) -> bool) -> Vec<String> {
    let mut rows = Vec::new();
    let mut met = vec![false; b.len()];
    for left in a {
        let before = rows.len();
        for (place, right) in b.iter().enumerate().filter(|(_, right)| on(left, right)) {
            met[place] = true;
            rows.push(format!("{}|{}", line(left), line(right)));
        }
        if rows.len() == before && matches!(kind, "LEFT" | "FULL") {
            rows.push(format!("{}|-|-", line(left)));
        }
    }
    let lonely = b.iter().zip(met).filter(|(_, met)| !met).map(|(right, _)| format!("-|-|{}", line(right)));
    if matches!(kind, "RIGHT" | "FULL") {
        rows.extend(lonely);
    }
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn joins_are_what_they_say((a, b) in two_tables()) {
        let tables = published(&a, &b);
        let both = |a: Option<i64>, b: Option<i64>, f: fn(i64, i64) -> bool| a.zip(b).is_some_and(|(a, b)| f(a, b));
        for kind in ["INNER", "LEFT", "RIGHT", "FULL"] {
            let of = |on: &str| sorted(&format!("SELECT * FROM t.a {kind} JOIN t.b ON {on}"), &tables);
            let equal = joined(&a, &b, kind, |a, b| both(a.0, b.0, |a, b| a == b));
            prop_assert_eq!(of("a.x = b.x"), equal.clone());
            // Without an equality that a hash could use.
            prop_assert_eq!(of("NOT a.x <> b.x"), equal);
            let mixed = joined(&a, &b, kind, |a, b| both(a.0, b.0, |a, b| a == b) && both(a.1, b.1, |a, b| a < b));
            prop_assert_eq!(of("a.x = b.x AND a.y < b.y"), mixed);
            let less = joined(&a, &b, kind, |a, b| both(a.0, b.1, |a, b| a < b));
            prop_assert_eq!(of("a.x < b.y"), less);
        }
        let comma = sorted("SELECT * FROM t.a, t.b WHERE a.x = b.y AND a.y > 0", &tables);
        let expected = joined(&a, &b, "INNER", |a, b| both(a.0, b.1, |a, b| a == b) && a.1.is_some_and(|y| y > 0));
        prop_assert_eq!(comma, expected);
    }

    #[test]
    fn sets_are_what_they_say((a, b) in two_tables()) {
        let tables = published(&a, &b);
        let of = |operator: &str| sorted(&format!("SELECT x, y FROM t.a {operator} SELECT x, y FROM t.b"), &tables);
        let (left, right) = (counts(&a), counts(&b));
        let each = |f: &dyn Fn(i64, i64) -> i64| {
            let rows = left.keys().chain(right.keys());
            let at = |counts: &BTreeMap<String, i64>, row: &String| counts.get(row).copied().unwrap_or(0);
            repeated(rows.map(|row| (row.clone(), f(at(&left, row), at(&right, row)))).collect())
        };
        prop_assert_eq!(of("UNION ALL"), each(&|a, b| a + b));
        prop_assert_eq!(of("UNION"), each(&|_, _| 1));
        prop_assert_eq!(of("INTERSECT ALL"), each(&|a, b| a.min(b)));
        prop_assert_eq!(of("INTERSECT"), each(&|a, b| a.min(b).min(1)));
        prop_assert_eq!(of("EXCEPT ALL"), each(&|a, b| a - b));
        prop_assert_eq!(of("EXCEPT"), each(&|a, b| i64::from(a > 0 && b == 0)));
    }

    #[test]
    fn queries_in_conditions_are_joins((a, b) in two_tables()) {
        let tables = published(&a, &b);
        let of = |condition: &str| sorted(&format!("SELECT x, y FROM t.a WHERE {condition}"), &tables);
        let equal = |a: &Row, b: &Row| a.0.is_some() && a.0 == b.0;
        let lines = |f: &dyn Fn(&Row) -> bool| {
            let mut rows: Vec<String> = a.iter().filter(|row| f(row)).map(line).collect();
            rows.sort();
            rows
        };
        let within = lines(&|row| b.iter().any(|other| equal(row, other)));
        prop_assert_eq!(of("EXISTS (SELECT * FROM t.b WHERE b.x = a.x)"), within.clone());
        prop_assert_eq!(of("x IN (SELECT x FROM t.b)"), within.clone());
        prop_assert_eq!(of("x IN (SELECT b.x FROM t.b WHERE b.x = a.x)"), within.clone());
        prop_assert_eq!(of("0 < (SELECT COUNT(*) FROM t.b WHERE b.x = a.x)"), within);
        let without = lines(&|row| !b.iter().any(|other| equal(row, other)));
        prop_assert_eq!(of("NOT EXISTS (SELECT * FROM t.b WHERE b.x = a.x)"), without);
        let differs = |row: &Row, other: &Row| other.0.is_some() && other.0 != row.0;
        let surely = lines(&|row| {
            b.is_empty() || (row.0.is_some() && b.iter().all(|other| differs(row, other)))
        });
        prop_assert_eq!(of("x NOT IN (SELECT x FROM t.b)"), surely);
    }

    #[test]
    fn order_is_a_sort((a, _) in two_tables(), top in 0usize..12, offset in 0usize..6) {
        let tables = published(&a, &[]);
        let text = format!("SELECT TOP {top} x, y FROM t.a ORDER BY x DESC, y OFFSET {offset}");
        let found = answer(&text, &tables).unwrap();
        let mut rows = a.clone();
        // NULL is above all numbers.
        let key = |cell: Option<i64>| cell.unwrap_or(i64::MAX);
        rows.sort_by_key(|row| (std::cmp::Reverse(key(row.0)), key(row.1)));
        let expected: Vec<String> = rows.iter().skip(offset).take(top).map(line).collect();
        prop_assert_eq!(found, expected);
    }
}
