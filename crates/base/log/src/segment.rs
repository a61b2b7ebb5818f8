//! Segment files: their names, and the header block that opens each.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::crc;
use crate::disk::DiskFile;
use crate::error::Defect;
use crate::frame::Bad;
use crate::index::Index;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::position::{Epoch, LogId, Position};

const MAGIC: [u8; 8] = *b"TRIFIDLG";
const VERSION: u16 = 1;
/// Flag: the file was another segment before.
const RECYCLED: u16 = 1;
/// Flag: the header says how many positions the segment covers.
const SPANS: u16 = 2;
const COVERED: usize = 60;
/// Bytes of the block that carry the header; the rest is zero.
pub(crate) const HEADER_BYTES: usize = 64;
/// The name of a segment has this extension.
pub(crate) const EXTENSION: &str = "seg";

/// A segment of a log: where it begins, where it lies, and, while it is written, where its frames are.
pub(crate) struct Segment {
    pub(crate) base: Position,
    pub(crate) path: PathBuf,
    /// Another for every file, also for one that takes the name of another.
    pub(crate) serial: u64,
    /// `None` once the segment is sealed.
    growing: Mutex<Option<Growing>>,
    /// Known once a sealed segment was looked at.
    summary: OnceLock<Summary>,
}

/// The segment that is being written.
pub(crate) struct Growing {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) header: SegmentHeader,
    pub(crate) index: Index,
}

/// What is said of a sealed segment without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Bytes, without what a reused file holds behind its last frame.
    pub(crate) bytes: u64,
    pub(crate) stamp: i64,
}

impl From<&Index> for Summary {
    fn from(index: &Index) -> Self {
        Summary { bytes: index.end_offset, stamp: index.stamp }
    }
}

impl Segment {
    /// The segment of the log in `dir` that begins at `base`.
    pub(crate) fn new(dir: &Path, base: Position) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        Segment {
            base,
            path: dir.join(format!("{:020}.{EXTENSION}", base.get())),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            growing: Mutex::default(),
            summary: OnceLock::new(),
        }
    }

    /// From now on it is written.
    pub(crate) fn grow(&self, growing: Growing) {
        *self.growing.lock() = Some(growing);
    }

    /// Asks the segment while it is written; `None` when it is sealed.
    pub(crate) fn growing<T>(&self, ask: impl FnOnce(&mut Growing) -> T) -> Option<T> {
        self.growing.lock().as_mut().map(ask)
    }

    /// From now on it is not written any more.
    pub(crate) fn seal(&self) -> Option<Growing> {
        let growing = self.growing.lock().take()?;
        self.sum_up((&growing.index).into());
        Some(growing)
    }

    pub(crate) fn sum_up(&self, summary: Summary) {
        // A segment that was summed up before was summed up alike.
        let _ = self.summary.set(summary);
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        self.growing(|growing| (&growing.index).into()).or_else(|| self.summary.get().copied())
    }

    /// The segment with this file name, if it is the name of one.
    pub(crate) fn from_name(dir: &Path, name: &str) -> Option<Self> {
        let digits = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
        if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Segment::new(dir, Position::new(digits.parse().ok()?)))
    }
}

/// The folder of all logs.
pub(crate) const LOGS: &str = "log";

/// The folder of a log.
pub(crate) fn log_dir(log: LogId) -> PathBuf {
    Path::new(LOGS).join(log.to_string())
}

/// The log with this folder name, if it is the name of one.
pub(crate) fn log_from_name(name: &str) -> Option<LogId> {
    let id = LogId(u64::from_str_radix(name, 16).ok()?);
    (id.to_string() == name).then_some(id)
}

/// The fields of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) log: LogId,
    pub(crate) generation: u64,
    pub(crate) salt: u64,
    pub(crate) base: Position,
    pub(crate) epoch: Epoch,
    /// The file was another segment before: behind the frames lies what that one held.
    pub(crate) recycled: bool,
    /// Of a compacted segment: how many positions it covers. Segments that begin within them were joined into it.
    pub(crate) span: Option<u32>,
}

