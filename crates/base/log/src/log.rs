//! The handle of one log.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::batch::{Batch, Prepared};
use crate::error::{AppendError, CommitError, Failure, ReadError};
use crate::files::Files;
use crate::handoff::{self, Listed, Rouse};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::options::{Durability, LogOptions};
use crate::outcome::{Durable, Outcome};
use crate::page::{Page, position_for_time, read_page};
use crate::position::{LogId, Position};
use crate::queue::{Admitted, Queue};
use crate::read::{Frame, Walk};
use crate::signal;
use crate::stats::{Counters, Stats};
use crate::writer::{Marks, Writer};

/// Hears what becomes of a log's positions. Called on the committer's thread: it must be short, and must not
/// wait for a ticket.
pub trait Sink: Send + Sync + 'static {
    /// These positions count: they are on disk, or written if the log is [flushed
    /// periodically](Durability::Periodic). Show them to readers. Called in order, without gaps, before their tickets
    /// resolve.
    fn durable(&self, positions: Range<Position>);

    /// The disk is full: these positions, and with them everything queued, are not in the log and never will
    /// be. Undo them before returning; appends are refused meanwhile. A later [`durable`](Self::durable)
    /// covers them, as positions that hold nothing.
    fn refused(&self, positions: Range<Position>);
}

/// For a log whose readers are not told.
impl Sink for () {
    fn durable(&self, _positions: Range<Position>) {}
    fn refused(&self, _positions: Range<Position>) {}
}

/// One log: append to it, read it, drop its front. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
}

/// The committer's list.
pub(crate) type Signal = signal::Signal<Shared>;

/// What a log's handles and the committer share.
pub(crate) struct Shared {
    pub(crate) id: LogId,
    pub(crate) files: Files,
    pub(crate) signal: Arc<Signal>,
    pub(crate) queue: Mutex<Queue>,
    /// Locked by the committer, its helpers, and whoever seals the segment by hand.
    pub(crate) writer: Mutex<Writer>,
    pub(crate) marks: Arc<Marks>,
    pub(crate) sink: Arc<dyn Sink>,
    /// On the committer's list.
    pub(crate) listed: AtomicBool,
    /// A flush of what was written is on its way: due some time, or waiting for a helper.
    pub(crate) owing: AtomicBool,
    pub(crate) published: AtomicU64,
    pub(crate) counters: Counters,
    /// Ends the process; for failures outside the committer.
    pub(crate) on_failure: Arc<dyn Fn(Failure) + Send + Sync>,
    /// One at a time drops or compacts segments.
    pub(crate) housekeeping: Mutex<()>,
}

/// What a log is made of.
pub(crate) struct Parts {
    pub(crate) files: Files,
    pub(crate) signal: Arc<Signal>,
    pub(crate) queue: Queue,
    pub(crate) writer: Writer,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) on_failure: Arc<dyn Fn(Failure) + Send + Sync>,
}

/// An appended payload: its positions, and the promise to say when they are durable.
#[must_use = "a payload is acknowledged only when its ticket says durable"]
#[derive(Debug)]
pub struct Ticket {
    /// The position of the payload's first record.
    pub position: Position,
    outcome: Arc<Outcome>,
}

impl Ticket {
    /// Resolves when the payload is on disk and the sink has published it, or when it was refused.
    pub fn durable(self) -> Durable {
        Durable::new(self.outcome)
    }

    /// The answer if it is there already.
    pub fn decided(&self) -> Option<Result<(), CommitError>> {
        self.outcome.decided()
    }
}

impl Log {
    /// Which log this is.
    pub fn id(&self) -> LogId {
        self.shared.id
    }

    /// Appends a payload of one record, given in pieces that are written one after the other.
    ///
    /// Assigns the position and copies the bytes under one short lock; never waits for the disk. Called under
    /// a lock of the caller's, the order of positions is the order of that lock.
    pub fn append(&self, pieces: &[&[u8]]) -> Result<Ticket, AppendError> {
        self.append_records(pieces, 1)
    }

    /// Appends a payload that holds `records` records (at least one) and so takes as many positions.
    ///
    /// # Panics
    /// When `records` is zero.
    pub fn append_records(&self, pieces: &[&[u8]], records: u32) -> Result<Ticket, AppendError> {
        assert!(records > 0, "a payload holds at least one record");
        let payload = prepare(pieces, records)?;
        self.shared.append(|queue| queue.push(payload))
    }

