//! Rows, writers and sinks that tests hold in their hands.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, Int64Array, RecordBatch};
use tokio::sync::mpsc;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::QueryError;
use trifid_archive_model::batch;
use trifid_archive_model::write::{End, TableWriter, WriteError};

use super::{Lost, Rows, Sink};

/// A batch of one column that counts from `first`.
pub(crate) fn counting(first: i64, rows: usize) -> RecordBatch {
    let values: Int64Array = (first..).take(rows).collect();
    batch::batch(&[Field::new("n", Type::Long)], vec![Arc::new(values)], rows).unwrap()
}

/// Rows that are all there.
pub(crate) struct Given {
    pub(crate) batches: VecDeque<Result<RecordBatch, QueryError>>,
    pub(crate) overflow: bool,
}

impl Given {
    pub(crate) fn new(batches: impl IntoIterator<Item = RecordBatch>) -> Self {
        Self { batches: batches.into_iter().map(Ok).collect(), overflow: false }
    }
}

impl Rows for Given {
    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        self.batches.pop_front().transpose()
    }

    fn overflow(&self) -> bool {
        self.overflow
    }
}

/// Rows that a test sends one by one.
pub(crate) struct Sent(pub(crate) mpsc::Receiver<RecordBatch>);

impl Rows for Sent {
    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        Ok(self.0.recv().await)
    }

    fn overflow(&self) -> bool {
        false
    }
}

/// Writes a number as a line of `width` characters, refuses `bad`, and says how it ended.
pub(crate) struct Lines {
    pub(crate) width: usize,
    pub(crate) bad: i64,
}

impl Lines {
    pub(crate) fn boxed(width: usize) -> Box<dyn TableWriter> {
        Box::new(Self { width, bad: -1 })
    }
}

impl TableWriter for Lines {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"head\n");
    }

    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let numbers = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        for row in rows {
            assert!(row < numbers.len());
            let number = numbers.value(row);
            if number == self.bad {
                let row = row as u64;
                return Err(WriteError::Value { row, column: "n".into(), reason: "it is bad" });
            }
            let width = self.width;
            out.extend_from_slice(format!("{number:>width$}\n").as_bytes());
        }
        Ok(())
    }

    fn finish(self: Box<Self>, end: &End, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{end:?}\n").as_bytes());
    }
}

/// Keeps the pieces.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Vec<Vec<u8>>);

impl Kept {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.concat()).unwrap()
    }
}

impl Sink for Kept {
    async fn push(&mut self, piece: Vec<u8>) -> Result<(), Lost> {
        self.0.push(piece);
        Ok(())
    }

    async fn during<T: Send>(&mut self, work: impl Future<Output = T> + Send) -> Result<T, Lost> {
        Ok(work.await)
    }
}
