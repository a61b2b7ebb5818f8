//! The command line of `trifid bench`, and what becomes of it.

use crate::affinity::{self, Cores};
use crate::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `trifid bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to measure.
    #[command(subcommand)]
    pub suite: Suite,
}

/// The suites.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Suite {
    /// List, retrieve, update and create, in multiples of the floor; then the file store against the memory
    /// store.
    Shapes(Run),
    /// Bytes resident per entity, the first answer of a cold start, and memory when idle.
    Memory(Run),
    /// Queries of the archive door in multiples of the floor and beside PostgreSQL; loading, streaming, jobs,
    /// overload.
    Tap(Run),
    /// The stream door over QUIC, TCP and the Kafka protocol, in multiples of the floor and beside NATS.
    Stream(Run),
    /// Serve fixed bytes (started by the other suites).
    #[command(hide = true)]
    Floor(FloorArgs),
    /// Answer frames (started by the suite `stream`).
    #[command(hide = true)]
    Echo(EchoArgs),
}

/// Options of every suite.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Run {
    /// A named subset of the cells in under a minute.
    #[arg(long, conflicts_with = "smoke")]
    pub quick: bool,
    /// Check that the measurement is correct; judge nothing.
    #[arg(long)]
    pub smoke: bool,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep servers on one core and the generator on another.
    #[arg(long)]
    pub pin: bool,
    /// Rounds of each cell.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub rounds: Option<u16>,
    /// Seconds of each window.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Where durable stores put their files (default: the system's temporary folder).
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Measure only these cells (shapes: list, retrieve, patch, create, stores; memory: start, entities; tap: load,
    /// memory, metadata, lookup, cone, filter, rows, whole, group, mix, jobs, overload; stream: ramp, batches, sizes,
    /// commit, memory, fanout, idle, cache, latency, recovery, limit).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
}

/// Options of the floor.
#[derive(Clone, Debug, clap::Args)]
pub struct FloorArgs {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// A file with the answer: status, headers, body.
    #[arg(long, value_name = "FILE")]
    pub answer: PathBuf,
    /// Write and flush each wave of bodies to this file before answering.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

/// Options of the floor of streams.
#[derive(Clone, Debug, clap::Args)]
pub struct EchoArgs {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// What carries the frames.
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// What is answered.
    #[arg(long, value_enum)]
    pub mode: EchoMode,
    /// Where the public half of the certificate is written, for the client to trust.
    #[arg(long, value_name = "FILE")]
    pub certificate: PathBuf,
    /// Write and flush each wave of frames to this file before answering.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

/// What carries frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// TCP with TLS 1.3.
    Tls,
    /// QUIC.
    Quic,
}

/// What the floor of streams answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EchoMode {
    /// Sixteen bytes for each frame.
    Ack,
    /// The frame itself.
    Echo,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// All cells, five rounds.
    Full,
    /// A subset in under a minute.
    Quick,
    /// Correctness alone.
    Smoke,
}

/// Options that can be obeyed as they are.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How much.
    pub(crate) mode: Mode,
    /// Rounds of a cell.
    pub(crate) rounds: usize,
    /// Length of a window.
    pub(crate) window: Duration,
    /// Driven before each window.
    pub(crate) warm_up: Duration,
    /// How many cores there are.
    pub(crate) core_count: usize,
    /// Cores of a pinned run.
    pub(crate) pinned: Option<Cores>,
    /// Where the suites make their temporary folder.
    pub(crate) directory: PathBuf,
    /// Cells to measure; all when empty.
    only: Vec<String>,
}

impl Options {
    /// Whether a cell is to be measured.
    pub(crate) fn wants(&self, cell: &str) -> bool {
        self.only.is_empty() || self.names(cell)
    }

    /// Whether a cell was asked for by its name.
    pub(crate) fn names(&self, cell: &str) -> bool {
        self.only.iter().any(|name| name == cell)
    }

    /// Whether figures are judged.
    pub(crate) fn judging(&self) -> bool {
        self.mode != Mode::Smoke
    }

    /// How many rounds may be tried until enough of them count.
    pub(crate) fn attempts(&self) -> usize {
        if self.judging() { self.rounds * 2 } else { self.rounds }
    }

    /// The core of a server.
    pub(crate) fn server_core(&self) -> Option<usize> {
        self.pinned.map(|cores| cores.server)
    }
}

/// Rounds and seconds of a window, by mode, where the command line does not say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    pub(crate) full: (usize, f64),
    pub(crate) quick: (usize, f64),
    pub(crate) smoke: (usize, f64),
}

impl Pacing {
    /// That of a suite with few cells.
    pub(crate) const FEW: Pacing = Pacing { full: (5, 3.0), quick: (3, 0.6), smoke: (1, 0.2) };
}

impl Run {
    /// Turns what was typed into what holds. `cells` are the names that `--only` may give.
    pub(crate) fn resolve(&self, cells: &[&str], pacing: Pacing) -> Result<Options, Error> {
        let (mode, (rounds, seconds)) = match (self.smoke, self.quick) {
            (true, _) => (Mode::Smoke, pacing.smoke),
            (false, true) => (Mode::Quick, pacing.quick),
            (false, false) => (Mode::Full, pacing.full),
        };
        let seconds = self.seconds.unwrap_or(seconds);
        if !(0.05..=3600.0).contains(&seconds) {
            return Err(Error::Options("--seconds must be between 0.05 and 3600".to_owned()));
        }
        if let Some(unknown) = self.only.iter().find(|name| !cells.contains(&name.as_str())) {
            return Err(Error::Options(format!("--only {unknown}: the cells are {}", cells.join(", "))));
        }
        let window = Duration::from_secs_f64(seconds);
        let allowed = affinity::allowed().map_err(Error::system("reading the allowed cores"))?;
        Ok(Options {
            mode,
            rounds: self.rounds.map_or(rounds, usize::from),
            window,
            warm_up: window / 4,
            core_count: allowed.len(),
            pinned: self.cores(&allowed)?,
            directory: self.dir.clone().unwrap_or_else(std::env::temp_dir),
            only: self.only.clone(),
        })
    }

    fn cores(&self, allowed: &[usize]) -> Result<Option<Cores>, Error> {
        if !self.pin {
            return Ok(None);
        }
        let cores = Cores::choose(allowed);
        cores.map(Some).ok_or_else(|| Error::Options("--pin needs two cores".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Bench {
        #[command(flatten)]
        args: Args,
    }

    fn run(line: &str) -> Result<Run, clap::Error> {
        let parsed = Bench::try_parse_from(format!("bench {line}").split(' '))?;
        match parsed.args.suite {
            Suite::Shapes(run) | Suite::Memory(run) | Suite::Tap(run) | Suite::Stream(run) => Ok(run),
            Suite::Floor(_) | Suite::Echo(_) => panic!("not a run"),
        }
    }

    #[test]
    fn modes_choose_rounds_and_windows() {
        let check = |line: &str, mode: Mode, rounds: usize, millis: u128| {
            let options = run(line).unwrap().resolve(&["list"], Pacing::FEW).unwrap();
            assert_eq!(
                (options.mode, options.rounds, options.window.as_millis()),
                (mode, rounds, millis),
                "{line}"
            );
        };
        check("shapes", Mode::Full, 5, 3000);
        check("shapes --quick", Mode::Quick, 3, 600);
        check("memory --smoke --rounds 2", Mode::Smoke, 2, 200);
        check("shapes --seconds 1.5 --rounds 9", Mode::Full, 9, 1500);
    }

    #[test]
    fn what_cannot_be_obeyed_is_refused() {
        assert!(run("shapes --quick --smoke").is_err());
        assert!(run("shapes --rounds 0").is_err());
        assert!(run("shapes --seconds 0").unwrap().resolve(&["list"], Pacing::FEW).is_err());
        assert!(run("shapes --only lists").unwrap().resolve(&["list"], Pacing::FEW).is_err());
        assert!(run("shapes --only list").unwrap().resolve(&["list"], Pacing::FEW).unwrap().wants("list"));
    }
}
