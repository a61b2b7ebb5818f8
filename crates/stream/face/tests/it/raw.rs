//! Bytes on a byte stream, without the client's good manners.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use trifid_stream_model::frame::{Ack, Capabilities, Decoder, PREFACE_LEN, Preface, Reply, Request, request};
use trifid_stream_model::names::StreamName;

use crate::harness::House;

/// Believes the listener under test.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn tls(alpn: &[u8]) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    if !alpn.is_empty() {
        config.alpn_protocols = vec![alpn.to_vec()];
    }
    config
}

/// One byte stream.
pub(crate) struct Raw {
    reader: Box<dyn AsyncRead + Unpin + Send>,
    writer: Box<dyn AsyncWrite + Unpin + Send>,
    decoder: Decoder,
    has_preface: bool,
    next_id: u32,
    _endpoint: Option<(quinn::Endpoint, quinn::Connection)>,
}

impl Raw {
    pub(crate) async fn connect(house: &House, scheme: &str) -> Self {
        Self::try_connect(house, scheme, trifid_stream_face::ALPN).await.unwrap()
    }

    pub(crate) async fn try_connect(house: &House, scheme: &str, alpn: &[u8]) -> io::Result<Self> {
        let decoder = Decoder::with_max(16 << 20);
        match scheme {
            "tls" => {
                let socket = tokio::net::TcpStream::connect(house.address).await?;
                let connector = tokio_rustls::TlsConnector::from(Arc::new(tls(alpn)));
                let stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await?;
                let (reader, writer) = tokio::io::split(stream);
                let (reader, writer) = (Box::new(reader), Box::new(writer));
                Ok(Self { reader, writer, decoder, has_preface: false, next_id: 0, _endpoint: None })
            }
            _ => {
                let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap())?;
                let config =
                    quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls(alpn)).unwrap()));
                let connecting =
                    endpoint.connect_with(config, house.address, "localhost").map_err(io::Error::other)?;
                let connection = connecting.await.map_err(io::Error::other)?;
                let (send, receive) = connection.open_bi().await.map_err(io::Error::other)?;
                let (reader, writer) = (Box::new(receive), Box::new(send));
                let endpoint = Some((endpoint, connection));
                Ok(Self { reader, writer, decoder, has_preface: false, next_id: 0, _endpoint: endpoint })
            }
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        // The other side may have had enough already.
        let _ = self.writer.write_all(bytes).await;
        let _ = self.writer.flush().await;
    }

    pub(crate) async fn send(&mut self, request: impl Into<Request>) -> u32 {
        self.next_id += 1;
        let frame = request.into().encode(self.next_id).into_bytes();
        self.write(&frame).await;
        self.next_id
    }

    pub(crate) async fn preface(&mut self) {
        self.write(&Preface::new(Capabilities::ALL).encode()).await;
    }

    pub(crate) fn hello() -> request::Hello {
        request::Hello {
            token: None,
            tenant: None,
            client: "raw".to_owned(),
            required: Capabilities::STREAMS,
            max_frame_bytes: 16 << 20,
        }
    }

    /// Preface, Hello and Welcome.
    pub(crate) async fn greet(&mut self) {
        self.preface().await;
        self.send(Self::hello()).await;
        assert!(matches!(self.read().await, Some((_, Reply::Welcome(_)))));
    }

    /// The next frame, or none at the end.
    pub(crate) async fn read(&mut self) -> Option<(u32, Reply)> {
        loop {
            if !self.has_preface {
                if self.decoder.buffered() < PREFACE_LEN {
                    self.more().await?;
                    continue;
                }
                self.decoder.preface().unwrap().unwrap();
                self.has_preface = true;
            }
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some((frame.id, Reply::decode(&frame).unwrap()));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Option<()> {
        let buffer: &mut BytesMut = self.decoder.buffer();
        match self.reader.read_buf(buffer).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }

    /// Reads until the end; answers the last frame.
    pub(crate) async fn read_to_end(&mut self) -> Option<(u32, Reply)> {
        let mut last = None;
        while let Some(frame) = self.read().await {
            last = Some(frame);
        }
        last
    }

    /// Opens a stream for publishing.
    pub(crate) async fn open(&mut self, name: &str) -> u32 {
        self.send(request::Open { name: StreamName::new(name).unwrap() }).await;
        match self.read().await {
            Some((_, Reply::Opened(opened))) => opened.handle,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn publish(&mut self, handle: u32, ack: Ack, batches: Bytes) -> u32 {
        self.send(Request::Publish(request::Publish { handle, shard: 0, epoch: 0, ack, batches })).await
    }
}

/// A batch with these values.
pub(crate) fn batch(values: &[&[u8]]) -> Bytes {
    use trifid_stream_model::batch::{BatchBuilder, BuildOptions, RecordData};
    let options = BuildOptions { max_bytes: 8 << 20, ..BuildOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for value in values {
        builder.append(&RecordData { timestamp: 1, value: Some(value), ..RecordData::default() }).unwrap();
    }
    builder.finish(None).unwrap().unwrap()
}
