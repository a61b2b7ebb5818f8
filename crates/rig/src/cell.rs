//! Rounds of several sides under one load, and what is reported of them.

use crate::figures::{Latency, Spread};
use crate::generator::Window;
use crate::report::{Cell, Findings, Ratio};
use std::collections::BTreeMap;

/// A figure of a window.
pub(crate) type Figure = (&'static str, fn(&Window) -> f64);

/// What is done, how it is driven, by how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load<'a> {
    pub(crate) name: &'a str,
    pub(crate) pace: &'static str,
    pub(crate) clients: usize,
}

/// What every window tells.
const FIGURES: [Figure; 7] = [
    ("requests_per_s", Window::rate),
    ("p50_us", |window| window.latency.quantile_us(0.5)),
    ("p99_us", |window| window.latency.quantile_us(0.99)),
    ("cpu_us", Window::cpu_us),
    ("server_busy", Window::server_busy),
    ("generator_busy", Window::generator_busy),
    ("generator_us", Window::generator_us),
];

/// What a window with long answers tells besides.
pub(crate) const OF_LONG_ANSWERS: [Figure; 4] = [
    ("first_byte_p50_us", |window| window.first_byte.quantile_us(0.5)),
    ("first_byte_p99_us", |window| window.first_byte.quantile_us(0.99)),
    ("mb_per_s", Window::megabytes_per_s),
    ("mb_per_core_s", Window::megabytes_per_core_s),
];

/// Which of them are given as multiples of the floor.
pub(crate) const COMPARED: [&str; 4] = ["requests_per_s", "p50_us", "p99_us", "cpu_us"];

/// Rounds of a floor and a broker, neighbours in time.
#[derive(Default)]
pub(crate) struct Series {
    rounds: Vec<(Window, Window)>,
}

impl Series {
    /// Adds a round.
    pub(crate) fn push(&mut self, floor: Window, broker: Window) {
        self.rounds.push((floor, broker));
    }

    /// Rounds in which both sides count.
    pub(crate) fn valid(&self) -> usize {
        self.rounds.iter().filter(|(floor, broker)| !floor.void() && !broker.void()).count()
    }

    /// Adds both cells and their ratios to the findings; returns the CPU of the broker in multiples of the
    /// floor's.
    pub(crate) fn report(
        &self,
        name: &str,
        load: &'static str,
        clients: usize,
        findings: &mut Findings,
    ) -> Option<Spread> {
        let floors: Vec<&Window> = self.rounds.iter().map(|(floor, _)| floor).collect();
        let brokers: Vec<&Window> = self.rounds.iter().map(|(_, broker)| broker).collect();
        let load = Load { name, pace: load, clients };
        findings.cells.push(cell(load, "floor", &floors));
        findings.cells.push(cell(load, "broker", &brokers));
        let ratios = COMPARED.map(|figure| ratio(load, figure, ("broker", &brokers), ("floor", &floors)));
        let cpu = ratios.iter().find(|ratio| ratio.figure == "cpu_us").and_then(|ratio| ratio.multiple);
        findings.ratios.extend(ratios);
        cpu
    }
}

/// Summarises the rounds of one side that are not void.
pub(crate) fn cell(load: Load<'_>, side: &str, windows: &[&Window]) -> Cell {
    cell_with(load, side, windows, &[])
}

/// The same with further figures.
pub(crate) fn cell_with(load: Load<'_>, side: &str, windows: &[&Window], more: &[Figure]) -> Cell {
    let valid: Vec<&Window> = windows.iter().copied().filter(|window| !window.void()).collect();
    let figures = FIGURES.iter().chain(more).filter_map(|(figure, of)| {
        Spread::of(valid.iter().map(|window| of(window))).map(|spread| (*figure, spread))
    });
    let mut figures: BTreeMap<&'static str, Spread> = figures.collect();
    if let Some(worst) = folded(&valid).and_then(|all| Spread::of([all.quantile_us(0.999)])) {
        figures.insert("p99.9_us", worst);
    }
    Cell {
        name: load.name.to_owned(),
        side: side.to_owned(),
        load: load.pace,
        clients: load.clients,
        offered_per_s: Spread::of(valid.iter().filter_map(|window| window.offered)).map(|rate| rate.median),
        void_rounds: windows.len() - valid.len(),
        figures,
    }
}

