//! What an operation of the broker refuses, by the error types of clause 5.5.2.

use trifid_context_model::input::Invalid;
use trifid_context_model::{json, query};

use crate::action::OpError;
use crate::store::StoreError;

/// A refusal; the face maps each case to one problem type and status (6.3.2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request itself is malformed.
    #[error("{0}")]
    InvalidRequest(String),
    /// The content does not fit the data model.
    #[error("{0}")]
    BadRequestData(String),
    /// The element to be created exists.
    #[error("{0}")]
    AlreadyExists(String),
    /// The element does not exist.
    #[error("{0}")]
    ResourceNotFound(String),
    /// The operation is not supported.
    #[error("{0}")]
    OperationNotSupported(String),
    /// A `@context` document cannot be had.
    #[error("{0}")]
    LdContextNotAvailable(String),
    /// The query costs more than the broker allows.
    #[error("{0}")]
    TooComplexQuery(String),
    /// The answer would be larger than the broker allows.
    #[error("{0}")]
    TooManyResults(String),
    /// No tenant of this name exists.
    #[error("the tenant does not exist")]
    NonexistentTenant,
    /// The broker takes no more work now.
    #[error("the broker is busy; retry after {retry_after_s} s")]
    Overloaded {
        /// Seconds to wait.
        retry_after_s: u32,
    },
    /// The broker failed.
    #[error("{0}")]
    Internal(String),
}

impl From<Invalid> for Error {
    fn from(error: Invalid) -> Self {
        Error::BadRequestData(error.to_string())
    }
}

impl From<OpError> for Error {
    fn from(error: OpError) -> Self {
        let text = error.to_string();
        match error {
            OpError::Invalid(_) => Error::BadRequestData(text),
            OpError::AlreadyExists => Error::AlreadyExists(text),
            OpError::NoEntity | OpError::NoAttribute(_) => Error::ResourceNotFound(text),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NoTenant => Error::NonexistentTenant,
            StoreError::TooManyTenants => Error::TooManyResults(text),
            StoreError::Overloaded { retry_after_s } => Error::Overloaded { retry_after_s },
            StoreError::TooComplex(_) => Error::TooComplexQuery(text),
            StoreError::Failed(_) => Error::Internal(text),
        }
    }
}

impl From<json::Error> for Error {
    fn from(error: json::Error) -> Self {
        Error::InvalidRequest(format!("the body is not valid JSON: {error}"))
    }
}

impl From<query::Error> for Error {
    fn from(error: query::Error) -> Self {
        match error.problem() {
            query::Problem::BadRequestData => Error::BadRequestData(error.to_string()),
            query::Problem::TooComplexQuery => Error::TooComplexQuery(error.to_string()),
        }
    }
}
