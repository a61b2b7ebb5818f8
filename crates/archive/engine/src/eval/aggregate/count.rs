//! COUNT.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array};

use super::{Accumulator, Emit, numbers, valid};
use crate::error::QueryError;

/// Rows, or values that are not NULL.
#[derive(Default)]
pub(super) struct Count(Vec<i64>);

impl Accumulator for Count {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, 0);
        match arguments.first() {
            None => groups.iter().for_each(|group| self.0[*group] += 1),
            Some(column) => valid(column, groups, |group, _| self.0[group] += 1),
        }
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, 0);
        let counts = numbers::<Int64Type>(state, 0)?;
        valid(counts, groups, |group, row| self.0[group] += counts.value(row));
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        Ok(vec![self.finish(emit)?])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        Ok(Arc::new(Int64Array::from(emit.take(&mut self.0))))
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<i64>()
    }
}
