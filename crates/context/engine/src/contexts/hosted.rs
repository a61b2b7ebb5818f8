//! The port behind which hosted contexts outlive the process.

use bytes::Bytes;
use trifid_context_model::time::Instant;

use super::entry::Kind;
use super::fetch::Boxed;

/// A context that this broker serves, as stores keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedContext {
    /// The tenant that it belongs to; empty for the default tenant.
    pub tenant: Box<str>,
    /// Its identifier, unique in the broker.
    pub local_id: Box<str>,
    /// Hosted or implicitly created.
    pub kind: Kind,
    /// The document: a JSON object with the member `@context` alone.
    pub text: Bytes,
    /// When it was added.
    pub created_at: Instant,
}

/// Keeps hosted contexts. A change is acknowledged to its client when the future is done, so it must then be as
/// durable as the store promises.
pub trait HostedContexts: Send + Sync + 'static {
    /// Keeps a context.
    fn save<'a>(&'a self, context: &'a HostedContext) -> Boxed<'a, Result<(), Box<str>>>;

    /// Forgets a context.
    fn remove<'a>(&'a self, tenant: &'a str, local_id: &'a str) -> Boxed<'a, Result<(), Box<str>>>;
}

/// Keeps nothing: hosted contexts live as long as the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct InMemory;

impl HostedContexts for InMemory {
    fn save<'a>(&'a self, _: &'a HostedContext) -> Boxed<'a, Result<(), Box<str>>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn remove<'a>(&'a self, _: &'a str, _: &'a str) -> Boxed<'a, Result<(), Box<str>>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
