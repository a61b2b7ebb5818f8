//! Refusals: what went wrong, as types, and their form on the wire (6.3.2).
//!
//! Most refusals carry a problem document (RFC 9457) whose `type` is one of the standard's error URIs and whose
//! `detail` names the member, parameter or position that is wrong. A few are bare status codes, because
//! 6.3.2 and 6.3.4 want no body. Bodies are always `application/json`, whatever the client accepts.

use std::borrow::Cow;

use http::{HeaderValue, StatusCode};
use trifid_context_engine::{self as engine, contexts};
use trifid_context_model::{json, query};

use crate::media::Media;

/// The error types of Table 6.3.2-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    InvalidRequest,
    BadRequestData,
    AlreadyExists,
    OperationNotSupported,
    ResourceNotFound,
    NonexistentTenant,
    LdContextNotAvailable,
    TooComplexQuery,
    TooManyResults,
    InternalError,
}

impl Kind {
    /// Status, `type` and `title`.
    fn row(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Kind::InvalidRequest => {
                (S::BAD_REQUEST, "https://uri.etsi.org/ngsi-ld/errors/InvalidRequest", "Invalid request")
            }
            Kind::BadRequestData => {
                (S::BAD_REQUEST, "https://uri.etsi.org/ngsi-ld/errors/BadRequestData", "Bad request data")
            }
            Kind::AlreadyExists => {
                (S::CONFLICT, "https://uri.etsi.org/ngsi-ld/errors/AlreadyExists", "Already exists")
            }
            Kind::OperationNotSupported => (
                S::UNPROCESSABLE_ENTITY,
                "https://uri.etsi.org/ngsi-ld/errors/OperationNotSupported",
                "Operation not supported",
            ),
            Kind::ResourceNotFound => {
                (S::NOT_FOUND, "https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound", "Resource not found")
            }
            Kind::NonexistentTenant => {
                (S::NOT_FOUND, "https://uri.etsi.org/ngsi-ld/errors/NonexistentTenant", "No such tenant")
            }
            Kind::LdContextNotAvailable => (
                S::GATEWAY_TIMEOUT,
                "https://uri.etsi.org/ngsi-ld/errors/LdContextNotAvailable",
                "JSON-LD context not available",
            ),
            Kind::TooComplexQuery => {
                (S::FORBIDDEN, "https://uri.etsi.org/ngsi-ld/errors/TooComplexQuery", "Query too complex")
            }
            Kind::TooManyResults => {
                (S::FORBIDDEN, "https://uri.etsi.org/ngsi-ld/errors/TooManyResults", "Too many results")
            }
            Kind::InternalError => (
                S::INTERNAL_SERVER_ERROR,
                "https://uri.etsi.org/ngsi-ld/errors/InternalError",
                "Internal error",
            ),
        }
    }
}

/// One problem document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) detail: Cow<'static, str>,
}

impl Problem {
    /// A problem with its detail.
    pub(crate) fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Problem { kind, detail: detail.into() }
    }

    /// The status code.
    pub(crate) fn status(&self) -> StatusCode {
        self.kind.row().0
    }

    /// Appends the document; also the form of `error` in a batch's answer (5.2.17).
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let (status, uri, title) = self.kind.row();
        write_document(out, uri, title, status, &self.detail);
        out.push(b'}');
    }
}

/// Everything but the closing brace, so that members can follow.
pub(crate) fn write_document(out: &mut Vec<u8>, uri: &str, title: &str, status: StatusCode, detail: &str) {
    out.extend_from_slice(b"{\"type\":");
    json::write_string(out, uri);
    out.extend_from_slice(b",\"title\":");
    json::write_string(out, title);
    out.extend_from_slice(b",\"status\":");
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b",\"detail\":");
    // A detail is never equal to its title and never empty: it is for a person.
    json::write_string(out, if detail.is_empty() { "no further detail is known" } else { detail });
}

/// Every way in which a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A problem document.
    Problem(Problem),
    /// A status code and nothing else (6.3.2, 6.3.4).
    Bare(StatusCode),
    /// 405 with the methods that the resource has.
    MethodNotAllowed(HeaderValue),
    /// 406 with the representations that it has (6.3.4).
    NotAcceptable(&'static [Media]),
    /// 503: this much work is in hand already.
    Overloaded { retry_after_s: u32 },
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Refusal::Problem(problem)
    }
}

impl Refusal {
    /// The refusal as a document, for the answer to a batch.
    pub(crate) fn problem(&self) -> Problem {
        match self {
            Refusal::Problem(problem) => problem.clone(),
            Refusal::Overloaded { .. } => Problem::new(Kind::InternalError, BUSY),
            Refusal::Bare(status) => Problem::new(Kind::InvalidRequest, status.to_string()),
            Refusal::MethodNotAllowed(_) => Problem::new(Kind::InvalidRequest, "the method is not allowed"),
            Refusal::NotAcceptable(_) => {
                Problem::new(Kind::InvalidRequest, "no representation is acceptable")
            }
        }
    }
}

