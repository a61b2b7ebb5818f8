//! Groups as clients see them: joining, sharing, leaving, committing.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use trifid_stream_model::spec::StreamSpec;

use crate::harness::{Client, Harness, text, topic};

fn group(name: &str) -> GroupId {
    GroupId(text(name))
}

fn join_request(member: &StrBytes) -> JoinGroupRequest {
    let protocol = join_group_request::JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"subscription"));
    JoinGroupRequest::default()
        .with_group_id(group("g"))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_protocol_type(text("consumer"))
        .with_member_id(member.clone())
        .with_protocols(vec![protocol])
}

/// Joins: told an id first (KIP-394), then let in.
fn join(client: &mut Client, version: i16) -> JoinGroupResponse {
    let told = client.ask(version, &join_request(&StrBytes::new()));
    if version < 4 {
        return told;
    }
    assert_eq!(told.error_code, ResponseError::MemberIdRequired.code());
    assert!(!told.member_id.is_empty());
    client.ask(version, &join_request(&told.member_id))
}

fn sync_request(joined: &JoinGroupResponse, assigned: &[(&StrBytes, &'static str)]) -> SyncGroupRequest {
    let one = |(member, bytes): &(&StrBytes, &'static str)| {
        sync_group_request::SyncGroupRequestAssignment::default()
            .with_member_id((*member).clone())
            .with_assignment(Bytes::from_static(bytes.as_bytes()))
    };
    SyncGroupRequest::default()
        .with_group_id(group("g"))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone())
        .with_assignments(assigned.iter().map(one).collect())
}

fn heartbeat(client: &mut Client, joined: &JoinGroupResponse) -> i16 {
    let request = HeartbeatRequest::default()
        .with_group_id(group("g"))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone());
    client.ask(4, &request).error_code
}

fn commit_request(joined: Option<&JoinGroupResponse>, partitions: &[(i32, i64)]) -> OffsetCommitRequest {
    let one = |&(index, offset): &(i32, i64)| {
        offset_commit_request::OffsetCommitRequestPartition::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_committed_metadata(Some(text("note")))
    };
    let committed = offset_commit_request::OffsetCommitRequestTopic::default()
        .with_name(topic("orders"))
        .with_partitions(partitions.iter().map(one).collect());
    OffsetCommitRequest::default()
        .with_group_id(group("g"))
        .with_generation_id_or_member_epoch(joined.map_or(-1, |joined| joined.generation_id))
        .with_member_id(joined.map(|joined| joined.member_id.clone()).unwrap_or_default())
        .with_topics(vec![committed])
}

fn commit(client: &mut Client, joined: Option<&JoinGroupResponse>, partitions: &[(i32, i64)]) -> Vec<i16> {
    let response = client.ask(8, &commit_request(joined, partitions));
    response.topics[0].partitions.iter().map(|part| part.error_code).collect()
}

fn committed(client: &mut Client, partitions: Vec<i32>) -> Vec<i64> {
    let wanted = offset_fetch_request::OffsetFetchRequestTopic::default()
        .with_name(topic("orders"))
        .with_partition_indexes(partitions);
    let request = OffsetFetchRequest::default().with_group_id(group("g")).with_topics(Some(vec![wanted]));
    let response = client.ask(7, &request);
    assert_eq!(response.error_code, 0);
    response.topics[0].partitions.iter().map(|part| part.committed_offset).collect()
}

