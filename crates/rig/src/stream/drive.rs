//! The load of streams: publishers, and readers of what they publish, on the generator's thread.
//!
//! **Closed**: each publisher sends one batch, waits until it is acknowledged (or until every reader has it), and
//! sends the next; so the number of publishers is the number of batches in flight. **Paced**: batches are due by the
//! clock, evenly, whatever the server does, and a batch's latency counts from when it was due (see `pace`). All are
//! tasks of one thread, whose CPU is the generator's.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};

use super::batch::Met;
use super::native::Outcome;
use super::pace::Due;
use super::publisher::{Publisher, Subscriber};
use crate::error::Error;
use crate::figures::Latency;
use crate::generator::{Pace, Window};
use crate::limits;
use crate::procfs::{self, Cpu};

/// What is driven, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// The server's name in messages.
    pub(super) name: &'static str,
    /// The process whose CPU is sampled.
    pub(super) pid: u32,
    /// Bytes of messages in one batch, as the publisher's user counts them.
    pub(super) batch_bytes: u64,
    /// How batches arrive.
    pub(super) pace: Pace,
    /// Driven before anything is counted.
    pub(super) warm_up: Duration,
    /// Counted.
    pub(super) window: Duration,
}

/// Those who take part.
#[derive(Default)]
pub(super) struct Cast {
    pub(super) publishers: Vec<Publisher>,
    pub(super) readers: Vec<Subscriber>,
    /// A batch is done when every reader has it, and not when it is acknowledged.
    pub(super) until_delivered: bool,
}

/// What one window showed.
pub(super) struct Driven {
    pub(super) window: Window,
    /// From publish, or when that was due, to delivery; of a paced load with a reader.
    pub(super) delivery: Latency,
    /// Batches delivered to all readers together, their records and their bytes.
    pub(super) delivered: Delivered,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// What all tasks share.
struct Shared {
    latency: RefCell<Latency>,
    refused: RefCell<Latency>,
    ending: Cell<bool>,
    failed: RefCell<Option<io::Error>>,
    seen: Seen,
    until_delivered: bool,
    due: Option<Due>,
}

impl Shared {
    fn fail(&self, error: io::Error) {
        self.failed.borrow_mut().get_or_insert(error);
        self.end();
    }

    fn end(&self) {
        self.ending.set(true);
        self.seen.moved.notify_waiters();
        if let Some(due) = &self.due {
            due.end();
        }
    }

    fn begin_counting(&self) {
        *self.latency.borrow_mut() = Latency::new();
        *self.refused.borrow_mut() = Latency::new();
        *self.seen.latency.borrow_mut() = Latency::new();
        self.seen.delivered.set(Delivered::default());
    }
}

/// What readers have seen.
struct Seen {
    /// The next offset of each reader.
    next: RefCell<Vec<u64>>,
    moved: Notify,
    delivered: Cell<Delivered>,
    /// Whether the first reader's deliveries are timed.
    is_timed: bool,
    /// When batches were due that were acknowledged and not yet delivered, by their end.
    due: RefCell<HashMap<u64, Instant>>,
    /// When batches were delivered that are not yet acknowledged, by their end.
    early: RefCell<HashMap<u64, Instant>>,
    latency: RefCell<Latency>,
}

impl Seen {
    fn new(next: Vec<u64>, is_timed: bool) -> Self {
        Seen {
            is_timed: is_timed && !next.is_empty(),
            next: RefCell::new(next),
            moved: Notify::new(),
            delivered: Cell::default(),
            due: RefCell::default(),
            early: RefCell::default(),
            latency: RefCell::new(Latency::new()),
        }
    }

    fn met(&self, reader: usize, batch: Met) {
        let so_far = self.delivered.get();
        let records = so_far.records + batch.records;
        self.delivered.set(Delivered { records, bytes: so_far.bytes + batch.bytes });
        self.next.borrow_mut()[reader] = batch.end;
        if self.is_timed && reader == 0 {
            match self.due.borrow_mut().remove(&batch.end) {
                Some(due) => self.latency.borrow_mut().record(due.elapsed()),
                None => drop(self.early.borrow_mut().insert(batch.end, Instant::now())),
            }
        }
    }

    fn acknowledged(&self, end: u64, due: Instant) {
        if self.is_timed {
            match self.early.borrow_mut().remove(&end) {
                Some(at) => self.latency.borrow_mut().record(at.saturating_duration_since(due)),
                None => drop(self.due.borrow_mut().insert(end, due)),
            }
        }
    }

