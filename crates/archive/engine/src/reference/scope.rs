//! The rows that expressions of a select are computed for, and the rows around them.
//!
//! A query in an expression runs anew for each row that it refers to: the row becomes a [`Frame`] whose values
//! are constants inside. A query that refers to nothing runs once.

use std::rc::Rc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, new_null_array};
use arrow_select::concat::concat;
use trifid_archive_adql::tree::{ColumnRef, Query};
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::physical;

use super::block::Block;
use super::run::Run;
use crate::error::QueryError;
use crate::eval::keys::{Interner, Keys};
use crate::eval::{Cells, Input, Subquery};
use std::ops::ControlFlow;

/// A row of a select further out.
pub(super) struct Frame<'a> {
    input: &'a dyn Input,
    row: usize,
    outer: Option<&'a Self>,
}

impl Frame<'_> {
    /// The value of a column that is `depth` selects further out than this one (0: this one's).
    fn value(&self, depth: u16, at: ColumnRef) -> Result<ArrayRef, QueryError> {
        let mut frame = self;
        for _ in 0..depth {
            frame = frame.outer.ok_or_else(|| absent(at))?;
        }
        match frame.input.column(ColumnRef { depth: 0, ..at })? {
            Cells::Array(array) => Ok(array.slice(frame.row, 1)),
            Cells::Constant(array, _) => Ok(array),
        }
    }
}

fn absent(at: ColumnRef) -> QueryError {
    QueryError::internal(format_args!("no column {at:?} here"))
}

/// What rows of a select are.
pub(super) enum Source<'a> {
    /// Rows of FROM.
    Rows(&'a Block),
    /// Groups: values of the keys and results of the aggregates.
    Groups { values: &'a [ArrayRef], aggregates: &'a [ArrayRef], rows: usize },
}

/// Rows of a select.
pub(super) struct Scope<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) outer: Option<&'a Frame<'a>>,
    pub(super) source: Source<'a>,
    /// The number of the first row.
    pub(super) first: u64,
}

impl Input for Scope<'_> {
    fn rows(&self) -> usize {
        match &self.source {
            Source::Rows(block) => block.rows,
            Source::Groups { rows, .. } => *rows,
        }
    }

    fn column(&self, at: ColumnRef) -> Result<Cells, QueryError> {
        if let Some(depth) = at.depth.checked_sub(1) {
            let frame = self.outer.ok_or_else(|| absent(at))?;
            return Ok(Cells::Constant(frame.value(depth, at)?, self.rows()));
        }
        let array = match &self.source {
            Source::Rows(block) => block.column(at),
            Source::Groups { .. } => None,
        };
        array.cloned().map(Cells::Array).ok_or_else(|| absent(at))
    }

    fn key(&self, index: usize) -> Result<Cells, QueryError> {
        match &self.source {
            Source::Groups { values, .. } => values.get(index).cloned().map(Cells::Array),
            Source::Rows(_) => None,
        }
        .ok_or_else(|| QueryError::internal(format_args!("no key {index} here")))
    }

    fn aggregate(&self, index: usize) -> Result<Cells, QueryError> {
        match &self.source {
            Source::Groups { aggregates, .. } => aggregates.get(index).cloned().map(Cells::Array),
            Source::Rows(_) => None,
        }
        .ok_or_else(|| QueryError::internal(format_args!("no aggregate {index} here")))
    }

    fn subquery(&self, ask: &Subquery<'_>, rows: Option<&[u32]>) -> Result<Cells, QueryError> {
        let count = rows.map_or(self.rows(), <[u32]>::len);
        let query = match ask {
            Subquery::Exists(query) | Subquery::Contains(query, _) | Subquery::Value(query) => query,
        };
        if self.run.is_independent(query) {
            let answer = self.run.answer(query, None, ask)?;
            return answer.to_all(ask, count);
        }
        let row = |place: usize| rows.map_or(place, |rows| rows[place] as usize);
        let answers = (0..count).map(|place| {
            let frame = Frame { input: self, row: row(place), outer: self.outer };
            self.run.answer(query, Some(&frame), ask)?.to_one(ask, place)
        });
        joined(&answers.collect::<Result<Vec<_>, _>>()?, ask)
    }

    fn row(&self, place: usize) -> u64 {
        self.first + place as u64
    }
}

/// One answer after the other.
fn joined(answers: &[ArrayRef], ask: &Subquery<'_>) -> Result<Cells, QueryError> {
    if answers.is_empty() {
        return Ok(Cells::Array(new_null_array(&physical(ask_type(ask)), 0)));
    }
    let answers: Vec<_> = answers.iter().map(AsRef::as_ref).collect();
    concat(&answers).map(Cells::Array).map_err(QueryError::internal)
}

