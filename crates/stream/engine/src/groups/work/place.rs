//! One shard as a group reads it: its window, where the batches come from, and the wait for more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use trifid_stream_model::names::StreamName;

use super::window::{Range, Taker, Window};
use crate::error::FetchError;
use crate::groups::limits::PULL_BYTES_MAX;
use crate::shard::{Beyond, Entry, Shard, Tail};
use crate::stream::StreamId;

/// What is counted of a shard and a group.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::groups) struct Figures {
    pub(in crate::groups) redelivered: u64,
    pub(in crate::groups) dead_lettered: u64,
    pub(in crate::groups) passed_over: u64,
    pub(in crate::groups) lost: u64,
}

impl Figures {
    pub(in crate::groups) fn add(&mut self, other: Figures) {
        self.redelivered += other.redelivered;
        self.dead_lettered += other.dead_lettered;
        self.passed_over += other.passed_over;
        self.lost += other.lost;
    }
}

/// See the module.
pub(super) struct Place {
    pub(super) stream: StreamName,
    pub(super) id: StreamId,
    pub(super) number: u32,
    pub(super) shard: Arc<Shard>,
    pub(super) window: Window,
    pub(super) figures: Figures,
    /// How many members read it.
    pub(super) readers: usize,
    /// Batches from the disk that a pull asked for.
    page: Vec<Entry>,
    /// Where the next page should begin, if a pull found that it needs one.
    pub(super) wanted: Option<u64>,
    beyond: Option<(u64, Beyond)>,
    /// The committed offset that was written last.
    pub(super) written: u64,
}

/// What a pull takes of a shard.
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) attempt: u16,
    pub(super) batch: Bytes,
}

/// What there is of an offset.
enum Look {
    Entry(Entry),
    Nothing,
    /// A page has to be read first.
    Disk,
    /// Before this offset there is nothing, and never was anything that counted.
    Empty(u64),
    /// The offsets before this one are gone.
    Lost(u64),
}

impl Place {
    pub(super) fn new(
        stream: StreamName,
        id: StreamId,
        number: u32,
        shard: Arc<Shard>,
        window: Window,
    ) -> Self {
        let written = window.base();
        Place {
            stream,
            id,
            number,
            shard,
            window,
            figures: Figures::default(),
            readers: 0,
            page: Vec::new(),
            wanted: None,
            beyond: None,
            written,
        }
    }

    /// How many records there are to be had, or nearly so.
    pub(super) fn ready(&self) -> u64 {
        self.shard.end_offset().saturating_sub(self.window.next()) + self.window.waiting()
    }

    fn look(&mut self, at: u64) -> Look {
        match self.shard.try_fetch_tail(at, 1) {
            Tail::Batches(fetched) => {
                self.page = Vec::new();
                // Offsets without a batch at the end: what a full disk took back.
                fetched.batches.into_iter().next().map_or(Look::Empty(fetched.next), Look::Entry)
            }
            Tail::AtEnd => Look::Nothing,
            Tail::NeedsDisk => self.look_in_page(at),
            Tail::Error(FetchError::TooOld { first }) => Look::Lost(first),
            // The stream is shorter than it was: a power cut took what its durability does not promise.
            Tail::Error(_) => Look::Nothing,
        }
    }

    fn look_in_page(&mut self, at: u64) -> Look {
        match self.page.iter().find(|entry| entry.end > at) {
            // Compaction may have taken the batch: the next one then tells where to go on.
            Some(entry) if entry.base <= at || self.page.first().is_some_and(|first| first.base <= at) => {
                Look::Entry(entry.clone())
            }
            _ => {
                self.wanted = Some(at);
                Look::Disk
            }
        }
    }

    /// A page that was read, from `at` on. What it begins behind is not there any more.
    pub(super) fn turn_to(&mut self, at: u64, page: Vec<Entry>, next: u64) {
        self.wanted = None;
        let first = page.first().map_or(next, |entry| entry.base);
        self.page = page;
        if first > at {
            if at >= self.window.next() {
                self.window.skip_to(first);
            } else {
                // Compacted away while it waited: somebody wrote its key anew.
                self.window.vanish(at, first);
            }
        }
    }

    /// Records that wait to be delivered again, at most `max`.
    pub(super) fn take_due(&mut self, taker: Taker, max: u64) -> Option<Piece> {
        while max > 0
            && let Some((start, Range { end, .. })) = self.window.due(taker.now)
        {
            match self.look(start) {
                Look::Entry(entry) if entry.base <= start => {
                    let limit = entry.end.min(start.saturating_add(max));
                    let (end, attempt) = self.window.lease_again(start, limit, taker)?;
                    self.figures.redelivered += end - start;
                    return Some(Piece { first: start, end, attempt, batch: entry.bytes });
                }
                Look::Entry(entry) => self.window.vanish(start, entry.base.min(end)),
                Look::Empty(next) => self.window.vanish(start, next.clamp(start + 1, end)),
                Look::Lost(first) => self.lose(first.max(start + 1)),
                Look::Nothing | Look::Disk => return None,
            }
        }
        None
    }

    /// Records that nobody has had, at most `max`.
    pub(super) fn take_new(&mut self, taker: Taker, max: u64) -> Option<Piece> {
        while max.min(self.window.room()) > 0 {
            let at = self.window.next();
            match self.look(at) {
                Look::Entry(entry) if entry.base <= at => {
                    let end = entry.end.min(at + max.min(self.window.room()));
                    self.window.lease_new(end, taker.member, taker.until);
                    if self.page.last().is_some_and(|last| last.end <= end) {
                        self.page = Vec::new();
                    }
                    return Some(Piece { first: at, end, attempt: 1, batch: entry.bytes });
                }
                Look::Entry(entry) => self.window.skip_to(entry.base),
                Look::Empty(next) if next > at => self.window.skip_to(next),
                Look::Lost(first) if first > at => self.lose(first),
                Look::Empty(_) | Look::Lost(_) | Look::Nothing | Look::Disk => return None,
            }
        }
        None
    }

    /// Retention took what lies before `first`.
    pub(super) fn lose(&mut self, first: u64) {
        let lost = self.window.lose_before(first);
        self.figures.lost += lost;
        if lost > 0 {
            tracing::warn!(stream = %self.stream, shard = self.number, lost,
                "records went before their group had done them");
        }
    }

    /// Waits for records that nobody has had, once for all pulls. Answers whether there are some already.
    pub(super) fn wait(&mut self, waker: &Waker) -> bool {
        let next = self.window.next();
        if self.window.room() == 0 {
            return false;
        }
        if self.shard.end_offset() > next {
            return true;
        }
        if self.beyond.as_ref().is_some_and(|(above, _)| *above == next) {
            return false;
        }
        let mut beyond = self.shard.beyond(next);
        let reached = Pin::new(&mut beyond).poll(&mut Context::from_waker(waker));
        self.beyond = Some((next, beyond));
        matches!(reached, Poll::Ready(Ok(_)))
    }

    /// Nobody reads it for now.
    pub(super) fn rest(&mut self) {
        (self.page, self.wanted, self.beyond) = (Vec::new(), None, None);
    }
}

/// Reads what a pull needs. May wait for the disk; no lock is held.
pub(super) fn read(shard: &Shard, at: u64) -> Result<(Vec<Entry>, u64), FetchError> {
    let fetched = shard.fetch(at, PULL_BYTES_MAX)?;
    Ok((fetched.batches.into_iter().collect(), fetched.next))
}
