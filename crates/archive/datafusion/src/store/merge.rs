//! Sorted runs on disk, and their merge by cell.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;

use super::StoreError;

/// Rows that a run holds in memory while it is merged.
const BLOCK_ROWS: usize = 8_192;

/// A sorted run on disk; its file goes with it.
pub(super) struct Run(PathBuf);

impl Drop for Run {
    fn drop(&mut self) {
        // A load that fails removes the whole folder.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a sorted run.
pub(super) fn spill(run: &RecordBatch, path: &Path) -> Result<Run, StoreError> {
    let written = || {
        let mut writer = StreamWriter::try_new(BufWriter::new(File::create(path)?), &run.schema())?;
        for start in (0..run.num_rows()).step_by(BLOCK_ROWS) {
            writer.write(&run.slice(start, BLOCK_ROWS.min(run.num_rows() - start)))?;
        }
        writer.finish()?;
        writer.into_inner()?.flush()?;
        Ok(())
    };
    written().map_err(|error: arrow_schema::ArrowError| failed(path, &error))?;
    Ok(Run(path.to_owned()))
}

fn failed(path: &Path, error: &arrow_schema::ArrowError) -> StoreError {
    StoreError::Damaged(path.to_owned(), error.to_string())
}

/// A run being read: a block and the place in it.
struct Cursor {
    run: Run,
    reader: StreamReader<BufReader<File>>,
    block: RecordBatch,
    at: usize,
}

impl Cursor {
    /// At the first row; `None` for a run without rows.
    fn open(run: Run) -> Result<Option<Self>, StoreError> {
        let opened = || StreamReader::try_new(BufReader::new(File::open(&run.0)?), None);
        let mut reader = opened().map_err(|error| failed(&run.0, &error))?;
        let first = reader.next().transpose().map_err(|error| failed(&run.0, &error))?;
        Ok(first.map(|block| Self { run, reader, block, at: 0 }))
    }

    fn cell(&self) -> i64 {
        let cells = self.block.column(self.block.num_columns() - 1);
        cells.as_primitive::<Int64Type>().value(self.at)
    }
}

/// Gives the rows of all runs in the order of their cells, in batches, to `sink`.
pub(super) fn merge(
    runs: Vec<Run>,
    schema: &SchemaRef,
    sink: &mut dyn FnMut(RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut cursors = Vec::with_capacity(runs.len());
    for run in runs {
        cursors.extend(Cursor::open(run)?);
    }
    let mut heap: BinaryHeap<Reverse<(i64, usize)>> =
        cursors.iter().enumerate().map(|(at, cursor)| Reverse((cursor.cell(), at))).collect();
    // Blocks that rows were taken from, and which row of which block comes next in the output.
    let mut blocks: Vec<RecordBatch> = cursors.iter().map(|cursor| cursor.block.clone()).collect();
    let mut block_of: Vec<usize> = (0..cursors.len()).collect();
    let mut taken: Vec<(usize, usize)> = Vec::with_capacity(BLOCK_ROWS);
    while let Some(Reverse((_, at))) = heap.pop() {
        let cursor = &mut cursors[at];
        taken.push((block_of[at], cursor.at));
        cursor.at += 1;
        let mut more = true;
        if cursor.at == cursor.block.num_rows() {
            match cursor.reader.next().transpose().map_err(|error| failed(&cursor.run.0, &error))? {
                Some(block) => {
                    blocks.push(block.clone());
                    block_of[at] = blocks.len() - 1;
                    (cursor.block, cursor.at) = (block, 0);
                }
                None => more = false,
            }
        }
        if more {
            heap.push(Reverse((cursor.cell(), at)));
        }
        if taken.len() == BLOCK_ROWS || heap.is_empty() {
            sink(gathered(&blocks, &taken, schema)?)?;
            taken.clear();
            blocks = cursors.iter().map(|cursor| cursor.block.clone()).collect();
            block_of = (0..cursors.len()).collect();
        }
    }
    Ok(())
}

fn gathered(
    blocks: &[RecordBatch],
    taken: &[(usize, usize)],
    schema: &SchemaRef,
) -> Result<RecordBatch, StoreError> {
    let column = |at: usize| -> Result<ArrayRef, arrow_schema::ArrowError> {
        let columns: Vec<&dyn Array> = blocks.iter().map(|block| block.column(at).as_ref()).collect();
        interleave(&columns, taken)
    };
    let made = (0..schema.fields().len())
        .map(column)
        .collect::<Result<Vec<_>, _>>()
        .and_then(|columns| RecordBatch::try_new(schema.clone(), columns));
    made.map_err(|error| failed(Path::new("merge"), &error))
}
