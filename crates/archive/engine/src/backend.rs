//! The port to a query engine that runs whole trees.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arrow_array::RecordBatch;
use futures_core::Stream;
use trifid_archive_adql::tree::Query;

use crate::catalogue::Tables;
use crate::error::QueryError;

/// Rows of an answer in the physical types of the query's fields. Dropping the stream ends the work.
pub type BatchStream = Pin<Box<dyn Stream<Item = Result<RecordBatch, QueryError>> + Send>>;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The tree, literals in place.
    pub query: Arc<Query>,
    /// What identifies the tree apart from its literals, for an engine that keeps plans; `None` for trees over
    /// uploads.
    pub plan: Option<u64>,
    /// The tables that it names.
    pub tables: Arc<Tables>,
    /// The most rows that anybody will read, if known.
    pub limit: Option<u64>,
}

/// An engine that runs any tree over any tables.
pub trait QueryBackend: Send + Sync + 'static {
    /// Plans and starts a query. Called on the compute pool, inside its runtime.
    fn run(&self, run: Run) -> Pin<Box<dyn Future<Output = Result<BatchStream, QueryError>> + Send + '_>>;
}
