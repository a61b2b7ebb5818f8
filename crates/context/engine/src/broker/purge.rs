//! Purge Entities (5.6.21).

use trifid_context_model::query::entity::Filter;

use super::Broker;
use crate::action::{Action, Op, Purge};
use crate::error::Error;
use crate::limits::MAX_HELD;
use crate::store::Query;
use crate::tenant::TenantName;

/// Entities changed in one write.
const STEP: usize = 1_000;

/// What a purge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Entities that matched and were deleted or stripped.
    pub entities: usize,
}

impl Broker {
    /// Deletes the entities that match, or attributes of them. An entity that ceases to match before its
    /// turn is purged all the same: the purge acts on what matched when it was asked.
    pub async fn purge(&self, tenant: &TenantName, filter: &Filter, what: &Purge) -> Result<Purged, Error> {
        let mut ids: Vec<String> = Vec::new();
        let query = Query { filter, order: None, offset: 0, limit: MAX_HELD, count: false, now: self.now() };
        let page = self.store().query(tenant, query, &mut |record| ids.push(record.id().to_owned())).await?;
        if page.more {
            return Err(Error::TooManyResults(format!(
                "more than {MAX_HELD} entities match; narrow the purge"
            )));
        }
        for step in ids.chunks(STEP) {
            let ops = step.iter().map(|id| Op { id: id.into(), gate: None, action: Action::Purge(what) });
            // An entity that vanished meanwhile is as purged as it can be.
            let _answers = self.store().write(tenant, ops.collect(), false, self.now()).await?;
        }
        Ok(Purged { entities: ids.len() })
    }
}
