//! The resources of clause 6, one file each, and the table from operations to them.

mod attribute;
mod attributes;
mod attrs;
mod batch;
mod context;
mod contexts;
mod entities;
mod entity;
mod identity;
mod names;
mod query;
mod types;

use crate::exchange::Exchange;
use crate::params::{Param, Params, Set};
use crate::problem::Refusal;
use crate::reply::Reply;
use crate::route::Operation;

/// Runs the operation that was routed to.
pub(crate) async fn run(operation: Operation, exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    use Operation as O;
    match operation {
        O::CreateEntity => entities::create(exchange).await,
        O::QueryEntities => query::by_get(exchange).await,
        O::QueryByPost => query::by_post(exchange).await,
        O::PurgeEntities => entities::purge(exchange).await,
        O::RetrieveEntity => entity::retrieve(exchange).await,
        O::ReplaceEntity => entity::replace(exchange).await,
        O::MergeEntity => entity::merge(exchange).await,
        O::DeleteEntity => entity::delete(exchange).await,
        O::AppendAttributes => attrs::append(exchange).await,
        O::UpdateAttributes => attrs::update(exchange).await,
        O::PartialAttributeUpdate => attribute::partial_update(exchange).await,
        O::ReplaceAttribute => attribute::replace(exchange).await,
        O::DeleteAttribute => attribute::delete(exchange).await,
        O::Batch(batch) => batch::run(batch, exchange).await,
        O::Types => types::list(exchange).await,
        O::Type => types::info(exchange).await,
        O::Attributes => attributes::list(exchange).await,
        O::Attribute => attributes::info(exchange).await,
        O::AddContext => contexts::add(exchange).await,
        O::ListContexts => contexts::list(exchange).await,
        O::ServeContext => context::serve(exchange).await,
        O::DeleteContext => context::delete(exchange).await,
        O::SourceIdentity => identity::retrieve(exchange).await,
    }
}

/// `local`, which most operations take (6.3.18).
const LOCAL: Set = Set::of(&[Param::Local]);

/// `local` and `type`: what the operations on one entity take.
const GATE: Set = Set::of(&[Param::Local, Param::Type]);

/// Checks `local`; nothing is forwarded by this door yet, so both of its values mean the same.
fn check_local(params: &Params<'_>) -> Result<(), Refusal> {
    params.boolean(Param::Local).map(|_| ())
}
