//! Constant expressions, without arrays where that is possible.
//!
//! Every cone query binds a handful of them (a position, a radius, a limit), so the common ones are computed on plain
//! values in some ten nanoseconds; the others go the way of all expressions, over one row. Both ways give the
//! same.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, ListArray, StringArray, TimestampMicrosecondArray, UInt8Array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::lift::is_constant;
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind, Operator, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::{item, physical};
use trifid_archive_model::sphere;

use super::arithmetic::{complaint, sign};
use super::cells::{Cells, mismatch};
use super::{Context, Input};
use crate::error::QueryError;

/// The value of a constant expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// NULL.
    Null,
    /// A truth or a bit.
    Boolean(bool),
    /// A whole number of any size.
    Integer(i64),
    /// A real; a Float widened.
    Double(f64),
    /// A text.
    Text(Arc<str>),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// Longitude and latitude.
    Point([f64; 2]),
    /// Longitude, latitude and radius.
    Circle([f64; 3]),
    /// Longitudes and latitudes of vertices.
    Polygon(Arc<[f64]>),
    /// A region's text.
    Region(Arc<str>),
}

/// The value of an expression that is the same in all rows of all tables; `None` for one that is not, or whose type
/// has no [`Constant`].
pub fn constant(expr: &Expr) -> Result<Option<Constant>, QueryError> {
    match quick(expr)? {
        Some(value) => Ok(Some(value)),
        None if is_constant(expr) => {
            from_array(super::cells(expr, &Nothing, &Context::default())?.values(), expr.ty)
        }
        None => Ok(None),
    }
}

/// One row without columns.
struct Nothing;

impl Input for Nothing {
    fn rows(&self) -> usize {
        1
    }

    fn column(&self, _: ColumnRef) -> Result<Cells, QueryError> {
        Err(QueryError::internal("a constant has no columns"))
    }
}

/// The values that need no array; `None` for expressions that do, or that are not constant.
pub(super) fn quick(expr: &Expr) -> Result<Option<Constant>, QueryError> {
    match &expr.kind {
        Kind::Literal(literal) => Ok(literal_value(&literal.value, expr.ty)),
        Kind::Negate(operand) => Ok(quick(operand)?.and_then(|value| negated(&value, expr.ty))),
        Kind::Arithmetic(operator, left, right) => match (quick(left)?, quick(right)?) {
            (Some(left), Some(right)) => arithmetic(*operator, expr.ty, &left, &right),
            _ => Ok(None),
        },
        Kind::Cast(operand) => Ok(quick(operand)?.and_then(|value| widened(value, expr.ty))),
        Kind::Call(Function::Point, arguments) => Ok(match numbers::<2>(arguments)? {
            Some(at) => {
                sphere::Point::new(at[0], at[1]).map_err(refused)?;
                Some(Constant::Point(at))
            }
            None => None,
        }),
        Kind::Call(Function::Circle, arguments) => Ok(match numbers::<3>(arguments)? {
            Some(circle) => {
                sphere::Circle::new(circle[0], circle[1], circle[2]).map_err(refused)?;
                Some(Constant::Circle(circle))
            }
            None => None,
        }),
        _ => Ok(None),
    }
}

/// A shape that is none.
#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
pub(super) fn refused(error: sphere::Error) -> QueryError {
    QueryError::invalid(error.to_string())
}

fn literal_value(value: &Value, ty: Type) -> Option<Constant> {
    Some(match value {
        Value::Null => Constant::Null,
        Value::Boolean(truth) => Constant::Boolean(*truth),
        Value::Integer(number) if ty.is_integer() => Constant::Integer(*number),
        Value::Double(number) if matches!(ty, Type::Float | Type::Double) => Constant::Double(*number),
        Value::Text(text) if ty == Type::Text => Constant::Text(text.clone()),
        // Of another type than the tree promises: the long way says what it makes of that.
        Value::Integer(_) | Value::Double(_) | Value::Text(_) => return None,
    })
}

