//! TLS and QUIC for the floors and for the generator: the same versions, suites and windows on both sides.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::echo;
use crate::args::Transport;
use crate::error::Error;

/// What a floor's certificate is for.
const NAME: &str = "localhost";
/// The protocol of the floors' frames.
pub(super) const ALPN: &[u8] = b"trifid-floor/1";
/// Bytes of a packet: QUIC on a loopback interface need not be cut as the Internet cuts it, and ten of these are what
/// the kernel cuts one send into.
const MTU_BYTES: u16 = 6000;
/// Bytes of the largest packet that is taken.
const MTU_BYTES_MAX: u16 = 8900;
/// Packets for which one acknowledgement is enough, and how long it may wait for more.
const ACK_EVERY: (u32, Duration) = (10, Duration::from_millis(5));
/// Bytes of kernel memory of a UDP socket in each direction.
const UDP_BUFFER_BYTES: usize = 4 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes that one stream may have in flight.
const WINDOW_BYTES: u32 = 8 << 20;
const IDLE: Duration = Duration::from_secs(30);

/// A floor's certificate.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    /// Makes one and writes its public half to `path`, for the generator to trust.
    pub(super) fn made(path: &Path) -> Result<Self, Error> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
        let made = made.map_err(|error| Error::Options(format!("the floor's certificate: {error}")))?;
        std::fs::write(path, made.cert.pem()).map_err(Error::file(path))?;
        Ok(Identity { certificate: made.cert.der().clone(), key: made.signing_key.serialize_der() })
    }

    /// For connections over TCP.
    pub(super) fn server(&self) -> io::Result<ServerConfig> {
        let key = echo::key(self.key.clone()).map_err(io::Error::other)?;
        let config = ServerConfig::builder_with_protocol_versions(&[&rustls::version::TLS13])
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key);
        let mut config = config.map_err(io::Error::other)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }

    /// For connections over QUIC.
    pub(super) fn quic_server(&self) -> io::Result<quinn::ServerConfig> {
        let crypto = QuicServerConfig::try_from(self.server()?).map_err(io::Error::other)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(Arc::new(transport()?));
        Ok(config)
    }
}

/// A client that trusts one certificate and speaks one protocol.
fn client(trusted: &CertificateDer<'static>, alpn: &[u8]) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots
        .add(trusted.clone())
        .map_err(|error| Error::Options(format!("the floor's certificate: {error}")))?;
    let mut config = ClientConfig::builder_with_protocol_versions(&[&rustls::version::TLS13])
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}

/// Both directions of a connection, whatever carries it.
pub(super) struct Ends {
    pub(super) read: Box<dyn AsyncRead + Unpin>,
    pub(super) write: Box<dyn AsyncWrite + Unpin>,
    /// Lives as long as its connections.
    _endpoint: Option<(quinn::Endpoint, quinn::Connection)>,
}

/// Connects to whoever has this certificate.
pub(super) async fn dial(
    transport: Transport,
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    alpn: &[u8],
) -> io::Result<Ends> {
    match transport {
        Transport::Tls => over_tls(address, trusted, alpn).await,
        Transport::Quic => over_quic(address, trusted, alpn).await,
    }
}

async fn over_tls(address: SocketAddr, trusted: &CertificateDer<'static>, alpn: &[u8]) -> io::Result<Ends> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let config = client(trusted, alpn).map_err(io::Error::other)?;
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    // Rustls reads four kibibytes at a time: from this buffer, not from the kernel.
    let socket = BufReader::with_capacity(READ_BYTES, socket);
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    let (read, write) = tokio::io::split(stream);
    Ok(Ends { read: Box::new(read), write: Box::new(write), _endpoint: None })
}

async fn over_quic(address: SocketAddr, trusted: &CertificateDer<'static>, alpn: &[u8]) -> io::Result<Ends> {
    let endpoint = quic_client(trusted, alpn).map_err(io::Error::other)?;
    let connection = endpoint.connect(address, NAME).map_err(io::Error::other)?.await?;
    let (write, read) = connection.open_bi().await?;
    Ok(Ends { read: Box::new(read), write: Box::new(write), _endpoint: Some((endpoint, connection)) })
}

/// The end of a client's QUIC connections, on a socket of its own.
fn quic_client(trusted: &CertificateDer<'static>, alpn: &[u8]) -> Result<quinn::Endpoint, Error> {
    let crypto = QuicClientConfig::try_from(client(trusted, alpn)?)
        .map_err(|error| Error::Options(format!("QUIC's cipher suites: {error}")))?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport().map_err(Error::system("QUIC's settings"))?));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut endpoint = endpoint(any, None).map_err(Error::system("a UDP socket"))?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// An end of QUIC connections with large packets and buffers.
pub(super) fn endpoint(at: SocketAddr, server: Option<quinn::ServerConfig>) -> io::Result<quinn::Endpoint> {
    let socket = UdpSocket::bind(at)?;
    // The system may give less, to both sides alike.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, UDP_BUFFER_BYTES);
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, UDP_BUFFER_BYTES);
    let mut config = quinn::EndpointConfig::default();
    config.max_udp_payload_size(MTU_BYTES_MAX).map_err(io::Error::other)?;
    quinn::Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime))
}

fn transport() -> io::Result<quinn::TransportConfig> {
    let mut acks = quinn::AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(ACK_EVERY.0.into()).max_ack_delay(Some(ACK_EVERY.1));
    let mut config = quinn::TransportConfig::default();
    config
        .initial_mtu(MTU_BYTES)
        .min_mtu(MTU_BYTES)
        .mtu_discovery_config(None)
        .ack_frequency_config(Some(acks))
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window((4 * WINDOW_BYTES).into())
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(Some(IDLE.try_into().map_err(io::Error::other)?));
    Ok(config)
}
