//! The archive door over HTTP: TAP 1.1, UWS 1.1, DALI 1.1, VOSI 1.1, TAPRegExt 1.0 and simple cone search.
//!
//! ```text
//! request -> route -> form, multipart -> params -> query::Checked -> engine
//!                                        upload ----^                  |
//! client  <- stream (channel, spool) <- encode (writer, coding) <----- rows
//! ```
//!
//! No rule of the archive is here: what a query means the engine says, how a table is written the model says. What is
//! here is the protocol: parameters and their mistakes, formats and their names, documents about the service, and the
//! way of a result to a client that may be slow or leave.
//!
//! Invariants:
//! - A result is one document, whatever happens: what goes wrong after its first byte is told in its tail.
//! - OVERFLOW is told if and only if rows were withheld, in every format, or in a header or trailer beside it.
//! - What one client holds in memory does not depend on the size of its result, nor does what it holds in the engine
//!   depend on its patience.
//! - Nothing that a client or a catalogue says gets into a document unescaped; no text of the engine's own failures
//!   gets into a body.

mod coding;
mod document;
mod encode;
mod fault;
mod fits;
mod form;
mod format;
pub mod fuzz;
mod limits;
mod multipart;
mod origin;
mod params;
mod percent;
mod query;
mod resources;
mod route;
mod runner;
mod settings;
mod spool;
mod stats;
mod stream;
mod upload;
mod uws;
mod xml;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, SERVER};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use trifid_archive_engine::QueryError;
use trifid_archive_engine::archive::Archive;
use trifid_archive_engine::catalogue::Snapshot;
use trifid_archive_engine::compute::Ticket;
use trifid_archive_engine::jobs::{JobRunner, Jobs, Limits as JobLimits};
use trifid_archive_engine::obscore;
use trifid_base_runtime::Clock;
use trifid_base_web::router::Outcome;
use trifid_base_web::{Access, Answer, Body, Face, Request, Response, Role, Router, ShellProblem, egress};

use document::Document;
use fault::{ErrorForm, Fault, quoted};
use form::Form;
use format::Formats;
use resources::tables::Detail;
use resources::{availability, capabilities, examples, page, tables};
use route::Operation;
use runner::Runner;
use spool::Spool;
use stats::Counters;

pub use format::{ExtraFormat, Read};
pub use resources::examples::Example;
pub use settings::{Options, OptionsError, Resolved};
pub use stats::Stats;
pub use upload::Bounds;

/// The path prefix under which the face is mounted.
pub const ROOT: &str = route::ROOT;

/// What the face needs of others.
pub struct Ports {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What fetches tables that are uploaded by URL; without it none are.
    pub client: Option<egress::Client>,
    /// The folder where results wait for slow clients; it is made when it is first needed.
    pub spool: PathBuf,
    /// Formats that other rooms write.
    pub formats: Vec<Arc<dyn ExtraFormat>>,
    /// Queries to learn from; none, and the tables make some.
    pub examples: Vec<Example>,
    /// Cores that serve: the size of counters.
    pub cores: usize,
    /// The bounds of jobs, as the capabilities document tells them.
    pub jobs: JobLimits,
}

/// The archive door's HTTP face.
pub struct ArchiveFace {
    archive: Arc<Archive>,
    settings: Resolved,
    client: Option<egress::Client>,
    formats: Formats,
    examples: Vec<Example>,
    jobs: JobLimits,
    uws: Option<Jobs>,
    /// Whether whoever asks waits for a turn in the pool however long that takes.
    is_patient: bool,
    spool: Arc<Spool>,
    counters: Arc<Counters>,
    routes: Router<Operation>,
    /// When this face was made, in microseconds: tells its tags from those of the process before.
    started_micros: i64,
    kept: ArcSwap<Kept>,
}

/// The documents about one snapshot.
#[derive(Default)]
struct Kept {
    generation: u64,
    least: OnceLock<Document>,
    most: OnceLock<Document>,
}

