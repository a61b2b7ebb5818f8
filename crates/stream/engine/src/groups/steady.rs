//! A time for sessions and leases that does not jump.

use parking_lot::Mutex;

use super::limits::CLOCK_STEP_MS_MAX;

/// Milliseconds since the broker began, by the time of day, but never back, and never on by more than
/// [`CLOCK_STEP_MS_MAX`] between two looks. The tick looks at it often enough for it to keep up.
pub(super) struct Steady(Mutex<(i64, u64)>);

impl Steady {
    pub(super) fn new(now_ms: i64) -> Self {
        Steady(Mutex::new((now_ms, 0)))
    }

    pub(super) fn at(&self, now_ms: i64) -> u64 {
        let mut state = self.0.lock();
        let (seen, elapsed) = *state;
        let step = now_ms.saturating_sub(seen).clamp(0, CLOCK_STEP_MS_MAX);
        *state = (now_ms, elapsed + step.unsigned_abs());
        state.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_count_little() {
        let steady = Steady::new(1_000_000);
        assert_eq!(steady.at(1_000_100), 100);
        assert_eq!(steady.at(0), 100);
        assert_eq!(steady.at(50), 150);
        assert_eq!(steady.at(i64::MAX), 150 + CLOCK_STEP_MS_MAX.unsigned_abs());
    }
}
