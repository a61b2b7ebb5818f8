//! When the next request is due.
//!
//! A closed load is always due. A paced load comes in bursts, one request for each client, as many bursts a
//! second as give the rate. Bursts, because what is compared is work: requests spread out evenly would wake
//! an idle server for each of them, both sides would pay for that, and the multiple would look better than it
//! is. A timer of the kernel in the same epoll as the sockets gives the beat: no busy waiting, so the
//! generator's utilisation stays a true figure.

use super::Pace;
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
    pub(super) fn start(pace: Pace, clients: usize, poll: &Poll, token: Token) -> io::Result<Arrivals> {
        let Pace::Paced(rate) = pace else { return Ok(Arrivals::Closed) };
        let schedule = Schedule::new(Instant::now(), rate, clients);
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let beat = Timespec {
            tv_sec: schedule.beat.as_secs().cast_signed(),
            tv_nsec: schedule.beat.subsec_nanos().into(),
        };
        timerfd_settime(
            &timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: beat, it_value: beat },
        )?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Arrivals::Paced(schedule, timer))
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

/// Bursts at a fixed rate. The schedule starts before its timer does, so a burst is due when the timer says
/// so.
pub(super) struct Schedule {
    start: Instant,
    beat: Duration,
    clients: u64,
    taken: u64,
}

impl Schedule {
    fn new(start: Instant, rate: f64, clients: usize) -> Schedule {
        let beat = Duration::from_nanos((clients as f64 / rate * 1e9).ceil() as u64);
        Schedule { start, beat, clients: clients as u64, taken: 0 }
    }

    fn take(&mut self, now: Instant) -> Option<Instant> {
        let burst = self.taken / self.clients + 1;
        let due = self.start + self.beat.saturating_mul(u32::try_from(burst).unwrap_or(u32::MAX));
        if due > now {
            return None;
        }
        self.taken += 1;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_within(rate: f64, clients: usize, span: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, rate, clients);
        std::iter::from_fn(|| schedule.take(start + span)).map(|due| due - start).collect()
    }

    #[test]
    fn a_rate_is_kept_to_the_burst() {
        for (rate, clients, expected) in
            [(1000.0, 50, 500), (12_345.0, 50, 6150), (12_345.0, 1, 6172), (3.0, 1, 1), (90.0, 50, 0)]
        {
            let taken = taken_within(rate, clients, Duration::from_millis(500)).len();
            assert_eq!(taken, expected, "{rate} {clients}");
        }
    }

    #[test]
    fn a_burst_is_due_at_once() {
        let due = taken_within(2_000.0, 20, Duration::from_millis(35));
        let expected = [10, 20, 30].map(|millis| [Duration::from_millis(millis); 20]);
        assert_eq!(due, expected.concat());
    }

    #[test]
    fn a_backlog_counts_from_when_it_was_due() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, 1_000.0, 10);
        let late = start + Duration::from_secs(1);
        let first = schedule.take(late).unwrap();
        assert_eq!(late - first, Duration::from_millis(990));
    }
}
