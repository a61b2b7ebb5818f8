use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::fingerprint::fingerprint;
use crate::language::Language;
use crate::lexer::Lexer;
use crate::parser::parse;
use crate::resolve::{Options, resolve};
use crate::testing::Tables;
use crate::token::Kind as Token;
use crate::tree::{Body, Expr, Kind, Query, Select, Value};
use crate::types::Type;

fn resolved(text: &str) -> Option<Resolved> {
    let query = parse(text, Language::V2_1).ok()?;
    resolve(&query, &Tables::demo(), &Options::default()).ok()
}

fn query(text: &str) -> Arc<Query> {
    resolved(text).unwrap_or_else(|| panic!("{text}")).query
}

fn select(query: &Query) -> &Select {
    match &query.body {
        Body::Select(select) => select,
        Body::Set { .. } => panic!("a select"),
    }
}

fn literals(text: &str) -> Vec<Value> {
    fingerprint(text, Language::V2_1).unwrap().literals().to_vec()
}

/// The columns that the query needs of each relation, by name.
fn used(text: &str) -> Vec<Vec<String>> {
    let query = query(text);
    let select = select(&query);
    let of = |(relation, columns): (usize, std::collections::BTreeSet<u32>)| {
        let fields = select.relations[relation].fields();
        columns.into_iter().map(|column| fields[column as usize].name.to_string()).collect()
    };
    used_columns(select).into_iter().enumerate().map(of).collect()
}

#[test]
fn used_columns_are_those_of_every_clause_and_of_subqueries() {
    assert_eq!(used("SELECT ra FROM hipparcos WHERE dec > 1 ORDER BY plx"), [["ra", "dec", "plx"]]);
    assert_eq!(
        used("SELECT sn, MAX(hpmag) FROM hipparcos GROUP BY sn HAVING MIN(b_v) > 1"),
        [["hpmag", "b_v", "sn"]]
    );
    assert_eq!(
        used("SELECT h.ra FROM hipparcos h LEFT JOIN neighbours n ON h.hip = n.hip"),
        [vec!["hip", "ra"], vec!["hip"]]
    );
    assert_eq!(
        used(
            "SELECT h.ra FROM hipparcos h WHERE EXISTS (SELECT 1 FROM neighbours n WHERE n.hip = h.hip AND \
             distance < (SELECT MAX(x.plx) FROM hipparcos x WHERE x.dec > h.dec AND x.ra > n.distance))"
        ),
        [["hip", "ra", "dec"]]
    );
    assert_eq!(used("SELECT COUNT(*) FROM hipparcos"), [[""; 0]]);
}

#[test]
fn correlation_is_seen_through_levels() {
    let inner = |text: &str| {
        let query = query(text);
        let filter = select(&query).filter.clone().unwrap();
        Arc::clone(subquery(&filter).unwrap())
    };
    let free = inner("SELECT ra FROM hipparcos WHERE EXISTS (SELECT 1 FROM neighbours WHERE distance < 1)");
    assert!(!is_correlated(&free) && !refers_to(&free, 1));
    let bound =
        inner("SELECT ra FROM hipparcos h WHERE EXISTS (SELECT 1 FROM neighbours n WHERE n.hip = h.hip)");
    assert!(is_correlated(&bound) && refers_to(&bound, 1) && !refers_to(&bound, 2));
    let deep = inner(
        "SELECT ra FROM hipparcos h WHERE EXISTS (SELECT 1 FROM neighbours n WHERE EXISTS \
         (SELECT 1 FROM hipparcos x WHERE x.hip = h.hip))",
    );
    assert!(is_correlated(&deep) && refers_to(&deep, 1));
    let middle = subquery(select(&deep).filter.as_ref().unwrap()).unwrap();
    assert!(is_correlated(middle) && !refers_to(middle, 1) && refers_to(middle, 2));
    assert!(!is_correlated(&query(
        "SELECT ra FROM hipparcos h WHERE EXISTS (SELECT 1 FROM neighbours n WHERE n.hip = h.hip)"
    )));
}

