//! Classes of queries, each in rounds: what the archive can do for one, four and thirty-two clients, and what a
//! request costs beside the floor and beside PostgreSQL.
//!
//! ```text
//! one client, always busy      floor, archive, PostgreSQL's backend
//! four, thirty-two             archive
//! paced, the same rate         floor, archive
//! ```
//!
//! Before anything is counted each query is sent once and its answer compared with what looking at every star
//! gives. Then the length of that answer is what every later one must have.

use super::answer::Format;
use super::archive::{Query, Tap, World};
use super::postgres::{self, Peer, Postgres};
use super::question::Question;
use super::stars::Dice;
use crate::args::Mode;
use crate::bench::{Bench, Side};
use crate::cell::{self, COMPARED, Figure, Load, OF_LONG_ANSWERS};
use crate::client::Reply;
use crate::error::Error;
use crate::figures::Spread;
use crate::generator::{Pace, Window};
use crate::limits;
use crate::report::{Findings, Ratio};
use crate::request::Requests;
use crate::server::Server;
use crate::verdict::{Bound, Target};

const ARCHIVE: &str = "archive";
const FLOOR: &str = "floor";
const POSTGRES: &str = "postgres";

/// How often each class stands in the mix (the published mix of ten classes: list 1, lookup 3, filters 3 and 2,
/// cones 5, 2 and 2, long result 1).
const MIX: [(Class, usize); 5] = [
    (Class::Metadata, 1),
    (Class::Lookup, 3),
    (Class::Filter, 5),
    (Class::Cone, 9),
    (Class::Rows(Format::Csv), 1),
];

/// Answers up to this length are kept, so that later ones can be compared with them byte by byte.
const KEPT_BYTES: usize = 64 << 10;

/// A class of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Metadata,
    Lookup,
    Cone,
    Filter,
    Rows(Format),
    Group,
    Mix,
    Whole(Format),
}

impl Class {
    /// In the order in which they are measured.
    pub(super) const ALL: [Class; 12] = [
        Class::Metadata,
        Class::Lookup,
        Class::Cone,
        Class::Filter,
        Class::Rows(Format::Csv),
        Class::Rows(Format::TableData),
        Class::Rows(Format::Binary2),
        Class::Whole(Format::Csv),
        Class::Whole(Format::TableData),
        Class::Whole(Format::Binary2),
        Class::Group,
        Class::Mix,
    ];

