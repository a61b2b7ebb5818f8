//! One shard's queue, and the task that delivers it.
//!
//! ```text
//! append -> open batch -> sealed batches -> under way (numbered, at most five) -> outcome told
//!                                     ^            |
//!                                     +-- rewind --+   lost connection, passing refusal: all again, in order
//! ```
//!
//! The task ends when the queue has been empty for a while or the producer is gone; the next record starts
//! another.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use trifid_stream_model::batch::{BatchBuilder, BatchHeader, BuildError, Producer as Numbered};
use trifid_stream_model::frame::{Ack, Code, Refusal, Reply, Retry, reply};

use super::{Outcome, Placed, Shared};
use crate::error::{PublishError, RequestError};
use crate::limits::{BATCHES_UNDER_WAY_MAX, PUMP_IDLE};
use crate::line::{Line, Waiting};
use crate::pool::Backoff;
use crate::record::Record;

/// A batch that is not acknowledged yet.
#[derive(Debug)]
struct Pending {
    bytes: Bytes,
    /// What it takes of the producer's memory.
    size: usize,
    since: Instant,
    outcome: watch::Sender<Outcome>,
    /// Its records are numbered when it is sent first.
    is_numbered: bool,
    /// Whether it is to be numbered at all.
    is_own: bool,
}

/// What waits for a shard.
#[derive(Debug)]
struct State {
    builder: BatchBuilder,
    open: Option<Open>,
    sealed: VecDeque<Pending>,
    failure: Option<PublishError>,
    /// Somebody flushes: nothing lingers.
    is_hurried: bool,
}

/// The batch that records are appended to.
#[derive(Debug)]
struct Open {
    size: usize,
    since: Instant,
    outcome: watch::Sender<Outcome>,
    receiver: watch::Receiver<Outcome>,
}

/// A shard's queue.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    queued: Arc<Notify>,
    is_running: AtomicBool,
    /// Whether it has had a task before.
    has_begun: AtomicBool,
}

/// Where a record was put: what to watch, its place in the batch, whether it began the batch.
type Queued = (watch::Receiver<Outcome>, u32, bool);

impl Queue {
    pub(crate) fn new(builder: BatchBuilder) -> Self {
        let state = State { builder, open: None, sealed: VecDeque::new(), failure: None, is_hurried: false };
        Self {
            state: Mutex::new(state),
            queued: Arc::default(),
            is_running: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
        }
    }

    pub(crate) fn append(
        &self,
        record: &Record,
        size: usize,
        shared: &Shared,
    ) -> Result<Queued, PublishError> {
        let now_ms = now_ms();
        let mut state = self.state.lock();
        let mut appended = record.with_data(now_ms, |data| state.builder.append(data));
        if appended == Err(BuildError::Full) {
            state.seal(shared)?;
            appended = record.with_data(now_ms, |data| state.builder.append(data));
        }
        let delta = appended?;
        let is_new = state.open.is_none();
        let open = state.open.get_or_insert_with(Open::new);
        open.size += size;
        let receiver = open.receiver.clone();
        if state.builder.size() >= shared.options.batch_bytes {
            state.seal(shared)?;
        }
        drop(state);
        self.queued.notify_one();
        Ok((receiver, delta, is_new))
    }

    pub(crate) fn push_batch(
        &self,
        bytes: Bytes,
        shared: &Shared,
    ) -> Result<watch::Receiver<Outcome>, PublishError> {
        let (outcome, receiver) = watch::channel(None);
        let mut state = self.state.lock();
        state.seal(shared)?;
        let size = bytes.len();
        let since = Instant::now();
        state.sealed.push_back(Pending { bytes, size, since, outcome, is_numbered: false, is_own: false });
        drop(state);
        self.queued.notify_one();
        Ok(receiver)
    }

    /// Nothing lingers until the queue is empty.
    pub(crate) fn hurry(&self) {
        self.state.lock().is_hurried = true;
        self.queued.notify_one();
    }

    pub(crate) fn take_failure(&self) -> Option<PublishError> {
        self.state.lock().failure.take()
    }

    /// Whether a task has to be started; it then counts as started.
    pub(crate) fn starts(&self) -> bool {
        !self.is_running.swap(true, Ordering::AcqRel)
    }

