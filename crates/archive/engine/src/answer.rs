//! The rows of an answer on their way to whoever encodes them.
//!
//! An answer is either whole at once (a lookup, a cone) or comes from a task of the compute pool through a short
//! queue. It knows exactly whether rows were withheld (TAP 1.1 3.4): the query is run for one row more than may be
//! given.

use std::sync::Arc;

use arrow_array::RecordBatch;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use trifid_archive_adql::types::Field;

use crate::backend::Cancel;
use crate::error::QueryError;

/// Batches that wait for the reader.
pub(crate) const QUEUE_BATCHES: usize = 2;

/// What travels from the pool.
pub(crate) type Piece = Result<RecordBatch, QueryError>;

/// Rows in the physical types of the fields.
pub struct Answer {
    fields: Arc<[Field]>,
    rows: Rows,
    limit: Option<u64>,
    given: u64,
    overflow: bool,
}

enum Rows {
    Ready(Vec<RecordBatch>),
    Streamed(Streamed),
    Over,
}

/// A running task's queue; dropping it ends the task.
struct Streamed {
    queue: mpsc::Receiver<Piece>,
    task: AbortHandle,
    cancel: Cancel,
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // A task hears of it at its next await; what works for long without one asks for this.
        self.cancel.set();
        self.task.abort();
    }
}

impl Answer {
    /// An answer that is there; `limit` rows may be given.
    pub(crate) fn ready(fields: Arc<[Field]>, mut batches: Vec<RecordBatch>, limit: Option<u64>) -> Self {
        let mut room = limit.unwrap_or(u64::MAX);
        let mut overflow = false;
        for batch in &mut batches {
            let kept = room.min(batch.num_rows() as u64);
            if kept < batch.num_rows() as u64 {
                overflow = true;
                *batch = batch.slice(0, kept as usize);
            }
            room -= kept;
        }
        batches.retain(|batch| batch.num_rows() > 0);
        Self { fields, rows: Rows::Ready(batches), limit, given: 0, overflow }
    }

    /// An answer without rows although there may be some (MAXREC=0).
    pub(crate) fn withheld(fields: Arc<[Field]>) -> Self {
        Self { fields, rows: Rows::Ready(Vec::new()), limit: Some(0), given: 0, overflow: true }
    }

    /// An answer that a task sends.
    pub(crate) fn streamed(
        fields: Arc<[Field]>,
        queue: mpsc::Receiver<Piece>,
        task: AbortHandle,
        cancel: Cancel,
        limit: Option<u64>,
    ) -> Self {
        let rows = Rows::Streamed(Streamed { queue, task, cancel });
        Self { fields, rows, limit, given: 0, overflow: false }
    }

    /// The columns.
    pub fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    /// All rows, if they are there already.
    pub fn ready_rows(&self) -> Option<&[RecordBatch]> {
        match &self.rows {
            Rows::Ready(batches) => Some(batches),
            Rows::Streamed(_) | Rows::Over => None,
        }
    }

    /// Whether rows were withheld. Exact once [`Self::next`] has given `None`, or for an answer that is ready.
    pub const fn overflow(&self) -> bool {
        self.overflow
    }

    /// The next rows; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        match &mut self.rows {
            Rows::Over => Ok(None),
            Rows::Ready(batches) => {
                if batches.is_empty() {
                    return Ok(None);
                }
                Ok(Some(batches.remove(0)))
            }
            Rows::Streamed(streamed) => {
                let piece = streamed.queue.recv().await;
                self.taken(piece)
            }
        }
    }

    fn taken(&mut self, piece: Option<Piece>) -> Result<Option<RecordBatch>, QueryError> {
        let batch = match piece {
            Some(Ok(batch)) => batch,
            Some(Err(error)) => {
                self.rows = Rows::Over;
                return Err(error);
            }
            None => {
                self.rows = Rows::Over;
                return Ok(None);
            }
        };
        let room = self.limit.map_or(u64::MAX, |limit| limit - self.given);
        let rows = batch.num_rows() as u64;
        self.given += rows.min(room);
        if rows <= room {
            return Ok(Some(batch));
        }
        self.overflow = true;
        self.rows = Rows::Over;
        Ok((room > 0).then(|| batch.slice(0, room as usize)))
    }
}
