//! The meaning of every expression, over whole columns at once.
//!
//! One implementation for the index path, for the reference interpreter and, wrapped as functions, for DataFusion:
//! that answers agree is how they are made. An expression is walked once for each batch; each node is a loop over
//! Arrow buffers. What the nodes mean is said in [`trifid_archive_adql::tree`]; what that leaves open is decided here:
//!
//! - **Errors and rows that do not matter.** CASE computes a branch, COALESCE an argument, AND and OR an
//!   operand only for the rows that the ones before leave undecided. An operand of AND that fails where
//!   another is false does no harm, whichever of the two was written first; OR alike. So `x <> 0 AND 1/x > 2`
//!   never divides by zero, and a planner may turn the two around. In a condition that rows must fulfil NULL is as
//!   good as false ([`filter`]).
//! - **Reals** follow IEEE 754: dividing by zero gives an infinity or NaN, as does the square root or logarithm of what
//!   has none. Only whole numbers overflow.
//! - **NULL** comes out of every function and operator one of whose arguments is NULL, but for AND, OR, IS NULL,
//!   CASE, COALESCE, GREATEST, LEAST, and where the tree says otherwise.
//! - **Positions** whose latitude is beyond a pole, or that are NaN or infinite, are nowhere: in a row, what is asked
//!   of them is NULL; as a constant they are an error.
//!
//! Nothing is allocated row by row, and what a text function may put out for a batch is bounded
//! ([`crate::limits::TEXT_BATCH_BYTES`]).

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray};
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind, Query};

use crate::error::QueryError;

pub mod aggregate;
mod arithmetic;
mod call;
mod cast;
mod cells;
pub(crate) mod compare;
mod conditional;
mod constant;
mod distance;
mod geometry;
mod instants;
pub mod keys;
mod like;
mod logic;
mod math;
mod node;
mod normal;
mod pattern;
mod random;
mod regions;
mod shapes;
mod sky;
mod subset;
mod text;

#[cfg(test)]
mod tests;

pub use cells::Cells;
pub use constant::{Constant, constant, one};
pub use like::Pattern;
pub use normal::normalise;
pub use trifid_archive_adql::lift::is_constant;

/// The rows that an expression is computed for.
pub trait Input {
    /// How many.
    fn rows(&self) -> usize;

    /// A column of the rows.
    fn column(&self, at: ColumnRef) -> Result<Cells, QueryError>;

    /// In a grouped select: a key of GROUP BY.
    fn key(&self, index: usize) -> Result<Cells, QueryError> {
        Err(QueryError::internal(format_args!("no key {index} here")))
    }

    /// In a grouped select: the result of an aggregate.
    fn aggregate(&self, index: usize) -> Result<Cells, QueryError> {
        Err(QueryError::internal(format_args!("no aggregate {index} here")))
    }

    /// The answers of a query to some of the rows (all, where none are named), one for each in their order.
    fn subquery(&self, ask: &Subquery<'_>, rows: Option<&[u32]>) -> Result<Cells, QueryError> {
        let _ = (ask, rows);
        Err(QueryError::internal("no subquery can run here"))
    }

    /// The number of a row, for what differs from row to row without a reason in its columns (RAND).
    fn row(&self, place: usize) -> u64 {
        place as u64
    }
}

/// What an expression asks of a query in it.
#[derive(Clone, Copy, Debug)]
pub enum Subquery<'a> {
    /// Whether it has a row. Boolean.
    Exists(&'a Arc<Query>),
    /// Whether its column has the value that stands here for each row asked for: NULL where the value is and there are
    /// rows, or where it is not found but a NULL is. Boolean.
    Contains(&'a Arc<Query>, &'a ArrayRef),
    /// The value of its only row. NULL without rows, an error with several.
    Value(&'a Arc<Query>),
}

/// What an expression is computed with besides its rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// What random numbers come from: the same seed gives the same number in the same row.
    pub seed: u64,
    /// Tells apart expressions of one query whose random numbers are to differ, such as items of a select list.
    pub place: u32,
}

/// The values of an expression, one for each row, in the physical type of the expression's type.
pub fn evaluate(expr: &Expr, input: &dyn Input, context: &Context) -> Result<ArrayRef, QueryError> {
    cells(expr, input, context)?.spread()
}

/// The values of an expression, where a constant is left as one value.
pub fn cells(expr: &Expr, input: &dyn Input, context: &Context) -> Result<Cells, QueryError> {
    node::Evaluator { input, context }.cells(expr, u64::from(context.place))
}

/// The rows for which a condition is true. NULL counts as false; nothing in the result is NULL.
pub fn filter(expr: &Expr, input: &dyn Input, context: &Context) -> Result<BooleanArray, QueryError> {
    let (evaluator, path) = (node::Evaluator { input, context }, u64::from(context.place));
    let found = match &expr.kind {
        Kind::And(operands) => logic::junction(logic::Junction::Filter, &evaluator, operands, path)?,
        _ => evaluator.cells(expr, path)?,
    };
    let array = found.spread()?;
    if array.data_type() == &arrow_schema::DataType::Null {
        return Ok(BooleanArray::from(vec![false; array.len()]));
    }
    let truths = cells::booleans(&Cells::Array(array.clone()))?.clone();
    let (values, nulls) = truths.into_parts();
    Ok(match nulls {
        Some(nulls) => BooleanArray::new(&values & nulls.inner(), None),
        None => BooleanArray::new(values, None),
    })
}
