//! An encoded frame: its head and fields in one piece, the batches behind it as they are.

use std::io::IoSlice;

use bytes::{BufMut, Bytes, BytesMut};

use super::head::{FRAME_HEAD_LEN, frame_head};

/// A frame ready to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// The head of the frame and its fields.
    pub head: Bytes,
    /// What follows, in order.
    pub tail: Vec<Bytes>,
}

impl Pieces {
    /// Puts the head before the fields. `fields` begins with room for it.
    pub(super) fn seal(kind: u8, id: u32, mut fields: BytesMut, tail: Vec<Bytes>) -> Self {
        let len = fields.len() - FRAME_HEAD_LEN + tail.iter().map(Bytes::len).sum::<usize>();
        fields[..FRAME_HEAD_LEN].copy_from_slice(&frame_head(kind, id, len));
        Self { head: fields.freeze(), tail }
    }

    /// Where fields are put before [`Pieces::seal`].
    pub(super) fn fields() -> BytesMut {
        let mut out = BytesMut::with_capacity(64);
        out.put_bytes(0, FRAME_HEAD_LEN);
        out
    }

    /// Bytes of the whole frame.
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.iter().map(Bytes::len).sum::<usize>()
    }

    /// Whether there is nothing: never, for an encoded frame.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.head).chain(&self.tail)
    }

    /// For a vectored write.
    pub fn slices(&self) -> Vec<IoSlice<'_>> {
        self.iter().map(|piece| IoSlice::new(piece)).collect()
    }

    /// Appends the frame to a buffer: a copy, for small frames that are gathered before they are written.
    pub fn append_to(&self, out: &mut BytesMut) {
        out.reserve(self.len());
        self.iter().for_each(|piece| out.put_slice(piece));
    }

    /// The frame in one piece: a copy where there are several.
    pub fn into_bytes(self) -> Bytes {
        if self.tail.is_empty() {
            return self.head;
        }
        let mut out = BytesMut::new();
        self.append_to(&mut out);
        out.freeze()
    }
}
