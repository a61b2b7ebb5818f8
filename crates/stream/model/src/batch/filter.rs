//! Compaction: a batch without some of its records.

use bytes::Bytes;

use super::build::seal;
use super::error::BatchError;
use super::header::HEADER_LEN;
use super::open::open;
use super::records::Record;

/// What is left of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filtered {
    /// All of it.
    Whole,
    /// Some records; the batch covers the same offsets as before, from the same base to the same last one.
    Part(Bytes),
    /// No record.
    Nothing,
}

/// Keeps the records that the caller wants. Offsets, times, producer and compression stay: a kept record is copied as
/// it lies, for what it is told from (base offset, base time) does not change. Of a compressed batch the records
/// are inflated to at most `inflated_max` bytes.
pub fn filter(
    batch: &Bytes,
    inflated_max: usize,
    mut keep: impl FnMut(&Record<'_>) -> bool,
) -> Result<Filtered, BatchError> {
    let opened = open(batch, inflated_max)?;
    let mut header = *opened.header();
    let mut kept = Vec::with_capacity(HEADER_LEN + opened.body().len());
    kept.resize(HEADER_LEN, 0);
    let (mut seen, mut count, mut max_timestamp) = (0, 0, i64::MIN);
    for record in opened.records() {
        let record = record?;
        seen += 1;
        if keep(&record) {
            count += 1;
            max_timestamp = max_timestamp.max(record.timestamp);
            kept.extend_from_slice(record.raw);
        }
    }
    if count == seen {
        return Ok(Filtered::Whole);
    }
    if count == 0 {
        return Ok(Filtered::Nothing);
    }
    header.count = count;
    header.max_timestamp = max_timestamp;
    seal(header, kept).map(Filtered::Part).map_err(BatchError::Compressed)
}
