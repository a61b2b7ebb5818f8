//! The way out: an HTTP client behind a guard.
//!
//! Everything that Trifid fetches or sends on somebody else's word (a `@context` by its URL, a notification to
//! an endpoint) could be aimed at what only Trifid can reach: its own loopback, a neighbour in the cluster, a
//! cloud's metadata service. So each request, and each redirect of it, passes the same gate: the scheme is on
//! the list, the URL holds no credentials, the name is resolved once, its addresses are public (or
//! `egress.allow_private`, or `egress.allow_networks`, says otherwise), and the connection goes to such an address
//! and no other. Time, size, redirects and the number of fetches at a time are bounded.
//!
//! HTTP/1.1 over TCP or TLS (rustls, ring; the roots of Mozilla and, if given, a file). Connections are kept open
//! and reused. If one that was reused turns out dead, the request is sent once
//! more on a fresh one, provided that it was not sent at all, or that sending it twice does no harm (RFC 9110
//! 9.2.2). Bodies are sent with their length, never chunked. Compressed answers are not asked for.

mod address;
mod connect;
mod error;
mod pool;
mod reference;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;
use trifid_base_runtime::section;
use trifid_base_runtime::units::{Size, Span};

pub use address::{AddressClass, Network, NetworkError, classify};
pub use connect::{Resolve, Resolving, SystemResolver};
pub use error::{FetchError, Refusal};

use self::connect::Guard;
use self::pool::{Origin, Pool, Sender};
use crate::health::HealthSource;
use crate::limits::BODY_BYTES_FIRST;
use crate::metrics::{Exposition, Kind};
use crate::tls::{TlsError, certificates};

section! {
    /// What may be fetched from elsewhere, and within which bounds.
    pub struct Options in "egress" {
        /// Whether private, loopback and other addresses that are not public may be connected to.
        allow_private: bool = "false",
        /// Networks that may be connected to although they are not public, such as 10.1.0.0/16.
        allow_networks: Vec<String> = "",
        /// URL schemes that may be fetched.
        schemes: Vec<String> = "http,https",
        /// Certificates (PEM) to trust beside Mozilla's.
        ca_file: Option<PathBuf> = "",
        /// How long a fetch may take, redirects included, where its sender does not say.
        timeout: Span = "10s",
        /// How long one address may take to accept a connection.
        connect_timeout: Span = "3s",
        /// The largest answer, where its sender does not say.
        response_limit: Size = "5MiB",
        /// How often a fetch may be redirected, where its sender does not say.
        redirects: u32 = "3" in "redirects",
        /// Fetches at a time; further ones wait within their own time.
        concurrent: NonZeroUsize = "256" in "fetches",
        /// Connections kept open to one host.
        idle_per_host: usize = "8" in "connections",
        /// Hosts to which connections are kept open.
        idle_hosts: usize = "128" in "hosts",
        /// How long an unused connection is kept open.
        idle_timeout: Span = "30s",
    }
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The file of certificates.
    #[error(transparent)]
    Certificates(#[from] TlsError),
    /// A certificate in it.
    #[error("egress.ca_file: a certificate cannot be used")]
    Certificate(#[source] rustls::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// A network.
    #[error("egress.allow_networks: {0}")]
    Network(#[from] NetworkError),
    /// A scheme.
    #[error("egress.schemes: `{0}` is neither http nor https")]
    Scheme(String),
}

/// One request to elsewhere. What it does not say, the options say.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The absolute URL.
    pub uri: Uri,
    /// Headers; `Host` and `Content-Length` are set by the client.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// How long the whole may take.
    pub timeout: Option<Duration>,
    /// The largest answer, in bytes.
    pub response_limit_bytes: Option<u64>,
    /// How often it may be redirected; with 0 a redirect is answered as it is.
    pub redirects: Option<u32>,
    /// Whether the request may be sent twice although its method is not idempotent.
    pub is_repeatable: bool,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, uri: Uri) -> Self {
        Self {
            method,
            uri,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: None,
            response_limit_bytes: None,
            redirects: None,
            is_repeatable: false,
        }
    }

    /// A GET.
    pub fn get(uri: Uri) -> Self {
        Self::new(Method::GET, uri)
    }

    fn repeats_without_harm(&self) -> bool {
        self.is_repeatable || self.method.is_idempotent()
    }
}

/// The URL that an answer comes from, after redirects: an extension of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalUri(pub Uri);

/// An HTTP client behind the guard. Cheap to clone; clones share connections and bounds.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    guard: Guard,
    pool: Pool,
    permits: Semaphore,
    timeout: Duration,
    response_limit_bytes: u64,
    redirects: u32,
    counts: Counts,
}

/// What became of fetches. Shared by all cores: a fetch costs thousands of times what counting it does.
#[derive(Debug, Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    connected: AtomicU64,
    reused: AtomicU64,
    repeated: AtomicU64,
}

