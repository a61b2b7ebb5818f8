//! Fetch: batches from the tail of each shard as they lie in memory, and a wait for more without a thread or a poll.
//!
//! One look goes over the partitions in the client's order and takes what the tails have. A shard whose records lie
//! further back is read on a thread that may wait for the disk. If the client wants more than there is (`min_bytes`),
//! the request sleeps until one of its shards grows or its time is over: one waker in each shard and one timer.
//!
//! No fetch session is made (KIP-227): the answer says session 0, and the client names its partitions each time.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;
use tokio::time::{Instant, sleep_until};
use trifid_stream_engine::{Beyond, FetchError, Fetched as Batches, Shard, Tail};

use super::caller::{Caller, blocking};
use super::{Answer, Started, codes};
use crate::limits::{FETCH_BYTES_MIN, FETCH_WAIT_MAX};
use crate::server::End;
use crate::wire::fetch::{Given, Topic, Wanted, read, write};
use crate::wire::head::Head;

/// What a fetch is answered.
#[derive(Debug)]
pub(crate) struct Fetched {
    version: i16,
    correlation: i32,
    code: i16,
    given: Vec<Given>,
}

impl Fetched {
    /// Bytes of records.
    pub(crate) fn bytes(&self) -> usize {
        self.given.iter().map(Given::bytes).sum()
    }

    pub(crate) fn write(&self, out: &mut BytesMut, piece: &mut dyn FnMut(Bytes)) {
        write(out, self.version, self.correlation, self.code, &self.given, piece);
    }
}

/// One partition that is asked for, found.
struct Place {
    topic: Topic,
    index: i32,
    shard: Result<Arc<Shard>, ResponseError>,
    offset: i64,
    bytes_max: usize,
}

/// A fetch in progress.
struct Fetching {
    caller: Rc<Caller>,
    version: i16,
    correlation: i32,
    places: Vec<Place>,
    bytes_min: usize,
    bytes_max: usize,
    wait: Duration,
}

/// What one look found.
struct Look {
    given: Vec<Given>,
    bytes: usize,
    is_refused: bool,
    /// Partitions whose records lie on the disk.
    on_disk: Vec<usize>,
}

/// Begins a fetch whose shape has been checked. What the tails can answer is answered at once.
pub(crate) fn start(caller: &Rc<Caller>, head: &Head, body: Bytes) -> Result<Started, End> {
    let &Head { version, correlation, .. } = head;
    let request = read(body, version)?;
    if request.session != 0 {
        // It is none of ours: the client is to ask in full.
        let code = ResponseError::FetchSessionIdNotFound.code();
        return Ok(ready(Fetched { version, correlation, code, given: Vec::new() }));
    }
    let wait = Duration::from_millis(u64::try_from(request.wait_ms_max).unwrap_or(0)).min(FETCH_WAIT_MAX);
    let fetching = Fetching {
        places: request.wanted.into_iter().map(|wanted| Place::find(caller, wanted)).collect(),
        caller: Rc::clone(caller),
        version,
        correlation,
        bytes_min: size(request.bytes_min),
        bytes_max: size(request.bytes_max),
        wait,
    };
    let look = fetching.look();
    if look.on_disk.is_empty() && fetching.suffices(&look) {
        return Ok(ready(fetching.fetched(look)));
    }
    Ok(Started::Later(Box::pin(fetching.run(look))))
}

fn ready(fetched: Fetched) -> Started {
    Started::Ready(Some(Answer::Fetched(Box::new(fetched))))
}

/// A number of bytes; below nought is nought.
fn size(bytes: i32) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}

impl Place {
    fn find(caller: &Caller, wanted: Wanted) -> Self {
        let Wanted { topic, index, offset, epoch, bytes_max } = wanted;
        let (topic, shard) = match topic {
            Topic::Id(id) => (topic, caller.shard_of_id(id, index)),
            // The copy that the caller keeps: a slice would keep the request while this waits.
            Topic::Name(name) => match caller.remembered(&name, index) {
                Ok((own, shard)) => (Topic::Name(own), Ok(shard)),
                Err(error) => (Topic::Name(name), Err(error)),
            },
        };
        let shard = shard.and_then(|shard| check_epoch(&shard, epoch).map(|()| shard));
        Self { topic, index, shard, offset, bytes_max: size(bytes_max) }
    }

    fn given(&self, code: i16) -> Given {
        let (end, start) = match &self.shard {
            Ok(shard) => (signed(shard.end_offset()), signed(shard.start_offset())),
            Err(_) => (-1, -1),
        };
        Given { topic: self.topic.clone(), index: self.index, code, end, start, batches: Vec::new() }
    }

    fn refused(&self, error: ResponseError) -> Given {
        self.given(error.code())
    }
}

