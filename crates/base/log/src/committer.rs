//! The committer: the one thread of a data directory that writes and flushes for all its logs.
//!
//! A *wave* takes one batch from every ready log, writes each with one call, then flushes the files side by side,
//! then completes the batches in order. Batches of logs that are flushed periodically are complete once they are
//! written; their flushes follow in time, beside the waves, by one timer for all. Appends gather while a wave is
//! under way, so the batch grows with the load and an idle log is flushed at once. Those who were just answered
//! are about to come back, and one flush is cheaper than two: so the committer lingers a moment for as many as it
//! knows of, if that has been paying off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::batch::Batch;
use crate::cache::Cache;
use crate::error::{CommitError, Failure};
use crate::flush::{Flushers, Task};
use crate::log::{Shared, Signal};
use crate::options::Options;
use crate::signal::Roused;
use crate::stats::{Counters, DirCounters};
use crate::writer::WriteError;

/// What the committer shares with the data directory.
pub(crate) struct Common {
    pub(crate) options: Arc<Options>,
    pub(crate) signal: Arc<Signal>,
    pub(crate) logs: Mutex<Vec<Arc<Shared>>>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) counters: DirCounters,
    failed: AtomicBool,
}

impl Common {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        Common {
            cache: Arc::new(Cache::new(options.open_segments_max)),
            options,
            signal: Arc::default(),
            logs: Mutex::default(),
            counters: DirCounters::default(),
            failed: AtomicBool::new(false),
        }
    }

    /// Refuses everybody, then calls the end of the process. Only the first failure is reported.
    pub(crate) fn fail(&self, failure: &Failure) {
        self.refuse_all();
        if !self.failed.swap(true, Ordering::AcqRel) {
            (self.options.on_fatal)(failure);
        }
    }

    fn refuse_all(&self) {
        self.logs.lock().iter().for_each(|log| log.fail());
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Lets nothing more in, and has the committer finish.
    pub(crate) fn close(&self) {
        self.logs.lock().iter().for_each(|log| log.queue.lock().close());
        self.signal.close();
    }
}

pub(crate) struct Committer {
    common: Arc<Common>,
    flushers: Flushers,
    /// Written, not yet flushed.
    flying: Vec<(Arc<Shared>, Batch)>,
    /// Written, to be flushed some time later.
    written: Vec<(Arc<Shared>, Batch)>,
    /// Logs to be flushed, and when.
    due: Vec<(Instant, Arc<Shared>)>,
    /// Frames that were queued when the last wave was answered, and those in it, whose senders are about to
    /// come back.
    expected: usize,
    linger: Linger,
}

impl Committer {
    pub(crate) fn new(common: Arc<Common>, flushers: usize) -> Self {
        let linger = Linger::new(common.options.linger_max);
        Committer {
            common,
            flushers: Flushers::new(flushers),
            flying: Vec::new(),
            written: Vec::new(),
            due: Vec::new(),
            expected: 0,
            linger,
        }
    }

    /// Works until the directory is closed or the disk fails.
    pub(crate) fn run(&mut self) {
        let mut idle_at = None;
        loop {
            let signal = self.common.signal.clone();
            let next_due = self.due.iter().map(|(due, _)| *due).min();
            let deadline = [idle_at, next_due].into_iter().flatten().min();
            let done = match signal.wait(deadline) {
                Roused::Ready(logs) => {
                    self.linger(&logs);
                    let done = self.wave(logs);
                    idle_at = Some(Instant::now() + self.common.options.idle_after);
                    done
                }
                Roused::Idle if idle_at.is_some_and(|idle_at| idle_at <= Instant::now()) => {
                    idle_at = None;
                    self.expected = 0;
                    self.close_off()
                }
                Roused::Idle => Ok(()),
                Roused::Closing => {
                    self.finish();
                    return;
                }
            };
            if let Err(failure) = done.and_then(|()| self.flush_due(Instant::now())) {
                self.fail(&failure);
                return;
            }
        }
    }

