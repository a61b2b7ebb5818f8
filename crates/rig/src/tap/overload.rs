//! Overload: ten times as many clients as the server has places for queries.
//!
//! Each of them asks again the moment it is answered, refused or not: less kind than any real client. Nothing but
//! results and 503 with Retry-After may come, and no connection may be lost; the first thing else ends the run.

use super::answer::Format;
use super::archive::{Query, Tap, World};
use super::question::Question;
use crate::bench::{Bench, Side};
use crate::cell::{self, Load};
use crate::error::Error;
use crate::figures::Spread;
use crate::generator::{Pace, Window};
use crate::limits;
use crate::report::{Cell, Findings};
use crate::request::Requests;
use crate::verdict::{Bound, Target};
use std::time::Duration;

const NAME: &str = "overload";
const RUNNING: usize = 2;
const WAITING: usize = 8;
/// As many as there are places, and ten times as many.
const WITHIN: usize = RUNNING + WAITING;
const BEYOND: usize = 10 * WITHIN;

/// Measures and adds to the findings.
pub(super) fn measure(bench: &mut Bench<'_>, world: &World, findings: &mut Findings) -> Result<(), Error> {
    let (running, waiting) = (RUNNING.to_string(), WAITING.to_string());
    let settings = [("archive.running", running.as_ref()), ("archive.waiting", waiting.as_ref())];
    let server = world.serve(bench, &settings)?;
    let query = Query::new(&world.stars, Question::Group, Format::Csv);
    let mut tap = Tap::connect(&server)?;
    let query = query.ok_or_else(|| tap.wrong("a grouping without an answer".to_owned()))?;
    let reply = tap.ask(&world.stars, &query)?;
    let mut template = query.template(&tap.host);
    template.expect.body_bytes = Some(reply.body.len() as u64);
    template.expect.may_be_busy = true;
    let mut side = Side { server, requests: Requests::new(vec![template]) };
    let (mut within, mut beyond) = (Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds {
        (bench.progress)(&format!("{NAME}: round {round} of {}", bench.options.rounds));
        within.push(bench.drive(&mut side, WITHIN, Pace::Closed)?);
        beyond.push(bench.drive(&mut side, BEYOND, Pace::Closed)?);
    }
    // It still answers.
    Tap::connect(&side.server)?.ask(&world.stars, &query)?;
    side.server.stop()?;
    report(bench, &within, &beyond, findings)
}

fn report(
    bench: &Bench<'_>,
    within: &[Window],
    beyond: &[Window],
    findings: &mut Findings,
) -> Result<(), Error> {
    let refused: u64 = beyond.iter().map(|window| window.refused.count()).sum();
    let answered: u64 = beyond.iter().map(|window| window.latency.count()).sum();
    if bench.options.judging() && (refused == 0 || answered == 0) {
        let what = format!("{answered} answered and {refused} refused: that was no overload");
        return Err(Error::Wrong { name: NAME, what });
    }
    let (within, beyond) = (judged(within), judged(beyond));
    findings.cells.push(described(WITHIN, &within));
    findings.cells.push(described(BEYOND, &beyond));
    let (within, beyond) = (within.iter().collect::<Vec<_>>(), beyond.iter().collect::<Vec<_>>());
    let (many, fitting) = (("ten times the clients", &beyond[..]), ("as many as places", &within[..]));
    findings.ratios.push(cell::ratio(load(BEYOND), "requests_per_s", many, fitting));
    let name =
        "overload at ten times the clients: neither 200 nor 503 with Retry-After, or a connection lost";
    let none = Some(Spread::once(0.0));
    findings.targets.push(Target::judge(name, Bound::AtMost(0.0), None, none, bench.options.judging()));
    Ok(())
}

/// A generator that is busy with refusals is what is wanted here: no round is void.
fn judged(windows: &[Window]) -> Vec<Window> {
    let idle = |window: &Window| Window { generator_cpu: Duration::ZERO, ..window.clone() };
    windows.iter().map(idle).collect()
}

fn load(clients: usize) -> Load<'static> {
    Load { name: NAME, pace: "closed", clients }
}

fn described(clients: usize, windows: &[Window]) -> Cell {
    let mut cell = cell::cell(load(clients), "archive", &windows.iter().collect::<Vec<_>>());
    for unmeasured in ["generator_busy", "generator_us"] {
        cell.figures.remove(unmeasured);
    }
    let refusals = windows.iter().map(|window| window.refused.count() as f64 / window.wall.as_secs_f64());
    let figures = [
        ("refused_per_s", Spread::of(refusals)),
        ("refused_p99_us", Spread::of(windows.iter().map(|window| window.refused.quantile_us(0.99)))),
    ];
    cell.figures.extend(figures.into_iter().filter_map(|(name, spread)| Some((name, spread?))));
    cell
}

const _: () = assert!(BEYOND <= limits::CLIENTS);