    /// Until every reader has passed this offset.
    async fn passed(&self, end: u64, ending: &Cell<bool>) {
        loop {
            let moved = self.moved.notified();
            if ending.get() || self.next.borrow().iter().all(|next| *next >= end) {
                return;
            }
            moved.await;
        }
    }
}

/// Drives through one window. The connections end with it.
pub(super) async fn drive(drive: &Drive, cast: Cast) -> Result<Driven, Error> {
    let clients = cast.publishers.len();
    let due = match drive.pace {
        Pace::Closed => None,
        Pace::Paced(rate) => Some(Due::new(rate).map_err(Error::system("a timer"))?),
    };
    let next = cast.readers.iter().map(Subscriber::next_offset).collect();
    let shared = Rc::new(Shared {
        latency: RefCell::new(Latency::new()),
        refused: RefCell::new(Latency::new()),
        ending: Cell::new(false),
        failed: RefCell::new(None),
        seen: Seen::new(next, due.is_some()),
        until_delivered: cast.until_delivered,
        due,
    });
    let local = LocalSet::new();
    let (mut publishing_tasks, mut other_tasks) = (JoinSet::new(), JoinSet::new());
    for (number, reader) in cast.readers.into_iter().enumerate() {
        other_tasks.spawn_local_on(reading(number, reader, Rc::clone(&shared)), &local);
    }
    if shared.due.is_some() {
        other_tasks.spawn_local_on(ticking(Rc::clone(&shared)), &local);
    }
    for publisher in cast.publishers {
        publishing_tasks.spawn_local_on(publishing(publisher, Rc::clone(&shared)), &local);
    }
    let finish = async { while publishing_tasks.join_next().await.is_some() {} };
    let driven = local.run_until(through(drive, &shared, clients, finish)).await?;
    match shared.failed.borrow_mut().take() {
        Some(source) => Err(Error::Connection { name: drive.name, source }),
        None => Ok(driven),
    }
}

async fn through(
    drive: &Drive,
    shared: &Shared,
    clients: usize,
    finish: impl Future<Output = ()>,
) -> Result<Driven, Error> {
    tokio::time::sleep(drive.warm_up).await;
    shared.begin_counting();
    let before = Sample::take(drive)?;
    tokio::time::sleep(drive.window).await;
    let window = Sample::take(drive)?.since(&before, shared, drive, clients);
    let delivery = shared.seen.latency.borrow().clone();
    let driven = Driven { window, delivery, delivered: shared.seen.delivered.get() };
    shared.end();
    match tokio::time::timeout(limits::ANSWER_WAIT, finish).await {
        Ok(()) => Ok(driven),
        Err(_) => Err(Error::Silent { name: drive.name, seconds: limits::ANSWER_WAIT.as_secs() }),
    }
}

async fn publishing(mut publisher: Publisher, shared: Rc<Shared>) {
    while !shared.ending.get() {
        let sent = match &shared.due {
            None => Instant::now(),
            Some(due) => match due.take().await {
                Some(at) => at,
                None => return,
            },
        };
        if let Err(error) = publish(&mut publisher, &shared, sent).await {
            return shared.fail(error);
        }
    }
}

/// One batch, as often as the server asks for it.
async fn publish(publisher: &mut Publisher, shared: &Shared, sent: Instant) -> io::Result<()> {
    loop {
        match publisher.publish().await? {
            Outcome::Overloaded(hint) => {
                shared.refused.borrow_mut().record(sent.elapsed());
                if shared.ending.get() {
                    return Ok(());
                }
                tokio::time::sleep(hint).await;
            }
            Outcome::Done(end) => {
                if shared.until_delivered {
                    shared.seen.passed(end, &shared.ending).await;
                }
                shared.latency.borrow_mut().record(sent.elapsed());
                shared.seen.acknowledged(end, sent);
                return Ok(());
            }
        }
    }
}

async fn reading(number: usize, mut reader: Subscriber, shared: Rc<Shared>) {
    while !shared.ending.get() {
        let received = reader.receive(&mut |batch| shared.seen.met(number, batch)).await;
        shared.seen.moved.notify_waiters();
        if let Err(error) = received {
            return shared.fail(error);
        }
    }
}

async fn ticking(shared: Rc<Shared>) {
    let Some(due) = &shared.due else { return };
    if let Err(error) = due.run(&shared.ending).await {
        shared.fail(error);
    }
}

/// The counters at one moment.
struct Sample {
    at: Instant,
    own: Duration,
    server: Cpu,
}

impl Sample {
    fn take(drive: &Drive) -> Result<Self, Error> {
        let server = Cpu::of(drive.pid).map_err(Error::system("reading the server's CPU"))?;
        Ok(Sample { at: Instant::now(), own: procfs::own_thread_cpu(), server })
    }

    fn since(&self, before: &Sample, shared: &Shared, drive: &Drive, clients: usize) -> Window {
        let latency = shared.latency.borrow().clone();
        Window {
            wall: self.at - before.at,
            body_bytes: latency.count() * drive.batch_bytes,
            latency,
            refused: shared.refused.borrow().clone(),
            server_cpu: self.server.since(&before.server, procfs::ticks_per_second()),
            generator_cpu: self.own.saturating_sub(before.own),
            offered: match drive.pace {
                Pace::Closed => None,
                Pace::Paced(rate) => Some(rate),
            },
            clients,
            ..Window::nothing()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(end: u64) -> Met {
        Met { end, records: 2, bytes: 10 }
    }

    #[test]
    fn deliveries_are_timed_whichever_comes_first() {
        let seen = Seen::new(vec![0, 0], true);
        seen.acknowledged(2, Instant::now());
        seen.met(0, met(2));
        seen.met(0, met(4));
        seen.met(1, met(2));
        seen.acknowledged(4, Instant::now());
        assert_eq!(seen.latency.borrow().count(), 2);
        assert!(seen.due.borrow().is_empty() && seen.early.borrow().is_empty());
        assert_eq!(seen.delivered.get(), Delivered { records: 6, bytes: 30 });
        assert_eq!(*seen.next.borrow(), [4, 2]);
    }

    #[test]
    fn without_a_reader_nothing_is_kept() {
        let seen = Seen::new(Vec::new(), true);
        seen.acknowledged(2, Instant::now());
        assert!(seen.due.borrow().is_empty());
    }
}
