//! AND, OR and NOT, three-valued, and the order in which operands are computed.
//!
//! A three-valued column is two sets of rows: those that are true and those that are false. AND is the
//! intersection of the first and the union of the second; OR the other way round.

use arrow_array::{Array as _, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use trifid_archive_adql::tree::{Expr, Kind};
use trifid_archive_adql::types::Type;

use super::cells::{Cells, Shape, boolean_array, booleans};
use super::node::{Evaluator, child};
use super::subset::{Rows, is_plain, is_safe};
use crate::error::QueryError;

/// So few rows that picking some of them costs more than computing all.
const SMALL_ROWS: usize = 128;

/// Which of the two is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Junction {
    And,
    Or,
    /// AND of what rows must fulfil to stay: where one is NULL the others do not matter either.
    Filter,
}

/// Rows that are true and rows that are false; the others are NULL.
struct Sides {
    truth: BooleanBuffer,
    falsity: BooleanBuffer,
}

impl Sides {
    /// What an operand says.
    fn of(cells: &Cells) -> Result<Self, QueryError> {
        let len = cells.values().len();
        if cells.is_null() {
            return Ok(Self { truth: BooleanBuffer::new_unset(len), falsity: BooleanBuffer::new_unset(len) });
        }
        let array = booleans(cells)?;
        Ok(match array.nulls() {
            None => Self { truth: array.values().clone(), falsity: !array.values() },
            Some(valid) => {
                Self { truth: array.values() & valid.inner(), falsity: &!array.values() & valid.inner() }
            }
        })
    }

    fn into_array(self) -> arrow_array::ArrayRef {
        let valid = &self.truth | &self.falsity;
        let nulls = (valid.count_set_bits() < valid.len()).then(|| NullBuffer::new(valid));
        boolean_array(self.truth, nulls)
    }
}

/// AND of two.
pub(super) fn both(left: &Cells, right: &Cells) -> Result<Cells, QueryError> {
    combine(Junction::And, left, right)
}

/// OR of two.
pub(super) fn either(left: &Cells, right: &Cells) -> Result<Cells, QueryError> {
    combine(Junction::Or, left, right)
}

fn combine(junction: Junction, left: &Cells, right: &Cells) -> Result<Cells, QueryError> {
    if left.is_constant() != right.is_constant() {
        let (one, many) = if left.is_constant() { (left, right) } else { (right, left) };
        return with_constant(junction, one, many);
    }
    let shape = Shape::of(&[left, right], left.rows());
    let (a, b) = (Sides::of(left)?, Sides::of(right)?);
    let (truth, falsity) = match junction {
        Junction::And | Junction::Filter => (&a.truth & &b.truth, &a.falsity | &b.falsity),
        Junction::Or => (&a.truth | &b.truth, &a.falsity & &b.falsity),
    };
    Ok(shape.cells(Sides { truth, falsity }.into_array()))
}

/// One operand is the same in all rows: it decides, or leaves things as they are, or (NULL) lets only the
/// deciding value through.
fn with_constant(junction: Junction, one: &Cells, many: &Cells) -> Result<Cells, QueryError> {
    let deciding = junction == Junction::Or;
    if !one.is_null() {
        return Ok(if booleans(one)?.value(0) == deciding { one.clone() } else { many.clone() });
    }
    let sides = Sides::of(many)?;
    let never = BooleanBuffer::new_unset(sides.truth.len());
    let left = match junction {
        Junction::And | Junction::Filter => Sides { truth: never, falsity: sides.falsity },
        Junction::Or => Sides { truth: sides.truth, falsity: never },
    };
    Ok(Cells::Array(left.into_array()))
}

/// NOT.
pub(super) fn not(operand: &Cells) -> Result<Cells, QueryError> {
    if operand.is_null() {
        return Ok(Cells::null(Type::Boolean, operand.rows()));
    }
    let array = booleans(operand)?;
    let shape = Shape::of(&[operand], operand.rows());
    Ok(shape.cells(boolean_array(!array.values(), array.nulls().cloned())))
}

/// AND or OR of any number of operands.
///
/// Each is computed only for the rows that are not decided yet, unless it is cheaper to compute it for all. One that
/// fails is put back and tried again when another has decided some more rows; it is an error only if that never
/// helps. So which rows of which operands may fail does not depend on their order.
pub(super) fn junction(
    junction: Junction,
    evaluator: &Evaluator<'_>,
    operands: &[Expr],
    path: u64,
) -> Result<Cells, QueryError> {
    let rows = evaluator.input.rows();
    let mut all = Cells::constant(BooleanArray::from(vec![junction != Junction::Or]), rows);
    let mut waiting: Vec<usize> = (0..operands.len()).collect();
    loop {
        let tried = waiting.len();
        let mut failure = None;
        let mut put_back = Vec::new();
        for place in waiting {
            match operand(junction, evaluator, &operands[place], child(path, place), &all) {
                Ok(found) => all = combine(junction, &all, &found)?,
                Err(error @ QueryError::Invalid(_)) => {
                    put_back.push(place);
                    failure = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match failure {
            None => return Ok(all),
            Some(error) if put_back.len() == tried => return Err(error),
            Some(_) => waiting = put_back,
        }
    }
}

/// An operand for the rows that are not decided yet; in the others it may be anything.
fn operand(
    junction: Junction,
    evaluator: &Evaluator<'_>,
    expr: &Expr,
    path: u64,
    so_far: &Cells,
) -> Result<Cells, QueryError> {
    let rows = evaluator.rows();
    let sides = Sides::of(so_far)?;
    let decided = match junction {
        Junction::And => sides.falsity,
        Junction::Or => sides.truth,
        Junction::Filter => !&sides.truth,
    };
    let compute = |evaluator: &Evaluator<'_>| match (junction, &expr.kind) {
        (Junction::Filter, Kind::And(inner)) => self::junction(junction, evaluator, inner, path),
        _ => evaluator.cells(expr, path),
    };
    let open = decided.len() - decided.count_set_bits();
    if open == 0 {
        // Not even what is constant is computed, and cannot fail.
        return Ok(Cells::null(Type::Boolean, rows));
    }
    let picking_pays = rows > SMALL_ROWS && open < rows / 4 * 3;
    if open == decided.len() || is_plain(expr) || (!picking_pays && is_safe(expr)) {
        return compute(evaluator);
    }
    let open = Rows::new(!&decided);
    let found = evaluator.within(&open, compute)?;
    open.scatter(&found, Type::Boolean, rows)
}
