//! Batches as the generator makes and meets them: one that is published again and again, and those that come back.

use std::io;

use bytes::Bytes;
use trifid_stream_client::wire::batch::{BatchBuilder, BatchHeader, BuildOptions, PATCHED_LEN, RecordData};

/// The time of every record, in milliseconds since 1970: a batch is the same bytes in every run.
const TIMESTAMP_MS: i64 = 1_790_000_000_000;
/// The largest batch that is made, in bytes.
const BYTES_MAX: usize = 8 << 20;

/// How many records of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Records of a batch.
    pub(super) records: usize,
    /// Bytes of a record's value.
    pub(super) bytes: usize,
}

impl Shape {
    /// Bytes of all values: what its publisher calls its size.
    pub(super) fn payload_bytes(self) -> usize {
        self.records * self.bytes
    }

    /// The batch.
    pub(super) fn encoded(self) -> Bytes {
        let mut builder = BatchBuilder::new(BuildOptions { max_bytes: BYTES_MAX, ..BuildOptions::default() });
        for number in 0..self.records {
            let value = value(number, self.bytes);
            let record = RecordData { timestamp: TIMESTAMP_MS, key: None, value: Some(&value), headers: &[] };
            builder.append(&record).expect("the suite's batches are below BYTES_MAX");
        }
        builder.finish(None).expect("uncompressed batches are made").expect("a batch has a record")
    }
}

/// The value of a record: other bytes in each, so that one in the place of another would be seen.
fn value(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(31) ^ number.wrapping_mul(7)) as u8).collect()
}

/// A batch that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Met {
    /// The offset after its last record.
    pub(super) end: u64,
    /// Its records.
    pub(super) records: u64,
    /// Its bytes.
    pub(super) bytes: u64,
}

/// Follows what a reader is given: every offset once and in order, and the bytes that were published.
#[derive(Debug)]
pub(super) struct Follower {
    next: u64,
    /// What every batch must be, where bodies are compared.
    expected: Option<Bytes>,
}

impl Follower {
    /// Of a reader that begins at this offset.
    pub(super) fn new(start: u64, expected: Option<Bytes>) -> Self {
        Follower { next: start, expected }
    }

    /// The next offset.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes the batches that are there whole, and tells of each; answers how many bytes that were.
    pub(super) fn take(&mut self, bytes: &[u8], tell: &mut impl FnMut(Met)) -> io::Result<usize> {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            let Ok(header) = BatchHeader::parse(rest) else { break };
            let Some(batch) = rest.get(..header.size) else { break };
            self.check(&header, batch)?;
            taken += header.size;
            tell(Met { end: self.next, records: header.span().into(), bytes: header.size as u64 });
        }
        Ok(taken)
    }

    fn check(&mut self, header: &BatchHeader, batch: &[u8]) -> io::Result<()> {
        let (base, next) = (header.base_offset, self.next);
        if u64::try_from(base) != Ok(next) {
            return Err(io::Error::other(format!("offset {base} was delivered in the place of {next}")));
        }
        if self.expected.as_ref().is_some_and(|expected| expected[PATCHED_LEN..] != batch[PATCHED_LEN..]) {
            return Err(io::Error::other(format!("at offset {base} other bytes than were published")));
        }
        self.next += u64::from(header.span());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trifid_stream_client::wire::batch::stamp;

    const SHAPE: Shape = Shape { records: 3, bytes: 100 };

    fn at(offset: u64) -> Bytes {
        stamp(SHAPE.encoded(), offset, 0).unwrap()
    }

    #[test]
    fn a_batch_has_its_records() {
        let header = BatchHeader::parse(&SHAPE.encoded()).unwrap();
        assert_eq!((header.count, header.span()), (3, 3));
        assert!(header.size > SHAPE.payload_bytes());
    }

    #[test]
    fn a_follower_takes_whole_batches_in_order() {
        let (mut follower, mut met) = (Follower::new(6, Some(SHAPE.encoded())), Vec::new());
        let two = [at(6), at(9)].concat();
        let one = at(6).len();
        assert_eq!(follower.take(&two[..two.len() - 1], &mut |batch| met.push(batch.end)).unwrap(), one);
        assert_eq!(follower.take(&two[one..], &mut |batch| met.push(batch.end)).unwrap(), one);
        assert_eq!((met, follower.next()), (vec![9, 12], 12));
    }

    #[test]
    fn a_gap_a_repetition_and_other_bytes_are_seen() {
        let refused = |start: u64, batch: &[u8]| {
            let mut follower = Follower::new(start, Some(SHAPE.encoded()));
            follower.take(batch, &mut |_| ()).unwrap_err().to_string()
        };
        assert!(refused(3, &at(6)).contains("in the place of 3"));
        assert!(refused(9, &at(6)).contains("in the place of 9"));
        let mut other = at(6).to_vec();
        *other.last_mut().unwrap() ^= 1;
        assert!(refused(6, &other).contains("other bytes"));
    }
}
