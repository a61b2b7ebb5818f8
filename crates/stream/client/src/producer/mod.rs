//! A producer: records in, batches out, one acknowledgement for each.
//!
//! Records gather in a batch per shard. A batch leaves when it is full, when it has waited for
//! [`ProducerOptions::linger`], or as soon as there is nothing of its shard under way: a lone record does not
//! wait, and under load batches grow by themselves. A few batches of a shard are under way at a time, in
//! order.
//!
//! Batches are numbered (KIP-98, idempotent producers): after a lost connection or a passing refusal
//! everything that was not acknowledged is sent again, in its order, and the broker recognises what it has
//! already. That holds while the broker remembers the producer; if it has forgotten it, a new identity is
//! asked for and a batch whose fate was unknown may come twice.
//!
//! Memory is bounded: [`Producer::send`] waits while too many bytes are queued or under way.

mod pump;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use trifid_stream_model::batch::{BatchBuilder, BuildOptions, Compression};
use trifid_stream_model::frame::{Ack, Reply, reply, request};
use trifid_stream_model::names::StreamName;
use trifid_stream_model::partition::shard_of;

use self::pump::Queue;
use crate::error::{PublishError, RequestError};
use crate::pool::Pool;
use crate::record::Record;

/// How to publish.
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    /// How long a record may wait for others while batches of its shard are under way.
    pub linger: Duration,
    /// Bytes of a batch at which it leaves.
    pub batch_bytes: usize,
    /// Bytes that may be queued and under way.
    pub memory_bytes: usize,
    /// Whether the broker acknowledges. Without it nothing is sent again, and what the broker sheds is only
    /// logged.
    pub acknowledged: bool,
    /// Whether batches are numbered, so that sending one again never makes two of it.
    pub idempotent: bool,
    /// How records are compressed; all but none need the feature `compression`.
    pub compression: Compression,
    /// How long delivering a record may take, all attempts together.
    pub delivery_timeout: Duration,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            linger: Duration::from_millis(1),
            batch_bytes: 256 << 10,
            memory_bytes: 16 << 20,
            acknowledged: true,
            idempotent: true,
            compression: Compression::None,
            delivery_timeout: Duration::from_secs(120),
        }
    }
}

/// What became of a batch: its base offset, once it is known.
pub(crate) type Outcome = Option<Result<Placed, PublishError>>;

/// Where a batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// None where nobody acknowledged it.
    pub(crate) base: Option<u64>,
}

/// The promise to say where a record lies. Need not be awaited: [`Producer::flush`] waits for all.
#[derive(Debug)]
pub struct Receipt {
    outcome: watch::Receiver<Outcome>,
    delta: u32,
    shard: u32,
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The shard.
    pub shard: u32,
    /// The offset; none if the producer asks for no acknowledgements.
    pub offset: Option<u64>,
}

impl Receipt {
    /// Waits until the record is acknowledged, or will not be.
    pub async fn wait(mut self) -> Result<Location, PublishError> {
        let outcome = self.outcome.wait_for(Option::is_some).await;
        // The sender is dropped without a word only when the producer ends.
        let outcome = outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or(Err(PublishError::Closed));
        outcome.map(|placed| Location {
            shard: self.shard,
            offset: placed.base.map(|base| base.saturating_add(u64::from(self.delta))),
        })
    }
}

/// A producer for one stream. Cloning it gives another handle on the same queues. What is not delivered when
/// the last handle is dropped is given up: [flush](Producer::flush) first.
#[derive(Clone, Debug)]
pub struct Producer {
    shared: Arc<Shared>,
}

/// What the handles and the tasks of the shards share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pool: Arc<Pool>,
    pub(crate) name: StreamName,
    pub(crate) options: ProducerOptions,
    pub(crate) opened: reply::Opened,
    pub(crate) queues: Box<[Queue]>,
    /// Bytes queued and under way, in all shards.
    pub(crate) bytes: Mutex<usize>,
    /// Bytes or batches have become fewer.
    pub(crate) freed: Notify,
    /// Where records without a key go, until their batch has left (KIP-480).
    sticky: AtomicU32,
    /// Who the broker knows this producer as, until a shard has trouble with it.
    identity: tokio::sync::Mutex<Option<(i64, i16)>>,
}

impl Producer {
    pub(crate) async fn open(
        pool: Arc<Pool>,
        name: StreamName,
        options: ProducerOptions,
    ) -> Result<Self, RequestError> {
        let line = pool.line(pool.place_of(&(&name, 0))).await?;
        let opened = line.stream(&name, pool.options.request_timeout).await?;
        let batch_bytes = usize::try_from(opened.max_batch_bytes).unwrap_or(usize::MAX);
        let build = BuildOptions { max_bytes: batch_bytes, compression: options.compression };
        let shared = Arc::new(Shared {
            queues: (0..opened.shards).map(|_| Queue::new(BatchBuilder::new(build))).collect(),
            pool,
            name,
            options,
            opened,
            bytes: Mutex::new(0),
            freed: Notify::new(),
            sticky: AtomicU32::new(fastrand::u32(..)),
            identity: tokio::sync::Mutex::default(),
        });
        Ok(Self { shared })
    }

