//! Subscriptions and watches: what is pushed without being asked for each time.
//!
//! A subscription has a cursor for each of its shards and a credit in bytes for all of them. A cursor has a
//! seat in the [ready list](crate::ready), so that only those are looked at that have something; each gets a
//! turn of one frame and stands behind the others again. Without credit a cursor is parked until there is
//! some; without room in the outbox nobody has a turn. Reading pages of the disk happens elsewhere, a few at
//! a time.

use std::collections::{HashMap, VecDeque};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use slab::Slab;
use tokio::task::JoinHandle;
use trifid_stream_engine::cache::Watch;
use trifid_stream_engine::{Cursor, FetchError, Fetched, Policy as Rule, Shard, Start as From, Step};
use trifid_stream_model::frame::{
    BATCH_HEAD_LEN, Code, EndReason, FRAME_HEAD_LEN, Policy, Refusal, ShardOffset, Start, batch_head, reply,
    request,
};

use super::serving::Serving;
use super::streams::{chosen, start_of};
use super::tasks::{Ending, blocking};
use super::{Output, refusal};
use crate::limits::{CURSORS_MAX, DISK_READS_MAX, WATCH_BYTES_MAX};
use crate::ready::{Ready, Seat};

/// All subscriptions of one byte stream.
#[derive(Default)]
pub(super) struct Sources {
    ready: Ready,
    cursors: Slab<Source>,
    subscriptions: HashMap<u32, Subscription>,
    disk_reads: usize,
    /// Cursors that wait for a disk read to end before theirs begins.
    queued: VecDeque<u32>,
}

struct Subscription {
    cursors: Vec<u32>,
    /// Bytes that may be pushed; below zero, what a last frame took beyond it is owed.
    credit: i64,
    frame_bytes: usize,
    /// Cursors that have something and no credit for it.
    parked: Vec<u32>,
}

/// One cursor of a subscription.
struct Source {
    seat: Seat,
    subscription: u32,
    shard: u32,
    reading: Reading,
    is_parked: bool,
}

type Page = (Cursor, Result<Step, FetchError>);

enum Reading {
    Live(Box<Cursor>),
    Disk(JoinHandle<Page>),
    Watch(Box<Watch>),
    /// For the moment in which it is being looked at.
    Away,
}

/// Cursors with the numbers of their shards.
type Begun = Vec<(u32, Cursor)>;

impl Sources {
    /// Ends everything; answers how many subscriptions there were.
    pub(super) fn clear(&mut self) -> usize {
        let ended = self.subscriptions.len();
        self.subscriptions.clear();
        self.cursors.clear();
        self.queued.clear();
        ended
    }

    /// Allows a subscription more bytes.
    pub(super) fn credit(&mut self, id: u32, bytes: u64) {
        // One that has ended meanwhile needs none.
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        subscription.credit = subscription.credit.saturating_add(signed(bytes));
        for number in subscription.parked.drain(..) {
            if let Some(source) = self.cursors.get_mut(number as usize) {
                source.is_parked = false;
                source.seat.wake();
            }
        }
    }

    fn insert(&mut self, id: u32, begun: Begun, credit: u64, frame_bytes: usize) {
        let live = |(shard, cursor)| self.seat(id, shard, Reading::Live(Box::new(cursor)));
        let cursors = begun.into_iter().map(live).collect();
        let credit = signed(credit);
        self.subscriptions.insert(id, Subscription { cursors, credit, frame_bytes, parked: Vec::new() });
    }

    pub(super) fn insert_watch(&mut self, id: u32, watch: Watch, credit: u64) {
        let cursors = vec![self.seat(id, 0, Reading::Watch(Box::new(watch)))];
        let (frame_bytes, credit) = (WATCH_BYTES_MAX, signed(credit));
        self.subscriptions.insert(id, Subscription { cursors, credit, frame_bytes, parked: Vec::new() });
    }

    fn seat(&mut self, subscription: u32, shard: u32, reading: Reading) -> u32 {
        let entry = self.cursors.vacant_entry();
        // The number of cursors is bounded far below.
        let number = u32::try_from(entry.key()).unwrap_or(u32::MAX);
        entry.insert(Source {
            seat: self.ready.seat(number),
            subscription,
            shard,
            reading,
            is_parked: false,
        });
        number
    }

    /// So many bytes were pushed.
    pub(super) fn spend(&mut self, id: u32, bytes: u64) {
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.credit = subscription.credit.saturating_sub(signed(bytes));
        }
    }

    fn remove(&mut self, id: u32) -> bool {
        let Some(subscription) = self.subscriptions.remove(&id) else { return false };
        for number in subscription.cursors {
            if let Some(source) = self.cursors.try_remove(number as usize)
                && matches!(source.reading, Reading::Disk(_))
            {
                self.disk_read_ended();
            }
        }
        true
    }

    fn disk_read_ended(&mut self) {
        self.disk_reads = self.disk_reads.saturating_sub(1);
    }

    /// Wakes a cursor that waits for the disk, if there is one and another may read. It may turn out to have
    /// no credit: then the next one is asked for.
    fn wake_queued(&mut self) -> bool {
        while self.disk_reads < DISK_READS_MAX
            && let Some(number) = self.queued.pop_front()
        {
            if let Some(source) = self.cursors.get(number as usize) {
                source.seat.wake();
                return true;
            }
        }
        false
    }
}

