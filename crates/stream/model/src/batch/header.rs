//! The header of a batch, as numbers.

use std::fmt;

use super::error::BatchError;

/// Bytes before the first record.
pub const HEADER_LEN: usize = 61;

pub(super) const LENGTH_AT: usize = 8;
pub(super) const MAGIC_AT: usize = 16;
pub(super) const CRC_AT: usize = 17;
pub(super) const ATTRIBUTES_AT: usize = 21;
pub(super) const LAST_DELTA_AT: usize = 23;
pub(super) const BASE_TIME_AT: usize = 27;
pub(super) const MAX_TIME_AT: usize = 35;
pub(super) const PRODUCER_ID_AT: usize = 43;
pub(super) const PRODUCER_EPOCH_AT: usize = 51;
pub(super) const SEQUENCE_AT: usize = 53;
pub(super) const COUNT_AT: usize = 57;
/// Bytes that the length field does not count: the base offset and the field itself.
pub(super) const UNCOUNTED: usize = 12;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy, in blocks as the Java library frames them.
    Snappy,
    /// The LZ4 frame format.
    Lz4,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Its name in Kafka's configuration (`compression.type`).
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The attributes of a batch, all bits known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// How the records are compressed.
    pub compression: Compression,
    /// The timestamps are those of the broker and not of the producer.
    pub log_append_time: bool,
    /// Part of a transaction (KIP-98).
    pub transactional: bool,
    /// Holds a marker and no data (KIP-98).
    pub control: bool,
    /// The base timestamp is a delete horizon (KIP-534); only compaction writes it.
    pub delete_horizon: bool,
}

impl Attributes {
    /// Reads the field; a bit without a meaning is refused.
    pub fn from_bits(bits: i16) -> Result<Self, BatchError> {
        let compression = Compression::ALL.get(usize::from(bits as u16 & 0b111)).copied();
        match compression {
            Some(compression) if bits as u16 & !0b111_1111 == 0 => Ok(Self {
                compression,
                log_append_time: bits & 1 << 3 != 0,
                transactional: bits & 1 << 4 != 0,
                control: bits & 1 << 5 != 0,
                delete_horizon: bits & 1 << 6 != 0,
            }),
            _ => Err(BatchError::Attributes(bits)),
        }
    }

    /// The field.
    pub fn bits(self) -> i16 {
        self.compression as i16
            | i16::from(self.log_append_time) << 3
            | i16::from(self.transactional) << 4
            | i16::from(self.control) << 5
            | i16::from(self.delete_horizon) << 6
    }
}

