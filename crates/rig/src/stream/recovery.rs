//! The cell `recovery`: how fast a log is read again after the process was killed.
//!
//! One stream of one segment, so that all of it has to be followed and checked. The time is that from the start of the
//! process until it says where it listens; everything else that a start does is in it. The files are in the page
//! cache: what is measured is the scan, and not the disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{self, Door, Via};
use super::drive::{Cast, drive};
use super::stage::driving;
use crate::args::Mode;
use crate::bench::Bench;
use crate::error::Error;
use crate::figures::Spread;
use crate::generator::Pace;
use crate::limits;
use crate::report::{Cell, Findings};
use crate::verdict::{Bound, Target};

const STREAM: &str = "bench.recovery";
const SHAPE: Shape = Shape { records: 64, bytes: 4096 };
const PUBLISHERS: usize = 4;
/// Bytes of a segment: all fit into one.
const SEGMENT: &str = "1536MiB";
const KEPT_BYTES: u64 = 4 << 30;

/// Records that are published before the server is killed.
fn records(mode: Mode) -> f64 {
    let bytes = if mode == Mode::Smoke { 4 << 20 } else { 1u64 << 30 };
    bytes as f64 / SHAPE.bytes as f64
}

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let folder = door::folder(bench, super::RECOVERY)?;
    (bench.progress)("recovery: filling a log");
    let (empty_ms, published) = fill(bench, &folder).await?;
    let log_mb = log_bytes(&folder).map_err(Error::file(&folder))? as f64 / 1e6;
    let (mut times, mut rates) = (Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds.min(3) {
        (bench.progress)(&format!("recovery: start {round}"));
        let door = start(bench, &folder)?;
        let ms = door.server.listened_after().as_secs_f64() * 1000.0;
        check(&door, published).await?;
        times.push(ms);
        rates.push(published * SHAPE.bytes as f64 / 1e6 / ms);
        door.server.kill()?;
    }
    let (times, rates) = (Spread::of(times), Spread::of(rates));
    let name = "recovery: GB a second, from the start of the process until it listens";
    let bound = Bound::AtLeast(limits::RECOVERY_GB_PER_S_MIN);
    findings.targets.push(Target::judge(name, bound, None, rates, bench.options.judging()));
    let figures = [
        ("log_mb", Some(Spread::once(log_mb))),
        ("empty_start_ms", Some(Spread::once(empty_ms))),
        ("start_ms", times),
        ("gb_per_s", rates),
    ];
    findings.cells.push(Cell {
        name: super::RECOVERY.to_owned(),
        side: door::NAME.to_owned(),
        load: "killed and started",
        clients: 0,
        offered_per_s: None,
        void_rounds: 0,
        figures: BTreeMap::from_iter(figures.into_iter().filter_map(|(name, spread)| Some((name, spread?)))),
    });
    Ok(())
}

fn start(bench: &Bench<'_>, folder: &Path) -> Result<Door, Error> {
    Door::start(bench, folder, &[("stream.segment", SEGMENT.as_ref())])
}

/// Publishes until enough is there, and kills the server. Answers how long it took to start, in milliseconds, and how
/// many records there are.
async fn fill(bench: &Bench<'_>, folder: &Path) -> Result<(f64, f64), Error> {
    let door = start(bench, folder)?;
    let empty_ms = door.server.listened_after().as_secs_f64() * 1000.0;
    door.create_keeping(STREAM, Durability::PERIODIC, KEPT_BYTES).await?;
    let batch = SHAPE.encoded();
    let wanted = records(bench.options.mode);
    let mut published = 0.0;
    while published < wanted {
        let publishers = door.publishers(Via::Tls, PUBLISHERS, STREAM, SHAPE, &batch).await?;
        let mut piece = driving(bench, &door.server, SHAPE, Pace::Closed);
        (piece.warm_up, piece.window) = (Duration::ZERO, Duration::from_millis(20));
        drive(&piece, Cast { publishers, ..Cast::default() }).await?;
        published = door.counted(STREAM)?.1;
    }
    door.server.kill()?;
    Ok((empty_ms, published))
}

/// Everything that was acknowledged is there: the end of the stream is where it was.
async fn check(door: &Door, published: f64) -> Result<(), Error> {
    let next = door.subscriber(Via::Tls, STREAM, None).await?.next_offset();
    if next as f64 >= published {
        return Ok(());
    }
    let what = format!("{published} records were acknowledged, {next} are there");
    Err(Error::Wrong { name: door::NAME, what })
}

/// Bytes on the disk of the files in a folder.
fn log_bytes(folder: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { log_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(sum)
}
