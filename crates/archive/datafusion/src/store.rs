//! Tables on disk: Parquet segments in the order of the sky, with small indexes beside them.
//!
//! ```text
//! <folder>/<schema>.<table>/          names with anything but letters, digits, - and _ spelled %XX
//!   table.toml                        what people say of the table; may be edited
//!   attached                          instead of versions: where the files lie that are served as they are
//!   survey.json                       what was learned of those files
//!   current                           the name of the version that is served, replaced as a whole
//!   lock                              held by whoever loads
//!   v00000007/
//!     manifest.json                   chunks, their bounds, the indexes
//!     fields.vot                      the columns, as a VOTable without rows
//!     00000.parquet ...               rows; row groups are the chunks
//!     0003.index                      the index over column 3
//! ```
//!
//! A load writes a new version beside the one that is served, flushes everything, and then changes `current`: a
//! crash leaves the old table, and a server that still reads it finds its files, because the version before the
//! current one stays until the next load.

mod attach;
mod bounded;
mod headers;
mod input;
mod load;
mod manifest;
mod merge;
mod names;
mod result;
mod segment;
mod source;
mod survey;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trifid_archive_adql::types::Field;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::cache::ColumnCache;
use trifid_archive_engine::catalogue::{Published, SchemaInfo, TableInfo};
use trifid_archive_engine::metadata::{Description, DescriptionError, describe};
use trifid_archive_engine::table::TableHead;
use trifid_archive_model::read::ReadError;

use crate::limits::FOOTER_BYTES;

pub use bounded::{Bounds, read_parquet};
pub use input::{Input, open as open_input, open_parquet};
pub use load::{Loaded, Progress, Target};
pub use result::ParquetResult;

/// Why a table cannot be stored or served.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The input is no table, or a broken one.
    #[error("{name}: {error}")]
    Input {
        /// The file.
        name: String,
        /// Where and what.
        error: ReadError,
    },
    /// A file of the store does not hold what it should.
    #[error("{0} is damaged: {1}")]
    Damaged(PathBuf, String),
    /// The description of a table.
    #[error("{0}: {1}")]
    Description(PathBuf, DescriptionError),
    /// The input does not fit the table.
    #[error("{0}")]
    Mismatch(String),
    /// Somebody else is loading the table.
    #[error("the table is being loaded by another process")]
    Locked,
    /// What is asked for is not there.
    #[error("{0}")]
    Missing(String),
    /// Computing something of the rows failed.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl StoreError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// What is known of attached files.
const SURVEY: &str = "survey.json";

/// The folder of tables.
#[derive(Clone)]
pub struct Store {
    folder: PathBuf,
    cache: Arc<ColumnCache>,
    footers: Arc<source::Footers>,
}

/// A table of the store as it is served.
pub struct Stored {
    /// The table and its metadata.
    pub published: Arc<Published>,
    /// What its description says of the schema.
    pub schema: SchemaInfo,
    /// What people say of it.
    pub description: Description,
}

impl Store {
    /// The store in a folder, which need not be there yet; columns that are read stay in `cache`.
    pub fn new(folder: impl Into<PathBuf>, cache: Arc<ColumnCache>) -> Self {
        Self { folder: folder.into(), cache, footers: Arc::new(source::Footers::new(FOOTER_BYTES)) }
    }

