//! Opening and beginning the shards of a stream.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::ErrorKind;
use std::ops::Range;
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
    /// The shards of all streams that were there before, in the order of the list.
    pub(crate) fn reopen(&self, listed: &[Listed], found: &Found) -> Result<Vec<Vec<Arc<Shard>>>, OpenError> {
        let all: Vec<(&Listed, u32)> = listed
            .iter()
            .flat_map(|listed| (0..listed.spec.shards).map(move |index| (listed, index)))
            .collect();
        let opened = in_parallel(all.len(), |at| self.reopen_shard(all[at].0, all[at].1, found))?;
        let mut opened = opened.into_iter();
        Ok(listed.iter().map(|listed| opened.by_ref().take(listed.spec.shards as usize).collect()).collect())
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

    /// Shards that were not there before.
    pub(crate) fn begin(&self, listed: &Listed, shards: Range<u32>) -> Result<Vec<Arc<Shard>>, CreateError> {
        let indexes: Vec<u32> = shards.collect();
        in_parallel(indexes.len(), |at| self.begin_shard(listed, indexes[at]))
    }

    fn begin_shard(&self, listed: &Listed, index: u32) -> Result<Arc<Shard>, CreateError> {
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

/// Does the work of every number below `count`, several at once because most of it waits for the disk; the answers
/// in order, or a failure.
fn in_parallel<T: Send, E: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let part = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(done);
            }
            // After a failure nobody begins anything more.
            done.push((at, work(at).inspect_err(|_| next.store(count, Ordering::Relaxed))?));
        }
    };
    let parts: Result<Vec<Vec<(usize, T)>>, E> = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..count.min(OPENERS_MAX)).map(|_| scope.spawn(part)).collect();
        let own = part();
        let joined = helpers.into_iter().map(|helper| match helper.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(own).chain(joined.collect::<Vec<_>>()).collect()
    });
    let mut all: Vec<(usize, T)> = parts?.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, answer)| answer).collect())
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

#[cfg(test)]
mod tests {
    use super::in_parallel;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn answers_come_in_order_and_a_failure_ends_it() {
        for count in [0, 1, 7, 100] {
            let squares = in_parallel::<_, ()>(count, |at| Ok(at * at));
            assert!(squares.unwrap().into_iter().eq((0..count).map(|at| at * at)));
        }
        let begun = AtomicUsize::new(0);
        let failed = in_parallel::<(), _>(10_000, |at| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err(at)
        });
        assert!(failed.is_err());
        assert!(begun.into_inner() <= super::OPENERS_MAX);
    }
}
