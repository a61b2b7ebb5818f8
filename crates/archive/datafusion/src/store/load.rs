//! Loading: from readers to a version, in bounded memory.
//!
//! Rows of a table with a position are sorted by their cells: in memory if they fit, otherwise in sorted runs on
//! disk that are merged. Rows without a position keep their order. Nothing of the table that is served changes before
//! everything is written and flushed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use trifid_archive_adql::types::Field;
use trifid_archive_engine::memory::cells;
use trifid_archive_engine::metadata::{Description, indexed};
use trifid_archive_engine::table::{Position, Row};
use trifid_archive_model::read::{About, TableReader};
use trifid_archive_model::votable;
use trifid_archive_model::write::{End, Head, TableWriter as _};

use super::merge::{Run, merge, spill};
use super::segment::{Segments, put, remove, schema};
use super::{Input, SURVEY, StoreError, current, described, read_description, replace};
use crate::limits::{LOAD_BATCH_ROWS, RUN_BYTES};

/// Where to load to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// What is said of it, as the text of a TOML file; without it what was said before stays.
    pub description: Option<String>,
}

/// Told how far a load is.
pub trait Progress {
    /// So many rows were read.
    fn rows(&self, rows: u64);
    /// Another step begins.
    fn step(&self, name: &str);
}

/// What was loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Rows.
    pub rows: u64,
    /// The columns, as their sources describe them.
    pub fields: Arc<[Field]>,
    /// Whether the rows are sorted over the sky.
    pub has_position: bool,
}

impl Target {
    pub(super) fn description(&self) -> Result<Description, StoreError> {
        let parse = |text: &String| Description::parse(text);
        let parsed = self.description.as_ref().map(parse).transpose();
        parsed
            .map(Option::unwrap_or_default)
            .map_err(|e| StoreError::Description(PathBuf::from("table.toml"), e))
    }

    pub(super) fn keep_description(&self, folder: &Path) -> Result<(), StoreError> {
        self.description.as_ref().map_or(Ok(()), |text| replace(&folder.join("table.toml"), text.as_bytes()))
    }
}

/// Loads into a table's folder, whose lock is held.
pub(super) fn run(
    folder: &Path,
    inputs: &mut dyn Iterator<Item = Result<Input, StoreError>>,
    target: &Target,
    progress: &dyn Progress,
) -> Result<Loaded, StoreError> {
    let before = current(folder)?;
    let version = prepare(folder, before.as_deref())?;
    let place = folder.join(&version);
    fs::create_dir(&place).map_err(StoreError::io("making a version of the table"))?;
    let loaded = match fill(&place, folder, inputs, target, progress) {
        Ok(loaded) => loaded,
        Err(error) => {
            remove(&place)?;
            return Err(error);
        }
    };
    target.keep_description(folder)?;
    replace(&folder.join("current"), version.as_bytes())?;
    // Files that were attached under this name are served no more.
    let _ = fs::remove_file(folder.join("attached"));
    let _ = fs::remove_file(folder.join(SURVEY));
    Ok(loaded)
}