#[test]
fn two_members_share_and_one_takes_over() {
    let harness = Harness::new();
    let (mut one, mut two) = (harness.client(), harness.client());
    let first = join(&mut one, 5);
    assert_eq!((first.error_code, first.leader.clone()), (0, first.member_id.clone()));
    assert_eq!(first.members.len(), 1);
    let synced = one.ask(3, &sync_request(&first, &[(&first.member_id, "all")]));
    assert_eq!((synced.error_code, synced.assignment), (0, Bytes::from_static(b"all")));
    assert_eq!(heartbeat(&mut one, &first), 0);

    // The second waits until the first has joined again.
    let told = two.ask(5, &join_request(&StrBytes::new()));
    let waiting = two.send(5, &join_request(&told.member_id));
    while heartbeat(&mut one, &first) == 0 {}
    assert_eq!(heartbeat(&mut one, &first), ResponseError::RebalanceInProgress.code());
    let again = one.ask(5, &join_request(&first.member_id));
    let second = two.receive::<JoinGroupRequest>(5, waiting);
    assert_eq!((again.generation_id, second.generation_id), (2, 2));
    assert_eq!((again.members.len(), second.members.len()), (2, 0), "the leader alone sees the members");
    assert_eq!(again.members[0].metadata, Bytes::from_static(b"subscription"));

    // The follower's sync waits for the leader's.
    let waiting = two.send(3, &sync_request(&second, &[]));
    let assigned = [(&again.member_id, "left"), (&second.member_id, "right")];
    assert_eq!(one.ask(3, &sync_request(&again, &assigned)).assignment, Bytes::from_static(b"left"));
    assert_eq!(two.receive::<SyncGroupRequest>(3, waiting).assignment, Bytes::from_static(b"right"));

    let described =
        one.ask(5, &DescribeGroupsRequest::default().with_groups(vec![group("g"), group("none")]));
    let states: Vec<_> = described.groups.iter().map(|group| group.group_state.to_string()).collect();
    assert_eq!(states, ["Stable", "Dead"]);
    let members = &described.groups[0].members;
    assert_eq!((members.len(), members[0].client_id.clone()), (2, text("it")));
    assert!(members.iter().all(|member| &*member.client_host == "/127.0.0.1"));
    let listed = one.ask(5, &ListGroupsRequest::default().with_states_filter(vec![text("Stable")]));
    assert_eq!((listed.groups.len(), &*listed.groups[0].group_type), (1, "classic"));
    assert!(
        one.ask(4, &ListGroupsRequest::default().with_states_filter(vec![text("Empty")])).groups.is_empty()
    );

    let leaving = leave_group_request::MemberIdentity::default().with_member_id(second.member_id.clone());
    let stranger = leave_group_request::MemberIdentity::default().with_member_id(text("nobody"));
    let request =
        LeaveGroupRequest::default().with_group_id(group("g")).with_members(vec![leaving, stranger]);
    let left = two.ask(4, &request);
    let codes: Vec<_> = left.members.iter().map(|member| member.error_code).collect();
    assert_eq!(codes, [0, ResponseError::UnknownMemberId.code()]);
    while heartbeat(&mut one, &again) == 0 {}
    let alone = one.ask(5, &join_request(&first.member_id));
    assert_eq!((alone.generation_id, alone.members.len()), (3, 1));
    assert_eq!(heartbeat(&mut two, &second), ResponseError::UnknownMemberId.code());
}

#[test]
fn every_version_of_joining_lets_in() {
    let harness = Harness::new();
    for version in 0..=9 {
        let mut client = harness.client();
        let joined = join(&mut client, version);
        assert_eq!(joined.error_code, 0, "{version}");
        assert_eq!(joined.protocol_name, Some(text("range")), "{version}");
        let request = LeaveGroupRequest::default().with_group_id(group("g")).with_member_id(joined.member_id);
        assert_eq!(client.ask(2, &request).error_code, 0, "{version}");
    }
}

#[test]
fn who_may_not_join_is_told_why() {
    let harness = Harness::new();
    let mut client = harness.client();
    let mut code = |request: JoinGroupRequest| client.ask(3, &request).error_code;
    let request = || join_request(&StrBytes::new());
    assert_eq!(code(request().with_group_id(group(""))), ResponseError::InvalidGroupId.code());
    assert_eq!(code(request().with_session_timeout_ms(1)), ResponseError::InvalidSessionTimeout.code());
    assert_eq!(code(request().with_session_timeout_ms(-1)), ResponseError::InvalidSessionTimeout.code());
    assert_eq!(code(request().with_protocols(vec![])), ResponseError::InconsistentGroupProtocol.code());
    assert_eq!(code(join_request(&text("nobody"))), ResponseError::UnknownMemberId.code());
}

