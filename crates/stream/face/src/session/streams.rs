//! Streams as such: making, deleting, listing, describing, opening, offsets.

use std::sync::Arc;

use trifid_stream_engine::{CreateError, Start as From, Stream, UnknownStream};
use trifid_stream_model::frame::{
    Code, Page, Refusal, Reply, ShardState, Start, StreamListing, TimedOffset, reply, request,
};
use trifid_stream_model::limits::PAGE_ENTRIES_MAX;
use trifid_stream_model::names::StreamName;

use super::serving::Serving;
use super::tasks::{Answer, blocking};
use super::{Output, refusal};

/// Where the engine begins for a place in the protocol's words.
pub(super) fn start_of(start: Start) -> From {
    match start {
        Start::Earliest => From::Earliest,
        Start::Latest => From::Latest,
        Start::Offset(offset) => From::Offset(offset),
        Start::Time(ms) => From::Time(ms),
    }
}

/// How many entries a page has, and the name that it begins after.
pub(super) fn page_of<N>(
    page: &Page,
    name: impl FnOnce(&str) -> Option<N>,
) -> Result<(usize, Option<N>), Refusal> {
    let limit = page.limit.clamp(1, PAGE_ENTRIES_MAX) as usize;
    if page.after.is_empty() {
        return Ok((limit, None));
    }
    let bad = || Refusal::new(Code::InvalidRequest, "the page begins after something that is no name");
    Ok((limit, Some(name(&page.after).ok_or_else(bad)?)))
}

impl Serving {
    pub(super) fn create_stream(&mut self, id: u32, create: request::CreateStream) {
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        self.tasks.answer(id, async move {
            let request::CreateStream { name, spec } = create;
            blocking(move || match broker.create(&tenant, &name, spec.clone()) {
                Ok(_) => Ok(reply::Done {}.into()),
                // Made already, the same way: as if this request had made it.
                Err(CreateError::Exists)
                    if broker.stream(&tenant, &name).is_ok_and(|stream| *stream.spec() == spec) =>
                {
                    Ok(reply::Done {}.into())
                }
                Err(error) => Err(refusal::of_create(&error)),
            })
            .await?
        });
    }

    pub(super) fn delete_stream(&mut self, id: u32, delete: request::DeleteStream) {
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        self.handles.forget(&delete.name);
        self.tasks.answer(id, async move {
            let deleted = blocking(move || broker.delete(&tenant, &delete.name)).await?;
            deleted.map(|()| reply::Done {}.into()).map_err(|error| refusal::of_delete(&error))
        });
    }

    pub(super) fn list_streams(&self, list: &request::ListStreams) -> Answer {
        let (limit, after) = page_of(&list.page, |name| StreamName::new(name).ok())?;
        let found = self.core.broker.list(&self.tenancy.tenant, &list.prefix, after.as_ref(), limit + 1);
        let more = found.len() > limit;
        let listing = |stream: &Arc<Stream>| StreamListing {
            name: stream.name().clone(),
            spec: (*stream.spec()).clone(),
        };
        Ok(reply::Streams { streams: found.iter().take(limit).map(listing).collect(), more }.into())
    }

    pub(super) fn describe_stream(&self, name: &StreamName) -> Answer {
        let stream = self.stream(name)?;
        let state = |(number, shard): (u32, &Arc<trifid_stream_engine::Shard>)| {
            let stats = shard.stats();
            let bytes = if shard.is_durable() { stats.log_bytes } else { stats.tail_bytes as u64 };
            let (first, end) = (shard.start_offset(), shard.end_offset());
            ShardState { shard: number, epoch: shard.epoch(), first, end, bytes }
        };
        let shards = (0..).zip(stream.shards()).map(state).collect();
        Ok(reply::Stream { spec: (*stream.spec()).clone(), shards }.into())
    }