fn condition(text: &str) -> Expr {
    let query = query(&format!("SELECT ra FROM hipparcos WHERE {text}"));
    select(&query).filter.clone().unwrap()
}

#[test]
fn conditions_are_taken_apart_at_and() {
    let parts = condition("ra > 1 AND (dec > 2 AND plx > 3) AND (ra > 4 OR dec > 5)");
    assert_eq!(conjuncts(&parts).len(), 4);
    let owned: Vec<Expr> = conjuncts(&parts).into_iter().cloned().collect();
    assert_eq!(into_conjuncts(parts), owned);
    assert_eq!(conjuncts(&condition("ra > 1")).len(), 1);
}

#[test]
fn constants_have_no_rows_and_no_chance() {
    let side = |text: &str| match condition(&format!("ra > {text}")).kind {
        Kind::Compare(_, _, right) => *right,
        other => panic!("{other:?}"),
    };
    assert!(is_constant(&side("1 + SQRT(2) * PI()")) && !is_volatile(&side("1 + SQRT(2)")));
    for text in
        ["dec", "1 + ABS(dec)", "RAND()", "ivo_normal_random(1, 2)", "(SELECT MAX(plx) FROM hipparcos)"]
    {
        assert!(!is_constant(&side(text)), "{text}");
    }
    assert!(is_volatile(&side("1 + RAND()")) && !is_volatile(&side("dec")));
}

#[test]
fn expressions_are_the_same_wherever_they_stand() {
    let check = |one: &str, other: &str| {
        let mut pairs = Vec::new();
        same(&condition(one), &condition(other), &mut pairs).then_some(pairs)
    };
    assert_eq!(check("ra > 1", "ra > 1"), Some(vec![(0, 0)]));
    assert_eq!(check("ra > 1", "ra > 2"), None);
    assert_eq!(check("ra > 1", "ra < 1"), None);
    assert_eq!(check("ra > 1", "dec > 1"), None);
    assert_eq!(check("name LIKE 'a'", "name ILIKE 'a'"), None);
    assert_eq!(check("ABS(ra) IN (1, 2)", "ABS(ra) IN (1, 2)"), Some(vec![(0, 0), (1, 1)]));
    assert_eq!(check("ABS(ra) IN (1, 2)", "ABS(ra) IN (1, 2, 3)"), None);
    assert_eq!(check("ra > 1 AND dec > 2", "ra > 1 OR dec > 2"), None);
    assert_eq!(check("RAND() > 1", "RAND() > 1"), None);
    assert_eq!(check("ra > PI()", "ra > PI()"), Some(vec![]));
}

#[test]
fn a_value_fits_a_type_exactly_or_not_at_all() {
    let int = Value::Integer;
    for (value, ty, fits) in [
        (int(255), Type::UnsignedByte, true),
        (int(256), Type::UnsignedByte, false),
        (int(-1), Type::UnsignedByte, false),
        (int(32_767), Type::Short, true),
        (int(32_768), Type::Short, false),
        (int(1 << 31), Type::Int, false),
        (int(i64::MAX), Type::Long, true),
        (int(1 << 24), Type::Float, true),
        (int((1 << 24) + 1), Type::Float, false),
        (int(i64::MAX), Type::Double, true),
        (int(1), Type::Text, false),
        (Value::Double(0.5), Type::Float, true),
        (Value::Double(0.1), Type::Float, false),
        (Value::Double(0.1), Type::Double, true),
        (Value::Double(1.0), Type::Int, false),
        (Value::Text("a".into()), Type::Text, true),
        (Value::Text("a".into()), Type::Timestamp, false),
        (Value::Boolean(true), Type::Boolean, true),
        (Value::Null, Type::Point, true),
    ] {
        assert_eq!(fit(&value, ty).is_some(), fits, "{value:?} as {ty}");
    }
    assert_eq!(fit(&int(5), Type::Double), Some(Value::Double(5.0)));
}

