//! The cell `latency`: how late a record is acknowledged and delivered when the server has time.
//!
//! First publishers that are always busy find out what the server can do; then records come at three tenths of that
//! rate (but no faster than the generator can wake for each), evenly and whatever the server does, and each counts from
//! when it was due. There are more connections than are usually in flight, so that a record waits for the server and
//! not for the generator. The floor is offered the same.

use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{Door, Via};
use super::floor::{self, Kind, Running};
use super::rounds::{self, Round};
use super::stage::{self, Publish, Side};
use crate::args::{Mode, Transport};
use crate::bench::Bench;
use crate::cell::Load;
use crate::error::Error;
use crate::generator::Pace;
use crate::limits;
use crate::report::Findings;

const SHAPE: Shape = Shape { records: 1, bytes: 4096 };
/// Publishers that find out the rate.
const BUSY: usize = 12;

/// Connections of the paced load.
fn paced(mode: Mode) -> usize {
    if mode == Mode::Smoke { 6 } else { 64 }
}

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let door = Door::in_folder(bench, super::LATENCY)?;
    let durabilities = [
        ("memory", Durability::Memory, Kind::Ack, ["floor tls ack", "floor quic ack"]),
        ("on-commit", Durability::OnCommit, Kind::Durable, ["floor tls", "floor quic"]),
    ];
    for (name, durability, kind, [tls, quic]) in durabilities {
        let stream = format!("bench.latency-{name}");
        door.create(&stream, durability).await?;
        let tls = floor::start(bench, tls, Transport::Tls, kind)?;
        let quic = floor::start(bench, quic, Transport::Quic, kind)?;
        let name = format!("latency, {name}, 1 x 4096 B");
        for (via, floor) in [(Via::Tls, Some(&tls)), (Via::Quic, Some(&quic)), (Via::Kafka, None)] {
            let closed = Publish { name: &name, stream: &stream, durability, shape: SHAPE, clients: BUSY };
            one_way(bench, (&door, via, floor), closed, findings).await?;
        }
        door.delete(&stream).await?;
        tls.server.stop()?;
        quic.server.stop()?;
    }
    door.server.stop()
}

async fn one_way(
    bench: &mut Bench<'_>,
    (door, via, floor): (&Door, Via, Option<&Running>),
    closed: Publish<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let (name, batch) = (closed.name, SHAPE.encoded());
    let paced = Publish { clients: paced(bench.options.mode), ..closed };
    let (mut mine, mut floors): (Vec<Round>, Vec<Round>) = Default::default();
    for round in 1..=bench.options.rounds {
        (bench.progress)(&format!("{name}, {}: round {round} of {}", via.side(), bench.options.rounds));
        let found = stage::once(bench, Side::Door(door, via), closed, &batch, Pace::Closed).await?;
        let rate = found.window.rate() * limits::LATENCY_SHARE;
        let pace = Pace::Paced(rate.clamp(1.0, limits::LATENCY_RATE_MAX));
        if let Some(running) = floor {
            floors.push(stage::once(bench, Side::Floor(running), paced, &batch, pace).await?);
        }
        mine.push(stage::once(bench, Side::Delivering(door, via), paced, &batch, pace).await?);
    }
    let load = Load { name, pace: "evenly paced", clients: paced.clients };
    findings.cells.extend(floor.map(|running| rounds::cell(load, running.server.name(), &floors)));
    findings.cells.push(rounds::cell(load, via.side(), &mine));
    Ok(())
}
