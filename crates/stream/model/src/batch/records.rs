//! The records of a batch, borrowed from its bytes.
//!
//! ```text
//!  length varint | attributes i8 | timestamp delta varlong | offset delta varint
//!  | key length varint (-1: null) key | value length varint (-1: null) value
//!  | headers varint, each: key length varint, key, value length varint (-1: null), value
//! ```

use super::error::{BatchError, RecordProblem};
use super::header::BatchHeader;
use super::varint::{take_int, take_long};
use crate::limits::HEADERS_PER_RECORD_MAX;

/// The fewest bytes of a record: one for each of its seven fields.
pub(super) const RECORD_LEN_MIN: usize = 7;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its offset in the shard.
    pub offset: u64,
    /// Its offset within the batch.
    pub delta: u32,
    /// Milliseconds, as its producer told them.
    pub timestamp: i64,
    /// What decides its shard, and what compaction keeps one of.
    pub key: Option<&'a [u8]>,
    /// `None` is a tombstone where the stream is compacted.
    pub value: Option<&'a [u8]>,
    /// What goes with it.
    pub headers: Headers<'a>,
    /// The whole record as it lies in the batch.
    pub(super) raw: &'a [u8],
}

/// The headers of a record, which were looked through when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    count: usize,
    bytes: &'a [u8],
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its name: text by convention, and not always.
    pub key: &'a [u8],
    /// Its value.
    pub value: Option<&'a [u8]>,
}

impl Headers<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> Headers<'a> {
    /// The last value of this name.
    pub fn get(&self, key: &str) -> Option<Option<&'a [u8]>> {
        self.filter(|h| h.key == key.as_bytes()).last().map(|h| h.value)
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.count = self.count.checked_sub(1)?;
        take_header(&mut self.bytes).ok()
    }
}

/// The records of a batch, one after the other; ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    base_offset: u64,
    base_timestamp: i64,
    last_delta: i32,
    /// Offset delta of the record before.
    delta: i32,
    count: u32,
    index: u32,
}

impl<'a> Records<'a> {
    /// The records of a batch with this header, from its bytes after the header, decompressed.
    pub fn new(header: &BatchHeader, records: &'a [u8]) -> Self {
        Self {
            rest: records,
            base_offset: header.base_offset.max(0) as u64,
            base_timestamp: header.base_timestamp,
            last_delta: header.last_offset_delta,
            delta: -1,
            count: header.count.max(0) as u32,
            index: 0,
        }
    }

    /// Reads all that is left and keeps nothing: what reading finds wrong, this finds wrong.
    pub fn verify(mut self) -> Result<(), BatchError> {
        while self.index < self.count {
            if let Err(problem) = self.pass() {
                return Err(BatchError::Record { index: self.index, problem });
            }
            self.index += 1;
        }
        self.end().map_or(Ok(()), |end| end.map(drop))
    }

    /// Passes over a record.
    #[inline(always)]
    fn pass(&mut self) -> Result<(), RecordProblem> {
        let mut body = self.take_body()?;
        self.take_time_and_delta(&mut body)?;
        take_nullable(&mut body)?;
        take_nullable(&mut body)?;
        // Most records have no headers, and the zero that says so is their last byte.
        if body == [0] { Ok(()) } else { take_headers(body).map(drop) }
    }

    /// The bytes of the next record after its attributes.
    #[inline(always)]
    fn take_body(&mut self) -> Result<&'a [u8], RecordProblem> {
        let len = usize::try_from(take_int(&mut self.rest)?).map_err(|_| RecordProblem::Length)?;
        let (body, rest) = self.rest.split_at_checked(len).ok_or(RecordProblem::Truncated)?;
        self.rest = rest;
        // The attributes of a record have no bits yet; later ones are not ours to refuse.
        body.get(1..).ok_or(RecordProblem::Truncated)
    }

    /// When the record was made, and which it is.
    #[inline(always)]
    fn take_time_and_delta(&mut self, body: &mut &[u8]) -> Result<(i64, i32), RecordProblem> {
        let time = take_long(body)?;
        let delta = take_int(body)?;
        if delta <= self.delta || delta > self.last_delta {
            return Err(RecordProblem::Offset);
        }
        self.delta = delta;
        Ok((self.base_timestamp.checked_add(time).ok_or(RecordProblem::Time)?, delta))
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Record<'a>, RecordProblem> {
        let whole = self.rest;
        let mut body = self.take_body()?;
        let (timestamp, delta) = self.take_time_and_delta(&mut body)?;
        Ok(Record {
            offset: self.base_offset.wrapping_add(delta as u64),
            delta: delta as u32,
            timestamp,
            key: take_nullable(&mut body)?,
            value: take_nullable(&mut body)?,
            headers: take_headers(body)?,
            raw: &whole[..whole.len() - self.rest.len()],
        })
    }

    /// What comes after the last record: nothing may.
    fn end(&mut self) -> Option<Result<Record<'a>, BatchError>> {
        let excess = !std::mem::take(&mut self.rest).is_empty();
        excess.then_some(Err(BatchError::Record { index: self.index, problem: RecordProblem::Trailing }))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.count {
            return self.end();
        }
        let index = self.index;
        self.index += 1;
        let record = self.take();
        if record.is_err() {
            self.rest = &[];
            self.index = self.count;
        }
        Some(record.map_err(|problem| BatchError::Record { index, problem }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some((self.count - self.index) as usize + 1))
    }
}

#[inline(always)]
fn take_bytes<'a>(input: &mut &'a [u8], len: i32) -> Result<&'a [u8], RecordProblem> {
    let len = usize::try_from(len).map_err(|_| RecordProblem::Length)?;
    let (bytes, rest) = input.split_at_checked(len).ok_or(RecordProblem::Truncated)?;
    *input = rest;
    Ok(bytes)
}

#[inline(always)]
fn take_nullable<'a>(input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, RecordProblem> {
    match take_int(input)? {
        -1 => Ok(None),
        len => take_bytes(input, len).map(Some),
    }
}

#[inline(always)]
fn take_header<'a>(input: &mut &'a [u8]) -> Result<Header<'a>, RecordProblem> {
    let len = take_int(input)?;
    let key = take_bytes(input, len)?;
    Ok(Header { key, value: take_nullable(input)? })
}

/// Looks through the headers, which are the rest of the record.
fn take_headers(mut body: &[u8]) -> Result<Headers<'_>, RecordProblem> {
    let count = usize::try_from(take_int(&mut body)?).map_err(|_| RecordProblem::Length)?;
    if count > HEADERS_PER_RECORD_MAX {
        return Err(RecordProblem::Headers);
    }
    let bytes = body;
    for _ in 0..count {
        take_header(&mut body)?;
    }
    if body.is_empty() { Ok(Headers { count, bytes }) } else { Err(RecordProblem::Excess) }
}
