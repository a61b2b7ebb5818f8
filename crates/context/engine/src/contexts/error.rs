//! What resolving and managing contexts refuses, by the error types of clause 5.5.2.

use trifid_context_model::ld::ContextError;

use super::limits::{MAX_HOSTED_BYTES, MAX_HOSTED_BYTES_PER_TENANT, MAX_HOSTED_PER_TENANT};

/// A refusal. Cloned to all who wait for the same download.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The context, or a document that it refers to, is malformed (5.5.4, 5.5.7).
    #[error("{origin}{error}")]
    Malformed {
        /// Where: empty for the request, else the document.
        origin: Origin,
        /// What is wrong.
        error: ContextError,
    },
    /// The body of "Add @context" is no JSON object with a member `@context` (5.13.2.3).
    #[error("{0}")]
    NoContextObject(Box<str>),
    /// A document cannot be had.
    #[error("the @context {url} cannot be had: {reason}")]
    NotAvailable {
        /// Its address.
        url: Box<str>,
        /// Why.
        reason: Box<str>,
    },
    /// No context with this identifier is stored, or it belongs to another tenant.
    #[error("no @context with the identifier \"{0}\" is stored")]
    NotFound(Box<str>),
    /// A cached context is not served (5.13.4.4).
    #[error("the @context \"{0}\" is a cached copy; it is served by its own server, not by this broker")]
    NotServed(Box<str>),
    /// Only cached contexts can be reloaded (5.13.5.4).
    #[error("the @context \"{0}\" is not a cached copy and cannot be reloaded")]
    NotReloadable(Box<str>),
    /// The core context is part of the broker.
    #[error("the core @context \"{0}\" cannot be deleted")]
    Core(Box<str>),
    /// The tenant hosts too much.
    #[error(
        "this tenant hosts {MAX_HOSTED_PER_TENANT} @contexts or {MAX_HOSTED_BYTES_PER_TENANT} bytes of them \
         already; delete some first"
    )]
    TooManyHosted,
    /// All tenants together host too much.
    #[error("all tenants together host {MAX_HOSTED_BYTES} bytes of @contexts already")]
    TooMuchHosted,
    /// The store of hosted contexts failed.
    #[error("the @context cannot be stored: {0}")]
    Storage(Box<str>),
}

/// The document that an error is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin(pub(super) Option<Box<str>>);

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(url) => write!(f, "in {url}: "),
            None => Ok(()),
        }
    }
}

/// The error type of a refusal (Table 6.3.2-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum Problem {
    InvalidRequest,
    BadRequestData,
    LdContextNotAvailable,
    ResourceNotFound,
    OperationNotSupported,
    InternalError,
}

impl Error {
    /// The error type to answer with.
    pub fn problem(&self) -> Problem {
        match self {
            Error::NoContextObject(_) => Problem::InvalidRequest,
            Error::Malformed { .. }
            | Error::NotReloadable(_)
            | Error::Core(_)
            | Error::TooManyHosted
            | Error::TooMuchHosted => Problem::BadRequestData,
            Error::NotAvailable { .. } => Problem::LdContextNotAvailable,
            Error::NotFound(_) => Problem::ResourceNotFound,
            Error::NotServed(_) => Problem::OperationNotSupported,
            Error::Storage(_) => Problem::InternalError,
        }
    }

    /// Malformed inside the request.
    pub(super) fn in_request(error: ContextError) -> Error {
        Error::Malformed { origin: Origin(None), error }
    }

    pub(super) fn in_document(url: &str, error: ContextError) -> Error {
        Error::Malformed { origin: Origin(Some(url.into())), error }
    }

    pub(super) fn not_available(url: &str, reason: impl Into<Box<str>>) -> Error {
        Error::NotAvailable { url: url.into(), reason: reason.into() }
    }
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error.problem() {
            Problem::InvalidRequest => crate::Error::InvalidRequest(text),
            Problem::BadRequestData => crate::Error::BadRequestData(text),
            Problem::LdContextNotAvailable => crate::Error::LdContextNotAvailable(text),
            Problem::ResourceNotFound => crate::Error::ResourceNotFound(text),
            Problem::OperationNotSupported => crate::Error::OperationNotSupported(text),
            Problem::InternalError => crate::Error::Internal(text),
        }
    }
}
