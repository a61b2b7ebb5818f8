//! `attributes/` and `attributes/{attr}` (6.27, 6.28): what attributes exist.

use trifid_context_engine::broker::AttributeInfo;

use super::LOCAL;
use super::names::{Discovering, LIST, open_member};
use crate::exchange::Exchange;
use crate::problem::Refusal;
use crate::reply::Reply;
use crate::write;

/// 6.27.3.1: an AttributeList (5.2.27), with `details=true` a list of Attribute (5.2.28).
pub(crate) async fn list(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let discovering = Discovering::new(exchange, LIST).await?;
    let attributes = exchange.broker.attributes(exchange.call(&discovering.asked.context)).await?;
    let mut out = Vec::with_capacity(64 * attributes.len() + 256);
    if discovering.details {
        write::array(&mut out, &attributes, |out, info| attribute(&discovering, out, info));
    } else {
        discovering.open_list(&mut out, "AttributeList");
        discovering.names(&mut out, "attributeList", attributes.iter().map(|info| info.attribute));
        discovering.close(&mut out);
    }
    Ok(discovering.reply(out))
}

fn attribute(discovering: &Discovering<'_>, out: &mut Vec<u8>, info: &AttributeInfo) {
    discovering.open(out, info.attribute, "Attribute", "attributeName");
    discovering.names(out, "typeNames", info.types.iter().copied());
    discovering.close(out);
}

/// 6.28.3.1: an Attribute (5.2.28) with its count and kinds.
pub(crate) async fn info(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let discovering = Discovering::new(exchange, LOCAL).await?;
    let info =
        exchange.broker.attribute_info(exchange.call(&discovering.asked.context), &exchange.id).await?;
    let mut out = Vec::with_capacity(512);
    discovering.open(&mut out, info.attribute, "Attribute", "attributeName");
    open_member(&mut out, "attributeCount");
    write::number(&mut out, info.count);
    discovering.kinds(&mut out, &info.kinds);
    discovering.names(&mut out, "typeNames", info.types.iter().copied());
    discovering.close(&mut out);
    Ok(discovering.reply(out))
}
