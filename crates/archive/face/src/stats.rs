//! What became of results, counted for operators.

use trifid_archive_model::write::End;
use trifid_base_web::metrics::Counter;

/// The counters, a cell per core; tasks of the pool count on the first.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) whole: Counter,
    pub(crate) streamed: Counter,
    pub(crate) overflowed: Counter,
    pub(crate) failed: Counter,
    pub(crate) abandoned: Counter,
    pub(crate) uploads: Counter,
}

/// A reading of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Results that went out in one piece.
    pub whole: u64,
    /// Results that were sent while they were made.
    pub streamed: u64,
    /// Results of which rows were withheld.
    pub overflowed: u64,
    /// Results that broke off after their first byte.
    pub failed: u64,
    /// Results whose client left before their end.
    pub abandoned: u64,
    /// Tables that came with queries.
    pub uploads: u64,
    /// Results that waited on disk for their client.
    pub spooled: u64,
    /// Bytes that wait on disk now.
    pub spool_bytes: u64,
}

impl Counters {
    /// Counters at zero for so many cores.
    pub(crate) fn new(cores: usize) -> Self {
        let counter = || Counter::new(cores);
        Self {
            whole: counter(),
            streamed: counter(),
            overflowed: counter(),
            failed: counter(),
            abandoned: counter(),
            uploads: counter(),
        }
    }

    /// Counts how a result ended.
    pub(crate) fn ended(&self, core: usize, end: &End) {
        match end {
            End::Complete => {}
            End::Overflow => self.overflowed.add(core, 1),
            End::Failed(_) => self.failed.add(core, 1),
        }
    }
}
