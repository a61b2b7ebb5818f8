//! Writing a version: rows in their order into segments, with bounds and indexes.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use trifid_archive_adql::types::Field;
use trifid_archive_engine::index::{Sorted, encode};
use trifid_archive_engine::limits::CHUNK_ROWS;
use trifid_archive_engine::memory;
use trifid_archive_engine::table::Position;
use trifid_archive_model::batch;

use super::manifest::{Chunk, Kept, LAYOUT, Manifest};
use super::{StoreError, sync_folder};
use crate::limits::{INDEXED_ROWS, SEGMENT_CHUNKS};

/// The column of cells, after the table's own.
pub(super) const CELLS: &str = "_healpix_29";

/// A version being written.
pub(super) struct Segments {
    folder: PathBuf,
    schema: SchemaRef,
    width: usize,
    position: Option<Position>,
    indexed: Vec<usize>,
    /// The indexed columns so far.
    kept: Vec<Vec<ArrayRef>>,
    /// Rows that do not fill a chunk yet.
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    writer: Option<ArrowWriter<BufWriter<File>>>,
    chunks: Vec<Chunk>,
    rows: u64,
}

/// The schema of a segment.
pub(super) fn schema(fields: &[Field], cells: bool) -> SchemaRef {
    let mut columns: Vec<ArrowField> = fields.iter().map(batch::arrow_field).collect();
    if cells {
        columns.push(ArrowField::new(CELLS, DataType::Int64, false));
    }
    Arc::new(Schema::new(columns))
}

impl Segments {
    pub(super) fn new(
        folder: PathBuf,
        fields: &[Field],
        position: Option<Position>,
        indexed: Vec<usize>,
    ) -> Self {
        Self {
            folder,
            schema: schema(fields, position.is_some()),
            width: fields.len(),
            position,
            kept: vec![Vec::new(); indexed.len()],
            indexed,
            waiting: Vec::new(),
            waiting_rows: 0,
            writer: None,
            chunks: Vec::new(),
            rows: 0,
        }
    }

    /// Takes rows that follow those before, with their cells as the last column if the table has a position.
    pub(super) fn push(&mut self, rows: RecordBatch) -> Result<(), StoreError> {
        self.waiting_rows += rows.num_rows();
        self.waiting.push(rows);
        while self.waiting_rows >= CHUNK_ROWS {
            let chunk = self.take(CHUNK_ROWS)?;
            self.write(&chunk)?;
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<RecordBatch, StoreError> {
        let joined =
            concat_batches(&self.schema, &self.waiting).map_err(|error| damaged(&self.folder, error))?;
        let rest = joined.slice(count, joined.num_rows() - count);
        self.waiting_rows = rest.num_rows();
        self.waiting = if rest.num_rows() > 0 { vec![rest] } else { Vec::new() };
        Ok(joined.slice(0, count))
    }

    fn write(&mut self, chunk: &RecordBatch) -> Result<(), StoreError> {
        let (segment, row_group) = (self.chunks.len() / SEGMENT_CHUNKS, self.chunks.len() % SEGMENT_CHUNKS);
        if row_group == 0 {
            self.close()?;
            self.writer = Some(self.begin(segment)?);
        }
        let writer = self.writer.as_mut().expect("a segment was begun for its first row group");
        let written = writer.write(chunk).and_then(|()| writer.flush());
        written.map_err(|error| damaged(&self.folder, error))?;
        self.note(chunk, segment, row_group);
        Ok(())
    }

    fn note(&mut self, chunk: &RecordBatch, segment: usize, row_group: usize) {
        let ranges =
            chunk.columns()[..self.width].iter().map(|column| memory::range(column).as_ref().map(Kept::from));
        let cells = self.position.is_some().then(|| {
            let cells = chunk.column(self.width).as_primitive::<Int64Type>().values();
            (cells[0], cells[cells.len() - 1])
        });
        self.chunks.push(Chunk {
            segment: segment as u32,
            row_group: row_group as u32,
            rows: chunk.num_rows() as u32,
            cells,
            ranges: ranges.collect(),
        });
        self.rows += chunk.num_rows() as u64;
        if self.rows > INDEXED_ROWS {
            // A table as large as that is found by its bounds; an index would not fit into memory.
            self.indexed.clear();
            self.kept.clear();
        }
        for (kept, column) in self.kept.iter_mut().zip(&self.indexed) {
            kept.push(Arc::clone(chunk.column(*column)));
        }
    }

    fn begin(&self, segment: usize) -> Result<ArrowWriter<BufWriter<File>>, StoreError> {
        let path = self.folder.join(format!("{segment:05}.parquet"));
        let file = File::create(&path).map_err(StoreError::io(format!("writing {}", path.display())))?;
        let level = ZstdLevel::try_new(1).map_err(|error| damaged(&path, error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(CHUNK_ROWS))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        ArrowWriter::try_new(BufWriter::new(file), Arc::clone(&self.schema), Some(properties))
            .map_err(|error| damaged(&path, error))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let closed = || {
            let file = writer.into_inner().map_err(std::io::Error::other)?;
            file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
        };
        closed().map_err(StoreError::io("finishing a segment"))
    }

    /// Writes what is left, the indexes and the manifest, and flushes everything; the number of rows.
    pub(super) fn finish(mut self) -> Result<u64, StoreError> {
        if self.waiting_rows > 0 {
            let rest = self.take(self.waiting_rows)?;
            self.write(&rest)?;
        }
        self.close()?;
        let mut indexed = Vec::new();
        for (column, pieces) in
            std::mem::take(&mut self.indexed).into_iter().zip(std::mem::take(&mut self.kept))
        {
            if let Some(index) = Sorted::build(column, &pieces) {
                self.put(&format!("{column:04}.index"), &encode(&index))?;
                indexed.push(column);
            }
        }
        let manifest = Manifest {
            layout: LAYOUT,
            rows: self.rows,
            position: self.position.map(|position| (position.lon, position.lat)),
            chunks: self.chunks,
            indexed,
        };
        let text = serde_json::to_vec(&manifest).map_err(|error| damaged(&self.folder, error))?;
        put(&self.folder, "manifest.json", &text)?;
        sync_folder(&self.folder)?;
        Ok(manifest.rows)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        put(&self.folder, name, bytes)
    }
}

/// Writes a file of a version, flushed.
pub(super) fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let path = folder.join(name);
    let written = || {
        let mut file = File::create(&path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(StoreError::io(format!("writing {}", path.display())))
}

/// Removes what a load left that did not come to its end.
pub(super) fn remove(folder: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io(format!("removing {}", folder.display()))(error))
        }
        _ => Ok(()),
    }
}

fn damaged(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(path.to_owned(), error.to_string())
}
