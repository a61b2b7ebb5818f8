//! A FITS table of a result that comes once.
//!
//! The result is written to a store as an Arrow stream while it is surveyed; then the store is read again,
//! once for the rows and once more for the heap where there is one, and the file leaves page by page. Memory
//! is one batch, whatever the length; the store holds the result once. Since the whole is known by then, so
//! is the size of the file.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use arrow_array::RecordBatch;

use super::survey::Survey;
use super::write::Encoder;
use crate::ipc;
use crate::limits::FITS_PAGE_ROWS;
use crate::read::{ReadError, TableReader};
use crate::write::{End, Head, TableWriter, WriteError};

/// Why a result could not become a file.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The store failed.
    #[error("the spool failed: {0}")]
    Store(#[from] io::Error),
    /// What was stored does not come back as it was.
    #[error("the spool is damaged: {0}")]
    Damaged(#[from] ReadError),
    /// FITS cannot hold the result.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A result on its way into the store.
#[derive(Debug)]
pub struct Spool<S> {
    head: Head,
    survey: Survey,
    stream: Box<ipc::Writer>,
    store: S,
    buffer: Vec<u8>,
}

impl<S: Read + Write + Seek> Spool<S> {
    /// Starts a result in an empty store.
    pub fn new(head: Head, store: S) -> Result<Self, SpoolError> {
        let stream = Box::new(ipc::Writer::new(Head::new(head.fields.clone())));
        let survey = Survey::new(head.fields.clone());
        let mut spool = Self { head, survey, stream, store, buffer: Vec::new() };
        spool.stream.begin(&mut spool.buffer);
        spool.store()?;
        Ok(spool)
    }

    /// Adds rows.
    pub fn push(&mut self, batch: &RecordBatch, rows: Range<usize>) -> Result<(), SpoolError> {
        self.survey.add(batch, rows.clone())?;
        let mut start = rows.start;
        while start < rows.end {
            let end = rows.end.min(start + FITS_PAGE_ROWS);
            self.stream.rows(batch, start..end, &mut self.buffer)?;
            self.store()?;
            start = end;
        }
        Ok(())
    }

    /// Ends the result, and turns to giving it.
    pub fn finish(mut self, end: &End) -> Result<Pages<S>, SpoolError> {
        self.stream.finish(&End::Complete, &mut self.buffer);
        self.store.write_all(&self.buffer)?;
        let mut encoder = Encoder::new(self.head, &self.survey)?;
        let mut header = Vec::new();
        encoder.header(end, &mut header)?;
        let bytes = encoder.file_bytes(header.len() as u64);
        Ok(Pages { encoder, bytes, at: Some(At::Header(header, self.store)) })
    }

    fn store(&mut self) -> Result<(), SpoolError> {
        self.store.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// A FITS file, page by page.
#[derive(Debug)]
pub struct Pages<S> {
    encoder: Encoder,
    bytes: u64,
    /// What comes next; nothing at the end.
    at: Option<At<S>>,
}

#[derive(Debug)]
enum At<S> {
    Header(Vec<u8>, S),
    Rows(ipc::Reader<S>),
    Heap(ipc::Reader<S>),
}

impl<S: Read + Seek + Send> Pages<S> {
    /// Bytes of the whole file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the next page; tells whether there was one.
    pub fn next_page(&mut self, out: &mut Vec<u8>) -> Result<bool, SpoolError> {
        let Some(at) = self.at.take() else { return Ok(false) };
        self.at = match at {
            At::Header(mut header, store) => {
                out.append(&mut header);
                Some(At::Rows(from_start(store)?))
            }
            At::Rows(mut reader) => match reader.next_batch(self.encoder.page_rows())? {
                Some(batch) => {
                    self.encoder.rows(&batch, 0..batch.num_rows(), out)?;
                    Some(At::Rows(reader))
                }
                None if self.encoder.has_heap() => Some(At::Heap(from_start(reader.into_source())?)),
                None => self.end(out),
            },
            At::Heap(mut reader) => match reader.next_batch(self.encoder.page_rows())? {
                Some(batch) => {
                    self.encoder.heap(&batch, 0..batch.num_rows(), out)?;
                    Some(At::Heap(reader))
                }
                None => self.end(out),
            },
        };
        Ok(true)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Option<At<S>> {
        self.encoder.finish(out);
        None
    }
}

fn from_start<S: Read + Seek>(mut store: S) -> Result<ipc::Reader<S>, SpoolError> {
    store.seek(SeekFrom::Start(0))?;
    Ok(ipc::Reader::new(store)?)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::fits::{Reader, Wanted};
    use crate::sample;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn a_spooled_result_is_the_one_written_at_once(table in sample::table()) {
            let batch = table.batch();
            let mut survey = Survey::new(table.fields.clone());
            survey.add(&batch, 0..table.rows).unwrap();
            let Ok(mut encoder) = Encoder::new(Head::new(table.fields.clone()), &survey) else { return Ok(()) };
            let mut expected = Vec::new();
            encoder.header(&End::Overflow, &mut expected).unwrap();
            encoder.rows(&batch, 0..table.rows, &mut expected).unwrap();
            encoder.heap(&batch, 0..table.rows, &mut expected).unwrap();
            encoder.finish(&mut expected);

            let mut spool = Spool::new(Head::new(table.fields.clone()), Cursor::new(Vec::new())).unwrap();
            spool.push(&batch, 0..table.rows / 2).unwrap();
            spool.push(&batch, table.rows / 2..table.rows).unwrap();
            let mut pages = spool.finish(&End::Overflow).unwrap();
            let mut found = Vec::new();
            while pages.next_page(&mut found).unwrap() {}
            prop_assert_eq!(pages.bytes(), found.len() as u64);
            prop_assert!(found == expected);
            prop_assert!(!pages.next_page(&mut found).unwrap());
        }
    }

    /// A store that breaks after so many bytes.
    struct Full(Cursor<Vec<u8>>, u64);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.position() + bytes.len() as u64 > self.1 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Full {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.0.read(bytes)
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_full_store_is_told_and_a_damaged_one_too() {
        let fields = sample::fields(&[trifid_archive_adql::types::Type::Long]);
        let values = (0..10_000).map(|value| Some(sample::Value::Whole(value))).collect();
        let table = sample::Table { fields: fields.clone(), columns: vec![values], rows: 10_000 };
        let mut spool = Spool::new(Head::new(fields.clone()), Full(Cursor::new(Vec::new()), 20_000)).unwrap();
        assert!(matches!(spool.push(&table.batch(), 0..10_000), Err(SpoolError::Store(_))));

        let mut spool = Spool::new(Head::new(fields), Cursor::new(Vec::new())).unwrap();
        spool.push(&table.batch(), 0..10_000).unwrap();
        spool.store.get_mut().truncate(50_000);
        spool.store.set_position(50_000);
        let mut pages = spool.finish(&End::Complete).unwrap();
        let mut out = Vec::new();
        let error = loop {
            match pages.next_page(&mut out) {
                Ok(true) => {}
                Ok(false) => panic!("half of the rows are gone"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, SpoolError::Damaged(_)), "{error}");
    }

    #[test]
    fn many_pages_make_one_table() {
        let fields = sample::fields(&[trifid_archive_adql::types::Type::Long]);
        let rows = 3 * FITS_PAGE_ROWS + 7;
        let values = (0..rows as i64).map(|value| Some(sample::Value::Whole(value))).collect();
        let table = sample::Table { fields: fields.clone(), columns: vec![values], rows };
        let mut spool = Spool::new(Head::new(fields), Cursor::new(Vec::new())).unwrap();
        spool.push(&table.batch(), 0..rows).unwrap();
        let mut pages = spool.finish(&End::Complete).unwrap();
        let mut out = Vec::new();
        let mut longest = 0;
        loop {
            let before = out.len();
            if !pages.next_page(&mut out).unwrap() {
                break;
            }
            longest = longest.max(out.len() - before);
        }
        assert!(longest <= 9 * FITS_PAGE_ROWS, "a page of {longest} bytes");
        let mut reader = Reader::new(out.as_slice(), &Wanted::FirstTable).unwrap();
        let mut found = 0;
        while let Some(batch) = reader.next_batch(1000).unwrap() {
            found += batch.num_rows();
        }
        assert_eq!(found, rows);
    }
}
