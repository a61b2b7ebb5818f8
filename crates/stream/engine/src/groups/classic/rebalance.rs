//! From one generation to the next: waiting for the members, choosing leader and protocol, handing out what
//! the leader assigned, and what time does to those who are late.

use bytes::Bytes;
use hashbrown::HashMap;

use super::answer::{Answer, Wakers, pair};
use super::group::{Group, Id, Phase};
use super::join::bound;
use super::types::{ClassicError, Leaving, MemberRef, SyncRequest, Synced};
use crate::groups::limits::{ASSIGNMENT_BYTES_MAX, GROUP_ASSIGNMENT_BYTES_MAX, INITIAL_REBALANCE_DELAY_MS};

impl Group {
    /// A rebalance begins, unless one is under way.
    pub(super) fn prepare(&mut self, now: u64, wakers: &mut Wakers) {
        let longest = self.members.values().map(|member| member.rebalance_ms);
        self.phase = match self.phase {
            Phase::Empty => {
                let limit = now + longest.max().unwrap_or(0);
                Phase::Preparing { until: limit.min(now + INITIAL_REBALANCE_DELAY_MS), initial: Some(limit) }
            }
            // More come: a little more time for those after them.
            Phase::Preparing { until, initial: Some(limit) } => {
                let until = until.max(limit.min(now + INITIAL_REBALANCE_DELAY_MS));
                Phase::Preparing { until, initial: Some(limit) }
            }
            preparing @ Phase::Preparing { .. } => preparing,
            Phase::Completing | Phase::Stable => {
                let until = now + longest.max().unwrap_or(0);
                self.refuse_syncs(wakers);
                self.rebalances += 1;
                Phase::Preparing { until, initial: None }
            }
        };
    }

    /// Who waits for an assignment must join again.
    fn refuse_syncs(&mut self, wakers: &mut Wakers) {
        for member in self.members.values_mut() {
            if let Some(sync) = member.sync.take() {
                sync.give(Err(ClassicError::RebalanceInProgress), wakers);
            }
        }
        self.unsynced = 0;
    }

    /// Goes on if nobody is waited for.
    pub(super) fn complete_if_all_joined(&mut self, now: u64, wakers: &mut Wakers) {
        let Phase::Preparing { initial, .. } = self.phase else { return };
        let all = self.joining == self.members.len() && self.promised.is_empty();
        if self.members.is_empty() || (initial.is_none() && all) {
            self.complete(now, wakers);
        }
    }

    /// The members are who has joined by now, and static ones whose session goes on (KIP-345).
    fn complete(&mut self, now: u64, wakers: &mut Wakers) {
        let late =
            self.members.iter().filter(|(_, member)| member.join.is_none() && member.instance.is_none());
        let late: Vec<Id> = late.map(|(id, _)| id.clone()).collect();
        for id in late {
            self.remove(&id);
        }
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        if self.members.is_empty() {
            (self.phase, self.leader) = (Phase::Empty, None);
            (self.protocol, self.protocol_type) = (String::new(), String::new());
            return;
        }
        self.choose_leader();
        if self.leader.is_none() {
            // Only static members are left, none of which has joined yet.
            let longest = self.members.values().map(|member| member.rebalance_ms).max();
            self.generation -= 1;
            self.phase = Phase::Preparing { until: now + longest.unwrap_or(0).max(1), initial: None };
            return;
        }
        self.protocol = self.choose_protocol();
        self.phase = Phase::Completing;
        self.begin_generation(now, wakers);
    }

    /// The leader stays if it has joined; otherwise the one that has been here longest leads.
    fn choose_leader(&mut self) {
        let joined = |id: &Id| self.members.get(id).is_some_and(|member| member.join.is_some());
        if !self.leader.as_ref().is_some_and(joined) {
            let candidates = self.members.iter().filter(|(_, member)| member.join.is_some());
            self.leader = candidates.min_by_key(|(_, member)| member.place).map(|(id, _)| id.clone());
        }
    }

