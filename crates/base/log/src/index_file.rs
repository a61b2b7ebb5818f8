//! The index of a sealed segment as a file beside it, drawn in `docs/log-format.md`.
//!
//! The file is derived and never flushed. Each block carries a magic and a checksum that starts from the
//! segment's seed, so a file that is torn, damaged, or of another segment is no index, and the segment is
//! followed frame by frame instead.

use std::io::{self, IoSlice};
use std::path::PathBuf;

use crate::crc;
use crate::disk::{Disk, OpenMode, read_up_to_at, write_all_at};
use crate::error::Chain;
use crate::index::{Entry, Index};
use crate::limits::{INDEX_BLOCK_BYTES, INDEX_BYTES_MAX, SEGMENT_HEADER_BYTES};
use crate::position::Position;
use crate::recycle;
use crate::segment::{Segment, SegmentHeader, Summary};

/// The name of an index has this extension.
pub(crate) const EXTENSION: &str = "idx";
const MAGIC: [u8; 8] = *b"TRIFIDIX";
const BLOCK_MAGIC: [u8; 4] = *b"TIXB";
const VERSION: u16 = 1;
const COVERED: usize = INDEX_BLOCK_BYTES - 4;
const ENTRY_BYTES: usize = 24;
const ENTRIES_FROM: usize = 16;
const BLOCK_ENTRIES: usize = (COVERED - ENTRIES_FROM) / ENTRY_BYTES;

pub(crate) fn path(segment: &Segment) -> PathBuf {
    segment.path.with_extension(EXTENSION)
}

/// Writes the index beside its segment, replacing what lies there. Without the file nothing is lost but time.
pub(crate) fn store(disk: &dyn Disk, segment: &Segment, header: &SegmentHeader, index: &Index) {
    let path = path(segment);
    recycle::remove(disk, &path);
    let bytes = encode(header, index);
    let written = disk
        .open(&path, OpenMode::CreateNew)
        .and_then(|file| write_all_at(&*file, &mut [IoSlice::new(&bytes)], 0));
    if let Err(error) = written {
        tracing::debug!(path = %path.display(), error = %Chain(&error), "an index is not stored");
        recycle::remove(disk, &path);
    }
}

