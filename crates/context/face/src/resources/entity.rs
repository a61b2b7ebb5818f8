//! `entities/{id}` (6.5): retrieve, replace, merge, delete.

use trifid_context_engine::broker::MergeOptions;
use trifid_context_model::ld::Context;
use trifid_context_model::query::names::Name;
use trifid_context_model::query::types::Types;
use trifid_context_model::record::Record;
use trifid_context_model::render::Join;
use trifid_context_model::symbol::Symbols;
use trifid_context_model::time::Instant;
use trifid_context_model::update::Merge;

use super::{GATE, check_local};
use crate::answering::{Answering, write_one};
use crate::exchange::Exchange;
use crate::media::ENTITY_MEDIA;
use crate::params::{Form, OptionsOf, Param, Params, Set};
use crate::present::{Joining, STYLE};
use crate::problem::{Refusal, bad_data, not_found};
use crate::reply::Reply;
use crate::select;

const RETRIEVE: Set = STYLE.and(GATE).and(Set::of(&[Param::SplitEntities]));
const MERGE: Set = GATE.and(Set::of(&[Param::Options, Param::Format, Param::Lang, Param::ObservedAt]));

/// What an entity takes beyond its record when it is written out: names, in most cases.
const ENTITY_OVERHEAD: usize = 256;

/// 6.5.3.1.
pub(crate) async fn retrieve(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(RETRIEVE)?;
    check_local(&params)?;
    params.boolean(Param::SplitEntities)?;
    let media = exchange.media(ENTITY_MEDIA)?;
    let asked = exchange.header_context().await?;
    let answering = Answering::new(exchange, &params, media, asked)?;
    let conditions = Conditions::new(&params, answering.context())?;
    let body = match &answering.joining {
        None => plain(exchange, &answering, &conditions).await?,
        Some(joining) => joined(exchange, &answering, &conditions, joining).await?,
    };
    Ok(answering.reply(body))
}

/// What an entity must be to count as found (5.7.1.4).
struct Conditions {
    types: Option<Types>,
    /// One of these attributes.
    attributes: Option<Vec<Name>>,
}

impl Conditions {
    fn new(params: &Params<'_>, context: &Context) -> Result<Self, Refusal> {
        Ok(Conditions {
            types: select::gate(params, context)?,
            attributes: select::attributes(params, context)?,
        })
    }

    fn check(&self, record: &Record, symbols: &Symbols) -> Result<(), Refusal> {
        let has = |name: &Name| name.symbol(symbols).is_some_and(|name| record.has(name));
        if self.types.as_ref().is_some_and(|types| !types.matches(record.types(), symbols)) {
            return Err(not_found("the entity has not the types that `type` asks for"));
        }
        if self.attributes.as_ref().is_some_and(|names| !names.iter().any(has)) {
            return Err(not_found("the entity has none of the attributes that `attrs` names"));
        }
        Ok(())
    }
}

fn nothing_left() -> Refusal {
    not_found("nothing of the entity is left after `pick` and `omit`")
}

/// Renders the entity while the store lends it.
async fn plain(
    exchange: &Exchange<'_>,
    answering: &Answering<'_>,
    conditions: &Conditions,
) -> Result<Vec<u8>, Refusal> {
    let style = answering.style();
    let renderer = answering.renderer(&style);
    let mut outcome = Ok(Vec::new());
    let mut write = |record: &Record| {
        let mut out = Vec::with_capacity(record.size() + ENTITY_OVERHEAD);
        outcome = conditions.check(record, renderer.symbols).and_then(|()| {
            if renderer.entity(&answering.fit(record), &mut out) { Ok(out) } else { Err(nothing_left()) }
        });
    };
    exchange.broker.retrieve(exchange.tenant, &exchange.id, &mut write).await?;
    outcome
}

/// Renders the entity with those that it links to.
async fn joined(
    exchange: &Exchange<'_>,
    answering: &Answering<'_>,
    conditions: &Conditions,
    joining: &Joining,
) -> Result<Vec<u8>, Refusal> {
    let mut found = Vec::new();
    exchange.broker.retrieve(exchange.tenant, &exchange.id, &mut |record| found.push(record.clone())).await?;
    let style = answering.style();
    let renderer = answering.renderer(&style);
    found.iter().try_for_each(|record| conditions.check(record, renderer.symbols))?;
    let (mut out, mut shown) = (Vec::new(), false);
    let write = |join: &mut Join<'_>, roots: &[Record]| {
        shown = roots.iter().any(|root| write_one(&renderer, root, join, joining.form, &mut out));
    };
    answering.joined(joining, &found, write).await?;
    if shown { Ok(out) } else { Err(nothing_left()) }
}

/// 6.5.3.3.
pub(crate) async fn replace(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(GATE)?;
    check_local(&params)?;
    let body = exchange.body()?;
    let asked = exchange.body_context(&body).await?;
    let gate = select::gate(&params, &asked.context)?;
    let call = exchange.call(&asked.context);
    exchange.broker.replace_entity(call, &exchange.id, body.doc.root(), gate.as_ref(), false).await?;
    Ok(Reply::no_content())
}

/// 6.5.3.4.
pub(crate) async fn merge(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(MERGE)?;
    check_local(&params)?;
    let options = merge_options(&params)?;
    let body = exchange.body()?;
    let asked = exchange.body_context(&body).await?;
    let gate = select::gate(&params, &asked.context)?;
    let call = exchange.call(&asked.context);
    exchange.broker.merge_entity(call, &exchange.id, body.doc.root(), gate.as_ref(), options).await?;
    Ok(Reply::no_content())
}

fn merge_options<'p>(params: &'p Params<'_>) -> Result<MergeOptions<'p>, Refusal> {
    let instant = |text: &'p str| match Instant::parse(text) {
        Ok(instant) => Ok((instant, text)),
        Err(error) => Err(bad_data(format!("`observedAt`: {error}"))),
    };
    let observed = params.get(Param::ObservedAt).map(instant).transpose()?;
    let merge = Merge { lang: params.get(Param::Lang), observed };
    let simplified = params.options(OptionsOf::Merging)?.form == Some(Form::Simplified);
    Ok(MergeOptions { merge, simplified })
}

/// 6.5.3.2.
pub(crate) async fn delete(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let params = exchange.params(GATE)?;
    check_local(&params)?;
    let asked = exchange.header_context().await?;
    let gate = select::gate(&params, &asked.context)?;
    exchange.broker.delete_entity(exchange.call(&asked.context), &exchange.id, gate.as_ref()).await?;
    Ok(Reply::no_content())
}
