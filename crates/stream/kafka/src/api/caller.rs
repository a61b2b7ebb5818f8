//! A client that is known: its tenant, what it may do, and what it has at hand.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;
use trifid_base_web::Role;
use trifid_stream_engine::{Broker, ConnectionBudget, Shard, Stream};
use trifid_stream_model::names::{StreamName, Tenant};

use crate::limits::TOPICS_REMEMBERED_MAX;
use crate::options::Endpoint;
use crate::server::{Counts, Shared, Worker};

/// See the module.
pub(crate) struct Caller {
    pub(crate) shared: Arc<Shared>,
    worker: usize,
    pub(crate) tenant: Tenant,
    pub(crate) role: Role,
    /// The client's address, as groups list it.
    pub(crate) host: String,
    /// Where the client is told to find this broker.
    pub(crate) endpoint: Endpoint,
    pub(crate) budget: Arc<ConnectionBudget>,
    /// Streams by the names that this connection has used, so that a batch costs no parsing and no shared map.
    streams: RefCell<HashMap<Bytes, Arc<Stream>>>,
    ids: RefCell<HashMap<[u8; 16], Arc<Stream>>>,
}

impl Caller {
    pub(crate) fn new(
        worker: &Worker,
        tenant: Tenant,
        role: Role,
        peer: SocketAddr,
        endpoint: Endpoint,
    ) -> Self {
        // Two of the largest requests: one on its way to the disk while the next is read.
        let shared = &worker.shared;
        let limit = shared.resolved.limits.request_bytes.saturating_mul(2);
        Self {
            budget: shared.broker.connection(&tenant, limit),
            shared: Arc::clone(shared),
            worker: worker.index,
            tenant,
            role,
            host: format!("/{}", peer.ip().to_canonical()),
            endpoint,
            streams: RefCell::default(),
            ids: RefCell::default(),
        }
    }

    /// Whoever connects to a listener without tokens.
    pub(crate) fn local(worker: &Worker, peer: SocketAddr, endpoint: Endpoint) -> Self {
        Self::new(worker, Tenant::default(), Role::Admin, peer, endpoint)
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.shared.broker
    }

    /// The counts of the worker that the client is at.
    pub(crate) fn counts(&self) -> &Counts {
        self.shared.counts.worker(self.worker)
    }

    /// Whether the client may change streams.
    pub(crate) fn may_write(&self) -> bool {
        self.role >= Role::Write
    }

    /// The shard that a partition is, as far as this connection remembers: it may have been deleted meanwhile, which
    /// it says itself, and then [`forget`](Self::forget) is due. Comes with a copy of the topic's name that is not a
    /// part of the request.
    pub(crate) fn remembered(&self, topic: &Bytes, index: i32) -> Result<(Bytes, Arc<Shard>), ResponseError> {
        if let Some((own, stream)) = self.streams.borrow().get_key_value(topic)
            && let Ok(shard) = shard(stream, index)
        {
            return Ok((own.clone(), shard));
        }
        // New, or it has got more shards since.
        let stream = self.stream(std::str::from_utf8(topic).unwrap_or_default())?;
        let shard = shard(&stream, index)?;
        let mut streams = self.streams.borrow_mut();
        if streams.len() >= TOPICS_REMEMBERED_MAX {
            streams.clear();
        }
        let own = Bytes::copy_from_slice(topic);
        streams.insert(own.clone(), stream);
        Ok((own, shard))
    }

    /// The shard that a partition of a topic with this id is (KIP-516).
    pub(crate) fn shard_of_id(&self, id: [u8; 16], index: i32) -> Result<Arc<Shard>, ResponseError> {
        if let Some(stream) = self.ids.borrow().get(&id)
            && let Ok(shard) = shard(stream, index)
        {
            return Ok(shard);
        }
        let stream = self.stream_of_id(id)?;
        let shard = shard(&stream, index)?;
        let mut ids = self.ids.borrow_mut();
        if ids.len() >= TOPICS_REMEMBERED_MAX {
            ids.clear();
        }
        ids.insert(id, stream);
        Ok(shard)
    }

    /// The stream of this id.
    pub(crate) fn stream_of_id(&self, id: [u8; 16]) -> Result<Arc<Stream>, ResponseError> {
        self.broker().stream_of_topic(&self.tenant, id).map_err(|_| ResponseError::UnknownTopicId)
    }

    /// Looks topics up again next time.
    pub(crate) fn forget(&self) {
        self.streams.borrow_mut().clear();
        self.ids.borrow_mut().clear();
    }

    /// The stream that a topic is.
    pub(crate) fn stream(&self, topic: &str) -> Result<Arc<Stream>, ResponseError> {
        let stream = self.broker().stream(&self.tenant, &name(topic)?);
        stream.map_err(|_| ResponseError::UnknownTopicOrPartition)
    }

    /// The shard that a partition is.
    pub(crate) fn shard(&self, topic: &str, index: i32) -> Result<Arc<Shard>, ResponseError> {
        shard(&*self.stream(topic)?, index)
    }
}

/// The shard of this index.
pub(crate) fn shard(stream: &Stream, index: i32) -> Result<Arc<Shard>, ResponseError> {
    let index = u32::try_from(index).map_err(|_| ResponseError::UnknownTopicOrPartition)?;
    stream.shard(index).cloned().ok_or(ResponseError::UnknownTopicOrPartition)
}

/// The stream's name that a topic's name is; each is written like the other.
pub(crate) fn name(topic: &str) -> Result<StreamName, ResponseError> {
    StreamName::new(topic).map_err(|_| ResponseError::InvalidTopicException)
}

/// Runs what may touch the disk on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ResponseError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "work for a client of Kafka failed");
        ResponseError::UnknownServerError
    })
}

/// The first of each: who names one thing a thousand times is not answered a thousand times about it.
pub(crate) fn distinct<T, K: Eq + Hash>(things: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut seen = HashSet::with_capacity(things.len());
    things.into_iter().filter(|thing| seen.insert(key(thing))).collect()
}

/// A text for an answer.
pub(crate) fn text(text: impl Into<String>) -> StrBytes {
    StrBytes::from_string(text.into())
}
