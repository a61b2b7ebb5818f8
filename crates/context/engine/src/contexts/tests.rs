use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use trifid_base_runtime::entropy::SeededEntropy;
use trifid_context_model::json::Doc;
use trifid_context_model::ld::CoreVersion;
use trifid_context_model::time::Instant;

use super::limits::{
    FAILURE_TTL, HEURISTIC_DEFAULT, MAX_CACHE_BYTES, MAX_HOSTED_PER_TENANT, MAX_IMPLICIT_PER_TENANT,
    MAX_INLINE, RETENTION, STALE_RECHECK, STALE_WHILE_REVALIDATE,
};
use super::*;

const S: i64 = 1_000_000;
const NOW: Instant = Instant(1_700_000_000 * S);
const ROOT: &str = "https://broker.example";
const DOC: &str = "http://h.example/context.jsonld";

fn later(micros: i64) -> Instant {
    Instant(NOW.0 + micros)
}

/// A web whose answers are scripted: the last answer of an address repeats.
#[derive(Default)]
struct Web {
    answers: Mutex<HashMap<String, VecDeque<Result<Fetched, FetchError>>>>,
    asked: Mutex<Vec<(String, Option<String>)>>,
    /// When set, downloads wait for it.
    gate: Mutex<Option<Arc<Notify>>>,
}

impl Web {
    fn has(&self, url: &str, answer: Result<Fetched, FetchError>) {
        self.answers.lock().entry(url.to_owned()).or_default().push_back(answer);
    }

    /// A document with a `Cache-Control` header, which may be empty.
    fn document(&self, url: &str, text: &str, control: &str) {
        let cache = CacheHeaders {
            cache_control: Some(control.into()).filter(|_| !control.is_empty()),
            etag: Some(format!("\"{}\"", text.len()).into()),
            ..CacheHeaders::default()
        };
        let bytes = text.to_owned().into();
        self.has(url, Ok(Fetched::Document { url: url.into(), bytes, cache }));
    }

    fn fails(&self, url: &str) {
        self.has(url, Err(FetchError::new("the server answered 503")));
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }
}

impl Fetch for Web {
    fn fetch<'a>(&'a self, request: FetchRequest<'a>) -> Boxed<'a, Result<Fetched, FetchError>> {
        self.asked.lock().push((request.url.to_owned(), request.etag.map(str::to_owned)));
        let answer = match self.answers.lock().get_mut(request.url) {
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => answers[0].clone(),
            None => Err(FetchError::new("no such host")),
        };
        let gate = self.gate.lock().clone();
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.notified().await;
            }
            answer
        })
    }
}

/// A store of hosted contexts that remembers what it was told, or fails.
#[derive(Default)]
struct Disk {
    kept: Mutex<Vec<HostedContext>>,
    broken: Mutex<bool>,
}

impl Disk {
    fn outcome(&self) -> Result<(), Box<str>> {
        if *self.broken.lock() { Err("disk full".into()) } else { Ok(()) }
    }
}

impl HostedContexts for Disk {
    fn save<'a>(&'a self, context: &'a HostedContext) -> Boxed<'a, Result<(), Box<str>>> {
        Box::pin(async move {
            self.outcome()?;
            self.kept.lock().push(context.clone());
            Ok(())
        })
    }

    fn remove<'a>(&'a self, tenant: &'a str, local_id: &'a str) -> Boxed<'a, Result<(), Box<str>>> {
        Box::pin(async move {
            self.outcome()?;
            self.kept.lock().retain(|kept| (&*kept.tenant, &*kept.local_id) != (tenant, local_id));
            Ok(())
        })
    }
}

struct World {
    web: Arc<Web>,
    disk: Arc<Disk>,
    contexts: Contexts,
}

impl World {
    fn new() -> World {
        let (web, disk) = (Arc::new(Web::default()), Arc::new(Disk::default()));
        let settings = Settings {
            core: CoreVersion::V1_8,
            public_urls: vec![ROOT.into(), "http://127.0.0.1:9090".into()],
        };
        let entropy = Arc::new(SeededEntropy::new(7));
        let ports = Ports { fetch: web.clone(), hosted: disk.clone(), entropy };
        World { contexts: Contexts::new(settings, ports), web, disk }
    }

    async fn url(&self, url: &str, now: Instant) -> Result<Active, Error> {
        self.contexts.resolve("", ContextRef::Url(url), now).await
    }

