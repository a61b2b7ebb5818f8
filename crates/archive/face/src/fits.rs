//! FITS: a format whose header comes first and says everything, how many rows there are included.
//!
//! So a result is kept first and sent then: its batches go to a scratch file of the spool as they come, looked at on
//! the way, and when the query has ended the file is read back and encoded (twice over, where arrays of variable
//! length go to the heap behind the rows). Memory is bounded by a batch. That how a result ended is known before its
//! first byte has one good side: a failure is always a refusal, and the header tells of withheld rows.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use trifid_archive_engine::QueryError;
use trifid_archive_model::batch;
use trifid_archive_model::fits::{Encoder, Survey};
use trifid_archive_model::write::{End, Head, WriteError};

use crate::coding::Coding;
use crate::encode::{Coded, Lost, Rows, Sink, Step, unwritable};
use crate::fault::Fault;
use crate::spool::{Scratch, Spool};

/// A result that is whole and looked at, and not yet encoded.
pub(crate) struct Surveyed {
    encoder: Encoder,
    scratch: Scratch,
    /// How it ended.
    pub(crate) end: End,
}

fn refused(error: &WriteError) -> Fault {
    Fault::invalid(format!("the result cannot be written as FITS: {}", unwritable(error)))
}

/// Takes all rows of a result.
pub(crate) async fn survey(mut rows: impl Rows, head: Head, spool: Arc<Spool>) -> Result<Surveyed, Fault> {
    let mut survey = Survey::new(Arc::clone(&head.fields));
    let scratch = spool.scratch().map_err(Fault::internal)?;
    let schema = batch::schema(&head.fields);
    let mut kept = StreamWriter::try_new(scratch, &schema).map_err(Fault::internal)?;
    while let Some(batch) = rows.next().await? {
        survey.add(&batch, 0..batch.num_rows()).map_err(|error| refused(&error))?;
        kept.write(&batch).map_err(full)?;
    }
    let end = if rows.overflow() { End::Overflow } else { End::Complete };
    let scratch = kept.into_inner().map_err(full)?;
    let encoder = Encoder::new(head, &survey).map_err(|error| refused(&error))?;
    Ok(Surveyed { encoder, scratch, end })
}

/// What a full spool means for a result that has to go through it.
#[allow(clippy::needless_pass_by_value)] // an error's way
fn full(error: arrow_schema::ArrowError) -> Fault {
    tracing::warn!(%error, "a result cannot be kept in the spool");
    Fault::Busy(
        "there is no room for a result in FITS at the moment; try again, or ask for another format".into(),
    )
}

/// Encodes a surveyed result into the sink.
pub(crate) async fn deliver(
    mut surveyed: Surveyed,
    coding: Option<Coding>,
    sink: &mut impl Sink,
) -> Result<End, Lost> {
    let mut out = Coded::new(coding)?;
    surveyed.encoder.header(&surveyed.end, &mut out.buffer).map_err(|error| broken(&error))?;
    pass(&mut surveyed, &mut out, sink, Encoder::rows).await?;
    if surveyed.encoder.has_heap() {
        pass(&mut surveyed, &mut out, sink, Encoder::heap).await?;
    }
    surveyed.encoder.finish(&mut out.buffer);
    sink.push(out.finish()?).await?;
    Ok(surveyed.end)
}

type Encode = fn(&mut Encoder, &RecordBatch, std::ops::Range<usize>, &mut Vec<u8>) -> Result<(), WriteError>;

/// Goes through the rows once.
async fn pass(
    surveyed: &mut Surveyed,
    out: &mut Coded,
    sink: &mut impl Sink,
    encode: Encode,
) -> Result<(), Lost> {
    let mut step = Step::default();
    let reader = surveyed.scratch.read()?;
    for batch in StreamReader::try_new(reader, None).map_err(unreadable)? {
        let batch = batch.map_err(unreadable)?;
        let mut at = 0;
        while at < batch.num_rows() {
            let until = step.until(at, batch.num_rows());
            let before = out.buffer.len();
            encode(&mut surveyed.encoder, &batch, at..until, &mut out.buffer)
                .map_err(|error| broken(&error))?;
            step.learn(until - at, out.buffer.len() - before);
            at = until;
            if out.is_full() {
                sink.push(out.take(false)?).await?;
            }
        }
    }
    Ok(())
}

