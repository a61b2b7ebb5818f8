//! The part of a conversation in which requests are answered.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use trifid_base_web::{Principal, Role};
use trifid_stream_model::frame::{Code, Frame, Refusal, Request, reply, request};
use trifid_stream_model::names::Tenant;

use super::caches::CacheHandles;
use super::groups::Members;
use super::publish::{Acks, Handles};
use super::sources::Sources;
use super::tasks::{Answer, Tasks};
use super::{Output, refusal};
use crate::account::{Account, Tenancy};
use crate::core::Core;
use crate::limits::ACKS_MAX;

/// Who calls.
pub(super) struct Standing {
    pub(super) tenant: Tenant,
    pub(super) principal: Principal,
    /// What it was let in with, and when the tokens were read: who was let in before is asked anew when they
    /// change.
    pub(super) token: Option<String>,
    pub(super) generation: u64,
}

/// A conversation after its greeting.
pub(super) struct Serving {
    pub(super) core: Arc<Core>,
    pub(super) worker: usize,
    pub(super) account: Rc<Account>,
    pub(super) tenancy: Tenancy,
    pub(super) standing: Standing,
    /// The largest body that the client takes.
    pub(super) frame_bytes: u32,
    pub(super) handles: Handles,
    pub(super) caches: CacheHandles,
    pub(super) members: Members,
    pub(super) acks: Acks,
    pub(super) tasks: Tasks,
    pub(super) sources: Sources,
    is_leaving: bool,
}

impl Serving {
    pub(super) fn new(
        core: &Arc<Core>,
        worker: usize,
        account: &Rc<Account>,
        tenancy: Tenancy,
        standing: Standing,
        frame_bytes: u32,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            worker,
            account: Rc::clone(account),
            tenancy,
            standing,
            frame_bytes,
            handles: Handles::default(),
            caches: CacheHandles::default(),
            members: Members::default(),
            acks: Acks::default(),
            tasks: Tasks::default(),
            sources: Sources::default(),
            is_leaving: false,
        }
    }

    /// Whether the conversation is coming to its end.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Nothing new is begun, and nothing more is pushed; what was asked is answered.
    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
        let ended = self.sources.clear();
        self.account.give_subscriptions(ended);
        self.members.hurry();
    }

    /// Whether every request was answered.
    pub(super) fn is_idle(&self) -> bool {
        self.acks.is_empty() && self.tasks.is_empty()
    }

    /// Whether more requests may come.
    pub(super) fn has_room(&self) -> bool {
        self.acks.len() < ACKS_MAX
    }

    /// Asks anew who calls, if the tokens were read again. It costs a look at a number otherwise.
    pub(super) fn check_token(&mut self) -> Result<(), Refusal> {
        let Some(tokens) = &self.core.tokens else { return Ok(()) };
        let generation = tokens.generation();
        if generation == self.standing.generation {
            return Ok(());
        }
        let token = self.standing.token.as_deref().unwrap_or_default();
        match tokens.verify(token.as_bytes()) {
            Some(principal) if principal.tenant == self.standing.principal.tenant => {
                self.standing.principal = principal;
                self.standing.generation = generation;
                Ok(())
            }
            _ => Err(Refusal::new(Code::Unauthorized, "the token is no longer known")),
        }
    }

    /// Answers a request, now or later.
    pub(super) fn take(&mut self, frame: Frame, out: &mut Output) {
        let id = frame.id;
        if frame.kind == request::kind::PUBLISH {
            return match self.allow(Role::Write) {
                Ok(()) => self.publish(frame, out),
                Err(refusal) => out.refuse(id, refusal),
            };
        }
        let request = match Request::decode(&frame) {
            Ok(request) => request,
            Err(error) => {
                self.core.stats.malformed.add(self.worker, 1);
                return out.refuse(id, refusal::of_frame(&error));
            }
        };
        drop(frame);
        match self.admit(&request) {
            Ok(()) => self.answer(id, request, out),
            Err(refusal) => out.refuse(id, refusal),
        }
    }

    fn admit(&self, request: &Request) -> Result<(), Refusal> {
        self.allow(role_for(request))?;
        let is_new = !matches!(request, Request::Credit(_) | Request::Unsubscribe(_) | Request::Ping(_));
        if self.is_leaving && is_new {
            return Err(refusal::leaving());
        }
        if self.tasks.is_full() && is_new {
            let message = "too many requests are under way on this connection";
            return Err(Refusal::new(Code::Overloaded { shed: 0 }, message).after(TASKS_RETRY_MS));
        }
        Ok(())
    }

    fn allow(&self, role: Role) -> Result<(), Refusal> {
        if self.standing.principal.role >= role {
            return Ok(());
        }
        Err(Refusal::new(Code::Forbidden, format!("the token's role does not reach `{role}`")))
    }

    fn answer(&mut self, id: u32, request: Request, out: &mut Output) {
        match request {
            Request::Hello(_) => {
                out.refuse(id, Refusal::new(Code::InvalidRequest, "the greeting was made already"));
            }
            Request::Ping(request::Ping { nonce }) => out.reply(id, reply::Pong { nonce }),
            Request::CreateStream(create) => self.create_stream(id, create),
            Request::DeleteStream(delete) => self.delete_stream(id, delete),
            Request::ListStreams(list) => finish(id, self.list_streams(&list), out),
            Request::DescribeStream(describe) => finish(id, self.describe_stream(&describe.name), out),
            Request::Open(open) => self.open(id, open, out),
            Request::OffsetFor(wanted) => self.offsets(id, wanted),
            // Taken where its frame is, for its bytes' sake.
            Request::Publish(_) => {}
            Request::InitProducer(init) => self.init_producer(id, &init, out),
            Request::Subscribe(subscribe) => self.subscribe(id, subscribe, out),
            Request::Unsubscribe(request::Unsubscribe { subscription }) => {
                self.unsubscribe(subscription, out);
            }
            Request::Credit(request::Credit { subscription, bytes }) => {
                self.sources.credit(subscription, bytes);
            }
            Request::GroupJoin(join) => self.join_group(id, join),
            Request::GroupPull(pull) => self.pull(id, &pull, out),
            Request::GroupAck(ack) => self.ack_group(id, &ack, out),
            Request::GroupNack(nack) => self.nack_group(id, &nack, out),
            Request::GroupExtend(extend) => self.extend_group(id, &extend, out),
            Request::GroupLeave(leave) => self.leave_group(id, leave.handle, out),
            Request::GroupDescribe(describe) => finish(id, self.describe_group(&describe.group), out),
            Request::GroupList(list) => finish(id, self.list_groups(&list), out),
            Request::GroupDelete(delete) => self.delete_group(id, &delete.group),
            Request::CommitOffsets(commit) => self.commit_offsets(id, commit),
            Request::FetchOffsets(fetch) => finish(id, self.fetch_offsets(&fetch), out),
            Request::ResetOffsets(reset) => self.reset_offsets(id, reset),
            Request::CacheCreate(create) => self.create_cache(id, create),
            Request::CacheDrop(drop) => self.drop_cache(id, drop),
            Request::CacheList(list) => finish(id, self.list_caches(&list), out),
            Request::CacheOpen(open) => finish(id, self.open_cache(&open.name), out),
            Request::CacheGet(get) => finish(id, self.cache_get(&get), out),
            Request::CachePut(put) => self.cache_put(id, &put, out),
            Request::CacheDelete(delete) => self.cache_delete(id, &delete, out),
            Request::CacheBatch(batch) => self.cache_batch(id, batch, out),
            Request::CacheScan(scan) => finish(id, self.cache_scan(&scan), out),
            Request::CacheWatch(watch) => self.cache_watch(id, &watch, out),
        }
    }

    /// Settles what has been answered, then pushes.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, out: &mut Output) {
        self.poll_acks(cx, out);
        while let Some(ending) = self.tasks.poll(cx) {
            ending(self, out);
        }
        if !self.is_leaving {
            self.poll_sources(cx, out);
        }
    }
}