    /// Takes the next batch that may leave; `is_idle` says that nothing is under way.
    fn take(&self, shared: &Shared, is_idle: bool) -> Option<Pending> {
        let mut state = self.state.lock();
        if state.sealed.is_empty() {
            let linger = shared.options.linger;
            let is_due = state.open.as_ref().is_some_and(|open| is_idle || open.since.elapsed() >= linger);
            if (is_due || state.is_hurried) && state.seal(shared).is_err() {
                return None;
            }
        }
        let taken = state.sealed.pop_front();
        state.is_hurried &= taken.is_some();
        taken
    }

    /// When the open batch has lingered long enough.
    fn due(&self, shared: &Shared) -> Option<Instant> {
        self.state.lock().open.as_ref().map(|open| open.since + shared.options.linger)
    }

    fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.open.is_none() && state.sealed.is_empty()
    }
}

impl Open {
    fn new() -> Self {
        let (outcome, receiver) = watch::channel(None);
        Self { size: 0, since: Instant::now(), outcome, receiver }
    }
}

impl State {
    /// Closes the open batch, if there is one.
    fn seal(&mut self, shared: &Shared) -> Result<(), PublishError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let Open { size, since, outcome, .. } = open;
        match self.builder.finish(None) {
            Ok(Some(bytes)) => {
                self.sealed.push_back(Pending {
                    bytes,
                    size,
                    since,
                    outcome,
                    is_numbered: false,
                    is_own: true,
                });
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => {
                let error = PublishError::from(error);
                self.failure.get_or_insert(error.clone());
                outcome.send_replace(Some(Err(error.clone())));
                shared.release(size);
                Err(error)
            }
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A batch that was sent and its answer.
struct Sent {
    pending: Pending,
    /// None while it has to be sent (again).
    waiting: Option<Waiting>,
}

/// Who the shard's batches come from.
#[derive(Clone, Copy, Debug)]
struct Identity {
    id: i64,
    epoch: i16,
    /// The number of the next record.
    next: i32,
}

/// The task's own state.
struct Pump {
    shared: Weak<Shared>,
    shard: u32,
    line: Option<(Arc<Line>, reply::Opened)>,
    identity: Option<Identity>,
    /// The identity of the whole producer was used here before, and its next number is not known: it takes
    /// another.
    is_own_identity: bool,
    under_way: VecDeque<Sent>,
    backoff: Backoff,
    /// Not before then is anything sent again.
    not_before: Option<Instant>,
    /// The stream's handle was asked for anew for the first batch under way.
    has_new_handle: bool,
    /// Identities that the first batch under way was sent under.
    identities: u32,
}

/// Delivers a shard's queue.
pub(crate) async fn run(shared: Weak<Shared>, shard: u32) {
    let Some(strong) = shared.upgrade() else { return };
    let mut pump = Pump {
        shared: shared.clone(),
        shard,
        line: None,
        identity: None,
        is_own_identity: strong.queues[shard as usize].has_begun.swap(true, Ordering::AcqRel),
        under_way: VecDeque::new(),
        backoff: Backoff::new(&strong.pool.options),
        not_before: None,
        has_new_handle: false,
        identities: 0,
    };
    drop(strong);
    // Between its rounds the task holds nothing: with the last handle on the producer it ends.
    while let Some(shared) = shared.upgrade() {
        if pump.step(&shared).await {
            continue;
        }
        let queued = Arc::clone(&shared.queues[shard as usize].queued);
        drop(shared);
        let is_awake = tokio::time::timeout(PUMP_IDLE, queued.notified()).await.is_ok();
        if !is_awake && pump.retires() {
            return;
        }
    }
}

impl Pump {
    /// One round; answers whether there is more to do.
    async fn step(&mut self, shared: &Arc<Shared>) -> bool {
        let queue = &shared.queues[self.shard as usize];
        self.expire(shared);
        if self.is_allowed() {
            self.not_before = None;
            self.fill(shared, queue);
            if let Err(error) = self.send(shared).await {
                self.fail_or_wait(shared, &error);
            }
        }
        if self.under_way.is_empty() && queue.is_empty() {
            return false;
        }
        self.wait(shared, queue).await;
        true
    }

    /// After a while without work the task ends, unless a record came in between that has seen it still
    /// running.
    fn retires(&self) -> bool {
        let Some(shared) = self.shared.upgrade() else { return true };
        let queue = &shared.queues[self.shard as usize];
        queue.is_running.store(false, Ordering::Release);
        queue.is_empty() || !queue.starts()
    }

    fn is_allowed(&self) -> bool {
        self.not_before.is_none_or(|instant| instant <= Instant::now())
    }

    /// Takes batches off the queue while there is a place under way for them.
    fn fill(&mut self, shared: &Shared, queue: &Queue) {
        while self.under_way.len() < BATCHES_UNDER_WAY_MAX {
            let Some(pending) = queue.take(shared, self.under_way.is_empty()) else { return };
            self.under_way.push_back(Sent { pending, waiting: None });
        }
    }

    /// Sends what is under way and was not sent yet, in order.
    async fn send(&mut self, shared: &Shared) -> Result<(), RequestError> {
        if self.under_way.iter().all(|sent| sent.waiting.is_some()) {
            return Ok(());
        }
        let (line, opened) = self.line(shared).await?;
        if shared.options.idempotent && shared.options.acknowledged && self.identity.is_none() {
            let (id, epoch) = shared.identity(&line, self.is_own_identity).await?;
            self.identity = Some(Identity { id, epoch, next: 0 });
            self.under_way.iter_mut().for_each(|sent| sent.pending.is_numbered = false);
        }
        let ack = shared.ack();
        for sent in &mut self.under_way {
            if sent.waiting.is_some() {
                continue;
            }
            if let Some(identity) = &mut self.identity
                && sent.pending.is_own
                && !sent.pending.is_numbered
            {
                number(&mut sent.pending, identity);
            }
            sent.waiting = line.publish(opened.handle, self.shard, ack, &sent.pending.bytes)?;
        }
        if ack == Ack::None {
            // Nobody will say that it came: what can be known is that it was sent.
            line.drained().await;
            for sent in self.under_way.drain(..) {
                settle(shared, sent.pending, Ok(Placed { base: None }));
            }
        }
        Ok(())
    }

    /// The line of this shard and the stream's handle there. On another line than before, all is sent again.
    async fn line(&mut self, shared: &Shared) -> Result<(Arc<Line>, reply::Opened), RequestError> {
        if let Some((line, opened)) = &self.line
            && line.is_open()
        {
            return Ok((Arc::clone(line), opened.clone()));
        }
        self.rewind();
        let line = shared.pool.line(shared.pool.place_of(&(&shared.name, self.shard))).await?;
        let opened = line.stream(&shared.name, shared.pool.options.request_timeout).await?;
        self.line = Some((Arc::clone(&line), opened.clone()));
        Ok((line, opened))
    }

    /// Everything under way is to be sent again.
    fn rewind(&mut self) {
        self.under_way.iter_mut().for_each(|sent| sent.waiting = None);
    }

    /// What is numbered is refused behind a gap, and is to be sent again; what is not, may have been taken.
    fn rewind_numbered(&mut self) {
        let numbered = self.under_way.iter_mut().filter(|sent| sent.pending.is_numbered);
        numbered.for_each(|sent| sent.waiting = None);
    }

    /// The numbers of the old identity are of no use any more.
    fn begin_anew(&mut self) {
        self.rewind_numbered();
        (self.identity, self.is_own_identity) = (None, true);
    }

    /// Waits for the first answer, for more to send, or for the time to send.
    async fn wait(&mut self, shared: &Shared, queue: &Queue) {
        let expiry = self.under_way.front().map(|sent| sent.pending.since + shared.options.delivery_timeout);
        if let Some(instant) = self.not_before {
            return tokio::time::sleep_until(expiry.map_or(instant, |expiry| expiry.min(instant))).await;
        }
        let has_room = self.under_way.len() < BATCHES_UNDER_WAY_MAX;
        let due = queue.due(shared).filter(|_| has_room);
        let until = due.into_iter().chain(expiry).min();
        let until = until.unwrap_or_else(|| Instant::now() + PUMP_IDLE);
        let front = self.under_way.front_mut().and_then(|sent| sent.waiting.as_mut());
        let answer = async {
            match front {
                Some(waiting) => waiting.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = answer => self.answered(shared, answer.ok()),
            () = queue.queued.notified(), if has_room => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    /// The first batch under way was answered; or its line is over, if there is no answer.
    fn answered(&mut self, shared: &Shared, answer: Option<Result<Reply, Refusal>>) {
        match answer {
            None => {
                self.line = None;
                self.rewind();
            }
            Some(Ok(Reply::Published(published))) => {
                self.backoff = Backoff::new(&shared.pool.options);
                (self.has_new_handle, self.identities) = (false, 0);
                if let Some(sent) = self.under_way.pop_front() {
                    settle(shared, sent.pending, Ok(Placed { base: Some(published.base_offset) }));
                }
            }
            Some(Ok(_)) => self.refused(shared, Refusal::new(Code::Internal, "an answer of another kind")),
            Some(Err(refusal)) => self.refused(shared, refusal),
        }
    }

    fn refused(&mut self, shared: &Shared, refusal: Refusal) {
        match refusal.code {
            // The broker knows another past of this producer: it begins anew, under another identity.
            Code::UnknownProducer | Code::OutOfSequence { .. } | Code::Fenced { .. }
                if self.identity.is_some() && self.identities < IDENTITIES_MAX =>
            {
                self.identities += 1;
                self.begin_anew();
                self.pause(refusal.retry_after_ms);
            }
            // The stream was deleted, and perhaps made again: the handle is asked for anew, once for each
            // batch.
            Code::UnknownStream if !self.has_new_handle => {
                self.has_new_handle = true;
                if let Some((line, _)) = self.line.take() {
                    line.forget_stream(&shared.name);
                }
                self.begin_anew();
                self.pause(refusal.retry_after_ms);
            }
            code if code.retry() == Retry::Later => {
                if code == Code::ShuttingDown {
                    self.line = None;
                }
                self.pause(refusal.retry_after_ms);
            }
            _ => self.fail_first(shared, refusal.into()),
        }
    }

    /// Sends again after a while: the first batch, and those behind it that were refused for the gap that it
    /// left.
    fn pause(&mut self, hint_ms: u32) {
        self.rewind_numbered();
        if let Some(first) = self.under_way.front_mut() {
            first.waiting = None;
        }
        let pause = if hint_ms == 0 { self.backoff.step() } else { Duration::from_millis(hint_ms.into()) };
        self.not_before = Some(Instant::now() + pause);
    }

    /// The first batch will not be delivered. Those behind it were numbered after it: they get other numbers.
    fn fail_first(&mut self, shared: &Shared, error: PublishError) {
        if let Some(sent) = self.under_way.pop_front() {
            let queue = &shared.queues[self.shard as usize];
            queue.state.lock().failure.get_or_insert(error.clone());
            if sent.pending.is_numbered {
                self.begin_anew();
            }
            settle(shared, sent.pending, Err(error));
        }
        (self.has_new_handle, self.identities) = (false, 0);
    }

    fn fail_or_wait(&mut self, shared: &Shared, error: &RequestError) {
        let is_final = match error {
            RequestError::Lost | RequestError::Timeout(_) => false,
            RequestError::Connect(error) => !error.is_retriable(),
            RequestError::Refused(refusal) => refusal.code.retry() != Retry::Later,
            RequestError::Name(_) | RequestError::Unexpected(_) => true,
        };
        self.line = None;
        self.rewind();
        if is_final {
            let refusal = match error {
                RequestError::Refused(refusal) => refusal.clone(),
                error => Refusal::new(Code::Internal, error.to_string()),
            };
            while !self.under_way.is_empty() {
                self.fail_first(shared, refusal.clone().into());
            }
        } else {
            self.not_before = Some(Instant::now() + self.backoff.step());
        }
    }

    /// Fails what has been under way for too long.
    fn expire(&mut self, shared: &Shared) {
        let limit = shared.options.delivery_timeout;
        while self.under_way.front().is_some_and(|sent| sent.pending.since.elapsed() >= limit) {
            self.fail_first(shared, PublishError::Expired(limit, "no acknowledgement".to_owned()));
        }
    }
}

/// What is left when the task ends will not be delivered.
impl Drop for Pump {
    fn drop(&mut self) {
        for sent in self.under_way.drain(..) {
            sent.pending.outcome.send_replace(Some(Err(PublishError::Closed)));
        }
    }
}

fn settle(shared: &Shared, pending: Pending, outcome: Result<Placed, PublishError>) {
    let Pending { size, outcome: told, .. } = pending;
    told.send_replace(Some(outcome));
    shared.release(size);
}

/// Writes the producer's identity and the next number into a batch (KIP-98), and its checksum anew.
fn number(pending: &mut Pending, identity: &mut Identity) {
    let Ok(header) = BatchHeader::parse(&pending.bytes) else { return };
    let producer = Numbered { id: identity.id, epoch: identity.epoch, sequence: identity.next };
    pending.bytes = renumber(std::mem::take(&mut pending.bytes), producer);
    pending.is_numbered = true;
    identity.next =
        ((i64::from(identity.next) + i64::from(header.span())) % (i64::from(i32::MAX) + 1)) as i32;
}

/// In place, if nobody else holds the bytes.
fn renumber(batch: Bytes, producer: Numbered) -> Bytes {
    let mut bytes = match batch.try_into_mut() {
        Ok(own) => own,
        Err(shared) => BytesMut::from(&shared[..]),
    };
    bytes[PRODUCER_AT..PRODUCER_AT + 8].copy_from_slice(&producer.id.to_be_bytes());
    bytes[PRODUCER_AT + 8..PRODUCER_AT + 10].copy_from_slice(&producer.epoch.to_be_bytes());
    bytes[PRODUCER_AT + 10..PRODUCER_AT + 14].copy_from_slice(&producer.sequence.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[CHECKED_AT..]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    bytes.freeze()
}

/// Fresh identities that a batch is tried under before it fails: one is enough, unless the broker loses its
/// memory again.
const IDENTITIES_MAX: u32 = 3;

/// Where a batch's checksum lies (Kafka protocol, "Record Batch").
const CRC_AT: usize = 17;
/// From where on it counts.
const CHECKED_AT: usize = 21;
/// Where the producer's id, epoch and sequence lie.
const PRODUCER_AT: usize = 43;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trifid_stream_model::batch::{BuildOptions, RecordData, validate};

    use super::*;

    fn built(values: &[Vec<u8>], producer: Option<Numbered>) -> Bytes {
        let mut builder = BatchBuilder::new(BuildOptions::default());
        for value in values {
            builder
                .append(&RecordData { timestamp: 7, value: Some(value), ..RecordData::default() })
                .unwrap();
        }
        builder.finish(producer).unwrap().unwrap()
    }

    #[test]
    fn numbers_go_on_at_zero_after_the_last() {
        let bytes = built(&[vec![1], vec![2], vec![3]], None);
        let (outcome, _) = watch::channel(None);
        let mut pending =
            Pending { size: 1, since: Instant::now(), outcome, is_numbered: false, is_own: true, bytes };
        let mut identity = Identity { id: 5, epoch: 0, next: i32::MAX - 1 };
        number(&mut pending, &mut identity);
        assert_eq!(identity.next, 1);
        assert_eq!(validate(&pending.bytes).unwrap().base_sequence, i32::MAX - 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// A batch that is numbered afterwards is the batch that was numbered from the start, also anew.
        #[test]
        fn numbering_is_what_the_builder_does(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 1..10),
            id in 0i64..,
            epoch in 0i16..,
            sequence in 0i32..,
            is_held: bool,
        ) {
            let producer = Numbered { id, epoch, sequence };
            let plain = built(&values, None);
            // Somebody else may hold the bytes: those are then left alone.
            let held = is_held.then(|| plain.clone());
            let numbered = renumber(plain, producer);
            prop_assert_eq!(&numbered, &built(&values, Some(producer)));
            if let Some(held) = held {
                prop_assert_eq!(held, built(&values, None));
            }
            let again = Numbered { sequence: 0, ..producer };
            prop_assert_eq!(renumber(numbered, again), built(&values, Some(again)));
        }
    }
}
