//! From rows to bytes, piece by piece, into whatever takes them: a client's connection or a job's file.
//!
//! ```text
//! Rows --batch--> Pieces (a table writer, perhaps a compressor) --piece--> Sink
//! ```
//!
//! A piece is some 128 KiB. What is encoded goes out before anybody waits for more rows, so that the first bytes of a
//! slow query arrive when its first rows are there, and many small batches still travel together. How many rows
//! make a step follows from the size of the rows before, so memory is bounded by a piece and a batch, not by the
//! result. What happens after the first byte can only be told at the end: a query that fails is a tail that says so
//! (DALI 1.1 4.4.1), never a second document.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use arrow_array::RecordBatch;
use trifid_archive_engine::QueryError;
use trifid_archive_model::write::{End, TableWriter, WriteError};

use crate::coding::{self, Coding};
use crate::fault;
use crate::limits::{PIECE_BYTES, ROWS_FIRST, ROWS_STEP_MAX};

/// Rows on their way.
pub(crate) trait Rows: Send {
    /// The next rows; `None` after the last. Giving up the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Result<Option<RecordBatch>, QueryError>> + Send;

    /// Whether rows were withheld; known after the last.
    fn overflow(&self) -> bool;
}

/// Rows of which the first are here already.
pub(crate) struct Begun<R> {
    first: VecDeque<RecordBatch>,
    rest: R,
}

impl<R> Begun<R> {
    /// Puts `first` before `rest`.
    pub(crate) fn new(first: Vec<RecordBatch>, rest: R) -> Self {
        Self { first: first.into(), rest }
    }
}

impl<R: Rows> Rows for Begun<R> {
    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        match self.first.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => self.rest.next().await,
        }
    }

    fn overflow(&self) -> bool {
        self.rest.overflow()
    }
}

/// What takes the pieces.
pub(crate) trait Sink: Send {
    /// Takes one piece; waits where it must.
    fn push(&mut self, piece: Vec<u8>) -> impl Future<Output = Result<(), Lost>> + Send;

    /// Does what the sink has to do (hand over what waits, notice that nobody reads any more) while `work` goes on.
    fn during<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, Lost>> + Send;
}

/// Why pieces cannot be taken any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    /// Nobody reads them.
    #[error("the client left")]
    Gone,
    /// They cannot be written or compressed.
    #[error("the result cannot be kept: {0}")]
    Io(#[from] io::Error),
}

/// Bytes on their way through a compressor, if there is one, and those that are not yet taken.
pub(crate) struct Coded {
    coder: Option<coding::Encoder>,
    /// What is made and not yet taken.
    pub(crate) buffer: Vec<u8>,
}

impl Coded {
    /// Nothing yet, in this coding.
    pub(crate) fn new(coding: Option<Coding>) -> io::Result<Self> {
        let coder = coding.map(coding::Encoder::new).transpose()?;
        Ok(Self { coder, buffer: room() })
    }

    /// Whether there is enough for a piece.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() >= PIECE_BYTES
    }

    /// Takes what is made; `flush` forces everything out of the compressor.
    pub(crate) fn take(&mut self, flush: bool) -> io::Result<Vec<u8>> {
        let Some(coder) = &mut self.coder else { return Ok(std::mem::replace(&mut self.buffer, room())) };
        coder.write(&self.buffer)?;
        self.buffer.clear();
        if flush { coder.flush() } else { Ok(coder.ready()) }
    }

    /// Takes all that is left.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        let Some(mut coder) = self.coder else { return Ok(self.buffer) };
        coder.write(&self.buffer)?;
        coder.finish()
    }
}

fn room() -> Vec<u8> {
    Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4)
}

/// How many rows make a step, as far as the rows before tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step(usize);

impl Default for Step {
    fn default() -> Self {
        Self(ROWS_FIRST)
    }
}

impl Step {
    /// The end of the step that begins at `at`, of so many rows.
    pub(crate) fn until(self, at: usize, rows: usize) -> usize {
        rows.min(at + self.0)
    }

    /// Learns from a step: the next one fills about one piece, and is no leap.
    pub(crate) fn learn(&mut self, rows: usize, bytes: usize) {
        let wanted = (rows * PIECE_BYTES).checked_div(bytes).unwrap_or(ROWS_STEP_MAX);
        self.0 = wanted.clamp(1, (rows * 4).clamp(1, ROWS_STEP_MAX));
    }
}

