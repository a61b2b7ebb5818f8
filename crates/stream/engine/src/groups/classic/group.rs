//! A classic group as a state machine: requests and times go in, answers come out. No clock, no lock, no I/O.
//!
//! ```text
//!            join                    all joined, or time is up              the leader syncs
//!   Empty ─────────> PreparingRebalance ──────────────> CompletingRebalance ──────────────> Stable
//!     ^                 │    ^   ^                             │  join, leave, session ends    │
//!     └─ nobody left ───┘    │   └─────────────────────────────┘                               │
//!                            └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! - The generation rises with each completed rebalance, and only what the leader of the present generation
//!   brings is assigned.
//! - Every join and every sync is answered exactly once: by the group, by a later request of the same member,
//!   or by the end of the group.
//! - Sessions stand in one ordered set. However many end at once, a group begins one rebalance for all of
//!   them.
//!
//! Cost: a heartbeat is two steps in a tree; a rebalance looks at each member once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use super::answer::{Promise, Wakers};
use super::types::{ClassicError, JoinRequest, Joined, JoinedMember, MemberRef, Synced};
use crate::groups::limits::{GROUP_METADATA_BYTES_MAX, MEMBERS_MAX, REBALANCE_TIMEOUT_MS_MAX};

/// What the group is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nobody is there.
    Empty,
    /// Members join, until all have or the time is up.
    Preparing {
        /// When the rest is left behind.
        until: u64,
        /// The group was empty: more are expected, and nobody is waited for in particular. Not after this
        /// time.
        initial: Option<u64>,
    },
    /// Members wait for what the leader assigns.
    Completing,
    /// Everybody works.
    Stable,
}

impl Phase {
    /// As Kafka's protocol calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Empty => "Empty",
            Phase::Preparing { .. } => "PreparingRebalance",
            Phase::Completing => "CompletingRebalance",
            Phase::Stable => "Stable",
        }
    }
}

/// The id of a member: shared by all the places that name it.
pub(super) type Id = Arc<str>;

/// A member.
pub(super) struct Member {
    pub(super) instance: Option<String>,
    pub(super) client: String,
    pub(super) host: String,
    pub(super) protocols: Vec<(String, Bytes)>,
    pub(super) session_ms: u64,
    pub(super) rebalance_ms: u64,
    /// When its session ends.
    pub(super) ends: u64,
    /// Its place in the order of joining.
    pub(super) place: u64,
    pub(super) join: Option<Promise<Joined>>,
    pub(super) sync: Option<Promise<Synced>>,
    /// It has asked for its assignment in this generation.
    pub(super) synced: bool,
    pub(super) assignment: Bytes,
}

impl Member {
    pub(super) fn new(request: JoinRequest, now: u64, place: u64) -> Self {
        let session_ms = u64::from(request.session_timeout_ms);
        Member {
            instance: request.instance_id,
            client: request.client_id,
            host: request.client_host,
            protocols: request.protocols,
            session_ms,
            rebalance_ms: rebalance_ms(request.rebalance_timeout_ms),
            ends: now + session_ms,
            place,
            join: None,
            sync: None,
            synced: false,
            assignment: Bytes::new(),
        }
    }

    /// What it told about itself for a protocol.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }

    /// Somebody holds its connection open for an answer: its session does not run.
    pub(super) fn is_waiting(&self) -> bool {
        self.join.as_ref().is_some_and(|join| !join.is_abandoned())
            || self.sync.as_ref().is_some_and(|sync| !sync.is_abandoned())
    }

    fn bytes(&self) -> usize {
        metadata_bytes(&self.protocols)
    }

    /// Answers what it waits for.
    pub(super) fn refuse(&mut self, error: &ClassicError, wakers: &mut Wakers) {
        if let Some(join) = self.join.take() {
            join.give(Err(error.clone()), wakers);
        }
        if let Some(sync) = self.sync.take() {
            sync.give(Err(error.clone()), wakers);
        }
    }
}

/// Clients that poll when they like ask for years (`max.poll.interval.ms`): nobody is waited for so long.
fn rebalance_ms(asked: u32) -> u64 {
    asked.min(REBALANCE_TIMEOUT_MS_MAX).into()
}

