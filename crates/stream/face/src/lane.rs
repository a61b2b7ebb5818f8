//! One byte stream being served: the task that reads, answers, pushes and writes.
//!
//! There is one task for everything on the stream, so that nothing has to be handed from one task to another:
//! what is ready when it is woken leaves in one write, acknowledgements and pushes together. Order of work in
//! a round: read, settle what has been answered, push to subscribers, write. Rounds repeat while they achieve
//! something, up to [`ROUNDS_MAX`], after which other connections have their turn.
//!
//! Backpressure has three sides. Requests are not read while too much waits to be written; pushes stop at a
//! lower mark, so that answers never wait behind more than that; and publishes are admitted by bytes. A
//! reader that does not read is noticed by time and cut. Nobody else notices.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::account::Account;
use crate::limits::{LINGER_MS, ROUNDS_MAX};
use crate::link::Link;
use crate::options::Limits;
use crate::session::Session;
use crate::worker::Worker;

/// What a lane is told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Finish what is in flight and go.
    Drain,
    /// Go: nothing has been heard for too long.
    Silent,
    /// Go: nobody reads what is sent.
    Stuck,
    /// Go: there was no greeting in time.
    Ungreeted,
    /// Go at once.
    Cut,
}

/// Where a lane's task is reached, and what the worker's timer looks at.
#[derive(Debug)]
pub(crate) struct Post {
    waker: RefCell<Option<Waker>>,
    order: Cell<Option<Order>>,
    started_ms: u64,
    /// When something was read last.
    heard_ms: Cell<u64>,
    /// Since when bytes have been waiting for the peer to read.
    blocked_ms: Cell<Option<u64>>,
    /// Since when the lane has only been waiting for the peer to close.
    leaving_ms: Cell<Option<u64>>,
    is_greeted: Cell<bool>,
}

impl Post {
    pub(crate) fn new(now_ms: u64) -> Self {
        Self {
            waker: RefCell::new(None),
            order: Cell::new(None),
            started_ms: now_ms,
            heard_ms: Cell::new(now_ms),
            blocked_ms: Cell::new(None),
            leaving_ms: Cell::new(None),
            is_greeted: Cell::new(false),
        }
    }

    /// Gives an order; a weightier one that has not been obeyed yet stays.
    pub(crate) fn order(&self, order: Order) {
        self.order.set(self.order.get().max(Some(order)));
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// What the time calls for.
    pub(crate) fn overdue(&self, now_ms: u64, limits: &Limits) -> Option<Order> {
        let past = |since_ms: u64, limit: std::time::Duration| {
            u128::from(now_ms.saturating_sub(since_ms)) > limit.as_millis()
        };
        if self.leaving_ms.get().is_some_and(|since_ms| now_ms.saturating_sub(since_ms) > LINGER_MS) {
            return Some(Order::Cut);
        }
        if self.blocked_ms.get().is_some_and(|since_ms| past(since_ms, limits.write_timeout)) {
            return Some(Order::Stuck);
        }
        if !self.is_greeted.get() {
            return past(self.started_ms, limits.handshake_timeout).then_some(Order::Ungreeted);
        }
        // Clients give a sign of life three times in this time.
        past(self.heard_ms.get(), limits.idle_timeout).then_some(Order::Silent)
    }

    fn register(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if known.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    fn hear(&self, now_ms: u64) {
        self.heard_ms.set(now_ms);
    }
}

/// The lane is over.
struct Over;

/// The future that serves one byte stream to its end.
pub(crate) struct Lane<L> {
    worker: Rc<Worker>,
    link: L,
    session: Session,
    post: Rc<Post>,
    /// The peer has said that nothing more will come.
    is_read_closed: bool,
    /// Everything was written and the end was said; only the peer's end is waited for.
    is_finished: bool,
}

impl<L: Link> Lane<L> {
    pub(crate) fn new(worker: Rc<Worker>, account: Rc<Account>, link: L, post: Rc<Post>) -> Self {
        let session = Session::new(Arc::clone(&worker.shared.core), worker.index, account);
        Self { worker, link, session, post, is_read_closed: false, is_finished: false }
    }

    fn obey(&mut self) -> Result<(), Over> {
        let Some(order) = self.post.order.take() else { return Ok(()) };
        let stats = &self.worker.shared.core.stats;
        let count = match order {
            Order::Drain => {
                self.session.drain();
                return Ok(());
            }
            Order::Silent => &stats.half_open,
            Order::Stuck => &stats.stuck,
            Order::Ungreeted => &stats.handshakes_failed,
            Order::Cut => return Err(Over),
        };
        count.add(self.worker.index, 1);
        Err(Over)
    }

    /// Reads, if there is room for what it leads to; answers whether anything came.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        if self.is_read_closed {
            return Ok(false);
        }
        if !self.session.wants_input() {
            // It is not the peer who is silent: nobody listens.
            self.post.hear(self.worker.now_ms());
            return Ok(false);
        }
        let appetite = self.session.appetite();
        match self.link.poll_read(cx, appetite, self.session.input()) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => {
                self.is_read_closed = true;
                self.session.leave();
                Ok(true)
            }
            Poll::Ready(Ok(bytes)) => {
                self.post.hear(self.worker.now_ms());
                self.session.received(bytes);
                self.post.is_greeted.set(self.session.is_greeted());
                Ok(true)
            }
            // The peer is gone: there is nobody to tell.
            Poll::Ready(Err(_)) => Err(Over),
        }
    }

    /// Writes what there is; answers whether anything went.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let before = self.session.output().len();
        let written = self.link.poll_write(cx, self.session.output());
        let went = before - self.session.output().len();
        self.session.sent(went);
        match written {
            Poll::Ready(Ok(())) => self.post.blocked_ms.set(None),
            Poll::Ready(Err(_)) => return Err(Over),
            Poll::Pending if went > 0 || self.post.blocked_ms.get().is_none() => {
                self.post.blocked_ms.set(Some(self.worker.now_ms()));
            }
            Poll::Pending => {}
        }
        Ok(went > 0)
    }

    /// Says goodbye once everything was answered and written. What the peer still sends is read and thrown
    /// away until it closes, or for a while: closing a TCP connection with unread bytes would destroy the
    /// last answers on their way.
    fn finish(&mut self, cx: &mut Context<'_>) -> Result<(), Over> {
        if !self.session.is_done() || !self.session.output().is_empty() {
            return Ok(());
        }
        if !self.is_finished {
            match self.link.poll_finish(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_)) => return Err(Over),
                Poll::Ready(Ok(())) => self.is_finished = true,
            }
            self.post.leaving_ms.set(Some(self.worker.now_ms()));
        }
        if self.is_read_closed { Err(Over) } else { Ok(()) }
    }

    fn round(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let read = self.read(cx)?;
        let wanted_input = self.session.wants_input();
        let settled = self.session.poll(cx);
        let wrote = self.write(cx)?;
        self.finish(cx)?;
        // Room that has just been made is for more requests.
        let made_room = !wanted_input && self.session.wants_input();
        Ok(read || settled || wrote || made_room)
    }

    fn rounds(&mut self, cx: &mut Context<'_>) -> Result<(), Over> {
        self.obey()?;
        for _ in 0..ROUNDS_MAX {
            if !self.round(cx)? {
                return Ok(());
            }
        }
        // Others have their turn first.
        cx.waker().wake_by_ref();
        Ok(())
    }
}

impl<L: Link> Future for Lane<L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let lane = self.get_mut();
        lane.post.register(cx.waker());
        match lane.rounds(cx) {
            Ok(()) => Poll::Pending,
            Err(Over) => Poll::Ready(()),
        }
    }
}
