//! Files served as they lie: Parquet files, folders of them, HATS catalogues.
//!
//! A row group is a chunk; its statistics are what prunes. A HATS catalogue (IVOA Note HATS 1.0: a tree of partition
//! files whose rows carry `_healpix_29`) and any other file with that column is pruned over the sky as well: by the
//! bounds of the column in each row group, and then by its values. Nothing is assumed of the order of the rows.
//!
//! Parquet says nothing of units and UCDs; a VOTable header in a file's metadata is read where there is one
//! (VOParquet), and everything can be said in the table's description.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::Schema;
use parquet::file::metadata::{FileMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::cache::ColumnCache;
use trifid_archive_engine::catalogue::Published;
use trifid_archive_engine::index::{Indexes, Spatial};
use trifid_archive_engine::metadata::Description;
use trifid_archive_engine::table::{Bounds, Chunk, Range, Row, Table};
use trifid_archive_model::adopt;
use trifid_archive_model::read::TableReader as _;
use trifid_archive_model::votable;

use super::result::HEADER_KEY;
use super::segment::CELLS;
use super::source::{Files, Group, ParquetFile};
use super::{StoreError, Stored, described, schema_info};
use crate::limits::ATTACHED_FILES;

/// Opens what lies at a place.
pub(super) fn open(
    place: &Path,
    schema: &str,
    table: &str,
    description: Description,
    cache: &Arc<ColumnCache>,
) -> Result<Stored, StoreError> {
    let files: Vec<ParquetFile> = found(place)?.into_iter().map(ParquetFile::new).collect();
    let first = files
        .first()
        .ok_or_else(|| StoreError::Missing(format!("there is no Parquet file at {}", place.display())))?;
    let footer = footer(first)?;
    let columns = columns(footer.schema(), footer.metadata().file_metadata());
    let arrow = footer.schema().clone();
    for file in &files[1..] {
        same_schema(first, file)?;
    }
    let (places, fields): (Vec<usize>, Vec<Field>) = columns.into_iter().unzip();
    if fields.is_empty() {
        return Err(StoreError::Mismatch(format!("{} has no column that a table can have", place.display())));
    }
    let (head, info) = described(schema, table, &fields, &description)?;
    let (chunks, groups, cells) = row_groups(&files, &fields, &places, &arrow)?;
    let cells = cells.filter(|_| head.position.is_some());
    let spatial = cells.map(|(column, chunks)| Spatial { column, chunks, ordered: false });
    let indexes = Indexes { spatial, sorted: Vec::new() };
    let source = Files { files, groups, types: fields.iter().map(|field| field.ty).collect(), places };
    let table = Table::new(head, chunks, indexes, Arc::new(source), Arc::clone(cache));
    Ok(Stored {
        schema: schema_info(schema, &description),
        published: Arc::new(Published { table: Arc::new(table), info }),
        description,
    })
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

fn footer(file: &ParquetFile) -> Result<&parquet::arrow::arrow_reader::ArrowReaderMetadata, StoreError> {
    file.footer().map_err(|error| StoreError::Damaged(file.path.clone(), error))
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

fn same_schema(first: &ParquetFile, other: &ParquetFile) -> Result<(), StoreError> {
    let (a, b) = (footer(first)?.schema(), footer(other)?.schema());
    let names = |schema: &Schema| -> Vec<(String, arrow_schema::DataType)> {
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
    };
    if names(a) == names(b) {
        return Ok(());
    }
    Err(StoreError::Mismatch(format!(
        "{} has other columns than {}",
        other.path.display(),
        first.path.display()
    )))
}

/// Chunks, where they are, and the cells that each spans if there is a column of cells.
type RowGroups = (Vec<Chunk>, Vec<Group>, Option<(usize, Vec<(i64, i64)>)>);

fn row_groups(
    files: &[ParquetFile],
    fields: &[Field],
    places: &[usize],
    schema: &Schema,
) -> Result<RowGroups, StoreError> {
    let cells = fields.iter().position(|field| *field.name == *CELLS && field.ty == Type::Long);
    let leaves: Vec<Option<usize>> = places.iter().map(|place| leaf(schema, *place)).collect();
    let (mut chunks, mut groups, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    let mut first: u64 = 0;
    for (file, parquet) in files.iter().enumerate() {
        for (row_group, group) in footer(parquet)?.metadata().row_groups().iter().enumerate() {
            let rows = u32::try_from(group.num_rows()).unwrap_or(u32::MAX);
            if rows == 0 {
                continue;
            }
            let ranges: Box<[Option<Range>]> =
                fields.iter().zip(&leaves).map(|(field, leaf)| range(group, (*leaf)?, field.ty)).collect();
            spans.extend(cells.map(|cells| span(ranges[cells].as_ref())));
            chunks.push(Chunk { first: row(first)?, rows, ranges });
            groups.push(Group { file, row_group });
            first += u64::from(rows);
        }
    }
    row(first)?;
    Ok((chunks, groups, cells.map(|cells| (cells, spans))))
}

fn row(number: u64) -> Result<Row, StoreError> {
    Row::try_from(number).map_err(|_| StoreError::Mismatch("a table has fewer than 2^32 rows".into()))
}

/// The leaf column of a flat column: nested ones before it have several leaves.
fn leaf(schema: &Schema, place: usize) -> Option<usize> {
    let leaves = |ty: &arrow_schema::DataType| -> usize {
        match ty {
            arrow_schema::DataType::Struct(_) | arrow_schema::DataType::Map(..) => usize::MAX,
            _ => 1,
        }
    };
    schema.fields()[..place].iter().try_fold(0usize, |sum, field| sum.checked_add(leaves(field.data_type())))
}

fn span(range: Option<&Range>) -> (i64, i64) {
    match range.and_then(|range| range.bounds.as_ref()) {
        Some(Bounds::Integer(least, greatest)) => (*least, *greatest),
        _ => (i64::MIN, i64::MAX),
    }
}

/// What statistics tell of a column. They leave NaN out, which is above all numbers, so that there is no greatest
/// real that can be trusted.
fn range(group: &RowGroupMetaData, leaf: usize, ty: Type) -> Option<Range> {
    let statistics = group.columns().get(leaf)?.statistics()?;
    let nulls = statistics.null_count_opt() != Some(0);
    let bounds = match (statistics, ty) {
        (Statistics::Int32(values), Type::Short | Type::Int | Type::UnsignedByte | Type::Long) => {
            Bounds::Integer((*values.min_opt()?).into(), (*values.max_opt()?).into())
        }
        (Statistics::Int64(values), Type::Long) => Bounds::Integer(*values.min_opt()?, *values.max_opt()?),
        (Statistics::Double(values), Type::Double) => Bounds::Double(*values.min_opt()?, f64::NAN),
        (Statistics::Float(values), Type::Float) => Bounds::Double((*values.min_opt()?).into(), f64::NAN),
        _ => return None,
    };
    // Unsigned numbers are kept in signed ones, and their order with them.
    let turned = matches!(bounds, Bounds::Integer(least, greatest) if least > greatest || least < 0);
    (!turned || matches!(ty, Type::Short | Type::Int)).then_some(Range { bounds: Some(bounds), nulls })
}
