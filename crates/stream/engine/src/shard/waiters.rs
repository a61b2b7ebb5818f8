//! Those who wait for a shard to grow: one slot each, no box and no task.
//!
//! A slot keeps the offset that its owner waits beyond and, while it waits, a waker. Waking takes the waker
//! and leaves the slot, so a subscriber that waits again only puts its waker back. A slot costs 32 bytes.
//! Neighbours that belong to one task (subscriptions of one connection) are woken once.
//!
//! Waking looks at every slot until it has seen all that are armed; whoever waits at the head is woken by the
//! next publish anyhow.

use std::task::Waker;

use slab::Slab;
use smallvec::SmallVec;

/// Wakers to be called after the lock is free.
pub(crate) type Wakers = SmallVec<[Waker; 16]>;

struct Slot {
    above: u64,
    waker: Option<Waker>,
}

#[derive(Default)]
pub(crate) struct Waiters {
    slots: Slab<Slot>,
    armed: usize,
}

impl Waiters {
    /// Waits until the readable end is above `above`; `key` is the owner's slot, made when it has none.
    /// Answers the waker that it replaces, to be dropped without a lock: with it may go a task, and with that
    /// its own slot.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn arm(&mut self, key: &mut Option<usize>, above: u64, waker: &Waker) -> Option<Waker> {
        let slot = match *key {
            Some(at) => &mut self.slots[at],
            None => {
                let at = self.slots.insert(Slot { above, waker: None });
                *key = Some(at);
                &mut self.slots[at]
            }
        };
        slot.above = above;
        if slot.waker.as_ref().is_some_and(|armed| armed.will_wake(waker)) {
            return None;
        }
        let before = slot.waker.replace(waker.clone());
        self.armed += usize::from(before.is_none());
        before
    }

    /// Gives the slot back. Answers its waker, to be dropped without a lock.
    #[must_use = "to be dropped without a lock"]
    pub(crate) fn remove(&mut self, key: usize) -> Option<Waker> {
        let waker = self.slots.remove(key).waker;
        self.armed -= usize::from(waker.is_some());
        if self.slots.is_empty() {
            self.slots = Slab::new();
        }
        waker
    }

    /// Takes the wakers of all who wait below `end`.
    pub(crate) fn take(&mut self, end: u64) -> Wakers {
        let mut wakers = Wakers::new();
        let mut unseen = self.armed;
        for (_, slot) in &mut self.slots {
            if unseen == 0 {
                break;
            }
            if slot.waker.is_none() {
                continue;
            }
            unseen -= 1;
            if slot.above < end {
                self.armed -= 1;
                let waker = slot.waker.take();
                wakers.extend(waker.filter(|waker| !wakers.last().is_some_and(|last| last.will_wake(waker))));
            }
        }
        wakers
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Wakes them; to be called without a lock.
pub(crate) fn wake(wakers: Wakers) {
    for waker in wakers {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waker() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (count.clone(), Waker::from(count))
    }

    #[test]
    fn wakes_those_below_the_end_and_no_others() {
        let mut waiters = Waiters::default();
        let (near, near_waker) = waker();
        let (far, far_waker) = waker();
        let (mut a, mut b) = (None, None);
        assert!(waiters.arm(&mut a, 4, &near_waker).is_none());
        assert!(waiters.arm(&mut b, 9, &far_waker).is_none());
        wake(waiters.take(5));
        assert_eq!((near.0.load(Ordering::Relaxed), far.0.load(Ordering::Relaxed)), (1, 0));
        wake(waiters.take(10));
        assert_eq!((near.0.load(Ordering::Relaxed), far.0.load(Ordering::Relaxed)), (1, 1));
        assert_eq!((waiters.armed, waiters.len()), (0, 2));
    }

    #[test]
    fn waiting_again_uses_the_same_slot_and_one_task_is_woken_once() {
        let mut waiters = Waiters::default();
        let (count, waker) = waker();
        let mut keys = [None; 3];
        for round in 0..5 {
            keys.iter_mut().for_each(|key| assert!(waiters.arm(key, round, &waker).is_none()));
            keys.iter_mut().for_each(|key| assert!(waiters.arm(key, round, &waker).is_none()));
            assert_eq!((waiters.armed, waiters.len()), (3, 3));
            wake(waiters.take(round + 1));
        }
        assert_eq!(count.0.load(Ordering::Relaxed), 5);
        keys.into_iter().flatten().for_each(|key| assert!(waiters.remove(key).is_none()));
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn a_slot_given_back_while_armed_is_not_counted() {
        let mut waiters = Waiters::default();
        let (_, waker) = waker();
        let (mut a, mut b) = (None, None);
        assert!(waiters.arm(&mut a, 1, &waker).is_none());
        assert!(waiters.arm(&mut b, 1, &waker).is_none());
        // Another task: the first one's waker is handed out.
        let (_, other) = self::waker();
        assert!(waiters.arm(&mut b, 1, &other).is_some_and(|before| before.will_wake(&waker)));
        assert!(waiters.remove(a.unwrap()).is_some());
        assert_eq!(waiters.armed, 1);
        assert_eq!(waiters.take(2).len(), 1);
        assert_eq!(waiters.armed, 0);
    }

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 32);
    }
}
