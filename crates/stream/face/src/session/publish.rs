//! Publishing: handles, admission, and acknowledgements in order.
//!
//! A publish is checked, admitted by its bytes, and appended; its acknowledgement is queued behind those
//! before it. Only the first of the queue is waited for: acknowledgements of one flush resolve together, so
//! that the task is woken once for all of them, and they leave in one write.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use slab::Slab;
use trifid_stream_engine::{Ack, Checked, Published, Shard, Stream};
use trifid_stream_model::batch::{BatchHeader, split};
use trifid_stream_model::frame::{
    Ack as Wanted, Code, FRAME_HEAD_LEN, Frame, Refusal, Request, frame_head, reply, request,
};
use trifid_stream_model::names::StreamName;

use super::serving::Serving;
use super::{Output, refusal};
use crate::limits::{HANDLES_MAX, PUBLISH_OVERHEAD_BYTES};

/// Streams that were opened for publishing on this byte stream.
#[derive(Default)]
pub(super) struct Handles {
    streams: Slab<Arc<Stream>>,
}

impl Handles {
    /// The handle of a stream: the one it has, or a new one.
    pub(super) fn open(&mut self, stream: &Arc<Stream>) -> Option<u32> {
        let known = self.streams.iter().find(|(_, known)| known.id() == stream.id()).map(|(key, _)| key);
        let key = match known {
            Some(key) => {
                // It may have been altered since.
                self.streams[key] = Arc::clone(stream);
                key
            }
            None if self.streams.len() >= HANDLES_MAX => return None,
            None => self.streams.insert(Arc::clone(stream)),
        };
        u32::try_from(key).ok()
    }

    fn get(&self, handle: u32) -> Option<&Arc<Stream>> {
        self.streams.get(usize::try_from(handle).ok()?)
    }

    /// A stream that is deleted keeps no place.
    pub(super) fn forget(&mut self, name: &StreamName) {
        self.streams.retain(|_, stream| stream.name() != name);
    }
}

/// An acknowledgement that is waited for.
struct Pending {
    id: u32,
    base_offset: u64,
    end_offset: u64,
    ack: Ack,
    is_wanted: bool,
}

/// Acknowledgements in the order of their publishes.
#[derive(Default)]
pub(super) struct Acks {
    pending: VecDeque<Pending>,
    /// Records of unacknowledged publishes that were shed and not told of yet, and the last of them.
    shed: u64,
    shed_id: u32,
    shed_retry_ms: u32,
}

impl Acks {
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }
}

impl Serving {
    /// Takes a Publish. The frame is not held any longer than it takes to read it: its batch is then held by
    /// nobody else.
    pub(super) fn publish(&mut self, frame: Frame, out: &mut Output) {
        let id = frame.id;
        let publish = match Request::decode(&frame) {
            Ok(Request::Publish(publish)) => publish,
            Ok(_) => return out.refuse(id, Refusal::new(Code::InvalidRequest, "not a Publish")),
            Err(error) => return out.refuse(id, refusal::of_frame(&error)),
        };
        drop(frame);
        let is_wanted = publish.ack == Wanted::One;
        match self.try_publish(publish) {
            Ok(published) => self.queue(id, is_wanted, published),
            Err(refused) => self.refuse_publish(id, is_wanted, refused, out),
        }
    }

    fn try_publish(&self, publish: request::Publish) -> Result<Published, Refused> {
        if self.is_leaving() {
            return Err(refusal::leaving().into());
        }
        let stream = self.handles.get(publish.handle).ok_or_else(refusal::unknown_handle)?;
        let no_shard = || Refusal::new(Code::InvalidRequest, "the stream has no such shard");
        let shard = stream.shard(publish.shard).ok_or_else(no_shard)?;
        check_epoch(shard, publish.epoch)?;
        // Before the checksum: who is refused should cost little.
        let cost = publish.batches.len() + PUBLISH_OVERHEAD_BYTES;
        let admitted = self.tenancy.budget.admit(cost).map_err(|overloaded| Refused {
            refusal: refusal::of_admission(overloaded),
            records: records_of(&publish.batches),
        })?;
        let max_bytes = usize::try_from(stream.spec().max_batch_bytes).unwrap_or(usize::MAX);
        let checked = Checked::payload(&publish.batches, max_bytes);
        drop(publish);
        let checked = checked.map_err(|error| refusal::of_batch(&error))?;
        let records = checked.records();
        let published = shard.publish(checked, admitted);
        published.map_err(|error| Refused { refusal: refusal::of_publish(&error), records })
    }

