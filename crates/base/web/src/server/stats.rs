//! What a core counts.
//!
//! Each core has a block of its own, on cache lines of its own, that only its thread writes. A single writer
//! needs no atomic addition: it loads, adds and stores, which costs what an ordinary integer costs, and
//! readers on other cores see each number whole.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use http::StatusCode;

use crate::metrics::{Exposition, Histogram, Kind};

/// A number that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds `n`; called by the owning core alone.
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Adds one.
    pub(crate) fn bump(&self) {
        self.add(1);
    }

    /// Sets the value; called by the owning core alone.
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One core's counts.
#[derive(Debug, Default)]
pub(crate) struct CoreStats {
    /// Connections taken.
    pub(crate) accepted: Count,
    /// Connections turned away over the limit.
    pub(crate) turned_away: Count,
    /// Failures of the system to give a connection.
    pub(crate) accept_errors: Count,
    /// TLS handshakes that failed.
    pub(crate) tls_failures: Count,
    /// Connections that speak HTTP/2.
    pub(crate) http2: Count,
    /// Heads that did not arrive in time.
    pub(crate) slow_heads: Count,
    /// Connections closed for want of requests.
    pub(crate) idle_closed: Count,
    /// Connections cut because the client did not read or did not go.
    pub(crate) cut: Count,
    /// Heads that were too large (answered 431 or 414) or no HTTP (400).
    pub(crate) large_heads: Count,
    pub(crate) malformed: Count,
    /// Connections that ended with another error of the protocol or the socket.
    pub(crate) broken: Count,
    /// Answers by class of status, from 1xx.
    answers: [Count; 5],
    /// Bytes of request bodies.
    pub(crate) body_bytes: Count,
    /// Requests in flight.
    pub(crate) in_flight: Count,
    /// Refused for lack of a known token, for role or tenant, for size, for time, for load.
    pub(crate) unauthenticated: Count,
    pub(crate) forbidden: Count,
    pub(crate) too_large: Count,
    pub(crate) timed_out: Count,
    pub(crate) saturated: Count,
    /// Answers that a panic took.
    pub(crate) panics: Count,
}

impl CoreStats {
    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        self.answers[class].bump();
    }
}

/// Bounds of the sampled durations, in microseconds.
const BOUNDS_US: &[u64] = &[
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// The counts of all cores.
#[derive(Debug)]
pub(crate) struct Stats {
    cores: Box<[CachePadded<CoreStats>]>,
    durations: Histogram,
}

type Pick = fn(&CoreStats) -> &Count;

const CONNECTIONS: &[(&str, Pick)] = &[
    ("accepted", |core| &core.accepted),
    ("turned_away", |core| &core.turned_away),
    ("accept_error", |core| &core.accept_errors),
    ("tls_failure", |core| &core.tls_failures),
    ("http2", |core| &core.http2),
    ("slow_head", |core| &core.slow_heads),
    ("idle_closed", |core| &core.idle_closed),
    ("cut", |core| &core.cut),
    ("large_head", |core| &core.large_heads),
    ("malformed", |core| &core.malformed),
    ("broken", |core| &core.broken),
];

const CLASSES: &[(&str, Pick)] = &[
    ("1xx", |core| &core.answers[0]),
    ("2xx", |core| &core.answers[1]),
    ("3xx", |core| &core.answers[2]),
    ("4xx", |core| &core.answers[3]),
    ("5xx", |core| &core.answers[4]),
];

const REFUSALS: &[(&str, Pick)] = &[
    ("unauthenticated", |core| &core.unauthenticated),
    ("forbidden", |core| &core.forbidden),
    ("too_large", |core| &core.too_large),
    ("timed_out", |core| &core.timed_out),
    ("saturated", |core| &core.saturated),
    ("panicked", |core| &core.panics),
];

impl Stats {
    /// All at zero.
    pub(crate) fn new(cores: usize) -> Self {
        let cores: Box<[_]> = (0..cores).map(|_| CachePadded::<CoreStats>::default()).collect();
        Self { durations: Histogram::new(cores.len(), BOUNDS_US), cores }
    }

    /// The counts of one core.
    pub(crate) fn core(&self, index: usize) -> &CoreStats {
        &self.cores[index]
    }

    /// Counts the duration of a sampled request.
    pub(crate) fn duration(&self, core: usize, duration: Duration) {
        self.durations.record(core, u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    fn sum(&self, pick: Pick) -> u64 {
        self.cores.iter().map(|core| pick(core).get()).sum()
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.sum(|core| &core.in_flight)
    }

    /// The counters section of the health document.
    pub(crate) fn section(&self) -> serde_json::Value {
        let group = |names: &[(&str, Pick)]| -> serde_json::Value {
            names
                .iter()
                .map(|(name, pick)| ((*name).to_owned(), serde_json::Value::from(self.sum(*pick))))
                .collect()
        };
        serde_json::json!({
            "connections": group(CONNECTIONS),
            "answers": group(CLASSES),
            "refusals": group(REFUSALS),
            "in_flight": self.in_flight(),
            "body_bytes": self.sum(|core| &core.body_bytes),
        })
    }

    /// The shell's own metrics.
    pub(crate) fn expose(&self, out: &mut Exposition) {
        let mut group = |name, help: &str, label, names: &[(&str, Pick)]| {
            let mut family = out.family(Kind::Counter, name, help);
            for (value, pick) in names {
                family.sample(&[(label, value)], self.sum(*pick));
            }
        };
        group("trifid_http_connections_total", "Connections by what became of them.", "event", CONNECTIONS);
        group("trifid_http_answers_total", "Answers by class of status.", "class", CLASSES);
        group("trifid_http_refusals_total", "Requests that the shell refused.", "reason", REFUSALS);
        out.counter("trifid_http_body_bytes_total", "Bytes of request bodies.", self.sum(|c| &c.body_bytes));
        out.gauge("trifid_http_in_flight", "Requests in flight.", self.in_flight());
        out.histogram(
            "trifid_http_sampled_duration_seconds",
            "Time from head to answer of one request in sixteen.",
            &self.durations,
            1_000_000,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_folded_when_read() {
        let stats = Stats::new(2);
        stats.core(0).answered(StatusCode::OK);
        stats.core(1).answered(StatusCode::NO_CONTENT);
        stats.core(1).answered(StatusCode::NOT_FOUND);
        stats.core(0).in_flight.set(3);
        stats.duration(1, Duration::from_micros(70));
        let section = stats.section();
        assert_eq!((&section["answers"]["2xx"], &section["answers"]["4xx"]), (&2.into(), &1.into()));
        assert_eq!(section["in_flight"], 3);
        let mut out = Exposition::default();
        stats.expose(&mut out);
        let text = out.into_text();
        assert!(text.contains("trifid_http_answers_total{class=\"2xx\"} 2\n"), "{text}");
        assert!(text.contains("trifid_http_sampled_duration_seconds_bucket{le=\"0.0001\"} 1\n"), "{text}");
    }
}