/// Bytes of what a member tells about itself.
pub(super) fn metadata_bytes(protocols: &[(String, Bytes)]) -> usize {
    protocols.iter().map(|(name, metadata)| name.len() + metadata.len()).sum()
}

/// See the module.
pub(in crate::groups) struct Group {
    pub(super) phase: Phase,
    pub(super) generation: i32,
    pub(super) protocol_type: String,
    pub(super) protocol: String,
    pub(super) leader: Option<Id>,
    pub(super) members: BTreeMap<Id, Member>,
    /// Who uses an instance id (KIP-345).
    pub(super) instances: HashMap<String, Id, foldhash::fast::RandomState>,
    /// Ids that were given out and have not come back yet (KIP-394), and when they are void.
    pub(super) promised: BTreeMap<Id, u64>,
    /// Ends of sessions, of members and of ids that were given out.
    pub(super) sessions: BTreeSet<(u64, Id)>,
    /// How many members know a protocol.
    support: HashMap<String, usize, foldhash::fast::RandomState>,
    /// How many members wait to join.
    pub(super) joining: usize,
    /// How many members have not asked for their assignment, and when they must have.
    pub(super) unsynced: usize,
    pub(super) sync_until: u64,
    bytes: usize,
    places: u64,
    /// A member is gone, and the others have not been told yet.
    pub(super) lost: bool,
    pub(super) rebalances: u64,
}

impl Default for Group {
    fn default() -> Self {
        Group {
            phase: Phase::Empty,
            generation: 0,
            protocol_type: String::new(),
            protocol: String::new(),
            leader: None,
            members: BTreeMap::new(),
            instances: HashMap::default(),
            promised: BTreeMap::new(),
            sessions: BTreeSet::new(),
            support: HashMap::default(),
            joining: 0,
            unsynced: 0,
            sync_until: 0,
            bytes: 0,
            places: 0,
            lost: false,
            rebalances: 0,
        }
    }
}