    fn queue(&mut self, id: u32, is_wanted: bool, published: Published) {
        let Published { base_offset, end, ack, .. } = published;
        // Nobody waits for what is done and unasked for.
        if is_wanted || !ack.is_ready() {
            self.acks.pending.push_back(Pending { id, base_offset, end_offset: end, ack, is_wanted });
        }
    }

    fn refuse_publish(&mut self, id: u32, is_wanted: bool, refused: Refused, out: &mut Output) {
        let Refused { refusal, records } = refused;
        let is_overloaded = matches!(refusal.code, Code::Overloaded { .. });
        let stats = &self.core.stats;
        if is_overloaded {
            stats.overloaded.add(self.worker, 1);
        }
        if is_wanted || !is_overloaded {
            return out.refuse(id, refusal);
        }
        stats.shed.add(self.worker, records);
        self.acks.shed += records;
        (self.acks.shed_id, self.acks.shed_retry_ms) = (id, refusal.retry_after_ms);
    }

    /// Tells once of everything that was shed since it was last told.
    pub(super) fn tell_shed(&mut self, out: &mut Output) {
        let shed = std::mem::take(&mut self.acks.shed);
        if shed > 0 {
            let message = "unacknowledged publishes were dropped: too much is in flight";
            let refusal = Refusal::new(Code::Overloaded { shed }, message).after(self.acks.shed_retry_ms);
            out.refuse(self.acks.shed_id, refusal);
        }
    }

    /// Writes the acknowledgements that are due, all of them together.
    pub(super) fn poll_acks(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        let mut written = 0;
        while let Some(first) = self.acks.pending.front_mut() {
            let Poll::Ready(fate) = Pin::new(&mut first.ack).poll(cx) else { break };
            let Some(Pending { id, base_offset, end_offset, is_wanted, .. }) = self.acks.pending.pop_front()
            else {
                break;
            };
            match fate {
                Ok(()) if is_wanted => {
                    written += 1;
                    out.frame(&published(id, base_offset, end_offset));
                }
                Ok(()) => {}
                Err(failure) => out.refuse(id, refusal::of_commit(failure)),
            }
        }
        if written > 0 {
            self.core.stats.acked.add(self.worker, written);
            self.core.stats.acks_per_write.record(self.worker, written);
        }
        if self.acks.pending.is_empty() && self.acks.pending.capacity() > KEPT_ACKS {
            self.acks.pending.shrink_to(KEPT_ACKS);
        }
    }
}

/// A publish that is refused.
struct Refused {
    refusal: Refusal,
    /// How many records it has, where that matters.
    records: u64,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, records: 0 }
    }
}

/// How many records the heads of these batches tell of: nobody has looked further.
fn records_of(batches: &Bytes) -> u64 {
    let heads = split(batches).map_while(Result::ok).filter_map(|batch| BatchHeader::parse(&batch).ok());
    heads.map(|head| u64::from(head.span())).sum::<u64>().max(1)
}

/// Places for acknowledgements that an idle byte stream keeps.
const KEPT_ACKS: usize = 64;

/// An epoch of zero is whichever.
fn check_epoch(shard: &Shard, epoch: u32) -> Result<(), Refusal> {
    let current = shard.epoch();
    if epoch == 0 || epoch == current {
        return Ok(());
    }
    Err(Refusal::new(Code::Fenced { epoch: current.into() }, "the shard's owner has another epoch"))
}

/// Bytes of an acknowledgement.
const PUBLISHED_LEN: usize = FRAME_HEAD_LEN + 16;

/// The frame of a [`reply::Published`], without an allocation.
fn published(id: u32, base_offset: u64, end_offset: u64) -> [u8; PUBLISHED_LEN] {
    let mut frame = [0; PUBLISHED_LEN];
    frame[..FRAME_HEAD_LEN].copy_from_slice(&frame_head(reply::kind::PUBLISHED, id, 16));
    frame[FRAME_HEAD_LEN..FRAME_HEAD_LEN + 8].copy_from_slice(&base_offset.to_le_bytes());
    frame[FRAME_HEAD_LEN + 8..].copy_from_slice(&end_offset.to_le_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use trifid_stream_model::frame::Reply;

    use super::*;

    #[test]
    fn an_acknowledgement_by_hand_is_what_the_model_encodes() {
        let reply = Reply::from(reply::Published { base_offset: 7, end_offset: u64::MAX - 1 });
        assert_eq!(published(9, 7, u64::MAX - 1)[..], reply.encode(9).into_bytes()[..]);
    }
}