#[test]
fn offsets_are_committed_by_members_and_by_those_who_assign_themselves() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(3));
    let mut client = harness.client();
    assert_eq!(committed(&mut client, vec![0, 1]), [-1, -1]);
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(commit(&mut client, None, &[(0, 5), (7, 1)]), [0, unknown]);
    assert_eq!(committed(&mut client, vec![0, 1, 7]), [5, -1, -1]);
    let joined = join(&mut client, 5);
    client.ask(3, &sync_request(&joined, &[(&joined.member_id, "all")]));
    assert_eq!(commit(&mut client, Some(&joined), &[(0, 6), (1, 7)]), [0, 0]);
    let mut older = joined.clone();
    older.generation_id -= 1;
    assert_eq!(commit(&mut client, Some(&older), &[(0, 1)]), [ResponseError::IllegalGeneration.code()]);
    let mut stranger = joined.clone();
    stranger.member_id = text("nobody");
    assert_eq!(commit(&mut client, Some(&stranger), &[(0, 1)]), [ResponseError::UnknownMemberId.code()]);
    assert_eq!(committed(&mut client, vec![0, 1]), [6, 7]);

    // Several groups at once, and all that a group has.
    let some = offset_fetch_request::OffsetFetchRequestTopics::default()
        .with_name(topic("orders"))
        .with_partition_indexes(vec![1]);
    let one = |name, topics| {
        offset_fetch_request::OffsetFetchRequestGroup::default()
            .with_group_id(group(name))
            .with_topics(topics)
    };
    let request = OffsetFetchRequest::default().with_groups(vec![
        one("g", Some(vec![some])),
        one("g", None),
        one("h", None),
    ]);
    let response = client.ask(8, &request);
    let counts: Vec<_> = response
        .groups
        .iter()
        .map(|group| group.topics.first().map_or(0, |topic| topic.partitions.len()))
        .collect();
    assert_eq!(counts, [1, 2, 0]);
    let first = &response.groups[0].topics[0].partitions[0];
    assert_eq!((first.committed_offset, first.metadata.clone()), (7, Some(text("note"))));
}

#[test]
fn groups_and_offsets_are_forgotten_when_nobody_is_in() {
    let harness = Harness::new();
    harness.stream("orders", StreamSpec::memory(3));
    let mut client = harness.client();
    let joined = join(&mut client, 5);
    client.ask(3, &sync_request(&joined, &[(&joined.member_id, "all")]));
    assert_eq!(commit(&mut client, Some(&joined), &[(0, 6), (1, 7)]), [0, 0]);
    let delete = DeleteGroupsRequest::default().with_groups_names(vec![group("g"), group("none")]);
    let codes = |client: &mut Client| -> Vec<i16> {
        client.ask(2, &delete).results.iter().map(|result| result.error_code).collect()
    };
    let absent = ResponseError::GroupIdNotFound.code();
    assert_eq!(codes(&mut client), [ResponseError::NonEmptyGroup.code(), absent]);
    let part = offset_delete_request::OffsetDeleteRequestPartition::default();
    let gone = offset_delete_request::OffsetDeleteRequestTopic::default()
        .with_name(topic("orders"))
        .with_partitions(vec![part]);
    let forget = OffsetDeleteRequest::default().with_group_id(group("g")).with_topics(vec![gone]);
    assert_eq!(client.ask(0, &forget).error_code, ResponseError::NonEmptyGroup.code());
    let leave = LeaveGroupRequest::default().with_group_id(group("g")).with_member_id(joined.member_id);
    assert_eq!(client.ask(2, &leave).error_code, 0);
    assert_eq!(client.ask(0, &forget).error_code, 0);
    assert_eq!(committed(&mut client, vec![0, 1]), [-1, 7]);
    assert_eq!(codes(&mut client), [0, absent]);
    assert_eq!(committed(&mut client, vec![0, 1]), [-1, -1]);
}

#[test]
fn committed_offsets_outlive_the_broker() {
    let folder = tempfile::tempdir().unwrap();
    {
        let harness = Harness::on(folder.path());
        harness.stream("orders", StreamSpec { shards: 2, ..StreamSpec::default() });
        assert_eq!(commit(&mut harness.client(), None, &[(0, 5), (1, 6)]), [0, 0]);
    }
    let harness = Harness::on(folder.path());
    assert_eq!(committed(&mut harness.client(), vec![0, 1]), [5, 6]);
}

#[test]
fn every_group_is_coordinated_here() {
    let harness = Harness::new();
    let mut client = harness.client();
    let found = client.ask(3, &FindCoordinatorRequest::default().with_key(text("g")));
    assert_eq!((found.error_code, found.port), (0, i32::from(harness.address.port())));
    let several = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g"), text("h")]);
    let found = client.ask(4, &several);
    assert_eq!(found.coordinators.iter().map(|one| one.key.to_string()).collect::<Vec<_>>(), ["g", "h"]);
    assert!(found.coordinators.iter().all(|one| one.error_code == 0 && &*one.host == "127.0.0.1"));
    let transactional = FindCoordinatorRequest::default().with_key(text("t")).with_key_type(1);
    let refused = client.ask(3, &transactional);
    assert_eq!(refused.error_code, ResponseError::TransactionalIdAuthorizationFailed.code());
}
