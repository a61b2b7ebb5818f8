//! The values of one expression over a batch of rows, and loops over them.
//!
//! A constant stays one value until somebody needs it row by row; a loop over an array and a constant keeps the
//! constant in a register. Loops compute every row, NULL or not, and combine the null masks once: what stands in
//! a NULL's place is computed on but never looked at.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray, UInt32Array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::physical;

use crate::error::QueryError;
use crate::limits::{PATTERN_BYTES, TEXT_BATCH_BYTES};

/// The values of an expression.
#[derive(Clone, Debug)]
pub enum Cells {
    /// One for each row.
    Array(ArrayRef),
    /// One (an array of length 1) for so many rows.
    Constant(ArrayRef, usize),
}

impl From<ArrayRef> for Cells {
    fn from(array: ArrayRef) -> Self {
        Self::Array(array)
    }
}

impl Cells {
    /// NULL for so many rows.
    pub fn null(ty: Type, rows: usize) -> Self {
        Self::Constant(new_null_array(&physical(ty), 1), rows)
    }

    /// One value for so many rows.
    pub(crate) fn constant(array: impl Array + 'static, rows: usize) -> Self {
        debug_assert_eq!(array.len(), 1);
        Self::Constant(Arc::new(array), rows)
    }

    /// For how many rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Array(array) => array.len(),
            Self::Constant(_, rows) => *rows,
        }
    }

    /// What holds the values: one for each row, or a single one.
    pub fn values(&self) -> &ArrayRef {
        match self {
            Self::Array(array) | Self::Constant(array, _) => array,
        }
    }

    /// Whether it is one value for all rows.
    pub const fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(..))
    }

    /// Whether it is NULL in all rows, and says so without a look at them.
    pub fn is_null(&self) -> bool {
        self.is_constant() && self.values().is_null(0) || self.values().data_type() == &DataType::Null
    }

    /// One value for each row.
    pub fn spread(self) -> Result<ArrayRef, QueryError> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Constant(array, 1) => Ok(array),
            Self::Constant(array, rows) if array.is_null(0) => Ok(new_null_array(array.data_type(), rows)),
            Self::Constant(array, rows) => {
                repeated(&array, rows)?;
                let places = UInt32Array::from(vec![0; rows]);
                arrow_select::take::take(&array, &places, None).map_err(QueryError::internal)
            }
        }
    }

    /// Where in [`Self::values`] the value of a row is.
    pub(crate) const fn place(&self, row: usize) -> usize {
        if self.is_constant() { 0 } else { row }
    }
}

/// Refuses to write a long value (a text, a polygon) so often that it takes more memory than a batch may.
pub(super) fn repeated(value: &ArrayRef, rows: usize) -> Result<(), QueryError> {
    let bytes = match value.data_type() {
        DataType::Utf8 => value.as_string::<i32>().value_length(0) as usize,
        DataType::List(_) => value.as_list::<i32>().value_length(0) as usize * size_of::<f64>(),
        _ => return Ok(()),
    };
    bounded(bytes.saturating_mul(rows))
}

/// Refuses to put out more text than is good for anybody.
pub(super) fn bounded(bytes: usize) -> Result<(), QueryError> {
    if bytes > TEXT_BATCH_BYTES {
        let message = format!("values of more than {} MiB for one batch of rows", TEXT_BATCH_BYTES >> 20);
        return Err(QueryError::TooLarge(message.into()));
    }
    Ok(())
}

/// How many values a loop over operands computes, and whether its result is one value for many rows.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// How many values.
    pub(super) len: usize,
    /// For how many rows.
    pub(super) rows: usize,
    constant: bool,
}

impl Shape {
    /// What operands of equally many rows give: one value if all are constant.
    pub(super) fn of(operands: &[&Cells], rows: usize) -> Self {
        let constant = operands.iter().all(|one| one.is_constant());
        debug_assert!(operands.iter().all(|one| one.rows() == rows));
        Self { len: if constant { 1 } else { rows }, rows, constant }
    }