impl SegmentHeader {
    /// The whole header block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; SEGMENT_HEADER_BYTES as usize];
        block[..8].copy_from_slice(&MAGIC);
        block[8..10].copy_from_slice(&VERSION.to_le_bytes());
        let recycled = if self.recycled { RECYCLED } else { 0 };
        let spans = if self.span.is_some() { SPANS } else { 0 };
        block[10..12].copy_from_slice(&(recycled | spans).to_le_bytes());
        block[12..16].copy_from_slice(&(SEGMENT_HEADER_BYTES as u32).to_le_bytes());
        block[16..24].copy_from_slice(&self.log.0.to_le_bytes());
        block[24..32].copy_from_slice(&self.generation.to_le_bytes());
        block[32..40].copy_from_slice(&self.salt.to_le_bytes());
        block[40..48].copy_from_slice(&self.base.get().to_le_bytes());
        block[48..56].copy_from_slice(&self.epoch.0.to_le_bytes());
        block[56..60].copy_from_slice(&self.span.unwrap_or_default().to_le_bytes());
        let checksum = crc::of(&block[..COVERED]);
        block[COVERED..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        block
    }

    /// Reads the header, its checksum before its version.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Bad> {
        if bytes[..8] != MAGIC {
            return Err(Defect::Magic.into());
        }
        let (covered, checksum) = bytes.split_at(COVERED);
        if crc::of(covered).to_le_bytes() != checksum {
            return Err(Defect::HeaderChecksum.into());
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        let flags = u16::from_le_bytes([bytes[10], bytes[11]]);
        let frames_at = u64_at(bytes, 12) & u64::from(u32::MAX);
        if version != VERSION || flags & !(RECYCLED | SPANS) != 0 || frames_at != SEGMENT_HEADER_BYTES {
            let what = format!("segment version {version}, flags {flags:#06x}, frames at {frames_at}");
            return Err(Bad::Unsupported(what));
        }
        Ok(SegmentHeader {
            log: LogId(u64_at(bytes, 16)),
            generation: u64_at(bytes, 24),
            salt: u64_at(bytes, 32),
            base: Position::new(u64_at(bytes, 40)),
            epoch: Epoch(u64_at(bytes, 48)),
            recycled: flags & RECYCLED != 0,
            span: (flags & SPANS != 0)
                .then(|| u32::from_le_bytes([bytes[56], bytes[57], bytes[58], bytes[59]])),
        })
    }

    /// What every frame's header checksum in this segment starts from.
    pub(crate) fn seed(&self) -> u32 {
        crc::of_pieces(&[&self.generation.to_le_bytes(), &self.salt.to_le_bytes()])
    }
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> SegmentHeader {
        let (generation, salt, base) = (4, 99, Position::new(1000));
        SegmentHeader { log: LogId(7), generation, salt, base, epoch: Epoch(3), recycled: false, span: None }
    }

    fn block() -> [u8; HEADER_BYTES] {
        header().encode()[..HEADER_BYTES].try_into().unwrap()
    }

    #[test]
    fn names_are_read_back_and_others_ignored() {
        let dir = log_dir(LogId(0xab));
        assert_eq!(dir, Path::new("log/00000000000000ab"));
        let segment = Segment::new(&dir, Position::new(42));
        assert_eq!(segment.path, dir.join("00000000000000000042.seg"));
        let again = Segment::from_name(&dir, "00000000000000000042.seg").unwrap();
        assert_eq!((again.base, &again.path), (segment.base, &segment.path));
        assert_ne!(again.serial, segment.serial);
        for other in
            ["42.seg", "0000000000000000004x.seg", "99999999999999999999.seg", "00000000000000000042.tmp", ""]
        {
            assert!(Segment::from_name(&dir, other).is_none(), "{other}");
        }
    }

    #[test]
    fn is_read_back_and_fills_a_block() {
        assert_eq!(header().encode().len() as u64, SEGMENT_HEADER_BYTES);
        assert_eq!(SegmentHeader::decode(&block()), Ok(header()));
        let recycled = SegmentHeader { recycled: true, ..header() };
        assert_eq!(
            SegmentHeader::decode(recycled.encode()[..HEADER_BYTES].try_into().unwrap()),
            Ok(recycled)
        );
    }

    #[test]
    fn refuses_another_version() {
        let mut bytes = block();
        bytes[8] = 2;
        let checksum = crc::of(&bytes[..COVERED]);
        bytes[COVERED..].copy_from_slice(&checksum.to_le_bytes());
        assert!(
            matches!(SegmentHeader::decode(&bytes), Err(Bad::Unsupported(what)) if what.contains("version 2"))
        );
    }

    proptest! {
        #[test]
        fn a_flipped_byte_never_passes(at in 0..HEADER_BYTES, flip in 1..=255u8) {
            let mut bytes = block();
            bytes[at] ^= flip;
            prop_assert!(matches!(SegmentHeader::decode(&bytes), Err(Bad::Defect(_))));
        }
    }
}