impl std::fmt::Debug for ArchiveFace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveFace").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ArchiveFace {
    /// A face over `archive`.
    pub fn new(archive: Arc<Archive>, settings: Resolved, ports: Ports) -> Self {
        Self {
            formats: Formats::new(ports.formats, settings.serialization),
            spool: Spool::new(ports.spool, settings.spool_limit_bytes),
            counters: Arc::new(Counters::new(ports.cores)),
            routes: route::table().expect("the table of routes does not contradict itself"),
            started_micros: ports.clock.now().micros(),
            kept: ArcSwap::default(),
            client: ports.client,
            examples: ports.examples,
            jobs: ports.jobs,
            uws: None,
            is_patient: false,
            archive,
            settings,
        }
    }

    /// What runs the jobs of this face: for the [`Jobs`] that are given to [`Self::with_jobs`] then.
    pub fn runner(&self) -> Arc<dyn JobRunner> {
        Arc::new(Runner::new(Self {
            archive: Arc::clone(&self.archive),
            settings: self.settings.clone(),
            client: self.client.clone(),
            formats: self.formats.clone(),
            examples: Vec::new(),
            jobs: self.jobs,
            uws: None,
            is_patient: true,
            spool: Arc::clone(&self.spool),
            counters: Arc::clone(&self.counters),
            routes: route::table().expect("the table of routes does not contradict itself"),
            started_micros: self.started_micros,
            kept: ArcSwap::default(),
        }))
    }

    /// The face, with jobs under `/async`; without them there is no such resource.
    #[must_use]
    pub fn with_jobs(self, jobs: Jobs) -> Self {
        Self { jobs: *jobs.limits(), uws: Some(jobs), ..self }
    }

    /// A place in the queue of the compute pool.
    fn queue(&self) -> Result<Ticket, QueryError> {
        let compute = self.archive.compute();
        if self.is_patient { Ok(compute.queue_patiently()) } else { compute.queue() }
    }

    /// What became of results so far.
    pub fn stats(&self) -> Stats {
        let counters = &self.counters;
        Stats {
            whole: counters.whole.value(),
            streamed: counters.streamed.value(),
            overflowed: counters.overflowed.value(),
            failed: counters.failed.value(),
            abandoned: counters.abandoned.value(),
            uploads: counters.uploads.value(),
            spooled: self.spool.begun(),
            spool_bytes: self.spool.used_bytes(),
        }
    }

    async fn answer(&self, request: Request) -> Response {
        let answered = self.dispatch(&request).await;
        answered.unwrap_or_else(|fault| fault.into_response(&ErrorForm::default()))
    }

    /// Finds the resource and has it answer. What is rare and holds much is boxed, so that the future of a query, which
    /// is moved for each of them, stays small.
    async fn dispatch(&self, request: &Request) -> Result<Response, Fault> {
        // HEAD is GET whose body the shell leaves out (RFC 9110 9.3.2).
        let method = if request.method == Method::HEAD { &Method::GET } else { &request.method };
        let found = match self.routes.get(method, request.path()) {
            Outcome::Found(found) => found,
            Outcome::NotFound => return Err(Fault::not_found("there is no such resource")),
            Outcome::MethodNotAllowed { allow } if request.method == Method::OPTIONS => {
                return Ok(options(allow.clone()));
            }
            Outcome::MethodNotAllowed { allow } => return Err(Fault::MethodNotAllowed(allow.clone())),
        };
        let table = found.params.get(route::TABLE).unwrap_or_default();
        match *found.value {
            Operation::Page => self.page(request),
            Operation::Asset => page::asset(found.params.get(route::ASSET).unwrap_or_default()),
            Operation::Sync => self.sync(request).await,
            Operation::Capabilities => self.capabilities(request),
            Operation::Availability => Ok(xml(availability::document(self.started_micros))),
            Operation::Tables => self.tables(request),
            Operation::Table => self.table(request, table),
            Operation::Examples => self.examples(request),
            Operation::Cone => Ok(Box::pin(self.cone(request, &table_name(table)?)).await),
            Operation::Uws(resource) => {
                let named = |name| found.params.get(name).unwrap_or_default();
                Box::pin(self.uws(request, resource, named(uws::JOB), named(uws::NAME))).await
            }
        }
    }

    fn page(&self, request: &Request) -> Result<Response, Fault> {
        let mut form = Form::default();
        form.add(request.query().unwrap_or_default())?;
        let named = |name: &str| form.pairs.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        let snapshot = self.archive.snapshot();
        let examples = self.examples_of(&snapshot);
        Ok(page::answer(&page::Facts {
            root: self.settings.origin.path(),
            title: &self.settings.title,
            snapshot: &snapshot,
            examples: &examples,
            query: named("QUERY").map(|(_, query)| query.as_ref()),
            output_limit: self.settings.output_limit,
        }))
    }

    fn capabilities(&self, request: &Request) -> Result<Response, Fault> {
        let root = self.settings.origin.root(request)?;
        let facts = capabilities::Facts {
            root: &root,
            settings: &self.settings,
            formats: &self.formats,
            jobs: &self.jobs,
            has_obscore: obscore::is_complete(&self.archive.snapshot()),
            upload_schemes: self.client.as_ref().map_or(&[], egress::Client::schemes),
        };
        Ok(xml(capabilities::document(&facts)))
    }

    /// VOSI 1.1 3.3.
    fn tables(&self, request: &Request) -> Result<Response, Fault> {
        let mut form = Form::default();
        form.add(request.query().unwrap_or_default())?;
        let detail = form.pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case("detail"));
        let detail = Detail::parse(detail.map(|(_, value)| value.as_ref()))?;
        let snapshot = self.archive.snapshot();
        let kept = self.kept(&snapshot);
        let (place, word) = match detail {
            Detail::Min => (&kept.least, "min"),
            Detail::Max => (&kept.most, "max"),
        };
        let document = place.get_or_init(|| {
            Document::new("text/xml", &self.tag(&snapshot, word), tables::document(&snapshot, detail))
        });
        Ok(document.answer(request, self.settings.compression))
    }

    /// VOSI 1.1 3.3: one table, or 404.
    fn table(&self, request: &Request, name: &str) -> Result<Response, Fault> {
        let name = table_name(name)?;
        let snapshot = self.archive.snapshot();
        let found = tables::find(&snapshot, &name)
            .ok_or_else(|| Fault::not_found(format!("there is no table {}", quoted(&name))))?;
        let tag = self.tag(&snapshot, "table");
        Ok(Document::new("text/xml", &tag, tables::one(found)).answer(request, self.settings.compression))
    }

    fn examples(&self, request: &Request) -> Result<Response, Fault> {
        let snapshot = self.archive.snapshot();
        let document = examples::document(&self.settings.title, &self.examples_of(&snapshot));
        let tag = self.tag(&snapshot, "examples");
        let document = Document::new("application/xhtml+xml", &tag, document);
        Ok(document.answer(request, self.settings.compression))
    }

    fn examples_of(&self, snapshot: &Snapshot) -> Vec<Example> {
        if self.examples.is_empty() { examples::made(snapshot) } else { self.examples.clone() }
    }

    /// The documents about this snapshot; those about the one before are let go.
    fn kept(&self, snapshot: &Snapshot) -> Arc<Kept> {
        let kept = self.kept.load_full();
        if kept.generation == snapshot.generation && kept.is_begun() {
            return kept;
        }
        let fresh = Arc::new(Kept { generation: snapshot.generation, ..Kept::default() });
        self.kept.store(Arc::clone(&fresh));
        fresh
    }

    /// Tells one state of a document from all others, those of the process before included.
    fn tag(&self, snapshot: &Snapshot, word: &str) -> String {
        format!("{:x}-{:x}-{word}", self.started_micros, snapshot.generation)
    }
}

