use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, Float64Array, Int64Array, ListArray, NullArray, StringArray};
use proptest::prelude::*;
use trifid_archive_adql::functions::Aggregator;
use trifid_archive_adql::tree::{Aggregate, ColumnRef, Expr, Kind};
use trifid_archive_adql::types::{Element, Type};

use super::{Emit, accumulator, state_types};
use crate::error::QueryError;

fn aggregate(aggregator: Aggregator, arguments: &[Type], distinct: bool, ty: Type) -> Aggregate {
    let column = |(place, ty): (usize, &Type)| Expr {
        kind: Kind::Column(ColumnRef { depth: 0, relation: 0, column: place as u32 }),
        ty: *ty,
    };
    Aggregate { aggregator, arguments: arguments.iter().enumerate().map(column).collect(), distinct, ty }
}

fn longs(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn doubles(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// One pass over all rows.
fn single(
    aggregate: &Aggregate,
    groups: &[usize],
    total: usize,
    arguments: &[ArrayRef],
) -> Result<ArrayRef, QueryError> {
    let mut state = accumulator(aggregate)?;
    state.update(groups, total, arguments)?;
    state.finish(Emit::All)
}

/// The rows cut at `cut`, worked on apart and merged, groups taken out one by one.
fn parted(
    aggregate: &Aggregate,
    groups: &[usize],
    total: usize,
    arguments: &[ArrayRef],
    cut: usize,
) -> Result<ArrayRef, QueryError> {
    let rows = groups.len();
    let slice = |from: usize, to: usize| -> Vec<ArrayRef> {
        arguments.iter().map(|array| array.slice(from, to - from)).collect()
    };
    let mut merged = accumulator(aggregate)?;
    for (from, to) in [(0, cut), (cut, rows)] {
        let mut part = accumulator(aggregate)?;
        part.update(&groups[from..to], total, &slice(from, to))?;
        for group in 0..total {
            let state = part.state(Emit::First(1))?;
            let types: Vec<_> = state.iter().map(|column| column.data_type().clone()).collect();
            assert_eq!(types, state_types(aggregate));
            merged.merge(&[group], total, &state)?;
        }
    }
    let pieces: Vec<ArrayRef> =
        (0..total).map(|_| merged.finish(Emit::First(1))).collect::<Result<_, _>>()?;
    let pieces: Vec<_> = pieces.iter().map(AsRef::as_ref).collect();
    Ok(arrow_select::concat::concat(&pieces).unwrap())
}

fn check(aggregate: &Aggregate, groups: &[usize], total: usize, arguments: &[ArrayRef], expected: &ArrayRef) {
    assert_eq!(&single(aggregate, groups, total, arguments).unwrap(), expected, "{aggregate:?}");
    for cut in 0..=groups.len() {
        let found = parted(aggregate, groups, total, arguments, cut).unwrap();
        assert_eq!(&found, expected, "{aggregate:?} cut at {cut}");
    }
}

/// Two groups with rows, and a third without.
const GROUPS: [usize; 6] = [0, 1, 0, 0, 1, 0];

#[test]
fn whole_numbers() {
    let values = longs(&[Some(3), Some(-5), None, Some(3), Some(7), Some(8)]);
    let check = |aggregator, distinct, expected: &[Option<i64>]| {
        let aggregate = aggregate(aggregator, &[Type::Long], distinct, Type::Long);
        check(&aggregate, &GROUPS, 3, std::slice::from_ref(&values), &longs(expected));
    };
    check(Aggregator::Count, false, &[Some(3), Some(2), Some(0)]);
    check(Aggregator::Count, true, &[Some(2), Some(2), Some(0)]);
    check(Aggregator::Sum, false, &[Some(14), Some(2), None]);
    check(Aggregator::Sum, true, &[Some(11), Some(2), None]);
    check(Aggregator::Min, false, &[Some(3), Some(-5), None]);
    check(Aggregator::Max, true, &[Some(8), Some(7), None]);
    let all = aggregate(Aggregator::Count, &[], false, Type::Long);
    super::tests::check(&all, &GROUPS, 3, &[], &longs(&[Some(4), Some(2), Some(0)]));
}

#[test]
fn a_sum_overflows_only_as_a_whole() {
    let aggregate = aggregate(Aggregator::Sum, &[Type::Long], false, Type::Long);
    let fits = longs(&[Some(i64::MAX), Some(i64::MAX), Some(-5), Some(-i64::MAX)]);
    check(&aggregate, &[0; 4], 1, &[fits], &longs(&[Some(i64::MAX - 5)]));
    let error = single(&aggregate, &[0; 2], 1, &[longs(&[Some(i64::MAX), Some(1)])]).unwrap_err();
    assert_eq!(error.to_string(), "integer overflow in SUM: 9223372036854775808");
}

#[test]
fn reals() {
    let values = doubles(&[Some(1.0), Some(2.5), None, Some(4.0), Some(2.5), Some(4.0)]);
    let check = |aggregator, distinct, expected: &[Option<f64>]| {
        let aggregate = aggregate(aggregator, &[Type::Double], distinct, Type::Double);
        check(&aggregate, &GROUPS, 3, std::slice::from_ref(&values), &doubles(expected));
    };
    check(Aggregator::Sum, false, &[Some(9.0), Some(5.0), None]);
    check(Aggregator::Avg, false, &[Some(3.0), Some(2.5), None]);
    check(Aggregator::Avg, true, &[Some(2.5), Some(2.5), None]);
    check(Aggregator::Variance, false, &[Some(3.0), Some(0.0), None]);
    check(Aggregator::StdDev, false, &[Some(3f64.sqrt()), Some(0.0), None]);
    check(Aggregator::Variance, true, &[Some(4.5), None, None]);
    check(Aggregator::Median, false, &[Some(4.0), Some(2.5), None]);
    check(Aggregator::Median, true, &[Some(2.5), Some(2.5), None]);
}

#[test]
fn nan_is_above_all() {
    let values = doubles(&[Some(f64::NAN), Some(1.0), Some(f64::INFINITY)]);
    let of = |aggregator| {
        let aggregate = aggregate(aggregator, &[Type::Double], false, Type::Double);
        let found = single(&aggregate, &[0; 3], 1, std::slice::from_ref(&values)).unwrap();
        found.as_primitive::<Float64Type>().value(0)
    };
    assert_eq!(of(Aggregator::Min), 1.0);
    assert!(of(Aggregator::Max).is_nan());
    assert_eq!(of(Aggregator::Median), f64::INFINITY);
    assert!(of(Aggregator::Sum).is_nan());
    let distinct = aggregate(Aggregator::Count, &[Type::Double], true, Type::Long);
    let twice = doubles(&[Some(f64::NAN), Some(-f64::NAN), Some(0.0), Some(-0.0)]);
    check(&distinct, &[0; 4], 1, &[twice], &longs(&[Some(2)]));
}

#[test]
fn sums_keep_small_terms() {
    let aggregate = aggregate(Aggregator::Sum, &[Type::Double], false, Type::Double);
    let values = doubles(&[Some(1e100), Some(1.0), Some(-1e100), Some(1.0)]);
    check(&aggregate, &[0; 4], 1, &[values], &doubles(&[Some(2.0)]));
    let infinite = doubles(&[Some(f64::INFINITY), Some(1.0), Some(f64::MAX)]);
    check(&aggregate, &[0; 3], 1, &[infinite], &doubles(&[Some(f64::INFINITY)]));
}

#[test]
fn texts_and_truths() {
    let values = texts(&[Some("b"), Some("Z"), None, Some("a"), Some("é"), Some("b")]);
    let extreme = |aggregator| aggregate(aggregator, &[Type::Text], false, Type::Text);
    let arguments = std::slice::from_ref(&values);
    check(&extreme(Aggregator::Min), &GROUPS, 3, arguments, &texts(&[Some("a"), Some("Z"), None]));
    check(&extreme(Aggregator::Max), &GROUPS, 3, arguments, &texts(&[Some("b"), Some("é"), None]));
    let truths: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![Some(true), None, Some(false)]));
    let aggregate = aggregate(Aggregator::Min, &[Type::Boolean], false, Type::Boolean);
    let expected: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![Some(false)]));
    check(&aggregate, &[0; 3], 1, &[truths], &expected);
}

