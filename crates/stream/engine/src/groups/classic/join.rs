//! Who is let in, and what joining again means (KIP-345, KIP-394, KIP-814).

use super::answer::{Answer, Wakers, pair};
use super::group::{Group, Id, Member, Phase, metadata_bytes};
use super::types::{ClassicError, JoinRequest, Joined};
use crate::groups::limits::{
    ID_BYTES_MAX, METADATA_BYTES_MAX, PROTOCOLS_MAX, SESSION_TIMEOUT_MS_MAX, SESSION_TIMEOUT_MS_MIN,
};

impl Group {
    /// A member joins, or joins again. `fresh` is the id that it gets if it has none.
    pub(super) fn join(
        &mut self,
        now: u64,
        request: JoinRequest,
        fresh: &Id,
        wakers: &mut Wakers,
    ) -> Answer<Joined> {
        self.admit(now, request, fresh, wakers).unwrap_or_else(|error| Answer::ready(Err(error)))
    }

    fn admit(
        &mut self,
        now: u64,
        request: JoinRequest,
        fresh: &Id,
        wakers: &mut Wakers,
    ) -> Result<Answer<Joined>, ClassicError> {
        check(&request)?;
        let instance = request.instance_id.as_deref();
        let known = match request.member_id.as_str() {
            "" => instance.and_then(|instance| self.instances.get(instance)).cloned(),
            id => Some(Id::from(id)),
        };
        if !self.fits(known.as_deref(), &request.protocol_type, &request.protocols) {
            return Err(ClassicError::InconsistentGroupProtocol);
        }
        match known {
            Some(before) if request.member_id.is_empty() => {
                Ok(self.replace(now, &before, request, fresh, wakers))
            }
            Some(id) => self.admit_again(now, &id, request, wakers),
            None => self.admit_new(now, request, fresh, wakers),
        }
    }

    fn admit_new(
        &mut self,
        now: u64,
        request: JoinRequest,
        fresh: &Id,
        wakers: &mut Wakers,
    ) -> Result<Answer<Joined>, ClassicError> {
        self.check_room(metadata_bytes(&request.protocols))?;
        if request.require_member_id && request.instance_id.is_none() {
            let void = now + u64::from(request.session_timeout_ms);
            self.promised.insert(fresh.clone(), void);
            self.sessions.insert((void, fresh.clone()));
            return Err(ClassicError::MemberIdRequired { member_id: fresh.to_string() });
        }
        Ok(self.let_in(now, fresh, request, wakers))
    }

    /// The group is rebalanced with a new member.
    fn let_in(&mut self, now: u64, id: &Id, request: JoinRequest, wakers: &mut Wakers) -> Answer<Joined> {
        if self.members.is_empty() {
            self.protocol_type.clone_from(&request.protocol_type);
        }
        let (promise, answer) = pair();
        let mut member = Member::new(request, now, self.next_place());
        member.join = Some(promise);
        // In the old generation there is nothing for it to sync: it is not counted there.
        member.synced = true;
        self.add(id, member);
        self.prepare(now, wakers);
        self.complete_if_all_joined(now, wakers);
        answer
    }

    fn admit_again(
        &mut self,
        now: u64,
        id: &Id,
        request: JoinRequest,
        wakers: &mut Wakers,
    ) -> Result<Answer<Joined>, ClassicError> {
        if request.instance_id.is_none() && self.promised.contains_key(id) {
            self.check_room(metadata_bytes(&request.protocols)).or_else(|error| match error {
                // Its own place is among those that are taken.
                ClassicError::GroupMaxSizeReached => Ok(()),
                error => Err(error),
            })?;
            self.forget_promise(id);
            return Ok(self.let_in(now, id, request, wakers));
        }
        self.check_identity(id, request.instance_id.as_deref())?;
        let Some(member) = self.members.get(id) else { return Err(ClassicError::UnknownMemberId) };
        let is_same = member.protocols == request.protocols;
        let leads = self.leader.as_ref() == Some(id);
        match self.phase {
            // The answer to its join was lost: it is given again.
            Phase::Completing if is_same => {
                self.touch(id, now);
                return Ok(Answer::ready(Ok(self.joined(id))));
            }
            // Nothing is new about it. A leader that joins again wants to assign anew.
            Phase::Stable if is_same && !leads => {
                self.touch(id, now);
                return Ok(Answer::ready(Ok(self.joined(id))));
            }
            Phase::Empty | Phase::Preparing { .. } | Phase::Completing | Phase::Stable => {}
        }
        self.tell_anew(id, request);
        Ok(self.join_again(now, id, wakers))
    }

