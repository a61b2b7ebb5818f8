//! The heads that are written for each frame and for each batch, on the stack.

use super::field::FrameError;
use super::shared::Ack;
use super::{reply, request};

/// Bytes of the head of every frame.
pub const FRAME_HEAD_LEN: usize = 12;
/// Bytes before the batches of a Publish frame: its head, handle, shard, epoch, acknowledgement.
pub const PUBLISH_HEAD_LEN: usize = FRAME_HEAD_LEN + 13;
/// Bytes before the batches of a Batch frame: its head, shard, epoch, base offset.
pub const BATCH_HEAD_LEN: usize = FRAME_HEAD_LEN + 16;

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of the body.
    pub len: u32,
    /// Which message it is.
    pub kind: u8,
    /// No flag exists in version 1.
    pub flags: u16,
    /// The request, or the subscription.
    pub id: u32,
}

impl FrameHead {
    /// Its bytes.
    pub fn encode(&self) -> [u8; FRAME_HEAD_LEN] {
        let mut bytes = [0; FRAME_HEAD_LEN];
        bytes[..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4] = self.kind;
        bytes[6..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..].copy_from_slice(&self.id.to_le_bytes());
        bytes
    }

    /// Reads a head, and refuses what is not defined.
    pub fn decode(bytes: &[u8; FRAME_HEAD_LEN]) -> Result<Self, FrameError> {
        let [l0, l1, l2, l3, kind, reserved, f0, f1, i0, i1, i2, i3] = *bytes;
        if reserved != 0 {
            return Err(FrameError::Reserved(reserved));
        }
        let flags = u16::from_le_bytes([f0, f1]);
        if flags != 0 {
            return Err(FrameError::Flags(flags));
        }
        let (len, id) = (u32::from_le_bytes([l0, l1, l2, l3]), u32::from_le_bytes([i0, i1, i2, i3]));
        Ok(Self { len, kind, flags, id })
    }
}

/// The head of a frame of this kind.
pub fn frame_head(kind: u8, id: u32, body_len: usize) -> [u8; FRAME_HEAD_LEN] {
    FrameHead { len: u32::try_from(body_len).unwrap_or(u32::MAX), kind, flags: 0, id }.encode()
}

/// What stands before the batches of a Publish; `len` is the length of the batches together. The same bytes as
/// encoding [`request::Publish`].
pub fn publish_head(
    id: u32,
    handle: u32,
    shard: u32,
    epoch: u32,
    ack: Ack,
    len: usize,
) -> [u8; PUBLISH_HEAD_LEN] {
    let mut bytes = [0; PUBLISH_HEAD_LEN];
    let body_len = PUBLISH_HEAD_LEN - FRAME_HEAD_LEN + len;
    bytes[..12].copy_from_slice(&frame_head(request::kind::PUBLISH, id, body_len));
    bytes[12..16].copy_from_slice(&handle.to_le_bytes());
    bytes[16..20].copy_from_slice(&shard.to_le_bytes());
    bytes[20..24].copy_from_slice(&epoch.to_le_bytes());
    bytes[24] = match ack {
        Ack::None => 0,
        Ack::One => 1,
    };
    bytes
}

/// What stands before the batches of a Batch push; `len` is the length of the batches together. The same bytes as
/// encoding [`reply::Batch`].
pub fn batch_head(
    subscription: u32,
    shard: u32,
    epoch: u32,
    base_offset: u64,
    len: usize,
) -> [u8; BATCH_HEAD_LEN] {
    let mut bytes = [0; BATCH_HEAD_LEN];
    let body_len = BATCH_HEAD_LEN - FRAME_HEAD_LEN + len;
    bytes[..12].copy_from_slice(&frame_head(reply::kind::BATCH, subscription, body_len));
    bytes[12..16].copy_from_slice(&shard.to_le_bytes());
    bytes[16..20].copy_from_slice(&epoch.to_le_bytes());
    bytes[20..].copy_from_slice(&base_offset.to_le_bytes());
    bytes
}
