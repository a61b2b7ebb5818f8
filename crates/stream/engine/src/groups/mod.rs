//! Consumer groups: committed offsets, native work groups, and the coordinator of Kafka's classic groups.
//!
//! ```text
//!  Groups ──> table ──> group ──┬─ committed offsets ──> the broker's own stream `_groups`
//!                               ├─ classic   members divide the shards among themselves (Kafka)
//!                               └─ work      members share the records: leases, redelivery, dead letters
//! ```
//!
//! The committed offsets of a group are one thing, whichever its members speak; at one time they all speak
//! the same. A committed offset belongs to the stream that it was made for: a stream of the same name that is
//! made later begins anew. A group is forgotten when it is deleted, or nobody asked for it in
//! [`IDLE_GROUP_MS`].
//!
//! Locks are taken in the order work, group, table, and nobody is woken under them except by a pull's own
//! queue.

pub mod classic;
mod error;
pub mod limits;
mod offsets;
mod shared;
mod steady;
mod table;
mod types;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trifid_stream_model::frame::{GroupState, Start};
use trifid_stream_model::limits::GROUP_STREAMS_MAX;
use trifid_stream_model::names::{GroupName, StreamName, Tenant};

use crate::ack::Ack;
use crate::error::{CreateError, OpenError};
use crate::stream::Stream;
use crate::streams::Streams;
use limits::{IDLE_GROUP_MS, PURGE_EVERY_MS, PURGES_PER_TICK_MAX, SESSIONS_PER_TICK_MAX};
use offsets::{OffsetLog, refused};
use shared::Shared;
use steady::Steady;
use table::{Cell, State, Stored, Table};

pub use classic::{
    Answer, Classic, ClassicError, JoinRequest, Joined, JoinedMember, Leaving, MemberRef, SyncRequest, Synced,
};
pub use error::GroupError;
pub use types::{
    Committed, GroupDescription, GroupListing, GroupSettings, GroupStats, MemberDescription, OffsetCommit,
    Progress, Protocol,
};
pub use work::{Member, Pull, Pulled, Settled};

/// The consumer groups of a broker.
pub struct Groups {
    shared: Arc<Shared>,
    classic: Classic,
    /// Which group the next tick begins with, so that none starves.
    turn: AtomicUsize,
}

/// What a tick may still do, over all groups; the rest comes with the next.
struct Budget {
    sessions: usize,
    purges: usize,
}

