//! What a broker is made from.

use std::sync::Arc;

use trifid_base_log::Disk;
use trifid_base_runtime::{Clock, Entropy, SystemClock, SystemEntropy};
use trifid_stream_model::spec::StreamSpec;

use crate::limits::Limits;

/// What a broker is made from.
#[derive(Clone)]
pub struct Options {
    /// The data directory, for this broker alone; none: only streams in memory.
    pub dir: Option<Arc<dyn Disk>>,
    /// Settings of the logs in it.
    pub logs: trifid_base_log::Options,
    /// What may be held.
    pub limits: Limits,
    /// Whether streams are made on first use.
    pub create: CreatePolicy,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where chance comes from.
    pub entropy: Arc<dyn Entropy>,
}

impl Options {
    /// A broker without a data directory.
    pub fn memory() -> Self {
        Options {
            dir: None,
            logs: trifid_base_log::Options::default(),
            limits: Limits::default(),
            create: CreatePolicy::default(),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
        }
    }

    /// A broker whose durable streams lie on this disk.
    pub fn on(dir: Arc<dyn Disk>) -> Self {
        Options { dir: Some(dir), ..Options::memory() }
    }
}

/// What happens when a stream is named that does not exist.
#[derive(Clone, Debug, Default)]
pub struct CreatePolicy {
    /// Whether it is made.
    pub auto_create: bool,
    /// As what.
    pub spec: StreamSpec,
}
