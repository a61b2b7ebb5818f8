//! Threads that serve: one a core or one a worker, each with a runtime of its own.
//!
//! A listener of any protocol starts as many as it was told to, each with sockets of its own, and waits until each of
//! them listens. One that panics takes the program down in good order: the others drain, and whoever joins them is told
//! which it was and why.

use std::any::Any;
use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use trifid_base_runtime::Shutdown;
use trifid_base_runtime::shutdown::Reason;

/// What the threads of a listener have in common.
#[derive(Clone, Copy, Debug)]
pub struct Workers {
    /// What a thread's name begins with; its number follows.
    pub name: &'static str,
    /// What the program says has failed when one of them panics.
    pub task: &'static str,
    /// Threads beside each one for calls that wait for the disk, at most; none: as many as the runtime likes.
    pub blocking_threads: Option<usize>,
    /// Whether such a call that is still under way at the end is left alone; otherwise it is waited for.
    pub leaves_blocking: bool,
}

/// A thread ended by a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// Its number.
    pub index: usize,
    /// The panic's message.
    pub message: String,
}

impl Workers {
    /// Starts thread `index` and returns once it listens. `begin` runs on the thread, within its runtime: what it
    /// answers is served to its end.
    pub fn start<B, W>(self, index: usize, shutdown: Shutdown, begin: B) -> io::Result<JoinHandle<()>>
    where
        B: FnOnce() -> io::Result<W> + Send + 'static,
        W: Future<Output = ()>,
    {
        let (ready, started) = mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name(format!("{}-{index}", self.name))
            .spawn(move || self.run(shutdown, begin, &ready))?;
        // The thread says how its start went, or dies before it can.
        started.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        Ok(thread)
    }

    fn run<B, W>(self, shutdown: Shutdown, begin: B, ready: &mpsc::SyncSender<io::Result<()>>)
    where
        B: FnOnce() -> io::Result<W>,
        W: Future<Output = ()>,
    {
        let _fall = Fall { shutdown, task: self.task };
        let runtime = match self.runtime() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            match begin() {
                Ok(serving) => {
                    let _ = ready.send(Ok(()));
                    serving.await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
        if self.leaves_blocking {
            runtime.shutdown_background();
        }
    }

    fn runtime(self) -> io::Result<LocalRuntime> {
        let mut builder = Builder::new_current_thread();
        if let Some(threads) = self.blocking_threads {
            builder.max_blocking_threads(threads);
        }
        builder.enable_all().build_local(LocalOptions::default())
    }
}

/// Blocks until all threads have ended; tells of the first that panicked.
pub fn join(threads: Vec<JoinHandle<()>>) -> Result<(), Panicked> {
    let ends = threads
        .into_iter()
        .enumerate()
        .map(|(index, thread)| thread.join().map_err(|panic| Panicked { index, message: message(&*panic) }));
    // All of them are joined before the first panic is told.
    ends.collect::<Vec<_>>().into_iter().collect()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// A thread that falls takes the program down in good order.
struct Fall {
    shutdown: Shutdown,
    task: &'static str,
}

impl Drop for Fall {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shutdown.trigger(Reason::Task(self.task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKERS: Workers =
        Workers { name: "test", task: "test", blocking_threads: Some(1), leaves_blocking: true };

    #[test]
    fn a_thread_that_cannot_begin_is_told_at_once() {
        let refused = || Err::<std::future::Ready<()>, _>(io::ErrorKind::AddrInUse.into());
        let error = WORKERS.start(0, Shutdown::new(), refused).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_panic_ends_the_program_and_says_who_and_why() {
        let shutdown = Shutdown::new();
        let well = WORKERS.start(0, shutdown.clone(), || Ok(async {})).unwrap();
        let ill = WORKERS.start(1, shutdown.clone(), || Ok(async { panic!("on purpose") })).unwrap();
        let panicked = join(vec![well, ill]).unwrap_err();
        assert_eq!(panicked, Panicked { index: 1, message: "on purpose".to_owned() });
        assert_eq!(shutdown.reason(), Some(Reason::Task("test")));
    }
}
