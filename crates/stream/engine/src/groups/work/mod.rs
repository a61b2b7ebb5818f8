//! Native work groups: any member may be given any record, at least once.
//!
//! ```text
//!  pull ──> due again? ──> else the next records of a shard ──> leased to the member
//!  ack ──> done ──> the committed offset follows the first record that is not done
//!  nack, lease over, member gone ──> waits ──> delivered again ──> ... ──> too often ──> dead-letter stream
//! ```
//!
//! - **Sharing.** The members share every shard: whoever pulls gets the next records, so a fast member gets
//!   more than a slow one and a stuck one delays only what it holds. While several pulls wait, each gets a
//!   share of what there is. Pulls are woken in the order in which they came. A member that leaves or is lost
//!   gives back what it held, at once.
//! - **Order.** One member that acknowledges as it goes sees each shard in order. Several members see the
//!   records of a shard, and so of a key, side by side: who needs the order of keys among several consumers
//!   uses Kafka's classic groups, where a shard belongs to one member, or one group a shard.
//! - **At least once.** An acknowledgement moves the committed offset past all records that are done before
//!   the first that is not; what was acknowledged behind a gap is remembered in memory, and delivered again
//!   after a restart of the broker. So is how often a record was delivered.
//! - **Setting aside.** A record that was delivered as often as allowed goes to the dead-letter stream and is
//!   done when it counts there (`dead.rs`); without such a stream it is counted and passed over.
//!
//! The window between the committed offset and the next delivery is bounded in offsets and ranges, what a
//! member holds in records. Cost: a pull looks at each shard of the member until it has enough; an
//! acknowledgement is a few steps in trees; nothing is kept per waiting record but its range.

mod dead;
mod member;
mod place;
mod queue;
mod window;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use hashbrown::HashMap;
use parking_lot::Mutex;
use trifid_stream_model::frame::{Delivery, OffsetRange, Start};
use trifid_stream_model::names::StreamName;

use super::error::GroupError;
use super::limits::{
    DEAD_PER_TICK_MAX, EXPIRED_PER_TICK_MAX, IN_FLIGHT_PER_MEMBER_MAX, MEMBERS_MAX, OFFSETS_PER_GROUP_MAX,
};
use super::shared::Shared;
use super::table::{Cell, State as CellState, Stored};
use super::types::{Committed, GroupSettings, MemberDescription};
use crate::ack::Ack;
use crate::error::FetchError;
use crate::shard::Shard;
use crate::stream::Stream;
use dead::{Dead, Fate};
use place::{Piece, Place};
use queue::Queue;
use window::{Taker, Window};

use member::Settlement;
pub use member::{Member, Pull, Pulled, Settled};
pub(super) use place::Figures;

/// Who is in a group.
struct Reader {
    client: String,
    /// For each of its streams, the places of its shards.
    streams: Vec<(StreamName, Vec<u64>)>,
    in_flight: u64,
    /// Which of its places its next pull begins with.
    turn: usize,
}

/// Records on their way to the dead-letter stream.
struct Leaving {
    place: u64,
    start: u64,
    end: u64,
    reason: window::Reason,
    ack: Ack,
}

impl Reader {
    fn names(&self) -> Vec<StreamName> {
        self.streams.iter().map(|(name, _)| name.clone()).collect()
    }
}

struct Inner {
    settings: GroupSettings,
    places: BTreeMap<u64, Place>,
    next_place: u64,
    members: HashMap<u64, Reader, foldhash::fast::RandomState>,
    next_member: u64,
    /// How many members read the same streams.
    lists: HashMap<Vec<StreamName>, usize, foldhash::fast::RandomState>,
    leaving: Vec<Leaving>,
    /// It was put away: look the group up again.
    is_closed: bool,
    /// When its last member went.
    idle_since: Option<u64>,
}

/// The members of a native group and what they have in hand.
pub(super) struct Work {
    inner: Mutex<Inner>,
    queue: Arc<Queue>,
    /// How many are in it, for who holds the group's lock, which comes after this one's.
    count: AtomicUsize,
}

