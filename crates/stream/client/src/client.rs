//! The client: a handle on a pool of connections, and what can be asked of a broker as a whole.

use std::sync::Arc;
use std::time::Duration;

use trifid_stream_model::frame::{
    GroupSummary, Page, Reply, Request, ShardState, Start, StreamListing, TimedOffset, reply, request,
};
use trifid_stream_model::names::{CacheName, GroupName, StreamName};
use trifid_stream_model::spec::{CacheSpec, StreamSpec};

use crate::address::Transport;
use crate::cache::Cache;
use crate::error::{ConnectError, RequestError, SubscribeError};
use crate::group::{Group, GroupOptions};
use crate::options::ClientOptions;
use crate::pool::Pool;
use crate::producer::{Producer, ProducerOptions};
use crate::subscription::{SubscribeOptions, Subscription};
use crate::trust::TrustError;

/// A client of one broker. Cloning it gives another handle on the same connections; they end with the last
/// handle.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) pool: Arc<Pool>,
}

/// What a stream is and holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDescription {
    /// Its full name.
    pub name: StreamName,
    /// What it is.
    pub spec: StreamSpec,
    /// What is in it.
    pub shards: Vec<ShardState>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody can be trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// No conversation with the broker.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Client {
    /// Connects, and is greeted: an address, a certificate or a token that is wrong is told here.
    pub async fn connect(options: ClientOptions) -> Result<Self, ClientError> {
        let client = Self::lazy(options)?;
        client.pool.line(0).await?;
        Ok(client)
    }

    /// A client that connects when it is first asked for something.
    pub fn lazy(options: ClientOptions) -> Result<Self, TrustError> {
        Ok(Self { pool: Arc::new(Pool::new(options)?) })
    }

    /// What the broker said when it took this client: its name, its limits, the tenant.
    pub async fn welcome(&self) -> Result<reply::Welcome, ConnectError> {
        Ok(self.pool.line(0).await?.welcome.clone())
    }

    /// Which transport the connection goes over; none before the first.
    pub async fn transport(&self) -> Option<Transport> {
        self.pool.transport().await
    }

    /// Asks whether the broker is there, and how long the way there and back takes.
    pub async fn ping(&self) -> Result<Duration, RequestError> {
        let began = std::time::Instant::now();
        match self.ask(request::Ping { nonce: fastrand::u64(..) }).await? {
            Reply::Pong(_) => Ok(began.elapsed()),
            _ => Err(RequestError::Unexpected("Pong")),
        }
    }

    /// Makes a stream. One that is there with the same specification is no error.
    pub async fn create_stream(&self, name: &str, spec: StreamSpec) -> Result<(), RequestError> {
        self.done(request::CreateStream { name: StreamName::new(name)?, spec }).await
    }

    /// Deletes a stream and all that is in it.
    pub async fn delete_stream(&self, name: &str) -> Result<(), RequestError> {
        self.done(request::DeleteStream { name: StreamName::new(name)? }).await
    }

    /// A page of the streams whose full names begin with `prefix`, after the name `after` (empty: from the
    /// beginning); and whether there are more.
    pub async fn list_streams(
        &self,
        prefix: &str,
        after: &str,
        limit: u32,
    ) -> Result<(Vec<StreamListing>, bool), RequestError> {
        let page = Page { after: after.to_owned(), limit };
        match self.ask(request::ListStreams { prefix: prefix.to_owned(), page }).await? {
            Reply::Streams(streams) => Ok((streams.streams, streams.more)),
            _ => Err(RequestError::Unexpected("Streams")),
        }
    }

    /// What a stream is and holds.
    pub async fn describe_stream(&self, name: &str) -> Result<StreamDescription, RequestError> {
        let name = StreamName::new(name)?;
        match self.ask(request::DescribeStream { name: name.clone() }).await? {
            Reply::Stream(reply::Stream { spec, shards }) => Ok(StreamDescription { name, spec, shards }),
            _ => Err(RequestError::Unexpected("Stream")),
        }
    }

    /// Offsets of a stream, in one shard or in all: the first, the next, or the first of a time.
    pub async fn offsets(
        &self,
        name: &str,
        shard: Option<u32>,
        at: Start,
    ) -> Result<Vec<TimedOffset>, RequestError> {
        match self.ask(request::OffsetFor { stream: StreamName::new(name)?, shard, at }).await? {
            Reply::Offsets(offsets) => Ok(offsets.offsets),
            _ => Err(RequestError::Unexpected("Offsets")),
        }
    }

    /// A producer for a stream, made on first use where the broker does that.
    pub async fn producer(&self, name: &str, options: ProducerOptions) -> Result<Producer, RequestError> {
        Producer::open(Arc::clone(&self.pool), StreamName::new(name)?, options).await
    }

    /// A subscription of a stream.
    pub async fn subscribe(
        &self,
        name: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, SubscribeError> {
        let name = StreamName::new(name).map_err(RequestError::from)?;
        Subscription::open(Arc::clone(&self.pool), name, options).await
    }

    /// A member of a consumer group that reads these streams.
    pub async fn join_group(
        &self,
        group: &str,
        streams: &[&str],
        options: GroupOptions,
    ) -> Result<Group, RequestError> {
        let streams = streams.iter().map(|name| StreamName::new(name)).collect::<Result<Vec<_>, _>>()?;
        Group::join(Arc::clone(&self.pool), GroupName::new(group)?, streams, options).await
    }

    /// What a group is doing, and how far it has come.
    pub async fn describe_group(&self, group: &str) -> Result<reply::Group, RequestError> {
        match self.ask(request::GroupDescribe { group: GroupName::new(group)? }).await? {
            Reply::Group(group) => Ok(group),
            _ => Err(RequestError::Unexpected("Group")),
        }
    }

    /// A page of the groups whose names begin with `prefix`; and whether there are more.
    pub async fn list_groups(
        &self,
        prefix: &str,
        after: &str,
        limit: u32,
    ) -> Result<(Vec<GroupSummary>, bool), RequestError> {
        let page = Page { after: after.to_owned(), limit };
        match self.ask(request::GroupList { prefix: prefix.to_owned(), page }).await? {
            Reply::Groups(groups) => Ok((groups.groups, groups.more)),
            _ => Err(RequestError::Unexpected("Groups")),
        }
    }

    /// Deletes a group without members, and its offsets.
    pub async fn delete_group(&self, group: &str) -> Result<(), RequestError> {
        self.done(request::GroupDelete { group: GroupName::new(group)? }).await
    }

    /// Puts a group without members elsewhere in a stream; answers where it is now.
    pub async fn reset_group(
        &self,
        group: &str,
        stream: &str,
        shard: Option<u32>,
        to: Start,
    ) -> Result<Vec<trifid_stream_model::frame::CommittedOffset>, RequestError> {
        let (group, stream) = (GroupName::new(group)?, StreamName::new(stream)?);
        self.committed(request::ResetOffsets { group, stream, shard, to }).await
    }

    /// Notes how far a group has come: for consumers that subscribe and keep their place themselves.
    pub async fn commit_offsets(
        &self,
        group: &str,
        offsets: Vec<trifid_stream_model::frame::CommittedOffset>,
    ) -> Result<(), RequestError> {
        self.done(request::CommitOffsets { group: GroupName::new(group)?, offsets }).await
    }

    /// How far a group has come, in one stream or in all.
    pub async fn committed_offsets(
        &self,
        group: &str,
        stream: Option<&str>,
    ) -> Result<Vec<trifid_stream_model::frame::CommittedOffset>, RequestError> {
        let stream = stream.map(StreamName::new).transpose()?;
        self.committed(request::FetchOffsets { group: GroupName::new(group)?, stream }).await
    }

    /// Makes a cache. One that is there with the same specification is no error.
    pub async fn create_cache(&self, name: &str, spec: CacheSpec) -> Result<(), RequestError> {
        self.done(request::CacheCreate { name: CacheName::new(name)?, spec }).await
    }

    /// Deletes a cache and all that is in it.
    pub async fn drop_cache(&self, name: &str) -> Result<(), RequestError> {
        self.done(request::CacheDrop { name: CacheName::new(name)? }).await
    }

    /// A page of the caches whose full names begin with `prefix`; and whether there are more.
    pub async fn list_caches(
        &self,
        prefix: &str,
        after: &str,
        limit: u32,
    ) -> Result<(Vec<trifid_stream_model::frame::CacheListing>, bool), RequestError> {
        let page = Page { after: after.to_owned(), limit };
        match self.ask(request::CacheList { prefix: prefix.to_owned(), page }).await? {
            Reply::Caches(caches) => Ok((caches.caches, caches.more)),
            _ => Err(RequestError::Unexpected("Caches")),
        }
    }

    /// A cache of this name. Nothing is asked yet: one that is not there is told by the first use.
    pub fn cache(&self, name: &str) -> Result<Cache, RequestError> {
        Ok(Cache::new(Arc::clone(&self.pool), CacheName::new(name)?))
    }

    /// Ends all connections in good order: what was sent is received, and the broker need not wait for who is
    /// gone. What producers still have queued is lost: [flush](Producer::flush) them first.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn ask(&self, request: impl Into<Request>) -> Result<Reply, RequestError> {
        let line = self.pool.line(0).await?;
        line.ask(&request.into(), self.pool.options.request_timeout).await
    }

    async fn done(&self, request: impl Into<Request>) -> Result<(), RequestError> {
        match self.ask(request).await? {
            Reply::Done(_) => Ok(()),
            _ => Err(RequestError::Unexpected("Done")),
        }
    }

    async fn committed(
        &self,
        request: impl Into<Request>,
    ) -> Result<Vec<trifid_stream_model::frame::CommittedOffset>, RequestError> {
        match self.ask(request).await? {
            Reply::Committed(committed) => Ok(committed.offsets),
            _ => Err(RequestError::Unexpected("Committed")),
        }
    }
}
