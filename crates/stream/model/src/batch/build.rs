//! Making batches: what a client, the command line and compaction do.

use bytes::Bytes;

use super::header::{ATTRIBUTES_AT, Attributes, BatchHeader, CRC_AT, Compression, HEADER_LEN};
use super::records::Record;
use super::varint::{len_long, put_long};
use crate::limits::{BATCH_BYTES_DEFAULT, HEADERS_PER_RECORD_MAX, RECORDS_PER_BATCH_MAX};

/// One record to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordData<'a> {
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// What decides its shard.
    pub key: Option<&'a [u8]>,
    /// Its payload.
    pub value: Option<&'a [u8]>,
    /// What goes with it.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

/// Who wrote a batch, so that a repetition is known as one (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Producer {
    /// Given by the broker.
    pub id: i64,
    /// Rises when the producer begins anew.
    pub epoch: i16,
    /// Of the first record of the batch.
    pub sequence: i32,
}

/// How batches are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// The largest batch, before compression.
    pub max_bytes: usize,
    /// Needs the feature `compression`, unless it is none.
    pub compression: Compression,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { max_bytes: BATCH_BYTES_DEFAULT as usize, compression: Compression::None }
    }
}

/// Why a record is not taken, or a batch not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No room is left: finish the batch and append the record to the next one.
    #[error("the batch is full")]
    Full,
    /// The record alone is larger than a batch may be.
    #[error("a record needs a batch of {len} bytes, more than the {max} allowed")]
    TooLarge {
        /// What a batch with it alone would have.
        len: usize,
        /// What is allowed.
        max: usize,
    },
    /// More headers than a record may have.
    #[error("a record has {0} headers, more than allowed")]
    Headers(usize),
    /// A time before 1970.
    #[error("a record has the time {0}")]
    Time(i64),
    /// The compression failed, or is not part of this build.
    #[error("records cannot be compressed with {0}")]
    Compression(Compression),
}

/// Gathers records into a batch. Appending encodes the record in place; the bytes of the batch are those that were
/// appended to, and the next batch begins with as much room as the last one had.
#[derive(Debug)]
pub struct BatchBuilder {
    options: BuildOptions,
    buffer: Vec<u8>,
    count: u32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// An empty one.
    pub fn new(options: BuildOptions) -> Self {
        Self { options, buffer: Vec::new(), count: 0, base_timestamp: 0, max_timestamp: 0 }
    }

    /// Records so far.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch so far, uncompressed.
    pub fn size(&self) -> usize {
        self.buffer.len().max(HEADER_LEN)
    }

    /// Appends a record, whose offset within the batch is returned. A full batch stays as it was.
    pub fn append(&mut self, record: &RecordData<'_>) -> Result<u32, BuildError> {
        if record.headers.len() > HEADERS_PER_RECORD_MAX {
            return Err(BuildError::Headers(record.headers.len()));
        }
        if record.timestamp < 0 {
            return Err(BuildError::Time(record.timestamp));
        }
        let base = if self.count == 0 { record.timestamp } else { self.base_timestamp };
        let (time, delta) = (record.timestamp - base, self.count);
        let body = body_len(record, time, delta);
        self.make_room(len_long(body as i64).saturating_add(body))?;
        if self.count == 0 {
            (self.base_timestamp, self.max_timestamp) = (base, base);
            self.buffer.resize(HEADER_LEN, 0);
        }
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self.count += 1;
        put_record(&mut self.buffer, record, body, time, delta);
        Ok(delta)
    }

    /// Reserves the bytes of a record, if they fit.
    fn make_room(&mut self, record: usize) -> Result<(), BuildError> {
        let max = self.options.max_bytes.min(i32::MAX as usize);
        let len = HEADER_LEN.saturating_add(record);
        if len > max {
            return Err(BuildError::TooLarge { len, max });
        }
        if self.count == RECORDS_PER_BATCH_MAX || self.size() + record > max {
            return Err(BuildError::Full);
        }
        let missing = if self.count == 0 { len } else { record };
        self.buffer.reserve(missing);
        Ok(())
    }

    /// The batch, and an empty builder. `None` where no record was appended. An error leaves the builder empty too.
    pub fn finish(&mut self, producer: Option<Producer>) -> Result<Option<Bytes>, BuildError> {
        if self.count == 0 {
            return Ok(None);
        }
        let room = Vec::with_capacity(self.buffer.len());
        let plain = std::mem::replace(&mut self.buffer, room);
        let count = std::mem::take(&mut self.count) as i32;
        let producer = producer.unwrap_or(Producer { id: -1, epoch: -1, sequence: -1 });
        let header = BatchHeader {
            base_offset: 0,
            size: 0,
            leader_epoch: -1,
            crc: 0,
            attributes: Attributes { compression: self.options.compression, ..Attributes::default() },
            last_offset_delta: count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: producer.sequence,
            count,
        };
        seal(header, plain).map(Some).map_err(BuildError::Compression)
    }
}

/// Makes a batch of a buffer that has room for the header and then the records, uncompressed. Says which compression
/// failed, or is not there.
pub(super) fn seal(mut header: BatchHeader, plain: Vec<u8>) -> Result<Bytes, Compression> {
    let mut batch = match header.attributes.compression {
        Compression::None => plain,
        compression => deflate(compression, &plain)?,
    };
    header.size = batch.len();
    if let Some(head) = batch.first_chunk_mut() {
        header.write(head);
    }
    let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
    batch[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
    Ok(batch.into())
}

#[cfg(feature = "compression")]
fn deflate(compression: Compression, plain: &[u8]) -> Result<Vec<u8>, Compression> {
    let packed = super::codec::deflate(compression, &plain[HEADER_LEN..]).map_err(|_| compression)?;
    let mut batch = Vec::with_capacity(HEADER_LEN + packed.len());
    batch.resize(HEADER_LEN, 0);
    batch.extend_from_slice(&packed);
    Ok(batch)
}

#[cfg(not(feature = "compression"))]
fn deflate(compression: Compression, _: &[u8]) -> Result<Vec<u8>, Compression> {
    Err(compression)
}

fn body_len(record: &RecordData<'_>, time: i64, delta: u32) -> usize {
    let headers: usize = record
        .headers
        .iter()
        .map(|(key, value)| nullable_len(Some(key.as_bytes())) + nullable_len(*value))
        .sum();
    1 + len_long(time)
        + len_long(delta.into())
        + nullable_len(record.key)
        + nullable_len(record.value)
        + len_long(record.headers.len() as i64)
        + headers
}

fn nullable_len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |b| len_long(b.len() as i64) + b.len())
}

fn put_record(out: &mut Vec<u8>, record: &RecordData<'_>, body: usize, time: i64, delta: u32) {
    put_long(out, body as i64);
    out.push(0);
    put_long(out, time);
    put_long(out, delta.into());
    put_nullable(out, record.key);
    put_nullable(out, record.value);
    put_long(out, record.headers.len() as i64);
    for (key, value) in record.headers {
        put_nullable(out, Some(key.as_bytes()));
        put_nullable(out, *value);
    }
}

#[inline]
fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_long(out, -1),
        Some(bytes) => {
            put_long(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}

/// A record that was read may be written again; its headers are given apart, for they borrow from elsewhere.
impl<'a> Record<'a> {
    /// The same record as one to be written, with these headers.
    pub fn to_data(&self, headers: &'a [(&'a str, Option<&'a [u8]>)]) -> RecordData<'a> {
        RecordData { timestamp: self.timestamp, key: self.key, value: self.value, headers }
    }
}