    /// The result as cells.
    pub(super) fn cells(self, array: ArrayRef) -> Cells {
        debug_assert_eq!(array.len(), self.len);
        if self.constant { Cells::Constant(array, self.rows) } else { Cells::Array(array) }
    }

    /// An operand for a loop of this shape.
    fn side<'a, T>(self, cells: &Cells, values: &'a [T]) -> Side<'a, T>
    where
        T: Copy,
    {
        if cells.is_constant() && !self.constant { Side::One(values[0]) } else { Side::Many(values) }
    }
}

/// An operand of a loop.
#[derive(Clone, Copy)]
pub(super) enum Side<'a, T> {
    /// A value for each turn.
    Many(&'a [T]),
    /// The same in every turn.
    One(T),
}

impl<T: Copy> Side<'_, T> {
    /// The value of a turn.
    #[inline]
    pub(super) fn get(&self, turn: usize) -> T {
        match self {
            Self::Many(values) => values[turn],
            Self::One(value) => *value,
        }
    }
}

/// The values of primitive cells.
pub(super) fn primitive<T: ArrowPrimitiveType>(cells: &Cells) -> Result<&PrimitiveArray<T>, QueryError> {
    cells.values().as_primitive_opt::<T>().ok_or_else(|| mismatch(cells.values()))
}

/// The values of texts.
pub(super) fn texts(cells: &Cells) -> Result<&StringArray, QueryError> {
    cells.values().as_string_opt::<i32>().ok_or_else(|| mismatch(cells.values()))
}

/// The values of texts that others are searched for, which are short.
pub(super) fn searched_for(cells: &Cells) -> Result<&StringArray, QueryError> {
    let array = texts(cells)?;
    let longest = array.value_offsets().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
    if longest as usize > PATTERN_BYTES {
        let message = format!("texts are searched for patterns of at most {PATTERN_BYTES} bytes");
        return Err(QueryError::TooLarge(message.into()));
    }
    Ok(array)
}

/// The values of truths.
pub(super) fn booleans(cells: &Cells) -> Result<&BooleanArray, QueryError> {
    cells.values().as_boolean_opt().ok_or_else(|| mismatch(cells.values()))
}

/// A column that is not in its physical type: our fault.
pub(crate) fn mismatch(array: &ArrayRef) -> QueryError {
    QueryError::internal(format_args!("an unexpected column of {}", array.data_type()))
}

/// The null mask of operands in a loop of this shape: NULL where one is. The caller has dealt with constants that
/// are NULL.
pub(super) fn nulls(operands: &[&Cells], shape: Shape) -> Option<NullBuffer> {
    let masks = operands.iter().filter(|one| one.is_constant() == shape.constant);
    masks.fold(None, |all, one| NullBuffer::union(all.as_ref(), one.values().nulls()))
}

/// Whether one operand makes the whole NULL.
pub(super) fn any_null(operands: &[&Cells]) -> bool {
    operands.iter().any(|one| one.is_null())
}

/// `f` of every value.
pub(super) fn map<A, R>(
    operand: &Cells,
    ty: Type,
    f: impl Fn(A::Native) -> R::Native,
) -> Result<Cells, QueryError>
where
    A: ArrowPrimitiveType,
    R: ArrowPrimitiveType,
{
    if operand.is_null() {
        return Ok(Cells::null(ty, operand.rows()));
    }
    let array = primitive::<A>(operand)?;
    let values: Vec<R::Native> = array.values().iter().map(|value| f(*value)).collect();
    let shape = Shape::of(&[operand], operand.rows());
    Ok(shape.cells(primitive_array::<R>(values, array.nulls().cloned())))
}

