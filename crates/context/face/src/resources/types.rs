//! `types/` and `types/{type}` (6.25, 6.26): what entity types exist.

use trifid_context_engine::broker::TypeInfo;

use super::LOCAL;
use super::names::{Discovering, LIST, open_member};
use crate::exchange::Exchange;
use crate::problem::Refusal;
use crate::reply::Reply;
use crate::write;

/// 6.25.3.1: an EntityTypeList (5.2.24), with `details=true` a list of EntityType (5.2.25).
pub(crate) async fn list(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let discovering = Discovering::new(exchange, LIST).await?;
    let types = exchange.broker.types(exchange.call(&discovering.asked.context)).await?;
    let mut out = Vec::with_capacity(64 * types.len() + 256);
    if discovering.details {
        write::array(&mut out, &types, |out, info| entity_type(&discovering, out, info));
    } else {
        discovering.open_list(&mut out, "EntityTypeList");
        discovering.names(&mut out, "typeList", types.iter().map(|info| info.entity_type));
        discovering.close(&mut out);
    }
    Ok(discovering.reply(out))
}

fn entity_type(discovering: &Discovering<'_>, out: &mut Vec<u8>, info: &TypeInfo) {
    discovering.open(out, info.entity_type, "EntityType", "typeName");
    discovering.names(out, "attributeNames", info.attributes.iter().map(|(name, _)| *name));
    discovering.close(out);
}

/// 6.26.3.1: an EntityTypeInfo (5.2.26).
pub(crate) async fn info(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let discovering = Discovering::new(exchange, LOCAL).await?;
    let info = exchange.broker.type_info(exchange.call(&discovering.asked.context), &exchange.id).await?;
    let mut out = Vec::with_capacity(512);
    discovering.open(&mut out, info.entity_type, "EntityTypeInfo", "typeName");
    open_member(&mut out, "entityCount");
    write::number(&mut out, info.count);
    open_member(&mut out, "attributeDetails");
    write::array(&mut out, &info.attributes, |out, (name, kinds)| {
        discovering.open(out, *name, "Attribute", "attributeName");
        discovering.kinds(out, kinds);
        out.push(b'}');
    });
    discovering.close(&mut out);
    Ok(discovering.reply(out))
}
