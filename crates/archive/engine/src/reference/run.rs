//! Queries: bodies, set operations, order, OFFSET and TOP.
//!
//! Rows are pushed: whoever makes them calls whoever wants them, batch by batch, and is told when nobody wants any
//! more. So nothing is held that does not have to be: an order, the right side of a join or of a set operation,
//! groups, and answers that are asked for more than once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, UInt32Array};
use arrow_select::take::take;
use trifid_archive_adql::lift::is_correlated;
use trifid_archive_adql::tree::{Body, Literal, Query, SetOperator, TableRef, Value};
use trifid_archive_adql::types::Type;

use super::order::Sorter;
use super::scope::{Answer, Frame};
use super::{Cancel, Limits, select};
use crate::catalogue::Tables;
use crate::error::QueryError;
use crate::eval::keys::{Interner, Keys};
use crate::eval::{Context, Subquery};
use crate::table::Table;

/// Whether more rows are wanted.
pub(super) type Flow = ControlFlow<()>;

/// Receives rows.
pub(super) type RowSink<'s> = dyn FnMut(Rows) -> Result<Flow, QueryError> + 's;

/// Rows of a query.
#[derive(Clone)]
pub(super) struct Rows {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) count: usize,
}

impl Rows {
    /// The rows with these numbers.
    pub(super) fn take(&self, rows: &UInt32Array) -> Result<Self, QueryError> {
        let column = |array: &ArrayRef| take(array, rows, None).map_err(QueryError::internal);
        Ok(Self { columns: self.columns.iter().map(column).collect::<Result<_, _>>()?, count: rows.len() })
    }

    /// Consecutive rows.
    pub(super) fn slice(&self, from: usize, count: usize) -> Self {
        Self { columns: self.columns.iter().map(|array| array.slice(from, count)).collect(), count }
    }

    /// Memory that its values take.
    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().map(bytes).sum()
    }
}

/// Memory that an array's values take, without those of the buffers that it only has a part of.
pub(super) fn bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

