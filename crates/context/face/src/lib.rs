//! The HTTP binding of NGSI-LD (clause 6): protocol bytes in, engine calls, protocol bytes out.
//!
//! ```text
//! request -> route -> resources/* -> engine         refused anywhere on the way: problem
//!              |         |
//!              |         params, media, link, prefer, select, present    (what the request says)
//!              |         exchange                                        (where each of it is checked)
//!              reply                                                     (heads of answers)
//! ```
//!
//! No rule of the broker is here: what an operation means, the engine says; how entities are read and
//! written, the model says. What is here is clause 6: which parameter a resource takes, which media type, where the
//! `@context` stands, which status and which headers an outcome has.
//!
//! An entity costs no allocation on its way out: records are rendered into one buffer that begins with the size
//! of the answer before. Heads reuse the request's header map.

mod answering;
mod conformance;
mod exchange;
pub mod fuzz;
mod limits;
mod link;
mod linked;
mod media;
mod paging;
mod params;
mod percent;
mod prefer;
mod present;
mod problem;
mod reply;
mod resources;
mod route;
mod select;
mod settings;
mod write;

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use trifid_base_web::router::Outcome;
use trifid_base_web::{Access, Answer, Face, Request, Response, Role, Router, ShellProblem};
use trifid_context_engine::contexts::Contexts;
use trifid_context_engine::{Broker, TenantName};
use trifid_context_model::time::Instant;

use exchange::Exchange;
use problem::{Refusal, bad_data};
use reply::{Reply, SNAPSHOT, TENANT};
use route::Operation;
pub use settings::{Options, OptionsError, Resolved};

/// The path prefix under which the face is mounted (6.2).
pub const ROOT: &str = route::ROOT;

/// The context door's HTTP face.
#[derive(Debug)]
pub struct ContextFace {
    broker: Arc<Broker>,
    contexts: Contexts,
    settings: Resolved,
    routes: Router<Operation>,
    started: Instant,
    /// The `Link` header that names the core context.
    core_link: Option<HeaderValue>,
}

impl ContextFace {
    /// A face over `broker`, resolving contexts through `contexts`.
    pub fn new(broker: Arc<Broker>, contexts: Contexts, settings: Resolved) -> Self {
        let routes = route::table().expect("the table of routes does not contradict itself");
        let started = broker.now();
        let core_link = contexts.core(started).link().and_then(link::to_context);
        ContextFace { broker, contexts, settings, routes, started, core_link }
    }

    async fn answer(&self, mut request: Request) -> Response {
        let tenant = request.headers.get(TENANT).cloned();
        let result = self.dispatch(&request).await;
        let headers = std::mem::take(&mut request.headers);
        match result {
            Ok(Outgoing::Reply(reply)) => reply.into_response(headers, tenant),
            Ok(Outgoing::Options(allow)) => reply::options(allow, headers, tenant),
            Err(refusal) => refusal.into_response(headers, tenant),
        }
    }

    async fn dispatch(&self, request: &Request) -> Result<Outgoing, Refusal> {
        // HEAD is GET whose body the shell leaves out (RFC 9110 9.3.2).
        let method = if request.method == Method::HEAD { &Method::GET } else { &request.method };
        let found = match self.routes.get(method, request.path()) {
            Outcome::Found(found) => found,
            Outcome::NotFound => return Err(problem::not_found("there is no such resource")),
            Outcome::MethodNotAllowed { allow } if request.method == Method::OPTIONS => {
                return Ok(Outgoing::Options(allow.clone()));
            }
            Outcome::MethodNotAllowed { .. } if route::lacks_entity_id(method, request.path()) => {
                return Err(bad_data("the entity id is missing in the path"));
            }
            Outcome::MethodNotAllowed { allow } => return Err(Refusal::MethodNotAllowed(allow.clone())),
        };
        if !exchange::states_length(request) {
            return Err(Refusal::Bare(StatusCode::LENGTH_REQUIRED));
        }
        let tenant = tenant_of(&request.headers)?;
        if request.headers.contains_key(SNAPSHOT) {
            // 6.3.22: live data is no answer to a question about a snapshot, and this broker holds none.
            return Err(problem::not_found("there is no such snapshot"));
        }
        let exchange = Exchange {
            broker: &self.broker,
            contexts: &self.contexts,
            settings: &self.settings,
            core_link: self.core_link.as_ref(),
            request,
            tenant: &tenant,
            now: self.broker.now(),
            started: self.started,
            id: exchange::segment(found.params.get(route::ID), "identifier")?,
            attribute: exchange::segment(found.params.get(route::ATTR), "attribute")?,
        };
        resources::run(*found.value, &exchange).await.map(Outgoing::Reply)
    }
}

/// What a request is answered with when it is not refused.
enum Outgoing {
    Reply(Reply),
    Options(HeaderValue),
}

/// The tenant that a request addresses (6.3.14).
fn tenant_of(headers: &HeaderMap) -> Result<TenantName, Refusal> {
    let mut values = headers.get_all(TENANT).iter();
    let Some(value) = values.next() else { return Ok(TenantName::default_tenant()) };
    if values.next().is_some() {
        return Err(bad_data("header `NGSILD-Tenant` is there twice"));
    }
    let refused = |error| bad_data(format!("header `NGSILD-Tenant`: {error}"));
    TenantName::parse(value.to_str().unwrap_or_default()).map_err(refused)
}

impl Face for ContextFace {
    fn call<'a>(&'a self, request: Request) -> Answer<'a> {
        Box::pin(self.answer(request))
    }

    fn problem(&self, problem: ShellProblem) -> Response {
        reply::of_shell(&problem)
    }

    fn access(&self, head: &Parts) -> Access {
        match self.routes.get(&head.method, head.uri.path()) {
            Outcome::Found(found) if found.value.is_reading() => Access::Needs(Role::Read),
            Outcome::Found(_) | Outcome::NotFound | Outcome::MethodNotAllowed { .. } => {
                Access::of_method(&head.method)
            }
        }
    }

    fn tenant<'r>(&self, head: &'r Parts) -> &'r str {
        head.headers.get(TENANT).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
