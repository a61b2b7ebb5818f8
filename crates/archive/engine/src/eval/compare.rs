//! `= <> < <= > >=`, BETWEEN, IN and IS NULL.
//!
//! The order of reals is total: NaN equals NaN and is above all numbers, -0 is 0. Text compares by code
//! point, which for UTF-8 is by byte.

use std::cmp::Ordering;
use std::hash::Hash;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt8Type,
};
use arrow_array::{Array as _, BooleanArray, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use hashbrown::HashSet;
use trifid_archive_adql::tree::Comparison;
use trifid_archive_adql::types::Type;

use super::cells::{
    Cells, Shape, any_null, bits, boolean_array, booleans, mismatch, nulls, pack, pairs_bits, primitive,
    sides, texts,
};
use super::constant::Constant;
use super::logic;
use crate::error::QueryError;

/// From how many constants on IN looks values up in a set of them.
const SET_FROM: usize = 8;

/// Values in their total order.
pub(crate) trait Ordered: Copy {
    /// What equal values, and only they, have in common.
    type Key: Eq + Hash;
    /// Whether it comes before the other.
    fn below(self, other: Self) -> bool;
    /// Whether both are the same.
    fn same(self, other: Self) -> bool;
    /// What to find it by.
    fn key(self) -> Self::Key;
    /// The value of a constant of the type.
    fn of(constant: &Constant) -> Option<Self>;
    /// Its place relative to the other.
    fn order(self, other: Self) -> Ordering {
        if self.below(other) {
            Ordering::Less
        } else if self.same(other) {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

macro_rules! ordered_whole {
    ($($native:ty),*) => {$(
        impl Ordered for $native {
            type Key = $native;
            #[inline]
            fn below(self, other: Self) -> bool { self < other }
            #[inline]
            fn same(self, other: Self) -> bool { self == other }
            #[inline]
            fn key(self) -> Self::Key { self }
            fn of(constant: &Constant) -> Option<Self> {
                match constant {
                    Constant::Integer(number) | Constant::Timestamp(number) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }
        }
    )*};
}

macro_rules! ordered_real {
    ($($native:ty: $key:ty),*) => {$(
        impl Ordered for $native {
            type Key = $key;
            #[inline]
            fn below(self, other: Self) -> bool { (self < other) | (!self.is_nan() & other.is_nan()) }
            #[inline]
            fn same(self, other: Self) -> bool { (self == other) | (self.is_nan() & other.is_nan()) }
            #[inline]
            fn key(self) -> Self::Key {
                // One NaN, and -0 + 0 = 0.
                if self.is_nan() { <$native>::NAN.to_bits() } else { (self + 0.0).to_bits() }
            }
            fn of(constant: &Constant) -> Option<Self> {
                match constant {
                    Constant::Double(number) => Some(*number as $native),
                    _ => None,
                }
            }
        }
    )*};
}

ordered_whole!(u8, i16, i32, i64);
ordered_real!(f32: u32, f64: u64);

/// Runs `$body` with `$t` standing for the Arrow type of the values of `$ty`; `$text`, `$truth` and `$null`
/// for types that are not primitive.
macro_rules! by_order {
    ($ty:expr, $t:ident => $body:expr, text: $text:expr, truth: $truth:expr, null: $null:expr) => {
        match $ty {
            Type::UnsignedByte => {
                type $t = UInt8Type;
                $body
            }
            Type::Short => {
                type $t = Int16Type;
                $body
            }
            Type::Int => {
                type $t = Int32Type;
                $body
            }
            Type::Long => {
                type $t = Int64Type;
                $body
            }
            Type::Float => {
                type $t = Float32Type;
                $body
            }
            Type::Double => {
                type $t = Float64Type;
                $body
            }
            Type::Timestamp => {
                type $t = TimestampMicrosecondType;
                $body
            }
            Type::Text | Type::Region => $text,
            Type::Boolean | Type::Bit => $truth,
            Type::Null => $null,
            Type::FloatComplex
            | Type::DoubleComplex
            | Type::Point
            | Type::Circle
            | Type::Polygon
            | Type::Array(_) => Err(not_ordered($ty)),
        }
    };
}
pub(crate) use by_order;

/// A comparison of two operands of the type `ty`.
pub(super) fn compare(
    comparison: Comparison,
    ty: Type,
    left: &Cells,
    right: &Cells,
) -> Result<Cells, QueryError> {
    if any_null(&[left, right]) {
        return Ok(Cells::null(Type::Boolean, left.rows()));
    }
    let shape = Shape::of(&[left, right], left.rows());
    let values = by_order!(ty,
        T => compare_primitive::<T>(comparison, left, right, shape),
        text: compare_texts(comparison, left, right, shape),
        truth: compare_truths(comparison, left, right, shape),
        null: Err(not_ordered(ty)))?;
    Ok(shape.cells(boolean_array(values, nulls(&[left, right], shape))))
}

fn compare_primitive<T>(
    comparison: Comparison,
    left: &Cells,
    right: &Cells,
    shape: Shape,
) -> Result<BooleanBuffer, QueryError>
where
    T: ArrowPrimitiveType<Native: Ordered>,
{
    let (a, b, len) = (sides::<T>(left, shape)?, sides::<T>(right, shape)?, shape.len);
    Ok(match comparison {
        Comparison::Equal => pairs_bits(a, b, len, |a, b| a.same(b)),
        Comparison::NotEqual => pairs_bits(a, b, len, |a, b| !a.same(b)),
        Comparison::Less => pairs_bits(a, b, len, |a, b| a.below(b)),
        Comparison::LessOrEqual => pairs_bits(a, b, len, |a, b| !b.below(a)),
        Comparison::Greater => pairs_bits(a, b, len, |a, b| b.below(a)),
        Comparison::GreaterOrEqual => pairs_bits(a, b, len, |a, b| !a.below(b)),
    })
}

fn compare_texts(
    comparison: Comparison,
    left: &Cells,
    right: &Cells,
    shape: Shape,
) -> Result<BooleanBuffer, QueryError> {
    let (a, b) = (texts(left)?, texts(right)?);
    let at = |row| (bytes(a, left, row), bytes(b, right, row));
    Ok(each(shape.len, |row| {
        let (a, b) = at(row);
        holds(comparison, a, b)
    }))
}

/// Whether a comparison of texts holds; of equal lengths only, where it asks for equality.
fn holds(comparison: Comparison, a: &[u8], b: &[u8]) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less => a < b,
        Comparison::LessOrEqual => a <= b,
        Comparison::Greater => a > b,
        Comparison::GreaterOrEqual => a >= b,
    }
}

fn bytes<'a>(array: &'a StringArray, cells: &Cells, row: usize) -> &'a [u8] {
    array.value(cells.place(row)).as_bytes()
}

fn compare_truths(
    comparison: Comparison,
    left: &Cells,
    right: &Cells,
    shape: Shape,
) -> Result<BooleanBuffer, QueryError> {
    let (a, b) = (booleans(left)?, booleans(right)?);
    Ok(each(shape.len, |row| {
        let order = a.value(left.place(row)).cmp(&b.value(right.place(row)));
        satisfies(comparison, order)
    }))
}

/// Whether two values in this order satisfy a comparison.
pub(super) const fn satisfies(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// The truth of `f` for every row.
pub(super) fn each(len: usize, f: impl Fn(usize) -> bool) -> BooleanBuffer {
    bits(len, |rows| pack(rows.map(&f)))
}

/// value BETWEEN low AND high.
pub(super) fn between(ty: Type, value: &Cells, low: &Cells, high: &Cells) -> Result<Cells, QueryError> {
    let constant = low.is_constant() && high.is_constant() && !value.is_constant();
    if constant && !any_null(&[value, low, high]) {
        let single = by_order!(ty,
            T => between_constants::<T>(value, low, high).map(Some),
            text: Ok(None), truth: Ok(None), null: Ok(None))?;
        if let Some(values) = single {
            return Ok(Cells::Array(boolean_array(values, value.values().nulls().cloned())));
        }
    }
    let above = compare(Comparison::GreaterOrEqual, ty, value, low)?;
    let below = compare(Comparison::LessOrEqual, ty, value, high)?;
    logic::both(&above, &below)
}

fn between_constants<T>(value: &Cells, low: &Cells, high: &Cells) -> Result<BooleanBuffer, QueryError>
where
    T: ArrowPrimitiveType<Native: Ordered>,
{
    let values = primitive::<T>(value)?.values();
    let (low, high) = (primitive::<T>(low)?.value(0), primitive::<T>(high)?.value(0));
    Ok(bits(values.len(), |rows| pack(values[rows].iter().map(|one| !one.below(low) & !high.below(*one)))))
}

/// value IN (list).
pub(super) fn in_list(ty: Type, value: &Cells, list: &[Cells]) -> Result<Cells, QueryError> {
    let nowhere = Cells::constant(BooleanArray::from(vec![false]), value.rows());
    list.iter()
        .try_fold(nowhere, |found, one| logic::either(&found, &compare(Comparison::Equal, ty, value, one)?))
}

/// value IN (constants), none of which is made an array.
pub(super) fn in_constants(ty: Type, value: &Cells, list: &[Constant]) -> Result<Cells, QueryError> {
    if value.is_null() && !list.is_empty() {
        return Ok(Cells::null(Type::Boolean, value.rows()));
    }
    let found = by_order!(ty,
        T => among_numbers::<T>(value, list),
        text: among_texts(value, list),
        truth: among_truths(value, list),
        null: Err(not_ordered(ty)))?;
    let valid = value.values().nulls();
    // Not found among constants of which one is NULL: nobody knows (SQL's three-valued IN).
    let nulls = match list.contains(&Constant::Null) {
        true => NullBuffer::union(valid, Some(&NullBuffer::new(found.clone()))),
        false => valid.cloned(),
    };
    Ok(Shape::of(&[value], value.rows()).cells(boolean_array(found, nulls)))
}

fn among_numbers<T>(value: &Cells, list: &[Constant]) -> Result<BooleanBuffer, QueryError>
where
    T: ArrowPrimitiveType<Native: Ordered>,
{
    let values = primitive::<T>(value)?.values();
    let wanted: Vec<T::Native> = list.iter().filter_map(T::Native::of).collect();
    if wanted.len() < SET_FROM {
        return Ok(each(values.len(), |row| wanted.iter().any(|one| one.same(values[row]))));
    }
    let set: HashSet<_, foldhash::fast::RandomState> = wanted.into_iter().map(Ordered::key).collect();
    Ok(each(values.len(), |row| set.contains(&values[row].key())))
}

fn among_texts(value: &Cells, list: &[Constant]) -> Result<BooleanBuffer, QueryError> {
    let values = texts(value)?;
    let text = |one| match one {
        &Constant::Text(ref text) | &Constant::Region(ref text) => Some(&**text),
        _ => None,
    };
    let wanted: Vec<&str> = list.iter().filter_map(text).collect();
    if wanted.len() < SET_FROM {
        return Ok(each(values.len(), |row| wanted.contains(&values.value(row))));
    }
    let set: HashSet<&str, foldhash::fast::RandomState> = wanted.into_iter().collect();
    Ok(each(values.len(), |row| set.contains(values.value(row))))
}

fn among_truths(value: &Cells, list: &[Constant]) -> Result<BooleanBuffer, QueryError> {
    let values = booleans(value)?;
    Ok(each(values.len(), |row| list.contains(&Constant::Boolean(values.value(row)))))
}

/// IS NULL.
pub(super) fn is_null(value: &Cells) -> Cells {
    let array = value.values();
    let len = array.len();
    let nulls = match array.nulls() {
        Some(nulls) => !nulls.inner(),
        None if value.is_null() => BooleanBuffer::new_set(len),
        None => BooleanBuffer::new_unset(len),
    };
    Shape::of(&[value], value.rows()).cells(boolean_array(nulls, None))
}

/// The places of two values of one type relative to each other; neither is NULL.
pub(crate) fn order(
    ty: Type,
    left: &arrow_array::ArrayRef,
    a: usize,
    right: &arrow_array::ArrayRef,
    b: usize,
) -> Result<Ordering, QueryError> {
    use arrow_array::cast::AsArray as _;
    let wrong = || mismatch(left);
    by_order!(ty,
        T => {
            let (left, right) = (left.as_primitive_opt::<T>(), right.as_primitive_opt::<T>());
            Ok(left.ok_or_else(wrong)?.value(a).order(right.ok_or_else(wrong)?.value(b)))
        },
        text: {
            let (left, right) = (left.as_string_opt::<i32>(), right.as_string_opt::<i32>());
            Ok(left.ok_or_else(wrong)?.value(a).cmp(right.ok_or_else(wrong)?.value(b)))
        },
        truth: {
            let (left, right) = (left.as_boolean_opt(), right.as_boolean_opt());
            Ok(left.ok_or_else(wrong)?.value(a).cmp(&right.ok_or_else(wrong)?.value(b)))
        },
        null: Ok(Ordering::Equal))
}

/// A type without an order where one is needed: the resolver's fault.
pub(crate) fn not_ordered(ty: Type) -> QueryError {
    QueryError::internal(format_args!("{ty} has no order"))
}
