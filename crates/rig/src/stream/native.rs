//! The stream door's own protocol, as much of it as publishing takes, in raw frames.
//!
//! The frame of a batch is the same bytes each time, and so is the answer but for two offsets; so the generator's work
//! is the transport's, as it is with the floor.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use trifid_stream_client::StreamName;
use trifid_stream_client::wire::frame::{
    Ack, Capabilities, Decoder, Frame, PREFACE_LEN, Preface, Reply, Request, publish_head, request,
};

use super::tls;
use crate::args::Transport;

/// The protocol's name in the TLS handshake.
const ALPN: &[u8] = b"trifid-stream/1";
/// The largest frame that is taken, in bytes.
const FRAME_BYTES_MAX: u32 = 16 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// The reading end of a connection.
pub(super) type Reader = Box<dyn AsyncRead + Unpin>;
/// The writing end.
pub(super) type Writer = Box<dyn AsyncWrite + Unpin>;

/// A connection that was greeted.
pub(super) struct Line {
    read: Reader,
    write: Writer,
    decoder: Decoder,
    /// Lives as long as its connections.
    _endpoint: Option<(quinn::Endpoint, quinn::Connection)>,
}

/// Where the door is, and whom to trust.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) certificate: CertificateDer<'static>,
}

impl Door {
    /// Connects, and is greeted.
    pub(super) async fn connect(&self, transport: Transport) -> io::Result<Line> {
        let (read, write, endpoint) = match transport {
            Transport::Tls => self.over_tls().await?,
            Transport::Quic => self.over_quic().await?,
        };
        let mut line = Line {
            read,
            write,
            decoder: Decoder::with_max(FRAME_BYTES_MAX as usize),
            _endpoint: endpoint,
        };
        line.greet().await?;
        Ok(line)
    }

    async fn over_tls(&self) -> io::Result<(Reader, Writer, Option<(quinn::Endpoint, quinn::Connection)>)> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let config = tls::client(&self.certificate, ALPN).map_err(io::Error::other)?;
        let name = ServerName::try_from(tls::NAME).map_err(io::Error::other)?;
        let socket = BufReader::with_capacity(READ_BYTES, socket);
        let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
        let (read, write) = tokio::io::split(stream);
        Ok((Box::new(read), Box::new(write), None))
    }

    async fn over_quic(&self) -> io::Result<(Reader, Writer, Option<(quinn::Endpoint, quinn::Connection)>)> {
        let endpoint = tls::quic_client(&self.certificate, ALPN).map_err(io::Error::other)?;
        let connecting = endpoint.connect(self.address, tls::NAME).map_err(io::Error::other)?;
        let connection = connecting.await?;
        let (write, read) = connection.open_bi().await?;
        Ok((Box::new(read), Box::new(write), Some((endpoint, connection))))
    }
}

impl Line {
    async fn greet(&mut self) -> io::Result<()> {
        self.write.write_all(&Preface::new(Capabilities::ALL).encode()).await?;
        let hello = request::Hello {
            token: None,
            tenant: None,
            client: "bench".to_owned(),
            required: Capabilities::STREAMS,
            max_frame_bytes: FRAME_BYTES_MAX,
        };
        self.send(&hello.into(), 1).await?;
        while self.decoder.buffered() < PREFACE_LEN {
            self.fill().await?;
        }
        self.decoder.preface().map_err(io::Error::other)?;
        match self.reply().await?.1 {
            Reply::Welcome(_) => Ok(()),
            other => Err(io::Error::other(format!("no welcome: {other:?}"))),
        }
    }

    /// Sends a request.
    pub(super) async fn send(&mut self, request: &Request, id: u32) -> io::Result<()> {
        self.write.write_all(&request.encode(id).into_bytes()).await?;
        self.write.flush().await
    }

    /// Asks, and waits for the answer.
    pub(super) async fn ask(&mut self, request: &Request, id: u32) -> io::Result<Reply> {
        self.send(request, id).await?;
        loop {
            match self.reply().await? {
                (of, Reply::Error(refusal)) if of == id => return Err(io::Error::other(refusal.to_string())),
                (of, reply) if of == id => return Ok(reply),
                _ => {}
            }
        }
    }

    /// The next frame, unread.
    pub(super) async fn frame(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    async fn reply(&mut self) -> io::Result<(u32, Reply)> {
        let frame = self.frame().await?;
        Ok((frame.id, Reply::decode(&frame).map_err(io::Error::other)?))
    }

    async fn fill(&mut self) -> io::Result<()> {
        let buffer = self.decoder.buffer();
        buffer.reserve(READ_BYTES);
        match self.read.read_buf(buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The publisher of one batch to one shard of a stream.
    pub(super) async fn publisher(mut self, stream: &str, shard: u32, batch: &Bytes) -> io::Result<Publisher> {
        let name = StreamName::new(stream).map_err(io::Error::other)?;
        let handle = match self.ask(&request::Open { name }.into(), 2).await? {
            Reply::Opened(opened) => opened.handle,
            other => return Err(io::Error::other(format!("not opened: {other:?}"))),
        };
        let mut frame = publish_head(3, handle, shard, 0, Ack::One, batch.len()).to_vec();
        frame.extend_from_slice(batch);
        Ok(Publisher { line: self, frame })
    }
}

/// One connection that publishes.
pub(super) struct Publisher {
    line: Line,
    frame: Vec<u8>,
}

impl Publisher {
    /// Publishes the batch and waits until it is acknowledged.
    pub(super) async fn publish(&mut self) -> io::Result<()> {
        self.line.write.write_all(&self.frame).await?;
        self.line.write.flush().await?;
        match self.line.reply().await? {
            (3, Reply::Published(_)) => Ok(()),
            (_, other) => Err(io::Error::other(format!("not published: {other:?}"))),
        }
    }
}
