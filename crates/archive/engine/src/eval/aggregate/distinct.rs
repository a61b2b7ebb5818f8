//! DISTINCT: an aggregate that is given each combination of arguments once for each group.
//!
//! The values are kept, because two parts of a table may each have a value that counts once only in both: the
//! state of a group is the list of its values.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, ListArray, UInt32Array, new_empty_array};
use arrow_buffer::OffsetBuffer;
use arrow_select::concat::concat;
use arrow_select::take::take;
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::{item, physical};

use super::{Accumulator, Emit, column};
use crate::error::QueryError;
use crate::eval::cells::mismatch;
use crate::eval::keys::{Interner, Keys};

/// An accumulator, and what it has been given.
pub(super) struct Distinct {
    inner: Box<dyn Accumulator>,
    types: Vec<Type>,
    seen: Interner,
    /// The group of each kept row.
    groups: Vec<usize>,
    /// The kept rows, argument by argument, as they came.
    kept: Vec<Vec<ArrayRef>>,
    total: usize,
}

impl Distinct {
    pub(super) fn new(inner: Box<dyn Accumulator>, types: Vec<Type>) -> Self {
        let kept = types.iter().map(|_| Vec::new()).collect();
        Self { inner, types, seen: Interner::default(), groups: Vec::new(), kept, total: 0 }
    }

    /// The rows whose values are new to their groups. Rows with a NULL never are: nothing is made of them.
    fn fresh(&mut self, groups: &[usize], arguments: &[ArrayRef]) -> Result<Vec<u32>, QueryError> {
        let keys = Keys::new(arguments)?;
        let mut fresh = Vec::new();
        let mut key = Vec::new();
        for (row, group) in groups.iter().enumerate() {
            if keys.any_null(row) {
                continue;
            }
            key.clear();
            key.extend((*group as u64).to_le_bytes());
            keys.write(row, &mut key);
            if self.seen.intern(&key)?.1 {
                fresh.push(row as u32);
            }
        }
        Ok(fresh)
    }

    fn joined(&self) -> Result<Vec<ArrayRef>, QueryError> {
        let whole = |(pieces, ty): (&Vec<ArrayRef>, &Type)| match pieces.as_slice() {
            [] => Ok(new_empty_array(&physical(*ty))),
            pieces => {
                let pieces: Vec<_> = pieces.iter().map(AsRef::as_ref).collect();
                concat(&pieces).map_err(QueryError::internal)
            }
        };
        self.kept.iter().zip(&self.types).map(whole).collect()
    }

    /// Leaves only the groups from `count` on, with new numbers.
    fn forget(&mut self, count: usize) -> Result<(), QueryError> {
        if count >= self.total {
            self.total = 0;
            self.seen = Interner::default();
            self.groups = Vec::new();
            self.kept.iter_mut().for_each(Vec::clear);
            return Ok(());
        }
        let (groups, columns) = (std::mem::take(&mut self.groups), self.joined()?);
        let (inner_rows, inner_groups): (Vec<u32>, Vec<usize>) = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| **group >= count)
            .map(|(row, group)| (row as u32, group - count))
            .unzip();
        self.seen = Interner::default();
        self.kept.iter_mut().for_each(Vec::clear);
        self.total -= count;
        let columns = picked(&columns, inner_rows)?;
        self.fresh(&inner_groups, &columns)?;
        self.groups = inner_groups;
        self.kept.iter_mut().zip(columns).for_each(|(pieces, column)| pieces.push(column));
        Ok(())
    }

    fn taken(&self, emit: Emit) -> usize {
        match emit {
            Emit::All => self.total,
            Emit::First(count) => count.min(self.total),
        }
    }
}

fn picked(columns: &[ArrayRef], rows: Vec<u32>) -> Result<Vec<ArrayRef>, QueryError> {
    let rows = UInt32Array::from(rows);
    columns.iter().map(|column| take(column, &rows, None).map_err(QueryError::internal)).collect()
}

impl Accumulator for Distinct {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.total = total;
        let fresh = self.fresh(groups, arguments)?;
        let groups: Vec<usize> = fresh.iter().map(|row| groups[*row as usize]).collect();
        let columns = picked(arguments, fresh)?;
        self.inner.update(&groups, total, &columns)?;
        if !groups.is_empty() {
            self.groups.extend(groups);
            self.kept.iter_mut().zip(columns).for_each(|(pieces, column)| pieces.push(column));
        }
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        let array = column(state, 0)?;
        let lists = array.as_list_opt::<i32>().ok_or_else(|| mismatch(array))?;
        let mut rows = Vec::new();
        let mut of_rows = Vec::new();
        for (list, group) in groups.iter().enumerate().filter(|(list, _)| lists.is_valid(*list)) {
            let items = lists.value_offsets()[list] as u32..lists.value_offsets()[list + 1] as u32;
            of_rows.extend(items.clone().map(|_| *group));
            rows.extend(items);
        }
        let values = |array: &ArrayRef| array.as_list_opt::<i32>().map(|list| list.values().clone());
        let columns: Option<Vec<ArrayRef>> = state.iter().map(values).collect();
        let columns = picked(&columns.ok_or_else(|| mismatch(array))?, rows)?;
        self.update(&of_rows, total, &columns)
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let count = self.taken(emit);
        let mut rows: Vec<u32> = (0..self.groups.len() as u32).collect();
        rows.retain(|row| self.groups[*row as usize] < count);
        // Stable: within a group the order of the rows stays.
        rows.sort_by_key(|row| self.groups[*row as usize]);
        let mut lengths = vec![0; count];
        rows.iter().for_each(|row| lengths[self.groups[*row as usize]] += 1);
        let columns = picked(&self.joined()?, rows)?;
        let lists = columns.into_iter().map(|column| -> ArrayRef {
            let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
            Arc::new(ListArray::new(item(column.data_type().clone()), offsets, column, None))
        });
        let lists = lists.collect();
        self.inner.finish(emit)?;
        self.forget(count)?;
        Ok(lists)
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let result = self.inner.finish(emit)?;
        self.forget(self.taken(emit))?;
        Ok(result)
    }

    fn bytes(&self) -> usize {
        let arrays = self.kept.iter().flatten().map(|array| array.get_array_memory_size());
        self.inner.bytes()
            + self.seen.size()
            + self.groups.capacity() * size_of::<usize>()
            + arrays.sum::<usize>()
    }
}