/// Refuses a client that looks at an older or a newer reign of the shard (KIP-320).
pub(crate) fn check_epoch(shard: &Shard, epoch: i32) -> Result<(), ResponseError> {
    let current = i64::from(shard.epoch());
    match i64::from(epoch) {
        -1 => Ok(()),
        epoch if epoch < current => Err(ResponseError::FencedLeaderEpoch),
        epoch if epoch > current => Err(ResponseError::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

/// An offset as the protocol writes it.
fn signed(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

impl Fetching {
    /// Looks, reads what lies on the disk, and waits, until there is enough or the time is over.
    async fn run(self, first: Look) -> Answer {
        let mut sleep = pin!(sleep_until(Instant::now() + self.wait));
        let mut look = first;
        loop {
            if !look.on_disk.is_empty() {
                self.read_disk(&mut look).await;
            }
            if self.suffices(&look) || sleep.is_elapsed() {
                return Answer::Fetched(Box::new(self.fetched(look)));
            }
            let mut beyond = self.beyond(&look);
            poll_fn(|cx| {
                let grew = beyond.iter_mut().any(|beyond| Pin::new(beyond).poll(cx).is_ready());
                if grew { Poll::Ready(()) } else { sleep.as_mut().poll(cx) }
            })
            .await;
            look = self.look();
        }
    }

    /// Bytes that the answer may hold, by the client's word and the listener's.
    fn room(&self) -> usize {
        self.bytes_max.min(self.caller.shared.fetch_room().max(FETCH_BYTES_MIN))
    }

    /// Takes what the tails have.
    fn look(&self) -> Look {
        let room = self.room();
        let mut look = Look {
            given: Vec::with_capacity(self.places.len()),
            bytes: 0,
            is_refused: false,
            on_disk: Vec::new(),
        };
        for place in &self.places {
            let given = look.one(place, room);
            look.bytes += given.bytes();
            look.is_refused |= given.code != 0;
            look.given.push(given);
        }
        look
    }

    fn suffices(&self, look: &Look) -> bool {
        let enough = self.bytes_min.min(self.room());
        look.is_refused || look.bytes >= enough || self.wait.is_zero()
    }

    /// Reads the disk for those partitions that need it, one after the other, on a thread that may wait.
    async fn read_disk(&self, look: &mut Look) {
        let wanted: Vec<_> = std::mem::take(&mut look.on_disk)
            .into_iter()
            .filter_map(|at| {
                let place = self.places.get(at)?;
                let shard = Arc::clone(place.shard.as_ref().ok()?);
                Some((at, shard, place.offset.unsigned_abs(), place.bytes_max))
            })
            .collect();
        self.caller.counts().disk_fetches.bump();
        let (room, mut taken) = (self.room(), look.bytes);
        let read = blocking(move || {
            let pages = wanted.into_iter().map_while(|(at, shard, offset, most)| {
                let left = room.saturating_sub(taken);
                // As with the tails: the first batch whatever its size, and then none that passes the room.
                let page = (left > 0 || taken == 0).then(|| shard.fetch(offset, left.min(most).max(1)))?;
                taken += page.as_ref().map_or(0, Batches::bytes);
                Some((at, page))
            });
            pages.collect::<Vec<_>>()
        });
        match read.await {
            Ok(pages) => pages.into_iter().for_each(|(at, page)| look.fill(at, page)),
            Err(_) => look.is_refused = true,
        }
    }

    fn beyond(&self, look: &Look) -> Vec<Beyond> {
        let each = self.places.iter().zip(&look.given);
        each.filter_map(|(place, given)| {
            let shard = place.shard.as_ref().ok()?;
            Some(shard.beyond(given.end.unsigned_abs()))
        })
        .collect()
    }

    fn fetched(&self, look: Look) -> Fetched {
        let unknown = ResponseError::UnknownTopicOrPartition.code();
        if look.given.iter().any(|given| given.code == unknown) {
            self.caller.forget();
        }
        Fetched { version: self.version, correlation: self.correlation, code: 0, given: look.given }
    }
}

impl Look {
    fn one(&mut self, place: &Place, room: usize) -> Given {
        let shard = match &place.shard {
            Ok(shard) => shard,
            Err(error) => return place.refused(*error),
        };
        let Ok(offset) = u64::try_from(place.offset) else {
            return place.refused(ResponseError::OffsetOutOfRange);
        };
        let left = room.saturating_sub(self.bytes);
        // The first batch is given whatever its size, so that no client is stuck before it (KIP-74).
        if left == 0 && self.bytes > 0 {
            return place.given(0);
        }
        let bytes = left.min(place.bytes_max).max(1);
        match shard.try_fetch_tail(offset, bytes) {
            Tail::Batches(batches) if self.bytes > 0 && batches.bytes() > left => place.given(0),
            Tail::Batches(batches) => full(place.given(0), batches),
            Tail::AtEnd => Given { end: place.offset, ..place.given(0) },
            Tail::NeedsDisk => {
                self.on_disk.push(self.given.len());
                place.given(0)
            }
            Tail::Error(error) => place.refused(codes::fetch(&error)),
        }
    }

    fn fill(&mut self, at: usize, page: Result<Batches, FetchError>) {
        let Some(given) = self.given.get_mut(at) else { return };
        match page {
            Ok(batches) => {
                *given = full(given.clone(), batches);
                self.bytes += given.bytes();
            }
            Err(error) => {
                given.code = codes::fetch(&error).code();
                self.is_refused = true;
            }
        }
    }
}

fn full(given: Given, found: Batches) -> Given {
    Given {
        end: signed(found.end),
        start: signed(found.start),
        batches: found.batches.into_iter().map(|entry| entry.bytes).collect(),
        ..given
    }
}