    /// Each member votes for the first of its protocols that all know; the most votes win, and among equals
    /// what the leader likes best.
    fn choose_protocol(&self) -> String {
        let mut votes: HashMap<&str, usize> = HashMap::new();
        for member in self.members.values() {
            let choice = member.protocols.iter().find(|(name, _)| self.is_common(name));
            if let Some((name, _)) = choice {
                *votes.entry(name).or_default() += 1;
            }
        }
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        let offered = leader.into_iter().flat_map(|member| &member.protocols).map(|(name, _)| name.as_str());
        let preferred: Vec<_> = offered.filter(|name| self.is_common(name)).collect();
        // `max_by_key` takes the last of equals.
        let best = preferred.into_iter().rev().max_by_key(|name| votes.get(name).copied().unwrap_or(0));
        best.unwrap_or_default().to_owned()
    }

    fn begin_generation(&mut self, now: u64, wakers: &mut Wakers) {
        let longest = self.members.values().map(|member| member.rebalance_ms).max();
        // A static member that is away keeps its place until its session ends: it has nothing to sync yet.
        (self.sync_until, self.unsynced) = (now + longest.unwrap_or(0).max(1), self.joining);
        self.joining = 0;
        let ids: Vec<Id> = self.members.keys().cloned().collect();
        for id in ids {
            let joined = self.joined(&id);
            let Some(member) = self.members.get_mut(&id) else { continue };
            (member.synced, member.assignment) = (member.join.is_none(), Bytes::new());
            if let Some(join) = member.join.take() {
                join.give(Ok(joined), wakers);
                self.touch(&id, now);
            }
        }
    }

    /// A member asks for its assignment; the leader brings all.
    pub(super) fn sync(&mut self, now: u64, request: SyncRequest, wakers: &mut Wakers) -> Answer<Synced> {
        self.take_sync(now, request, wakers).unwrap_or_else(|error| Answer::ready(Err(error)))
    }

    fn take_sync(
        &mut self,
        now: u64,
        request: SyncRequest,
        wakers: &mut Wakers,
    ) -> Result<Answer<Synced>, ClassicError> {
        let SyncRequest { generation, member_id, instance_id, protocol_type, protocol, assignments, .. } =
            request;
        let member = MemberRef { generation, member_id, instance_id };
        self.check_member(&member)?;
        // KIP-559.
        let differs = |told: Option<String>, known: &str| told.is_some_and(|told| told != known);
        if differs(protocol_type, &self.protocol_type) || differs(protocol, &self.protocol) {
            return Err(ClassicError::InconsistentGroupProtocol);
        }
        let id = member.member_id.as_str();
        match self.phase {
            Phase::Empty => return Err(ClassicError::UnknownMemberId),
            Phase::Preparing { .. } => return Err(ClassicError::RebalanceInProgress),
            Phase::Completing if self.leader.as_deref() == Some(id) => self.assign(assignments, wakers)?,
            Phase::Completing | Phase::Stable => {}
        }
        self.touch(id, now);
        let phase = self.phase;
        let Some(member) = self.members.get_mut(id) else { return Err(ClassicError::UnknownMemberId) };
        self.unsynced -= usize::from(!member.synced);
        member.synced = true;
        if phase == Phase::Stable {
            return Ok(Answer::ready(Ok(self.synced(id))));
        }
        let (promise, answer) = pair();
        if let Some(earlier) = member.sync.replace(promise) {
            earlier.give(Err(ClassicError::RebalanceInProgress), wakers);
        }
        Ok(answer)
    }

    /// What the leader assigned is handed out. Who is not named is assigned nothing.
    fn assign(&mut self, assignments: Vec<(String, Bytes)>, wakers: &mut Wakers) -> Result<(), ClassicError> {
        let largest = assignments.iter().map(|(_, assignment)| assignment.len()).max();
        bound("an assignment", largest.unwrap_or(0), ASSIGNMENT_BYTES_MAX)?;
        let sum = assignments.iter().map(|(id, assignment)| id.len() + assignment.len()).sum();
        bound("the assignments of a group", sum, GROUP_ASSIGNMENT_BYTES_MAX)?;
        for (id, assignment) in assignments {
            if let Some(member) = self.members.get_mut(id.as_str()) {
                member.assignment = assignment;
            }
        }
        self.phase = Phase::Stable;
        for member in self.members.values_mut() {
            if let Some(sync) = member.sync.take() {
                let synced = Synced {
                    protocol_type: self.protocol_type.clone(),
                    protocol: self.protocol.clone(),
                    assignment: member.assignment.clone(),
                };
                sync.give(Ok(synced), wakers);
            }
        }
        Ok(())
    }

