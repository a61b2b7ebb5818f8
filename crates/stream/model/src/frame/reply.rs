//! What a broker sends: the reply to each request, under its id, and what it pushes, under the id of the request that
//! made the subscription or the watch.

use bytes::{Bytes, BytesMut};

pub use super::code::Refusal as Error;
use super::field::{Field, FrameError, Reader, record};
use super::preface::Capabilities;
use super::request::messages;
use super::shared::{
    CacheChange, CacheEntry, CacheListing, CacheResult, CommittedOffset, Delivery, EndReason, GroupMember,
    GroupState, GroupSummary, JoinSettings, ShardOffset, ShardState, StreamListing, TimedOffset, cut,
};
use crate::limits::LIST_ENTRIES_MAX;
use crate::names::Tenant;
use crate::spec::{CacheSpec, Durability, StreamSpec};

messages! {
    /// A reply or a push.
    Reply {
        /// A request is refused.
        Error ERROR = 0x80,
        /// The broker takes the client.
        Welcome WELCOME = 0x81,
        /// Somebody is there.
        Pong PONG = 0x82,
        /// It is done, and there is nothing to say.
        Done DONE = 0x83,
        /// A page of streams.
        Streams STREAMS = 0x90,
        /// What a stream is and holds.
        Stream STREAM = 0x91,
        /// A handle to publish with.
        Opened OPENED = 0x92,
        /// Offsets of a stream.
        Offsets OFFSETS = 0x93,
        /// Batches are appended.
        Published PUBLISHED = 0xa0,
        /// An id for an idempotent producer.
        ProducerReady PRODUCER_READY = 0xa1,
        /// A subscription begins.
        Subscribed SUBSCRIBED = 0xb0,
        /// A member of a group.
        Joined JOINED = 0xc0,
        /// Leased records.
        Pulled PULLED = 0xc1,
        /// What a group is doing.
        Group GROUP = 0xc2,
        /// A page of groups.
        Groups GROUPS = 0xc3,
        /// How far a group has come.
        Committed COMMITTED = 0xc4,
        /// What became of leased records.
        Settled SETTLED = 0xc5,
        /// A page of caches.
        Caches CACHES = 0xd0,
        /// A handle for a cache.
        CacheOpened CACHE_OPENED = 0xd1,
        /// An entry, if there is one.
        CacheValue CACHE_VALUE = 0xd2,
        /// An entry has changed.
        CacheChanged CACHE_CHANGED = 0xd3,
        /// What became of several operations.
        CacheResults CACHE_RESULTS = 0xd4,
        /// A page of entries.
        CachePage CACHE_PAGE = 0xd5,
        /// Push: batches of a subscription.
        Batch BATCH = 0xe0,
        /// Push: records that a subscription will not get.
        Lost LOST = 0xe1,
        /// Push: a subscription or a watch is over.
        Ended ENDED = 0xe2,
        /// Push: changes in a cache.
        CacheEvents CACHE_EVENTS = 0xe3,
        /// Push (id 0): the broker is going away.
        Goaway GOAWAY = 0xe4,
    }
}

