//! Context information consumption: retrieve and query (5.7.1, 5.7.2).

use trifid_context_model::name;
use trifid_context_model::query::entity::Filter;
use trifid_context_model::query::order::Ordering;
use trifid_context_model::record::Record;

use super::{Broker, check_id};
use crate::error::Error;
use crate::store::{Page, Query, Sink};
use crate::tenant::TenantName;

/// Which page of the matches (6.3.10, 6.3.13).
#[derive(Debug, Clone, Copy, Default)]
pub struct Paging {
    /// Matches to skip.
    pub offset: usize,
    /// Matches to give at most.
    pub limit: usize,
    /// Count all matches.
    pub count: bool,
}

impl Broker {
    /// Retrieve Entity (5.7.1): hands the record to `sink`, or answers that there is none.
    pub async fn retrieve(&self, tenant: &TenantName, id: &str, sink: Sink<'_>) -> Result<(), Error> {
        check_id(id)?;
        let mut found = false;
        let mut once = |record: &Record| {
            found = true;
            sink(record);
        };
        self.store().read(tenant, &[id], self.now(), &mut once).await?;
        if found {
            return Ok(());
        }
        Err(Error::ResourceNotFound(format!("no entity \"{}\" exists", name::shown(id))))
    }

    /// The entities of these identifiers that exist, in the order asked for: for linked entities (4.5.23).
    pub async fn read(&self, tenant: &TenantName, ids: &[&str], sink: Sink<'_>) -> Result<(), Error> {
        Ok(self.store().read(tenant, ids, self.now(), sink).await?)
    }

    /// Query Entities (5.7.2).
    pub async fn query(
        &self,
        tenant: &TenantName,
        filter: &Filter,
        order: Option<&Ordering>,
        paging: Paging,
        sink: Sink<'_>,
    ) -> Result<Page, Error> {
        let Paging { offset, limit, count } = paging;
        let query = Query { filter, order, offset, limit, count, now: self.now() };
        Ok(self.store().query(tenant, query, sink).await?)
    }
}