fn bump(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl Client {
    /// A client that resolves names as the operating system does.
    pub fn new(options: &Options) -> Result<Self, OptionsError> {
        Self::with_resolver(options, Arc::new(SystemResolver))
    }

    /// A client with a resolver of its own.
    pub fn with_resolver(options: &Options, resolver: Arc<dyn Resolve>) -> Result<Self, OptionsError> {
        if let Some(scheme) =
            options.schemes.iter().find(|scheme| !matches!(scheme.as_str(), "http" | "https"))
        {
            return Err(OptionsError::Scheme(scheme.clone()));
        }
        let guard = Guard {
            allow_private: options.allow_private,
            networks: options.allow_networks.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
            schemes: options.schemes.clone(),
            connect_timeout: options.connect_timeout.into(),
            tls: Arc::new(tls(options)?),
            resolver,
        };
        Ok(Self(Arc::new(Inner {
            guard,
            pool: Pool::new(options.idle_per_host, options.idle_hosts, options.idle_timeout.into()),
            permits: Semaphore::new(options.concurrent.get().min(Semaphore::MAX_PERMITS)),
            timeout: options.timeout.into(),
            response_limit_bytes: options.response_limit.0,
            redirects: options.redirects,
            counts: Counts::default(),
        })))
    }

    /// Sends a request and reads the whole answer, whatever its status, following redirects. The answer's
    /// extension [`FinalUri`] tells where it came from. Needs a tokio runtime with I/O and time.
    pub async fn fetch(&self, request: Request) -> Result<http::Response<Bytes>, FetchError> {
        let limit = request.timeout.unwrap_or(self.0.timeout);
        let result = match tokio::time::timeout(limit, self.0.run(request)).await {
            Ok(result) => result,
            Err(_) => Err(FetchError::Timeout { limit }),
        };
        bump(match &result {
            Ok(_) => &self.0.counts.answered,
            Err(FetchError::Refused { .. }) => &self.0.counts.refused,
            Err(_) => &self.0.counts.failed,
        });
        result
    }

    /// The URL schemes that may be fetched.
    pub fn schemes(&self) -> &[String] {
        &self.0.guard.schemes
    }

    /// [`fetch`](Self::fetch), where an answer whose status is not 2xx is an error.
    pub async fn success(&self, request: Request) -> Result<http::Response<Bytes>, FetchError> {
        let response = self.fetch(request).await?;
        let status = response.status();
        if status.is_success() { Ok(response) } else { Err(FetchError::Status(status)) }
    }
}

impl Inner {
    async fn run(&self, mut request: Request) -> Result<http::Response<Bytes>, FetchError> {
        let _permit = self.permits.acquire().await;
        let limit = request.redirects.unwrap_or(self.redirects);
        let mut followed = 0;
        loop {
            let mut response = self.exchange(&request).await?;
            if limit == 0 || !is_redirect(response.status()) {
                response.extensions_mut().insert(FinalUri(request.uri));
                return Ok(response);
            }
            if followed == limit {
                return Err(FetchError::TooManyRedirects { limit });
            }
            followed += 1;
            follow(&mut request, &response)?;
        }
    }

    /// One request and its answer, past the guard.
    async fn exchange(&self, request: &Request) -> Result<http::Response<Bytes>, FetchError> {
        let origin = self.guard.origin(&request.uri)?;
        if let Some(sender) = self.reuse(&origin).await {
            match self.send(&origin, sender, request).await {
                Err(Broken { error, may_repeat: true }) => {
                    bump(&self.counts.repeated);
                    tracing::debug!(%error, host = origin.host, "a kept connection was dead");
                }
                other => return other.map_err(|broken| broken.error),
            }
        }
        let sender = self.guard.connect(&origin).await?;
        bump(&self.counts.connected);
        self.send(&origin, sender, request).await.map_err(|broken| broken.error)
    }

    /// A kept connection that takes requests.
    async fn reuse(&self, origin: &Origin) -> Option<Sender> {
        while let Some(mut sender) = self.pool.take(origin, Instant::now()) {
            // It may have been put back a moment before its task saw the end of the last answer.
            if sender.ready().await.is_ok() {
                bump(&self.counts.reused);
                return Some(sender);
            }
        }
        None
    }

    async fn send(
        &self,
        origin: &Origin,
        mut sender: Sender,
        request: &Request,
    ) -> Result<http::Response<Bytes>, Broken> {
        let response = sender.try_send_request(outgoing(request)).await.map_err(|mut failure| {
            let unsent = failure.take_message().is_some();
            let error = failure.into_error();
            let may_repeat = unsent || (request.repeats_without_harm() && ended_early(&error));
            Broken { error: FetchError::Exchange { host: origin.host.clone(), source: error }, may_repeat }
        })?;
        let limit_bytes = request.response_limit_bytes.unwrap_or(self.response_limit_bytes);
        let response = collect(origin, response, limit_bytes).await?;
        self.pool.put(origin.clone(), sender, Instant::now());
        Ok(response)
    }
}

/// A failed exchange, and whether it may be tried once more on a fresh connection.
struct Broken {
    error: FetchError,
    may_repeat: bool,
}

impl From<FetchError> for Broken {
    fn from(error: FetchError) -> Self {
        Self { error, may_repeat: false }
    }
}

/// Whether the connection ended before its answer did, rather than that the answer was wrong.
fn ended_early(error: &hyper::Error) -> bool {
    !error.is_parse() && !error.is_user()
}

/// The request as it goes over the wire: in origin form, with the host it is for.
fn outgoing(request: &Request) -> http::Request<Full<Bytes>> {
    let mut outgoing = http::Request::new(Full::new(request.body.clone()));
    *outgoing.method_mut() = request.method.clone();
    *outgoing.version_mut() = Version::HTTP_11;
    let target = request.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    *outgoing.uri_mut() = target.parse().unwrap_or_else(|_| Uri::from_static("/"));
    let headers = outgoing.headers_mut();
    headers.clone_from(&request.headers);
    headers.remove(CONTENT_LENGTH);
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static("trifid"));
    let host = request.uri.authority().map_or("", http::uri::Authority::as_str);
    if let Ok(host) = HeaderValue::from_str(host) {
        headers.insert(HOST, host);
    }
    outgoing
}