    /// Appends a Kafka `RecordBatch` (magic 2) that takes `records` positions (at least one). The caller has
    /// verified its checksum, which becomes the frame's: nothing is hashed here. Its base offset and partition
    /// leader epoch may be anything; readers are given the frame's. A large batch is not copied, and its bytes
    /// are held until they are acknowledged.
    ///
    /// # Panics
    /// When `records` is zero.
    pub fn append_batch(&self, payload: Bytes, records: u32) -> Result<Ticket, AppendError> {
        assert!(records > 0, "a payload holds at least one record");
        check_size(payload.len())?;
        let payload = Prepared::record_batch(payload, records).ok_or(AppendError::NoRecordBatch)?;
        self.shared.append(|queue| queue.push(payload))
    }

    /// Whether an append would be taken now: for a caller who appends several payloads or none.
    pub fn admit(&self) -> Result<(), AppendError> {
        let admitted = self.shared.queue.lock().admit(0);
        admitted.inspect_err(|error| self.shared.count_refusal(error))
    }

    /// Appends a payload of one record for a caller whom [`admit`](Self::admit) let in: it is not refused for what
    /// waits. The caller bounds how much that can be.
    pub fn append_admitted(&self, pieces: &[&[u8]]) -> Result<Ticket, AppendError> {
        let payload = prepare(pieces, 1)?;
        self.shared.append(|queue| queue.push_admitted(payload))
    }

