//! What a door contributes to `/q/health`, `/q/ready` and `/q/metrics`.

use crate::metrics::Exposition;

/// Whether a part of the program can do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Not yet: what it is doing, and how far it is.
    Starting(String),
    /// Not any more: why.
    Failed(String),
}

/// A part of the program that reports on itself. Reports are made on a core that serves requests, so they
/// read counters and never wait or walk data.
pub trait HealthSource: Send + Sync + 'static {
    /// The name of its section.
    fn name(&self) -> &'static str;

    /// Whether requests to it can succeed.
    fn readiness(&self) -> Readiness {
        Readiness::Ready
    }

    /// Its section in the health document: the store's state, limits, counters.
    fn section(&self) -> serde_json::Value;

    /// Its metrics.
    fn metrics(&self, out: &mut Exposition) {
        let _ = out;
    }
}
