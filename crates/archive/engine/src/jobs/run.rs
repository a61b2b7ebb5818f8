//! Running jobs: a turn, the runner, and how it ended.

use std::sync::Arc;

use super::{Cell, Fault, Job, JobResult, Jobs, Phase};

impl Jobs {
    /// Starts the task that waits for the job's turn and runs it.
    pub(super) fn launch(&self, cell: &Arc<Cell>) {
        let (jobs, run) = (self.clone(), Arc::clone(cell));
        let task = self.0.ports.compute.spawn(async move { jobs.execute(run).await });
        *cell.task.lock() = Some(task.abort_handle());
    }

    async fn execute(self, cell: Arc<Cell>) {
        let Ok(_turn) = Arc::clone(&self.0.turns).acquire_owned().await else { return };
        let now = self.now();
        // Not made durable: after a crash a running job is as good as a queued one.
        let began = cell.job.send_if_modified(|job| {
            let queued = job.phase == Phase::Queued;
            if queued {
                (job.phase, job.started) = (Phase::Executing, Some(now));
            }
            queued
        });
        if !began {
            return;
        }
        let job = cell.job.borrow().clone();
        let outcome = self.bounded(job).await;
        self.ended(&cell, outcome).await;
    }

    async fn bounded(&self, job: Job) -> Result<Vec<JobResult>, Fault> {
        let time = job.execution;
        let run = self.0.ports.runner.run(job, Arc::clone(&self.0.ports.store));
        tokio::time::timeout(time, run).await.unwrap_or_else(|_| {
            let seconds = time.as_secs();
            Err(Fault {
                message: format!("the job was ended after {seconds} s, its execution duration").into(),
                transient: false,
            })
        })
    }

    async fn ended(&self, cell: &Cell, outcome: Result<Vec<JobResult>, Fault>) {
        let now = self.now();
        let end = |job: &mut Job| match outcome {
            Ok(results) => {
                job.results = results;
                job.end(Phase::Completed, now);
            }
            Err(fault) => {
                job.fault = Some(fault);
                job.end(Phase::Error, now);
            }
        };
        if let Err(error) = self.alter(cell, "ended", |job| job.phase == Phase::Executing, end).await {
            tracing::error!(error = &error as &dyn std::error::Error, "the end of a job could not be kept");
            let fault = Fault { message: "the job's record could not be kept".into(), transient: true };
            cell.job.send_modify(|job| {
                if job.phase == Phase::Executing {
                    job.fault = Some(fault);
                    job.end(Phase::Error, now);
                }
            });
        }
    }
}
