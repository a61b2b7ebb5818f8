//! Putting gathered rows in order: NULL last ascending and first descending, NaN above all numbers, one zero.

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_ord::sort::{SortColumn, SortOptions, lexsort_to_indices};
use arrow_select::concat::concat;
use arrow_select::take::take;
use trifid_archive_adql::tree::OrderKey;
use trifid_archive_adql::types::Field;
use trifid_archive_model::batch;

use crate::error::QueryError;
use crate::eval::normalise;

/// The shown columns of all pieces in the order of the keys, at most `limit` rows.
pub(super) fn sorted(
    fields: &[Field],
    order: &[OrderKey],
    pieces: &[Vec<ArrayRef>],
    limit: usize,
) -> Result<RecordBatch, QueryError> {
    let Some(first) = pieces.first() else { return Ok(batch::empty(fields)) };
    let column = |at: usize| {
        let parts: Vec<&dyn Array> = pieces.iter().map(|piece| piece[at].as_ref()).collect();
        concat(&parts).map_err(QueryError::internal)
    };
    let columns: Vec<ArrayRef> = (0..first.len()).map(column).collect::<Result<_, _>>()?;
    let keys: Vec<SortColumn> = order.iter().map(|key| sort_column(&columns, *key)).collect();
    let places = lexsort_to_indices(&keys, Some(limit)).map_err(QueryError::internal)?;
    let shown = columns[..fields.len()].iter().map(|column| take(column, &places, None));
    let shown: Vec<ArrayRef> = shown.collect::<Result<_, _>>().map_err(QueryError::internal)?;
    batch::batch(fields, shown, places.len()).map_err(QueryError::internal)
}

/// The rows of all batches at these places, in their order.
pub(super) fn taken(
    fields: &[Field],
    batches: &[RecordBatch],
    places: &UInt32Array,
) -> Result<RecordBatch, QueryError> {
    if batches.is_empty() {
        return Ok(batch::empty(fields));
    }
    let column = |at: usize| {
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        take(&concat(&parts)?, places, None)
    };
    let columns: Vec<ArrayRef> =
        (0..fields.len()).map(column).collect::<Result<_, _>>().map_err(QueryError::internal)?;
    batch::batch(fields, columns, places.len()).map_err(QueryError::internal)
}

fn sort_column(columns: &[ArrayRef], key: OrderKey) -> SortColumn {
    let options = SortOptions { descending: key.descending, nulls_first: key.descending };
    SortColumn { values: normalise(&columns[key.item]), options: Some(options) }
}
