//! Where committed offsets are kept: in the broker's own stream `_groups`, one record for a group and a
//! shard, if there is a data directory and the stream that is read is durable. Offsets of a stream in memory
//! are worth nothing after a restart, and are kept in memory.
//!
//! ```text
//!  key    version u8 (1) | tenant, group, stream: each length u8, bytes | shard u32
//!  value  stream's number u64 | offset u64 | time i64 | note: the rest                    big endian
//! ```
//!
//! An offset is in force at once and acknowledged when its record counts. If the disk was too full for it, it
//! is written again later.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, BufMut};
use parking_lot::Mutex;
use trifid_stream_model::batch::{Record, RecordData};
use trifid_stream_model::names::{GroupName, StreamName, Tenant};
use trifid_stream_model::spec::Durability;

use super::error::GroupError;
use super::limits::UNSETTLED_MAX;
use super::table::{Cell, Stored};
use super::types::Committed;
use crate::ack::Ack;
use crate::error::{OpenError, PublishError};
use crate::shard::Shard;
use crate::stream::StreamId;
use crate::streams::Streams;

const STREAM: &str = "_groups";
const VERSION: u8 = 1;

/// Of which group and shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) tenant: Tenant,
    pub(super) group: GroupName,
    pub(super) stream: StreamName,
    pub(super) shard: u32,
}

