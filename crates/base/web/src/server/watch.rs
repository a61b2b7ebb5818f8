//! One core's sense of time: deadlines that cost nothing until they are needed.
//!
//! A timer per request is a heap entry, two clock readings and a lock in the runtime's wheel for something that
//! almost never happens. Here a core reads the clock once a tick. A connection notes the tick at which its
//! state changed, in a plain cell, and a future is entered in the books only when it is first found
//! pending. Once a tick the core walks both lists and acts on what is overdue: it costs in proportion to the
//! connections and the requests that wait, twenty times a second, and nothing while there are none.
//!
//! A limit is therefore kept to within two ticks, never cut short.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use slab::Slab;
use tokio::sync::Notify;

use super::link::Link;
use crate::limits::TICK;

/// A count of ticks.
pub(crate) type Ticks = u64;

/// So many ticks that `duration` has surely passed.
pub(crate) fn ticks(duration: Duration) -> Ticks {
    let whole = duration.as_nanos().div_ceil(TICK.as_nanos());
    u64::try_from(whole).unwrap_or(u64::MAX / 2).min(u64::MAX / 2) + 1
}

/// A core's clock, its connections, and the futures that wait with a deadline.
#[derive(Debug)]
pub(crate) struct Watch {
    started: Instant,
    now: Cell<Ticks>,
    links: RefCell<Slab<Rc<Link>>>,
    waits: RefCell<Slab<Wait>>,
    work: Notify,
    emptied: Notify,
}

#[derive(Debug)]
struct Wait {
    deadline: Ticks,
    over: bool,
    waker: Waker,
}

impl Watch {
    /// Starts the clock.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            started: Instant::now(),
            now: Cell::new(0),
            links: RefCell::default(),
            waits: RefCell::default(),
            work: Notify::new(),
            emptied: Notify::new(),
        })
    }

    /// The tick that was last read: a cell, not a clock.
    pub(crate) fn now(&self) -> Ticks {
        self.now.get()
    }

    fn read_clock(&self) {
        let elapsed = self.started.elapsed().as_nanos() / TICK.as_nanos();
        self.now.set(u64::try_from(elapsed).unwrap_or(u64::MAX));
    }

    /// Puts a connection into the books.
    pub(crate) fn enlist(self: &Rc<Self>) -> Enlisted {
        if self.links.borrow().is_empty() {
            self.read_clock();
            self.work.notify_one();
        }
        let link = Rc::new(Link::new(self.now()));
        let key = self.links.borrow_mut().insert(Rc::clone(&link));
        Enlisted { watch: Rc::clone(self), key, link }
    }

    /// Calls `act` for every connection.
    pub(crate) fn for_each(&self, mut act: impl FnMut(&Link)) {
        for (_, link) in self.links.borrow().iter() {
            act(link);
        }
    }

    /// Returns when no connection is left.
    pub(crate) async fn all_gone(&self) {
        while !self.links.borrow().is_empty() {
            self.emptied.notified().await;
        }
    }

    /// Reads the clock and acts on what is overdue, once a tick, for as long as the core lives.
    pub(crate) async fn run(&self, mut overdue: impl FnMut(&Link, Ticks)) {
        loop {
            if self.links.borrow().is_empty() {
                self.work.notified().await;
            }
            tokio::time::sleep(TICK).await;
            self.read_clock();
            self.for_each(|link| overdue(link, self.now()));
            self.expire();
        }
    }

    fn expire(&self) {
        let now = self.now();
        self.for_each(|link| link.expire_request(now));
        for (_, wait) in self.waits.borrow_mut().iter_mut() {
            if !wait.over && wait.deadline <= now {
                wait.over = true;
                wait.waker.wake_by_ref();
            }
        }
    }
}

/// The time that a future has, from when it is first found pending.
///
/// An HTTP/1.1 connection has one request at a time, which its own task polls: the deadline is a cell of the
/// link. The requests of an HTTP/2 connection are tasks of their own, and their deadlines entries in a list.
pub(crate) struct Deadline<'a> {
    watch: &'a Watch,
    link: &'a Link,
    limit: Ticks,
    entered: Entered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entered {
    Nowhere,
    Link,
    List(usize),
}