/// What a pull found.
struct Taken {
    deliveries: Vec<Delivery>,
    /// There is more for others.
    more: bool,
    /// A page has to be read first.
    needs_disk: bool,
}

/// How far a shard of the group has come, for a description.
pub(super) struct Standing {
    pub(super) stream: StreamName,
    pub(super) number: u32,
    pub(super) leased: u64,
    pub(super) waiting: u64,
    pub(super) figures: Figures,
}

impl Work {
    pub(super) fn new(settings: GroupSettings) -> Arc<Self> {
        Arc::new(Work {
            inner: Mutex::new(Inner {
                settings,
                places: BTreeMap::new(),
                next_place: 0,
                members: HashMap::default(),
                next_member: 1,
                lists: HashMap::default(),
                leaving: Vec::new(),
                is_closed: false,
                idle_since: None,
            }),
            queue: Arc::default(),
            count: AtomicUsize::new(0),
        })
    }

    /// How many are in it.
    pub(super) fn members(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn settings(&self) -> GroupSettings {
        self.inner.lock().settings.clone()
    }

    /// A member joins; `None`: the work was put away meanwhile.
    fn join(
        &self,
        shared: &Shared,
        cell: &Arc<Cell>,
        client: &str,
        streams: &[Arc<Stream>],
        settings: &GroupSettings,
    ) -> Result<Option<u64>, GroupError> {
        let mut inner = self.inner.lock();
        if inner.is_closed {
            return Ok(None);
        }
        if inner.members.len() >= MEMBERS_MAX {
            return Err(GroupError::TooMany { what: "members", limit: MEMBERS_MAX });
        }
        if inner.members.is_empty() {
            inner.settings = settings.clone();
            for place in inner.places.values_mut() {
                place.window.set_max_deliveries(settings.max_deliveries);
            }
        }
        let mut reads = Vec::with_capacity(streams.len());
        for stream in streams {
            reads.push((stream.name().clone(), inner.places_of(cell, stream)?));
        }
        for id in reads.iter().flat_map(|(_, places)| places) {
            if let Some(place) = inner.places.get_mut(id) {
                place.readers += 1;
            }
        }
        inner.commit_unheard(shared, cell);
        inner.idle_since = None;
        let member = inner.next_member;
        inner.next_member += 1;
        let reader =
            Reader { client: client.to_owned(), streams: reads, in_flight: 0, turn: member as usize };
        *inner.lists.entry(reader.names()).or_default() += 1;
        inner.members.insert(member, reader);
        self.count_members(&inner);
        Ok(Some(member))
    }

    /// A member leaves, or was lost. What it held is delivered again at once.
    fn remove(&self, shared: &Shared, cell: &Arc<Cell>, member: u64, lost: bool) {
        let now = shared.now();
        let mut inner = self.inner.lock();
        let Some(reader) = inner.members.remove(&member) else { return };
        inner.forget_list(&reader.names());
        let mut back = 0;
        for id in reader.streams.iter().flat_map(|(_, places)| places) {
            if let Some(place) = inner.places.get_mut(id) {
                place.readers -= 1;
                if reader.in_flight > 0 {
                    back += place.window.release(member, now, lost);
                }
            }
        }
        inner.pass_over_dead();
        inner.commit_unheard(shared, cell);
        if inner.members.is_empty() {
            inner.idle_since = Some(now);
            inner.places.values_mut().for_each(Place::rest);
        }
        self.count_members(&inner);
        drop(inner);
        if back > 0 {
            self.queue.rouse();
        }
    }

    fn count_members(&self, inner: &Inner) {
        self.count.store(inner.members.len(), Ordering::SeqCst);
        self.queue.set_mixed(inner.lists.len() > 1);
    }

    /// What the member gets now.
    fn take(
        &self,
        shared: &Shared,
        cell: &Arc<Cell>,
        member: u64,
        max_records: u32,
        max_bytes: usize,
        rivals: usize,
    ) -> Result<Taken, GroupError> {
        let now = shared.now();
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.expire(now);
        let reader = inner.members.get_mut(&member).ok_or(GroupError::Gone)?;
        let places: Vec<(u16, u64)> = (0_u16..)
            .zip(&reader.streams)
            .flat_map(|(stream, (_, places))| places.iter().map(move |place| (stream, *place)))
            .collect();
        let ready: u64 = places.iter().filter_map(|(_, id)| inner.places.get(id)).map(Place::ready).sum();
        let share = ready.div_ceil(rivals as u64 + 1).max(1);
        let room = IN_FLIGHT_PER_MEMBER_MAX.saturating_sub(reader.in_flight);
        if room == 0 {
            return Err(GroupError::TooMany {
                what: "records in flight for a member",
                limit: IN_FLIGHT_PER_MEMBER_MAX as usize,
            });
        }
        let until = now + u64::from(inner.settings.ack_timeout_ms);
        let mut basket = Basket {
            taker: Taker { member, until, now },
            left: u64::from(max_records).min(room).min(share),
            bytes_left: max_bytes,
            deliveries: Vec::new(),
        };
        reader.turn = reader.turn.wrapping_add(1);
        let begin = reader.turn % places.len().max(1);
        let order = || places[begin..].iter().chain(&places[..begin]);
        for again in [true, false] {
            for (stream, id) in order() {
                if let Some(place) = inner.places.get_mut(id) {
                    basket.fill(*stream, place, again);
                }
            }
        }
        let taken: u64 = basket.deliveries.iter().map(|d| d.range.last - d.range.first + 1).sum();
        reader.in_flight += taken;
        let needs_disk =
            places.iter().any(|(_, id)| inner.places.get(id).is_some_and(|p| p.wanted.is_some()));
        // Skipping what is not there may have moved the committed offset.
        inner.commit_unheard(shared, cell);
        Ok(Taken { more: ready > taken, needs_disk, deliveries: basket.deliveries })
    }

    /// Asks the shards of a member to wake the group. Answers whether there is something already.
    fn wait(&self, member: u64, now: u64) -> bool {
        let waker = Waker::from(self.queue.clone());
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some(reader) = inner.members.get(&member) else { return true };
        let mut is_ready = false;
        for id in reader.streams.iter().flat_map(|(_, places)| places) {
            if let Some(place) = inner.places.get_mut(id) {
                is_ready |= place.wait(&waker) | place.window.due(now).is_some();
            }
        }
        is_ready
    }

    /// The next page that a pull of the member needs.
    fn wanted(&self, member: u64) -> Option<(u64, Arc<Shard>, u64)> {
        let inner = self.inner.lock();
        let reader = inner.members.get(&member)?;
        reader.streams.iter().flat_map(|(_, places)| places).find_map(|id| {
            let place = inner.places.get(id)?;
            Some((*id, place.shard.clone(), place.wanted?))
        })
    }

    /// A page was read.
    fn turn_to(
        &self,
        id: u64,
        at: u64,
        page: Result<(Vec<crate::shard::Entry>, u64), FetchError>,
    ) -> Result<(), GroupError> {
        let mut inner = self.inner.lock();
        let Some(place) = inner.places.get_mut(&id) else { return Ok(()) };
        place.wanted = None;
        match page {
            Ok((page, next)) => place.turn_to(at, page, next),
            Err(FetchError::TooOld { first }) => place.lose(first),
            Err(FetchError::Gone | FetchError::InFuture { .. }) => {}
            Err(error) => {
                tracing::error!(stream = %place.stream, shard = place.number, offset = at, %error,
                    "a group cannot read on");
                return Err(GroupError::Failed);
            }
        }
        Ok(())
    }

    /// Carries a settlement out, range by range, and commits what it moved.
    fn settle(
        &self,
        shared: &Shared,
        cell: &Arc<Cell>,
        member: u64,
        ranges: &[OffsetRange],
        how: Settlement,
    ) -> Result<Settled, GroupError> {
        let now = shared.now();
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.expire(now);
        let reader = inner.members.get_mut(&member).ok_or(GroupError::Gone)?;
        let mut sum = window::Count::default();
        let mut frees = false;
        for range in ranges {
            let places = reader.streams.get(usize::from(range.stream)).map(|(_, places)| places);
            let id = places.and_then(|places| places.get(range.shard as usize));
            let place = id.and_then(|id| inner.places.get_mut(id)).filter(|_| range.first <= range.last);
            let count = match place {
                None => window::Count {
                    settled: 0,
                    unknown: range.last.saturating_sub(range.first).saturating_add(1),
                },
                Some(place) => {
                    frees |= place.window.room() == 0;
                    how.apply(&mut place.window, member, range)
                }
            };
            sum.settled += count.settled;
            sum.unknown = sum.unknown.saturating_add(count.unknown);
        }
        let (gives_back, is_due) = match how {
            Settlement::Ack => (sum.settled, frees),
            Settlement::Nack { due } => (sum.settled, due <= now || frees),
            Settlement::Extend { .. } => (0, false),
        };
        reader.in_flight -= gives_back;
        inner.pass_over_dead();
        let ack = inner.commit(shared, cell);
        if is_due && sum.settled > 0 {
            self.queue.rouse();
        }
        Ok(Settled { settled: sum.settled, unknown: sum.unknown, ack })
    }

    /// What time does: leases end, streams grow or go, records are set aside. May wait for the disk. Answers
    /// whether the work is over and may be put away.
    pub(super) fn tick(&self, shared: &Shared, cell: &Arc<Cell>, now: u64) -> bool {
        let (dead, letters) = {
            let mut inner = self.inner.lock();
            inner.expire(now);
            if inner.refresh(shared, cell) {
                self.queue.wake_all();
            }
            inner.arrive();
            inner.commit_unheard(shared, cell);
            (inner.take_dead(), inner.settings.dead_letter.clone())
        };
        if !dead.is_empty() {
            self.set_aside(shared, cell, letters.as_ref(), dead);
        }
        let (is_over, is_due) = {
            let mut inner = self.inner.lock();
            inner.commit_unheard(shared, cell);
            inner.is_closed = inner.is_over(now);
            if inner.is_closed {
                put_away(cell, std::mem::take(&mut inner.places).into_values());
            }
            let due =
                inner.places.values().any(|place| place.window.next_due().is_some_and(|due| due <= now));
            (inner.is_closed, due)
        };
        if is_due {
            self.queue.rouse();
        }
        is_over
    }

    fn set_aside(&self, shared: &Shared, cell: &Arc<Cell>, letters: Option<&StreamName>, dead: Vec<Dead>) {
        let to = letters.and_then(|name| shared.dead_letter_stream(&cell.tenant, name).ok());
        let now_ms = shared.streams.room.now_ms();
        for mut dead in dead {
            // Batch by batch.
            while dead.start < dead.range.end {
                let fate = match &to {
                    Some(to) => dead.publish(to, cell.name.as_str(), now_ms),
                    None => Fate::Later,
                };
                dead.start = self.inner.lock().note(&dead, fate);
            }
        }
    }

    /// Wakes who waits, for all to see that the group is gone.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        inner.members.clear();
        inner.lists.clear();
        inner.places.clear();
        drop(inner);
        self.queue.wake_all();
    }

