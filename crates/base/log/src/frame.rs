//! The frame header: 64 bytes, little endian, drawn in `docs/log-format.md`.
//!
//! The header's checksum is verified before any other field is believed, the length above all. It starts from
//! the segment's seed, so a header is valid in its own segment only.

use crate::crc;
use crate::error::Defect;
use crate::limits::{FRAME_ALIGN_BYTES, FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, RECORD_BATCH_BYTES_MIN};
use crate::position::{Epoch, LogId, Position};
use crate::record_batch::{self, NO_STAMP};

pub(crate) const MAGIC: [u8; 4] = *b"TFRM";
const VERSION: u8 = 1;
/// Bytes that the header's checksum covers.
const COVERED: usize = 60;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Records of the log's user.
    Data,
    /// Everything before it is on disk.
    Closing,
    /// Positions that hold nothing: given to writes which the full disk refused, or compacted away.
    Void,
    /// Records of the log's user in a Kafka `RecordBatch`, whose own checksum is the payload's.
    RecordBatch,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Kind::Data => 0,
            Kind::Closing => 1,
            Kind::Void => 2,
            Kind::RecordBatch => 3,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Kind::Data),
            1 => Some(Kind::Closing),
            2 => Some(Kind::Void),
            3 => Some(Kind::RecordBatch),
            _ => None,
        }
    }
}

/// The fields of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) log: LogId,
    pub(crate) epoch: Epoch,
    pub(crate) base: Position,
    pub(crate) mark: Position,
    pub(crate) count: u32,
    pub(crate) payload_len: u32,
    pub(crate) payload_crc: u32,
}

/// Why bytes are not a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// Torn or damaged.
    Defect(Defect),
    /// Written whole, by a version that we do not know.
    Unsupported(String),
}

impl From<Defect> for Bad {
    fn from(defect: Defect) -> Self {
        Bad::Defect(defect)
    }
}

impl Header {
    /// The header's bytes for a segment with this seed.
    pub(crate) fn encode(&self, seed: u32) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        put_appended(
            &mut bytes,
            self.kind,
            self.log,
            self.base,
            self.count,
            self.payload_len,
            self.payload_crc,
        );
        put_committed(&mut bytes, self.epoch, self.mark, seed);
        bytes
    }

    /// Reads the header, its checksum first.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER_BYTES], seed: u32) -> Result<Self, Bad> {
        if bytes[..4] != MAGIC {
            return Err(Defect::Magic.into());
        }
        if crc::seeded(seed, &bytes[..COVERED]) != u32_at(bytes, 60) {
            return Err(Defect::HeaderChecksum.into());
        }
        if bytes[4] != VERSION {
            return Err(Bad::Unsupported(format!("frame version {}", bytes[4])));
        }
        let kind =
            Kind::from_code(bytes[5]).ok_or_else(|| Bad::Unsupported(format!("frame kind {}", bytes[5])))?;
        let flags = u16_at(bytes, 6);
        if flags != 0 {
            return Err(Bad::Unsupported(format!("frame flags {flags:#06x}")));
        }
        let header = Header {
            kind,
            log: LogId(u64_at(bytes, 8)),
            epoch: Epoch(u64_at(bytes, 16)),
            base: Position::new(u64_at(bytes, 24)),
            mark: Position::new(u64_at(bytes, 32)),
            count: u32_at(bytes, 40),
            payload_len: u32_at(bytes, 44),
            payload_crc: u32_at(bytes, 48),
        };
        header.check_ranges()?;
        Ok(header)
    }

    fn check_ranges(&self) -> Result<(), Defect> {
        let sized = match self.kind {
            Kind::Data => self.count > 0 && self.payload_len as usize <= PAYLOAD_BYTES_MAX,
            Kind::Closing => self.count == 0 && self.payload_len == 0,
            Kind::Void => self.count > 0 && self.payload_len == 0,
            Kind::RecordBatch => {
                self.count > 0
                    && (RECORD_BATCH_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&(self.payload_len as usize))
            }
        };
        if !sized || self.base.checked_advance(self.count).is_none() {
            return Err(Defect::Range);
        }
        if self.mark > self.base { Err(Defect::Mark) } else { Ok(()) }
    }

    /// Whether the payload is the one that the header tells of.
    pub(crate) fn check_payload(&self, payload: &[u8]) -> Result<(), Defect> {
        match self.kind {
            Kind::RecordBatch => record_batch::verify(payload, self.payload_crc),
            Kind::Data | Kind::Closing | Kind::Void if crc::of(payload) == self.payload_crc => Ok(()),
            Kind::Data | Kind::Closing | Kind::Void => Err(Defect::PayloadChecksum),
        }
    }

    /// Whether the payload belongs to the log's user.
    pub(crate) fn has_payload(&self) -> bool {
        match self.kind {
            Kind::Data | Kind::RecordBatch => true,
            Kind::Closing | Kind::Void => false,
        }
    }

    /// The stamp of a payload that was [checked](Self::check_payload).
    pub(crate) fn stamp(&self, payload: &[u8]) -> i64 {
        match self.kind {
            Kind::RecordBatch => record_batch::stamp(payload),
            Kind::Data | Kind::Closing | Kind::Void => NO_STAMP,
        }
    }

    /// The position after the frame's last record.
    pub(crate) fn end(&self) -> Position {
        self.base.advance(self.count)
    }

    /// Bytes from the start of this frame to the start of the next.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(self.payload_len as usize)
    }
}

