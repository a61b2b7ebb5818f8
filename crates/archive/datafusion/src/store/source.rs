//! Serving a version: columns read from its segments when they are needed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, new_empty_array};
use arrow_select::concat::concat;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::{PageIndexPolicy, RowGroupMetaData};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::QueryError;
use trifid_archive_engine::catalogue::Published;
use trifid_archive_engine::index::{Indexes, Sorted, Spatial, decode};
use trifid_archive_engine::metadata::Description;
use trifid_archive_engine::table::{Chunk, ColumnSource, Row, Table, TableHead};
use trifid_archive_model::adopt;
use trifid_archive_model::batch::physical;
use trifid_archive_model::read::TableReader as _;
use trifid_archive_model::votable;

use super::manifest::{LAYOUT, Manifest};
use super::{Store, StoreError, Stored, schema_info, served};

/// Rows of one row group of one file.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) file: usize,
    pub(super) row_group: usize,
    /// How many rows the row group has.
    pub(super) of: u32,
    /// The first of the rows within it.
    pub(super) from: u32,
    /// How many rows.
    pub(super) rows: u32,
}

/// Files of row groups as a source of columns.
pub(super) struct Files {
    pub(super) files: Vec<ParquetFile>,
    pub(super) footers: Arc<Footers>,
    /// The chunks of the table.
    pub(super) groups: Vec<Group>,
    /// The types of the columns, cells included.
    pub(super) types: Vec<Type>,
    /// Where each column is in the files.
    pub(super) places: Vec<usize>,
}

/// A file.
pub(super) struct ParquetFile {
    pub(super) path: PathBuf,
    /// What its footer is kept under.
    number: u64,
}

/// Footers that were read, with the page indexes, within a budget of bytes; shared by all tables of a store.
pub(super) struct Footers {
    kept: Cache<u64, ArrowReaderMetadata, FooterBytes>,
    next: AtomicU64,
}

#[derive(Clone)]
struct FooterBytes;

impl Weighter<u64, ArrowReaderMetadata> for FooterBytes {
    fn weight(&self, _: &u64, footer: &ArrowReaderMetadata) -> u64 {
        footer.metadata().memory_size() as u64 + footer.schema().fields().size() as u64
    }
}

