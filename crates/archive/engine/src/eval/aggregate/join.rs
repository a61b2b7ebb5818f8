//! `ivo_string_agg`: texts one after the other with a separator between, in the order of the rows.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, StringArray};

use super::{Accumulator, Emit, column, valid};
use crate::error::QueryError;
use crate::eval::cells::mismatch;
use crate::limits::JOINED_TEXT_BYTES;

/// A text so far, and the separator that stands before its first piece if it follows another text.
#[derive(Clone)]
struct Joined {
    text: String,
    before: Box<str>,
}

/// The texts of all groups.
#[derive(Default)]
pub(super) struct Join {
    groups: Vec<Option<Joined>>,
    bytes: usize,
}

impl Join {
    fn add(&mut self, group: usize, text: &str, before: &str) -> Result<(), QueryError> {
        self.bytes += text.len() + before.len();
        match &mut self.groups[group] {
            Some(joined) => {
                if joined.text.len() + before.len() + text.len() > JOINED_TEXT_BYTES {
                    let message = format!("an aggregated text of more than {} MiB", JOINED_TEXT_BYTES >> 20);
                    return Err(QueryError::TooLarge(message.into()));
                }
                joined.text.push_str(before);
                joined.text.push_str(text);
            }
            empty => *empty = Some(Joined { text: text.into(), before: before.into() }),
        }
        Ok(())
    }
}

fn texts(columns: &[ArrayRef], place: usize) -> Result<&StringArray, QueryError> {
    let column = column(columns, place)?;
    column.as_string_opt::<i32>().ok_or_else(|| mismatch(column))
}

impl Accumulator for Join {
    fn update(&mut self, groups: &[usize], total: usize, arguments: &[ArrayRef]) -> Result<(), QueryError> {
        self.groups.resize(total, None);
        let (pieces, separators) = (texts(arguments, 0)?, texts(arguments, 1)?);
        let mut done = Ok(());
        valid(pieces, groups, |group, row| {
            if done.is_ok() {
                let separator = if separators.is_null(row) { "" } else { separators.value(row) };
                done = self.add(group, pieces.value(row), separator);
            }
        });
        done
    }

    fn merge(&mut self, groups: &[usize], total: usize, state: &[ArrayRef]) -> Result<(), QueryError> {
        self.update(groups, total, state)
    }

    fn state(&mut self, emit: Emit) -> Result<Vec<ArrayRef>, QueryError> {
        let taken = emit.take(&mut self.groups);
        let texts = taken.iter().map(|one| one.as_ref().map(|one| &*one.text));
        let before = taken.iter().map(|one| one.as_ref().map(|one| &*one.before));
        Ok(vec![Arc::new(texts.collect::<StringArray>()), Arc::new(before.collect::<StringArray>())])
    }

    fn finish(&mut self, emit: Emit) -> Result<ArrayRef, QueryError> {
        Ok(self.state(emit)?.swap_remove(0))
    }

    fn bytes(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Option<Joined>>()
    }
}
