//! What requests and replies are made of.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::field::{Field, FrameError, Reader, choice, record, unknown};
use super::preface::Capabilities;
use crate::limits::TOKEN_BYTES_MAX;
use crate::names::{CacheName, GroupName, StreamName};
use crate::spec::{CacheSpec, StreamSpec};

/// Whether a publish is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ack {
    /// Only if it is refused.
    None,
    /// When its stream's durability holds.
    One,
}

/// What happens to a subscription whose client does not keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nothing is skipped.
    #[default]
    Block,
    /// More than the budget behind: jumps forward to the newest records that fit into the budget.
    DropOld,
    /// More than the budget behind: the records within the budget are delivered, those after them skipped.
    DropNew,
}

/// The life of an entry in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ttl {
    /// What the cache says.
    #[default]
    Default,
    /// Until it is deleted or evicted.
    Forever,
    /// So many milliseconds.
    Ms(u64),
}

/// What must be there before an entry changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Expect {
    /// Anything, or nothing.
    #[default]
    Any,
    /// Nothing.
    Absent,
    /// The entry with this revision.
    Revision(u64),
}

/// Where a subscription begins, or a group is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// The first record that is kept.
    Earliest,
    /// The next record that is written.
    Latest,
    /// This offset.
    Offset(u64),
    /// The first record of this time (milliseconds since 1970) or later.
    Time(i64),
}

/// Cases without fields, each with a number.
macro_rules! plain {
    ($($type:ident($what:literal) { $($case:ident = $number:literal),* })*) => { $(
        impl Field for $type {
            const LEN_MIN: usize = 1;

            fn put(&self, out: &mut BytesMut) {
                out.put_u8(match self { $(Self::$case => $number),* });
            }

            fn take(reader: &mut Reader) -> Result<Self, FrameError> {
                match u8::take(reader)? {
                    $($number => Ok(Self::$case),)*
                    value => Err(unknown($what, value.into())),
                }
            }
        }

        #[cfg(test)]
        impl super::sample::Sample for $type {
            fn sample(source: &mut super::sample::Source) -> Self {
                *source.pick(&[$(Self::$case),*])
            }
        }
    )* };
}

plain! {
    Ack("acknowledgement") { None = 0, One = 1 }
    Policy("policy") { Block = 0, DropOld = 1, DropNew = 2 }
    EndReason("reason") { Unsubscribed = 0, Deleted = 1, Moved = 2, Failed = 3, Lagged = 4 }
    GroupState("state of a group") { Empty = 0, Active = 1, Rebalancing = 2, Dead = 3 }
}

impl Field for Ttl {
    const LEN_MIN: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        match *self {
            Self::Default => out.put_u8(0),
            Self::Forever => out.put_u8(1),
            Self::Ms(ms) => {
                out.put_u8(2);
                ms.put(out);
            }
        }
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        match u8::take(reader)? {
            0 => Ok(Self::Default),
            1 => Ok(Self::Forever),
            2 => u64::take(reader).map(Self::Ms),
            value => Err(unknown("life of an entry", value.into())),
        }
    }
}

impl Field for Expect {
    const LEN_MIN: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        match *self {
            Self::Any => out.put_u8(0),
            Self::Absent => out.put_u8(1),
            Self::Revision(revision) => {
                out.put_u8(2);
                revision.put(out);
            }
        }
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        match u8::take(reader)? {
            0 => Ok(Self::Any),
            1 => Ok(Self::Absent),
            2 => u64::take(reader).map(Self::Revision),
            value => Err(unknown("expectation", value.into())),
        }
    }
}

impl Field for Start {
    const LEN_MIN: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        match *self {
            Self::Earliest => out.put_u8(0),
            Self::Latest => out.put_u8(1),
            Self::Offset(offset) => {
                out.put_u8(2);
                offset.put(out);
            }
            Self::Time(ms) => {
                out.put_u8(3);
                ms.put(out);
            }
        }
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        match u8::take(reader)? {
            0 => Ok(Self::Earliest),
            1 => Ok(Self::Latest),
            2 => u64::take(reader).map(Self::Offset),
            3 => i64::take(reader).map(Self::Time),
            value => Err(unknown("start", value.into())),
        }
    }
}

impl Field for Capabilities {
    const LEN_MIN: usize = 8;

    fn put(&self, out: &mut BytesMut) {
        self.0.put(out);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        u64::take(reader).map(Self)
    }
}

/// A secret: it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Field for Token {
    const LEN_MIN: usize = 2;

    fn put(&self, out: &mut BytesMut) {
        super::field::put_text(out, &self.0);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        super::field::take_text(reader, TOKEN_BYTES_MAX).map(|text| Self(text.as_ref().to_owned()))
    }
}

/// Why a subscription or a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The client asked.
    Unsubscribed,
    /// The stream or the cache was deleted.
    Deleted,
    /// The shard has another owner: subscribe again.
    Moved,
    /// Reading failed; told in the broker's log.
    Failed,
    /// A watch fell too far behind.
    Lagged,
}

/// What a group is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupState {
    /// No member.
    Empty,
    /// It has members.
    Active,
    /// Members of Kafka's protocol are being assigned their shards.
    Rebalancing,
    /// It was deleted.
    Dead,
}

record! {
    /// A piece of a long list.
    Page {
        /// The name after which the piece begins; empty: at the beginning.
        after: String,
        /// The most entries; the broker may give fewer.
        limit: u32,
    }

    /// An offset of a shard.
    ShardOffset {
        /// The shard.
        shard: u32,
        /// The offset.
        offset: u64,
    }

    /// An offset and the time of its record.
    TimedOffset {
        /// The shard.
        shard: u32,
        /// The offset.
        offset: u64,
        /// Milliseconds since 1970; -1 where no record is there.
        timestamp: i64,
    }

