//! Numbers: latency histograms that fold, and the median of rounds with its spread.
//!
//! A round is one sample. Several rounds give a median and the range between the lowest and the highest,
//! which says more about a shared machine than a standard deviation of five. Ratios are taken round by
//! round between neighbours in time, then summarised: drift of the machine cancels.

use crate::limits;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Latencies of one window, in nanoseconds with three significant digits.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    histogram: Histogram<u64>,
}

impl Latency {
    /// An empty histogram up to [`limits::LATENCY_NS_MAX`].
    pub(crate) fn new() -> Latency {
        let histogram = Histogram::new_with_bounds(1, limits::LATENCY_NS_MAX, 3);
        Latency { histogram: histogram.expect("constant bounds, high is over twice low, three digits") }
    }

    /// Counts one latency. One above the range counts as the highest.
    pub(crate) fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(nanoseconds);
    }

    /// Adds the counts of another window.
    pub(crate) fn fold(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("both have the same constant bounds");
    }

    /// How many were counted.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency in microseconds under which this share of all lies; no number where there is none.
    pub(crate) fn quantile_us(&self, share: f64) -> f64 {
        if self.histogram.is_empty() {
            return f64::NAN;
        }
        self.histogram.value_at_quantile(share) as f64 / 1000.0
    }
}

/// The median of several rounds and the range that they cover.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The middle value, or the mean of the two in the middle.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
    /// How many rounds it summarises.
    pub rounds: usize,
}

impl Spread {
    /// Summarises values; values that are not finite are left out. Nothing when none remains.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let rounds = values.len();
        let (min, max) = (*values.first()?, *values.last()?);
        let median = f64::midpoint(values[(rounds - 1) / 2], values[rounds / 2]);
        Some(Spread { median, min, max, rounds })
    }

    /// A figure that was measured once.
    pub(crate) fn once(value: f64) -> Spread {
        Spread { median: value, min: value, max: value, rounds: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(values: &[f64], expected: Option<(f64, f64, f64)>) {
        let spread = Spread::of(values.iter().copied());
        assert_eq!(spread.map(|spread| (spread.median, spread.min, spread.max)), expected, "{values:?}");
    }

    #[test]
    fn medians() {
        check(&[], None);
        check(&[f64::NAN, f64::INFINITY], None);
        check(&[3.0], Some((3.0, 3.0, 3.0)));
        check(&[9.0, 1.0, 5.0], Some((5.0, 1.0, 9.0)));
        check(&[4.0, 1.0, 2.0, 100.0], Some((3.0, 1.0, 100.0)));
        check(&[2.0, f64::NAN, 1.0], Some((1.5, 1.0, 2.0)));
    }

    #[test]
    fn nothing_has_no_latency() {
        assert!(Latency::new().quantile_us(0.5).is_nan());
    }

    #[test]
    fn a_latency_above_the_range_counts_as_the_highest() {
        let mut latency = Latency::new();
        latency.record(Duration::from_secs(3600));
        assert_eq!(latency.count(), 1);
        assert!(latency.quantile_us(1.0) >= limits::LATENCY_NS_MAX as f64 / 1000.0);
    }

    proptest! {
        #[test]
        fn folding_equals_recording_all_in_one(
            left in prop::collection::vec(1u64..10_000_000_000, 0..50),
            right in prop::collection::vec(1u64..10_000_000_000, 1..50),
        ) {
            let record = |values: &[u64]| {
                let mut latency = Latency::new();
                values.iter().for_each(|ns| latency.record(Duration::from_nanos(*ns)));
                latency
            };
            let mut folded = record(&left);
            folded.fold(&record(&right));
            let whole = record(&[left, right].concat());
            prop_assert_eq!(folded.count(), whole.count());
            for share in [0.0, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(folded.quantile_us(share), whole.quantile_us(share));
            }
        }

        #[test]
        fn quantiles_are_within_a_thousandth(values in prop::collection::vec(1u64..60_000_000_000, 1..60)) {
            let mut latency = Latency::new();
            values.iter().for_each(|ns| latency.record(Duration::from_nanos(*ns)));
            let highest = *values.iter().max().unwrap() as f64 / 1000.0;
            let measured = latency.quantile_us(1.0);
            prop_assert!((measured - highest).abs() <= highest / 1000.0 + 0.001, "{measured} {highest}");
        }
    }
}
