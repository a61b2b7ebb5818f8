//! Snapshots: written beside the working store, put in place by a rename, then the journal's front is dropped.
//!
//! One at a time. The file is flushed every few megabytes, so that the journal's own flushes never wait behind
//! a large one. Until the rename lasts, the old snapshot and the whole journal are there.

use std::future::Future;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use trifid_base_log::{DataDir, Disk, DiskFile, Failure, OpenMode, Position};
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::EntityStore;
use trifid_context_model::canonical;

use super::error::{Error, io_error};
use super::journal::FileJournal;
use super::limits::{FLUSH_BYTES, LOOK_EVERY, RETRY_AFTER};
use super::payload::put_context;
use super::snapshot::{EntryKind, SnapshotWriter};
use super::{DIR, finished, position_of, unfinished};

/// A snapshot that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// It holds every change up to this position.
    pub position: u64,
    /// Entries in it: tenants, entities, contexts.
    pub entries: u64,
    /// Its size.
    pub bytes: u64,
    /// Journal segments that were dropped for it.
    pub segments_dropped: usize,
}

/// Writes snapshots.
pub(super) struct Keeper {
    dir: Arc<DataDir>,
    memory: Weak<MemoryStore>,
    journal: Arc<FileJournal>,
    last: Mutex<Last>,
    /// One at a time is written.
    writing: Mutex<()>,
}

/// What is known of the last snapshot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Last {
    pub(super) position: u64,
    pub(super) bytes: u64,
    /// Bytes that the journal had written by then, since it was opened.
    pub(super) journal_bytes: u64,
    pub(super) count: u64,
}

impl Keeper {
    pub(super) fn new(
        dir: Arc<DataDir>,
        memory: &Arc<MemoryStore>,
        journal: Arc<FileJournal>,
        last: Last,
    ) -> Self {
        let memory = Arc::downgrade(memory);
        Keeper { dir, memory, journal, last: Mutex::new(last), writing: Mutex::default() }
    }

    pub(super) fn last(&self) -> Last {
        *self.last.lock()
    }

    /// Writes a snapshot of what readers see now.
    pub(super) fn snapshot(&self) -> Result<Option<Written>, Error> {
        let _one_at_a_time = self.writing.lock();
        let Some(memory) = self.memory.upgrade() else { return Ok(None) };
        let journal_bytes = self.journal.log().stats().bytes;
        let position = memory.position();
        let (entries, bytes) = match self.write(&memory, position) {
            Ok(written) => written,
            Err(error) => {
                let _ = self.disk().remove(&unfinished());
                return Err(error);
            }
        };
        self.put_in_place(position)?;
        let dropped = self.journal.log().truncate_front(Position::new(position));
        let segments_dropped = dropped.map_err(io_error("dropping the front of", "the journal"))?;
        let mut last = self.last.lock();
        *last = Last { position, bytes, journal_bytes, count: last.count + 1 };
        Ok(Some(Written { position, entries, bytes, segments_dropped }))
    }

    fn disk(&self) -> &Arc<dyn Disk> {
        self.dir.disk()
    }

    fn write(&self, memory: &MemoryStore, position: u64) -> Result<(u64, u64), Error> {
        let path = unfinished();
        remove_if_there(self.disk(), &path)?;
        let file = self.disk().open(&path, OpenMode::CreateNew).map_err(io_error("creating", &path))?;
        let mut flushed = Flushed::new(file);
        let written = self.fill(memory, position, &mut flushed);
        if let Some(error) = flushed.failure.take() {
            return Err(self.flush_failed(&path, error));
        }
        let counts = written.map_err(io_error("writing", &path))?;
        flushed.file.sync_all().map_err(|error| self.flush_failed(&path, error))?;
        Ok(counts)
    }

    fn fill(&self, memory: &MemoryStore, position: u64, out: &mut Flushed) -> io::Result<(u64, u64)> {
        let mut writer = SnapshotWriter::new(out, position)?;
        let (contexts, last) = self.journal.contexts();
        for context in &contexts {
            writer.entry(EntryKind::Context, |out| put_context(context, out))?;
        }
        for tenant in memory.tenant_names() {
            writer.entry(EntryKind::Tenant, |out| out.extend_from_slice(tenant.as_str().as_bytes()))?;
            let mut done = Ok(());
            memory.for_each(&tenant, |record| {
                if done.is_ok() {
                    let fill = |out: &mut Vec<u8>| canonical::write(record, memory.symbols(), out);
                    done = writer.entry(EntryKind::Entity, fill);
                }
            });
            done?;
        }
        if let Some(last) = last {
            let durable = wait(self.journal.log().durable_at(last));
            durable.map_err(io::Error::other)?;
        }
        let entries = writer.entries;
        Ok((entries, writer.finish()?))
    }