    pub(super) fn describe_members(&self) -> Vec<MemberDescription> {
        let inner = self.inner.lock();
        let member = |(id, reader): (&u64, &Reader)| MemberDescription {
            member: id.to_string(),
            instance: None,
            client: reader.client.clone(),
            host: String::new(),
            in_flight: reader.in_flight,
            metadata: bytes::Bytes::new(),
            assignment: bytes::Bytes::new(),
        };
        let mut ordered: Vec<_> = inner.members.iter().collect();
        ordered.sort_unstable_by_key(|(id, _)| **id);
        ordered.into_iter().map(member).collect()
    }

    pub(super) fn standings(&self) -> Vec<Standing> {
        let standing = |place: &Place| Standing {
            stream: place.stream.clone(),
            number: place.number,
            leased: place.window.leased(),
            waiting: place.window.waiting(),
            figures: place.figures,
        };
        self.inner.lock().places.values().map(standing).collect()
    }
}

impl Settlement {
    fn apply(self, window: &mut Window, member: u64, range: &OffsetRange) -> window::Count {
        let (first, end) = (range.first, range.last.saturating_add(1));
        match self {
            Settlement::Ack => window.ack(member, first, end),
            Settlement::Nack { due } => window.nack(member, first, end, due),
            Settlement::Extend { until } => window.extend(member, first, end, until),
        }
    }
}

