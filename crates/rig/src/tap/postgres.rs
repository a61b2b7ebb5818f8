//! The peer beneath: PostgreSQL with prepared statements over the same table.
//!
//! What is read is the CPU of the one backend process that serves the connection: no HTTP, no ADQL, no text, only
//! what a database does for the query. It gets what it is best at: the table in the order of the sky, visible to
//! index-only scans, a B-tree over number, magnitude, and (zone, right ascension) for cones with an exact test of
//! the chord, plans made once, values and results in binary.

mod cluster;
mod wire;

use super::answer::Row;
use super::archive::{Query, World, write};
use super::question::{self, Question};
use super::stars::{self, GROUP_ORDER, Stars};
use crate::args::Options;
use crate::bench::Bench;
use crate::cell::Load;
use crate::error::Error;
use crate::figures::{Latency, Spread};
use crate::generator::Window;
use crate::procfs::{self, Cpu};
use crate::report::{Cell, Findings};
use cluster::Cluster;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant};
use wire::{Raw, Value, Wire};

const NAME: &str = "PostgreSQL";

const CREATE: &str = "CREATE UNLOGGED TABLE raw (hip int4, ra float8, dec float8, plx float8, e_plx float8, \
    pmra float8, pmdec float8, hpmag float8, b_v float8, zone int2, x float8, y float8, z float8, cell int8)";
const COPY: &str = "COPY raw FROM STDIN WITH (FORMAT csv)";
const ARRANGE: [&str; 5] = [
    "CREATE UNLOGGED TABLE stars AS SELECT * FROM raw ORDER BY cell",
    "ALTER TABLE stars ADD PRIMARY KEY (hip)",
    "CREATE INDEX ON stars (hpmag)",
    "CREATE INDEX ON stars (zone, ra)",
    "VACUUM (ANALYZE, FREEZE) stars",
];

/// A running peer with the table in it.
pub(super) struct Postgres {
    cluster: Cluster,
}

impl Postgres {
    /// Starts it and loads the catalogue; nothing if it is not installed.
    pub(super) fn start(
        bench: &mut Bench<'_>,
        world: &World,
        findings: &mut Findings,
    ) -> Result<Option<Postgres>, Error> {
        (bench.progress)("PostgreSQL: a private cluster with the same table");
        let Some(cluster) = Cluster::start(bench)? else {
            (bench.progress)("PostgreSQL is not installed: nothing is compared with it");
            return Ok(None);
        };
        let path = bench.directory.join("peer.csv");
        write(&path, |out| world.stars.write_peer_csv(out))?;
        let mut wire = cluster.connect()?;
        wire.simple(CREATE)?;
        let loading = Instant::now();
        wire.copy(COPY, File::open(&path).map_err(Error::file(&path))?)?;
        ARRANGE.iter().try_for_each(|statement| wire.simple(statement).map(drop))?;
        let seconds = loading.elapsed().as_secs_f64();
        findings.cells.push(Cell {
            name: super::load::NAME.to_owned(),
            side: "postgres".to_owned(),
            load: super::load::LOAD,
            clients: 0,
            offered_per_s: None,
            void_rounds: 0,
            figures: BTreeMap::from([
                ("seconds", Spread::once(seconds)),
                ("rows_per_s", Spread::once(world.stars.count() as f64 / seconds)),
            ]),
        });
        Ok(Some(Postgres { cluster }))
    }

    /// A connection that asks these queries in turn, once each of them has been answered as expected. Nothing if it
    /// cannot ask them.
    pub(super) fn side(
        &self,
        bench: &Bench<'_>,
        stars: &Stars,
        queries: &[Query],
    ) -> Result<Option<Peer>, Error> {
        let Some(statement) = queries.first().and_then(|query| Statement::of(&query.question)) else {
            return Ok(None);
        };
        let mut wire = self.cluster.connect()?;
        wire.prepare(statement.name, &statement.sql)?;
        if bench.options.judging() {
            expect_indexes(&mut wire, &statement)?;
        }
        let mut turns = Vec::new();
        for query in queries {
            let Some(statement) = Statement::of(&query.question) else { continue };
            let execution = wire::execution(statement.name, &statement.values);
            let rows = wire.rows(&execution)?;
            let numbers =
                rows.iter().map(|row| numbers(row, statement.types)).collect::<Result<Vec<Row>, String>>();
            let checked = numbers.and_then(|rows| query.expected.check_rows(stars, rows));
            checked.map_err(|what| wrong(format!("{}: {what}", statement.sql)))?;
            turns.push((execution, rows.len() as u64));
        }
        Ok(Some(Peer { wire, turns, turn: 0 }))
    }
}

