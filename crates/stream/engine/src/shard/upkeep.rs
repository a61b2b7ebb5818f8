//! What is done for a shard in the background.

use std::sync::atomic::Ordering;

use trifid_base_log::CompactError;
use trifid_stream_model::spec::StreamSpec;

use super::{Core, Shard, State};
use crate::compaction::Compaction;
use crate::limits::{COMPACTION_RETRY_MS, SETTLED_BYTES, SNAPSHOT_BYTES, UPKEEP_EVERY_MS};
use crate::snapshot;
use crate::store::{Dir, ShardLog};

/// What lies on the disk of what is known of producers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stored {
    /// It speaks of the batches below.
    pub(crate) offset: u64,
    /// Below, the log was compacted.
    pub(crate) cleaned: u64,
    /// Bytes of the batches that an opening would have to read behind it.
    pub(crate) bytes_since: u64,
}

/// When what was done last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// The last look, in milliseconds of the broker's clock.
    looked_ms: i64,
    stored: Stored,
    /// What the shard had published, since it was opened, when that was noted.
    stored_total: u64,
    /// A compaction failed: none before this time.
    compact_after_ms: i64,
    /// The disk was full lately.
    pub(super) was_full: bool,
}

/// One round of looking after all shards.
pub(crate) struct Turn {
    /// Milliseconds of the broker's clock.
    pub(crate) now_ms: i64,
    /// What a memory stream may keep, while memory is short.
    pub(crate) fair: Option<usize>,
    /// What compactions may still read and write in this round.
    pub(crate) compaction_bytes: usize,
}

impl Marks {
    pub(super) fn new(stored: Stored) -> Self {
        Marks { stored, ..Marks::default() }
    }
}

impl Shard {
    /// Looks after the shard, not more often than needed.
    pub(crate) fn tend(&self, spec: &StreamSpec, dir: Option<&Dir>, turn: &mut Turn) -> Result<(), String> {
        let is_due = self.core.is_due(turn.now_ms);
        match (&self.log, dir) {
            (Some(log), Some(dir)) => {
                if is_due {
                    self.core.cool_down();
                    self.retain(log, spec, turn.now_ms)?;
                    self.snapshot_after(log, dir, SNAPSHOT_BYTES)?;
                }
                self.compact(log, dir, spec, is_due, turn)
            }
            _ => {
                if is_due {
                    self.core.retain_in_memory(turn.fair, turn.now_ms);
                }
                Ok(())
            }
        }
    }

    /// Waits until all that was taken counts, and stores what is known of producers.
    pub(crate) fn settle(&self, dir: Option<&Dir>) -> Result<(), String> {
        let (Some(log), Some(dir)) = (&self.log, dir) else { return Ok(()) };
        let next = self.core.state.lock().next;
        if next > self.core.end() {
            let settled = crate::wait::block_on(log.durable_at(next - 1));
            settled.map_err(|error| format!("shard {} is not settled: {error}", self.core.label))?;
        }
        self.snapshot_after(log, dir, SETTLED_BYTES)
    }

    /// Whether the disk was full when it was last written.
    pub(crate) fn is_full(&self) -> bool {
        self.core.state.lock().upkeep.was_full
    }

    /// Stores what is known of producers, if so many bytes were published since the last time.
    fn snapshot_after(&self, log: &ShardLog, dir: &Dir, bytes: u64) -> Result<(), String> {
        let is_due = {
            let state = self.core.state.lock();
            let Marks { stored, stored_total, .. } = state.upkeep;
            stored.bytes_since + (state.total - stored_total) >= bytes
        };
        if is_due { self.snapshot(log, dir) } else { Ok(()) }
    }

    fn snapshot(&self, log: &ShardLog, dir: &Dir) -> Result<(), String> {
        let (bytes, stored, total) = {
            let state = self.core.state.lock();
            let stored = Stored { offset: self.core.end(), bytes_since: 0, ..state.upkeep.stored };
            let pending = state.pending_claims();
            let bytes = snapshot::encode(stored.offset, stored.cleaned, &state.producers, pending);
            (bytes, stored, state.total)
        };
        let written = dir.write_producers(log.id(), &bytes);
        written
            .map_err(|error| format!("the producers of {} could not be stored: {error}", self.core.label))?;
        let mut state = self.core.state.lock();
        (state.upkeep.stored, state.upkeep.stored_total) = (stored, total);
        Ok(())
    }

