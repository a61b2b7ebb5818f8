//! Where time comes from.
//!
//! Nothing below the binary asks the operating system for the time of day: it asks a [`Clock`] that it was
//! given, so that a test moves time by hand and a simulation owns it. A [`Timestamp`] is an instant counted in
//! microseconds, the finest resolution that the standards of the three doors can express (NGSI-LD 4.6.3
//! allows six fraction digits), and instants are compared as integers, never as text.
//!
//! Waiting is a different matter: deadlines use tokio's monotonic clock, which tests pause.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant: microseconds since 1970-01-01T00:00:00Z, negative before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// The instant this many microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The instant `wait` later; the last representable one if there is none.
    pub fn plus(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(micros_of(wait)))
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

fn micros_of(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// A source of the time of day.
pub trait Clock: Send + Sync {
    /// The instant at which the call is made, as this clock sees it.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The clock of the operating system. A call costs some twenty nanoseconds where the kernel maps its clock
/// into the process, a system call elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A system clock set before 1970 yields a negative instant, not a panic.
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp(micros_of(after)),
            Err(before) => Timestamp(micros_of(before.duration()).saturating_neg()),
        }
    }
}

/// A clock that moves only when a test says so.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.micros()))
    }

    /// Moves forward by `step` and answers the new instant.
    pub fn advance(&self, step: Duration) -> Timestamp {
        let step = micros_of(step);
        Timestamp(self.0.fetch_add(step, Ordering::SeqCst).saturating_add(step))
    }

    /// Jumps to `instant`, also backwards: clocks of real machines do.
    pub fn set(&self, instant: Timestamp) {
        self.0.store(instant.micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let clock = ManualClock::new(Timestamp::from_micros(5));
        assert_eq!(clock.now(), Timestamp::from_micros(5));
        assert_eq!(clock.advance(Duration::from_millis(2)), Timestamp::from_micros(2_005));
        clock.set(Timestamp::from_micros(-1));
        assert_eq!(clock.now().micros(), -1);
    }

    #[test]
    fn arithmetic_saturates() {
        let last = Timestamp::from_micros(i64::MAX);
        assert_eq!(last.plus(Duration::from_secs(1)), last);
        assert_eq!(Timestamp::EPOCH.since(last), Duration::ZERO);
        assert_eq!(Timestamp::EPOCH.plus(Duration::MAX), last);
    }

    #[test]
    fn the_system_clock_is_past_the_year_2020() {
        assert!(SystemClock.now() > Timestamp::from_micros(1_577_836_800_000_000));
    }
}