    /// The stream.
    pub fn name(&self) -> &StreamName {
        &self.shared.name
    }

    /// How many shards the stream has.
    pub fn shards(&self) -> u32 {
        self.shared.opened.shards
    }

    /// Queues a record; waits while too much is queued. The receipt tells what becomes of it.
    pub async fn send(&self, record: Record) -> Result<Receipt, PublishError> {
        let shard = self.shard(&record)?;
        let size = record.size();
        self.shared.reserve(size).await?;
        let queued = self.queue(shard).append(&record, size, &self.shared);
        self.shared.start(shard);
        let (outcome, delta, is_new) = queued.inspect_err(|_| self.shared.release(size))?;
        if is_new && record.key.is_none() && record.shard.is_none() {
            // The next batch of records without keys goes elsewhere.
            self.shared.sticky.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Receipt { outcome, delta, shard })
    }

    /// Queues a record and waits until it is acknowledged.
    pub async fn publish(&self, record: Record) -> Result<Location, PublishError> {
        self.send(record).await?.wait().await
    }

    /// Queues a whole batch as it is (Kafka's RecordBatch v2, not numbered), behind what is queued already.
    pub async fn send_batch(&self, shard: u32, batch: Bytes) -> Result<Receipt, PublishError> {
        let shards = self.shards();
        if shard >= shards {
            return Err(PublishError::Shard { shard, shards });
        }
        let size = batch.len();
        self.shared.reserve(size).await?;
        let queued = self.queue(shard).push_batch(batch, &self.shared);
        self.shared.start(shard);
        let outcome = queued.inspect_err(|_| self.shared.release(size))?;
        Ok(Receipt { outcome, delta: 0, shard })
    }

    /// Waits until everything that was queued is acknowledged, or failed; answers the first failure since the
    /// last flush.
    pub async fn flush(&self) -> Result<(), PublishError> {
        for queue in &self.shared.queues {
            queue.hurry();
        }
        loop {
            let mut freed = std::pin::pin!(self.shared.freed.notified());
            // Registered before looking: what is freed in between is not missed.
            freed.as_mut().enable();
            if *self.shared.bytes.lock() == 0 {
                break;
            }
            freed.await;
        }
        let failures = self.shared.queues.iter().filter_map(Queue::take_failure).collect::<Vec<_>>();
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    /// Bytes that are queued and under way.
    pub fn pending_bytes(&self) -> usize {
        *self.shared.bytes.lock()
    }

    fn shard(&self, record: &Record) -> Result<u32, PublishError> {
        let shards = self.shards();
        match (record.shard, &record.key) {
            (Some(shard), _) if shard < shards => Ok(shard),
            (Some(shard), _) => Err(PublishError::Shard { shard, shards }),
            (None, Some(key)) => {
                Ok(std::num::NonZeroU32::new(shards).map_or(0, |shards| shard_of(key, shards)))
            }
            (None, None) => Ok(self.shared.sticky.load(Ordering::Relaxed) % shards.max(1)),
        }
    }

    fn queue(&self, shard: u32) -> &Queue {
        &self.shared.queues[shard as usize]
    }
}

impl Shared {
    /// Waits for room for so many bytes. A record larger than all the memory passes when there is nothing
    /// else.
    async fn reserve(&self, size: usize) -> Result<(), PublishError> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            {
                let mut bytes = self.bytes.lock();
                if *bytes == 0 || *bytes + size <= self.options.memory_bytes {
                    *bytes += size;
                    return Ok(());
                }
            }
            freed.await;
        }
    }

    /// Gives so many bytes back.
    pub(crate) fn release(&self, size: usize) {
        *self.bytes.lock() -= size;
        self.freed.notify_waiters();
    }

    /// Starts the task of a shard, if it does not run yet.
    fn start(self: &Arc<Self>, shard: u32) {
        let queue = &self.queues[shard as usize];
        if queue.starts() {
            tokio::spawn(pump::run(Arc::downgrade(self), shard));
        }
    }

    pub(crate) fn ack(&self) -> Ack {
        if self.options.acknowledged { Ack::One } else { Ack::None }
    }

    /// The producer's identity, or one of its own for a shard that had trouble with it.
    pub(crate) async fn identity(
        &self,
        line: &crate::line::Line,
        is_fresh: bool,
    ) -> Result<(i64, i16), RequestError> {
        if is_fresh {
            return self.new_identity(line).await;
        }
        let mut shared = self.identity.lock().await;
        if let Some(identity) = *shared {
            return Ok(identity);
        }
        Ok(*shared.insert(self.new_identity(line).await?))
    }

    async fn new_identity(&self, line: &crate::line::Line) -> Result<(i64, i16), RequestError> {
        let ask = request::InitProducer { renew: None };
        match line.ask(&ask.into(), self.pool.options.request_timeout).await? {
            Reply::ProducerReady(ready) => Ok((ready.id, ready.epoch)),
            _ => Err(RequestError::Unexpected("ProducerReady")),
        }
    }
}