/// Bytes on disk of a frame with such a payload.
pub(crate) const fn frame_len(payload_len: usize) -> usize {
    FRAME_HEADER_BYTES + payload_len.next_multiple_of(FRAME_ALIGN_BYTES)
}

/// The fields known when the frame is appended.
pub(crate) fn put_appended(
    bytes: &mut [u8],
    kind: Kind,
    log: LogId,
    base: Position,
    count: u32,
    payload_len: u32,
    payload_crc: u32,
) {
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = VERSION;
    bytes[5] = kind.code();
    bytes[8..16].copy_from_slice(&log.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&base.get().to_le_bytes());
    bytes[40..44].copy_from_slice(&count.to_le_bytes());
    bytes[44..48].copy_from_slice(&payload_len.to_le_bytes());
    bytes[48..52].copy_from_slice(&payload_crc.to_le_bytes());
}

/// The base position and the frame's length, out of a header that [`put_appended`] wrote.
pub(crate) fn appended(bytes: &[u8]) -> (Position, u32, usize) {
    (Position::new(u64_at(bytes, 24)), u32_at(bytes, 40), frame_len(u32_at(bytes, 44) as usize))
}

/// The fields known only when the frame is written, and the checksum over all.
pub(crate) fn put_committed(bytes: &mut [u8], epoch: Epoch, mark: Position, seed: u32) {
    bytes[16..24].copy_from_slice(&epoch.0.to_le_bytes());
    bytes[32..40].copy_from_slice(&mark.get().to_le_bytes());
    let checksum = crc::seeded(seed, &bytes[..COVERED]);
    bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            kind: Kind::Data,
            log: LogId(7),
            epoch: Epoch(3),
            base: Position::new(100),
            mark: Position::new(90),
            count: 2,
            payload_len: 5,
            payload_crc: 0xdead_beef,
        }
    }

    #[test]
    fn fields_lie_where_the_format_page_draws_them() {
        let bytes = header().encode(1);
        assert_eq!(&bytes[..8], b"TFRM\x01\x00\x00\x00");
        assert_eq!(&bytes[8..16], &7u64.to_le_bytes());
        assert_eq!(&bytes[16..24], &3u64.to_le_bytes());
        assert_eq!(&bytes[24..32], &100u64.to_le_bytes());
        assert_eq!(&bytes[32..40], &90u64.to_le_bytes());
        assert_eq!(&bytes[40..44], &2u32.to_le_bytes());
        assert_eq!(&bytes[44..48], &5u32.to_le_bytes());
        assert_eq!(&bytes[48..52], &0xdead_beefu32.to_le_bytes());
        assert_eq!(&bytes[52..60], &[0; 8]);
    }

    #[test]
    fn is_valid_under_its_own_seed_only() {
        let bytes = header().encode(1);
        assert_eq!(Header::decode(&bytes, 1), Ok(header()));
        assert_eq!(Header::decode(&bytes, 2), Err(Defect::HeaderChecksum.into()));
    }

    #[test]
    fn frames_are_padded_to_eight_bytes() {
        assert_eq!([0, 1, 8, 9].map(frame_len), [64, 72, 72, 80]);
    }

    #[test]
    fn refuses_what_a_newer_version_wrote() {
        for (at, what) in [(4, "frame version 9"), (5, "frame kind 9"), (6, "frame flags 0x0009")] {
            let mut bytes = header().encode(1);
            bytes[at] = 9;
            let checksum = crc::seeded(1, &bytes[..COVERED]);
            bytes[60..].copy_from_slice(&checksum.to_le_bytes());
            assert_eq!(Header::decode(&bytes, 1), Err(Bad::Unsupported(what.to_owned())));
        }
    }

    #[test]
    fn refuses_fields_out_of_range() {
        let check = |header: Header, defect: Defect| {
            assert_eq!(Header::decode(&header.encode(1), 1), Err(defect.into()));
        };
        check(Header { count: 0, ..header() }, Defect::Range);
        check(Header { payload_len: PAYLOAD_BYTES_MAX as u32 + 1, ..header() }, Defect::Range);
        check(Header { base: Position::new(u64::MAX), mark: Position::ZERO, ..header() }, Defect::Range);
        check(Header { kind: Kind::Closing, ..header() }, Defect::Range);
        check(Header { kind: Kind::Void, ..header() }, Defect::Range);
        check(Header { kind: Kind::RecordBatch, ..header() }, Defect::Range);
        check(Header { mark: Position::new(101), ..header() }, Defect::Mark);
    }

    proptest! {
        #[test]
        fn a_flipped_byte_never_passes(at in 0..FRAME_HEADER_BYTES, flip in 1..=255u8, seed: u32) {
            let mut bytes = header().encode(seed);
            bytes[at] ^= flip;
            prop_assert!(Header::decode(&bytes, seed).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: [u8; 32], seed: u32) {
            let mut long = [0; FRAME_HEADER_BYTES];
            long[..32].copy_from_slice(&bytes);
            long[..4].copy_from_slice(&MAGIC);
            let checksum = crc::seeded(seed, &long[..COVERED]);
            long[60..].copy_from_slice(&checksum.to_le_bytes());
            let _ = Header::decode(&long, seed);
        }
    }
}
