//! A subscription: what is written to a stream, from a place on, without end.
//!
//! The broker pushes batches as far as it was given credit, and credit is given back as they are read: a
//! subscription that is not read holds up nobody else. When the connection is lost, the subscription goes on
//! by itself where it was, shard by shard. What it will not get, because its policy passed over it or because
//! it is no longer kept, is told as [`Event::Lost`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use trifid_stream_model::batch;
use trifid_stream_model::frame::{Code, EndReason, Policy, Reply, ShardOffset, Start, reply, request};
use trifid_stream_model::names::StreamName;

use crate::error::{RequestError, SubscribeError};
use crate::inlet::{Inlet, Push};
use crate::line::Line;
use crate::pool::{Backoff, Pool};
use crate::record::Batch;

/// How to subscribe.
#[derive(Clone, Debug)]
pub struct SubscribeOptions {
    /// Where to begin.
    pub start: Start,
    /// Where to begin in these shards instead: what a consumer that keeps its place itself has seen.
    pub resume: Vec<ShardOffset>,
    /// One shard, or all.
    pub shard: Option<u32>,
    /// What happens if this subscription does not keep up.
    pub policy: Policy,
    /// How many bytes behind the end the policy lets it be.
    pub budget_bytes: u64,
    /// How many bytes of batches may be on the way.
    pub credit_bytes: u64,
    /// The largest frame of batches, unless a single batch is larger.
    pub frame_bytes: u32,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            start: Start::Latest,
            resume: Vec::new(),
            shard: None,
            policy: Policy::Block,
            budget_bytes: 16 << 20,
            credit_bytes: 4 << 20,
            frame_bytes: 512 << 10,
        }
    }
}

impl SubscribeOptions {
    /// From this place on.
    pub fn from(start: Start) -> Self {
        Self { start, ..Self::default() }
    }

    /// The same with this policy, so many bytes behind the end.
    #[must_use]
    pub fn policy(self, policy: Policy, budget_bytes: u64) -> Self {
        Self { policy, budget_bytes, ..self }
    }

    /// The same for one shard.
    #[must_use]
    pub fn shard(self, shard: u32) -> Self {
        Self { shard: Some(shard), ..self }
    }

    /// The same with places of its own in some shards.
    #[must_use]
    pub fn resume(self, resume: Vec<ShardOffset>) -> Self {
        Self { resume, ..self }
    }
}

/// What a subscription tells.
#[derive(Clone, Debug)]
pub enum Event {
    /// Records.
    Batch(Batch),
    /// Records that will not come.
    Lost {
        /// In which shard.
        shard: u32,
        /// The first offset.
        from: u64,
        /// The offset after the last.
        to: u64,
    },
}

/// A subscription.
#[derive(Debug)]
pub struct Subscription {
    pool: Arc<Pool>,
    place: usize,
    name: StreamName,
    options: SubscribeOptions,
    inlet: Arc<Inlet>,
    source: Option<(Arc<Line>, u32)>,
    /// The next offset of each shard.
    next: BTreeMap<u32, u64>,
    ready: VecDeque<Event>,
    /// Bytes that were read and for which no credit was given yet.
    read_bytes: u64,
}

impl Subscription {
    pub(crate) async fn open(
        pool: Arc<Pool>,
        name: StreamName,
        options: SubscribeOptions,
    ) -> Result<Self, SubscribeError> {
        let mut subscription = Self {
            place: pool.next_place(),
            pool,
            name,
            options,
            inlet: Arc::default(),
            source: None,
            next: BTreeMap::new(),
            ready: VecDeque::new(),
            read_bytes: 0,
        };
        let resume = subscription.options.resume.clone();
        subscription.begin(resume).await?;
        Ok(subscription)
    }

    /// The stream.
    pub fn name(&self) -> &StreamName {
        &self.name
    }

    /// The next offset of each shard: what to resume with after a restart.
    pub fn position(&self) -> Vec<ShardOffset> {
        self.next.iter().map(|(shard, offset)| ShardOffset { shard: *shard, offset: *offset }).collect()
    }

    async fn begin(&mut self, resume: Vec<ShardOffset>) -> Result<(), RequestError> {
        let line = self.pool.line(self.place).await?;
        let limit = self.pool.options.request_timeout;
        let inlet = Arc::<Inlet>::default();
        let options = &self.options;
        let subscribe = request::Subscribe {
            stream: self.name.clone(),
            shard: options.shard,
            start: options.start,
            resume,
            policy: options.policy,
            budget_bytes: options.budget_bytes,
            credit_bytes: options.credit_bytes,
            max_frame_bytes: options.frame_bytes,
        };
        let (id, waiting) = line.subscribe(&subscribe.into(), &inlet)?;
        let begun = match tokio::time::timeout(limit, waiting).await {
            Ok(Ok(Ok(Reply::Subscribed(begun)))) => begun,
            Ok(Ok(Ok(_))) => return Err(RequestError::Unexpected("Subscribed")),
            Ok(Ok(Err(refusal))) => return Err(refusal.into()),
            Ok(Err(_)) => return Err(RequestError::Lost),
            Err(_) => return Err(RequestError::Timeout(limit)),
        };
        self.note_starts(&begun);
        (self.inlet, self.source, self.read_bytes) = (inlet, Some((line, id)), 0);
        Ok(())
    }

