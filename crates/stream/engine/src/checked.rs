//! Batches that were looked at: what a publish is made of.
//!
//! A [`Checked`] can only be made by checking, so the shard never looks at the bytes again.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use trifid_stream_model::batch::{BatchError, BatchHeader, Rules, split};

use crate::limits::PRODUCER_BATCHES;
use crate::producers::Claim;

/// Smaller batches are copied out of the buffer that they came in: a view of a few bytes would keep all of
/// it.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// One or more record batches for one shard.
#[derive(Clone, Debug)]
pub struct Checked {
    batches: SmallVec<[Batch; 1]>,
    bytes: usize,
    records: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) bytes: Bytes,
    pub(crate) span: u32,
    pub(crate) max_timestamp: i64,
    pub(crate) claim: Option<Claim>,
}

impl Checked {
    /// Checks a payload of one or more batches, each of at most `max_batch_bytes`. All of them are of an idempotent
    /// producer, or none is: they are taken together, and found again together.
    pub fn payload(payload: &Bytes, max_batch_bytes: usize) -> Result<Self, BatchError> {
        let rules = Rules::PRODUCED.max_bytes(max_batch_bytes);
        let mut checked = Checked { batches: SmallVec::new(), bytes: 0, records: 0 };
        for bytes in split(payload) {
            checked.add(bytes?, rules)?;
        }
        let claimed = checked.batches.iter().filter(|batch| batch.claim.is_some()).count();
        match checked.batches.len() {
            0 => Err(BatchError::Empty),
            // More would not be known again if they were sent again.
            _ if claimed > PRODUCER_BATCHES => Err(BatchError::TooMany(PRODUCER_BATCHES)),
            all if claimed == 0 || claimed == all => Ok(checked),
            _ => Err(BatchError::Producer { id: -1, epoch: -1, sequence: -1 }),
        }
    }

    /// Checks exactly one batch.
    pub fn batch(bytes: Bytes, rules: Rules) -> Result<Self, BatchError> {
        let mut checked = Checked { batches: SmallVec::new(), bytes: 0, records: 0 };
        checked.add(bytes, rules)?;
        Ok(checked)
    }

    fn add(&mut self, bytes: Bytes, rules: Rules) -> Result<(), BatchError> {
        let header = rules.check(&bytes)?;
        self.bytes += bytes.len();
        self.records += u64::from(header.span());
        self.batches.push(Batch {
            bytes,
            span: header.span(),
            max_timestamp: header.max_timestamp,
            claim: claim(&header),
        });
        Ok(())
    }

    /// Bytes of all batches.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Offsets that the batches take.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many batches.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    pub(crate) fn largest(&self) -> usize {
        self.batches.iter().map(|batch| batch.bytes.len()).max().unwrap_or(0)
    }

    pub(crate) fn claims(&self) -> SmallVec<[Claim; 1]> {
        self.batches.iter().filter_map(|batch| batch.claim).collect()
    }

    pub(crate) fn into_batches(self) -> SmallVec<[Batch; 1]> {
        self.batches
    }
}

/// What the header says of an idempotent producer, if there is one.
pub(crate) fn claim(header: &BatchHeader) -> Option<Claim> {
    header.is_idempotent().then(|| Claim {
        id: header.producer_id,
        epoch: header.producer_epoch,
        sequence: header.base_sequence,
        records: header.span(),
    })
}

/// The bytes as nobody else holds them and with little beside them, so that the offset can be written into
/// them and keeping them keeps nothing else. Copied unless they are all of a buffer.
pub(crate) fn own(bytes: Bytes) -> BytesMut {
    if bytes.len() <= COPIED_BYTES_MAX {
        return BytesMut::from(&bytes[..]);
    }
    match bytes.try_into_mut() {
        Ok(own) if own.capacity() <= own.len() + own.len() / 2 => own,
        Ok(roomy) => BytesMut::from(&roomy[..]),
        Err(shared) => BytesMut::from(&shared[..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START_MS, batch_at};

    #[test]
    fn only_bytes_of_ones_own_are_kept_in_place() {
        let large = vec![7; 3 * COPIED_BYTES_MAX];
        let is_in_place = |bytes: Bytes| {
            let at = bytes.as_ptr();
            own(bytes).as_ptr() == at
        };
        assert!(is_in_place(Bytes::from(large.clone())));
        let shared = Bytes::from(large.clone());
        let other = shared.clone();
        assert!(!is_in_place(shared));
        assert_eq!(other, large);
        assert!(
            !is_in_place(Bytes::from(vec![7; COPIED_BYTES_MAX])),
            "small ones may come out of a large buffer"
        );
        let mut roomy = BytesMut::with_capacity(20 * COPIED_BYTES_MAX);
        roomy.extend_from_slice(&large);
        assert!(!is_in_place(roomy.freeze()), "what is kept would keep the room too");
    }

    #[test]
    fn a_payload_is_one_batch_or_several() {
        let one = batch_at(START_MS, &[b"a", b"b"], Some((4, 1, 9)));
        let two = batch_at(START_MS, &[b"c"], None);
        let payload =
            |batches: [&Bytes; 2]| Checked::payload(&batches.map(|b| &b[..]).concat().into(), 1 << 20);
        let both = payload([&one, &one]).unwrap();
        assert_eq!((both.batches(), both.records(), both.bytes()), (2, 4, 2 * one.len()));
        assert_eq!(both.claims().as_slice(), [Claim { id: 4, epoch: 1, sequence: 9, records: 2 }; 2]);
        assert_eq!(payload([&two, &two]).unwrap().claims().len(), 0);
        assert!(matches!(payload([&one, &two]), Err(BatchError::Producer { .. })));
        let times =
            |batch: &Bytes, n| Checked::payload(&batch.repeat(n).into(), 1 << 20).map(|all| all.batches());
        assert_eq!((times(&one, 5), times(&two, 9)), (Ok(5), Ok(9)));
        assert_eq!(times(&one, 6), Err(BatchError::TooMany(5)));
        assert_eq!(both.largest(), one.len());
        assert!(matches!(Checked::payload(&Bytes::new(), 100), Err(BatchError::Empty)));
        assert!(matches!(Checked::payload(&one, 50), Err(BatchError::TooLarge { .. })));
        assert!(Checked::payload(&one.slice(..one.len() - 1), 1 << 20).is_err());
    }
}
