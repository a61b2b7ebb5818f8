//! The mathematical functions of ADQL 2.1 2.3 but for ABS and MOD: on Doubles, after IEEE 754.

use std::f64::consts::PI;

use arrow_array::Float64Array;
use arrow_array::types::{Float64Type, Int64Type};
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::types::Type;

use super::cells::{Cells, map, zip};
use crate::error::QueryError;

/// From this size on a Double has no fraction.
const WHOLE_FROM: f64 = 4_503_599_627_370_496.0;

/// A function of one Double.
pub(super) fn one(f: impl Fn(f64) -> f64, arguments: &[Cells]) -> Result<Cells, QueryError> {
    let [argument] = arguments else { return Err(super::call::count(arguments.len())) };
    map::<Float64Type, Float64Type>(argument, Type::Double, f)
}

/// A function of two Doubles.
pub(super) fn two(f: impl Fn(f64, f64) -> f64, arguments: &[Cells]) -> Result<Cells, QueryError> {
    let [left, right] = arguments else { return Err(super::call::count(arguments.len())) };
    zip::<Float64Type, Float64Type, Float64Type>(left, right, Type::Double, f)
}

/// ROUND or TRUNCATE, with a number of digits or without.
pub(super) fn cut(function: Function, arguments: &[Cells]) -> Result<Cells, QueryError> {
    let f: fn(f64) -> f64 = if function == Function::Round { f64::round } else { f64::trunc };
    let [value, digits] = arguments else { return one(f, arguments) };
    if digits.is_constant() && !digits.is_null() {
        let scale = Scale::new(super::cells::primitive::<Int64Type>(digits)?.value(0));
        return map::<Float64Type, Float64Type>(value, Type::Double, |x| scale.cut(x, f));
    }
    zip::<Float64Type, Int64Type, Float64Type>(value, digits, Type::Double, |x, digits| {
        Scale::new(digits).cut(x, f)
    })
}

/// Where a number is cut: after so many digits of its fraction, or before so many of its whole part.
#[derive(Clone, Copy)]
enum Scale {
    /// Times this, cut, divided by it.
    Up(f64),
    /// Divided by this, cut, times it.
    Down(f64),
    /// So many digits that every number has fewer.
    Finest,
    /// So few that nothing is left.
    Coarsest,
}

impl Scale {
    fn new(digits: i64) -> Self {
        match digits {
            0..=308 => Self::Up(10f64.powi(digits as i32)),
            309.. => Self::Finest,
            -308..=-1 => Self::Down(10f64.powi(-digits as i32)),
            _ => Self::Coarsest,
        }
    }

    fn cut(self, x: f64, f: impl Fn(f64) -> f64) -> f64 {
        match self {
            Self::Up(factor) => {
                let scaled = x * factor;
                // Without a fraction at that digit, or infinite, or NaN.
                if scaled.abs() < WHOLE_FROM { f(scaled) / factor } else { x }
            }
            Self::Down(factor) => f(x / factor) * factor,
            Self::Finest => x,
            Self::Coarsest => x * 0.0,
        }
    }
}

/// PI().
pub(super) fn pi(rows: usize) -> Cells {
    Cells::constant(Float64Array::from(vec![PI]), rows)
}

/// The cotangent; that of 0 is infinite.
pub(super) fn cotangent(x: f64) -> f64 {
    // tan(pi/2 - x) would lose digits near pi/2; cos/sin keeps them.
    x.cos() / x.sin()
}
