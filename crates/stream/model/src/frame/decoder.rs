//! Frames out of bytes that come in pieces of any size.

use bytes::{Buf, Bytes, BytesMut};

use super::field::FrameError;
use super::head::{FRAME_HEAD_LEN, FrameHead};
use super::preface::{PREFACE_LEN, Preface};
use crate::limits::{FRAME_BYTES_MAX, HELLO_BYTES_MAX};

/// A frame, its body not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which message it is.
    pub kind: u8,
    /// The request that it is or answers, or the subscription that it belongs to.
    pub id: u32,
    /// The message, a part of the buffer that was read into.
    pub body: Bytes,
}

/// Cuts a connection's bytes into frames. Read into [`buffer`](Decoder::buffer), then ask for frames until there is
/// none: the body of a frame shares the buffer and is not copied. What is buffered is bounded by the largest frame and
/// by what the caller reads at once; a frame that is too large is refused when its head is there.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    max: usize,
    head: Option<FrameHead>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// For a connection that has not said Hello: only small frames are taken.
    pub fn new() -> Self {
        Self { buffer: BytesMut::new(), max: HELLO_BYTES_MAX, head: None }
    }

    /// With this largest body.
    pub fn with_max(max: usize) -> Self {
        Self { max: max.min(FRAME_BYTES_MAX), ..Self::new() }
    }

    /// The largest body from now on: what was negotiated.
    pub fn set_max(&mut self, max: usize) {
        self.max = max.min(FRAME_BYTES_MAX);
    }

    /// Where the caller reads into, behind what is there.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes that are waiting for the rest of their frame.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// How many bytes the frame that has begun still needs; a hint of how much to reserve and read. Zero: nothing is
    /// known, read as much as is usual.
    pub fn missing(&self) -> usize {
        self.head.map_or(0, |head| (head.len as usize).saturating_sub(self.buffer.len()))
    }

    /// The preface, when it is there whole.
    pub fn preface(&mut self) -> Result<Option<Preface>, FrameError> {
        let Some(bytes) = self.buffer.first_chunk::<PREFACE_LEN>() else { return Ok(None) };
        let preface = Preface::decode(bytes)?;
        self.buffer.advance(PREFACE_LEN);
        Ok(Some(preface))
    }

    /// The next frame, when it is there whole. After an error the connection cannot go on.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(head) = self.take_head()? else { return Ok(None) };
        let len = head.len as usize;
        if self.buffer.len() < len {
            return Ok(None);
        }
        self.head = None;
        Ok(Some(Frame { kind: head.kind, id: head.id, body: self.buffer.split_to(len).freeze() }))
    }

    /// The head of the frame that has begun. A head is kept until its body is there, so its bytes are looked at once.
    fn take_head(&mut self) -> Result<Option<FrameHead>, FrameError> {
        if self.head.is_none() {
            let Some(bytes) = self.buffer.first_chunk::<FRAME_HEAD_LEN>() else { return Ok(None) };
            let head = FrameHead::decode(bytes)?;
            let (len, max) = (head.len as usize, self.max);
            if len > max {
                return Err(FrameError::TooLarge { len, max });
            }
            self.buffer.advance(FRAME_HEAD_LEN);
            self.head = Some(head);
        }
        Ok(self.head)
    }
}
