//! The queries of `testdata/resolve` and what becomes of them: after `? query` a line with `=` and the tree, `:` and
//! the result columns, `~` and the guards, or `!` and the code, the message, its column and word, and the hint.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Error, Guard, Options, Resolved, resolve};
use crate::language::Language;
use crate::parser::parse;
use crate::report::Place;
use crate::testing::{Tables, field};
use crate::tree::Value;
use crate::types::{Field, Size, Type};

fn resolved_with(text: &str, options: &Options) -> Result<Resolved, Error> {
    let query = parse(text, Language::V2_1).unwrap_or_else(|error| panic!("{}", error.report(text)));
    resolve(&query, &Tables::demo(), options)
}

fn resolved(text: &str) -> Result<Resolved, Error> {
    resolved_with(text, &Options::default())
}

fn tree(text: &str) -> String {
    match resolved(text) {
        Ok(resolved) => resolved.query.to_string(),
        Err(error) => panic!("{}", error.report(text)),
    }
}

/// What a line of the files says of a query.
fn answer(text: &str, kind: char) -> String {
    match (resolved(text), kind) {
        (Ok(resolved), ':') => {
            let fields: Vec<String> = resolved.query.fields.iter().map(described).collect();
            fields.join("; ")
        }
        (Ok(resolved), '~') => format!("{:?}", resolved.guards),
        (Ok(resolved), _) => resolved.query.to_string(),
        (Err(error), _) => {
            let column = Place::of(text, error.span.start).column;
            let word = &text[error.span.range()];
            let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
            format!("{}: {error} at {column}: {word}{hint}", error.code())
        }
    }
}

fn described(field: &Field) -> String {
    let mut text = format!("{} {}", field.name, field.ty);
    if field.size != Size::One {
        write!(text, "[{}]", field.size).unwrap();
    }
    let more = [("unit", &field.unit), ("ucd", &field.ucd), ("utype", &field.utype), ("xtype", &field.xtype)];
    for (key, value) in more {
        if let Some(value) = value {
            write!(text, " {key}={value}").unwrap();
        }
    }
    text
}

fn check(file: &str) {
    let mut query = "";
    let mut wrong = String::new();
    let mut count = 0;
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, rest) = line.split_at(2);
        match kind.chars().next().unwrap() {
            '?' => query = rest,
            kind => {
                count += 1;
                let found = answer(query, kind);
                if found != rest {
                    writeln!(wrong, "? {query}\n  wanted {rest}\n  found  {found}").unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 5, "the file was read");
}

macro_rules! files {
    ($($name:ident)*) => {
        $(#[test] fn $name() {
            check(include_str!(concat!("../../testdata/resolve/", stringify!($name), ".txt")));
        })*
    };
}

files! {
    names joins subqueries sets ctes groups order numbers predicates geometry functions units fields guards
}

fn code(text: &str) -> &'static str {
    match resolved(text) {
        Ok(resolved) => panic!("{text}: {}", resolved.query),
        Err(error) => error.code(),
    }
}

#[test]
fn a_query_knows_its_tables_each_once() {
    let text = "SELECT a.hip FROM hipparcos a, hipparcos b WHERE a.hip IN (SELECT hip FROM neighbours)";
    let tables = resolved(text).unwrap().tables;
    let names: Vec<String> = tables.iter().map(|it| format!("{}.{}", it.schema, it.table)).collect();
    assert_eq!(names, ["demo.hipparcos", "demo.neighbours"]);
}

#[test]
fn a_star_shares_the_fields_of_its_table() {
    let resolved = resolved("SELECT * FROM hipparcos WHERE hip = 5").unwrap();
    assert!(Arc::ptr_eq(&resolved.query.fields, &resolved.tables[0].fields));
}

#[test]
fn a_cte_is_shared_by_its_uses() {
    let resolved = resolved("WITH a AS (SELECT hip FROM hipparcos) SELECT * FROM a x, a y").unwrap();
    let crate::tree::Body::Select(select) = &resolved.query.body else { panic!("a select") };
    let [crate::tree::Relation::Query(one), crate::tree::Relation::Query(other)] = &select.relations[..]
    else {
        panic!("two queries")
    };
    assert!(Arc::ptr_eq(one, other));
}

