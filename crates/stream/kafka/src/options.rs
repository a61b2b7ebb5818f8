//! What can be configured of the listener, and the one step from there to what it runs on.

use std::net::SocketAddr;
use std::num::{NonZeroUsize, ParseIntError};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use rustls::ServerConfig;
use trifid_base_runtime::section;
use trifid_base_runtime::units::{Size, Span};
use trifid_base_web::{TlsError, auth, server_config};

use crate::limits::{CONTROL_REQUEST_BYTES_MAX, FETCH_BYTES_MIN, WORKERS_DEFAULT_MAX, WORKERS_MAX};

section! {
    /// The listener for clients of Kafka.
    pub struct Options in "stream" {
        /// Whether clients of Kafka are served.
        kafka: bool = "true",
        /// Where to listen for clients of Kafka; port 0 takes a free one.
        kafka_listen: SocketAddr = "127.0.0.1:9092",
        /// Where clients are told to connect, as host:port; without it, the address that they reached.
        kafka_advertised: Option<String> = "",
        /// The certificate chain (PEM); with it the listener speaks TLS alone.
        kafka_tls_certificate: Option<PathBuf> = "",
        /// The certificate's private key (PEM).
        kafka_tls_key: Option<PathBuf> = "",
        /// Threads that serve, each with a listening socket of its own; 0 takes one a core, at most eight.
        kafka_workers: usize = "0" in "workers",
        /// Connections open at a time; further ones are closed.
        kafka_connections: NonZeroUsize = "4096" in "connections",
        /// The largest request; the connection that sends a larger one is closed.
        kafka_request_limit: Size = "16MiB",
        /// What all requests that are being read may take together; beyond, connections wait.
        kafka_request_memory: Size = "64MiB",
        /// Requests of one connection in progress at a time; beyond, it is not read.
        kafka_in_flight: NonZeroUsize = "512" in "requests",
        /// What one answer to a fetch may hold, whatever the client asks.
        kafka_fetch_limit: Size = "16MiB",
        /// What unsent answers to fetches may take together, beyond which fetches get less.
        kafka_fetch_memory: Size = "64MiB",
        /// How long a client may take over one request.
        kafka_request_timeout: Span = "30s",
        /// How long a client may leave an answer unread.
        kafka_write_timeout: Span = "30s",
        /// How long a connection may stay open without a request.
        kafka_idle_timeout: Span = "10m",
        /// How long requests in flight may take to finish at shutdown.
        kafka_drain_timeout: Span = "5s",
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
    /// The advertised address.
    #[error("stream.kafka_advertised: `{0}` is not host:port")]
    Advertised(String),
    /// Certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// One of certificate and key without the other.
    #[error("stream.kafka_tls_certificate and stream.kafka_tls_key go together")]
    HalfTls,
    /// A limit that leaves no room, or more than the protocol can say.
    #[error("{key} must be between {least} and {most}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// Its least value.
        least: Size,
        /// Its largest value.
        most: Size,
    },
}

/// Options that hold together, files read: what [`serve`](crate::serve) takes.
#[derive(Debug)]
pub struct Resolved {
    pub(crate) listen: SocketAddr,
    pub(crate) advertised: Option<Endpoint>,
    pub(crate) workers: usize,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) limits: Limits,
}

/// A host and a port, as clients are told them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The numbers among the options.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) request_bytes: usize,
    pub(crate) request_memory_bytes: usize,
    pub(crate) in_flight: usize,
    pub(crate) fetch_bytes: usize,
    pub(crate) fetch_memory_bytes: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) drain_timeout: Duration,
}

impl Options {
    /// Reads the files that the options name and refuses what does not hold together. `auth` is how callers are
    /// told apart, which the listener shares with HTTP.
    pub fn resolve(&self, auth: &auth::Options) -> Result<Resolved, OptionsError> {
        let open =
            auth.tokens_file.is_some() || auth.allow_unauthenticated || self.kafka_listen.ip().is_loopback();
        if !open {
            return Err(OptionsError::Unauthenticated { listen: self.kafka_listen });
        }
        Ok(Resolved {
            listen: self.kafka_listen,
            advertised: self.kafka_advertised.as_deref().map(Endpoint::parse).transpose()?,
            workers: self.workers(),
            tls: self.tls()?.map(Arc::new),
            limits: self.limits()?,
        })
    }

    fn workers(&self) -> usize {
        match self.kafka_workers {
            0 => available_parallelism().map_or(1, NonZeroUsize::get).min(WORKERS_DEFAULT_MAX),
            workers => workers.min(WORKERS_MAX),
        }
    }

