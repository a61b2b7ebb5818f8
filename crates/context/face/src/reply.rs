//! Answers: status, body and the few headers that this binding sets, put together in one place.
//!
//! The header map of the request is cleared and used again, and names that are always the same are static, so
//! a head costs no allocation of its own.

use http::header::{ALLOW, CONTENT_TYPE, HeaderName, LINK, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use trifid_base_web::{Body, Response, ShellProblem};

use crate::media::Media;
use crate::percent::{self, Place};
use crate::problem::{BUSY, Kind, Problem, Refusal, write_document};
use crate::route::ROOT;

/// The tenant that a request addresses, echoed in every answer (6.3.14).
pub(crate) const TENANT: HeaderName = HeaderName::from_static("ngsild-tenant");
/// The snapshot that a request is about (6.3.22).
pub(crate) const SNAPSHOT: HeaderName = HeaderName::from_static("ngsild-snapshot");
const RESULTS_COUNT: HeaderName = HeaderName::from_static("ngsild-results-count");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// A successful answer.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    /// The body's media type; none without a body.
    pub(crate) media: Option<Media>,
    /// The links to the JSON-LD context (6.3.5) and to the neighbouring pages (6.3.10).
    pub(crate) link: Option<HeaderValue>,
    /// Where the new resource is.
    pub(crate) location: Option<HeaderValue>,
    /// How many elements match (6.3.13).
    pub(crate) count: Option<usize>,
    /// The preference that was followed (6.3.6).
    pub(crate) applied: Option<HeaderValue>,
}

impl Reply {
    /// 204.
    pub(crate) fn no_content() -> Self {
        Reply { status: StatusCode::NO_CONTENT, ..Reply::default() }
    }

    /// 201 for a new resource under `collection`.
    pub(crate) fn created(collection: &str, id: &str) -> Self {
        let mut location = Vec::with_capacity(ROOT.len() + collection.len() + id.len() + 2);
        location.extend_from_slice(ROOT.as_bytes());
        location.extend_from_slice(collection.as_bytes());
        percent::encode(&mut location, id, Place::Segment);
        let location = HeaderValue::try_from(location).expect("encoding leaves visible ASCII alone");
        Reply { status: StatusCode::CREATED, location: Some(location), ..Reply::default() }
    }

    /// A body that is JSON whatever the client accepts: lists of ids, results of batches.
    pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Self {
        Reply { status, body, media: Some(Media::Json), ..Reply::default() }
    }

    /// Puts the answer together; `headers` is the request's map, `tenant` what it said of the tenant.
    pub(crate) fn into_response(self, headers: HeaderMap, tenant: Option<HeaderValue>) -> Response {
        let mut headers = recycled(headers, tenant);
        let media = self.media.map(|media| (CONTENT_TYPE, media.header()));
        let count = self.count.map(|count| (RESULTS_COUNT, HeaderValue::from(count)));
        let location = self.location.map(|value| (LOCATION, value));
        let applied = self.applied.map(|value| (PREFERENCE_APPLIED, value));
        let link = self.link.map(|value| (LINK, value));
        for (name, value) in [media, link, count, location, applied].into_iter().flatten() {
            headers.insert(name, value);
        }
        assemble(self.status, headers, self.body)
    }
}

impl Refusal {
    /// The refusal's form on the wire.
    pub(crate) fn into_response(self, headers: HeaderMap, tenant: Option<HeaderValue>) -> Response {
        let mut headers = recycled(headers, tenant);
        let (status, body) = match self {
            Refusal::Problem(problem) => {
                let mut body = Vec::with_capacity(256);
                problem.write(&mut body);
                (problem.status(), body)
            }
            Refusal::Bare(status) => (status, Vec::new()),
            Refusal::MethodNotAllowed(allow) => {
                headers.insert(ALLOW, allow);
                (StatusCode::METHOD_NOT_ALLOWED, Vec::new())
            }
            Refusal::NotAcceptable(offered) => (StatusCode::NOT_ACCEPTABLE, not_acceptable(offered)),
            Refusal::Overloaded { retry_after_s } => {
                headers.insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
                (StatusCode::SERVICE_UNAVAILABLE, generic(StatusCode::SERVICE_UNAVAILABLE, BUSY))
            }
        };
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, Media::Json.header());
        }
        assemble(status, headers, body)
    }
}

/// Answers OPTIONS: what the resource can do (RFC 9110 9.3.7).
pub(crate) fn options(allow: HeaderValue, headers: HeaderMap, tenant: Option<HeaderValue>) -> Response {
    let mut headers = recycled(headers, tenant);
    headers.insert(ALLOW, allow);
    assemble(StatusCode::NO_CONTENT, headers, Vec::new())
}

