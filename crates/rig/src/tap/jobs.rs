//! Jobs: from the POST of a tiny one until a client has seen that it is completed (UWS 1.1 2.2).
//!
//! One after the other on one connection, as a client does it: POST with PHASE=RUN, then GET with WAIT until the
//! phase says COMPLETED. Jobs are durable, so beside them stands what one flush of a small file costs here.

use super::answer::Format;
use super::archive::{Query, Tap, World, fields};
use super::question::Question;
use crate::args::Mode;
use crate::bench::Bench;
use crate::client::Reply;
use crate::error::Error;
use crate::figures::{Latency, Spread};
use crate::limits;
use crate::report::{Cell, Findings};
use crate::request::{Expect, Template};
use crate::server::Server;
use crate::verdict::{Bound, Target};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

const NAME: &str = "tiny job";
const ASYNC: &str = "/tap/async";

fn count(mode: Mode) -> usize {
    match mode {
        Mode::Full => 50,
        Mode::Quick => 20,
        Mode::Smoke => 3,
    }
}

/// Measures jobs on a running archive.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    world: &World,
    server: &Server,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut tap = Tap::connect(server)?;
    let jobs = count(bench.options.mode);
    (bench.progress)(&format!("{NAME}: {jobs} one after the other"));
    let hips = (0..jobs).map(|at| world.stars.hip(at * 7 % world.stars.count()));
    let queries = hips.filter_map(|hip| Query::new(&world.stars, Question::Lookup { hip }, Format::Csv));
    let took = queries.map(|query| job(&mut tap, world, &query)).collect::<Result<Vec<_>, _>>()?;
    let flushes = (0..jobs).map(|_| flush(bench)).collect::<Result<Vec<_>, _>>()?;
    let seen = Spread::of(took.iter().map(|took| took.as_secs_f64() * 1000.0));
    findings.cells.push(cell("archive", &took));
    findings.cells.push(cell("one flush", &flushes));
    let name = "tiny job: ms from its POST until it is seen COMPLETED";
    let bound = Bound::AtMost(limits::JOB_MS_MAX);
    findings.targets.push(Target::judge(name, bound, None, seen, bench.options.judging()));
    Ok(())
}

fn cell(side: &str, took: &[Duration]) -> Cell {
    let mut all = Latency::new();
    took.iter().for_each(|took| all.record(*took));
    let figures = [("p50_us", 0.5), ("p99_us", 0.99)];
    let figures = figures.map(|(name, share)| (name, Spread::once(all.quantile_us(share))));
    Cell {
        name: NAME.to_owned(),
        side: side.to_owned(),
        load: "one after the other",
        clients: 1,
        offered_per_s: None,
        void_rounds: 0,
        figures: BTreeMap::from(figures),
    }
}

/// Runs one job; answers how long it took until it was seen COMPLETED. Then its result is looked at, and it goes
/// away.
fn job(tap: &mut Tap, world: &World, query: &Query) -> Result<Duration, Error> {
    let adql = query.question.adql();
    let fields = [&[("PHASE", "RUN")], &fields(&adql, query.format)[..]].concat();
    let template = Template::form(&tap.host, ASYNC, &fields, Expect::status(303));
    let posted = Instant::now();
    let created = tap.send(&template)?;
    let path = path(tap, &created)?;
    let wait = get(tap, &format!("{path}?WAIT={}", limits::JOB_WAIT_S));
    loop {
        let document = tap.send(&wait)?;
        match phase(&document).as_deref() {
            Some("COMPLETED") => break,
            Some("PENDING" | "QUEUED" | "EXECUTING") if posted.elapsed() < limits::ANSWER_WAIT => {}
            _ => return Err(tap.wrong(format!("a job that is not completed: {document:.900}"))),
        }
    }
    let took = posted.elapsed();
    let result = get(tap, &format!("{path}/results/result"));
    let reply = tap.send(&result)?;
    let checked = query.expected.check(&world.stars, query.format, &reply.body);
    checked.map_err(|what| tap.wrong(format!("the result of a job: {what}")))?;
    tap.send(&Template::new("DELETE", &tap.host, &path, None, Expect::status(303)))?;
    Ok(took)
}

fn get(tap: &Tap, target: &str) -> Template {
    Template::new("GET", &tap.host, target, None, Expect::status(200))
}

/// The path of the job that was made (UWS 1.1 2.2.3.1: its URL is in Location).
fn path(tap: &Tap, created: &Reply) -> Result<String, Error> {
    let location = created.header("location").unwrap_or_default();
    let path = location.find(ASYNC).map(|at| location[at..].to_owned());
    let path = path.filter(|path| path.len() > ASYNC.len() + 1);
    path.ok_or_else(|| tap.wrong(format!("a job without a place: {:?}", created.headers)))
}

/// What a job's document says of its phase.
fn phase(document: &Reply) -> Option<String> {
    let text = document.text();
    let (_, after) = text.split_once("phase>")?;
    Some(after.split_once('<')?.0.trim().to_owned())
}

/// Writes a small file and waits until it is on the disk.
fn flush(bench: &Bench<'_>) -> Result<Duration, Error> {
    let path = bench.directory.join("flushed");
    let begun = Instant::now();
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&[b'x'; 1024])?;
        file.sync_data()
    });
    written.map_err(Error::file(&path))?;
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(body: &str) -> Reply {
        Reply { status: 200, headers: Vec::new(), body: body.as_bytes().to_vec(), chunked: false }
    }

    #[test]
    fn a_phase_is_found_in_its_document() {
        let document = "<uws:job><uws:jobId>x</uws:jobId><uws:phase>EXECUTING</uws:phase></uws:job>";
        assert_eq!(phase(&reply(document)).as_deref(), Some("EXECUTING"));
        assert_eq!(phase(&reply("<job><phase> COMPLETED </phase></job>")).as_deref(), Some("COMPLETED"));
        assert_eq!(phase(&reply("<html>")), None);
    }
}