impl Kept {
    fn is_begun(&self) -> bool {
        self.least.get().is_some() || self.most.get().is_some()
    }
}

/// The name of a table in a path.
fn table_name(raw: &str) -> Result<String, Fault> {
    let name = percent::segment(raw).filter(|name| name.len() <= limits::TABLE_NAME_BYTES_MAX);
    let name = name.ok_or_else(|| Fault::not_found("there is no such table"))?;
    Ok(name.trim_end_matches('/').to_owned())
}

/// A small document that is made for each request.
fn xml(document: String) -> Response {
    let mut response = Response::new(Body::full(document));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/xml"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(SERVER, HeaderValue::from_static(concat!("trifid/", env!("CARGO_PKG_VERSION"))));
    response
}

/// Answers OPTIONS: what the resource can do (RFC 9110 9.3.7).
fn options(allow: HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, allow);
    response
}

impl Face for ArchiveFace {
    fn call<'a>(&'a self, request: Request) -> Answer<'a> {
        Box::pin(self.answer(request))
    }

    fn problem(&self, problem: ShellProblem) -> Response {
        Fault::Shell(problem).into_response(&ErrorForm::default())
    }

    fn access(&self, head: &Parts) -> Access {
        let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
        match self.routes.get(method, head.uri.path()) {
            Outcome::Found(found) => match found.value {
                // VOSI 1.1 2: these two are for everybody.
                Operation::Capabilities | Operation::Availability => Access::Public,
                Operation::Page
                | Operation::Asset
                | Operation::Sync
                | Operation::Tables
                | Operation::Table
                | Operation::Examples
                | Operation::Cone
                // A job is a query too.
                | Operation::Uws(_) => Access::Needs(Role::Read),
            },
            Outcome::NotFound | Outcome::MethodNotAllowed { .. } => Access::of_method(&head.method),
        }
    }

    fn body_limit(&self, head: &Parts) -> Option<u64> {
        let media = head.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let is_multipart =
            media.get(..19).is_some_and(|start| start.eq_ignore_ascii_case("multipart/form-data"));
        is_multipart.then_some(self.settings.upload.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shell boxes the future of every request: what it copies is what this says.
    #[test]
    fn the_future_of_a_request_is_small() {
        fn size<F>(_: impl FnOnce(&'static ArchiveFace, Request) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = size(|face, request| face.answer(request));
        assert!(bytes <= 2048, "{bytes}");
    }
}
