//! The cell `limit`: everything at once, in little memory.
//!
//! A stream in memory and one on the disk, with publishers that are always busy over TLS and QUIC, readers that keep
//! up and readers that never read. What counts is the most that the process ever held (`VmHWM`, which has the mapped
//! pages of its files in it): a limit on a whole process can be set by whoever runs it, but not by every user who
//! measures, and a peak below it says the same. Nothing may be refused but as overloaded.

use std::collections::BTreeMap;

use trifid_stream_client::wire::frame::{Policy, Start};
use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{self, Door, Via};
use super::drive::{Cast, drive};
use super::native;
use super::stage::driving;
use crate::args::{Mode, Transport};
use crate::bench::Bench;
use crate::error::Error;
use crate::figures::Spread;
use crate::generator::Pace;
use crate::limits;
use crate::procfs;
use crate::report::{Cell, Findings};
use crate::verdict::{Bound, Target};

const SHAPE: Shape = Shape { records: 64, bytes: 4096 };
const STREAMS: [(&str, Durability); 2] =
    [("bench.limit-memory", Durability::Memory), ("bench.limit-disk", Durability::OnCommit)];
const MIB: f64 = 1024.0 * 1024.0;

/// Of each stream over each transport.
struct Crowd {
    publishers: usize,
    readers: usize,
    sleepers: usize,
}

impl Crowd {
    fn of(mode: Mode) -> Self {
        match mode {
            Mode::Smoke => Crowd { publishers: 2, readers: 1, sleepers: 1 },
            Mode::Full | Mode::Quick => Crowd { publishers: 12, readers: 5, sleepers: 2 },
        }
    }
}

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let door = Door::in_folder(bench, super::LIMIT)?;
    let crowd = Crowd::of(bench.options.mode);
    let batch = SHAPE.encoded();
    let (mut cast, mut sleepers) = (Cast::default(), Vec::new());
    for (stream, durability) in STREAMS {
        door.create(stream, durability).await?;
        for via in [Via::Tls, Via::Quic] {
            for _ in 0..crowd.sleepers {
                sleepers.push(sleeper(&door, via, stream).await?);
            }
            for _ in 0..crowd.readers {
                cast.readers.push(door.subscriber(via, stream, None).await?);
            }
            cast.publishers.extend(door.publishers(via, crowd.publishers, stream, SHAPE, &batch).await?);
        }
    }
    (bench.progress)("limit: everything at once");
    let mut load = driving(bench, &door.server, SHAPE, Pace::Closed);
    load.window = bench.options.window * 4;
    let (clients, driven) = (cast.publishers.len(), drive(&load, cast).await?);
    let peak = procfs::peak_bytes(door.server.pid()).map_err(Error::system("reading the server's memory"))?;
    drop(sleepers);
    // It still serves.
    door.create("bench.after", Durability::OnCommit).await?;
    door.server.stop()?;

    let peak_mib = Spread::once(peak as f64 / MIB);
    let bound = Bound::AtMost(limits::PROCESS_MIB_MAX);
    let name = "limit: the most MiB that the process held under everything at once";
    findings.targets.push(Target::judge(name, bound, None, Some(peak_mib), bench.options.judging()));
    let seconds = driven.window.wall.as_secs_f64();
    findings.cells.push(Cell {
        name: super::LIMIT.to_owned(),
        side: door::NAME.to_owned(),
        load: "closed",
        clients,
        offered_per_s: None,
        void_rounds: 0,
        figures: BTreeMap::from([
            ("peak_mib", peak_mib),
            ("mb_per_s", Spread::once(driven.window.body_bytes as f64 / 1e6 / seconds)),
            ("delivered_mb_per_s", Spread::once(driven.delivered.bytes as f64 / 1e6 / seconds)),
            ("overloaded_per_s", Spread::once(driven.window.refused.count() as f64 / seconds)),
        ]),
    });
    Ok(())
}

/// A subscription whose connection is never read.
async fn sleeper(door: &Door, via: Via, stream: &str) -> Result<native::Subscriber, Error> {
    let transport = if via == Via::Quic { Transport::Quic } else { Transport::Tls };
    let line = door.native.connect(transport).await.map_err(door::failed)?;
    line.subscriber(stream, Start::Latest, Policy::DropOld, None).await.map_err(door::failed)
}
