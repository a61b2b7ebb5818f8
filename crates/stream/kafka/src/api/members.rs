//! JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the classic protocol of consumer groups. The rules are the engine's;
//! here is what the versions of the messages make of them.

use std::rc::Rc;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;
use trifid_stream_engine::groups::{
    ClassicError, JoinRequest, Joined, Leaving, MemberRef, SyncRequest, Synced,
};
use trifid_stream_model::names::GroupName;

use super::caller::{Caller, text};
use super::{Started, codes, decode, encode};
use crate::server::End;
use crate::wire::head::Head;

/// The first version in which a new member is told its id before it is let in (KIP-394).
const MEMBER_ID_SINCE: i16 = 4;
/// The first version in which a leader can be told to keep the assignment (KIP-814).
const SKIP_SINCE: i16 = 9;
/// The first version whose members are told the type of their protocol (KIP-559).
const TYPE_SINCE: i16 = 7;

/// The group of this name. An empty one is none: a consumer without a group has no coordinator.
pub(crate) fn group_name(name: &str) -> Result<GroupName, ResponseError> {
    GroupName::new(name).map_err(|_| ResponseError::InvalidGroupId)
}

fn owned(text: Option<&StrBytes>) -> Option<String> {
    text.map(ToString::to_string)
}

/// A member joins, and waits for the others.
pub(crate) fn join(caller: &Rc<Caller>, head: Head, body: Bytes) -> Result<Started, End> {
    let request: JoinGroupRequest = decode(body, head.version)?;
    let caller = Rc::clone(caller);
    Ok(Started::Later(Box::pin(async move {
        let client =
            head.client.as_deref().and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
        let member = request.member_id.clone();
        let response = match join_request(&caller, &request, client, head.version) {
            Ok(request) => match caller.broker().groups().classic().join(&caller.tenant, request).await {
                Ok(joined) => welcome(joined, head.version),
                Err(error) => turned_away(&error, member, head.version),
            },
            Err(error) => refused(error, member, head.version),
        };
        encode(&head, &response)
    })))
}

fn join_request(
    caller: &Caller,
    request: &JoinGroupRequest,
    client: &str,
    version: i16,
) -> Result<JoinRequest, ResponseError> {
    let positive = |ms: i32| u32::try_from(ms).map_err(|_| ResponseError::InvalidSessionTimeout);
    let session_timeout_ms = positive(request.session_timeout_ms)?;
    // Version 0 has one timeout for both.
    let rebalance_timeout_ms =
        if version == 0 { session_timeout_ms } else { positive(request.rebalance_timeout_ms)? };
    Ok(JoinRequest {
        group: group_name(&request.group_id)?,
        member_id: request.member_id.to_string(),
        instance_id: owned(request.group_instance_id.as_ref()),
        client_id: client.to_owned(),
        client_host: caller.host.clone(),
        protocol_type: request.protocol_type.to_string(),
        // A copy: a slice would keep the request as long as the member stays.
        protocols: request
            .protocols
            .iter()
            .map(|protocol| (protocol.name.to_string(), Bytes::copy_from_slice(&protocol.metadata)))
            .collect(),
        session_timeout_ms,
        rebalance_timeout_ms,
        require_member_id: version >= MEMBER_ID_SINCE,
        can_skip_assignment: version >= SKIP_SINCE,
    })
}

fn welcome(joined: Joined, version: i16) -> JoinGroupResponse {
    let members = joined.members.into_iter().map(|member| {
        let instance = if version >= 5 { member.instance_id.map(text) } else { None };
        JoinGroupResponseMember::default()
            .with_member_id(text(member.member_id))
            .with_group_instance_id(instance)
            .with_metadata(member.metadata)
    });
    JoinGroupResponse::default()
        .with_generation_id(joined.generation)
        .with_protocol_type((version >= TYPE_SINCE).then(|| text(joined.protocol_type)))
        .with_protocol_name(Some(text(joined.protocol)))
        .with_leader(text(joined.leader))
        .with_skip_assignment(joined.skip_assignment && version >= SKIP_SINCE)
        .with_member_id(text(joined.member_id))
        .with_members(members.collect())
}

