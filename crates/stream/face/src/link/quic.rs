//! One bidirectional stream of a QUIC connection.
//!
//! What has arrived is taken in one go under the connection's lock, a piece per packet, and copied behind the
//! frame that is being assembled: holding on to the pieces would hold the datagrams' much larger buffers.
//! What is sent is handed over as shared chunks; quinn copies them once, into packets.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use quinn::{RecvStream, SendStream};

use super::{Appetite, Link, Outbox};
use crate::limits::PIECES_MAX;

/// A stream and its way back.
#[derive(Debug)]
pub(crate) struct QuicLink {
    send: SendStream,
    receive: RecvStream,
    /// Bytes of a piece, as last seen: about what a packet carries.
    piece_bytes: usize,
}

impl QuicLink {
    pub(crate) fn new(send: SendStream, receive: RecvStream) -> Self {
        Self { send, receive, piece_bytes: 1200 }
    }
}

impl Link for QuicLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        appetite: Appetite,
        into: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let mut pieces = [const { Bytes::new() }; PIECES_MAX];
        let most =
            appetite.limit().map_or(PIECES_MAX, |bytes| (bytes / self.piece_bytes + 1).min(PIECES_MAX));
        let read = self.receive.read_chunks(&mut pieces[..most]);
        let read = ready!(std::future::Future::poll(pin!(read), cx))?;
        let Some(read) = read else { return Poll::Ready(Ok(0)) };
        let taken = pieces[..read].iter().map(Bytes::len).sum::<usize>();
        into.reserve(if appetite.missing == 0 { taken.max(appetite.usual) } else { taken });
        pieces[..read].iter().for_each(|piece| into.extend_from_slice(piece));
        self.piece_bytes = (taken / read.max(1)).max(1);
        Poll::Ready(Ok(taken))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, outbox: &mut Outbox) -> Poll<io::Result<()>> {
        while !outbox.is_empty() {
            let written =
                ready!(std::future::Future::poll(pin!(self.send.write_chunks(outbox.chunks())), cx))?;
            outbox.took(written.chunks, written.bytes);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Finished before, or reset by the peer: either way nothing more goes out.
        let _ = self.send.finish();
        Poll::Ready(Ok(()))
    }
}
