//! Absolute URLs of this service, for documents that name its resources.
//!
//! They begin with `archive.public_url`, where that is set. Otherwise with the host that the client used, which is
//! right behind any name and any port that leads here, and with the scheme that the listener speaks. Forwarding headers
//! are not believed: whoever stands behind a proxy that changes scheme or path sets the URL.

use http::header::HOST;
use http::uri::Authority;
use trifid_base_web::Request;

use crate::fault::Fault;
use crate::route::ROOT;

/// How the service's own URLs begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Always so: the URL of the door's root.
    Fixed(String),
    /// With the client's host, over TLS or not.
    Host {
        /// Whether the listener speaks TLS.
        is_tls: bool,
    },
}

impl Origin {
    /// The path of the door's root as clients see it, without a slash at the end: for links within a page.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Fixed(root) => {
                let rest = root.split_once("://").map_or("", |(_, rest)| rest);
                rest.find('/').map_or("", |at| &rest[at..])
            }
            Self::Host { .. } => ROOT,
        }
    }

    /// The URL of the door's root as this client should use it, without a slash at the end.
    pub(crate) fn root(&self, request: &Request) -> Result<String, Fault> {
        let is_tls = match self {
            Self::Fixed(root) => return Ok(root.clone()),
            Self::Host { is_tls } => *is_tls,
        };
        let host = host(request).ok_or_else(|| Fault::invalid("the Host field names no host"))?;
        let scheme = if is_tls { "https" } else { "http" };
        Ok(format!("{scheme}://{host}{ROOT}"))
    }
}

/// The host that the client named: the target's authority (HTTP/2), or the Host field, if it is one.
fn host(request: &Request) -> Option<Authority> {
    let field = || request.headers.get(HOST)?.to_str().ok()?.parse().ok();
    let authority: Authority = request.uri.authority().cloned().or_else(field)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    (!authority.host().is_empty() && authority.as_str().bytes().all(is_plain)).then_some(authority)
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};

    use super::*;

    fn root(origin: &Origin, uri: &str, host: Option<&'static str>) -> Result<String, Fault> {
        let mut request = Request::new(Method::GET, uri.parse().unwrap());
        request.headers.extend(host.map(|host| (HOST, HeaderValue::from_static(host))));
        origin.root(&request)
    }

    #[test]
    fn urls_begin_with_what_the_client_used() {
        let plain = Origin::Host { is_tls: false };
        for (uri, host, expected) in [
            ("/tap", Some("archive.example:9090"), "http://archive.example:9090/tap"),
            ("/tap", Some("[::1]:80"), "http://[::1]:80/tap"),
            ("http://h2.example/tap", None, "http://h2.example/tap"),
        ] {
            assert_eq!(root(&plain, uri, host).unwrap(), expected);
        }
        assert_eq!(root(&Origin::Host { is_tls: true }, "/tap", Some("a")).unwrap(), "https://a/tap");
        let fixed = Origin::Fixed("https://archive.example/vo/tap".into());
        assert_eq!(root(&fixed, "/tap", Some("other")).unwrap(), "https://archive.example/vo/tap");
        assert_eq!((fixed.path(), plain.path()), ("/vo/tap", "/tap"));
        assert_eq!(Origin::Fixed("https://archive.example".into()).path(), "");
    }

    #[test]
    fn strange_hosts_are_refused() {
        for host in [None, Some(""), Some("a b"), Some("user@host"), Some("a/b"), Some("<x>"), Some(":80")] {
            assert_eq!(
                root(&Origin::Host { is_tls: false }, "/tap", host).unwrap_err().status(),
                400,
                "{host:?}"
            );
        }
    }
}
