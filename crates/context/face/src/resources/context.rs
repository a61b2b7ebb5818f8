//! `jsonldContexts/{contextId}` (6.30): serve, delete and reload a context.

use crate::exchange::Exchange;
use crate::media::PLAIN_MEDIA;
use crate::params::{Param, Set};
use crate::problem::Refusal;
use crate::reply::Reply;

/// 6.30.3.1.
pub(crate) async fn serve(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(Set::of(&[Param::Details]))?;
    let details = params.boolean(Param::Details)?;
    let media = exchange.media(PLAIN_MEDIA)?;
    let (contexts, tenant) = (exchange.contexts, exchange.tenant.as_str());
    let body = match details {
        true => {
            let mut out = Vec::with_capacity(512);
            contexts.details(tenant, &exchange.id, exchange.now)?.write(&mut out);
            out
        }
        false => contexts.serve(tenant, &exchange.id, exchange.now)?.to_vec(),
    };
    Ok(Reply { body, media: Some(media), ..Reply::default() })
}

/// 6.30.3.2.
pub(crate) async fn delete(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(Set::of(&[Param::Reload]))?;
    let reload = params.boolean(Param::Reload)?;
    let (contexts, tenant) = (exchange.contexts, exchange.tenant.as_str());
    match reload {
        true => contexts.reload(tenant, &exchange.id, exchange.now).await?,
        false => contexts.delete(tenant, &exchange.id).await?,
    }
    Ok(Reply::no_content())
}
