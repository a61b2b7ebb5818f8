//! The stream door's own protocol, as much of it as measuring takes, in raw frames.
//!
//! The frame of a request is the same bytes each time, and so is the answer but for a few numbers; so the generator's
//! work is the transport's, as it is with the floor.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut as _, Bytes};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trifid_stream_client::wire::frame::{
    ALPN, Ack, Capabilities, Code, Decoder, Frame, PREFACE_LEN, Policy, Preface, Refusal, Reply, Request,
    Start, publish_head, request,
};
use trifid_stream_client::{CacheName, StreamName};

use super::batch::{Follower, Met};
use super::tls;
use crate::args::Transport;

/// The largest frame that is taken, in bytes.
const FRAME_BYTES_MAX: u32 = 16 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes that a subscription may be sent before it gives credit again.
const CREDIT_BYTES: u64 = 8 << 20;
/// Credit is given back in pieces of so many bytes.
const CREDIT_PIECE_BYTES: u64 = 1 << 20;
/// The id of what a connection asks again and again.
const REQUEST_ID: u32 = 3;

/// A connection that was greeted.
pub(super) struct Line {
    ends: tls::Ends,
    decoder: Decoder,
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
        let ends = tls::dial(transport, self.address, &self.certificate, ALPN).await?;
        let mut line = Line { ends, decoder: Decoder::with_max(FRAME_BYTES_MAX as usize) };
        line.greet().await?;
        Ok(line)
    }
}