    /// A member is alive.
    pub(super) fn heartbeat(&mut self, now: u64, member: &MemberRef) -> Result<(), ClassicError> {
        self.check_member(member)?;
        self.touch(&member.member_id, now);
        match self.phase {
            Phase::Empty => Err(ClassicError::UnknownMemberId),
            Phase::Preparing { .. } => Err(ClassicError::RebalanceInProgress),
            Phase::Completing | Phase::Stable => Ok(()),
        }
    }

    /// Whether somebody may commit offsets: a member of the present generation; or, while nobody is in the
    /// group, whoever names no member (a consumer that assigns its shards itself).
    pub(in crate::groups) fn check_commit(
        &mut self,
        now: u64,
        member: &MemberRef,
    ) -> Result<(), ClassicError> {
        if member.generation < 0 && self.members.is_empty() {
            return Ok(());
        }
        self.check_member(member)?;
        self.touch(&member.member_id, now);
        match self.phase {
            Phase::Empty => Err(ClassicError::UnknownMemberId),
            Phase::Completing => Err(ClassicError::RebalanceInProgress),
            Phase::Preparing { .. } | Phase::Stable => Ok(()),
        }
    }

    /// Members leave; one answer for each.
    pub(super) fn leave(
        &mut self,
        now: u64,
        leaving: &[Leaving],
        wakers: &mut Wakers,
    ) -> Vec<Result<(), ClassicError>> {
        let answers = leaving.iter().map(|who| self.leave_one(who, wakers)).collect();
        self.after_loss(now, wakers);
        answers
    }

    fn leave_one(&mut self, who: &Leaving, wakers: &mut Wakers) -> Result<(), ClassicError> {
        if self.forget_promise(&who.member_id) {
            return Ok(());
        }
        let id = match (&who.instance_id, who.member_id.as_str()) {
            // KIP-345: an operator names the instance alone.
            (Some(instance), "") => self.instances.get(instance).cloned(),
            (_, id) => Some(Id::from(id)),
        };
        let id = id.ok_or(ClassicError::UnknownMemberId)?;
        self.check_identity(&id, who.instance_id.as_deref())?;
        if let Some(mut member) = self.remove(&id) {
            member.refuse(&ClassicError::UnknownMemberId, wakers);
        }
        self.lost = true;
        Ok(())
    }

    /// Somebody may be gone: the others share what it had.
    fn after_loss(&mut self, now: u64, wakers: &mut Wakers) {
        if std::mem::take(&mut self.lost) && self.counts_syncs() {
            self.prepare(now, wakers);
        }
        self.complete_if_all_joined(now, wakers);
    }

    /// What time does. At most `budget` sessions end; what is left comes with the next tick.
    pub(super) fn tick(&mut self, now: u64, budget: &mut usize, wakers: &mut Wakers) {
        while *budget > 0
            && let Some((ends, id)) = self.sessions.first()
            && *ends <= now
        {
            *budget -= 1;
            let id = id.clone();
            self.end_session(now, &id, wakers);
        }
        self.after_loss(now, wakers);
        match self.phase {
            Phase::Preparing { until, .. } if until <= now => self.complete(now, wakers),
            Phase::Completing | Phase::Stable if self.unsynced > 0 && self.sync_until <= now => {
                self.expel_unsynced(now, wakers);
            }
            Phase::Empty | Phase::Preparing { .. } | Phase::Completing | Phase::Stable => {}
        }
    }

    fn end_session(&mut self, now: u64, id: &Id, wakers: &mut Wakers) {
        if self.forget_promise(id) {
            return;
        }
        if self.members.get(id).is_some_and(|member| member.is_waiting()) {
            return self.touch(id, now);
        }
        if let Some(mut member) = self.remove(id) {
            member.refuse(&ClassicError::UnknownMemberId, wakers);
            self.lost = true;
        }
    }

    /// Members that joined and then never asked what to do.
    fn expel_unsynced(&mut self, now: u64, wakers: &mut Wakers) {
        let late: Vec<Id> =
            self.members.iter().filter(|(_, member)| !member.synced).map(|(id, _)| id.clone()).collect();
        for id in late {
            if let Some(mut member) = self.remove(&id) {
                member.refuse(&ClassicError::UnknownMemberId, wakers);
            }
        }
        self.lost = true;
        self.after_loss(now, wakers);
    }
}