impl<'a> Deadline<'a> {
    /// A deadline for what a request of this connection waits for.
    pub(crate) fn new(watch: &'a Watch, link: &'a Link, limit: Ticks) -> Self {
        Self { watch, link, limit, entered: Entered::Nowhere }
    }

    /// The output of `future`, or nothing if the time is over first.
    pub(crate) async fn bound<F: Future>(&mut self, mut future: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.is_over(cx) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    fn is_over(&mut self, cx: &Context<'_>) -> bool {
        match self.entered {
            Entered::Nowhere => {
                self.enter(cx);
                false
            }
            Entered::Link => self.link.is_request_over(),
            Entered::List(key) => {
                let mut waits = self.watch.waits.borrow_mut();
                waits[key].waker.clone_from(cx.waker());
                waits[key].over
            }
        }
    }

    fn enter(&mut self, cx: &Context<'_>) {
        let deadline = self.watch.now().saturating_add(self.limit);
        self.entered = if self.link.is_multiplexed() {
            let wait = Wait { deadline, over: false, waker: cx.waker().clone() };
            Entered::List(self.watch.waits.borrow_mut().insert(wait))
        } else {
            self.link.set_request_deadline(deadline);
            Entered::Link
        };
    }
}

impl Drop for Deadline<'_> {
    fn drop(&mut self) {
        match self.entered {
            Entered::Nowhere => {}
            Entered::Link => self.link.set_request_deadline(Ticks::MAX),
            Entered::List(key) => drop(self.watch.waits.borrow_mut().remove(key)),
        }
    }
}

/// A connection's entry in the books; it leaves them when this is dropped.
#[derive(Debug)]
pub(crate) struct Enlisted {
    watch: Rc<Watch>,
    key: usize,
    /// The connection's state.
    pub(crate) link: Rc<Link>,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        let mut links = self.watch.links.borrow_mut();
        links.remove(self.key);
        if links.is_empty() {
            self.watch.emptied.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn a_limit_is_never_cut_short() {
        assert_eq!(ticks(Duration::ZERO), 1);
        assert_eq!(ticks(TICK), 2);
        assert_eq!(ticks(TICK + Duration::from_nanos(1)), 3);
        assert!(ticks(Duration::MAX) > 1 << 60);
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn a_ready_future_enters_no_books() {
        let watch = Watch::new();
        let enlisted = watch.enlist();
        enlisted.link.set_multiplexed(0);
        let mut deadline = Deadline::new(&watch, &enlisted.link, 1);
        assert_eq!(deadline.bound(pin!(async { 7 })).await, Some(7));
        assert_eq!(deadline.entered, Entered::Nowhere);
    }

    #[test]
    fn a_pending_future_ends_at_its_deadline() {
        for multiplexed in [false, true] {
            let watch = Watch::new();
            let enlisted = watch.enlist();
            if multiplexed {
                enlisted.link.set_multiplexed(0);
            }
            let mut deadline = Deadline::new(&watch, &enlisted.link, 3);
            {
                let forever = pin!(std::future::pending::<()>());
                let mut waiting = pin!(deadline.bound(forever));
                assert!(poll(waiting.as_mut()).is_pending());
                watch.now.set(2);
                watch.expire();
                assert!(poll(waiting.as_mut()).is_pending());
                watch.now.set(3);
                watch.expire();
                assert_eq!(poll(waiting.as_mut()), Poll::Ready(None));
            }
            assert_eq!(watch.waits.borrow().len(), usize::from(multiplexed));
            drop(deadline);
            assert!(watch.waits.borrow().is_empty() && !enlisted.link.is_request_over());
        }
    }

    #[tokio::test]
    async fn the_last_connection_to_go_is_noticed() {
        let watch = Watch::new();
        let (one, two) = (watch.enlist(), watch.enlist());
        let mut gone = pin!(watch.all_gone());
        let mut poll = || gone.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        drop(one);
        assert!(poll().is_pending());
        drop(two);
        assert!(poll().is_ready());
    }
}