/// Words a refusal of the shell (6.3.2): what the standard wants bare is bare, the rest is a problem document.
pub(crate) fn of_shell(problem: &ShellProblem) -> Response {
    let status = problem.status();
    let refusal = match problem {
        ShellProblem::BadBody | ShellProblem::BadHost => crate::problem::invalid(problem.detail()),
        ShellProblem::Internal => Problem::new(Kind::InternalError, problem.detail()).into(),
        ShellProblem::NoSuchPath => crate::problem::not_found(problem.detail()),
        ShellProblem::MethodNotAllowed { .. } | ShellProblem::BodyTooLarge { .. } => Refusal::Bare(status),
        ShellProblem::Unauthenticated { .. }
        | ShellProblem::RoleForbidden { .. }
        | ShellProblem::TenantForbidden
        | ShellProblem::BodyTimeout
        | ShellProblem::Saturated { .. }
        | ShellProblem::BodyMemoryFull { .. }
        | ShellProblem::RequestTimeout { .. } => {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, Media::Json.header())]);
            return assemble(status, headers, generic(status, &problem.detail()));
        }
    };
    refusal.into_response(HeaderMap::new(), None)
}

/// A problem for which the standard has no type (RFC 9457 4.2.1).
fn generic(status: StatusCode, detail: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(192);
    write_document(&mut body, "about:blank", status.canonical_reason().unwrap_or("Refused"), status, detail);
    body.push(b'}');
    body
}

/// 6.3.4: the body tells which representations there are.
fn not_acceptable(offered: &[Media]) -> Vec<u8> {
    let status = StatusCode::NOT_ACCEPTABLE;
    let detail = "the header `Accept` allows none of the representations of this resource";
    let mut body = Vec::with_capacity(256);
    write_document(&mut body, "about:blank", "Not acceptable", status, detail);
    body.extend_from_slice(b",\"representations\":[");
    for (at, media) in offered.iter().enumerate() {
        let parts = [if at == 0 { "\"" } else { ",\"" }, media.name(), "\""];
        parts.iter().for_each(|part| body.extend_from_slice(part.as_bytes()));
    }
    body.extend_from_slice(b"]}");
    body
}

fn recycled(mut headers: HeaderMap, tenant: Option<HeaderValue>) -> HeaderMap {
    headers.clear();
    if let Some(tenant) = tenant {
        headers.insert(TENANT, tenant);
    }
    headers
}

fn assemble(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::ENTITY_MEDIA;
    use crate::problem::bad_data;

    fn request_headers() -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/plain"))])
    }

    #[test]
    fn a_reply_carries_its_headers_and_none_of_the_requests() {
        let mut reply = Reply::json(StatusCode::OK, b"[]".to_vec());
        reply.link = Some(HeaderValue::from_static("<c>"));
        reply.count = Some(7);
        let tenant = Some(HeaderValue::from_static("t1"));
        let response = reply.into_response(request_headers(), tenant);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(response.headers()["NGSILD-Results-Count"], "7");
        assert_eq!(response.headers()["NGSILD-Tenant"], "t1");
        assert_eq!(response.headers()[LINK], "<c>");
    }

    #[test]
    fn a_created_resource_is_where_it_says() {
        let response = Reply::created("/entities/", "urn:a/b c").into_response(request_headers(), None);
        assert_eq!(response.status(), 201);
        assert_eq!(response.headers()[LOCATION], "/ngsi-ld/v1/entities/urn:a%2Fb%20c");
        assert!(response.headers().get(CONTENT_TYPE).is_none());
    }

    #[test]
    fn refusals_take_their_form() {
        let check = |refusal: Refusal, status: u16, body: &str| {
            let response = refusal.into_response(request_headers(), None);
            assert_eq!(response.status(), status);
            let text = std::str::from_utf8(response.body().bytes().unwrap()).unwrap().to_owned();
            assert!(if body.is_empty() { text.is_empty() } else { text.contains(body) }, "{text}");
            assert_eq!(response.headers().contains_key(CONTENT_TYPE), !body.is_empty());
            response
        };
        check(bad_data("x is wrong"), 400, "\"detail\":\"x is wrong\"");
        check(Refusal::Bare(StatusCode::LENGTH_REQUIRED), 411, "");
        let response = check(Refusal::MethodNotAllowed(HeaderValue::from_static("GET")), 405, "");
        assert_eq!(response.headers()[ALLOW], "GET");
        let json =
            "\"representations\":[\"application/json\",\"application/ld+json\",\"application/geo+json\"]";
        check(Refusal::NotAcceptable(ENTITY_MEDIA), 406, json);
        let response = check(Refusal::Overloaded { retry_after_s: 3 }, 503, "try again later");
        assert_eq!(response.headers()[RETRY_AFTER], "3");
    }
}
