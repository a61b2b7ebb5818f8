use arrow_array::cast::AsArray as _;
use proptest::prelude::*;
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Comparison, Expr, Kind, Operator};
use trifid_archive_adql::types::Type;

use super::*;
use crate::eval::{Pattern, filter};

/// Conditions over a Long column, a Double column, a Text column and a Boolean column.
fn condition() -> impl Strategy<Value = Expr> {
    let comparisons = prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ]);
    let number = (comparisons.clone(), -3i64..4, any::<bool>()).prop_map(|(comparison, bound, turned)| {
        let (left, right) = (column(0, Type::Long), whole(bound, Type::Long));
        if turned { compare(comparison, right, left) } else { compare(comparison, left, right) }
    });
    let risky = (comparisons.clone(), -3i64..4).prop_map(|(comparison, bound)| {
        let ratio = arithmetic(Operator::Divide, whole(6, Type::Long), column(0, Type::Long));
        compare(comparison, ratio, whole(bound, Type::Long))
    });
    let reals = vec![0.0, -0.0, 1.5, f64::NAN, f64::INFINITY];
    let double = (comparisons, prop::sample::select(reals))
        .prop_map(|(comparison, bound)| compare(comparison, column(1, Type::Double), real(bound)));
    let word = "[ab%_]{0,3}".prop_map(|pattern| {
        let (value, pattern) = (Box::new(column(2, Type::Text)), Box::new(text(&pattern)));
        boolean(Kind::Like { value, pattern, ignore_case: false })
    });
    let missing = (0u32..4).prop_map(|place| {
        let ty = [Type::Long, Type::Double, Type::Text, Type::Boolean][place as usize];
        boolean(Kind::IsNull(Box::new(column(place, ty))))
    });
    let list = prop::collection::vec(prop::option::of(-3i64..4), 1..12).prop_map(|list| {
        let item = |item: Option<i64>| item.map_or_else(|| null(Type::Long), |item| whole(item, Type::Long));
        boolean(Kind::InList(Box::new(column(0, Type::Long)), list.into_iter().map(item).collect()))
    });
    let constant = prop_oneof![Just(truth(true)), Just(truth(false)), Just(null(Type::Boolean))];
    let leaf = prop_oneof![
        4 => number, 1 => risky, 3 => double, 2 => word, 1 => missing, 2 => list, 1 => constant,
        1 => Just(column(3, Type::Boolean)),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        let case = (inner.clone(), inner.clone(), inner.clone()).prop_map(|(condition, value, otherwise)| {
            boolean(Kind::Case { branches: vec![(condition, value)], otherwise: Box::new(otherwise) })
        });
        let first = several.clone().prop_map(|all| call(Function::Coalesce, all, Type::Boolean));
        prop_oneof![
            3 => several.clone().prop_map(|all| boolean(Kind::And(all))),
            3 => several.prop_map(|all| boolean(Kind::Or(all))),
            2 => inner.prop_map(not),
            1 => case,
            1 => first,
        ]
    })
}

type Row = (Option<i64>, Option<f64>, Option<String>, Option<bool>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let reals = prop::sample::select(vec![0.0, -0.0, 1.5, 2.0, f64::NAN, f64::INFINITY]);
    let row = (
        prop::option::of(-3i64..4),
        prop::option::of(reals),
        prop::option::of("[ab]{0,3}"),
        prop::option::of(any::<bool>()),
    );
    prop::collection::vec(row, 1..80)
}

fn columns(rows: &[Row]) -> Vec<ArrayRef> {
    vec![
        longs(&rows.iter().map(|row| row.0).collect::<Vec<_>>()),
        doubles(&rows.iter().map(|row| row.1).collect::<Vec<_>>()),
        texts(&rows.iter().map(|row| row.2.as_deref()).collect::<Vec<_>>()),
        truths(&rows.iter().map(|row| row.3).collect::<Vec<_>>()),
    ]
}

/// NOT of a condition, pushed down by De Morgan's laws.
fn pushed(expr: &Expr) -> Expr {
    match &expr.kind {
        Kind::And(all) => boolean(Kind::Or(all.iter().map(pushed).collect())),
        Kind::Or(all) => boolean(Kind::And(all.iter().map(pushed).collect())),
        Kind::Not(one) => (**one).clone(),
        _ => not(expr.clone()),
    }
}

/// LIKE as it is defined: a character at a time, with all choices for each `%`.
fn slow_like(text: &[char], pattern: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|skip| slow_like(&text[skip..], rest)),
        Some((one, rest)) => {
            text.split_first().is_some_and(|(c, left)| (*one == '_' || one == c) && slow_like(left, rest))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_do_not_know_each_other(expr in condition(), rows in rows()) {
        let columns = columns(&rows);
        let whole = run(&expr, &columns);
        let single = (0..rows.len()).map(|row| {
            let row: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
            run(&expr, &row)
        });
        // A batch fails exactly if a row of it does.
        match (whole, single.collect::<Result<Vec<_>, _>>()) {
            (Ok(whole), Ok(single)) => {
                for (row, single) in single.iter().enumerate() {
                    prop_assert_eq!(&whole.slice(row, 1), single, "row {}", row);
                }
                let mask = filter(&expr, &Columns(columns), &Context::default()).unwrap();
                let truth = whole.as_boolean();
                for row in 0..rows.len() {
                    prop_assert_eq!(mask.value(row), truth.is_valid(row) && truth.value(row));
                }
                prop_assert_eq!(mask.null_count(), 0);
            }
            (Err(_), Err(_)) => {}
            (whole, single) => {
                // Two operands that fail in different rows, each excluded by the other, are an error together only.
                prop_assert!(whole.is_err() && single.is_ok(), "{:?} but {:?}", whole, single);
            }
        }
    }

    #[test]
    fn de_morgan(expr in condition(), rows in rows()) {
        let columns = columns(&rows);
        if let (Ok(one), Ok(other)) = (run(&not(expr.clone()), &columns), run(&pushed(&expr), &columns)) {
            prop_assert_eq!(&one, &other);
        }
    }

    #[test]
    fn operands_may_be_turned_around(operands in prop::collection::vec(condition(), 2..5), rows in rows()) {
        let columns = columns(&rows);
        let mut turned = operands.clone();
        turned.reverse();
        for kind in [Kind::And as fn(Vec<Expr>) -> Kind, Kind::Or] {
            let one = run(&boolean(kind(operands.clone())), &columns);
            let other = run(&boolean(kind(turned.clone())), &columns);
            match (one, other) {
                (Ok(one), Ok(other)) => prop_assert_eq!(&one, &other),
                (one, other) => prop_assert_eq!(one.is_err(), other.is_err()),
            }
        }
    }

    #[test]
    fn like_is_what_it_says(text in "[abé]{0,8}", pattern in "[abé%_]{0,6}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = slow_like(&chars(&text), &chars(&pattern));
        prop_assert_eq!(Pattern::new(&pattern, false).matches(&text), expected);
        let upper = Pattern::new(&pattern.to_uppercase(), true);
        prop_assert_eq!(upper.matches(&text), expected);
        if expected && let Some(prefix) = Pattern::new(&pattern, false).prefix() {
            prop_assert!(text.starts_with(&*prefix));
        }
    }
}
