//! The cells `ramp`, `batches` and `sizes`: what publishing costs by publishers, by records of a batch and by bytes of
//! a record, for each durability over each protocol. They are reported without a target.

use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{Door, Via};
use super::rounds;
use super::stage::{self, Named, Publish, Side};
use crate::args::Mode;
use crate::bench::Bench;
use crate::cell::Load;
use crate::error::Error;
use crate::report::Findings;

/// Durabilities by their names.
pub(super) const DURABILITIES: [(&str, Durability); 3] =
    [("memory", Durability::Memory), ("periodic", Durability::PERIODIC), ("on-commit", Durability::OnCommit)];

/// The usual record, and the usual number of publishers.
const BYTES: usize = 4096;
const CLIENTS: usize = 12;

/// What one cell goes through.
struct Plan {
    clients: Vec<usize>,
    shapes: Vec<Shape>,
}

impl Plan {
    fn of(cell: &str, mode: Mode) -> Self {
        let one = Shape { records: 1, bytes: BYTES };
        let mut plan = match cell {
            super::RAMP => Plan { clients: vec![1, 3, 6, 12, 24], shapes: vec![one] },
            super::BATCHES => Plan {
                clients: vec![CLIENTS],
                shapes: [1, 16, 64].map(|records| Shape { records, bytes: BYTES }).to_vec(),
            },
            _ => Plan {
                clients: vec![CLIENTS],
                shapes: [256, 1024, 4096, 16 << 10].map(|bytes| Shape { records: 1, bytes }).to_vec(),
            },
        };
        if mode == Mode::Smoke {
            plan.clients = vec![2];
            plan.shapes = plan.shapes.into_iter().take(2).collect();
        }
        plan
    }
}

/// Measures one of the three and adds to the findings.
pub(super) async fn measure(
    bench: &mut Bench<'_>,
    cell: &'static str,
    findings: &mut Findings,
) -> Result<(), Error> {
    let door = Door::in_folder(bench, cell)?;
    let plan = Plan::of(cell, bench.options.mode);
    for (durability_name, durability) in DURABILITIES {
        for &shape in &plan.shapes {
            let stream = format!("bench.{durability_name}-{}x{}", shape.records, shape.bytes);
            door.create(&stream, durability).await?;
            let name = format!("{cell}, {durability_name}, {} x {} B", shape.records, shape.bytes);
            for &clients in &plan.clients {
                let load = Publish { name: &name, stream: &stream, durability, shape, clients };
                publish(bench, &door, load, findings).await?;
            }
            door.delete(&stream).await?;
        }
    }
    door.server.stop()
}

async fn publish(
    bench: &mut Bench<'_>,
    door: &Door,
    load: Publish<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let sides: Vec<Named<'_>> = Via::ALL.map(|via| (via.side(), Side::Door(door, via))).to_vec();
    let of_sides = stage::rounds(bench, &sides, load).await?;
    let described = Load { name: load.name, pace: "closed", clients: load.clients };
    for ((side, _), of_side) in sides.iter().zip(&of_sides) {
        findings.cells.push(rounds::cell(described, side, of_side));
    }
    Ok(())
}