/// Why a commit of a classic member was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitRefusal {
    /// The member may not.
    #[error(transparent)]
    Member(#[from] ClassicError),
    /// The offsets are not taken.
    #[error(transparent)]
    Offsets(#[from] GroupError),
}

impl Groups {
    /// Reads back what was committed.
    pub(crate) fn open(streams: Arc<Streams>) -> Result<Self, OpenError> {
        let table = Table::default();
        let mut failed = None;
        let log = OffsetLog::open(&streams, |key, stored| {
            match (table.get_or_make(&key.tenant, &key.group), stored) {
                (Ok(cell), Some(stored)) => _ = cell.lock().offsets.insert((key.stream, key.shard), stored),
                (Ok(cell), None) => _ = cell.lock().offsets.remove(&(key.stream, key.shard)),
                (Err(error), _) => failed = Some(OpenError::Internal(error.to_string())),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        for cell in table.all() {
            let mut state = cell.lock();
            if state.is_void() {
                state.is_dead = true;
                table.remove(&cell);
            }
        }
        let steady = Steady::new(streams.room.now_ms());
        let shared = Arc::new(Shared { streams, table, log, steady });
        Ok(Groups { classic: Classic::new(shared.clone()), shared, turn: AtomicUsize::new(0) })
    }

    /// The coordinator of the groups whose members speak Kafka's classic protocol.
    pub fn classic(&self) -> &Classic {
        &self.classic
    }

    /// Joins a native group, which is made if it is not there. The first member says what the group does; the
    /// others take it as it is. A dead-letter stream that is not there is made. May wait for the disk.
    pub fn join(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        client: &str,
        streams: &[StreamName],
        settings: &GroupSettings,
    ) -> Result<Member, GroupError> {
        settings.validate()?;
        let streams = self.check_streams(tenant, streams, settings)?;
        if self.shared.is_draining() {
            return Err(GroupError::ShuttingDown);
        }
        if let Some(name) = &settings.dead_letter {
            if name.is_internal() {
                return Err(GroupError::UnknownStream(name.clone()));
            }
            self.shared.dead_letter_stream(tenant, name).map_err(|error| not_made(name, &error))?;
        }
        loop {
            let cell = self.shared.table.get_or_make(tenant, group)?;
            if let Some(member) = work::join(&self.shared, &cell, client, &streams, settings)? {
                return Ok(member);
            }
        }
    }

    fn check_streams(
        &self,
        tenant: &Tenant,
        names: &[StreamName],
        settings: &GroupSettings,
    ) -> Result<Vec<Arc<Stream>>, GroupError> {
        let (count, max) = (names.len() as u64, GROUP_STREAMS_MAX as u64);
        if !(1..=max).contains(&count) {
            return Err(GroupError::OutOfRange { field: "streams", value: count, min: 1, max });
        }
        let mut sorted: Vec<&StreamName> = names.iter().chain(&settings.dead_letter).collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(GroupError::Repeated(twice[0].clone()));
        }
        names.iter().map(|name| self.shared.stream(tenant, name)).collect()
    }

    /// Commits offsets of a group that nobody is in: a consumer that assigns its shards itself. All of them,
    /// or none. In force at once; the answer resolves when they count.
    pub fn commit(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        offsets: &[OffsetCommit],
    ) -> Result<Ack, GroupError> {
        let nobody = MemberRef { generation: -1, member_id: String::new(), instance_id: None };
        self.commit_as(tenant, group, &nobody, offsets).map_err(|refusal| match refusal {
            CommitRefusal::Offsets(error) => error,
            CommitRefusal::Member(_) => GroupError::NotEmpty(group.clone()),
        })
    }

    /// Commits offsets as a member of a classic group (OffsetCommit). All of them, or none. In force at once;
    /// the answer resolves when they count.
    pub fn commit_as(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        member: &MemberRef,
        offsets: &[OffsetCommit],
    ) -> Result<Ack, CommitRefusal> {
        let entries = self.shared.check(tenant, offsets)?;
        loop {
            let cell = match member.generation < 0 {
                true => self.shared.table.get_or_make(tenant, group)?,
                false => self.shared.table.get(tenant, group).ok_or(ClassicError::UnknownMemberId)?,
            };
            let mut state = cell.lock();
            if state.is_dead {
                continue;
            }
            let now = self.shared.now();
            state.active_at = now;
            state.classic.check_commit(now, member)?;
            if state.work.as_ref().is_some_and(|work| work.members() > 0) {
                return Err(GroupError::OtherProtocol(group.clone()).into());
            }
            // What unfinished work would go on from is another offset now.
            if let Some(work) = state.work.take() {
                drop(state);
                work.close();
                continue;
            }
            return Ok(self.shared.store(&cell, &mut state, entries)?);
        }
    }

    /// How far a group has come in a shard.
    pub fn committed(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        stream: &StreamName,
        shard: u32,
    ) -> Option<Committed> {
        let cell = self.shared.table.get(tenant, group)?;
        let state = cell.lock();
        self.shared.committed(&cell, &state, &(stream.clone(), shard))
    }

    /// How far a group has come, in one stream or in all; `None`: there is no such group.
    pub fn all_committed(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        stream: Option<&StreamName>,
    ) -> Option<Vec<(StreamName, u32, Committed)>> {
        let cell = self.shared.table.get(tenant, group)?;
        let state = cell.lock();
        let wanted = |name: &StreamName| stream.is_none_or(|stream| stream == name);
        let found = state.offsets.keys().filter(|(name, _)| wanted(name)).filter_map(|at| {
            let committed = self.shared.committed(&cell, &state, at)?;
            Some((at.0.clone(), at.1, committed))
        });
        Some(found.collect())
    }

    /// At most `limit` of the tenant's groups whose names begin with `prefix`, in order of name, after
    /// `after`.
    pub fn list(
        &self,
        tenant: &Tenant,
        prefix: &str,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Vec<GroupListing> {
        let cells = self.shared.table.list(tenant, prefix, after, limit);
        cells.iter().map(|cell| listing(cell, &cell.lock())).collect()
    }

    /// Figures of every group of all tenants, for metrics.
    pub fn stats(&self) -> Vec<GroupStats> {
        let cells = self.shared.table.all();
        let stats = cells.iter().map(|cell| {
            let (listing, rebalances, mut progress, work) = {
                let state = cell.lock();
                let progress = self.progress(cell, &state);
                (listing(cell, &state), state.classic.rebalances(), progress, state.work.clone())
            };
            if let Some(work) = work {
                add_standings(&mut progress, work.standings());
            }
            GroupStats::of(cell.tenant.clone(), listing, &progress, rebalances)
        });
        stats.collect()
    }

    /// Everything about a group.
    pub fn describe(&self, tenant: &Tenant, group: &GroupName) -> Option<GroupDescription> {
        let cell = self.shared.table.get(tenant, group)?;
        let (mut description, work) = {
            let state = cell.lock();
            let description = GroupDescription {
                listing: listing(&cell, &state),
                protocol_name: state.classic.protocol_name().to_owned(),
                generation: state.classic.generation(),
                settings: None,
                members: state.classic.describe_members(),
                progress: self.progress(&cell, &state),
            };
            (description, state.work.clone())
        };
        if let Some(work) = work {
            description.settings = Some(work.settings());
            description.members.extend(work.describe_members());
            add_standings(&mut description.progress, work.standings());
        }
        Some(description)
    }

    fn progress(&self, cell: &Cell, state: &State) -> Vec<Progress> {
        let of = |((name, number), stored): (&(StreamName, u32), &Stored)| {
            let stream = self.shared.streams.stream(&cell.tenant, name).ok();
            let stream = stream.filter(|stream| stream.id() == stored.stream);
            let shard = stream.as_ref().and_then(|stream| stream.shard(*number));
            let bounds = shard.map(|shard| (shard.start_offset(), shard.end_offset()));
            let committed = stored.committed.offset;
            let figures = state.figures.get(&(name.clone(), *number)).copied().unwrap_or_default();
            Progress {
                stream: name.clone(),
                shard: *number,
                committed,
                note: stored.committed.note.clone(),
                start: bounds.map(|(start, _)| start),
                end: bounds.map(|(_, end)| end),
                lag: bounds.map(|(start, end)| end.saturating_sub(committed.max(start))),
                in_flight: 0,
                waiting: 0,
                redelivered: figures.redelivered,
                dead_lettered: figures.dead_lettered,
                passed_over: figures.passed_over,
                lost: figures.lost,
            }
        };
        state.offsets.iter().map(of).collect()
    }

    /// Puts a group that nobody is in to another place of a stream, in one shard or all. Answers where it is
    /// now; in force at once, and the answer resolves when it counts. May wait for the disk.
    pub fn reset(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        stream: &StreamName,
        shard: Option<u32>,
        to: Start,
    ) -> Result<(Vec<(u32, u64)>, Ack), GroupError> {
        let found = self.shared.stream(tenant, stream)?;
        if let Some(shard) = shard.filter(|shard| found.shard(*shard).is_none()) {
            return Err(GroupError::UnknownShard { stream: stream.clone(), shard });
        }
        let numbers =
            (0_u32..).zip(found.shards()).filter(|(number, _)| shard.is_none_or(|wanted| wanted == *number));
        let resolve = |(number, shard)| {
            let shard: &Arc<crate::shard::Shard> = shard;
            work::resolve(shard, to).map(|offset| (number, offset)).map_err(|_| GroupError::Failed)
        };
        let offsets: Vec<(u32, u64)> = numbers.map(resolve).collect::<Result<_, _>>()?;
        let commits: Vec<OffsetCommit> = offsets
            .iter()
            .map(|(shard, offset)| OffsetCommit {
                stream: stream.clone(),
                shard: *shard,
                offset: *offset,
                note: "".into(),
            })
            .collect();
        let ack = self.commit(tenant, group, &commits).map_err(|error| match error {
            GroupError::OtherProtocol(group) => GroupError::NotEmpty(group),
            error => error,
        })?;
        Ok((offsets, ack))
    }

    /// Forgets a group that nobody is in. The answer resolves when that counts.
    pub fn delete(&self, tenant: &Tenant, group: &GroupName) -> Result<Ack, GroupError> {
        let cell = self.shared.table.get(tenant, group).ok_or(GroupError::Unknown)?;
        let mut state = cell.lock();
        if state.is_dead {
            return Err(GroupError::Unknown);
        }
        let works = state.work.as_ref().is_some_and(|work| work.members() > 0);
        if works || state.classic.members() > 0 {
            return Err(GroupError::NotEmpty(group.clone()));
        }
        let ack = self.shared.forget(&cell, &mut state).map_err(|error| refused(&error))?;
        let work = state.work.take();
        drop(state);
        if let Some(work) = work {
            work.close();
        }
        tracing::info!(%tenant, %group, "group deleted");
        Ok(ack)
    }

    /// Forgets what a group has committed in these shards (OffsetDelete), unless somebody is in it.
    pub fn delete_offsets(
        &self,
        tenant: &Tenant,
        group: &GroupName,
        shards: &[(StreamName, u32)],
    ) -> Result<Ack, GroupError> {
        let cell = self.shared.table.get(tenant, group).ok_or(GroupError::Unknown)?;
        let mut state = cell.lock();
        if !state.is_idle() {
            return Err(GroupError::NotEmpty(group.clone()));
        }
        let ended: Vec<_> =
            shards.iter().filter(|at| state.offsets.contains_key(at)).map(|at| (at.clone(), None)).collect();
        let ack = self
            .shared
            .log
            .write(&cell, &ended, self.shared.streams.room.now_ms())
            .map_err(|error| refused(&error))?;
        for (at, _) in &ended {
            state.offsets.remove(at);
            state.figures.remove(at);
        }
        Ok(ack)
    }

    /// Timeouts, and what is done in the background. May wait for the disk.
    pub(crate) fn tick(&self, _now_ms: i64) {
        let now = self.shared.now();
        for cell in self.shared.log.take_refused() {
            cell.lock().owes = true;
        }
        let cells = self.shared.table.all();
        let mut budget = Budget { sessions: SESSIONS_PER_TICK_MAX, purges: PURGES_PER_TICK_MAX };
        let begin = self.turn.fetch_add(1, Ordering::Relaxed) % cells.len().max(1);
        for cell in cells[begin..].iter().chain(&cells[..begin]) {
            self.tick_group(cell, now, &mut budget);
        }
    }

    fn tick_group(&self, cell: &Arc<Cell>, now: u64, budget: &mut Budget) {
        let (wakers, work) = {
            let mut state = cell.lock();
            if state.owes {
                self.shared.pay(cell, &mut state);
            }
            if budget.purges > 0 && now.saturating_sub(state.purged_at) >= PURGE_EVERY_MS {
                budget.purges -= 1;
                state.purged_at = now;
                self.shared.purge(cell, &mut state);
            }
            (classic::tick(&mut state, now, &mut budget.sessions), state.work.clone())
        };
        classic::wake(wakers);
        let over = work.filter(|work| work.tick(&self.shared, cell, now));
        let mut state = cell.lock();
        if over.is_some_and(|over| state.work.as_ref().is_some_and(|work| Arc::ptr_eq(work, &over))) {
            state.work = None;
        }
        let idle = now.saturating_sub(state.active_at);
        if state.is_idle() && !state.is_dead && (state.is_void() || idle >= IDLE_GROUP_MS) {
            if !state.is_void() {
                tracing::info!(tenant = %cell.tenant, group = %cell.name, "an idle group is forgotten");
            }
            // Refused: the next tick tries again.
            _ = self.shared.forget(cell, &mut state);
        }
    }
}

/// For [`crate::fuzz`]: any bytes as a record of the stream of committed offsets. What is read is written and read
/// again as the same.
pub(crate) fn fuzz(bytes: &[u8]) {
    offsets::fuzz(bytes);
}

fn not_made(name: &StreamName, error: &CreateError) -> GroupError {
    match error {
        CreateError::NoSpace => GroupError::NoSpace,
        CreateError::ShuttingDown => GroupError::ShuttingDown,
        CreateError::TooMany { what, limit } => GroupError::TooMany { what, limit: *limit },
        CreateError::Failed => GroupError::Failed,
        _ => GroupError::UnknownStream(name.clone()),
    }
}

fn listing(cell: &Cell, state: &State) -> GroupListing {
    let working = state.work.as_ref().map_or(0, |work| work.members());
    let members = working + state.classic.members();
    let protocol = match (working, state.classic.is_empty()) {
        (0, true) => Protocol::None,
        (0, false) => Protocol::Classic,
        _ => Protocol::Native,
    };
    let group_state = match (state.is_dead, state.classic.is_rebalancing(), members) {
        (true, ..) => GroupState::Dead,
        (_, true, _) => GroupState::Rebalancing,
        (_, _, 0) => GroupState::Empty,
        _ => GroupState::Active,
    };
    GroupListing {
        name: cell.name.clone(),
        state: group_state,
        protocol,
        protocol_type: state.classic.protocol_type().to_owned(),
        kafka_state: match (state.is_dead, working) {
            (true, _) => "Dead",
            (_, 0) => state.classic.state_name(),
            _ => "Stable",
        },
        members,
    }
}

/// What the members of a native group have in hand, beside the committed offsets.
fn add_standings(progress: &mut [Progress], standings: Vec<work::Standing>) {
    let mut by_shard: BTreeMap<(StreamName, u32), &mut Progress> =
        progress.iter_mut().map(|of| ((of.stream.clone(), of.shard), of)).collect();
    for standing in standings {
        if let Some(of) = by_shard.get_mut(&(standing.stream, standing.number)) {
            of.in_flight += standing.leased;
            of.waiting += standing.waiting;
            of.redelivered += standing.figures.redelivered;
            of.dead_lettered += standing.figures.dead_lettered;
            of.passed_over += standing.figures.passed_over;
            of.lost += standing.figures.lost;
        }
    }
}

#[cfg(test)]
mod tests;
