//! The archive door: its tables, its engine, its jobs, its face, put together.

mod health;
#[cfg(feature = "archive-datafusion")]
pub(crate) mod load;
#[cfg(feature = "archive-datafusion")]
pub(crate) mod query;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use trifid_archive_backends::jobs::FileJobs;
use trifid_archive_engine::archive::Archive;
use trifid_archive_engine::backend::QueryBackend;
use trifid_archive_engine::compute::{Compute, Size as PoolSize};
use trifid_archive_engine::jobs::{JobStore, Jobs, Limits as JobLimits, MemoryJobs, Ports as JobPorts};
use trifid_archive_engine::reference::Interpreter;
use trifid_archive_engine::tap_schema::with_tap_schema;
use trifid_archive_face::{ArchiveFace, Options as FaceOptions, Ports, ROOT};
use trifid_base_runtime::config::{Config, Kind, Kinded};
use trifid_base_runtime::units::{Size, Span};
use trifid_base_runtime::{Supervisor, SystemClock, SystemEntropy, section};
use trifid_base_web::{self as web, HealthSource, Mount, egress};

use crate::settings::Root;

pub(crate) use tables::Tables;

/// How often jobs past their time are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// What runs the queries that indexes alone cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    Auto,
    DataFusion,
    Reference,
}

impl Kinded for Engine {
    const KIND: Kind = Kind::Choice(&["auto", "datafusion", "reference"]);
}

/// Where jobs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JobsKind {
    File,
    Memory,
}

impl Kinded for JobsKind {
    const KIND: Kind = Kind::Choice(&["file", "memory"]);
}

section! {
    /// The archive door, beside what its face reads.
    pub(crate) struct Options in "archive" {
        /// What runs the queries that indexes alone cannot answer: `datafusion`, or the plain interpreter
        /// (`reference`), which keeps everything in memory; `auto` takes the first that this binary was built with.
        engine: Engine = "auto",
        /// Threads for queries above a millisecond; 0 stands for one a core.
        threads: u64 = "0" in "threads",
        /// Queries that run at once; more wait.
        running: u64 = "16" in "queries",
        /// Queries that wait; more are answered 503.
        waiting: u64 = "64" in "queries",
        /// Memory for columns of tables on disk, once read.
        cache: Size = "256MiB",
        /// Memory for running queries together; what needs more goes to disk or is refused.
        query_memory: Size = "512MiB",
        /// Plans that are kept.
        plans: u64 = "2000" in "plans",
        /// How often tables that were loaded or described anew are looked for.
        reload_interval: Span = "2s",
        /// Where jobs are kept: `file` in data_dir, `memory` forgets them with the process.
        jobs: JobsKind = "file",
        /// Jobs that run at once.
        jobs_running: u64 = "2" in "jobs",
        /// Jobs kept of one owner.
        jobs_per_owner: u64 = "10000" in "jobs",
        /// How long a job may run that asks for nothing else.
        job_time: Span = "1h",
        /// The longest that a job may run.
        job_time_limit: Span = "24h",
        /// How long a job is kept.
        job_retention: Span = "7d",
    }
}

impl Options {
    fn job_limits(&self) -> JobLimits {
        JobLimits {
            running: size(self.jobs_running),
            per_owner: size(self.jobs_per_owner),
            execution: self.job_time_limit.into(),
            execution_default: self.job_time.into(),
            retention: self.job_retention.into(),
            ..JobLimits::default()
        }
    }

    fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if self.threads == 0 { cores } else { size(self.threads) }
    }
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The door, open.
pub(crate) struct Door {
    pub(crate) archive: Arc<Archive>,
    pub(crate) mount: Mount,
    face: Arc<ArchiveFace>,
    jobs: Jobs,
}

