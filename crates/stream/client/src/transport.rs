//! Connecting: QUIC, TLS over TCP, or whichever is there first.
//!
//! A [`Path`] is an open connection, and it gives out byte streams: a QUIC connection as many as are asked
//! for, a TCP connection its one. QUIC's packets are set up as on the broker's side: large and pinned on
//! loopback, probed elsewhere, never larger than what the kernel can cut a send into.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    RecvStream, SendStream, TokioRuntime, TransportConfig, VarInt,
};
use rustls_pki_types::ServerName;
use tokio::io::{BufReader, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::address::{Address, Transport};
use crate::limits::{
    ACK_DELAY_MAX, ACK_EVERY_PACKETS, ADDRESS_LEAD, ADDRESSES_TRIED_MAX, BLACK_HOLE_COOLDOWN, END_GRACE,
    MTU_DISCOVERED_MAX, MTU_LEAST, MTU_LOOPBACK, MTU_MAX, QUIC_LEAD, QUIC_WINDOW_BYTES, READ_BYTES,
    UDP_BUFFER_BYTES,
};
use crate::trust::{Trust, TrustError};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The host's name leads nowhere.
    #[error("{host} cannot be looked up")]
    Lookup {
        /// The host.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// The host cannot stand in a certificate.
    #[error("{0} cannot be the name of a server")]
    Name(String),
    /// TCP or TLS fails.
    #[error("no TLS connection")]
    Tls(#[source] io::Error),
    /// The socket for QUIC cannot be had.
    #[error("no UDP socket")]
    Socket(#[source] io::Error),
    /// QUIC cannot begin.
    #[error("no QUIC connection")]
    Begin(#[source] quinn::ConnectError),
    /// QUIC's handshake fails.
    #[error("no QUIC connection")]
    Quic(#[source] quinn::ConnectionError),
    /// Nobody answers in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

type Tls = TlsStream<BufReader<TcpStream>>;

/// The reading end of a byte stream.
#[derive(Debug)]
pub(crate) enum Reader {
    Tls(ReadHalf<Tls>),
    Quic(RecvStream),
}

/// The writing end of a byte stream.
#[derive(Debug)]
pub(crate) enum Writer {
    Tls(WriteHalf<Tls>),
    Quic(SendStream),
}

/// An open connection.
#[derive(Debug)]
pub(crate) enum Path {
    /// Its one stream, until somebody takes it.
    Tls(Mutex<Option<Box<Tls>>>),
    Quic(Connection),
}

impl Path {
    /// A byte stream of its own; none if a TCP connection's is taken.
    pub(crate) async fn stream(&self) -> Option<(Reader, Writer)> {
        match self {
            Self::Tls(stream) => {
                let stream = stream.lock().take()?;
                let (reader, writer) = tokio::io::split(*stream);
                Some((Reader::Tls(reader), Writer::Tls(writer)))
            }
            Self::Quic(connection) => {
                let (send, receive) = connection.open_bi().await.ok()?;
                Some((Reader::Quic(receive), Writer::Quic(send)))
            }
        }
    }

    /// Which transport it goes over.
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Tls(_) => Transport::Tls,
            Self::Quic(_) => Transport::Quic,
        }
    }
}

/// What connections are made with.
pub(crate) struct Dialer {
    address: Address,
    timeout: Duration,
    tls: TlsConnector,
    quic: Arc<QuicClientConfig>,
    idle_timeout: Duration,
    /// One socket for all QUIC connections, by address family, made when first needed.
    endpoints: Mutex<[Option<Endpoint>; 2]>,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Dialer {
    /// Reads what `trust` names.
    pub(crate) fn new(
        address: Address,
        trust: &Trust,
        timeout: Duration,
        idle_timeout: Duration,
    ) -> Result<Self, TrustError> {
        let tls = trust.config()?;
        let quic = QuicClientConfig::try_from(tls.clone())
            .map_err(|_| TrustError::Tls(rustls::Error::General("no cipher for QUIC".into())))?;
        Ok(Self {
            address,
            timeout,
            tls: TlsConnector::from(Arc::new(tls)),
            quic: Arc::new(quic),
            idle_timeout,
            endpoints: Mutex::default(),
        })
    }

    /// Connects, within the time for it.
    pub(crate) async fn dial(&self) -> Result<Path, DialError> {
        let dialed = tokio::time::timeout(self.timeout, async {
            match self.address.transport {
                Transport::Quic => self.quic().await,
                Transport::Tls => self.tls().await,
                Transport::Either => self.race().await,
            }
        });
        dialed.await.unwrap_or(Err(DialError::Timeout(self.timeout)))
    }

    /// QUIC with a lead; TLS beside it when the lead is used up, or at once when QUIC fails (after RFC 8305).
    async fn race(&self) -> Result<Path, DialError> {
        let (mut quic, tls) = (pin!(self.quic()), self.tls());
        match tokio::time::timeout(QUIC_LEAD, &mut quic).await {
            Ok(Ok(path)) => return Ok(path),
            Ok(Err(_)) => return tls.await,
            Err(_) => {}
        }
        let mut tls = pin!(tls);
        tokio::select! {
            biased;
            dialed = &mut quic => match dialed {
                Ok(path) => Ok(path),
                Err(_) => tls.await,
            },
            dialed = &mut tls => match dialed {
                Ok(path) => Ok(path),
                Err(_) => quic.await,
            },
        }
    }

    /// Closes all QUIC connections, and waits until their brokers have been told.
    pub(crate) async fn close(&self) {
        let endpoints: Vec<Endpoint> = self.endpoints.lock().iter().flatten().cloned().collect();
        for endpoint in endpoints {
            endpoint.close(VarInt::from_u32(0), b"bye");
            let _ = tokio::time::timeout(END_GRACE, endpoint.wait_idle()).await;
        }
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, DialError> {
        let Address { host, port, .. } = &self.address;
        let found = lookup_host((host.as_str(), *port)).await;
        let found = found.map_err(|source| DialError::Lookup { host: host.clone(), source })?;
        Ok(found.take(ADDRESSES_TRIED_MAX).collect())
    }

    fn nowhere(&self) -> DialError {
        let source = io::Error::from(io::ErrorKind::NotFound);
        DialError::Lookup { host: self.address.host.clone(), source }
    }

    async fn tls(&self) -> Result<Path, DialError> {
        let host = self.address.host.clone();
        let name = ServerName::try_from(host.clone()).map_err(|_| DialError::Name(host))?;
        let stream = first_to_answer(self.addresses().await?, self.nowhere(), |address| {
            let name = name.clone();
            Box::pin(async move { self.tls_to(address, name).await.map_err(DialError::Tls) })
        });
        Ok(Path::Tls(Mutex::new(Some(Box::new(stream.await?)))))
    }

    async fn tls_to(&self, address: SocketAddr, name: ServerName<'static>) -> io::Result<Tls> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        // rustls reads four kibibytes at a time: from this buffer, not from the kernel.
        self.tls.connect(name, BufReader::with_capacity(READ_BYTES, socket)).await
    }

    async fn quic(&self) -> Result<Path, DialError> {
        let connection = first_to_answer(self.addresses().await?, self.nowhere(), |address| {
            Box::pin(self.quic_to(address))
        });
        Ok(Path::Quic(connection.await?))
    }

    async fn quic_to(&self, address: SocketAddr) -> Result<Connection, DialError> {
        let endpoint = self.endpoint(address).map_err(DialError::Socket)?;
        let mut config = ClientConfig::new(Arc::clone(&self.quic) as _);
        config.transport_config(Arc::new(transport(address.ip(), self.idle_timeout)));
        let connecting = endpoint.connect_with(config, address, &self.address.host);
        connecting.map_err(DialError::Begin)?.await.map_err(DialError::Quic)
    }

    fn endpoint(&self, address: SocketAddr) -> io::Result<Endpoint> {
        let mut endpoints = self.endpoints.lock();
        let place = &mut endpoints[usize::from(address.is_ipv6())];
        if let Some(endpoint) = place {
            return Ok(endpoint.clone());
        }
        let any: SocketAddr = if address.is_ipv6() { ([0u16; 8], 0).into() } else { ([0u8; 4], 0).into() };
        let socket = std::net::UdpSocket::bind(any)?;
        let sizes = socket2::SockRef::from(&socket);
        // As much as the kernel gives.
        let _ = sizes.set_recv_buffer_size(UDP_BUFFER_BYTES);
        let _ = sizes.set_send_buffer_size(UDP_BUFFER_BYTES);
        let mut config = EndpointConfig::default();
        config.max_udp_payload_size(MTU_MAX).map_err(io::Error::other)?;
        let endpoint = Endpoint::new(config, None, socket, Arc::new(TokioRuntime))?;
        *place = Some(endpoint.clone());
        Ok(endpoint)
    }
}

/// An attempt to reach one address.
type Attempt<'a, T> = Pin<Box<dyn Future<Output = Result<T, DialError>> + Send + 'a>>;

/// Tries the addresses one after the other, the next when the one before has failed or has had its lead (RFC
/// 8305 5): one that swallows packets does not keep the others from being tried. The first to answer stays.
async fn first_to_answer<'a, T>(
    addresses: Vec<SocketAddr>,
    mut last: DialError,
    begin: impl Fn(SocketAddr) -> Attempt<'a, T>,
) -> Result<T, DialError> {
    let mut addresses = addresses.into_iter();
    let mut begun: Vec<Attempt<'a, T>> = Vec::new();
    loop {
        begun.extend(addresses.next().map(&begin));
        if begun.is_empty() {
            return Err(last);
        }
        let has_more = !addresses.as_slice().is_empty();
        tokio::select! {
            biased;
            ended = next_to_end(&mut begun) => match ended {
                Ok(answered) => return Ok(answered),
                Err(error) => last = error,
            },
            () = tokio::time::sleep(ADDRESS_LEAD), if has_more => {}
        }
    }
}

/// Waits for one of the attempts to end, and takes it out.
async fn next_to_end<T>(begun: &mut Vec<Attempt<'_, T>>) -> Result<T, DialError> {
    poll_fn(|cx| {
        for at in 0..begun.len() {
            if let Poll::Ready(ended) = begun[at].as_mut().poll(cx) {
                drop(begun.swap_remove(at));
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    })
    .await
}

fn transport(peer: IpAddr, idle_timeout: Duration) -> TransportConfig {
    let (least, most) = match peer.to_canonical().is_loopback() {
        true => (MTU_LOOPBACK, MTU_LOOPBACK),
        false => (MTU_LEAST, MTU_DISCOVERED_MAX),
    };
    let window = VarInt::from_u32(QUIC_WINDOW_BYTES);
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(most).black_hole_cooldown(BLACK_HOLE_COOLDOWN);
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(VarInt::from_u32(ACK_EVERY_PACKETS)).max_ack_delay(Some(ACK_DELAY_MAX));
    // A first window of ten packets (RFC 9002 7.2), also of large ones.
    let mut congestion = CubicConfig::default();
    congestion.initial_window(u64::from(least) * 10);
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .receive_window(window)
        .stream_receive_window(window)
        .send_window(u64::from(QUIC_WINDOW_BYTES))
        .max_idle_timeout(IdleTimeout::try_from(idle_timeout).ok())
        .keep_alive_interval(Some(idle_timeout / 3))
        .initial_mtu(least)
        .min_mtu(least)
        .mtu_discovery_config((most > least).then_some(discovery))
        .congestion_controller_factory(Arc::new(congestion))
        .ack_frequency_config(Some(acks));
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of addresses whose attempts answer after so many milliseconds, fail at once, or never end.
    async fn reached(attempts: &[Option<Result<u64, ()>>]) -> (Option<u16>, Duration) {
        let addresses =
            (0..).zip(attempts).map(|(port, _)| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let began = tokio::time::Instant::now();
        let nowhere = DialError::Timeout(Duration::ZERO);
        let reached = first_to_answer(addresses, nowhere, |address| {
            let attempt = attempts[usize::from(address.port())];
            Box::pin(async move {
                match attempt {
                    None => std::future::pending().await,
                    Some(Err(())) => Err(DialError::Name("refused".to_owned())),
                    Some(Ok(ms)) => {
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        Ok(address.port())
                    }
                }
            })
        });
        (reached.await.ok(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_is_silent_holds_up_nobody_for_long() {
        assert_eq!(reached(&[]).await.0, None);
        assert_eq!(reached(&[Some(Ok(1)), Some(Ok(0))]).await.0, Some(0));
        assert_eq!(reached(&[Some(Err(())), Some(Ok(0))]).await, (Some(1), Duration::ZERO));
        assert_eq!(reached(&[Some(Err(())), Some(Err(()))]).await.0, None);
        let (found, took) = reached(&[None, Some(Ok(5))]).await;
        assert_eq!(found, Some(1));
        assert!(took >= ADDRESS_LEAD && took < ADDRESS_LEAD * 2);
        // The first goes on while the second is tried.
        assert_eq!(reached(&[Some(Ok(400)), None]).await.0, Some(0));
    }
}
