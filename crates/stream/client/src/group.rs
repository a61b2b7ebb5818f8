//! A member of a consumer group: records are leased, and done when they are acknowledged.
//!
//! The group shares the records of its streams out among its members. What a member does not acknowledge in
//! the time of the lease, or gives back, is delivered again, to whoever asks next; after a number of attempts
//! it is set aside. A member whose connection is lost joins again by itself; what it had leased comes again,
//! to it or to another.

use std::sync::Arc;
use std::time::Duration;

use trifid_stream_model::batch::BatchError;
use trifid_stream_model::frame::{
    Code, JoinSettings, OffsetRange, Refusal, Reply, Request, Start, reply, request,
};
use trifid_stream_model::limits::{DELIVERIES_DEFAULT, LEASE_MS_DEFAULT, PULL_WAIT_MS_MAX};
use trifid_stream_model::names::{GroupName, StreamName};

use crate::error::RequestError;
use crate::line::Line;
use crate::pool::{Backoff, Pool};
use crate::record::{Batch, Received};

/// How a group delivers. The first member decides for all.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// How long a record is leased.
    pub lease: Duration,
    /// How often a record is delivered before it is set aside; zero: without end.
    pub max_deliveries: u16,
    /// Where a record goes that was delivered so often; without one it is counted and passed over.
    pub dead_letter: Option<StreamName>,
    /// Where a group begins that has no committed offset.
    pub start: Start,
    /// What this member calls itself.
    pub name: String,
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_millis(LEASE_MS_DEFAULT.into()),
            max_deliveries: DELIVERIES_DEFAULT,
            dead_letter: None,
            start: Start::Earliest,
            name: String::new(),
        }
    }
}

/// Records of one batch that are leased to this member.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The stream.
    pub stream: StreamName,
    /// How often these records were delivered, with this time.
    pub attempt: u16,
    range: OffsetRange,
    batch: Batch,
}

impl Delivery {
    /// The shard.
    pub fn shard(&self) -> u32 {
        self.range.shard
    }

    /// The first and the last offset that are leased.
    pub fn offsets(&self) -> std::ops::RangeInclusive<u64> {
        self.range.first..=self.range.last
    }

    /// The records that are leased.
    pub fn records(&self) -> Result<Vec<Received>, BatchError> {
        self.batch.records()
    }

    /// One of its offsets alone: for giving back a part.
    pub fn only(&self, offset: u64) -> Option<Lease> {
        let range = OffsetRange { first: offset, last: offset, ..self.range.clone() };
        self.offsets().contains(&offset).then_some(Lease(range))
    }

    /// All of it.
    pub fn lease(&self) -> Lease {
        Lease(self.range.clone())
    }
}

/// Records that are leased to this member, for saying what became of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease(OffsetRange);

impl From<&Delivery> for Lease {
    fn from(delivery: &Delivery) -> Self {
        delivery.lease()
    }
}

/// How many records it was done for, and how many were not leased to this member any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Done.
    pub settled: u64,
    /// Not leased to this member any more: they are delivered again, or were settled before.
    pub unknown: u64,
}

/// A member of a group.
#[derive(Debug)]
pub struct Group {
    pool: Arc<Pool>,
    place: usize,
    name: GroupName,
    streams: Vec<StreamName>,
    options: GroupOptions,
    joined: tokio::sync::Mutex<Option<Joined>>,
}

#[derive(Clone, Debug)]
struct Joined {
    line: Arc<Line>,
    handle: u32,
    settings: JoinSettings,
}

impl Group {
    pub(crate) async fn join(
        pool: Arc<Pool>,
        name: GroupName,
        streams: Vec<StreamName>,
        options: GroupOptions,
    ) -> Result<Self, RequestError> {
        let place = pool.next_place();
        let group = Self { pool, place, name, streams, options, joined: tokio::sync::Mutex::default() };
        group.joined().await?;
        Ok(group)
    }

    /// How the group delivers: what its first member asked for.
    pub async fn settings(&self) -> Result<JoinSettings, RequestError> {
        Ok(self.joined().await?.settings)
    }

