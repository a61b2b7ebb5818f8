//! Documents that change rarely: rendered once, tagged, compressed once (RFC 9110 13.1.2).

use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use trifid_base_web::{Body, Request, Response};

use crate::coding::Coding;
use crate::limits::{CODED_BYTES_MIN, PREFERENCES_MAX};

/// A document, its tag, and its compressed forms once somebody wants them.
#[derive(Debug)]
pub(crate) struct Document {
    media: HeaderValue,
    tag: HeaderValue,
    body: Bytes,
    zstd: OnceLock<Option<Bytes>>,
    gzip: OnceLock<Option<Bytes>>,
}

impl Document {
    /// A document of this media type; `tag` tells it from every other state of the same resource.
    pub(crate) fn new(media: &'static str, tag: &str, body: impl Into<Bytes>) -> Self {
        let tag = HeaderValue::try_from(format!("W/\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"-\""));
        Self {
            media: HeaderValue::from_static(media),
            tag,
            body: body.into(),
            zstd: OnceLock::new(),
            gzip: OnceLock::new(),
        }
    }

    /// The answer to a request for it.
    pub(crate) fn answer(&self, request: &Request, compress: bool) -> Response {
        if is_known(&request.headers, &self.tag) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            self.mark(response.headers_mut());
            return response;
        }
        let coded = Coding::accepted(&request.headers)
            .filter(|_| compress)
            .and_then(|coding| Some((coding, self.coded(coding)?)));
        let (coding, body) = match coded {
            Some((coding, body)) => (Some(coding), body),
            None => (None, self.body.clone()),
        };
        let mut response = Response::new(Body::full(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.media.clone());
        if let Some(coding) = coding {
            headers.insert(CONTENT_ENCODING, coding.header());
        }
        self.mark(headers);
        response
    }

    fn mark(&self, headers: &mut HeaderMap) {
        headers.insert(ETAG, self.tag.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }

    fn coded(&self, coding: Coding) -> Option<Bytes> {
        if self.body.len() < CODED_BYTES_MIN {
            return None;
        }
        let kept = match coding {
            Coding::Zstd => &self.zstd,
            Coding::Gzip => &self.gzip,
        };
        kept.get_or_init(|| coding.encode(&self.body).ok().map(Bytes::from)).clone()
    }
}

/// Whether the client has the state with this tag; tags are compared weakly (RFC 9110 8.8.3.2).
fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let ours = opaque(tag.as_bytes());
    let values = headers.get_all(IF_NONE_MATCH).iter();
    let mut tags =
        values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).take(PREFERENCES_MAX);
    tags.any(|tag| {
        let tag = tag.trim_ascii();
        tag == b"*" || opaque(tag) == ours
    })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    fn answer(headers: &[(http::HeaderName, &'static str)], body: &str) -> Response {
        let mut request = Request::new(Method::GET, "/tap/tables".parse().unwrap());
        for (name, value) in headers {
            request.headers.append(name, HeaderValue::from_static(value));
        }
        Document::new("text/xml", "7-max", body.to_owned()).answer(&request, true)
    }

    #[test]
    fn who_has_it_is_told_so() {
        for (tag, status) in [
            ("W/\"7-max\"", 304),
            ("\"7-max\"", 304),
            ("\"x\", W/\"7-max\"", 304),
            ("*", 304),
            ("\"7-min\"", 200),
        ] {
            let response = answer(&[(IF_NONE_MATCH, tag)], "abc");
            assert_eq!(response.status().as_u16(), status, "{tag}");
            assert_eq!(response.headers()[ETAG], "W/\"7-max\"");
            assert_eq!(response.body().bytes().unwrap().is_empty(), status == 304);
        }
    }

    #[test]
    fn what_is_large_is_compressed_for_who_can_read_it() {
        let long = "abc".repeat(1000);
        let response = answer(&[(ACCEPT_ENCODING, "gzip")], &long);
        assert_eq!(response.headers()[CONTENT_ENCODING], "gzip");
        assert!(response.body().bytes().unwrap().len() < 100);
        assert!(!answer(&[(ACCEPT_ENCODING, "gzip")], "abc").headers().contains_key(CONTENT_ENCODING));
        assert_eq!(answer(&[], &long).body().bytes().unwrap(), long.as_bytes());
    }
}
