//! Entry points that take any bytes: the bodies of the fuzz targets under `fuzz/`, and of the tests that replay
//! their corpus on the stable toolchain.
//!
//! Each returns normally for every input. What it asserts is a law of this crate, so a panic is a defect.

use std::error::Error;
use std::io::{self, IoSlice};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::Cache;
use crate::crc;
use crate::disk::{Disk, DiskFile, DiskLock, OpenMode};
use crate::files::Files;
use crate::frame::frame_len;
use crate::index_file;
use crate::limits::{FRAME_HEADER_BYTES, RECORD_BATCH_BYTES_MIN, SEGMENT_HEADER_BYTES};
use crate::options::LogOptions;
use crate::page::read_page;
use crate::position::{LogId, Position};
use crate::read::{Frame, Walk};
use crate::recover::{Peek, Replay};
use crate::segment::{HEADER_BYTES, Segment, SegmentHeader, log_dir};
use crate::writer::Home;

const LOG: LogId = LogId(0xab);

/// Target `log_segment`: a segment file, as it is and with its checksums made right. What is valid of it is dense,
/// and read alike however it is read.
pub fn segment(bytes: &[u8]) {
    check_segment(bytes.to_vec());
    check_segment(mended(bytes));
}

/// Target `log_index`: an index file, as it is and with its checksums made right. What is read of it is written,
/// and read again as the same.
pub fn index(bytes: &[u8]) {
    let header = bytes.first_chunk().map(header_of_index);
    let Some(header) = header else { return };
    for bytes in [bytes.to_vec(), index_file::mended(bytes, &header)] {
        if let Some(index) = index_file::decode(&bytes, &header) {
            let again = index_file::encode(&header, &index);
            assert!(index_file::decode(&again, &header).as_ref() == Some(&index));
            let (position, offset) = index.locate(header.base, Position::new(u64::MAX));
            assert!(position >= header.base && offset >= SEGMENT_HEADER_BYTES);
        }
    }
}

/// The header of the segment that an index says it belongs to.
fn header_of_index(bytes: &[u8; HEADER_BYTES]) -> SegmentHeader {
    let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    SegmentHeader {
        log: LogId(field(16)),
        generation: field(24),
        salt: field(32),
        base: Position::new(field(40)),
        epoch: crate::position::Epoch(0),
        recycled: false,
        span: None,
    }
}

fn check_segment(bytes: Vec<u8>) {
    let base = bytes.get(40..48).map_or(0, |base| u64_at(base, 0));
    let segment = Segment::new(&log_dir(LOG), Position::new(base));
    let disk: Arc<dyn Disk> = Arc::new(OneFile { path: segment.path.clone(), bytes: bytes.into() });
    let mut found = Found::default();
    let Ok(peek) = Peek::open(&disk, LOG) else { return };
    let Ok(recovery) = peek.read(segment.base, &mut found) else { return };
    let frames = found.0;
    assert!(recovery.first == segment.base || frames.is_empty());
    let mut next = recovery.first;
    for (position, records, _) in &frames {
        assert!(*position >= next && *records > 0);
        next = position.advance(*records);
    }
    assert!(next <= recovery.next);
    if recovery.next > segment.base {
        check_reads(&disk, Arc::new(segment), recovery.next, &frames);
    }
}

/// The frames once more, by a walk and by pages from everywhere.
fn check_reads(
    disk: &Arc<dyn Disk>,
    segment: Arc<Segment>,
    end: Position,
    frames: &[(Position, u32, Vec<u8>)],
) {
    let base = segment.base;
    let mut walked = Found::default();
    let walk = Walk { disk, log: LOG, range: base..end, segments: vec![segment.clone()] };
    let walked_to = walk.run(&mut |frame| {
        walked.add(frame);
        ControlFlow::Continue(())
    });
    assert!(walked_to.is_ok_and(|to| to == end) && walked.0 == frames);
    let home = Home::new(disk.clone(), Arc::default(), LogOptions::journal(), Arc::new(Cache::new(1)), LOG);
    let files = Files { home, segments: Arc::new(vec![segment].into()) };
    for (at, (position, _, payload)) in frames.iter().enumerate() {
        let page = read_page(&files, *position..end, 1);
        let entry = page.ok().and_then(|page| page.entries.into_iter().next());
        let entry = entry.unwrap_or_else(|| panic!("nothing at {position}"));
        let same = if entry.is_record_batch {
            entry.payload[16..] == payload[16..]
        } else {
            entry.payload == *payload
        };
        assert!(entry.position == *position && same, "frame {at} is read otherwise");
    }
}

