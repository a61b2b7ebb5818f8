//! One SELECT: FROM, WHERE, grouping, HAVING, the select list and DISTINCT, in this order.

use std::ops::ControlFlow;

use arrow_array::{Array as _, ArrayRef, UInt32Array, new_empty_array};
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use arrow_select::take::take;
use trifid_archive_adql::lift::conjuncts;
use trifid_archive_adql::tree::{Expr, Select};
use trifid_archive_model::batch::physical;

use super::block::{Block, Layout};
use super::run::{Flow, RowSink, Rows, Run};
use super::scope::{Frame, Scope, Source};
use crate::error::QueryError;
use crate::eval;
use crate::eval::aggregate::{Accumulator, Emit, accumulator};
use crate::eval::keys::{Interner, Keys};
use crate::eval::normalise;

/// A SELECT while it runs.
pub(super) struct Selecting<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) select: &'a Select,
    pub(super) outer: Option<&'a Frame<'a>>,
    pub(super) layout: Layout,
}

/// Places of expressions whose random numbers are to differ.
const WHERE_PLACE: u32 = 1;
const HAVING_PLACE: u32 = 2;
const KEYS_PLACE: u32 = 1 << 16;
const ARGUMENTS_PLACE: u32 = 2 << 16;
const ITEMS_PLACE: u32 = 3 << 16;

/// Runs a select.
pub(super) fn select(
    run: &Run<'_>,
    select: &Select,
    outer: Option<&Frame<'_>>,
    sink: &mut RowSink<'_>,
) -> Result<Flow, QueryError> {
    let selecting = Selecting { run, select, outer, layout: Layout::of(select) };
    let mut seen = select.distinct.then(Interner::default);
    let mut out = |rows: Rows| match &mut seen {
        None => sink(rows),
        Some(seen) => {
            let mut fresh = unseen(&rows, seen)?;
            fresh.columns = fresh.columns.iter().map(normalise).collect();
            run.bounded(seen.size(), seen.len())?;
            sink(fresh)
        }
    };
    if select.grouped { selecting.grouped(&mut out) } else { selecting.plain(&mut out) }
}

/// The rows that were not there before.
fn unseen(rows: &Rows, seen: &mut Interner) -> Result<Rows, QueryError> {
    let keys = Keys::new(&rows.columns)?;
    let mut key = Vec::new();
    let mut fresh = Vec::new();
    for row in 0..rows.count {
        key.clear();
        keys.write(row, &mut key);
        if seen.intern(&key)?.1 {
            fresh.push(row as u32);
        }
    }
    rows.take(&UInt32Array::from(fresh))
}

impl<'a> Selecting<'a> {
    /// The rows of FROM for which WHERE is true, with the number of each block's first row.
    fn rows(
        &self,
        sink: &mut dyn FnMut(&Block, u64) -> Result<Flow, QueryError>,
    ) -> Result<Flow, QueryError> {
        let mut first = 0;
        let mut filtered = |block: Block| {
            self.run.check()?;
            let begin = first;
            first += block.rows as u64;
            match &self.select.filter {
                None => sink(&block, begin),
                Some(condition) => {
                    let scope = self.of_rows(&block, begin);
                    let mask = eval::filter(condition, &scope, &self.run.context(WHERE_PLACE))?;
                    sink(&block.filter(&mask)?, begin)
                }
            }
        };
        let also = self.select.filter.as_ref().map(conjuncts).unwrap_or_default();
        match &self.select.from {
            None => filtered(Block::single()),
            Some(join) => self.join(join, &also, &mut filtered),
        }
    }

    fn of_rows<'s>(&'s self, block: &'s Block, first: u64) -> Scope<'s> {
        Scope { run: self.run, outer: self.outer, source: Source::Rows(block), first }
    }

    fn plain(&self, sink: &mut RowSink<'_>) -> Result<Flow, QueryError> {
        self.rows(&mut |block, first| {
            if block.rows == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            sink(self.items(&self.of_rows(block, first), block.rows)?)
        })
    }

    /// The select list.
    fn items(&self, scope: &Scope<'_>, count: usize) -> Result<Rows, QueryError> {
        Ok(Rows { columns: self.all(&self.select.items, scope, ITEMS_PLACE)?, count })
    }

    fn all(&self, exprs: &[Expr], scope: &Scope<'_>, place: u32) -> Result<Vec<ArrayRef>, QueryError> {
        let each = exprs.iter().zip(place..);
        each.map(|(expr, place)| eval::evaluate(expr, scope, &self.run.context(place))).collect()
    }

