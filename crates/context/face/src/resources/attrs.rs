//! `entities/{id}/attrs/` (6.6): append and update.

use http::StatusCode;
use trifid_context_engine::broker::UpdateResult;
use trifid_context_model::ld::Context;
use trifid_context_model::symbol::Symbols;

use super::{GATE, check_local};
use crate::exchange::Exchange;
use crate::params::{OptionsOf, Param, Set};
use crate::problem::Refusal;
use crate::reply::Reply;
use crate::{select, write};

const APPEND: Set = GATE.and(Set::of(&[Param::Options]));

/// 6.6.3.1.
pub(crate) async fn append(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(APPEND)?;
    check_local(&params)?;
    let no_overwrite = params.options(OptionsOf::Appending)?.no_overwrite;
    let body = exchange.body()?;
    let asked = exchange.body_context(&body).await?;
    let gate = select::gate(&params, &asked.context)?;
    let call = exchange.call(&asked.context);
    let broker = exchange.broker;
    let result =
        broker.append_attributes(call, &exchange.id, body.doc.root(), gate.as_ref(), no_overwrite).await?;
    Ok(reply(&result, &asked.context, broker.symbols()))
}

/// 6.6.3.2.
pub(crate) async fn update(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(GATE)?;
    check_local(&params)?;
    let body = exchange.body()?;
    let asked = exchange.body_context(&body).await?;
    let gate = select::gate(&params, &asked.context)?;
    let call = exchange.call(&asked.context);
    let broker = exchange.broker;
    let result = broker.update_attributes(call, &exchange.id, body.doc.root(), gate.as_ref()).await?;
    Ok(reply(&result, &asked.context, broker.symbols()))
}

/// 204, or 207 with an UpdateResult (5.2.18) when some attribute was left alone. Names are fully qualified (6.3.5).
fn reply(result: &UpdateResult, context: &Context, symbols: &Symbols) -> Reply {
    if result.not_updated.is_empty() {
        return Reply::no_content();
    }
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"updated\":");
    write::array(&mut out, &result.updated, |out, name| write::string(out, symbols.name(*name)));
    out.extend_from_slice(b",\"notUpdated\":");
    write::array(&mut out, &result.not_updated, |out, left| {
        out.extend_from_slice(b"{\"attributeName\":");
        write::string(out, &context.expand(&left.name).unwrap_or_else(|_| (&*left.name).into()));
        out.extend_from_slice(b",\"reason\":");
        write::string(out, left.reason);
        out.push(b'}');
    });
    out.push(b'}');
    Reply::json(StatusCode::MULTI_STATUS, out)
}