#[test]
fn joined_texts() {
    let pieces = texts(&[Some("b"), Some("Z"), None, Some("a"), Some("é"), Some("b")]);
    let separators = texts(&[Some(","), Some(","), Some(","), Some(";"), None, Some(";")]);
    let arguments = [pieces, separators];
    let plain = aggregate(Aggregator::StringAgg, &[Type::Text; 2], false, Type::Text);
    check(&plain, &GROUPS, 3, &arguments, &texts(&[Some("b;a;b"), Some("Zé"), None]));
    let constant = [arguments[0].clone(), texts(&[Some("-"); 6])];
    let distinct = aggregate(Aggregator::StringAgg, &[Type::Text; 2], true, Type::Text);
    check(&distinct, &GROUPS, 3, &constant, &texts(&[Some("b-a"), Some("Z-é"), None]));
}

fn histogram(value: &[Option<f64>], low: f64, high: f64, bins: i64) -> Result<ArrayRef, QueryError> {
    let types = [Type::Double, Type::Double, Type::Double, Type::Long];
    let aggregate = aggregate(Aggregator::Histogram, &types, false, Type::Array(Element::Long));
    let rows = value.len();
    let constant = |bound| doubles(&vec![Some(bound); rows]);
    let arguments = [doubles(value), constant(low), constant(high), longs(&vec![Some(bins); rows])];
    for cut in 0..rows {
        if let Ok(whole) = single(&aggregate, &vec![0; rows], 1, &arguments) {
            let merged = parted(&aggregate, &vec![0; rows], 1, &arguments, cut).unwrap();
            assert_eq!(&merged, &whole);
        }
    }
    single(&aggregate, &vec![0; rows], 1, &arguments)
}

