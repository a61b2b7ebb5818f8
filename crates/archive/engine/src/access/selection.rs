//! Which rows are worth looking at.
//!
//! For each bound condition the cheapest means says how many rows it leaves: a value index by two binary
//! searches, the order over the sky by two for each range of cells, a chunk's statistics by a comparison. The
//! smallest wins; rows that come singly are dearer than rows in a run.

use std::cmp::Ordering;
use std::ops::{Bound as End, Range};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use trifid_archive_adql::tree::Expr;
use trifid_archive_model::healpix::CellRange;

use super::condition::{Bound, condition};
use super::constant::Scalar;
use super::sky;
use crate::error::QueryError;
use crate::index::{Sorted, Spatial, Values, Wanted};
use crate::table::{Bounds, Chunk, Row, Table};

/// A row that must be fetched alone costs as much as so many in a run.
const SINGLE_ROW_COST: usize = 4;

/// Consecutive rows of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The chunk.
    pub chunk: usize,
    /// The rows, counted within the chunk.
    pub rows: Range<u32>,
}

/// A superset of the rows that fulfil all conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Rows by number, ascending.
    Rows(Vec<Row>),
    /// Runs of rows, ascending and disjoint.
    Runs(Vec<Run>),
}

impl Selection {
    /// How many rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Runs(runs) => count(runs),
        }
    }
}

/// How many rows there are in some runs.
pub(super) fn count(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.rows.len()).sum()
}

/// A selection, and which of the conditions it decides exactly.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The rows.
    pub selection: Selection,
    /// The condition that needs no second look.
    pub decided: Option<usize>,
}

/// The rows that may fulfil these conjuncts over `table` (its columns are those of relation 0), literals in place.
/// Reads what it needs.
pub fn select(table: &Table, conjuncts: &[Expr]) -> Result<Selection, QueryError> {
    let bounds = conjuncts.iter().filter_map(|expr| condition(expr, &table.head)?.bind(&[]));
    let bounds: Vec<Option<Bound>> = bounds.map(Some).collect();
    let selected = narrow(table, &bounds, true)?;
    Ok(selected.map_or_else(|| Selection::Runs(whole(table)), |selected| selected.selection))
}

fn whole(table: &Table) -> Vec<Run> {
    let runs = table.chunks.iter().enumerate();
    runs.map(|(chunk, rows)| Run { chunk, rows: 0..rows.rows }).collect()
}

/// The best selection; `None` if a column would have to be read for it and may not be.
pub(super) fn narrow(
    table: &Table,
    bounds: &[Option<Bound>],
    may_read: bool,
) -> Result<Option<Selected>, QueryError> {
    if bounds.iter().flatten().any(|bound| matches!(bound, Bound::Never)) {
        return Ok(Some(Selected { selection: Selection::Rows(Vec::new()), decided: None }));
    }
    let by_value = best_index(table, bounds);
    let single = by_value.as_ref().map_or(usize::MAX, |found| found.rows());
    let Some(runs) = in_runs(table, bounds, may_read, single)? else { return Ok(None) };
    let selected = match by_value {
        Some(found) if found.rows().saturating_mul(SINGLE_ROW_COST) <= count(&runs) => found.selected(),
        _ => Selected { selection: Selection::Runs(runs), decided: None },
    };
    Ok(Some(selected))
}

/// Rows that a value index found for one condition.
struct ByValue<'t> {
    index: &'t Sorted,
    places: Vec<Range<usize>>,
    condition: usize,
    exact: bool,
}

impl ByValue<'_> {
    fn rows(&self) -> usize {
        self.places.iter().map(ExactSizeIterator::len).sum()
    }

    fn selected(&self) -> Selected {
        let mut rows: Vec<Row> = Vec::with_capacity(self.rows());
        for places in &self.places {
            rows.extend_from_slice(&self.index.rows[places.clone()]);
        }
        if !rows.is_sorted() {
            rows.sort_unstable();
        }
        // The list of an IN may name a value twice.
        rows.dedup();
        Selected { selection: Selection::Rows(rows), decided: self.exact.then_some(self.condition) }
    }
}

fn best_index<'t>(table: &'t Table, bounds: &[Option<Bound>]) -> Option<ByValue<'t>> {
    let found = bounds.iter().enumerate().filter_map(|(at, bound)| by_value(table, bound.as_ref()?, at));
    found.min_by_key(ByValue::rows)
}