    /// The name for `--only`.
    pub(super) fn cell(self) -> &'static str {
        match self {
            Class::Metadata => "metadata",
            Class::Lookup => "lookup",
            Class::Cone => "cone",
            Class::Filter => "filter",
            Class::Rows(_) => "rows",
            Class::Group => "group",
            Class::Mix => "mix",
            Class::Whole(_) => "whole",
        }
    }

    /// The name in a report.
    pub(super) fn name(self) -> String {
        match self {
            Class::Metadata => "list of tables".to_owned(),
            Class::Lookup => "id lookup".to_owned(),
            Class::Cone => "cone of 0.5 degree".to_owned(),
            Class::Filter => "filter by magnitude and colour".to_owned(),
            Class::Rows(format) => format!("10,000 rows in {}", format.name()),
            Class::Group => "group all rows by HEALPix cell".to_owned(),
            Class::Mix => "mix".to_owned(),
            Class::Whole(format) => format!("the whole table in {}", format.name()),
        }
    }

    /// Clients that are always busy.
    fn clients(self, mode: Mode) -> &'static [usize] {
        match (self, mode) {
            (Class::Whole(_), _) => &[1],
            (Class::Rows(_), Mode::Quick) => &[1, 4],
            (_, Mode::Quick) => &[1, 32],
            _ => &[1, 4, 32],
        }
    }

    /// Clients of the paced load; none where a rate says nothing.
    fn paced(self) -> Option<usize> {
        match self {
            Class::Metadata | Class::Lookup | Class::Cone | Class::Filter => Some(32),
            Class::Rows(_) => Some(4),
            Class::Group | Class::Mix | Class::Whole(_) => None,
        }
    }

    /// Whether one answer stands for all of them, so that a floor can give it.
    fn has_floor(self) -> bool {
        self != Class::Mix
    }

    /// Whether PostgreSQL is asked the same, by one prepared statement.
    pub(super) fn has_peer(self) -> bool {
        matches!(self, Class::Lookup | Class::Cone | Class::Filter | Class::Group)
    }

    /// Whether an answer takes longer to send than to find.
    fn is_long(self) -> bool {
        matches!(self, Class::Rows(_) | Class::Whole(_) | Class::Group)
    }

    /// The questions, in turn.
    fn queries(self, world: &World, mode: Mode) -> Vec<Query> {
        let (stars, few) = (&world.stars, mode == Mode::Smoke);
        let count = |full: usize| if few { full / 20 } else { full };
        let mut dice = Dice::new(limits::QUERY_SEED);
        let (format, questions) = match self {
            Class::Metadata => (Format::Csv, vec![Question::Tables]),
            Class::Lookup => (Format::Csv, Question::lookups(stars, count(400), &mut dice)),
            Class::Cone => (Format::Csv, Question::cones(stars, count(300), &mut dice)),
            Class::Filter => (Format::Csv, Question::filters(count(200), &mut dice)),
            Class::Rows(format) => (format, vec![Question::Rows]),
            Class::Group => (Format::Csv, vec![Question::Group]),
            Class::Whole(format) => (format, vec![Question::Whole]),
            Class::Mix => return mix(world, mode),
        };
        questions.into_iter().filter_map(|question| Query::new(stars, question, format)).collect()
    }
}

/// Every class as often as its weight, well shuffled, always in the same order.
fn mix(world: &World, mode: Mode) -> Vec<Query> {
    let rounds = if mode == Mode::Smoke { 1 } else { 20 };
    let mut all = Vec::new();
    for (class, weight) in MIX {
        let queries = class.queries(world, mode);
        all.extend(queries.iter().cycle().take(weight * rounds).cloned());
    }
    let mut dice = Dice::new(limits::QUERY_SEED);
    for at in (1..all.len()).rev() {
        all.swap(at, dice.below(at + 1));
    }
    all
}

/// Windows of one side under one load.
struct Track {
    pace: &'static str,
    clients: usize,
    side: &'static str,
    windows: Vec<Window>,
}

/// All that is measured of a class.
struct Tracks {
    name: String,
    tracks: Vec<Track>,
}

impl Tracks {
    fn push(&mut self, pace: &'static str, clients: usize, side: &'static str, window: Window) {
        let known = self.tracks.iter_mut().find(|t| (t.pace, t.clients, t.side) == (pace, clients, side));
        match known {
            Some(track) => track.windows.push(window),
            None => self.tracks.push(Track { pace, clients, side, windows: vec![window] }),
        }
    }

    fn of(&self, pace: &str, clients: usize, side: &str) -> Vec<&Window> {
        let found = self.tracks.iter().find(|t| (t.pace, t.clients, t.side) == (pace, clients, side));
        found.map(|track| track.windows.iter().collect()).unwrap_or_default()
    }

    /// Paced rounds in which both sides count.
    fn valid_pairs(&self, clients: usize) -> usize {
        let (floor, archive) = (self.of("paced", clients, FLOOR), self.of("paced", clients, ARCHIVE));
        floor.iter().zip(archive).filter(|(floor, archive)| !floor.void() && !archive.void()).count()
    }

    fn report(&self, more: &[Figure], findings: &mut Findings) {
        for track in &self.tracks {
            let load = Load { name: &self.name, pace: track.pace, clients: track.clients };
            let windows: Vec<&Window> = track.windows.iter().collect();
            // The peer's rows have no first byte of a body.
            let more = if track.side == POSTGRES { &[] } else { more };
            findings.cells.push(cell::cell_with(load, track.side, &windows, more));
        }
        for track in self.tracks.iter().filter(|track| track.side != ARCHIVE) {
            let figures = COMPARED.map(|figure| self.ratio(track.pace, track.clients, figure, track.side));
            findings.ratios.extend(figures);
        }
    }