    fn tls(&self) -> Result<Option<ServerConfig>, OptionsError> {
        match (&self.kafka_tls_certificate, &self.kafka_tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(server_config(certificate, key, &[])?)),
            (Some(_), None) | (None, Some(_)) => Err(OptionsError::HalfTls),
        }
    }

    fn limits(&self) -> Result<Limits, OptionsError> {
        let control = CONTROL_REQUEST_BYTES_MAX as u64;
        let request = between("stream.kafka_request_limit", self.kafka_request_limit, control)?;
        let fetch = between("stream.kafka_fetch_limit", self.kafka_fetch_limit, FETCH_BYTES_MIN as u64)?;
        Ok(Limits {
            connections: self.kafka_connections.get(),
            request_bytes: request,
            request_memory_bytes: between(
                "stream.kafka_request_memory",
                self.kafka_request_memory,
                request as u64,
            )?,
            in_flight: self.kafka_in_flight.get(),
            fetch_bytes: fetch,
            fetch_memory_bytes: between("stream.kafka_fetch_memory", self.kafka_fetch_memory, fetch as u64)?,
            request_timeout: self.kafka_request_timeout.into(),
            write_timeout: self.kafka_write_timeout.into(),
            idle_timeout: self.kafka_idle_timeout.into(),
            drain_timeout: self.kafka_drain_timeout.into(),
        })
    }
}

/// The value, if it is `least` or more and no more than the protocol's 32 bits of length can say.
fn between(key: &'static str, value: Size, least: u64) -> Result<usize, OptionsError> {
    let most = 1u64 << 30;
    let fits = (least..=most).contains(&value.0).then_some(value.0);
    fits.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(OptionsError::OutOfRange {
        key,
        least: Size(least),
        most: Size(most),
    })
}

impl Endpoint {
    fn parse(text: &str) -> Result<Self, OptionsError> {
        let refused = || OptionsError::Advertised(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().map_err(|_: ParseIntError| refused())?;
        let fits = !host.is_empty() && host.len() <= 255 && !host.contains(char::is_whitespace) && port != 0;
        fits.then(|| Self { host: host.to_owned(), port }).ok_or_else(refused)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        // A client of IPv4 on a socket of both families is told an address of IPv4.
        Self { host: address.ip().to_canonical().to_string(), port: address.port() }
    }
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
        assert!((1..=WORKERS_DEFAULT_MAX).contains(&resolved.workers));
        assert!(resolved.tls.is_none() && resolved.advertised.is_none());
    }

    #[test]
    fn beyond_loopback_needs_tokens_or_a_word() {
        let open = |options: &mut Options| options.kafka_listen = "0.0.0.0:0".parse().unwrap();
        assert!(matches!(resolve(|options, _| open(options)), Err(OptionsError::Unauthenticated { .. })));
        for allow in [false, true] {
            let told = resolve(|options, auth| {
                open(options);
                auth.allow_unauthenticated = allow;
                auth.tokens_file = (!allow).then(|| "tokens".into());
            });
            assert!(told.is_ok());
        }
    }

    #[test]
    fn contradictions_are_named() {
        let half = resolve(|options, _| options.kafka_tls_key = Some("key.pem".into()));
        assert!(matches!(half, Err(OptionsError::HalfTls)));
        let cramped = resolve(|options, _| options.kafka_request_memory = Size(1 << 20));
        assert!(matches!(cramped, Err(OptionsError::OutOfRange { key: "stream.kafka_request_memory", .. })));
        let vast = resolve(|options, _| options.kafka_request_limit = Size(1 << 31));
        assert!(matches!(vast, Err(OptionsError::OutOfRange { key: "stream.kafka_request_limit", .. })));
    }

    #[test]
    fn an_address_is_told_in_its_own_family() {
        let told = |address: &str| Endpoint::from(address.parse::<SocketAddr>().unwrap()).host;
        assert_eq!(told("[::ffff:127.0.0.1]:9092"), "127.0.0.1");
        assert_eq!(told("[::1]:9092"), "::1");
    }

    #[test]
    fn advertised_addresses_are_read_or_refused() {
        let read = |text: &str| Endpoint::parse(text).ok().map(|found| (found.host, found.port));
        assert_eq!(read("broker.example:19092"), Some(("broker.example".to_owned(), 19092)));
        assert_eq!(read("[::1]:9092"), Some(("::1".to_owned(), 9092)));
        for text in ["", "broker", ":9092", "broker:", "broker:0", "broker:70000", "two words:1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