fn turned_away(error: &ClassicError, member: StrBytes, version: i16) -> JoinGroupResponse {
    let member = match error {
        ClassicError::MemberIdRequired { member_id } => text(member_id.as_str()),
        _ => member,
    };
    refused(codes::classic(error), member, version)
}

fn refused(error: ResponseError, member: StrBytes, version: i16) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(error.code())
        .with_generation_id(-1)
        // Null is a word that only later versions have.
        .with_protocol_name((version < TYPE_SINCE).then(StrBytes::new))
        .with_member_id(member)
}

/// A member asks for its assignment; the leader brings all of them.
pub(crate) async fn sync(caller: Rc<Caller>, request: SyncGroupRequest, version: i16) -> SyncGroupResponse {
    let synced = match sync_request(&request) {
        Ok(request) => {
            let synced = caller.broker().groups().classic().sync(&caller.tenant, request).await;
            synced.map_err(|error| codes::classic(&error))
        }
        Err(error) => Err(error),
    };
    match synced {
        Ok(Synced { protocol_type, protocol, assignment }) => {
            let response = SyncGroupResponse::default().with_assignment(assignment);
            match version {
                5.. => response
                    .with_protocol_type(Some(text(protocol_type)))
                    .with_protocol_name(Some(text(protocol))),
                _ => response,
            }
        }
        Err(error) => SyncGroupResponse::default().with_error_code(error.code()),
    }
}

fn sync_request(request: &SyncGroupRequest) -> Result<SyncRequest, ResponseError> {
    let assignments = request.assignments.iter();
    Ok(SyncRequest {
        group: group_name(&request.group_id)?,
        generation: request.generation_id,
        member_id: request.member_id.to_string(),
        instance_id: owned(request.group_instance_id.as_ref()),
        protocol_type: owned(request.protocol_type.as_ref()),
        protocol: owned(request.protocol_name.as_ref()),
        assignments: assignments
            .map(|one| (one.member_id.to_string(), Bytes::copy_from_slice(&one.assignment)))
            .collect(),
    })
}

/// A member lives.
pub(crate) async fn heartbeat(caller: Rc<Caller>, request: HeartbeatRequest, _: i16) -> HeartbeatResponse {
    let member = MemberRef {
        generation: request.generation_id,
        member_id: request.member_id.to_string(),
        instance_id: owned(request.group_instance_id.as_ref()),
    };
    let beat = group_name(&request.group_id).and_then(|group| {
        let beat = caller.broker().groups().classic().heartbeat(&caller.tenant, &group, &member);
        beat.map_err(|error| codes::classic(&error))
    });
    HeartbeatResponse::default().with_error_code(code(beat))
}

/// Members leave: one, or since version 3 several (KIP-345).
pub(crate) async fn leave(
    caller: Rc<Caller>,
    request: LeaveGroupRequest,
    version: i16,
) -> LeaveGroupResponse {
    let group = match group_name(&request.group_id) {
        Ok(group) => group,
        Err(error) => return LeaveGroupResponse::default().with_error_code(error.code()),
    };
    let go = |leaving: &[Leaving]| {
        let gone = caller.broker().groups().classic().leave(&caller.tenant, &group, leaving);
        gone.into_iter().map(|gone| code(gone.map_err(|error| codes::classic(&error)))).collect::<Vec<_>>()
    };
    if version < 3 {
        let leaving = Leaving { member_id: request.member_id.to_string(), instance_id: None };
        let code = go(&[leaving]).first().copied().unwrap_or_default();
        return LeaveGroupResponse::default().with_error_code(code);
    }
    let leaving = request.members.iter().map(|member| Leaving {
        member_id: member.member_id.to_string(),
        instance_id: owned(member.group_instance_id.as_ref()),
    });
    let codes = go(&leaving.collect::<Vec<_>>());
    let members = request.members.into_iter().zip(codes).map(|(member, code)| {
        MemberResponse::default()
            .with_error_code(code)
            .with_member_id(member.member_id)
            .with_group_instance_id(member.group_instance_id)
    });
    LeaveGroupResponse::default().with_members(members.collect())
}

fn code(result: Result<(), ResponseError>) -> i16 {
    result.err().map_or(0, |error| error.code())
}
