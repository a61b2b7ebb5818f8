//! The shell's own refusals, as types.
//!
//! Each way in which the shell can refuse a request is one variant with a fixed status. A door words them in
//! its own protocol's form ([`Face::problem`](crate::Face::problem)); requests under no door get the generic
//! problem document of RFC 9457. Headers that HTTP demands with a status are set by the shell either way.
//!
//! What is refused before there is a request has no door and no body: 400, 414 and 431 for a malformed or too large
//! head, 408 for one that does not arrive, 503 for a connection over the limit.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::auth::Role;
use crate::body::Body;
use crate::face::Response;

/// One refusal of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellProblem {
    /// 400: the body's framing broke, or the client stopped in the middle of it.
    BadBody,
    /// 400: an HTTP/1.1 request without a `Host` field or with several (RFC 9112 3.2).
    BadHost,
    /// 401: no token, or none that is known (RFC 6750 3).
    Unauthenticated {
        /// Whether a token was presented at all.
        presented: bool,
    },
    /// 403: the token's role does not reach.
    RoleForbidden {
        /// The role that the request needs.
        needed: Role,
    },
    /// 403: the token belongs to another tenant.
    TenantForbidden,
    /// 404: no door answers under this path.
    NoSuchPath,
    /// 405: the path is the shell's own and takes other methods.
    MethodNotAllowed {
        /// The methods that it takes.
        allow: &'static str,
    },
    /// 408: the body did not arrive in time.
    BodyTimeout,
    /// 413: the body is larger than the limit.
    BodyTooLarge {
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// 500: the door failed to answer; the log says why, under the request's id.
    Internal,
    /// 503: the core is full and this tenant has its share.
    Saturated {
        /// When to try again, in seconds.
        retry_after_s: u32,
    },
    /// 503: bodies that are still being received fill the memory set aside for them.
    BodyMemoryFull {
        /// When to try again, in seconds.
        retry_after_s: u32,
    },
    /// 503: the door did not answer in time.
    RequestTimeout {
        /// When to try again, in seconds.
        retry_after_s: u32,
    },
}

impl ShellProblem {
    /// The status code of this refusal.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::BadBody | Self::BadHost => StatusCode::BAD_REQUEST,
            Self::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
            Self::RoleForbidden { .. } | Self::TenantForbidden => StatusCode::FORBIDDEN,
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Saturated { .. } | Self::BodyMemoryFull { .. } | Self::RequestTimeout { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// A short title, the same for every occurrence.
    pub fn title(&self) -> &'static str {
        match self {
            Self::BadBody => "Broken body",
            Self::BadHost => "Host missing or repeated",
            Self::Unauthenticated { .. } => "Authentication needed",
            Self::RoleForbidden { .. } => "Role not sufficient",
            Self::TenantForbidden => "Tenant not covered by the token",
            Self::NoSuchPath => "No such path",
            Self::MethodNotAllowed { .. } => "Method not allowed",
            Self::BodyTimeout => "Body not received in time",
            Self::BodyTooLarge { .. } => "Body too large",
            Self::Internal => "Internal error",
            Self::Saturated { .. } => "Tenant over its share",
            Self::BodyMemoryFull { .. } => "Too many bodies at once",
            Self::RequestTimeout { .. } => "Not answered in time",
        }
    }

    /// One sentence that a person can act on.
    pub fn detail(&self) -> String {
        match self {
            Self::BadBody => {
                "The body ended before its announced length, or its chunks are malformed.".into()
            }
            Self::BadHost => "A request of HTTP/1.1 carries exactly one `Host` field (RFC 9112 3.2).".into(),
            Self::Unauthenticated { presented: false } => {
                "Send a token in the header `Authorization: Bearer ...`.".into()
            }
            Self::Unauthenticated { presented: true } => "The bearer token is not known here.".into(),
            Self::RoleForbidden { needed } => format!("This request needs a token with the role `{needed}`."),
            Self::TenantForbidden => "The token belongs to another tenant than the request names.".into(),
            Self::NoSuchPath => "No door of this server answers under this path.".into(),
            Self::MethodNotAllowed { allow } => format!("This path takes {allow} only."),
            Self::BodyTimeout => "The body was not received within the time limit.".into(),
            Self::BodyTooLarge { limit_bytes } => {
                format!("The body is larger than the limit of {limit_bytes} bytes.")
            }
            Self::Internal => "The request failed for a reason of the server's own.".into(),
            Self::Saturated { .. } => {
                "The server is full and this tenant already has its share of it; try again later.".into()
            }
            Self::BodyMemoryFull { .. } => {
                "The memory for bodies that are being received is used up; try again later.".into()
            }
            Self::RequestTimeout { .. } => "The request was not answered within the time limit.".into(),
        }
    }

    /// Sets what HTTP demands beside the status: RFC 9110 11.6.1, 15.5.6 and 10.2.3; RFC 6750 3.
    pub(crate) fn decorate(&self, response: &mut Response) {
        let (name, value) = match self {
            Self::Unauthenticated { presented: false } => {
                (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"trifid\""))
            }
            Self::Unauthenticated { presented: true } => (
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"trifid\", error=\"invalid_token\""),
            ),
            Self::RoleForbidden { .. } => (
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"trifid\", error=\"insufficient_scope\""),
            ),
            Self::MethodNotAllowed { allow } => (ALLOW, HeaderValue::from_static(allow)),
            Self::Saturated { retry_after_s }
            | Self::BodyMemoryFull { retry_after_s }
            | Self::RequestTimeout { retry_after_s } => (RETRY_AFTER, HeaderValue::from(*retry_after_s)),
            Self::BadBody
            | Self::BadHost
            | Self::TenantForbidden
            | Self::NoSuchPath
            | Self::BodyTimeout
            | Self::BodyTooLarge { .. }
            | Self::Internal => return,
        };
        response.headers_mut().insert(name, value);
    }

    /// The generic problem document (RFC 9457), for a door without a form of its own.
    pub fn to_response(&self) -> Response {
        let document = Document {
            r#type: "about:blank",
            title: self.title(),
            status: self.status().as_u16(),
            detail: self.detail(),
        };
        let body = serde_json::to_vec(&document).map(Bytes::from).unwrap_or_default();
        let mut response = Response::new(Body::full(body));
        *response.status_mut() = self.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

#[derive(Serialize)]
struct Document {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generic_document_carries_its_own_status() {
        let problem = ShellProblem::BodyTooLarge { limit_bytes: 5 };
        let response = problem.to_response();
        assert_eq!(response.status(), 413);
        let body: serde_json::Value = serde_json::from_slice(response.body().bytes().unwrap()).unwrap();
        assert_eq!(body["status"], 413);
        assert!(body["detail"].as_str().unwrap().contains("5 bytes"));
    }

    #[test]
    fn statuses_that_demand_a_header_get_it() {
        let check = |problem: ShellProblem, name: &str, part: &str| {
            let mut response = problem.to_response();
            problem.decorate(&mut response);
            let value = response.headers()[name].to_str().unwrap();
            assert!(value.contains(part), "{problem:?}: {value}");
        };
        check(ShellProblem::Unauthenticated { presented: false }, "www-authenticate", "Bearer");
        check(ShellProblem::Unauthenticated { presented: true }, "www-authenticate", "invalid_token");
        check(ShellProblem::RoleForbidden { needed: Role::Write }, "www-authenticate", "insufficient_scope");
        check(ShellProblem::Saturated { retry_after_s: 2 }, "retry-after", "2");
        check(ShellProblem::MethodNotAllowed { allow: "GET, HEAD" }, "allow", "GET, HEAD");
    }
}