/// The load of the peer: one connection, always busy.
pub(super) fn load(name: &str) -> Load<'_> {
    Load { name, pace: "closed", clients: 1 }
}

/// A connection with encoded executions and how many rows each answers.
pub(super) struct Peer {
    wire: Wire,
    turns: Vec<(Vec<u8>, u64)>,
    turn: usize,
}

impl Peer {
    /// Asks one after the other for a window.
    pub(super) fn drive(&mut self, options: &Options) -> Result<Window, Error> {
        self.run_for(options.warm_up, &mut Latency::new())?;
        let pid = self.wire.backend();
        let sample = || Cpu::of(pid).map_err(Error::system("reading the CPU of PostgreSQL"));
        let mut latency = Latency::new();
        let (before, own, start) = (sample()?, procfs::own_thread_cpu(), Instant::now());
        self.run_for(options.window, &mut latency)?;
        let (wall, after) = (start.elapsed(), sample()?);
        Ok(Window {
            wall,
            first_byte: latency.clone(),
            latency,
            server_cpu: after.since(&before, procfs::ticks_per_second()),
            generator_cpu: procfs::own_thread_cpu().saturating_sub(own),
            clients: 1,
            ..Window::nothing()
        })
    }

    fn run_for(&mut self, duration: Duration, latency: &mut Latency) -> Result<(), Error> {
        let mut now = Instant::now();
        let end = now + duration;
        while now < end {
            let (execution, expected) = &self.turns[self.turn];
            let rows = self.wire.count(execution)?;
            if rows != *expected {
                return Err(wrong(format!("{rows} rows instead of {expected}")));
            }
            self.turn = (self.turn + 1) % self.turns.len();
            let done = Instant::now();
            latency.record(done - now);
            now = done;
        }
        Ok(())
    }
}

fn wrong(what: String) -> Error {
    Error::Wrong { name: NAME, what }
}

/// A prepared statement with the values of one question.
struct Statement {
    name: &'static str,
    sql: String,
    values: Vec<Value>,
    /// The type of each column: `i` int4, `l` int8, `d` float8.
    types: &'static str,
    /// Whether an index answers it.
    indexed: bool,
}

impl Statement {
    fn of(question: &Question) -> Option<Statement> {
        let (name, types, sql, values) = match *question {
            Question::Lookup { hip } => {
                let sql = "SELECT hip, ra, dec, plx, hpmag FROM stars WHERE hip = $1::int4";
                ("lookup", "idddd", sql.to_owned(), vec![Value::Int(hip)])
            }
            Question::Cone { ra, dec, radius } => {
                let sql = "SELECT hip, ra, dec, hpmag FROM stars \
                    WHERE zone IN ($1::int2, $2::int2, $3::int2) AND ra BETWEEN $4::float8 AND $5::float8 \
                    AND (x - $6::float8) * (x - $6) + (y - $7::float8) * (y - $7) + (z - $8::float8) * (z - $8) \
                    <= $9::float8";
                ("cone", "iddd", sql.to_owned(), cone(ra, dec, radius)?.to_vec())
            }
            Question::Filter { low, high, red } => {
                let sql = "SELECT hip, ra, dec, hpmag, b_v FROM stars \
                    WHERE hpmag BETWEEN $1::float8 AND $2::float8 AND b_v > $3::float8";
                ("filter", "idddd", sql.to_owned(), [low, high, red].map(Value::Double).to_vec())
            }
            Question::Group => {
                let shift = 2 * (super::healpix::DEEPEST - GROUP_ORDER);
                let sql =
                    format!("SELECT cell >> {shift}, count(*), min(hpmag), max(plx) FROM stars GROUP BY 1");
                ("groups", "lldd", sql, Vec::new())
            }
            Question::Tables | Question::Rows | Question::Whole => return None,
        };
        Some(Statement { name, sql, values, types, indexed: name != "groups" })
    }
}

