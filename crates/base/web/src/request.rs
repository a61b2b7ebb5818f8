//! A request as a door sees it: head untouched, body collected, caller known.

use std::fmt::{self, Write as _};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};

use crate::auth::Principal;
use crate::limits::REQUEST_ID_BYTES_MAX;

/// How the client framed the body, which some standards judge (NGSI-LD 6.3.4 wants `Content-Length`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Neither `Content-Length` nor `Transfer-Encoding` (RFC 9112 6.3, case 7): there is no body. In HTTP/2 a
    /// body whose length was not declared reads as [`Chunked`](Self::Chunked).
    None,
    /// `Content-Length` with this value, which may be zero.
    ContentLength(u64),
    /// `Transfer-Encoding: chunked`, or an HTTP/2 body of undeclared length.
    Chunked,
}

/// One request, its body collected within the limits.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The target as it was sent: neither normalised nor percent-decoded, so a `%2F` is no path separator.
    pub uri: Uri,
    /// The protocol version that the client spoke.
    pub version: Version,
    /// The headers. A door that answers may clear and reuse this map, which saves an allocation.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// How the body was framed.
    pub body_framing: Framing,
    /// Who calls.
    pub principal: Principal,
    /// The request's id, for logs and problem bodies.
    pub id: RequestId,
    /// The core that serves this request: the index of per-core counters.
    pub core: usize,
}

impl Request {
    /// A request without headers and body, called by a local administrator: the starting point of a door's tests.
    pub fn new(method: Method, uri: Uri) -> Self {
        Self {
            method,
            uri,
            version: Version::HTTP_11,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            body_framing: Framing::None,
            principal: Principal::local(),
            id: RequestId::made(0, 0, 0),
            core: 0,
        }
    }

    /// The raw path.
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// The raw query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.uri.query()
    }
}

/// The id of one request.
///
/// A client's `x-request-id` is kept when it is short and of plain characters, and echoed. Otherwise an id is
/// made of three numbers and spelled only when somebody asks, which the hot path does not: a made id is sent
/// with refusals and errors, where a person needs it to find the line in the log.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId(Id);

#[derive(Clone, PartialEq, Eq)]
enum Id {
    Given(HeaderValue),
    Made { boot: u32, core: u16, sequence: u64 },
}

impl RequestId {
    pub(crate) fn made(boot: u32, core: u16, sequence: u64) -> Self {
        Self(Id::Made { boot, core, sequence })
    }

    /// The client's own id, if it is one that may be repeated in headers and logs.
    pub(crate) fn given(value: &HeaderValue) -> Option<Self> {
        let bytes = value.as_bytes();
        let fits = !bytes.is_empty() && bytes.len() <= REQUEST_ID_BYTES_MAX;
        (fits && bytes.iter().all(|byte| is_plain(*byte))).then(|| Self(Id::Given(value.clone())))
    }

    /// Whether the client gave this id itself.
    pub fn is_given(&self) -> bool {
        matches!(self.0, Id::Given(_))
    }

    /// The id as a header value.
    pub fn header_value(&self) -> HeaderValue {
        match &self.0 {
            Id::Given(value) => value.clone(),
            Id::Made { .. } => {
                let mut text = String::with_capacity(32);
                // Writing to a string does not fail.
                let _ = write!(text, "{self}");
                HeaderValue::try_from(text).expect("hexadecimal digits and hyphens are a header value")
            }
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(&byte)
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Id::Given(value) => f.write_str(value.to_str().unwrap_or_default()),
            Id::Made { boot, core, sequence } => write!(f, "{boot:08x}-{core:x}-{sequence:x}"),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_id_is_kept_and_others_are_not() {
        let check = |text: &[u8], kept: bool| {
            let value = HeaderValue::from_bytes(text).unwrap();
            assert_eq!(RequestId::given(&value).is_some(), kept, "{text:?}");
        };
        check(b"7f3c-42", true);
        check(b"urn:uuid:1/2+3=@~_.", true);
        check(b"", false);
        check(b"two words", false);
        check(b"\"quoted\"", false);
        check(b"caf\xc3\xa9", false);
        check(&[b'a'; REQUEST_ID_BYTES_MAX], true);
        check(&[b'a'; REQUEST_ID_BYTES_MAX + 1], false);
    }

    #[test]
    fn a_made_id_is_spelled_as_a_header() {
        let id = RequestId::made(0xab, 3, 255);
        assert_eq!(id.header_value(), "000000ab-3-ff");
        assert_eq!(RequestId::given(&id.header_value()).map(|id| id.to_string()), Some(id.to_string()));
    }
}