#[test]
fn binding_costs_a_copy_only_where_something_differs() {
    let text = "SELECT ra FROM hipparcos WHERE DISTANCE(ra, dec, 10, 20) < 0.5 AND hip IN (SELECT hip FROM neighbours)";
    let tree = resolved(text).unwrap();
    assert!(Arc::ptr_eq(&tree.bind(&literals(text)).unwrap(), &tree.query));
    let other = text.replace("10, 20", "30, 40");
    let bound = tree.bind(&literals(&other)).unwrap();
    assert_eq!(bound, query(&other));
    let inner = |query: &Query| {
        let filter = select(query).filter.clone().unwrap();
        conjuncts(&filter).into_iter().find_map(subquery).map(Arc::clone).unwrap()
    };
    assert!(Arc::ptr_eq(&inner(&bound), &inner(&tree.query)));
}

#[test]
fn what_does_not_fit_is_not_bound() {
    let tree = resolved("SELECT ra FROM hipparcos WHERE hip = 5 AND name = 'a' ORDER BY 1").unwrap();
    let with = |hip: Value, name: Value, place: i64| tree.bind(&[hip, name, Value::Integer(place)]).is_some();
    let text = || Value::Text("b".into());
    assert!(with(Value::Integer(7), text(), 1));
    assert!(!with(Value::Integer(5_000_000_000), text(), 1));
    assert!(!with(Value::Double(7.0), text(), 1));
    assert!(!with(Value::Integer(7), Value::Integer(7), 1));
    assert!(!with(Value::Integer(7), text(), 2));
    assert!(tree.bind(&[]).is_none());
    assert!(tree.bind(&[Value::Integer(7)]).is_none());
}

// ---- a bound tree is the tree of the text that it was bound for

/// Queries that mean something in the catalogue of the tests.
fn queries() -> Vec<&'static str> {
    let files = [
        include_str!("../../testdata/resolve/ctes.txt"),
        include_str!("../../testdata/resolve/fields.txt"),
        include_str!("../../testdata/resolve/geometry.txt"),
        include_str!("../../testdata/resolve/groups.txt"),
        include_str!("../../testdata/resolve/guards.txt"),
        include_str!("../../testdata/resolve/joins.txt"),
        include_str!("../../testdata/resolve/numbers.txt"),
        include_str!("../../testdata/resolve/order.txt"),
        include_str!("../../testdata/resolve/predicates.txt"),
        include_str!("../../testdata/resolve/sets.txt"),
        include_str!("../../testdata/resolve/subqueries.txt"),
        include_str!("../../testdata/resolve/units.txt"),
    ];
    let queries = files.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("? "));
    queries.filter(|text| has_literals(text)).collect()
}

fn has_literals(text: &str) -> bool {
    fingerprint(text, Language::V2_1).is_ok_and(|fingerprint| !fingerprint.literals().is_empty())
}

/// The text with other literals of the same kinds; `None` keeps one.
fn relettered(text: &str, choices: &[Option<usize>]) -> String {
    const WHOLE: [&str; 11] =
        ["0", "1", "2", "3", "7", "200", "300", "70000", "100000000", "5000000000", "9223372036854775807"];
    const OTHER: [&str; 4] = ["0.5", "2.5", "0.1", "1e30"];
    const TEXT: [&str; 9] =
        ["'ICRS'", "'GALACTIC'", "''", "'deg'", "'arcmin'", "'m'", "'TRUE'", "'false'", "'1 2'"];
    let mut lexer = Lexer::new(text).unwrap();
    let (mut out, mut from, mut slot) = (String::new(), 0, 0);
    loop {
        let token = lexer.next().unwrap();
        if token.kind == Token::End {
            break;
        }
        if !token.kind.is_literal() {
            continue;
        }
        let pool: &[&str] = match lexer.value(token).unwrap() {
            Value::Integer(_) => &WHOLE,
            Value::Double(_) => &OTHER,
            _ => &TEXT,
        };
        out.push_str(&text[from..token.span.start as usize]);
        match choices[slot % choices.len()] {
            Some(choice) => out.push_str(pool[choice % pool.len()]),
            None => out.push_str(&text[token.span.range()]),
        }
        from = token.span.end as usize;
        slot += 1;
    }
    out + &text[from..]
}

