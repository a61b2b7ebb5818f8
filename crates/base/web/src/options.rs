//! What can be configured, and the one step from there to what the server runs on.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use trifid_base_runtime::section;
use trifid_base_runtime::units::{Size, Span};

use crate::admission::Weights;
use crate::auth::{self, TokenFileError, Tokens};
use crate::cors::{Cors, CorsError};
use crate::limits::{TENANT_BYTES_MAX, WEIGHT_MAX};
use crate::tls::{Tls, TlsError};

section! {
    /// The HTTP listener, its limits and its manners.
    pub struct Options in "http" {
        /// Where to listen; port 0 takes a free one.
        listen: SocketAddr = "127.0.0.1:9090",
        /// Cores that serve, each with a thread and a listening socket of its own; 0 takes every core there is.
        cores: usize = "0" in "cores",
        /// The certificate chain (PEM); with it the listener speaks TLS alone.
        tls_certificate: Option<PathBuf> = "",
        /// The certificate's private key (PEM).
        tls_key: Option<PathBuf> = "",
        /// Connections open at a time; further ones are answered 503.
        connections: NonZeroUsize = "10000" in "connections",
        /// HTTP/2 requests at a time on one connection.
        streams: NonZeroU32 = "128" in "requests",
        /// The largest head of a request; a larger one is answered 431.
        head_limit: Size = "32KiB",
        /// The most header fields of a request; more are answered 431.
        headers: NonZeroU32 = "100" in "fields",
        /// The largest body of a request; a larger one is answered 413.
        body_limit: Size = "5MiB",
        /// What the bodies of all requests in flight may take together.
        body_memory: Size = "256MiB",
        /// Requests in flight at a time, from where on each tenant gets its share and no more.
        in_flight: NonZeroUsize = "4096" in "requests",
        /// Weights of tenants as name=weight; the default tenant is `-`, and who is not listed weighs 1.
        tenant_weights: Vec<String> = "",
        /// How long a client may take over the head of a request.
        head_timeout: Span = "10s",
        /// How long a client may take over the body of a request.
        body_timeout: Span = "30s",
        /// How long a door may take over its answer.
        request_timeout: Span = "60s",
        /// How long a connection may stay open without a request.
        idle_timeout: Span = "75s",
        /// How long a client may leave an answer unread.
        write_timeout: Span = "30s",
        /// How long health says 503 before the listener closes; set it above a load balancer's probe period.
        drain_delay: Span = "0s",
        /// How long requests in flight may take to finish at shutdown.
        drain_timeout: Span = "30s",
        /// Origins whose pages may read answers (CORS); `*` is any, none turns it off.
        cors_origins: Vec<String> = "",
        /// How long a browser may remember what CORS allows.
        cors_max_age: Span = "10m",
    }
}

/// Why the options cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Beyond loopback without tokens.
    #[error(
        "listening on {listen}, beyond loopback, needs auth.tokens_file, or auth.allow_unauthenticated = true \
         if everybody who can reach this address may read and write everything"
    )]
    Unauthenticated {
        /// The address.
        listen: SocketAddr,
    },
    /// Both a token file and no need of one.
    #[error("auth.tokens_file and auth.allow_unauthenticated = true contradict each other")]
    Contradiction,
    /// The token file.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// Certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// One of certificate and key without the other.
    #[error("http.tls_certificate and http.tls_key go together")]
    HalfTls,
    /// An origin.
    #[error(transparent)]
    Cors(#[from] CorsError),
    /// A weight.
    #[error("http.tenant_weights: `{0}` is not name=weight with a weight from 1 to {WEIGHT_MAX}")]
    Weight(String),
    /// A limit that leaves no room.
    #[error("{key} must be {least} or more")]
    TooSmall {
        /// The key.
        key: &'static str,
        /// Its least value.
        least: String,
    },
}

/// Options that hold together, files read: what [`serve`](crate::serve) takes.
#[derive(Debug)]
pub struct Resolved {
    pub(crate) listen: SocketAddr,
    pub(crate) cores: usize,
    pub(crate) tls: Option<Tls>,
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) cors: Option<Cors>,
    pub(crate) weights: Arc<Weights>,
    pub(crate) limits: Limits,
}

/// The numbers among the options.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) streams: u32,
    pub(crate) head_bytes: usize,
    pub(crate) headers: usize,
    pub(crate) body_bytes: u64,
    pub(crate) body_memory_bytes: u64,
    pub(crate) in_flight: usize,
    pub(crate) head_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) drain_delay: Duration,
    pub(crate) drain_timeout: Duration,
}

impl Resolved {
    /// How many cores will serve: the size of per-core counters.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Whether callers need a token.
    pub fn needs_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// The tokens of callers, for listeners of other protocols that ask for the same ones; none where no token is
    /// needed.
    pub fn tokens(&self) -> Option<Arc<Tokens>> {
        self.tokens.clone()
    }

    /// Whether the listener speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }
}

