//! Loading: from the start of `trifid archive load` to its end, the file as CSV, the table durable and indexed.

use super::archive::World;
use crate::bench::Bench;
use crate::error::Error;
use crate::figures::Spread;
use crate::limits;
use crate::report::{Cell, Findings};
use crate::verdict::{Bound, Target};
use std::collections::BTreeMap;

pub(super) const NAME: &str = "load";
pub(super) const LOAD: &str = "from CSV";

/// Loads the catalogue, several times if that is to be measured.
pub(super) fn measure(bench: &mut Bench<'_>, world: &World, findings: &mut Findings) -> Result<(), Error> {
    let measured = bench.options.wants(super::LOAD);
    let rounds = if measured { bench.options.rounds } else { 1 };
    let mut seconds = Vec::new();
    for round in 1..=rounds {
        (bench.progress)(&format!("load {} rows: round {round} of {rounds}", world.stars.count()));
        seconds.push(world.load(bench)?.as_secs_f64());
    }
    if !measured {
        return Ok(());
    }
    let (rows, bytes) = (world.stars.count() as f64, world.csv_bytes()? as f64);
    let each = |amount: f64| seconds.iter().map(move |seconds| amount / seconds);
    let figures = [
        ("seconds", Spread::of(seconds.iter().copied())),
        ("rows_per_s", Spread::of(each(rows))),
        ("mb_per_s", Spread::of(each(bytes / 1e6))),
        ("rows", Some(Spread::once(rows))),
    ];
    let figures: BTreeMap<_, _> =
        figures.into_iter().filter_map(|(name, spread)| Some((name, spread?))).collect();
    let name = format!("load of {rows} rows from CSV: seconds");
    let bound = Bound::AtMost(limits::LOAD_S_MAX);
    let target = Target::judge(&name, bound, None, figures.get("seconds").copied(), bench.options.judging());
    findings.targets.push(target);
    findings.cells.push(Cell {
        name: NAME.to_owned(),
        side: "archive".to_owned(),
        load: LOAD,
        clients: 0,
        offered_per_s: None,
        void_rounds: 0,
        figures,
    });
    Ok(())
}