    /// Gives the snapshot its name and drops the older ones.
    fn put_in_place(&self, position: u64) -> Result<(), Error> {
        let (from, to) = (unfinished(), finished(position));
        self.disk().rename(&from, &to).map_err(io_error("renaming", &from))?;
        self.sync_dir()?;
        for path in snapshots(self.disk())?.into_iter().filter(|path| *path != to) {
            self.disk().remove(&path).map_err(io_error("removing", &path))?;
        }
        self.sync_dir()
    }

    fn sync_dir(&self) -> Result<(), Error> {
        self.disk().sync_dir(Path::new(DIR)).map_err(|error| self.flush_failed(Path::new(DIR), error))
    }

    /// After a failed flush nothing that the disk says can be trusted.
    fn flush_failed(&self, path: &Path, error: io::Error) -> Error {
        let kind = error.kind();
        self.dir.fail(&Failure { action: "flushing", path: path.to_owned(), source: error });
        io_error("flushing", path)(kind.into())
    }

    /// Whether so much was journaled since the last snapshot that another is due: also at least as much as it
    /// held, so that snapshots never cost more than the journal itself.
    fn is_due(&self, after_bytes: u64) -> bool {
        let last = self.last();
        let journaled = self.journal.log().stats().bytes - last.journal_bytes;
        journaled >= after_bytes.max(last.bytes)
    }
}

/// The finished snapshots, oldest first.
pub(super) fn snapshots(disk: &Arc<dyn Disk>) -> Result<Vec<PathBuf>, Error> {
    let names = disk.list(Path::new(DIR)).map_err(io_error("listing", DIR))?;
    let mut positions: Vec<u64> = names.iter().filter_map(|name| position_of(name)).collect();
    positions.sort_unstable();
    Ok(positions.into_iter().map(finished).collect())
}

pub(super) fn remove_if_there(disk: &Arc<dyn Disk>, path: &Path) -> Result<(), Error> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", path)(error)),
        _ => Ok(()),
    }
}

/// A file that is flushed as it grows.
pub(super) struct Flushed {
    pub(super) file: Arc<dyn DiskFile>,
    offset: u64,
    flushed: u64,
    /// A flush that failed, which is told apart from a write that did.
    failure: Option<io::Error>,
}

impl Flushed {
    pub(super) fn new(file: Arc<dyn DiskFile>) -> Self {
        Flushed { file, offset: 0, flushed: 0, failure: None }
    }
}

impl Write for &mut Flushed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(&[IoSlice::new(bytes)], self.offset)?;
        self.offset += written as u64;
        if self.offset >= self.flushed + FLUSH_BYTES {
            self.flushed = self.offset;
            if let Err(error) = self.file.sync_data() {
                let kind = error.kind();
                self.failure = Some(error);
                return Err(kind.into());
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends the background.
#[derive(Default)]
pub(super) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub(super) fn stop(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    /// Waits so long; true when it is time to end.
    fn wait(&self, time: std::time::Duration) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, time);
        }
        *stopped
    }
}

/// Writes a snapshot whenever one is due, until stopped.
pub(super) fn run(keeper: &Keeper, stop: &Stop, after_bytes: u64) {
    let mut pause = LOOK_EVERY;
    while !stop.wait(pause) {
        pause = LOOK_EVERY;
        if !keeper.is_due(after_bytes) {
            continue;
        }
        let started = Instant::now();
        match keeper.snapshot() {
            Ok(Some(written)) => {
                let Written { position, entries, bytes, segments_dropped } = written;
                let seconds = started.elapsed().as_secs_f64();
                tracing::info!(position, entries, bytes, segments_dropped, seconds, "snapshot written");
            }
            Ok(None) => return,
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, source, "no snapshot; the journal grows on");
                pause = RETRY_AFTER;
            }
        }
    }
}

/// Waits for a future on this thread.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
