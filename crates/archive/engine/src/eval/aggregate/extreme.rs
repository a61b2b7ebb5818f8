//! MIN and MAX, of anything that has an order.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt8Type,
};
use arrow_array::{ArrayRef, BooleanArray, NullArray, PrimitiveArray, StringArray};
use trifid_archive_adql::types::Type;

use super::{Accumulator, Emit, column, numbers, valid};
use crate::error::QueryError;
use crate::eval::cells::mismatch;
use crate::eval::compare::{Ordered, by_order, not_ordered};

/// The accumulator for a type. A value takes another's place if it compares to it like `wanted`.
pub(super) fn new(ty: Type, wanted: Ordering) -> Result<Box<dyn Accumulator>, QueryError> {
    by_order!(ty,
        T => Ok(Box::new(Numbers::<T> { best: Vec::new(), wanted })),
        text: Ok(Box::new(Texts { best: Vec::new(), bytes: 0, wanted })),
        truth: Ok(Box::new(Truths { best: Vec::new(), wanted })),
        null: Ok(Box::new(Nothing(0))))
}

struct Numbers<T: ArrowPrimitiveType> {
    best: Vec<Option<T::Native>>,
    wanted: Ordering,
}

impl<T: ArrowPrimitiveType<Native: Ordered>> Accumulator for Numbers<T> {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.best.resize(total, None);
        let values = numbers::<T>(arguments, 0)?;
        valid(values, groups, |group, row| {
            let (value, best) = (values.value(row), &mut self.best[group]);
            if best.is_none_or(|best| value.order(best) == self.wanted) {
                *best = Some(value);
            }
        });
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.update(groups, total, state)
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        Ok(vec![self.finish(emit)?])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        Ok(Arc::new(emit.take(&mut self.best).into_iter().collect::<PrimitiveArray<T>>()))
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<T::Native>>()
    }
}

struct Texts {
    best: Vec<Option<Box<str>>>,
    bytes: usize,
    wanted: Ordering,
}

impl Accumulator for Texts {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.best.resize(total, None);
        let array = column(arguments, 0)?;
        let values = array.as_string_opt::<i32>().ok_or_else(|| mismatch(array))?;
        valid(values, groups, |group, row| {
            let (value, best) = (values.value(row), &mut self.best[group]);
            if best.as_deref().is_none_or(|best| value.cmp(best) == self.wanted) {
                self.bytes = self.bytes + value.len() - best.as_deref().map_or(0, str::len);
                *best = Some(value.into());
            }
        });
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.update(groups, total, state)
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        Ok(vec![self.finish(emit)?])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let taken = emit.take(&mut self.best);
        self.bytes -= taken.iter().flatten().map(|text| text.len()).sum::<usize>();
        Ok(Arc::new(taken.iter().map(Option::as_deref).collect::<StringArray>()))
    }

    fn bytes(&self) -> usize {
        self.bytes + self.best.capacity() * size_of::<Option<Box<str>>>()
    }
}

struct Truths {
    best: Vec<Option<bool>>,
    wanted: Ordering,
}

impl Accumulator for Truths {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.best.resize(total, None);
        let array = column(arguments, 0)?;
        let values = array.as_boolean_opt().ok_or_else(|| mismatch(array))?;
        valid(values, groups, |group, row| {
            let (value, best) = (values.value(row), &mut self.best[group]);
            if best.is_none_or(|best| value.cmp(&best) == self.wanted) {
                *best = Some(value);
            }
        });
        Ok(())
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.update(groups, total, state)
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        Ok(vec![self.finish(emit)?])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        Ok(Arc::new(emit.take(&mut self.best).into_iter().collect::<BooleanArray>()))
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<bool>>()
    }
}

/// Of bare NULLs: so many groups of nothing.
struct Nothing(usize);

impl Accumulator for Nothing {
    fn update(&mut self, _: &[usize], total: usize, _: &[ArrayRef]) -> Result<(), QueryError> {
        self.0 = total;
        Ok(())
    }

    fn merge(&mut self, _: &[usize], total: usize, _: &[ArrayRef]) -> Result<(), QueryError> {
        self.0 = total;
        Ok(())
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        Ok(vec![self.finish(emit)?])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        let taken = match emit {
            Emit::All => self.0,
            Emit::First(count) => count.min(self.0),
        };
        self.0 -= taken;
        Ok(Arc::new(NullArray::new(taken)))
    }

    fn bytes(&self) -> usize {
        0
    }
}
