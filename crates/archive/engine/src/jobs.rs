//! Jobs: the Universal Worker Service's life of a query that nobody waits for (UWS 1.1).
//!
//! A job is a record in memory and in a [`JobStore`]; what it does is a [`JobRunner`]'s business. Phases change here
//! and nowhere else. Whoever waits for a change holds a future and no thread. A record is durable before its change
//! is told, so a job that a client was shown survives a crash; those that were queued or running then are queued
//! again, since a query changes nothing.
//!
//! Everything is bounded: jobs kept, jobs of one owner, jobs waiting, jobs running, the time of each and its
//! keeping.

mod memory;
mod record;
mod run;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use trifid_base_runtime::{Clock, Entropy, Shutdown, Timestamp};

use crate::compute::Compute;

pub use memory::MemoryJobs;
pub use record::{Fault, Filter, Job, JobId, JobResult, Owner, Phase};

/// Where records, uploaded parts and results are kept. Calls may block and come from the compute pool.
pub trait JobStore: Send + Sync + 'static {
    /// Every record kept.
    fn all(&self) -> Result<Vec<Job>, StoreError>;
    /// Keeps a record in place of an earlier one; durable when it returns.
    fn put(&self, job: &Job) -> Result<(), StoreError>;
    /// Forgets a job with all its files.
    fn remove(&self, id: &JobId) -> Result<(), StoreError>;
    /// Keeps an uploaded part.
    fn put_part(&self, id: &JobId, label: &str, bytes: &[u8]) -> Result<(), StoreError>;
    /// Reads an uploaded part.
    fn part(&self, id: &JobId, label: &str) -> Result<Bytes, StoreError>;
    /// Begins a result; an earlier one of the same name is gone.
    fn create_result(&self, id: &JobId, name: &str) -> Result<Box<dyn ResultSink>, StoreError>;
    /// Opens a finished result: its length and its bytes.
    fn result(&self, id: &JobId, name: &str) -> Result<(u64, Box<dyn std::io::Read + Send>), StoreError>;
    /// [`Self::result`] from the byte `start` on; the length is still that of the whole. Reads what comes before
    /// where a store knows no shorter way.
    fn result_from(
        &self,
        id: &JobId,
        name: &str,
        start: u64,
    ) -> Result<(u64, Box<dyn std::io::Read + Send>), StoreError> {
        let (length, mut bytes) = self.result(id, name)?;
        std::io::copy(&mut std::io::Read::take(&mut bytes, start), &mut std::io::sink())
            .map_err(|error| StoreError::Failed(error.to_string().into()))?;
        Ok((length, bytes))
    }
}

/// A result being written.
pub trait ResultSink: std::io::Write + std::io::Seek + Send {
    /// Makes it durable and visible; how many bytes it has.
    fn finish(self: Box<Self>) -> Result<u64, StoreError>;
}

/// What a store could not do.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such thing.
    #[error("it is not kept")]
    Missing,
    /// The medium failed or is full.
    #[error("the store of jobs failed: {0}")]
    Failed(Arc<str>),
}

/// What runs a job.
pub trait JobRunner: Send + Sync + 'static {
    /// Runs a job to its end; dropping the future stops it. Results go to the store through `store`.
    fn run(&self, job: Job, store: Arc<dyn JobStore>) -> Running<'_>;
}

/// A job on its way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Vec<JobResult>, Fault>> + Send + 'a>>;

