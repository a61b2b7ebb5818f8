//! What a door answers with: nothing, one buffer, or a stream of buffers.
//!
//! Nearly every answer is one contiguous buffer, so that is the variant that costs nothing: the bytes go to the
//! socket with the head in one write; a large one is never copied on the way. A result that is produced while it is
//! sent travels through a bounded channel instead: the producer waits when the client is slow, so memory is
//! bounded by the channel's capacity and not by the result.
//!
//! A stream ends well only when its producer says so with [`BodySender::finish`]. A producer that fails or is
//! dropped tears the message: the connection closes without the last chunk (RST_STREAM in HTTP/2), so that
//! no client takes half a result for a whole one.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

/// Why the body of an answer broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The producer went away before the end of the message.
    #[error("the producer of the body stopped before its end")]
    Aborted,
}

/// The client no longer reads this body: stop producing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client no longer reads the body")]
pub struct Gone;

/// The body of a [`Response`](crate::Response).
pub struct Body(Repr);

enum Repr {
    Empty,
    Full(Bytes),
    Stream(mpsc::Receiver<Piece>),
}

enum Piece {
    Data(Bytes),
    Trailers(Box<HeaderMap>),
    End,
}

impl Body {
    /// No body.
    pub const fn empty() -> Self {
        Self(Repr::Empty)
    }

    /// One buffer, sent as it is with its length.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        if bytes.is_empty() { Self::empty() } else { Self(Repr::Full(bytes)) }
    }

    /// A body that is produced while it is sent; at most `capacity` buffers wait (at least one).
    pub fn channel(capacity: usize) -> (BodySender, Self) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (BodySender(sender), Self(Repr::Stream(receiver)))
    }

    /// The whole body, unless it is a stream.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Repr::Empty => Some(&[]),
            Repr::Full(bytes) => Some(bytes),
            Repr::Stream(_) => None,
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Empty => f.write_str("Body(empty)"),
            Repr::Full(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Repr::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::full(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::full(text)
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::full(text)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Repr::Empty => Poll::Ready(None),
            Repr::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Repr::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Repr::Stream(receiver) => {
                let piece = ready!(receiver.poll_recv(cx));
                if !matches!(piece, Some(Piece::Data(_))) {
                    self.0 = Repr::Empty;
                }
                Poll::Ready(match piece {
                    Some(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes))),
                    Some(Piece::Trailers(fields)) => Some(Ok(Frame::trailers(*fields))),
                    Some(Piece::End) => None,
                    None => Some(Err(BodyError::Aborted)),
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Repr::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Repr::Empty => SizeHint::with_exact(0),
            Repr::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Repr::Stream(_) => SizeHint::default(),
        }
    }
}

/// The producing end of a streamed body.
#[derive(Debug)]
pub struct BodySender(mpsc::Sender<Piece>);

impl BodySender {
    /// Hands over one buffer, waiting while the client is behind. Empty buffers are skipped.
    pub async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.0.send(Piece::Data(bytes)).await.map_err(|_| Gone)
    }

    /// Waits until one more buffer has its place, for who has something else to do when the client is slow.
    pub async fn slot(&self) -> Result<Slot<'_>, Gone> {
        self.0.reserve().await.map(Slot).map_err(|_| Gone)
    }

    /// Waits until the client no longer reads the body: a producer that has nothing to send yet learns of it here.
    pub async fn gone(&self) {
        self.0.closed().await;
    }

    /// Hands over one buffer from a thread that may block (the compute pool).
    pub fn send_blocking(&self, bytes: Bytes) -> Result<(), Gone> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.0.blocking_send(Piece::Data(bytes)).map_err(|_| Gone)
    }

    /// Ends the message well. Without this call the client sees it torn.
    pub async fn finish(self) -> Result<(), Gone> {
        self.0.send(Piece::End).await.map_err(|_| Gone)
    }

    /// Ends the message well, with trailer fields (RFC 9110 6.5). They reach clients that sent `TE: trailers`, and only
    /// those that the head announced in `Trailer`.
    pub async fn finish_with(self, trailers: HeaderMap) -> Result<(), Gone> {
        self.0.send(Piece::Trailers(Box::new(trailers))).await.map_err(|_| Gone)
    }

    /// Ends the message well from a thread that may block.
    pub fn finish_blocking(self) -> Result<(), Gone> {
        self.0.blocking_send(Piece::End).map_err(|_| Gone)
    }
}

/// A place for one buffer, reserved. Dropped unused, it is free again.
#[derive(Debug)]
pub struct Slot<'a>(mpsc::Permit<'a, Piece>);

impl Slot<'_> {
    /// Hands over the buffer.
    pub fn put(self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.0.send(Piece::Data(bytes));
        }
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(bytes) => write!(f, "Data({} bytes)", bytes.len()),
            Self::Trailers(fields) => write!(f, "Trailers({} fields)", fields.len()),
            Self::End => f.write_str("End"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_full_body_is_one_frame_with_its_length() {
        let body = Body::full("abc");
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(3));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
    }

    #[test]
    fn an_empty_buffer_is_no_body() {
        assert!(http_body::Body::is_end_stream(&Body::full("")));
        assert_eq!(Body::empty().bytes(), Some(&[][..]));
    }

    #[tokio::test]
    async fn a_finished_stream_is_whole() {
        let (sender, body) = Body::channel(1);
        let producer = tokio::spawn(async move {
            for piece in ["a", "", "b"] {
                sender.send(Bytes::from(piece)).await.unwrap();
            }
            sender.finish().await.unwrap();
        });
        assert_eq!(body.collect().await.unwrap().to_bytes(), "ab");
        producer.await.unwrap();
    }

    #[tokio::test]
    async fn a_dropped_producer_tears_the_stream() {
        let (sender, body) = Body::channel(4);
        sender.send(Bytes::from("a")).await.unwrap();
        drop(sender);
        assert_eq!(body.collect().await.map(|_| ()), Err(BodyError::Aborted));
    }

    #[tokio::test]
    async fn a_stream_may_end_with_trailers() {
        let (sender, body) = Body::channel(4);
        sender.slot().await.unwrap().put(Bytes::from("a"));
        let fields = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("e"))]);
        sender.finish_with(fields).await.unwrap();
        let whole = body.collect().await.unwrap();
        assert_eq!(whole.trailers().unwrap()["etag"], "e");
        assert_eq!(whole.to_bytes(), "a");
    }

    #[tokio::test]
    async fn a_slot_is_there_when_the_client_has_read() {
        let (sender, mut body) = Body::channel(1);
        sender.slot().await.unwrap().put(Bytes::from("a"));
        assert!(at_once(sender.slot()).is_none(), "the one place is taken");
        assert!(body.frame().await.is_some());
        assert!(at_once(sender.slot()).is_some());
        drop(body);
        sender.gone().await;
        assert!(matches!(sender.slot().await, Err(Gone)));
    }

    /// What a future has to say at once.
    fn at_once<F: Future>(future: F) -> Option<F::Output> {
        match std::pin::pin!(future).poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn a_producer_learns_that_nobody_reads() {
        let (sender, body) = Body::channel(1);
        drop(body);
        assert_eq!(sender.send(Bytes::from("a")).await, Err(Gone));
    }
}