/// What a pull gathers.
struct Basket {
    taker: Taker,
    left: u64,
    bytes_left: usize,
    deliveries: Vec<Delivery>,
}

impl Basket {
    fn fill(&mut self, stream: u16, place: &mut Place, again: bool) {
        while self.left > 0 && (self.bytes_left > 0 || self.deliveries.is_empty()) {
            let piece = match again {
                true => place.take_due(self.taker, self.left),
                false => place.take_new(self.taker, self.left),
            };
            let Some(Piece { first, end, attempt, batch }) = piece else { return };
            self.left -= end - first;
            self.bytes_left = self.bytes_left.saturating_sub(batch.len());
            let range = OffsetRange { stream, shard: place.number, first, last: end - 1 };
            self.deliveries.push(Delivery { range, attempt, batch });
        }
    }
}

impl Inner {
    /// The places of a stream's shards, made where the group does not read them yet.
    fn places_of(&mut self, cell: &Arc<Cell>, stream: &Arc<Stream>) -> Result<Vec<u64>, GroupError> {
        let known = |place: &Place| place.id == stream.id() && place.stream == *stream.name();
        let mut places: BTreeMap<u32, u64> = self
            .places
            .iter()
            .filter(|(_, place)| known(place))
            .map(|(id, place)| (place.number, *id))
            .collect();
        for (number, shard) in (0_u32..).zip(stream.shards()) {
            if let Entry::Vacant(vacant) = places.entry(number) {
                vacant.insert(self.begin(cell, stream, number, shard)?);
            }
        }
        Ok(places.into_values().collect())
    }