/// The latencies of all rounds together: a tail needs more samples than one round has.
fn folded(windows: &[&Window]) -> Option<Latency> {
    let (first, rest) = windows.split_first()?;
    let mut all = first.latency.clone();
    rest.iter().for_each(|window| all.fold(&window.latency));
    Some(all)
}

/// Compares one figure of two sides, round by round, where both rounds count.
pub(crate) fn ratio(
    load: Load<'_>,
    figure: &'static str,
    (of, mine): (&str, &[&Window]),
    (to, theirs): (&str, &[&Window]),
) -> Ratio {
    let value = FIGURES.iter().find(|(known, _)| *known == figure).map(|(_, value)| value);
    let value = value.expect("a figure of the table above");
    let pairs = mine.iter().zip(theirs).filter(|(mine, theirs)| !mine.void() && !theirs.void());
    let multiple = Spread::of(pairs.map(|(mine, theirs)| value(mine) / value(theirs)));
    Ratio {
        name: load.name.to_owned(),
        load: load.pace,
        clients: load.clients,
        figure,
        of: of.to_owned(),
        to: to.to_owned(),
        multiple,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LOAD: Load<'static> = Load { name: "x", pace: "closed", clients: 50 };

    fn window(answers: u64, server_ms: u64, generator_ms: u64) -> Window {
        let mut latency = Latency::new();
        (0..answers).for_each(|_| latency.record(Duration::from_micros(100)));
        Window {
            wall: Duration::from_secs(1),
            latency,
            server_cpu: Duration::from_millis(server_ms),
            generator_cpu: Duration::from_millis(generator_ms),
            offered: None,
            clients: 50,
            ..Window::nothing()
        }
    }

    #[test]
    fn figures_are_medians_of_rounds_that_count() {
        let windows = [window(1000, 10, 500), window(3000, 60, 500), window(9000, 900, 950)];
        let cell = cell(LOAD, "broker", &windows.iter().collect::<Vec<_>>());
        assert_eq!(cell.void_rounds, 1);
        assert_eq!(
            cell.figures["requests_per_s"],
            Spread { median: 2000.0, min: 1000.0, max: 3000.0, rounds: 2 }
        );
        assert_eq!(cell.figures["cpu_us"].median, 15.0);
        assert_eq!(cell.figures["generator_busy"].median, 0.5);
    }

    #[test]
    fn ratios_are_taken_round_by_round_and_void_rounds_are_left_out() {
        let mut series = Series::default();
        series.push(window(1000, 10, 1), window(1000, 30, 1));
        series.push(window(1000, 10, 1), window(1000, 20, 1));
        series.push(window(1000, 10, 990), window(1000, 90, 1));
        assert_eq!(series.valid(), 2);
        let mut findings = Findings::default();
        let cpu = series.report("x", "paced", 50, &mut findings).unwrap();
        assert_eq!((cpu.median, cpu.rounds), (2.5, 2));
        assert_eq!((findings.cells.len(), findings.ratios.len()), (2, 4));
    }

    #[test]
    fn long_answers_tell_more() {
        let window = Window { body_bytes: 4_000_000, ..window(2, 8, 1) };
        let cell = cell_with(LOAD, "archive", &[&window], &OF_LONG_ANSWERS);
        assert_eq!(cell.figures["mb_per_s"].median, 4.0);
        assert_eq!(cell.figures["mb_per_core_s"].median, 500.0);
    }

    #[test]
    fn a_side_whose_rounds_are_all_void_has_no_figures() {
        let windows = [window(1, 1, 999)];
        let cell = cell(LOAD, "floor", &windows.iter().collect::<Vec<_>>());
        assert_eq!((cell.void_rounds, cell.figures.len()), (1, 0));
    }

    #[test]
    fn a_pace_that_was_not_kept_is_void() {
        let behind = Window { offered: Some(1100.0), ..window(1000, 1, 1) };
        assert!(behind.void());
        assert!(!Window { offered: Some(1060.0), ..behind }.void());
    }
}
