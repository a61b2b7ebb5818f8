//! What Kafka's consumers ask of a group, and what they are told. No wire types: the face has those.

use bytes::Bytes;
use trifid_stream_model::names::GroupName;

/// Why a classic member is refused; each case is one error code of Kafka's protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassicError {
    /// UNKNOWN_MEMBER_ID: it was expelled, or never there.
    #[error("the member is not in the group")]
    UnknownMemberId,
    /// ILLEGAL_GENERATION: the group has been rebalanced since.
    #[error("the generation is {generation}")]
    IllegalGeneration {
        /// The present one.
        generation: i32,
    },
    /// REBALANCE_IN_PROGRESS: join again.
    #[error("the group is being rebalanced")]
    RebalanceInProgress,
    /// INCONSISTENT_GROUP_PROTOCOL: no protocol in common with the other members, or another type of group.
    #[error("the member has no protocol in common with the group")]
    InconsistentGroupProtocol,
    /// MEMBER_ID_REQUIRED (KIP-394): join again with this id.
    #[error("a member id is required")]
    MemberIdRequired {
        /// The id that was made for it.
        member_id: String,
    },
    /// FENCED_INSTANCE_ID (KIP-345): another member has taken this instance id.
    #[error("another member uses the instance id")]
    FencedInstanceId,
    /// GROUP_MAX_SIZE_REACHED (KIP-389).
    #[error("the group has as many members as are allowed")]
    GroupMaxSizeReached,
    /// INVALID_SESSION_TIMEOUT.
    #[error("the session timeout must lie between {min_ms} and {max_ms} ms")]
    InvalidSessionTimeout {
        /// The least that is allowed.
        min_ms: u32,
        /// The most that is allowed.
        max_ms: u32,
    },
    /// INVALID_REQUEST: something is longer than allowed.
    #[error("{what} of {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// What.
        what: &'static str,
        /// What it has.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// COORDINATOR_NOT_AVAILABLE: this broker holds as many groups as it may, or is about to end.
    #[error("the coordinator takes no more")]
    NotAvailable,
}

/// A member joins, or joins again (JoinGroup).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// The group.
    pub group: GroupName,
    /// Empty at first.
    pub member_id: String,
    /// `group.instance.id` (KIP-345).
    pub instance_id: Option<String>,
    /// What the client calls itself.
    pub client_id: String,
    /// Where it connects from.
    pub client_host: String,
    /// `consumer`, `connect`, ...
    pub protocol_type: String,
    /// Ways to assign that it knows, the one it likes best first, with what the leader needs to know about
    /// it.
    pub protocols: Vec<(String, Bytes)>,
    /// It is expelled if it is not heard of for so long.
    pub session_timeout_ms: u32,
    /// How long it may take to join again when the group is rebalanced; an hour at most.
    pub rebalance_timeout_ms: u32,
    /// A new member is told its id before it is let in (KIP-394): JoinGroup from version 4.
    pub require_member_id: bool,
    /// A leader that comes back as the same instance can be told to keep the assignment (KIP-814): JoinGroup
    /// from version 9.
    pub can_skip_assignment: bool,
}

/// A member is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Rises with each rebalance.
    pub generation: i32,
    /// As all members named it.
    pub protocol_type: String,
    /// The way to assign that most members like.
    pub protocol: String,
    /// Who assigns.
    pub leader: String,
    /// Its own id.
    pub member_id: String,
    /// It leads, and the assignment stands (KIP-814).
    pub skip_assignment: bool,
    /// All members, for the leader; empty for the others.
    pub members: Vec<JoinedMember>,
}

/// A member, as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member_id: String,
    /// Its instance id.
    pub instance_id: Option<String>,
    /// What it told about itself for the chosen protocol.
    pub metadata: Bytes,
}

/// A member asks for its assignment; the leader brings all of them (SyncGroup).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// The group.
    pub group: GroupName,
    /// The generation that it joined.
    pub generation: i32,
    /// Its id.
    pub member_id: String,
    /// Its instance id.
    pub instance_id: Option<String>,
    /// What it believes the type of the group to be (KIP-559), from version 5.
    pub protocol_type: Option<String>,
    /// What it believes the chosen protocol to be (KIP-559), from version 5.
    pub protocol: Option<String>,
    /// Member ids and what they are assigned; empty unless it leads.
    pub assignments: Vec<(String, Bytes)>,
}

/// What a member has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// The type of the group.
    pub protocol_type: String,
    /// The chosen protocol.
    pub protocol: String,
    /// What the leader assigned.
    pub assignment: Bytes,
}

/// Who is meant: Heartbeat, OffsetCommit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRef {
    /// The generation that it joined; negative: it is no member and only commits.
    pub generation: i32,
    /// Its id.
    pub member_id: String,
    /// Its instance id.
    pub instance_id: Option<String>,
}

/// Who leaves (LeaveGroup; several at once since KIP-345).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its id; empty if the instance id says who it is.
    pub member_id: String,
    /// Its instance id.
    pub instance_id: Option<String>,
}
