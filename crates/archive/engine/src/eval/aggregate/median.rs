//! MEDIAN: the middle value, or the mean of the two in the middle.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;
use trifid_archive_model::batch::item;

use super::{Accumulator, Emit, column, numbers, valid};
use crate::error::QueryError;
use crate::eval::cells::mismatch;
use crate::eval::compare::Ordered as _;

/// All values with their groups, in the order in which they came.
#[derive(Default)]
pub(super) struct Median {
    values: Vec<(usize, f64)>,
    groups: usize,
}

impl Median {
    /// The values of the groups that are taken, one group after the other, and where each ends.
    fn take(&mut self, emit: Emit) -> (Vec<f64>, Vec<usize>) {
        let count = match emit {
            Emit::All => self.groups,
            Emit::First(count) => count.min(self.groups),
        };
        let mut ends = vec![0; count];
        self.values.iter().filter(|(group, _)| *group < count).for_each(|(group, _)| ends[*group] += 1);
        let mut sum = 0;
        let mut next: Vec<usize> = Vec::with_capacity(count);
        for end in &mut ends {
            next.push(sum);
            sum += *end;
            *end = sum;
        }
        let mut sorted = vec![0.0; sum];
        for (group, value) in self.values.iter().filter(|(group, _)| *group < count) {
            sorted[next[*group]] = *value;
            next[*group] += 1;
        }
        self.values.retain(|(group, _)| *group >= count);
        self.values.iter_mut().for_each(|(group, _)| *group -= count);
        self.groups -= count;
        (sorted, ends)
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    let half = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, middle, _) = values.select_nth_unstable_by(half, |a, b| a.order(*b));
    let middle = *middle;
    if !even {
        return Some(middle);
    }
    let other = below.iter().copied().max_by(|a, b| a.order(*b))?;
    // Not (a + b) / 2, which may overflow.
    Some(if other == middle { middle } else { other / 2.0 + middle / 2.0 })
}

impl Accumulator for Median {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.groups = total;
        let values = numbers::<Float64Type>(arguments, 0)?;
        valid(values, groups, |group, row| self.values.push((group, values.value(row))));
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.groups = total;
        let array = column(state, 0)?;
        let lists = array.as_list_opt::<i32>().ok_or_else(|| mismatch(array))?;
        let values = lists.values().as_primitive_opt::<Float64Type>().ok_or_else(|| mismatch(array))?;
        let offsets = lists.value_offsets();
        valid(lists, groups, |group, row| {
            let of_row = offsets[row] as usize..offsets[row + 1] as usize;
            self.values.extend(values.values()[of_row].iter().map(|value| (group, *value)));
        });
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let (values, ends) = self.take(emit);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let lengths = starts.zip(&ends).map(|(start, end)| end - start);
        let offsets = OffsetBuffer::from_lengths(lengths);
        let values = Arc::new(Float64Array::from(values));
        Ok(vec![Arc::new(ListArray::new(item(DataType::Float64), offsets, values, None))])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let (mut values, ends) = self.take(emit);
        let mut start = 0;
        let medians =
            ends.into_iter().map(|end| median(&mut values[std::mem::replace(&mut start, end)..end]));
        Ok(Arc::new(medians.collect::<Float64Array>()))
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<(usize, f64)>()
    }
}
