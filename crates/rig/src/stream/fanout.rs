//! The cell `fanout`: batches of a stream in memory, delivered to one, ten and a hundred subscribers with a connection
//! each.
//!
//! A batch is published anew when all have it, so nothing is queued that is not under way, and the slowest decides.
//! What is compared is the server's CPU for each delivered byte; the share of taking the batch in is in it, which one
//! subscriber bears alone. Every subscriber checks that offsets come once and in order.

use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{Door, Via};
use super::drive::{Cast, drive};
use super::rounds::{self, CPU, Round};
use super::stage::driving;
use crate::args::Mode;
use crate::bench::Bench;
use crate::cell::Load;
use crate::error::Error;
use crate::figures::Spread;
use crate::generator::Pace;
use crate::limits;
use crate::report::{Findings, Ratio};
use crate::verdict::{Bound, Target};

const STREAM: &str = "bench.fanout";
const SHAPE: Shape = Shape { records: 16, bytes: 4096 };
/// Batches under way.
const PUBLISHERS: usize = 4;

fn readers(mode: Mode) -> &'static [usize] {
    if mode == Mode::Smoke { &[1, 3] } else { &[1, 10, 100] }
}

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let door = Door::in_folder(bench, super::FANOUT)?;
    door.create(STREAM, Durability::Memory).await?;
    let readers = readers(bench.options.mode);
    for via in [Via::Tls, Via::Quic] {
        let mut of_sides: Vec<Vec<Round>> = readers.iter().map(|_| Vec::new()).collect();
        for round in 1..=bench.options.rounds {
            (bench.progress)(&format!("fan-out, {}: round {round} of {}", via.side(), bench.options.rounds));
            for (count, rounds) in readers.iter().zip(&mut of_sides) {
                rounds.push(once(bench, &door, via, *count).await?);
            }
        }
        report(bench, via, readers, &of_sides, findings);
    }
    door.server.stop()
}

async fn once(bench: &Bench<'_>, door: &Door, via: Via, readers: usize) -> Result<Round, Error> {
    let batch = SHAPE.encoded();
    let expected = (!bench.options.judging()).then(|| batch.clone());
    let mut cast = Cast { until_delivered: true, ..Cast::default() };
    for _ in 0..readers {
        cast.readers.push(door.subscriber(via, STREAM, expected.clone()).await?);
    }
    cast.publishers = door.publishers(via, PUBLISHERS, STREAM, SHAPE, &batch).await?;
    let driven = drive(&driving(bench, &door.server, SHAPE, Pace::Closed), cast).await?;
    let (messages, bytes) = (driven.delivered.records, driven.delivered.bytes);
    Ok(Round { window: driven.window, messages, bytes, delivery: driven.delivery, flushes: None })
}

fn report(bench: &Bench<'_>, via: Via, readers: &[usize], of_sides: &[Vec<Round>], findings: &mut Findings) {
    for (count, rounds) in readers.iter().zip(of_sides) {
        let name = format!("fan-out to {count}");
        let load = Load { name: &name, pace: "closed", clients: *count };
        findings.cells.push(rounds::cell(load, via.side(), rounds));
    }
    let (Some(one), Some(many), Some(count)) = (of_sides.first(), of_sides.last(), readers.last()) else {
        return;
    };
    let name = format!("fan-out to {count}");
    let load = Load { name: &name, pace: "closed", clients: *count };
    let ratio = rounds::ratio(load, CPU, (via.side(), many), (via.side(), one));
    let measured: Option<Spread> = ratio.multiple;
    findings.ratios.push(Ratio { to: format!("{} with one subscriber", via.side()), ..ratio });
    let name = format!("fan-out to {count}: CPU per delivered MB of {}, multiple of one's", via.side());
    let bound = Bound::AtMost(limits::FANOUT_CPU);
    findings.targets.push(Target::judge(&name, bound, None, measured, bench.options.judging()));
}