    /// Visits the durable frames that hold records at or after `from`, until the visitor breaks; answers
    /// where to go on. It reads from the start of a segment, so it costs a scan of up to one segment before
    /// the first frame.
    pub fn read_from(
        &self,
        from: Position,
        visit: &mut dyn FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> Result<Position, ReadError> {
        let end = self.published();
        if from >= end {
            return Ok(from);
        }
        let files = &self.shared.files;
        let segments = files.segments.lock().clone();
        Walk { disk: &files.home.disk, log: files.home.log, range: from..end, segments }.run(visit)
    }

    /// Reads the published payloads that hold records at or after `from`, as far as about `bytes_max` bytes of
    /// payloads reach, but at least one if there is one. A payload that holds `from` in its middle comes whole.
    /// It begins near the wanted position and checks what it reads.
    pub fn read_batches(&self, from: Position, bytes_max: usize) -> Result<Page, ReadError> {
        read_page(&self.shared.files, from..self.published().max(from), bytes_max)
    }

    /// The position of the first published record batch whose highest timestamp is at least `stamp`
    /// (milliseconds, as its producer gave it), if there is one.
    pub fn position_for_time(&self, stamp: i64) -> Result<Option<Position>, ReadError> {
        position_for_time(&self.shared.files, self.first()..self.published(), stamp)
    }

    /// The first record that the log still has.
    pub fn first(&self) -> Position {
        let first = self.shared.files.segments.lock().first().map(|segment| segment.base);
        first.unwrap_or_else(|| self.published())
    }

    /// Every record below is acknowledged and can be read.
    pub fn published(&self) -> Position {
        Position::new(self.shared.published.load(Ordering::Acquire))
    }

    /// Every record below survives a power cut. Only a log that is [flushed periodically](Durability::Periodic)
    /// publishes ahead of this.
    pub fn flushed(&self) -> Position {
        self.shared.marks.flushed()
    }

    /// Every record below is on disk and published.
    pub fn durable_mark(&self) -> Position {
        self.flushed().min(self.published())
    }

    /// The epoch that is written into frames now: raised whenever the log is opened, and after a refused write.
    pub fn epoch(&self) -> u64 {
        self.shared.marks.epoch().0
    }

    /// The log's settings.
    pub fn options(&self) -> &LogOptions {
        &self.shared.files.home.settings
    }

    /// Resolves when the record at `position`, which some append was given, is on disk and published, or was
    /// refused: for callers who keep positions and not tickets. A position that no append was given is
    /// answered as failed.
    pub fn durable_at(&self, position: Position) -> Durable {
        let outcome = {
            let queue = self.shared.queue.lock();
            queue.outcome(position, self.published())
        };
        Durable::new(outcome)
    }

    /// Bytes that wait for the disk.
    pub fn inflight_bytes(&self) -> usize {
        self.shared.queue.lock().inflight_bytes()
    }

    /// The position that the next append gets.
    pub fn next_position(&self) -> Position {
        self.shared.queue.lock().next()
    }

    /// Counters and marks.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

fn prepare<'a>(pieces: &'a [&'a [u8]], records: u32) -> Result<Prepared<'a>, AppendError> {
    check_size(pieces.iter().map(|piece| piece.len()).sum())?;
    Ok(Prepared::new(pieces, records))
}

fn check_size(bytes: usize) -> Result<(), AppendError> {
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(AppendError::TooLarge { bytes, limit_bytes: PAYLOAD_BYTES_MAX });
    }
    Ok(())
}

impl Listed for Shared {
    type Queue = Queue;

    fn queue(&self) -> &Mutex<Queue> {
        &self.queue
    }

    fn listed(&self) -> &AtomicBool {
        &self.listed
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let published = AtomicU64::new(parts.queue.next().get());
        Shared {
            id: parts.files.home.log,
            files: parts.files,
            signal: parts.signal,
            queue: Mutex::new(parts.queue),
            marks: parts.writer.marks(),
            writer: Mutex::new(parts.writer),
            sink: parts.sink,
            listed: AtomicBool::new(false),
            owing: AtomicBool::new(false),
            published,
            counters: Counters::default(),
            on_failure: parts.on_failure,
            housekeeping: Mutex::new(()),
        }
    }

    fn append(
        self: &Arc<Self>,
        push: impl FnOnce(&mut Queue) -> Result<Admitted, AppendError>,
    ) -> Result<Ticket, AppendError> {
        let admitted = handoff::append(self, |queue| {
            let admitted = push(queue);
            let rouse = admitted.as_ref().map_or(Rouse::No, |admitted| admitted.rouse);
            (admitted, rouse)
        });
        let admitted = admitted.inspect_err(|error| self.count_refusal(error))?;
        Ok(Ticket { position: admitted.position, outcome: admitted.outcome })
    }

    fn count_refusal(&self, error: &AppendError) {
        match error {
            AppendError::Overloaded { .. } => Counters::add(&self.counters.refused_overload, 1),
            AppendError::NoSpace => Counters::add(&self.counters.refused_space, 1),
            AppendError::TooLarge { .. }
            | AppendError::NoRecordBatch
            | AppendError::Closed
            | AppendError::Failed => {}
        }
    }

    /// Takes the log off the list and its next batch off the queue.
    pub(crate) fn take(&self) -> Option<Batch> {
        handoff::take(self, Queue::take)
    }

    /// When the log's writes are to be flushed, if not before they count.
    pub(crate) fn interval(&self) -> Option<Duration> {
        match self.files.home.settings.durability {
            Durability::OnCommit => None,
            Durability::Periodic { interval } => Some(interval),
        }
    }

    /// The batch counts: readers first.
    pub(crate) fn publish(&self, batch: &Batch) {
        self.sink.durable(batch.positions());
        self.published.store(batch.end.get(), Ordering::Release);
    }

    /// The batch is published: now those who wait.
    pub(crate) fn complete(self: &Arc<Self>, batch: Batch) {
        self.counters.batch(batch.frames(), batch.bytes);
        let outcome = batch.outcome.clone();
        handoff::done(self, |queue| queue.committed(batch));
        outcome.decide(Ok(()));
    }

    /// The batch does not fit on the disk: undo it and all behind it, then let appends in again.
    pub(crate) fn refuse(&self, batch: &Batch, writer: &mut Writer) -> Result<(), Failure> {
        let (positions, outcomes) = self.queue.lock().refuse_from(batch.first);
        Counters::add(&self.counters.refused_space, positions.end.get() - positions.start.get());
        let (from, to) = (positions.start, positions.end);
        tracing::warn!(log = %self.id, %from, %to, "no space left; writes refused");
        self.sink.refused(positions);
        writer.rewind()?;
        self.queue.lock().reopen();
        batch.outcome.decide(Err(CommitError::NoSpace));
        outcomes.iter().for_each(|outcome| outcome.decide(Err(CommitError::NoSpace)));
        Ok(())
    }

    /// The disk failed: refuse everything, now and from now on.
    pub(crate) fn fail(&self) {
        for outcome in self.queue.lock().fail() {
            outcome.decide(Err(CommitError::Failed));
        }
    }

    /// The log is removed: it takes nothing any more, and what waits is refused.
    pub(crate) fn abandon(&self) {
        let _nobody_drops_or_compacts = self.housekeeping.lock();
        let outcomes = {
            let mut queue = self.queue.lock();
            queue.close();
            queue.drain()
        };
        self.writer.lock().abandon();
        let segments = std::mem::take(&mut *self.files.segments.lock());
        segments.iter().for_each(|segment| self.files.home.cache.forget(segment.serial));
        outcomes.iter().for_each(|outcome| outcome.decide(Err(CommitError::Removed)));
    }

    fn stats(&self) -> Stats {
        let (next, inflight_bytes) = {
            let queue = self.queue.lock();
            (queue.next(), queue.inflight_bytes())
        };
        let (first, segments) = {
            let segments = self.files.segments.lock();
            (segments.first().map_or(next, |segment| segment.base), segments.len())
        };
        let durable = self.marks.flushed();
        let published = Position::new(self.published.load(Ordering::Acquire));
        let flushes = self.marks.flushes();
        Stats { first, durable, published, next, segments, inflight_bytes, flushes, ..self.counters.read() }
    }
}
