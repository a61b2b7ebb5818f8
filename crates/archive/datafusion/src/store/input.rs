//! Files as tables to be read, whatever their format and wrapping.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::reader::ChunkReader;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_model::csv::{self, Delimiter};
use trifid_archive_model::read::{At, Fault, ReadError, TableReader};
use trifid_archive_model::sniff::{Format, SNIFF_BYTES, Sniffed, Wrapper, sniff, unwrapped};
use trifid_archive_model::{adopt, batch, fits, ipc, votable};

use super::{StoreError, attach};

/// Rows of a batch out of Parquet.
pub(super) const BATCH_ROWS: usize = 8_192;

/// The most that wrappers are unwrapped: a compressed file in a compressed file is a mistake or an attack.
const WRAPPERS: usize = 1;

/// A table to be read, and what it is called.
pub struct Input {
    /// For messages.
    pub name: String,
    /// The table.
    pub reader: Box<dyn TableReader>,
}

/// Opens a file; its format is found out.
pub fn open(path: &Path) -> Result<Input, StoreError> {
    let name = path.display().to_string();
    let reader = opened(path, &name)?;
    Ok(Input { name, reader })
}

fn opened(path: &Path, name: &str) -> Result<Box<dyn TableReader>, StoreError> {
    let failed = |error| StoreError::Input { name: name.to_owned(), error };
    let mut file = File::open(path).map_err(StoreError::io(name))?;
    let beginning = beginning(&mut file).map_err(StoreError::io(name))?;
    match sniff(&beginning, Some(name)) {
        Sniffed::Table(Format::Fits) => {
            let reader =
                fits::Reader::seekable(BufReader::new(file), &fits::Wanted::default()).map_err(failed)?;
            Ok(Box::new(reader))
        }
        Sniffed::Table(Format::Parquet) => parquet_table(file).map_err(failed),
        Sniffed::Table(Format::ArrowFile) => {
            Ok(Box::new(ipc::Reader::new(BufReader::new(file)).map_err(failed)?))
        }
        found => streamed(Box::new(file), found, name, 0).map_err(failed),
    }
}

fn beginning(file: &mut (impl Read + Seek)) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(SNIFF_BYTES);
    Read::by_ref(file).take(SNIFF_BYTES as u64).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(bytes)
}

/// A table out of bytes that come once.
fn streamed(
    source: Box<dyn Read + Send>,
    found: Sniffed,
    name: &str,
    depth: usize,
) -> Result<Box<dyn TableReader>, ReadError> {
    let csv = |delimiter, source| -> Result<Box<dyn TableReader>, ReadError> {
        Ok(Box::new(csv::Reader::new(source, &csv::Options::new(delimiter))?))
    };
    match found {
        Sniffed::Table(Format::VoTable) => {
            Ok(Box::new(votable::Reader::new(source, votable::ReadOptions::default())?))
        }
        Sniffed::Table(Format::Csv) => csv(Delimiter::Comma, source),
        Sniffed::Table(Format::Tsv) => csv(Delimiter::Tab, source),
        Sniffed::Table(Format::Fits) => Ok(Box::new(fits::Reader::new(source, &fits::Wanted::default())?)),
        Sniffed::Table(Format::ArrowStream) => Ok(Box::new(ipc::Reader::new(BufReader::new(source))?)),
        Sniffed::Table(format @ (Format::Parquet | Format::ArrowFile)) => {
            Err(unsupported(format!("a compressed {format:?} file cannot be read; unpack it first")))
        }
        Sniffed::Wrapped(Wrapper::Gzip) if depth < WRAPPERS => {
            unpacked(Box::new(MultiGzDecoder::new(BufReader::new(source))), name, depth)
        }
        Sniffed::Wrapped(Wrapper::Zstd) if depth < WRAPPERS => {
            let decoder = zstd::stream::read::Decoder::new(source).map_err(broken)?;
            unpacked(Box::new(decoder), name, depth)
        }
        Sniffed::Wrapped(wrapper) => {
            Err(unsupported(format!("{wrapper:?} compression is not read; unpack it first")))
        }
        Sniffed::Unknown => Err(unsupported(
            "the format is none of VOTable, FITS, CSV, TSV, Parquet, Arrow (plain, or in gzip or zstd)"
                .into(),
        )),
    }
}