    /// The tables there are, by schema and name.
    pub fn list(&self) -> Result<Vec<(String, String)>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("reading the folder of tables")(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(StoreError::io("reading the folder of tables"))?;
            let name = entry.file_name().to_str().and_then(names::read);
            let served = |name: &str| entry.path().join(name).exists();
            if let Some(name) = name.filter(|_| served("current") || served("attached")) {
                found.push(name);
            }
        }
        found.sort();
        Ok(found)
    }

    fn folder_of(&self, schema: &str, table: &str) -> PathBuf {
        self.folder.join(names::spelled(schema, table))
    }

    /// What tells one state of the store from another: the tables with their versions and descriptions.
    pub fn state(&self) -> Result<Vec<String>, StoreError> {
        let state = |(schema, table): &(String, String)| {
            let folder = self.folder_of(schema, table);
            let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
            format!("{schema}.{table} {} {} {}", text("current"), text("attached"), text("table.toml"))
        };
        Ok(self.list()?.iter().map(state).collect())
    }

    /// Opens one table.
    pub fn open(&self, schema: &str, table: &str) -> Result<Stored, StoreError> {
        let folder = self.folder_of(schema, table);
        let description = lenient(read_description(&folder))?;
        let attached = folder.join("attached");
        if attached.exists() {
            let place =
                fs::read_to_string(&attached).map_err(StoreError::io("reading where a table lies"))?;
            let (place, kept) = (Path::new(place.trim()), folder.join(SURVEY));
            let opened = attach::open(place, (schema, table), description, self, &kept)?;
            if let Some(learned) = opened.learned {
                learned.keep(&kept);
            }
            return Ok(opened.stored);
        }
        let version = current(&folder)?
            .ok_or_else(|| StoreError::Missing(format!("there is no table {schema}.{table}")))?;
        source::open(&folder.join(version), schema, table, description, self)
    }

    /// Serves files as they lie: a Parquet file, a folder of them, or a HATS catalogue.
    pub fn attach(&self, place: &Path, target: &Target) -> Result<Stored, StoreError> {
        let place = fs::canonicalize(place).map_err(StoreError::io(place.display().to_string()))?;
        let folder = self.folder_of(&target.schema, &target.table);
        let (name, kept) = ((&*target.schema, &*target.table), folder.join(SURVEY));
        let opened = attach::open(&place, name, target.description()?, self, &kept)?;
        fs::create_dir_all(&folder).map_err(StoreError::io("making the table's folder"))?;
        let _lock = lock(&folder)?;
        target.keep_description(&folder)?;
        if let Some(learned) = opened.learned {
            learned.keep(&kept);
        }
        replace(&folder.join("attached"), place.display().to_string().as_bytes())?;
        Ok(opened.stored)
    }

    /// Forgets a table; files that were attached stay where they are.
    pub fn drop_table(&self, schema: &str, table: &str) -> Result<(), StoreError> {
        let folder = self.folder_of(schema, table);
        if !folder.is_dir() {
            return Err(StoreError::Missing(format!("there is no table {schema}.{table}")));
        }
        let _lock = lock(&folder)?;
        fs::remove_dir_all(&folder).map_err(StoreError::io("removing the table"))?;
        sync_folder(&self.folder)
    }

    /// Loads a table from inputs of the same columns, in place of the one of that name.
    pub fn load(
        &self,
        inputs: &mut dyn Iterator<Item = Result<Input, StoreError>>,
        target: &Target,
        progress: &dyn Progress,
    ) -> Result<Loaded, StoreError> {
        let folder = self.folder_of(&target.schema, &target.table);
        fs::create_dir_all(&folder).map_err(StoreError::io("making the table's folder"))?;
        let _lock = lock(&folder)?;
        load::run(&folder, inputs, target, progress)
    }
}

/// What people say of the table in a folder: nothing, where there is no file.
fn read_description(folder: &Path) -> Result<Description, StoreError> {
    let path = folder.join("table.toml");
    match fs::read_to_string(&path) {
        Ok(text) => Description::parse(&text).map_err(|error| StoreError::Description(path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Description::default()),
        Err(error) => Err(StoreError::io("reading a table's description")(error)),
    }
}

/// A slip in a description is no reason not to serve the rows: an operator is told, and it counts for nothing.
fn lenient(read: Result<Description, StoreError>) -> Result<Description, StoreError> {
    match read {
        Err(error @ StoreError::Description(..)) => {
            tracing::error!(%error, "a table is served without its description");
            Ok(Description::default())
        }
        done => done,
    }
}

/// The name of the version that is served.
fn current(folder: &Path) -> Result<Option<String>, StoreError> {
    match fs::read_to_string(folder.join("current")) {
        Ok(name) => Ok(Some(name.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("reading which version is served")(error)),
    }
}

/// Held while a table changes.
struct Lock(#[allow(dead_code)] File); // kept for its drop

fn lock(folder: &Path) -> Result<Lock, StoreError> {
    let file = File::create(folder.join("lock")).map_err(StoreError::io("locking the table"))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::Locked),
        Err(fs::TryLockError::Error(error)) => Err(StoreError::io("locking the table")(error)),
    }
}

/// Puts a whole file in its place, durably.
fn replace(place: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let new = place.with_extension("new");
    let written = || {
        let mut file = File::create(&new)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&new, place)
    };
    written().map_err(StoreError::io(format!("writing {}", place.display())))?;
    sync_folder(place.parent().unwrap_or(Path::new(".")))
}

fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = || File::open(folder)?.sync_all();
    synced().map_err(StoreError::io(format!("flushing {}", folder.display())))
}

/// What a description says of the schema.
fn schema_info(schema: &str, description: &Description) -> SchemaInfo {
    SchemaInfo {
        name: schema.into(),
        description: description.schema.description.clone(),
        utype: description.schema.utype.clone(),
        index: description.schema.index,
    }
}

/// Head and metadata of a table that is there. A description that does not fit its columns (any more) is not in the
/// way: an operator is told, and the table is served without it.
fn served(
    schema: &str,
    table: &str,
    fields: &[Field],
    description: &mut Description,
) -> Result<(TableHead, TableInfo), StoreError> {
    match described(schema, table, fields, description) {
        Err(error @ StoreError::Description(..)) => {
            let table_name = format!("{schema}.{table}");
            tracing::error!(table = table_name, %error, "a table is served without its description");
            *description = Description::default();
            described(schema, table, fields, description)
        }
        done => done,
    }
}

/// Head and metadata of a table of these columns.
fn described(
    schema: &str,
    table: &str,
    fields: &[Field],
    description: &Description,
) -> Result<(TableHead, TableInfo), StoreError> {
    describe(schema, table, fields, description)
        .map_err(|error| StoreError::Description(PathBuf::from("table.toml"), error))
}
