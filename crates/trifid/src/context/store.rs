//! Which store the broker stands on.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Deserialize;
use trifid_base_log::{DataDir, Options as LogOptions, RealDisk};
use trifid_base_runtime::config::{Kind, Kinded};
use trifid_context_backends::file::{FileStore, Options as FileOptions, Progress, Stage};
use trifid_context_engine::contexts::{HostedContext, HostedContexts, InMemory};
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::EntityStore;
use trifid_context_model::symbol::Symbols;

use super::Options;

/// How often a start that takes long says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Where entities are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoreKind {
    Memory,
    File,
}

impl Kinded for StoreKind {
    const KIND: Kind = Kind::Choice(&["memory", "file"]);
}

/// A store, open, and what it remembers of hosted contexts.
pub(crate) struct Store {
    pub(crate) entities: Arc<dyn EntityStore>,
    pub(crate) hosted: Arc<dyn HostedContexts>,
    pub(crate) recovered: Vec<HostedContext>,
    pub(crate) file: Option<Arc<FileStore>>,
}

/// Opens the store that the options name; blocks until its state is in memory.
pub(crate) fn open(options: &Options, data_dir: &Path) -> anyhow::Result<Store> {
    let symbols = Arc::new(Symbols::new());
    match options.store {
        StoreKind::Memory => Ok(Store {
            entities: Arc::new(MemoryStore::new(symbols)),
            hosted: Arc::new(InMemory),
            recovered: Vec::new(),
            file: None,
        }),
        StoreKind::File => open_file(options, data_dir, symbols)
            .with_context(|| format!("cannot open the store in {}", data_dir.display())),
    }
}

fn open_file(options: &Options, data_dir: &Path, symbols: Arc<Symbols>) -> anyhow::Result<Store> {
    let directory = Arc::new(take(data_dir)?);
    let settings = FileOptions { snapshot_after_bytes: Some(options.snapshot_after.0) };
    let mut report = Report::begin();
    let (store, recovered) = FileStore::open(directory, &settings, symbols, &mut |far| report.show(far))?;
    let file = Arc::new(store);
    Ok(Store { entities: file.entities(), hosted: file.hosted(), recovered, file: Some(file) })
}

/// Takes the data directory for this process.
pub(super) fn take(data_dir: &Path) -> anyhow::Result<DataDir> {
    Ok(DataDir::open(Arc::new(RealDisk::open(data_dir)?), LogOptions::default())?)
}

/// Says now and then how far the start is.
struct Report {
    due: Instant,
}

impl Report {
    fn begin() -> Self {
        Self { due: Instant::now() + PROGRESS_INTERVAL }
    }

    fn show(&mut self, far: Progress) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + PROGRESS_INTERVAL;
        let stage = match far.stage {
            Stage::Snapshot => "snapshot",
            Stage::Journal => "journal",
        };
        let Progress { bytes, bytes_total, entries, .. } = far;
        tracing::info!(stage, bytes, bytes_total, entries, "reading the store");
    }
}