// ---- bounds

#[test]
fn joins_have_a_bound() {
    let text = |count: usize| {
        let tables: Vec<String> = (0..count).map(|index| format!("hipparcos AS t{index}")).collect();
        format!("SELECT t0.ra FROM {}", tables.join(", "))
    };
    assert!(resolved(&text(crate::limits::RELATIONS)).is_ok());
    assert_eq!(code(&text(crate::limits::RELATIONS + 1)), "too-many");
    assert_eq!(code(&text(1000)), "too-many");
    let options = Options { relations: 1, ..Options::default() };
    assert!(resolved_with(&text(1), &options).is_ok());
    assert!(resolved_with(&text(2), &options).is_err());
}

#[test]
fn ctes_do_not_explode() {
    let mut text = "WITH a0 AS (SELECT hip FROM hipparcos)".to_owned();
    for index in 1..60 {
        let before = index - 1;
        write!(text, ", a{index} AS (SELECT x.hip FROM a{before} x, a{before} y)").unwrap();
    }
    text.push_str(" SELECT COUNT(*) FROM a59");
    assert_eq!(code(&text), "too-many");
}

#[test]
fn chains_of_ctes_have_a_bound() {
    let text = |count: usize| {
        let mut text = "WITH a0 AS (SELECT hip FROM hipparcos)".to_owned();
        for index in 1..count {
            write!(text, ", a{index} AS (SELECT hip FROM a{})", index - 1).unwrap();
        }
        format!("{text} SELECT * FROM a{}", count - 1)
    };
    assert!(resolved(&text(crate::limits::QUERY_DEPTH - 1)).is_ok());
    assert_eq!(code(&text(crate::limits::QUERY_DEPTH)), "too-many");
    assert_eq!(code(&text(2000)), "too-many");
}

#[test]
fn items_have_a_bound() {
    let stars = vec!["*"; crate::limits::ITEMS / 13 + 1].join(", ");
    assert_eq!(code(&format!("SELECT {stars} FROM hipparcos")), "too-many");
    let items = vec!["ra"; 5000].join(", ");
    let resolved = resolved(&format!("SELECT {items} FROM hipparcos")).unwrap();
    assert_eq!(&*resolved.query.fields[4999].name, "ra_5000");
}

#[test]
fn what_is_written_once_is_not_computed_without_end() {
    let mut text = "hip".to_owned();
    for _ in 0..60 {
        text = format!("CASE {text} WHEN 1 THEN 2 WHEN 3 THEN 4 END");
    }
    assert_eq!(code(&format!("SELECT {text} FROM hipparcos")), "too-many");
    let mut text = "pt".to_owned();
    for _ in 0..60 {
        text = format!("CENTROID(CIRCLE({text}, 1))");
    }
    assert_eq!(code(&format!("SELECT {text} FROM types")), "too-many");
}

#[test]
fn long_conditions_are_fine() {
    let terms: Vec<String> = (0..10_000).map(|index| format!("hip = {index}")).collect();
    let text = format!("SELECT hip FROM hipparcos WHERE {}", terms.join(" OR "));
    assert!(resolved(&text).is_ok());
    let ids: Vec<String> = (0..50_000).map(|index| index.to_string()).collect();
    assert!(resolved(&format!("SELECT hip FROM hipparcos WHERE hip IN ({})", ids.join(","))).is_ok());
}

