//! The suite `stream`: what the stream door costs, over QUIC, TCP and the Kafka protocol.
//!
//! Beside the door stand the least servers over the same transports (see `echo`) and NATS JetStream, in the same
//! interleaved run. Durability is matched word for word: `on-commit` is compared with a floor that flushes each wave
//! before it answers, and with NATS that flushes before each acknowledgement.
//!
//! ```text
//! ramp, batches, sizes   publishing, for each durability over each protocol       (ingest)
//! commit                 publishers of one stream that wait for the disk, beside a floor and NATS
//! memory                 CPU of a megabyte in multiples of the transport's        (transport)
//! fanout                 CPU of a delivered byte, 1 to 100 subscribers
//! idle                   memory of 10,000 subscriptions
//! cache                  put and get
//! latency                open loop: acknowledged, and delivered
//! recovery, limit        a gigabyte of log after a kill; everything at once in little memory
//! ```
//!
//! Every server has one worker, because the generator needs the other core of the smallest machine, and floors have
//! one thread. A part that fails is a missed target with the reason in its name.

mod batch;
mod cache;
mod commit;
mod door;
mod drive;
mod echo;
mod fanout;
mod floor;
mod frames;
mod idle;
mod ingest;
mod kafka;
mod latency;
mod limit;
mod native;
mod nats;
mod pace;
mod publisher;
mod recovery;
mod rounds;
mod stage;
mod tls;
mod transport;

pub(crate) use echo::run as echo;

use crate::args::{Mode, Pacing};
use crate::bench::Bench;
use crate::error::Error;
use crate::report::Findings;
use crate::server::Server;

const RAMP: &str = "ramp";
const BATCHES: &str = "batches";
const SIZES: &str = "sizes";
const COMMIT: &str = "commit";
const MEMORY: &str = "memory";
const FANOUT: &str = "fanout";
const IDLE: &str = "idle";
const CACHE: &str = "cache";
const LATENCY: &str = "latency";
const RECOVERY: &str = "recovery";
const LIMIT: &str = "limit";

/// The cells by the names that `--only` takes.
pub(crate) const CELLS: [&str; 11] =
    [COMMIT, MEMORY, FANOUT, IDLE, CACHE, LATENCY, RECOVERY, LIMIT, RAMP, BATCHES, SIZES];

/// Those of a quick run: everything that has a target, and caches.
const QUICK: [&str; 7] = [COMMIT, MEMORY, FANOUT, IDLE, RECOVERY, LIMIT, CACHE];

/// Rounds and seconds of a window: there are many cells.
pub(crate) const PACING: Pacing = Pacing { full: (5, 1.0), quick: (2, 0.2), smoke: (1, 0.05) };

/// Runs the suite.
pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Findings, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::system("the generator's runtime"))?;
    runtime.block_on(all(bench))
}

async fn all(bench: &mut Bench<'_>) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    for cell in CELLS.into_iter().filter(|cell| wants(bench, cell)).collect::<Vec<_>>() {
        let done = measure(bench, cell, &mut findings).await;
        bench.settled(cell, done, &mut findings)?;
    }
    Ok(findings)
}

fn wants(bench: &Bench<'_>, cell: &str) -> bool {
    let of_mode = bench.options.mode != Mode::Quick || QUICK.contains(&cell) || bench.options.names(cell);
    of_mode && bench.options.wants(cell)
}

async fn measure(bench: &mut Bench<'_>, cell: &'static str, findings: &mut Findings) -> Result<(), Error> {
    match cell {
        COMMIT => commit::measure(bench, findings).await,
        MEMORY => transport::measure(bench, findings).await,
        FANOUT => fanout::measure(bench, findings).await,
        IDLE => idle::measure(bench, findings).await,
        CACHE => cache::measure(bench, findings).await,
        LATENCY => latency::measure(bench, findings).await,
        RECOVERY => recovery::measure(bench, findings).await,
        LIMIT => limit::measure(bench, findings).await,
        cell => ingest::measure(bench, cell, findings).await,
    }
}

/// NATS, if it is there.
fn peer(bench: &mut Bench<'_>) -> Result<Option<Server>, Error> {
    let Some(program) = nats::program() else {
        (bench.progress)("NATS is not installed: what is compared with it is not measured");
        return Ok(None);
    };
    nats::start(bench, &program, &bench.directory.join("nats")).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_has_cells_of_the_suite() {
        assert!(QUICK.iter().all(|cell| CELLS.contains(cell)));
    }
}