impl Key {
    fn of(cell: &Cell, (stream, shard): &(StreamName, u32)) -> Self {
        let (tenant, group) = (cell.tenant.clone(), cell.name.clone());
        Key { tenant, group, stream: stream.clone(), shard: *shard }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        for text in [self.tenant.as_str(), self.group.as_str(), self.stream.as_str()] {
            // Names have at most 255 bytes.
            out.put_u8(text.len() as u8);
            out.put_slice(text.as_bytes());
        }
        out.put_u32(self.shard);
        out
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let tenant = Tenant::new(take_text(&mut bytes)?).ok()?;
        let group = GroupName::new(take_text(&mut bytes)?).ok()?;
        let stream = StreamName::new(take_text(&mut bytes)?).ok()?;
        let shard = bytes.try_get_u32().ok()?;
        bytes.is_empty().then_some(Key { tenant, group, stream, shard })
    }
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let len = bytes.try_get_u8().ok()?.into();
    let (text, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

fn encode(stored: &Stored) -> Vec<u8> {
    let Committed { offset, note, at_ms } = &stored.committed;
    let mut out = Vec::with_capacity(24 + note.len());
    out.put_u64(stored.stream.0);
    out.put_u64(*offset);
    out.put_i64(*at_ms);
    out.put_slice(note.as_bytes());
    out
}

fn decode(mut bytes: &[u8]) -> Option<Stored> {
    let stream = StreamId(bytes.try_get_u64().ok()?);
    let (offset, at_ms) = (bytes.try_get_u64().ok()?, bytes.try_get_i64().ok()?);
    let note = std::str::from_utf8(bytes).ok()?.into();
    Some(Stored { stream, committed: Committed { offset, note, at_ms } })
}

/// Reads a record of the stream: what is known of a shard now, or that nothing is any more.
pub(super) fn read(key: &[u8], value: Option<&[u8]>) -> Option<(Key, Option<Stored>)> {
    let key = Key::decode(key)?;
    match value {
        None => Some((key, None)),
        Some(value) => Some((key, Some(decode(value)?))),
    }
}

/// See [`super::fuzz`]. The first byte says how many of the others are the key.
pub(super) fn fuzz(bytes: &[u8]) {
    let Some((len, rest)) = bytes.split_first() else { return };
    let (key, value) = rest.split_at(rest.len().min((*len).into()));
    if let Some((known, Some(stored))) = read(key, Some(value)) {
        assert_eq!((known.encode(), encode(&stored)), (key.to_vec(), value.to_vec()));
    }
}

/// The stream of committed offsets.
pub(super) struct OffsetLog {
    /// None: nothing is kept.
    shard: Option<Arc<Shard>>,
    /// Commits that may not have counted yet, for the groups to write them again if they do not.
    unsettled: Mutex<VecDeque<(Ack, Arc<Cell>)>>,
}

impl OffsetLog {
    /// Opens the stream and reads everything back.
    pub(super) fn open(
        streams: &Streams,
        mut take: impl FnMut(Key, Option<Stored>),
    ) -> Result<Self, OpenError> {
        let unsettled = Mutex::default();
        if streams.dir.is_none() {
            return Ok(OffsetLog { shard: None, unsettled });
        }
        let spec = crate::journal::spec(Durability::OnCommit);
        let stream = streams.internal(&crate::journal::name(STREAM), spec);
        let stream = stream.map_err(|error| OpenError::Internal(format!("{STREAM}: {error}")))?;
        let shard = stream.shard(0).cloned();
        let mut strange = None;
        let mut take = |record: &Record<'_>| match read(record.key.unwrap_or(&[]), record.value) {
            Some((key, stored)) => take(key, stored),
            None => strange = Some(record.offset),
        };
        if let Some(shard) = &shard {
            crate::journal::replay(shard, &mut take)?;
        }
        match strange {
            None => Ok(OffsetLog { shard, unsettled }),
            Some(at) => Err(OpenError::Internal(format!("{STREAM}: the record at {at} is of no known kind"))),
        }
    }

    /// Writes what is known of these shards of a group now; `None`: nothing any more.
    pub(super) fn write(
        &self,
        cell: &Arc<Cell>,
        entries: &[((StreamName, u32), Option<Stored>)],
        now_ms: i64,
    ) -> Result<Ack, PublishError> {
        let Some(shard) = &self.shard else { return Ok(Ack::ready()) };
        if entries.is_empty() {
            return Ok(Ack::ready());
        }
        let encoded: Vec<_> = entries
            .iter()
            .map(|(at, stored)| (Key::of(cell, at).encode(), stored.as_ref().map(encode)))
            .collect();
        let records: Vec<RecordData<'_>> = encoded
            .iter()
            .map(|(key, value)| RecordData {
                timestamp: now_ms.max(0),
                key: Some(key),
                value: value.as_deref(),
                headers: &[],
            })
            .collect();
        let ack = crate::journal::publish(shard, &records)?.ack;
        self.remember(ack.twin(), cell);
        Ok(ack)
    }

    fn remember(&self, ack: Ack, cell: &Arc<Cell>) {
        let mut unsettled = self.unsettled.lock();
        unsettled.push_back((ack, cell.clone()));
        // Those at the front that did well need no more looking at; what failed stays for the tick.
        while unsettled.len() > UNSETTLED_MAX
            && let Some((ack, _)) = unsettled.front_mut()
            && ack.fate() == Some(Ok(()))
        {
            unsettled.pop_front();
        }
    }

    /// Groups whose commits the disk refused since this was last asked.
    pub(super) fn take_refused(&self) -> Vec<Arc<Cell>> {
        let mut unsettled = self.unsettled.lock();
        let mut refused: Vec<Arc<Cell>> = Vec::new();
        while let Some((ack, _)) = unsettled.front_mut()
            && let Some(fate) = ack.fate()
        {
            let cell = unsettled.pop_front().map(|(_, cell)| cell);
            if fate.is_err() {
                refused.extend(cell.filter(|cell| !refused.iter().any(|other| Arc::ptr_eq(other, cell))));
            }
        }
        refused
    }
}

/// As groups refuse it.
pub(super) fn refused(error: &PublishError) -> GroupError {
    match *error {
        PublishError::Overloaded { retry_after_ms } => GroupError::Overloaded { retry_after_ms },
        PublishError::NoSpace => GroupError::NoSpace,
        PublishError::ShuttingDown => GroupError::ShuttingDown,
        _ => GroupError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> Key {
        Key {
            tenant: Tenant::default(),
            group: GroupName::new("g r o u p ✓").unwrap(),
            stream: StreamName::new("demo.readings").unwrap(),
            shard: 7,
        }
    }

    /// What lies on disks already.
    #[test]
    fn the_bytes_are_what_they_were() {
        let group = GroupName::new("g").unwrap();
        let key = Key { group, ..key() }.encode();
        assert_eq!(key, b"\x01\x07default\x01g\x0ddemo.readings\0\0\0\x07");
        let committed = Committed { offset: 0x0102, note: "n".into(), at_ms: 3 };
        let value = encode(&Stored { stream: StreamId(5), committed });
        assert_eq!(value, b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x03n");
    }

    #[test]
    fn records_come_back() {
        let committed = Committed { offset: 12, note: "half way".into(), at_ms: 99 };
        let stored = Stored { stream: StreamId(3), committed };
        let read_back = read(&key().encode(), Some(&encode(&stored)));
        assert_eq!(read_back, Some((key(), Some(stored))));
        assert_eq!(read(&key().encode(), None), Some((key(), None)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn nothing_panics(mut bytes: Vec<u8>, value: Vec<u8>, valid in any::<bool>(), cut in 0_usize..60) {
            if valid {
                bytes = key().encode();
                bytes.truncate(cut);
            }
            if let Some((key, _)) = read(&bytes, Some(&value)) {
                prop_assert_eq!(key.encode(), bytes);
            }
        }
    }
}