    /// The archive as a multiple of another side.
    fn ratio(&self, pace: &'static str, clients: usize, figure: &'static str, to: &'static str) -> Ratio {
        let load = Load { name: &self.name, pace, clients };
        let (archive, other) = (self.of(pace, clients, ARCHIVE), self.of(pace, clients, to));
        cell::ratio(load, figure, (ARCHIVE, &archive), (to, &other))
    }

    /// Bytes of bodies for a second of the CPU that a request costs more than the floor's, in millions: all that
    /// finding the rows, writing them and handing them over in pieces takes.
    fn beyond_the_floor(&self) -> Option<Spread> {
        let (archive, floor) = (self.of("closed", 1, ARCHIVE), self.of("closed", 1, FLOOR));
        let pairs =
            archive.into_iter().zip(floor).filter(|(archive, floor)| !archive.void() && !floor.void());
        Spread::of(pairs.map(|(archive, floor)| {
            let bytes = archive.body_bytes as f64 / archive.latency.count() as f64;
            let cpu_us = archive.cpu_us() - floor.cpu_us();
            if cpu_us > 0.0 { bytes / cpu_us } else { f64::NAN }
        }))
    }
}

/// The servers of a class.
struct Sides {
    archive: Side,
    floor: Option<Side>,
    peer: Option<Peer>,
}

/// Measures a class on a running archive; gives the server back.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    world: &World,
    server: Server,
    postgres: Option<&Postgres>,
    class: Class,
    findings: &mut Findings,
) -> (Server, Result<(), Error>) {
    let prepared = prepare(bench, world, &server, postgres, class);
    let (requests, floor, peer) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return (server, Err(error)),
    };
    let mut sides = Sides { archive: Side { server, requests }, floor, peer };
    let mut tracks = Tracks { name: class.name(), tracks: Vec::new() };
    let driven = rounds(bench, class, &mut sides, &mut tracks);
    if driven.is_ok() {
        tracks.report(if class.is_long() { &OF_LONG_ANSWERS } else { &[] }, findings);
        findings.targets.extend(targets(class, &tracks, bench.options.judging()));
    }
    (sides.archive.server, driven)
}

type Prepared = (Requests, Option<Side>, Option<Peer>);

/// Asks every question once, and readies what stands beside the archive.
fn prepare(
    bench: &mut Bench<'_>,
    world: &World,
    server: &Server,
    postgres: Option<&Postgres>,
    class: Class,
) -> Result<Prepared, Error> {
    (bench.progress)(&format!("{}: every query once, its answer compared", class.name()));
    let mut tap = Tap::connect(server)?;
    if class == Class::Cone {
        let odd = Question::odd_cones(&world.stars).into_iter();
        let odd = odd.filter_map(|cone| Query::new(&world.stars, cone, Format::Csv));
        odd.into_iter().try_for_each(|query| tap.ask(&world.stars, &query).map(drop))?;
    }
    let queries = class.queries(world, bench.options.mode);
    let (requests, reply) = learn(&mut tap, world, &queries)?;
    let floor =
        class.has_floor().then(|| bench.start_floor("the floor", &reply, &requests, None)).transpose()?;
    let peer = match postgres.filter(|_| class.has_peer()) {
        Some(postgres) => postgres.side(bench, &world.stars, &queries)?,
        None => None,
    };
    Ok((requests, floor, peer))
}

