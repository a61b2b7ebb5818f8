//! What all groups share: the table, the stream of committed offsets, the time.

use std::sync::Arc;

use trifid_stream_model::batch::HEADER_LEN;
use trifid_stream_model::limits::BATCH_BYTES_MAX;
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::{Durability, StreamKind, StreamSpec};

use super::error::GroupError;
use super::limits::{NOTE_BYTES_MAX, OFFSETS_PER_GROUP_MAX};
use super::offsets::{OffsetLog, refused};
use super::steady::Steady;
use super::table::{At, Cell, State, Stored, Table};
use super::types::{Committed, OffsetCommit};
use crate::ack::Ack;
use crate::error::{CommitFailure, CreateError, PublishError};
use crate::stream::Stream;
use crate::streams::Streams;

/// See the module.
pub(super) struct Shared {
    pub(super) streams: Arc<Streams>,
    pub(super) table: Table,
    pub(super) log: OffsetLog,
    pub(super) steady: Steady,
}

const _: () = assert!(NOTE_BYTES_MAX + 1024 + HEADER_LEN < BATCH_BYTES_MAX);

impl Shared {
    /// The time of sessions and leases.
    pub(super) fn now(&self) -> u64 {
        self.steady.at(self.streams.room.now_ms())
    }

    pub(super) fn is_draining(&self) -> bool {
        self.streams.room.is_draining()
    }

    /// A stream that a client names.
    pub(super) fn stream(&self, tenant: &Tenant, name: &StreamName) -> Result<Arc<Stream>, GroupError> {
        self.streams.stream(tenant, name).map_err(|_| GroupError::UnknownStream(name.clone()))
    }

    /// Checks offsets that are to be committed.
    pub(super) fn check(
        &self,
        tenant: &Tenant,
        offsets: &[OffsetCommit],
    ) -> Result<Vec<(At, Stored)>, GroupError> {
        let at_ms = self.streams.room.now_ms();
        let check = |commit: &OffsetCommit| {
            let stream = self.stream(tenant, &commit.stream)?;
            if stream.shard(commit.shard).is_none() {
                let (stream, shard) = (commit.stream.clone(), commit.shard);
                return Err(GroupError::UnknownShard { stream, shard });
            }
            let bytes = commit.note.len();
            if bytes > NOTE_BYTES_MAX {
                let (value, max) = (bytes as u64, NOTE_BYTES_MAX as u64);
                return Err(GroupError::OutOfRange { field: "note", value, min: 0, max });
            }
            let committed = Committed { offset: commit.offset, note: commit.note.clone(), at_ms };
            Ok(((commit.stream.clone(), commit.shard), Stored { stream: stream.id(), committed }))
        };
        offsets.iter().map(check).collect()
    }

    /// Puts offsets in force and writes them. Nothing is in force if that is refused.
    pub(super) fn store(
        &self,
        cell: &Arc<Cell>,
        state: &mut State,
        entries: Vec<(At, Stored)>,
    ) -> Result<Ack, GroupError> {
        let new = entries.iter().filter(|(at, _)| !state.offsets.contains_key(at)).count();
        if state.offsets.len() + new > OFFSETS_PER_GROUP_MAX {
            return Err(GroupError::TooMany { what: "shards of a group", limit: OFFSETS_PER_GROUP_MAX });
        }
        let ack = self.write(cell, &entries).map_err(|error| refused(&error))?;
        state.offsets.extend(entries);
        Ok(ack)
    }

    /// Puts offsets in force that follow from what members did, whether or not they can be written now: what
    /// is owed is written with the next tick that can.
    pub(super) fn store_or_owe(&self, cell: &Arc<Cell>, entries: Vec<(At, Stored)>) -> Ack {
        let written = self.write(cell, &entries);
        let mut state = cell.lock();
        if !state.is_dead {
            state.offsets.extend(entries);
        }
        state.active_at = self.now();
        written.unwrap_or_else(|error| {
            state.owes = true;
            Ack::failed(match error {
                PublishError::NoSpace => CommitFailure::NoSpace,
                PublishError::Deleted => CommitFailure::Deleted,
                _ => CommitFailure::Failed,
            })
        })
    }

    /// Writes what is in force of a group, all of it.
    pub(super) fn pay(&self, cell: &Arc<Cell>, state: &mut State) {
        let entries: Vec<_> = state.offsets.iter().map(|(at, stored)| (at.clone(), stored.clone())).collect();
        state.owes = self.write(cell, &entries).is_err();
    }

    fn write(&self, cell: &Arc<Cell>, entries: &[(At, Stored)]) -> Result<Ack, PublishError> {
        // A stream in memory begins anew with the broker: so do the offsets in it.
        let is_durable = |name: &StreamName| {
            self.streams.stream(&cell.tenant, name).is_ok_and(|stream| stream.spec().durability.is_durable())
        };
        let durable = entries.iter().filter(|((name, _), _)| is_durable(name));
        let durable: Vec<_> = durable.map(|(at, stored)| (at.clone(), Some(stored.clone()))).collect();
        self.log.write(cell, &durable, self.streams.room.now_ms())
    }

    /// What is committed of a shard, if it is of the stream that there is now.
    pub(super) fn committed(&self, cell: &Cell, state: &State, at: &At) -> Option<Committed> {
        let stored = state.offsets.get(at)?;
        let stream = self.streams.stream(&cell.tenant, &at.0).ok()?;
        (stored.stream == stream.id()).then(|| stored.committed.clone())
    }

    /// Forgets offsets of streams that are gone: nobody can ask for them any more.
    pub(super) fn purge(&self, cell: &Arc<Cell>, state: &mut State) {
        let is_gone = |at: &At, stored: &Stored| {
            self.streams.stream(&cell.tenant, &at.0).map_or(true, |stream| stream.id() != stored.stream)
        };
        let gone = state.offsets.iter().filter(|(at, stored)| is_gone(at, stored));
        let gone: Vec<(At, Option<Stored>)> = gone.map(|(at, _)| (at.clone(), None)).collect();
        // Refused: it is tried again.
        if self.log.write(cell, &gone, self.streams.room.now_ms()).is_ok() {
            for (at, _) in &gone {
                state.offsets.remove(at);
                state.figures.remove(at);
            }
        }
    }

    /// Takes a group out of the table; what is written of it is ended.
    pub(super) fn forget(&self, cell: &Arc<Cell>, state: &mut State) -> Result<Ack, PublishError> {
        let ended: Vec<_> = state.offsets.keys().map(|at| (at.clone(), None)).collect();
        let ack = self.log.write(cell, &ended, self.streams.room.now_ms())?;
        state.offsets.clear();
        state.figures.clear();
        state.is_dead = true;
        self.table.remove(cell);
        Ok(ack)
    }

    /// Where a group sets records aside, made if it is not there. May wait for the disk.
    pub(super) fn dead_letter_stream(
        &self,
        tenant: &Tenant,
        name: &StreamName,
    ) -> Result<Arc<Stream>, CreateError> {
        if let Ok(stream) = self.streams.stream(tenant, name) {
            return Ok(stream);
        }
        let durability = if self.streams.dir.is_some() { Durability::OnCommit } else { Durability::Memory };
        let spec = StreamSpec {
            durability,
            kind: StreamKind::DeadLetter,
            max_batch_bytes: BATCH_BYTES_MAX as u32,
            ..StreamSpec::default()
        };
        match self.streams.create(tenant, name, spec) {
            Err(CreateError::Exists) => self.streams.stream(tenant, name).map_err(|_| CreateError::Unknown),
            made => made,
        }
    }
}
