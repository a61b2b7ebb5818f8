//! SUM and AVG.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array};

use super::{Accumulator, Emit, numbers, valid};
use crate::error::QueryError;

/// A sum of reals and what rounding took from it.
#[derive(Clone, Copy, Default)]
struct Precise {
    sum: f64,
    lost: f64,
}

impl Precise {
    #[inline]
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        // The smaller of the two is the one that lost digits.
        self.lost +=
            if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        // Of an infinite sum the loss is NaN and means nothing.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// The sum of whole numbers.
#[derive(Default)]
pub(super) struct WholeSum(Vec<Option<i128>>);

impl WholeSum {
    fn add(&mut self, group: usize, value: i128) {
        let sum = &mut self.0[group];
        // 2^64 values of 64 bits fit into 128.
        *sum = Some(sum.unwrap_or(0).wrapping_add(value));
    }
}

impl Accumulator for WholeSum {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, None);
        let values = numbers::<Int64Type>(arguments, 0)?;
        valid(values, groups, |group, row| self.add(group, values.value(row).into()));
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, None);
        let (high, low) = (numbers::<Int64Type>(state, 0)?, numbers::<Int64Type>(state, 1)?);
        valid(high, groups, |group, row| {
            let low = low.value(row) as u64;
            self.add(group, i128::from(high.value(row)) << 64 | i128::from(low));
        });
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let sums = emit.take(&mut self.0);
        let half = |shift: u32| sums.iter().map(move |sum| sum.map(|sum| (sum >> shift) as i64));
        Ok(vec![Arc::new(half(64).collect::<Int64Array>()), Arc::new(half(0).collect::<Int64Array>())])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let fit = |sum: i128| {
            i64::try_from(sum).map_err(|_| QueryError::invalid(format!("integer overflow in SUM: {sum}")))
        };
        let sums = emit.take(&mut self.0).into_iter().map(|sum| sum.map(fit).transpose());
        Ok(Arc::new(sums.collect::<Result<Int64Array, _>>()?))
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Option<i128>>()
    }
}

/// The sum of reals.
#[derive(Default)]
pub(super) struct RealSum(Vec<Option<Precise>>);

impl RealSum {
    fn at(&mut self, group: usize) -> &mut Precise {
        self.0[group].get_or_insert_default()
    }
}

impl Accumulator for RealSum {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, None);
        let values = numbers::<Float64Type>(arguments, 0)?;
        valid(values, groups, |group, row| self.at(group).add(values.value(row)));
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, None);
        let (sums, lost) = (numbers::<Float64Type>(state, 0)?, numbers::<Float64Type>(state, 1)?);
        valid(sums, groups, |group, row| {
            let at = self.at(group);
            at.add(sums.value(row));
            at.lost += lost.value(row);
        });
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let sums = emit.take(&mut self.0);
        let part = |f: fn(Precise) -> f64| sums.iter().map(move |sum| sum.map(f)).collect::<Float64Array>();
        Ok(vec![Arc::new(part(|sum| sum.sum)), Arc::new(part(|sum| sum.lost))])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let sums = emit.take(&mut self.0).into_iter().map(|sum| sum.map(Precise::value));
        Ok(Arc::new(sums.collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Option<Precise>>()
    }
}

/// The mean of reals.
#[derive(Default)]
pub(super) struct Mean(Vec<(i64, Precise)>);

impl Accumulator for Mean {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, Default::default());
        let values = numbers::<Float64Type>(arguments, 0)?;
        valid(values, groups, |group, row| {
            let (count, sum) = &mut self.0[group];
            *count += 1;
            sum.add(values.value(row));
        });
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.0.resize(total, Default::default());
        let counts = numbers::<Int64Type>(state, 0)?;
        let (sums, lost) = (numbers::<Float64Type>(state, 1)?, numbers::<Float64Type>(state, 2)?);
        valid(counts, groups, |group, row| {
            let (count, sum) = &mut self.0[group];
            *count += counts.value(row);
            sum.add(sums.value(row));
            sum.lost += lost.value(row);
        });
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let means = emit.take(&mut self.0);
        let part = |f: fn(&Precise) -> f64| means.iter().map(|(_, sum)| f(sum)).collect::<Vec<f64>>();
        let counts: Vec<i64> = means.iter().map(|(count, _)| *count).collect();
        Ok(vec![
            Arc::new(Int64Array::from(counts)),
            Arc::new(Float64Array::from(part(|sum| sum.sum))),
            Arc::new(Float64Array::from(part(|sum| sum.lost))),
        ])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let mean = |(count, sum): (i64, Precise)| (count > 0).then(|| sum.value() / count as f64);
        Ok(Arc::new(emit.take(&mut self.0).into_iter().map(mean).collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<(i64, Precise)>()
    }
}
