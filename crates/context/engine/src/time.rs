//! The present instant, through the clock seam.

use std::sync::Arc;

use trifid_base_runtime::clock::Clock;
use trifid_context_model::time::Instant;

/// Reads the time for the broker.
#[derive(Clone)]
pub struct Now(Arc<dyn Clock>);

impl std::fmt::Debug for Now {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Now").field(&self.instant()).finish()
    }
}

impl Now {
    /// Over this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Now(clock)
    }

    /// The present instant.
    pub fn instant(&self) -> Instant {
        Instant(self.0.now().micros())
    }
}
