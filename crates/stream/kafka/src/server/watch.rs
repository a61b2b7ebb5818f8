//! Time limits of connections without a timer for each: one look at all of them, four times a second.
//!
//! A connection notes in its [`Link`] since when it waits for the rest of a request, for its client to read, or for
//! anything at all. The worker's watch goes over the links and orders those that are overdue to be cut.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use crate::limits::TICK;

/// Instants, counted in [`TICK`]s since the worker began.
type Ticks = u32;

/// What a connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Serve.
    Serve,
    /// Begin no further request, and end.
    Finish,
    /// End at once.
    Cut,
}

/// Why a connection was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The rest of a request did not come.
    Request,
    /// An answer was not read.
    Answer,
    /// There was no request.
    Idle,
}

/// How long each of these may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    pub(crate) request: Duration,
    pub(crate) answer: Duration,
    pub(crate) idle: Duration,
}

/// What the watch knows of one connection.
#[derive(Debug)]
pub(crate) struct Link {
    order: Cell<Order>,
    waker: RefCell<Option<Waker>>,
    request: Cell<Option<Ticks>>,
    answer: Cell<Option<Ticks>>,
    idle: Cell<Option<Ticks>>,
    /// Whether the client is known, and may therefore ask nothing for a while.
    is_known: Cell<bool>,
}

impl Link {
    /// What to do; `waker` is woken when that changes.
    pub(crate) fn order(&self, waker: &Waker) -> Order {
        let mut kept = self.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
        self.order.get()
    }

    /// Orders it. An order is never taken back.
    pub(crate) fn command(&self, order: Order) {
        if order > self.order.get() {
            self.order.set(order);
            if let Some(waker) = &*self.waker.borrow() {
                waker.wake_by_ref();
            }
        }
    }

    fn overdue(&self, now: Ticks, deadlines: &Deadlines) -> Option<Overdue> {
        let past = |since: &Cell<Option<Ticks>>, limit| {
            since.get().is_some_and(|since| now.wrapping_sub(since) > ticks(limit))
        };
        if past(&self.answer, deadlines.answer) {
            return Some(Overdue::Answer);
        }
        if past(&self.request, deadlines.request) {
            return Some(Overdue::Request);
        }
        let patience =
            if self.is_known.get() { deadlines.idle } else { deadlines.request.min(deadlines.idle) };
        past(&self.idle, patience).then_some(Overdue::Idle)
    }
}

/// The links of one worker.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    now: Cell<Ticks>,
    links: RefCell<Vec<Rc<Link>>>,
    gone: Notify,
}

impl Watch {
    /// Adds a connection.
    pub(crate) fn enlist(self: &Rc<Self>) -> Enlisted {
        let link = Rc::new(Link {
            order: Cell::new(Order::Serve),
            waker: RefCell::new(None),
            request: Cell::new(None),
            answer: Cell::new(None),
            idle: Cell::new(Some(self.now.get())),
            is_known: Cell::new(false),
        });
        self.links.borrow_mut().push(Rc::clone(&link));
        Enlisted { link, watch: Rc::clone(self) }
    }

    /// Orders every connection.
    pub(crate) fn command_all(&self, order: Order) {
        self.links.borrow().iter().for_each(|link| link.command(order));
    }

    /// Cuts who is overdue, for ever; `tell` learns of each.
    pub(crate) async fn run(&self, deadlines: Deadlines, tell: impl Fn(Overdue)) {
        let mut interval = interval(TICK);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.step(&deadlines, &tell);
        }
    }

    fn step(&self, deadlines: &Deadlines, tell: &impl Fn(Overdue)) {
        let now = self.now.get().wrapping_add(1);
        self.now.set(now);
        for link in &*self.links.borrow() {
            if link.order.get() == Order::Cut {
                continue;
            }
            if let Some(overdue) = link.overdue(now, deadlines) {
                tell(overdue);
                link.command(Order::Cut);
            }
        }
    }

    /// Returns when no connection is left.
    pub(crate) async fn all_gone(&self) {
        while !self.links.borrow().is_empty() {
            self.gone.notified().await;
        }
    }
}