    /// Leases records: at most so many, of batches of so many bytes. Waits so long for the first one, and
    /// answers nothing if none came. A lost connection is mended within that time.
    pub async fn pull(
        &self,
        max_records: u32,
        max_bytes: u32,
        wait: Duration,
    ) -> Result<Vec<Delivery>, RequestError> {
        let until = tokio::time::Instant::now() + wait;
        let mut backoff = Backoff::new(&self.pool.options);
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            match self.pull_once(max_records, max_bytes, left).await {
                Err(error) if !left.is_zero() && is_passing(&error) => {
                    tokio::time::sleep(backoff.step().min(left)).await;
                }
                pulled => return pulled,
            }
        }
    }

    async fn pull_once(
        &self,
        max_records: u32,
        max_bytes: u32,
        wait: Duration,
    ) -> Result<Vec<Delivery>, RequestError> {
        let joined = self.joined().await?;
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).min(PULL_WAIT_MS_MAX);
        let pull = request::GroupPull { handle: joined.handle, max_records, max_bytes, wait_ms };
        let limit = Duration::from_millis(wait_ms.into()) + self.pool.options.request_timeout;
        match joined.line.ask(&pull.into(), limit).await {
            Ok(Reply::Pulled(pulled)) => self.deliveries(pulled),
            Ok(_) => Err(RequestError::Unexpected("Pulled")),
            Err(error) => Err(self.forget(error).await),
        }
    }

    fn deliveries(&self, pulled: reply::Pulled) -> Result<Vec<Delivery>, RequestError> {
        let deliveries = pulled.deliveries.into_iter().map(|delivery| {
            let range = delivery.range;
            let to = range.last.saturating_add(1);
            let batch = Batch::read(range.shard, range.first, to, delivery.batch).ok()?;
            let stream = self.streams.get(usize::from(range.stream))?.clone();
            Some(Delivery { stream, attempt: delivery.attempt, range, batch })
        });
        deliveries.collect::<Option<_>>().ok_or(RequestError::Unexpected("deliveries of these streams"))
    }

    /// These records are done.
    pub async fn ack(
        &self,
        leases: impl IntoIterator<Item = impl Into<Lease>>,
    ) -> Result<Settled, RequestError> {
        let ranges = ranges(leases);
        self.settle(|handle| request::GroupAck { handle, ranges }.into()).await
    }

    /// These records are to be delivered again, after a delay.
    pub async fn nack(
        &self,
        leases: impl IntoIterator<Item = impl Into<Lease>>,
        delay: Duration,
    ) -> Result<Settled, RequestError> {
        let (ranges, delay_ms) = (ranges(leases), millis(delay));
        self.settle(|handle| request::GroupNack { handle, delay_ms, ranges }.into()).await
    }

    /// These records need more time: so long from now.
    pub async fn extend(
        &self,
        leases: impl IntoIterator<Item = impl Into<Lease>>,
        lease: Duration,
    ) -> Result<Settled, RequestError> {
        let (ranges, lease_ms) = (ranges(leases), millis(lease));
        self.settle(|handle| request::GroupExtend { handle, lease_ms, ranges }.into()).await
    }

    /// Leaves the group; what is leased is delivered to others at once.
    pub async fn leave(self) -> Result<(), RequestError> {
        let Some(joined) = self.joined.lock().await.take() else { return Ok(()) };
        let leave = request::GroupLeave { handle: joined.handle };
        joined.line.ask(&leave.into(), self.pool.options.request_timeout).await.map(|_| ())
    }

    async fn settle(&self, request: impl FnOnce(u32) -> Request) -> Result<Settled, RequestError> {
        let joined = self.joined().await?;
        let limit = self.pool.options.request_timeout;
        match joined.line.ask(&request(joined.handle), limit).await {
            Ok(Reply::Settled(reply::Settled { settled, unknown })) => Ok(Settled { settled, unknown }),
            Ok(_) => Err(RequestError::Unexpected("Settled")),
            Err(error) => Err(self.forget(error).await),
        }
    }

    /// The membership, anew if the connection was lost.
    async fn joined(&self) -> Result<Joined, RequestError> {
        let mut slot = self.joined.lock().await;
        if let Some(joined) = slot.as_ref().filter(|joined| joined.line.is_open()) {
            return Ok(joined.clone());
        }
        let line = self.pool.line(self.place).await?;
        let join = request::GroupJoin {
            group: self.name.clone(),
            client: self.member_name(),
            streams: self.streams.clone(),
            settings: JoinSettings {
                ack_timeout_ms: millis(self.options.lease),
                max_deliveries: self.options.max_deliveries,
                dead_letter: self.options.dead_letter.clone(),
                start: self.options.start,
            },
        };
        match line.ask(&join.into(), self.pool.options.request_timeout).await? {
            Reply::Joined(reply::Joined { handle, settings, .. }) => {
                let joined = Joined { line, handle, settings };
                *slot = Some(joined.clone());
                Ok(joined)
            }
            _ => Err(RequestError::Unexpected("Joined")),
        }
    }

    fn member_name(&self) -> String {
        if self.options.name.is_empty() { self.pool.options.name.clone() } else { self.options.name.clone() }
    }

    /// Forgets the membership if the error says that there is none any more.
    async fn forget(&self, error: RequestError) -> RequestError {
        if is_passing(&error) {
            self.joined.lock().await.take();
        }
        error
    }
}

/// Whether joining again can help.
fn is_passing(error: &RequestError) -> bool {
    match error {
        RequestError::Lost => true,
        RequestError::Connect(error) => error.is_retriable(),
        RequestError::Refused(Refusal { code, .. }) => {
            matches!(code, Code::UnknownGroup | Code::ShuttingDown | Code::Overloaded { .. })
        }
        RequestError::Timeout(_) | RequestError::Name(_) | RequestError::Unexpected(_) => false,
    }
}

fn ranges(leases: impl IntoIterator<Item = impl Into<Lease>>) -> Vec<OffsetRange> {
    leases.into_iter().map(|lease| lease.into().0).collect()
}

fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}
