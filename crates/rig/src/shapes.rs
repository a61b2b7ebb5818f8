//! The suite `shapes`: what each kind of request costs, in multiples of the floor.
//!
//! For each shape a broker and a floor run side by side on the server's core, and the generator drives
//! first one, then the other, round after round: closed, which shows how much each can do, then paced at
//! the same rate, where their CPU per request is compared. Neighbours in time see the same machine, so the
//! ratio of a round is worth more than either figure.
//!
//! Before anything is counted each request is sent once and its answer is looked at; what it looks like is
//! then the expectation of every answer that follows.

mod shape;
mod stores;

use crate::bench::{Bench, Side};
use crate::broker::{self, Context, Store};
use crate::cell::Series;
use crate::error::Error;
use crate::generator::Pace;
use crate::limits;
use crate::report::Findings;
use crate::seed;
use shape::Shape;

/// The cells by the names that `--only` takes.
pub(crate) const CELLS: [&str; 5] = ["list", "retrieve", "patch", "create", "stores"];

/// Runs the suite.
pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    for shape in Shape::ALL {
        if bench.options.wants(shape.cell()) {
            measure(bench, shape, &mut findings)?;
        }
    }
    if bench.options.wants("stores") {
        stores::measure(bench, &mut findings)?;
    }
    Ok(findings)
}

fn measure(bench: &mut Bench<'_>, shape: Shape, findings: &mut Findings) -> Result<(), Error> {
    let mut broker = bench.start_broker(shape)?;
    let reply = shape.learn(&mut Context::connect(&broker.server)?, &mut broker.requests)?;
    let mut floor = bench.start_floor("the floor", &reply, &broker.requests, None)?;
    let (mut closed, mut paced) = (Series::default(), Series::default());
    // A round in which the pace was not kept is tried again, at most as often as there are rounds.
    for round in 1..=bench.options.attempts() {
        if paced.valid() >= bench.options.rounds {
            break;
        }
        (bench.progress)(&format!("{}: round {round} of {}", shape.name(), bench.options.rounds));
        if shape.grows() {
            shape.verify(&mut Context::connect(&broker.server)?, &broker.requests)?;
            broker = bench.start_broker_after(shape, broker)?;
        }
        let (of_floor, of_broker) =
            bench.pair(&mut floor, &mut broker, limits::SHAPE_CLIENTS, Pace::Closed)?;
        // What the broker can do now decides the rate of this round: the machine may be slower in the next.
        let rate = of_broker.rate() * limits::PACED_SHARE;
        closed.push(of_floor, of_broker);
        let (of_floor, of_broker) =
            bench.pair(&mut floor, &mut broker, limits::SHAPE_CLIENTS, Pace::Paced(rate))?;
        paced.push(of_floor, of_broker);
    }
    shape.verify(&mut Context::connect(&broker.server)?, &broker.requests)?;
    broker.server.stop()?;
    closed.report(shape.name(), "closed", limits::SHAPE_CLIENTS, findings);
    let cpu = paced.report(shape.name(), "paced", limits::SHAPE_CLIENTS, findings);
    findings.targets.push(shape.target(cpu, bench.options.judging()));
    Ok(())
}

impl Bench<'_> {
    /// A seeded broker on the memory store.
    fn start_broker(&mut self, shape: Shape) -> Result<Side, Error> {
        let server = broker::start(
            "the broker",
            self.program,
            Store::Memory,
            self.directory,
            self.options.server_core(),
        )?;
        seed_all(&mut Context::connect(&server)?)?;
        let requests = shape.requests(&server.address().to_string());
        Ok(Side { server, requests })
    }

    /// A fresh broker in the place of one that has grown; what it is asked continues.
    fn start_broker_after(&mut self, shape: Shape, before: Side) -> Result<Side, Error> {
        let serial = before.requests.serial();
        before.server.stop()?;
        let mut side = self.start_broker(shape)?;
        side.requests.start_at(serial);
        Ok(side)
    }
}

fn seed_all(context: &mut Context) -> Result<(), Error> {
    for number in 0..limits::SEEDED_ENTITIES {
        context.create(&seed::entity(&seed::seeded_id(number), number))?;
    }
    Ok(())
}