    /// Has those logs flushed whose time has come.
    pub(crate) fn flush_due(&mut self, now: Instant) -> Result<(), Failure> {
        if self.due.iter().all(|(due, _)| *due > now) {
            return Ok(());
        }
        let (due, later) = std::mem::take(&mut self.due).into_iter().partition(|(due, _)| *due <= now);
        self.due = later;
        let due: Vec<_> = due;
        let logs: Vec<_> = due.into_iter().map(|(_, log)| log).collect();
        self.common.counters.flushes_periodic.fetch_add(logs.len() as u64, Ordering::Relaxed);
        self.flushers.beside(logs)
    }

    /// Has all logs flushed that are to be flushed some time.
    pub(crate) fn flush_all_due(&mut self) -> Result<(), Failure> {
        match self.due.iter().map(|(due, _)| *due).max() {
            Some(last) => self.flush_due(last),
            None => Ok(()),
        }
    }

    fn finish(&mut self) {
        if self.common.has_failed() {
            return;
        }
        if let Err(failure) = self.finish_queued().and_then(|()| self.close_off()) {
            self.fail(&failure);
        }
    }

    /// Writes what was queued before the queues were closed. An append that came just before may not have put its
    /// log on the list yet.
    fn finish_queued(&mut self) -> Result<(), Failure> {
        loop {
            let mut logs = self.common.logs.lock().clone();
            logs.retain(|log| !log.queue.lock().is_empty());
            if logs.is_empty() {
                return Ok(());
            }
            self.wave(logs)?;
        }
    }

    /// Waits for those who were just answered, if one log alone is ready.
    fn linger(&mut self, logs: &[Arc<Shared>]) {
        let [log] = logs else { return };
        if log.interval().is_some() {
            return;
        }
        let (before, waits) = {
            let mut queue = log.queue.lock();
            (queue.frames(), !self.linger.time.is_zero() && queue.linger_for(self.expected))
        };
        if waits {
            let all_came = self.common.signal.linger(Instant::now() + self.linger.time);
            // Half the flushes for the same frames are worth the wait, also when not everybody came.
            self.linger.learn(all_came || log.queue.lock().frames() >= before * 2);
        }
    }

    /// Writes, flushes and completes one batch of each log.
    pub(crate) fn wave(&mut self, logs: Vec<Arc<Shared>>) -> Result<(), Failure> {
        let started = Instant::now();
        self.expected = 0;
        for log in logs {
            self.write(log)?;
        }
        self.count();
        self.complete_written(started);
        if self.flying.is_empty() {
            return Ok(());
        }
        self.flushers.all(Task::Flush, self.flying.iter().map(|(log, _)| log.clone()))?;
        let flush = started.elapsed();
        self.linger.bound(flush);
        // Published before any is taken off: should a sink panic, all that fly are still here to be refused.
        self.flying.iter().for_each(|(log, batch)| log.publish(batch));
        for (log, batch) in self.flying.drain(..) {
            Counters::add(&log.counters.disk_nanos, flush.as_nanos() as u64);
            self.expected += batch.frames() + log.queue.lock().frames();
            log.complete(batch);
        }
        Ok(())
    }

    /// Completes the batches that count once they are written, and notes that their flush is owed.
    fn complete_written(&mut self, started: Instant) {
        let now = Instant::now();
        self.written.iter().for_each(|(log, batch)| log.publish(batch));
        for (log, batch) in self.written.drain(..) {
            Counters::add(&log.counters.disk_nanos, (now - started).as_nanos() as u64);
            if let Some(interval) = log.interval()
                && !log.owing.swap(true, Ordering::AcqRel)
            {
                self.due.push((now + interval, log.clone()));
            }
            log.complete(batch);
        }
    }

    fn count(&self) {
        let (awaited, all) = (self.flying.len() as u64, (self.flying.len() + self.written.len()) as u64);
        let counters = &self.common.counters;
        counters.waves.fetch_add(u64::from(all > 0), Ordering::Relaxed);
        counters.logs_written.fetch_add(all, Ordering::Relaxed);
        counters.flushes_awaited.fetch_add(awaited, Ordering::Relaxed);
    }

