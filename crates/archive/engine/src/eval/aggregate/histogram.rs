//! `ivo_histogram`: how many values fall into each of some bins of equal width, and how many below and above.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, Float64Array, ListArray};
use arrow_schema::DataType;
use trifid_archive_model::batch::item;

use super::{Accumulator, Emit, column, numbers};
use crate::error::QueryError;
use crate::eval::cells::mismatch;
use crate::limits::HISTOGRAM_BINS;

/// The bins of a group: `counts` has one more at each end.
#[derive(Clone)]
struct Bins {
    low: f64,
    high: f64,
    counts: Box<[i64]>,
}

impl Bins {
    fn new(low: f64, high: f64, bins: i64) -> Result<Self, QueryError> {
        if !(low < high && (high - low).is_finite()) {
            return Err(QueryError::invalid(format!("a histogram from {low} to {high} has no bins")));
        }
        match usize::try_from(bins) {
            Ok(bins @ 1..=HISTOGRAM_BINS) => {
                Ok(Self { low, high, counts: vec![0; bins + 2].into_boxed_slice() })
            }
            _ => Err(QueryError::invalid(format!(
                "a histogram has 1 to {HISTOGRAM_BINS} bins; {bins} were asked for"
            ))),
        }
    }

    fn fits(&self, low: f64, high: f64, counts: usize) -> bool {
        self.low == low && self.high == high && self.counts.len() == counts
    }

    /// The bin of a value; the upper bound belongs to what is above, and so does NaN.
    fn place(&self, value: Option<f64>) -> usize {
        let (inner, Some(value)) = (self.counts.len() - 2, value) else { return 0 };
        if value < self.low {
            return 0;
        }
        if value >= self.high || value.is_nan() {
            return inner + 1;
        }
        let share = (value - self.low) / (self.high - self.low);
        // The share may round up to 1.
        1 + ((share * inner as f64) as usize).min(inner - 1)
    }
}

/// The histograms of all groups.
#[derive(Default)]
pub(super) struct Histogram {
    groups: Vec<Option<Bins>>,
    bytes: usize,
}

impl Histogram {
    /// The bins of a group, which every row must describe alike.
    fn bins(&mut self, group: usize, low: f64, high: f64, bins: i64) -> Result<&mut Bins, QueryError> {
        let slot = &mut self.groups[group];
        if let Some(found) = slot
            && !found.fits(low, high, usize::try_from(bins).map_or(0, |bins| bins.saturating_add(2)))
        {
            return Err(QueryError::invalid("the bounds of a histogram are not the same in all rows"));
        }
        if slot.is_none() {
            let new = Bins::new(low, high, bins)?;
            self.bytes += new.counts.len() * size_of::<i64>();
            *slot = Some(new);
        }
        Ok(slot.as_mut().expect("filled above where it was empty"))
    }
}

impl Accumulator for Histogram {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.groups.resize(total, None);
        let values = numbers::<Float64Type>(arguments, 0)?;
        let (low, high) = (numbers::<Float64Type>(arguments, 1)?, numbers::<Float64Type>(arguments, 2)?);
        let bins = numbers::<Int64Type>(arguments, 3)?;
        for (row, group) in groups.iter().enumerate() {
            if low.is_null(row) || high.is_null(row) || bins.is_null(row) {
                continue;
            }
            let into = self.bins(*group, low.value(row), high.value(row), bins.value(row))?;
            let place = into.place(values.is_valid(row).then(|| values.value(row)));
            into.counts[place] += 1;
        }
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.groups.resize(total, None);
        let (low, high) = (numbers::<Float64Type>(state, 0)?, numbers::<Float64Type>(state, 1)?);
        let array = column(state, 2)?;
        let lists = array.as_list_opt::<i32>().ok_or_else(|| mismatch(array))?;
        let counts = lists.values().as_primitive_opt::<Int64Type>().ok_or_else(|| mismatch(array))?;
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| lists.is_valid(*row)) {
            let (start, end) = (lists.value_offsets()[row] as usize, lists.value_offsets()[row + 1] as usize);
            let bins = self.bins(*group, low.value(row), high.value(row), (end - start) as i64 - 2)?;
            bins.counts.iter_mut().zip(&counts.values()[start..end]).for_each(|(sum, count)| *sum += count);
        }
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let taken = emit.take(&mut self.groups);
        let bound =
            |f: fn(&Bins) -> f64| taken.iter().map(|one| one.as_ref().map(f)).collect::<Float64Array>();
        let bounds = (bound(|bins| bins.low), bound(|bins| bins.high));
        Ok(vec![Arc::new(bounds.0), Arc::new(bounds.1), Arc::new(lists(&taken))])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        Ok(Arc::new(lists(&emit.take(&mut self.groups))))
    }

    fn bytes(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Option<Bins>>()
    }
}

fn lists(groups: &[Option<Bins>]) -> ListArray {
    let mut builder = ListBuilder::new(Int64Builder::new()).with_field(item(DataType::Int64));
    for bins in groups {
        match bins {
            None => builder.append_null(),
            Some(bins) => {
                builder.values().append_slice(&bins.counts);
                builder.append(true);
            }
        }
    }
    builder.finish()
}
