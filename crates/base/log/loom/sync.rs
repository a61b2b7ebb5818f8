//! Loom's locks and atomics in the shape of those that the log uses.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

pub(crate) struct Guard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        Guard(Some(self.0.lock().expect("no model panics under a lock")))
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("a guard is empty only while it waits")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("a guard is empty only while it waits")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(loom::sync::Condvar);

/// Time does not pass in a model.
pub(crate) struct Timeout;

impl Timeout {
    pub(crate) fn timed_out(&self) -> bool {
        false
    }
}

impl Condvar {
    pub(crate) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        let held = guard.0.take().expect("a guard is empty only while it waits");
        guard.0 = Some(self.0.wait(held).expect("no model panics under a lock"));
    }

    pub(crate) fn wait_until<T>(&self, guard: &mut Guard<'_, T>, _deadline: Instant) -> Timeout {
        self.wait(guard);
        Timeout
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
