//! Aggregates: what comes out of the rows of a group.
//!
//! An [`Accumulator`] holds the state of one aggregate for all groups of a query, numbered from 0. Rows
//! arrive in batches with the number of each row's group. States can be taken out as columns and merged
//! elsewhere, so that parts of a table are worked on at once; merging gives what one pass would have given,
//! but for the last digits of reals.
//!
//! - NULLs are passed over, but for `COUNT(*)` and the first bin of a histogram; an aggregate of nothing is NULL, and
//!   COUNT 0.
//! - Whole sums are exact in 128 bits: only a result that does not fit is an overflow, whatever the order of rows.
//! - Sums and means of reals carry the rounding error along (Neumaier's method), variances are Welford's: neither
//!   depends on how a table was cut into parts by more than the last digits.
//! - NaN is a value: above all numbers for MIN, MAX and MEDIAN, and what it touches elsewhere is NaN.
//!
//! MEDIAN and DISTINCT keep their values, [`Accumulator::bytes`] says how much that is; texts and histograms
//! are bounded ([`crate::limits`]).

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;
use trifid_archive_adql::functions::Aggregator;
use trifid_archive_adql::tree::Aggregate;
use trifid_archive_adql::types::{Element, Type};
use trifid_archive_model::batch::{item, physical};

use super::cells::mismatch;
use crate::error::QueryError;

mod count;
mod distinct;
mod extreme;
mod histogram;
mod join;
mod median;
mod moments;
mod sum;

#[cfg(test)]
mod tests;

/// Which groups are taken out; the others move down to the numbers that have become free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// All.
    All,
    /// So many from the front.
    First(usize),
}

impl Emit {
    /// Takes the groups' values.
    fn take<T>(self, values: &mut Vec<T>) -> Vec<T> {
        match self {
            Self::All => std::mem::take(values),
            Self::First(count) => values.drain(..count.min(values.len())).collect(),
        }
    }
}

/// The state of an aggregate in all groups.
pub trait Accumulator: Send {
    /// Adds rows: each row's group and arguments. There are `total` groups from now on.
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError>;

    /// Adds states that [`Self::state`] of another has given, each to the group named for it.
    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError>;

    /// Takes the states of groups, as columns of [`state_types`].
    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError>;

    /// Takes the results of groups.
    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError>;

    /// Memory held.
    fn bytes(&self) -> usize;
}

/// A new accumulator without groups.
pub fn accumulator(aggregate: &Aggregate) -> Result<Box<dyn Accumulator>, QueryError> {
    let arguments: Vec<Type> = aggregate.arguments.iter().map(|argument| argument.ty).collect();
    let plain = plain(aggregate.aggregator, &arguments, aggregate.ty)?;
    Ok(match needs_distinct(aggregate) {
        true => Box::new(distinct::Distinct::new(plain, arguments)),
        false => plain,
    })
}

/// The columns of an accumulator's state.
pub fn state_types(aggregate: &Aggregate) -> Vec<DataType> {
    let list = |ty: DataType| DataType::List(item(ty));
    let arguments = || aggregate.arguments.iter().map(|argument| physical(argument.ty));
    if needs_distinct(aggregate) {
        return arguments().map(list).collect();
    }
    match aggregate.aggregator {
        Aggregator::Count => vec![DataType::Int64],
        Aggregator::Sum if aggregate.ty == Type::Double => vec![DataType::Float64; 2],
        Aggregator::Sum => vec![DataType::Int64; 2],
        Aggregator::Avg => vec![DataType::Int64, DataType::Float64, DataType::Float64],
        Aggregator::Min | Aggregator::Max => vec![physical(aggregate.ty)],
        Aggregator::StdDev | Aggregator::Variance => {
            vec![DataType::Int64, DataType::Float64, DataType::Float64]
        }
        Aggregator::Median => vec![list(DataType::Float64)],
        Aggregator::StringAgg => vec![DataType::Utf8; 2],
        Aggregator::Histogram => vec![DataType::Float64, DataType::Float64, list(DataType::Int64)],
    }
}

/// Whether equal arguments have to be left out: MIN and MAX do not care.
fn needs_distinct(aggregate: &Aggregate) -> bool {
    aggregate.distinct
        && !aggregate.arguments.is_empty()
        && !matches!(aggregate.aggregator, Aggregator::Min | Aggregator::Max)
}

fn plain(aggregator: Aggregator, arguments: &[Type], ty: Type) -> Result<Box<dyn Accumulator>, QueryError> {
    Ok(match (aggregator, ty) {
        (Aggregator::Count, _) => Box::new(count::Count::default()),
        (Aggregator::Sum, Type::Long) => Box::new(sum::WholeSum::default()),
        (Aggregator::Sum, Type::Double) => Box::new(sum::RealSum::default()),
        (Aggregator::Avg, Type::Double) => Box::new(sum::Mean::default()),
        (Aggregator::Min, _) => extreme::new(ty, std::cmp::Ordering::Less)?,
        (Aggregator::Max, _) => extreme::new(ty, std::cmp::Ordering::Greater)?,
        (Aggregator::StdDev, Type::Double) => Box::new(moments::Moments::new(true)),
        (Aggregator::Variance, Type::Double) => Box::new(moments::Moments::new(false)),
        (Aggregator::Median, Type::Double) => Box::new(median::Median::default()),
        (Aggregator::StringAgg, Type::Text) => Box::new(join::Join::default()),
        (Aggregator::Histogram, Type::Array(Element::Long)) => Box::new(histogram::Histogram::default()),
        _ => return Err(unknown(aggregator, arguments, ty)),
    })
}

fn unknown(aggregator: Aggregator, arguments: &[Type], ty: Type) -> QueryError {
    QueryError::internal(format_args!("no {aggregator:?} of {arguments:?} that is {ty}"))
}

/// The column at a place, as numbers.
fn numbers<T: ArrowPrimitiveType>(
    columns: &[ArrayRef],
    place: usize,
) -> Result<&PrimitiveArray<T>, QueryError> {
    use arrow_array::cast::AsArray as _;
    let column = column(columns, place)?;
    column.as_primitive_opt::<T>().ok_or_else(|| mismatch(column))
}

/// The column at a place.
fn column(columns: &[ArrayRef], place: usize) -> Result<&ArrayRef, QueryError> {
    let missing = || QueryError::internal(format_args!("an aggregate has no argument {place}"));
    columns.get(place).ok_or_else(missing)
}

/// Calls `f` with the group and the row of each value that is not NULL.
fn valid(array: &dyn Array, groups: &[usize], mut f: impl FnMut(usize, usize)) {
    match array.logical_nulls() {
        None => groups.iter().enumerate().for_each(|(row, group)| f(*group, row)),
        Some(nulls) => nulls.valid_indices().for_each(|row| f(groups[row], row)),
    }
}
