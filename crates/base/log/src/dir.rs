//! A data directory: its lock, its committer, and the opening of its logs.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::committer::{Committer, Common};
use crate::disk::{Disk, DiskLock};
use crate::error::{Failure, OpenError};
use crate::files::Files;
use crate::log::{Log, Parts, Shared, Sink};
use crate::options::{LogOptions, Options, ReplayFrom};
use crate::position::{LogId, Position};
use crate::queue::Queue;
use crate::recover::{self, Opened, Recovery, Replay};
use crate::stats::DirStats;
use crate::writer::Home;

const LOCK: &str = "lock";

/// A data directory that this process owns. Dropping it writes what is queued, closes the logs off and lets
/// the directory go.
pub struct DataDir {
    disk: Arc<dyn Disk>,
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
    _lock: Box<dyn DiskLock>,
}

impl DataDir {
    /// Takes the directory and starts its committer.
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<Self, OpenError> {
        let mut dir = Self::take(disk, options)?;
        let mut committer = Committer::new(dir.common.clone(), dir.common.options.flushers);
        let thread = std::thread::Builder::new()
            .name("log-committer".to_owned())
            .spawn(move || {
                #[cfg(target_os = "linux")]
                crate::sched::favour_this_thread();
                committer.run();
            })
            .map_err(|source| OpenError::Io {
                action: "starting the committer of",
                path: ".".into(),
                source,
            })?;
        dir.thread = Some(thread);
        Ok(dir)
    }

    /// Takes the directory; the caller moves the committer on, step by step. For tests that must be the same
    /// each time.
    pub fn open_stepped(disk: Arc<dyn Disk>, options: Options) -> Result<(Self, Stepper), OpenError> {
        let dir = Self::take(disk, options)?;
        let committer = Committer::new(dir.common.clone(), 0);
        let stepper = Stepper { common: dir.common.clone(), committer };
        Ok((dir, stepper))
    }

    fn take(disk: Arc<dyn Disk>, options: Options) -> Result<Self, OpenError> {
        let path = Path::new(LOCK);
        let lock = disk.lock(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => OpenError::Locked { holder: disk.lock_holder(path) },
            _ => OpenError::Io { action: "locking", path: path.to_owned(), source: error },
        })?;
        Ok(DataDir { disk, common: Arc::new(Common::new(Arc::new(options))), thread: None, _lock: lock })
    }

    /// Opens the log `id` as a [journal](LogOptions::journal): repairs a torn tail, refuses damage, and hands
    /// every frame that holds records at or after `from` to `replay`. The log takes appends once it is
    /// [started](Recovered::start).
    pub fn recover(
        &self,
        id: LogId,
        from: Position,
        replay: &mut dyn Replay,
    ) -> Result<(Recovered, Recovery), OpenError> {
        self.recover_with(id, LogOptions::journal(), ReplayFrom::Position(from), replay)
    }

    /// The same with settings of the log's own.
    pub fn recover_with(
        &self,
        id: LogId,
        settings: LogOptions,
        from: ReplayFrom,
        replay: &mut dyn Replay,
    ) -> Result<(Recovered, Recovery), OpenError> {
        if self.common.logs.lock().iter().any(|log| log.id == id) {
            return Err(OpenError::AlreadyOpen(id));
        }
        let options = self.common.options.clone();
        let home = Home::new(self.disk.clone(), options, settings, self.common.cache.clone(), id);
        let opened = recover::open(&home, from, replay)?;
        let recovery = opened.recovery.clone();
        if let Some(repair) = &recovery.repair {
            tracing::info!(log = %id, file = %repair.file.display(), offset = repair.offset, bytes = repair.bytes,
                defect = %repair.defect, "cut off a write that was under way at the last stop");
        }
        Ok((Recovered { home, common: self.common.clone(), opened }, recovery))
    }

    /// Has an open log take and write nothing any more.
    pub(crate) fn forget(&self, id: LogId) {
        let log = {
            let mut logs = self.common.logs.lock();
            logs.iter().position(|log| log.id == id).map(|at| logs.swap_remove(at))
        };
        if let Some(log) = log {
            log.abandon();
        }
    }

    /// What the committer has done.
    pub fn stats(&self) -> DirStats {
        self.common.counters.read()
    }

    /// Ends the process as a failed flush of a log does: for those who flush files beside the logs.
    pub fn fail(&self, failure: &Failure) {
        self.common.fail(failure);
    }

    /// The disk beneath, for files that live beside the logs.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        self.common.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the committer has been reported as a failure.
            let _ = thread.join();
        }
    }
}

/// A log that was opened and replayed and waits for its sink.
pub struct Recovered {
    home: Home,
    common: Arc<Common>,
    opened: Opened,
}

impl Recovered {
    /// Starts taking appends; `sink` hears from now on what becomes durable.
    ///
    /// # Panics
    /// When the same log was recovered twice and started before.
    pub fn start(self, sink: Arc<dyn Sink>) -> Log {
        let (common, id) = (self.common, self.home.log);
        let inflight_bytes_max = common.options.inflight_bytes_max;
        let failing = Arc::downgrade(&common);
        let shared = Arc::new(Shared::new(Parts {
            files: Files { home: self.home, segments: self.opened.segments },
            signal: common.signal.clone(),
            queue: Queue::new(id, self.opened.recovery.next, inflight_bytes_max),
            writer: self.opened.writer,
            sink,
            on_failure: Arc::new(move |failure: Failure| {
                if let Some(common) = failing.upgrade() {
                    common.fail(&failure);
                }
            }),
        }));
        let mut logs = common.logs.lock();
        assert!(logs.iter().all(|log| log.id != id), "log {id} is started twice");
        if common.has_failed() {
            shared.fail();
        }
        if common.signal.is_closing() {
            shared.queue.lock().close();
        }
        logs.push(shared.clone());
        Log { shared }
    }
}

/// Moves a committer on by hand, on the caller's thread.
pub struct Stepper {
    common: Arc<Common>,
    committer: Committer,
}

impl Stepper {
    /// Writes, flushes and completes one batch of each log that has one; answers whether any had. The flushes
    /// that are owed to a periodically flushed log wait for [`flush_periodic`](Self::flush_periodic).
    pub fn step(&mut self) -> bool {
        let logs = self.common.signal.poll();
        let any = !logs.is_empty();
        let done = self.committer.wave(logs);
        self.settle(done);
        any
    }

    /// Flushes the logs that are flushed periodically, as if their time had come.
    pub fn flush_periodic(&mut self) {
        let done = self.committer.flush_all_due();
        self.settle(done);
    }

    /// What the committer does when nothing came for a while.
    pub fn idle(&mut self) {
        let done = self.committer.close_off();
        self.settle(done);
    }

    fn settle(&mut self, done: Result<(), Failure>) {
        if let Err(failure) = done {
            self.committer.fail(&failure);
        }
    }
}