    /// Begins to read a shard: at the committed offset, or where the settings say. Where it begins is
    /// committed, so that a group that begins at the end does not miss what comes while it is away.
    fn begin(
        &mut self,
        cell: &Arc<Cell>,
        stream: &Arc<Stream>,
        number: u32,
        shard: &Arc<Shard>,
    ) -> Result<u64, GroupError> {
        let (start, end) = (shard.start_offset(), shard.end_offset());
        let stored = {
            let state = cell.lock();
            let stored = state.offsets.get(&(stream.name().clone(), number)).cloned();
            if stored.is_none() && state.offsets.len() >= OFFSETS_PER_GROUP_MAX {
                return Err(GroupError::TooMany { what: "shards of a group", limit: OFFSETS_PER_GROUP_MAX });
            }
            stored
        };
        let committed =
            stored.filter(|stored| stored.stream == stream.id()).map(|stored| stored.committed.offset);
        let (base, is_new) = match committed {
            Some(offset) if offset <= end => (offset, false),
            // The stream is shorter than the group remembers: in memory, or a power cut was here.
            Some(_) => (end, true),
            None => (resolve(shard, self.settings.start).map_err(|_| GroupError::Failed)?, true),
        };
        let window = Window::new(base, self.settings.max_deliveries);
        let mut place = Place::new(stream.name().clone(), stream.id(), number, shard.clone(), window);
        if base < start {
            place.lose(start);
        }
        if is_new {
            // Differs from every offset: it is written.
            place.written = u64::MAX;
        }
        let id = self.next_place;
        self.next_place += 1;
        self.places.insert(id, place);
        Ok(id)
    }

