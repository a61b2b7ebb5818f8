//! The handle of one log.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::batch::{Batch, Prepared};
use crate::disk::Disk;
use crate::error::{AppendError, CommitError, Failure, ReadError};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::outcome::{Durable, Outcome};
use crate::position::{LogId, Position};
use crate::queue::{Admitted, Queue, Rouse};
use crate::read::{Frame, Walk};
use crate::signal::Signal;
use crate::stats::{Counters, Stats};
use crate::writer::{Segments, Writer};

/// Hears what becomes of a log's positions. Called on the committer's thread: it must be short, and must not
/// wait for a ticket.
pub trait Sink: Send + Sync + 'static {
    /// These positions are on disk: show them to readers. Called in order, without gaps, before their tickets
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

/// What a log's handles and the committer share.
pub(crate) struct Shared {
    pub(crate) id: LogId,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) signal: Arc<Signal>,
    pub(crate) queue: Mutex<Queue>,
    /// Locked by the committer alone.
    pub(crate) writer: Mutex<Writer>,
    pub(crate) segments: Segments,
    pub(crate) sink: Arc<dyn Sink>,
    /// On the committer's list.
    pub(crate) listed: AtomicBool,
    pub(crate) durable: AtomicU64,
    pub(crate) counters: Counters,
    /// Ends the process; for failures outside the committer.
    pub(crate) on_failure: Arc<dyn Fn(Failure) + Send + Sync>,
    /// One at a time drops the front.
    dropping: Mutex<()>,
}

/// What a log is made of.
pub(crate) struct Parts {
    pub(crate) id: LogId,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) signal: Arc<Signal>,
    pub(crate) queue: Queue,
    pub(crate) writer: Writer,
    pub(crate) segments: Segments,
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
        let end = self.durable_mark();
        if from >= end {
            return Ok(from);
        }
        let segments = self.shared.segments.lock().clone();
        Walk { disk: &self.shared.disk, log: self.shared.id, range: from..end, segments }.run(visit)
    }

    /// Every record below is on disk and published.
    pub fn durable_mark(&self) -> Position {
        Position::new(self.shared.durable.load(Ordering::Acquire))
    }

    /// Resolves when the record at `position`, which some append was given, is on disk and published, or was
    /// refused: for callers who keep positions and not tickets. A position that no append was given is
    /// answered as failed.
    pub fn durable_at(&self, position: Position) -> Durable {
        let outcome = {
            let queue = self.shared.queue.lock();
            queue.outcome(position, self.durable_mark())
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

    /// Removes the segments that hold only records below `position`, never the one being written; answers how
    /// many went. Waits for the disk. A segment that cannot be removed stays, and is tried again by the next
    /// call.
    pub fn truncate_front(&self, position: Position) -> std::io::Result<usize> {
        self.shared.truncate_front(position)
    }

    /// Counters and marks.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

fn prepare<'a>(pieces: &'a [&'a [u8]], records: u32) -> Result<Prepared<'a>, AppendError> {
    let bytes = pieces.iter().map(|piece| piece.len()).sum();
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(AppendError::TooLarge { bytes, limit_bytes: PAYLOAD_BYTES_MAX });
    }
    Ok(Prepared::new(pieces, records))
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let durable = AtomicU64::new(parts.queue.next().get());
        Shared {
            id: parts.id,
            disk: parts.disk,
            signal: parts.signal,
            queue: Mutex::new(parts.queue),
            writer: Mutex::new(parts.writer),
            segments: parts.segments,
            sink: parts.sink,
            listed: AtomicBool::new(false),
            durable,
            counters: Counters::default(),
            on_failure: parts.on_failure,
            dropping: Mutex::new(()),
        }
    }

    fn append(
        self: &Arc<Self>,
        push: impl FnOnce(&mut Queue) -> Result<Admitted, AppendError>,
    ) -> Result<Ticket, AppendError> {
        let admitted = push(&mut self.queue.lock());
        let admitted = admitted.inspect_err(|error| self.count_refusal(error))?;
        match admitted.rouse {
            Rouse::No => {}
            Rouse::Ready => self.list(),
            Rouse::Enough => self.signal.enough(),
        }
        Ok(Ticket { position: admitted.position, outcome: admitted.outcome })
    }

    fn count_refusal(&self, error: &AppendError) {
        match error {
            AppendError::Overloaded { .. } => Counters::add(&self.counters.refused_overload, 1),
            AppendError::NoSpace => Counters::add(&self.counters.refused_space, 1),
            AppendError::TooLarge { .. } | AppendError::Closed | AppendError::Failed => {}
        }
    }

    /// Puts the log on the committer's list unless it is there.
    pub(crate) fn list(self: &Arc<Self>) {
        if !self.listed.swap(true, Ordering::AcqRel) {
            self.signal.ready(self.clone());
        }
    }

    /// Takes the log off the list and its next batch off the queue.
    pub(crate) fn take(&self) -> Option<Batch> {
        self.listed.store(false, Ordering::Release);
        self.queue.lock().take()
    }

    /// The batch is on disk: readers first.
    pub(crate) fn publish(&self, batch: &Batch) {
        self.sink.durable(batch.positions());
        self.durable.store(batch.end.get(), Ordering::Release);
    }

    /// The batch is published: now those who wait.
    pub(crate) fn complete(self: &Arc<Self>, batch: Batch) {
        Counters::add(&self.counters.batches, 1);
        Counters::add(&self.counters.frames, batch.frames() as u64);
        Counters::add(&self.counters.bytes, batch.bytes as u64);
        let outcome = batch.outcome.clone();
        if self.queue.lock().committed(batch) {
            self.list();
        }
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

    fn truncate_front(&self, position: Position) -> std::io::Result<usize> {
        let _one_at_a_time = self.dropping.lock();
        let mut removed = 0;
        loop {
            let victim = match self.segments.lock().as_slice() {
                [oldest, next, ..] if next.base <= position => oldest.path.clone(),
                _ => return Ok(removed),
            };
            match self.disk.remove(&victim) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.segments.lock().remove(0);
            // One flush a removal: were they lost in another order, a gap would remain.
            let dir = crate::segment::log_dir(self.id);
            if let Err(error) = self.disk.sync_dir(&dir) {
                let kind = error.kind();
                (self.on_failure)(Failure::new("flushing", dir, error));
                return Err(kind.into());
            }
            removed += 1;
        }
    }

    fn stats(&self) -> Stats {
        let (next, inflight_bytes) = {
            let queue = self.queue.lock();
            (queue.next(), queue.inflight_bytes())
        };
        let (first, segments) = {
            let segments = self.segments.lock();
            (segments.first().map_or(next, |segment| segment.base), segments.len())
        };
        let durable = Position::new(self.durable.load(Ordering::Acquire));
        Stats { first, durable, next, segments, inflight_bytes, ..self.counters.read() }
    }
}
