//! When the next batch of a paced load is due: evenly by the clock, so that latency is that of a batch that comes when
//! nobody expects it.
//!
//! A timer of the kernel gives the beat, because the runtime's own has milliseconds. Whoever is free takes the oldest
//! batch that is due; its latency counts from when it was due, also when nobody was free, so a slow server cannot hide
//! its queue by slowing the generator down. What is due and not taken is bounded by rate and window.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;

/// Batches that are due.
pub(super) struct Due {
    beat: Duration,
    waiting: RefCell<VecDeque<Instant>>,
    more: Notify,
    ended: Cell<bool>,
}

impl Due {
    /// So many a second.
    pub(super) fn new(rate: f64) -> io::Result<Self> {
        if !(rate.is_finite() && rate > 0.0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("a rate of {rate}")));
        }
        let beat = Duration::from_nanos((1e9 / rate).ceil().max(1.0) as u64);
        Ok(Due { beat, waiting: RefCell::default(), more: Notify::new(), ended: Cell::new(false) })
    }

    /// The moment at which the next batch was due, once one is; nothing after the end.
    pub(super) async fn take(&self) -> Option<Instant> {
        loop {
            if self.ended.get() {
                return None;
            }
            if let Some(due) = self.waiting.borrow_mut().pop_front() {
                return Some(due);
            }
            self.more.notified().await;
        }
    }

    /// No more are taken.
    pub(super) fn end(&self) {
        self.ended.set(true);
        self.more.notify_waiters();
        self.more.notify_one();
    }

    /// Lets batches become due until `ending`.
    pub(super) async fn run(&self, ending: &Cell<bool>) -> io::Result<()> {
        let (timer, start) = (self.timer()?, Instant::now());
        // A timer is read like a pipe: it becomes readable, and then says how often it has ticked.
        let timer = Receiver::from_owned_fd_unchecked(timer)?;
        let mut told = 0;
        while !ending.get() {
            timer.readable().await?;
            let mut ticks = [0; 8];
            match timer.try_read(&mut ticks) {
                Ok(_) => self.fall(start, &mut told, u64::from_ne_bytes(ticks)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// So many more are due.
    fn fall(&self, start: Instant, told: &mut u64, ticks: u64) {
        for _ in 0..ticks {
            *told += 1;
            let after = Duration::from_nanos(self.beat_ns().saturating_mul(*told));
            self.waiting.borrow_mut().push_back(start + after);
            self.more.notify_one();
        }
    }

    fn beat_ns(&self) -> u64 {
        u64::try_from(self.beat.as_nanos()).unwrap_or(u64::MAX)
    }

    fn timer(&self) -> io::Result<OwnedFd> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let beat =
            Timespec { tv_sec: self.beat.as_secs().cast_signed(), tv_nsec: self.beat.subsec_nanos().into() };
        let times = Itimerspec { it_interval: beat, it_value: beat };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
        Ok(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn batches_are_due_evenly_and_late_ones_count_from_then() {
        let due = Due::new(1000.0).unwrap();
        let (start, mut told) = (Instant::now(), 0);
        due.fall(start, &mut told, 2);
        due.fall(start, &mut told, 1);
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push((due.take().await.unwrap() - start).as_millis());
        }
        assert_eq!(taken, [1, 2, 3]);
        due.end();
        assert_eq!(due.take().await, None);
    }

    #[tokio::test]
    async fn the_timer_makes_them_due() {
        let (due, ending) = (Due::new(100_000.0).unwrap(), Cell::new(false));
        let takes = async {
            for _ in 0..50 {
                due.take().await.unwrap();
            }
            ending.set(true);
        };
        let (ran, ()) = tokio::join!(due.run(&ending), takes);
        ran.unwrap();
    }

    #[test]
    fn no_rate_is_refused() {
        assert!(Due::new(0.0).is_err() && Due::new(f64::NAN).is_err());
    }
}
