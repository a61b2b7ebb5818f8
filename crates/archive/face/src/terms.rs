//! How long jobs live and run, as the capabilities document tells it.

use std::time::Duration;

/// The terms of jobs. Whoever runs them keeps them; this crate only says what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a job is kept where its owner does not say.
    pub retention_default: Duration,
    /// How long a job may be kept.
    pub retention_limit: Duration,
    /// How long a job may run where its owner does not say.
    pub execution_default: Duration,
    /// How long a job may run.
    pub execution_limit: Duration,
}
