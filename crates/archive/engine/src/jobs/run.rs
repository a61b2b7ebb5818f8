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
        let watch = Watch { jobs: &self, cell: &cell };
        let outcome = self.bounded(job).await;
        drop(watch);
        self.ended(&cell, outcome).await;
    }

    /// Runs the job for as long as it may. Past its time it is aborted, as by its owner (UWS 1.1 2.1.4).
    async fn bounded(&self, job: Job) -> Result<Vec<JobResult>, (Phase, Fault)> {
        let time = job.execution;
        let run = self.0.ports.runner.run(job, Arc::clone(&self.0.ports.store));
        match tokio::time::timeout(time, run).await {
            Ok(outcome) => outcome.map_err(|fault| (Phase::Error, fault)),
            Err(_) => {
                let seconds = time.as_secs();
                let message = format!("the job was ended after {seconds} s, its execution duration");
                Err((Phase::Aborted, Fault { message: message.into(), transient: false }))
            }
        }
    }

    async fn ended(&self, cell: &Cell, outcome: Result<Vec<JobResult>, (Phase, Fault)>) {
        let now = self.now();
        let end = |job: &mut Job| match outcome {
            Ok(results) => {
                job.results = results;
                job.end(Phase::Completed, now);
            }
            Err((phase, fault)) => {
                job.fault = Some(fault);
                job.end(phase, now);
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

/// Sees to it that a job whose runner panics has an end all the same.
struct Watch<'a> {
    jobs: &'a Jobs,
    cell: &'a Arc<Cell>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // The job was aborted, or the service stops.
            return;
        }
        let (jobs, cell) = (self.jobs.clone(), Arc::clone(self.cell));
        let message = "the job failed for a reason of the service's own; the operator can see it";
        let fault = Fault { message: message.into(), transient: false };
        let end = async move { jobs.ended(&cell, Err((Phase::Error, fault))).await };
        drop(self.jobs.0.ports.compute.spawn(end));
    }
}
