//! `entities/{id}/attrs/{attr}` (6.7): partial update, replace, delete.

use trifid_context_engine::broker::AttributeSelector;

use super::{GATE, check_local};
use crate::exchange::Exchange;
use crate::params::{Param, Set};
use crate::problem::{Refusal, bad_data};
use crate::reply::Reply;
use crate::select;

const DELETE: Set = GATE.and(Set::of(&[Param::DatasetId, Param::DeleteAll]));

/// 6.7.3.1.
pub(crate) async fn partial_update(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(GATE)?;
    check_local(&params)?;
    let body = exchange.body()?;
    let asked = exchange.body_context(&body).await?;
    let gate = select::gate(&params, &asked.context)?;
    let (call, value) = (exchange.call(&asked.context), body.doc.root());
    exchange.broker.partial_update(call, &exchange.id, &exchange.attribute, value, gate.as_ref()).await?;
    Ok(Reply::no_content())
}

/// 6.7.3.3.
pub(crate) async fn replace(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(GATE)?;
    check_local(&params)?;
    let body = exchange.body()?;
    let asked = exchange.body_context(&body).await?;
    let gate = select::gate(&params, &asked.context)?;
    let (call, value) = (exchange.call(&asked.context), body.doc.root());
    exchange.broker.replace_attribute(call, &exchange.id, &exchange.attribute, value, gate.as_ref()).await?;
    Ok(Reply::no_content())
}

/// 6.7.3.2.
pub(crate) async fn delete(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(DELETE)?;
    check_local(&params)?;
    let which = AttributeSelector {
        dataset: params.get(Param::DatasetId).filter(|id| *id != "@none"),
        all: params.boolean(Param::DeleteAll)?,
    };
    if which.dataset.is_some_and(|id| !trifid_context_model::name::is_uri(id)) {
        return Err(bad_data("`datasetId` is a URI or `@none`"));
    }
    if which.all && params.has(Param::DatasetId) {
        return Err(bad_data("`deleteAll=true` and `datasetId` exclude each other"));
    }
    let asked = exchange.header_context().await?;
    let gate = select::gate(&params, &asked.context)?;
    let call = exchange.call(&asked.context);
    exchange.broker.delete_attribute(call, &exchange.id, &exchange.attribute, which, gate.as_ref()).await?;
    Ok(Reply::no_content())
}
