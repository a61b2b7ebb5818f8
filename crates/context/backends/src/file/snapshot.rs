//! The snapshot file: checksummed blocks of entries, drawn in `docs/context-store-format.md`.
//!
//! Written and read as a stream, a block of about a megabyte at a time; nothing of it is believed before its
//! block's checksum matched, and nothing is believed at all if the end entry is missing.

use std::io::{self, Read, Write};

use super::encoding::{Cursor, Malformed, put_filled};
use super::limits::BLOCK_BYTES;

const MAGIC: [u8; 8] = *b"TRIFIDSN";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 64;
const COVERED: usize = 60;
const BLOCK_HEADER_BYTES: usize = 8;

/// What an entry of a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A tenant: the entities that follow are its own.
    Tenant,
    /// An entity in canonical form.
    Entity,
    /// A hosted context.
    Context,
    /// A payload of the journal.
    Change,
    /// The end.
    End,
}

impl EntryKind {
    const ALL: [EntryKind; 5] =
        [EntryKind::Tenant, EntryKind::Entity, EntryKind::Context, EntryKind::Change, EntryKind::End];

    fn code(self) -> u8 {
        self as u8 + 1
    }

    fn from_code(code: u8) -> Option<Self> {
        EntryKind::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// Writes a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotWriter<W> {
    out: W,
    block: Vec<u8>,
    ordinal: u64,
    pub(super) entries: u64,
    bytes: u64,
}

impl<W: Write> SnapshotWriter<W> {
    pub(super) fn new(mut out: W, position: u64) -> io::Result<Self> {
        out.write_all(&header(position))?;
        let bytes = HEADER_BYTES as u64;
        Ok(SnapshotWriter { out, block: Vec::new(), ordinal: 0, entries: 0, bytes })
    }

    /// Adds an entry that holds what `fill` appends.
    pub(super) fn entry(&mut self, kind: EntryKind, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.block.push(kind.code());
        put_filled(&mut self.block, fill);
        self.entries += 1;
        if self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    /// Adds the end; only now is the snapshot whole. Answers its size.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        let entries = self.entries;
        self.entry(EntryKind::End, |out| out.extend_from_slice(&entries.to_le_bytes()))?;
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.out.flush()?;
        Ok(self.bytes)
    }

    fn end_block(&mut self) -> io::Result<()> {
        let mut head = [0; BLOCK_HEADER_BYTES];
        head[..4].copy_from_slice(&(self.block.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&checksum(self.ordinal, &self.block).to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(&self.block)?;
        self.bytes += (BLOCK_HEADER_BYTES + self.block.len()) as u64;
        self.ordinal += 1;
        self.block.clear();
        Ok(())
    }
}

fn header(position: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&position.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..COVERED]);
    bytes[COVERED..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn checksum(ordinal: u64, block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&ordinal.to_le_bytes()), block)
}

/// Why a snapshot cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Damaged(&'static str),
    #[error("{0}")]
    Unsupported(String),
}

impl From<Malformed> for SnapshotError {
    fn from(malformed: Malformed) -> Self {
        SnapshotError::Damaged(malformed.0)
    }
}

/// Reads a snapshot.
pub(super) struct SnapshotReader<R> {
    input: R,
    block: Vec<u8>,
    /// How much of the block was given out.
    given: usize,
    ordinal: u64,
    entries: u64,
    pub(super) position: u64,
    /// Where the current block begins in the file.
    pub(super) block_offset: u64,
    /// Bytes read.
    pub(super) bytes: u64,
}

