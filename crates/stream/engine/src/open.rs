//! Opening and beginning the shards of a stream.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trifid_base_log::{Frame, LogId, Position, Progress, Replay, ReplayFrom};
use trifid_stream_model::batch::BatchHeader;

use crate::catalogue::{Catalogue, Listed};
use crate::checked::claim;
use crate::error::{CreateError, OpenError};
use crate::limits::{Limits, OPENERS_MAX};
use crate::producers::Producers;
use crate::room::Room;
use crate::shard::{Beginning, Core, Shard, Stored};
use crate::snapshot;
use crate::store::{CATALOGUE, Dir, ShardLog, log_id};
use crate::streams::streams_of;

/// What waits for the disk is bounded by admission; the logs' own bound stands behind it, and is never met in
/// the middle of a publish.
pub(crate) fn log_options(logs: trifid_base_log::Options, limits: &Limits) -> trifid_base_log::Options {
    let inflight_bytes_max = logs.inflight_bytes_max.max(limits.process_inflight_bytes.saturating_mul(4));
    trifid_base_log::Options { inflight_bytes_max, ..logs }
}

/// Goes on with removals that were begun, and finds the logs that belong to no stream: those are left alone,
/// and their numbers are not used.
pub(crate) fn sort_out(dir: &Dir, catalogue: &Catalogue) -> Result<Found, OpenError> {
    for (id, shards) in catalogue.deleted() {
        let removed = (0..shards).try_for_each(|shard| dir.remove(log_id(id, shard)));
        match removed {
            Ok(()) => drop(catalogue.removed(id)),
            Err(error) => tracing::warn!(id, %error, "the files of a deleted stream could not be removed"),
        }
    }
    let streams = catalogue.streams();
    let deleted = catalogue.deleted();
    let is_known = |log: &LogId| {
        let of = |id: u64, shards: u32| (0..shards).any(|shard| log_id(id, shard) == *log);
        *log == CATALOGUE
            || streams
                .iter()
                .any(|listed| listed.spec.durability.is_durable() && of(listed.id, listed.spec.shards))
            || deleted.iter().any(|(id, shards)| of(*id, *shards))
    };
    let logs =
        dir.list().map_err(|source| OpenError::Io { action: "listing", path: "log".into(), source })?;
    let orphans: Vec<LogId> = logs.iter().filter(|log| !is_known(log)).copied().collect();
    streams_of(&orphans).into_iter().for_each(|id| catalogue.skip_id(id));
    for log in &orphans {
        tracing::warn!(%log, "a log belongs to no stream; it is left alone");
    }
    Ok(Found { orphans: orphans.iter().map(LogId::to_string).collect(), logs: logs.into_iter().collect() })
}

/// What lies in a directory.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) orphans: Vec<String>,
    pub(crate) logs: BTreeSet<LogId>,
}

/// What shards are opened with.
pub(crate) struct Opening<'a> {
    pub(crate) room: &'a Arc<Room>,
    pub(crate) dir: Option<&'a Arc<Dir>>,
}