/// Frames as they are delivered.
#[derive(Default)]
struct Found(Vec<(Position, u32, Vec<u8>)>);

impl Found {
    fn add(&mut self, frame: Frame<'_>) {
        self.0.push((frame.position, frame.records, frame.payload.to_vec()));
    }
}

impl Replay for Found {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.add(frame);
        Ok(())
    }
}

/// The segment with right checksums and a chain that holds, where its bytes do not ask to be left alone, so that
/// what lies behind a checksum is reached too.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() < SEGMENT_HEADER_BYTES as usize {
        return bytes;
    }
    let flags = bytes[10] & 3;
    let header = &mut bytes[..HEADER_BYTES];
    header[..8].copy_from_slice(b"TRIFIDLG");
    header[8..16].copy_from_slice(&[1, 0, flags, 0, 0, 0x10, 0, 0]);
    header[16..24].copy_from_slice(&LOG.0.to_le_bytes());
    header[40..48].copy_from_slice(&[0; 8]);
    let checksum = crc::of(&header[..60]);
    header[60..].copy_from_slice(&checksum.to_le_bytes());
    let seed = crc::of(&header[24..40]);
    mend_frames(&mut bytes[SEGMENT_HEADER_BYTES as usize..], seed);
    bytes
}

fn mend_frames(mut bytes: &mut [u8], seed: u32) {
    let mut next = 0u64;
    while bytes.len() >= FRAME_HEADER_BYTES {
        let (header, rest) = bytes.split_at_mut(FRAME_HEADER_BYTES);
        // What the reserved bytes hold says what is left as it is.
        let left_alone = header[52];
        header[..5].copy_from_slice(b"TFRM\x01");
        header[5] %= 4;
        header[6..8].fill(0);
        header[8..16].copy_from_slice(&LOG.0.to_le_bytes());
        let len = (u32_at(header, 44) as usize).min(rest.len());
        let len = if matches!(header[5], 1 | 2) { 0 } else { len };
        if left_alone & 1 == 0 {
            header[24..32].copy_from_slice(&next.to_le_bytes());
            let mark = u64_at(header, 32).min(next);
            header[32..40].copy_from_slice(&mark.to_le_bytes());
            header[44..48].copy_from_slice(&(len as u32).to_le_bytes());
            header[23] = 0;
        }
        if header[5] == 1 {
            header[40..44].fill(0);
        }
        if left_alone & 2 == 0 {
            let crc = mend_payload(header[5], &mut rest[..len]);
            header[48..52].copy_from_slice(&crc.to_le_bytes());
        }
        next = next.saturating_add(u64::from(u32_at(header, 40)));
        let checksum = crc::seeded(seed, &header[..60]);
        header[60..].copy_from_slice(&checksum.to_le_bytes());
        let frame = (frame_len(len) - FRAME_HEADER_BYTES).min(rest.len());
        bytes = &mut rest[frame..];
    }
}

