//! The suite `tap`: what the archive door costs, on a catalogue of the size of Hipparcos.
//!
//! The catalogue comes from a seed and is loaded by the program's own hands. Every answer is compared with what
//! looking at every star gives, before anything is counted. Beside the archive stand a bare HTTP server that
//! answers the same bytes, and PostgreSQL with prepared statements over the same table.
//!
//! ```text
//! load      seconds from CSV               classes   queries, in rounds (see `classes`)
//! memory    a result to a slow reader      jobs      until seen COMPLETED
//!                                          overload  ten times too many clients
//! ```
//!
//! A part that fails is a missed target with the reason in its name, and the next one is measured all the same; in
//! a smoke run it ends the run.

mod answer;
mod archive;
mod classes;
mod healpix;
mod jobs;
mod load;
mod memory;
mod overload;
mod postgres;
mod question;
mod stars;

use crate::args::{Mode, Pacing};
use crate::bench::Bench;
use crate::error::Error;
use crate::report::Findings;
use crate::server::Server;
use archive::World;
use classes::Class;
use postgres::Postgres;

const LOAD: &str = "load";
const MEMORY: &str = "memory";
const JOBS: &str = "jobs";
const OVERLOAD: &str = "overload";

/// The cells by the names that `--only` takes.
pub(crate) const CELLS: [&str; 12] =
    [LOAD, MEMORY, "metadata", "lookup", "cone", "filter", "rows", "whole", "group", "mix", JOBS, OVERLOAD];

/// Those of a quick run.
const QUICK: [&str; 8] = [LOAD, MEMORY, "lookup", "cone", "rows", "whole", JOBS, OVERLOAD];

/// Rounds and seconds of a window: there are many cells, and each is measured in several ways.
pub(crate) const PACING: Pacing = Pacing { full: (5, 1.5), quick: (2, 0.3), smoke: (1, 0.05) };

/// Rows of the table.
fn count(mode: Mode) -> usize {
    if mode == Mode::Smoke { 600 } else { stars::HIPPARCOS }
}

fn wants(bench: &Bench<'_>, cell: &str) -> bool {
    let of_mode = bench.options.mode != Mode::Quick || QUICK.contains(&cell) || bench.options.names(cell);
    of_mode && bench.options.wants(cell)
}

/// Runs the suite.
pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let world = World::prepare(bench.directory, count(bench.options.mode))?;
    load::measure(bench, &world, &mut findings)?;
    if wants(bench, MEMORY) {
        let done = memory::measure(bench, &world, &mut findings);
        bench.settled(MEMORY, done, &mut findings)?;
    }
    let classes: Vec<Class> = Class::ALL.into_iter().filter(|class| wants(bench, class.cell())).collect();
    if !classes.is_empty() || wants(bench, JOBS) {
        let done = on_one_server(bench, &world, &classes, &mut findings);
        bench.settled("the archive", done, &mut findings)?;
    }
    if wants(bench, OVERLOAD) {
        let done = overload::measure(bench, &world, &mut findings);
        bench.settled(OVERLOAD, done, &mut findings)?;
    }
    Ok(findings)
}

/// All classes and the jobs.
fn on_one_server(
    bench: &mut Bench<'_>,
    world: &World,
    classes: &[Class],
    findings: &mut Findings,
) -> Result<(), Error> {
    let postgres = peer(bench, world, classes, findings)?;
    let mut server = world.serve(bench, &[])?;
    for class in classes {
        let (same, done) = classes::measure(bench, world, server, postgres.as_ref(), *class, findings);
        // After a failure nobody knows what the server is busy with.
        server = if done.is_ok() { same } else { anew(bench, world, same)? };
        bench.settled(&class.name(), done, findings)?;
    }
    if wants(bench, JOBS) {
        let done = jobs::measure(bench, world, &server, findings);
        bench.settled(JOBS, done, findings)?;
    }
    server.stop()
}

/// A fresh server in the place of another one.
fn anew(bench: &mut Bench<'_>, world: &World, before: Server) -> Result<Server, Error> {
    before.kill()?;
    world.serve(bench, &[])
}

/// PostgreSQL, if a class is compared with it and it is there.
fn peer(
    bench: &mut Bench<'_>,
    world: &World,
    classes: &[Class],
    findings: &mut Findings,
) -> Result<Option<Postgres>, Error> {
    if !classes.iter().any(|class| class.has_peer()) {
        return Ok(None);
    }
    match Postgres::start(bench, world, findings) {
        Ok(postgres) => Ok(postgres),
        Err(error) => bench.settled("PostgreSQL", Err(error), findings).map(|()| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_cell() {
        assert!(Class::ALL.iter().all(|class| CELLS.contains(&class.cell())));
        assert!(QUICK.iter().all(|cell| CELLS.contains(cell)));
    }
}
