//! The cell `recovery`: how fast a log is read again after the process was killed.
//!
//! One stream, published in a few seconds; each start has a copy of the files, for a start leaves behind what spares
//! the next one the reading. What counts are the bytes that the process has read, but no more than were published, over
//! the time from its start until it says where it listens, with everything else that a start does: what a server need
//! not read does not count. The files are in the page cache: what is measured is the scan, and not the disk.

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
use crate::procfs;
use crate::report::{Cell, Findings};
use crate::verdict::{Bound, Target};

const STREAM: &str = "bench.recovery";
const SHAPE: Shape = Shape { records: 64, bytes: 4096 };
const PUBLISHERS: usize = 4;
const KEPT_BYTES: u64 = 4 << 30;
/// Starts, at most: each copies the log.
const ROUNDS_MAX: usize = 3;

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
    let published_mb = published * SHAPE.bytes as f64 / 1e6;
    let (mut times, mut rates, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds.min(ROUNDS_MAX) {
        (bench.progress)(&format!("recovery: start {round}"));
        let copied = bench.directory.join(format!("{}-{round}", super::RECOVERY));
        copy(&folder, &copied).map_err(Error::file(&copied))?;
        let door = Door::start(bench, &copied, &[])?;
        let bytes = procfs::read_bytes(door.server.pid());
        let read_mb = bytes.map_err(Error::system("reading what the server has read"))? as f64 / 1e6;
        let ms = door.server.listened_after().as_secs_f64() * 1000.0;
        check(&door, published).await?;
        times.push(ms);
        read.push(read_mb);
        rates.push(read_mb.min(published_mb) / ms);
        door.server.kill()?;
        std::fs::remove_dir_all(&copied).map_err(Error::file(&copied))?;
    }
    let (times, rates) = (Spread::of(times), Spread::of(rates));
    let name = "recovery: GB a second, from the start of the process until it listens";
    let bound = Bound::AtLeast(limits::RECOVERY_GB_PER_S_MIN);
    findings.targets.push(Target::judge(name, bound, None, rates, bench.options.judging()));
    let figures = [
        ("published_mb", Some(Spread::once(published_mb))),
        ("read_mb", Spread::of(read)),
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

/// Publishes until enough is there, and kills the server. Answers how long it took to start, in milliseconds, and how
/// many records there are.
async fn fill(bench: &Bench<'_>, folder: &Path) -> Result<(f64, f64), Error> {
    let door = Door::start(bench, folder, &[])?;
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

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() { copy(&old, &new)? } else { std::fs::copy(&old, &new).map(drop)? }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::create_dir_all(from.join("c")).unwrap();
        std::fs::write(from.join("c/d"), "e").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::read_to_string(to.join("c/d")).unwrap(), "e");
    }
}