impl Opening<'_> {
    /// The shards of all streams that were there before, in the order of the list. Several threads read at
    /// once; the first failure ends it.
    pub(crate) fn reopen_all(
        &self,
        listed: &[Listed],
        found: &Found,
    ) -> Result<Vec<Vec<Arc<Shard>>>, OpenError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut opened = Vec::new();
            while let Some(stream) = listed.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.reopen(stream, found) {
                    Ok(shards) => opened.push((stream.id, shards)),
                    Err(error) => {
                        next.store(listed.len(), Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(opened)
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = cores.min(OPENERS_MAX).min(listed.len()).max(1);
        let opened = std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let joined = helpers.into_iter().map(|helper| match helper.join() {
                Ok(opened) => opened,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(own).chain(joined).collect::<Result<Vec<_>, _>>()
        })?;
        // By number, as the list is.
        let by_id: BTreeMap<u64, Vec<Arc<Shard>>> = opened.into_iter().flatten().collect();
        Ok(by_id.into_values().collect())
    }

    /// The shards of a stream that was there before.
    fn reopen(&self, listed: &Listed, found: &Found) -> Result<Vec<Arc<Shard>>, OpenError> {
        (0..listed.spec.shards).map(|index| self.reopen_shard(listed, index, found)).collect()
    }

    fn reopen_shard(&self, listed: &Listed, index: u32, found: &Found) -> Result<Arc<Shard>, OpenError> {
        let Some(dir) = self.durable(listed) else {
            // What it held is gone, and who published it may come back.
            return Ok(self.in_memory(listed, index, true));
        };
        let id = log_id(listed.id, index);
        if !found.logs.contains(&id) {
            let (tenant, stream) = (listed.tenant.clone(), listed.name.clone());
            return Err(OpenError::Missing { tenant, stream, shard: index, log: id });
        }
        self.on_disk(dir, listed, index).map_err(|source| failed(listed, index, source))
    }

    /// A shard that was not there before.
    pub(crate) fn begin(&self, listed: &Listed, index: u32) -> Result<Arc<Shard>, CreateError> {
        let Some(dir) = self.durable(listed) else { return Ok(self.in_memory(listed, index, false)) };
        self.on_disk(dir, listed, index).map_err(|error| {
            let told = &error as &dyn Error;
            tracing::warn!(stream = %listed.name, index, error = told, "a log could not be begun");
            match error {
                trifid_base_log::OpenError::Io { source, .. } if source.kind() == ErrorKind::StorageFull => {
                    CreateError::NoSpace
                }
                _ => CreateError::Failed,
            }
        })
    }

    fn durable(&self, listed: &Listed) -> Option<&Arc<Dir>> {
        self.dir.filter(|_| listed.spec.durability.is_durable())
    }

    fn in_memory(&self, listed: &Listed, index: u32, forgot: bool) -> Arc<Shard> {
        let producers = Producers::new(self.room.limits.producers_max, forgot);
        let beginning = Beginning {
            label: label(listed, index),
            start: 0,
            next: 0,
            epoch: 0,
            producers,
            stored: Stored::default(),
        };
        Shard::new(Core::new(self.room.clone(), &listed.spec, beginning), None)
    }

    fn on_disk(
        &self,
        dir: &Arc<Dir>,
        listed: &Listed,
        index: u32,
    ) -> Result<Arc<Shard>, trifid_base_log::OpenError> {
        let (id, settings) = (log_id(listed.id, index), dir.settings(&listed.spec));
        let max = self.room.limits.producers_max;
        let snapshot = dir.read_producers(id).and_then(|bytes| snapshot::decode(&bytes, max));
        let mut replay = Producing::new(label(listed, index), self.room.now_ms(), Producers::new(max, false));
        let mut from = ReplayFrom::Start;
        let mut stored = Stored::default();
        if let Some(snapshot) = snapshot {
            from = ReplayFrom::Position(Position::new(snapshot.offset));
            replay.producers = snapshot.producers;
            stored = Stored { offset: snapshot.offset, cleaned: snapshot.cleaned, bytes_since: 0 };
        } else if listed.spec.compact {
            // Whoever's batches were compacted away is not found by reading the log.
            replay.producers = Producers::new(max, true);
        }
        let opened = match dir.recover(id, settings.clone(), from, &mut replay) {
            // The snapshot is of another time than the log: what was not flushed is gone, or the front is.
            Err(
                error @ (trifid_base_log::OpenError::Behind { .. }
                | trifid_base_log::OpenError::Truncated { .. }),
            ) => {
                // Of a stream that is acknowledged after the flush, only somebody's hand or a lying disk
                // explains it.
                tracing::warn!(shard = %replay.label, error = &error as &dyn Error,
                    "what is stored of the producers is of another time than the log");
                (replay.producers, stored) = (Producers::new(max, true), Stored::default());
                dir.recover(id, settings, ReplayFrom::Start, &mut replay)?
            }
            opened => opened?,
        };
        let (recovered, recovery) = opened;
        let beginning = Beginning {
            label: replay.label,
            start: recovery.first.get(),
            next: recovery.next.get(),
            epoch: 0,
            producers: replay.producers,
            stored: Stored { bytes_since: replay.bytes, ..stored },
        };
        let core = Core::new(self.room.clone(), &listed.spec, beginning);
        let log = ShardLog::new(recovered.start(core.clone()));
        Ok(Shard::new(core, Some(log)))
    }
}

fn label(listed: &Listed, index: u32) -> String {
    format!("{}/{}/{index}", listed.tenant, listed.name)
}

fn failed(listed: &Listed, shard: u32, source: trifid_base_log::OpenError) -> OpenError {
    let (tenant, stream) = (listed.tenant.clone(), listed.name.clone());
    OpenError::Shard { tenant, stream, shard, log: log_id(listed.id, shard), source }
}

/// Learns from the headers of the batches who published them.
struct Producing {
    label: String,
    producers: Producers,
    now_ms: i64,
    /// Bytes of batches read.
    bytes: u64,
}

impl Producing {
    fn new(label: String, now_ms: i64, producers: Producers) -> Self {
        Producing { label, producers, now_ms, bytes: 0 }
    }
}

impl Replay for Producing {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.bytes += frame.payload.len() as u64;
        let header = BatchHeader::parse(frame.payload)?;
        if let Some(claim) = claim(&header) {
            // When it published is not known: it is remembered as long as one that did now.
            self.producers.replay(&claim, frame.position.get(), self.now_ms);
        }
        Ok(())
    }

    fn progress(&mut self, progress: Progress) {
        if progress.bytes < progress.bytes_total {
            tracing::info!(shard = %self.label, bytes = progress.bytes, of = progress.bytes_total, "opening");
        }
    }
}
