//! The thin layer over base/log: a data directory of shards' logs, and the small files beside them.
//!
//! ```text
//! <dir>/log/<stream id << 16 | shard>/…    one log a shard; log 0 is the catalogue
//! <dir>/producers/<log id>                 what a shard's producers were known for, derived
//! ```

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trifid_base_log::{
    AppendError, CompactError, Compacted, DataDir, DirStats, Disk, Dropped, Durable, Log, LogId, LogOptions,
    OpenMode, Position, ReadError, Recovered, Recovery, RemoveError, Replay, ReplayFrom, Rewrite,
    SegmentInfo, Stats, Ticket,
};
use trifid_stream_model::spec::{StreamKind, StreamSpec};

use crate::error::FetchError;
use crate::limits::{
    PREWRITTEN_PARTS, SEGMENT_BYTES_COMPACTED, SEGMENT_BYTES_INTERNAL, SEGMENT_BYTES_MIN,
    SEGMENT_BYTES_PER_STREAM,
};
use crate::shard::{Entries, Entry};

/// The catalogue's log.
pub(crate) const CATALOGUE: LogId = LogId(0);
const PRODUCERS: &str = "producers";

/// The log of one shard.
pub(crate) fn log_id(stream: u64, shard: u32) -> LogId {
    LogId(stream << 16 | u64::from(shard))
}

/// The stream whose shard a log is.
pub(crate) fn stream_of(log: LogId) -> u64 {
    log.0 >> 16
}

/// A data directory that this broker owns.
pub(crate) struct Dir {
    dir: DataDir,
    segment_bytes: u64,
}

