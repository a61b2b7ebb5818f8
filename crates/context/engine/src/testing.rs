//! The behavioural suite of [`EntityStore`]: one corpus of operations, run on any store, its answers
//! written down. The store in memory is the specification: another store's transcript must be equal to its.
//!
//! A test of a store does three things: [`transcript`] of the scripted corpus, the [`random_steps`] of some seeds,
//! and [`consistent`] on what they leave.

use std::fmt::Write as _;
use std::sync::Arc;

use trifid_base_runtime::clock::{ManualClock, Timestamp};
use trifid_context_model::json::Doc;
use trifid_context_model::ld::Context;
use trifid_context_model::query::entity::{Filter, Selector};
use trifid_context_model::query::types::{self, Types};
use trifid_context_model::query::{names, q};
use trifid_context_model::record::Record;
use trifid_context_model::render::{Renderer, Style};
use trifid_context_model::update::Merge;

use crate::action::{Purge, Upsert};
use crate::broker::Paging;
use crate::broker::{AttributeSelector, BatchItem, BatchResult, Broker, Call, MergeOptions};
use crate::error::Error;
use crate::store::EntityStore;
use crate::tenant::TenantName;
use crate::time::Now;

mod corpus;

pub use corpus::{Step, random_steps, scripted_steps};

/// A broker over a store under test, with a clock that moves one second a step.
pub struct Bench {
    /// The broker.
    pub broker: Broker,
    clock: Arc<ManualClock>,
    context: Arc<Context>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").finish_non_exhaustive()
    }
}

