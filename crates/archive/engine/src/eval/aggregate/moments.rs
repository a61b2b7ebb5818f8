//! STDDEV and VARIANCE of a sample: divided by one less than the number of values, NULL of fewer than two.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array};

use super::{Accumulator, Emit, numbers, valid};
use crate::error::QueryError;

/// Number, mean and sum of squared differences from the mean, kept by Welford's method.
#[derive(Clone, Copy, Default)]
struct Moment {
    count: i64,
    mean: f64,
    squares: f64,
}

impl Moment {
    #[inline]
    fn add(&mut self, value: f64) {
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }

    /// What one pass over the values of both would have given.
    fn merge(&mut self, other: Self) {
        let count = self.count + other.count;
        if self.count == 0 || other.count == 0 {
            if other.count > 0 {
                *self = other;
            }
            return;
        }
        let off = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.squares += other.squares + off * off * (self.count as f64 * share);
        self.mean += off * share;
        self.count = count;
    }

    fn variance(self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

/// The state of STDDEV (`root`) or VARIANCE.
pub(super) struct Moments {
    groups: Vec<Moment>,
    root: bool,
}

impl Moments {
    pub(super) const fn new(root: bool) -> Self {
        Self { groups: Vec::new(), root }
    }
}

impl Accumulator for Moments {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.groups.resize(total, Moment::default());
        let values = numbers::<Float64Type>(arguments, 0)?;
        valid(values, groups, |group, row| self.groups[group].add(values.value(row)));
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.groups.resize(total, Moment::default());
        let counts = numbers::<Int64Type>(state, 0)?;
        let (means, squares) = (numbers::<Float64Type>(state, 1)?, numbers::<Float64Type>(state, 2)?);
        valid(counts, groups, |group, row| {
            let (count, mean, squares) = (counts.value(row), means.value(row), squares.value(row));
            self.groups[group].merge(Moment { count, mean, squares });
        });
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let taken = emit.take(&mut self.groups);
        let part = |f: fn(&Moment) -> f64| Float64Array::from(taken.iter().map(f).collect::<Vec<_>>());
        let counts = Int64Array::from(taken.iter().map(|one| one.count).collect::<Vec<_>>());
        Ok(vec![Arc::new(counts), Arc::new(part(|one| one.mean)), Arc::new(part(|one| one.squares))])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let root = self.root;
        let result = |one: Moment| one.variance().map(|it| if root { it.sqrt() } else { it });
        Ok(Arc::new(emit.take(&mut self.groups).into_iter().map(result).collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Moment>()
    }
}
