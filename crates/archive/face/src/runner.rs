//! What a job does: the request that it holds, as if it were asked for at once, its result kept in a file.
//!
//! ```text
//! Job -> form, parts -> query::Checked -> rows -> encode or fits -> the store's sink
//! ```
//!
//! The wording of failures is that of a synchronous query, and so is what counts as overflow. A result that failed
//! late is not kept: the job has an error instead. Where a synchronous query is told that the archive is busy a job
//! waits for its turn; how many do so at once is bounded by the number of jobs that run. Dropping the future ends the
//! query and takes back what was written.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::jobs::{
    self, Job, JobId, JobResult, JobRunner, JobStore, ResultSink, Running, StoreError,
};
use trifid_archive_model::write::End;

use crate::encode::{self, Lost, Pieces, Rows, Sink};
use crate::fault::Fault;
use crate::form::File;
use crate::format::Target;
use crate::params::{Operation, Params};
use crate::query::Checked;
use crate::uws::{self, Kept};
use crate::{ArchiveFace, fits};

/// The name of a query's result (TAP 1.1 2.2).
const RESULT: &str = "result";

/// Runs the jobs of a face.
pub(crate) struct Runner {
    /// A face of its own, without jobs: nothing holds itself.
    face: ArchiveFace,
}

impl Runner {
    /// A runner over a face that has no jobs and is patient.
    pub(crate) fn new(face: ArchiveFace) -> Self {
        Self { face }
    }

    async fn answer(&self, job: &Job, store: &Arc<dyn JobStore>) -> Result<JobResult, Fault> {
        let mut form = uws::form(job)?;
        form.files = self.files(job, store).await?;
        let params = Params::read(&form)?;
        if params.operation == Operation::Capabilities {
            return Err(Fault::invalid(
                "a job answers queries; the capabilities are told at once, elsewhere",
            ));
        }
        if let Some(run_id) = params.run_id {
            tracing::info!(job = %job.id, run_id, "query");
        }
        let checked = self.face.check(&params, &form.files).await?;
        self.kept(&checked, &job.id, store).await
    }

    /// The tables that were uploaded to the job, as far as UPLOAD refers to them.
    async fn files(&self, job: &Job, store: &Arc<dyn JobStore>) -> Result<Vec<File>, Fault> {
        let labels: Vec<String> = uws::labels(&job.parameters).into_iter().map(str::to_owned).collect();
        if labels.is_empty() {
            return Ok(Vec::new());
        }
        let (id, store) = (job.id.clone(), Arc::clone(store));
        let read = move || {
            let mut files = Vec::new();
            for label in labels {
                match store.part(&id, &uws::kept_label(&label)) {
                    Ok(packed) => files.push(Kept::read(&packed).into_file(&label)),
                    // The query says what is not there.
                    Err(StoreError::Missing) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(files)
        };
        let read = self.face.archive.compute().blocking(read).await.map_err(Fault::internal)?;
        read.map_err(Fault::internal)
    }

    /// Runs a query and keeps its result.
    async fn kept(
        &self,
        checked: &Checked,
        id: &JobId,
        store: &Arc<dyn JobStore>,
    ) -> Result<JobResult, Fault> {
        let seen = Arc::new(Seen::default());
        let answer = checked.start_patiently(&self.face.archive)?;
        let rows = Counted { rows: answer, seen: Arc::clone(&seen) };
        let mut file = InFile(store.create_result(id, RESULT).map_err(Fault::internal)?);
        let end = match checked.target() {
            Target::Stream(writer) => {
                let pieces = Pieces::new(writer, None).map_err(Fault::internal)?;
                encode::run(rows, pieces, &mut file).await.map_err(Fault::internal)?
            }
            Target::Fits(head) => {
                let surveyed = fits::survey(rows, head, Arc::clone(&self.face.spool)).await?;
                fits::deliver(surveyed, None, &mut file).await.map_err(Fault::internal)?
            }
        };
        if let End::Failed(message) = &end {
            let told = || Fault::invalid(message.to_string());
            return Err(seen.error.get().cloned().map_or_else(told, Fault::from));
        }
        // Durability takes the time of the disk.
        let finished = self.face.archive.compute().blocking(move || file.0.finish()).await;
        Ok(JobResult {
            name: RESULT.into(),
            media_type: checked.chosen.media.to_str().unwrap_or_default().to_owned(),
            bytes: finished.map_err(Fault::internal)?.map_err(Fault::internal)?,
            rows: seen.rows.load(Ordering::Relaxed),
            overflow: end == End::Overflow,
        })
    }
}

impl JobRunner for Runner {
    fn run(&self, job: Job, store: Arc<dyn JobStore>) -> Running<'_> {
        Box::pin(async move {
            let answered = self.answer(&job, &store).await;
            answered.map(|result| vec![result]).map_err(|fault| told(&fault))
        })
    }
}

/// A failure in the words of a synchronous query.
fn told(fault: &Fault) -> jobs::Fault {
    jobs::Fault { message: fault.message().into(), transient: matches!(fault, Fault::Busy(_)) }
}

/// What was seen of rows on their way.
#[derive(Default)]
struct Seen {
    rows: AtomicU64,
    error: OnceLock<QueryError>,
}

/// Rows that are counted.
struct Counted<R> {
    rows: R,
    seen: Arc<Seen>,
}

impl<R: Rows> Rows for Counted<R> {
    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        let next = self.rows.next().await;
        match &next {
            Ok(Some(batch)) => drop(self.seen.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed)),
            Ok(None) => {}
            // The first one is the reason.
            Err(error) => drop(self.seen.error.set(error.clone())),
        }
        next
    }

    fn overflow(&self) -> bool {
        self.rows.overflow()
    }
}

/// A result in the store. Writing goes to the page cache, on a thread of the compute pool.
struct InFile(Box<dyn ResultSink>);

impl Sink for InFile {
    async fn push(&mut self, piece: Vec<u8>) -> Result<(), Lost> {
        Ok(self.0.write_all(&piece)?)
    }

    async fn during<T: Send>(&mut self, work: impl Future<Output = T> + Send) -> Result<T, Lost> {
        Ok(work.await)
    }
}
