//! The file store against the memory store: updates at 256 clients, with every acknowledged one durable.
//!
//! Three sides take turns: the memory store, the file store, and the floor of durable writes, which writes
//! and flushes each wave of bodies before it answers. Afterwards each entity is given one more value, the
//! broker of the file store is killed without warning, and a new one on the same folder must know them all.

use super::seed_all;
use super::shape::Shape;
use crate::bench::{Bench, Side};
use crate::broker::{self, Context, ENTITIES, Store};
use crate::cell::{self, Load};
use crate::error::Error;
use crate::generator::{Pace, Window};
use crate::limits;
use crate::report::Findings;
use crate::seed;
use crate::server::Server;
use crate::verdict::{Bound, Target};
use std::path::Path;

const NAME: &str = "updates, by store";

/// Measures and adds to the findings.
pub(super) fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let folder = bench.directory.join("store");
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let mut memory = start(bench, "the memory store", Store::Memory)?;
    let mut file = start(bench, "the file store", Store::File(&folder))?;
    let reply = Shape::Patch.learn(&mut Context::connect(&memory.server)?, &mut memory.requests)?;
    Shape::Patch.learn(&mut Context::connect(&file.server)?, &mut file.requests)?;
    let journal = bench.directory.join("floor.journal");
    let mut floor = bench.start_floor("the durable floor", &reply, &memory.requests, Some(&journal))?;
    let mut rounds: [Vec<Window>; 3] = Default::default();
    for round in 1..=bench.options.rounds {
        (bench.progress)(&format!("{NAME}: round {round} of {}", bench.options.rounds));
        for (side, windows) in [&mut floor, &mut memory, &mut file].into_iter().zip(&mut rounds) {
            windows.push(bench.drive(side, limits::UPDATE_CLIENTS, Pace::Closed)?);
        }
    }
    survive(bench, file.server, &folder)?;
    memory.server.stop()?;
    report(&rounds, bench.options.judging(), findings);
    Ok(())
}

fn start(bench: &mut Bench<'_>, name: &'static str, store: Store<'_>) -> Result<Side, Error> {
    let server = broker::start(name, bench.program, store, bench.directory, bench.options.server_core())?;
    seed_all(&mut Context::connect(&server)?)?;
    let requests = Shape::Patch.requests(&server.address().to_string());
    Ok(Side { server, requests })
}

fn report(rounds: &[Vec<Window>; 3], judging: bool, findings: &mut Findings) {
    let [floor, memory, file] = rounds.each_ref().map(|windows| windows.iter().collect::<Vec<_>>());
    let load = Load { name: NAME, pace: "closed", clients: limits::UPDATE_CLIENTS };
    for (side, windows) in [("durable floor", &floor), ("memory", &memory), ("file", &file)] {
        findings.cells.push(cell::cell(load, side, windows));
    }
    let to_memory = cell::ratio(load, "requests_per_s", ("file", &file), ("memory", &memory));
    let bound = Bound::AtLeast(limits::FILE_RATE_MIN);
    let name = "updates at 256 clients: rate of the file store, share of the memory store";
    findings.targets.push(Target::judge(name, bound, None, to_memory.multiple, judging));
    findings
        .ratios
        .extend([to_memory, cell::ratio(load, "requests_per_s", ("file", &file), ("durable floor", &floor))]);
}

/// Every acknowledged value is there after a kill.
fn survive(bench: &Bench<'_>, server: Server, folder: &Path) -> Result<(), Error> {
    let mut context = Context::connect(&server)?;
    let last = |number: usize| number + 3;
    for number in 0..limits::SEEDED_ENTITIES {
        let target = format!("{ENTITIES}/{}/attrs/{}", seed::seeded_id(number), seed::PATCHED);
        context.call("PATCH", &target, Some(&seed::patch(last(number))), 204)?;
    }
    server.kill()?;
    let core = bench.options.server_core();
    let again = broker::start(
        "the file store after a kill",
        bench.program,
        Store::File(folder),
        bench.directory,
        core,
    )?;
    let mut context = Context::connect(&again)?;
    for number in 0..limits::SEEDED_ENTITIES {
        let id = seed::seeded_id(number);
        let value = context.retrieve(&id)?[seed::PATCHED]["value"].to_string();
        if value != seed::speed(last(number)) {
            return Err(context
                .wrong(format!("{id}: {value} instead of the acknowledged {}", seed::speed(last(number)))));
        }
    }
    again.stop()
}
