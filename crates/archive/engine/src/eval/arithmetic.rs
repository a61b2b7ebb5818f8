//! `+ - * /`, unary minus, ABS and MOD on numbers of one type.
//!
//! A loop over whole numbers computes all rows and remembers whether any went wrong; only then are the rows
//! looked at one by one, for the first that is not NULL and has a reason to complain.

use std::fmt::Display;

use arrow_array::Array as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type,
};
use trifid_archive_adql::tree::Operator;
use trifid_archive_adql::types::Type;

use super::cells::{Cells, Shape, any_null, map, nulls, pairs, primitive, primitive_array, sides, zip};
use crate::error::QueryError;

/// Whole numbers that say when they overflow. Dividing by zero gives zero and says so too.
trait Whole: Copy + Display + PartialEq + Default {
    fn add(self, other: Self) -> (Self, bool);
    fn subtract(self, other: Self) -> (Self, bool);
    fn multiply(self, other: Self) -> (Self, bool);
    fn divide(self, other: Self) -> (Self, bool);
    /// The sign is the dividend's; dividing the least number by -1 leaves nothing.
    fn modulo(self, other: Self) -> (Self, bool);
    fn negate(self) -> (Self, bool);
    fn absolute(self) -> (Self, bool);
}

macro_rules! whole {
    ($($native:ty: $absolute:expr),*) => {$(
        impl Whole for $native {
            fn add(self, other: Self) -> (Self, bool) { self.overflowing_add(other) }
            fn subtract(self, other: Self) -> (Self, bool) { self.overflowing_sub(other) }
            fn multiply(self, other: Self) -> (Self, bool) { self.overflowing_mul(other) }
            fn divide(self, other: Self) -> (Self, bool) {
                if other == 0 { (0, true) } else { self.overflowing_div(other) }
            }
            fn modulo(self, other: Self) -> (Self, bool) {
                if other == 0 { (0, true) } else { (self.wrapping_rem(other), false) }
            }
            fn negate(self) -> (Self, bool) { self.overflowing_neg() }
            fn absolute(self) -> (Self, bool) { $absolute(self) }
        }
    )*};
}

whole!(u8: |n| (n, false), i16: i16::overflowing_abs, i32: i32::overflowing_abs, i64: i64::overflowing_abs);

/// An operator on two operands of the type `ty`.
pub(super) fn arithmetic(
    operator: Operator,
    ty: Type,
    left: &Cells,
    right: &Cells,
) -> Result<Cells, QueryError> {
    match ty {
        Type::UnsignedByte => whole::<UInt8Type>(operator, ty, left, right),
        Type::Short => whole::<Int16Type>(operator, ty, left, right),
        Type::Int => whole::<Int32Type>(operator, ty, left, right),
        Type::Long => whole::<Int64Type>(operator, ty, left, right),
        Type::Float => match operator {
            Operator::Add => zip::<Float32Type, Float32Type, Float32Type>(left, right, ty, |a, b| a + b),
            Operator::Subtract => zip::<Float32Type, Float32Type, Float32Type>(left, right, ty, |a, b| a - b),
            Operator::Multiply => zip::<Float32Type, Float32Type, Float32Type>(left, right, ty, |a, b| a * b),
            Operator::Divide => zip::<Float32Type, Float32Type, Float32Type>(left, right, ty, |a, b| a / b),
        },
        Type::Double => match operator {
            Operator::Add => zip::<Float64Type, Float64Type, Float64Type>(left, right, ty, |a, b| a + b),
            Operator::Subtract => zip::<Float64Type, Float64Type, Float64Type>(left, right, ty, |a, b| a - b),
            Operator::Multiply => zip::<Float64Type, Float64Type, Float64Type>(left, right, ty, |a, b| a * b),
            Operator::Divide => zip::<Float64Type, Float64Type, Float64Type>(left, right, ty, |a, b| a / b),
        },
        Type::Null => Ok(Cells::null(ty, left.rows())),
        other => Err(not_numeric(other)),
    }
}

/// Unary minus.
pub(super) fn negate(ty: Type, operand: &Cells) -> Result<Cells, QueryError> {
    match ty {
        Type::UnsignedByte => whole_one::<UInt8Type>(ty, operand, "-", Whole::negate),
        Type::Short => whole_one::<Int16Type>(ty, operand, "-", Whole::negate),
        Type::Int => whole_one::<Int32Type>(ty, operand, "-", Whole::negate),
        Type::Long => whole_one::<Int64Type>(ty, operand, "-", Whole::negate),
        Type::Float => map::<Float32Type, Float32Type>(operand, ty, |a| -a),
        Type::Double => map::<Float64Type, Float64Type>(operand, ty, |a| -a),
        Type::Null => Ok(Cells::null(ty, operand.rows())),
        other => Err(not_numeric(other)),
    }
}