impl Reply {
    /// The batches that follow the fields.
    fn tail(&self) -> Vec<Bytes> {
        match self {
            Self::Batch(batch) => vec![batch.batches.clone()],
            Self::Pulled(pulled) => pulled.deliveries.iter().map(|d| d.batch.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it is sent without being asked for, and its id is that of a subscription.
    pub fn is_push(&self) -> bool {
        self.kind() >= kind::BATCH
    }
}

record! {
    /// To [`Hello`](super::request::Hello).
    Welcome {
        /// Whom the client speaks for.
        tenant: Tenant,
        /// What the broker calls itself.
        broker: String,
        /// What both can do.
        capabilities: Capabilities,
        /// The largest body that both take.
        max_frame_bytes: u32,
        /// The most bytes of batches that a connection may have published and not yet had answered.
        max_inflight_bytes: u64,
        /// The most subscriptions and watches of a connection.
        max_subscriptions: u32,
        /// The connection is closed if nothing comes for so long.
        idle_timeout_ms: u32,
    }

    /// To [`Ping`](super::request::Ping).
    Pong {
        /// What came.
        nonce: u64,
    }

    /// To what has no other answer.
    Done {}

    /// To [`ListStreams`](super::request::ListStreams).
    Streams {
        /// In the order of their names.
        streams: Vec<StreamListing>,
        /// Whether there are more.
        more: bool,
    }

    /// To [`DescribeStream`](super::request::DescribeStream).
    Stream {
        /// What it is.
        spec: StreamSpec,
        /// What is in it.
        shards: Vec<ShardState>,
    }

    /// To [`Open`](super::request::Open).
    Opened {
        /// For [`Publish`](super::request::Publish) on this connection.
        handle: u32,
        /// How many shards it has.
        shards: u32,
        /// What an acknowledgement promises.
        durability: Durability,
        /// The largest batch that it takes.
        max_batch_bytes: u32,
    }

    /// To [`OffsetFor`](super::request::OffsetFor).
    Offsets {
        /// One for each shard that was asked for.
        offsets: Vec<TimedOffset>,
    }

    /// To [`Publish`](super::request::Publish).
    Published {
        /// The offset of the first record, or of the first time that the same batch came.
        base_offset: u64,
        /// The offset after the last record.
        end_offset: u64,
    }

    /// To [`InitProducer`](super::request::InitProducer).
    ProducerReady {
        /// The id.
        id: i64,
        /// Its epoch.
        epoch: i16,
    }

    /// To [`Subscribe`](super::request::Subscribe).
    Subscribed {
        /// Where it begins, in each shard.
        starts: Vec<ShardOffset>,
    }

    /// To [`GroupJoin`](super::request::GroupJoin).
    Joined {
        /// For the other requests of this member on this connection.
        handle: u32,
        /// Its number in the group.
        member: u64,
        /// What the group does: what its first member asked for.
        settings: JoinSettings,
    }

    /// To [`GroupDescribe`](super::request::GroupDescribe).
    Group {
        /// What it is doing.
        state: GroupState,
        /// Whether its members speak Kafka's protocol.
        classic: bool,
        /// Who reads.
        members: Vec<GroupMember>,
        /// How far it has come.
        offsets: Vec<CommittedOffset>,
    }

    /// To [`GroupList`](super::request::GroupList).
    Groups {
        /// In the order of their names.
        groups: Vec<GroupSummary>,
        /// Whether there are more.
        more: bool,
    }

    /// To [`FetchOffsets`](super::request::FetchOffsets) and [`ResetOffsets`](super::request::ResetOffsets).
    Committed {
        /// Shards without a committed offset are left out.
        offsets: Vec<CommittedOffset>,
    }

    /// To the acknowledgements of groups.
    Settled {
        /// How many records it was carried out for.
        settled: u64,
        /// How many were not leased to this member (any longer).
        unknown: u64,
    }

    /// To [`CacheList`](super::request::CacheList).
    Caches {
        /// In the order of their names.
        caches: Vec<CacheListing>,
        /// Whether there are more.
        more: bool,
    }

    /// To [`CacheOpen`](super::request::CacheOpen).
    CacheOpened {
        /// For the other requests on this connection.
        handle: u32,
        /// What it is.
        spec: CacheSpec,
    }

    /// To [`CacheGet`](super::request::CacheGet).
    CacheValue {
        /// The entry.
        entry: Option<CacheEntry>,
    }

    /// To [`CachePut`](super::request::CachePut) and [`CacheDelete`](super::request::CacheDelete).
    CacheChanged {
        /// The revision of the change; zero where nothing changed.
        revision: u64,
    }

    /// To [`CacheBatch`](super::request::CacheBatch).
    CacheResults {
        /// One for each operation, in order.
        results: Vec<CacheResult>,
    }

    /// To [`CacheScan`](super::request::CacheScan).
    CachePage {
        /// In the order of their keys.
        entries: Vec<CacheEntry>,
        /// Whether there are more.
        more: bool,
    }

    /// Records that the subscription's policy, or the stream's retention, has passed over.
    Lost {
        /// In which shard; zero for a watch.
        shard: u32,
        /// The first offset; the first revision for a watch.
        from: u64,
        /// The offset after the last.
        to: u64,
    }

    /// Nothing more comes under this id.
    Ended {
        /// Why.
        reason: EndReason,
        /// For a person; often empty.
        message: String,
    }

    /// Changes in the order of their revisions.
    CacheEvents {
        /// The changes.
        changes: Vec<CacheChange>,
    }

    /// New requests are refused; what is under way is answered as far as it can be.
    Goaway {
        /// The connection is closed after so long.
        drain_ms: u32,
        /// For a person.
        message: String,
    }
}

/// One or more batches of a shard, consecutive and as they are stored, with base offset and epoch in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The shard.
    pub shard: u32,
    /// Epoch of its owner.
    pub epoch: u32,
    /// Base offset of the first batch. The subscription may have begun after it, within the batch.
    pub base_offset: u64,
    /// The batches: the rest of the frame.
    pub batches: Bytes,
}

impl Batch {
    /// What it takes of a subscription's credit, whoever counts: the bytes of its batches.
    pub fn cost(&self) -> u64 {
        self.batches.len() as u64
    }
}

impl Field for Batch {
    const LEN_MIN: usize = 16;

    fn put(&self, out: &mut BytesMut) {
        self.shard.put(out);
        self.epoch.put(out);
        self.base_offset.put(out);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        Ok(Self {
            shard: Field::take(reader)?,
            epoch: Field::take(reader)?,
            base_offset: Field::take(reader)?,
            batches: reader.tail(),
        })
    }
}

/// To [`GroupPull`](super::request::GroupPull). The heads of the deliveries come first, then their batches in the same
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Leased records.
    pub deliveries: Vec<Delivery>,
}

impl Field for Pulled {
    const LEN_MIN: usize = 4;

    fn put(&self, out: &mut BytesMut) {
        (self.deliveries.len() as u32).put(out);
        self.deliveries.iter().for_each(|delivery| delivery.put_head(out));
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        let len = u32::take(reader)? as usize;
        if len > LIST_ENTRIES_MAX {
            return Err(FrameError::TooMany { what: "a pull", len, max: LIST_ENTRIES_MAX });
        }
        if len.saturating_mul(Delivery::HEAD_LEN) > reader.left() {
            return Err(FrameError::Truncated("a pull"));
        }
        let heads = (0..len).map(|_| Delivery::take_head(reader)).collect::<Result<Vec<_>, _>>()?;
        let mut tail = reader.tail();
        let deliveries = heads
            .into_iter()
            .map(|(head, len)| cut(&mut tail, len).map(|batch| Delivery { batch, ..head }))
            .collect::<Result<_, _>>()?;
        if tail.is_empty() { Ok(Self { deliveries }) } else { Err(FrameError::Trailing(tail.len())) }
    }
}
