//! Consumer groups: members that pull and settle, committed offsets, and what groups are doing.
//!
//! A pull waits in a task of its own until there are records, its time is over, or its member leaves. What
//! has been leased on a thread for the disk is always answered: a wait is cut short only where nothing has
//! been taken.

use std::sync::Arc;
use std::time::Duration;

use slab::Slab;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use trifid_stream_engine::groups::{
    GroupDescription, GroupError, GroupListing, GroupSettings, Member, OffsetCommit, Protocol, Pulled,
    Settled,
};
use trifid_stream_model::frame::{
    Code, CommittedOffset, Delivery, GroupMember, GroupSummary, OffsetRange, Refusal, Reply, reply, request,
};
use trifid_stream_model::limits::PULL_WAIT_MS_MAX;
use trifid_stream_model::names::GroupName;

use super::serving::Serving;
use super::streams::page_of;
use super::tasks::{Answer, Ending, blocking};
use super::{Output, refusal};
use crate::limits::{LEAVE_STEP, MEMBERS_MAX};

/// Members that were made on this byte stream.
#[derive(Default)]
pub(super) struct Members {
    joined: Slab<Joined>,
}

struct Joined {
    member: Arc<Member>,
    /// Tells its pulls that it leaves.
    leaves: watch::Sender<bool>,
}

impl Members {
    fn get(&self, handle: u32) -> Result<&Joined, Refusal> {
        let found = usize::try_from(handle).ok().and_then(|key| self.joined.get(key));
        found.ok_or_else(refusal::unknown_handle)
    }

    /// Every pull answers what it has, and waits no more.
    pub(super) fn hurry(&self) {
        for (_, joined) in &self.joined {
            joined.leaves.send_replace(true);
        }
    }
}

impl Serving {
    pub(super) fn join_group(&mut self, id: u32, join: request::GroupJoin) {
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        self.tasks.begin(async move {
            let request::GroupJoin { group, client, streams, settings } = join;
            let settings = GroupSettings::from(&settings);
            let joined =
                blocking(move || broker.groups().join(&tenant, &group, &client, &streams, &settings)).await;
            let joined = joined.and_then(|joined| joined.map_err(|error| refusal::of_group(&error)));
            Box::new(move |serving: &mut Self, out: &mut Output| match joined {
                Ok(member) => serving.joined(id, member, out),
                Err(refusal) => out.refuse(id, refusal),
            }) as Ending
        });
    }

    fn joined(&mut self, id: u32, member: Member, out: &mut Output) {
        if self.is_leaving() || self.members.joined.len() >= MEMBERS_MAX {
            member.leave();
            let message = "the connection has all the memberships that it may have, or is ending";
            return out.refuse(id, Refusal::new(Code::Overloaded { shed: 0 }, message));
        }
        let (settings, number) = ((&member.settings()).into(), member.id());
        let joined = Joined { member: Arc::new(member), leaves: watch::Sender::new(false) };
        let handle = u32::try_from(self.members.joined.insert(joined)).unwrap_or(u32::MAX);
        out.reply(id, reply::Joined { handle, member: number, settings });
    }

    pub(super) fn pull(&mut self, id: u32, pull: &request::GroupPull, out: &mut Output) {
        let joined = match self.members.get(pull.handle) {
            Ok(joined) => joined,
            Err(refusal) => return out.refuse(id, refusal),
        };
        let (member, leaves) = (Arc::clone(&joined.member), joined.leaves.subscribe());
        // What is pulled has to fit into a frame of the client's.
        let max_bytes = (pull.max_bytes.min(self.frame_bytes / 2)).max(1) as usize;
        let (max_records, wait_ms) = (pull.max_records, pull.wait_ms.min(PULL_WAIT_MS_MAX));
        self.tasks.answer(id, async move {
            let until = Instant::now() + Duration::from_millis(wait_ms.into());
            let deliveries = pull_until(&member, leaves, until, max_records, max_bytes).await?;
            Ok(reply::Pulled { deliveries }.into())
        });
    }

    pub(super) fn settle(
        &mut self,
        id: u32,
        handle: u32,
        how: impl FnOnce(&Member) -> Result<Settled, GroupError>,
        out: &mut Output,
    ) {
        let settled = self
            .members
            .get(handle)
            .and_then(|joined| how(&joined.member).map_err(|error| refusal::of_group(&error)));
        match settled {
            Err(refusal) => out.refuse(id, refusal),
            Ok(Settled { settled, unknown, ack }) if ack.is_ready() => {
                out.reply(id, reply::Settled { settled, unknown });
            }
            Ok(Settled { settled, unknown, ack }) => self.tasks.answer(id, async move {
                ack.await.map_err(refusal::of_commit)?;
                Ok(reply::Settled { settled, unknown }.into())
            }),
        }
    }

    pub(super) fn ack_group(&mut self, id: u32, ack: &request::GroupAck, out: &mut Output) {
        self.settle(id, ack.handle, |member| member.ack(&ack.ranges), out);
    }

    pub(super) fn nack_group(&mut self, id: u32, nack: &request::GroupNack, out: &mut Output) {
        let ranges: &[OffsetRange] = &nack.ranges;
        self.settle(id, nack.handle, |member| member.nack(ranges, nack.delay_ms), out);
    }

    pub(super) fn extend_group(&mut self, id: u32, extend: &request::GroupExtend, out: &mut Output) {
        let ranges: &[OffsetRange] = &extend.ranges;
        self.settle(id, extend.handle, |member| member.extend(ranges, extend.lease_ms), out);
    }