/// What an overloaded broker says.
pub(crate) const BUSY: &str = "as much work as can be done is in hand already; try again later";

/// The one table from what the engine refuses to what HTTP answers (6.3.2).
impl From<engine::Error> for Refusal {
    fn from(error: engine::Error) -> Self {
        use engine::Error as E;
        let (kind, detail) = match error {
            E::InvalidRequest(detail) => (Kind::InvalidRequest, detail),
            E::BadRequestData(detail) => (Kind::BadRequestData, detail),
            E::AlreadyExists(detail) => (Kind::AlreadyExists, detail),
            E::ResourceNotFound(detail) => (Kind::ResourceNotFound, detail),
            E::OperationNotSupported(detail) => (Kind::OperationNotSupported, detail),
            E::LdContextNotAvailable(detail) => (Kind::LdContextNotAvailable, detail),
            E::TooComplexQuery(detail) => (Kind::TooComplexQuery, detail),
            E::TooManyResults(detail) => (Kind::TooManyResults, detail),
            E::NonexistentTenant => (Kind::NonexistentTenant, error.to_string()),
            E::Overloaded { retry_after_s } => return Refusal::Overloaded { retry_after_s },
            E::Internal(detail) => {
                // What went wrong inside is for the operator's eyes: the log has it, the client does not.
                tracing::error!(%detail, "a request failed for a reason of the broker's own");
                (Kind::InternalError, "the request failed for a reason of the broker's own".to_owned())
            }
        };
        Problem::new(kind, detail).into()
    }
}

impl From<contexts::Error> for Refusal {
    fn from(error: contexts::Error) -> Self {
        use contexts::Problem as P;
        let kind = match error.problem() {
            P::InvalidRequest => Kind::InvalidRequest,
            P::BadRequestData => Kind::BadRequestData,
            P::LdContextNotAvailable => Kind::LdContextNotAvailable,
            P::ResourceNotFound => Kind::ResourceNotFound,
            P::OperationNotSupported => Kind::OperationNotSupported,
            P::InternalError => Kind::InternalError,
        };
        Problem::new(kind, error.to_string()).into()
    }
}

impl From<json::Error> for Refusal {
    fn from(error: json::Error) -> Self {
        invalid(format!("the body is not valid JSON: {error}"))
    }
}

impl From<query::Error> for Refusal {
    fn from(error: query::Error) -> Self {
        let kind = match error.problem() {
            query::Problem::BadRequestData => Kind::BadRequestData,
            query::Problem::TooComplexQuery => Kind::TooComplexQuery,
        };
        Problem::new(kind, error.to_string()).into()
    }
}

/// 400 BadRequestData with this detail.
pub(crate) fn bad_data(detail: impl Into<Cow<'static, str>>) -> Refusal {
    Problem::new(Kind::BadRequestData, detail).into()
}

/// 400 InvalidRequest with this detail.
pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>) -> Refusal {
    Problem::new(Kind::InvalidRequest, detail).into()
}

/// 404 ResourceNotFound with this detail.
pub(crate) fn not_found(detail: impl Into<Cow<'static, str>>) -> Refusal {
    Problem::new(Kind::ResourceNotFound, detail).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 10] = [
        Kind::InvalidRequest,
        Kind::BadRequestData,
        Kind::AlreadyExists,
        Kind::OperationNotSupported,
        Kind::ResourceNotFound,
        Kind::NonexistentTenant,
        Kind::LdContextNotAvailable,
        Kind::TooComplexQuery,
        Kind::TooManyResults,
        Kind::InternalError,
    ];

    #[test]
    fn a_problem_names_its_kind_by_the_standards_uri() {
        for kind in KINDS {
            let (_, uri, title) = kind.row();
            assert_eq!(uri, format!("https://uri.etsi.org/ngsi-ld/errors/{kind:?}"));
            assert!(!title.is_empty());
        }
    }

    #[test]
    fn a_document_is_json_whatever_the_detail_says() {
        let mut out = Vec::new();
        Problem::new(Kind::InvalidRequest, "a \"quoted\" \u{1} thing").write(&mut out);
        let doc = json::Doc::parse(&out).unwrap();
        assert!(doc.root().get("type").unwrap().is_str("https://uri.etsi.org/ngsi-ld/errors/InvalidRequest"));
        assert_eq!(doc.root().get("status").unwrap().as_f64(), Some(400.0));
        assert!(doc.root().get("detail").unwrap().is_str("a \"quoted\" \u{1} thing"));
    }
}