/// The highest trees that the parser makes fit a thread's stack, and so do the trees made of them.
#[test]
fn the_highest_trees_fit_the_stack() {
    let nested = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let highest = |make: &dyn Fn(usize) -> String| {
        let fits = |count: &usize| parse(&make(*count), Language::V2_1).is_ok();
        let count = (1..300).rev().find(fits).expect("one is low enough");
        let text = make(count);
        if let Ok(resolved) = resolved(&text) {
            assert_eq!(resolved.query, resolved.query.clone());
            assert!(!resolved.query.to_string().is_empty());
            let literals = vec![Value::Integer(77); 400];
            drop(resolved.bind(&literals));
        }
    };
    highest(&|count| format!("SELECT {} FROM hipparcos", nested("ABS(", "ra", ")", count)));
    highest(&|count| format!("SELECT {} FROM hipparcos", vec!["ra"; count].join(" - ")));
    highest(&|count| {
        format!("SELECT ra FROM hipparcos WHERE {}", nested("NOT (ra > 1 AND ", "ra > 2", ")", count))
    });
    highest(&|count| {
        format!("SELECT {} FROM hipparcos", nested("CASE WHEN ra > 5 THEN ", "1", " ELSE ra END", count))
    });
    highest(&|count| {
        nested("SELECT hip FROM hipparcos WHERE hip IN (", "SELECT hip FROM neighbours", ")", count)
    });
    highest(&|count| nested("SELECT hip FROM (", "SELECT hip FROM neighbours", ")", count));
    highest(&|count| vec!["SELECT hip FROM hipparcos"; count.min(250)].join(" UNION ALL "));
    highest(&|count| {
        let joins: String =
            (0..count.min(63)).map(|at| format!(" JOIN neighbours n{at} USING (hip)")).collect();
        format!("SELECT hip FROM hipparcos{joins}")
    });
}

// ---- metadata that tables of the files lack

#[test]
fn labels_of_units_are_read_leniently_and_unknown_ones_kept() {
    let tables = Tables::new().with(
        "s",
        "t",
        vec![
            field("v", Type::Double, "km s-1", "phys.veloc"),
            field("w", Type::Double, "furlong", ""),
            field("x", Type::Double, "not a unit!", ""),
            field("y", Type::Double, "  ", ""),
        ],
    );
    let unit = |expr: &str| {
        let text = format!("SELECT {expr} AS e FROM t");
        let query = parse(&text, Language::V2_1).unwrap();
        let resolved = resolve(&query, &tables, &Options::default());
        resolved.map(|it| it.query.fields[0].unit.as_deref().unwrap_or("").to_owned())
    };
    assert_eq!(unit("v").unwrap(), "km s-1");
    assert_eq!(unit("v * 2").unwrap(), "km s-1");
    assert_eq!(unit("v * v").unwrap(), "km**2/s**2");
    assert_eq!(unit("v / w").unwrap(), "km/(s.furlong)");
    assert_eq!(unit("v / x").unwrap(), "");
    assert_eq!(unit("x + x").unwrap(), "not a unit!");
    assert_eq!(unit("v / v").unwrap(), "");
    assert_eq!(unit("v * y").unwrap(), "km s-1");
    assert_eq!(unit("IN_UNIT(v, 'm/s')").unwrap(), "m/s");
    assert!(unit("IN_UNIT(x, 'm')").is_err());
}

#[test]
fn messages_are_bounded() {
    let long = "x".repeat(100_000);
    for text in [
        format!("SELECT {long} FROM hipparcos"),
        format!("SELECT \"{long}\" FROM hipparcos"),
        format!("SELECT {long}.ra FROM hipparcos"),
        format!("SELECT ra FROM {long}"),
        format!("SELECT {long}(5) FROM hipparcos"),
        format!("SELECT POINT('{long}', 1, 2) FROM hipparcos"),
        format!("SELECT IN_UNIT(ra, '{long}') FROM hipparcos"),
        format!("SELECT x FROM hipparcos AS {long}, neighbours AS {long}"),
        format!("SELECT a.hip FROM hipparcos AS {long}, neighbours AS b JOIN types ON {long}.ra = 1"),
        format!("SELECT hip FROM hipparcos AS {long}, neighbours AS {long}2"),
    ] {
        let error = resolved(&text).unwrap_err();
        assert!(error.report(&text).to_string().len() < 4096, "{}", error.code());
    }
}

#[test]
fn texts_of_unicode_columns_are_unicode() {
    let mut name = Field::new("name", Type::Text);
    name.unicode = true;
    let tables = Tables::new().with("s", "t", vec![name, Field::new("code", Type::Text)]);
    let query = parse(
        "SELECT LOWER(name), MIN(name), code || 'x', name || code FROM t GROUP BY name, code",
        Language::V2_1,
    );
    let resolved = resolve(&query.unwrap(), &tables, &Options::default()).unwrap();
    let unicode: Vec<bool> = resolved.query.fields.iter().map(|field| field.unicode).collect();
    assert_eq!(unicode, [true, true, false, true]);
}

