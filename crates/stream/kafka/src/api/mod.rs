//! The APIs: what a request asks, what the engine does about it, what the client is told.
//!
//! A [`Session`] is one connection's side of it: it knows who the client is, checks a request against the
//! [`table`], and starts it. What has been [`Started`] is ready at once, or waits for an acknowledgement, or is a
//! future.

mod admin;
mod caller;
mod cluster;
mod codes;
mod commits;
mod configs;
mod fetch;
mod groups;
mod members;
mod offsets;
mod produce;
mod sasl;
mod session;
pub(crate) mod table;
mod topics;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

pub(crate) use self::session::Session;
use crate::api::fetch::Fetched;
use crate::api::produce::{Fared, Producing};
use crate::server::End;
use crate::wire::Malformed;
use crate::wire::head::Head;
use crate::wire::writer::close;

/// What a request came to.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A whole frame.
    Frame(Bytes),
    /// How publishes fared.
    Produced(Fared),
    /// Records.
    Fetched(Box<Fetched>),
    /// The client wants none (`acks=0`).
    Nothing,
    /// A frame, and then the end of the connection.
    Last(Bytes, End),
    /// The end of the connection.
    End(End),
}

/// A request that has been begun.
pub(crate) enum Started {
    /// Answered.
    Ready(Option<Answer>),
    /// Published; the answer waits for the commit.
    Producing(Producing),
    /// Something to wait for. If the client leaves meanwhile it can be dropped.
    Later(Pin<Box<dyn Future<Output = Answer>>>),
    /// Not begun, because earlier publishes of the connection take all the memory that it may have.
    Postponed(Bytes),
}

impl Started {
    /// Asks whether it is answered. After the answer there is no other.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self {
            Self::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Answer::Nothing)),
            Self::Producing(producing) => producing.poll(cx),
            Self::Later(future) => future.as_mut().poll(cx),
            Self::Postponed(_) => Poll::Ready(Answer::Nothing),
        }
    }

    /// Whether the next request may be begun before this one is answered.
    pub(crate) fn lets_others_begin(&self) -> bool {
        match self {
            Self::Producing(_) | Self::Ready(None) => true,
            Self::Later(_) | Self::Postponed(_) => false,
            Self::Ready(Some(answer)) => match answer {
                Answer::Frame(_) | Answer::Produced(_) | Answer::Nothing => true,
                // Records that were fetched count as memory only once they are on their way.
                Answer::Fetched(_) => false,
                // Nothing comes after the end.
                Answer::Last(..) | Answer::End(_) => false,
            },
        }
    }

    /// Whether nothing is lost without it when the client is gone.
    pub(crate) fn may_be_dropped(&self) -> bool {
        matches!(self, Self::Later(_) | Self::Postponed(_))
    }
}

/// Reads a body whose shape has been checked.
fn decode<Q: Decodable>(body: Bytes, version: i16) -> Result<Q, Malformed> {
    let mut body = body;
    Q::decode(&mut body, version).map_err(|_| Malformed::Body)
}

/// The frame of an answer.
fn encode<R: Encodable + HeaderVersion>(head: &Head, response: &R) -> Answer {
    let mut out = BytesMut::with_capacity(128);
    out.put_i32(0);
    out.put_i32(head.correlation);
    if R::header_version(head.version) > 0 {
        out.put_u8(0);
    }
    match response.encode(&mut out, head.version) {
        Ok(()) => {
            close(&mut out, 0, 0);
            Answer::Frame(out.freeze())
        }
        Err(error) => {
            // A field that the version does not have: a mistake of ours, which a test over all versions looks for.
            tracing::error!(key = head.key, version = head.version, %error, "an answer cannot be written");
            Answer::End(End::Broken(std::io::Error::other("an answer cannot be written")))
        }
    }
}
