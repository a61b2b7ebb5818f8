//! The cell `memory`: the server's CPU for a megabyte that is published to a stream in memory, and delivered from it,
//! in multiples of what the transport costs.
//!
//! Publishing is compared with the floor that takes the same bytes and acknowledges them (`ack`); this is what is
//! judged, because a floor that also sends everything back would hide a server's own work behind a second passage of
//! TLS. Publishing and delivering to one subscriber is compared with the floor that sends everything back (`echo`):
//! each byte goes in and out once on both sides.

use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{Door, Via};
use super::floor::{self, Kind, Running};
use super::rounds::{self, CPU};
use super::stage::{self, Named, Publish, Side};
use super::{nats, peer};
use crate::args::Transport;
use crate::bench::Bench;
use crate::cell::Load;
use crate::error::Error;
use crate::limits;
use crate::report::Findings;
use crate::server::Server;
use crate::verdict::{Bound, Target};

const STREAM: &str = "bench.memory";
const SHAPE: Shape = Shape { records: 64, bytes: 4096 };
const CLIENTS: usize = 12;
const LOAD: Load<'static> = Load { name: super::MEMORY, pace: "closed", clients: CLIENTS };

/// A transport, and what its sides are called.
struct Compared {
    via: Via,
    transport: Transport,
    ack: &'static str,
    echo: &'static str,
    delivering: &'static str,
    cpu_max: f64,
}

const COMPARED: [Compared; 2] = [
    Compared {
        via: Via::Tls,
        transport: Transport::Tls,
        ack: "floor tls ack",
        echo: "floor tls echo",
        delivering: "tls delivering",
        cpu_max: limits::MEMORY_TLS_CPU,
    },
    Compared {
        via: Via::Quic,
        transport: Transport::Quic,
        ack: "floor quic ack",
        echo: "floor quic echo",
        delivering: "quic delivering",
        cpu_max: limits::MEMORY_QUIC_CPU,
    },
];

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let door = Door::in_folder(bench, super::MEMORY)?;
    door.create(STREAM, Durability::Memory).await?;
    let peer = peer(bench)?;
    for compared in &COMPARED {
        let ack = floor::start(bench, compared.ack, compared.transport, Kind::Ack)?;
        let echo = floor::start(bench, compared.echo, compared.transport, Kind::Echo)?;
        transport(bench, &door, compared, (&ack, &echo, peer.as_ref()), findings).await?;
        ack.server.stop()?;
        echo.server.stop()?;
    }
    door.server.stop()
}

async fn transport(
    bench: &mut Bench<'_>,
    door: &Door,
    compared: &Compared,
    (ack, echo, peer): (&Running, &Running, Option<&Server>),
    findings: &mut Findings,
) -> Result<(), Error> {
    let via = compared.via;
    let mut sides: Vec<Named<'_>> = vec![
        (compared.ack, Side::Floor(ack)),
        (via.side(), Side::Door(door, via)),
        (compared.echo, Side::Floor(echo)),
        (compared.delivering, Side::Delivering(door, via)),
    ];
    // For information, once: its connections are plain.
    let of_peer = |server| (nats::NAME, Side::Nats(server, nats::Storage::Memory));
    sides.extend(peer.filter(|_| via == Via::Tls).map(of_peer));
    let durability = Durability::Memory;
    let load = Publish { name: super::MEMORY, stream: STREAM, durability, shape: SHAPE, clients: CLIENTS };
    let of_sides = stage::rounds(bench, &sides, load).await?;
    let named: Vec<_> = sides.iter().zip(&of_sides).map(|((name, _), rounds)| (*name, &rounds[..])).collect();
    findings.cells.extend(named.iter().map(|(name, rounds)| rounds::cell(LOAD, name, rounds)));
    let ingest = rounds::ratio(LOAD, CPU, named[1], named[0]);
    let delivering = rounds::ratio(LOAD, CPU, named[3], named[2]);
    let name = format!("memory, 4 KiB, batch 64: CPU per MB of {}, multiple of {}", via.side(), compared.ack);
    let (bound, judging) = (Bound::AtMost(compared.cpu_max), bench.options.judging());
    findings.targets.push(Target::judge(&name, bound, None, ingest.multiple, judging));
    findings.ratios.extend([ingest, delivering]);
    Ok(())
}
