//! ORDER BY: all rows, sorted at the end; rows beyond TOP are dropped on the way.

use std::cmp::Ordering;

use arrow_array::{Array as _, ArrayRef, UInt32Array};
use arrow_select::concat::concat;
use trifid_archive_adql::tree::{OrderKey, Query};
use trifid_archive_adql::types::Type;

use super::run::{Rows, Run};
use crate::error::QueryError;
use crate::eval::compare;

/// Rows that may come on top of what is wanted before the others are dropped.
const SURPLUS: usize = 65_536;

/// Rows of a sorted batch.
const BATCH_ROWS: usize = 8192;

/// Rows until all are there.
pub(super) struct Sorter<'a> {
    run: &'a Run<'a>,
    keys: &'a [OrderKey],
    types: Vec<Type>,
    /// How many of the first rows are wanted.
    wanted: Option<usize>,
    pieces: Vec<Rows>,
    count: usize,
    bytes: usize,
}

impl<'a> Sorter<'a> {
    pub(super) fn new(run: &'a Run<'a>, query: &'a Query, types: Vec<Type>, wanted: Option<u64>) -> Self {
        let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
        Self { run, keys: &query.order, types, wanted, pieces: Vec::new(), count: 0, bytes: 0 }
    }

    /// Rows with all columns, hidden ones too.
    pub(super) fn add(&mut self, rows: Rows) -> Result<(), QueryError> {
        self.count += rows.count;
        self.bytes += rows.bytes();
        self.pieces.push(rows);
        if self.wanted.is_some_and(|wanted| self.count > wanted.saturating_add(SURPLUS)) {
            let sorted = self.sorted()?;
            self.count = sorted.count;
            self.bytes = sorted.bytes();
            self.pieces = vec![sorted];
        }
        self.run.bounded(self.bytes, self.count)
    }

    /// The rows in order, in batches.
    pub(super) fn finish(mut self) -> Result<Vec<Rows>, QueryError> {
        let sorted = self.sorted()?;
        let starts = (0..sorted.count).step_by(BATCH_ROWS);
        Ok(starts.map(|start| sorted.slice(start, BATCH_ROWS.min(sorted.count - start))).collect())
    }

    fn sorted(&mut self) -> Result<Rows, QueryError> {
        let rows = self.joined()?;
        let mut numbers: Vec<u32> = (0..rows.count as u32).collect();
        let mut failure = None;
        // Stable: rows with equal keys stay as they came.
        numbers.sort_by(|a, b| {
            self.order(&rows, *a as usize, *b as usize).unwrap_or_else(|error| {
                failure = Some(error);
                Ordering::Equal
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        numbers.truncate(self.wanted.unwrap_or(usize::MAX));
        rows.take(&UInt32Array::from(numbers))
    }

    fn joined(&mut self) -> Result<Rows, QueryError> {
        let pieces = std::mem::take(&mut self.pieces);
        let columns = pieces.first().map_or(0, |piece| piece.columns.len());
        let whole = |place: usize| {
            let parts: Vec<_> = pieces.iter().map(|piece| piece.columns[place].as_ref()).collect();
            concat(&parts).map_err(QueryError::internal)
        };
        let columns: Vec<ArrayRef> = (0..columns).map(whole).collect::<Result<_, _>>()?;
        Ok(Rows { columns, count: pieces.iter().map(|piece| piece.count).sum() })
    }

    fn order(&self, rows: &Rows, a: usize, b: usize) -> Result<Ordering, QueryError> {
        for key in self.keys {
            let (column, ty) = match (rows.columns.get(key.item), self.types.get(key.item)) {
                (Some(column), Some(ty)) => (column, *ty),
                _ => return Err(QueryError::internal("no column to order by")),
            };
            let order = match (ty == Type::Null || column.is_null(a), ty == Type::Null || column.is_null(b)) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare::order(ty, column, a, column, b)?,
            };
            let order = if key.descending { order.reverse() } else { order };
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }
}
