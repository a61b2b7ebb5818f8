//! The state of one connection, as far as time limits and the drain need to know it.
//!
//! ```text
//!            first byte             head complete              last answer done
//!   Idle ---------------> Head ----------------------> Busy -------------------> Idle
//!    |                     |                             |
//!    | idle_timeout        | head_timeout                | (body and request have limits of their own)
//!    v                     v                             v
//!   finish               answer 408                    an answer that is not read: write_timeout, cut
//!    |                     |
//!    +----> Closing <------+      whoever does not go within the linger time is cut
//! ```
//!
//! A connection begins in `Head`: who connects has the time of a head to send one, TLS handshake included. An
//! HTTP/2 connection never enters `Head` again, because its frames need not belong to a request; a head
//! that trickles in there is bounded by the idle limit.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use super::watch::Ticks;

/// Where a connection stands between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The head of a request is expected or arriving.
    Head,
    /// Nothing is asked.
    Idle,
    /// It was told to end.
    Closing,
}

/// What a connection was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing.
    Serve,
    /// Finish what is in flight, then close.
    Finish,
    /// Answer 408 and close.
    AnswerTimeout,
    /// Close now.
    Cut,
}

/// Why a connection is overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The head did not arrive in time.
    Head,
    /// No request for too long.
    Idle,
    /// The client does not read its answer, or does not go.
    Stuck,
}

/// The limits of a connection, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkLimits {
    pub(crate) head: Ticks,
    pub(crate) idle: Ticks,
    pub(crate) write: Ticks,
    pub(crate) linger: Ticks,
}