impl Options {
    /// Reads the files that the options name and refuses what does not hold together.
    pub fn resolve(&self, auth: &auth::Options) -> Result<Resolved, OptionsError> {
        Ok(Resolved {
            listen: self.listen,
            cores: self.cores_resolved(),
            tls: self.tls()?,
            tokens: self.tokens(auth)?,
            cors: Cors::new(&self.cors_origins, self.cors_max_age.into())?,
            weights: Arc::new(weights(&self.tenant_weights)?),
            limits: self.limits()?,
        })
    }

    fn cores_resolved(&self) -> usize {
        match self.cores {
            0 => available_parallelism().map_or(1, NonZeroUsize::get),
            cores => cores.min(usize::from(u16::MAX)),
        }
    }

    fn tls(&self) -> Result<Option<Tls>, OptionsError> {
        match (&self.tls_certificate, &self.tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Tls::open(certificate, key)?)),
            (Some(_), None) | (None, Some(_)) => Err(OptionsError::HalfTls),
        }
    }

    fn tokens(&self, auth: &auth::Options) -> Result<Option<Arc<Tokens>>, OptionsError> {
        match &auth.tokens_file {
            Some(_) if auth.allow_unauthenticated => Err(OptionsError::Contradiction),
            Some(path) => Ok(Some(Arc::new(Tokens::open(path)?))),
            None if auth.allow_unauthenticated || self.listen.ip().is_loopback() => Ok(None),
            None => Err(OptionsError::Unauthenticated { listen: self.listen }),
        }
    }

    fn limits(&self) -> Result<Limits, OptionsError> {
        at_least("http.head_limit", self.head_limit, Size(1 << 10))?;
        at_least("http.body_memory", self.body_memory, self.body_limit)?;
        Ok(Limits {
            connections: self.connections.get(),
            streams: self.streams.get(),
            head_bytes: usize::try_from(self.head_limit.0.min(16 << 20)).unwrap_or(16 << 20),
            headers: usize::try_from(self.headers.get().min(32_768)).unwrap_or(32_768),
            body_bytes: self.body_limit.0,
            body_memory_bytes: self.body_memory.0,
            in_flight: self.in_flight.get(),
            head_timeout: self.head_timeout.into(),
            body_timeout: self.body_timeout.into(),
            request_timeout: self.request_timeout.into(),
            idle_timeout: self.idle_timeout.into(),
            write_timeout: self.write_timeout.into(),
            drain_delay: self.drain_delay.into(),
            drain_timeout: self.drain_timeout.into(),
        })
    }
}

fn at_least(key: &'static str, value: Size, least: Size) -> Result<(), OptionsError> {
    if value < least { Err(OptionsError::TooSmall { key, least: least.to_string() }) } else { Ok(()) }
}

fn weights(texts: &[String]) -> Result<Weights, OptionsError> {
    texts.iter().map(|text| weight(text).ok_or_else(|| OptionsError::Weight(text.clone()))).collect()
}

fn weight(text: &str) -> Option<(String, u32)> {
    let (name, weight) = text.split_once('=')?;
    let name = name.trim();
    let weight = weight.trim().parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight))?;
    let name = if name == "-" { "" } else { name };
    let fits = name.len() <= TENANT_BYTES_MAX && (!name.is_empty() || text.trim_start().starts_with('-'));
    fits.then(|| (name.to_owned(), weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(change: impl FnOnce(&mut Options, &mut auth::Options)) -> Result<Resolved, OptionsError> {
        let (mut options, mut auth) = (Options::default(), auth::Options::default());
        change(&mut options, &mut auth);
        options.resolve(&auth)
    }

    #[test]
    fn the_defaults_hold_together() {
        let resolved = resolve(|_, _| ()).unwrap();
        assert!(!resolved.needs_tokens() && !resolved.is_tls() && resolved.cores() > 0);
        assert!(resolved.cors.is_none(), "CORS is off unless asked for");
    }

    #[test]
    fn beyond_loopback_needs_tokens_or_a_word() {
        let open = |options: &mut Options| options.listen = "0.0.0.0:0".parse().unwrap();
        assert!(matches!(resolve(|options, _| open(options)), Err(OptionsError::Unauthenticated { .. })));
        let told = resolve(|options, auth| {
            open(options);
            auth.allow_unauthenticated = true;
        });
        assert!(told.is_ok());
        assert!(resolve(|options, _| options.listen = "[::1]:0".parse().unwrap()).is_ok());
    }

    #[test]
    fn contradictions_are_named() {
        let both = resolve(|_, auth| {
            auth.tokens_file = Some("tokens".into());
            auth.allow_unauthenticated = true;
        });
        assert!(matches!(both, Err(OptionsError::Contradiction)));
        let half = resolve(|options, _| options.tls_key = Some("key.pem".into()));
        assert!(matches!(half, Err(OptionsError::HalfTls)));
        let cramped = resolve(|options, _| options.body_memory = Size(1));
        assert!(matches!(cramped, Err(OptionsError::TooSmall { key: "http.body_memory", .. })));
    }

    #[test]
    fn weights_are_read_or_refused() {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let read = weights(&texts(&["city = 3", "-=2"])).unwrap();
        assert_eq!((read["city"], read[""]), (3, 2));
        for text in ["city", "city=0", "city=x", "=2", "city=1001"] {
            assert!(weights(&texts(&[text])).is_err(), "{text}");
        }
    }
}
