//! Every check that a broker makes of a batch before it takes it.

use super::error::BatchError;
use super::header::Compression;
use super::header::{ATTRIBUTES_AT, BatchHeader, HEADER_LEN};
use super::records::{RECORD_LEN_MIN, Records};
use crate::limits::{BATCH_BYTES_MAX, RECORDS_PER_BATCH_MAX};

/// What is asked of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The largest batch.
    pub max_bytes: usize,
    /// Records may be missing, and no record is left perhaps: compaction was here.
    pub compacted: bool,
    /// Control batches and those of transactions are taken.
    pub transactions: bool,
    /// Walk the records too, where they are not compressed: their lengths fill the batch exactly, their number is the
    /// one in the header, their offsets follow each other. A broker that does so never hands a reader a batch that it
    /// cannot read; it costs a few nanoseconds a record.
    pub records: bool,
}

impl Rules {
    /// For what a producer sends: dense, no transactions, its records walked.
    pub const PRODUCED: Self =
        Self { max_bytes: BATCH_BYTES_MAX, compacted: false, transactions: false, records: true };

    /// For what lies in a log: its producer was asked already.
    pub const STORED: Self =
        Self { max_bytes: BATCH_BYTES_MAX, compacted: true, transactions: true, records: false };

    /// The same with another largest batch.
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Checks exactly one batch. The largest time of the header that is returned is no earlier than the first, also
    /// where the producer left it out.
    pub fn check(&self, bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let mut header = BatchHeader::parse(bytes)?;
        self.check_size(&header, bytes.len())?;
        check_crc(&header, bytes)?;
        self.check_kind(&header)?;
        self.check_count(&header)?;
        check_producer(&header)?;
        self.check_times(&header)?;
        if self.records && header.attributes.compression == Compression::None {
            Records::new(&header, &bytes[HEADER_LEN..]).verify()?;
        }
        if header.max_timestamp == -1 {
            header.max_timestamp = header.base_timestamp;
        }
        Ok(header)
    }

    fn check_size(&self, header: &BatchHeader, have: usize) -> Result<(), BatchError> {
        let needed = header.size;
        if needed > self.max_bytes {
            return Err(BatchError::TooLarge { len: needed, max: self.max_bytes });
        }
        match have.checked_sub(needed) {
            None => Err(BatchError::Truncated { needed, have }),
            Some(0) => Ok(()),
            Some(excess) => Err(BatchError::Trailing(excess)),
        }
    }

    fn check_kind(&self, header: &BatchHeader) -> Result<(), BatchError> {
        let attributes = header.attributes;
        if attributes.log_append_time {
            return Err(BatchError::LogAppendTime);
        }
        if attributes.control && !self.transactions {
            return Err(BatchError::Control);
        }
        if attributes.transactional && !self.transactions {
            return Err(BatchError::Transactional);
        }
        if attributes.delete_horizon && !self.compacted {
            return Err(BatchError::Attributes(attributes.bits()));
        }
        Ok(())
    }

    fn check_count(&self, header: &BatchHeader) -> Result<(), BatchError> {
        let &BatchHeader { count, last_offset_delta, .. } = header;
        let agree = if self.compacted {
            count >= 0 && count - 1 <= last_offset_delta && last_offset_delta >= 0
        } else {
            count > 0 && count - 1 == last_offset_delta
        };
        if !agree {
            return Err(BatchError::Count { count, last_offset_delta });
        }
        if header.span() > RECORDS_PER_BATCH_MAX {
            return Err(BatchError::TooManyRecords(header.span()));
        }
        let (len, records) = (header.size - HEADER_LEN, count as usize);
        if header.attributes.compression == Compression::None && records * RECORD_LEN_MIN > len {
            return Err(BatchError::Dense { count: count as u32, len });
        }
        Ok(())
    }

    /// A producer's times are set, and in order.
    fn check_times(&self, header: &BatchHeader) -> Result<(), BatchError> {
        let &BatchHeader { base_timestamp: base, max_timestamp: max, .. } = header;
        // -1 is Kafka's word for "no time" (RecordBatch.NO_TIMESTAMP), and some clients leave the largest time so.
        let sensible = base >= -1 && (max >= base || max == -1 || self.compacted && max > -1);
        if sensible { Ok(()) } else { Err(BatchError::Timestamps { base, max }) }
    }
}

/// Checks exactly one batch as a producer sends it, with the [usual rules](Rules::PRODUCED).
pub fn validate(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
    Rules::PRODUCED.check(bytes)
}

fn check_crc(header: &BatchHeader, bytes: &[u8]) -> Result<(), BatchError> {
    let computed = crc32c::crc32c(&bytes[ATTRIBUTES_AT..]);
    let stored = header.crc;
    if computed == stored { Ok(()) } else { Err(BatchError::Checksum { stored, computed }) }
}

/// All three are set, or there is no producer (KIP-98). Some clients leave zeros beside an id of -1, so these say
/// nothing then. A marker of a transaction has no sequence.
fn check_producer(header: &BatchHeader) -> Result<(), BatchError> {
    let &BatchHeader { producer_id: id, producer_epoch: epoch, base_sequence: sequence, .. } = header;
    let none = id == -1 && !header.attributes.transactional;
    let all = id >= 0 && epoch >= 0 && (sequence >= 0 || header.attributes.control && sequence == -1);
    if none || all { Ok(()) } else { Err(BatchError::Producer { id, epoch, sequence }) }
}