fn mend_payload(kind: u8, payload: &mut [u8]) -> u32 {
    if kind != 3 || payload.len() < RECORD_BATCH_BYTES_MIN {
        return crc::of(payload);
    }
    let length = (payload.len() - 12) as u32;
    payload[8..12].copy_from_slice(&length.to_be_bytes());
    payload[16] = 2;
    let crc = crc::of(&payload[21..]);
    payload[17..21].copy_from_slice(&crc.to_be_bytes());
    crc
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

/// A disk with one file, which can be read.
struct OneFile {
    path: PathBuf,
    bytes: Arc<[u8]>,
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Disk for OneFile {
    fn lock(&self, _path: &Path) -> io::Result<Box<dyn DiskLock>> {
        unsupported()
    }

    fn lock_holder(&self, _path: &Path) -> Option<String> {
        None
    }

    fn create_dir(&self, _path: &Path) -> io::Result<bool> {
        unsupported()
    }

    fn list(&self, _dir: &Path) -> io::Result<Vec<String>> {
        Ok(self.path.file_name().and_then(|name| name.to_str()).map(str::to_owned).into_iter().collect())
    }

    fn list_dirs(&self, _dir: &Path) -> io::Result<Vec<String>> {
        unsupported()
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        if path != self.path || mode != OpenMode::Read {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Arc::new(Content(self.bytes.clone())))
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        unsupported()
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        unsupported()
    }

    fn remove_dir(&self, _path: &Path) -> io::Result<()> {
        unsupported()
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        unsupported()
    }
}

struct Content(Arc<[u8]>);

impl DiskFile for Content {
    fn write_at(&self, _pieces: &[IoSlice<'_>], _offset: u64) -> io::Result<usize> {
        unsupported()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..)).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        unsupported()
    }

    fn sync_data(&self) -> io::Result<()> {
        unsupported()
    }

    fn sync_all(&self) -> io::Result<()> {
        unsupported()
    }

    fn preallocate(&self, _len: u64) -> io::Result<()> {
        unsupported()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    /// Every file of the samples with this extension, as far as `from`.
    fn samples(extension: &str) -> Vec<Vec<u8>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
        let folders = ["v1", "stream"].map(|folder| root.join(folder));
        let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
        let paths =
            files.map(|file| file.unwrap().path()).filter(|path| path.extension().unwrap() == extension);
        paths.map(|path| fs::read(path).unwrap()).collect()
    }

    /// Every input of the corpus, on the stable toolchain.
    fn replay(target: &str, body: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
        let inputs: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!inputs.is_empty());
        inputs.iter().for_each(|path| body(&fs::read(path).unwrap()));
    }

    #[test]
    fn the_corpus_is_read() {
        replay("log_segment", segment);
        replay("log_index", index);
        samples("seg").iter().for_each(|bytes| segment(bytes));
        samples("idx").iter().for_each(|bytes| index(bytes));
    }

    /// The mended copy of a sample must reach the frames: a mender that spoils everything would prove nothing.
    #[test]
    fn mending_keeps_what_is_right() {
        for bytes in samples("seg") {
            let mended = mended(&bytes);
            let segment = Segment::new(&log_dir(LOG), Position::ZERO);
            let disk: Arc<dyn Disk> = Arc::new(OneFile { path: segment.path, bytes: mended.into() });
            let mut found = Found::default();
            Peek::open(&disk, LOG).unwrap().read(Position::ZERO, &mut found).unwrap();
            assert!(!found.0.is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn changed_segments_keep_the_laws(
            which: prop::sample::Index,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        ) {
            let samples = samples("seg");
            let mut bytes = samples[which.index(samples.len())].clone();
            for (at, byte) in changes {
                // The frames, not the zeros before them.
                let at = at.index(bytes.len() - 4096 + 64);
                bytes[if at < 64 { at } else { at + 4096 - 64 }] = byte;
            }
            segment(&bytes);
        }

        #[test]
        fn changed_indexes_keep_the_laws(
            which: prop::sample::Index,
            changes in prop::collection::vec((0..200usize, any::<bool>(), any::<u8>()), 1..10),
        ) {
            let samples = samples("idx");
            let mut bytes = samples[which.index(samples.len())].clone();
            for (at, second, byte) in changes {
                bytes[at + if second { 4096 } else { 0 }] = byte;
            }
            index(&bytes);
        }

        #[test]
        fn any_bytes_keep_the_laws(bytes in prop::collection::vec(any::<u8>(), 0..9_000)) {
            segment(&bytes);
            index(&bytes);
        }
    }
}
