//! FindCoordinator, ListGroups, DescribeGroups, DeleteGroups. Native groups are listed too: their committed offsets
//! are the same, only their members do not divide shards among themselves.

use std::rc::Rc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    FindCoordinatorRequest, FindCoordinatorResponse, GroupId, ListGroupsRequest, ListGroupsResponse,
};
use kafka_protocol::protocol::StrBytes;
use trifid_stream_engine::groups::{GroupDescription, GroupListing, Protocol};

use super::caller::{Caller, distinct, text};
use super::cluster::NODE;
use super::codes;
use super::members::group_name;
use crate::limits::GROUPS_LISTED_MAX;

/// The kind of key that names a group.
const GROUP: i8 = 0;

/// Every group is coordinated here.
pub(crate) async fn find(
    caller: Rc<Caller>,
    request: FindCoordinatorRequest,
    version: i16,
) -> FindCoordinatorResponse {
    let (host, port) = (text(&*caller.endpoint.host), i32::from(caller.endpoint.port));
    // There are no transactions (1) and no share groups (2) to coordinate; every client takes this code for final.
    let (code, message) = match request.key_type {
        GROUP => (0, None),
        1 => {
            (ResponseError::TransactionalIdAuthorizationFailed.code(), Some("there are no transactions here"))
        }
        _ => (ResponseError::InvalidRequest.code(), Some("only groups have coordinators")),
    };
    let message = message.map(StrBytes::from_static_str);
    if version < 4 {
        return FindCoordinatorResponse::default()
            .with_error_code(code)
            .with_error_message(message)
            .with_node_id(NODE)
            .with_host(host)
            .with_port(port);
    }
    let one = |key| {
        Coordinator::default()
            .with_key(key)
            .with_node_id(NODE)
            .with_host(host.clone())
            .with_port(port)
            .with_error_code(code)
            .with_error_message(message.clone())
    };
    FindCoordinatorResponse::default()
        .with_coordinators(request.coordinator_keys.into_iter().map(one).collect())
}

/// The tenant's groups.
pub(crate) async fn list(caller: Rc<Caller>, request: ListGroupsRequest, version: i16) -> ListGroupsResponse {
    let is_wanted = |group: &GroupListing| {
        let by = |filter: &[StrBytes], value: &str| {
            filter.is_empty() || filter.iter().any(|one| one.eq_ignore_ascii_case(value))
        };
        by(&request.states_filter, group.kafka_state) && by(&request.types_filter, kind(group))
    };
    let listed = |group: GroupListing| {
        let one = ListedGroup::default()
            .with_group_id(GroupId(text(group.name.as_str())))
            .with_protocol_type(text(&*group.protocol_type));
        let one = if version >= 4 { one.with_group_state(text(group.kafka_state)) } else { one };
        if version >= 5 { one.with_group_type(text(kind(&group))) } else { one }
    };
    let groups = caller.broker().groups().list(&caller.tenant, "", None, GROUPS_LISTED_MAX).into_iter();
    ListGroupsResponse::default().with_groups(groups.filter(is_wanted).map(listed).collect())
}

fn kind(group: &GroupListing) -> &'static str {
    match group.protocol {
        Protocol::None | Protocol::Classic => "classic",
        Protocol::Native => "native",
    }
}

/// Groups with their members. One that is not there is `Dead`, which is the protocol's word for it.
pub(crate) async fn describe(
    caller: Rc<Caller>,
    request: DescribeGroupsRequest,
    version: i16,
) -> DescribeGroupsResponse {
    let one = |id: GroupId| match group_name(&id) {
        Ok(name) => match caller.broker().groups().describe(&caller.tenant, &name) {
            Some(group) => described(id, group, version),
            None => dead(id, 0),
        },
        Err(error) => dead(id, error.code()),
    };
    let groups = distinct(request.groups, GroupId::clone);
    DescribeGroupsResponse::default().with_groups(groups.into_iter().map(one).collect())
}

fn dead(id: GroupId, code: i16) -> DescribedGroup {
    DescribedGroup::default()
        .with_error_code(code)
        .with_group_id(id)
        .with_group_state(StrBytes::from_static_str("Dead"))
}

fn described(id: GroupId, group: GroupDescription, version: i16) -> DescribedGroup {
    let members = group.members.into_iter().map(|member| {
        let one = DescribedGroupMember::default()
            .with_member_id(text(member.member))
            .with_client_id(text(member.client))
            .with_client_host(text(member.host))
            .with_member_metadata(member.metadata)
            .with_member_assignment(member.assignment);
        if version >= 4 { one.with_group_instance_id(member.instance.map(text)) } else { one }
    });
    DescribedGroup::default()
        .with_group_id(id)
        .with_group_state(text(group.listing.kafka_state))
        .with_protocol_type(text(group.listing.protocol_type))
        .with_protocol_data(text(group.protocol_name))
        .with_members(members.collect())
}

/// Forgets groups that have no members.
pub(crate) async fn delete(caller: Rc<Caller>, request: DeleteGroupsRequest, _: i16) -> DeleteGroupsResponse {
    let mut results = Vec::with_capacity(request.groups_names.len());
    for id in request.groups_names {
        let code = delete_one(&caller, &id).await.err().map_or(0, |error| error.code());
        results.push(DeletableGroupResult::default().with_group_id(id).with_error_code(code));
    }
    DeleteGroupsResponse::default().with_results(results)
}

async fn delete_one(caller: &Rc<Caller>, id: &GroupId) -> Result<(), ResponseError> {
    if !caller.may_write() {
        return Err(ResponseError::GroupAuthorizationFailed);
    }
    let name = group_name(id)?;
    let gone = caller.broker().groups().delete(&caller.tenant, &name);
    gone.map_err(|error| codes::group(&error))?.await.map_err(codes::commit)
}
