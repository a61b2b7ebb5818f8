//! What can go wrong between a query's text and its last row.

use std::sync::Arc;

/// Why a query gives no (further) rows.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueryError {
    /// The caller's mistake, worded for the caller: bad ADQL, a value that cannot be computed.
    #[error("{0}")]
    Invalid(Arc<str>),
    /// A bound of this service; what it is and how to stay below it.
    #[error("{0}")]
    TooLarge(Arc<str>),
    /// More work than can be done now; try again.
    #[error("the service is busy; try again in a moment")]
    Busy,
    /// The time that a query may take is over.
    #[error("the query was ended after {seconds} s, the longest that a query may run here")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// The caller went away or aborted.
    #[error("the query was aborted")]
    Aborted,
    /// What is stored cannot be read, or the engine failed: an operator must look.
    #[error("the archive failed to answer: {0}")]
    Internal(Arc<str>),
}

impl QueryError {
    /// A mistake of the caller.
    pub fn invalid(message: impl Into<Arc<str>>) -> Self {
        Self::Invalid(message.into())
    }

    /// A failure of ours.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        Self::Internal(error.to_string().into())
    }
}
