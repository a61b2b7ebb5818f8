//! A batch with its records readable: decompressed if it was compressed, within a bound.

use bytes::Bytes;

use super::error::BatchError;
use super::header::{BatchHeader, Compression, HEADER_LEN};
use super::records::Records;

/// A batch whose records can be read.
#[derive(Clone, Debug)]
pub struct Opened {
    header: BatchHeader,
    body: Bytes,
}

/// Makes the records of a batch readable. Without compression nothing is copied; with it the records are inflated into
/// a buffer of their own, of at most `inflated_max` bytes. The batch was validated before, or its bytes are trusted:
/// the checksum is not computed again here.
pub fn open(batch: &Bytes, inflated_max: usize) -> Result<Opened, BatchError> {
    let header = BatchHeader::parse(batch)?;
    if header.size > batch.len() {
        return Err(BatchError::Truncated { needed: header.size, have: batch.len() });
    }
    let records = batch.slice(HEADER_LEN..header.size);
    let body = match header.attributes.compression {
        Compression::None => records,
        compression => inflate(compression, &records, inflated_max)?,
    };
    Ok(Opened { header, body })
}

impl Opened {
    /// The header of the batch.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The records, borrowed.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.header, &self.body)
    }

    /// The bytes that the records borrow from: `body().slice_ref(value)` keeps a value without copying it.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}

#[cfg(feature = "compression")]
fn inflate(compression: Compression, records: &[u8], max: usize) -> Result<Bytes, BatchError> {
    super::codec::inflate(compression, records, max).map(Bytes::from)
}

#[cfg(not(feature = "compression"))]
fn inflate(compression: Compression, _: &[u8], _: usize) -> Result<Bytes, BatchError> {
    Err(BatchError::Compressed(compression))
}