    fn grouped(&self, sink: &mut RowSink<'_>) -> Result<Flow, QueryError> {
        let mut groups = Groups::new(self)?;
        let _ = self.rows(&mut |block, first| {
            groups.add(&self.of_rows(block, first), block.rows)?;
            Ok(ControlFlow::Continue(()))
        })?;
        let (mut values, mut aggregates, mut rows) = groups.finish()?;
        if let Some(condition) = &self.select.having {
            let scope = self.of_groups(&values, &aggregates, rows);
            let mask = eval::filter(condition, &scope, &self.run.context(HAVING_PLACE))?;
            for column in values.iter_mut().chain(&mut aggregates) {
                *column = filter(column, &mask).map_err(QueryError::internal)?;
            }
            rows = mask.true_count();
        }
        if rows == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        sink(self.items(&self.of_groups(&values, &aggregates, rows), rows)?)
    }

    fn of_groups<'s>(&'s self, values: &'s [ArrayRef], aggregates: &'s [ArrayRef], rows: usize) -> Scope<'s> {
        let source = Source::Groups { values, aggregates, rows };
        Scope { run: self.run, outer: self.outer, source, first: 0 }
    }
}

/// The groups so far.
struct Groups<'s, 'a> {
    selecting: &'s Selecting<'a>,
    numbers: Interner,
    /// For each key the values of the groups, as they came.
    values: Vec<Vec<ArrayRef>>,
    aggregates: Vec<Box<dyn Accumulator>>,
}

impl<'s, 'a> Groups<'s, 'a> {
    fn new(selecting: &'s Selecting<'a>) -> Result<Self, QueryError> {
        let aggregates = selecting.select.aggregates.iter().map(accumulator).collect::<Result<_, _>>()?;
        let values = selecting.select.keys.iter().map(|_| Vec::new()).collect();
        let mut groups = Self { selecting, numbers: Interner::default(), values, aggregates };
        if selecting.select.keys.is_empty() {
            // One group, with rows or without.
            groups.numbers.intern(&[])?;
        }
        Ok(groups)
    }

    fn add(&mut self, scope: &Scope<'_>, rows: usize) -> Result<(), QueryError> {
        let select = self.selecting.select;
        let keys = self.selecting.all(&select.keys, scope, KEYS_PLACE)?;
        let keys: Vec<ArrayRef> = keys.iter().map(normalise).collect();
        let of_rows = self.number(&keys, rows)?;
        let total = self.numbers.len();
        let mut place = ARGUMENTS_PLACE;
        let mut bytes = self.numbers.size();
        for (state, aggregate) in self.aggregates.iter_mut().zip(&select.aggregates) {
            let arguments = self.selecting.all(&aggregate.arguments, scope, place)?;
            place += arguments.len() as u32;
            state.update(&of_rows, total, &arguments)?;
            bytes += state.bytes();
        }
        self.selecting.run.bounded(bytes, total)
    }

    /// The group of each row; the values of new groups are kept.
    fn number(&mut self, keys: &[ArrayRef], rows: usize) -> Result<Vec<usize>, QueryError> {
        let written = Keys::new(keys)?;
        let mut key = Vec::new();
        let mut fresh = Vec::new();
        let mut numbers = Vec::with_capacity(rows);
        for row in 0..rows {
            key.clear();
            written.write(row, &mut key);
            let (number, new) = self.numbers.intern(&key)?;
            if new {
                fresh.push(row as u32);
            }
            numbers.push(number);
        }
        if !fresh.is_empty() {
            let fresh = UInt32Array::from(fresh);
            for (pieces, column) in self.values.iter_mut().zip(keys) {
                pieces.push(take(column, &fresh, None).map_err(QueryError::internal)?);
            }
        }
        Ok(numbers)
    }

    /// The keys' values, the aggregates' results, and how many groups there are.
    fn finish(mut self) -> Result<(Vec<ArrayRef>, Vec<ArrayRef>, usize), QueryError> {
        let (select, total) = (self.selecting.select, self.numbers.len());
        let mut results = Vec::with_capacity(self.aggregates.len());
        for (state, aggregate) in self.aggregates.iter_mut().zip(&select.aggregates) {
            let empty = aggregate.arguments.iter().map(|argument| new_empty_array(&physical(argument.ty)));
            // Of groups without a row nothing has been heard yet.
            state.update(&[], total, &empty.collect::<Vec<_>>())?;
            results.push(state.finish(Emit::All)?);
        }
        let whole = |(pieces, key): (&Vec<ArrayRef>, &Expr)| match pieces.as_slice() {
            [] => Ok(new_empty_array(&physical(key.ty))),
            pieces => {
                let pieces: Vec<_> = pieces.iter().map(AsRef::as_ref).collect();
                concat(&pieces).map_err(QueryError::internal)
            }
        };
        let values = self.values.iter().zip(&select.keys).map(whole).collect::<Result<Vec<_>, _>>()?;
        debug_assert!(values.iter().all(|column| column.len() == total));
        Ok((values, results, total))
    }
}
