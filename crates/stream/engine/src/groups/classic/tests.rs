use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use proptest::prelude::*;
use trifid_stream_model::names::GroupName;

use super::answer::{Answer, Wakers};
use super::group::{Group, Id, Phase};
use super::*;
use crate::groups::limits::INITIAL_REBALANCE_DELAY_MS;

fn group_name() -> GroupName {
    GroupName::new("g").unwrap()
}

fn request(member: &str) -> JoinRequest {
    JoinRequest {
        group: group_name(),
        member_id: member.to_owned(),
        instance_id: None,
        client_id: "c".to_owned(),
        client_host: "h".to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), Bytes::from(format!("about {member}")))],
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        require_member_id: false,
        can_skip_assignment: false,
    }
}

fn fixed(member: &str, instance: &str) -> JoinRequest {
    JoinRequest {
        instance_id: Some(instance.to_owned()),
        protocols: vec![("range".to_owned(), Bytes::from(format!("about {instance}")))],
        ..request(member)
    }
}

/// What an answer says now: `None`, if it does not yet.
fn said<T>(answer: &mut Answer<T>) -> Option<Result<T, ClassicError>> {
    match Pin::new(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// What a refusal says; any other answer is left where it is.
fn peek<T>(answer: &mut Answer<T>) -> Option<Result<T, ClassicError>> {
    match said(answer) {
        Some(Ok(value)) => {
            *answer = Answer::ready(Ok(value));
            None
        }
        refused => refused,
    }
}

/// A group and the time.
#[derive(Default)]
struct Bench {
    group: Group,
    now: u64,
    ids: u32,
}

impl Bench {
    fn join(&mut self, request: JoinRequest) -> Answer<Joined> {
        self.ids += 1;
        let fresh: Id = format!("m{}", self.ids).into();
        self.group.join(self.now, request, &fresh, &mut Wakers::new())
    }

    fn joined(&mut self, request: JoinRequest) -> Result<Joined, ClassicError> {
        let mut answer = self.join(request);
        said(&mut answer).expect("answered at once")
    }

    fn sync(&mut self, joined: &Joined, assignments: &[(&str, &str)]) -> Answer<Synced> {
        let own = |(id, text): &(&str, &str)| ((*id).to_owned(), Bytes::from((*text).to_owned()));
        let request = SyncRequest {
            group: group_name(),
            generation: joined.generation,
            member_id: joined.member_id.clone(),
            instance_id: None,
            protocol_type: Some(joined.protocol_type.clone()),
            protocol: Some(joined.protocol.clone()),
            assignments: assignments.iter().map(own).collect(),
        };
        self.group.sync(self.now, request, &mut Wakers::new())
    }

    fn beat(&mut self, joined: &Joined) -> Result<(), ClassicError> {
        self.group.heartbeat(self.now, &member(joined))
    }

    fn leave(&mut self, member_id: &str) -> Result<(), ClassicError> {
        let leaving = [Leaving { member_id: member_id.to_owned(), instance_id: None }];
        self.group.leave(self.now, &leaving, &mut Wakers::new()).remove(0)
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.group.tick(self.now, &mut 10_000, &mut Wakers::new());
    }

    /// A stable group of so many members, the first of which leads.
    fn stable(&mut self, members: usize) -> Vec<Joined> {
        let mut answers: Vec<_> = (0..members).map(|_| self.join(request(""))).collect();
        self.pass(INITIAL_REBALANCE_DELAY_MS);
        let joined: Vec<Joined> =
            answers.iter_mut().map(|answer| said(answer).expect("joined").unwrap()).collect();
        let mut syncs: Vec<_> = joined.iter().skip(1).map(|joined| self.sync(joined, &[])).collect();
        let assignments: Vec<_> =
            joined.iter().map(|j| (j.member_id.as_str(), j.member_id.as_str())).collect();
        syncs.push(self.sync(&joined[0], &assignments));
        for sync in &mut syncs {
            said(sync).expect("synced").unwrap();
        }
        assert_eq!(self.group.phase, Phase::Stable);
        joined
    }
}

fn member(joined: &Joined) -> MemberRef {
    MemberRef { generation: joined.generation, member_id: joined.member_id.clone(), instance_id: None }
}

#[test]
fn two_members_share_what_the_leader_assigns() {
    let mut bench = Bench::default();
    let (mut one, mut two) = (bench.join(request("")), bench.join(request("")));
    assert!(said(&mut one).is_none() && said(&mut two).is_none());
    bench.pass(INITIAL_REBALANCE_DELAY_MS);
    let (one, two) = (said(&mut one).unwrap().unwrap(), said(&mut two).unwrap().unwrap());
    assert_eq!((one.generation, two.generation, one.leader == one.member_id), (1, 1, true));
    assert_eq!((one.members.len(), two.members.len(), two.leader == one.member_id), (2, 0, true));
    let mut follower = bench.sync(&two, &[(&two.member_id, "a follower's word counts nothing")]);
    assert!(said(&mut follower).is_none());
    let mut leader = bench.sync(&one, &[(&one.member_id, "0,1"), (&two.member_id, "2"), ("nobody", "3")]);
    assert_eq!(said(&mut leader).unwrap().unwrap().assignment, "0,1");
    assert_eq!(said(&mut follower).unwrap().unwrap().assignment, "2");
    assert_eq!(bench.beat(&two), Ok(()));
    // Asked again, it is told again.
    assert_eq!(said(&mut bench.sync(&two, &[])).unwrap().unwrap().assignment, "2");
}

#[test]
fn a_member_that_comes_or_goes_rebalances_the_others() {
    let mut bench = Bench::default();
    let before = bench.stable(2);
    let mut third = bench.join(request(""));
    assert_eq!(bench.beat(&before[0]), Err(ClassicError::RebalanceInProgress));
    let mut again: Vec<_> = before.iter().map(|joined| bench.join(request(&joined.member_id))).collect();
    let third = said(&mut third).expect("all are here: nobody waits for the time").unwrap();
    assert_eq!((third.generation, bench.group.members()), (2, 3));
    let again: Vec<_> = again.iter_mut().map(|answer| said(answer).unwrap().unwrap()).collect();
    assert_eq!(again[0].leader, before[0].member_id);
    assert_eq!(bench.beat(&before[0]), Err(ClassicError::IllegalGeneration { generation: 2 }));
    assert_eq!(bench.leave(&third.member_id), Ok(()));
    assert_eq!(bench.leave(&third.member_id), Err(ClassicError::UnknownMemberId));
    assert_eq!(bench.beat(&again[1]), Err(ClassicError::RebalanceInProgress));
}

#[test]
fn who_does_not_join_again_in_time_is_left_behind() {
    let mut bench = Bench::default();
    let before = bench.stable(3);
    let mut back = bench.join(JoinRequest {
        protocols: vec![("range".into(), "new".into())],
        ..request(&before[1].member_id)
    });
    for _ in 0..4 {
        bench.pass(4_900);
        for late in [&before[0], &before[2]] {
            assert_eq!(bench.beat(late), Err(ClassicError::RebalanceInProgress));
        }
        assert!(said(&mut back).is_none());
    }
    bench.pass(400);
    let back = said(&mut back).expect("the time is up").unwrap();
    assert_eq!((back.leader == back.member_id, back.members.len(), bench.group.members()), (true, 1, 1));
    assert_eq!(bench.beat(&before[0]), Err(ClassicError::UnknownMemberId));
}

#[test]
fn silence_ends_a_session_and_waiting_does_not() {
    let mut bench = Bench::default();
    let members = bench.stable(2);
    bench.pass(9_000);
    assert_eq!(bench.beat(&members[1]), Ok(()));
    bench.pass(2_000);
    assert_eq!((bench.group.members(), bench.beat(&members[1])), (1, Err(ClassicError::RebalanceInProgress)));
    let mut alone = bench.join(request(&members[1].member_id));
    let alone = said(&mut alone).unwrap().unwrap();
    // It waits for a leader that never assigns: itself. The session goes on, the patience ends.
    assert_eq!(alone.leader, alone.member_id);
    bench.pass(9_000);
    assert_eq!(bench.beat(&alone), Ok(()));
    bench.pass(9_000);
    assert_eq!(bench.beat(&alone), Ok(()));
    bench.pass(2_001);
    assert_eq!((bench.group.members(), bench.group.phase), (0, Phase::Empty));
}

#[test]
fn an_abandoned_wait_is_silence() {
    let mut bench = Bench::default();
    bench.stable(1);
    let abandoned = bench.join(request(""));
    let mut waiting = bench.join(request(""));
    drop(abandoned);
    bench.pass(10_000);
    // The first went silent too: only the one that waits is left.
    assert_eq!(bench.group.members(), 1);
    assert_eq!(said(&mut waiting).unwrap().unwrap().members.len(), 1);
}

#[test]
fn a_member_id_is_required_where_asked_for() {
    let mut bench = Bench::default();
    let new = JoinRequest { require_member_id: true, ..request("") };
    let Err(ClassicError::MemberIdRequired { member_id }) = bench.joined(new.clone()) else { panic!() };
    assert!(!bench.group.is_empty() && bench.group.members() == 0);
    let mut answer = bench.join(JoinRequest { member_id: member_id.clone(), ..new.clone() });
    bench.pass(INITIAL_REBALANCE_DELAY_MS);
    assert_eq!(said(&mut answer).unwrap().unwrap().member_id, member_id);
    // An id that does not come back is void after its session.
    assert!(matches!(bench.joined(new), Err(ClassicError::MemberIdRequired { .. })));
    assert_eq!(bench.group.promised.len(), 1);
    bench.pass(9_000);
    bench.beat(&Joined { generation: 1, member_id, ..bench.group.joined("") }).unwrap();
    bench.pass(1_000);
    assert_eq!((bench.group.promised.len(), bench.group.members()), (0, 1));
    assert_eq!(bench.joined(request("made up")), Err(ClassicError::UnknownMemberId));
}

#[test]
fn a_static_member_comes_back_unnoticed() {
    let mut bench = Bench::default();
    let (mut one, mut two) = (bench.join(fixed("", "i1")), bench.join(fixed("", "i2")));
    bench.pass(INITIAL_REBALANCE_DELAY_MS);
    let (one, two) = (said(&mut one).unwrap().unwrap(), said(&mut two).unwrap().unwrap());
    let mut waits = bench.sync(&two, &[]);
    said(&mut bench.sync(&one, &[(&one.member_id, "left"), (&two.member_id, "right")])).unwrap().unwrap();
    said(&mut waits).unwrap().unwrap();
    // The follower, then the leader with and without KIP-814.
    let back = bench.joined(fixed("", "i2")).unwrap();
    assert_ne!(back.member_id, two.member_id);
    assert_eq!((back.generation, back.skip_assignment, back.leader == one.member_id), (1, false, true));
    assert_eq!(said(&mut bench.sync(&back, &[])).unwrap().unwrap().assignment, "right");
    let skips = JoinRequest { can_skip_assignment: true, ..fixed("", "i1") };
    let leader = bench.joined(skips).unwrap();
    assert_eq!(
        (leader.skip_assignment, leader.leader == leader.member_id, leader.members.len()),
        (true, true, 2)
    );
    let old_client = bench.joined(fixed("", "i1")).unwrap();
    assert_eq!((old_client.leader == leader.member_id, old_client.members.len()), (true, 0));
    // Those before are fenced off.
    let zombie = MemberRef { instance_id: Some("i2".to_owned()), ..member(&two) };
    assert_eq!(bench.group.heartbeat(bench.now, &zombie), Err(ClassicError::FencedInstanceId));
    assert_eq!(bench.joined(fixed(&two.member_id, "i2")), Err(ClassicError::FencedInstanceId));
    // An operator removes an instance by its name.
    let by_name = [Leaving { member_id: String::new(), instance_id: Some("i2".to_owned()) }];
    assert_eq!(bench.group.leave(bench.now, &by_name, &mut Wakers::new()), [Ok(())]);
    assert_eq!(bench.group.members(), 1);
}

#[test]
fn a_static_member_that_is_away_keeps_its_place_until_its_session_ends() {
    let mut bench = Bench::default();
    let long = |instance| JoinRequest { session_timeout_ms: 100_000, ..fixed("", instance) };
    let (mut one, mut two) = (bench.join(long("i1")), bench.join(long("i2")));
    bench.pass(INITIAL_REBALANCE_DELAY_MS);
    let (one, _) = (said(&mut one).unwrap().unwrap(), said(&mut two).unwrap().unwrap());
    said(&mut bench.sync(&one, &[])).unwrap().unwrap();
    bench.pass(25_000);
    // The second never synced: that it had joined and did not go on counts against it.
    assert_eq!(bench.group.members(), 1);
    let mut again = bench.join(JoinRequest { member_id: one.member_id.clone(), ..long("i1") });
    let one = said(&mut again).unwrap().unwrap();
    said(&mut bench.sync(&one, &[])).unwrap().unwrap();
    // A dynamic member comes; the static one is away, and stays in the group.
    let mut third = bench.join(request(""));
    bench.pass(20_000);
    let third = said(&mut third).unwrap().unwrap();
    assert_eq!((third.members.len(), third.leader == third.member_id, bench.group.members()), (2, true, 2));
    said(&mut bench.sync(&third, &[])).unwrap().unwrap();
    for _ in 0..9 {
        bench.pass(9_000);
        _ = bench.beat(&third);
    }
    assert_eq!(bench.group.members(), 1, "its session has ended by now");
}

#[test]
fn the_protocol_is_one_that_all_know_and_most_prefer() {
    let offer = |names: &[&str]| JoinRequest {
        protocols: names.iter().map(|name| ((*name).to_owned(), Bytes::new())).collect(),
        ..request("")
    };
    let mut bench = Bench::default();
    let offers = [&["a", "b", "c"][..], &["b", "c", "x"], &["c", "b"]];
    let mut answers: Vec<_> = offers.iter().map(|names| bench.join(offer(names))).collect();
    assert_eq!(bench.joined(offer(&["a", "x"])), Err(ClassicError::InconsistentGroupProtocol));
    let other = JoinRequest { protocol_type: "connect".to_owned(), ..offer(&["b"]) };
    assert_eq!(bench.joined(other), Err(ClassicError::InconsistentGroupProtocol));
    bench.pass(INITIAL_REBALANCE_DELAY_MS);
    let joined: Vec<_> = answers.iter_mut().map(|answer| said(answer).unwrap().unwrap()).collect();
    assert!(joined.iter().all(|joined| joined.protocol == "b"), "{joined:?}");
    // KIP-559.
    let wrong = Joined { protocol: "c".to_owned(), ..joined[0].clone() };
    let refused = said(&mut bench.sync(&wrong, &[])).unwrap();
    assert_eq!(refused, Err(ClassicError::InconsistentGroupProtocol));
}

#[test]
fn requests_are_bounded() {
    let mut bench = Bench::default();
    let patient = JoinRequest { rebalance_timeout_ms: i32::MAX as u32, ..request("") };
    let mut patient = bench.join(patient);
    bench.pass(INITIAL_REBALANCE_DELAY_MS);
    let patient = said(&mut patient).unwrap().unwrap();
    assert_eq!(bench.group.members.values().next().unwrap().rebalance_ms, 3_600_000);
    assert_eq!(bench.leave(&patient.member_id), Ok(()));
    let short = JoinRequest { session_timeout_ms: 10, ..request("") };
    assert!(matches!(bench.joined(short), Err(ClassicError::InvalidSessionTimeout { .. })));
    let none = JoinRequest { protocols: vec![], ..request("") };
    assert_eq!(bench.joined(none), Err(ClassicError::InconsistentGroupProtocol));
    let large = vec![("range".to_owned(), Bytes::from(vec![0; limits::METADATA_BYTES_MAX]))];
    let large = JoinRequest { protocols: large, ..request("") };
    assert!(matches!(bench.joined(large), Err(ClassicError::TooLarge { .. })));
    let many = vec![("p".to_owned(), Bytes::new()); limits::PROTOCOLS_MAX + 1];
    assert!(matches!(
        bench.joined(JoinRequest { protocols: many, ..request("") }),
        Err(ClassicError::TooLarge { .. })
    ));
    assert!(bench.group.is_empty());
    let joined = bench.stable(1).remove(0);
    let assignment = "x".repeat(limits::ASSIGNMENT_BYTES_MAX + 1);
    let mut again = bench.join(request(&joined.member_id));
    let joined = said(&mut again).unwrap().unwrap();
    let refused = said(&mut bench.sync(&joined, &[(&joined.member_id, &assignment)])).unwrap();
    assert!(matches!(refused, Err(ClassicError::TooLarge { .. })));
    assert_eq!(bench.group.phase, Phase::Completing);
}

#[test]
fn commits_are_for_members_of_the_present_generation() {
    let mut bench = Bench::default();
    let nobody = MemberRef { generation: -1, member_id: String::new(), instance_id: None };
    assert_eq!(bench.group.check_commit(0, &nobody), Ok(()));
    let members = bench.stable(1);
    assert_eq!(bench.group.check_commit(bench.now, &nobody), Err(ClassicError::UnknownMemberId));
    assert_eq!(bench.group.check_commit(bench.now, &member(&members[0])), Ok(()));
    let _waits = bench.join(request(""));
    assert_eq!(bench.group.check_commit(bench.now, &member(&members[0])), Ok(()), "before it joins again");
    let _again = bench.join(request(&members[0].member_id));
    let old = bench.group.check_commit(bench.now, &member(&members[0]));
    assert_eq!(old, Err(ClassicError::IllegalGeneration { generation: 2 }));
    let new = MemberRef { generation: 2, ..member(&members[0]) };
    assert_eq!(bench.group.check_commit(bench.now, &new), Err(ClassicError::RebalanceInProgress));
}

/// Twenty thousand consumers that die at once: each tick does a bounded piece, and the group is rebalanced
/// once.
#[test]
fn a_herd_dies_in_bounded_pieces() {
    let mut bench = Bench::default();
    bench.stable(20_000);
    let survivor = bench.join(request(""));
    assert_eq!(bench.group.rebalances, 1);
    bench.now += 60_000;
    let mut ticks = 0;
    while bench.group.members() > 1 {
        let (before, mut budget) = (bench.group.members(), SESSIONS);
        // The rebalance's own time is up as well; it may not do more than the budget of sessions asks for.
        bench.group.sync_until = u64::MAX;
        if let Phase::Preparing { until, .. } = &mut bench.group.phase {
            *until = u64::MAX;
        }
        bench.group.tick(bench.now, &mut budget, &mut Wakers::new());
        assert!(before - bench.group.members() <= SESSIONS);
        ticks += 1;
    }
    assert!(ticks >= 20_000 / SESSIONS, "{ticks}");
    assert_eq!(bench.group.rebalances, 1);
    drop(survivor);
}

const SESSIONS: usize = limits::SESSIONS_PER_TICK_MAX;

#[derive(Clone, Debug)]
enum Step {
    Join { who: usize, new_metadata: bool },
    Sync { who: usize, stale: bool },
    Beat { who: usize },
    Leave { who: usize },
    Abandon { who: usize },
    Pass { ms: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0_usize..6;
    let step = prop_oneof![
        5 => (who.clone(), prop::bool::weighted(0.2))
            .prop_map(|(who, new_metadata)| Step::Join { who, new_metadata }),
        5 => (who.clone(), prop::bool::weighted(0.1)).prop_map(|(who, stale)| Step::Sync { who, stale }),
        3 => who.clone().prop_map(|who| Step::Beat { who }),
        1 => who.clone().prop_map(|who| Step::Leave { who }),
        1 => who.prop_map(|who| Step::Abandon { who }),
        4 => prop_oneof![0_u64..300, 1_000_u64..9_000, Just(30_000)].prop_map(|ms| Step::Pass { ms }),
    ];
    prop::collection::vec(step, 1..80)
}

/// A client, as far as it knows.
#[derive(Default)]
struct Client {
    id: String,
    is_static: bool,
    metadata: u32,
    join: Option<Answer<Joined>>,
    sync: Option<(i32, Answer<Synced>)>,
    joined: Option<Joined>,
}

#[derive(Default)]
struct World {
    bench: Bench,
    clients: Vec<Client>,
    generation: i32,
    /// Who was told to lead a generation.
    leaders: BTreeMap<i32, BTreeSet<String>>,
    /// What the leader of a generation assigned.
    assigned: BTreeMap<(i32, String), String>,
}

impl World {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Join { who, new_metadata } => self.join(who, new_metadata),
            Step::Sync { who, stale } => self.sync(who, stale),
            Step::Beat { who } => {
                if let Some(joined) = &self.clients[who].joined {
                    let by = MemberRef { instance_id: self.instance(who), ..member(joined) };
                    if self.bench.group.heartbeat(self.bench.now, &by).is_ok() {
                        assert_eq!(joined.generation, self.bench.group.generation);
                    }
                }
            }
            Step::Leave { who } => {
                let leaving =
                    [Leaving { member_id: self.clients[who].id.clone(), instance_id: self.instance(who) }];
                let answers = self.bench.group.leave(self.bench.now, &leaving, &mut Wakers::new());
                assert_eq!(answers.len(), 1);
                if answers[0].is_ok() {
                    self.clients[who].id.clear();
                    self.clients[who].joined = None;
                }
            }
            Step::Abandon { who } => (self.clients[who].join, self.clients[who].sync) = (None, None),
            Step::Pass { ms } => self.bench.pass(ms),
        }
        self.listen();
        self.check();
    }

    fn instance(&self, who: usize) -> Option<String> {
        self.clients[who].is_static.then(|| format!("instance {who}"))
    }

    fn join(&mut self, who: usize, new_metadata: bool) {
        let client = &mut self.clients[who];
        client.metadata += u32::from(new_metadata);
        let request = JoinRequest {
            instance_id: client.is_static.then(|| format!("instance {who}")),
            protocols: vec![("range".to_owned(), Bytes::from(format!("{who} {}", client.metadata)))],
            require_member_id: who.is_multiple_of(2),
            can_skip_assignment: who.is_multiple_of(3),
            ..request(&client.id)
        };
        let mut answer = self.bench.join(request);
        if let Some(Err(error)) = peek(&mut answer) {
            // Refused at once: what it waited for before stays.
            return self.hear_join(who, Err(error));
        }
        let client = &mut self.clients[who];
        let earlier = client.join.replace(answer);
        if let Some(mut earlier) = earlier {
            // A second join of a member answers the first; one that had no id yet made another member of it.
            if !client.id.is_empty() {
                assert!(said(&mut earlier).is_some(), "every join is answered");
            }
        }
    }

    fn sync(&mut self, who: usize, stale: bool) {
        let Some(joined) = self.clients[who].joined.clone() else { return };
        let generation = joined.generation - i32::from(stale);
        let text = |id: &str| format!("{generation} {id}");
        let assignments: Vec<(String, Bytes)> =
            joined.members.iter().map(|m| (m.member_id.clone(), Bytes::from(text(&m.member_id)))).collect();
        let leads = !stale && joined.leader == joined.member_id && !joined.skip_assignment;
        let request = SyncRequest {
            group: group_name(),
            generation,
            member_id: joined.member_id.clone(),
            instance_id: self.instance(who),
            protocol_type: None,
            protocol: None,
            assignments: if joined.skip_assignment { Vec::new() } else { assignments.clone() },
        };
        let was_completing = self.bench.group.phase == Phase::Completing;
        let mut answer = self.bench.group.sync(self.bench.now, request, &mut Wakers::new());
        if let Some(Err(_)) = peek(&mut answer) {
            return;
        }
        if leads && was_completing && self.bench.group.phase == Phase::Stable {
            for (id, assignment) in assignments {
                let text = String::from_utf8(assignment.to_vec()).unwrap();
                self.assigned.insert((generation, id), text);
            }
        }
        if let Some((_, mut earlier)) = self.clients[who].sync.replace((generation, answer)) {
            assert!(said(&mut earlier).is_some(), "every sync is answered");
        }
    }

    fn listen(&mut self) {
        for who in 0..self.clients.len() {
            if let Some(result) = self.clients[who].join.as_mut().and_then(said) {
                self.clients[who].join = None;
                self.hear_join(who, result);
            }
            if let Some((generation, result)) =
                self.clients[who].sync.as_mut().and_then(|(g, s)| Some((*g, said(s)?)))
            {
                self.clients[who].sync = None;
                self.hear_sync(who, generation, result);
            }
        }
    }

    fn hear_join(&mut self, who: usize, result: Result<Joined, ClassicError>) {
        match result {
            Ok(joined) => {
                assert!(joined.generation >= self.generation, "generations never go back");
                self.generation = joined.generation;
                if joined.leader == joined.member_id {
                    self.leaders.entry(joined.generation).or_default().insert(joined.leader.clone());
                }
                self.clients[who].id.clone_from(&joined.member_id);
                self.clients[who].joined = Some(joined);
            }
            Err(ClassicError::MemberIdRequired { member_id }) => self.clients[who].id = member_id,
            Err(ClassicError::UnknownMemberId | ClassicError::FencedInstanceId) => {
                self.clients[who].id.clear();
                self.clients[who].joined = None;
            }
            Err(ClassicError::RebalanceInProgress) => {}
            Err(error) => panic!("{error:?} for a valid join"),
        }
    }

    fn hear_sync(&mut self, who: usize, generation: i32, result: Result<Synced, ClassicError>) {
        let Ok(synced) = result else { return };
        let text = String::from_utf8(synced.assignment.to_vec()).unwrap();
        assert!(
            generation == self.bench.group.generation
                || text.is_empty()
                || text.starts_with(&generation.to_string())
        );
        // A static member that came back has a new id and the assignment that was made for the old one.
        if !text.is_empty() && !self.clients[who].is_static {
            let id = &self.clients[who].joined.as_ref().unwrap().member_id;
            let by_leader = self.assigned.get(&(generation, id.clone()));
            assert_eq!(by_leader, Some(&text), "assignments come from the leader of the generation alone");
        }
    }

    /// What holds between any two steps.
    fn check(&self) {
        let group = &self.bench.group;
        let joining = group.members.values().filter(|member| member.join.is_some()).count();
        assert_eq!(joining, group.joining);
        assert_eq!(group.sessions.len(), group.members.len() + group.promised.len());
        assert_eq!(group.phase == Phase::Empty, group.members.is_empty());
        assert_eq!(
            group.instances.len(),
            group.members.values().filter(|member| member.instance.is_some()).count()
        );
        if group.counts_syncs() {
            let unsynced = group.members.values().filter(|member| !member.synced).count();
            assert_eq!(unsynced, group.unsynced);
            assert_eq!(joining, 0, "nobody waits to join a group that is complete");
        }
        if group.phase == Phase::Stable {
            assert!(group.members.values().all(|member| member.sync.is_none()));
        }
        if let Some(leader) = &group.leader {
            assert!(group.members.contains_key(leader));
        }
        assert!(group.generation >= self.generation);
        assert!(group.members.values().all(|member| group.fits(
            None,
            &group.protocol_type,
            &member.protocols
        )));
    }

    /// Whoever still waits is answered when time passes and the others do nothing.
    fn finish(mut self) {
        for _ in 0..200 {
            self.bench.pass(5_000);
            self.listen();
        }
        for client in &self.clients {
            assert!(client.join.is_none(), "a join is answered in the end");
            assert!(client.sync.is_none(), "a sync is answered in the end");
        }
        assert_eq!(self.bench.group.members(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_schedule_keeps_the_rules(steps in steps()) {
        let client = |who| Client { is_static: who < 2, ..Client::default() };
        let mut world = World { clients: (0..6).map(client).collect(), ..World::default() };
        for step in &steps {
            world.take(step);
        }
        world.finish();
    }
}
