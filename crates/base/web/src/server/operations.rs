//! The shell's own resources: `/q/health`, `/q/ready`, `/q/metrics`.
//!
//! Health and readiness are for probes, which carry no token: whoever asks learns the status. The details and
//! the metrics tell more than that, so where tokens are asked for they need one, and the metrics, which speak
//! of all tenants, one that covers them.

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};

use super::core::Core;
use super::shared::{Shared, Stage};
use crate::auth::{Role, TenantScope};
use crate::body::Body;
use crate::face::Response;
use crate::health::Readiness;
use crate::metrics::Exposition;
use crate::problem::ShellProblem;

const PREFIX: &str = "/q";

/// Whether a path is the shell's own.
pub(crate) fn covers(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request to one of them.
pub(crate) fn answer(core: &Core, head: &Parts) -> Result<Response, ShellProblem> {
    let path = head.uri.path();
    let resource = match path.strip_suffix('/').unwrap_or(path) {
        "/q/health" => health,
        "/q/ready" => ready,
        "/q/metrics" => metrics,
        _ => return Err(ShellProblem::NoSuchPath),
    };
    if head.method != Method::GET && head.method != Method::HEAD {
        return Err(ShellProblem::MethodNotAllowed { allow: "GET, HEAD" });
    }
    resource(core, head)
}

/// The state of the whole.
fn status(shared: &Shared) -> (&'static str, Vec<(&'static str, Readiness)>) {
    let sources: Vec<_> = shared.sources.iter().map(|source| (source.name(), source.readiness())).collect();
    let any = |wanted: fn(&Readiness) -> bool| sources.iter().any(|(_, readiness)| wanted(readiness));
    let status = if *shared.stage.borrow() != Stage::Serving {
        "draining"
    } else if any(|readiness| matches!(readiness, Readiness::Failed(_))) {
        "failed"
    } else if any(|readiness| matches!(readiness, Readiness::Starting(_))) {
        "starting"
    } else {
        "up"
    };
    (status, sources)
}

/// 200 while the process does what it should, starting included; 503 when it drains or has failed.
fn health(core: &Core, head: &Parts) -> Result<Response, ShellProblem> {
    let shared = &*core.shared;
    let (status, _) = status(shared);
    let code = match status {
        "up" | "starting" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut document = json!({ "status": status });
    if core.principal(&head.headers).is_ok()
        && let Some(members) = document.as_object_mut()
    {
        details(shared, members);
    }
    Ok(answer_json(code, &document))
}

fn details(shared: &Shared, document: &mut Map<String, Value>) {
    let sections = shared.sources.iter().map(|source| (source.name().to_owned(), source.section()));
    document.insert("doors".into(), Value::Object(sections.collect()));
    document.insert("uptime_s".into(), shared.started.elapsed().as_secs().into());
    document.insert("cores".into(), shared.resolved.cores.into());
    document.insert("connections".into(), shared.open().into());
    document.insert("limits".into(), limits(shared));
    document.insert("counters".into(), shared.stats.section());
}

fn limits(shared: &Shared) -> Value {
    let limits = &shared.resolved.limits;
    json!({
        "connections": limits.connections,
        "in_flight": limits.in_flight,
        "head_bytes": limits.head_bytes,
        "body_bytes": limits.body_bytes,
        "body_memory_bytes": limits.body_memory_bytes,
        "head_timeout_s": limits.head_timeout.as_secs_f64(),
        "body_timeout_s": limits.body_timeout.as_secs_f64(),
        "request_timeout_s": limits.request_timeout.as_secs_f64(),
        "idle_timeout_s": limits.idle_timeout.as_secs_f64(),
    })
}

/// 200 when requests can succeed, 503 with what is missing when they cannot.
fn ready(core: &Core, _: &Parts) -> Result<Response, ShellProblem> {
    let (status, sources) = status(&core.shared);
    let waiting: Map<String, Value> = sources
        .into_iter()
        .filter_map(|(name, readiness)| match readiness {
            Readiness::Ready => None,
            Readiness::Starting(what) | Readiness::Failed(what) => Some((name.to_owned(), what.into())),
        })
        .collect();
    let code = if status == "up" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(answer_json(code, &json!({ "ready": status == "up", "status": status, "waiting": waiting })))
}

fn metrics(core: &Core, head: &Parts) -> Result<Response, ShellProblem> {
    let principal = core.principal(&head.headers)?;
    if principal.tenant != TenantScope::Any {
        return Err(ShellProblem::TenantForbidden);
    }
    if principal.role < Role::Read {
        return Err(ShellProblem::RoleForbidden { needed: Role::Read });
    }
    let shared = &*core.shared;
    let mut out = Exposition::default();
    shared.stats.expose(&mut out);
    out.gauge("trifid_http_connections_open", "Connections open.", shared.open());
    out.gauge("trifid_uptime_seconds", "Seconds since the start.", shared.started.elapsed().as_secs());
    for source in &shared.sources {
        source.metrics(&mut out);
    }
    let mut response = Response::new(Body::full(out.into_text()));
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    Ok(response)
}

fn answer_json(code: StatusCode, document: &Value) -> Response {
    let mut response = Response::new(Body::full(document.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
