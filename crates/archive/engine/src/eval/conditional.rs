//! CASE, COALESCE, NULLIF, GREATEST and LEAST.

use arrow_array::{Array as _, BooleanArray};
use arrow_buffer::BooleanBufferBuilder;
use arrow_select::interleave::interleave;
use trifid_archive_adql::tree::{Comparison, Expr};
use trifid_archive_adql::types::Type;

use super::cells::{Cells, Shape, booleans, repeated};
use super::compare;
use super::node::{Evaluator, child};
use super::subset::{Rows, is_plain, null_array};
use crate::error::QueryError;

/// A column put together from pieces, each of some rows.
struct Mosaic {
    pieces: Vec<Cells>,
    /// For each row the piece and the place in it.
    places: Vec<(usize, usize)>,
}

impl Mosaic {
    /// All NULL so far.
    fn new(ty: Type, rows: usize) -> Self {
        Self { pieces: vec![Cells::Constant(null_array(ty), rows)], places: vec![(0, 0); rows] }
    }

    /// Puts the values of some rows in.
    fn lay(&mut self, rows: &[u32], values: Part) -> Result<(), QueryError> {
        if values.cells.is_null() {
            return Ok(());
        }
        if values.cells.is_constant() {
            repeated(values.cells.values(), rows.len())?;
        }
        for (nth, row) in rows.iter().enumerate() {
            self.places[*row as usize] = (self.pieces.len(), values.place(*row, nth));
        }
        self.pieces.push(values.cells);
        Ok(())
    }

    fn into_cells(self) -> Result<Cells, QueryError> {
        let arrays: Vec<_> = self.pieces.iter().map(|piece| piece.values().as_ref()).collect();
        Ok(Cells::Array(interleave(&arrays, &self.places).map_err(QueryError::internal)?))
    }
}

/// CASE: each branch only for the rows that no earlier one took.
pub(super) fn case(
    evaluator: &Evaluator<'_>,
    ty: Type,
    branches: &[(Expr, Expr)],
    otherwise: &Expr,
    path: u64,
) -> Result<Cells, QueryError> {
    let total = evaluator.rows();
    let mut mosaic = Mosaic::new(ty, total);
    let mut open: Vec<u32> = (0..total as u32).collect();
    for (place, (condition, value)) in branches.iter().enumerate() {
        if open.is_empty() {
            break;
        }
        let truths = Part::of(evaluator, &open, condition, child(path, 2 * place))?;
        let (taken, left) = split(&open, &truths)?;
        if !taken.is_empty() {
            let values = Part::of(evaluator, &taken, value, child(path, 2 * place + 1))?;
            if taken.len() == total && !values.cells.is_null() {
                return Ok(values.cells);
            }
            mosaic.lay(&taken, values)?;
        }
        open = left;
    }
    if !open.is_empty() {
        let values = Part::of(evaluator, &open, otherwise, child(path, 2 * branches.len()))?;
        if open.len() == total && !values.cells.is_null() {
            return Ok(values.cells);
        }
        mosaic.lay(&open, values)?;
    }
    mosaic.into_cells()
}

/// The values of an expression for some of the rows.
struct Part {
    cells: Cells,
    /// Whether the others have values too: it was cheaper to compute all.
    all: bool,
}

impl Part {
    fn of(evaluator: &Evaluator<'_>, rows: &[u32], expr: &Expr, path: u64) -> Result<Self, QueryError> {
        let total = evaluator.rows();
        if rows.len() == total || is_plain(expr) {
            return Ok(Self { cells: evaluator.cells(expr, path)?, all: true });
        }
        let mut mask = BooleanBufferBuilder::new(total);
        mask.append_n(total, false);
        rows.iter().for_each(|row| mask.set_bit(*row as usize, true));
        let rows = Rows::new(mask.finish());
        Ok(Self { cells: evaluator.within(&rows, |part| part.cells(expr, path))?, all: false })
    }

    /// Where in the cells' values that of the row with this number is, which is so far in the list of rows.
    fn place(&self, row: u32, nth: usize) -> usize {
        self.cells.place(if self.all { row as usize } else { nth })
    }
}