/// The whole answer, if it is not too large.
async fn collect(
    origin: &Origin,
    response: http::Response<Incoming>,
    limit_bytes: u64,
) -> Result<http::Response<Bytes>, FetchError> {
    let (head, mut body) = response.into_parts();
    let too_large = FetchError::TooLarge { limit_bytes };
    if body.size_hint().lower() > limit_bytes {
        return Err(too_large);
    }
    let first = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(BODY_BYTES_FIRST);
    let mut bytes = BytesMut::with_capacity(first);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|source| FetchError::Exchange { host: origin.host.clone(), source })?;
        let Ok(data) = frame.into_data() else { continue };
        if (bytes.len() + data.len()) as u64 > limit_bytes {
            return Err(too_large);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(http::Response::from_parts(head, bytes.freeze()))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Turns a request into the one that a redirect asks for (RFC 9110 15.4).
fn follow(request: &mut Request, response: &http::Response<Bytes>) -> Result<(), FetchError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let target = reference::resolve(&request.uri, location)
        .filter(|_| !location.is_empty())
        .ok_or_else(|| FetchError::BadRedirect { location: location.to_owned() })?;
    let keeps_method = matches!(response.status().as_u16(), 307 | 308) || request.method.is_safe();
    if !keeps_method {
        request.method = Method::GET;
        request.body = Bytes::new();
        request.headers.remove(CONTENT_TYPE);
    }
    // Credentials are for the origin that they were given for.
    if !same_origin(&request.uri, &target) {
        request.headers.remove(AUTHORIZATION);
        request.headers.remove(COOKIE);
    }
    request.uri = target;
    Ok(())
}

fn same_origin(one: &Uri, other: &Uri) -> bool {
    one.scheme() == other.scheme()
        && one.host().unwrap_or_default().eq_ignore_ascii_case(other.host().unwrap_or_default())
        && one.port_u16() == other.port_u16()
}

/// Mozilla's roots and the operator's.
fn tls(options: &Options) -> Result<ClientConfig, OptionsError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = &options.ca_file {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(OptionsError::Certificate)?;
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(OptionsError::Tls)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl Counts {
    fn list(&self) -> [(&'static str, &AtomicU64); 6] {
        [
            ("answered", &self.answered),
            ("refused", &self.refused),
            ("failed", &self.failed),
            ("connected", &self.connected),
            ("reused", &self.reused),
            ("repeated", &self.repeated),
        ]
    }
}

impl HealthSource for Client {
    fn name(&self) -> &'static str {
        "egress"
    }

    fn section(&self) -> serde_json::Value {
        let count =
            |(name, count): (&str, &AtomicU64)| (name.to_owned(), count.load(Ordering::Relaxed).into());
        let counters: serde_json::Map<String, serde_json::Value> =
            self.0.counts.list().into_iter().map(count).collect();
        serde_json::json!({
            "allow_private": self.0.guard.allow_private,
            "connections_idle": self.0.pool.len(),
            "fetches_possible": self.0.permits.available_permits(),
            "counters": counters,
        })
    }

    fn metrics(&self, out: &mut Exposition) {
        let mut family =
            out.family(Kind::Counter, "trifid_egress_total", "Outbound requests and connections.");
        for (name, count) in self.0.counts.list() {
            family.sample(&[("event", name)], count.load(Ordering::Relaxed));
        }
        out.gauge("trifid_egress_connections_idle", "Outbound connections kept open.", self.0.pool.len());
    }
}