fn unpacked(
    mut source: Box<dyn Read + Send>,
    name: &str,
    depth: usize,
) -> Result<Box<dyn TableReader>, ReadError> {
    let mut bytes = Vec::with_capacity(SNIFF_BYTES);
    Read::by_ref(&mut source).take(SNIFF_BYTES as u64).read_to_end(&mut bytes).map_err(broken)?;
    let inner = unwrapped(name);
    let found = sniff(&bytes, Some(inner));
    streamed(Box::new(Cursor::new(bytes).chain(source)), found, inner, depth + 1)
}

fn broken(error: std::io::Error) -> ReadError {
    ReadError::new(At::Document, Fault::Io(error))
}

fn unsupported(message: String) -> ReadError {
    ReadError::new(At::Document, Fault::Unsupported(message))
}

/// A Parquet file in memory as a table to be read.
pub fn open_parquet(name: &str, bytes: Bytes) -> Result<Input, StoreError> {
    let failed = |error| StoreError::Input { name: name.to_owned(), error };
    Ok(Input { name: name.to_owned(), reader: parquet_table(bytes).map_err(failed)? })
}

fn parquet_table(source: impl ChunkReader + 'static) -> Result<Box<dyn TableReader>, ReadError> {
    parquet_rows(
        ParquetRecordBatchReaderBuilder::try_new(source).map_err(|error| damaged(&error))?,
        BATCH_ROWS,
    )
}

/// The rows of a Parquet file, so many at a time.
pub(super) fn parquet_rows<S: ChunkReader + 'static>(
    builder: ParquetRecordBatchReaderBuilder<S>,
    batch_rows: usize,
) -> Result<Box<dyn TableReader>, ReadError> {
    let fields = attach::columns(builder.schema(), builder.metadata().file_metadata());
    let (places, fields): (Vec<usize>, Vec<Field>) = fields.into_iter().unzip();
    let types = fields.iter().map(|field| field.ty).collect();
    let mask = parquet::arrow::ProjectionMask::roots(builder.parquet_schema(), places);
    let reader =
        builder.with_projection(mask).with_batch_size(batch_rows).build().map_err(|error| damaged(&error))?;
    Ok(Box::new(ParquetTable { fields: fields.into(), types, reader, rows: 0 }))
}

fn damaged(error: &parquet::errors::ParquetError) -> ReadError {
    ReadError::malformed(At::Document, error.to_string())
}

/// A Parquet file as it is read.
struct ParquetTable {
    fields: Arc<[Field]>,
    types: Vec<Type>,
    reader: ParquetRecordBatchReader,
    rows: u64,
}

impl TableReader for ParquetTable {
    fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    fn next_batch(&mut self, _: usize) -> Result<Option<RecordBatch>, ReadError> {
        let Some(read) = self.reader.next() else { return Ok(None) };
        let at = || At::Row(self.rows + 1);
        let read = read.map_err(|error| ReadError::malformed(at(), error.to_string()))?;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.types.len());
        for ((array, ty), field) in read.columns().iter().zip(&self.types).zip(self.fields.iter()) {
            let made = adopt::values(array, *ty)
                .map_err(|error| ReadError::malformed(at(), format!("column {}: {error}", field.name)))?;
            columns.push(made);
        }
        self.rows += read.num_rows() as u64;
        let made = batch::batch(&self.fields, columns, read.num_rows());
        made.map(Some).map_err(|error| ReadError::malformed(At::Document, error.to_string()))
    }
}
