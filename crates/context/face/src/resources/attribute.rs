//! `entities/{id}/attrs/{attr}` (6.7): partial update, replace, delete.

use trifid_context_engine::broker::AttributeSelector;
use trifid_context_model::json::{Doc, quoted};

use super::{GATE, check_local};
use crate::exchange::{Body, Exchange};
use crate::media::BodyMedia;
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
    let alone = without_context(&body);
    let doc = alone.as_deref().map_or(Ok(None), |text| Doc::parse(text.as_bytes()).map(Some))?;
    let value = doc.as_ref().unwrap_or(&body.doc).root();
    let call = exchange.call(&asked.context);
    exchange.broker.partial_update(call, &exchange.id, &exchange.attribute, value, gate.as_ref()).await?;
    Ok(Reply::no_content())
}

/// 6.7.3.3. In JSON the attribute may be a list of its instances.
pub(crate) async fn replace(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(GATE)?;
    check_local(&params)?;
    let body = exchange.body()?;
    let asked = if body.doc.root().is_array() && body.media == BodyMedia::Json {
        exchange.header_context().await?
    } else {
        exchange.body_context(&body).await?
    };
    let gate = select::gate(&params, &asked.context)?;
    let alone = without_context(&body);
    let doc = alone.as_deref().map_or(Ok(None), |text| Doc::parse(text.as_bytes()).map(Some))?;
    let value = doc.as_ref().unwrap_or(&body.doc).root();
    let call = exchange.call(&asked.context);
    exchange.broker.replace_attribute(call, &exchange.id, &exchange.attribute, value, gate.as_ref()).await?;
    Ok(Reply::no_content())
}

/// The attribute of a JSON-LD body: an attribute has no `@context` of its own (5.5.7), yet an attribute fragment that
/// is a document must (6.3.5). None when the body is the attribute as it stands.
fn without_context(body: &Body<'_>) -> Option<String> {
    if body.media == BodyMedia::Json {
        return None;
    }
    let members = body.doc.root().members().filter(|(name, _)| name != "@context");
    let members: Vec<String> =
        members.map(|(name, value)| [&quoted(&name), ":", value.raw()].concat()).collect();
    Some(format!("{{{}}}", members.join(",")))
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
