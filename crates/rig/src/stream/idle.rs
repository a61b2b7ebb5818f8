//! The cell `idle`: what subscriptions cost in memory on which nothing comes.
//!
//! A hundred connections with a hundred subscriptions each. What counts is how much more the server holds than before
//! they came, connections and their handshakes included. Then one record is published, and every subscription must be
//! given it: they were idle, and not dead.

use std::collections::BTreeMap;
use std::time::Duration;

use trifid_stream_client::wire::frame::{Policy, Reply, Start};
use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{self, Door, Via};
use super::native::{Line, subscribe};
use crate::args::{Mode, Transport};
use crate::bench::Bench;
use crate::error::Error;
use crate::figures::Spread;
use crate::limits;
use crate::procfs;
use crate::report::{Cell, Findings};
use crate::verdict::{Bound, Target};

const STREAM: &str = "bench.idle";
const SHAPE: Shape = Shape { records: 1, bytes: 100 };
/// Bytes that each subscription may be sent.
const CREDIT_BYTES: u64 = 64 << 10;
/// The id of the first subscription of a connection.
const FIRST_ID: u32 = 100;

/// Connections, and subscriptions of each.
fn counts(mode: Mode) -> (usize, u32) {
    if mode == Mode::Smoke { (3, 7) } else { (100, 100) }
}

/// How long the server is left alone before its memory is read.
fn settle(mode: Mode) -> Duration {
    match mode {
        Mode::Full => Duration::from_secs(2),
        Mode::Quick => Duration::from_millis(500),
        Mode::Smoke => Duration::from_millis(20),
    }
}

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    for (side, transport) in [(Via::Tls.side(), Transport::Tls), (Via::Quic.side(), Transport::Quic)] {
        (bench.progress)(&format!("idle subscriptions, {side}"));
        let door = Door::in_folder(bench, &format!("{}-{transport:?}", super::IDLE))?;
        door.create(STREAM, Durability::Memory).await?;
        one_transport(bench, &door, side, transport, findings).await?;
        door.server.stop()?;
    }
    Ok(())
}

async fn one_transport(
    bench: &mut Bench<'_>,
    door: &Door,
    side: &'static str,
    transport: Transport,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mode = bench.options.mode;
    let (connections, each) = counts(mode);
    tokio::time::sleep(settle(mode)).await;
    let before = resident_mb(door)?;
    let mut lines = Vec::with_capacity(connections);
    for _ in 0..connections {
        lines.push(subscribed(door, transport, each).await?);
    }
    tokio::time::sleep(settle(mode)).await;
    let grown = resident_mb(door)? - before;
    let batch = SHAPE.encoded();
    let publisher = door.publishers(Via::Tls, 1, STREAM, SHAPE, &batch).await?.pop();
    publisher.expect("one was asked for").publish().await.map_err(door::failed)?;
    for line in &mut lines {
        delivered(line, each).await?;
    }
    let subscriptions = connections as u64 * u64::from(each);
    let name = format!("{subscriptions} idle subscriptions, {side}: MB that the server grows");
    let bound = Bound::AtMost(limits::IDLE_SUBSCRIPTIONS_MB_MAX);
    let (measured, judging) = (Some(Spread::once(grown)), bench.options.judging());
    findings.targets.push(Target::judge(&name, bound, None, measured, judging));
    findings.cells.push(Cell {
        name: "idle subscriptions".to_owned(),
        side: side.to_owned(),
        load: "idle",
        clients: connections,
        offered_per_s: None,
        void_rounds: 0,
        figures: BTreeMap::from([
            ("before_mb", Spread::once(before)),
            ("grown_mb", Spread::once(grown)),
            ("subscriptions", Spread::once(subscriptions as f64)),
            ("bytes_each", Spread::once(grown * 1e6 / subscriptions as f64)),
        ]),
    });
    Ok(())
}

fn resident_mb(door: &Door) -> Result<f64, Error> {
    let bytes = procfs::resident_bytes(door.server.pid());
    Ok(bytes.map_err(Error::system("reading the server's memory"))? as f64 / 1e6)
}

/// A connection with so many subscriptions.
async fn subscribed(door: &Door, transport: Transport, each: u32) -> Result<Line, Error> {
    let mut line = door.native.connect(transport).await.map_err(door::failed)?;
    for number in 0..each {
        let request = subscribe(STREAM, Start::Latest, Policy::Block, CREDIT_BYTES).map_err(door::failed)?;
        match line.ask(&request, FIRST_ID + number).await.map_err(door::failed)? {
            Reply::Subscribed(_) => {}
            other => return Err(wrong(format!("not subscribed: {other:?}"))),
        }
    }
    Ok(line)
}

/// Every subscription of the connection is given its one batch.
async fn delivered(line: &mut Line, each: u32) -> Result<(), Error> {
    let mut waiting: Vec<bool> = (0..each).map(|_| true).collect();
    for _ in 0..each {
        let reply = tokio::time::timeout(limits::ANSWER_WAIT, line.reply()).await;
        let silent = |_| Error::Silent { name: door::NAME, seconds: limits::ANSWER_WAIT.as_secs() };
        let (id, reply) = reply.map_err(silent)?.map_err(door::failed)?;
        let place = waiting.get_mut(id.wrapping_sub(FIRST_ID) as usize);
        match (place, reply) {
            (Some(place @ true), Reply::Batch(_)) => *place = false,
            (_, other) => return Err(wrong(format!("to subscription {id}: {other:?}"))),
        }
    }
    Ok(())
}

fn wrong(what: String) -> Error {
    Error::Wrong { name: door::NAME, what }
}