fn ask_type(ask: &Subquery<'_>) -> Type {
    match ask {
        Subquery::Exists(_) | Subquery::Contains(..) => Type::Boolean,
        Subquery::Value(query) => query.fields.first().map_or(Type::Null, |field| field.ty),
    }
}

/// What a query answered.
#[derive(Clone)]
pub(super) enum Answer {
    /// Whether it has rows.
    Exists(bool),
    /// Its values.
    Among(Rc<Members>),
    /// Its only value, NULL without rows.
    Value(ArrayRef),
}

/// The values of a query's only column.
#[derive(Default)]
pub(super) struct Members {
    values: Interner,
    null: bool,
    any: bool,
}

impl Members {
    fn add(&mut self, column: &[ArrayRef], rows: usize) -> Result<(), QueryError> {
        let keys = Keys::new(column)?;
        let mut key = Vec::new();
        for row in 0..rows {
            self.any = true;
            if keys.any_null(row) {
                self.null = true;
                continue;
            }
            key.clear();
            keys.write(row, &mut key);
            self.values.intern(&key)?;
        }
        Ok(())
    }

    /// Three-valued: whether it is here.
    fn has(&self, keys: &Keys<'_>, row: usize) -> Option<bool> {
        if !self.any {
            return Some(false);
        }
        if keys.any_null(row) {
            return None;
        }
        let mut key = Vec::new();
        keys.write(row, &mut key);
        match self.values.find(&key) {
            Some(_) => Some(true),
            None if self.null => None,
            None => Some(false),
        }
    }
}

impl Answer {
    /// Runs a query for what is asked of it.
    pub(super) fn of(
        run: &Run<'_>,
        query: &Query,
        outer: Option<&Frame<'_>>,
        ask: &Subquery<'_>,
    ) -> Result<Self, QueryError> {
        match ask {
            Subquery::Exists(_) => Self::exists(run, query, outer),
            Subquery::Contains(..) => Self::among(run, query, outer),
            Subquery::Value(_) => Self::value(run, query, outer, ask_type(ask)),
        }
    }

    fn exists(run: &Run<'_>, query: &Query, outer: Option<&Frame<'_>>) -> Result<Self, QueryError> {
        let mut any = false;
        let _ = run.query(query, outer, &mut |rows| {
            any |= rows.count > 0;
            Ok(if any { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(Self::Exists(any))
    }

    fn among(run: &Run<'_>, query: &Query, outer: Option<&Frame<'_>>) -> Result<Self, QueryError> {
        let mut members = Members::default();
        let _ = run.query(query, outer, &mut |rows| {
            members.add(&rows.columns, rows.count)?;
            run.bounded(members.values.size(), members.values.len())?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self::Among(Rc::new(members)))
    }

    fn value(run: &Run<'_>, query: &Query, outer: Option<&Frame<'_>>, ty: Type) -> Result<Self, QueryError> {
        let mut found = None;
        let _ = run.query(query, outer, &mut |rows| {
            if rows.count > 1 || (rows.count == 1 && found.is_some()) {
                return Err(QueryError::invalid("a query that is used as a value gave more than one row"));
            }
            if rows.count == 1 {
                found = rows.columns.first().cloned();
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self::Value(found.unwrap_or_else(|| new_null_array(&physical(ty), 1))))
    }

    /// The answer to each of `count` rows, where it is the same query for all.
    fn to_all(&self, ask: &Subquery<'_>, count: usize) -> Result<Cells, QueryError> {
        match (self, ask) {
            (Self::Among(members), Subquery::Contains(_, values)) => {
                let columns = std::slice::from_ref(*values);
                let keys = Keys::new(columns)?;
                let found: BooleanArray = (0..count).map(|place| members.has(&keys, place)).collect();
                Ok(Cells::Array(std::sync::Arc::new(found)))
            }
            _ => Ok(Cells::Constant(self.to_one(ask, 0)?, count)),
        }
    }

    /// The answer to the row at a place, as an array of one.
    fn to_one(&self, ask: &Subquery<'_>, place: usize) -> Result<ArrayRef, QueryError> {
        let truth =
            |truth: Option<bool>| -> ArrayRef { std::sync::Arc::new(BooleanArray::from(vec![truth])) };
        match (self, ask) {
            (Self::Exists(any), _) => Ok(truth(Some(*any))),
            (Self::Value(value), _) => Ok(value.clone()),
            (Self::Among(members), Subquery::Contains(_, values)) => {
                let columns = std::slice::from_ref(*values);
                Ok(truth(members.has(&Keys::new(columns)?, place)))
            }
            (Self::Among(_), _) => Err(QueryError::internal("an answer to another question")),
        }
    }
}