/// Sends each query once, compares its answer, and expects the same of every later one. Answers the requests and a
/// reply of middle length for the floor to repeat.
fn learn(tap: &mut Tap, world: &World, queries: &[Query]) -> Result<(Requests, Reply), Error> {
    let (mut templates, mut lengths, mut middle) = (Vec::new(), Vec::new(), None::<Reply>);
    let mut replies = Vec::new();
    for query in queries {
        let reply = tap.ask(&world.stars, query)?;
        let mut template = query.template(&tap.host);
        template.expect.body_bytes = Some(reply.body.len() as u64);
        // The order of a grouping is the engine's.
        if reply.body.len() <= KEPT_BYTES && !reply.chunked && query.question != Question::Group {
            template.expect.body = Some(reply.body.clone().into_boxed_slice());
        }
        templates.push(template);
        lengths.push(reply.body.len());
        if queries.len() == 1 {
            middle = Some(reply);
        } else {
            replies.push((lengths.len() - 1, reply));
        }
    }
    if middle.is_none() {
        replies.sort_by_key(|(at, _)| lengths[*at]);
        let at = replies.len() / 2;
        middle = replies.into_iter().nth(at).map(|(_, reply)| reply);
    }
    let reply = middle.ok_or_else(|| tap.wrong("no query of this class has an answer".to_owned()))?;
    Ok((Requests::new(templates), reply))
}

fn rounds(bench: &mut Bench<'_>, class: Class, sides: &mut Sides, tracks: &mut Tracks) -> Result<(), Error> {
    let paced = class.paced().filter(|_| sides.floor.is_some());
    for round in 1..=bench.options.attempts() {
        let whole = round <= bench.options.rounds;
        if !whole && paced.is_none_or(|clients| tracks.valid_pairs(clients) >= bench.options.rounds) {
            break;
        }
        (bench.progress)(&format!("{}: round {round} of {}", class.name(), bench.options.rounds));
        if whole {
            closed(bench, class, sides, tracks)?;
        }
        if let (Some(clients), Some(floor)) = (paced, &mut sides.floor) {
            // What the archive can do now decides the rate: the machine may be slower in the next round.
            let able = if whole {
                tracks.of("closed", clients, ARCHIVE).last().map(|able| able.rate())
            } else {
                None
            };
            let able = match able {
                Some(able) => able,
                None => bench.drive(&mut sides.archive, clients, Pace::Closed)?.rate(),
            };
            let rate = able * limits::PACED_SHARE;
            let (of_floor, of_archive) =
                bench.pair(floor, &mut sides.archive, clients, Pace::Paced(rate.max(1.0)))?;
            tracks.push("paced", clients, FLOOR, of_floor);
            tracks.push("paced", clients, ARCHIVE, of_archive);
        }
    }
    Ok(())
}

fn closed(bench: &mut Bench<'_>, class: Class, sides: &mut Sides, tracks: &mut Tracks) -> Result<(), Error> {
    for &clients in class.clients(bench.options.mode) {
        if let Some(floor) = sides.floor.as_mut().filter(|_| clients == 1) {
            tracks.push("closed", 1, FLOOR, bench.drive(floor, 1, Pace::Closed)?);
        }
        tracks.push("closed", clients, ARCHIVE, bench.drive(&mut sides.archive, clients, Pace::Closed)?);
        if let Some(peer) = sides.peer.as_mut().filter(|_| clients == 1) {
            let load = postgres::load(&tracks.name);
            let (pace, clients) = (load.pace, load.clients);
            tracks.push(pace, clients, POSTGRES, peer.drive(bench.options)?);
        }
    }
    Ok(())
}