    /// Where the broker begins may lie after where this subscription was.
    fn note_starts(&mut self, begun: &reply::Subscribed) {
        for start in &begun.starts {
            let known = self.next.insert(start.shard, start.offset);
            if let Some(from) = known.filter(|from| *from < start.offset) {
                self.ready.push_back(Event::Lost { shard: start.shard, from, to: start.offset });
            }
        }
    }

    /// The next event. Dropping the future loses nothing. An error is final: what can be mended is mended
    /// before.
    pub async fn next(&mut self) -> Result<Event, SubscribeError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.note(&event);
                return Ok(event);
            }
            if self.source.is_none() {
                self.mend().await?;
                continue;
            }
            self.give_credit();
            let push = self.inlet.next().await;
            self.take(push)?;
        }
    }

    /// The next event, if there is one already; nothing is mended.
    pub fn try_next(&mut self) -> Result<Option<Event>, SubscribeError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.note(&event);
                return Ok(Some(event));
            }
            self.give_credit();
            match self.inlet.ready() {
                Some(push) => self.take(push)?,
                None => return Ok(None),
            }
        }
    }

    fn take(&mut self, push: Push) -> Result<(), SubscribeError> {
        match push {
            Push::Batch(pushed) => return self.take_batch(&pushed),
            Push::Skipped(reply::Lost { shard, from, to }) => {
                self.ready.push_back(Event::Lost { shard, from, to });
            }
            Push::Ended(ended) => {
                self.source = None;
                match ended.reason {
                    EndReason::Deleted => return Err(SubscribeError::Deleted),
                    EndReason::Failed => return Err(SubscribeError::Failed(ended.message)),
                    // Somebody else owns the shard, or this end was asked for: subscribing again finds out.
                    EndReason::Moved | EndReason::Lagged | EndReason::Unsubscribed => {}
                }
            }
            Push::Lost => self.source = None,
            Push::Changes(_) => {}
        }
        Ok(())
    }

    fn take_batch(&mut self, pushed: &reply::Batch) -> Result<(), SubscribeError> {
        self.read_bytes += pushed.cost();
        let from = self.next.get(&pushed.shard).copied().unwrap_or(0);
        for bytes in batch::split(&pushed.batches) {
            let batch = Batch::read(pushed.shard, from, u64::MAX, bytes?)?;
            // What was seen before the connection was lost is not told again.
            if batch.end_offset() > from {
                self.ready.push_back(Event::Batch(batch));
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &Event) {
        let (shard, next) = match event {
            Event::Batch(batch) => (batch.shard(), batch.end_offset()),
            Event::Lost { shard, to, .. } => (*shard, *to),
        };
        let known = self.next.entry(shard).or_insert(next);
        *known = next.max(*known);
    }

    /// Subscribes again where it was.
    async fn mend(&mut self) -> Result<(), SubscribeError> {
        let mut backoff = Backoff::new(&self.pool.options);
        loop {
            let error = match self.begin(self.position()).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match &error {
                RequestError::Lost | RequestError::Timeout(_) => {}
                RequestError::Connect(error) if error.is_retriable() => {}
                RequestError::Refused(refusal) => match refusal.code {
                    Code::OffsetTooOld { .. } => {
                        self.skip().await?;
                        continue;
                    }
                    Code::ShuttingDown | Code::Overloaded { .. } | Code::NoSpace | Code::TimedOut => {}
                    _ => return Err(error.into()),
                },
                RequestError::Connect(_) | RequestError::Name(_) | RequestError::Unexpected(_) => {
                    return Err(error.into());
                }
            }
            tokio::time::sleep(backoff.step()).await;
        }
    }

    /// What this subscription was to read next is no longer kept somewhere: moves forward there, and tells.
    async fn skip(&mut self) -> Result<(), SubscribeError> {
        let line = self.pool.line(self.place).await.map_err(RequestError::from)?;
        let (stream, shard) = (self.name.clone(), self.options.shard);
        let ask = request::OffsetFor { stream, shard, at: Start::Earliest };
        let Reply::Offsets(first) = line.ask(&ask.into(), self.pool.options.request_timeout).await? else {
            return Err(RequestError::Unexpected("Offsets").into());
        };
        for first in first.offsets {
            let next = self.next.entry(first.shard).or_insert(first.offset);
            if *next < first.offset {
                let lost = Event::Lost { shard: first.shard, from: *next, to: first.offset };
                *next = first.offset;
                self.ready.push_back(lost);
            }
        }
        Ok(())
    }

    fn give_credit(&mut self) {
        if self.read_bytes >= self.options.credit_bytes / 4
            && let Some((line, id)) = &self.source
            && self.read_bytes > 0
        {
            line.credit(*id, std::mem::take(&mut self.read_bytes));
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some((line, id)) = self.source.take() {
            line.unsubscribe(id);
        }
    }
}