    fn forget_list(&mut self, names: &[StreamName]) {
        if let Some(count) = self.lists.get_mut(names) {
            *count -= 1;
            if *count == 0 {
                self.lists.remove(names);
            }
        }
    }

    /// Leases that have run out.
    fn expire(&mut self, now: u64) {
        let due = now + u64::from(self.settings.retry_delay_ms);
        let mut left = EXPIRED_PER_TICK_MAX;
        for place in self.places.values_mut() {
            for (member, count) in place.window.expire(now, due, left) {
                left -= 1;
                if let Some(reader) = self.members.get_mut(&member) {
                    reader.in_flight -= count;
                }
            }
        }
        self.pass_over_dead();
    }

    /// Without a dead-letter stream, what was delivered too often is done.
    fn pass_over_dead(&mut self) {
        if self.settings.dead_letter.is_some() {
            return;
        }
        for place in self.places.values_mut().filter(|place| place.window.has_dead()) {
            for (start, range) in place.window.take_dead(usize::MAX) {
                tracing::warn!(stream = %place.stream, shard = place.number, first = start, end = range.end,
                    deliveries = range.attempt, "records were delivered too often and are passed over");
                place.figures.passed_over += range.end - start;
                place.window.left(start, range.end, None);
            }
        }
    }

    /// Commits what has moved. In force at once; the answer resolves when it counts.
    fn commit(&mut self, shared: &Shared, cell: &Arc<Cell>) -> Ack {
        let moved = self.places.values_mut().filter(|place| place.written != place.window.base());
        let mut entries = Vec::new();
        for place in moved {
            place.written = place.window.base();
            let committed = Committed {
                offset: place.window.base(),
                note: "".into(),
                at_ms: shared.streams.room.now_ms(),
            };
            entries.push(((place.stream.clone(), place.number), Stored { stream: place.id, committed }));
        }
        if entries.is_empty() { Ack::ready() } else { shared.store_or_owe(cell, entries) }
    }

    /// Commits what has moved, and nobody waits for it: what is refused is written again with a tick.
    fn commit_unheard(&mut self, shared: &Shared, cell: &Arc<Cell>) {
        drop(self.commit(shared, cell));
    }

    /// Streams may have been deleted, made anew, or given more shards. Answers whether members read other
    /// shards now.
    fn refresh(&mut self, shared: &Shared, cell: &Arc<Cell>) -> bool {
        let read = self.places.values().filter(|place| place.readers > 0);
        let names: BTreeSet<StreamName> = read.map(|place| place.stream.clone()).collect();
        let mut changed = false;
        for name in names {
            let Ok(stream) = shared.streams.stream(&cell.tenant, &name) else { continue };
            let is_of = |place: &&Place| place.id == stream.id() && place.stream == name;
            if self.places.values().filter(is_of).count() < stream.shards().len() {
                changed |= self.read_also(cell, &stream);
            }
        }
        let gone =
            |place: &Place| place.readers == 0 && (place.window.is_clean() || place.shard.is_deleted());
        let left = self.places.extract_if(.., |_, place| gone(place));
        put_away(cell, left.map(|(_, place)| place));
        changed
    }

    /// The members of a stream read all its shards.
    fn read_also(&mut self, cell: &Arc<Cell>, stream: &Arc<Stream>) -> bool {
        let Ok(places) = self.places_of(cell, stream) else { return false };
        let reads = self.members.values_mut().flat_map(|reader| &mut reader.streams);
        for (_, reads) in reads.filter(|(name, _)| name == stream.name()) {
            for id in &places {
                self.places.entry(*id).and_modify(|place| place.readers += 1);
            }
            for id in std::mem::replace(reads, places.clone()) {
                self.places.entry(id).and_modify(|place| place.readers -= 1);
            }
        }
        true
    }

    fn take_dead(&mut self) -> Vec<Dead> {
        let mut left = DEAD_PER_TICK_MAX;
        let mut dead = Vec::new();
        for (id, place) in &mut self.places {
            let taken = place.window.take_dead(left);
            left -= taken.len();
            dead.extend(taken.into_iter().map(|(start, range)| Dead {
                place: *id,
                stream: place.stream.clone(),
                number: place.number,
                shard: place.shard.clone(),
                start,
                range,
            }));
        }
        dead
    }