impl Serving {
    pub(super) fn subscribe(&mut self, id: u32, subscribe: request::Subscribe, out: &mut Output) {
        let stream = match self.stream(&subscribe.stream) {
            Ok(stream) => stream,
            Err(refusal) => return out.refuse(id, refusal),
        };
        let shards = match chosen(&stream, subscribe.shard) {
            Ok(shards) => shards,
            Err(refusal) => return out.refuse(id, refusal),
        };
        if let Start::Time(_) = subscribe.start {
            // Where a time lies is looked up on the disk.
            self.tasks.begin(async move {
                let begun =
                    blocking(move || begin(&shards, &subscribe).map(|begun| (begun, subscribe))).await;
                Box::new(move |serving: &mut Self, out: &mut Output| match begun.and_then(|begun| begun) {
                    Ok((begun, subscribe)) => serving.begun(id, begun, &subscribe, out),
                    Err(refusal) => out.refuse(id, refusal),
                }) as Ending
            });
            return;
        }
        match begin(&shards, &subscribe) {
            Ok(begun) => self.begun(id, begun, &subscribe, out),
            Err(refusal) => out.refuse(id, refusal),
        }
    }

    fn begun(&mut self, id: u32, begun: Begun, subscribe: &request::Subscribe, out: &mut Output) {
        if let Err(refusal) = self.take_place(id, begun.len()) {
            return out.refuse(id, refusal);
        }
        let start =
            |(shard, cursor): &(u32, Cursor)| ShardOffset { shard: *shard, offset: cursor.position() };
        out.reply(id, reply::Subscribed { starts: begun.iter().map(start).collect() });
        let wanted = if subscribe.max_frame_bytes == 0 { u32::MAX } else { subscribe.max_frame_bytes };
        let frame_bytes = wanted.min(self.frame_bytes) as usize;
        let frame_bytes = frame_bytes.saturating_sub(BATCH_HEAD_LEN - FRAME_HEAD_LEN).max(1);
        self.sources.insert(id, begun, subscribe.credit_bytes, frame_bytes);
    }

    /// A place for a subscription of so many cursors.
    pub(super) fn take_place(&mut self, id: u32, cursors: usize) -> Result<(), Refusal> {
        if self.sources.subscriptions.contains_key(&id) {
            return Err(Refusal::new(Code::InvalidRequest, "a subscription has this id already"));
        }
        let has_place = self.sources.cursors.len() + cursors <= CURSORS_MAX
            && self.account.take_subscription(self.core.limits.subscriptions);
        let message = "the connection has all the subscriptions that it may have";
        if has_place { Ok(()) } else { Err(Refusal::new(Code::Overloaded { shed: 0 }, message)) }
    }

    pub(super) fn unsubscribe(&mut self, id: u32, out: &mut Output) {
        self.end(id, EndReason::Unsubscribed, String::new(), out);
    }

    /// Ends a subscription, if it is there, and says why.
    pub(super) fn end(&mut self, id: u32, reason: EndReason, message: String, out: &mut Output) {
        if self.sources.remove(id) {
            self.account.give_subscriptions(1);
            out.reply(id, reply::Ended { reason, message });
        }
    }

    /// Gives those a turn that have something, while there is room.
    pub(super) fn poll_sources(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        let mark = self.core.limits.send_bytes / 2;
        while out.outbox.len() < mark {
            match self.sources.ready.next() {
                Some(number) => self.turn(number, mark - out.outbox.len(), out),
                None if self.sources.wake_queued() => {}
                None if self.sources.ready.wait(cx.waker()) => {}
                None => return,
            }
        }
    }

