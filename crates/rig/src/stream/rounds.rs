//! Rounds of streams: what one window showed of messages and bytes, and what is reported of several.
//!
//! A round whose generator was busier than `limits::GENERATOR_BUSY_MAX` is void, as in the other suites: how fast the
//! server is, and how late it answers, was not measured. What the server's CPU did was, to the nanosecond, whoever was
//! the bottleneck; so figures of CPU and of flushes count in every round that kept its pace. Where all rounds are void
//! their rates are told as what the server did at least.

use std::collections::BTreeMap;

use crate::cell::Load;
use crate::figures::{Latency, Spread};
use crate::generator::Window;
use crate::limits;
use crate::report::{Cell, Ratio};

/// One window, counted as streams count.
pub(super) struct Round {
    pub(super) window: Window,
    /// Messages that were carried.
    pub(super) messages: u64,
    /// Bytes of them.
    pub(super) bytes: u64,
    /// From publish, or when that was due, to delivery.
    pub(super) delivery: Latency,
    /// Flushes of each acknowledged message, where the server tells.
    pub(super) flushes: Option<f64>,
}

/// A figure of a round.
pub(super) type Figure = (&'static str, fn(&Round) -> f64);

/// Megabytes a second.
pub(super) const RATE: Figure = ("messages_per_s", Round::rate);
/// The server's CPU for a megabyte.
pub(super) const CPU: Figure = ("cpu_ms_per_mb", Round::cpu_ms_per_mb);

/// Of rounds that count.
const RATES: [Figure; 7] = [
    RATE,
    ("mb_per_s", |round| round.bytes as f64 / 1e6 / round.seconds()),
    ("p50_us", |round| round.window.latency.quantile_us(0.5)),
    ("p99_us", |round| round.window.latency.quantile_us(0.99)),
    ("delivery_p50_us", |round| round.delivery.quantile_us(0.5)),
    ("delivery_p99_us", |round| round.delivery.quantile_us(0.99)),
    ("server_busy", |round| round.window.server_busy()),
];

/// Of rounds whose generator was the bottleneck.
const BOUNDS: [Figure; 2] = [
    ("mb_per_s_at_least", |round| round.bytes as f64 / 1e6 / round.seconds()),
    ("messages_per_s_at_least", Round::rate),
];

/// Of all rounds that kept their pace.
const COSTS: [Figure; 4] = [
    CPU,
    ("cpu_us_per_message", |round| round.window.server_cpu.as_secs_f64() * 1e6 / round.messages as f64),
    ("flushes_per_message", |round| round.flushes.unwrap_or(f64::NAN)),
    ("generator_busy", |round| round.window.generator_busy()),
];

impl Round {
    fn seconds(&self) -> f64 {
        self.window.wall.as_secs_f64()
    }

    fn rate(&self) -> f64 {
        self.messages as f64 / self.seconds()
    }

    fn cpu_ms_per_mb(&self) -> f64 {
        self.window.server_cpu.as_secs_f64() * 1e9 / self.bytes as f64
    }

    /// The generator left the server enough to do, or the load was offered as it should be.
    fn counts(&self) -> bool {
        !self.window.void()
    }

    /// Something was done, and a paced load kept its pace.
    fn is_whole(&self) -> bool {
        let is_behind = self.window.void() && self.window.generator_busy() <= limits::GENERATOR_BUSY_MAX;
        self.messages > 0 && !is_behind
    }
}

/// Summarises the rounds of one side.
pub(super) fn cell(load: Load<'_>, side: &str, rounds: &[Round]) -> Cell {
    let counting: Vec<&Round> = rounds.iter().filter(|round| round.counts()).collect();
    let whole: Vec<&Round> = rounds.iter().filter(|round| round.is_whole()).collect();
    let mut figures = BTreeMap::new();
    figures.extend(spreads(&RATES, &counting));
    figures.extend(spreads(&COSTS, &whole));
    if counting.is_empty() {
        figures.extend(spreads(&BOUNDS, &whole));
    }
    figures.extend(tail("p99.9_us", &counting, |round| &round.window.latency));
    figures.extend(tail("delivery_p99.9_us", &counting, |round| &round.delivery));
    if counting.iter().any(|round| round.window.refused.count() > 0) {
        figures.extend(spreads(&[("refused", |round| round.window.refused.count() as f64)], &counting));
    }
    Cell {
        name: load.name.to_owned(),
        side: side.to_owned(),
        load: load.pace,
        clients: load.clients,
        offered_per_s: None,
        void_rounds: rounds.len() - counting.len(),
        figures,
    }
}

fn spreads<'a>(
    figures: &'a [Figure],
    rounds: &'a [&'a Round],
) -> impl Iterator<Item = (&'static str, Spread)> + 'a {
    figures.iter().filter_map(|(name, of)| Some((*name, Spread::of(rounds.iter().map(|round| of(round)))?)))
}

/// The 99.9th percentile of all rounds together: a tail needs more samples than one round has.
fn tail(name: &'static str, rounds: &[&Round], of: fn(&Round) -> &Latency) -> Option<(&'static str, Spread)> {
    let mut all = Latency::new();
    rounds.iter().for_each(|round| all.fold(of(round)));
    Spread::of([all.quantile_us(0.999)]).map(|worst| (name, worst))
}

/// Compares a figure of two sides, round by round: costs where both are whole; rates where the other's counts, because
/// a void round of one's own only says less than is true.
pub(super) fn ratio(
    load: Load<'_>,
    figure: Figure,
    (of, mine): (&str, &[Round]),
    (to, theirs): (&str, &[Round]),
) -> Ratio {
    let (name, value) = figure;
    let is_cost = COSTS.iter().any(|(known, _)| *known == name);
    let is_good = |theirs: &Round| if is_cost { theirs.is_whole() } else { theirs.counts() };
    let pairs = mine.iter().zip(theirs).filter(|(mine, theirs)| mine.is_whole() && is_good(theirs));
    Ratio {
        name: load.name.to_owned(),
        load: load.pace,
        clients: load.clients,
        figure: name,
        of: of.to_owned(),
        to: to.to_owned(),
        multiple: Spread::of(pairs.map(|(mine, theirs)| value(mine) / value(theirs))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LOAD: Load<'static> = Load { name: "x", pace: "closed", clients: 1 };

    fn round(messages: u64, server_ms: u64, generator_ms: u64) -> Round {
        let mut latency = Latency::new();
        (0..messages).for_each(|_| latency.record(Duration::from_micros(100)));
        let window = Window {
            wall: Duration::from_secs(1),
            latency,
            server_cpu: Duration::from_millis(server_ms),
            generator_cpu: Duration::from_millis(generator_ms),
            clients: 1,
            ..Window::nothing()
        };
        let bytes = messages * 1_000_000;
        Round { window, messages, bytes, delivery: Latency::new(), flushes: None }
    }

    #[test]
    fn costs_count_where_rates_do_not() {
        let cell = cell(LOAD, "a", &[round(10, 20, 950), round(20, 20, 500), round(40, 20, 950)]);
        assert_eq!((cell.void_rounds, cell.figures["messages_per_s"].median), (2, 20.0));
        assert_eq!((cell.figures["cpu_ms_per_mb"].rounds, cell.figures["cpu_ms_per_mb"].median), (3, 1.0));
        assert!(!cell.figures.contains_key("mb_per_s_at_least"));
        assert!(!cell.figures.contains_key("flushes_per_message"));
    }

    #[test]
    fn void_rounds_tell_what_was_done_at_least() {
        let cell = cell(LOAD, "a", &[round(10, 20, 950)]);
        assert_eq!(cell.figures["mb_per_s_at_least"].median, 10.0);
        assert!(!cell.figures.contains_key("mb_per_s"));
    }

    #[test]
    fn ratios_compare_neighbours() {
        let (mine, theirs) = ([round(10, 30, 1), round(10, 20, 950)], [round(10, 10, 950), round(20, 20, 1)]);
        let of = |figure| ratio(LOAD, figure, ("a", &mine), ("b", &theirs)).multiple.unwrap();
        assert_eq!((of(CPU).median, of(CPU).rounds), (2.5, 2));
        assert_eq!((of(RATE).median, of(RATE).rounds), (0.5, 1));
    }

    #[test]
    fn a_load_that_fell_behind_costs_nothing_that_could_be_said() {
        let mut behind = round(10, 30, 1);
        behind.window.offered = Some(1000.0);
        assert!(!behind.is_whole() && !behind.counts());
    }
}