impl Bench {
    /// Over this store, at the beginning of time.
    pub fn new(store: Arc<dyn EntityStore>) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_000_000)));
        let broker = Broker::new(store, Now::new(clock.clone()));
        Bench { broker, clock, context: Arc::new(Context::identity()) }
    }

    fn call<'a>(&'a self, tenant: &'a TenantName) -> Call<'a> {
        Call { tenant, context: &self.context }
    }

    /// Runs one step and writes down what was answered.
    pub async fn run(&self, step: &Step) -> String {
        self.clock.advance(std::time::Duration::from_secs(1));
        let answer = match self.answer(step).await {
            Ok(text) => text,
            Err(error) => format!("{error:?}"),
        };
        format!("{step:?} -> {answer}")
    }

    async fn answer(&self, step: &Step) -> Result<String, Error> {
        let tenant = step.tenant();
        let call = self.call(&tenant);
        let done = |()| "done".to_owned();
        match step {
            Step::Create(_, body) => self.broker.create_entity(call, parse(body).root()).await,
            Step::Replace(_, id, body) => {
                self.broker.replace_entity(call, id, parse(body).root(), None, false).await.map(done)
            }
            Step::Merge(_, id, body) => {
                let how = MergeOptions { merge: Merge::default(), simplified: false };
                self.broker.merge_entity(call, id, parse(body).root(), None, how).await.map(done)
            }
            Step::Append(_, id, body, keep) => {
                let doc = parse(body);
                let result = self.broker.append_attributes(call, id, doc.root(), None, *keep).await?;
                Ok(self.update_result(&result))
            }
            Step::Update(_, id, body) => {
                let doc = parse(body);
                let result = self.broker.update_attributes(call, id, doc.root(), None).await?;
                Ok(self.update_result(&result))
            }
            Step::Partial(_, id, name, body) => {
                self.broker.partial_update(call, id, name, parse(body).root(), None).await.map(done)
            }
            Step::ReplaceAttribute(_, id, name, body) => {
                self.broker.replace_attribute(call, id, name, parse(body).root(), None).await.map(done)
            }
            Step::DeleteAttribute(_, id, name, all) => {
                let which = AttributeSelector { dataset: None, all: *all };
                self.broker.delete_attribute(call, id, name, which, None).await.map(done)
            }
            Step::Delete(_, id) => self.broker.delete_entity(call, id, None).await.map(done),
            Step::Batch(_, verb, body) => self.batch(&tenant, verb, body).await,
            Step::Purge(_, types) => {
                let filter = self.filter(Some(types), None)?;
                Ok(format!("{:?}", self.broker.purge(&tenant, &filter, &Purge::Entity).await?))
            }
            Step::Query(_, types, q) => self.query(&tenant, types.as_deref(), q.as_deref()).await,
            Step::Discover(_) => self.discover(call).await,
            Step::Expire => Ok(format!("{}", self.broker.store().expire(self.broker.now()).await?)),
        }
    }

    async fn batch(&self, tenant: &TenantName, verb: &str, body: &str) -> Result<String, Error> {
        let doc = parse(body);
        let item = |value| BatchItem { value, context: self.context.clone() };
        let items = || doc.root().items().map(item).collect::<Vec<_>>();
        let result = match verb {
            "create" => self.broker.batch_create(tenant, items()).await?,
            "upsert" => self.broker.batch_upsert(tenant, items(), Upsert::Replace).await?,
            "upsert-update" => self.broker.batch_upsert(tenant, items(), Upsert::Update).await?,
            "update" => self.broker.batch_update(tenant, items(), false).await?,
            "merge" => self.broker.batch_merge(tenant, items()).await?,
            _ => self.broker.batch_delete(tenant, doc.root()).await?,
        };
        let BatchResult { created, updated, errors } = result;
        Ok(format!("created {created:?} updated {updated:?} errors {errors:?}"))
    }

    fn update_result(&self, result: &crate::broker::UpdateResult) -> String {
        let names: Vec<&str> = result.updated.iter().map(|name| self.broker.symbols().name(*name)).collect();
        format!("updated {names:?} not {:?}", result.not_updated)
    }

    /// The filter of a type selection and a query.
    pub fn filter(&self, types: Option<&str>, q: Option<&str>) -> Result<Filter, Error> {
        let expander = names::expander(&self.context);
        let expand: &names::Expand<'_> = &expander;
        let mut filter = Filter::default();
        if let Some(text) = types {
            let selection = Types::new("type", &types::parse("type", text)?, expand)?;
            filter.selectors.push(Selector::new(None, None, Some(selection)));
        }
        if let Some(text) = q {
            filter.q = Some(q::Compiled::new("q", &q::parse(text)?, q::Options::default(), expand)?);
        }
        Ok(filter)
    }

    async fn query(
        &self,
        tenant: &TenantName,
        types: Option<&str>,
        q: Option<&str>,
    ) -> Result<String, Error> {
        let filter = self.filter(types, q)?;
        let mut text = String::new();
        let mut offset = 0;
        loop {
            let paging = Paging { offset, limit: 3, count: true };
            let mut sink = |record: &Record| text.push_str(&self.show(record));
            let page = self.broker.query(tenant, &filter, None, paging, &mut sink).await?;
            let _ = write!(text, "{page:?};");
            if !page.more {
                return Ok(text);
            }
            offset += 3;
        }
    }

    async fn discover(&self, call: Call<'_>) -> Result<String, Error> {
        let name = |symbol| self.broker.symbols().name(symbol);
        let mut text = String::new();
        for info in self.broker.types(call).await? {
            let attributes: Vec<_> = info.attributes.iter().map(|(own, kinds)| (name(*own), kinds)).collect();
            let _ = write!(text, "{} {} {attributes:?};", name(info.entity_type), info.count);
        }
        for info in self.broker.attributes(call).await? {
            let types: Vec<_> = info.types.iter().map(|own| name(*own)).collect();
            let _ = write!(text, "{} {} {:?} {types:?};", name(info.attribute), info.count, info.kinds);
        }
        Ok(text)
    }

    /// The entity, normalized with its system attributes.
    pub fn show(&self, record: &Record) -> String {
        let style = Style { sys_attrs: true, ..Style::default() };
        let renderer = Renderer {
            context: &self.context,
            symbols: self.broker.symbols(),
            now: self.broker.now(),
            style: &style,
        };
        let mut out = Vec::new();
        renderer.entity(record, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn parse(text: &str) -> Doc<'_> {
    Doc::parse(text.as_bytes()).expect("the corpus holds valid JSON")
}

/// Runs `steps` on a store and answers what it said, a line a step.
pub async fn transcript(store: Arc<dyn EntityStore>, steps: &[Step]) -> Vec<String> {
    let bench = Bench::new(store);
    let mut lines = Vec::with_capacity(steps.len());
    for step in steps {
        lines.push(bench.run(step).await);
    }
    lines
}

/// Checks that the indexes and counters of a store agree with its entities.
///
/// # Panics
/// When they do not.
pub async fn consistent(store: Arc<dyn EntityStore>) {
    let bench = Bench::new(store);
    // Counters follow the sweep, not the clock (4.22 lets removal lag).
    bench.broker.store().expire(bench.broker.now()).await.expect("the sweep runs");
    for tenant in bench.broker.store().tenants().await.expect("tenants are known") {
        let all = bench.ids(&tenant, None).await;
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "identifiers ascend");
        for info in bench.broker.types(bench.call(&tenant)).await.expect("types are known") {
            let name = bench.broker.symbols().name(info.entity_type).to_owned();
            let of_type = bench.ids(&tenant, Some(&name)).await;
            assert_eq!(of_type.len(), info.count, "{name}");
            assert!(of_type.iter().all(|id| all.contains(id)), "{name}");
        }
        for id in &all {
            let mut found = Vec::new();
            let mut sink = |record: &Record| found.push(record.id().to_owned());
            bench.broker.retrieve(&tenant, id, &mut sink).await.expect("what a query finds can be retrieved");
            assert_eq!(found, [id.as_str()]);
        }
    }
}

impl Bench {
    async fn ids(&self, tenant: &TenantName, types: Option<&str>) -> Vec<String> {
        let filter = self.filter(types, None).expect("a type name is a selection");
        let mut ids = Vec::new();
        let paging = Paging { offset: 0, limit: usize::MAX, count: false };
        let mut sink = |record: &Record| ids.push(record.id().to_owned());
        self.broker.query(tenant, &filter, None, paging, &mut sink).await.expect("a query is answered");
        ids
    }
}
