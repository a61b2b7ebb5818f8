//! The frames that the floors exchange: a head of sixteen bytes, then the payload.
//!
//! ```text
//! length u32 | number u32 | flags u64      little endian; the length is that of the payload
//! ```
//!
//! No program can know less of what it receives than how long it is, and none can answer with less than which frame
//! it means; so a server of such frames is the least that a stream server over the same transport must be.

/// Bytes of a head.
pub(super) const HEAD_BYTES: usize = 16;
/// The longest payload, in bytes.
pub(super) const PAYLOAD_BYTES_MAX: usize = 8 << 20;

/// A frame with this payload.
pub(super) fn frame(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(number, payload.len());
    bytes.extend_from_slice(payload);
    bytes
}

/// The head of a frame.
fn head(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    bytes[..4].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    bytes[4..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// What a head says: the bytes of the whole frame. Nothing before a head is there.
pub(super) fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<4>()?;
    (bytes.len() >= HEAD_BYTES).then(|| HEAD_BYTES + u32::from_le_bytes(*length) as usize)
}

/// The answer to a frame: its head, with nothing behind it.
pub(super) fn acknowledgement(frame: &[u8]) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[4..].copy_from_slice(&frame[4..HEAD_BYTES]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_names_its_frame_and_holds_nothing() {
        let frame = frame(7, b"payload");
        assert_eq!((frame_bytes(&frame), frame_bytes(&frame[..HEAD_BYTES - 1])), (Some(frame.len()), None));
        let answer = acknowledgement(&frame);
        assert_eq!((frame_bytes(&answer), &answer[4..8]), (Some(HEAD_BYTES), &7u32.to_le_bytes()[..]));
    }
}