    /// Drops what the stream need not keep.
    fn retain(&self, log: &ShardLog, spec: &StreamSpec, now_ms: i64) -> Result<(), String> {
        if spec.retention_ms.is_none() && spec.retention_bytes.is_none() {
            return Ok(());
        }
        let kept = log.retain(now_ms, spec.retention_ms, spec.retention_bytes);
        let kept = kept.map_err(|error| format!("retention of {} failed: {error}", self.core.label))?;
        self.core.begin_at(kept.first.get());
        Ok(())
    }

    /// Goes on with a compaction, or begins one where it pays.
    fn compact(
        &self,
        log: &ShardLog,
        dir: &Dir,
        spec: &StreamSpec,
        is_due: bool,
        turn: &mut Turn,
    ) -> Result<(), String> {
        let mut running = self.compaction.lock();
        let told = |error: CompactError| format!("compaction of {} failed: {error}", self.core.label);
        let Marks { stored, compact_after_ms, .. } = self.core.state.lock().upkeep;
        if running.is_none() && spec.compact && is_due && turn.now_ms >= compact_after_ms {
            let begun = Compaction::begin(log, stored.cleaned, &self.core.room)
                .map_err(|error| told(error.into()))?;
            *running = begun.map(Box::new);
            if running.is_some() {
                // What goes is not found by reading the log again.
                self.snapshot(log, dir)?;
            }
        }
        let Some(compaction) = &mut *running else { return Ok(()) };
        match compaction.step(log, turn.now_ms, &mut turn.compaction_bytes) {
            Ok(false) => Ok(()),
            Ok(true) => {
                let done = compaction.done();
                let (to, dropped, bytes) = (done.to, done.dropped, done.bytes_freed);
                tracing::info!(shard = %self.core.label, to, dropped, bytes, "compacted");
                self.core.state.lock().upkeep.stored.cleaned = done.to;
                self.core.compactions.fetch_add(1, Ordering::Relaxed);
                *running = None;
                self.snapshot(log, dir)
            }
            // It begins anew after a while.
            Err(error) => {
                self.core.state.lock().upkeep.compact_after_ms =
                    turn.now_ms.saturating_add(COMPACTION_RETRY_MS);
                *running = None;
                Err(told(error))
            }
        }
    }
}

impl Core {
    /// The shard begins at `first` from now on.
    fn begin_at(&self, first: u64) {
        if first <= self.start() {
            return;
        }
        let mut state = self.state.lock();
        while state.ring.front().is_some_and(|slot| slot.entry.base < first) {
            if let Some(slot) = state.ring.pop() {
                self.give_back(slot.cost());
            }
        }
        self.start.store(first, Ordering::Release);
    }

    fn is_due(&self, now_ms: i64) -> bool {
        let mut state = self.state.lock();
        // A clock that was set back does not stop the looking.
        let due = (now_ms - state.upkeep.looked_ms).abs() >= UPKEEP_EVERY_MS;
        if due {
            state.upkeep.looked_ms = now_ms;
            let idle_ms = i64::try_from(self.room.limits.producer_idle.as_millis()).unwrap_or(i64::MAX);
            state.producers.expire(now_ms.saturating_sub(idle_ms));
        }
        due
    }

    /// A shard of a durable stream that nobody read or wrote since the last look gives its memory up when
    /// memory is short, and after a while anyhow.
    fn cool_down(&self) {
        let was_warm = self.warm.swap(false, Ordering::Relaxed);
        let tails = &self.room.tails;
        let is_short = tails.used() > tails.limit() / 4 * 3;
        let mut state = self.state.lock();
        if !was_warm && is_short && state.ring.len() > 0 {
            let end = self.end();
            let freed = state.ring.clear(end);
            tails.give(freed);
        }
        state.ring.shrink();
    }

    /// Drops what a memory stream need not keep: what is too old, and while memory is short what is above its
    /// share.
    fn retain_in_memory(&self, fair: Option<usize>, now_ms: i64) {
        let mut state = self.state.lock();
        let oldest_ms = state.keep.ms.map(|ms| now_ms.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)));
        let goes = |state: &State| {
            let front = state.ring.front()?;
            let too_old = oldest_ms.is_some_and(|oldest_ms| front.time_ms() < oldest_ms);
            let too_much = fair.is_some_and(|fair| state.ring.bytes() > fair && state.ring.len() > 1);
            (too_old || too_much).then_some(front.entry.end)
        };
        while let Some(end) = goes(&state) {
            if !state.readers.lets_go(end) {
                break;
            }
            self.drop_oldest(&mut state);
        }
        state.ring.shrink();
    }
}
