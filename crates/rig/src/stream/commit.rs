//! The cell `commit`: publishers of one stream that each wait until their record is on the disk.
//!
//! What decides is whether commits gather: a server that flushes for each record serves sixty-four publishers hardly
//! faster than one. The floor gathers too: it does one write and one flush for everything that came meanwhile. NATS
//! has `sync_interval: always`, which promises the same; its connections are plain.

use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{Door, Via};
use super::floor::{self, Kind};
use super::rounds::{self, RATE, Round};
use super::stage::{self, Named, Publish, Side};
use super::{nats, peer};
use crate::args::{Mode, Transport};
use crate::bench::Bench;
use crate::cell::Load;
use crate::error::Error;
use crate::figures::Spread;
use crate::limits;
use crate::report::{Findings, Ratio};
use crate::verdict::{Bound, Target};

const STREAM: &str = "bench.commit";
const SHAPE: Shape = Shape { records: 1, bytes: 4096 };
const FLOOR_TLS: &str = "floor tls";
const FLOOR_QUIC: &str = "floor quic";

fn clients(mode: Mode) -> &'static [usize] {
    if mode == Mode::Smoke { &[1, 4] } else { &[1, 12, 64] }
}

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let door = Door::in_folder(bench, super::COMMIT)?;
    let tls = floor::start(bench, FLOOR_TLS, Transport::Tls, Kind::Durable)?;
    let quic = floor::start(bench, FLOOR_QUIC, Transport::Quic, Kind::Durable)?;
    let peer = peer(bench)?;
    let mut sides: Vec<Named<'_>> = Via::ALL.map(|via| (via.side(), Side::Door(&door, via))).to_vec();
    sides.extend([(FLOOR_TLS, Side::Floor(&tls)), (FLOOR_QUIC, Side::Floor(&quic))]);
    sides.extend(peer.iter().map(|server| (nats::NAME, Side::Nats(server, nats::Storage::FlushedFile))));
    door.create(STREAM, Durability::OnCommit).await?;
    let mut by_clients = Vec::new();
    for &clients in clients(bench.options.mode) {
        let durability = Durability::OnCommit;
        let load = Publish { name: super::COMMIT, stream: STREAM, durability, shape: SHAPE, clients };
        let of_sides = stage::rounds(bench, &sides, load).await?;
        report(bench, &sides, clients, &of_sides, findings);
        by_clients.push((clients, of_sides));
    }
    growth(&sides, &by_clients, findings);
    [door.server, tls.server, quic.server].into_iter().try_for_each(crate::server::Server::stop)
}

fn report(
    bench: &Bench<'_>,
    sides: &[Named<'_>],
    clients: usize,
    of_sides: &[Vec<Round>],
    findings: &mut Findings,
) {
    let load = Load { name: super::COMMIT, pace: "closed", clients };
    let side = |wanted: &str| {
        let found = sides.iter().zip(of_sides).find(|((name, _), _)| *name == wanted);
        found.map(|((name, _), rounds)| (*name, rounds.as_slice()))
    };
    for ((name, _), rounds) in sides.iter().zip(of_sides) {
        findings.cells.push(rounds::cell(load, name, rounds));
    }
    let compared = [
        (Via::Tls.side(), FLOOR_TLS, limits::COMMIT_OF_FLOOR_MIN),
        (Via::Quic.side(), FLOOR_QUIC, limits::COMMIT_OF_FLOOR_MIN),
        (Via::Tls.side(), nats::NAME, limits::COMMIT_OF_NATS_MIN),
    ];
    for (of, to, bound) in compared {
        let pair = side(of).zip(side(to));
        let ratio = pair.map(|(of, to)| rounds::ratio(load, RATE, of, to));
        if clients > 1 {
            let name = format!("commit, {clients} publishers: messages/s of {of}, multiple of {to}");
            let measured = ratio.as_ref().and_then(|ratio| ratio.multiple);
            let judging = bench.options.judging();
            findings.targets.push(Target::judge(&name, Bound::AtLeast(bound), None, measured, judging));
        }
        findings.ratios.extend(ratio);
    }
}

/// How much faster many publishers are than one, for each side.
fn growth(sides: &[Named<'_>], by_clients: &[(usize, Vec<Vec<Round>>)], findings: &mut Findings) {
    let (Some((_, one)), Some((clients, many))) = (by_clients.first(), by_clients.last()) else { return };
    for (((side, _), one), many) in sides.iter().zip(one).zip(many) {
        let rate = |round: &Round| (RATE.1)(round);
        let multiple = Spread::of(many.iter().zip(one).map(|(many, one)| rate(many) / rate(one)));
        findings.ratios.push(Ratio {
            name: super::COMMIT.to_owned(),
            load: "closed",
            clients: *clients,
            figure: RATE.0,
            of: (*side).to_owned(),
            to: format!("{side} with one publisher"),
            multiple,
        });
    }
}
