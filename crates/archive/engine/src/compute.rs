//! The compute pool: where everything above a millisecond runs, so that the cores that serve stay free.
//!
//! A small runtime of its own. At most so many queries run at once, so many more wait, and whoever comes then is
//! told that the service is busy: no queue is without a bound. A query that only waits for its reader holds its
//! place, which is why the face takes results off a slow reader's query.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::error::QueryError;

/// How large the pool is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Threads, at least one.
    pub threads: usize,
    /// Queries that run at once, at least one.
    pub running: usize,
    /// Queries that wait for their turn.
    pub waiting: usize,
}

/// The pool.
pub struct Compute {
    runtime: Option<Runtime>,
    handle: Handle,
    turns: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    size: Size,
}

/// A place among the running queries; dropping it frees it.
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// A place among those that wait.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A claim to a turn that was granted room to wait.
pub struct Ticket {
    turns: Arc<Semaphore>,
    waiting: Waiting,
}

impl Ticket {
    /// Waits for the turn.
    pub async fn turn(self) -> Result<Turn, QueryError> {
        let permit = self.turns.acquire_owned().await.map_err(|_| QueryError::Aborted)?;
        drop(self.waiting);
        Ok(Turn { _permit: permit })
    }
}

impl Compute {
    /// Starts the pool's threads.
    pub fn start(size: Size) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(size.threads.max(1))
            .max_blocking_threads(size.threads.max(1) * 2)
            .thread_name("archive-compute")
            // Timers, and sockets: a job may have to fetch a table first.
            .enable_all()
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            turns: Arc::new(Semaphore::new(size.running.max(1))),
            waiting: Arc::new(AtomicUsize::new(0)),
            size,
        })
    }

    /// How large it is.
    pub const fn size(&self) -> Size {
        self.size
    }

    /// Takes a place in the queue for a turn.
    pub fn queue(&self) -> Result<Ticket, QueryError> {
        // Those who get a turn at once count as waiting for a moment only.
        let room = self.size.waiting + self.turns.available_permits();
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= room {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(QueryError::Busy);
        }
        Ok(Ticket { turns: Arc::clone(&self.turns), waiting: Waiting(Arc::clone(&self.waiting)) })
    }

    /// Takes a place in the queue however long it is: for jobs, whose number has a bound of its own.
    pub fn queue_patiently(&self) -> Ticket {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Ticket { turns: Arc::clone(&self.turns), waiting: Waiting(Arc::clone(&self.waiting)) }
    }

    /// How many queries run and how many wait.
    pub fn load(&self) -> (usize, usize) {
        let running = self.size.running.max(1).saturating_sub(self.turns.available_permits());
        (running, self.waiting.load(Ordering::Relaxed))
    }

    /// Runs a task in the pool.
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle.spawn(task)
    }

    /// Runs a call that may block, on a thread for such calls.
    pub fn blocking<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.handle.spawn_blocking(call)
    }
}

impl Drop for Compute {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Running queries end at their next await; nobody is there to read them.
            runtime.shutdown_background();
        }
    }
}