    /// What is in a shard.
    ShardState {
        /// The shard.
        shard: u32,
        /// Epoch of its owner.
        epoch: u32,
        /// The first offset that is kept.
        first: u64,
        /// The next offset that readers will see.
        end: u64,
        /// Bytes that are kept.
        bytes: u64,
    }

    /// A stream in a list.
    StreamListing {
        /// Its full name.
        name: StreamName,
        /// What it is.
        spec: StreamSpec,
    }

    /// What a member asks of its group.
    JoinSettings {
        /// How long a delivery is leased to a member.
        ack_timeout_ms: u32,
        /// How often a record is delivered before it is set aside; zero: without end.
        max_deliveries: u16,
        /// Where a record goes that was delivered so often; without one it is counted and passed over.
        dead_letter: Option<StreamName>,
        /// Where a group begins that has no committed offset.
        start: Start,
    }

    /// Records of one shard, first and last included.
    OffsetRange {
        /// Which of the streams that were joined.
        stream: u16,
        /// The shard.
        shard: u32,
        /// The first offset.
        first: u64,
        /// The last offset.
        last: u64,
    }

    /// How far a group has come in a shard.
    CommittedOffset {
        /// The stream.
        stream: StreamName,
        /// The shard.
        shard: u32,
        /// The next offset to be read.
        offset: u64,
        /// What the consumer noted beside it.
        note: String,
    }

    /// A member of a group.
    GroupMember {
        /// Its number, or its id in Kafka's protocol.
        member: String,
        /// What it calls itself.
        client: String,
        /// Deliveries that it holds.
        in_flight: u64,
    }

    /// A group in a list.
    GroupSummary {
        /// Its name.
        name: GroupName,
        /// What it is doing.
        state: GroupState,
        /// How many members it has.
        members: u32,
    }

    /// A cache in a list.
    CacheListing {
        /// Its full name.
        name: CacheName,
        /// What it is.
        spec: CacheSpec,
    }

    /// An entry of a cache.
    CacheEntry {
        /// Its key.
        key: Bytes,
        /// Its value.
        value: Bytes,
        /// Rises with each change in the cache.
        revision: u64,
        /// Milliseconds until it expires.
        ttl_ms: Option<u64>,
    }
}

choice! {
    /// One of several operations on a cache.
    CacheOp("operation") {
        /// Read an entry.
        Get {
            /// Its key.
            key: Bytes
        } = 0,
        /// Write an entry.
        Put {
            /// Its key.
            key: Bytes,
            /// Its value.
            value: Bytes,
            /// How long it lives.
            ttl: Ttl,
            /// What must be there.
            expect: Expect
        } = 1,
        /// Remove an entry.
        Delete {
            /// Its key.
            key: Bytes,
            /// What must be there.
            expect: Expect
        } = 2,
    }

    /// What became of one of several operations.
    CacheResult("result") {
        /// What was asked for is not there.
        Missing = 0,
        /// The entry.
        Found {
            /// The entry.
            entry: CacheEntry
        } = 1,
        /// Written, or removed.
        Changed {
            /// The revision of the change.
            revision: u64
        } = 2,
        /// Refused; the other operations were carried out all the same.
        Refused {
            /// Why.
            refusal: super::Refusal
        } = 3,
    }

    /// What a watch is told.
    CacheChange("change") {
        /// An entry is there, or has changed.
        Put {
            /// The entry.
            entry: CacheEntry
        } = 0,
        /// An entry was removed.
        Deleted {
            /// Its key.
            key: Bytes,
            /// The revision of the removal.
            revision: u64
        } = 1,
        /// The life of an entry ended.
        Expired {
            /// Its key.
            key: Bytes,
            /// The revision of its end.
            revision: u64
        } = 2,
        /// An entry gave way to others.
        Evicted {
            /// Its key.
            key: Bytes,
            /// The revision of its end.
            revision: u64
        } = 3,
        /// The values that were there are told; changes follow.
        Current {
            /// The newest revision among them.
            revision: u64
        } = 4,
    }
}

impl CacheChange {
    /// What it takes of a watch's credit, whoever counts: its key, its value, and sixteen bytes for what goes with
    /// them.
    pub fn cost(&self) -> u64 {
        let bytes = match self {
            Self::Put { entry } => entry.key.len() + entry.value.len(),
            Self::Deleted { key, .. } | Self::Expired { key, .. } | Self::Evicted { key, .. } => key.len(),
            Self::Current { .. } => 0,
        };
        bytes as u64 + 16
    }
}

/// Records of one batch that are leased to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which records; a batch may hold others too.
    pub range: OffsetRange,
    /// How often they were delivered, with this time.
    pub attempt: u16,
    /// The batch as it is stored.
    pub batch: Bytes,
}

impl Delivery {
    pub(super) const HEAD_LEN: usize = OffsetRange::LEN_MIN + 2 + 4;

    pub(super) fn put_head(&self, out: &mut BytesMut) {
        self.range.put(out);
        self.attempt.put(out);
        (self.batch.len() as u32).put(out);
    }

    /// The delivery without its batch, and how long that is.
    pub(super) fn take_head(reader: &mut Reader) -> Result<(Self, usize), FrameError> {
        let (range, attempt) = (Field::take(reader)?, Field::take(reader)?);
        let len = u32::take(reader)? as usize;
        Ok((Self { range, attempt, batch: Bytes::new() }, len))
    }
}

/// Cuts the batches that follow a list, in its order.
pub(super) fn cut(tail: &mut Bytes, len: usize) -> Result<Bytes, FrameError> {
    if len > tail.remaining() { Err(FrameError::Truncated("a batch")) } else { Ok(tail.split_to(len)) }
}
