//! Those who publish: one kind for each server, all with one batch that is the same each time.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::batch::Met;
use super::frames::{self, HEAD_BYTES};
use super::native::Outcome;
use super::{kafka, native, nats, tls};
use crate::args::Transport;
use crate::error::Error;

/// One connection that publishes, or asks a cache.
pub(super) enum Publisher {
    /// Frames to a floor.
    Floor(Frames),
    /// Frames to the stream door.
    Native(native::Caller),
    /// Requests to the Kafka listener.
    Kafka(kafka::Publisher),
    /// Messages to NATS: the payload of each and how many make a batch.
    Nats {
        /// The connection.
        connection: nats::Publisher,
        /// One message.
        payload: Bytes,
        /// Messages of a batch.
        count: usize,
    },
}

impl Publisher {
    /// Publishes one batch and waits until it is acknowledged.
    pub(super) async fn publish(&mut self) -> io::Result<Outcome> {
        match self {
            Publisher::Floor(frames) => frames.publish().await.map(|()| Outcome::Done(0)),
            Publisher::Native(caller) => caller.call().await,
            Publisher::Kafka(publisher) => publisher.publish().await,
            Publisher::Nats { connection, payload, count } => {
                connection.publish(payload, *count).await.map(|()| Outcome::Done(0))
            }
        }
    }
}

/// One connection that is given what was published.
pub(super) enum Subscriber {
    /// Frames of the stream door.
    Native(native::Subscriber),
    /// Fetches from the Kafka listener.
    Kafka(kafka::Fetcher),
}

impl Subscriber {
    /// The next offset that it waits for.
    pub(super) fn next_offset(&self) -> u64 {
        match self {
            Subscriber::Native(subscriber) => subscriber.next_offset(),
            Subscriber::Kafka(fetcher) => fetcher.next_offset(),
        }
    }

    /// Waits for something and tells of each batch in it.
    pub(super) async fn receive(&mut self, tell: &mut impl FnMut(Met)) -> io::Result<()> {
        match self {
            Subscriber::Native(subscriber) => subscriber.receive(tell).await,
            Subscriber::Kafka(fetcher) => fetcher.receive(tell).await,
        }
    }
}

/// A connection to a floor.
pub(super) struct Frames {
    ends: tls::Ends,
    frame: Vec<u8>,
    answer: Vec<u8>,
}

/// Where a floor is, and whom to trust.
pub(super) struct Floor {
    pub(super) address: SocketAddr,
    pub(super) transport: Transport,
    pub(super) certificate: CertificateDer<'static>,
    /// Bytes of an answer: an acknowledgement, or the frame itself.
    pub(super) echoes: bool,
}

impl Floor {
    /// A connection whose batch is this payload.
    pub(super) async fn connect(&self, number: u32, payload: &[u8]) -> Result<Publisher, Error> {
        let frame = frames::frame(number, payload);
        let answer = vec![0; if self.echoes { frame.len() } else { HEAD_BYTES }];
        let dialed = tls::dial(self.transport, self.address, &self.certificate, tls::ALPN).await;
        let ends = dialed.map_err(|source| Error::Connection { name: "the floor", source })?;
        Ok(Publisher::Floor(Frames { ends, frame, answer }))
    }
}

impl Frames {
    async fn publish(&mut self) -> io::Result<()> {
        self.ends.write.write_all(&self.frame).await?;
        self.ends.write.flush().await?;
        self.ends.read.read_exact(&mut self.answer).await?;
        if self.answer[4..8] == self.frame[4..8] { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}
