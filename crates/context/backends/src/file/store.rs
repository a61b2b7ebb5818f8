//! Opening the file store, and its handle.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use trifid_base_log::{DataDir, Position};
use trifid_context_engine::contexts::{HostedContext, HostedContexts};
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::EntityStore;
use trifid_context_model::symbol::Symbols;

use super::error::{Error, io_error};
use super::journal::{FileJournal, Publisher};
use super::keeper::{self, Keeper, Last, Stop, Written, remove_if_there, snapshots};
use super::loader::{Loader, Progress};
use super::{DIR, JOURNAL, unfinished};

/// How the file store works.
#[derive(Debug, Clone)]
pub struct Options {
    /// A snapshot is written in the background once the journal has grown by so many bytes since the last one,
    /// and by at least as much as that one held. `None` leaves it to [`FileStore::snapshot`].
    pub snapshot_after_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { snapshot_after_bytes: Some(256 << 20) }
    }
}

/// Figures for health and metrics.
#[derive(Debug, Clone, Copy)]
pub struct FileStats {
    /// The journal's log.
    pub journal: trifid_base_log::Stats,
    /// Snapshots written since the store was opened.
    pub snapshots: u64,
    /// The position of the last snapshot.
    pub snapshot_position: u64,
    /// Its size.
    pub snapshot_bytes: u64,
}

/// The open store. Dropping it ends the background; the data directory then writes what is queued when it is
/// dropped itself.
pub struct FileStore {
    memory: Arc<MemoryStore>,
    journal: Arc<FileJournal>,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
    background: Option<JoinHandle<()>>,
}

impl FileStore {
    /// Opens the store in `dir`: reads the newest snapshot and replays the journal behind it. Blocks until all is
    /// in memory, telling `on_progress` every few megabytes. Answers also the hosted contexts, for the store of
    /// contexts to take over.
    pub fn open(
        dir: Arc<DataDir>,
        options: &Options,
        symbols: Arc<Symbols>,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<(Self, Vec<HostedContext>), Error> {
        make_dir(&dir)?;
        let memory = MemoryStore::new(symbols.clone());
        let mut loader = Loader::new(&memory, on_progress);
        let last = load_snapshot(&dir, &mut loader)?;
        let (recovered, recovery) = dir.recover(JOURNAL, Position::new(last.position), &mut loader)?;
        let (contexts, entries) = (std::mem::take(&mut loader.hosted), loader.entries);
        tracing::info!(
            snapshot = last.position,
            position = recovery.next.get(),
            entries,
            "the store is read"
        );
        let hosted = contexts.values().cloned().collect();
        let publisher = Arc::new(Publisher::default());
        let log = recovered.start(publisher.clone());
        let journal = Arc::new(FileJournal::new(log, symbols, contexts));
        let memory = Arc::new(memory.with_journal(journal.clone()));
        // The log was started a moment ago and nobody else knows it: nothing was published before this.
        let _ = publisher.memory.set(Arc::downgrade(&memory));
        let keeper = Keeper::new(dir, &memory, journal.clone(), last);
        let mut store =
            FileStore { memory, journal, keeper: Arc::new(keeper), stop: Arc::default(), background: None };
        if let Some(after_bytes) = options.snapshot_after_bytes {
            store.background = Some(store.start(after_bytes)?);
        }
        Ok((store, hosted))
    }

    fn start(&self, after_bytes: u64) -> Result<JoinHandle<()>, Error> {
        let (keeper, stop) = (self.keeper.clone(), self.stop.clone());
        std::thread::Builder::new()
            .name("context-snapshot".to_owned())
            .spawn(move || keeper::run(&keeper, &stop, after_bytes))
            .map_err(io_error("starting the background of", DIR))
    }

    /// The store of entities, for the broker.
    pub fn entities(&self) -> Arc<dyn EntityStore> {
        self.memory.clone()
    }

    /// Where hosted contexts are kept, for the store of contexts.
    pub fn hosted(&self) -> Arc<dyn HostedContexts> {
        self.journal.clone()
    }

    /// Writes a snapshot now. Blocks.
    pub fn snapshot(&self) -> Result<Option<Written>, Error> {
        self.keeper.snapshot()
    }

    /// Figures for health and metrics.
    pub fn stats(&self) -> FileStats {
        let last = self.keeper.last();
        FileStats {
            journal: self.journal.log().stats(),
            snapshots: last.count,
            snapshot_position: last.position,
            snapshot_bytes: last.bytes,
        }
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(background) = self.background.take() {
            // A panic there has been reported by the panic hook; the journal is whole without it.
            let _ = background.join();
        }
    }
}

/// Makes the folder of snapshots and its name last.
pub(super) fn make_dir(dir: &DataDir) -> Result<(), Error> {
    let (root, path) = (Path::new(""), Path::new(DIR));
    dir.disk().create_dir(path).map_err(io_error("creating", path))?;
    dir.disk().sync_dir(root).map_err(io_error("flushing", root))?;
    remove_if_there(dir.disk(), &unfinished())?;
    dir.disk().sync_dir(path).map_err(io_error("flushing", path))
}

fn load_snapshot(dir: &DataDir, loader: &mut Loader<'_>) -> Result<Last, Error> {
    let Some(newest) = snapshots(dir.disk())?.pop() else { return Ok(Last::default()) };
    let position = loader.snapshot(dir.disk(), &newest)?;
    let file = dir.disk().open(&newest, trifid_base_log::OpenMode::Read);
    let bytes = file.and_then(|file| file.len()).map_err(io_error("reading", &newest))?;
    Ok(Last { position, bytes, ..Last::default() })
}
