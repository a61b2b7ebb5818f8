//! The suite `stream`: what the stream door costs, over QUIC, TCP and the Kafka protocol.
//!
//! Beside the door stand the least servers over the same transports (see `echo`) and NATS JetStream, in the same
//! interleaved run. Durability is matched word for word: `on-commit` is compared with a floor that flushes each wave
//! before it answers, and with NATS that flushes before each acknowledgement.

mod drive;
mod echo;
mod floor;
mod frames;
mod kafka;
mod native;
mod nats;
mod publisher;
mod tls;

pub(crate) use echo::run as echo;

use crate::args::{Pacing, Transport};
use crate::bench::Bench;
use crate::error::Error;
use crate::report::Findings;

/// The cells by the names that `--only` takes.
pub(crate) const CELLS: [&str; 2] = ["commit", "memory"];

/// Rounds and seconds of a window.
pub(crate) const PACING: Pacing = Pacing { full: (5, 1.5), quick: (2, 0.4), smoke: (1, 0.05) };

/// Runs the suite.
pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::system("the generator's runtime"))?;
    runtime.block_on(try_floors(bench, &mut findings))?;
    Ok(findings)
}

async fn try_floors(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    use crate::cell::{Load, cell};
    use publisher::Publisher;
    for (name, transport, kind) in [
        ("floor tls ack", Transport::Tls, floor::Kind::Ack),
        ("floor tls echo", Transport::Tls, floor::Kind::Echo),
        ("floor quic ack", Transport::Quic, floor::Kind::Ack),
        ("floor quic echo", Transport::Quic, floor::Kind::Echo),
        ("floor tls durable", Transport::Tls, floor::Kind::Durable),
    ] {
        for (count, clients) in [(1usize, 1usize), (1, 12), (1, 64), (64, 1), (64, 12)] {
            let running = floor::start(bench, name, transport, kind)?;
            let payload = vec![7u8; 4096 * count];
            let mut publishers = Vec::new();
            for number in 0..clients {
                publishers.push(running.floor.connect(number as u32, &payload).await?);
            }
            let load = drive::Drive { name, pid: running.server.pid(), batch_bytes: payload.len() as u64, warm_up: bench.options.warm_up, window: bench.options.window };
            let (window, _) = drive::drive(&load, publishers).await?;
            (bench.progress)(&format!("{name} x{count} c{clients}: {:.0}/s {:.0} MB/s {:.3} ms CPU/MB p50 {:.0} us gen {:.2}", window.rate(), window.megabytes_per_s(), window.server_cpu.as_secs_f64()*1e9/window.body_bytes as f64, window.latency.quantile_us(0.5), window.generator_busy()));
            findings.cells.push(cell(Load { name: "ingest", pace: "closed", clients }, name, &[&window]));
        }
    }
    let Some(program) = nats::program() else { return Ok(()) };
    for storage in [nats::Storage::Memory, nats::Storage::FlushedFile] {
        for (count, clients) in [(1usize, 1usize), (1, 12), (1, 64), (64, 12)] {
            let server = nats::start(bench, &program, &bench.directory.join("nats"))?;
            let mut first = nats::Publisher::connect(server.address(), 9999).await.map_err(Error::system("nats"))?;
            first.create_stream(storage).await.map_err(Error::system("nats"))?;
            let mut publishers = Vec::new();
            for number in 0..clients {
                let connection = nats::Publisher::connect(server.address(), number).await.map_err(Error::system("nats"))?;
                publishers.push(Publisher::Nats { connection, payload: vec![7u8; 4096].into(), count });
            }
            let load = drive::Drive { name: nats::NAME, pid: server.pid(), batch_bytes: 4096 * count as u64, warm_up: bench.options.warm_up, window: bench.options.window };
            let (window, _) = drive::drive(&load, publishers).await?;
            first.delete_stream().await.map_err(Error::system("nats"))?;
            (bench.progress)(&format!("nats {storage:?} x{count} c{clients}: {:.0}/s {:.0} MB/s {:.3} ms CPU/MB p50 {:.0} us gen {:.2}", window.rate() * count as f64, window.megabytes_per_s(), window.server_cpu.as_secs_f64()*1e9/window.body_bytes as f64, window.latency.quantile_us(0.5), window.generator_busy()));
        }
    }
    Ok(())
}