    async fn inline(&self, tenant: &str, text: &str, now: Instant) -> Result<Active, Error> {
        let doc = Doc::parse(text.as_bytes()).unwrap();
        self.contexts.resolve(tenant, ContextRef::Inline(doc.root()), now).await
    }

    async fn add(&self, tenant: &str, context: &str) -> Added {
        let body = format!("{{\"@context\": {context}}}");
        self.contexts.add(tenant, body.as_bytes(), NOW).await.unwrap()
    }

    /// What `name` stands for in the document at [`DOC`].
    async fn means(&self, name: &str, now: Instant) -> String {
        self.url(DOC, now).await.unwrap().expand(name).unwrap().into_owned()
    }

    fn hits(&self, id: &str) -> u64 {
        self.contexts.details("", id, NOW).unwrap().number_of_hits
    }
}

fn default(name: &str) -> String {
    format!("https://uri.etsi.org/ngsi-ld/default-context/{name}")
}

const A: &str = r#"{"@context": {"a": "urn:a:1"}}"#;
const B: &str = r#"{"@context": {"a": "urn:a:2"}}"#;

#[tokio::test]
async fn requests_without_a_context_run_under_the_core() {
    let world = World::new();
    let core = world.contexts.core(NOW);
    assert_eq!(core.link(), Some(CoreVersion::V1_8.url()));
    assert_eq!(core.expand("a").unwrap(), default("a"));
    let active = world.contexts.resolve("t", ContextRef::Default, NOW).await.unwrap();
    assert!(Arc::ptr_eq(active.context(), core.context()));
    assert_eq!(world.web.asked(), 0);
}

#[tokio::test]
async fn core_contexts_are_built_in_and_only_those() {
    let world = World::new();
    for version in CoreVersion::ALL {
        let active = world.contexts.ready("", ContextRef::Url(version.url()), NOW).unwrap();
        assert_eq!((active.version(), active.link()), (Some(version), Some(version.url())));
    }
    let newest = world.contexts.ready("", ContextRef::Url(UNVERSIONED_CORE), NOW).unwrap();
    assert_eq!((newest.version(), newest.link()), (Some(CoreVersion::LATEST), Some(UNVERSIONED_CORE)));
    let missing = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-non-existing.jsonld";
    let error = world.url(missing, NOW).await.unwrap_err();
    assert_eq!(error.problem(), Problem::LdContextNotAvailable);
    assert_eq!(error.to_string(), format!("the @context {missing} cannot be had: no such host"));
}

#[tokio::test]
async fn a_document_is_downloaded_once() {
    let world = World::new();
    world.web.document(DOC, A, "");
    let first = world.url(DOC, NOW).await.unwrap();
    assert_eq!((first.expand("a").unwrap(), first.link()), ("urn:a:1".into(), Some(DOC)));
    let second = world.contexts.ready("other", ContextRef::Url(DOC), NOW).unwrap();
    assert!(Arc::ptr_eq(first.context(), second.context()));
    assert_eq!(world.web.asked(), 1);
}

#[tokio::test]
async fn a_url_in_the_body_is_the_same_context_as_one_in_the_header() {
    let world = World::new();
    world.web.document(DOC, A, "");
    let by_url = world.url(DOC, NOW).await.unwrap();
    for text in [format!("\"{DOC}\""), format!("[\"{DOC}\"]")] {
        let inline = world.inline("", &text, NOW).await.unwrap();
        assert!(Arc::ptr_eq(by_url.context(), inline.context()), "{text}");
    }
}

#[tokio::test]
async fn inline_contexts_are_merged_once_per_tenant() {
    let world = World::new();
    world.web.document(DOC, A, "");
    let text = format!("[\"{DOC}\", {{\"b\": \"urn:b\"}}]");
    let first = world.inline("", &text, NOW).await.unwrap();
    assert_eq!((first.expand("a").unwrap(), first.expand("b").unwrap()), ("urn:a:1".into(), "urn:b".into()));
    assert_eq!((first.link(), first.json()), (None, &*text.replace(", ", ",").replace(": ", ":")));
    let second = world.inline("", &text, NOW).await.unwrap();
    assert!(Arc::ptr_eq(first.context(), second.context()));
    let other = world.inline("t", &text, NOW).await.unwrap();
    assert!(!Arc::ptr_eq(first.context(), other.context()));
    assert_eq!(world.hits(DOC), 3, "its parts count as used");
}

