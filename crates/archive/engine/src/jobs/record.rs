//! What a job is (UWS 1.1 section 2.1).

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use trifid_base_runtime::{Entropy, Timestamp};

use super::Limits;

/// Whose job it is; `None` for callers without a name.
pub type Owner = Option<Arc<str>>;

/// A job's name: letters and digits, impossible to guess.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(Arc<str>);

impl JobId {
    /// A new name.
    pub(super) fn made(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 16];
        entropy.fill(&mut bytes);
        let mut text = String::with_capacity(32);
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text.into())
    }

    /// A name that was kept; only letters and digits, so that it can be a file's name.
    pub fn kept(text: &str) -> Option<Self> {
        let plain =
            !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        plain.then(|| Self(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for JobId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a job is in its life (UWS 1.1 2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Made, and not yet to be run.
    Pending,
    /// Waiting for its turn.
    Queued,
    /// Running.
    Executing,
    /// Done, with results.
    Completed,
    /// Failed.
    Error,
    /// Ended before its end, by its owner or its time.
    Aborted,
    /// Waiting for something outside.
    Held,
    /// Paused by the service.
    Suspended,
    /// Nobody can tell.
    Unknown,
    /// Its results are gone, its record is kept.
    Archived,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Queued,
        Self::Executing,
        Self::Completed,
        Self::Error,
        Self::Aborted,
        Self::Held,
        Self::Suspended,
        Self::Unknown,
        Self::Archived,
    ];

    /// The word of the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Queued => "QUEUED",
            Self::Executing => "EXECUTING",
            Self::Completed => "COMPLETED",
            Self::Error => "ERROR",
            Self::Aborted => "ABORTED",
            Self::Held => "HELD",
            Self::Suspended => "SUSPENDED",
            Self::Unknown => "UNKNOWN",
            Self::Archived => "ARCHIVED",
        }
    }

    /// The phase with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name().eq_ignore_ascii_case(name))
    }

    /// Whether the job is queued or runs.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Executing)
    }

    /// Whether waiting for a change can make sense (UWS 1.1 2.2.2.2).
    pub const fn may_change(self) -> bool {
        matches!(self, Self::Pending | Self::Queued | Self::Executing | Self::Held | Self::Suspended)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// Whose it is (UWS 1.1 2.1.8).
    pub owner: Owner,
    /// Where it is in its life.
    pub phase: Phase,
    /// When it was made.
    pub created: Timestamp,
    /// When it began to run.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How long it may run.
    pub execution: Duration,
    /// When it is destroyed (UWS 1.1 2.1.5).
    pub destruction: Timestamp,
    /// What it was asked, in order.
    pub parameters: Vec<(String, String)>,
    /// What it left (UWS 1.1 2.1.10).
    pub results: Vec<JobResult>,
    /// Why it failed (UWS 1.1 2.1.7).
    pub fault: Option<Fault>,
}

/// A result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// Its name: `result` for the answer of a query (TAP 1.1 2.2).
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// Whether rows were withheld.
    pub overflow: bool,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// For people.
    pub message: Arc<str>,
    /// Whether trying again makes sense.
    pub transient: bool,
}

impl Job {
    pub(super) fn new(
        id: JobId,
        owner: Owner,
        now: Timestamp,
        limits: &Limits,
        parameters: Vec<(String, String)>,
    ) -> Self {
        Self {
            id,
            owner,
            phase: Phase::Pending,
            created: now,
            started: None,
            ended: None,
            execution: limits.execution_default.min(limits.execution),
            destruction: now.plus(limits.retention),
            parameters,
            results: Vec::new(),
            fault: None,
        }
    }

    /// The value of a parameter; names ignore case.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn amend(&mut self, parameters: Vec<(String, String)>) {
        let replaced = |known: &str| {
            !known.eq_ignore_ascii_case("UPLOAD")
                && parameters.iter().any(|(name, _)| name.eq_ignore_ascii_case(known))
        };
        self.parameters.retain(|(known, _)| !replaced(known));
        self.parameters.extend(parameters);
    }

    pub(super) fn end(&mut self, phase: Phase, now: Timestamp) {
        self.phase = phase;
        self.ended = Some(now);
    }
}

/// Which jobs a list has (UWS 1.1 2.2.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these phases; all but ARCHIVED, if empty.
    pub phases: Vec<Phase>,
    /// Only jobs made after this.
    pub after: Option<Timestamp>,
    /// Only so many, the newest, newest first.
    pub last: Option<usize>,
}

impl Filter {
    pub(super) fn lets(&self, job: &Job) -> bool {
        let phase = if self.phases.is_empty() {
            job.phase != Phase::Archived
        } else {
            self.phases.contains(&job.phase)
        };
        phase && self.after.is_none_or(|after| job.created > after)
    }

    pub(super) fn cut(&self, mut jobs: Vec<Job>) -> Vec<Job> {
        if let Some(last) = self.last {
            jobs.reverse();
            jobs.truncate(last);
        }
        jobs
    }
}