/// Three zones (some of them twice), a range of right ascension, the centre's direction, the square of the chord.
fn cone(ra: f64, dec: f64, radius: f64) -> Option<[Value; 9]> {
    let (low, high) = (stars::zone(dec - radius), stars::zone(dec + radius));
    if high - low > 2 {
        return None;
    }
    let middle = (low + 1).min(high);
    let half = question::ra_half_width(dec, radius);
    let [x, y, z] = stars::unit((ra, dec));
    let chord = 4.0 * (radius.to_radians() / 2.0).sin().powi(2);
    let zones = [low, middle, high].map(Value::Short);
    let rest = [ra - half, ra + half, x, y, z, chord].map(Value::Double);
    let mut values = [Value::Short(0); 9];
    values[..3].copy_from_slice(&zones);
    values[3..].copy_from_slice(&rest);
    Some(values)
}

/// A peer that reads the whole table where an index would do is none.
fn expect_indexes(wire: &mut Wire, statement: &Statement) -> Result<(), Error> {
    if !statement.indexed {
        return Ok(());
    }
    let values: Vec<String> = statement.values.iter().map(|value| value.literal()).collect();
    let plan = wire.simple(&format!("EXPLAIN EXECUTE {}({})", statement.name, values.join(", ")))?;
    let plan = plan.join(" | ");
    if plan.contains("Seq Scan") { Err(wrong(format!("a plan without an index: {plan}"))) } else { Ok(()) }
}

/// A row of numbers out of cells of these types.
fn numbers(row: &Raw, types: &str) -> Result<Row, String> {
    if row.len() != types.len() {
        return Err(format!("{} columns instead of {}", row.len(), types.len()));
    }
    let number = |(cell, kind): (&Option<Vec<u8>>, char)| {
        let Some(cell) = cell else { return Ok(None) };
        let value = match kind {
            'i' => exactly(cell).map(|bytes| f64::from(i32::from_be_bytes(bytes))),
            'l' => exactly(cell).map(|bytes| i64::from_be_bytes(bytes) as f64),
            _ => exactly(cell).map(f64::from_be_bytes),
        };
        value.map(Some).ok_or_else(|| format!("a cell of {} bytes where {kind} was expected", cell.len()))
    };
    row.iter().zip(types.chars()).map(number).collect()
}

fn exactly<const N: usize>(cell: &[u8]) -> Option<[u8; N]> {
    cell.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cone_names_every_zone_that_it_touches() {
        let zones = |dec: f64| {
            let values = cone(100.0, dec, 0.5).unwrap();
            values[..3].iter().map(|value| value.literal()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(zones(0.25), "-1::int2 0::int2 1::int2");
        assert_eq!(zones(-10.1), "-22::int2 -21::int2 -20::int2");
        assert_eq!(cone(100.0, 10.0, 3.0), None);
    }

    #[test]
    fn cells_are_numbers_of_their_type() {
        let double = |value: f64| Some(value.to_be_bytes().to_vec());
        let row = vec![Some(7_i32.to_be_bytes().to_vec()), double(1.5), None, double(2.0)];
        assert_eq!(numbers(&row, "iddd").unwrap(), [Some(7.0), Some(1.5), None, Some(2.0)]);
        let long = |value: i64| Some(value.to_be_bytes().to_vec());
        let group = vec![long(3000), long(40), double(4.5), double(9.0)];
        assert_eq!(numbers(&group, "lldd").unwrap(), [Some(3000.0), Some(40.0), Some(4.5), Some(9.0)]);
        assert!(numbers(&vec![Some(vec![1])], "i").is_err());
        assert!(numbers(&row, "idd").is_err());
    }
}
