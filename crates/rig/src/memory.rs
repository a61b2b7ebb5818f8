//! The suite `memory`: bytes resident per entity, the first answer of a cold start, and memory when idle.
//!
//! Entities are created over the API, a thousand in a batch; what the process holds afterwards more than
//! before, divided by their number, is what one costs with all its indexes, allocator slack included. The
//! floor beside it is the length of what was posted.

use crate::args::Mode;
use crate::bench::Bench;
use crate::broker::{self, BATCH_CREATE, Context, ENTITIES, Store};
use crate::error::Error;
use crate::figures::Spread;
use crate::limits;
use crate::procfs;
use crate::report::{Cell, Findings, Ratio};
use crate::seed;
use crate::serve::{self, Setting};
use crate::server::Server;
use crate::verdict::{Bound, Target};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The cells by the names that `--only` takes.
pub(crate) const CELLS: [&str; 2] = ["start", "entities"];

const MIB: f64 = 1024.0 * 1024.0;
/// How many entities are looked at when all are there.
const LOOKED_AT: usize = 50;

/// Runs the suite.
pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    if bench.options.wants("start") {
        starts(bench, &mut findings)?;
    }
    if bench.options.wants("entities") {
        entities(bench, &mut findings)?;
    }
    Ok(findings)
}

fn start(bench: &Bench<'_>) -> Result<Server, Error> {
    broker::start("the broker", bench.program, Store::Memory, bench.directory, bench.options.server_core())
}

