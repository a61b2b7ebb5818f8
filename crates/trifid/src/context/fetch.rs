//! The engine's port for remote documents, behind the guarded client of `base/web`.

use std::time::Duration;

use http::header::{
    ACCEPT, AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED,
};
use http::{Response, StatusCode};
use trifid_base_web::egress::{self, Client, FinalUri};
use trifid_context_engine::contexts::{Boxed, CacheHeaders, Fetch, FetchError, FetchRequest, Fetched};
use trifid_context_model::ld::limits::MAX_DOCUMENT_BYTES;

/// How long one document may take, redirects included.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it may be redirected.
const DOCUMENT_REDIRECTS: u32 = 3;
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/ld+json, application/json;q=0.9");

/// Downloads contexts over HTTP.
#[derive(Debug)]
pub(crate) struct ByHttp(Client);

impl ByHttp {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    async fn download(&self, wanted: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let request = request(wanted)?;
        let answer = self.0.fetch(request).await.map_err(|error| reason(&error))?;
        fetched(wanted, answer)
    }
}

impl Fetch for ByHttp {
    fn fetch<'a>(&'a self, request: FetchRequest<'a>) -> Boxed<'a, Result<Fetched, FetchError>> {
        Box::pin(self.download(request))
    }
}

fn request(wanted: FetchRequest<'_>) -> Result<egress::Request, FetchError> {
    let uri = wanted.url.parse().map_err(|_| FetchError::new("it is not a URL that can be fetched"))?;
    let mut request = egress::Request::get(uri);
    request.headers.insert(ACCEPT, ACCEPTED);
    for (name, value) in [(IF_NONE_MATCH, wanted.etag), (IF_MODIFIED_SINCE, wanted.last_modified)] {
        // A validator that is no header value came from a header all the same; without it the copy is fetched whole.
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            request.headers.insert(name, value);
        }
    }
    request.timeout = Some(DOCUMENT_TIMEOUT);
    request.redirects = Some(DOCUMENT_REDIRECTS);
    request.response_limit_bytes = Some(MAX_DOCUMENT_BYTES as u64);
    Ok(request)
}

fn fetched(wanted: FetchRequest<'_>, answer: Response<bytes::Bytes>) -> Result<Fetched, FetchError> {
    let cache = cache_headers(answer.headers());
    match answer.status() {
        StatusCode::NOT_MODIFIED => Ok(Fetched::NotModified { cache }),
        status if status.is_success() => {
            let last = answer.extensions().get::<FinalUri>().map(|last| last.0.to_string());
            let url = last.unwrap_or_else(|| wanted.url.to_owned()).into();
            Ok(Fetched::Document { url, bytes: answer.into_body(), cache })
        }
        status => Err(FetchError::new(format!("the server answered {status}"))),
    }
}

fn cache_headers(headers: &HeaderMap) -> CacheHeaders {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(Into::into);
    CacheHeaders {
        cache_control: text(CACHE_CONTROL),
        expires: text(EXPIRES),
        date: text(DATE),
        age: text(AGE),
        etag: text(ETAG),
        last_modified: text(LAST_MODIFIED),
    }
}

/// An error with its causes, for the person who named the URL.
fn reason(error: &dyn std::error::Error) -> FetchError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    FetchError::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: FetchRequest<'_> =
        FetchRequest { url: "http://a.example/c", etag: Some("\"1\""), last_modified: None };

    fn answer(status: u16, headers: &[(HeaderName, &str)]) -> Response<bytes::Bytes> {
        let mut builder = Response::builder().status(status);
        for (name, value) in headers {
            builder = builder.header(name, *value);
        }
        builder.body(bytes::Bytes::from_static(b"{}")).unwrap()
    }

    #[test]
    fn a_request_is_conditional_and_bounded() {
        let request = request(WANTED).unwrap();
        assert_eq!(request.headers[IF_NONE_MATCH], "\"1\"");
        assert!(!request.headers.contains_key(IF_MODIFIED_SINCE));
        assert_eq!(request.response_limit_bytes, Some(5 << 20));
        assert!(super::request(FetchRequest { url: "no url", ..WANTED }).is_err());
    }

    #[test]
    fn a_document_comes_from_where_it_was_found_in_the_end() {
        let mut found = answer(200, &[(CACHE_CONTROL, "max-age=60")]);
        found.extensions_mut().insert(FinalUri("http://b.example/d".parse().unwrap()));
        let Fetched::Document { url, bytes, cache } = fetched(WANTED, found).unwrap() else {
            panic!("no document")
        };
        assert_eq!(
            (&*url, &bytes[..], cache.cache_control.as_deref()),
            ("http://b.example/d", &b"{}"[..], Some("max-age=60"))
        );
    }

    #[test]
    fn what_is_no_document_says_so() {
        assert!(matches!(fetched(WANTED, answer(304, &[])), Ok(Fetched::NotModified { .. })));
        let error = fetched(WANTED, answer(404, &[])).unwrap_err();
        assert_eq!(&*error.reason, "the server answered 404 Not Found");
    }
}
