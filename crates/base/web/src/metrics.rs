//! Counters that cost nothing to count, and the text that Prometheus reads.
//!
//! There is no registry to look names up in. A part of the program owns its [`Counter`]s and [`Histogram`]s as
//! plain fields, bumps the cell of the core that it runs on, and writes them into an [`Exposition`] when
//! somebody asks (`/q/metrics`). Cells of different cores lie on different cache lines, and the sum is taken
//! by the reader.
//!
//! Label values come from the program, never from a request: what a client names must not become a series.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// A number that only grows, with a cell per core.
#[derive(Debug)]
pub struct Counter(Box<[CachePadded<AtomicU64>]>);

impl Counter {
    /// A counter at zero for so many cores.
    pub fn new(cores: usize) -> Self {
        Self((0..cores.max(1)).map(|_| CachePadded::default()).collect())
    }

    /// Adds `n` on behalf of `core`; any thread may, and no addition is lost.
    pub fn add(&self, core: usize, n: u64) {
        self.0[core % self.0.len()].fetch_add(n, Ordering::Relaxed);
    }

    /// The sum over the cores.
    pub fn value(&self) -> u64 {
        self.0.iter().map(|cell| cell.load(Ordering::Relaxed)).sum()
    }
}

/// A distribution over fixed bounds, with cells per core.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    cores: Box<[CachePadded<Buckets>]>,
}

#[derive(Debug)]
struct Buckets {
    /// One more than there are bounds: the last holds what exceeds them all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// An empty histogram; `bounds` are inclusive upper bounds, ascending.
    pub fn new(cores: usize, bounds: &'static [u64]) -> Self {
        let buckets = || Buckets {
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        };
        Self { bounds, cores: (0..cores.max(1)).map(|_| CachePadded::new(buckets())).collect() }
    }

    /// Counts one value on behalf of `core`.
    pub fn record(&self, core: usize, value: u64) {
        let buckets = &self.cores[core % self.cores.len()];
        let at = self.bounds.partition_point(|bound| *bound < value);
        buckets.counts[at].fetch_add(1, Ordering::Relaxed);
        buckets.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        (0..=self.bounds.len()).map(|at| self.bucket(at)).sum()
    }

    fn bucket(&self, at: usize) -> u64 {
        self.cores.iter().map(|core| core.counts[at].load(Ordering::Relaxed)).sum()
    }

    fn sum(&self) -> u64 {
        self.cores.iter().map(|core| core.sum.load(Ordering::Relaxed)).sum()
    }
}

/// What a family of series measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows; its name ends in `_total`.
    Counter,
    /// A number that goes up and down.
    Gauge,
}

/// A number that a sample can have.
pub trait Number: fmt::Display + Copy {}
impl Number for u64 {}
impl Number for i64 {}
impl Number for f64 {}
impl Number for usize {}
impl Number for u32 {}

/// The labels of a series: names and values of the program's own.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// The text exposition format of Prometheus, version 0.0.4, in the making.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a family; its samples follow.
    pub fn family(&mut self, kind: Kind, name: &'static str, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.head(name, help, kind);
        Family { text: &mut self.0, name }
    }

    /// A counter without labels.
    pub fn counter(&mut self, name: &'static str, help: &str, value: impl Number) {
        self.family(Kind::Counter, name, help).sample(&[], value);
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &'static str, help: &str, value: impl Number) {
        self.family(Kind::Gauge, name, help).sample(&[], value);
    }

    /// A histogram whose values were recorded in units of which `per_unit` make one of the exposed unit, as
    /// a million microseconds make a second.
    pub fn histogram(&mut self, name: &'static str, help: &str, histogram: &Histogram, per_unit: u32) {
        self.head(name, help, "histogram");
        let mut below = 0;
        for (at, bound) in histogram.bounds.iter().enumerate() {
            below += histogram.bucket(at);
            self.line(format_args!("{name}_bucket{{le=\"{}\"}} {below}", scaled(*bound, per_unit)));
        }
        below += histogram.bucket(histogram.bounds.len());
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {below}"));
        self.line(format_args!("{name}_sum {}", scaled(histogram.sum(), per_unit)));
        self.line(format_args!("{name}_count {below}"));
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.line(format_args!("# HELP {name} {}", help.replace('\\', "\\\\").replace('\n', "\\n")));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

/// Exact enough: a histogram's bound or sum in its exposed unit.
#[allow(clippy::cast_precision_loss)] // a sum beyond 2^53 microseconds may be rounded
fn scaled(value: u64, per_unit: u32) -> f64 {
    value as f64 / f64::from(per_unit)
}

/// A family whose samples are being written.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Writes one series.
    #[allow(clippy::needless_pass_by_value)] // a number
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Number) -> &mut Self {
        self.text.push_str(self.name);
        if !labels.is_empty() {
            self.labels(labels);
        }
        let _ = writeln!(self.text, " {value}");
        self
    }

    fn labels(&mut self, labels: Labels<'_>) {
        for (at, (name, value)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{open}{name}=\"{value}\"");
        }
        self.text.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up() {
        let counter = Counter::new(2);
        counter.add(0, 3);
        counter.add(1, 4);
        counter.add(5, 1);
        assert_eq!(counter.value(), 8);
    }

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let mut out = Exposition::default();
        out.family(Kind::Counter, "trifid_x_total", "Things.\nMany.")
            .sample(&[("op", "create"), ("how", "a\"b")], 3u64)
            .sample(&[], 4u64);
        out.gauge("trifid_y", "A level.", 1.5);
        let expected = "# HELP trifid_x_total Things.\\nMany.\n# TYPE trifid_x_total counter\n\
            trifid_x_total{op=\"create\",how=\"a\\\"b\"} 3\ntrifid_x_total 4\n\
            # HELP trifid_y A level.\n# TYPE trifid_y gauge\ntrifid_y 1.5\n";
        assert_eq!(out.into_text(), expected);
    }

    #[test]
    fn buckets_are_cumulative_and_inclusive() {
        let histogram = Histogram::new(2, &[10, 100]);
        for (core, value) in [(0, 1), (0, 10), (1, 11), (1, 1000)] {
            histogram.record(core, value);
        }
        assert_eq!(histogram.count(), 4);
        let mut out = Exposition::default();
        out.histogram("h", "H.", &histogram, 10);
        let text = out.into_text();
        for line in [
            "h_bucket{le=\"1\"} 2",
            "h_bucket{le=\"10\"} 3",
            "h_bucket{le=\"+Inf\"} 4",
            "h_sum 102.2",
            "h_count 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
