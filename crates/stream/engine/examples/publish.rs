//! How long a publish and a delivery take inside the engine, in memory: `cargo run --release --example
//! publish`.
//!
//! One thread publishes checked batches; subscribers at the head take each batch as it comes. Checking (the
//! checksum) is timed apart, because a face does it before the shard's lock.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use trifid_stream_engine::{Broker, Checked, ConnectionBudget, Cursor, Options, Policy, Shard, Start, Step};
use trifid_stream_model::batch::{BatchBuilder, BuildOptions, RecordData};
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

type Answer<T> = Result<T, Box<dyn Error>>;

fn main() -> Answer<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(20_000), |text| text.parse())?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:>8} {:>6} {:>10} {:>12} {:>14}",
        "bytes", "subs", "check ns", "publish ns", "ns/delivery"
    )?;
    for bytes in [256, 4096, 65_536] {
        for subscribers in [0, 1, 10, 100] {
            let line = measure(bytes, subscribers, rounds / (1 + subscribers / 4))?;
            writeln!(out, "{bytes:>8} {subscribers:>6} {line}")?;
        }
    }
    writeln!(out, "{} bytes per idle subscription, of {IDLE}", idle()?)?;
    Ok(())
}

const IDLE: usize = 10_000;

/// What the process grows by for each subscription that waits.
fn idle() -> Answer<usize> {
    let broker = Broker::open(Options::memory())?;
    let stream = broker.create(&Tenant::default(), &StreamName::new("idle")?, StreamSpec::memory(4))?;
    let before = resident_bytes()?;
    let begin = |n: usize| stream.shards()[n % 4].subscribe(Start::Latest, Policy::DropOld, 1 << 20);
    let mut cursors = (0..IDLE).map(begin).collect::<Result<Vec<_>, _>>()?;
    deliver(&mut cursors)?;
    Ok(resident_bytes()?.saturating_sub(before) / cursors.len())
}

fn resident_bytes() -> Answer<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}

fn measure(bytes: usize, subscribers: usize, rounds: usize) -> Answer<String> {
    let broker = Broker::open(Options::memory())?;
    let tenant = Tenant::default();
    let stream = broker.create(&tenant, &StreamName::new("measured")?, StreamSpec::memory(1))?;
    let shard = stream.shard(0).ok_or("a stream has a shard")?;
    let budget = broker.connection(&tenant, 16 << 20);
    let batch = batch(bytes)?;
    let begin = |_| shard.subscribe(Start::Latest, Policy::DropOld, 1 << 20);
    let mut cursors = (0..subscribers).map(begin).collect::<Result<Vec<_>, _>>()?;
    let (mut checking, mut publishing, mut delivering) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    deliver(&mut cursors)?;
    for _ in 0..rounds {
        // What a face reads from its socket: bytes of its own.
        let arrived = Bytes::copy_from_slice(&batch);
        let started = Instant::now();
        let checked = Checked::payload(&arrived, 1 << 20)?;
        drop(arrived);
        let is_checked = Instant::now();
        publish(shard, checked, &budget)?;
        let is_published = Instant::now();
        deliver(&mut cursors)?;
        checking += is_checked - started;
        publishing += is_published - is_checked;
        delivering += is_published.elapsed();
    }
    let each = |span: Duration| span.as_nanos() / rounds.max(1) as u128;
    let delivery = if subscribers == 0 { 0 } else { each(delivering) / subscribers as u128 };
    Ok(format!("{:>10} {:>12} {delivery:>14}", each(checking), each(publishing)))
}

fn publish(shard: &Arc<Shard>, batch: Checked, budget: &Arc<ConnectionBudget>) -> Answer<()> {
    let admitted = budget.admit(batch.bytes())?;
    let published = shard.publish(batch, admitted)?;
    if published.ack.is_ready() { Ok(()) } else { Err("in memory a publish counts at once".into()) }
}

/// Every subscriber takes what there is and waits again.
fn deliver(cursors: &mut [Cursor]) -> Answer<()> {
    let mut cx = Context::from_waker(Waker::noop());
    for cursor in cursors {
        while let Poll::Ready(step) = cursor.poll_next(&mut cx, 1 << 20) {
            let Step::Batches(_) = step else { return Err(format!("not a batch: {step:?}").into()) };
        }
    }
    Ok(())
}

fn batch(bytes: usize) -> Answer<Bytes> {
    let mut builder = BatchBuilder::new(BuildOptions::default());
    let value = vec![7; bytes];
    builder.append(&RecordData { timestamp: 1, key: None, value: Some(&value), headers: &[] })?;
    Ok(builder.finish(None)?.ok_or("the batch has a record")?)
}
