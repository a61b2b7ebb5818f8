//! Rows of a FROM clause while it is worked on: some columns of some relations, side by side.

use std::collections::BTreeMap;

use arrow_array::{Array as _, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use arrow_select::take::take;
use trifid_archive_adql::lift::used_columns;
use trifid_archive_adql::tree::{ColumnRef, Join, Select};
use trifid_archive_model::batch::physical;

use crate::error::QueryError;

/// The columns of a select's relations that its expressions need, relation by relation.
#[derive(Debug, Default)]
pub(super) struct Layout(Vec<Vec<u32>>);

impl Layout {
    /// What a select needs.
    pub(super) fn of(select: &Select) -> Self {
        Self(used_columns(select).into_iter().map(|columns| columns.into_iter().collect()).collect())
    }

    /// The columns that are needed of a relation.
    pub(super) fn columns(&self, relation: usize) -> &[u32] {
        self.0.get(relation).map_or(&[], Vec::as_slice)
    }
}

/// Rows side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) rows: usize,
    columns: BTreeMap<(u16, u32), ArrayRef>,
}

impl Block {
    /// One row without columns: what a SELECT without FROM is computed for.
    pub(super) fn single() -> Self {
        Self { rows: 1, columns: BTreeMap::new() }
    }

    /// Rows of one relation: for each needed column what `read` gives.
    pub(super) fn of_relation(
        layout: &Layout,
        relation: usize,
        rows: usize,
        mut read: impl FnMut(usize) -> Result<ArrayRef, QueryError>,
    ) -> Result<Self, QueryError> {
        let mut columns = BTreeMap::new();
        for column in layout.columns(relation) {
            let array = read(*column as usize)?;
            if array.len() != rows {
                return Err(QueryError::internal(format_args!("{} values for {rows} rows", array.len())));
            }
            columns.insert((relation as u16, *column), array);
        }
        Ok(Self { rows, columns })
    }

    /// Rows of NULLs for the relations under a join.
    pub(super) fn nulls(select: &Select, layout: &Layout, join: &Join, rows: usize) -> Self {
        let mut block = Self { rows, columns: BTreeMap::new() };
        for relation in leaves(join) {
            for column in layout.columns(relation) {
                let ty = select.relations[relation].fields()[*column as usize].ty;
                block.columns.insert((relation as u16, *column), new_null_array(&physical(ty), rows));
            }
        }
        block
    }

    /// A column.
    pub(super) fn column(&self, at: ColumnRef) -> Option<&ArrayRef> {
        self.columns.get(&(at.relation, at.column))
    }

    /// The rows with these numbers.
    pub(super) fn take(&self, rows: &UInt32Array) -> Result<Self, QueryError> {
        self.each(rows.len(), |array| take(array, rows, None))
    }

    /// The rows where the mask is set.
    pub(super) fn filter(&self, mask: &BooleanArray) -> Result<Self, QueryError> {
        match mask.true_count() {
            all if all == self.rows => Ok(self.clone()),
            some => self.each(some, |array| filter(array, mask)),
        }
    }

    fn each(
        &self,
        rows: usize,
        f: impl Fn(&ArrayRef) -> Result<ArrayRef, arrow_schema::ArrowError>,
    ) -> Result<Self, QueryError> {
        let column =
            |(at, array): (&(u16, u32), &ArrayRef)| Ok((*at, f(array).map_err(QueryError::internal)?));
        Ok(Self { rows, columns: self.columns.iter().map(column).collect::<Result<_, QueryError>>()? })
    }

    /// The columns of both; they have equally many rows.
    pub(super) fn beside(mut self, other: Self) -> Self {
        debug_assert_eq!(self.rows, other.rows);
        self.columns.extend(other.columns);
        self
    }

    /// All rows of several blocks with the columns of `empty`.
    pub(super) fn concat(blocks: &[Self], empty: Self) -> Result<Self, QueryError> {
        if blocks.is_empty() {
            return Ok(empty);
        }
        let rows = blocks.iter().map(|block| block.rows).sum();
        let mut columns = BTreeMap::new();
        for at in empty.columns.keys() {
            let missing = || QueryError::internal("a block lacks a column");
            let pieces =
                blocks.iter().map(|block| block.columns.get(at).map(AsRef::as_ref).ok_or_else(missing));
            let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
            columns.insert(*at, concat(&pieces).map_err(QueryError::internal)?);
        }
        Ok(Self { rows, columns })
    }

    /// Memory that its values take.
    pub(super) fn bytes(&self) -> usize {
        self.columns.values().map(super::run::bytes).sum()
    }
}

/// The relations under a join.
pub(super) fn leaves(join: &Join) -> Vec<usize> {
    match join {
        Join::Leaf(relation) => vec![*relation],
        Join::Pair { left, right, .. } => {
            let mut all = leaves(left);
            all.extend(leaves(right));
            all
        }
    }
}
