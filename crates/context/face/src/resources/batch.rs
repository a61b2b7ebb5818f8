//! `entityOperations/*` (6.14 to 6.17, 6.31): each item on its own, under a context of its own.

use http::StatusCode;
use trifid_context_engine::action::Upsert;
use trifid_context_engine::broker::{BatchError, BatchItem, BatchResult};
use trifid_context_model::json::Value;

use super::{LOCAL, check_local};
use crate::exchange::{Body, Exchange};
use crate::params::{OptionsOf, Param, Params, Set};
use crate::problem::{Problem, Refusal, bad_data};
use crate::reply::Reply;
use crate::route::Batch;
use crate::write;

const WITH_OPTIONS: Set = LOCAL.and(Set::of(&[Param::Options]));

/// Runs a batch.
pub(crate) async fn run(batch: Batch, exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    let allowed = if matches!(batch, Batch::Upsert | Batch::Update) { WITH_OPTIONS } else { LOCAL };
    let params = exchange.params(allowed)?;
    check_local(&params)?;
    let verb = Verb::new(batch, &params)?;
    let body = exchange.body()?;
    if batch == Batch::Delete {
        exchange.link_beside(body.media)?;
        let result = exchange.broker.batch_delete(exchange.tenant, body.doc.root()).await?;
        return Ok(Outcome { result, refused: Vec::new() }.reply(batch));
    }
    let (items, refused) = items(exchange, &body).await?;
    let result = if items.is_empty() { BatchResult::default() } else { verb.run(exchange, items).await? };
    Ok(Outcome { result, refused }.reply(batch))
}

/// An operation with its options.
enum Verb {
    Create,
    Upsert(Upsert),
    Update { no_overwrite: bool },
    Merge,
}

impl Verb {
    fn new(batch: Batch, params: &Params<'_>) -> Result<Self, Refusal> {
        Ok(match batch {
            Batch::Create | Batch::Delete => Verb::Create,
            Batch::Merge => Verb::Merge,
            Batch::Update => {
                Verb::Update { no_overwrite: params.options(OptionsOf::Appending)?.no_overwrite }
            }
            Batch::Upsert => match params.options(OptionsOf::Upserting)?.update {
                true => Verb::Upsert(Upsert::Update),
                false => Verb::Upsert(Upsert::Replace),
            },
        })
    }

    async fn run(self, exchange: &Exchange<'_>, items: Vec<BatchItem<'_>>) -> Result<BatchResult, Refusal> {
        let (broker, tenant) = (exchange.broker, exchange.tenant);
        Ok(match self {
            Verb::Create => broker.batch_create(tenant, items).await?,
            Verb::Upsert(how) => broker.batch_upsert(tenant, items, how).await?,
            Verb::Update { no_overwrite } => broker.batch_update(tenant, items, no_overwrite).await?,
            Verb::Merge => broker.batch_merge(tenant, items).await?,
        })
    }
}

/// An item that was refused before it reached the engine: its context is missing, misplaced or not to be had.
struct Refused {
    entity_id: Option<String>,
    problem: Problem,
}

/// The items with their contexts (6.3.5): one for all in JSON, each its own in JSON-LD.
async fn items<'v>(
    exchange: &Exchange<'_>,
    body: &'v Body<'_>,
) -> Result<(Vec<BatchItem<'v>>, Vec<Refused>), Refusal> {
    let link = exchange.link_beside(body.media)?;
    let root = body.doc.root();
    check_array(root)?;
    let (mut items, mut refused) = (Vec::new(), Vec::new());
    let mut last: Option<(&str, BatchItem<'v>)> = None;
    for value in root.items() {
        // Neighbours mostly name the same context: it is looked up once for each run of them.
        let named = value.get("@context").map_or("", Value::raw);
        if let Some((before, item)) = &last
            && *before == named
        {
            items.push(BatchItem { value, ..item.clone() });
            continue;
        }
        match exchange.document_context(value, body.media, link.clone()).await {
            Ok(asked) => {
                let item = BatchItem { value, context: asked.context.context().clone() };
                items.push(item.clone());
                last = Some((named, item));
            }
            Err(Refusal::Problem(problem)) => refused.push(Refused { entity_id: id_of(value), problem }),
            Err(other) => return Err(other),
        }
    }
    Ok((items, refused))
}

/// 5.6.7.4 and siblings: an array that is empty, or holds what is not even an object, fails as a whole.
fn check_array(root: Value<'_>) -> Result<(), Refusal> {
    if !root.is_array() || root.items().next().is_none() {
        return Err(bad_data("the body is an array of entities that is not empty"));
    }
    match root.items().position(|item| !item.is_object()) {
        Some(at) => Err(bad_data(format!("item {at} is not an entity"))),
        None => Ok(()),
    }
}

fn id_of(item: Value<'_>) -> Option<String> {
    item.get("id").or_else(|| item.get("@id"))?.as_str().map(|id| id.into_owned())
}

struct Outcome {
    result: BatchResult,
    refused: Vec<Refused>,
}

impl Outcome {
    /// 201 with the ids of what is new, 204, or 207 with a BatchOperationResult (5.2.16).
    fn reply(self, batch: Batch) -> Reply {
        let result = &self.result;
        if !self.refused.is_empty() || !result.errors.is_empty() {
            return Reply::json(StatusCode::MULTI_STATUS, self.report());
        }
        let is_creating = matches!(batch, Batch::Create | Batch::Upsert);
        if !is_creating || result.created.is_empty() {
            return Reply::no_content();
        }
        let mut out = Vec::with_capacity(64 * result.created.len());
        write::array(&mut out, &unique(result.created.iter()), |out, id| write::string(out, id));
        Reply::json(StatusCode::CREATED, out)
    }

    fn report(self) -> Vec<u8> {
        let result = self.result;
        let early =
            self.refused.into_iter().map(|refused| (refused.entity_id, Refusal::Problem(refused.problem)));
        let late = result.errors.into_iter().map(|BatchError { entity_id, error }| (entity_id, error.into()));
        let errors: Vec<(Option<String>, Refusal)> = early.chain(late).collect();
        let mut out = Vec::with_capacity(256 * errors.len());
        out.extend_from_slice(b"{\"success\":");
        let success = unique(result.created.iter().chain(&result.updated));
        write::array(&mut out, &success, |out, id| write::string(out, id));
        out.extend_from_slice(b",\"errors\":");
        write::array(&mut out, &errors, |out, (id, refusal)| write_error(out, id.as_deref(), refusal));
        out.push(b'}');
        out
    }
}

/// Each identifier once, in order: an entity that comes twice in a batch is one entity (5.5.11).
fn unique<'i>(ids: impl Iterator<Item = &'i String>) -> Vec<&'i str> {
    let mut seen = std::collections::HashSet::new();
    ids.map(String::as_str).filter(|id| seen.insert(*id)).collect()
}

/// A BatchEntityError (5.2.17).
fn write_error(out: &mut Vec<u8>, entity_id: Option<&str>, refusal: &Refusal) {
    out.push(b'{');
    if let Some(id) = entity_id {
        out.extend_from_slice(b"\"entityId\":");
        write::string(out, id);
        out.push(b',');
    }
    out.extend_from_slice(b"\"error\":");
    refusal.problem().write(out);
    out.push(b'}');
}
