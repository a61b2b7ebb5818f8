//! What a client sends. Each request but Credit, Unsubscribe and an unacknowledged Publish has exactly one reply with
//! the same id; a client numbers its requests as it likes, and does not use a number again before it was answered.

use bytes::{Bytes, BytesMut};

use super::field::{Field, FrameError, Reader, record};
use super::preface::Capabilities;
pub use super::shared::Token;
use super::shared::{
    Ack, CacheOp, CommittedOffset, Expect, JoinSettings, OffsetRange, Page, Policy, ShardOffset, Start, Ttl,
};
use crate::names::{CacheName, GroupName, StreamName, Tenant};
use crate::spec::{CacheSpec, StreamSpec};

/// An enum of messages, their numbers, and how they are encoded.
macro_rules! messages {
    ($(#[$doc:meta])* $enum:ident { $($(#[$case_doc:meta])* $case:ident $const:ident = $number:literal,)* }) => {
        /// The numbers of the messages.
        pub mod kind {
            $($(#[$case_doc])* pub const $const: u8 = $number;)*
        }

        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $enum { $($(#[$case_doc])* $case($case),)* }

        impl $enum {
            /// The number of each message and its name.
            pub const KINDS: &[(u8, &str)] = &[$(($number, stringify!($case)),)*];

            /// Its number.
            pub fn kind(&self) -> u8 {
                match self { $(Self::$case(_) => $number,)* }
            }

            /// The frame of this message with this id.
            pub fn encode(&self, id: u32) -> $crate::frame::Pieces {
                let mut out = $crate::frame::Pieces::fields();
                match self { $(Self::$case(message) => message.put(&mut out),)* }
                $crate::frame::Pieces::seal(self.kind(), id, out, self.tail())
            }

            /// The message in a frame: exactly its bytes, or an error. `try_from` does the same with a frame that is
            /// not needed any longer, and spares counting who holds its buffer.
            pub fn decode(frame: &$crate::frame::Frame) -> Result<Self, $crate::frame::FrameError> {
                Self::try_from(frame.clone())
            }
        }

        impl TryFrom<$crate::frame::Frame> for $enum {
            type Error = $crate::frame::FrameError;

            fn try_from(frame: $crate::frame::Frame) -> Result<Self, $crate::frame::FrameError> {
                let mut reader = $crate::frame::field::Reader::new(frame.body);
                let message = match frame.kind {
                    $($number => Self::$case($crate::frame::field::Field::take(&mut reader)?),)*
                    kind => return Err($crate::frame::FrameError::Kind(kind)),
                };
                reader.end()?;
                Ok(message)
            }
        }

        #[cfg(test)]
        impl $enum {
            /// One of each message.
            pub(crate) fn samples(source: &mut $crate::frame::sample::Source) -> Vec<Self> {
                vec![$(Self::$case($crate::frame::sample::Sample::sample(source)),)*]
            }
        }

        $(impl From<$case> for $enum {
            fn from(message: $case) -> Self {
                Self::$case(message)
            }
        })*
    };
}

pub(super) use messages;

messages! {
    /// A request.
    Request {
        /// Who the client is; the first frame of a connection.
        Hello HELLO = 0x01,
        /// Is anybody there?
        Ping PING = 0x02,
        /// Make a stream.
        CreateStream CREATE_STREAM = 0x10,
        /// Delete a stream and all that is in it.
        DeleteStream DELETE_STREAM = 0x11,
        /// The streams whose names begin so.
        ListStreams LIST_STREAMS = 0x12,
        /// What a stream is and holds.
        DescribeStream DESCRIBE_STREAM = 0x13,
        /// A handle to publish with.
        Open OPEN = 0x14,
        /// Offsets of a stream, by time or end.
        OffsetFor OFFSET_FOR = 0x15,
        /// Append batches.
        Publish PUBLISH = 0x20,
        /// An id for an idempotent producer.
        InitProducer INIT_PRODUCER = 0x21,
        /// Receive what is written.
        Subscribe SUBSCRIBE = 0x30,
        /// End a subscription or a watch.
        Unsubscribe UNSUBSCRIBE = 0x31,
        /// Allow a subscription or a watch to send more bytes.
        Credit CREDIT = 0x32,
        /// Become a member of a group.
        GroupJoin GROUP_JOIN = 0x40,
        /// Lease records.
        GroupPull GROUP_PULL = 0x41,
        /// Leased records are done.
        GroupAck GROUP_ACK = 0x42,
        /// Leased records are to be delivered again.
        GroupNack GROUP_NACK = 0x43,
        /// Leased records need more time.
        GroupExtend GROUP_EXTEND = 0x44,
        /// Leave a group; what is leased is delivered to others at once.
        GroupLeave GROUP_LEAVE = 0x45,
        /// What a group is doing.
        GroupDescribe GROUP_DESCRIBE = 0x46,
        /// The groups whose names begin so.
        GroupList GROUP_LIST = 0x47,
        /// Delete a group without members, and its offsets.
        GroupDelete GROUP_DELETE = 0x48,
        /// Note how far a group has come.
        CommitOffsets COMMIT_OFFSETS = 0x49,
        /// How far a group has come.
        FetchOffsets FETCH_OFFSETS = 0x4a,
        /// Put a group without members elsewhere.
        ResetOffsets RESET_OFFSETS = 0x4b,
        /// Make a cache.
        CacheCreate CACHE_CREATE = 0x50,
        /// Delete a cache and all that is in it.
        CacheDrop CACHE_DROP = 0x51,
        /// The caches whose names begin so.
        CacheList CACHE_LIST = 0x52,
        /// A handle for the requests below.
        CacheOpen CACHE_OPEN = 0x53,
        /// Read an entry.
        CacheGet CACHE_GET = 0x54,
        /// Write an entry.
        CachePut CACHE_PUT = 0x55,
        /// Remove an entry.
        CacheDelete CACHE_DELETE = 0x56,
        /// Several operations, in order.
        CacheBatch CACHE_BATCH = 0x57,
        /// The entries whose keys begin so.
        CacheScan CACHE_SCAN = 0x58,
        /// The current value, then every change.
        CacheWatch CACHE_WATCH = 0x59,
    }
}

impl Request {
    /// The batches that follow the fields.
    fn tail(&self) -> Vec<Bytes> {
        match self {
            Self::Publish(publish) => vec![publish.batches.clone()],
            _ => Vec::new(),
        }
    }

    /// Whether a reply follows even if all is well.
    pub fn is_answered(&self) -> bool {
        match self {
            Self::Publish(publish) => publish.ack == Ack::One,
            Self::Credit(_) | Self::Unsubscribe(_) => false,
            _ => true,
        }
    }
}

record! {
    /// Answered by [`Welcome`](super::reply::Welcome).
    Hello {
        /// Who the client is; without one it may do what anybody may.
        token: Option<Token>,
        /// The tenant that it wants to speak for; without one that of the token.
        tenant: Option<Tenant>,
        /// What the client calls itself, for logs.
        client: String,
        /// What it cannot do without: refused if the broker does not have it.
        required: Capabilities,
        /// The largest body that it takes.
        max_frame_bytes: u32,
    }

    /// Answered by [`Pong`](super::reply::Pong).
    Ping {
        /// Comes back.
        nonce: u64,
    }

    /// Answered by [`Done`](super::reply::Done). A stream that is there with the same specification is no error.
    CreateStream {
        /// Its full name.
        name: StreamName,
        /// What it is.
        spec: StreamSpec,
    }

    /// Answered by [`Done`](super::reply::Done).
    DeleteStream {
        /// Its full name.
        name: StreamName,
    }

    /// Answered by [`Streams`](super::reply::Streams).
    ListStreams {
        /// What their full names begin with.
        prefix: String,
        /// Which of them.
        page: Page,
    }

    /// Answered by [`Stream`](super::reply::Stream).
    DescribeStream {
        /// Its full name.
        name: StreamName,
    }

    /// Answered by [`Opened`](super::reply::Opened).
    Open {
        /// Its full name.
        name: StreamName,
    }

    /// Answered by [`Offsets`](super::reply::Offsets), one entry a shard.
    OffsetFor {
        /// The full name of the stream.
        stream: StreamName,
        /// One shard, or all.
        shard: Option<u32>,
        /// Which offset: the first, the next, or the first of a time.
        at: Start,
    }

    /// Answered by [`ProducerReady`](super::reply::ProducerReady).
    InitProducer {
        /// The id and epoch that the producer had: it gets the next epoch of the same id.
        renew: Option<i64>,
    }

    /// Answered by [`Subscribed`](super::reply::Subscribed); then batches come with the id of this request.
    Subscribe {
        /// The full name of the stream.
        stream: StreamName,
        /// One shard, or all.
        shard: Option<u32>,
        /// Where to begin.
        start: Start,
        /// Where to begin in these shards instead: what a client that connects again has seen.
        resume: Vec<ShardOffset>,
        /// What happens if the client does not keep up.
        policy: Policy,
        /// How many bytes behind the end the policy lets the client be.
        budget_bytes: u64,
        /// How many bytes of batches may be sent before the first [`Credit`].
        credit_bytes: u64,
        /// The largest body of a frame, unless a single batch is larger.
        max_frame_bytes: u32,
    }

    /// Not answered: [`Ended`](super::reply::Ended) follows, after what was under way.
    Unsubscribe {
        /// The id of the request that made it.
        subscription: u32,
    }

    /// Not answered.
    Credit {
        /// The id of the request that made it.
        subscription: u32,
        /// So many more bytes of batches, or of changes.
        bytes: u64,
    }

    /// Answered by [`Joined`](super::reply::Joined).
    GroupJoin {
        /// The group.
        group: GroupName,
        /// What the member calls itself.
        client: String,
        /// What it reads; ranges name these by their place in the list.
        streams: Vec<StreamName>,
        /// What it asks of the group. A group takes the settings of its first member.
        settings: JoinSettings,
    }

    /// Answered by [`Pulled`](super::reply::Pulled), empty if nothing came in time.
    GroupPull {
        /// From [`Joined`](super::reply::Joined).
        handle: u32,
        /// The most records.
        max_records: u32,
        /// The most bytes of batches, unless a single one is larger.
        max_bytes: u32,
        /// How long to wait for the first record.
        wait_ms: u32,
    }

    /// Answered by [`Settled`](super::reply::Settled).
    GroupAck {
        /// From [`Joined`](super::reply::Joined).
        handle: u32,
        /// Which records.
        ranges: Vec<OffsetRange>,
    }

    /// Answered by [`Settled`](super::reply::Settled).
    GroupNack {
        /// From [`Joined`](super::reply::Joined).
        handle: u32,
        /// How long to wait before they are delivered again.
        delay_ms: u32,
        /// Which records.
        ranges: Vec<OffsetRange>,
    }

    /// Answered by [`Settled`](super::reply::Settled).
    GroupExtend {
        /// From [`Joined`](super::reply::Joined).
        handle: u32,
        /// How long the lease is, from now.
        lease_ms: u32,
        /// Which records.
        ranges: Vec<OffsetRange>,
    }

    /// Answered by [`Done`](super::reply::Done).
    GroupLeave {
        /// From [`Joined`](super::reply::Joined).
        handle: u32,
    }

    /// Answered by [`Group`](super::reply::Group).
    GroupDescribe {
        /// The group.
        group: GroupName,
    }

    /// Answered by [`Groups`](super::reply::Groups).
    GroupList {
        /// What their names begin with.
        prefix: String,
        /// Which of them.
        page: Page,
    }

    /// Answered by [`Done`](super::reply::Done).
    GroupDelete {
        /// The group.
        group: GroupName,
    }

    /// Answered by [`Done`](super::reply::Done).
    CommitOffsets {
        /// The group.
        group: GroupName,
        /// How far it has come.
        offsets: Vec<CommittedOffset>,
    }

    /// Answered by [`Committed`](super::reply::Committed).
    FetchOffsets {
        /// The group.
        group: GroupName,
        /// In one stream, or in all.
        stream: Option<StreamName>,
    }

    /// Answered by [`Committed`](super::reply::Committed), with where it is now.
    ResetOffsets {
        /// The group.
        group: GroupName,
        /// In which stream.
        stream: StreamName,
        /// One shard, or all.
        shard: Option<u32>,
        /// Where to.
        to: Start,
    }

    /// Answered by [`Done`](super::reply::Done). A cache that is there with the same specification is no error.
    CacheCreate {
        /// Its full name.
        name: CacheName,
        /// What it is.
        spec: CacheSpec,
    }

    /// Answered by [`Done`](super::reply::Done).
    CacheDrop {
        /// Its full name.
        name: CacheName,
    }

    /// Answered by [`Caches`](super::reply::Caches).
    CacheList {
        /// What their full names begin with.
        prefix: String,
        /// Which of them.
        page: Page,
    }

    /// Answered by [`CacheOpened`](super::reply::CacheOpened).
    CacheOpen {
        /// Its full name.
        name: CacheName,
    }

    /// Answered by [`CacheValue`](super::reply::CacheValue).
    CacheGet {
        /// From [`CacheOpened`](super::reply::CacheOpened).
        handle: u32,
        /// The key.
        key: Bytes,
    }

    /// Answered by [`CacheChanged`](super::reply::CacheChanged).
    CachePut {
        /// From [`CacheOpened`](super::reply::CacheOpened).
        handle: u32,
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
        /// How long it lives.
        ttl: Ttl,
        /// What must be there.
        expect: Expect,
    }

    /// Answered by [`CacheChanged`](super::reply::CacheChanged); its revision is zero if nothing was there.
    CacheDelete {
        /// From [`CacheOpened`](super::reply::CacheOpened).
        handle: u32,
        /// The key.
        key: Bytes,
        /// What must be there.
        expect: Expect,
    }

    /// Answered by [`CacheResults`](super::reply::CacheResults), one for each.
    CacheBatch {
        /// From [`CacheOpened`](super::reply::CacheOpened).
        handle: u32,
        /// What to do.
        ops: Vec<CacheOp>,
    }

    /// Answered by [`CachePage`](super::reply::CachePage).
    CacheScan {
        /// From [`CacheOpened`](super::reply::CacheOpened).
        handle: u32,
        /// What their keys begin with.
        prefix: Bytes,
        /// The key after which to begin; empty: at the beginning.
        after: Bytes,
        /// The most entries; the broker may give fewer.
        limit: u32,
        /// Leave the values empty.
        keys_only: bool,
    }

    /// Answered by [`Done`](super::reply::Done); then changes come with the id of this request.
    CacheWatch {
        /// From [`CacheOpened`](super::reply::CacheOpened).
        handle: u32,
        /// The key, or what the keys begin with.
        key: Bytes,
        /// Whether it is what keys begin with.
        prefix: bool,
        /// How many bytes of changes may be sent before the first [`Credit`].
        credit_bytes: u64,
    }
}

/// Answered by [`Published`](super::reply::Published), if it asks for that, or if it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// From [`Opened`](super::reply::Opened).
    pub handle: u32,
    /// The shard.
    pub shard: u32,
    /// The epoch of its owner as the client knows it; zero: whichever.
    pub epoch: u32,
    /// Whether it is answered.
    pub ack: Ack,
    /// One or more record batches: the rest of the frame. All of them are appended, in this order, or none.
    pub batches: Bytes,
}

impl Field for Publish {
    const LEN_MIN: usize = 13;

    fn put(&self, out: &mut BytesMut) {
        self.handle.put(out);
        self.shard.put(out);
        self.epoch.put(out);
        self.ack.put(out);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        Ok(Self {
            handle: Field::take(reader)?,
            shard: Field::take(reader)?,
            epoch: Field::take(reader)?,
            ack: Field::take(reader)?,
            batches: reader.tail(),
        })
    }
}