    /// What became of records that are to be set aside; answers where to go on.
    fn note(&mut self, dead: &Dead, fate: Fate) -> u64 {
        let (start, whole) = (dead.start, dead.range.end);
        let Some(place) = self.places.get_mut(&dead.place) else { return whole };
        let reason = dead.reason();
        match fate {
            Fate::Published { end, ack } => {
                self.leaving.push(Leaving { place: dead.place, start, end, reason, ack });
                end
            }
            Fate::Lost { end } => {
                place.figures.lost += end - start;
                place.window.left(start, end, None);
                end
            }
            Fate::Vanished { end } => {
                place.window.left(start, end, None);
                end
            }
            Fate::Refused { end } => {
                place.figures.passed_over += end - start;
                place.window.left(start, end, None);
                end
            }
            Fate::Later => {
                place.window.left(start, whole, Some(reason));
                whole
            }
        }
    }

    /// Records that have reached the dead-letter stream are done.
    fn arrive(&mut self) {
        let places = &mut self.places;
        self.leaving.retain_mut(|leaving| {
            let Some(fate) = leaving.ack.fate() else { return true };
            if let Some(place) = places.get_mut(&leaving.place) {
                let retry = fate.is_err().then_some(leaving.reason);
                place.window.left(leaving.start, leaving.end, retry);
                place.figures.dead_lettered += if retry.is_none() { leaving.end - leaving.start } else { 0 };
            }
            false
        });
    }

    /// Nobody is here, and nothing is unfinished or it has been so for long.
    fn is_over(&self, now: u64) -> bool {
        let Some(since) = self.idle_since else { return false };
        let is_clean = self.places.values().all(|place| place.window.is_clean()) && self.leaving.is_empty();
        self.members.is_empty() && (is_clean || now >= since + super::limits::UNFINISHED_GROUP_MS)
    }
}

/// What was counted of shards that are no longer read is kept with the group.
fn put_away(cell: &Cell, places: impl Iterator<Item = Place>) {
    let mut places = places.peekable();
    if places.peek().is_none() {
        return;
    }
    let mut state = cell.lock();
    for place in places {
        state.figures.entry((place.stream, place.number)).or_default().add(place.figures);
    }
}

/// Joins a group; see [`Groups::join`](super::Groups::join).
pub(super) fn join(
    shared: &Arc<Shared>,
    cell: &Arc<Cell>,
    client: &str,
    streams: &[Arc<Stream>],
    settings: &GroupSettings,
) -> Result<Option<Member>, GroupError> {
    let work = {
        let mut state = cell.lock();
        if state.is_dead {
            return Ok(None);
        }
        if !state.classic.is_empty() {
            return Err(GroupError::OtherProtocol(cell.name.clone()));
        }
        let CellState { work, active_at, .. } = &mut *state;
        *active_at = shared.now();
        work.get_or_insert_with(|| Work::new(settings.clone())).clone()
    };
    let Some(id) = work.join(shared, cell, client, streams, settings)? else {
        // Put away a moment ago; the next try begins anew.
        let mut state = cell.lock();
        if state.work.as_ref().is_some_and(|known| Arc::ptr_eq(known, &work)) {
            state.work = None;
        }
        return Ok(None);
    };
    Ok(Some(Member::new(shared.clone(), cell.clone(), work, id)))
}

/// Where a group begins that has no committed offset.
pub(super) fn resolve(shard: &Shard, start: Start) -> Result<u64, FetchError> {
    let (first, end) = (shard.start_offset(), shard.end_offset());
    Ok(match start {
        Start::Earliest => first,
        Start::Latest => end,
        Start::Offset(offset) => offset.clamp(first, end),
        Start::Time(ms) => shard.offset_for_time(ms)?.map_or(end, |(offset, _)| offset),
    })
}
