//! A TCP connection under TLS.
//!
//! rustls reads four kibibytes at a time from whatever it is given. A system call for each would cost more
//! than the cipher, so the socket is read in large pieces into a buffer of the thread's (connections share
//! it: it is empty again before the next one has its turn), and rustls is fed from there. Plaintext goes from
//! rustls straight to the end of the frame buffer. The other way, rustls gathers and encrypts the pieces of
//! the outbox in one pass, and the records leave in one vectored write.

use std::cell::RefCell;
use std::io::{self, BufRead as _, IoSlice, Read as _, Write};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::ServerConnection;
use tokio::net::TcpStream;

use super::{Appetite, Link, Outbox};
use crate::limits::{READ_BYTES, SLICES_MAX, TLS_WRITE_BYTES};

thread_local! {
    /// What the socket was read into last.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) struct TlsLink {
    socket: TcpStream,
    tls: ServerConnection,
    is_finished: bool,
}

impl TlsLink {
    /// Takes over from the handshake. Plaintext that came with it is found by the first read.
    pub(crate) fn new(socket: TcpStream, mut tls: ServerConnection) -> Self {
        tls.set_buffer_limit(Some(TLS_WRITE_BYTES));
        Self { socket, tls, is_finished: false }
    }

    /// Appends decrypted bytes to `into`.
    fn take_plaintext(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            let mut reader = self.tls.reader();
            let piece = match reader.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken),
                Err(error) => return Err(error),
            };
            if piece.is_empty() {
                return Ok(taken);
            }
            let bytes = piece.len();
            into.extend_from_slice(piece);
            reader.consume(bytes);
            taken += bytes;
        }
    }

    /// Feeds what was read from the socket; answers how much plaintext came of it.
    fn feed(&mut self, mut bytes: &[u8], into: &mut BytesMut) -> io::Result<usize> {
        let mut taken = 0;
        while !bytes.is_empty() {
            self.tls.read_tls(&mut bytes.by_ref())?;
            self.tls
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            taken += self.take_plaintext(into)?;
        }
        Ok(taken)
    }

    /// Writes finished records until there are none.
    fn poll_records(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(&self.socket)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_write_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// How much to read from the socket: each record of 16 KiB adds 22 bytes to its plaintext (RFC 8446 5.2).
fn most_of(appetite: Appetite) -> usize {
    appetite.limit().map_or(READ_BYTES, |bytes| (bytes + bytes / 512 + 64).min(READ_BYTES))
}

/// A socket that says `WouldBlock` instead of waiting.
struct Socket<'a>(&'a TcpStream);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Link for TlsLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        appetite: Appetite,
        into: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let most = most_of(appetite);
        let waiting = self.take_plaintext(into)?;
        if waiting > 0 {
            return Poll::Ready(Ok(waiting));
        }
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            let taken =
                SCRATCH.with_borrow_mut(|scratch| match self.socket.try_read(&mut scratch[..most]) {
                    Ok(0) => Ok(Some(0)),
                    Ok(read) => {
                        into.reserve(read);
                        self.feed(&scratch[..read], into).map(|taken| (taken > 0).then_some(taken))
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                    Err(error) => Err(error),
                })?;
            if let Some(taken) = taken {
                return Poll::Ready(Ok(taken));
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, outbox: &mut Outbox) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_records(cx))?;
            if outbox.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let filled = outbox.slices(&mut slices);
            let written = self.tls.writer().write_vectored(&slices[..filled])?;
            outbox.advance(written);
        }
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_finished {
            self.is_finished = true;
            self.tls.send_close_notify();
        }
        ready!(self.poll_records(cx))?;
        socket2::SockRef::from(&self.socket).shutdown(std::net::Shutdown::Write)?;
        Poll::Ready(Ok(()))
    }
}
