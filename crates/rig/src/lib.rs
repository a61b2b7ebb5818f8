//! The rig: load, sampling, floors, verdicts and reports, from outside the doors only.
//!
//! A benchmark that links the server it measures is measuring itself. So the rig knows no door: it starts
//! the program it is given, finds its address, speaks to it over sockets and reads its CPU and memory from
//! `/proc`. Beside each broker it starts a **floor**, the least server that could have answered the same
//! bytes, and judges the broker in multiples of it: absolute figures mean nothing on another machine.
//!
//! ```text
//!  args -> suite (shapes, memory, tap) -> report -> text, JSON, exit code
//!             |
//!             +-- server      processes: the program, the floor, PostgreSQL; each on its core
//!             +-- generator   pre-encoded requests, one epoll, a response scanner, histograms
//!             +-- procfs      CPU in nanoseconds, resident bytes
//!             +-- verdict     targets held or missed
//! ```
//!
//! What keeps a figure honest: floor and broker take turns within one run; each figure is the median of
//! rounds, with their range; CPU is compared at the same offered rate; a round whose generator was over nine
//! tenths busy is void; every answer is checked, and the first wrong one ends the run.
//!
//! Linux only: `/proc`, epoll and timerfd.

mod affinity;
mod args;
mod bench;
mod broker;
mod cell;
mod chunked;
mod client;
mod environment;
mod error;
mod figures;
mod floor;
mod generator;
pub mod limits;
mod memory;
mod process;
mod procfs;
mod report;
mod request;
mod scanner;
mod seed;
mod serve;
mod server;
mod shapes;
mod stream;
mod tap;
mod verdict;

pub use affinity::Cores;
pub use args::{Args, EchoArgs, EchoMode, FloorArgs, Mode, Run, Suite, Transport};
pub use environment::Environment;
pub use error::Error;
pub use figures::Spread;
pub use floor::Fixed;
pub use report::{Cell, Ratio, Report, SCHEMA};
pub use scanner::Fault;
pub use verdict::{Bound, Target, Verdict};

use args::{Options, Pacing};
use bench::Bench;
use report::Findings;
use std::path::Path;

/// Runs a suite against `program`, the binary that understands `serve` and `bench floor`. `progress` is
/// told what is going on.
///
/// A suite gives a report; [`Report::held`] decides the exit code. The floor serves until its process ends
/// and gives none.
pub fn run(args: &Args, program: &Path, progress: &mut dyn FnMut(&str)) -> Result<Option<Report>, Error> {
    let mut measure = |run: &Run, suite: &Measured| measure(run, suite, program, progress).map(Some);
    match &args.suite {
        Suite::Shapes(run) => measure(run, &SHAPES),
        Suite::Memory(run) => measure(run, &MEMORY),
        Suite::Tap(run) => measure(run, &TAP),
        Suite::Stream(run) => measure(run, &STREAM),
        Suite::Floor(floor) => floor::run(floor).map(|()| None),
        Suite::Echo(echo) => stream::echo(echo).map(|()| None),
    }
}

/// A suite that gives a report.
struct Measured {
    name: &'static str,
    cells: &'static [&'static str],
    pacing: Pacing,
    run: fn(&mut Bench<'_>) -> Result<Findings, Error>,
}

const SHAPES: Measured =
    Measured { name: "shapes", cells: &shapes::CELLS, pacing: Pacing::FEW, run: shapes::run };
const MEMORY: Measured =
    Measured { name: "memory", cells: &memory::CELLS, pacing: Pacing::FEW, run: memory::run };
const STREAM: Measured =
    Measured { name: "stream", cells: &stream::CELLS, pacing: stream::PACING, run: stream::run };
const TAP: Measured = Measured { name: "tap", cells: &tap::CELLS, pacing: tap::PACING, run: tap::run };

fn measure(
    run: &Run,
    suite: &Measured,
    program: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, Error> {
    let options = run.resolve(suite.cells, suite.pacing)?;
    let directory = tempfile::Builder::new().prefix("trifid-bench-").tempdir_in(&options.directory);
    let directory = directory.map_err(Error::file(&options.directory))?;
    // Programs are started in it, so it must mean the same to them.
    let folder = directory.path().canonicalize().map_err(Error::file(directory.path()))?;
    let environment = Environment::observe(options.core_count, options.pinned, &folder);
    let mut bench = Bench { options: &options, program, directory: &folder, progress };
    let findings = on_its_core(&options, || (suite.run)(&mut bench))?;
    let report = Report::new(suite.name, options.mode, environment, findings);
    if let Some(path) = &run.json {
        report.write_json(path)?;
    }
    Ok(report)
}

/// The generator is the thread that runs the suite.
fn on_its_core<T>(options: &Options, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let core = options.pinned.map(|cores| cores.generator);
    affinity::on(core, work).map_err(Error::system("moving to a core"))?
}