#[tokio::test]
async fn hits_are_counted_as_the_conformance_suite_counts_them() {
    let world = World::new();
    world.web.document(DOC, A, "");
    world.url(DOC, NOW).await.unwrap();
    assert_eq!(world.hits(DOC), 1);
    world.url(DOC, later(S)).await.unwrap();
    let details = world.contexts.details("", DOC, NOW).unwrap();
    assert_eq!((details.number_of_hits, details.last_usage), (3, Some(later(S))));
    let hosted = world.add("", r#"{"h": "urn:h"}"#).await;
    assert_eq!((world.hits(&hosted.local_id), world.hits(&hosted.local_id)), (0, 1));
}

#[tokio::test]
async fn a_stale_document_is_used_while_a_new_one_is_fetched() {
    let world = World::new();
    world.web.document(DOC, A, "max-age=60");
    world.web.document(DOC, B, "max-age=60");
    assert_eq!(world.means("a", NOW).await, "urn:a:1");
    assert_eq!(world.means("a", later(59 * S)).await, "urn:a:1");
    assert_eq!(world.web.asked(), 1);
    assert_eq!(world.means("a", later(60 * S)).await, "urn:a:1");
    while world.web.asked() < 2 || world.contexts.0.flights.is_running(DOC) {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.means("a", later(60 * S)).await, "urn:a:2");
    assert_eq!(world.web.asked(), 2);
}

#[tokio::test]
async fn many_requests_start_one_refresh() {
    let world = World::new();
    world.web.document(DOC, A, "max-age=60");
    world.url(DOC, NOW).await.unwrap();
    let gate = Arc::new(Notify::new());
    *world.web.gate.lock() = Some(gate.clone());
    for step in 0..5 {
        world.url(DOC, later(61 * S + step * STALE_RECHECK)).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(world.web.asked(), 2);
    gate.notify_one();
}

#[tokio::test]
async fn a_copy_is_confirmed_by_its_tag() {
    let world = World::new();
    world.web.document(DOC, A, "no-cache");
    world.web.has(DOC, Ok(Fetched::NotModified { cache: CacheHeaders::default() }));
    world.url(DOC, NOW).await.unwrap();
    assert_eq!(world.means("a", later(S)).await, "urn:a:1");
    let asked = world.web.asked.lock().clone();
    assert_eq!((asked.len(), asked[1].1.as_deref()), (2, Some(&*format!("\"{}\"", A.len()))));
    // The answer said nothing about caching, so the heuristic applies from now on.
    let details = world.contexts.details("", DOC, NOW).unwrap();
    assert_eq!(details.expires_at, Some(later(S + HEURISTIC_DEFAULT)));
}

#[tokio::test]
async fn what_must_not_be_stored_is_used_and_forgotten() {
    let world = World::new();
    world.web.document(DOC, A, "no-store");
    for request in 1..=2 {
        assert_eq!(world.means("a", NOW).await, "urn:a:1");
        assert_eq!(world.web.asked(), request);
    }
    assert_eq!(world.contexts.stats(), Stats::default());
    world.inline("", &format!("[\"{DOC}\", {{}}]"), NOW).await.unwrap();
    assert_eq!(world.contexts.stats().inline, 0);
}

#[tokio::test]
async fn an_old_copy_is_better_than_none_unless_its_server_says_otherwise() {
    for (control, survives) in [("max-age=60", true), ("max-age=60, must-revalidate", false)] {
        let world = World::new();
        world.web.document(DOC, A, control);
        world.web.fails(DOC);
        world.url(DOC, NOW).await.unwrap();
        let outcome = world.url(DOC, later(60 * S + STALE_WHILE_REVALIDATE)).await;
        assert_eq!(outcome.is_ok(), survives, "{control}");
    }
}

#[tokio::test]
async fn a_failed_address_is_left_alone_for_a_while() {
    let world = World::new();
    world.web.fails(DOC);
    world.web.document(DOC, A, "");
    assert_eq!(world.url(DOC, NOW).await.unwrap_err().problem(), Problem::LdContextNotAvailable);
    assert!(world.url(DOC, later(FAILURE_TTL - 1)).await.is_err());
    assert_eq!(world.web.asked(), 1);
    assert_eq!(world.means("a", later(FAILURE_TTL)).await, "urn:a:1");
}

#[tokio::test]
async fn a_malformed_document_is_the_callers_mistake_and_not_kept() {
    let world = World::new();
    let scoped = r#"{"@context": {"a": {"@id": "urn:a", "@context": {}}}}"#;
    world.web.document(DOC, scoped, "");
    let error = world.url(DOC, NOW).await.unwrap_err();
    assert_eq!(error.problem(), Problem::BadRequestData);
    assert_eq!(
        error.to_string(),
        format!(
            "in {DOC}: in the @context, the term \"a\" has a scoped @context, which a user @context cannot have (5.5.7)"
        )
    );
    assert_eq!(world.contexts.stats().cached, 0);
    world.web.document("http://h.example/not-json", "<html>", "");
    let error = world.url("http://h.example/not-json", NOW).await.unwrap_err();
    assert_eq!(error.problem(), Problem::BadRequestData);
}

#[tokio::test]
async fn what_is_no_reference_is_refused_without_asking_anybody() {
    let world = World::new();
    for (text, problem) in [
        ("\"/ngsi-ld/v1/jsonldContexts/x\"", Problem::BadRequestData),
        ("\"ftp://h.example/c\"", Problem::BadRequestData),
        ("[\"http://h.example/a\", 7]", Problem::BadRequestData),
        ("42", Problem::BadRequestData),
    ] {
        assert_eq!(world.inline("", text, NOW).await.unwrap_err().problem(), problem, "{text}");
    }
    assert_eq!(world.web.asked(), 0);
}

#[tokio::test]
async fn documents_of_documents_are_fetched_too_and_become_entries() {
    let world = World::new();
    world.web.document(DOC, r#"{"@context": ["one.jsonld", "two.jsonld"]}"#, "max-age=600");
    world.web.document("http://h.example/one.jsonld", r#"{"@context": {"p": "urn:p:"}}"#, "max-age=60");
    world.web.document("http://h.example/two.jsonld", r#"{"@context": {"x": "p:x"}}"#, "max-age=600");
    assert_eq!(world.means("x", NOW).await, "urn:p:x");
    let urls: Vec<_> = world.contexts.list("", Some(Kind::Cached)).into_iter().map(|d| d.url).collect();
    for url in [DOC, "http://h.example/one.jsonld", "http://h.example/two.jsonld"] {
        assert!(urls.iter().any(|known| **known == *url), "{url}");
    }
    // The whole is as fresh as its least fresh part.
    assert!(world.contexts.ready("", ContextRef::Url(DOC), later(59 * S)).is_some());
    assert!(world.contexts.ready("", ContextRef::Url(DOC), later(60 * S)).is_none());
}

#[tokio::test]
async fn a_reloaded_part_changes_the_whole() {
    let world = World::new();
    let part = "http://h.example/part";
    world.web.document(DOC, r#"{"@context": "part"}"#, "");
    world.web.document(part, A, "");
    world.web.document(part, B, "");
    assert_eq!(world.means("a", NOW).await, "urn:a:1");
    world.contexts.reload("", part, later(S)).await.unwrap();
    assert_eq!(world.means("a", later(S)).await, "urn:a:2");
    assert_eq!(world.contexts.details("", part, NOW).unwrap().created_at, later(S));
    world.contexts.delete("", part).await.unwrap();
    assert_eq!(world.means("a", later(S)).await, "urn:a:2");
    assert_eq!(world.web.asked(), 4, "fetched again after it was deleted");
}

#[tokio::test]
async fn a_document_that_changes_all_the_time_disturbs_no_other() {
    let world = World::new();
    let other = "http://h.example/other";
    world.web.document(other, A, "");
    world.url(other, NOW).await.unwrap();
    for text in [A, B, A] {
        world.web.document(DOC, text, "no-cache");
    }
    for meaning in ["urn:a:1", "urn:a:2", "urn:a:1"] {
        assert_eq!(world.means("a", NOW).await, meaning);
        assert!(world.contexts.ready("", ContextRef::Url(other), NOW).is_some());
    }
}

#[tokio::test]
async fn a_copy_that_may_no_longer_be_kept_goes() {
    let world = World::new();
    world.web.document(DOC, A, "");
    world.web.document(DOC, B, "no-store");
    world.url(DOC, NOW).await.unwrap();
    world.contexts.reload("", DOC, NOW).await.unwrap();
    assert_eq!(world.contexts.stats().cached, 0);
    assert_eq!(world.means("a", NOW).await, "urn:a:2");
}

#[tokio::test]
async fn an_empty_array_is_the_core() {
    let world = World::new();
    let active = world.inline("", "[[]]", NOW).await.unwrap();
    assert_eq!(active.link(), Some(CoreVersion::V1_8.url()));
}

#[tokio::test]
async fn concurrent_requests_share_a_download() {
    let world = World::new();
    let gate = Arc::new(Notify::new());
    *world.web.gate.lock() = Some(gate.clone());
    world.web.document(DOC, A, "");
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let contexts = world.contexts.clone();
            tokio::spawn(async move { contexts.resolve("", ContextRef::Url(DOC), NOW).await.unwrap() })
        })
        .collect();
    while world.web.asked() == 0 {
        tokio::task::yield_now().await;
    }
    gate.notify_one();
    for call in calls {
        assert_eq!(call.await.unwrap().expand("a").unwrap(), "urn:a:1");
    }
    assert_eq!(world.web.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_download_that_takes_too_long_is_given_up() {
    let world = World::new();
    *world.web.gate.lock() = Some(Arc::new(Notify::new()));
    world.web.document(DOC, A, "");
    let error = world.url(DOC, NOW).await.unwrap_err();
    assert_eq!(error.problem(), Problem::LdContextNotAvailable);
    assert!(!world.contexts.0.flights.is_running(DOC));
}

#[tokio::test]
async fn a_hosted_context_is_served_and_named_by_its_own_url() {
    let world = World::new();
    let body = br#"{"@context": {"a": "urn:h:a"}, "more": 1}"#;
    let added = world.contexts.add("", body, NOW).await.unwrap();
    assert_eq!(*added.url, *format!("{ROOT}{}", added.path));
    assert_eq!(*added.path, *format!("/ngsi-ld/v1/jsonldContexts/{}", added.local_id));
    assert_eq!(
        &world.contexts.serve("", &added.local_id, NOW).unwrap()[..],
        br#"{"@context":{"a":"urn:h:a"}}"#
    );
    let aliases = [
        added.url.to_string(),
        format!("http://127.0.0.1:9090{}", added.path),
        added.url.replace("urn:ngsi-ld:", "urn%3Angsi-ld%3A"),
    ];
    for url in aliases {
        assert_eq!(world.url(&url, NOW).await.unwrap().expand("a").unwrap(), "urn:h:a", "{url}");
        assert!(world.contexts.ready("", ContextRef::Url(&url), NOW).is_some(), "{url}");
    }
    let unknown = format!("{ROOT}/ngsi-ld/v1/jsonldContexts/urn:x:y");
    assert_eq!(world.url(&unknown, NOW).await.unwrap_err().problem(), Problem::LdContextNotAvailable);
    assert_eq!(world.web.asked(), 0);
}

#[tokio::test]
async fn bodies_that_hold_no_context_are_refused() {
    let world = World::new();
    for (body, problem) in [
        (r#"{"A1": "urn:a"}"#, Problem::InvalidRequest),
        (r#"{"A1": "urn:a" "A2": 1}"#, Problem::InvalidRequest),
        ("[]", Problem::InvalidRequest),
        ("", Problem::InvalidRequest),
        (r#"{"@context": 42}"#, Problem::BadRequestData),
        (r#"{"@context": true}"#, Problem::BadRequestData),
        (r#"{"@context": ["https://example.org/ctx.jsonld", 7]}"#, Problem::BadRequestData),
        (r#"{"@context": {"a": "b:c", "b": "a:c"}}"#, Problem::BadRequestData),
        (r#"{"@context": {"a": {"@id": "urn:a", "@context": {}}}}"#, Problem::BadRequestData),
    ] {
        let error = world.contexts.add("", body.as_bytes(), NOW).await.unwrap_err();
        assert_eq!(error.problem(), problem, "{body}: {error}");
    }
    assert!(world.contexts.list("", None).is_empty() && world.disk.kept.lock().is_empty());
}

#[tokio::test]
async fn a_hosted_context_does_not_exist_for_another_tenant() {
    let world = World::new();
    let added = world.add("a", r#"{"secret": "urn:secret"}"#).await;
    let same = world.add("b", r#"{"secret": "urn:secret"}"#).await;
    assert_ne!(added.local_id, same.local_id);
    for id in [&added.local_id, &added.url] {
        assert_eq!(world.contexts.serve("b", id, NOW).unwrap_err().problem(), Problem::ResourceNotFound);
        assert!(
            world.contexts.details("b", id, NOW).is_err() && world.contexts.delete("b", id).await.is_err()
        );
        assert!(world.contexts.serve("a", id, NOW).is_ok());
    }
    assert!(world.contexts.list("b", None).iter().all(|details| details.local_id != added.local_id));
    let named = ContextRef::Url(&added.url);
    assert!(world.contexts.resolve("a", named, NOW).await.is_ok());
    let error = world.contexts.resolve("b", named, NOW).await.unwrap_err();
    assert_eq!(error.problem(), Problem::LdContextNotAvailable);
}

#[tokio::test]
async fn a_public_document_does_not_carry_a_hosted_context_to_another_tenant() {
    let world = World::new();
    let added = world.add("a", r#"{"secret": "urn:secret"}"#).await;
    world.web.document(DOC, &format!("{{\"@context\": \"{}\"}}", added.url), "");
    let named = ContextRef::Url(DOC);
    let own = world.contexts.resolve("a", named, NOW).await.unwrap();
    assert_eq!(own.expand("secret").unwrap(), "urn:secret");
    assert!(
        world.contexts.ready("a", named, NOW).is_some() && world.contexts.ready("b", named, NOW).is_none()
    );
    assert!(world.contexts.resolve("b", named, NOW).await.is_err());
    let text = format!("[\"{}\", {{}}]", added.url);
    assert!(world.inline("a", &text, NOW).await.is_ok() && world.inline("b", &text, NOW).await.is_err());
}

#[tokio::test]
async fn deleting_takes_a_context_out_of_use() {
    let world = World::new();
    let added = world.add("", r#"{"a": "urn:a"}"#).await;
    let text = format!("[\"{}\", {{}}]", added.url);
    world.inline("", &text, NOW).await.unwrap();
    world.contexts.delete("", &added.local_id).await.unwrap();
    assert_eq!(world.inline("", &text, NOW).await.unwrap_err().problem(), Problem::LdContextNotAvailable);
    let error = world.contexts.delete("", &added.local_id).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("no @context with the identifier \"{}\" is stored", added.local_id)
    );
    assert!(world.disk.kept.lock().is_empty());
}

#[tokio::test]
async fn cached_contexts_are_described_but_not_served() {
    let world = World::new();
    world.web.document(DOC, A, "max-age=60");
    world.url(DOC, NOW).await.unwrap();
    let details = world.contexts.details("", DOC, NOW).unwrap();
    assert_eq!((details.kind, &*details.url), (Kind::Cached, DOC));
    for id in [DOC, &details.local_id] {
        assert_eq!(world.contexts.serve("", id, NOW).unwrap_err().problem(), Problem::OperationNotSupported);
    }
    world.contexts.delete("", DOC).await.unwrap();
    assert_eq!(world.contexts.details("", DOC, NOW).unwrap_err().problem(), Problem::ResourceNotFound);
}

#[tokio::test]
async fn a_failed_reload_keeps_the_copy_at_hand() {
    let world = World::new();
    world.web.document(DOC, A, "");
    world.web.fails(DOC);
    world.web.document(DOC, "{}", "");
    world.web.document(DOC, B, "");
    world.url(DOC, NOW).await.unwrap();
    for reason in ["the server answered 503", "has no member @context"] {
        let error = world.contexts.reload("", DOC, NOW).await.unwrap_err();
        assert_eq!(error.problem(), Problem::LdContextNotAvailable);
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(world.means("a", NOW).await, "urn:a:1");
    }
    world.contexts.reload("", DOC, NOW).await.unwrap();
    assert_eq!(world.means("a", NOW).await, "urn:a:2");
}

#[tokio::test]
async fn only_what_is_cached_can_be_reloaded_and_the_core_stays() {
    let world = World::new();
    let added = world.add("", r#"{"a": "urn:a"}"#).await;
    let implicit = implicit(&world, r#"[{"b": "urn:b"}]"#).await;
    let reload = async |id: &str| world.contexts.reload("", id, NOW).await.map_err(|error| error.problem());
    assert_eq!(reload(&added.local_id).await, Err(Problem::BadRequestData));
    assert_eq!(reload(&implicit).await, Err(Problem::BadRequestData));
    assert_eq!(reload("wrong_id_context").await, Err(Problem::BadRequestData));
    assert_eq!(reload("http://nowhere.example/c").await, Err(Problem::ResourceNotFound));
    let core = CoreVersion::V1_6.url();
    assert_eq!(reload(core).await, Ok(()));
    assert_eq!(world.contexts.delete("", core).await.unwrap_err().problem(), Problem::BadRequestData);
    assert_eq!(world.contexts.details("", core, NOW).unwrap().kind, Kind::Cached);
    assert_eq!(world.contexts.delete("", "wrong").await.unwrap_err().problem(), Problem::ResourceNotFound);
}

async fn implicit(world: &World, text: &str) -> Box<str> {
    let doc = Doc::parse(text.as_bytes()).unwrap();
    world.contexts.host_implicitly("", doc.root(), NOW).await.unwrap()
}

#[tokio::test]
async fn contexts_without_a_url_get_one_and_keep_it() {
    let world = World::new();
    let url = implicit(&world, r#"[{"b": "urn:b"}]"#).await;
    assert_eq!(url, implicit(&world, r#"[ {"b":"urn:b"} ]"#).await);
    assert_ne!(url, implicit(&world, r#"[{"b": "urn:c"}]"#).await);
    assert_eq!(world.url(&url, NOW).await.unwrap().expand("b").unwrap(), "urn:b");
    assert_eq!(world.contexts.list("", Some(Kind::ImplicitlyCreated)).len(), 2);
    assert!(world.contexts.list("", Some(Kind::Hosted)).is_empty());
    assert_eq!(&world.contexts.serve("", &url, NOW).unwrap()[..], br#"{"@context":[{"b":"urn:b"}]}"#);
}

#[tokio::test]
async fn details_have_the_members_of_5_13_3_5() {
    let world = World::new();
    world.web.document(DOC, A, "max-age=60");
    world.url(DOC, NOW).await.unwrap();
    let details = world.contexts.details("", DOC, NOW).unwrap();
    let mut out = Vec::new();
    details.write(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        format!(
            "{{\"URL\":\"{DOC}\",\"localId\":\"{}\",\"kind\":\"Cached\",\"createdAt\":\"2023-11-14T22:13:20Z\",\
             \"expiresAt\":\"2023-11-14T22:14:20Z\",\"lastUsage\":\"2023-11-14T22:13:20Z\",\"numberOfHits\":1}}",
            details.local_id
        )
    );
    assert_eq!(Kind::parse("Cached"), Some(Kind::Cached));
    assert_eq!(Kind::parse("other"), None);
}

#[tokio::test]
async fn nothing_is_acknowledged_that_is_not_kept() {
    let world = World::new();
    let added = world.add("", r#"{"a": "urn:a"}"#).await;
    *world.disk.broken.lock() = true;
    let error = world.contexts.add("", br#"{"@context": {}}"#, NOW).await.unwrap_err();
    assert_eq!(error.problem(), Problem::InternalError);
    assert!(world.contexts.delete("", &added.local_id).await.is_err());
    assert_eq!(world.contexts.list("", None).len(), 1);
    assert_eq!(world.contexts.0.quotas.lock().get("").copied(), Some((1, 26)));
}

#[tokio::test]
async fn hosted_contexts_come_back_after_a_restart() {
    let world = World::new();
    let added = world.add("t", r#"{"a": "urn:a"}"#).await;
    implicit(&world, r#"["http://h.example/x"]"#).await;
    let kept = world.disk.kept.lock().clone();
    let mut exported = world.contexts.export();
    exported.sort_by_key(|context| kept.iter().position(|other| other == context));
    assert_eq!(exported, kept);

    let again = World::new();
    again.contexts.import(kept).unwrap();
    let active = again.contexts.resolve("t", ContextRef::Url(&added.url), NOW).await.unwrap();
    assert_eq!(active.expand("a").unwrap(), "urn:a");
    assert_eq!(again.contexts.list("", None).len(), 1);
    again.contexts.delete("t", &added.local_id).await.unwrap();
    assert!(again.contexts.0.quotas.lock().get("t").is_none());
}

#[tokio::test]
async fn a_tenant_cannot_host_without_bound() {
    let world = World::new();
    for n in 0..MAX_HOSTED_PER_TENANT {
        world.add("t", &format!("{{\"a\": \"urn:{n}\"}}")).await;
    }
    let error = world.contexts.add("t", br#"{"@context": {}}"#, NOW).await.unwrap_err();
    assert_eq!((&error, error.problem()), (&Error::TooManyHosted, Problem::BadRequestData));
    world.add("other", "{}").await;
    let id = world.contexts.list("t", None)[0].local_id.clone();
    world.contexts.delete("t", &id).await.unwrap();
    world.add("t", "{}").await;
}

#[tokio::test]
async fn implicit_contexts_give_way_to_newer_ones() {
    let world = World::new();
    let mut urls = Vec::new();
    for n in 0..MAX_IMPLICIT_PER_TENANT + 20 {
        urls.push(implicit(&world, &format!("{{\"a\": \"urn:{n}\"}}")).await);
    }
    let kept = world.contexts.list("", Some(Kind::ImplicitlyCreated));
    assert_eq!(kept.len(), MAX_IMPLICIT_PER_TENANT);
    assert!(world.contexts.serve("", urls.last().unwrap(), NOW).is_ok());
    assert_eq!(world.contexts.0.quotas.lock()[""].0, MAX_IMPLICIT_PER_TENANT);
    assert_eq!(world.disk.kept.lock().len(), MAX_IMPLICIT_PER_TENANT);
    world.add("", "{}").await;
}

#[tokio::test]
async fn the_longest_unused_give_way() {
    let world = World::new();
    for n in 0..=i64::try_from(MAX_INLINE).unwrap() {
        world.inline("", &format!("{{\"a\": \"urn:{n}\"}}"), later(n * 2 * S)).await.unwrap();
    }
    let kept = world.contexts.stats().inline;
    assert!(kept < MAX_INLINE && kept > MAX_INLINE / 2, "{kept}");
    let ready = |n: usize| {
        let text = format!("{{\"a\": \"urn:{n}\"}}");
        let doc = Doc::parse(text.as_bytes()).unwrap();
        world.contexts.ready("", ContextRef::Inline(doc.root()), later(i64::MAX / 2 - NOW.0)).is_some()
    };
    assert!(!ready(0) && ready(MAX_INLINE));
}

#[tokio::test]
async fn memory_is_bounded_by_bytes_too() {
    let world = World::new();
    let terms: Vec<String> =
        (0..20_000).map(|n| format!("\"t{n}\": \"http://h.example/{n:0>200}\"")).collect();
    let text = format!("{{\"@context\": {{{}}}}}", terms.join(","));
    let urls: Vec<String> = (0..12).map(|n| format!("http://h.example/{n}")).collect();
    for (n, url) in (0..).zip(&urls) {
        world.web.document(url, &text, "");
        world.url(url, later(n)).await.unwrap();
    }
    let stats = world.contexts.stats();
    assert!(
        stats.cache_bytes <= MAX_CACHE_BYTES && stats.cached < urls.len() && stats.cached > 2,
        "{stats:?}"
    );
    assert!(world.contexts.details("", &urls[0], NOW).is_err());
    assert!(world.contexts.details("", &urls[11], NOW).is_ok());
}

#[tokio::test]
async fn unused_stale_copies_are_swept() {
    let world = World::new();
    world.web.document(DOC, A, "max-age=60, stale-while-revalidate=0");
    world.url(DOC, NOW).await.unwrap();
    let added = world.add("", "{}").await;
    world.contexts.sweep(later(60 * S + RETENTION));
    assert_eq!(world.contexts.stats().cached, 1);
    world.contexts.sweep(later(61 * S + RETENTION));
    assert_eq!(world.contexts.stats().cached, 0);
    assert!(world.contexts.serve("", &added.local_id, NOW).is_ok());
    assert!(world.contexts.ready("", ContextRef::Default, NOW).is_some());
}

#[test]
fn threads_count_into_one_sum() {
    let world = World::new();
    let before = world.contexts.0.default.usage.hits();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| (0..50).for_each(|_| drop(world.contexts.core(NOW))));
        }
    });
    assert_eq!(world.contexts.0.default.usage.hits() - before, 1_000);
}