impl Door {
    /// Opens the door; what it does by itself, `supervisor` watches.
    pub(crate) fn open(
        config: &Config,
        listener: &web::Resolved,
        client: egress::Client,
        supervisor: &mut Supervisor,
    ) -> anyhow::Result<Self> {
        let options: Options = config.section(Options::SECTION)?;
        let folder = folder(config)?;
        let settings = config.section::<FaceOptions>(FaceOptions::SECTION)?.resolve(listener.is_tls())?;
        let archive = Arc::new(opened(&options, &folder)?);
        let mut tables = Tables::new(&options, &folder, Arc::clone(&archive));
        tables.publish().context("cannot open the archive's tables")?;
        let face = ArchiveFace::new(
            Arc::clone(&archive),
            settings,
            ports(&options, &folder, listener.cores(), client),
        );
        let jobs = jobs(&options, &folder, &archive, &face).context("cannot open the archive's jobs")?;
        let face = Arc::new(face.with_jobs(jobs.clone()));
        let mount = Mount::new(ROOT, Arc::clone(&face) as Arc<dyn web::Face>);
        let shutdown = supervisor.shutdown().clone();
        supervisor.spawn("archive tables", tables.watch(options.reload_interval.into(), shutdown.clone()));
        let sweep = jobs.clone().sweep(SWEEP_INTERVAL, shutdown);
        supervisor.spawn("archive jobs", async move {
            sweep.await;
            Ok::<(), std::convert::Infallible>(())
        });
        Ok(Self { archive, mount, face, jobs })
    }

    /// What the door says of itself.
    pub(crate) fn health(&self) -> Arc<dyn HealthSource> {
        Arc::new(health::Health {
            archive: Arc::clone(&self.archive),
            face: Arc::clone(&self.face),
            jobs: self.jobs.clone(),
        })
    }
}

/// The folder of everything that the archive keeps.
pub(crate) fn folder(config: &Config) -> anyhow::Result<PathBuf> {
    Ok(config.section::<Root>(Root::SECTION)?.data_dir.join("archive"))
}

/// An archive without tables.
pub(crate) fn opened(options: &Options, folder: &Path) -> anyhow::Result<Archive> {
    let pool = PoolSize {
        threads: options.threads(),
        running: size(options.running),
        waiting: size(options.waiting),
    };
    let compute = Compute::start(pool).context("cannot start the archive's compute pool")?;
    let snapshot = with_tap_schema(1, Vec::new(), Vec::new())?;
    Ok(Archive::new(snapshot, backend(options, folder)?, Arc::new(compute), size(options.plans)))
}

#[cfg(feature = "archive-datafusion")]
fn backend(options: &Options, folder: &Path) -> anyhow::Result<Arc<dyn QueryBackend>> {
    use trifid_archive_datafusion::query::{DataFusionBackend, Options as QueryOptions};

    if options.engine == Engine::Reference {
        return Ok(Arc::new(Interpreter::default()));
    }
    let spill = folder.join("spill");
    std::fs::create_dir_all(&spill).with_context(|| format!("cannot make {}", spill.display()))?;
    let settings = QueryOptions {
        memory: options.query_memory.0,
        threads: options.threads(),
        spill_dir: Some(spill),
        ..QueryOptions::default()
    };
    Ok(Arc::new(DataFusionBackend::new(&settings, Arc::new(SystemEntropy))?))
}

#[cfg(not(feature = "archive-datafusion"))]
fn backend(options: &Options, _: &Path) -> anyhow::Result<Arc<dyn QueryBackend>> {
    anyhow::ensure!(
        options.engine != Engine::DataFusion,
        "archive.engine: this binary was built without DataFusion (feature archive-datafusion)"
    );
    Ok(Arc::new(Interpreter::default()))
}

fn ports(options: &Options, folder: &Path, cores: usize, client: egress::Client) -> Ports {
    Ports {
        clock: Arc::new(SystemClock),
        client: Some(client),
        spool: folder.join("spool"),
        formats: tables::formats(),
        examples: Vec::new(),
        jobs: options.job_limits(),
        cores,
    }
}

fn jobs(options: &Options, folder: &Path, archive: &Archive, face: &ArchiveFace) -> anyhow::Result<Jobs> {
    let store: Arc<dyn JobStore> = match options.jobs {
        JobsKind::File => Arc::new(FileJobs::open(&folder.join("jobs"))?),
        JobsKind::Memory => Arc::new(MemoryJobs::default()),
    };
    let ports = JobPorts {
        store,
        runner: face.runner(),
        compute: Arc::clone(archive.compute()),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    };
    Ok(Jobs::open(ports, options.job_limits())?)
}