/// Why a request about jobs is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JobError {
    /// No such job, or not the caller's.
    #[error("there is no such job")]
    Unknown,
    /// The phase does not allow it.
    #[error("a job that is {phase} cannot be {asked}")]
    Phase {
        /// The phase.
        phase: Phase,
        /// What was asked for.
        asked: &'static str,
    },
    /// More jobs than are allowed.
    #[error("{0}")]
    TooMany(&'static str),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The bounds of jobs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs that run at once.
    pub running: usize,
    /// Jobs that wait for their turn.
    pub queued: usize,
    /// Jobs kept of one owner; anonymous callers are one.
    pub per_owner: usize,
    /// Jobs kept.
    pub total: usize,
    /// The longest that a job may run.
    pub execution: Duration,
    /// How long a job runs that asks for nothing else.
    pub execution_default: Duration,
    /// How long a job is kept at most.
    pub retention: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            running: 2,
            queued: 1_000,
            per_owner: 10_000,
            total: 100_000,
            execution: Duration::from_secs(24 * 3600),
            execution_default: Duration::from_secs(3600),
            retention: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// What jobs stand on.
#[derive(Clone)]
pub struct Ports {
    /// Where they are kept.
    pub store: Arc<dyn JobStore>,
    /// What runs them.
    pub runner: Arc<dyn JobRunner>,
    /// Where they run.
    pub compute: Arc<Compute>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where identifiers come from.
    pub entropy: Arc<dyn Entropy>,
}

/// A job that is to be made.
#[derive(Clone, Debug, Default)]
pub struct NewJob {
    /// Whose it is to be.
    pub owner: Owner,
    /// What it is asked.
    pub parameters: Vec<(String, String)>,
    /// What was uploaded with it: labels and bytes.
    pub parts: Vec<(String, Bytes)>,
    /// How long it may run, where its owner says so; see [`Jobs::set_execution`].
    pub execution: Option<Duration>,
    /// When it is to be destroyed, where its owner says so; see [`Jobs::set_destruction`].
    pub destruction: Option<Timestamp>,
    /// Whether it is to be queued at once.
    pub run: bool,
}

/// All jobs of a service; cheap to clone.
#[derive(Clone)]
pub struct Jobs(Arc<Inner>);

struct Inner {
    ports: Ports,
    limits: Limits,
    cells: Mutex<HashMap<JobId, Arc<Cell>>>,
    turns: Arc<Semaphore>,
}

/// One job in memory.
struct Cell {
    job: watch::Sender<Job>,
    /// Held while the record changes on disk, so that records are kept in the order of the changes.
    changing: tokio::sync::Mutex<()>,
    task: Mutex<Option<AbortHandle>>,
}

impl Jobs {
    /// Opens the jobs that the store kept; those that had not ended are queued again. Reads the store: call it where
    /// blocking is allowed.
    pub fn open(ports: Ports, limits: Limits) -> Result<Self, StoreError> {
        let kept = ports.store.all()?;
        let turns = Arc::new(Semaphore::new(limits.running.max(1)));
        let cells = kept.into_iter().map(|job| (job.id.clone(), Arc::new(Cell::new(job)))).collect();
        let jobs = Self(Arc::new(Inner { ports, limits, cells: Mutex::new(cells), turns }));
        jobs.resume();
        Ok(jobs)
    }

    fn resume(&self) {
        let mut unfinished: Vec<Arc<Cell>> = self.0.cells.lock().values().cloned().collect();
        unfinished.retain(|cell| cell.job.borrow().phase.is_active());
        unfinished.sort_by_key(|cell| cell.job.borrow().created);
        for cell in unfinished {
            cell.job.send_modify(|job| job.phase = Phase::Queued);
            self.launch(&cell);
        }
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The present, as the jobs see it.
    pub fn now(&self) -> Timestamp {
        self.0.ports.clock.now()
    }

    /// Makes a job (UWS 1.1 2.2.3.1); it is pending.
    pub async fn create(
        &self,
        owner: Owner,
        parameters: Vec<(String, String)>,
        parts: Vec<(String, Bytes)>,
    ) -> Result<Job, JobError> {
        self.submit(NewJob { owner, parameters, parts, ..NewJob::default() }).await
    }

    /// Makes a job, and queues it if it is to run at once: its record is made durable once.
    pub async fn submit(&self, new: NewJob) -> Result<Job, JobError> {
        self.room_for(&new.owner)?;
        if new.run {
            self.room_in_queue()?;
        }
        let mut job = Job::new(self.new_id(), new.owner, self.now(), &self.0.limits, new.parameters);
        job.execution = new.execution.map_or(job.execution, |wanted| self.execution(wanted));
        job.destruction = new.destruction.map_or(job.destruction, |wanted| self.destruction(wanted));
        if new.run {
            job.phase = Phase::Queued;
        }
        let (kept, store) = (job.clone(), Arc::clone(&self.0.ports.store));
        self.blocking(move || {
            let put = || {
                new.parts.iter().try_for_each(|(label, bytes)| store.put_part(&kept.id, label, bytes))?;
                store.put(&kept)
            };
            put().inspect_err(|_| {
                // Nobody was told of it.
                let _ = store.remove(&kept.id);
            })
        })
        .await?;
        let cell = Arc::new(Cell::new(job.clone()));
        self.0.cells.lock().insert(job.id.clone(), Arc::clone(&cell));
        if new.run {
            self.launch(&cell);
        }
        Ok(job)
    }

    fn room_in_queue(&self) -> Result<(), JobError> {
        let cells = self.0.cells.lock();
        let queued = cells.values().filter(|one| one.job.borrow().phase == Phase::Queued).count();
        if queued < self.0.limits.queued {
            Ok(())
        } else {
            Err(JobError::TooMany("too many jobs are queued; try again later"))
        }
    }

    /// The time that a job gets which asks for this; zero is as long as allowed (UWS 1.1 2.1.4).
    fn execution(&self, wanted: Duration) -> Duration {
        let most = self.0.limits.execution;
        if wanted.is_zero() { most } else { wanted.min(most) }
    }

    /// When a job is destroyed whose owner asks for this.
    fn destruction(&self, wanted: Timestamp) -> Timestamp {
        wanted.min(self.now().plus(self.0.limits.retention))
    }

    fn room_for(&self, owner: &Owner) -> Result<(), JobError> {
        let cells = self.0.cells.lock();
        if cells.len() >= self.0.limits.total {
            return Err(JobError::TooMany("the service keeps no more jobs; delete some, or try later"));
        }
        let theirs = cells.values().filter(|cell| cell.job.borrow().owner == *owner).count();
        if theirs >= self.0.limits.per_owner {
            return Err(JobError::TooMany("you have as many jobs as one owner may; delete some"));
        }
        Ok(())
    }

    fn new_id(&self) -> JobId {
        JobId::made(&*self.0.ports.entropy)
    }

    /// A job as it is now.
    pub fn get(&self, id: &str, owner: &Owner) -> Result<Job, JobError> {
        Ok(self.cell(id, owner)?.job.borrow().clone())
    }

    fn cell(&self, id: &str, owner: &Owner) -> Result<Arc<Cell>, JobError> {
        let found = self.0.cells.lock().get(id).cloned().ok_or(JobError::Unknown)?;
        let visible = {
            let job = found.job.borrow();
            job.owner == *owner && job.destruction > self.now()
        };
        if visible { Ok(found) } else { Err(JobError::Unknown) }
    }

    /// An owner's jobs in the order of their creation (UWS 1.1 2.2.2.1).
    pub fn list(&self, owner: &Owner, filter: &Filter) -> Vec<Job> {
        let now = self.now();
        let cells: Vec<Arc<Cell>> = self.0.cells.lock().values().cloned().collect();
        let listed = |cell: &Arc<Cell>| {
            let job = cell.job.borrow();
            (job.owner == *owner && job.destruction > now && filter.lets(&job)).then(|| job.clone())
        };
        let mut jobs: Vec<Job> = cells.iter().filter_map(listed).collect();
        jobs.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        filter.cut(jobs)
    }

    /// Waits until the job's phase is not `reference` (or not what it is now), at most `time`, and gives it as it is
    /// then (UWS 1.1 2.2.2.2). Returns at once for a phase that does not change by itself.
    pub async fn wait(
        &self,
        id: &str,
        owner: &Owner,
        reference: Option<Phase>,
        time: Duration,
    ) -> Result<Job, JobError> {
        let cell = self.cell(id, owner)?;
        let mut watched = cell.job.subscribe();
        let reference = reference.unwrap_or_else(|| watched.borrow().phase);
        let changed = watched.wait_for(|job| job.phase != reference || !job.phase.may_change());
        // Over time or gone: as it is.
        let _ = tokio::time::timeout(time, changed).await;
        let job = cell.job.borrow().clone();
        Ok(job)
    }

    /// Adds parameters and parts to a pending job (UWS 1.1 2.1.11); a parameter of the same name is replaced, but
    /// for UPLOAD, which adds up.
    pub async fn amend(
        &self,
        id: &str,
        owner: &Owner,
        parameters: Vec<(String, String)>,
        parts: Vec<(String, Bytes)>,
    ) -> Result<(), JobError> {
        let asked = "given parameters";
        let (job, store) = (self.get(id, owner)?, Arc::clone(&self.0.ports.store));
        if job.phase != Phase::Pending {
            return Err(JobError::Phase { phase: job.phase, asked });
        }
        if !parts.is_empty() {
            let keep =
                move || parts.iter().try_for_each(|(label, bytes)| store.put_part(&job.id, label, bytes));
            self.blocking(keep).await?;
        }
        self.change(id, owner, asked, |job| job.phase == Phase::Pending, |job| job.amend(parameters)).await
    }

    /// Changes when a job is destroyed, within the retention (UWS 1.1 2.2.3.3).
    pub async fn set_destruction(&self, id: &str, owner: &Owner, wanted: Timestamp) -> Result<(), JobError> {
        let kept = self.destruction(wanted);
        self.change(id, owner, "given a destruction time", |_| true, |job| job.destruction = kept).await
    }

    /// Changes how long a job may run; zero is as long as allowed (UWS 1.1 2.2.3.4).
    pub async fn set_execution(&self, id: &str, owner: &Owner, wanted: Duration) -> Result<(), JobError> {
        let kept = self.execution(wanted);
        let early = |job: &Job| matches!(job.phase, Phase::Pending | Phase::Queued | Phase::Held);
        self.change(id, owner, "given an execution duration", early, |job| job.execution = kept).await
    }

    /// Makes a change durable, then visible.
    async fn change(
        &self,
        id: &str,
        owner: &Owner,
        asked: &'static str,
        allowed: impl FnOnce(&Job) -> bool,
        change: impl FnOnce(&mut Job),
    ) -> Result<(), JobError> {
        let cell = self.cell(id, owner)?;
        self.alter(&cell, asked, allowed, change).await
    }

    async fn alter(
        &self,
        cell: &Cell,
        asked: &'static str,
        allowed: impl FnOnce(&Job) -> bool,
        change: impl FnOnce(&mut Job),
    ) -> Result<(), JobError> {
        let _turn = cell.changing.lock().await;
        let mut job = cell.job.borrow().clone();
        if !allowed(&job) {
            return Err(JobError::Phase { phase: job.phase, asked });
        }
        change(&mut job);
        let (kept, store) = (job.clone(), Arc::clone(&self.0.ports.store));
        self.blocking(move || store.put(&kept)).await?;
        cell.job.send_replace(job);
        Ok(())
    }

    /// Queues a pending job (PHASE=RUN; UWS 1.1 2.2.3.5).
    pub async fn run(&self, id: &str, owner: &Owner) -> Result<(), JobError> {
        let cell = self.cell(id, owner)?;
        self.room_in_queue()?;
        let waits = |job: &Job| matches!(job.phase, Phase::Pending | Phase::Held);
        self.alter(&cell, "run", waits, |job| job.phase = Phase::Queued).await?;
        self.launch(&cell);
        Ok(())
    }

    /// Aborts a job that has not ended (PHASE=ABORT; UWS 1.1 2.2.3.6).
    pub async fn abort(&self, id: &str, owner: &Owner) -> Result<(), JobError> {
        let cell = self.cell(id, owner)?;
        let now = self.now();
        self.alter(&cell, "aborted", |job| job.phase.may_change(), |job| job.end(Phase::Aborted, now))
            .await?;
        cell.stop();
        Ok(())
    }

    /// Deletes a job and what it left (UWS 1.1 2.2.3.2).
    pub async fn delete(&self, id: &str, owner: &Owner) -> Result<(), JobError> {
        let cell = self.cell(id, owner)?;
        self.destroy(&cell).await
    }

    async fn destroy(&self, cell: &Cell) -> Result<(), JobError> {
        cell.stop();
        let _turn = cell.changing.lock().await;
        let id = cell.job.borrow().id.clone();
        self.0.cells.lock().remove(&id);
        let store = Arc::clone(&self.0.ports.store);
        // Whoever waits for it sees an end.
        cell.job
            .send_modify(|job| job.phase = if job.phase.may_change() { Phase::Aborted } else { job.phase });
        self.blocking(move || store.remove(&id)).await?;
        Ok(())
    }

    /// Opens a result of a job.
    pub async fn result(
        &self,
        id: &str,
        owner: &Owner,
        name: &str,
    ) -> Result<(JobResult, u64, Box<dyn std::io::Read + Send>), JobError> {
        let job = self.get(id, owner)?;
        let result =
            job.results.iter().find(|result| result.name == name).cloned().ok_or(JobError::Unknown)?;
        let (store, name) = (Arc::clone(&self.0.ports.store), result.name.clone());
        let (length, bytes) = self.blocking(move || store.result(&job.id, &name)).await?;
        Ok((result, length, bytes))
    }

    /// Opens a result of a job from the byte `start` on.
    pub async fn result_from(
        &self,
        id: &str,
        owner: &Owner,
        name: &str,
        start: u64,
    ) -> Result<Box<dyn std::io::Read + Send>, JobError> {
        let job = self.get(id, owner)?;
        let (store, name) = (Arc::clone(&self.0.ports.store), name.to_owned());
        let (_, bytes) = self.blocking(move || store.result_from(&job.id, &name, start)).await?;
        Ok(bytes)
    }

    /// Reads what was uploaded to a job under this label.
    pub async fn part(&self, id: &str, owner: &Owner, label: &str) -> Result<Bytes, JobError> {
        let job = self.get(id, owner)?;
        let (store, label) = (Arc::clone(&self.0.ports.store), label.to_owned());
        Ok(self.blocking(move || store.part(&job.id, &label)).await?)
    }

    /// Where jobs run.
    pub fn compute(&self) -> &Arc<Compute> {
        &self.0.ports.compute
    }

    /// Destroys what is past its time, every `interval`, until the shutdown.
    pub async fn sweep(self, interval: Duration, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = shutdown.triggered() => return,
            }
            self.destroy_expired().await;
        }
    }

    /// Destroys what is past its time.
    pub async fn destroy_expired(&self) {
        let now = self.now();
        let mut expired: Vec<Arc<Cell>> = self.0.cells.lock().values().cloned().collect();
        expired.retain(|cell| cell.job.borrow().destruction <= now);
        for cell in expired {
            if let Err(error) = self.destroy(&cell).await {
                tracing::error!(error = &error as &dyn std::error::Error, "an expired job stays on disk");
            }
        }
    }

    /// How many jobs are in each of the phases QUEUED and EXECUTING, and how many are kept.
    pub fn load(&self) -> (usize, usize, usize) {
        let cells = self.0.cells.lock();
        let count = |phase| cells.values().filter(|cell| cell.job.borrow().phase == phase).count();
        (count(Phase::Queued), count(Phase::Executing), cells.len())
    }

    /// Calls the store where blocking is allowed.
    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.0.ports.compute.blocking(call).await;
        done.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string().into())))
    }
}

impl Cell {
    fn new(job: Job) -> Self {
        Self { job: watch::Sender::new(job), changing: tokio::sync::Mutex::new(()), task: Mutex::new(None) }
    }

    fn stop(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}