    fn write(&mut self, log: Arc<Shared>) -> Result<(), Failure> {
        let Some(mut batch) = log.take() else {
            return Ok(());
        };
        let mut writer = log.writer.lock();
        match writer.write(&mut batch) {
            Ok(()) => {
                drop(writer);
                let written = if log.interval().is_some() { &mut self.written } else { &mut self.flying };
                written.push((log, batch));
                Ok(())
            }
            Err(WriteError::NoSpace) => match log.refuse(&batch, &mut writer) {
                Ok(()) => Ok(()),
                Err(failure) => {
                    batch.outcome.decide(Err(CommitError::Failed));
                    Err(failure)
                }
            },
            Err(WriteError::Failed(failure)) => {
                batch.outcome.decide(Err(CommitError::Failed));
                Err(failure)
            }
        }
    }

    /// Has every log say on disk that all is on disk, and lets go of buffers kept for the next batch.
    pub(crate) fn close_off(&mut self) -> Result<(), Failure> {
        let logs = self.common.logs.lock().clone();
        logs.iter().for_each(|log| log.queue.lock().shed_spare());
        self.flushers.all(Task::CloseOff, logs.into_iter())
    }

    pub(crate) fn fail(&mut self, failure: &Failure) {
        for (_, batch) in self.flying.drain(..).chain(self.written.drain(..)) {
            batch.outcome.decide(Err(CommitError::Failed));
        }
        self.common.fail(failure);
    }
}

/// How long it pays to wait. Closed-loop senders come back within moments, and waiting for them halves the
/// number of flushes; others do not, and waiting for them only costs time. So the wait grows while it is
/// rewarded and shrinks while it is not, is tried in full from time to time, and never exceeds two flushes. What
/// it saves on a busy machine is processor time: a flush costs the cores some fifty microseconds beside the disk.
struct Linger {
    time: Duration,
    max: Duration,
    bound: Duration,
    tries: u32,
}

impl Linger {
    /// The wait never shrinks below this: less is no wait at all.
    const LEAST: Duration = Duration::from_micros(50);
    /// One in so many waits is tried in full.
    const FULL_EVERY: u32 = 128;

    fn new(max: Duration) -> Self {
        Linger { time: max, max, bound: max, tries: 0 }
    }

    fn bound(&mut self, flush: Duration) {
        self.bound = self.max.min(flush * 2);
        self.time = self.time.min(self.bound);
    }

    fn learn(&mut self, rewarded: bool) {
        self.tries = (self.tries + 1) % Linger::FULL_EVERY;
        let time = match rewarded {
            _ if self.tries == 0 => self.bound,
            true => self.time * 2,
            false => self.time / 2,
        };
        self.time = time.max(Linger::LEAST).min(self.bound);
    }
}

/// When the committer's thread panics (a sink did), nobody may be left waiting, and nothing may be
/// acknowledged any more.
impl Drop for Committer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let source = std::io::Error::other("the committer panicked");
            self.fail(&Failure::new("committing", "log", source));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lingering_follows_its_reward_within_two_flushes() {
        let micros = Duration::from_micros;
        let mut linger = Linger::new(micros(500));
        linger.bound(micros(100));
        assert_eq!(linger.time, micros(200));
        linger.learn(false);
        assert_eq!(linger.time, micros(100));
        (0..3).for_each(|_| linger.learn(false));
        assert_eq!(linger.time, Linger::LEAST);
        linger.bound(micros(4_000));
        (0..5).for_each(|_| linger.learn(true));
        assert_eq!(linger.time, micros(500));
        linger.bound(micros(15));
        assert_eq!(linger.time, micros(30));
        (0..Linger::FULL_EVERY).for_each(|_| linger.learn(false));
        assert_eq!(linger.time, micros(30));
    }
}