/// Removes versions that nobody reads any more, and names the next.
fn prepare(folder: &Path, current: Option<&str>) -> Result<String, StoreError> {
    let mut last = 0;
    for entry in fs::read_dir(folder).map_err(StoreError::io("reading the table's folder"))? {
        let entry = entry.map_err(StoreError::io("reading the table's folder"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix('v').and_then(|number| number.parse::<u64>().ok()) else {
            continue;
        };
        last = last.max(number);
        if current != Some(name.as_str()) {
            remove(&entry.path())?;
        }
    }
    Ok(format!("v{:08}", last + 1))
}

fn fill(
    place: &Path,
    folder: &Path,
    inputs: &mut dyn Iterator<Item = Result<Input, StoreError>>,
    target: &Target,
    progress: &dyn Progress,
) -> Result<Loaded, StoreError> {
    let mut loading: Option<Loading> = None;
    for input in inputs {
        let Input { name, mut reader } = input?;
        progress.step(&format!("reading {name}"));
        let loading = match &mut loading {
            Some(loading) => {
                loading.same_columns(&name, reader.fields())?;
                loading
            }
            none => {
                if reader.fields().is_empty() {
                    return Err(StoreError::Mismatch(format!("{name} has no columns")));
                }
                none.insert(Loading::begin(place, folder, target, &*reader)?)
            }
        };
        while let Some(batch) = reader
            .next_batch(LOAD_BATCH_ROWS)
            .map_err(|error| StoreError::Input { name: name.clone(), error })?
        {
            progress.rows(batch.num_rows() as u64);
            loading.push(batch)?;
        }
    }
    let loading = loading.ok_or_else(|| StoreError::Mismatch("there is nothing to load".into()))?;
    progress.step("writing");
    loading.finish()
}

/// A load under way.
struct Loading {
    place: PathBuf,
    fields: Arc<[Field]>,
    schema: SchemaRef,
    position: Option<Position>,
    segments: Segments,
    waiting: Vec<RecordBatch>,
    waiting_bytes: usize,
    runs: Vec<Run>,
    rows: u64,
    /// Whether a column of texts has others than ASCII: those are `unicodeChar`, or a VOTable would lose them.
    unicode: Vec<bool>,
}

impl Loading {
    fn begin(
        place: &Path,
        folder: &Path,
        target: &Target,
        reader: &dyn TableReader,
    ) -> Result<Self, StoreError> {
        let fields = Arc::clone(reader.fields());
        keep_about(folder, target, &reader.about())?;
        let description = match &target.description {
            Some(_) => target.description()?,
            None => read_description(folder)?,
        };
        let (head, info) = described(&target.schema, &target.table, &fields, &description)?;
        let segments = Segments::new(place.to_owned(), &fields, head.position, indexed(&head, &info));
        Ok(Self {
            place: place.to_owned(),
            schema: schema(&fields, head.position.is_some()),
            unicode: fields.iter().map(|field| field.unicode).collect(),
            fields,
            position: head.position,
            segments,
            waiting: Vec::new(),
            waiting_bytes: 0,
            runs: Vec::new(),
            rows: 0,
        })
    }

    fn same_columns(&self, name: &str, fields: &[Field]) -> Result<(), StoreError> {
        let said = |fields: &[Field]| -> Vec<String> {
            fields.iter().map(|field| format!("{} {}", field.name, field.ty)).collect()
        };
        let (first, other) = (said(&self.fields), said(fields));
        if first == other {
            return Ok(());
        }
        let differing = first.iter().zip(&other).find(|(a, b)| a != b);
        Err(StoreError::Mismatch(match differing {
            Some((a, b)) => format!("{name} has the column {b} where the first file has {a}"),
            None => format!("{name} has {} columns, the first file {}", other.len(), first.len()),
        }))
    }

    fn push(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        self.rows += batch.num_rows() as u64;
        for (unicode, column) in self.unicode.iter_mut().zip(batch.columns()) {
            *unicode =
                *unicode || column.as_string_opt::<i32>().is_some_and(|texts| !texts.value_data().is_ascii());
        }
        if self.rows > u64::from(Row::MAX) {
            return Err(StoreError::Mismatch("a table has fewer than 2^32 rows".into()));
        }
        if self.position.is_none() {
            return self.segments.push(batch);
        }
        self.waiting_bytes += batch.get_array_memory_size();
        self.waiting.push(batch);
        if self.waiting_bytes < RUN_BYTES {
            return Ok(());
        }
        let run = self.sorted()?;
        let path = self.place.join(format!("run-{}", self.runs.len()));
        self.runs.push(spill(&run, &path)?);
        Ok(())
    }

    /// The waiting rows by their cells, which become the last column.
    fn sorted(&mut self) -> Result<RecordBatch, StoreError> {
        let failed =
            |error: arrow_schema::ArrowError| StoreError::Damaged(self.place.clone(), error.to_string());
        let plain = trifid_archive_model::batch::schema(&self.fields);
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let joined = concat_batches(&plain, &waiting).map_err(failed)?;
        drop(waiting);
        let Some(position) = self.position else { return Ok(joined) };
        let cells = cells(joined.column(position.lon), joined.column(position.lat));
        let mut order: Vec<u32> = (0..cells.len() as u32).collect();
        order.sort_by_key(|row| cells[*row as usize]);
        let mut columns: Vec<ArrayRef> = joined.columns().to_vec();
        columns.push(Arc::new(Int64Array::from(cells)));
        let whole = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(failed)?;
        take_record_batch(&whole, &UInt32Array::from(order)).map_err(failed)
    }

    fn finish(mut self) -> Result<Loaded, StoreError> {
        if self.position.is_some() {
            let last = self.sorted()?;
            if self.runs.is_empty() {
                self.segments.push(last)?;
            } else {
                let mut runs = std::mem::take(&mut self.runs);
                runs.push(spill(&last, &self.place.join(format!("run-{}", runs.len())))?);
                drop(last);
                merge(runs, &self.schema, &mut |batch| self.segments.push(batch))?;
            }
        }
        let unicode = |(field, unicode): (&Field, &bool)| Field { unicode: *unicode, ..field.clone() };
        let fields: Arc<[Field]> = self.fields.iter().zip(&self.unicode).map(unicode).collect();
        keep_fields(&self.place, &fields)?;
        let rows = self.segments.finish()?;
        Ok(Loaded { rows, fields, has_position: self.position.is_some() })
    }
}

/// What the source says of the table becomes its description, unless there is one.
fn keep_about(folder: &Path, target: &Target, about: &About) -> Result<(), StoreError> {
    let file = folder.join("table.toml");
    if target.description.is_some() || file.exists() {
        return Ok(());
    }
    let Some(text) = &about.description else { return Ok(()) };
    let mut description = Description::default();
    description.table.description = Some(Arc::clone(text));
    let text = toml::to_string(&description)
        .map_err(|error| StoreError::Damaged(file.clone(), error.to_string()))?;
    replace(&file, text.as_bytes())
}

/// The columns as a VOTable without rows.
fn keep_fields(place: &Path, fields: &Arc<[Field]>) -> Result<(), StoreError> {
    let mut bytes = Vec::new();
    let mut writer =
        Box::new(votable::Writer::new(votable::Options::default(), Head::new(Arc::clone(fields))));
    writer.begin(&mut bytes);
    writer.finish(&End::Complete, &mut bytes);
    put(place, "fields.vot", &bytes)
}
