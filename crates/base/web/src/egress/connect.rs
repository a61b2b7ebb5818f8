//! From a URL to a connection: the guard, in the order in which it looks.
//!
//! ```text
//! scheme allowed? -> host, no credentials -> resolved once -> addresses that are public -> connected to one of them
//! ```
//!
//! The connection is made to an address that was checked, not to a name that could resolve to another one a
//! moment later. A number in disguise (`http://2130706433/`, `http://0x7f.1/`) is a name to us; whatever the
//! resolver makes of it is checked like every other answer.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::address::{Network, classify};
use super::error::{FetchError, Refusal};
use super::pool::{Origin, Sender};
use crate::limits::{ADDRESSES_TRIED_MAX, ANSWER_HEAD_BYTES_MAX};

/// Addresses on their way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Turns a host's name into addresses. The guard checks what it answers.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `host`, with `port`.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a>;
}

/// The operating system's resolver, on the runtime's blocking threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move { Ok(lookup_host((host, port)).await?.collect()) })
    }
}

/// What may go out, and how.
pub(crate) struct Guard {
    pub(crate) allow_private: bool,
    pub(crate) networks: Vec<Network>,
    pub(crate) schemes: Vec<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("allow_private", &self.allow_private)
            .field("networks", &self.networks)
            .field("schemes", &self.schemes)
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// Where a URL leads, if its form lets it out.
    pub(crate) fn origin(&self, uri: &http::Uri) -> Result<Origin, FetchError> {
        let host = uri.host().unwrap_or_default();
        let refused = |refusal| FetchError::Refused { host: host.to_owned(), refusal };
        if host.is_empty() {
            return Err(refused(Refusal::NoHost));
        }
        let scheme = uri.scheme_str().unwrap_or_default();
        let is_tls = match scheme {
            "http" => false,
            "https" => true,
            other => return Err(refused(Refusal::Scheme(other.to_owned()))),
        };
        if !self.schemes.iter().any(|allowed| allowed == scheme) {
            return Err(refused(Refusal::Scheme(scheme.to_owned())));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(refused(Refusal::Credentials));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        Ok(Origin { is_tls, host, port })
    }

    /// A fresh connection to an address of the origin that is let out.
    pub(crate) async fn connect(&self, origin: &Origin) -> Result<Sender, FetchError> {
        let addresses = self.resolve(origin).await?;
        let stream = self.dial(origin, &addresses).await?;
        if origin.is_tls {
            let stream = self.encrypt(origin, stream).await?;
            handshake(origin, stream).await
        } else {
            handshake(origin, stream).await
        }
    }

    /// The addresses of the origin that may be connected to, few enough to try.
    async fn resolve(&self, origin: &Origin) -> Result<Vec<SocketAddr>, FetchError> {
        let found = match origin.host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, origin.port)],
            Err(_) => self.look_up(origin).await?,
        };
        let mut refusal = None;
        let mut allowed: Vec<_> =
            found.into_iter().filter(|address| self.lets_out(*address, &mut refusal)).collect();
        allowed.truncate(ADDRESSES_TRIED_MAX);
        match (allowed.is_empty(), refusal) {
            (false, _) => Ok(allowed),
            (true, Some(refusal)) => Err(FetchError::Refused { host: origin.host.clone(), refusal }),
            (true, None) => Err(unresolved(origin, io::ErrorKind::NotFound.into())),
        }
    }

    async fn look_up(&self, origin: &Origin) -> Result<Vec<SocketAddr>, FetchError> {
        self.resolver.resolve(&origin.host, origin.port).await.map_err(|source| unresolved(origin, source))
    }

    /// Whether an address may be connected to; if not, why.
    fn lets_out(&self, address: SocketAddr, refusal: &mut Option<Refusal>) -> bool {
        let address = address.ip();
        let allowed = self.allow_private || self.networks.iter().any(|network| network.contains(address));
        match classify(address) {
            Some(class) if !allowed => {
                refusal.get_or_insert(Refusal::Address { address, class });
                false
            }
            _ => true,
        }
    }

    async fn dial(&self, origin: &Origin, addresses: &[SocketAddr]) -> Result<TcpStream, FetchError> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            match tokio::time::timeout(self.connect_timeout, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(FetchError::Connect { host: origin.host.clone(), source: last })
    }

    async fn encrypt(
        &self,
        origin: &Origin,
        stream: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static, FetchError> {
        let failed = |source| FetchError::Tls { host: origin.host.clone(), source };
        let name = ServerName::try_from(origin.host.clone())
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await.map_err(failed)
    }
}

fn unresolved(origin: &Origin, source: io::Error) -> FetchError {
    FetchError::Resolve { host: origin.host.clone(), source }
}

/// Begins HTTP/1.1 on a stream; the connection is driven by a task that ends with it.
async fn handshake<S>(origin: &Origin, stream: S) -> Result<Sender, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(ANSWER_HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|source| FetchError::Exchange { host: origin.host.clone(), source })?;
    // How it ends is told to whoever waits for an answer on it.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
