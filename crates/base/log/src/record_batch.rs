//! The few fields of a Kafka `RecordBatch` (magic 2) that the log looks at. All are big endian.
//!
//! A batch carries its own CRC32C over everything from its attributes on, so a frame with such a payload takes
//! that checksum for its own and no byte is hashed twice. The base offset and the partition leader epoch lie
//! before what the checksum covers; on disk they are ignored, and readers are handed the frame's position and
//! epoch in their place.

use crate::crc;
use crate::error::Defect;
use crate::limits::RECORD_BATCH_BYTES_MIN;
use crate::position::{Epoch, Position};

const BATCH_LENGTH_AT: usize = 8;
/// The batch length counts the bytes after itself.
const BATCH_LENGTH_FROM: usize = 12;
const LEADER_EPOCH_AT: usize = 12;
const MAGIC_AT: usize = 16;
const MAGIC: u8 = 2;
const CRC_AT: usize = 17;
/// What the batch's checksum covers begins here.
const COVERED_FROM: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;
/// The stamp of a frame that has none.
pub(crate) const NO_STAMP: i64 = i64::MIN;

/// The batch's checksum, if its length and magic are those of a batch.
pub(crate) fn stated_crc(payload: &[u8]) -> Option<u32> {
    let whole = payload.len() >= RECORD_BATCH_BYTES_MIN
        && u32_at(payload, BATCH_LENGTH_AT) as usize == payload.len() - BATCH_LENGTH_FROM
        && payload[MAGIC_AT] == MAGIC;
    whole.then(|| u32_at(payload, CRC_AT))
}

/// Whether the batch is whole and is the one that its frame's header tells of.
pub(crate) fn verify(payload: &[u8], header_crc: u32) -> Result<(), Defect> {
    if stated_crc(payload) != Some(header_crc) {
        return Err(Defect::RecordBatch);
    }
    if crc::of(&payload[COVERED_FROM..]) == header_crc { Ok(()) } else { Err(Defect::PayloadChecksum) }
}

/// The highest timestamp of a checked batch's records, in milliseconds.
pub(crate) fn stamp(payload: &[u8]) -> i64 {
    let mut word = [0; 8];
    word.copy_from_slice(&payload[MAX_TIMESTAMP_AT..][..8]);
    match i64::from_be_bytes(word) {
        // Kafka's "no timestamp" is -1.
        stamp if stamp < 0 => NO_STAMP,
        stamp => stamp,
    }
}

/// Writes the offset and the epoch that the frame gives the batch.
pub(crate) fn patch(payload: &mut [u8], position: Position, epoch: Epoch) {
    payload[..8].copy_from_slice(&position.get().to_be_bytes());
    let epoch = i32::try_from(epoch.0).unwrap_or(i32::MAX);
    payload[LEADER_EPOCH_AT..][..4].copy_from_slice(&epoch.to_be_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A batch whose records are these bytes.
    pub(crate) fn batch(stamp: i64, records: &[u8]) -> Vec<u8> {
        let mut batch = vec![0; RECORD_BATCH_BYTES_MIN];
        batch.extend_from_slice(records);
        let length = (batch.len() - BATCH_LENGTH_FROM) as u32;
        batch[BATCH_LENGTH_AT..][..4].copy_from_slice(&length.to_be_bytes());
        batch[MAGIC_AT] = MAGIC;
        batch[MAX_TIMESTAMP_AT..][..8].copy_from_slice(&stamp.to_be_bytes());
        let crc = crc::of(&batch[COVERED_FROM..]);
        batch[CRC_AT..][..4].copy_from_slice(&crc.to_be_bytes());
        batch
    }

    #[test]
    fn offset_and_epoch_are_free_and_all_else_is_covered() {
        let mut bytes = batch(77, b"records");
        let crc = stated_crc(&bytes).unwrap();
        patch(&mut bytes, Position::new(9), Epoch(3));
        assert_eq!(verify(&bytes, crc), Ok(()));
        assert_eq!(
            (stamp(&bytes), &bytes[..8], &bytes[12..16]),
            (77, &[0, 0, 0, 0, 0, 0, 0, 9][..], &[0, 0, 0, 3][..])
        );
        assert_eq!(stamp(&batch(-1, b"")), NO_STAMP);
        assert_eq!(stated_crc(&bytes[..60]), None);
    }

    proptest! {
        #[test]
        fn a_flipped_byte_never_passes(at in 8..80usize, flip in 1..=255u8) {
            let mut bytes = batch(5, &[7; 19]);
            let crc = stated_crc(&bytes).unwrap();
            bytes[at] ^= flip;
            prop_assert_eq!(verify(&bytes, crc).is_err(), !(12..16).contains(&at));
        }
    }
}