impl Group {
    /// Whether nobody is in it or about to be.
    pub(in crate::groups) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.promised.is_empty()
    }

    pub(in crate::groups) fn members(&self) -> usize {
        self.members.len()
    }

    /// Takes a new member in, whose join is answered later.
    pub(super) fn add(&mut self, id: &Id, member: Member) {
        self.places += 1;
        self.bytes += member.bytes();
        self.joining += usize::from(member.join.is_some());
        self.sessions.insert((member.ends, id.clone()));
        self.count_support(&member.protocols, true);
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.members.insert(id.clone(), member);
    }

    /// Takes a member out; what it waits for is the caller's to answer.
    pub(super) fn remove(&mut self, id: &str) -> Option<Member> {
        let (id, member) = self.members.remove_entry(id)?;
        self.bytes -= member.bytes();
        self.joining -= usize::from(member.join.is_some());
        self.unsynced -= usize::from(self.counts_syncs() && !member.synced);
        self.sessions.remove(&(member.ends, id.clone()));
        self.count_support(&member.protocols, false);
        if let Some(instance) = &member.instance
            && self.instances.get(instance).is_some_and(|user| *user == id)
        {
            self.instances.remove(instance);
        }
        if self.leader.as_ref() == Some(&id) {
            self.leader = None;
        }
        Some(member)
    }

    /// Whether `unsynced` means something now.
    pub(super) fn counts_syncs(&self) -> bool {
        matches!(self.phase, Phase::Completing | Phase::Stable)
    }

    pub(super) fn next_place(&self) -> u64 {
        self.places
    }

    fn count_support(&mut self, protocols: &[(String, Bytes)], more: bool) {
        for (name, _) in protocols {
            if more {
                *self.support.entry_ref(name).or_insert(0) += 1;
            } else if let Some(count) = self.support.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.support.remove(name);
                }
            }
        }
    }

    /// What a member tells about itself is replaced.
    pub(super) fn tell_anew(&mut self, id: &str, request: JoinRequest) {
        let Some(member) = self.members.get_mut(id) else { return };
        let before = member.bytes();
        let old = std::mem::replace(&mut member.protocols, request.protocols);
        (member.client, member.host) = (request.client_id, request.client_host);
        member.session_ms = request.session_timeout_ms.into();
        member.rebalance_ms = rebalance_ms(request.rebalance_timeout_ms);
        let new = member.protocols.clone();
        self.bytes = self.bytes - before + metadata_bytes(&new);
        self.count_support(&old, false);
        self.count_support(&new, true);
    }

    /// The member was heard of: its session begins anew.
    pub(super) fn touch(&mut self, id: &str, now: u64) {
        let Some((id, member)) = self.members.get_key_value(id) else { return };
        let (id, before, ends) = (id.clone(), member.ends, now + member.session_ms);
        self.sessions.remove(&(before, id.clone()));
        self.sessions.insert((ends, id.clone()));
        if let Some(member) = self.members.get_mut(&id) {
            member.ends = ends;
        }
    }

    /// Whether a protocol is known to all members.
    pub(super) fn is_common(&self, protocol: &str) -> bool {
        self.support.get(protocol) == Some(&self.members.len())
    }

    /// Whether a member that knows these protocols, `id` if it is in already, shares one with all others.
    pub(super) fn fits(&self, id: Option<&str>, protocol_type: &str, protocols: &[(String, Bytes)]) -> bool {
        let own = id.and_then(|id| self.members.get(id));
        let others = self.members.len() - usize::from(own.is_some());
        if others == 0 {
            return own.is_none() || protocol_type == self.protocol_type;
        }
        let knows =
            |name: &str| own.is_some_and(|member| member.protocols.iter().any(|(known, _)| known == name));
        let shared =
            |name: &str| self.support.get(name).copied().unwrap_or(0) - usize::from(knows(name)) == others;
        protocol_type == self.protocol_type && protocols.iter().any(|(name, _)| shared(name))
    }

    /// Whether there is room for one more member that tells so much about itself.
    pub(super) fn check_room(&self, bytes: usize) -> Result<(), ClassicError> {
        if self.members.len() + self.promised.len() >= MEMBERS_MAX {
            return Err(ClassicError::GroupMaxSizeReached);
        }
        let (bytes, limit) = (self.bytes + bytes, GROUP_METADATA_BYTES_MAX);
        match bytes > limit {
            true => Err(ClassicError::TooLarge { what: "the metadata of a group", bytes, limit }),
            false => Ok(()),
        }
    }

    /// Whether somebody is who it says it is.
    pub(super) fn check_identity(&self, id: &str, instance: Option<&str>) -> Result<(), ClassicError> {
        if let Some(instance) = instance {
            let user = self.instances.get(instance).ok_or(ClassicError::UnknownMemberId)?;
            if **user != *id {
                return Err(ClassicError::FencedInstanceId);
            }
        }
        match self.members.contains_key(id) {
            true => Ok(()),
            false => Err(ClassicError::UnknownMemberId),
        }
    }

    /// Whether a member speaks of the present generation.
    pub(super) fn check_member(&self, member: &MemberRef) -> Result<(), ClassicError> {
        self.check_identity(&member.member_id, member.instance_id.as_deref())?;
        match member.generation == self.generation {
            true => Ok(()),
            false => Err(ClassicError::IllegalGeneration { generation: self.generation }),
        }
    }

    /// What a member is told that is in already.
    pub(super) fn joined(&self, id: &str) -> Joined {
        let leads = self.leader.as_deref() == Some(id);
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.as_deref().unwrap_or_default().to_owned(),
            member_id: id.to_owned(),
            skip_assignment: false,
            members: if leads { self.roster() } else { Vec::new() },
        }
    }

    /// All members, for the leader.
    pub(super) fn roster(&self) -> Vec<JoinedMember> {
        let member = |(id, member): (&Id, &Member)| JoinedMember {
            member_id: id.to_string(),
            instance_id: member.instance.clone(),
            metadata: member.metadata(&self.protocol),
        };
        self.members.iter().map(member).collect()
    }

    /// What a member is assigned.
    pub(super) fn synced(&self, id: &str) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: self.members.get(id).map(|member| member.assignment.clone()).unwrap_or_default(),
        }
    }
}
