//! One connection: requests in, answers out in the same order, many of them on their way at once.
//!
//! ```text
//! socket -> input -> frame -> start -> queue of answers, ready or not -> outbox -> socket
//!                               |         the front one is asked whether it is ready
//!                               `- publishes at once; an acknowledgement is all that waits
//! ```
//!
//! A producer may have many requests on the way: each is published when it is read, its place in the queue waits for
//! the commit, and one commit that settles many of them leaves as one write. Anything else that waits (a fetch for
//! records, a member for its group, an offset for its commit) holds back the requests behind it, as clients of Kafka
//! expect. The whole is one future without a task, lock, channel or timer of its own; a fetch that waits has a timer.
//!
//! Bounds: requests in progress, bytes of one request, bytes of all large requests together, bytes of answers not yet
//! written. At each of them the connection is not read, and the client's window closes.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use super::outbox::Outbox;
use super::shared::{Held, PERMIT_BYTES};
use super::watch::{Enlisted, Order};
use super::worker::Worker;
use crate::api::{Answer, Session, Started};
use crate::limits::{READ_BUFFER_BYTES, UNWRITTEN_BYTES_MAX};
use crate::wire::Malformed;
use crate::wire::frame::{self, FrameError, Next};

/// Bytes of the first read.
const READ_BYTES_FIRST: usize = 1024;

