//! `trifid archive load`, `attach`, `list`, `drop` and `obscore`: the hands of the store of tables.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use arrow_array::RecordBatch;
use clap::Args;
use trifid_archive_datafusion::store::{Input, Loaded, Progress as LoadProgress, Store, Target, open_input};
use trifid_archive_engine::obscore::{self, Mapping};
use trifid_archive_model::read::{ReadError, TableReader};
use trifid_base_runtime::config::Config;

use super::{Options, folder, opened, tables};
use crate::cli::Common;
use crate::progress::Progress;

#[derive(Args)]
pub(crate) struct LoadArguments {
    /// The files: VOTable, FITS, CSV, TSV, Parquet or Arrow, plain or in gzip or zstd; several become one table
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args)]
pub(crate) struct AttachArguments {
    /// A Parquet file, a folder of them, or a HATS catalogue; it stays where it is
    place: PathBuf,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args)]
pub(crate) struct TargetArguments {
    /// The table, with its schema; a table of that name is replaced
    #[arg(long, value_name = "SCHEMA.TABLE")]
    table: String,
    /// A TOML file with units, UCDs, descriptions; without it what was said before stays, and the rest is guessed
    #[arg(long, value_name = "FILE")]
    describe: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DropArguments {
    /// The table, with its schema
    table: String,
}

#[derive(Args)]
pub(crate) struct ObscoreArguments {
    /// The mapping, a TOML file
    mapping: PathBuf,
}

pub(crate) fn load(common: &Common, arguments: &LoadArguments) -> anyhow::Result<()> {
    let store = store(&common.resolve(Vec::new())?)?;
    let target = arguments.target.resolve()?;
    let mut inputs = arguments.files.iter().map(|path| open_input(path));
    let loaded = loading(&store, &mut inputs, &target)?;
    let sorted = if loaded.has_position { ", sorted over the sky" } else { "" };
    say(&format!(
        "{} rows of {} columns in {}.{}{sorted}",
        loaded.rows,
        loaded.fields.len(),
        target.schema,
        target.table
    ))
}

fn loading(
    store: &Store,
    inputs: &mut dyn Iterator<Item = Result<Input, trifid_archive_datafusion::store::StoreError>>,
    target: &Target,
) -> anyhow::Result<Loaded> {
    let progress = Shown { progress: Progress::begin(), begun: Instant::now(), rows: 0.into() };
    let loaded = store.load(inputs, target, &progress);
    progress.progress.end();
    let loaded = loaded.with_context(|| format!("{}.{} was not loaded", target.schema, target.table))?;
    let seconds = progress.begun.elapsed().max(Duration::from_millis(1)).as_secs_f64();
    say(&format!("loaded in {seconds:.2} s"))?;
    Ok(loaded)
}

/// A load on a terminal.
struct Shown {
    progress: Progress,
    begun: Instant,
    rows: std::cell::Cell<u64>,
}

impl LoadProgress for Shown {
    fn rows(&self, rows: u64) {
        self.rows.set(self.rows.get() + rows);
        self.progress.message(&format!("{} rows", self.rows.get()));
    }

    fn step(&self, name: &str) {
        self.progress.message(name);
    }
}

pub(crate) fn attach(common: &Common, arguments: &AttachArguments) -> anyhow::Result<()> {
    let store = store(&common.resolve(Vec::new())?)?;
    let target = arguments.target.resolve()?;
    let stored = store.attach(&arguments.place, &target)?;
    let table = &stored.published.table;
    say(&format!(
        "{} rows of {} columns at {} are {}.{}",
        table.rows(),
        table.head.fields.len(),
        arguments.place.display(),
        target.schema,
        target.table
    ))
}

pub(crate) fn list(common: &Common) -> anyhow::Result<()> {
    let store = store(&common.resolve(Vec::new())?)?;
    let mut out = std::io::stdout().lock();
    for (schema, name) in store.list()? {
        let stored = store.open(&schema, &name)?;
        let table = &stored.published.table;
        let about = stored.published.info.description.as_deref().unwrap_or_default();
        writeln!(
            out,
            "{schema}.{name}\t{} rows\t{} columns\t{about}",
            table.rows(),
            table.head.fields.len()
        )?;
    }
    Ok(())
}

pub(crate) fn drop_table(common: &Common, arguments: &DropArguments) -> anyhow::Result<()> {
    let store = store(&common.resolve(Vec::new())?)?;
    let (schema, table) = split(&arguments.table)?;
    store.drop_table(schema, table)?;
    say(&format!("{schema}.{table} is gone"))
}

/// Makes `ivoa.obscore` out of tables of the store.
pub(crate) fn map(common: &Common, arguments: &ObscoreArguments) -> anyhow::Result<()> {
    let config = common.resolve(Vec::new())?;
    let text = read(&arguments.mapping)?;
    let mapping =
        Mapping::parse(&text).with_context(|| format!("{} is no mapping", arguments.mapping.display()))?;
    let options: Options = config.section(Options::SECTION)?;
    let folder = folder(&config)?;
    let archive = Arc::new(opened(&options, &folder)?);
    tables::Tables::new(&options, &folder, Arc::clone(&archive)).publish()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let standards = mapping.standards();
    let rows = runtime.block_on(obscore::rows(&archive, &mapping))?;
    let reader = Rows { fields: obscore::fields(&standards), rows: rows.into_iter() };
    let input = Input { name: arguments.mapping.display().to_string(), reader: Box::new(reader) };
    let target = Target {
        schema: obscore::SCHEMA.into(),
        table: obscore::TABLE.into(),
        description: Some(obscore::description(&standards)?),
    };
    let loaded = loading(&store(&config)?, &mut std::iter::once(Ok(input)), &target)?;
    say(&format!("{} observations in {}.{}", loaded.rows, target.schema, target.table))
}

/// Rows in memory as a table to be read.
struct Rows {
    fields: Arc<[trifid_archive_adql::types::Field]>,
    rows: std::vec::IntoIter<RecordBatch>,
}

impl TableReader for Rows {
    fn fields(&self) -> &Arc<[trifid_archive_adql::types::Field]> {
        &self.fields
    }

    fn next_batch(&mut self, _: usize) -> Result<Option<RecordBatch>, ReadError> {
        Ok(self.rows.find(|batch| batch.num_rows() > 0))
    }
}

impl TargetArguments {
    fn resolve(&self) -> anyhow::Result<Target> {
        let (schema, table) = split(&self.table)?;
        let description = self.describe.as_deref().map(read).transpose()?;
        Ok(Target { schema: schema.into(), table: table.into(), description })
    }
}

fn split(name: &str) -> anyhow::Result<(&str, &str)> {
    let Some((schema, table)) = name.split_once('.') else {
        bail!("`{name}` names no schema; write it as schema.table");
    };
    let plain = |part: &str| !part.is_empty() && part.len() <= 128 && !part.chars().any(char::is_control);
    ensure!(plain(schema) && plain(table), "`{name}` is not schema.table");
    ensure!(
        !schema.eq_ignore_ascii_case("TAP_SCHEMA") && !schema.eq_ignore_ascii_case("TAP_UPLOAD"),
        "the schema {schema} belongs to the service"
    );
    Ok((schema, table))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn store(config: &Config) -> anyhow::Result<Store> {
    Ok(tables::store(&config.section(Options::SECTION)?, &folder(config)?))
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "{line}")?;
    Ok(())
}