/// `f` of every pair of values.
pub(super) fn zip<A, B, R>(
    left: &Cells,
    right: &Cells,
    ty: Type,
    f: impl Fn(A::Native, B::Native) -> R::Native,
) -> Result<Cells, QueryError>
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    R: ArrowPrimitiveType,
{
    if any_null(&[left, right]) {
        return Ok(Cells::null(ty, left.rows()));
    }
    let shape = Shape::of(&[left, right], left.rows());
    let values = pairs(sides::<A>(left, shape)?, sides::<B>(right, shape)?, shape.len, f);
    Ok(shape.cells(primitive_array::<R>(values, nulls(&[left, right], shape))))
}

/// A primitive operand for a loop of this shape.
pub(super) fn sides<T: ArrowPrimitiveType>(
    cells: &Cells,
    shape: Shape,
) -> Result<Side<'_, T::Native>, QueryError> {
    Ok(shape.side(cells, primitive::<T>(cells)?.values()))
}

/// `f` of every pair, in one loop for each combination of sides so that each is simple enough to be vectorised.
pub(super) fn pairs<A: Copy, B: Copy, R: Copy>(
    left: Side<'_, A>,
    right: Side<'_, B>,
    len: usize,
    mut f: impl FnMut(A, B) -> R,
) -> Vec<R> {
    match (left, right) {
        (Side::Many(left), Side::Many(right)) => left.iter().zip(right).map(|(a, b)| f(*a, *b)).collect(),
        (Side::Many(left), Side::One(b)) => left.iter().map(|a| f(*a, b)).collect(),
        (Side::One(a), Side::Many(right)) => right.iter().map(|b| f(a, *b)).collect(),
        (Side::One(a), Side::One(b)) => vec![f(a, b); len],
    }
}

/// The truth of `f` for every pair.
pub(super) fn pairs_bits<A: Copy, B: Copy>(
    left: Side<'_, A>,
    right: Side<'_, B>,
    len: usize,
    f: impl Fn(A, B) -> bool,
) -> BooleanBuffer {
    match (left, right) {
        (Side::Many(left), Side::Many(right)) => {
            let right = &right[..left.len()];
            bits(left.len(), |turns| {
                let (left, right) = (&left[turns.clone()], &right[turns]);
                pack(left.iter().zip(right).map(|(a, b)| f(*a, *b)))
            })
        }
        (Side::Many(left), Side::One(b)) => {
            bits(left.len(), |turns| pack(left[turns].iter().map(|a| f(*a, b))))
        }
        (Side::One(a), Side::Many(right)) => {
            bits(right.len(), |turns| pack(right[turns].iter().map(|b| f(a, *b))))
        }
        (Side::One(a), Side::One(b)) => BooleanBuffer::from(vec![f(a, b); len]),
    }
}

/// Bits made 64 at a time.
pub(super) fn bits(len: usize, word: impl Fn(std::ops::Range<usize>) -> u64) -> BooleanBuffer {
    let starts = (0..len).step_by(64);
    let words: Vec<u64> = starts.map(|start| word(start..len.min(start + 64)).to_le()).collect();
    BooleanBuffer::new(ScalarBuffer::from(words).into_inner(), 0, len)
}

/// Up to 64 truths as bits, the first the lowest: first as bytes, which the compiler vectorises, then eight bytes
/// gathered into eight bits by one multiplication.
#[inline]
pub(super) fn pack(truths: impl Iterator<Item = bool>) -> u64 {
    let mut bytes = [0u8; 64];
    for (byte, truth) in bytes.iter_mut().zip(truths) {
        *byte = u8::from(truth);
    }
    let (eights, _) = bytes.as_chunks::<8>();
    eights.iter().rev().fold(0, |word, eight| {
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word << 8 | gathered
    })
}

/// An array of these values.
pub(super) fn primitive_array<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
}

/// Truths, NULL where the mask says so.
pub(super) fn boolean_array(values: BooleanBuffer, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(BooleanArray::new(values, nulls))
}