/// A result under way: its writer, and what is encoded and not yet taken.
pub(crate) struct Pieces {
    writer: Box<dyn TableWriter>,
    out: Coded,
    step: Step,
}

impl Pieces {
    /// A result in the writer's format, in this coding.
    pub(crate) fn new(writer: Box<dyn TableWriter>, coding: Option<Coding>) -> io::Result<Self> {
        Ok(Self { writer, out: Coded::new(coding)?, step: Step::default() })
    }

    /// Encodes rows from `at` on until there is a piece or the batch ends; where it stopped.
    fn rows(&mut self, batch: &RecordBatch, mut at: usize) -> Result<usize, WriteError> {
        let rows = batch.num_rows();
        while at < rows && !self.out.is_full() {
            let until = self.step.until(at, rows);
            let before = self.out.buffer.len();
            self.writer.rows(batch, at..until, &mut self.out.buffer)?;
            self.step.learn(until - at, self.out.buffer.len() - before);
            at = until;
        }
        Ok(at)
    }

    fn finish(mut self, end: &End) -> io::Result<Vec<u8>> {
        self.writer.finish(end, &mut self.out.buffer);
        self.out.finish()
    }
}

/// Encodes all rows into the sink, and answers how it ended. The rows are let go before the last piece is pushed, so a
/// query has ended when its client is not through yet.
pub(crate) async fn run(mut rows: impl Rows, mut pieces: Pieces, sink: &mut impl Sink) -> Result<End, Lost> {
    pieces.writer.begin(&mut pieces.out.buffer);
    let end = all(&mut rows, &mut pieces, sink).await?;
    drop(rows);
    sink.push(pieces.finish(&end)?).await?;
    Ok(end)
}

async fn all(rows: &mut impl Rows, pieces: &mut Pieces, sink: &mut impl Sink) -> Result<End, Lost> {
    loop {
        match next(rows, pieces, sink).await? {
            Ok(Some(batch)) => {
                let mut at = 0;
                while at < batch.num_rows() {
                    at = match pieces.rows(&batch, at) {
                        Ok(at) => at,
                        Err(error) => return Ok(End::Failed(unwritable(&error))),
                    };
                    if pieces.out.is_full() {
                        sink.push(pieces.out.take(false)?).await?;
                    }
                }
            }
            Ok(None) => return Ok(if rows.overflow() { End::Overflow } else { End::Complete }),
            Err(error) => return Ok(End::Failed(fault::late(error).into())),
        }
    }
}

/// The next batch. If it is not there, what is encoded goes out first.
async fn next(
    rows: &mut impl Rows,
    pieces: &mut Pieces,
    sink: &mut impl Sink,
) -> Result<Result<Option<RecordBatch>, QueryError>, Lost> {
    let mut batch = pin!(rows.next());
    let ready = poll_fn(|cx| {
        Poll::Ready(match batch.as_mut().poll(cx) {
            Poll::Ready(batch) => Some(batch),
            Poll::Pending => None,
        })
    });
    if let Some(batch) = ready.await {
        return Ok(batch);
    }
    if !pieces.out.buffer.is_empty() {
        sink.push(pieces.out.take(true)?).await?;
    }
    sink.during(batch).await
}

/// Why a row could not be written, for the tail of the result.
pub(crate) fn unwritable(error: &WriteError) -> Arc<str> {
    match error {
        WriteError::Value { .. } | WriteError::TooLarge { .. } => error.to_string().into(),
        WriteError::Physical { .. } => fault::late(QueryError::internal(error)).into(),
    }
}

/// A whole result that is here already, in one buffer; or why one of its rows cannot be written.
pub(crate) fn whole(
    mut writer: Box<dyn TableWriter>,
    batches: &[RecordBatch],
    end: &End,
    capacity: usize,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(capacity);
    writer.begin(&mut out);
    for batch in batches {
        let written = writer.rows(batch, 0..batch.num_rows(), &mut out);
        written.map_err(|error| unwritable(&error).to_string())?;
    }
    writer.finish(end, &mut out);
    Ok(out)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
