//! The bytes of an index beside its table.
//!
//! ```text
//! magic "TFIX"  version u16  kind u8  0 u8  column u32  distinct u64  rows u64  flags u32 (1: starts)
//! values   i64 or f64 each; for texts: (distinct + 1) offsets u32, then the bytes
//! starts   (distinct + 1) u32, if flagged
//! rows     u32 each
//! crc32c   u32, over all before it
//! ```
//!
//! All little endian. A file that does not check is not used: the index is made again from the table.

use arrow_array::{Array as _, Float64Array, Int64Array, StringArray};

use super::{Sorted, Values};

const MAGIC: &[u8; 4] = b"TFIX";
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 4 + 2 + 2 + 4 + 8 + 8 + 4;
const HAS_STARTS: u32 = 1;

/// Why bytes are no index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Too short, wrong sum, wrong lengths.
    #[error("the index is damaged")]
    Damaged,
    /// Written by another version.
    #[error("the index has the unknown version {0}")]
    Version(u16),
}

/// The bytes of an index.
pub fn encode(index: &Sorted) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + index.bytes());
    let (kind, distinct) = match &index.values {
        Values::Integer(values) => (0u8, values.len()),
        Values::Double(values) => (1, values.len()),
        Values::Text(values) => (2, values.len()),
    };
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&(index.column as u32).to_le_bytes());
    out.extend_from_slice(&(distinct as u64).to_le_bytes());
    out.extend_from_slice(&(index.rows.len() as u64).to_le_bytes());
    out.extend_from_slice(&(if index.starts.is_some() { HAS_STARTS } else { 0 }).to_le_bytes());
    values(&index.values, &mut out);
    index.starts.iter().flatten().for_each(|start| out.extend_from_slice(&start.to_le_bytes()));
    index.rows.iter().for_each(|row| out.extend_from_slice(&row.to_le_bytes()));
    let sum = crc32c::crc32c(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

fn values(values: &Values, out: &mut Vec<u8>) {
    match values {
        Values::Integer(values) => {
            values.values().iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
        }
        Values::Double(values) => {
            values.values().iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
        }
        Values::Text(values) => {
            let first = values.value_offsets().first().copied().unwrap_or(0);
            let offsets = values.value_offsets().iter().map(|offset| (offset - first) as u32);
            offsets.for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
            values.iter().flatten().for_each(|text| out.extend_from_slice(text.as_bytes()));
        }
    }
}

/// The index that these bytes are.
pub fn decode(bytes: &[u8]) -> Result<Sorted, CodecError> {
    let body = checked(bytes)?;
    let mut cursor = Cursor(body);
    cursor.take(4)?;
    let version = u16::from_le_bytes(cursor.array()?);
    if version != VERSION {
        return Err(CodecError::Version(version));
    }
    let [kind, _] = cursor.array()?;
    let column = u32::from_le_bytes(cursor.array()?) as usize;
    let distinct = count(u64::from_le_bytes(cursor.array()?))?;
    let rows = count(u64::from_le_bytes(cursor.array()?))?;
    let flags = u32::from_le_bytes(cursor.array()?);
    let values = match kind {
        0 => Values::Integer(Int64Array::from(cursor.many(distinct, i64::from_le_bytes)?)),
        1 => Values::Double(Float64Array::from(cursor.many(distinct, f64::from_le_bytes)?)),
        2 => Values::Text(cursor.texts(distinct)?),
        _ => return Err(CodecError::Damaged),
    };
    let starts =
        (flags & HAS_STARTS != 0).then(|| cursor.many(distinct + 1, u32::from_le_bytes)).transpose()?;
    let rows = cursor.many(rows, u32::from_le_bytes)?;
    let index = Sorted { column, values, starts, rows };
    let whole = cursor.0.is_empty() && index.valued() <= index.rows.len();
    if whole { Ok(index) } else { Err(CodecError::Damaged) }
}

fn checked(bytes: &[u8]) -> Result<&[u8], CodecError> {
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or(CodecError::Damaged)?;
    let whole = body.len() >= HEAD_BYTES && body.starts_with(MAGIC);
    if whole && crc32c::crc32c(body) == u32::from_le_bytes(*sum) {
        Ok(body)
    } else {
        Err(CodecError::Damaged)
    }
}

fn count(value: u64) -> Result<usize, CodecError> {
    u32::try_from(value).map(|value| value as usize).map_err(|_| CodecError::Damaged)
}

/// The bytes that are still to be read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], CodecError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(CodecError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        self.take(N)?.try_into().map_err(|_| CodecError::Damaged)
    }

    fn many<T, const N: usize>(
        &mut self,
        count: usize,
        read: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, CodecError> {
        let bytes = self.take(count.checked_mul(N).ok_or(CodecError::Damaged)?)?;
        Ok(bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect())
    }

    fn texts(&mut self, count: usize) -> Result<StringArray, CodecError> {
        let offsets = self.many(count + 1, u32::from_le_bytes)?;
        let bytes = self.take(offsets.last().map_or(0, |end| *end as usize))?;
        let text = |pair: &[u32]| {
            let bytes = bytes.get(pair[0] as usize..pair[1] as usize).ok_or(CodecError::Damaged)?;
            std::str::from_utf8(bytes).map_err(|_| CodecError::Damaged)
        };
        offsets.windows(2).map(text).collect::<Result<Vec<&str>, _>>().map(StringArray::from)
    }
}