#[test]
fn names_in_wide_tables_are_found_again() {
    let wide = |name: &str| (0..300).map(|at| Field::new(format!("{name}{at}"), Type::Double)).collect();
    let tables = Tables::new().with("s", "a", wide("a")).with("s", "b", wide("b"));
    let text = "SELECT A7, a7, b7 FROM a JOIN b ON a1 = b1 WHERE a7 > b7 AND EXISTS (SELECT a7 FROM a WHERE b7 < a7)";
    let query = parse(text, Language::V2_1).unwrap();
    let resolved = resolve(&query, &tables, &Options::default()).unwrap();
    assert_eq!(
        resolved.query.to_string(),
        "SELECT t0.a7 AS a7, t0.a7 AS a7_2, t1.b7 AS b7 FROM (s.a t0 JOIN s.b t1 ON (t0.a1 = t1.b1)) \
         WHERE ((t0.a7 > t1.b7) AND EXISTS (SELECT t0.a7 AS a7 FROM s.a t0 WHERE (^t1.b7 < t0.a7)))"
    );
}

#[test]
fn keys_aggregates_and_ctes_have_a_bound() {
    let list =
        |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let keys = |count| list(count, &|at| format!("ra + {at}"));
    assert!(resolved(&format!("SELECT ra FROM hipparcos ORDER BY {}", keys(1000))).is_ok());
    assert_eq!(code(&format!("SELECT ra FROM hipparcos ORDER BY {}", keys(1001))), "too-many");
    assert_eq!(code(&format!("SELECT 1 FROM hipparcos GROUP BY {}", keys(1001))), "too-many");
    let unions = "SELECT ra FROM hipparcos UNION SELECT ra FROM hipparcos";
    assert_eq!(code(&format!("{unions} ORDER BY {}", list(1001, &|_| "1".to_owned()))), "too-many");
    let sums = list(4097, &|at| format!("SUM(ra + {at})"));
    assert_eq!(code(&format!("SELECT {sums} FROM hipparcos")), "too-many");
    let ctes = list(257, &|at| format!("a{at} AS (SELECT 1 AS x)"));
    assert_eq!(code(&format!("WITH {ctes} SELECT * FROM a1")), "too-many");
}

#[test]
fn guards_hold_or_do_not() {
    let literals = [Value::Integer(5), Value::Text("a".into()), Value::Integer(5), Value::Integer(1 << 40)];
    for (guard, holds) in [
        (Guard::Equal(0, Value::Integer(5)), true),
        (Guard::Equal(0, Value::Integer(6)), false),
        (Guard::Equal(9, Value::Integer(5)), false),
        (Guard::Exceeds(3, Type::Int), true),
        (Guard::Exceeds(0, Type::Int), false),
        (Guard::Exceeds(9, Type::Int), false),
        (Guard::Same(0, 2), true),
        (Guard::Same(0, 3), false),
        (Guard::Same(8, 9), false),
    ] {
        assert_eq!(guard.holds(&literals), holds, "{guard:?}");
    }
}

#[test]
fn a_tree_can_be_read() {
    assert_eq!(
        tree(
            "SELECT TOP 5 ra FROM hipparcos WHERE 1=CONTAINS(POINT('ICRS', ra, dec), CIRCLE(56.75, 24, 0.5))"
        ),
        "SELECT t0.ra AS ra FROM demo.hipparcos t0 \
         WHERE Contains(Point(t0.ra, t0.dec), Circle(56.75, 24.0, 0.5)) TOP 5"
    );
    let resolved = resolved("SELECT ra + 5 FROM hipparcos WHERE name = 'x' OFFSET 3").unwrap();
    assert_eq!(
        format!("{:#}", resolved.query),
        "SELECT (t0.ra + 5.0@0) AS col1 FROM demo.hipparcos t0 WHERE (t0.name = 'x'@1) OFFSET 3@2"
    );
}

// ---- what astronomers paste