/// The arguments as numbers, if all are reals and none is NULL.
fn numbers<const N: usize>(arguments: &[Expr]) -> Result<Option<[f64; N]>, QueryError> {
    let mut found = [0.0; N];
    if arguments.len() != N {
        return Ok(None);
    }
    for (slot, argument) in found.iter_mut().zip(arguments) {
        match quick(argument)? {
            Some(Constant::Double(number)) => *slot = number,
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}

fn negated(value: &Constant, ty: Type) -> Option<Constant> {
    match value {
        Constant::Double(number) => Some(Constant::Double(-number)),
        Constant::Integer(number) => fit(-i128::from(*number), ty).map(Constant::Integer),
        _ => None,
    }
}

fn arithmetic(
    operator: Operator,
    ty: Type,
    left: &Constant,
    right: &Constant,
) -> Result<Option<Constant>, QueryError> {
    match (left, right) {
        (Constant::Double(a), Constant::Double(b)) => Ok(match ty {
            Type::Double => Some(Constant::Double(real(operator, *a, *b))),
            Type::Float => Some(Constant::Double(f64::from(real(operator, *a as f32, *b as f32)))),
            _ => None,
        }),
        (Constant::Integer(a), Constant::Integer(b)) => {
            let failed = || complaint(a, sign(operator), b, *b == 0);
            let exact = whole(operator, i128::from(*a), i128::from(*b)).ok_or_else(failed)?;
            Ok(Some(Constant::Integer(fit(exact, ty).ok_or_else(failed)?)))
        }
        _ => Ok(None),
    }
}

fn real<T>(operator: Operator, a: T, b: T) -> T
where
    T: std::ops::Add<Output = T>
        + std::ops::Sub<Output = T>
        + std::ops::Mul<Output = T>
        + std::ops::Div<Output = T>,
{
    match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
    }
}

/// Exact, as 64 bits times 64 bits fit into 128; `None` for a division by zero.
fn whole(operator: Operator, a: i128, b: i128) -> Option<i128> {
    match operator {
        Operator::Add => Some(a + b),
        Operator::Subtract => Some(a - b),
        Operator::Multiply => Some(a * b),
        Operator::Divide => a.checked_div(b),
    }
}

/// The number, if the type has it.
pub(super) fn fit(number: i128, ty: Type) -> Option<i64> {
    let number = i64::try_from(number).ok()?;
    let fits = match ty {
        Type::UnsignedByte => u8::try_from(number).is_ok(),
        Type::Short => i16::try_from(number).is_ok(),
        Type::Int => i32::try_from(number).is_ok(),
        _ => ty == Type::Long,
    };
    fits.then_some(number)
}

/// A conversion that cannot fail.
fn widened(value: Constant, ty: Type) -> Option<Constant> {
    match (value, ty) {
        (Constant::Integer(number), Type::Double) => Some(Constant::Double(number as f64)),
        (Constant::Integer(number), Type::Float) => Some(Constant::Double(f64::from(number as f32))),
        (Constant::Integer(number), _) if ty.is_integer() => {
            fit(i128::from(number), ty).map(Constant::Integer)
        }
        (Constant::Double(number), Type::Double) => Some(Constant::Double(number)),
        (Constant::Double(number), Type::Float) => Some(Constant::Double(f64::from(number as f32))),
        (Constant::Null, _) => Some(Constant::Null),
        _ => None,
    }
}

/// An array of one value, in the physical type of `ty`.
pub fn one(value: &Constant, ty: Type) -> Result<ArrayRef, QueryError> {
    let wrong = || QueryError::internal(format_args!("{value:?} is no {ty}"));
    Ok(match (value, ty) {
        (Constant::Null, _) => new_null_array(&physical(ty), 1),
        (Constant::Boolean(truth), Type::Boolean | Type::Bit) => Arc::new(BooleanArray::from(vec![*truth])),
        (Constant::Integer(number), _) if ty.is_integer() => whole_array(*number, ty).ok_or_else(wrong)?,
        (Constant::Integer(number), Type::Double) => Arc::new(Float64Array::from(vec![*number as f64])),
        (Constant::Integer(number), Type::Float) => Arc::new(Float32Array::from(vec![*number as f32])),
        (Constant::Double(number), Type::Double) => Arc::new(Float64Array::from(vec![*number])),
        (Constant::Double(number), Type::Float) => Arc::new(Float32Array::from(vec![*number as f32])),
        (Constant::Text(text), Type::Text) | (Constant::Region(text), Type::Region) => {
            Arc::new(StringArray::from(vec![text.as_ref()]))
        }
        (Constant::Timestamp(instant), Type::Timestamp) => {
            Arc::new(TimestampMicrosecondArray::from(vec![*instant]))
        }
        (Constant::Point(at), Type::Point) => fixed(at),
        (Constant::Circle(circle), Type::Circle) => fixed(circle),
        (Constant::Polygon(vertices), Type::Polygon) => Arc::new(ListArray::new(
            item(DataType::Float64),
            OffsetBuffer::from_lengths([vertices.len()]),
            Arc::new(Float64Array::from(vertices.to_vec())),
            None,
        )),
        _ => return Err(wrong()),
    })
}

fn whole_array(number: i64, ty: Type) -> Option<ArrayRef> {
    Some(match ty {
        Type::UnsignedByte => Arc::new(UInt8Array::from(vec![u8::try_from(number).ok()?])),
        Type::Short => Arc::new(Int16Array::from(vec![i16::try_from(number).ok()?])),
        Type::Int => Arc::new(Int32Array::from(vec![i32::try_from(number).ok()?])),
        _ => Arc::new(Int64Array::from(vec![number])),
    })
}

fn fixed(numbers: &[f64]) -> ArrayRef {
    let values = Arc::new(Float64Array::from(numbers.to_vec()));
    Arc::new(FixedSizeListArray::new(item(DataType::Float64), numbers.len() as i32, values, None))
}

/// The value of an array of one; `None` if its type has no constant.
fn from_array(array: &ArrayRef, ty: Type) -> Result<Option<Constant>, QueryError> {
    if array.data_type() == &DataType::Null || array.is_null(0) {
        return Ok(Some(Constant::Null));
    }
    value(array, ty, 0).transpose().ok_or_else(|| mismatch(array))?.map(Some).or_else(|error| match ty {
        Type::Array(_) | Type::FloatComplex | Type::DoubleComplex => Ok(None),
        _ => Err(error),
    })
}

/// A value of a column that is not NULL; `None` if the column is not in its physical type.
fn value(array: &ArrayRef, ty: Type, row: usize) -> Result<Option<Constant>, QueryError> {
    Ok(match ty {
        Type::Null => Some(Constant::Null),
        Type::Boolean | Type::Bit => array.as_boolean_opt().map(|array| Constant::Boolean(array.value(row))),
        Type::UnsignedByte => {
            array.as_primitive_opt::<UInt8Type>().map(|array| Constant::Integer(array.value(row).into()))
        }
        Type::Short => {
            array.as_primitive_opt::<Int16Type>().map(|array| Constant::Integer(array.value(row).into()))
        }
        Type::Int => {
            array.as_primitive_opt::<Int32Type>().map(|array| Constant::Integer(array.value(row).into()))
        }
        Type::Long => array.as_primitive_opt::<Int64Type>().map(|array| Constant::Integer(array.value(row))),
        Type::Float => {
            array.as_primitive_opt::<Float32Type>().map(|array| Constant::Double(array.value(row).into()))
        }
        Type::Double => {
            array.as_primitive_opt::<Float64Type>().map(|array| Constant::Double(array.value(row)))
        }
        Type::Text => array.as_string_opt::<i32>().map(|array| Constant::Text(array.value(row).into())),
        Type::Region => array.as_string_opt::<i32>().map(|array| Constant::Region(array.value(row).into())),
        Type::Timestamp => array
            .as_primitive_opt::<TimestampMicrosecondType>()
            .map(|array| Constant::Timestamp(array.value(row))),
        Type::Point => coordinates(array, row).and_then(|at| at.try_into().ok()).map(Constant::Point),
        Type::Circle => coordinates(array, row).and_then(|at| at.try_into().ok()).map(Constant::Circle),
        Type::Polygon => coordinates(array, row).map(|at| Constant::Polygon(at.into())),
        Type::Array(_) | Type::FloatComplex | Type::DoubleComplex => {
            return Err(QueryError::internal(format_args!("no constants of {ty}")));
        }
    })
}

fn coordinates(array: &ArrayRef, row: usize) -> Option<Vec<f64>> {
    let values = match array.data_type() {
        DataType::FixedSizeList(..) => array.as_fixed_size_list_opt()?.value(row),
        _ => array.as_list_opt::<i32>()?.value(row),
    };
    Some(values.as_primitive_opt::<Float64Type>()?.values().to_vec())
}