impl Footers {
    /// Room for so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        // An estimate: a footer takes some kibibytes and more.
        let items = usize::try_from(bytes / (16 << 10)).unwrap_or(usize::MAX).clamp(16, 1 << 16);
        Self { kept: Cache::with_weighter(items, bytes, FooterBytes), next: AtomicU64::new(0) }
    }

    /// A file whose footer is read when it is needed.
    pub(super) fn file(&self, path: PathBuf) -> ParquetFile {
        ParquetFile { path, number: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// A file's footer.
    pub(super) fn get(&self, file: &ParquetFile) -> Result<ArrowReaderMetadata, String> {
        if let Some(footer) = self.kept.get(&file.number) {
            return Ok(footer);
        }
        let opened = file.open()?;
        let load = |pages| {
            let options = ArrowReaderOptions::new().with_page_index_policy(pages);
            ArrowReaderMetadata::load(&opened, options)
        };
        // A page index that is damaged is not needed for a right answer.
        let read = load(PageIndexPolicy::Optional).or_else(|_| load(PageIndexPolicy::Skip));
        let footer = read.map_err(|error| format!("{}: {error}", file.path.display()))?;
        self.kept.insert(file.number, footer.clone());
        Ok(footer)
    }

    /// How many are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}

impl ParquetFile {
    fn open(&self) -> Result<File, String> {
        File::open(&self.path).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// Some rows of a column. Pages without any of them are neither read nor decoded if the file says where its pages
    /// are.
    fn column(
        &self,
        footer: ArrowReaderMetadata,
        group: &Group,
        place: usize,
        ty: Type,
    ) -> Result<ArrayRef, String> {
        let changed = || format!("{} has changed since the table was opened", self.path.display());
        let found = footer.metadata().row_groups().get(group.row_group).map(RowGroupMetaData::num_rows);
        if found != Some(i64::from(group.of)) {
            return Err(changed());
        }
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.open()?, footer);
        let mask = ProjectionMask::roots(builder.parquet_schema(), [place]);
        let mut builder = builder
            .with_projection(mask)
            .with_row_groups(vec![group.row_group])
            .with_batch_size(group.rows as usize);
        if group.rows < group.of {
            let (from, rows) = (group.from as usize, group.rows as usize);
            let rows = vec![RowSelector::skip(from), RowSelector::select(rows)];
            builder = builder.with_row_selection(RowSelection::from(rows));
        }
        let reader = builder.build().map_err(|error| error.to_string())?;
        let mut pieces = Vec::new();
        for batch in reader {
            let batch = batch.map_err(|error| format!("{}: {error}", self.path.display()))?;
            pieces.push(adopt::values(batch.column(0), ty)?);
        }
        let column = joined(pieces, ty)?;
        if column.len() == group.rows as usize { Ok(column) } else { Err(changed()) }
    }
}

fn joined(mut pieces: Vec<ArrayRef>, ty: Type) -> Result<ArrayRef, String> {
    if pieces.len() == 1 {
        return Ok(pieces.swap_remove(0));
    }
    let parts: Vec<&dyn arrow_array::Array> = pieces.iter().map(AsRef::as_ref).collect();
    if parts.is_empty() {
        return Ok(new_empty_array(&physical(ty)));
    }
    concat(&parts).map_err(|error| error.to_string())
}

impl ColumnSource for Files {
    fn read(&self, chunk: usize, column: usize) -> Result<ArrayRef, QueryError> {
        let group = &self.groups[chunk];
        let file = &self.files[group.file];
        let footer = self.footers.get(file).map_err(QueryError::internal)?;
        let read = file.column(footer, group, self.places[column], self.types[column]);
        read.map_err(QueryError::internal)
    }
}

/// Opens a version.
pub(super) fn open(
    folder: &Path,
    schema: &str,
    table: &str,
    mut description: Description,
    store: &Store,
) -> Result<Stored, StoreError> {
    let manifest = manifest(folder)?;
    let fields = fields(folder)?;
    let (head, info) = served(schema, table, &fields, &mut description)?;
    let indexes = indexes(folder, &manifest, &head)?;
    let source = files(folder, &manifest, &fields, &store.footers);
    let table = Table::new(head, chunks(&manifest), indexes, Arc::new(source), Arc::clone(&store.cache));
    Ok(Stored {
        schema: schema_info(schema, &description),
        published: Arc::new(Published { table: Arc::new(table), info }),
        description,
    })
}

fn manifest(folder: &Path) -> Result<Manifest, StoreError> {
    let path = folder.join("manifest.json");
    let bytes = fs::read(&path).map_err(StoreError::io(format!("reading {}", path.display())))?;
    let manifest: Manifest = serde_json::from_slice(&bytes)
        .map_err(|error| StoreError::Damaged(path.clone(), error.to_string()))?;
    if manifest.layout != LAYOUT {
        return Err(StoreError::Damaged(path, format!("it has the unknown layout {}", manifest.layout)));
    }
    Ok(manifest)
}

fn fields(folder: &Path) -> Result<Vec<Field>, StoreError> {
    let path = folder.join("fields.vot");
    let file = File::open(&path).map_err(StoreError::io(format!("reading {}", path.display())))?;
    let reader = votable::Reader::new(file, votable::ReadOptions::default())
        .map_err(|error| StoreError::Damaged(path, error.to_string()))?;
    Ok(reader.fields().to_vec())
}

fn indexes(folder: &Path, manifest: &Manifest, head: &TableHead) -> Result<Indexes, StoreError> {
    let read = |column: &usize| -> Result<Option<Sorted>, StoreError> {
        let path = folder.join(format!("{column:04}.index"));
        let bytes = fs::read(&path).map_err(StoreError::io(format!("reading {}", path.display())))?;
        match decode(&bytes) {
            Ok(index) if index.rows.len() as u64 == manifest.rows && index.column == *column => {
                Ok(Some(index))
            }
            // Never needed for a right answer.
            Ok(_) | Err(_) => {
                tracing::warn!(file = %path.display(), "an index is damaged; the table is served without it");
                Ok(None)
            }
        }
    };
    let sorted = manifest.indexed.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let cells: Option<Vec<(i64, i64)>> = manifest.chunks.iter().map(|chunk| chunk.cells).collect();
    // A description may have moved the position to other columns since: the order of the rows is then of no use.
    let position = head.position.map(|position| (position.lon, position.lat));
    let is_ordered = position.is_some() && position == manifest.position;
    let column = head.fields.len();
    let spatial = cells.filter(|_| is_ordered).map(|chunks| Spatial { column, chunks, ordered: true });
    Ok(Indexes { spatial, sorted: sorted.into_iter().flatten().collect() })
}

fn files(folder: &Path, manifest: &Manifest, fields: &[Field], footers: &Arc<Footers>) -> Files {
    let segments = manifest.chunks.last().map_or(0, |chunk| chunk.segment as usize + 1);
    let file = |segment: usize| footers.file(folder.join(format!("{segment:05}.parquet")));
    let group = |chunk: &super::manifest::Chunk| Group {
        file: chunk.segment as usize,
        row_group: chunk.row_group as usize,
        of: chunk.rows,
        from: 0,
        rows: chunk.rows,
    };
    let mut types: Vec<Type> = fields.iter().map(|field| field.ty).collect();
    types.push(Type::Long);
    Files {
        files: (0..segments).map(file).collect(),
        footers: Arc::clone(footers),
        groups: manifest.chunks.iter().map(group).collect(),
        places: (0..types.len()).collect(),
        types,
    }
}

fn chunks(manifest: &Manifest) -> Vec<Chunk> {
    let mut first: Row = 0;
    let chunk = |kept: &super::manifest::Chunk| {
        let ranges = kept.ranges.iter().map(|range| range.as_ref().map(Into::into)).collect();
        let chunk = Chunk { first, rows: kept.rows, ranges };
        first += kept.rows;
        chunk
    };
    manifest.chunks.iter().map(chunk).collect()
}
