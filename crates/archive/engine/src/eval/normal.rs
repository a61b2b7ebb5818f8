//! One form for each real: what grouping, removing duplicates and sorting compare by their bits.
//!
//! -0 is 0 and every NaN is one NaN above all numbers, as the tree says; Arrow's total order knows better. So keys that
//! hold reals pass through here first, in every executor, and a group is called by the same value in all.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array as _, ArrayRef, FixedSizeListArray, ListArray};
use arrow_schema::DataType;

/// The values in their one form; the same array where it is so already.
pub fn normalise(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let reals = array.as_primitive::<Float64Type>();
            if reals.values().iter().all(|value| is_normal(value.to_bits(), u64::MAX >> 1, F64_NAN)) {
                return array.clone();
            }
            Arc::new(
                reals.unary::<_, Float64Type>(|value| if value.is_nan() { f64::NAN } else { value + 0.0 }),
            )
        }
        DataType::Float32 => {
            let reals = array.as_primitive::<Float32Type>();
            Arc::new(
                reals.unary::<_, Float32Type>(|value| if value.is_nan() { f32::NAN } else { value + 0.0 }),
            )
        }
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            let values = normalise(lists.values());
            Arc::new(FixedSizeListArray::new(item.clone(), *size, values, lists.nulls().cloned()))
        }
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            let values = normalise(lists.values());
            Arc::new(ListArray::new(item.clone(), lists.offsets().clone(), values, lists.nulls().cloned()))
        }
        _ => array.clone(),
    }
}

const F64_NAN: u64 = f64::NAN.to_bits();
const F64_INFINITY: u64 = f64::INFINITY.to_bits();

/// Whether a real is in its one form: no -0, and a NaN only the usual one.
const fn is_normal(bits: u64, magnitude: u64, nan: u64) -> bool {
    let size = bits & magnitude;
    if size == 0 { bits == 0 } else { size <= F64_INFINITY || bits == nan }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Float64Array};

    use super::*;

    #[test]
    fn zeroes_and_nans_have_one_form() {
        let odd = f64::from_bits(0xfff8_0000_0000_0001);
        let array: ArrayRef = Arc::new(Float64Array::from(vec![Some(-0.0), Some(odd), None, Some(1.5)]));
        let normal = normalise(&array);
        let bits: Vec<Option<u64>> =
            normal.as_primitive::<Float64Type>().iter().map(|one| one.map(f64::to_bits)).collect();
        assert_eq!(bits, [Some(0), Some(F64_NAN), None, Some(1.5f64.to_bits())]);
        let array: ArrayRef = Arc::new(Float32Array::from(vec![-0.0, -f32::NAN]));
        let normal = normalise(&array);
        let bits: Vec<u32> =
            normal.as_primitive::<Float32Type>().values().iter().map(|one| one.to_bits()).collect();
        assert_eq!(bits, [0, f32::NAN.to_bits()]);
    }

    #[test]
    fn what_is_normal_is_not_copied() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 1.0, -1.0, f64::INFINITY, f64::NAN]));
        assert!(Arc::ptr_eq(&array, &normalise(&array)));
    }
}