/// The header of a batch. Its numbers are as they were written; [`validate`](super::validate) says whether they make
/// sense together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Bytes of the whole batch, with this header.
    pub size: usize,
    /// Epoch of the shard's owner.
    pub leader_epoch: i32,
    /// CRC32C of byte 21 to the end.
    pub crc: u32,
    /// Compression and kind.
    pub attributes: Attributes,
    /// Offset of the last record within the batch; kept by compaction.
    pub last_offset_delta: i32,
    /// Time of the first record, which the records' times are told from.
    pub base_timestamp: i64,
    /// The largest time of a record.
    pub max_timestamp: i64,
    /// Id of an idempotent producer, or -1.
    pub producer_id: i64,
    /// Its epoch, or -1.
    pub producer_epoch: i16,
    /// The sequence of the first record, or -1.
    pub base_sequence: i32,
    /// Number of records.
    pub count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of the bytes. The batch itself may be longer than what is there; it is never
    /// shorter than its header.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        // The magic stands at the same place in all formats, so that an old one is named and not misread.
        match bytes.get(MAGIC_AT) {
            Some(&2) => {}
            Some(&magic) => return Err(BatchError::Magic(magic as i8)),
            None => return Err(BatchError::Truncated { needed: HEADER_LEN, have: bytes.len() }),
        }
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated { needed: HEADER_LEN, have: bytes.len() });
        };
        Ok(Self {
            base_offset: i64_at(head, 0),
            size: size_of(i32_at(head, LENGTH_AT))?,
            leader_epoch: i32_at(head, UNCOUNTED),
            crc: i32_at(head, CRC_AT) as u32,
            attributes: Attributes::from_bits(i16_at(head, ATTRIBUTES_AT))?,
            last_offset_delta: i32_at(head, LAST_DELTA_AT),
            base_timestamp: i64_at(head, BASE_TIME_AT),
            max_timestamp: i64_at(head, MAX_TIME_AT),
            producer_id: i64_at(head, PRODUCER_ID_AT),
            producer_epoch: i16_at(head, PRODUCER_EPOCH_AT),
            base_sequence: i32_at(head, SEQUENCE_AT),
            count: i32_at(head, COUNT_AT),
        })
    }

    /// Writes the header into the first bytes of a batch.
    pub(super) fn write(&self, head: &mut [u8; HEADER_LEN]) {
        put(head, 0, self.base_offset.to_be_bytes());
        put(head, LENGTH_AT, ((self.size - UNCOUNTED) as i32).to_be_bytes());
        put(head, UNCOUNTED, self.leader_epoch.to_be_bytes());
        put(head, MAGIC_AT, [2]);
        put(head, CRC_AT, self.crc.to_be_bytes());
        put(head, ATTRIBUTES_AT, self.attributes.bits().to_be_bytes());
        put(head, LAST_DELTA_AT, self.last_offset_delta.to_be_bytes());
        put(head, BASE_TIME_AT, self.base_timestamp.to_be_bytes());
        put(head, MAX_TIME_AT, self.max_timestamp.to_be_bytes());
        put(head, PRODUCER_ID_AT, self.producer_id.to_be_bytes());
        put(head, PRODUCER_EPOCH_AT, self.producer_epoch.to_be_bytes());
        put(head, SEQUENCE_AT, self.base_sequence.to_be_bytes());
        put(head, COUNT_AT, self.count.to_be_bytes());
    }

    /// How many offsets the batch covers: one more than the last offset delta.
    pub fn span(&self) -> u32 {
        self.last_offset_delta.max(-1).wrapping_add(1) as u32
    }

    /// Offset after the last record, saturating.
    pub fn next_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.span().into())
    }

    /// Whether a producer id goes with it (KIP-98): duplicates are then found by sequence.
    pub fn is_idempotent(&self) -> bool {
        self.producer_id >= 0
    }

    /// The sequence of the last record. Sequences go on at zero after `i32::MAX` (KIP-98).
    pub fn last_sequence(&self) -> i32 {
        sequence_after(self.base_sequence, self.span().wrapping_sub(1))
    }

    /// The sequence that the producer's next batch must begin with.
    pub fn next_sequence(&self) -> i32 {
        sequence_after(self.base_sequence, self.span())
    }
}

/// The sequence so many records later.
fn sequence_after(base: i32, records: u32) -> i32 {
    (base as u32).wrapping_add(records) as i32 & i32::MAX
}

/// The bytes of a whole batch, from its length field.
pub(super) fn size_of(length: i32) -> Result<usize, BatchError> {
    usize::try_from(length)
        .ok()
        .map(|len| len + UNCOUNTED)
        .filter(|&size| size >= HEADER_LEN)
        .ok_or(BatchError::Length(length))
}

pub(super) fn put<const N: usize>(head: &mut [u8; HEADER_LEN], at: usize, bytes: [u8; N]) {
    head[at..at + N].copy_from_slice(&bytes);
}

fn field<const N: usize>(head: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&head[at..at + N]);
    bytes
}

fn i16_at(head: &[u8; HEADER_LEN], at: usize) -> i16 {
    i16::from_be_bytes(field(head, at))
}

fn i32_at(head: &[u8; HEADER_LEN], at: usize) -> i32 {
    i32::from_be_bytes(field(head, at))
}

fn i64_at(head: &[u8; HEADER_LEN], at: usize) -> i64 {
    i64::from_be_bytes(field(head, at))
}