/// One connection's state. Its core alone touches it.
#[derive(Debug)]
pub(crate) struct Link {
    phase: Cell<Phase>,
    since: Cell<Ticks>,
    in_flight: Cell<u32>,
    write_stalled: Cell<Option<Ticks>>,
    order: Cell<Order>,
    multiplexed: Cell<bool>,
    unread: Cell<bool>,
    wired: Cell<bool>,
    /// When the time of the one request in flight is over (HTTP/1.1), and whether it is.
    request_deadline: Cell<Ticks>,
    request_over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Link {
    /// A connection that has just been accepted.
    pub(crate) fn new(now: Ticks) -> Self {
        Self {
            phase: Cell::new(Phase::Head),
            since: Cell::new(now),
            in_flight: Cell::new(0),
            write_stalled: Cell::new(None),
            order: Cell::new(Order::Serve),
            multiplexed: Cell::new(false),
            unread: Cell::new(false),
            wired: Cell::new(false),
            request_deadline: Cell::new(Ticks::MAX),
            request_over: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    fn enter(&self, phase: Phase, now: Ticks) {
        self.phase.set(phase);
        self.since.set(now);
    }

    /// Its protocol is known, so it can be answered.
    pub(crate) fn set_wired(&self) {
        self.wired.set(true);
    }

    /// Whether it can be answered.
    pub(crate) fn is_wired(&self) -> bool {
        self.wired.get()
    }

    /// It speaks HTTP/2.
    pub(crate) fn set_multiplexed(&self, now: Ticks) {
        self.multiplexed.set(true);
        if self.phase.get() == Phase::Head {
            self.enter(Phase::Idle, now);
        }
    }

    /// Whether it speaks HTTP/2.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.multiplexed.get()
    }

    /// Bytes came in.
    pub(crate) fn heard(&self, now: Ticks) {
        if self.phase.get() == Phase::Idle && self.in_flight.get() == 0 && !self.multiplexed.get() {
            self.enter(Phase::Head, now);
        }
    }

    /// Bytes went out.
    pub(crate) fn wrote(&self, now: Ticks) {
        self.write_stalled.set(None);
        if self.phase.get() != Phase::Head {
            self.since.set(now);
        }
    }

    /// Bytes could not go out.
    pub(crate) fn stalled(&self, now: Ticks) {
        if self.write_stalled.get().is_none() {
            self.write_stalled.set(Some(now));
        }
    }

    /// A request begins: its head is complete.
    pub(crate) fn begin(&self) {
        if self.phase.get() == Phase::Head {
            self.phase.set(Phase::Idle);
        }
        self.in_flight.set(self.in_flight.get() + 1);
    }

    /// A request's answer is done, or nobody wants it any more.
    pub(crate) fn end(&self, now: Ticks) {
        self.in_flight.set(self.in_flight.get() - 1);
        if self.in_flight.get() == 0 {
            let closing = self.phase.get() == Phase::Closing;
            self.enter(if closing { Phase::Closing } else { Phase::Idle }, now);
        }
    }

    /// A body was left unread: whoever closes must read on for a while, or the client loses its answer.
    pub(crate) fn leave_unread(&self) {
        self.unread.set(true);
    }

    /// Whether the client may still be sending what nobody will read.
    pub(crate) fn must_linger(&self) -> bool {
        self.unread.get() || self.phase.get() == Phase::Head
    }

    /// The connection is to end: what its client still sends is thrown away.
    pub(crate) fn close(&self, now: Ticks) {
        if self.phase.get() == Phase::Head {
            self.unread.set(true);
        }
        if self.phase.get() != Phase::Closing {
            self.enter(Phase::Closing, now);
        }
    }

    /// Whether and why the connection is overdue.
    pub(crate) fn overdue(&self, now: Ticks, limits: &LinkLimits) -> Option<Overdue> {
        if self.write_stalled.get().is_some_and(|since| now.saturating_sub(since) >= limits.write) {
            return Some(Overdue::Stuck);
        }
        if self.in_flight.get() > 0 {
            return None;
        }
        let waited = now.saturating_sub(self.since.get());
        match self.phase.get() {
            Phase::Head => (waited >= limits.head).then_some(Overdue::Head),
            Phase::Idle => (waited >= limits.idle).then_some(Overdue::Idle),
            Phase::Closing => (waited >= limits.linger).then_some(Overdue::Stuck),
        }
    }

    /// Tells the connection to end, one way or the other.
    pub(crate) fn command(&self, order: Order, now: Ticks) {
        self.order.set(order);
        self.close(now);
        self.wake();
    }

    /// Tells the connection that the listener is closed: what is in flight finishes; who is sending a request,
    /// or has only just come, may have it answered; who is idle goes.
    pub(crate) fn drain(&self, now: Ticks) {
        match (self.in_flight.get(), self.phase.get()) {
            (0, Phase::Head) => self.close(now),
            (0, Phase::Idle) | (1.., _) => self.command(Order::Finish, now),
            (0, Phase::Closing) => {}
        }
    }

    /// Sets when the time of the request in flight is over; `Ticks::MAX` is never.
    pub(crate) fn set_request_deadline(&self, deadline: Ticks) {
        self.request_deadline.set(deadline);
        self.request_over.set(false);
    }

    /// Whether that time is over.
    pub(crate) fn is_request_over(&self) -> bool {
        self.request_over.get()
    }

    /// Wakes the request in flight if its time is over.
    pub(crate) fn expire_request(&self, now: Ticks) {
        if self.request_deadline.get() <= now && !self.request_over.replace(true) {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// What the connection was told.
    pub(crate) fn order(&self) -> Order {
        self.order.get()
    }

    /// Remembers whom to wake for an order.
    pub(crate) fn listen(&self, waker: &Waker) {
        let mut slot = self.waker.borrow_mut();
        match &mut *slot {
            Some(known) => known.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LinkLimits = LinkLimits { head: 10, idle: 100, write: 20, linger: 5 };

    #[test]
    fn who_connects_has_the_time_of_a_head() {
        let link = Link::new(3);
        assert_eq!(link.overdue(12, &LIMITS), None);
        link.heard(11);
        assert_eq!(link.overdue(13, &LIMITS), Some(Overdue::Head), "bytes do not buy time");
    }

    #[test]
    fn a_request_in_flight_is_not_the_connections_matter() {
        let link = Link::new(0);
        link.begin();
        assert_eq!(link.overdue(1000, &LIMITS), None);
        link.end(1000);
        assert_eq!(link.overdue(1099, &LIMITS), None);
        assert_eq!(link.overdue(1100, &LIMITS), Some(Overdue::Idle));
    }

    #[test]
    fn the_first_byte_after_an_answer_begins_a_head() {
        let link = Link::new(0);
        link.begin();
        link.end(50);
        link.heard(90);
        link.heard(95);
        assert_eq!(link.overdue(99, &LIMITS), None);
        assert_eq!(link.overdue(100, &LIMITS), Some(Overdue::Head));
    }

    #[test]
    fn an_http2_connection_is_idle_or_busy() {
        let link = Link::new(0);
        link.set_multiplexed(1);
        link.heard(50);
        assert_eq!(link.overdue(100, &LIMITS), None);
        assert_eq!(link.overdue(101, &LIMITS), Some(Overdue::Idle), "frames that ask nothing do not count");
    }

    #[test]
    fn an_answer_that_is_not_read_is_cut_off() {
        let link = Link::new(0);
        link.begin();
        link.stalled(5);
        link.stalled(20);
        assert_eq!(link.overdue(24, &LIMITS), None);
        assert_eq!(link.overdue(25, &LIMITS), Some(Overdue::Stuck));
        link.wrote(25);
        assert_eq!(link.overdue(44, &LIMITS), None);
    }

    #[test]
    fn who_was_told_to_go_has_the_linger_time() {
        let link = Link::new(0);
        link.command(Order::Finish, 7);
        assert_eq!(link.order(), Order::Finish);
        assert_eq!(link.overdue(11, &LIMITS), None);
        assert_eq!(link.overdue(12, &LIMITS), Some(Overdue::Stuck));
    }

    #[test]
    fn a_drain_lets_busy_and_new_connections_be_answered() {
        let idle = Link::new(0);
        idle.begin();
        idle.end(1);
        let busy = Link::new(0);
        busy.begin();
        let fresh = Link::new(0);
        for link in [&idle, &busy, &fresh] {
            link.drain(2);
        }
        assert_eq!([idle.order(), busy.order(), fresh.order()], [Order::Finish, Order::Finish, Order::Serve]);
        assert_eq!(fresh.overdue(6, &LIMITS), None);
        assert_eq!(fresh.overdue(7, &LIMITS), Some(Overdue::Stuck), "but not for long");
    }
}
