//! A door's HTTP face, as the shell mounts it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Method;
use http::request::Parts;

use crate::auth::Role;
use crate::body::Body;
use crate::problem::ShellProblem;
use crate::request::Request;

/// What a door answers.
pub type Response = http::Response<Body>;

/// An answer that is on its way. It stays on its core, so it need not be `Send`.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Response> + 'a>>;

/// A door's HTTP face: protocol bytes in, protocol bytes out, mounted under a path prefix.
///
/// Every core calls the same face, each from its own single-threaded runtime. The answer's future is dropped
/// at an await point when its client goes away or the request's time is over, so whatever must not be half
/// done belongs into the engine, behind one call.
pub trait Face: Send + Sync + 'static {
    /// Answers one request.
    fn call<'a>(&'a self, request: Request) -> Answer<'a>;

    /// Words one of the shell's own refusals in the form that this door's protocol demands. The shell sets
    /// `WWW-Authenticate`, `Retry-After` and `Allow` itself; status and body are the door's.
    fn problem(&self, problem: ShellProblem) -> Response;

    /// What a caller must be allowed in order to send this request. Without tokens nobody asks.
    fn access(&self, head: &Parts) -> Access {
        Access::of_method(&head.method)
    }

    /// The tenant that the request names; the empty string is the default tenant. The shell admits by it and
    /// refuses a token of another tenant; whether the name is well formed and known is the door's business.
    fn tenant<'r>(&self, head: &'r Parts) -> &'r str {
        let _ = head;
        ""
    }

    /// The largest body that this request may have, in bytes, where it is not `http.body_limit`: a door that takes
    /// files says so for the resources that do. What all bodies may take together stays as it is.
    fn body_limit(&self, head: &Parts) -> Option<u64> {
        let _ = head;
        None
    }
}

/// What a request needs its caller to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody may ask, with or without a token.
    Public,
    /// A token of this role, or a higher one.
    Needs(Role),
}

impl Access {
    /// Reading needs the role `read`, everything else the role `write`. Safe methods read (RFC 9110 9.2.1).
    pub fn of_method(method: &Method) -> Self {
        Self::Needs(if method.is_safe() { Role::Read } else { Role::Write })
    }
}

/// A face and the path prefix under which it answers.
#[derive(Clone)]
pub struct Mount {
    pub(crate) prefix: String,
    pub(crate) face: Arc<dyn Face>,
}

impl Mount {
    /// Mounts `face` under `prefix`, such as `/ngsi-ld/v1`. The face still sees the whole path.
    pub fn new(prefix: impl Into<String>, face: Arc<dyn Face>) -> Self {
        let mut prefix = prefix.into();
        while prefix.ends_with('/') {
            prefix.pop();
        }
        Self { prefix, face }
    }

    /// Whether `path` lies under this mount, on a segment's boundary.
    pub(crate) fn covers(&self, path: &str) -> bool {
        path.strip_prefix(self.prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mount").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Face for Nothing {
        fn call<'a>(&'a self, _: Request) -> Answer<'a> {
            Box::pin(async { Response::default() })
        }

        fn problem(&self, _: ShellProblem) -> Response {
            Response::default()
        }
    }

    #[test]
    fn a_mount_covers_whole_segments() {
        let mount = Mount::new("/tap/", Arc::new(Nothing));
        for (path, covered) in [
            ("/tap", true),
            ("/tap/", true),
            ("/tap/sync", true),
            ("/tapas", false),
            ("/", false),
            ("*", false),
        ] {
            assert_eq!(mount.covers(path), covered, "{path}");
        }
        assert!(Mount::new("/", Arc::new(Nothing)).covers("/anything"));
    }

    #[test]
    fn safe_methods_read() {
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert_eq!(Access::of_method(&method), Access::Needs(Role::Read));
        }
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(Access::of_method(&method), Access::Needs(Role::Write));
        }
    }
}