    /// Opens a stream that is there at once; one that has to be made takes its time.
    pub(super) fn open(&mut self, id: u32, open: request::Open, out: &mut Output) {
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        if let Ok(stream) = broker.stream(&tenant, &open.name) {
            return self.opened(id, &stream, out);
        }
        self.tasks.begin(async move {
            let made = blocking(move || broker.stream_or_create(&tenant, &open.name)).await;
            let made = made.and_then(|made| made.map_err(|error| refusal::of_create(&error)));
            Box::new(move |serving: &mut Self, out: &mut Output| match made {
                Ok(stream) => serving.opened(id, &stream, out),
                Err(refusal) => out.refuse(id, refusal),
            }) as super::tasks::Ending
        });
    }

    fn opened(&mut self, id: u32, stream: &Arc<Stream>, out: &mut Output) {
        let Some(handle) = self.handles.open(stream) else {
            let message = "too many streams are open for publishing on this connection";
            return out.refuse(id, Refusal::new(Code::Overloaded { shed: 0 }, message));
        };
        let spec = stream.spec();
        let shards = u32::try_from(stream.shards().len()).unwrap_or(u32::MAX);
        let (durability, max_batch_bytes) = (spec.durability, spec.max_batch_bytes);
        out.reply(id, reply::Opened { handle, shards, durability, max_batch_bytes });
    }

    pub(super) fn offsets(&mut self, id: u32, wanted: request::OffsetFor) {
        let stream = self.stream(&wanted.stream);
        self.tasks.answer(id, async move {
            let (stream, request::OffsetFor { shard, at, .. }) = (stream?, wanted);
            blocking(move || offsets_of(&stream, shard, at)).await?
        });
    }

    pub(super) fn init_producer(&mut self, id: u32, init: &request::InitProducer, out: &mut Output) {
        if init.renew.is_some() {
            let message = "an identity is not renewed here: ask for a new one";
            return out.refuse(id, Refusal::new(Code::Unsupported, message));
        }
        let (broker, tenant) = (self.core.broker.clone(), self.tenancy.tenant.clone());
        self.tasks.answer(id, async move {
            let made = blocking(move || broker.init_producer(&tenant)).await?;
            let made = made.map_err(|error| refusal::of_create(&error))?;
            Ok(reply::ProducerReady { id: made.id, epoch: made.epoch }.into())
        });
    }

    pub(super) fn stream(&self, name: &StreamName) -> Result<Arc<Stream>, Refusal> {
        let found = self.core.broker.stream(&self.tenancy.tenant, name);
        found.map_err(|UnknownStream| refusal::unknown_stream())
    }
}

/// May wait for the disk.
fn offsets_of(stream: &Stream, shard: Option<u32>, at: Start) -> Answer {
    let mut offsets = Vec::new();
    for (number, shard) in chosen(stream, shard)? {
        let (first, end) = (shard.start_offset(), shard.end_offset());
        let (offset, timestamp) = match at {
            Start::Earliest => (first, -1),
            Start::Latest => (end, -1),
            Start::Offset(offset) => (offset.clamp(first, end), -1),
            Start::Time(ms) => {
                let found = shard.offset_for_time(ms).map_err(|error| refusal::of_fetch(&error))?;
                found.unwrap_or((end, -1))
            }
        };
        offsets.push(TimedOffset { shard: number, offset, timestamp });
    }
    Ok(Reply::from(reply::Offsets { offsets }))
}

/// One shard of a stream, or all, with their numbers.
pub(super) fn chosen(
    stream: &Stream,
    shard: Option<u32>,
) -> Result<Vec<(u32, Arc<trifid_stream_engine::Shard>)>, Refusal> {
    let Some(number) = shard else {
        return Ok((0..).zip(stream.shards().iter().cloned()).collect());
    };
    let bad = || Refusal::new(Code::InvalidRequest, "the stream has no such shard");
    Ok(vec![(number, stream.shard(number).cloned().ok_or_else(bad)?)])
}
