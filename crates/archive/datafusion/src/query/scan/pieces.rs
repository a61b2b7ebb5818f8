//! Which rows a scan looks at: runs and lists of rows, chunk by chunk.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::access::Selection;
use trifid_archive_engine::access::selection::Run;
use trifid_archive_engine::table::Table;

use crate::limits::PARTITION_ROWS;

/// Order-29 cells from a first to a last.
pub(crate) type Cells = (u64, u64);

/// Rows of one chunk, counted within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) chunk: usize,
    pub(super) rows: Rows,
}

/// Some rows, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Run(Range<u32>),
    List(Arc<[u32]>),
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Run(run) => run.len(),
            Self::List(list) => list.len(),
        }
    }

    /// So many of them after so many others.
    pub(super) fn part(&self, from: usize, count: usize) -> Self {
        match self {
            Self::Run(run) => {
                let first = run.start + from as u32;
                Self::Run(first..first + count as u32)
            }
            Self::List(list) => Self::List(list[from..from + count].into()),
        }
    }

    /// The row at a place.
    pub(super) fn at(&self, place: usize) -> u32 {
        match self {
            Self::Run(run) => run.start + place as u32,
            Self::List(list) => list[place],
        }
    }

    /// Those that are in both.
    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Run(one), Self::Run(other)) => {
                let start = one.start.max(other.start);
                Self::Run(start..one.end.min(other.end).max(start))
            }
            (Self::Run(run), Self::List(list)) | (Self::List(list), Self::Run(run)) => {
                let from = list.partition_point(|row| *row < run.start);
                let end = list.partition_point(|row| *row < run.end);
                Self::List(list[from..end.max(from)].into())
            }
            (Self::List(one), Self::List(other)) => {
                Self::List(one.iter().copied().filter(|row| other.binary_search(row).is_ok()).collect())
            }
        }
    }
}

/// The rows of a selection.
pub(super) fn pieces(table: &Table, selection: Selection) -> Vec<Piece> {
    match selection {
        Selection::Runs(runs) => {
            let piece = |run: Run| Piece { chunk: run.chunk, rows: Rows::Run(run.rows) };
            runs.into_iter().map(piece).collect()
        }
        Selection::Rows(rows) => {
            let same = |a: &u32, b: &u32| table.chunk_of(*a) == table.chunk_of(*b);
            let piece = |rows: &[u32]| {
                let chunk = table.chunk_of(rows[0]);
                let first = table.chunks[chunk].first;
                Piece { chunk, rows: Rows::List(rows.iter().map(|row| row - first).collect()) }
            };
            rows.chunk_by(same).map(piece).collect()
        }
    }
}

/// The pieces of each of at most so many partitions: in order, an equal number of rows to each.
pub(super) fn split(pieces: Vec<Piece>, most: usize) -> Vec<Arc<[Piece]>> {
    let rows: usize = pieces.iter().map(|piece| piece.rows.len()).sum();
    let count = (rows / PARTITION_ROWS).clamp(1, most.max(1));
    let share = rows.div_ceil(count).max(1);
    let mut parts: Vec<Arc<[Piece]>> = Vec::new();
    let mut part: Vec<Piece> = Vec::new();
    let mut room = share;
    for mut piece in pieces {
        while piece.rows.len() > room {
            if room > 0 {
                part.push(Piece { chunk: piece.chunk, rows: piece.rows.part(0, room) });
                piece.rows = piece.rows.part(room, piece.rows.len() - room);
            }
            parts.push(std::mem::take(&mut part).into());
            room = share;
        }
        room -= piece.rows.len();
        part.push(piece);
    }
    parts.push(part.into());
    parts
}

/// The rows that are in both.
pub(super) fn both(ours: &[Piece], others: &[Piece]) -> Vec<Piece> {
    let mut both = Vec::new();
    let mut from = 0;
    for piece in ours {
        from += others[from..].partition_point(|other| other.chunk < piece.chunk);
        let same = others[from..].iter().take_while(|other| other.chunk == piece.chunk);
        for other in same {
            let rows = piece.rows.and(&other.rows);
            if rows.len() > 0 {
                both.push(Piece { chunk: piece.chunk, rows });
            }
        }
    }
    both
}

/// The rows whose cells are wanted; all of them if the table is in no order over the sky.
pub(super) fn within(table: &Table, ours: &[Piece], wanted: &[Cells]) -> Result<Vec<Piece>, QueryError> {
    let Some(spatial) = &table.indexes.spatial else { return Ok(ours.to_vec()) };
    let mut near = Vec::new();
    let mut at = usize::MAX;
    for piece in ours {
        let touched = spatial.chunks.get(piece.chunk).is_none_or(|span| touches(*span, wanted));
        if touched && at != piece.chunk {
            at = piece.chunk;
            let cells = table.column(piece.chunk, spatial.column)?;
            let cells = cells.as_primitive::<Int64Type>().values();
            let rows = if spatial.ordered { rows_within(cells, wanted) } else { rows_among(cells, wanted) };
            near.push(Piece { chunk: piece.chunk, rows: Rows::List(rows.into()) });
        }
    }
    Ok(both(ours, &near))
}