/// Subscriptions that were not ended by their client are given back with the conversation.
impl Drop for Serving {
    fn drop(&mut self) {
        let ended = self.sources.clear();
        self.account.give_subscriptions(ended);
    }
}

/// What a client waits for that has too many requests under way, in milliseconds.
const TASKS_RETRY_MS: u32 = 20;

fn finish(id: u32, answer: Answer, out: &mut Output) {
    match answer {
        Ok(reply) => out.reply(id, reply),
        Err(refusal) => out.refuse(id, refusal),
    }
}

/// Reading, and being a member of a group, needs the role `read`; what changes streams, caches or the place
/// of a group, `write`.
fn role_for(request: &Request) -> Role {
    match request {
        Request::Hello(_)
        | Request::Ping(_)
        | Request::ListStreams(_)
        | Request::DescribeStream(_)
        | Request::OffsetFor(_)
        | Request::Subscribe(_)
        | Request::Unsubscribe(_)
        | Request::Credit(_)
        | Request::GroupJoin(_)
        | Request::GroupPull(_)
        | Request::GroupAck(_)
        | Request::GroupNack(_)
        | Request::GroupExtend(_)
        | Request::GroupLeave(_)
        | Request::GroupDescribe(_)
        | Request::GroupList(_)
        | Request::CommitOffsets(_)
        | Request::FetchOffsets(_)
        | Request::CacheList(_)
        | Request::CacheOpen(_)
        | Request::CacheGet(_)
        | Request::CacheScan(_)
        | Request::CacheWatch(_) => Role::Read,
        // A batch may hold reads alone; it is looked at where it is carried out.
        Request::CacheBatch(batch) if batch.ops.iter().all(is_read) => Role::Read,
        Request::CreateStream(_)
        | Request::DeleteStream(_)
        | Request::Open(_)
        | Request::Publish(_)
        | Request::InitProducer(_)
        | Request::GroupDelete(_)
        | Request::ResetOffsets(_)
        | Request::CacheCreate(_)
        | Request::CacheDrop(_)
        | Request::CachePut(_)
        | Request::CacheDelete(_)
        | Request::CacheBatch(_) => Role::Write,
    }
}

fn is_read(op: &trifid_stream_model::frame::CacheOp) -> bool {
    matches!(op, trifid_stream_model::frame::CacheOp::Get { .. })
}