fn by_value<'t>(table: &'t Table, bound: &Bound, condition: usize) -> Option<ByValue<'t>> {
    let (column, exact) = match bound {
        Bound::Interval(column, ..) | Bound::OneOf(column, _) => (*column, true),
        Bound::Prefix(column, _) => (*column, false),
        Bound::Never | Bound::Sky(_) | Bound::Cone(_) => return None,
    };
    let index = table.indexes.sorted(column)?;
    let places = match bound {
        Bound::Interval(_, low, high) => vec![interval(index, low, high)?],
        Bound::OneOf(_, values) => {
            let equal = |value: &Scalar| {
                interval(index, &End::Included(value.clone()), &End::Included(value.clone()))
            };
            values.iter().map(equal).collect::<Option<Vec<_>>>()?
        }
        Bound::Prefix(_, prefix) => vec![index.prefixed(prefix)?],
        Bound::Never | Bound::Sky(_) | Bound::Cone(_) => return None,
    };
    Some(ByValue { index, places, condition, exact })
}

fn interval(index: &Sorted, low: &End<Scalar>, high: &End<Scalar>) -> Option<Range<usize>> {
    let whole = matches!(index.values, Values::Integer(_));
    index.range(end(low, whole, Side::Low)?, end(high, whole, Side::High)?)
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Low,
    High,
}

/// A bound as the index wants it; a real bound on whole numbers moves inwards to the next whole number.
fn end(bound: &End<Scalar>, whole: bool, side: Side) -> Option<End<Wanted<'_>>> {
    let (value, included) = match bound {
        End::Unbounded => return Some(End::Unbounded),
        End::Included(value) => (value, true),
        End::Excluded(value) => (value, false),
    };
    let wanted = match value {
        Scalar::Integer(value) if whole => Wanted::Integer(*value),
        Scalar::Integer(value) => Wanted::Double(*value as f64),
        Scalar::Double(value) if whole => return whole_end(*value, included, side),
        Scalar::Double(value) => Wanted::Double(*value),
        Scalar::Text(value) => Wanted::Text(value),
        Scalar::Null => return None,
    };
    Some(if included { End::Included(wanted) } else { End::Excluded(wanted) })
}

fn whole_end(value: f64, included: bool, side: Side) -> Option<End<Wanted<'static>>> {
    if value.is_nan() {
        // Above every number: no low end lets anything through, no high end holds anything back.
        return Some(if side == Side::Low {
            End::Excluded(Wanted::Integer(i64::MAX))
        } else {
            End::Unbounded
        });
    }
    if value.fract() == 0.0 && !included {
        return Some(End::Excluded(Wanted::Integer(value as i64)));
    }
    let inwards = if side == Side::Low { value.ceil() } else { value.floor() };
    Some(End::Included(Wanted::Integer(inwards as i64)))
}

/// The runs of rows that may fulfil these conditions. What is on the sky is not looked for if something else leaves
/// no more than `enough` rows, a handful.
fn in_runs(
    table: &Table,
    bounds: &[Option<Bound>],
    may_read: bool,
    enough: usize,
) -> Result<Option<Vec<Run>>, QueryError> {
    let sky = bounds.iter().flatten().find(|bound| matches!(bound, Bound::Sky(_) | Bound::Cone(_)));
    match sky.filter(|_| table.indexes.spatial.is_some() && enough >= SINGLE_ROW_COST) {
        Some(Bound::Cone(cone)) => sky::around(table, bounds, cone.circle, may_read),
        Some(Bound::Sky(cells)) => runs(table, bounds, Some(cells), may_read),
        _ => runs(table, bounds, None, may_read),
    }
}

/// The runs of rows that chunk statistics leave, and the order over the sky of those in some cells; `None` if a column
/// would have to be read for it and may not be.
pub(super) fn runs(
    table: &Table,
    bounds: &[Option<Bound>],
    cells: Option<&[CellRange]>,
    may_read: bool,
) -> Result<Option<Vec<Run>>, QueryError> {
    let mut runs = Vec::new();
    for (at, chunk) in table.chunks.iter().enumerate() {
        if !bounds.iter().flatten().all(|bound| may_hold(chunk, bound)) {
            continue;
        }
        let (Some(cells), Some(spatial)) = (cells, &table.indexes.spatial) else {
            runs.push(Run { chunk: at, rows: 0..chunk.rows });
            continue;
        };
        let cells = touched(spatial, at, cells);
        if cells.is_empty() {
            continue;
        }
        let read = if may_read {
            Some(table.column(at, spatial.column)?)
        } else {
            table.resident(at, spatial.column)
        };
        let Some(stored) = read else { return Ok(None) };
        let stored = stored.as_primitive::<Int64Type>().values();
        if spatial.ordered {
            in_cells(stored, cells, at, &mut runs);
        } else {
            among_cells(stored, cells, at, &mut runs);
        }
    }
    Ok(Some(runs))
}

/// The wanted cells that a chunk may have.
fn touched<'c>(spatial: &Spatial, chunk: usize, cells: &'c [CellRange]) -> &'c [CellRange] {
    let Some((first, last)) = spatial.chunks.get(chunk) else { return cells };
    let from = cells.partition_point(|range| (range.last as i64) < *first);
    let cells = &cells[from..];
    &cells[..cells.partition_point(|range| range.first as i64 <= *last)]
}