    fn turn(&mut self, number: u32, room: usize, out: &mut Output) {
        // One that has ended meanwhile may still be on the list.
        let Some(source) = self.sources.cursors.get_mut(number as usize) else { return };
        source.seat.taken();
        let Some(subscription) = self.sources.subscriptions.get_mut(&source.subscription) else { return };
        if subscription.credit <= 0 {
            if !std::mem::replace(&mut source.is_parked, true) {
                subscription.parked.push(number);
            }
            return;
        }
        let credit = usize::try_from(subscription.credit).unwrap_or(usize::MAX);
        let max_bytes = subscription.frame_bytes.min(room).min(credit);
        let waker = source.seat.waker().clone();
        let cx = &mut Context::from_waker(&waker);
        match std::mem::replace(&mut source.reading, Reading::Away) {
            Reading::Live(mut cursor) => {
                let polled = cursor.poll_next(cx, max_bytes);
                source.reading = Reading::Live(cursor);
                if let Poll::Ready(step) = polled {
                    self.stepped(number, step, max_bytes, out);
                }
            }
            Reading::Disk(mut page) => match Pin::new(&mut page).poll(cx) {
                Poll::Pending => source.reading = Reading::Disk(page),
                Poll::Ready(Ok((cursor, step))) => {
                    source.reading = Reading::Live(Box::new(cursor));
                    self.sources.disk_read_ended();
                    self.stepped(number, step.unwrap_or_else(Step::Error), max_bytes, out);
                }
                Poll::Ready(Err(_)) => {
                    let id = source.subscription;
                    self.sources.disk_read_ended();
                    self.end(id, EndReason::Failed, "reading failed".to_owned(), out);
                }
            },
            Reading::Watch(mut watch) => {
                let (id, polled) = (source.subscription, watch.poll_next(cx, max_bytes));
                source.reading = Reading::Watch(watch);
                if let Poll::Ready(events) = polled {
                    source.seat.wake();
                    self.tell(id, events, out);
                }
            }
            Reading::Away => {}
        }
    }

    /// Carries out what a cursor came to, and gives it another turn behind the others.
    fn stepped(&mut self, number: u32, step: Step, max_bytes: usize, out: &mut Output) {
        let Some(source) = self.sources.cursors.get_mut(number as usize) else { return };
        let id = source.subscription;
        match step {
            Step::Batches(fetched) => {
                source.seat.wake();
                let shard = source.shard;
                self.push(id, shard, &fetched, out);
            }
            Step::Lost { from, to } => {
                source.seat.wake();
                self.core.stats.lost.add(self.worker, to.saturating_sub(from));
                out.reply(id, reply::Lost { shard: source.shard, from, to });
            }
            Step::NeedsDisk => self.read_page(number, max_bytes),
            Step::Gone => self.end(id, EndReason::Deleted, String::new(), out),
            Step::Error(error) => {
                let message = refusal::of_fetch(&error).message;
                self.end(id, EndReason::Failed, message, out);
            }
        }
    }

    /// Lends a cursor to a thread that may wait for the disk.
    fn read_page(&mut self, number: u32, max_bytes: usize) {
        if self.sources.disk_reads >= DISK_READS_MAX {
            return self.sources.queued.push_back(number);
        }
        let Some(source) = self.sources.cursors.get_mut(number as usize) else { return };
        let Reading::Live(cursor) = std::mem::replace(&mut source.reading, Reading::Away) else { return };
        self.core.stats.disk_reads.add(self.worker, 1);
        let mut cursor = *cursor;
        source.reading = Reading::Disk(tokio::task::spawn_blocking(move || {
            let step = cursor.read_page(max_bytes);
            (cursor, step)
        }));
        self.sources.disk_reads += 1;
        // Its next turn asks the thread.
        source.seat.wake();
    }

    /// Batches as they lie in the ring: a head of their own each time, the bytes shared with everybody.
    fn push(&mut self, id: u32, shard: u32, fetched: &Fetched, out: &mut Output) {
        let largest = fetched.batches.iter().map(|entry| entry.bytes.len()).max().unwrap_or(0);
        if largest + (BATCH_HEAD_LEN - FRAME_HEAD_LEN) > self.frame_bytes as usize {
            let message = format!("a batch of {largest} bytes does not fit into the client's frames");
            return self.end(id, EndReason::Failed, message, out);
        }
        for same in fetched.batches.chunk_by(|one, next| one.epoch == next.epoch) {
            let Some(first) = same.first() else { continue };
            let len = same.iter().map(|entry| entry.bytes.len()).sum();
            out.frame(&batch_head(id, shard, first.epoch, first.base, len));
            same.iter().for_each(|entry| out.outbox.share(&entry.bytes));
        }
        self.core.stats.pushed.add(self.worker, fetched.batches.len() as u64);
        self.sources.spend(id, fetched.bytes() as u64);
    }
}

/// Credit is bounded by 2^63; who gives more has given that.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A cursor for each shard. May wait for the disk where the start is a time.
fn begin(shards: &[(u32, Arc<Shard>)], subscribe: &request::Subscribe) -> Result<Begun, Refusal> {
    let budget = usize::try_from(subscribe.budget_bytes).unwrap_or(usize::MAX);
    let rule = match subscribe.policy {
        Policy::Block => Rule::Block,
        Policy::DropOld => Rule::DropOld,
        Policy::DropNew => Rule::DropNew,
    };
    let cursor = |(number, shard): &(u32, Arc<Shard>)| {
        let resumed = subscribe.resume.iter().find(|resume| resume.shard == *number);
        let start = resumed.map_or_else(|| start_of(subscribe.start), |resume| From::Offset(resume.offset));
        let begun = shard.subscribe(start, rule, budget).map_err(|error| refusal::of_fetch(&error));
        Ok((*number, begun?))
    };
    shards.iter().map(cursor).collect()
}
