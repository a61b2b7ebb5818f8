//! RecordBatch v2 (Kafka protocol documentation, "Record Batch"): the one unit of the door. A producer's batch is what
//! a frame carries, what the log stores and what a reader gets, byte for byte but for the first sixteen.
//!
//! ```text
//!  offset  size  field (big endian)
//!       0     8  baseOffset            written by the broker when the batch is handed to readers
//!       8     4  batchLength           bytes after this field
//!      12     4  partitionLeaderEpoch  written by the broker
//!      16     1  magic                 2
//!      17     4  crc                   CRC32C of byte 21 to the end: so writing the two fields above costs no hashing
//!      21     2  attributes            0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 delete
//!                                    horizon
//!      23     4  lastOffsetDelta
//!      27     8  baseTimestamp         milliseconds
//!      35     8  maxTimestamp
//!      43     8  producerId            -1: none
//!      51     2  producerEpoch
//!      53     4  baseSequence
//!      57     4  recordsCount
//!      61     …  records               compressed as a whole, if at all
//! ```
//!
//! A broker calls [`split`], [`validate`] and [`stamp`]; it never decompresses. Clients, the command line and
//! compaction call [`open`] and [`BatchBuilder`]; compressed batches need the feature `compression`.

mod build;
#[cfg(feature = "compression")]
mod codec;
mod error;
mod filter;
mod header;
mod open;
mod records;
mod split;
mod stamp;
mod validate;
mod varint;

#[cfg(test)]
pub(crate) mod golden;
#[cfg(test)]
mod tests;

pub use build::{BatchBuilder, BuildError, BuildOptions, Producer, RecordData};
pub use error::BatchError;
pub use filter::{Filtered, filter};
pub use header::{Attributes, BatchHeader, Compression, HEADER_LEN};
pub use open::{Opened, open};
pub use records::{Header, Headers, Record, Records};
pub use split::{Batches, split};
pub use stamp::{PATCHED_LEN, PatchedHeader, patch, stamp};
pub use validate::{Rules, validate};
