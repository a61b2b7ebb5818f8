//! A connection's socket, seen by its link: every byte that comes or goes updates the connection's state.
//!
//! It adds five things to the socket. A small answer, which hyper hands over as head and body, is joined in a buffer
//! that the core's connections share and written in one piece: that costs the kernel half a microsecond less than
//! a vector of two, which is more than the copy. Bytes that were read to tell the protocol are read again first.
//! hyper's own refusals get words. A connection whose head is overdue gets an answer (408) instead of a silent end.
//! And a connection that ends while its client may still be sending is read from until the client has stopped,
//! within bounds: closing a socket with unread bytes resets it, and a reset destroys the answer on its way (RFC 9112
//! 9.6).

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::core::Core;
use super::link::{Link, Order};
use super::watch::Ticks;
use super::wording::reworded;
use crate::limits::{JOINED_WRITE_BYTES_MAX, LINGER_BYTES_MAX};

const TIMEOUT_ANSWER: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A socket or TLS stream with its link.
pub(crate) struct Wire<S> {
    socket: S,
    /// Read already, to tell the protocol.
    first: Bytes,
    link: Rc<Link>,
    core: Rc<Core>,
    discarded_bytes: u64,
    is_shut: bool,
}

impl<S> Wire<S> {
    /// Wraps a socket of which `first` was read already.
    pub(crate) fn new(socket: S, first: Bytes, link: Rc<Link>, core: Rc<Core>) -> Self {
        Self { socket, first, link, core, discarded_bytes: 0, is_shut: false }
    }

    fn now(&self) -> Ticks {
        self.core.watch.now()
    }

    /// Notes what became of a write.
    fn note(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &result {
            Poll::Ready(Ok(_)) => self.link.wrote(self.now()),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.link.stalled(self.now()),
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Says 408, if the socket takes it at once, and ends the input.
    fn answer_timeout(&mut self, cx: &mut Context<'_>) {
        // Whether it arrives or not, the connection ends.
        let _ = Pin::new(&mut self.socket).poll_write(cx, TIMEOUT_ANSWER);
        let _ = Pin::new(&mut self.socket).poll_flush(cx);
    }

    /// Reads and throws away until the client stops, or has sent more than anybody should.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0u8; 8192];
        while self.discarded_bytes < LINGER_BYTES_MAX {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => self.discarded_bytes += buffer.filled().len() as u64,
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.link.order() == Order::AnswerTimeout {
            self.answer_timeout(cx);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if !self.first.is_empty() {
            let count = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first[..count]);
            self.first.advance(count);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.socket).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.link.heard(self.now());
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = match reworded(bytes) {
            None => Pin::new(&mut self.socket).poll_write(cx, bytes),
            // The connection ends with it: what the socket does not take at once is not worth keeping.
            Some(worded) => Pin::new(&mut self.socket).poll_write(cx, &worded).map_ok(|_| bytes.len()),
        };
        self.note(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = slices {
            return self.poll_write(cx, only);
        }
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let result = if bytes <= JOINED_WRITE_BYTES_MAX {
            let core = Rc::clone(&self.core);
            core.join(slices, |joined| Pin::new(&mut self.socket).poll_write(cx, joined))
        } else {
            Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
        };
        self.note(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            ready!(Pin::new(&mut self.socket).poll_shutdown(cx))?;
            self.is_shut = true;
        }
        if self.link.must_linger() {
            self.link.close(self.now());
            ready!(self.poll_discard(cx));
        }
        Poll::Ready(Ok(()))
    }
}
