//! The record of a job on disk, versioned.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trifid_archive_engine::jobs::{Fault, Job, JobId, JobResult, Phase, StoreError};
use trifid_base_runtime::Timestamp;

/// The version that is written.
const VERSION: u32 = 1;

/// Instants are microseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    owner: Option<String>,
    phase: String,
    created: i64,
    started: Option<i64>,
    ended: Option<i64>,
    execution_seconds: u64,
    destruction: i64,
    parameters: Vec<(String, String)>,
    results: Vec<Kept>,
    fault: Option<(String, bool)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    name: String,
    media_type: String,
    bytes: u64,
    rows: u64,
    #[serde(default)]
    overflow: bool,
}

impl Record {
    pub(super) fn of(job: &Job) -> Self {
        let kept = |result: &JobResult| Kept {
            name: result.name.clone(),
            media_type: result.media_type.clone(),
            bytes: result.bytes,
            rows: result.rows,
            overflow: result.overflow,
        };
        Self {
            version: VERSION,
            owner: job.owner.as_deref().map(Into::into),
            phase: job.phase.name().into(),
            created: job.created.micros(),
            started: job.started.map(Timestamp::micros),
            ended: job.ended.map(Timestamp::micros),
            execution_seconds: job.execution.as_secs(),
            destruction: job.destruction.micros(),
            parameters: job.parameters.clone(),
            results: job.results.iter().map(kept).collect(),
            fault: job.fault.as_ref().map(|fault| (fault.message.to_string(), fault.transient)),
        }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(self).map_err(|error| StoreError::Failed(error.to_string().into()))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.version == VERSION {
            Ok(record)
        } else {
            Err(format!("it has the version {}", record.version))
        }
    }

    pub(super) fn into_job(self, id: JobId) -> Option<Job> {
        let result = |kept: Kept| JobResult {
            name: kept.name,
            media_type: kept.media_type,
            bytes: kept.bytes,
            rows: kept.rows,
            overflow: kept.overflow,
        };
        Some(Job {
            id,
            owner: self.owner.map(Into::into),
            phase: Phase::named(&self.phase)?,
            created: Timestamp::from_micros(self.created),
            started: self.started.map(Timestamp::from_micros),
            ended: self.ended.map(Timestamp::from_micros),
            execution: Duration::from_secs(self.execution_seconds),
            destruction: Timestamp::from_micros(self.destruction),
            parameters: self.parameters,
            results: self.results.into_iter().map(result).collect(),
            fault: self.fault.map(|(message, transient)| Fault { message: message.into(), transient }),
        })
    }
}
