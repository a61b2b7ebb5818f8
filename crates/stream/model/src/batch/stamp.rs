//! The sixteen bytes that a broker writes: base offset and epoch. The checksum does not cover them.

use bytes::{Bytes, BytesMut};

use super::error::BatchError;
use super::header::{LENGTH_AT, UNCOUNTED};

/// Bytes of a batch up to its magic, of which a broker may write twelve.
pub const PATCHED_LEN: usize = 16;

/// The first bytes of a batch as its readers get them. What follows is `&batch[PATCHED_LEN..]`, as it was stored: a
/// face that can write several pieces at once copies nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchedHeader(pub [u8; PATCHED_LEN]);

impl PatchedHeader {
    /// For a batch with these offset and epoch.
    pub fn of(batch: &[u8], base_offset: u64, leader_epoch: u32) -> Result<Self, BatchError> {
        let have = batch.len();
        let mut head = *batch.first_chunk().ok_or(BatchError::Truncated { needed: PATCHED_LEN, have })?;
        write(&mut head, base_offset, leader_epoch);
        Ok(Self(head))
    }
}

/// Writes base offset and epoch into a batch.
pub fn patch(batch: &mut [u8], base_offset: u64, leader_epoch: u32) -> Result<(), BatchError> {
    let have = batch.len();
    let head = batch.first_chunk_mut().ok_or(BatchError::Truncated { needed: PATCHED_LEN, have })?;
    write(head, base_offset, leader_epoch);
    Ok(())
}

/// The batch with base offset and epoch, in one piece. Written in place where nobody else holds the bytes, copied once
/// otherwise: bytes that others read cannot change.
pub fn stamp(batch: Bytes, base_offset: u64, leader_epoch: u32) -> Result<Bytes, BatchError> {
    let mut bytes = batch.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    patch(&mut bytes, base_offset, leader_epoch)?;
    Ok(bytes.freeze())
}

fn write(head: &mut [u8; PATCHED_LEN], base_offset: u64, leader_epoch: u32) {
    head[..LENGTH_AT].copy_from_slice(&base_offset.to_be_bytes());
    head[UNCOUNTED..].copy_from_slice(&leader_epoch.to_be_bytes());
}
