//! Answers on their way out: pieces in the order of their requests, as many in one write as there are.
//!
//! What is made for an answer goes into one growing buffer; batches of records stand between parts of it as pieces
//! that are shared with the engine. Several answers that are ready together leave in one vectored write.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use crate::limits::WRITE_PIECES_MAX;

/// Pieces to be written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Whole pieces, the first of them perhaps begun.
    pieces: VecDeque<Bytes>,
    /// What follows them, still growing.
    tail: BytesMut,
    /// Bytes of all pieces.
    bytes: usize,
}

impl Outbox {
    /// Bytes not written yet.
    pub(crate) fn len(&self) -> usize {
        self.bytes + self.tail.len()
    }

    /// Whether everything has been written.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a piece behind everything else.
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.seal();
        self.add(piece);
    }

    /// Lets `write` add to the buffer, and pieces in between through what it is given.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut BytesMut, &mut dyn FnMut(Bytes))) {
        let Self { pieces, tail, bytes } = self;
        write(tail, &mut |piece| {
            *bytes += piece.len();
            pieces.push_back(piece);
        });
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let tail = self.tail.split().freeze();
            self.add(tail);
        }
    }

    fn add(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Writes until there is nothing left or the client does not read.
    pub(crate) fn poll_flush<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.seal();
        while !self.pieces.is_empty() {
            let mut slices = [IoSlice::new(&[]); WRITE_PIECES_MAX];
            let count = self.pieces.len().min(WRITE_PIECES_MAX);
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                *slice = IoSlice::new(piece);
            }
            let written = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.take(written);
        }
        Pin::new(stream).poll_flush(cx)
    }

    /// Forgets what has been written.
    fn take(&mut self, mut written: usize) {
        self.bytes -= written.min(self.bytes);
        while let Some(first) = self.pieces.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;
    use proptest::prelude::*;

    use super::*;

    /// Takes a few bytes at a time, and only every other time.
    struct Slow {
        taken: Vec<u8>,
        most: usize,
        ready: bool,
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.ready = !self.ready;
            if !self.ready {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let count = bytes.len().min(self.most);
            self.taken.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            self.poll_write(cx, &all)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    proptest! {
        #[test]
        fn everything_leaves_in_order(
            parts in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..100),
            most in 1usize..50,
        ) {
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            for (whole, part) in &parts {
                expected.extend_from_slice(part);
                match whole {
                    true => outbox.push(Bytes::copy_from_slice(part)),
                    false => outbox.write(|tail, _| tail.put_slice(part)),
                }
            }
            prop_assert_eq!(outbox.len(), expected.len());
            let mut stream = Slow { taken: Vec::new(), most, ready: false };
            let mut cx = Context::from_waker(std::task::Waker::noop());
            while outbox.poll_flush(&mut stream, &mut cx).is_pending() {}
            prop_assert_eq!(stream.taken, expected);
            prop_assert!(outbox.is_empty());
        }
    }
}
