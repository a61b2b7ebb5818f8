//! Byte streams: what a connection's frames travel on, whichever transport carries them.
//!
//! A [`Link`] is one ordered stream of bytes in each direction: a TCP connection under TLS, or one bidirectional stream
//! of a QUIC connection. Reading appends to the caller's buffer, so that a frame lies in one piece after one copy out of
//! the transport; writing takes whole chunks from the front of an [`Outbox`], so that a batch that a thousand
//! subscribers get is never copied on the way to the cipher.

mod outbox;
mod quic;
mod tls;

use std::io;
use std::task::{Context, Poll};

use bytes::BytesMut;

pub(crate) use outbox::Outbox;
pub(crate) use quic::QuicLink;
pub(crate) use tls::TlsLink;

/// One ordered stream of bytes in each direction.
pub(crate) trait Link: Unpin {
    /// Appends what has arrived to `into`; zero bytes when the peer has finished. `wanted` bytes complete a frame: little
    /// more than them is read, so that the frame lies in a buffer of its own. Zero: as much as is usual.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        into: &mut BytesMut,
    ) -> Poll<io::Result<usize>>;

    /// Takes bytes from the front of `outbox`, as many as the transport has room for, and hands them on. Ready when the
    /// outbox is empty and nothing is left in between.
    fn poll_write(&mut self, cx: &mut Context<'_>, outbox: &mut Outbox) -> Poll<io::Result<()>>;

    /// Says that nothing more will come, once all was written.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