/// Starts the broker several times: time until the first 200, and what it holds when nothing happens.
fn starts(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let (mut first, mut idle) = (Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds {
        (bench.progress)(&format!("cold start: round {round} of {}", bench.options.rounds));
        let server = start(bench)?;
        first.push(server.started().elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(settle(bench.options.mode));
        idle.push(resident(&server)? as f64 / MIB);
        server.stop()?;
    }
    let figures = [("first_200_ms", first), ("idle_mib", idle)];
    let figures: BTreeMap<_, _> =
        figures.into_iter().filter_map(|(name, values)| Some((name, Spread::of(values)?))).collect();
    let judging = bench.options.judging();
    for (name, figure, bound) in [
        ("cold start: ms until the first 200", "first_200_ms", limits::FIRST_ANSWER_MS_MAX),
        ("idle: MiB resident", "idle_mib", limits::IDLE_MIB_MAX),
    ] {
        let measured = figures.get(figure).copied();
        findings.targets.push(Target::judge(name, Bound::AtMost(bound), None, measured, judging));
    }
    findings.cells.push(Cell { clients: 0, ..cell("start", "cold", figures) });
    doors(bench, findings)
}

/// The same for all doors of this binary, and for the archive door alone where it has one; for information.
fn doors(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let has_archive = start_doors(bench, "all", "all doors", findings)?;
    if has_archive {
        start_doors(bench, "archive", "archive", findings)?;
    }
    Ok(())
}

/// Answers whether the archive door was among those that opened.
fn start_doors(
    bench: &mut Bench<'_>,
    doors: &str,
    side: &'static str,
    findings: &mut Findings,
) -> Result<bool, Error> {
    let (mut first, mut idle, mut has_archive) = (Vec::new(), Vec::new(), false);
    for round in 1..=bench.options.rounds {
        (bench.progress)(&format!("cold start, {side}: round {round} of {}", bench.options.rounds));
        let folder = bench.directory.join(format!("start-{doors}-{round}"));
        let settings: [Setting<'_>; 2] = [("doors", doors.as_ref()), ("data_dir", folder.as_os_str())];
        let core = bench.options.server_core();
        let server = serve::start(side, bench.program, &settings, bench.directory, core)?;
        first.push(server.started().elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(settle(bench.options.mode));
        idle.push(resident(&server)? as f64 / MIB);
        has_archive = server.has_door("archive");
        server.stop()?;
    }
    let figures = [("first_200_ms", first), ("idle_mib", idle)];
    let figures = figures.into_iter().filter_map(|(name, values)| Some((name, Spread::of(values)?)));
    let cell = cell("start", "cold", figures.collect());
    findings.cells.push(Cell { clients: 0, side: side.to_owned(), ..cell });
    Ok(has_archive)
}

/// How long the process is left alone before its memory is read.
fn settle(mode: Mode) -> Duration {
    match mode {
        Mode::Full => Duration::from_secs(2),
        Mode::Quick => Duration::from_millis(500),
        Mode::Smoke => Duration::from_millis(50),
    }
}

fn count(mode: Mode) -> usize {
    match mode {
        Mode::Full => 1_000_000,
        Mode::Quick => 100_000,
        Mode::Smoke => 3_000,
    }
}

fn resident(server: &Server) -> Result<u64, Error> {
    procfs::resident_bytes(server.pid()).map_err(Error::system("reading the server's memory"))
}

fn cell(name: &str, load: &'static str, figures: BTreeMap<&'static str, Spread>) -> Cell {
    let side = "broker".to_owned();
    Cell { name: name.to_owned(), side, load, clients: 1, offered_per_s: None, void_rounds: 0, figures }
}

/// Fills a broker and divides.
fn entities(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let total = count(bench.options.mode);
    let server = start(bench)?;
    let mut context = Context::connect(&server)?;
    let before = resident(&server)?;
    let filling = Instant::now();
    let posted_bytes = fill(bench, &mut context, total)?;
    let seconds = filling.elapsed().as_secs_f64();
    std::thread::sleep(settle(bench.options.mode));
    let after = resident(&server)?;
    look_at(&mut context, total)?;
    server.stop()?;
    let each = |bytes: u64| Spread::once(bytes as f64 / total as f64);
    let (held, posted) = (each(after.saturating_sub(before)), each(posted_bytes));
    let figures = BTreeMap::from([
        ("entities", Spread::once(total as f64)),
        ("created_per_s", Spread::once(total as f64 / seconds)),
        ("before_mib", Spread::once(before as f64 / MIB)),
        ("after_mib", Spread::once(after as f64 / MIB)),
        ("bytes_per_entity", held),
        ("posted_bytes_per_entity", posted),
    ]);
    findings.cells.push(cell("entities in memory", "batches of 1000", figures));
    findings.ratios.push(Ratio {
        name: "entities in memory".to_owned(),
        load: "batches of 1000",
        clients: 1,
        figure: "bytes_per_entity",
        of: "broker".to_owned(),
        to: "what was posted".to_owned(),
        multiple: Some(Spread::once(held.median / posted.median)),
    });
    let bound = Bound::AtMost(limits::ENTITY_BYTES_MAX);
    let name = "memory store: bytes resident per five-attribute entity";
    findings.targets.push(Target::judge(name, bound, None, Some(held), bench.options.judging()));
    Ok(())
}

/// Creates all entities; returns the bytes posted.
fn fill(bench: &mut Bench<'_>, context: &mut Context, total: usize) -> Result<u64, Error> {
    let mut posted = 0;
    for first in (0..total).step_by(limits::BATCH_ENTITIES) {
        if first % (total / 10).max(1) == 0 {
            (bench.progress)(&format!("entities in memory: {first} of {total}"));
        }
        let body = batch(first..(first + limits::BATCH_ENTITIES).min(total));
        posted += body.len() as u64;
        context.call("POST", BATCH_CREATE, Some(&body), 201)?;
    }
    Ok(posted)
}

fn batch(numbers: std::ops::Range<usize>) -> String {
    let mut body = String::with_capacity(numbers.len() * 600);
    for number in numbers {
        body.push(if body.is_empty() { '[' } else { ',' });
        body.push_str(&seed::entity(&seed::seeded_id(number), number));
    }
    body.push(']');
    body
}

/// All are counted, and some of them are what was posted.
fn look_at(context: &mut Context, total: usize) -> Result<(), Error> {
    let target = format!("{ENTITIES}?type={}&limit=1&count=true", seed::TYPE);
    let reply = context.call("GET", &target, None, 200)?;
    let counted = reply.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("NGSILD-Results-Count"));
    if counted.map(|(_, value)| value.as_str()) != Some(total.to_string().as_str()) {
        return Err(context.wrong(format!("a count of {counted:?} instead of {total}")));
    }
    for number in (0..total).step_by((total / LOOKED_AT).max(1)) {
        let id = seed::seeded_id(number);
        context.expect_entity(&id, &seed::entity(&id, number))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_a_list_of_different_entities() {
        let value: serde_json::Value = serde_json::from_str(&batch(5..8)).unwrap();
        let ids: Vec<&str> =
            value.as_array().unwrap().iter().map(|entity| entity["id"].as_str().unwrap()).collect();
        assert_eq!(ids, [5, 6, 7].map(seed::seeded_id));
    }
}