#[test]
fn histograms() {
    let values = [None, Some(-1.0), Some(0.0), Some(0.4), Some(0.5), Some(0.999), Some(1.0), Some(f64::NAN)];
    let found = histogram(&values, 0.0, 1.0, 2).unwrap();
    let counts: &ListArray = found.as_list();
    assert_eq!(counts.value(0).as_primitive::<Int64Type>().values(), &[2, 2, 2, 2]);
    assert!(histogram(&[], 0.0, 1.0, 2).unwrap().is_null(0));
    let refused = |low, high, bins| histogram(&[Some(1.0)], low, high, bins).unwrap_err().to_string();
    assert_eq!(refused(1.0, 1.0, 2), "a histogram from 1 to 1 has no bins");
    assert_eq!(refused(0.0, 1.0, 0), "a histogram has 1 to 10000 bins; 0 were asked for");
    assert!(refused(0.0, 1.0, i64::MAX).contains("were asked for"));
}

#[test]
fn bare_nulls() {
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    let count = aggregate(Aggregator::Count, &[Type::Null], false, Type::Long);
    check(&count, &[0, 0], 1, std::slice::from_ref(&nulls), &longs(&[Some(0)]));
    let least = aggregate(Aggregator::Min, &[Type::Null], false, Type::Null);
    let found = single(&least, &[0, 0], 1, &[nulls]).unwrap();
    assert_eq!((found.len(), found.is_empty()), (1, false));
}

#[test]
fn a_wrong_column_is_our_fault() {
    let sum = aggregate(Aggregator::Sum, &[Type::Long], false, Type::Long);
    let error = single(&sum, &[0], 1, &[texts(&[Some("x")])]).unwrap_err();
    assert!(matches!(error, QueryError::Internal(_)));
    let unknown = aggregate(Aggregator::Sum, &[Type::Text], false, Type::Text);
    assert!(matches!(accumulator(&unknown).err(), Some(QueryError::Internal(_))));
}

fn near(a: &ArrayRef, b: &ArrayRef) -> bool {
    let (a, b) = (a.as_primitive::<Float64Type>(), b.as_primitive::<Float64Type>());
    a.iter().zip(b).all(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0),
        (a, b) => a == b,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn merging_is_one_pass(
        rows in prop::collection::vec((0usize..4, prop::option::of(-1e6f64..1e6)), 0..60),
        at in 0.0f64..=1.0,
        distinct: bool,
    ) {
        let groups: Vec<usize> = rows.iter().map(|(group, _)| *group).collect();
        // Few different values, so that DISTINCT has something to do.
        let values: Vec<Option<f64>> = rows.iter().map(|(_, x)| x.map(|x| (x / 1e5).round())).collect();
        let arguments = [doubles(&values)];
        let cut = (at * groups.len() as f64) as usize;
        for aggregator in [
            Aggregator::Sum,
            Aggregator::Avg,
            Aggregator::Min,
            Aggregator::Max,
            Aggregator::StdDev,
            Aggregator::Variance,
            Aggregator::Median,
        ] {
            let aggregate = aggregate(aggregator, &[Type::Double], distinct, Type::Double);
            let whole = single(&aggregate, &groups, 4, &arguments).unwrap();
            let merged = parted(&aggregate, &groups, 4, &arguments, cut).unwrap();
            prop_assert!(near(&whole, &merged), "{:?}: {:?} and {:?}", aggregator, whole, merged);
        }
    }

    #[test]
    fn variance_is_what_two_passes_give(values in prop::collection::vec(-1e3f64..1e3, 2..50)) {
        let aggregate = aggregate(Aggregator::Variance, &[Type::Double], false, Type::Double);
        let column: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        let found = single(&aggregate, &vec![0; values.len()], 1, &[doubles(&column)]).unwrap();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        prop_assert!(near(&found, &doubles(&[Some(squares / (values.len() - 1) as f64)])));
    }
}