/// Reads the index of a segment that ends at `end` and whose file is `segment_len` long; none if there is any
/// doubt.
pub(crate) fn load(
    disk: &dyn Disk,
    segment: &Segment,
    header: &SegmentHeader,
    end: Position,
    segment_len: u64,
) -> io::Result<Option<Index>> {
    let file = match disk.open(&path(segment), OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?;
    if len > INDEX_BYTES_MAX {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    let read = read_up_to_at(&*file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(decode(&bytes, header).filter(|index| index.end == end && index.end_offset <= segment_len))
}

/// What the first block says of a segment that ends at `end`; nothing if there is any doubt.
pub(crate) fn load_summary(
    disk: &dyn Disk,
    segment: &Segment,
    header: &SegmentHeader,
    end: Position,
) -> io::Result<Option<Summary>> {
    let file = match disk.open(&path(segment), OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut block = [0; INDEX_BLOCK_BYTES];
    let read = read_up_to_at(&*file, &mut block, 0)?;
    let found =
        Some(block).filter(|block| read == block.len()).and_then(|block| decode_first(&block, header));
    Ok(found.filter(|found| found.end == end).map(|found| (&found).into()))
}

pub(crate) fn encode(header: &SegmentHeader, index: &Index) -> Vec<u8> {
    let mut bytes = vec![0; INDEX_BLOCK_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(index.entries.len() as u32).to_le_bytes());
    let fields = [header.log.0, header.generation, header.salt, header.base.get(), index.end.get()];
    let fields = fields.into_iter().chain([index.end_offset, index.stamp as u64]);
    for (at, field) in fields.enumerate() {
        bytes[16 + at * 8..][..8].copy_from_slice(&field.to_le_bytes());
    }
    put_checksum(&mut bytes, header.seed());
    for (number, entries) in index.entries.chunks(BLOCK_ENTRIES).enumerate() {
        bytes.extend(encode_block(number as u32, entries, header.seed()));
    }
    bytes
}

fn encode_block(number: u32, entries: &[Entry], seed: u32) -> Vec<u8> {
    let mut block = vec![0; INDEX_BLOCK_BYTES];
    block[..4].copy_from_slice(&BLOCK_MAGIC);
    block[4..8].copy_from_slice(&number.to_le_bytes());
    block[8..12].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    for (at, entry) in entries.iter().enumerate() {
        let fields = [entry.position.get(), entry.offset, entry.stamp as u64].map(u64::to_le_bytes);
        block[ENTRIES_FROM + at * ENTRY_BYTES..][..ENTRY_BYTES].copy_from_slice(fields.as_flattened());
    }
    put_checksum(&mut block, seed);
    block
}

fn put_checksum(block: &mut [u8], seed: u32) {
    let checksum = crc::seeded(seed, &block[..COVERED]);
    block[COVERED..].copy_from_slice(&checksum.to_le_bytes());
}

/// The same blocks with right checksums, for fuzzing.
pub(crate) fn mended(bytes: &[u8], header: &SegmentHeader) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.chunks_exact_mut(INDEX_BLOCK_BYTES).for_each(|block| put_checksum(block, header.seed()));
    bytes
}

/// The index in `bytes`, if it is whole and belongs to the segment with this header.
pub(crate) fn decode(bytes: &[u8], header: &SegmentHeader) -> Option<Index> {
    let (blocks, []) = bytes.as_chunks::<INDEX_BLOCK_BYTES>() else { return None };
    let (first, blocks) = blocks.split_first()?;
    let index = decode_first(first, header)?;
    let mut entries = Vec::with_capacity(blocks.len() * BLOCK_ENTRIES);
    for (number, block) in blocks.iter().enumerate() {
        let count = u32_at(block, 8) as usize;
        let numbered = block[..4] == BLOCK_MAGIC && u32_at(block, 4) as usize == number;
        if !numbered || !is_whole(block, header) || count > BLOCK_ENTRIES {
            return None;
        }
        entries.extend((0..count).map(|at| entry(block, ENTRIES_FROM + at * ENTRY_BYTES)));
    }
    let counted = entries.len() == u32_at(first, 12) as usize;
    let index = Index { entries, ..index };
    (counted && makes_sense(&index, header.base)).then_some(index)
}

/// The index without its entries, if the block belongs to the segment with this header.
fn decode_first(block: &[u8; INDEX_BLOCK_BYTES], header: &SegmentHeader) -> Option<Index> {
    let version = u16::from_le_bytes([block[8], block[9]]);
    if block[..8] != MAGIC || !is_whole(block, header) || version != VERSION || block[10..12] != [0; 2] {
        return None;
    }
    let [log, generation, salt, base, end, end_offset, stamp] =
        std::array::from_fn(|at| u64_at(block, 16 + at * 8));
    let of = [header.log.0, header.generation, header.salt, header.base.get()];
    let end = Position::new(end);
    let index = Index { entries: Vec::new(), end, end_offset, stamp: stamp as i64 };
    ([log, generation, salt, base] == of).then_some(index)
}

fn is_whole(block: &[u8; INDEX_BLOCK_BYTES], header: &SegmentHeader) -> bool {
    u32_at(block, COVERED) == crc::seeded(header.seed(), &block[..COVERED])
}

fn entry(block: &[u8], at: usize) -> Entry {
    Entry {
        position: Position::new(u64_at(block, at)),
        offset: u64_at(block, at + 8),
        stamp: u64_at(block, at + 16) as i64,
    }
}

/// Whether the entries rise from the segment's base to its end.
fn makes_sense(index: &Index, base: Position) -> bool {
    let rises = |pair: &[Entry]| {
        pair[0].position < pair[1].position
            && pair[0].offset < pair[1].offset
            && pair[0].stamp <= pair[1].stamp
    };
    let begins = index
        .entries
        .first()
        .is_none_or(|entry| entry.position == base && entry.offset >= SEGMENT_HEADER_BYTES);
    let ends = index.entries.last().is_none_or(|entry| {
        entry.position < index.end && entry.offset < index.end_offset && entry.stamp <= index.stamp
    });
    begins
        && ends
        && index.end >= base
        && index.end_offset >= SEGMENT_HEADER_BYTES
        && index.entries.windows(2).all(rises)
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
    use crate::position::{Epoch, LogId};
    use proptest::prelude::*;

    fn header() -> SegmentHeader {
        let (generation, salt, base) = (4, 99, Position::new(1000));
        SegmentHeader { log: LogId(7), generation, salt, base, epoch: Epoch(3), recycled: false, span: None }
    }

    fn index(frames: i64) -> Index {
        let mut index = Index::new(header().base);
        (0..frames).for_each(|n| index.add(1 + n as u32 % 3, 40_000, n * 7 % 1_000));
        index
    }

    #[test]
    fn is_read_back() {
        for frames in [0, 1, 2, 169, 170, 1_000] {
            let bytes = encode(&header(), &index(frames));
            assert_eq!(bytes.len(), 4096 * (1 + (frames as usize).div_ceil(BLOCK_ENTRIES)));
            assert_eq!(decode(&bytes, &header()), Some(index(frames)));
        }
    }

    #[test]
    fn of_another_segment_is_none() {
        let bytes = encode(&header(), &index(5));
        let other = SegmentHeader { salt: 98, ..header() };
        assert_eq!(decode(&bytes, &other), None);
    }

    proptest! {
        #[test]
        fn a_flipped_byte_never_passes(at: prop::sample::Index, flip in 1..=255u8) {
            let mut bytes = encode(&header(), &index(400));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(decode(&bytes, &header()), None);
        }

        #[test]
        fn a_cut_never_passes(at: prop::sample::Index) {
            let bytes = encode(&header(), &index(400));
            prop_assert_eq!(decode(&bytes[..at.index(bytes.len())], &header()), None);
        }

        #[test]
        fn blocks_in_another_order_never_pass(swap in 1..3usize) {
            let bytes = encode(&header(), &index(400));
            let mut blocks: Vec<&[u8]> = bytes.chunks(INDEX_BLOCK_BYTES).collect();
            blocks.swap(swap, swap + 1 - 2 * (swap / 2));
            prop_assert_eq!(decode(&blocks.concat(), &header()).is_some(), false);
        }
    }
}
