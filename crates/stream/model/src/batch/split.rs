//! The batches of a payload, without a copy.

use bytes::Bytes;

use super::error::BatchError;
use super::header::{LENGTH_AT, MAGIC_AT, UNCOUNTED, size_of};
use crate::limits::BATCHES_PER_PUBLISH_MAX;

/// The consecutive batches of a payload: parts of the same bytes. Only the lengths are looked at; each batch is to be
/// [validated](super::validate). Ends after the first error.
pub fn split(payload: &Bytes) -> Batches {
    Batches { rest: payload.clone(), seen: 0 }
}

/// See [`split`].
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
    seen: usize,
}

impl Batches {
    /// What was not given out yet. Readers that page through bytes stop at the batch that is cut off.
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }

    fn size(&self) -> Result<usize, BatchError> {
        let have = self.rest.len();
        let Some(length) = self.rest.get(LENGTH_AT..).and_then(|b| b.first_chunk::<4>()) else {
            return Err(BatchError::Truncated { needed: UNCOUNTED, have });
        };
        // Messages of the older formats are shorter than a header: their format is the better word for what is wrong.
        match self.rest.get(MAGIC_AT) {
            Some(&2) | None => {}
            Some(&magic) => return Err(BatchError::Magic(magic as i8)),
        }
        match size_of(i32::from_be_bytes(*length))? {
            needed if needed > have => Err(BatchError::Truncated { needed, have }),
            _ if self.seen == BATCHES_PER_PUBLISH_MAX => Err(BatchError::TooMany(BATCHES_PER_PUBLISH_MAX)),
            size => Ok(size),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Bytes, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.size() {
            Ok(size) => {
                self.seen += 1;
                Some(Ok(self.rest.split_to(size)))
            }
            Err(error) => {
                self.rest = Bytes::new();
                Some(Err(error))
            }
        }
    }
}