/// ABS.
pub(super) fn absolute(ty: Type, operand: &Cells) -> Result<Cells, QueryError> {
    match ty {
        Type::UnsignedByte => whole_one::<UInt8Type>(ty, operand, "ABS ", Whole::absolute),
        Type::Short => whole_one::<Int16Type>(ty, operand, "ABS ", Whole::absolute),
        Type::Int => whole_one::<Int32Type>(ty, operand, "ABS ", Whole::absolute),
        Type::Long => whole_one::<Int64Type>(ty, operand, "ABS ", Whole::absolute),
        Type::Float => map::<Float32Type, Float32Type>(operand, ty, f32::abs),
        Type::Double => map::<Float64Type, Float64Type>(operand, ty, f64::abs),
        Type::Null => Ok(Cells::null(ty, operand.rows())),
        other => Err(not_numeric(other)),
    }
}

/// MOD.
pub(super) fn modulo(ty: Type, left: &Cells, right: &Cells) -> Result<Cells, QueryError> {
    match ty {
        Type::UnsignedByte => whole_two::<UInt8Type>(ty, left, right, "MOD", Whole::modulo),
        Type::Short => whole_two::<Int16Type>(ty, left, right, "MOD", Whole::modulo),
        Type::Int => whole_two::<Int32Type>(ty, left, right, "MOD", Whole::modulo),
        Type::Long => whole_two::<Int64Type>(ty, left, right, "MOD", Whole::modulo),
        Type::Float => zip::<Float32Type, Float32Type, Float32Type>(left, right, ty, |a, b| a % b),
        Type::Double => zip::<Float64Type, Float64Type, Float64Type>(left, right, ty, |a, b| a % b),
        Type::Null => Ok(Cells::null(ty, left.rows())),
        other => Err(not_numeric(other)),
    }
}

/// How an operator is written.
pub(super) const fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
    }
}

/// Why two whole numbers have no result.
pub(super) fn complaint(left: impl Display, sign: &str, right: impl Display, by_zero: bool) -> QueryError {
    if by_zero && matches!(sign, "/" | "MOD") {
        return QueryError::invalid(format!("division by zero in {left} {sign} {right}"));
    }
    QueryError::invalid(format!("integer overflow in {left} {sign} {right}"))
}

fn whole<T>(operator: Operator, ty: Type, left: &Cells, right: &Cells) -> Result<Cells, QueryError>
where
    T: ArrowPrimitiveType<Native: Whole>,
{
    let sign = sign(operator);
    match operator {
        Operator::Add => whole_two::<T>(ty, left, right, sign, Whole::add),
        Operator::Subtract => whole_two::<T>(ty, left, right, sign, Whole::subtract),
        Operator::Multiply => whole_two::<T>(ty, left, right, sign, Whole::multiply),
        Operator::Divide => whole_two::<T>(ty, left, right, sign, Whole::divide),
    }
}

fn whole_two<T>(
    ty: Type,
    left: &Cells,
    right: &Cells,
    sign: &str,
    f: impl Fn(T::Native, T::Native) -> (T::Native, bool),
) -> Result<Cells, QueryError>
where
    T: ArrowPrimitiveType<Native: Whole>,
{
    if any_null(&[left, right]) {
        return Ok(Cells::null(ty, left.rows()));
    }
    let shape = Shape::of(&[left, right], left.rows());
    let (a, b) = (sides::<T>(left, shape)?, sides::<T>(right, shape)?);
    let mut failed = false;
    let values = pairs(a, b, shape.len, |a, b| {
        let (value, wrong) = f(a, b);
        failed |= wrong;
        value
    });
    let nulls = nulls(&[left, right], shape);
    if failed {
        let wrong = |row: &usize| {
            nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row)) && f(a.get(*row), b.get(*row)).1
        };
        if let Some(row) = (0..shape.len).find(wrong) {
            let (a, b) = (a.get(row), b.get(row));
            return Err(complaint(a, sign, b, b == T::Native::default()));
        }
    }
    Ok(shape.cells(primitive_array::<T>(values, nulls)))
}

fn whole_one<T>(
    ty: Type,
    operand: &Cells,
    sign: &str,
    f: impl Fn(T::Native) -> (T::Native, bool),
) -> Result<Cells, QueryError>
where
    T: ArrowPrimitiveType<Native: Whole>,
{
    if operand.is_null() {
        return Ok(Cells::null(ty, operand.rows()));
    }
    let array = primitive::<T>(operand)?;
    let wrong = |row: &usize| array.is_valid(*row) && f(array.value(*row)).1;
    if array.values().iter().any(|value| f(*value).1)
        && let Some(row) = (0..array.len()).find(wrong)
    {
        return Err(QueryError::invalid(format!("integer overflow in {sign}({})", array.value(row))));
    }
    map::<T, T>(operand, ty, |value| f(value).0)
}

fn not_numeric(ty: Type) -> QueryError {
    QueryError::internal(format_args!("arithmetic on {ty}"))
}