impl Line {
    async fn greet(&mut self) -> io::Result<()> {
        self.ends.write.write_all(&Preface::new(Capabilities::ALL).encode()).await?;
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
            other => Err(odd("no welcome", &other)),
        }
    }

    /// Sends a request.
    pub(super) async fn send(&mut self, request: &Request, id: u32) -> io::Result<()> {
        self.send_bytes(&request.encode(id).into_bytes()).await
    }

    async fn send_bytes(&mut self, frame: &[u8]) -> io::Result<()> {
        self.ends.write.write_all(frame).await?;
        self.ends.write.flush().await
    }

    /// Asks, and waits for the answer.
    pub(super) async fn ask(&mut self, request: &Request, id: u32) -> io::Result<Reply> {
        self.send(request, id).await?;
        loop {
            match self.reply().await? {
                (of, Reply::Error(refusal)) if of == id => return Err(refused(&refusal)),
                (of, reply) if of == id => return Ok(reply),
                _ => {}
            }
        }
    }

    /// The next frame, unread.
    async fn frame(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// The next answer or push, and to what.
    pub(super) async fn reply(&mut self) -> io::Result<(u32, Reply)> {
        let frame = self.frame().await?;
        Ok((frame.id, Reply::try_from(frame).map_err(io::Error::other)?))
    }

    async fn fill(&mut self) -> io::Result<()> {
        let wanted = READ_BYTES.max(self.decoder.missing());
        let buffer = self.decoder.buffer();
        buffer.reserve(wanted);
        match self.ends.read.read_buf(&mut buffer.limit(wanted)).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The publisher of one batch to one shard of a stream.
    pub(super) async fn publisher(mut self, stream: &str, batch: &Bytes) -> io::Result<Caller> {
        let name = StreamName::new(stream).map_err(io::Error::other)?;
        let handle = match self.ask(&request::Open { name }.into(), 2).await? {
            Reply::Opened(opened) => opened.handle,
            other => return Err(odd("not opened", &other)),
        };
        let mut frame = publish_head(REQUEST_ID, handle, 0, 0, Ack::One, batch.len()).to_vec();
        frame.extend_from_slice(batch);
        Ok(Caller { line: self, frame })
    }

    /// One that asks a cache the same each time; `request` is given the cache's handle.
    pub(super) async fn cache(
        mut self,
        cache: &str,
        request: impl FnOnce(u32) -> Request,
    ) -> io::Result<Caller> {
        let name = CacheName::new(cache).map_err(io::Error::other)?;
        let handle = match self.ask(&request::CacheOpen { name }.into(), 2).await? {
            Reply::CacheOpened(opened) => opened.handle,
            other => return Err(odd("not opened", &other)),
        };
        Ok(Caller { line: self, frame: request(handle).encode(REQUEST_ID).into_bytes().to_vec() })
    }

    /// Subscribes to a stream of one shard. What comes must be as `expected`, where that is given.
    pub(super) async fn subscriber(
        mut self,
        stream: &str,
        start: Start,
        policy: Policy,
        expected: Option<Bytes>,
    ) -> io::Result<Subscriber> {
        let request = subscribe(stream, start, policy, CREDIT_BYTES)?;
        let start = match self.ask(&request, REQUEST_ID).await? {
            Reply::Subscribed(subscribed) => subscribed.starts.first().map_or(0, |start| start.offset),
            other => return Err(odd("not subscribed", &other)),
        };
        Ok(Subscriber { line: self, follower: Follower::new(start, expected), owed: 0 })
    }
}

/// A subscription to a stream of one shard.
pub(super) fn subscribe(
    stream: &str,
    start: Start,
    policy: Policy,
    credit_bytes: u64,
) -> io::Result<Request> {
    let stream = StreamName::new(stream).map_err(io::Error::other)?;
    Ok(request::Subscribe {
        stream,
        shard: None,
        start,
        resume: Vec::new(),
        policy,
        budget_bytes: 4 << 20,
        credit_bytes,
        max_frame_bytes: FRAME_BYTES_MAX,
    }
    .into())
}

fn odd(what: &str, reply: &Reply) -> io::Error {
    let text = format!("{what}: {reply:?}");
    io::Error::other(format!("{text:.300}"))
}

fn refused(refusal: &Refusal) -> io::Error {
    io::Error::other(refusal.to_string())
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Done; of a publish the offset after its last record.
    Done(u64),
    /// The server is overloaded and asks to come again after this.
    Overloaded(Duration),
}

/// One connection that asks the same again and again.
pub(super) struct Caller {
    line: Line,
    frame: Vec<u8>,
}

impl Caller {
    /// Asks once and waits for the answer.
    pub(super) async fn call(&mut self) -> io::Result<Outcome> {
        match self.answer().await? {
            Reply::Published(published) => Ok(Outcome::Done(published.end_offset)),
            Reply::CacheChanged(_) => Ok(Outcome::Done(0)),
            Reply::CacheValue(value) if value.entry.is_some() => Ok(Outcome::Done(0)),
            Reply::Error(refusal) if matches!(refusal.code, Code::Overloaded { .. }) => {
                Ok(Outcome::Overloaded(Duration::from_millis(refusal.retry_after_ms.max(1).into())))
            }
            Reply::Error(refusal) => Err(refused(&refusal)),
            other => Err(odd("an unexpected answer", &other)),
        }
    }

    /// Asks once, and looks at nothing of the answer but whom it is for.
    pub(super) async fn answer(&mut self) -> io::Result<Reply> {
        self.line.send_bytes(&self.frame).await?;
        match self.line.reply().await? {
            (REQUEST_ID, reply) => Ok(reply),
            (_, other) => Err(odd("not asked for", &other)),
        }
    }
}

/// One connection that subscribes.
pub(super) struct Subscriber {
    line: Line,
    follower: Follower,
    owed: u64,
}

impl Subscriber {
    /// The next offset that it waits for.
    pub(super) fn next_offset(&self) -> u64 {
        self.follower.next()
    }

    /// Takes one frame and tells of each batch in it. Gives credit back.
    pub(super) async fn receive(&mut self, tell: &mut impl FnMut(Met)) -> io::Result<()> {
        let batch = match self.line.reply().await? {
            (REQUEST_ID, Reply::Batch(batch)) => batch,
            (_, other) => return Err(odd("no batch", &other)),
        };
        if self.follower.take(&batch.batches, tell)? != batch.batches.len() {
            return Err(io::Error::other("a frame with a part of a batch"));
        }
        self.owed += batch.cost();
        if self.owed >= CREDIT_PIECE_BYTES {
            let credit = request::Credit { subscription: REQUEST_ID, bytes: self.owed };
            self.owed = 0;
            self.line.send(&credit.into(), REQUEST_ID).await?;
        }
        Ok(())
    }
}
