//! Byte streams: what a connection's frames travel on, whichever transport carries them.
//!
//! A [`Link`] is one ordered stream of bytes in each direction: a TCP connection under TLS, or one
//! bidirectional stream of a QUIC connection. Reading appends to the caller's buffer, so that a frame lies in
//! one piece after one copy out of the transport; writing takes whole chunks from the front of an [`Outbox`],
//! so that a batch that a thousand subscribers get is never copied on the way to the cipher.

mod outbox;
mod quic;
mod tls;

use std::io;
use std::task::{Context, Poll};

use bytes::BytesMut;

pub(crate) use outbox::Outbox;
pub(crate) use quic::QuicLink;
pub(crate) use tls::TlsLink;

/// How much there is to read, as far as it is known. The aim is that a large frame comes to lie in a buffer
/// of its own and of its size: then its batch is kept where it lies, without a copy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Appetite {
    /// Bytes that complete the large frame that has begun: little more than them is read, and there is room
    /// for them. Zero: none has begun.
    pub(crate) missing: usize,
    /// What the last large frame needed: so much is read when a frame begins, and room is made for it. Zero:
    /// frames are small, and as many as possible are read.
    pub(crate) usual: usize,
}

impl Appetite {
    /// About how many bytes to read; none if the more the better.
    fn limit(self) -> Option<usize> {
        [self.missing, self.usual].into_iter().find(|bytes| *bytes > 0)
    }
}

/// One ordered stream of bytes in each direction.
pub(crate) trait Link: Unpin {
    /// Appends what has arrived to `into`; zero bytes when the peer has finished.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        appetite: Appetite,
        into: &mut BytesMut,
    ) -> Poll<io::Result<usize>>;

    /// Takes bytes from the front of `outbox`, as many as the transport has room for, and hands them on.
    /// Ready when the outbox is empty and nothing is left in between.
    fn poll_write(&mut self, cx: &mut Context<'_>, outbox: &mut Outbox) -> Poll<io::Result<()>>;

    /// Says that nothing more will come, once all was written.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
