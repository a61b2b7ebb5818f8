//! The port through which documents are downloaded.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

/// A boxed future of a port.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What to download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchRequest<'a> {
    /// An absolute http or https URL.
    pub url: &'a str,
    /// For `If-None-Match`, when an older copy is at hand.
    pub etag: Option<&'a str>,
    /// For `If-Modified-Since`, likewise.
    pub last_modified: Option<&'a str>,
}

/// The headers of a response that say how long it may be used (RFC 9111), as received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the headers")]
pub struct CacheHeaders {
    pub cache_control: Option<Box<str>>,
    pub expires: Option<Box<str>>,
    pub date: Option<Box<str>>,
    pub age: Option<Box<str>>,
    pub etag: Option<Box<str>>,
    pub last_modified: Option<Box<str>>,
}

/// What came of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// A document.
    Document {
        /// Where it came from in the end, redirects followed: the base of references in it.
        url: Box<str>,
        /// The body.
        bytes: Bytes,
        /// Its headers.
        cache: CacheHeaders,
    },
    /// The older copy is still good (304).
    NotModified {
        /// The headers of the answer.
        cache: CacheHeaders,
    },
}

/// Why a document cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct FetchError {
    /// What failed, for a person: `the server answered 404`, `connection refused`, `the address is not allowed`.
    pub reason: Box<str>,
}

impl FetchError {
    /// An error for this reason.
    pub fn new(reason: impl Into<Box<str>>) -> FetchError {
        FetchError { reason: reason.into() }
    }
}

/// Downloads context documents.
///
/// An implementation passes its egress guard, sends `Accept: application/ld+json, application/json;q=0.9`, follows at
/// most three redirects with the guard applied to each, ends within a deadline of its own, reads at most
/// [`MAX_DOCUMENT_BYTES`](trifid_context_model::ld::limits::MAX_DOCUMENT_BYTES), and answers every status but 2xx and
/// 304 with an error. When it is dropped, the download stops.
pub trait Fetch: Send + Sync + 'static {
    /// Downloads one document.
    fn fetch<'a>(&'a self, request: FetchRequest<'a>) -> Boxed<'a, Result<Fetched, FetchError>>;
}