/// A connection's place among the links, until it is dropped.
#[derive(Debug)]
pub(crate) struct Enlisted {
    pub(crate) link: Rc<Link>,
    watch: Rc<Watch>,
}

impl Enlisted {
    /// A request came whole: what is waited for from here on is waited for anew.
    pub(crate) fn has_asked(&self) {
        self.link.request.set(None);
        self.link.idle.set(None);
    }

    /// The client has said who it is, or need not.
    pub(crate) fn is_known(&self, known: bool) {
        self.link.is_known.set(known);
    }

    /// The client read something.
    pub(crate) fn has_read(&self) {
        self.link.answer.set(None);
    }

    /// The connection waits for the rest of a request, or no longer does. Repeating it changes nothing.
    pub(crate) fn awaits_request(&self, waits: bool) {
        self.note(&self.link.request, waits);
    }

    /// The connection waits for its client to read, or no longer does.
    pub(crate) fn awaits_reader(&self, waits: bool) {
        self.note(&self.link.answer, waits);
    }

    /// Nothing is going on, or something is.
    pub(crate) fn is_idle(&self, idle: bool) {
        self.note(&self.link.idle, idle);
    }

    fn note(&self, since: &Cell<Option<Ticks>>, waits: bool) {
        if waits != since.get().is_some() {
            since.set(waits.then(|| self.watch.now.get()));
        }
    }
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        let mut links = self.watch.links.borrow_mut();
        if let Some(at) = links.iter().position(|link| Rc::ptr_eq(link, &self.link)) {
            links.swap_remove(at);
        }
        if links.is_empty() {
            self.watch.gone.notify_waiters();
        }
    }
}

fn ticks(span: Duration) -> Ticks {
    Ticks::try_from(span.as_millis() / TICK.as_millis()).unwrap_or(Ticks::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINES: Deadlines = Deadlines {
        request: Duration::from_millis(500),
        answer: Duration::from_millis(250),
        idle: Duration::from_millis(1000),
    };

    fn steps_until_cut(prepare: impl FnOnce(&Enlisted)) -> (u32, Option<Overdue>) {
        let watch = Rc::new(Watch::default());
        let enlisted = watch.enlist();
        enlisted.is_known(true);
        prepare(&enlisted);
        let told = Cell::new(None);
        for step in 1..20 {
            watch.step(&DEADLINES, &|overdue| told.set(Some(overdue)));
            if enlisted.link.order(Waker::noop()) == Order::Cut {
                return (step, told.get());
            }
        }
        (0, told.get())
    }

    #[test]
    fn who_is_overdue_is_cut() {
        assert_eq!(steps_until_cut(|_| ()), (5, Some(Overdue::Idle)));
        assert_eq!(steps_until_cut(|link| link.awaits_request(true)), (3, Some(Overdue::Request)));
        assert_eq!(steps_until_cut(|link| link.awaits_reader(true)), (2, Some(Overdue::Answer)));
        assert_eq!(steps_until_cut(|link| link.is_idle(false)), (0, None));
        // A stranger who says nothing is seen off as soon as one who does not finish.
        assert_eq!(steps_until_cut(|link| link.is_known(false)), (3, Some(Overdue::Idle)));
    }

    #[test]
    fn who_goes_on_asking_and_reading_is_not_overdue() {
        let watch = Rc::new(Watch::default());
        let enlisted = watch.enlist();
        for _ in 0..20 {
            enlisted.has_asked();
            enlisted.has_read();
            enlisted.awaits_request(true);
            enlisted.awaits_reader(true);
            enlisted.is_idle(true);
            watch.step(&DEADLINES, &|overdue| panic!("{overdue:?}"));
        }
        assert_eq!(enlisted.link.order(Waker::noop()), Order::Serve);
    }

    #[test]
    fn the_watch_forgets_who_is_gone() {
        let watch = Rc::new(Watch::default());
        let (one, two) = (watch.enlist(), watch.enlist());
        drop(one);
        assert_eq!(watch.links.borrow().len(), 1);
        assert!(Rc::ptr_eq(&watch.links.borrow()[0], &two.link));
        watch.command_all(Order::Finish);
        assert_eq!(two.link.order(Waker::noop()), Order::Finish);
    }
}
