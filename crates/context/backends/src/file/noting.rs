//! Until the engine has noted a change.
//!
//! The engine notes a change among those to be published only after the journal has taken it. A fast disk could
//! make the change durable in between: it would be published before the engine knows that there is one, and
//! acknowledged without being seen. So whoever appends a change stands inside until its thread asks for the next
//! one or for the end, and publishing first waits for all who stood inside when it began. It waits for nobody who
//! came later, and nobody waits for it; those inside need nothing that the publisher holds.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Turns of waiting before the processor is given to others.
const SPINS: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Noting {
    epoch: AtomicUsize,
    /// Who entered in even epochs, and who in odd ones. The epoch moves on only when the other count is zero.
    inside: [AtomicUsize; 2],
}

impl Noting {
    pub(super) fn enter(self: &Arc<Self>) -> Inside {
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            self.inside[epoch & 1].fetch_add(1, Ordering::SeqCst);
            let inside = Inside { noting: self.clone(), parity: epoch & 1 };
            // Had the epoch moved on in between, its end would not have seen us.
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return inside;
            }
        }
    }

    /// Waits until all who are inside now have left. One thread at a time.
    pub(super) fn wait(&self) {
        let old = self.epoch.fetch_add(1, Ordering::SeqCst) & 1;
        let mut turns = 0;
        while self.inside[old].load(Ordering::SeqCst) > 0 {
            turns += 1;
            if turns < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// Stands inside until dropped.
#[derive(Debug)]
pub(super) struct Inside {
    noting: Arc<Noting>,
    parity: usize,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.noting.inside[self.parity].fetch_sub(1, Ordering::SeqCst);
    }
}

thread_local! {
    static HERE: RefCell<Option<Inside>> = const { RefCell::new(None) };
}

/// This thread appends a change: the one before is noted by now.
pub(super) fn next(noting: &Arc<Noting>) {
    end();
    HERE.set(Some(noting.enter()));
}

/// This thread's last change is noted by now.
pub(super) fn end() {
    HERE.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn waiting_ends_when_those_inside_have_left_and_does_not_see_who_comes_later() {
        let noting = Arc::new(Noting::default());
        noting.wait();
        let (first, left) = (noting.enter(), Arc::new(AtomicBool::new(false)));
        let waiter = std::thread::spawn({
            let (noting, left) = (noting.clone(), left.clone());
            move || {
                noting.wait();
                assert!(left.load(Ordering::SeqCst));
            }
        });
        while noting.epoch.load(Ordering::SeqCst) == 1 {
            std::thread::yield_now();
        }
        let later = noting.enter();
        left.store(true, Ordering::SeqCst);
        drop(first);
        waiter.join().unwrap();
        drop(later);
        noting.wait();
    }

    #[test]
    fn many_threads_come_and_go() {
        let noting = Arc::new(Noting::default());
        let done = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (noting, done) = (noting.clone(), done.clone());
                std::thread::spawn(move || {
                    while !done.load(Ordering::SeqCst) {
                        next(&noting);
                    }
                    end();
                })
            })
            .collect();
        for _ in 0..500 {
            noting.wait();
        }
        done.store(true, Ordering::SeqCst);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(noting.inside.iter().all(|count| count.load(Ordering::SeqCst) == 0));
    }
}
