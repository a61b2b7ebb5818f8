//! `jsonldContexts/` (6.29): add and list contexts.

use http::{HeaderValue, StatusCode};
use trifid_context_engine::contexts::Kind;

use crate::exchange::Exchange;
use crate::media::PLAIN_MEDIA;
use crate::params::{Param, Params, Set};
use crate::problem::{Refusal, bad_data};
use crate::reply::Reply;
use crate::write;

/// 6.29.3.1. The document is a context, so the rules for where a request has its `@context` do not apply.
pub(crate) async fn add(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    exchange.params(Set::NONE)?;
    exchange.check_body_media()?;
    let (tenant, body) = (exchange.tenant.as_str(), &exchange.request.body);
    let added = exchange.contexts.add(tenant, body, exchange.now).await?;
    let location = HeaderValue::try_from(&*added.path).ok();
    Ok(Reply { status: StatusCode::CREATED, location, ..Reply::default() })
}

/// 6.29.3.2.
pub(crate) async fn list(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(Set::of(&[Param::Details, Param::Kind]))?;
    let details = params.boolean(Param::Details)?;
    let kind = kind(&params)?;
    let media = exchange.media(PLAIN_MEDIA)?;
    let contexts = exchange.contexts.list(exchange.tenant.as_str(), kind);
    let mut out = Vec::with_capacity(128 * contexts.len() + 2);
    write::array(&mut out, &contexts, |out, context| match details {
        true => context.write(out),
        false => write::string(out, &context.url),
    });
    Ok(Reply { body: out, media: Some(media), ..Reply::default() })
}

fn kind(params: &Params<'_>) -> Result<Option<Kind>, Refusal> {
    let Some(text) = params.get(Param::Kind) else { return Ok(None) };
    match Kind::parse(text) {
        Some(kind) => Ok(Some(kind)),
        None => Err(bad_data(format!("`kind` is `Hosted`, `Cached` or `ImplicitlyCreated`, not `{text}`"))),
    }
}
