//! When the next request is due.
//!
//! A closed load is always due. A paced load follows a timer of the kernel with a tick of
//! [`limits::PACE_TICK`] in the same epoll as the sockets: no busy waiting, so the generator's utilisation
//! stays a true figure. Requests that fall due between two ticks leave at the later one.

use super::Pace;
use crate::limits;
use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// The source of due requests.
pub(super) enum Arrivals {
    /// Always one more.
    Closed,
    /// By the clock.
    Paced(Schedule, OwnedFd),
    /// No more.
    Stopped,
}

impl Arrivals {
    /// Starts the clock of a paced load and registers its timer.
    pub(super) fn start(pace: Pace, poll: &Poll, token: Token) -> io::Result<Arrivals> {
        let Pace::Paced(rate) = pace else { return Ok(Arrivals::Closed) };
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let tick = Timespec { tv_sec: 0, tv_nsec: limits::PACE_TICK.subsec_nanos().into() };
        timerfd_settime(
            &timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: tick, it_value: tick },
        )?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Arrivals::Paced(Schedule::new(Instant::now(), rate), timer))
    }

    /// Takes one request that is due by `now`: the instant from which its latency counts.
    pub(super) fn take(&mut self, now: Instant) -> Option<Instant> {
        match self {
            Arrivals::Closed => Some(now),
            Arrivals::Paced(schedule, _) => schedule.take(now),
            Arrivals::Stopped => None,
        }
    }

    /// Reads the timer, so that its next tick is an event again.
    pub(super) fn acknowledge(&self) {
        if let Arrivals::Paced(_, timer) = self {
            let mut ticks = [0; 8];
            // Nothing to read means that the tick was read already.
            let _ = rustix::io::read(timer, &mut ticks);
        }
    }

    /// Nothing is due any more.
    pub(super) fn stop(&mut self) {
        *self = Arrivals::Stopped;
    }
}

/// Requests at a fixed rate, rounded up to ticks.
pub(super) struct Schedule {
    start: Instant,
    rate: f64,
    taken: u64,
}

impl Schedule {
    fn new(start: Instant, rate: f64) -> Schedule {
        Schedule { start, rate, taken: 0 }
    }

    fn take(&mut self, now: Instant) -> Option<Instant> {
        let due = self.start + self.due_after();
        if due > now {
            return None;
        }
        self.taken += 1;
        Some(due)
    }

    fn due_after(&self) -> Duration {
        let exact = (self.taken + 1) as f64 / self.rate;
        let ticks = (exact / limits::PACE_TICK.as_secs_f64()).ceil();
        limits::PACE_TICK.mul_f64(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_within(rate: f64, span: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, rate);
        std::iter::from_fn(|| schedule.take(start + span)).map(|due| due - start).collect()
    }

    #[test]
    fn a_rate_is_kept_over_any_span() {
        for (rate, expected) in [(1000.0, 500), (12_345.0, 6172), (3.0, 1), (1.0, 0)] {
            assert_eq!(taken_within(rate, Duration::from_millis(500)).len(), expected, "{rate}");
        }
    }

    #[test]
    fn due_times_lie_on_ticks_and_never_go_back() {
        let due = taken_within(7_777.0, Duration::from_millis(50));
        assert!(due.is_sorted());
        let tick = limits::PACE_TICK.as_nanos();
        assert!(due.iter().all(|at| at.as_nanos().abs_diff((at.as_nanos() + tick / 2) / tick * tick) < 10));
    }

    #[test]
    fn a_backlog_counts_from_when_it_was_due() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, 1_000.0);
        let late = start + Duration::from_secs(1);
        let first = schedule.take(late).unwrap();
        assert_eq!(late - first, Duration::from_secs(1) - limits::PACE_TICK);
    }
}