impl<R: Read> SnapshotReader<R> {
    pub(super) fn new(mut input: R) -> Result<Self, SnapshotError> {
        let mut bytes = [0; HEADER_BYTES];
        read_exactly(&mut input, &mut bytes)?;
        if bytes[..8] != MAGIC {
            return Err(SnapshotError::Damaged("no snapshot begins here"));
        }
        if crc32c::crc32c(&bytes[..COVERED]).to_le_bytes() != bytes[COVERED..] {
            return Err(SnapshotError::Damaged("the header's checksum does not match"));
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        let flags = u16::from_le_bytes([bytes[10], bytes[11]]);
        if version != VERSION || flags != 0 {
            return Err(SnapshotError::Unsupported(format!(
                "snapshot version {version}, flags {flags:#06x}"
            )));
        }
        Ok(SnapshotReader {
            input,
            block: Vec::new(),
            given: 0,
            ordinal: 0,
            entries: 0,
            position: Cursor(&bytes[16..]).u64()?,
            block_offset: HEADER_BYTES as u64,
            bytes: HEADER_BYTES as u64,
        })
    }

    /// The next entry; `None` after the end.
    pub(super) fn next(&mut self) -> Result<Option<(EntryKind, &[u8])>, SnapshotError> {
        if self.given == self.block.len() {
            self.read_block()?;
        }
        let mut cursor = Cursor(&self.block[self.given..]);
        let kind = EntryKind::from_code(cursor.byte()?);
        let kind = kind.ok_or(SnapshotError::Damaged("an entry is of an unknown kind"))?;
        let bytes = cursor.bytes()?;
        let end = self.block.len() - cursor.0.len();
        let range = end - bytes.len()..end;
        self.given = end;
        if kind == EntryKind::End {
            let announced = Cursor(&self.block[range]).u64()?;
            self.check_end(announced)?;
            return Ok(None);
        }
        self.entries += 1;
        Ok(Some((kind, &self.block[range])))
    }

    fn read_block(&mut self) -> Result<(), SnapshotError> {
        let mut head = [0; BLOCK_HEADER_BYTES];
        self.block_offset = self.bytes;
        read_exactly(&mut self.input, &mut head)?;
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        self.block.clear();
        self.given = 0;
        // The length is not checked yet: memory grows only with what is really there.
        let read = (&mut self.input).take(u64::from(len)).read_to_end(&mut self.block)?;
        if read < len as usize {
            return Err(SnapshotError::Damaged("the file ends inside a block"));
        }
        if checksum(self.ordinal, &self.block).to_le_bytes() != head[4..] {
            return Err(SnapshotError::Damaged("the block's checksum does not match"));
        }
        self.ordinal += 1;
        self.bytes += (BLOCK_HEADER_BYTES + self.block.len()) as u64;
        Ok(())
    }

    fn check_end(&mut self, announced: u64) -> Result<(), SnapshotError> {
        if announced != self.entries {
            return Err(SnapshotError::Damaged("the number of entries is not the one at the end"));
        }
        let more = self.given < self.block.len() || self.input.read(&mut [0])? > 0;
        if more { Err(SnapshotError::Damaged("the file goes on after its end")) } else { Ok(()) }
    }
}

fn read_exactly(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), SnapshotError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Damaged("the file ends early"),
        _ => SnapshotError::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Entries = Vec<(EntryKind, Vec<u8>)>;

    fn written(entries: &Entries) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = SnapshotWriter::new(&mut bytes, 42).unwrap();
        for (kind, bytes) in entries {
            writer.entry(*kind, |out| out.extend_from_slice(bytes)).unwrap();
        }
        let count = writer.finish().unwrap();
        assert_eq!(count, bytes.len() as u64);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(u64, Entries), SnapshotError> {
        let mut reader = SnapshotReader::new(bytes)?;
        let mut entries = Vec::new();
        while let Some((kind, bytes)) = reader.next()? {
            entries.push((kind, bytes.to_vec()));
        }
        assert_eq!(reader.bytes, bytes.len() as u64);
        Ok((reader.position, entries))
    }

    /// Several blocks.
    fn sample() -> Entries {
        let large = vec![7; BLOCK_BYTES / 3];
        let kinds = [EntryKind::Tenant, EntryKind::Entity, EntryKind::Context, EntryKind::Change];
        kinds.into_iter().cycle().take(10).map(|kind| (kind, large.clone())).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for entries in [Vec::new(), vec![(EntryKind::Tenant, Vec::new())], sample()] {
            assert_eq!(read(&written(&entries)).unwrap(), (42, entries));
        }
    }

    #[test]
    fn a_snapshot_without_its_end_is_damaged() {
        let whole = written(&sample());
        for len in [0, 10, HEADER_BYTES, HEADER_BYTES + 5, whole.len() / 2, whole.len() - 1] {
            assert!(matches!(read(&whole[..len]), Err(SnapshotError::Damaged(_))), "{len}");
        }
        assert!(matches!(read(&[whole, vec![0]].concat()), Err(SnapshotError::Damaged(_))));
    }

    #[test]
    fn blocks_in_another_order_are_damaged() {
        let entries: Entries = vec![(EntryKind::Entity, vec![7; BLOCK_BYTES]); 2];
        let whole = written(&entries);
        let block = BLOCK_HEADER_BYTES + 5 + BLOCK_BYTES;
        let (first, second) = whole[HEADER_BYTES..].split_at(block);
        let (second, end) = second.split_at(block);
        assert!(read(&[&whole[..HEADER_BYTES], first, second, end].concat()).is_ok());
        assert!(read(&[&whole[..HEADER_BYTES], second, first, end].concat()).is_err());
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = written(&Vec::new());
        bytes[8] = 2;
        let checksum = crc32c::crc32c(&bytes[..COVERED]);
        bytes[COVERED..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        assert!(matches!(read(&bytes), Err(SnapshotError::Unsupported(what)) if what.contains("version 2")));
    }

    proptest! {
        #[test]
        fn a_flipped_byte_is_damage(at: prop::sample::Index, flip in 1..=255u8) {
            let entries = vec![(EntryKind::Tenant, b"city".to_vec()), (EntryKind::Entity, vec![1; 100])];
            let mut bytes = written(&entries);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(matches!(read(&bytes), Err(SnapshotError::Damaged(_))), "{at}");
        }
    }
}