/// Whether a chunk from one cell to another may have a row in a wanted cell.
fn touches((first, last): (i64, i64), wanted: &[Cells]) -> bool {
    let next = wanted.partition_point(|range| (range.1 as i64) < first);
    wanted.get(next).is_some_and(|range| range.0 as i64 <= last)
}

/// The rows of a chunk whose cells are wanted: both ascend, and the shorter way through is taken.
fn rows_within(cells: &[i64], wanted: &[Cells]) -> Vec<u32> {
    let mut rows = Vec::new();
    let Some(first) = cells.first() else { return rows };
    let from = wanted.partition_point(|range| (range.1 as i64) < *first);
    let mut row = 0;
    for (low, high) in &wanted[from..] {
        row += gallop(&cells[row..], |cell| cell.cmp(&(*low as i64)) == Ordering::Less);
        let end = row + gallop(&cells[row..], |cell| *cell <= *high as i64);
        rows.extend(row as u32..end as u32);
        row = end;
        if row == cells.len() {
            break;
        }
    }
    rows
}

/// The same for cells in any order.
fn rows_among(cells: &[i64], wanted: &[Cells]) -> Vec<u32> {
    let is_wanted = |cell: i64| touches((cell, cell), wanted);
    (0u32..).zip(cells).filter(|(_, cell)| is_wanted(**cell)).map(|(row, _)| row).collect()
}

/// How many from the front are so, where all that are so come first: in growing steps, then by halves.
fn gallop(cells: &[i64], is_so: impl Fn(&i64) -> bool) -> usize {
    let mut step = 1;
    while step < cells.len() && is_so(&cells[step]) {
        step *= 2;
    }
    let end = cells.len().min(step + 1);
    cells[..end].partition_point(is_so)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(chunk: usize, rows: Range<u32>) -> Piece {
        Piece { chunk, rows: Rows::Run(rows) }
    }

    fn list(chunk: usize, rows: &[u32]) -> Piece {
        Piece { chunk, rows: Rows::List(rows.into()) }
    }

    #[test]
    fn partitions_have_equal_shares_in_order() {
        let rows = PARTITION_ROWS as u32;
        let parts = split(vec![run(0, 0..rows), run(2, 5..rows + 5)], 3);
        assert_eq!(parts.len(), 2);
        assert_eq!(*parts[0], [run(0, 0..rows)]);
        assert_eq!(*parts[1], [run(2, 5..rows + 5)]);
        let parts = split(vec![run(0, 0..2 * rows)], 2);
        assert_eq!(*parts[0], [run(0, 0..rows)]);
        assert_eq!(*parts[1], [run(0, rows..2 * rows)]);
        assert_eq!(split(Vec::new(), 4).len(), 1);
    }

    #[test]
    fn common_rows_of_runs_and_lists() {
        let ours = [run(0, 0..10), run(0, 20..30), list(1, &[1, 5, 9])];
        let others = [list(0, &[3, 9, 10, 25]), run(1, 5..9), run(2, 0..9)];
        assert_eq!(both(&ours, &others), [list(0, &[3, 9]), list(0, &[25]), list(1, &[5])]);
        assert_eq!(both(&others, &ours), [list(0, &[3, 9]), list(0, &[25]), list(1, &[5])]);
    }

    #[test]
    fn rows_of_wanted_cells() {
        let cells = [1, 1, 4, 6, 6, 6, 9, i64::MAX];
        let rows = |wanted: &[Cells]| rows_within(&cells, wanted);
        assert_eq!(rows(&[(0, 1), (5, 6), (8, 20)]), [0, 1, 3, 4, 5, 6]);
        assert!(rows(&[(2, 3)]).is_empty());
        assert!(rows(&[]).is_empty());
        assert_eq!(rows(&[(0, 100)]), [0, 1, 2, 3, 4, 5, 6]);
        let turned: Vec<i64> = cells.iter().rev().copied().collect();
        assert_eq!(rows_among(&turned, &[(0, 1), (5, 6), (8, 20)]), [1, 2, 3, 4, 6, 7]);
        assert!(touches((4, 6), &[(1, 2), (6, 9)]));
        assert!(!touches((4, 6), &[(1, 2), (7, 9)]));
    }
}
