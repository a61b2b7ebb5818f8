//! What a shard's producers were known for, as a file: so that an opening need not read the whole log.
//!
//! ```text
//! "TFPR" | version u32 | offset u64 | cleaned u64 | forgot u8 | count u32
//!   | per producer: id i64, epoch i16, expected i32, seen ms i64, count u8,
//!     per batch: sequence i32, records u32, base u64
//!   | CRC32C of all before
//! ```
//!
//! Little endian. It speaks of batches below the offset, at which replay goes on; below `cleaned` the log was
//! compacted. It is derived and never trusted: one that does not check is as good as none, and one from
//! another time than its log is dropped by who reads it.

use crate::limits::PRODUCER_BATCHES;
use crate::producers::{Claim, Producer, Producers, Taken};

const MAGIC: &[u8; 4] = b"TFPR";
const VERSION: u32 = 1;

/// What a file says.
pub(crate) struct Snapshot {
    pub(crate) offset: u64,
    pub(crate) cleaned: u64,
    pub(crate) producers: Producers,
}

/// What is known of batches below `offset`. `pending` are those that are not: newest first.
pub(crate) fn encode(
    offset: u64,
    cleaned: u64,
    producers: &Producers,
    pending: impl Iterator<Item = (Claim, u64)>,
) -> Vec<u8> {
    let known = producers.without(pending);
    let mut out = Vec::with_capacity(32 + known.len() * 112);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&cleaned.to_le_bytes());
    out.push(u8::from(producers.forgot()));
    out.extend_from_slice(&(known.len() as u32).to_le_bytes());
    for (id, producer) in known {
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&producer.epoch.to_le_bytes());
        out.extend_from_slice(&producer.expected.to_le_bytes());
        out.extend_from_slice(&producer.seen_ms.to_le_bytes());
        out.push(producer.taken.len() as u8);
        for taken in &producer.taken {
            out.extend_from_slice(&taken.sequence.to_le_bytes());
            out.extend_from_slice(&taken.records.to_le_bytes());
            out.extend_from_slice(&taken.base.to_le_bytes());
        }
    }
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Reads a file; none unless every byte is right.
pub(crate) fn decode(bytes: &[u8], max: usize) -> Option<Snapshot> {
    let (body, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(body).to_le_bytes() != *checksum {
        return None;
    }
    let mut body = Reader(body);
    if body.take::<4>()? != *MAGIC || u32::from_le_bytes(body.take()?) != VERSION {
        return None;
    }
    let offset = u64::from_le_bytes(body.take()?);
    let cleaned = u64::from_le_bytes(body.take()?);
    let [forgot] = body.take()?;
    let count = u32::from_le_bytes(body.take()?);
    let mut producers = Producers::new(max, forgot != 0 || count as usize > max);
    for _ in 0..count {
        let (id, producer) = producer(&mut body)?;
        if producers.len() < max {
            producers.restore(id, producer);
        }
    }
    body.0.is_empty().then_some(Snapshot { offset, cleaned, producers })
}

fn producer(body: &mut Reader<'_>) -> Option<(i64, Producer)> {
    let id = i64::from_le_bytes(body.take()?);
    let epoch = i16::from_le_bytes(body.take()?);
    let expected = i32::from_le_bytes(body.take()?);
    let seen_ms = i64::from_le_bytes(body.take()?);
    let [count] = body.take()?;
    if usize::from(count) > PRODUCER_BATCHES || id < 0 || epoch < 0 || expected < 0 {
        return None;
    }
    let taken = (0..count).map(|_| {
        let sequence = i32::from_le_bytes(body.take()?);
        let records = u32::from_le_bytes(body.take()?);
        let base = u64::from_le_bytes(body.take()?);
        Some(Taken { sequence, records, base })
    });
    let taken = taken.collect::<Option<_>>()?;
    Some((id, Producer { epoch, expected, seen_ms, taken }))
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some() -> Producers {
        let mut producers = Producers::new(10, true);
        for sequence in 0..7 {
            producers.note(&Claim { id: 3, epoch: 2, sequence, records: 1 }, 10 + sequence as u64, 5);
        }
        producers.note(&Claim { id: 9, epoch: 0, sequence: 0, records: 4 }, 17, 6);
        producers
    }

    #[test]
    fn is_read_back() {
        let producers = some();
        let last = Claim { id: 9, epoch: 0, sequence: 0, records: 4 };
        for pending in [vec![], vec![(last, 17)]] {
            let read = decode(&encode(17, 8, &producers, pending.iter().copied()), 10).unwrap();
            assert_eq!((read.offset, read.cleaned), (17, 8));
            let known = read.producers.without(std::iter::empty());
            assert_eq!(known, producers.without(pending.into_iter()));
            assert!(read.producers.forgot());
        }
    }

    /// One sample of every version stays, and is read as long as that version is supported.
    #[test]
    fn the_sample_of_version_1_is_read_and_written() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/producers-1.bin");
        let written = encode(18, 8, &some(), std::iter::empty());
        let sample = std::fs::read(path).unwrap();
        assert_eq!(sample, written);
        let read = decode(&sample, 10).unwrap();
        assert_eq!((read.offset, read.cleaned, read.producers.len()), (18, 8, 2));
    }

    #[test]
    fn more_than_fit_are_forgotten() {
        let read = decode(&encode(100, 0, &some(), std::iter::empty()), 1).unwrap().producers;
        assert_eq!((read.len(), read.forgot()), (1, true));
    }

    proptest! {
        #[test]
        fn a_flipped_byte_or_a_cut_is_no_snapshot(at in any::<prop::sample::Index>(), flip in 1..=255u8) {
            let whole = encode(100, 0, &some(), std::iter::empty());
            let at = at.index(whole.len());
            let mut flipped = whole.clone();
            flipped[at] ^= flip;
            prop_assert!(decode(&flipped, 10).is_none());
            prop_assert!(decode(&whole[..at], 10).is_none());
        }
    }
}
