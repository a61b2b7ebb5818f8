//! Query Entities (5.7.2), by GET of `entities/` (6.4.3.2) and by POST to `entityOperations/query` (6.23).

use trifid_context_engine::store::{Page, Sink};
use trifid_context_model::record::Record;
use trifid_context_model::render::Join;

use crate::answering::{Answering, check_size, list_buffer, note_list, write_list};
use crate::exchange::Exchange;
use crate::limits::ANSWER_BYTES_MAX;
use crate::media::ENTITY_MEDIA;
use crate::paging::Neighbours;
use crate::params::{Paging, Param, Params, Set, body};
use crate::present::{Joining, STYLE};
use crate::problem::Refusal;
use crate::reply::Reply;
use crate::select::{self, FILTER, ORDER};

/// The paths that links to pages begin with.
const ENTITIES: &str = "/ngsi-ld/v1/entities";
const QUERY: &str = "/ngsi-ld/v1/entityOperations/query";

const PAGE: Set = Set::of(&[Param::Limit, Param::Offset, Param::Count]);
const BY_GET: Set = FILTER.and(STYLE).and(ORDER).and(PAGE);

/// What stays in the query string of a query by POST (6.23.3.1).
const BY_POST: Set = PAGE.and(Set::of(&[
    Param::Local,
    Param::Options,
    Param::Format,
    Param::Lang,
    Param::GeometryProperty,
    Param::SplitEntities,
]));

/// 6.4.3.2.
pub(crate) async fn by_get(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(BY_GET)?;
    let media = exchange.media(ENTITY_MEDIA)?;
    let asked = exchange.header_context().await?;
    let answering = Answering::new(exchange, &params, media, asked)?;
    let query = Query { params: &params, selectors: &[], answering: &answering };
    let (mut reply, page, paging) = query.run(exchange).await?;
    reply.count = page.total;
    let context = reply.link.take();
    reply.link =
        Neighbours::of(paging, page.more).link(context, ENTITIES, &params.iter(), paging.limit, media);
    Ok(reply)
}

/// 6.23.3.1.
pub(crate) async fn by_post(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let in_query_string = exchange.params(BY_POST)?;
    let body = exchange.body()?;
    // From here on parameters also borrow from the body.
    let mut params = in_query_string;
    let in_query_string = params.len();
    let media = exchange.media(ENTITY_MEDIA)?;
    let asked = exchange.body_context(&body).await?;
    let selectors = body::read(body.doc.root(), &mut params)?;
    let asked = exchange.with_link(asked, &body, media).await;
    let answering = Answering::new(exchange, &params, media, asked)?;
    let query = Query { params: &params, selectors: &selectors, answering: &answering };
    let (mut reply, page, paging) = query.run(exchange).await?;
    // Links to pages repeat what the query string said; the body is the client's to send again.
    let repeated = params.iter().take(in_query_string);
    reply.count = page.total;
    let context = reply.link.take();
    reply.link = Neighbours::of(paging, page.more).link(context, QUERY, &repeated, paging.limit, media);
    Ok(reply)
}

struct Query<'q, 'p> {
    params: &'q Params<'p>,
    selectors: &'q [body::Selector<'p>],
    answering: &'q Answering<'q>,
}

impl Query<'_, '_> {
    async fn run(&self, exchange: &Exchange<'_>) -> Result<(Reply, Page, Paging), Refusal> {
        let paging = self.params.paging()?;
        let mut out = list_buffer();
        let page = match &self.answering.joining {
            None => self.plain(exchange, paging, &mut out).await?,
            Some(joining) => self.joined(exchange, joining, paging, &mut out).await?,
        };
        check_size(out.len())?;
        note_list(&out);
        Ok((self.answering.reply(out), page, paging))
    }

    /// Renders each entity as the store hands it over.
    async fn plain(
        &self,
        exchange: &Exchange<'_>,
        paging: Paging,
        out: &mut Vec<u8>,
    ) -> Result<Page, Refusal> {
        let style = self.answering.style();
        let renderer = self.answering.renderer(&style);
        renderer.open_list(out);
        let mut write = |record: &Record| {
            if out.len() <= ANSWER_BYTES_MAX {
                renderer.item(&self.answering.fit(record), out);
            }
        };
        let page = self.ask(exchange, paging, &mut write).await?;
        renderer.close_list(out);
        Ok(page)
    }

    /// Collects the entities first: those that they link to are read for all of them together.
    async fn joined(
        &self,
        exchange: &Exchange<'_>,
        joining: &Joining,
        paging: Paging,
        out: &mut Vec<u8>,
    ) -> Result<Page, Refusal> {
        let mut roots: Vec<Record> = Vec::new();
        let page = self.ask(exchange, paging, &mut |record| roots.push(record.clone())).await?;
        let style = self.answering.style();
        let renderer = self.answering.renderer(&style);
        let write =
            |join: &mut Join<'_>, roots: &[Record]| write_list(&renderer, roots, join, joining.form, out);
        self.answering.joined(joining, &roots, write).await?;
        Ok(page)
    }

    async fn ask(&self, exchange: &Exchange<'_>, paging: Paging, sink: Sink<'_>) -> Result<Page, Refusal> {
        let context = self.answering.context();
        let filter = select::filter(self.params, self.selectors, context, self.answering.levels())?;
        let order = select::order(self.params, context)?;
        let Paging { offset, limit, count } = paging;
        let paging = trifid_context_engine::broker::Paging { offset, limit, count };
        Ok(exchange.broker.query(exchange.tenant, &filter, order.as_ref(), paging, sink).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::ROOT;

    #[test]
    fn links_begin_at_the_root() {
        assert_eq!(
            [ENTITIES, QUERY],
            [[ROOT, "/entities"].concat(), [ROOT, "/entityOperations/query"].concat()]
        );
    }
}
