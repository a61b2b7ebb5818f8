use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int32Array, StringArray};
use proptest::prelude::*;

use super::*;

fn rows_of(index: &Sorted, places: Option<Range<usize>>) -> Vec<Row> {
    index.rows[places.expect("the kinds fit")].to_vec()
}

#[test]
fn a_unique_column_needs_no_starts() {
    let index =
        Sorted::build(3, &[Arc::new(Int32Array::from(vec![Some(5), None, Some(-1), Some(9)]))]).unwrap();
    assert_eq!((index.starts.is_none(), index.valued(), index.distinct()), (true, 3, 3));
    assert_eq!(index.rows, [2, 0, 3, 1]);
    assert_eq!(rows_of(&index, index.equal(Wanted::Integer(5))), [0]);
    assert_eq!(rows_of(&index, index.equal(Wanted::Integer(6))), [0; 0]);
    assert_eq!(rows_of(&index, index.range(Excluded(Wanted::Integer(-1)), Unbounded)), [0, 3]);
    assert_eq!(index.equal(Wanted::Text("5")), None);
}

#[test]
fn reals_have_one_zero_and_nan_above_all() {
    let column = Float32Array::from(vec![Some(f32::NAN), Some(-0.0), Some(0.0), None, Some(f32::INFINITY)]);
    let index = Sorted::build(0, &[Arc::new(column)]).unwrap();
    assert_eq!(index.rows, [1, 2, 4, 0, 3]);
    assert_eq!(rows_of(&index, index.equal(Wanted::Double(-0.0))), [1, 2]);
    assert_eq!(rows_of(&index, index.equal(Wanted::Double(f64::NAN))), [0]);
    assert_eq!(rows_of(&index, index.range(Excluded(Wanted::Double(0.0)), Unbounded)), [4, 0]);
}

#[test]
fn texts_have_prefixes() {
    let pieces: [ArrayRef; 2] =
        [Arc::new(StringArray::from(vec!["b", "abc", "ab"])), Arc::new(StringArray::from(vec!["ac", "ab"]))];
    let index = Sorted::build(0, &pieces).unwrap();
    assert_eq!(rows_of(&index, index.prefixed("ab")), [2, 4, 1]);
    assert_eq!(rows_of(&index, index.prefixed("")), [2, 4, 1, 3, 0]);
    assert_eq!(rows_of(&index, index.prefixed("zz")), [0; 0]);
    assert_eq!(decode(&encode(&index)), Ok(index));
}

#[test]
fn damage_is_noticed() {
    let index = Sorted::build(1, &[Arc::new(Int32Array::from(vec![4, 4, 2]))]).unwrap();
    let bytes = encode(&index);
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 0x10;
        assert!(decode(&broken).is_err(), "byte {at}");
        assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
    }
}

proptest! {
    #[test]
    fn an_index_answers_like_a_scan(
        values in prop::collection::vec(prop::option::of(-20i32..20), 0..200),
        low in -25i64..25, width in 0i64..20, open in any::<(bool, bool)>(),
    ) {
        let index = Sorted::build(0, &[Arc::new(Int32Array::from(values.clone()))]).unwrap();
        let high = low + width;
        let bound = |open, value| if open { Excluded(Wanted::Integer(value)) } else { Included(Wanted::Integer(value)) };
        let mut found = rows_of(&index, index.range(bound(open.0, low), bound(open.1, high)));
        found.sort_unstable();
        let fits = |value: i64| if open.0 { value > low } else { value >= low }
            && if open.1 { value < high } else { value <= high };
        let scanned: Vec<Row> = (0..).zip(&values).filter(|(_, v)| v.is_some_and(|v| fits(v.into()))).map(|(r, _)| r).collect();
        prop_assert_eq!(found, scanned);
        prop_assert_eq!(decode(&encode(&index)), Ok(index));
    }
}