/// The expressions that were taken for one.
fn pairs(tree: &Resolved) -> Vec<&Guard> {
    tree.guards.iter().filter(|guard| matches!(guard, Guard::Same(..))).collect()
}

/// Binds the tree of one text to the literals of the other. Says whether there was a tree and it could be bound.
fn check_reuse(one: &str, other: &str) -> bool {
    let Some(tree) = resolved(one) else { return false };
    let key = |text: &str| fingerprint(text, Language::V2_1).unwrap().key().to_owned();
    assert_eq!(key(one), key(other));
    let Some(bound) = tree.bind(&literals(other)) else { return false };
    let Some(own) = resolved(other) else { panic!("{one}\nserves\n{other}\nwhich means nothing") };
    assert_eq!(bound.fields, own.query.fields, "{one}\nserves\n{other}\nwrongly");
    // A tree of a text whose expressions were not yet equal computes them apart, which comes to the same.
    if pairs(&tree) == pairs(&own) && *bound != *own.query {
        panic!("{one}\nserves\n{other}\nwrongly:\n{bound:#}\n{:#}", own.query);
    }
    true
}

#[test]
fn every_query_serves_itself() {
    for text in queries() {
        if let Some(tree) = resolved(text) {
            let bound = tree.bind(&literals(text)).unwrap_or_else(|| panic!("{text}: {:?}", tree.guards));
            assert!(Arc::ptr_eq(&bound, &tree.query), "{text}");
        }
    }
}

#[test]
fn common_queries_serve_others() {
    for (one, other) in [
        (
            "SELECT TOP 5 ra FROM hipparcos WHERE 1=CONTAINS(POINT('ICRS', ra, dec), CIRCLE('ICRS', 1, 2, 3)) OFFSET 1",
            "SELECT TOP 9 ra FROM hipparcos WHERE 1=CONTAINS(POINT('ICRS', ra, dec), CIRCLE('ICRS', 7, 8, 9)) OFFSET 0",
        ),
        ("SELECT ra FROM hipparcos WHERE hip = 5", "SELECT ra FROM hipparcos WHERE hip = 71683"),
        (
            "SELECT hip FROM neighbours WHERE source_id IN (1, 2)",
            "SELECT hip FROM neighbours WHERE source_id IN (3, 5000000000)",
        ),
        ("SELECT ra FROM hipparcos WHERE name LIKE 'a%'", "SELECT ra FROM hipparcos WHERE name LIKE 'b%'"),
        (
            "SELECT time FROM types WHERE time > '2020-01-01'",
            "SELECT time FROM types WHERE time > '2021-01-01'",
        ),
        (
            "SELECT ROUND(plx, 1), COUNT(*) FROM hipparcos GROUP BY ROUND(plx, 1)",
            "SELECT ROUND(plx, 2), COUNT(*) FROM hipparcos GROUP BY ROUND(plx, 2)",
        ),
    ] {
        assert!(check_reuse(one, other), "{one}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_bound_tree_is_that_of_its_text(
        query in prop::sample::select(queries()),
        one in prop::collection::vec(prop::option::of(0usize..11), 1..8),
        other in prop::collection::vec(prop::option::of(0usize..11), 1..8),
    ) {
        check_reuse(&relettered(query, &one), &relettered(query, &other));
        check_reuse(query, &relettered(query, &other));
    }
}