/// The runs of a chunk's rows whose cells are wanted, appended.
fn in_cells(stored: &[i64], cells: &[CellRange], chunk: usize, runs: &mut Vec<Run>) {
    let mut from = 0;
    for range in cells {
        let first = from + leading(&stored[from..], |cell| cell < range.first as i64);
        let end = first + leading(&stored[first..], |cell| cell <= range.last as i64);
        from = end;
        if first < end {
            push(runs, chunk, first as u32..end as u32);
        }
    }
}

/// The number of leading cells for which `holds`: found in steps that double, because what is wanted lies together.
fn leading(cells: &[i64], holds: impl Fn(i64) -> bool) -> usize {
    let (mut from, mut step) = (0, 1);
    while cells.get(from + step - 1).is_some_and(|cell| holds(*cell)) {
        from += step;
        step *= 2;
    }
    let rest = &cells[from..cells.len().min(from + step)];
    from + rest.partition_point(|cell| holds(*cell))
}

/// Appends rows to the last run of the chunk, if they follow it at once, or as another.
fn push(runs: &mut Vec<Run>, chunk: usize, rows: Range<u32>) {
    match runs.last_mut() {
        Some(run) if run.chunk == chunk && run.rows.end == rows.start => run.rows.end = rows.end,
        _ => runs.push(Run { chunk, rows }),
    }
}

/// The same for rows in any order.
fn among_cells(stored: &[i64], cells: &[CellRange], chunk: usize, runs: &mut Vec<Run>) {
    for (cell, row) in stored.iter().zip(0u32..) {
        let next = cells.partition_point(|range| (range.last as i64) < *cell);
        if cells.get(next).is_some_and(|range| range.first as i64 <= *cell) {
            push(runs, chunk, row..row + 1);
        }
    }
}

/// Whether a chunk's statistics allow for a row that fulfils the condition.
fn may_hold(chunk: &Chunk, bound: &Bound) -> bool {
    let (column, low, high) = match bound {
        Bound::Never => return false,
        Bound::Sky(_) | Bound::Cone(_) => return true,
        Bound::Interval(column, low, high) => (*column, low.clone(), high.clone()),
        Bound::OneOf(column, values) => {
            let single = |value: &Scalar| {
                let end = End::Included(value.clone());
                may_hold(chunk, &Bound::Interval(*column, end.clone(), end))
            };
            return values.iter().any(single);
        }
        Bound::Prefix(column, prefix) => return prefix_may_occur(chunk, *column, prefix),
    };
    let Some(Some(range)) = chunk.ranges.get(column) else { return true };
    let Some(bounds) = &range.bounds else { return false };
    let (least, greatest) = ends(bounds);
    fits(&greatest, &low, Ordering::is_ge, Ordering::is_gt)
        && fits(&least, &high, Ordering::is_le, Ordering::is_lt)
}

fn ends(bounds: &Bounds) -> (Scalar, Scalar) {
    match bounds {
        Bounds::Integer(least, greatest) => (Scalar::Integer(*least), Scalar::Integer(*greatest)),
        Bounds::Double(least, greatest) => (Scalar::Double(*least), Scalar::Double(*greatest)),
        Bounds::Text(least, greatest) => (Scalar::Text(least.clone()), Scalar::Text(greatest.clone())),
    }
}

fn fits(
    value: &Scalar,
    end: &End<Scalar>,
    included: fn(Ordering) -> bool,
    excluded: fn(Ordering) -> bool,
) -> bool {
    match end {
        End::Unbounded => true,
        End::Included(bound) => compare(value, bound).is_none_or(included),
        End::Excluded(bound) => compare(value, bound).is_none_or(excluded),
    }
}

/// The order of two values; `None` if they are of different kinds, and nothing can be ruled out.
fn compare(left: &Scalar, right: &Scalar) -> Option<Ordering> {
    match (left, right) {
        (Scalar::Integer(left), Scalar::Integer(right)) => Some(left.cmp(right)),
        (Scalar::Text(left), Scalar::Text(right)) => Some(left.cmp(right)),
        _ => {
            let (left, right) = (left.double()?, right.double()?);
            Some(left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan())))
        }
    }
}

fn prefix_may_occur(chunk: &Chunk, column: usize, prefix: &str) -> bool {
    let Some(Some(range)) = chunk.ranges.get(column) else { return true };
    match &range.bounds {
        None => false,
        Some(Bounds::Text(least, greatest)) => {
            **greatest >= *prefix && (**least <= *prefix || least.starts_with(prefix))
        }
        Some(_) => true,
    }
}
