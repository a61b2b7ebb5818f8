//! Files served as they lie: Parquet files, folders of them, HATS catalogues.
//!
//! A row group is a chunk, or some pages of one ([`super::survey`]); its statistics are what prunes. A HATS catalogue
//! (IVOA Note HATS 1.0: a tree of partition files whose rows carry `_healpix_29`) and any other file with that column
//! is pruned over the sky as well: by the bounds of the column in each row group and each page, and then by its
//! values. Nothing is assumed of the order of the rows.
//!
//! Parquet says nothing of units and UCDs; a VOTable header in a file's metadata is read where there is one
//! (VOParquet), and everything can be said in the table's description.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::Schema;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::FileMetaData;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::catalogue::Published;
use trifid_archive_engine::index::{Indexes, Spatial};
use trifid_archive_engine::metadata::Description;
use trifid_archive_engine::table::Table;
use trifid_archive_model::adopt;
use trifid_archive_model::read::TableReader as _;
use trifid_archive_model::votable;

use super::result::HEADER_KEY;
use super::source::{Files, Footers, ParquetFile};
use super::survey::{Columns, Survey};
use super::{Store, StoreError, Stored, described, schema_info};
use crate::limits::ATTACHED_FILES;

/// A table that was opened, and what was learned of its files if that was not known.
pub(super) struct Opened {
    pub(super) stored: Stored,
    pub(super) learned: Option<Survey>,
}

/// Opens what lies at a place. `kept` is where that which was learned before would be.
pub(super) fn open(
    place: &Path,
    (schema, table): (&str, &str),
    description: Description,
    store: &Store,
    kept: &Path,
) -> Result<Opened, StoreError> {
    let paths = found(place)?;
    let files: Vec<ParquetFile> = paths.iter().map(|path| store.footers.file(path.clone())).collect();
    let first = files
        .first()
        .ok_or_else(|| StoreError::Missing(format!("there is no Parquet file at {}", place.display())))?;
    let footer = footer(&store.footers, first)?;
    let columns = columns(footer.schema(), footer.metadata().file_metadata());
    let (places, fields): (Vec<usize>, Vec<Field>) = columns.into_iter().unzip();
    if fields.is_empty() {
        return Err(StoreError::Mismatch(format!("{} has no column that a table can have", place.display())));
    }
    let (head, info) = described(schema, table, &fields, &description)?;
    let columns = Columns { fields: &fields, places: &places, schema: footer.schema() };
    let mut survey = Survey::new(&columns, &paths)?;
    let known = survey.kept(kept);
    if known.is_none() {
        for (at, file) in files.iter().enumerate() {
            let footer = self::footer(&store.footers, file)?;
            same_schema(first, columns.schema, file, footer.schema())?;
            survey.learn(at, footer.metadata(), &columns);
        }
    }
    let (chunks, groups, cells) = known.as_ref().unwrap_or(&survey).chunks()?;
    let column = columns.cells().filter(|_| head.position.is_some());
    let spatial = column.map(|column| Spatial { column, chunks: cells, ordered: false });
    let indexes = Indexes { spatial, sorted: Vec::new() };
    let types = fields.iter().map(|field| field.ty).collect();
    let source = Files { files, footers: Arc::clone(&store.footers), groups, types, places };
    let table = Table::new(head, chunks, indexes, Arc::new(source), Arc::clone(&store.cache));
    let stored = Stored {
        schema: schema_info(schema, &description),
        published: Arc::new(Published { table: Arc::new(table), info }),
        description,
    };
    Ok(Opened { stored, learned: known.is_none().then_some(survey) })
}

/// The columns that a table of ours can have, with their places in the file.
pub(super) fn columns(schema: &Schema, file: &FileMetaData) -> Vec<(usize, Field)> {
    let described = header(file).unwrap_or_default();
    let mut found = Vec::new();
    for (place, arrow) in schema.fields().iter().enumerate() {
        let field = match adopt::field(arrow) {
            Ok(field) => field,
            Err(unfit) => {
                tracing::warn!(%unfit, "a column is left out");
                continue;
            }
        };
        let said = described.iter().find(|said| said.name == field.name);
        // Text of files that say nothing may be any text.
        let unicode = field.unicode || field.ty == Type::Text;
        found.push((place, said.map_or(Field { unicode, ..field.clone() }, |said| merged(field, said))));
    }
    found
}

/// What the header says of a column, where it agrees with the data.
fn merged(field: Field, said: &Field) -> Field {
    let physical = trifid_archive_model::batch::physical;
    let ty = if physical(said.ty) == physical(field.ty) { said.ty } else { field.ty };
    Field { ty, name: field.name, ..said.clone() }
}

/// The columns that a VOTable header in the file's metadata describes.
fn header(file: &FileMetaData) -> Option<Vec<Field>> {
    let pairs = file.key_value_metadata()?;
    let text = pairs.iter().find(|pair| pair.key == HEADER_KEY)?.value.as_ref()?;
    let reader = votable::Reader::new(text.as_bytes(), votable::ReadOptions::default()).ok()?;
    Some(reader.fields().to_vec())
}

fn footer(footers: &Footers, file: &ParquetFile) -> Result<ArrowReaderMetadata, StoreError> {
    footers.get(file).map_err(|error| StoreError::Damaged(file.path.clone(), error))
}

/// The Parquet files at a place, in the order of their names; those of a HATS catalogue are below `dataset`.
fn found(place: &Path) -> Result<Vec<PathBuf>, StoreError> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let dataset = place.join("dataset");
    let root = if dataset.is_dir() { dataset } else { place.to_owned() };
    let (mut folders, mut files) = (vec![root], Vec::new());
    while let Some(folder) = folders.pop() {
        let listed = std::fs::read_dir(&folder).map_err(StoreError::io(folder.display().to_string()))?;
        for entry in listed {
            let path = entry.map_err(StoreError::io(folder.display().to_string()))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(['_', '.']) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".parquet") {
                files.push(path);
            }
            if files.len() + folders.len() > ATTACHED_FILES {
                return Err(StoreError::Mismatch(format!(
                    "{} has more than {ATTACHED_FILES} files",
                    place.display()
                )));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn same_schema(
    first: &ParquetFile,
    schema: &Schema,
    other: &ParquetFile,
    theirs: &Schema,
) -> Result<(), StoreError> {
    let columns = |schema: &Schema| -> Vec<(String, arrow_schema::DataType)> {
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
    };
    if columns(schema) == columns(theirs) {
        return Ok(());
    }
    Err(StoreError::Mismatch(format!(
        "{} has other columns than {}",
        other.path.display(),
        first.path.display()
    )))
}
