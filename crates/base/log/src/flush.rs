//! Helpers that flush the files of several logs at once.
//!
//! A disk takes many flushes in the time of one, so those of a wave go side by side: the committer does one
//! itself and hands the others to a few threads, which are started when they are first needed. A log that is
//! flushed periodically is flushed by a helper alone, beside the committer, and nobody waits for it; such
//! flushes never take more than half of the helpers.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::error::{Chain, Failure};
use crate::latch::Latch;
use crate::log::Shared;

/// What is done to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Flush,
    CloseOff,
}

impl Task {
    fn run(self, log: &Shared) -> Result<(), Failure> {
        let mut writer = log.writer.lock();
        match self {
            Task::Flush => writer.flush(),
            Task::CloseOff => writer.close_off(),
        }
    }
}

/// Flushes what was written so far while the writer goes on. What is written from here on is owed anew; until here
/// the log is not handed over again, so no more flushes wait than there are logs.
fn flush_beside(log: &Shared) -> Result<(), Failure> {
    log.owing.store(false, Ordering::Release);
    let begun = log.writer.lock().begin_flush();
    if let Some(flushing) = begun {
        flushing.run()?;
        log.writer.lock().end_flush(&flushing);
    }
    Ok(())
}

/// Logs that somebody waits for.
type Wave = Latch<Failure>;

fn take_part(wave: &Wave, task: Task, log: &Shared) {
    let mut done = Done { wave, result: None };
    done.result = Some(task.run(log));
}

/// Tells the wave, also when the disk panicked.
struct Done<'a> {
    wave: &'a Wave,
    result: Option<Result<(), Failure>>,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.wave.arrive(self.result.take().unwrap_or_else(|| Err(panicked())));
    }
}

/// Nobody waits for a flush beside the committer, so a panic in it would go unheard.
struct ToldWhenPanicking<'a>(&'a Shared);

impl Drop for ToldWhenPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0.on_failure)(panicked());
        }
    }
}

fn panicked() -> Failure {
    Failure::new("flushing", "log", io::Error::other("the flush panicked"))
}

#[derive(Default)]
struct State {
    awaited: VecDeque<(Arc<Wave>, Task, Arc<Shared>)>,
    beside: VecDeque<Arc<Shared>>,
    /// Flushes beside the committer that are under way.
    beside_running: usize,
    closing: bool,
}

#[derive(Default)]
struct Board {
    state: Mutex<State>,
    posted: Condvar,
}

enum Job {
    Awaited(Arc<Wave>, Task, Arc<Shared>),
    Beside(Arc<Shared>),
}

impl Board {
    /// What a helper does next; `None` when there is nothing any more.
    fn next(&self, beside_max: usize) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if let Some((wave, task, log)) = state.awaited.pop_front() {
                return Some(Job::Awaited(wave, task, log));
            }
            if state.beside_running < beside_max
                && let Some(log) = state.beside.pop_front()
            {
                state.beside_running += 1;
                return Some(Job::Beside(log));
            }
            if state.closing && state.beside.is_empty() {
                return None;
            }
            self.posted.wait(&mut state);
        }
    }

    fn help(&self, beside_max: usize) {
        while let Some(job) = self.next(beside_max) {
            match job {
                Job::Awaited(wave, task, log) => take_part(&wave, task, &log),
                Job::Beside(log) => {
                    let told = ToldWhenPanicking(&log);
                    let flushed = flush_beside(&log);
                    drop(told);
                    self.state.lock().beside_running -= 1;
                    // All: some wait for their turn, and some, when it is closing, for the last to be taken.
                    self.posted.notify_all();
                    if let Err(failure) = flushed {
                        (log.on_failure)(failure);
                    }
                }
            }
        }
    }
}

/// The helpers of one committer.
pub(crate) struct Flushers {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
}

impl Flushers {
    pub(crate) fn new(threads_max: usize) -> Self {
        Flushers { board: Arc::default(), threads: Vec::new(), threads_max }
    }

    /// Does the task to every log, side by side, and waits until all are done.
    pub(crate) fn all(&mut self, task: Task, logs: impl Iterator<Item = Arc<Shared>>) -> Result<(), Failure> {
        let mut logs: VecDeque<_> = logs.collect();
        let Some(own) = logs.pop_front() else { return Ok(()) };
        if logs.is_empty() || self.staff(logs.len()) == 0 {
            return std::iter::once(own).chain(logs).try_for_each(|log| task.run(&log));
        }
        let wave = Arc::new(Wave::new(logs.len() + 1));
        self.post(|state| state.awaited.extend(logs.drain(..).map(|log| (wave.clone(), task, log))));
        take_part(&wave, task, &own);
        while let Some((wave, task, log)) = self.take_awaited() {
            take_part(&wave, task, &log);
        }
        wave.wait()
    }

    fn take_awaited(&self) -> Option<(Arc<Wave>, Task, Arc<Shared>)> {
        self.board.state.lock().awaited.pop_front()
    }

    /// Has the logs flushed and does not wait, unless there are no helpers.
    pub(crate) fn beside(&mut self, logs: Vec<Arc<Shared>>) -> Result<(), Failure> {
        if self.staff(logs.len()) == 0 {
            return logs.iter().try_for_each(|log| flush_beside(log));
        }
        self.post(|state| state.beside.extend(logs));
        Ok(())
    }

    fn post(&self, post: impl FnOnce(&mut State)) {
        post(&mut self.board.state.lock());
        self.board.posted.notify_all();
    }

    /// Starts helpers until there are as many as `wanted` and allowed; answers how many there are.
    fn staff(&mut self, wanted: usize) -> usize {
        while self.threads.len() < wanted.min(self.threads_max) {
            let (board, beside_max) = (self.board.clone(), self.threads_max.div_ceil(2));
            let thread = std::thread::Builder::new().name("log-flusher".to_owned()).spawn(move || {
                #[cfg(target_os = "linux")]
                crate::sched::favour_this_thread();
                board.help(beside_max);
            });
            match thread {
                Ok(thread) => self.threads.push(thread),
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "no helper for flushing; flushing one by one");
                    break;
                }
            }
        }
        self.threads.len()
    }
}

/// Ends when everything that was handed over is done.
impl Drop for Flushers {
    fn drop(&mut self) {
        self.post(|state| state.closing = true);
        for thread in self.threads.drain(..) {
            // A panic of a helper has been told as the failure of its wave.
            let _ = thread.join();
        }
    }
}