/// What is asked of a class.
fn targets(class: Class, tracks: &Tracks, judging: bool) -> Vec<Target> {
    let name = &tracks.name;
    let to_floor = |bound: f64| {
        let clients = class.paced().unwrap_or(1);
        let cpu = tracks.ratio("paced", clients, "cpu_us", FLOOR).multiple;
        let name = format!("{name}: server CPU per request, multiple of the floor");
        Target::judge(&name, Bound::AtMost(bound), None, cpu, judging)
    };
    match class {
        Class::Lookup => vec![to_floor(limits::LOOKUP_CPU)],
        Class::Cone => {
            let cpu = tracks.ratio("closed", 1, "cpu_us", POSTGRES).multiple;
            let peer = format!("{name}: server CPU per request, multiple of PostgreSQL's backend");
            let bound = Bound::AtMost(limits::CONE_CPU_OF_POSTGRES);
            vec![to_floor(limits::CONE_CPU), Target::judge(&peer, bound, None, cpu, judging)]
        }
        Class::Whole(format) => {
            let bound = match format {
                Format::Csv | Format::TableData => limits::TEXT_MB_PER_CORE_S,
                Format::Binary2 => limits::BINARY_MB_PER_CORE_S,
            };
            let name = format!(
                "{name}: MB per second of CPU beyond the floor's (finding the rows included, so the writer alone is \
                 faster)"
            );
            vec![Target::judge(&name, Bound::AtLeast(bound), None, tracks.beyond_the_floor(), judging)]
        }
        Class::Metadata | Class::Filter | Class::Rows(_) | Class::Group | Class::Mix => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Latency;
    use std::time::Duration;

    fn window(answers: u64, server_ms: u64, body_bytes: u64) -> Window {
        let mut latency = Latency::new();
        (0..answers).for_each(|_| latency.record(Duration::from_micros(100)));
        let (wall, server_cpu) = (Duration::from_secs(1), Duration::from_millis(server_ms));
        Window { wall, latency, server_cpu, body_bytes, clients: 1, ..Window::nothing() }
    }

    #[test]
    fn the_mix_has_the_published_weights() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::prepare(folder.path(), 2000).unwrap();
        let all = Class::Mix.queries(&world, Mode::Full);
        let count =
            |wanted: fn(&Question) -> bool| all.iter().filter(|query| wanted(&query.question)).count();
        assert_eq!(all.len(), 19 * 20);
        assert_eq!(count(|question| matches!(question, Question::Tables)), 20);
        assert_eq!(count(|question| matches!(question, Question::Lookup { .. })), 60);
        assert_eq!(count(|question| matches!(question, Question::Filter { .. })), 100);
        assert_eq!(count(|question| matches!(question, Question::Cone { .. })), 180);
        assert_eq!(count(|question| matches!(question, Question::Rows)), 20);
        let cones =
            all.iter().take(19).filter(|query| matches!(query.question, Question::Cone { .. })).count();
        assert!((3..17).contains(&cones), "shuffled");
    }

    #[test]
    fn the_writer_is_at_least_as_fast_as_what_goes_beyond_the_floor() {
        let mut tracks = Tracks { name: "x".to_owned(), tracks: Vec::new() };
        // 10 ms a request, of which the floor takes 2, for 4 MB: 500 MB/s.
        tracks.push("closed", 1, FLOOR, window(10, 20, 40_000_000));
        tracks.push("closed", 1, ARCHIVE, window(10, 100, 40_000_000));
        assert_eq!(tracks.beyond_the_floor().map(|spread| spread.median), Some(500.0));
        let held = targets(Class::Whole(Format::Csv), &tracks, true);
        let missed = targets(Class::Whole(Format::Binary2), &tracks, true);
        assert_eq!(held[0].verdict, crate::verdict::Verdict::Held);
        assert_eq!(missed[0].verdict, crate::verdict::Verdict::Missed);
    }

    #[test]
    fn sides_are_compared_within_their_load() {
        let mut tracks = Tracks { name: "x".to_owned(), tracks: Vec::new() };
        tracks.push("closed", 1, ARCHIVE, window(10, 30, 0));
        tracks.push("closed", 4, ARCHIVE, window(10, 90, 0));
        tracks.push("closed", 1, POSTGRES, window(10, 60, 0));
        let ratio = tracks.ratio("closed", 1, "cpu_us", POSTGRES);
        assert_eq!(ratio.multiple.map(|spread| spread.median), Some(0.5));
        let mut findings = Findings::default();
        tracks.report(&[], &mut findings);
        assert_eq!((findings.cells.len(), findings.ratios.len()), (3, 4));
        let missing = targets(Class::Cone, &Tracks { name: "x".to_owned(), tracks: Vec::new() }, true);
        assert!(missing.iter().all(|target| target.measured.is_none()) && missing.len() == 2);
    }
}
