//! What waits to be written: small frames gathered in one buffer, large bodies as they are.
//!
//! Frames are encoded behind one another into an open buffer. A body of [`SHARED_BYTES_LEAST`] or more closes
//! that buffer and is queued itself, without a copy: its bytes belong to the shard's ring and to every other
//! subscriber. A smaller body costs less to copy than to carry, so it is copied.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf as _, Bytes, BytesMut};

use crate::limits::{OPEN_BYTES_FIRST, OPEN_BYTES_MAX, SHARED_BYTES_LEAST};

/// Chunks in the order in which they go out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    closed: VecDeque<Bytes>,
    open: BytesMut,
    /// All bytes of both.
    bytes: usize,
}

impl Outbox {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends what `encode` writes.
    pub(crate) fn encode(&mut self, encode: impl FnOnce(&mut BytesMut)) {
        if self.open.capacity() - self.open.len() < OPEN_BYTES_FIRST / 4 {
            let next = (self.open.len() * 2).clamp(OPEN_BYTES_FIRST, OPEN_BYTES_MAX);
            self.close();
            self.open.reserve(next);
        }
        let before = self.open.len();
        encode(&mut self.open);
        self.bytes += self.open.len() - before;
    }

    /// Appends a body.
    pub(crate) fn share(&mut self, body: &Bytes) {
        if body.len() < SHARED_BYTES_LEAST {
            self.encode(|open| open.extend_from_slice(body));
        } else {
            self.close();
            self.bytes += body.len();
            self.closed.push_back(body.clone());
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(self.open.split().freeze());
        }
    }

    /// The chunks, all closed, for a transport that takes them whole; [`took`](Self::took) must follow.
    pub(crate) fn chunks(&mut self) -> &mut [Bytes] {
        self.close();
        self.closed.make_contiguous()
    }

    /// Fills `slices` from the front; answers how many were filled.
    pub(crate) fn slices<'a>(&'a mut self, slices: &mut [IoSlice<'a>]) -> usize {
        self.close();
        let mut filled = 0;
        for (slot, chunk) in slices.iter_mut().zip(&self.closed) {
            *slot = IoSlice::new(chunk);
            filled += 1;
        }
        filled
    }

    /// So many bytes of the slices were written.
    pub(crate) fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(first) = self.closed.front_mut() {
            if first.len() > written {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.closed.pop_front();
        }
        self.rest();
    }

    /// A transport took so many chunks whole and so many bytes in all out of [`chunks`](Self::chunks), where
    /// it cut what it took.
    pub(crate) fn took(&mut self, chunks: usize, bytes: usize) {
        self.closed.drain(..chunks);
        self.bytes -= bytes;
        self.rest();
    }

    /// A connection that has nothing to say holds little.
    fn rest(&mut self) {
        if self.bytes == 0 {
            if self.open.capacity() > OPEN_BYTES_FIRST {
                self.open = BytesMut::new();
            }
            if self.closed.capacity() > KEPT_CHUNKS {
                self.closed = VecDeque::new();
            }
        }
    }
}

/// Places for chunks that an empty outbox keeps.
const KEPT_CHUNKS: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All that waits, in order.
    fn all(outbox: &mut Outbox) -> Vec<u8> {
        outbox.chunks().iter().flat_map(|chunk| chunk.iter().copied()).collect()
    }

    #[test]
    fn a_large_body_is_not_copied() {
        let body = Bytes::from(vec![7u8; SHARED_BYTES_LEAST]);
        let mut outbox = Outbox::default();
        outbox.encode(|open| open.extend_from_slice(b"head"));
        outbox.share(&body);
        outbox.share(&Bytes::from_static(b"small"));
        assert_eq!(outbox.chunks().len(), 3);
        assert_eq!(outbox.chunks()[1].as_ptr(), body.as_ptr());
        assert_eq!(outbox.len(), 4 + body.len() + 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_byte_comes_out_once_and_in_order(
            bodies in proptest::collection::vec((any::<bool>(), 0usize..3000), 0..20),
            steps in proptest::collection::vec(1usize..5000, 1..40),
        ) {
            let (mut outbox, mut expected) = (Outbox::default(), Vec::new());
            for (at, (is_shared, len)) in bodies.into_iter().enumerate() {
                let body = Bytes::from(vec![u8::try_from(at).unwrap(); len]);
                expected.extend_from_slice(&body);
                if is_shared { outbox.share(&body) } else { outbox.encode(|open| open.extend_from_slice(&body)) }
            }
            prop_assert_eq!(outbox.len(), expected.len());
            let mut found = Vec::new();
            for step in steps {
                let mut slices = [IoSlice::new(&[]); 4];
                let filled = outbox.slices(&mut slices);
                let front: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                let written = step.min(front.len());
                found.extend_from_slice(&front[..written]);
                outbox.advance(written);
            }
            found.extend(all(&mut outbox));
            prop_assert_eq!(found, expected);
        }
    }
}
