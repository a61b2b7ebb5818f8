//! The port to a query engine that runs whole trees.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
    /// What ends it early.
    pub cancel: Cancel,
}

/// Says to a running query that nobody wants it any more, or that its time is over. Work that goes on for long without
/// an await asks it now and then: whoever drops the query cannot be heard meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// When its time is over, and how long that is.
    end: Option<(Instant, Duration)>,
}

impl Cancel {
    /// One that ends the query after so much time, if there is a bound.
    pub fn after(time: Option<Duration>) -> Self {
        let end = time.and_then(|time| Some((Instant::now().checked_add(time)?, time)));
        Self { flag: Arc::default(), end }
    }

    /// Ends the query at its next look.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether nobody wants it any more.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Why it is to end, if it is.
    pub fn check(&self) -> Result<(), QueryError> {
        if self.is_set() {
            return Err(QueryError::Aborted);
        }
        match self.end {
            Some((end, time)) if Instant::now() >= end => {
                Err(QueryError::TimedOut { seconds: time.as_secs() })
            }
            _ => Ok(()),
        }
    }
}

/// An engine that runs any tree over any tables.
pub trait QueryBackend: Send + Sync + 'static {
    /// Plans and starts a query. Called on the compute pool, inside its runtime.
    fn run(&self, run: Run) -> Pin<Box<dyn Future<Output = Result<BatchStream, QueryError>> + Send + '_>>;
}
