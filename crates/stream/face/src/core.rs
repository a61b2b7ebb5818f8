//! What sessions stand on: the broker, the tokens, the limits and the counters. No socket is among them, so
//! that a session can be driven by bytes alone.

use std::fmt;
use std::sync::Arc;

use trifid_base_web::Tokens;
use trifid_stream_engine::Broker;

use crate::options::Limits;
use crate::stats::Stats;

/// What sessions of all workers share.
pub(crate) struct Core {
    pub(crate) broker: Broker,
    /// None: nobody needs a token.
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) limits: Limits,
    pub(crate) stats: Stats,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("limits", &self.limits).finish_non_exhaustive()
    }
}