/// A query while it runs.
pub(super) struct Run<'a> {
    tables: &'a Tables,
    limits: Limits,
    cancel: &'a Cancel,
    seed: u64,
    /// By the address of a query: whether it refers to rows around it.
    independent: RefCell<HashMap<*const Query, bool>>,
    /// By the address of a query that refers to none, and by what was asked: what it answered.
    answers: RefCell<HashMap<(*const Query, &'static str), Answer>>,
    /// Rows of derived tables that are run more than once.
    derived: RefCell<HashMap<*const Query, Option<Vec<Rows>>>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(tables: &'a Tables, limits: Limits, cancel: &'a Cancel, seed: u64) -> Self {
        Self {
            tables,
            limits,
            cancel,
            seed,
            independent: RefCell::default(),
            answers: RefCell::default(),
            derived: RefCell::default(),
        }
    }

    /// What expressions at a place are computed with.
    pub(super) const fn context(&self, place: u32) -> Context {
        Context { seed: self.seed, place }
    }

    /// Ends the query if nobody wants it any more.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        self.cancel.check()
    }

    /// Refuses to hold more than is allowed.
    pub(super) fn bounded(&self, bytes: usize, rows: usize) -> Result<(), QueryError> {
        self.check()?;
        if rows > self.limits.rows {
            let message = format!("the query needs more than {} rows in memory at once", self.limits.rows);
            return Err(QueryError::TooLarge(message.into()));
        }
        if bytes > self.limits.bytes {
            let message = format!("the query needs more than {} MiB of memory", self.limits.bytes >> 20);
            return Err(QueryError::TooLarge(message.into()));
        }
        Ok(())
    }

    /// A table of the catalogue.
    pub(super) fn table(&self, table: &TableRef) -> Result<&'a Arc<Table>, QueryError> {
        let gone = || QueryError::internal(format_args!("no table {}.{}", table.schema, table.table));
        self.tables.get(&table.schema, &table.table).ok_or_else(gone)
    }

    /// Whether a query refers to no row around it.
    pub(super) fn is_independent(&self, query: &Arc<Query>) -> bool {
        *self.independent.borrow_mut().entry(Arc::as_ptr(query)).or_insert_with(|| !is_correlated(query))
    }

    /// What a query answers. Without rows around it, it is asked once.
    pub(super) fn answer(
        &self,
        query: &Arc<Query>,
        outer: Option<&Frame<'_>>,
        ask: &Subquery<'_>,
    ) -> Result<Answer, QueryError> {
        if outer.is_some() {
            return Answer::of(self, query, outer, ask);
        }
        let place = (Arc::as_ptr(query), question(ask));
        if let Some(answer) = self.answers.borrow().get(&place) {
            return Ok(answer.clone());
        }
        let answer = Answer::of(self, query, None, ask)?;
        self.answers.borrow_mut().insert(place, answer.clone());
        Ok(answer)
    }

    /// Rows of a derived table, which sees nothing around it. The second time that one is asked for, its rows
    /// are kept for the third.
    pub(super) fn derived(&self, query: &Arc<Query>, sink: &mut RowSink<'_>) -> Result<Flow, QueryError> {
        let place = Arc::as_ptr(query);
        let known = self.derived.borrow().get(&place).cloned();
        match known {
            None => {
                self.derived.borrow_mut().insert(place, None);
                self.query(query, None, sink)
            }
            Some(None) => {
                let kept = self.collected(query)?;
                self.derived.borrow_mut().insert(place, Some(kept.clone()));
                pushed(kept, sink)
            }
            Some(Some(kept)) => pushed(kept, sink),
        }
    }

    fn collected(&self, query: &Query) -> Result<Vec<Rows>, QueryError> {
        let mut kept: Vec<Rows> = Vec::new();
        let (mut bytes, mut count) = (0, 0);
        let _ = self.query(query, None, &mut |rows| {
            bytes += rows.bytes();
            count += rows.count;
            self.bounded(bytes, count)?;
            kept.push(rows);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(kept)
    }

    /// Rows of a query: as many columns as it has fields.
    pub(super) fn query(
        &self,
        query: &Query,
        outer: Option<&Frame<'_>>,
        sink: &mut RowSink<'_>,
    ) -> Result<Flow, QueryError> {
        self.check()?;
        let mut window = Window::new(query)?;
        if window.is_over() {
            return Ok(ControlFlow::Continue(()));
        }
        let shown = query.fields.len();
        let mut stopped = false;
        let mut out = |mut rows: Rows| {
            rows.columns.truncate(shown);
            let rows = window.cut(&rows);
            if rows.count > 0 && sink(rows)?.is_break() {
                stopped = true;
                return Ok(ControlFlow::Break(()));
            }
            Ok(if window.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        if query.order.is_empty() {
            let _ = self.body(&query.body, outer, &mut out)?;
        } else {
            let mut sorter = Sorter::new(self, query, types(query), Window::new(query)?.last());
            let _ = self.body(&query.body, outer, &mut |rows| {
                sorter.add(rows)?;
                Ok(ControlFlow::Continue(()))
            })?;
            let _ = pushed(sorter.finish()?, &mut out)?;
        }
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn body(
        &self,
        body: &Body,
        outer: Option<&Frame<'_>>,
        sink: &mut RowSink<'_>,
    ) -> Result<Flow, QueryError> {
        match body {
            Body::Select(select) => select::select(self, select, outer, sink),
            Body::Set { operator: SetOperator::Union, all: true, left, right } => {
                match self.query(left, outer, sink)? {
                    ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
                    ControlFlow::Continue(()) => self.query(right, outer, sink),
                }
            }
            Body::Set { operator: SetOperator::Union, all: false, left, right } => {
                let mut seen = Counted::default();
                let mut fresh = |rows: Rows| {
                    let fresh = seen.rows_where(self, &rows, |count| {
                        *count += 1;
                        *count == 1
                    })?;
                    sink(fresh)
                };
                match self.query(left, outer, &mut fresh)? {
                    ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
                    ControlFlow::Continue(()) => self.query(right, outer, &mut fresh),
                }
            }
            Body::Set { operator, all, left, right } => {
                let mut counted = Counted::default();
                let _ = self.query(right, outer, &mut |rows| {
                    let _ = counted.rows_where(self, &rows, |count| {
                        *count += 1;
                        false
                    })?;
                    Ok(ControlFlow::Continue(()))
                })?;
                let keeps = membership(*operator, *all);
                self.query(left, outer, &mut |rows| sink(counted.rows_where(self, &rows, keeps)?))
            }
        }
    }
}

const fn question(ask: &Subquery<'_>) -> &'static str {
    match ask {
        Subquery::Exists(_) => "exists",
        Subquery::Contains(..) => "contains",
        Subquery::Value(_) => "value",
    }
}

/// Whether a row of the left side stays, by how many equal ones the right side (still) has. Without ALL a row that
/// stayed must not stay again, which a count below zero remembers.
fn membership(operator: SetOperator, all: bool) -> fn(&mut i64) -> bool {
    match (operator, all) {
        (SetOperator::Intersect, true) => |count| {
            let stays = *count > 0;
            *count -= i64::from(stays);
            stays
        },
        (SetOperator::Intersect, false) => |count| std::mem::replace(count, 0) > 0,
        (_, true) => |count| {
            let stays = *count == 0;
            *count -= i64::from(!stays);
            stays
        },
        (_, false) => |count| std::mem::replace(count, 1) == 0,
    }
}

/// Distinct rows and a number for each.
#[derive(Default)]
struct Counted {
    rows: Interner,
    counts: Vec<i64>,
}

impl Counted {
    /// The rows for whose number `f` is true; a new row's number is 0.
    fn rows_where(
        &mut self,
        run: &Run<'_>,
        rows: &Rows,
        f: impl Fn(&mut i64) -> bool,
    ) -> Result<Rows, QueryError> {
        let keys = Keys::new(&rows.columns)?;
        let mut key = Vec::new();
        let mut chosen = Vec::new();
        for row in 0..rows.count {
            key.clear();
            keys.write(row, &mut key);
            let (number, new) = self.rows.intern(&key)?;
            if new {
                self.counts.push(0);
            }
            if f(&mut self.counts[number]) {
                chosen.push(row as u32);
            }
        }
        run.bounded(self.rows.size(), self.rows.len())?;
        rows.take(&UInt32Array::from(chosen))
    }
}

fn pushed(all: Vec<Rows>, sink: &mut RowSink<'_>) -> Result<Flow, QueryError> {
    for rows in all {
        if sink(rows)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The types of a body's columns, hidden ones included.
fn types(query: &Query) -> Vec<Type> {
    match &query.body {
        Body::Select(select) => select.items.iter().map(|item| item.ty).collect(),
        Body::Set { .. } => query.fields.iter().map(|field| field.ty).collect(),
    }
}

/// OFFSET and TOP: the offset counts first (ADQL 2.1 4.10.1).
struct Window {
    skip: u64,
    left: Option<u64>,
}

impl Window {
    fn new(query: &Query) -> Result<Self, QueryError> {
        let skip = query.offset.as_ref().map(|literal| count(literal, "OFFSET")).transpose()?;
        let left = query.top.as_ref().map(|literal| count(literal, "TOP")).transpose()?;
        Ok(Self { skip: skip.unwrap_or(0), left })
    }

    /// How many rows are needed to fill it.
    fn last(&self) -> Option<u64> {
        self.left.map(|left| left.saturating_add(self.skip))
    }

    fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// The rows that are in it.
    fn cut(&mut self, rows: &Rows) -> Rows {
        let count = rows.count as u64;
        let skipped = self.skip.min(count);
        self.skip -= skipped;
        let taken = self.left.map_or(count - skipped, |left| left.min(count - skipped));
        self.left = self.left.map(|left| left - taken);
        rows.slice(skipped as usize, taken as usize)
    }
}

fn count(literal: &Literal, what: &str) -> Result<u64, QueryError> {
    match literal.value {
        Value::Integer(number) => {
            u64::try_from(number).map_err(|_| QueryError::invalid(format!("{what} {number} is negative")))
        }
        ref other => Err(QueryError::internal(format_args!("{what} {other:?}"))),
    }
}
