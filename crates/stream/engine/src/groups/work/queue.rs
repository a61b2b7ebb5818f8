//! Pulls that wait for a group to have something: in the order in which they came, one woken at a time.
//!
//! Who is woken and takes something wakes the next one if there is more; who is woken and goes away without
//! looking passes it on. So a record wakes one pull of a thousand, and none is forgotten.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use parking_lot::Mutex;
use slab::Slab;

struct Slot {
    waker: Waker,
    /// It stands in the order; otherwise it was woken and has not looked yet.
    stands: bool,
}

#[derive(Default)]
struct Inner {
    slots: Slab<Slot>,
    order: VecDeque<usize>,
}

/// Also what the shards of a group wake.
#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    /// The members read different streams: what wakes one pull may be another's.
    is_mixed: AtomicBool,
}

impl Queue {
    /// Waits, in the place that it has.
    pub(super) fn wait(&self, key: &mut Option<usize>, waker: &Waker) {
        let mut inner = self.inner.lock();
        let Inner { slots, order } = &mut *inner;
        let at = *key.get_or_insert_with(|| slots.insert(Slot { waker: waker.clone(), stands: false }));
        let slot = &mut slots[at];
        if !slot.waker.will_wake(waker) {
            slot.waker = waker.clone();
        }
        if !std::mem::replace(&mut slot.stands, true) {
            order.push_back(at);
        }
    }

    /// Has something, or goes away. Answers whether it was woken and has not looked.
    pub(super) fn leave(&self, key: &mut Option<usize>) -> bool {
        let Some(at) = key.take() else { return false };
        let mut inner = self.inner.lock();
        let slot = inner.slots.remove(at);
        if slot.stands {
            inner.order.retain(|other| *other != at);
        }
        if inner.slots.is_empty() {
            *inner = Inner::default();
        }
        !slot.stands
    }

    /// Wakes the one that has waited longest.
    pub(super) fn wake_one(&self) {
        let waker = {
            let mut inner = self.inner.lock();
            let Some(at) = inner.order.pop_front() else { return };
            let slot = &mut inner.slots[at];
            slot.stands = false;
            slot.waker.clone()
        };
        waker.wake();
    }

    /// Wakes all: they may wait for different things.
    pub(super) fn wake_all(&self) {
        let wakers: Vec<Waker> = {
            let mut inner = self.inner.lock();
            let Inner { slots, order } = &mut *inner;
            let take = |at| {
                let slot: &mut Slot = &mut slots[at];
                slot.stands = false;
                slot.waker.clone()
            };
            order.drain(..).map(take).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// There is something: for one, or nobody knows for whom.
    pub(super) fn rouse(&self) {
        if self.is_mixed.load(Ordering::Relaxed) {
            self.wake_all();
        } else {
            self.wake_one();
        }
    }

    pub(super) fn set_mixed(&self, is_mixed: bool) {
        self.is_mixed.store(is_mixed, Ordering::Relaxed);
    }

    /// How many wait beside the one of this place.
    pub(super) fn rivals(&self, key: Option<usize>) -> usize {
        let inner = self.inner.lock();
        let own = key.is_some_and(|at| inner.slots[at].stands);
        inner.order.len() - usize::from(own)
    }
}

impl Wake for Queue {
    fn wake(self: Arc<Self>) {
        self.rouse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn one_at_a_time_in_order_and_none_is_forgotten() {
        let queue = Queue::default();
        let woken: Vec<Arc<Woken>> = (0..3).map(|_| Arc::default()).collect();
        let mut keys = [None; 3];
        for (key, woken) in keys.iter_mut().zip(&woken) {
            queue.wait(key, &Waker::from(woken.clone()));
            queue.wait(key, &Waker::from(woken.clone()));
        }
        let counts = || woken.iter().map(|w| w.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert_eq!(queue.rivals(None), 3);
        queue.wake_one();
        assert_eq!(counts(), [1, 0, 0]);
        // It goes away without looking: the caller passes it on.
        assert!(queue.leave(&mut keys[0]));
        queue.wake_one();
        assert_eq!(counts(), [1, 1, 0]);
        assert!(!queue.leave(&mut keys[2]));
        queue.wait(&mut keys[1], &Waker::from(woken[1].clone()));
        queue.wake_all();
        queue.wake_one();
        assert_eq!(counts(), [1, 2, 0]);
        assert!(queue.leave(&mut keys[1]) && queue.rivals(None) == 0);
    }
}