/// The rows where a condition is true, and the others.
fn split(rows: &[u32], truths: &Part) -> Result<(Vec<u32>, Vec<u32>), QueryError> {
    if truths.cells.is_null() {
        return Ok((Vec::new(), rows.to_vec()));
    }
    let array = booleans(&truths.cells)?;
    let (mut taken, mut left) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for (nth, row) in rows.iter().enumerate() {
        let place = truths.place(*row, nth);
        let is_true = array.is_valid(place) && array.value(place);
        if is_true { taken.push(*row) } else { left.push(*row) }
    }
    Ok((taken, left))
}

/// COALESCE: each argument only for the rows where all before it are NULL.
pub(super) fn coalesce(
    evaluator: &Evaluator<'_>,
    ty: Type,
    arguments: &[Expr],
    path: u64,
) -> Result<Cells, QueryError> {
    let total = evaluator.rows();
    let mut mosaic = Mosaic::new(ty, total);
    let mut open: Vec<u32> = (0..total as u32).collect();
    for (place, argument) in arguments.iter().enumerate() {
        if open.is_empty() {
            break;
        }
        let values = Part::of(evaluator, &open, argument, child(path, place))?;
        if values.cells.is_null() {
            continue;
        }
        if open.len() == total && values.cells.values().null_count() == 0 {
            return Ok(values.cells);
        }
        let left = match values.cells.values().nulls() {
            None => Vec::new(),
            Some(nulls) => {
                let null =
                    open.iter().enumerate().filter(|(nth, row)| nulls.is_null(values.place(**row, *nth)));
                null.map(|(_, row)| *row).collect()
            }
        };
        mosaic.lay(&open, values)?;
        open = left;
    }
    mosaic.into_cells()
}

/// NULLIF: NULL where both are equal, else the first.
pub(super) fn null_if(ty: Type, left: &Cells, right: &Cells) -> Result<Cells, QueryError> {
    let equal = compare::compare(Comparison::Equal, ty, left, right)?;
    if equal.is_null() {
        return Ok(left.clone());
    }
    let shape = Shape::of(&[left, right], left.rows());
    let equal = shaped(&equal, shape)?;
    let array =
        if shape.len == left.values().len() { left.values().clone() } else { left.clone().spread()? };
    Ok(shape.cells(arrow_select::nullif::nullif(&array, &equal).map_err(QueryError::internal)?))
}

fn shaped(truths: &Cells, shape: Shape) -> Result<BooleanArray, QueryError> {
    debug_assert_eq!(truths.values().len(), shape.len);
    booleans(truths).cloned()
}

/// GREATEST or LEAST (the comparison says which): NULLs are passed over.
pub(super) fn extreme(
    comparison: Comparison,
    ty: Type,
    arguments: &[Cells],
    rows: usize,
) -> Result<Cells, QueryError> {
    let mut arguments = arguments.iter().filter(|one| !one.is_null());
    let Some(first) = arguments.next() else { return Ok(Cells::null(ty, rows)) };
    arguments.try_fold(first.clone(), |best, next| better(comparison, ty, &best, next))
}

fn better(comparison: Comparison, ty: Type, best: &Cells, next: &Cells) -> Result<Cells, QueryError> {
    let wins = compare::compare(comparison, ty, next, best)?;
    let wins = booleans(&wins)?;
    for one in [best, next].into_iter().filter(|one| one.is_constant()) {
        repeated(one.values(), best.rows())?;
    }
    let shape = Shape::of(&[best, next], best.rows());
    let choose = |row: usize| {
        let (old, new) = (best.place(row), next.place(row));
        let takes = next.values().is_valid(new)
            && (best.values().is_null(old) || (wins.is_valid(row) && wins.value(row)));
        if takes { (1, new) } else { (0, old) }
    };
    let places: Vec<_> = (0..shape.len).map(choose).collect();
    let chosen = interleave(&[best.values().as_ref(), next.values().as_ref()], &places);
    Ok(shape.cells(chosen.map_err(QueryError::internal)?))
}
