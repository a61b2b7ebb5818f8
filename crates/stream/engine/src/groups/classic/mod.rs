//! Kafka's classic group protocol: the coordinator's side of JoinGroup, SyncGroup, Heartbeat and LeaveGroup.
//!
//! `group.rs`, `join.rs` and `rebalance.rs` are the rules, a state machine over times that it is given; this
//! module puts one behind a lock for each group. Answers that others have to come for are futures
//! ([`Answer`]).
//!
//! Obeys KIP-62 (rebalance timeout), KIP-345 (static members), KIP-389 (largest group), KIP-394 (member ids),
//! KIP-559 (protocol in SyncGroup) and KIP-814 (a static leader that comes back). Times are those of a clock
//! that moves on by [`CLOCK_STEP_MS_MAX`](super::limits::CLOCK_STEP_MS_MAX) at most between two looks at it,
//! so that a clock that jumps ends no session.

mod answer;
pub(super) mod group;
mod join;
mod rebalance;
mod types;

use std::sync::Arc;

use trifid_stream_model::names::{GroupName, Tenant};

use super::limits;
use super::shared::Shared;
use super::table::State;
use super::types::MemberDescription;
use answer::Wakers;
use group::Group;

pub use answer::Answer;
pub use types::{ClassicError, JoinRequest, Joined, JoinedMember, Leaving, MemberRef, SyncRequest, Synced};

/// The coordinator of the groups whose members speak Kafka's classic protocol.
#[derive(Clone)]
pub struct Classic {
    shared: Arc<Shared>,
}

impl Classic {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Classic { shared }
    }

    /// A member joins, or joins again (JoinGroup). Answered when the group's next generation begins; at once
    /// if there is nothing to wait for, or it is refused.
    pub fn join(&self, tenant: &Tenant, request: JoinRequest) -> Answer<Joined> {
        if self.shared.is_draining() {
            return Answer::ready(Err(ClassicError::NotAvailable));
        }
        let fresh = self.fresh_id(&request);
        let mut request = Some(request);
        loop {
            let name = request.as_ref().map(|request| request.group.clone());
            let found = name.map(|name| self.shared.table.get_or_make(tenant, &name));
            let Some(Ok(cell)) = found else { return Answer::ready(Err(ClassicError::NotAvailable)) };
            let mut state = cell.lock();
            if state.is_dead {
                continue;
            }
            let Some(request) = request.take() else { return Answer::ready(Err(ClassicError::NotAvailable)) };
            if state.work.as_ref().is_some_and(|work| work.members() > 0) {
                return Answer::ready(Err(ClassicError::InconsistentGroupProtocol));
            }
            let now = self.shared.now();
            state.active_at = now;
            let mut wakers = Wakers::new();
            let answer = state.classic.join(now, request, &fresh, &mut wakers);
            drop(state);
            wake(wakers);
            return answer;
        }
    }

    /// The client's name and a hundred and twenty-eight bits of chance, as Kafka's coordinator makes them.
    fn fresh_id(&self, request: &JoinRequest) -> Arc<str> {
        let entropy = &self.shared.streams.room.entropy;
        let name = request.instance_id.as_deref().unwrap_or(&request.client_id);
        let name = &name[..name.floor_char_boundary(limits::ID_NAME_BYTES_MAX)];
        format!("{name}-{:016x}{:016x}", entropy.next_u64(), entropy.next_u64()).into()
    }

    /// A member asks for its assignment; the leader brings all (SyncGroup). Answered when the leader has.
    pub fn sync(&self, tenant: &Tenant, request: SyncRequest) -> Answer<Synced> {
        let name = request.group.clone();
        let answered = self.with(tenant, &name, |group, now, wakers| Ok(group.sync(now, request, wakers)));
        answered.unwrap_or_else(|error| Answer::ready(Err(error)))
    }

    /// A member is alive (Heartbeat).
    pub fn heartbeat(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        member: &MemberRef,
    ) -> Result<(), ClassicError> {
        self.with(tenant, group, |group, now, _| group.heartbeat(now, member))
    }

    /// Members leave (LeaveGroup); one answer for each.
    pub fn leave(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        leaving: &[Leaving],
    ) -> Vec<Result<(), ClassicError>> {
        let answers = self.with(tenant, group, |group, now, wakers| Ok(group.leave(now, leaving, wakers)));
        answers.unwrap_or_else(|error| leaving.iter().map(|_| Err(error.clone())).collect())
    }

    /// Whether a member may commit offsets now: see also [`Groups::commit_as`](super::Groups::commit_as),
    /// which does both.
    pub fn check_commit(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        member: &MemberRef,
    ) -> Result<(), ClassicError> {
        match self.with(tenant, group, |group, now, _| group.check_commit(now, member)) {
            // Nobody is in a group that is not there.
            Err(ClassicError::UnknownMemberId) if member.generation < 0 => {
                match self.shared.table.get(tenant, group) {
                    None => Ok(()),
                    Some(_) => Err(ClassicError::UnknownMemberId),
                }
            }
            checked => checked,
        }
    }

    fn with<T>(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        act: impl FnOnce(&mut Group, u64, &mut Wakers) -> Result<T, ClassicError>,
    ) -> Result<T, ClassicError> {
        let cell = self.shared.table.get(tenant, group).ok_or(ClassicError::UnknownMemberId)?;
        let mut wakers = Wakers::new();
        let mut state = cell.lock();
        let now = self.shared.now();
        state.active_at = now;
        let result = act(&mut state.classic, now, &mut wakers);
        drop(state);
        wake(wakers);
        result
    }
}

/// What time does to one group; see [`Group::tick`].
pub(super) fn tick(state: &mut State, now: u64, budget: &mut usize) -> Wakers {
    let mut wakers = Wakers::new();
    state.classic.tick(now, budget, &mut wakers);
    wakers
}

pub(super) fn wake(wakers: Wakers) {
    for waker in wakers {
        waker.wake();
    }
}

impl Group {
    /// As Kafka's protocol calls what it is doing.
    pub(super) fn state_name(&self) -> &'static str {
        self.phase.name()
    }

    pub(super) fn is_rebalancing(&self) -> bool {
        matches!(self.phase, group::Phase::Preparing { .. } | group::Phase::Completing)
    }

    pub(super) fn protocol_type(&self) -> &str {
        &self.protocol_type
    }

    pub(super) fn protocol_name(&self) -> &str {
        &self.protocol
    }

    pub(super) fn rebalances(&self) -> u64 {
        self.rebalances
    }

    pub(super) fn generation(&self) -> i32 {
        self.generation
    }

    pub(super) fn describe_members(&self) -> Vec<MemberDescription> {
        let describe = |(id, member): (&group::Id, &group::Member)| MemberDescription {
            member: id.to_string(),
            instance: member.instance.clone(),
            client: member.client.clone(),
            host: member.host.clone(),
            in_flight: 0,
            metadata: member.metadata(&self.protocol),
            assignment: member.assignment.clone(),
        };
        self.members.iter().map(describe).collect()
    }
}

#[cfg(test)]
mod tests;