#[allow(clippy::needless_pass_by_value)] // an error's way
fn unreadable(error: arrow_schema::ArrowError) -> Lost {
    Lost::Io(std::io::Error::other(error))
}

/// A row that cannot be written although it was looked at is a mistake of ours.
fn broken(error: &WriteError) -> Lost {
    Lost::Io(std::io::Error::other(error.to_string()))
}

/// A small result, in one buffer.
pub(crate) fn whole(head: &Head, batches: &[RecordBatch], end: &End) -> Result<Vec<u8>, Fault> {
    let made = || {
        let mut survey = Survey::new(Arc::clone(&head.fields));
        batches.iter().try_for_each(|batch| survey.add(batch, 0..batch.num_rows()))?;
        let mut encoder = Encoder::new(head.clone(), &survey)?;
        let mut out = Vec::new();
        encoder.header(end, &mut out)?;
        batches.iter().try_for_each(|batch| encoder.rows(batch, 0..batch.num_rows(), &mut out))?;
        if encoder.has_heap() {
            batches.iter().try_for_each(|batch| encoder.heap(batch, 0..batch.num_rows(), &mut out))?;
        }
        encoder.finish(&mut out);
        Ok(out)
    };
    made().map_err(|error: WriteError| match error {
        WriteError::Physical { .. } => Fault::from(QueryError::internal(error)),
        WriteError::Value { .. } | WriteError::TooLarge { .. } => refused(&error),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use trifid_archive_adql::types::{Element, Field, Type};
    use trifid_archive_model::fits::{Reader, Wanted};
    use trifid_archive_model::read::TableReader as _;

    use super::*;
    use crate::encode::testing::{Given, Kept};

    fn fields() -> Arc<[Field]> {
        let list = Field::new("list", Type::Array(Element::Long));
        vec![Field::new("n", Type::Long), Field::new("text", Type::Text), list].into()
    }

    fn batch(first: i64, rows: usize) -> RecordBatch {
        let numbers: Int64Array = (first..).take(rows).collect();
        let texts: StringArray =
            numbers.values().iter().map(|n| Some("x".repeat((n % 7) as usize + 1))).collect();
        let lists = numbers.values().iter().map(|n| Some((0..n % 3 + 1).map(Some).collect::<Vec<_>>()));
        let lists = arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>(lists);
        let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts), Arc::new(lists)];
        batch::batch(&fields(), columns, rows).unwrap()
    }

    fn rows_of(bytes: &[u8]) -> usize {
        let mut reader = Reader::seekable(Cursor::new(bytes), &Wanted::FirstTable).unwrap();
        let mut rows = 0;
        while let Some(batch) = reader.next_batch(10_000).unwrap() {
            rows += batch.num_rows();
        }
        rows
    }

    #[tokio::test]
    async fn a_large_result_is_the_same_file_as_a_small_one() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().to_owned(), 1 << 30);
        let batches = || vec![batch(0, 5000), batch(5000, 12_345), batch(17_345, 1)];
        for overflow in [false, true] {
            let rows = Given { overflow, ..Given::new(batches()) };
            let surveyed = survey(rows, Head::new(fields()), spool.clone()).await.unwrap();
            let mut sink = Kept::default();
            let end = deliver(surveyed, None, &mut sink).await.unwrap();
            assert_eq!(end, if overflow { End::Overflow } else { End::Complete });
            let bytes = sink.0.concat();
            assert!(bytes == whole(&Head::new(fields()), &batches(), &end).unwrap());
            assert_eq!(rows_of(&bytes), 17_346);
            assert!(sink.0.len() > 3 && sink.0.iter().all(|piece| piece.len() < 400_000));
        }
        assert_eq!(spool.used_bytes(), 0);
    }

    #[tokio::test]
    async fn failures_are_refusals() {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = Given::new([batch(0, 10)]);
        rows.batches.push_back(Err(QueryError::invalid("division by zero")));
        let spool = Spool::new(folder.path().to_owned(), 1 << 30);
        let fault = survey(rows, Head::new(fields()), spool).await.err().unwrap();
        assert_eq!((fault.status().as_u16(), fault.message().contains("division")), (400, true));
        let spool = Spool::new(folder.path().to_owned(), 1000);
        let rows = Given::new([batch(0, 1000)]);
        let fault = survey(rows, Head::new(fields()), spool).await.err().unwrap();
        assert_eq!(fault.status(), 503, "without room there is another format");
    }
}
