//! The report: one form for all suites, as JSON and as text.
//!
//! A **cell** is one server under one load; its figures are medians of rounds. A **ratio** compares one
//! figure of two cells, round by round. A **target** bounds one figure or ratio. The text is rendered from
//! the same structure, so both say the same.

mod text;

use crate::args::Mode;
use crate::environment::Environment;
use crate::error::Error;
use crate::figures::Spread;
use crate::verdict::{self, Target};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The name of the JSON form. It changes when a reader of the old one would misread the new one.
pub const SCHEMA: &str = "trifid-bench/1";

/// Everything that a suite found out.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Which suite.
    pub suite: &'static str,
    /// How much was measured.
    pub mode: Mode,
    /// Where it ran.
    pub environment: Environment,
    /// What was measured.
    pub cells: Vec<Cell>,
    /// What was compared.
    pub ratios: Vec<Ratio>,
    /// What was asked.
    pub targets: Vec<Target>,
    /// No target was missed.
    pub held: bool,
}

/// One server under one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// What is done.
    pub name: String,
    /// Who does it: `floor`, `broker`, or a store's name.
    pub side: String,
    /// `closed`, `paced`, or what else drives it.
    pub load: &'static str,
    /// Connections; none where nothing is driven.
    pub clients: usize,
    /// Requests offered a second, if paced; the median of rounds, each of which offers its two sides the
    /// same.
    pub offered_per_s: Option<f64>,
    /// Rounds that say nothing about the server (generator too busy, or the pace not kept).
    pub void_rounds: usize,
    /// Figures by name; the unit ends the name.
    pub figures: BTreeMap<&'static str, Spread>,
}

/// One figure of one cell as a multiple of the same figure of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// What is done.
    pub name: String,
    /// Under which load.
    pub load: &'static str,
    /// With how many connections.
    pub clients: usize,
    /// Which figure.
    pub figure: &'static str,
    /// Whose figure.
    pub of: String,
    /// A multiple of whose figure.
    pub to: String,
    /// The multiple.
    pub multiple: Option<Spread>,
}

impl Report {
    /// Puts a report together.
    pub(crate) fn new(
        suite: &'static str,
        mode: Mode,
        environment: Environment,
        findings: Findings,
    ) -> Report {
        let Findings { cells, ratios, targets } = findings;
        let held = verdict::all_held(&targets);
        Report { schema: SCHEMA, suite, mode, environment, cells, ratios, targets, held }
    }

    /// No target was missed: what the exit code says.
    pub fn held(&self) -> bool {
        self.held
    }

    /// Writes the JSON form.
    pub fn write_json(&self, path: &Path) -> Result<(), Error> {
        let mut text =
            serde_json::to_string_pretty(self).expect("a report has text keys and finite numbers only");
        text.push('\n');
        std::fs::write(path, text).map_err(Error::file(path))
    }
}

/// What a suite gathers while it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) cells: Vec<Cell>,
    pub(crate) ratios: Vec<Ratio>,
    pub(crate) targets: Vec<Target>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::verdict::{Bound, Target};

    pub(crate) fn sample() -> Report {
        let cell = |side: &str, rate: f64, cpu: f64| Cell {
            name: "list of 20".to_owned(),
            side: side.to_owned(),
            load: "paced",
            clients: 50,
            offered_per_s: Some(1234.5),
            void_rounds: usize::from(side == "floor"),
            figures: BTreeMap::from([("requests_per_s", Spread::once(rate)), ("cpu_us", Spread::once(cpu))]),
        };
        let multiple = Some(Spread { median: 3.25, min: 3.0, max: 3.5, rounds: 5 });
        let ratio = Ratio {
            name: "list of 20".to_owned(),
            load: "paced",
            clients: 50,
            figure: "cpu_us",
            of: "broker".to_owned(),
            to: "floor".to_owned(),
            multiple,
        };
        let findings = Findings {
            cells: vec![cell("floor", 1234.0, 4.0), cell("broker", 1233.0, 13.0)],
            ratios: vec![ratio],
            targets: vec![
                Target::judge("list of 20: CPU", Bound::AtMost(4.0), Some(2.5), multiple, true),
                Target::judge("stores", Bound::AtLeast(0.5), None, None, true),
            ],
        };
        let environment = Environment {
            cpu: "Some CPU".to_owned(),
            cores: 2,
            kernel: "6.1".to_owned(),
            commit: "abc+".to_owned(),
            version: "0.1.0",
            profile: "release",
            pinned: None,
            file_system: "ext4".to_owned(),
            started: 0,
        };
        Report::new("shapes", Mode::Full, environment, findings)
    }

    #[test]
    fn the_json_names_its_schema_and_carries_every_part() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        sample().write_json(&path).unwrap();
        let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(value["schema"], SCHEMA);
        assert_eq!(value["held"], false);
        assert_eq!(value["cells"][1]["figures"]["cpu_us"]["median"], 13.0);
        assert_eq!(value["ratios"][0]["multiple"]["max"], 3.5);
        assert_eq!(value["targets"][0]["verdict"], "held");
        assert_eq!(value["targets"][0]["bound"]["at_most"], 4.0);
        assert_eq!(value["targets"][1]["verdict"], "missed");
        assert_eq!(value["environment"]["kernel"], "6.1");
    }
}