impl Dir {
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: trifid_base_log::Options,
    ) -> Result<Self, trifid_base_log::OpenError> {
        let segment_bytes = options.segment_bytes;
        Ok(Dir { dir: DataDir::open(disk, options)?, segment_bytes })
    }

    /// How the log of a shard is kept.
    pub(crate) fn settings(&self, spec: &StreamSpec) -> LogOptions {
        settings(spec, self.segment_bytes)
    }

    pub(crate) fn recover(
        &self,
        id: LogId,
        settings: LogOptions,
        from: ReplayFrom,
        replay: &mut dyn Replay,
    ) -> Result<(Recovered, Recovery), trifid_base_log::OpenError> {
        self.dir.recover_with(id, settings, from, replay)
    }

    /// What the committer has done.
    pub(crate) fn stats(&self) -> DirStats {
        self.dir.stats()
    }

    /// The logs that are there.
    pub(crate) fn list(&self) -> io::Result<Vec<LogId>> {
        self.dir.list()
    }

    /// Whether there is any file where the log is or would be.
    pub(crate) fn has_files(&self, id: LogId) -> bool {
        let folder = Path::new("log").join(id.to_string());
        self.dir.disk().list(&folder).is_ok_and(|files| !files.is_empty())
    }

    /// Removes the log and what lies beside it, if there is anything.
    pub(crate) fn remove(&self, id: LogId) -> Result<(), RemoveError> {
        match self.dir.remove(id) {
            Ok(()) | Err(RemoveError::NoLog(_)) => {}
            Err(error) => return Err(error),
        }
        // Derived, and of no log that will ever be again.
        if let Err(error) = remove_file(self.dir.disk(), &producers_path(id, "")) {
            tracing::debug!(log = %id, %error, "what was stored of a removed log's producers is still there");
        }
        Ok(())
    }

    /// What was last stored for the log's producers.
    pub(crate) fn read_producers(&self, id: LogId) -> Option<Vec<u8>> {
        let file = self.dir.disk().open(&producers_path(id, ""), OpenMode::Read).ok()?;
        let mut bytes = vec![0; usize::try_from(file.len().ok()?).ok()?];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => return None,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(bytes)
    }

    /// Stores it: the old or the new is there whenever the power goes.
    pub(crate) fn write_producers(&self, id: LogId, bytes: &[u8]) -> io::Result<()> {
        let disk = self.dir.disk();
        let folder = Path::new(PRODUCERS);
        if disk.create_dir(folder)? {
            disk.sync_dir(Path::new(""))?;
        }
        let (new, path) = (producers_path(id, ".new"), producers_path(id, ""));
        remove_file(disk, &new)?;
        let file = disk.open(&new, OpenMode::CreateNew)?;
        let mut written = 0;
        while written < bytes.len() {
            match file.write_at(&[IoSlice::new(&bytes[written..])], written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        file.sync_all()?;
        disk.rename(&new, &path)?;
        disk.sync_dir(folder)
    }
}

fn producers_path(id: LogId, suffix: &str) -> PathBuf {
    Path::new(PRODUCERS).join(format!("{id}{suffix}"))
}

fn remove_file(disk: &Arc<dyn Disk>, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// How the log of a shard is kept. Whole segments are dropped and compacted, and room for a whole one is
/// asked for at once: so they are small where little is kept.
fn settings(spec: &StreamSpec, segment_bytes: u64) -> LogOptions {
    let durability = match spec.durability.interval() {
        Some(interval) => {
            trifid_base_log::Durability::Periodic { interval: interval.max(Duration::from_millis(1)) }
        }
        None => trifid_base_log::Durability::OnCommit,
    };
    let by_retention = spec.retention_bytes.map_or(u64::MAX, |bytes| (bytes / 4).max(SEGMENT_BYTES_MIN));
    let by_use = match spec.kind {
        StreamKind::Internal => SEGMENT_BYTES_INTERNAL,
        StreamKind::Events | StreamKind::DeadLetter if spec.compact => SEGMENT_BYTES_COMPACTED,
        StreamKind::Events | StreamKind::DeadLetter => u64::MAX,
    };
    let by_shards = (SEGMENT_BYTES_PER_STREAM / u64::from(spec.shards.max(1))).max(SEGMENT_BYTES_INTERNAL);
    let segment_bytes = segment_bytes.min(by_retention).min(by_use).min(by_shards);
    let defaults = LogOptions::default();
    let ahead = usize::try_from(segment_bytes / PREWRITTEN_PARTS).unwrap_or(usize::MAX);
    let prewrite_bytes = defaults.prewrite_bytes.min(ahead);
    LogOptions { durability, segment_bytes: Some(segment_bytes), prewrite_bytes, ..defaults }
}

/// Batches from the disk.
pub(crate) struct Page {
    pub(crate) entries: Entries,
    pub(crate) next: u64,
}

/// The log of one shard.
pub(crate) struct ShardLog {
    log: Log,
}

impl ShardLog {
    pub(crate) fn new(log: Log) -> Self {
        ShardLog { log }
    }

    pub(crate) fn id(&self) -> LogId {
        self.log.id()
    }

    /// The epoch of what is appended now.
    pub(crate) fn epoch(&self) -> u32 {
        epoch(self.log.epoch())
    }

    pub(crate) fn append(&self, batch: Bytes, records: u32) -> Result<Ticket, AppendError> {
        self.log.append_batch(batch, records)
    }

    pub(crate) fn durable_at(&self, offset: u64) -> Durable {
        self.log.durable_at(Position::new(offset))
    }

    pub(crate) fn read(&self, from: u64, bytes_max: usize) -> Result<Page, FetchError> {
        let page = self.log.read_batches(Position::new(from), bytes_max).map_err(unread)?;
        let entries = page.entries.into_iter().map(|entry| Entry {
            base: entry.position.get(),
            end: entry.end().get(),
            epoch: epoch(entry.epoch),
            bytes: entry.payload,
        });
        Ok(Page { entries: entries.collect(), next: page.next.get() })
    }

    pub(crate) fn position_for_time(&self, ms: i64) -> Result<Option<u64>, FetchError> {
        Ok(self.log.position_for_time(ms).map_err(unread)?.map(Position::get))
    }

    /// Drops whole segments that are too old or too many; answers what is left.
    pub(crate) fn retain(&self, now_ms: i64, age_ms: Option<u64>, bytes: Option<u64>) -> io::Result<Dropped> {
        self.log.apply_retention(now_ms, age_ms, bytes)
    }

    pub(crate) fn segments(&self) -> Result<Vec<SegmentInfo>, ReadError> {
        self.log.segments()
    }

    /// Writes a sealed segment again: `rewrite` says what becomes of each batch and its first offset.
    pub(crate) fn compact(
        &self,
        base: u64,
        mut rewrite: impl FnMut(u64, &Bytes) -> Rewrite,
    ) -> Result<Compacted, CompactError> {
        self.log.compact(Position::new(base), &mut |entry| rewrite(entry.position.get(), &entry.payload))
    }

    pub(crate) fn stats(&self) -> Stats {
        self.log.stats()
    }

    /// Bytes of its segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.log.bytes()
    }
}

/// Kafka's leader epoch has 31 bits.
fn epoch(epoch: u64) -> u32 {
    u32::try_from(epoch).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

fn unread(error: ReadError) -> FetchError {
    match error {
        ReadError::Truncated { first, .. } => FetchError::TooOld { first: first.get() },
        ReadError::Damaged { file, offset, .. } => FetchError::Damaged { file, at: offset },
        ReadError::Io { source, .. } => FetchError::Io(source),
        error => FetchError::Io(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_as_large_as_their_use() {
        let bytes = |spec: StreamSpec| settings(&spec, 64 << 20).segment_bytes.unwrap();
        let kept = |bytes| StreamSpec { retention_bytes: Some(bytes), ..StreamSpec::default() };
        assert_eq!(bytes(StreamSpec::default()), 64 << 20);
        assert_eq!([1 << 40, 100 << 20, 1 << 20].map(|b| bytes(kept(b))), [64 << 20, 25 << 20, 1 << 20]);
        let shards = |shards| StreamSpec { shards, ..StreamSpec::default() };
        assert_eq!([2, 8, 256].map(|n| bytes(shards(n))), [64 << 20, 16 << 20, SEGMENT_BYTES_INTERNAL]);
        assert_eq!(bytes(StreamSpec { compact: true, ..kept(1 << 40) }), SEGMENT_BYTES_COMPACTED);
        let internal = StreamSpec { kind: StreamKind::Internal, ..StreamSpec::default() };
        assert_eq!(bytes(internal), SEGMENT_BYTES_INTERNAL);
    }
}
