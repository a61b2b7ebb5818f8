//! `entities/` (6.4): create and purge; the query has a file of its own.

use trifid_context_engine::action::Purge;
use trifid_context_model::ld::Context;
use trifid_context_model::query::q;
use trifid_context_model::symbol::Symbol;

use super::{LOCAL, check_local};
use crate::exchange::Exchange;
use crate::params::{Param, Params, Set};
use crate::problem::{Refusal, bad_data};
use crate::reply::Reply;
use crate::select::{self, FILTER, expander};

const PURGE: Set = FILTER.and(Set::of(&[Param::Drop, Param::Keep]));

/// 6.4.3.1.
pub(crate) async fn create(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    check_local(&exchange.params(LOCAL)?)?;
    let body = exchange.body()?;
    let asked = exchange.body_context(&body).await?;
    let id = exchange.broker.create_entity(exchange.call(&asked.context), body.doc.root()).await?;
    Ok(Reply::created("/entities/", &id))
}

/// 6.4.3.3. Linked entities have no part in a purge (5.6.21.4).
pub(crate) async fn purge(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(PURGE)?;
    let asked = exchange.header_context().await?;
    let filter = select::filter(&params, &[], &asked.context, 0)?;
    let what = what(exchange, &params, &asked.context)?;
    exchange.broker.purge(exchange.tenant, &filter, &what).await?;
    Ok(Reply::no_content())
}

/// What of the matching entities goes: `drop`, `keep`, or all of them.
fn what(exchange: &Exchange<'_>, params: &Params<'_>, context: &Context) -> Result<Purge, Refusal> {
    let names = |param: Param| match params.get(param) {
        Some(text) => attributes(exchange, param.name(), text, context).map(Some),
        None => Ok(None),
    };
    match (names(Param::Drop)?, names(Param::Keep)?) {
        (None, None) => Ok(Purge::Entity),
        (Some(names), None) => Ok(Purge::Drop(names)),
        (None, Some(names)) => Ok(Purge::Keep(names)),
        (Some(_), Some(_)) => Err(bad_data("`drop` and `keep` exclude each other")),
    }
}

/// The attributes of a list, as far as any entity has them.
fn attributes(
    exchange: &Exchange<'_>,
    parameter: &'static str,
    text: &str,
    context: &Context,
) -> Result<Vec<Symbol>, Refusal> {
    let expand = expander(context);
    let mut symbols = Vec::new();
    for name in q::parse_names(parameter, text)? {
        let iri = expand(&name).map_err(|error| bad_data(format!("`{parameter}`: {error}")))?;
        symbols.extend(exchange.broker.symbols().get(&iri));
    }
    Ok(symbols)
}