/// The tables of a file: schema, name, and columns with their types.
fn listed(file: &str) -> Tables {
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.fold(Tables::new(), |tables, line| {
        let mut words = line.split(' ');
        let (schema, name) = (words.next().unwrap(), words.next().unwrap());
        let column = |word: &str| {
            let mut parts = word.split(':');
            let (name, ty) = (parts.next().unwrap(), parts.next().unwrap_or("double"));
            let unit = parts.next().unwrap_or(if ty == "double" { "deg" } else { "" });
            field(name, listed_type(ty), unit, "")
        };
        tables.with(schema, name, words.map(column).collect())
    })
}

fn listed_type(name: &str) -> Type {
    match name {
        "boolean" => Type::Boolean,
        "short" => Type::Short,
        "int" => Type::Int,
        "long" => Type::Long,
        "float" => Type::Float,
        "double" => Type::Double,
        "text" => Type::Text,
        "timestamp" => Type::Timestamp,
        "region" => Type::Region,
        other => panic!("{other}"),
    }
}

/// Queries of the corpus that the resolver refuses, and why: they ask for what is not there.
const REFUSED: [(&str, &str); 5] = [
    ("set: precedence and parentheses", "unknown-column"),
    ("simbad: a position from a name", "unknown-function"),
    ("pasted: joins in parentheses", "unknown-table"),
    ("pasted: ranges with signs and NOT", "type-mismatch"),
    ("pasted: names of four parts", "unknown-table"),
];

#[test]
fn the_corpus_means_something() {
    let tables = listed(include_str!("../../testdata/resolve/corpus-tables.txt"));
    let corpus = include_str!("../../testdata/corpus.adql");
    let mut wrong = String::new();
    for part in corpus.split("-- ## ").skip(1) {
        let (name, text) = part.split_once('\n').unwrap();
        let query = parse(text, Language::V2_1).unwrap_or_else(|error| panic!("{}", error.report(text)));
        let expected = REFUSED.iter().find(|(refused, _)| *refused == name).map(|(_, code)| *code);
        match (resolve(&query, &tables, &Options::default()), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(code)) if error.code() == code => {}
            (Ok(resolved), Some(code)) => writeln!(wrong, "{name}: no {code}: {}", resolved.query).unwrap(),
            (Err(error), _) => writeln!(wrong, "{name}: {}: {}", error.code(), error.report(text)).unwrap(),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

// ---- queries that nobody wrote

/// Every query of the files, whatever it means.
fn all_queries() -> Vec<&'static str> {
    let files = [
        include_str!("../../testdata/resolve/ctes.txt"),
        include_str!("../../testdata/resolve/functions.txt"),
        include_str!("../../testdata/resolve/geometry.txt"),
        include_str!("../../testdata/resolve/groups.txt"),
        include_str!("../../testdata/resolve/joins.txt"),
        include_str!("../../testdata/resolve/names.txt"),
        include_str!("../../testdata/resolve/numbers.txt"),
        include_str!("../../testdata/resolve/order.txt"),
        include_str!("../../testdata/resolve/predicates.txt"),
        include_str!("../../testdata/resolve/sets.txt"),
        include_str!("../../testdata/resolve/subqueries.txt"),
        include_str!("../../testdata/resolve/units.txt"),
    ];
    files.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("? ")).collect()
}

/// The places where a query can be cut: at its words and signs.
fn seams(text: &str) -> Vec<usize> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    let bytes = text.as_bytes();
    let between = |at: &usize| !(is_word(bytes[*at - 1]) && is_word(bytes[*at]));
    (1..bytes.len()).filter(between).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn queries_with_parts_of_others_are_answered(
        one in prop::sample::select(all_queries()),
        other in prop::sample::select(all_queries()),
        cuts in [any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()],
        length in 1usize..8,
    ) {
        let (mine, theirs) = (seams(one), seams(other));
        let (from, to) = (*cuts[0].get(&mine), *cuts[1].get(&mine));
        let begin = cuts[2].index(theirs.len());
        let end = (begin + length).min(theirs.len() - 1);
        let part = &other[theirs[begin]..theirs[end].max(theirs[begin])];
        let text = format!("{} {part} {}", &one[..from.min(to)], &one[from.max(to)..]);
        crate::fuzz::meaning(text.as_bytes());
        let text = format!("{} {part} {}", &one[..from], &one[from..]);
        crate::fuzz::meaning(text.as_bytes());
    }
}