/// Turns of the loop before other connections get theirs.
const TURNS_MAX: usize = 32;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    /// The client closed it.
    #[error("the client closed it")]
    Gone,
    /// The watch or the drain said so.
    #[error("it was told to end")]
    Ordered,
    /// Bytes that are no request.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A request above the limit, or below nothing.
    #[error(transparent)]
    TooLarge(#[from] FrameError),
    /// An API or a version that is not served.
    #[error("API {key} version {version} is not served")]
    Unsupported {
        /// The API's key.
        key: i16,
        /// The version.
        version: i16,
    },
    /// A request before the client said who it is.
    #[error("it asked before it said who it is")]
    Stranger,
    /// A token that nobody has.
    #[error("its token is not known")]
    Denied,
    /// A produce without acknowledgement failed, which only the end of the connection can tell.
    #[error("a produce without acknowledgement failed")]
    Unacknowledged,
    /// The tokens were read again.
    #[error("the tokens were read again, and it has to say anew who it is")]
    Reauthenticate,
    /// The socket failed.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}

/// Memory for a request that does not fit a read buffer.
enum Room {
    /// Not needed.
    None,
    /// Others have it.
    Waiting(Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>>>>),
    /// Until the request has been begun.
    Held(#[allow(dead_code)] OwnedSemaphorePermit),
}

/// A connection: a future that is ready when the connection has ended.
pub(crate) struct Connection<S> {
    stream: S,
    worker: Rc<Worker>,
    enlisted: Enlisted,
    session: Session,
    input: BytesMut,
    read_bytes: usize,
    /// The request that is being read is larger than a read buffer, and ends where the input's capacity does.
    room: Room,
    /// A frame that could not be begun for want of memory of its own publishes.
    postponed: Option<Bytes>,
    queue: VecDeque<Started>,
    outbox: Outbox,
    held: Vec<Held>,
    is_ended: bool,
    last: Option<End>,
}

impl<S> Connection<S> {
    pub(crate) fn new(stream: S, enlisted: Enlisted, session: Session, worker: Rc<Worker>) -> Self {
        Self {
            stream,
            worker,
            enlisted,
            session,
            input: BytesMut::new(),
            read_bytes: READ_BYTES_FIRST,
            room: Room::None,
            postponed: None,
            queue: VecDeque::new(),
            outbox: Outbox::default(),
            held: Vec::new(),
            is_ended: false,
            last: None,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Connection<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        match this.turns(cx) {
            Ok(()) => Poll::Pending,
            Err(end) => {
                // Before the socket closes: whoever sees the end finds it counted.
                this.worker.note(&end, this.session.peer());
                Poll::Ready(())
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn turns(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        for _ in 0..TURNS_MAX {
            let order = self.enlisted.link.order(cx.waker());
            if order == Order::Cut {
                return Err(End::Ordered);
            }
            let mut moved = self.settle(cx);
            if self.last.is_none() && order == Order::Serve {
                moved |= self.begin();
            }
            moved |= self.settle(cx);
            moved |= self.flush(cx)?;
            self.finish(order)?;
            moved |= self.read(cx)?;
            self.note();
            if !moved {
                return Ok(());
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Moves answers that are ready from the front of the queue into the outbox.
    fn settle(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while self.outbox.len() < UNWRITTEN_BYTES_MAX {
            let Some(front) = self.queue.front_mut() else { break };
            let Poll::Ready(answer) = front.poll(cx) else { break };
            self.queue.pop_front();
            moved = true;
            self.answer(answer);
        }
        moved
    }

    fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Frame(frame) => self.outbox.push(frame),
            Answer::Produced(produced) => self.outbox.write(|out, _| produced.write(out)),
            Answer::Fetched(fetched) => {
                let bytes = fetched.bytes();
                self.worker.counts().bytes_out.add(bytes as u64);
                self.held.push(self.worker.shared.hold_fetched(bytes));
                self.outbox.write(|out, piece| fetched.write(out, piece));
            }
            Answer::Nothing => {}
            Answer::Last(frame, end) => {
                self.outbox.push(frame);
                self.stop(end);
            }
            Answer::End(end) => self.stop(end),
        }
    }

    /// Nothing behind this is answered.
    fn stop(&mut self, end: End) {
        self.last = Some(end);
        self.queue.clear();
        self.postponed = None;
        self.input = BytesMut::new();
        self.room = Room::None;
    }

    /// Begins requests that have arrived, as far as there may be more in progress.
    fn begin(&mut self) -> bool {
        let mut moved = false;
        while self.last.is_none() && self.may_begin() {
            let Some(frame) = self.next_frame() else { break };
            self.enlisted.has_asked();
            match self.session.start(frame, &self.worker) {
                Started::Postponed(frame) if !self.queue.is_empty() => {
                    self.postponed = Some(frame);
                    break;
                }
                Started::Postponed(frame) => {
                    let started = self.session.start_refusing(frame, &self.worker);
                    self.queue.push_back(started);
                }
                started => self.queue.push_back(started),
            }
            self.room = Room::None;
            moved = true;
        }
        moved
    }

    fn may_begin(&self) -> bool {
        self.queue.len() < self.worker.shared.resolved.limits.in_flight
            && self.outbox.len() < UNWRITTEN_BYTES_MAX
            && self.queue.back().is_none_or(Started::lets_others_begin)
    }

    fn next_frame(&mut self) -> Option<Bytes> {
        if let Some(frame) = self.postponed.take() {
            return Some(frame);
        }
        match frame::next(&mut self.input, self.session.request_bytes_max(&self.worker.shared)) {
            Ok(Next::Frame(frame)) => {
                // A large request has a buffer of its own. Letting go of it leaves its records the only owner, so
                // that the engine can write their offsets in place.
                if self.input.is_empty() && matches!(self.room, Room::Held(_)) {
                    self.input = BytesMut::new();
                }
                Some(frame)
            }
            Ok(Next::Partial { .. } | Next::Nothing) => None,
            Err(error) => {
                self.stop(error.into());
                None
            }
        }
    }

    /// Writes what the client takes. Answers whether that made room for more.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let before = self.outbox.len();
        if let Poll::Ready(done) = self.outbox.poll_flush(&mut self.stream, cx) {
            done.map_err(End::Broken)?;
            self.held.clear();
        }
        let after = self.outbox.len();
        if after < before {
            self.enlisted.has_read();
        }
        Ok(before >= UNWRITTEN_BYTES_MAX && after < UNWRITTEN_BYTES_MAX)
    }

    /// Ends the connection once there is nothing left that it should still do.
    fn finish(&mut self, order: Order) -> Result<(), End> {
        if !self.outbox.is_empty() {
            return Ok(());
        }
        if let Some(end) = self.last.take() {
            return Err(end);
        }
        if order == Order::Finish && self.queue.front().is_none_or(Started::may_be_dropped) {
            return Err(End::Ordered);
        }
        // Who is gone reads no answer, and who waits for it alone can be left; what was published stays.
        if self.is_ended && self.queue.front().is_none_or(Started::may_be_dropped) {
            return Err(End::Gone);
        }
        Ok(())
    }

    /// Reads once, if there is room for what may come.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.is_ended || self.last.is_some() || !self.make_room(cx) {
            return Ok(false);
        }
        let before = self.input.len();
        let room = self.input.capacity() - before;
        let read = pin!(self.stream.read_buf(&mut self.input)).poll(cx);
        match read {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) => Err(End::Broken(error)),
            Poll::Ready(Ok(0)) => {
                self.is_ended = true;
                Ok(true)
            }
            Poll::Ready(Ok(count)) => {
                if count == room && before < self.read_bytes {
                    self.read_bytes = (self.read_bytes * 2).min(READ_BUFFER_BYTES);
                }
                Ok(true)
            }
        }
    }

    /// Whether the input can take more. It holds one large request, or some small ones.
    fn make_room(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(whole) = self.whole() else { return self.make_small_room() };
        if self.input.len() >= whole {
            return self.make_small_room();
        }
        if whole <= READ_BUFFER_BYTES {
            return self.make_small_room();
        }
        self.take_room(whole, cx)
    }

    /// Bytes of the request that the input begins with, if that is known and within the limit.
    fn whole(&self) -> Option<usize> {
        let length = i32::from_be_bytes(*self.input.first_chunk::<4>()?);
        let bytes = usize::try_from(length).ok()?;
        (bytes <= self.session.request_bytes_max(&self.worker.shared)).then_some(bytes + 4)
    }

    fn make_small_room(&mut self) -> bool {
        if self.input.len() >= READ_BUFFER_BYTES || self.postponed.is_some() {
            return false;
        }
        if self.input.capacity() - self.input.len() < self.read_bytes / 4 {
            self.input.reserve(self.read_bytes);
        }
        true
    }

    /// Whether there is memory for a request of so many bytes; it gets a buffer of its own, exactly as long.
    fn take_room(&mut self, whole: usize, cx: &mut Context<'_>) -> bool {
        loop {
            match &mut self.room {
                Room::Held(_) => return true,
                Room::Waiting(waiting) => match waiting.as_mut().poll(cx) {
                    Poll::Pending => return false,
                    Poll::Ready(Ok(permit)) => self.hold(permit, whole),
                    // The semaphore is never closed.
                    Poll::Ready(Err(_)) => return false,
                },
                Room::None => {
                    // The four bytes of the length are not counted: the largest request gets all the memory there is.
                    let permits = (whole - 4).div_ceil(PERMIT_BYTES);
                    let permits = u32::try_from(permits).unwrap_or(u32::MAX);
                    let memory = Arc::clone(&self.worker.shared.request_memory);
                    match Arc::clone(&memory).try_acquire_many_owned(permits) {
                        Ok(permit) => self.hold(permit, whole),
                        Err(_) => self.room = Room::Waiting(Box::pin(memory.acquire_many_owned(permits))),
                    }
                }
            }
        }
    }

    fn hold(&mut self, permit: OwnedSemaphorePermit, whole: usize) {
        self.room = Room::Held(permit);
        let mut own = BytesMut::with_capacity(whole);
        own.extend_from_slice(&self.input);
        self.input = own;
    }

    /// Tells the watch what the connection waits for.
    fn note(&mut self) {
        let partial = !self.input.is_empty() && self.queue.is_empty() && self.postponed.is_none();
        self.enlisted.is_known(self.session.is_known());
        self.enlisted.awaits_request(partial);
        self.enlisted.awaits_reader(!self.outbox.is_empty());
        self.enlisted.is_idle(self.input.is_empty() && self.queue.is_empty() && self.outbox.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn a_connection_is_small() {
        // Thousands of them may be idle; a buffer is made when the first byte comes.
        assert!(size_of::<Connection<TcpStream>>() <= 768, "{} bytes", size_of::<Connection<TcpStream>>());
        assert!(size_of::<Started>() <= 320, "{} bytes", size_of::<Started>());
    }
}
