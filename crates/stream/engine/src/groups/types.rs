//! What groups are asked for, and what they tell.

use std::sync::Arc;

use trifid_stream_model::frame::{GroupState, JoinSettings, Start};
use trifid_stream_model::limits::{DELIVERIES_DEFAULT, LEASE_MS_DEFAULT, LEASE_MS_MAX};
use trifid_stream_model::names::{GroupName, StreamName, Tenant};

use super::error::GroupError;
use super::limits::LEASE_MS_MIN;

/// What the first member of a native group asks of it; those who join later take it as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// How long a delivery is leased to a member. A record that is not acknowledged by then is delivered
    /// again.
    pub ack_timeout_ms: u32,
    /// How often a record is delivered before it is set aside; zero: without end.
    pub max_deliveries: u16,
    /// How long a record waits after its lease ran out before it is delivered again.
    pub retry_delay_ms: u32,
    /// Where a record goes that was delivered so often. Without one it is counted and passed over.
    pub dead_letter: Option<StreamName>,
    /// Where the group begins in a shard of which it has no committed offset.
    pub start: Start,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            ack_timeout_ms: LEASE_MS_DEFAULT,
            max_deliveries: DELIVERIES_DEFAULT,
            retry_delay_ms: 0,
            dead_letter: None,
            start: Start::Earliest,
        }
    }
}

impl From<&JoinSettings> for GroupSettings {
    fn from(settings: &JoinSettings) -> Self {
        Self {
            ack_timeout_ms: settings.ack_timeout_ms,
            max_deliveries: settings.max_deliveries,
            retry_delay_ms: 0,
            dead_letter: settings.dead_letter.clone(),
            start: settings.start,
        }
    }
}

impl From<&GroupSettings> for JoinSettings {
    fn from(settings: &GroupSettings) -> Self {
        Self {
            ack_timeout_ms: settings.ack_timeout_ms,
            max_deliveries: settings.max_deliveries,
            dead_letter: settings.dead_letter.clone(),
            start: settings.start,
        }
    }
}

impl GroupSettings {
    /// Whether the values lie within their limits.
    pub fn validate(&self) -> Result<(), GroupError> {
        lease("ack_timeout_ms", self.ack_timeout_ms, LEASE_MS_MIN)?;
        lease("retry_delay_ms", self.retry_delay_ms, 0)
    }
}

pub(super) fn lease(field: &'static str, ms: u32, min: u32) -> Result<(), GroupError> {
    if (min..=LEASE_MS_MAX).contains(&ms) {
        return Ok(());
    }
    Err(GroupError::OutOfRange { field, value: ms.into(), min: min.into(), max: LEASE_MS_MAX.into() })
}

/// An offset to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommit {
    /// The stream.
    pub stream: StreamName,
    /// The shard.
    pub shard: u32,
    /// The next offset to be read.
    pub offset: u64,
    /// What the consumer notes beside it (Kafka: metadata).
    pub note: Arc<str>,
}

/// How far a group has come in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The next offset to be read.
    pub offset: u64,
    /// What the consumer noted beside it.
    pub note: Arc<str>,
    /// When it was committed, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Which protocol the members of a group speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// It has no members.
    None,
    /// The native one: deliveries are leased and acknowledged.
    Native,
    /// Kafka's classic one: the members divide the shards among themselves.
    Classic,
}

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    /// Its name.
    pub name: GroupName,
    /// What it is doing.
    pub state: GroupState,
    /// What its members speak.
    pub protocol: Protocol,
    /// Kafka: the type of its protocol (`consumer`); empty otherwise.
    pub protocol_type: String,
    /// Kafka: the state as its protocol names it (`Stable`, `PreparingRebalance`, ...); `Empty` or `Stable`
    /// otherwise.
    pub kafka_state: &'static str,
    /// How many members it has.
    pub members: usize,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// Its number, or its id in Kafka's protocol.
    pub member: String,
    /// Kafka: `group.instance.id` (KIP-345).
    pub instance: Option<String>,
    /// What it calls itself.
    pub client: String,
    /// Where it connects from; empty for a native one.
    pub host: String,
    /// Records that are leased to it.
    pub in_flight: u64,
    /// Kafka: what it told about itself for the chosen protocol.
    pub metadata: bytes::Bytes,
    /// Kafka: what the leader assigned to it.
    pub assignment: bytes::Bytes,
}

/// How far a group has come in a shard, and how far it has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The stream.
    pub stream: StreamName,
    /// The shard.
    pub shard: u32,
    /// The committed offset.
    pub committed: u64,
    /// What was noted beside it.
    pub note: Arc<str>,
    /// The first offset that the shard keeps; `None`: the stream is not there.
    pub start: Option<u64>,
    /// The readable end of the shard.
    pub end: Option<u64>,
    /// Records that are there and not done: from the committed offset, or from the first that is kept if that
    /// is later, to the end. Retention never makes a lag that nobody can work off.
    pub lag: Option<u64>,
    /// Records that are leased to members.
    pub in_flight: u64,
    /// Records that wait to be delivered again.
    pub waiting: u64,
    /// Records that were delivered more than once, since the broker began.
    pub redelivered: u64,
    /// Records that went to the dead-letter stream, since the broker began.
    pub dead_lettered: u64,
    /// Records that were passed over: delivered too often, and there is no dead-letter stream.
    pub passed_over: u64,
    /// Offsets that retention took before the group had done them.
    pub lost: u64,
}

/// Everything about a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// As in the list.
    pub listing: GroupListing,
    /// Kafka: the chosen protocol (`range`, ...); empty otherwise.
    pub protocol_name: String,
    /// Kafka: the generation.
    pub generation: i32,
    /// Native: what the group does.
    pub settings: Option<GroupSettings>,
    /// Who reads.
    pub members: Vec<MemberDescription>,
    /// How far it has come.
    pub progress: Vec<Progress>,
}

/// Figures of a group, over all shards that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats {
    /// Whose it is.
    pub tenant: Tenant,
    /// Its name.
    pub group: GroupName,
    /// How many members it has.
    pub members: usize,
    /// Records that are there and not done.
    pub lag: u64,
    /// Records that are leased to members.
    pub in_flight: u64,
    /// Records that wait to be delivered again.
    pub waiting: u64,
    /// Records that were delivered more than once.
    pub redelivered: u64,
    /// Records that went to the dead-letter stream.
    pub dead_lettered: u64,
    /// Records that were passed over.
    pub passed_over: u64,
    /// Offsets that retention took too early.
    pub lost: u64,
    /// Kafka: rebalances of a group that had members.
    pub rebalances: u64,
}

impl GroupStats {
    pub(super) fn of(tenant: Tenant, listing: GroupListing, progress: &[Progress], rebalances: u64) -> Self {
        let sum = |of: fn(&Progress) -> u64| progress.iter().map(of).sum();
        GroupStats {
            tenant,
            group: listing.name,
            members: listing.members,
            lag: sum(|of| of.lag.unwrap_or(0)),
            in_flight: sum(|of| of.in_flight),
            waiting: sum(|of| of.waiting),
            redelivered: sum(|of| of.redelivered),
            dead_lettered: sum(|of| of.dead_lettered),
            passed_over: sum(|of| of.passed_over),
            lost: sum(|of| of.lost),
            rebalances,
        }
    }
}