    /// Leaves when the pulls of the member have ended, which they do at once.
    pub(super) fn leave_group(&mut self, id: u32, handle: u32, out: &mut Output) {
        if let Err(refusal) = self.members.get(handle) {
            return out.refuse(id, refusal);
        }
        let Joined { mut member, leaves } = self.members.joined.remove(handle as usize);
        leaves.send_replace(true);
        self.tasks.answer(id, async move {
            loop {
                match Arc::try_unwrap(member) {
                    Ok(member) => member.leave(),
                    Err(shared) => {
                        member = shared;
                        tokio::time::sleep(LEAVE_STEP).await;
                        continue;
                    }
                }
                return Ok(reply::Done {}.into());
            }
        });
    }

    pub(super) fn describe_group(&self, group: &GroupName) -> Answer {
        let found = self.core.broker.groups().describe(&self.tenancy.tenant, group);
        found.map(described).ok_or_else(|| refusal::of_group(&GroupError::Unknown))
    }

    pub(super) fn list_groups(&self, list: &request::GroupList) -> Answer {
        let (limit, after) = page_of(&list.page, |name| GroupName::new(name).ok())?;
        let groups = self.core.broker.groups();
        let found = groups.list(&self.tenancy.tenant, &list.prefix, after.as_ref(), limit + 1);
        let more = found.len() > limit;
        Ok(reply::Groups { groups: found.into_iter().take(limit).map(summary).collect(), more }.into())
    }

    pub(super) fn delete_group(&mut self, id: u32, group: &GroupName) {
        let deleted = self.core.broker.groups().delete(&self.tenancy.tenant, group);
        self.tasks.answer(id, async move {
            deleted.map_err(|error| refusal::of_group(&error))?.await.map_err(refusal::of_commit)?;
            Ok(reply::Done {}.into())
        });
    }

    pub(super) fn commit_offsets(&mut self, id: u32, commit: request::CommitOffsets) {
        let offset = |CommittedOffset { stream, shard, offset, note }| OffsetCommit {
            stream,
            shard,
            offset,
            note: note.into(),
        };
        let offsets: Vec<OffsetCommit> = commit.offsets.into_iter().map(offset).collect();
        let committed = self.core.broker.groups().commit(&self.tenancy.tenant, &commit.group, &offsets);
        self.tasks.answer(id, async move {
            committed.map_err(|error| refusal::of_group(&error))?.await.map_err(refusal::of_commit)?;
            Ok(reply::Done {}.into())
        });
    }

    /// A group that is not there has come nowhere.
    pub(super) fn fetch_offsets(&self, fetch: &request::FetchOffsets) -> Answer {
        let groups = self.core.broker.groups();
        let found = groups.all_committed(&self.tenancy.tenant, &fetch.group, fetch.stream.as_ref());
        let offsets =
            found.unwrap_or_default().into_iter().map(|(stream, shard, committed)| CommittedOffset {
                stream,
                shard,
                offset: committed.offset,
                note: committed.note.as_ref().to_owned(),
            });
        Ok(reply::Committed { offsets: offsets.collect() }.into())
    }

    pub(super) fn reset_offsets(&mut self, id: u32, reset: request::ResetOffsets) {
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        self.tasks.answer(id, async move {
            let request::ResetOffsets { group, stream, shard, to } = reset;
            let name = stream.clone();
            let moved = blocking(move || broker.groups().reset(&tenant, &group, &stream, shard, to)).await?;
            let (places, ack) = moved.map_err(|error| refusal::of_group(&error))?;
            ack.await.map_err(refusal::of_commit)?;
            let offset = |(shard, offset)| CommittedOffset {
                stream: name.clone(),
                shard,
                offset,
                note: String::new(),
            };
            Ok(reply::Committed { offsets: places.into_iter().map(offset).collect() }.into())
        });
    }
}

/// Waits for records, but not past `until`, nor past the end of the membership.
async fn pull_until(
    member: &Arc<Member>,
    mut leaves: watch::Receiver<bool>,
    until: Instant,
    max_records: u32,
    max_bytes: usize,
) -> Result<Vec<Delivery>, Refusal> {
    loop {
        let pulled = tokio::select! {
            biased;
            pulled = member.pull(max_records, max_bytes) => pulled,
            _ = leaves.wait_for(|leaves| *leaves) => return Ok(Vec::new()),
            () = sleep_until(until) => return Ok(Vec::new()),
        };
        match pulled.map_err(|error| refusal::of_group(&error))? {
            Pulled::Deliveries(deliveries) => return Ok(deliveries),
            Pulled::NeedsDisk => {
                let reader = Arc::clone(member);
                let read = blocking(move || reader.pull_from_disk(max_records, max_bytes)).await?;
                let deliveries = read.map_err(|error| refusal::of_group(&error))?;
                if !deliveries.is_empty() {
                    return Ok(deliveries);
                }
            }
        }
    }
}

fn summary(listing: GroupListing) -> GroupSummary {
    let members = u32::try_from(listing.members).unwrap_or(u32::MAX);
    GroupSummary { name: listing.name, state: listing.state, members }
}

fn described(group: GroupDescription) -> Reply {
    let members = group.members.into_iter().map(|member| GroupMember {
        member: member.member,
        client: member.client,
        in_flight: member.in_flight,
    });
    let offsets = group.progress.into_iter().map(|progress| CommittedOffset {
        stream: progress.stream,
        shard: progress.shard,
        offset: progress.committed,
        note: progress.note.as_ref().to_owned(),
    });
    reply::Group {
        state: group.listing.state,
        classic: group.listing.protocol == Protocol::Classic,
        members: members.collect(),
        offsets: offsets.collect(),
    }
    .into()
}
