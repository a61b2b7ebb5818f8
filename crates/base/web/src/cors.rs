//! Cross-origin requests from browsers (the Fetch standard, 3.3), off unless origins are configured.
//!
//! The shell answers preflights itself, before authentication, because browsers send them without
//! credentials, and marks the answers that a page of an allowed origin may read. Tokens travel in a header that
//! the page sets, never in cookies, so credentials mode is not offered.

use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::body::Body;
use crate::face::Response;

/// An origin that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("http.cors_origins: `{0}` is neither `*` nor an origin such as https://example.org:8443")]
pub struct CorsError(String);

/// Who may read answers.
#[derive(Debug)]
pub(crate) struct Cors {
    any: bool,
    origins: Vec<HeaderValue>,
    max_age: HeaderValue,
}

const ANY: HeaderValue = HeaderValue::from_static("*");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

impl Cors {
    /// The policy of these origins; none is none.
    pub(crate) fn new(origins: &[String], max_age: Duration) -> Result<Option<Self>, CorsError> {
        if origins.is_empty() {
            return Ok(None);
        }
        let any = origins.iter().any(|origin| origin == "*");
        let named = origins.iter().filter(|origin| *origin != "*");
        let origins = named
            .map(|text| origin(text).ok_or_else(|| CorsError(text.clone())))
            .collect::<Result<_, _>>()?;
        Ok(Some(Self { any, origins, max_age: HeaderValue::from(max_age.as_secs()) }))
    }

    /// What to say to this request's origin: its own name, `*`, or nothing.
    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        if self.any {
            return Some(ANY);
        }
        // Origins are compared as serialized, byte by byte (Fetch, 4.10).
        self.origins.iter().find(|known| *known == origin).cloned()
    }

    /// Answers a preflight; other requests pass.
    pub(crate) fn preflight(&self, head: &Parts) -> Option<Response> {
        let asks = head.method == Method::OPTIONS
            && head.headers.contains_key(ORIGIN)
            && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        asks.then(|| {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            if self.allowed(&head.headers).is_some() {
                self.permit(&head.headers, response.headers_mut());
            }
            response
        })
    }

    fn permit(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.clone());
        // What the page wants to send, it may: the doors judge headers, not the browser.
        if let Some(names) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
    }

    /// What an answer to this request must say.
    pub(crate) fn mark(&self, request: &HeaderMap) -> Marks {
        Marks { allowed: self.allowed(request), vary: !self.any }
    }
}

/// What an answer must say to its origin.
#[derive(Debug)]
pub(crate) struct Marks {
    allowed: Option<HeaderValue>,
    vary: bool,
}

impl Marks {
    /// Writes it into the answer.
    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        if let Some(origin) = self.allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            // Requests come without credentials, so the wildcard is one.
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, ANY);
        }
        if self.vary {
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
    }
}

/// A serialized origin: scheme, host and, if need be, port; no path (RFC 6454 6.2).
fn origin(text: &str) -> Option<HeaderValue> {
    let uri: http::Uri = text.parse().ok()?;
    let bare = matches!(uri.path(), "" | "/") && uri.query().is_none() && !text.ends_with('/');
    let named = uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty());
    (bare && named && !text.contains('@')).then(|| HeaderValue::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        let origins: Vec<String> = origins.iter().map(|origin| (*origin).to_owned()).collect();
        Cors::new(&origins, Duration::from_secs(600)).unwrap().unwrap()
    }

    fn head(method: Method, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri("/x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn no_origins_is_no_cors() {
        assert!(Cors::new(&[], Duration::ZERO).unwrap().is_none());
    }

    #[test]
    fn only_origins_are_origins() {
        for (text, fits) in [
            ("https://example.org", true),
            ("http://localhost:3000", true),
            ("https://example.org/", false),
            ("https://example.org/app", false),
            ("example.org", false),
            ("https://user@example.org", false),
        ] {
            assert_eq!(origin(text).is_some(), fits, "{text}");
        }
    }

    #[test]
    fn a_preflight_of_an_allowed_origin_is_answered_with_permission() {
        let cors = cors(&["https://a.example"]);
        let preflight = |from: &str| {
            let asked = [
                ("origin", from),
                ("access-control-request-method", "PATCH"),
                ("access-control-request-headers", "authorization, link"),
            ];
            cors.preflight(&head(Method::OPTIONS, &asked)).unwrap()
        };
        let allowed = preflight("https://a.example");
        assert_eq!(allowed.status(), 204);
        assert_eq!(allowed.headers()["access-control-allow-headers"], "authorization, link");
        assert!(allowed.headers()["access-control-allow-methods"].to_str().unwrap().contains("PATCH"));
        assert!(preflight("https://b.example").headers().is_empty());
    }

    #[test]
    fn an_options_request_that_is_no_preflight_passes() {
        let cors = cors(&["*"]);
        assert!(cors.preflight(&head(Method::OPTIONS, &[])).is_none());
        assert!(cors.preflight(&head(Method::OPTIONS, &[("origin", "https://a.example")])).is_none());
    }

    #[test]
    fn answers_are_marked_for_their_origin_alone() {
        let mark = |cors: &Cors, from: &str| {
            let mut headers = HeaderMap::new();
            cors.mark(&head(Method::GET, &[("origin", from)]).headers).apply(&mut headers);
            (headers.get("access-control-allow-origin").cloned(), headers.contains_key("vary"))
        };
        let named = cors(&["https://a.example", "https://b.example"]);
        assert_eq!(
            mark(&named, "https://b.example"),
            (Some(HeaderValue::from_static("https://b.example")), true)
        );
        assert_eq!(mark(&named, "https://c.example"), (None, true));
        assert_eq!(mark(&cors(&["*"]), "https://c.example"), (Some(ANY), false));
    }
}