    /// A member waits for the next generation.
    fn join_again(&mut self, now: u64, id: &Id, wakers: &mut Wakers) -> Answer<Joined> {
        self.touch(id, now);
        self.prepare(now, wakers);
        let (promise, answer) = pair();
        if let Some(member) = self.members.get_mut(id) {
            match member.join.replace(promise) {
                // A connection that was lost, most likely: it is answered for its client to join with the new
                // one.
                Some(earlier) => earlier.give(Err(ClassicError::RebalanceInProgress), wakers),
                None => self.joining += 1,
            }
        }
        self.complete_if_all_joined(now, wakers);
        answer
    }

    /// A static member comes back without its id: it takes the place of the one before, which is fenced off
    /// (KIP-345). If it tells the same about itself, nobody else notices.
    fn replace(
        &mut self,
        now: u64,
        before: &Id,
        request: JoinRequest,
        fresh: &Id,
        wakers: &mut Wakers,
    ) -> Answer<Joined> {
        let can_skip = request.can_skip_assignment;
        let led = self.leader.as_ref() == Some(before);
        let Some(mut old) = self.remove(before) else {
            return Answer::ready(Err(ClassicError::UnknownMemberId));
        };
        old.refuse(&ClassicError::FencedInstanceId, wakers);
        let is_same = old.protocols == request.protocols;
        let mut member = Member::new(request, now, old.place);
        (member.assignment, member.synced) = (old.assignment, true);
        self.add(fresh, member);
        if led {
            self.leader = Some(fresh.clone());
        }
        if self.phase != Phase::Stable || !is_same {
            return self.join_again(now, fresh, wakers);
        }
        let mut joined = self.joined(fresh);
        if led && can_skip {
            joined.skip_assignment = true;
        } else if led {
            // An older client assigns if it finds itself to be the leader; it must not.
            (joined.leader, joined.members) = (before.to_string(), Vec::new());
        }
        Answer::ready(Ok(joined))
    }

    pub(super) fn forget_promise(&mut self, id: &str) -> bool {
        match self.promised.remove_entry(id) {
            Some((id, void)) => self.sessions.remove(&(void, id)),
            None => false,
        }
    }
}

/// Bounds what a request may ask for.
fn check(request: &JoinRequest) -> Result<(), ClassicError> {
    let (min_ms, max_ms) = (SESSION_TIMEOUT_MS_MIN, SESSION_TIMEOUT_MS_MAX);
    if !(min_ms..=max_ms).contains(&request.session_timeout_ms) {
        return Err(ClassicError::InvalidSessionTimeout { min_ms, max_ms });
    }
    if request.protocol_type.is_empty() || request.protocols.is_empty() {
        return Err(ClassicError::InconsistentGroupProtocol);
    }
    bound("a list of protocols", request.protocols.len(), PROTOCOLS_MAX)?;
    bound("the metadata of a member", metadata_bytes(&request.protocols), METADATA_BYTES_MAX)?;
    let names = request.protocols.iter().map(|(name, _)| name.as_str());
    let texts = [&request.member_id, &request.client_id, &request.client_host, &request.protocol_type];
    let texts = texts.into_iter().map(String::as_str).chain(request.instance_id.as_deref()).chain(names);
    for text in texts {
        bound("a name", text.len(), ID_BYTES_MAX)?;
    }
    Ok(())
}

pub(super) fn bound(what: &'static str, bytes: usize, limit: usize) -> Result<(), ClassicError> {
    if bytes > limit { Err(ClassicError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}
