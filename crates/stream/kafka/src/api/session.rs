//! One connection's side of the protocol: who the client is, and what becomes of each request.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use kafka_protocol::messages::{
    AlterConfigsRequest, ApiKey, CreatePartitionsRequest, CreateTopicsRequest, DeleteGroupsRequest,
    DeleteTopicsRequest, DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest,
    FindCoordinatorRequest, HeartbeatRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest,
    LeaveGroupRequest, ListGroupsRequest, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest, SaslAuthenticateRequest,
    SyncGroupRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};
use trifid_base_web::Tokens;

use super::caller::Caller;
use super::sasl::{Handshake, Verdict};
use super::table::{Api, find, has_flexible_head};
use super::{
    Answer, Started, admin, cluster, commits, configs, decode, encode, fetch, groups, members, offsets,
    produce, sasl, topics,
};
use crate::limits::{CONTROL_REQUEST_BYTES_MAX, STRANGER_REQUEST_BYTES_MAX};
use crate::options::Endpoint;
use crate::server::{End, Shared, Worker};
use crate::wire::frame::FrameError;
use crate::wire::head::{Head, split};
use crate::wire::shape;

/// Who the client is.
enum Who {
    /// Nobody yet.
    Stranger,
    /// A tenant's, let in when the tokens were of this generation.
    Known { caller: Rc<Caller>, generation: u64 },
}

/// See the module.
pub(crate) struct Session {
    peer: SocketAddr,
    endpoint: Endpoint,
    who: Who,
    handshake: Handshake,
}

impl Session {
    /// For a client at `peer` that reached `local`.
    pub(crate) fn new(worker: &Worker, peer: SocketAddr, local: SocketAddr) -> Self {
        let shared = &worker.shared;
        let endpoint = shared.resolved.advertised.clone().unwrap_or_else(|| local.into());
        let who = match &shared.tokens {
            Some(_) => Who::Stranger,
            None => {
                Who::Known { caller: Rc::new(Caller::local(worker, peer, endpoint.clone())), generation: 0 }
            }
        };
        Self { peer, endpoint, who, handshake: Handshake::Nothing }
    }

    /// Where the client is.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the client has said who it is, or need not.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.who, Who::Known { .. })
    }

    /// Bytes of the largest request that is read from this client.
    pub(crate) fn request_bytes_max(&self, shared: &Shared) -> usize {
        match self.who {
            Who::Stranger => STRANGER_REQUEST_BYTES_MAX,
            Who::Known { .. } => shared.resolved.limits.request_bytes,
        }
    }

    /// Begins a request. Comes back with it if the connection's own publishes have to be acknowledged first.
    pub(crate) fn start(&mut self, frame: Bytes, worker: &Worker) -> Started {
        self.begin(frame, worker, false).unwrap_or_else(|end| Started::Ready(Some(Answer::End(end))))
    }

    /// Begins a request that [`start`](Self::start) gave back though there is nothing to wait for: publishes beyond
    /// the memory are refused, and the client repeats them.
    pub(crate) fn start_refusing(&mut self, frame: Bytes, worker: &Worker) -> Started {
        self.begin(frame, worker, true).unwrap_or_else(|end| Started::Ready(Some(Answer::End(end))))
    }

    fn begin(&mut self, frame: Bytes, worker: &Worker, refusing: bool) -> Result<Started, End> {
        let counts = worker.counts();
        if self.handshake.awaits_bare_token() {
            return Ok(Started::Ready(Some(self.bare_token(&frame, worker))));
        }
        let bytes = frame.len();
        let whole = frame.clone();
        let (head, body) = split(frame, has_flexible_head)?;
        let api = match served(&head)? {
            Ok(api) => api,
            Err(answer) => return Ok(Started::Ready(Some(answer))),
        };
        if !api.carries_records() && bytes > CONTROL_REQUEST_BYTES_MAX {
            return Err(FrameError::TooLarge { bytes, limit: CONTROL_REQUEST_BYTES_MAX }.into());
        }
        shape::check(api.shape, head.version, api.is_flexible(head.version), &body)?;
        counts.requests.bump();
        match (&self.who, api.key) {
            (_, ApiKey::ApiVersions) => Ok(ready(cluster::api_versions(&head))),
            (_, ApiKey::SaslHandshake) => self.handshake(&head, body).map(ready),
            (_, ApiKey::SaslAuthenticate) => self.authenticate(&head, body, worker).map(ready),
            (Who::Stranger, _) => Err(End::Stranger),
            (Who::Known { caller, generation }, key) => {
                if worker.shared.tokens.as_ref().is_some_and(|tokens| tokens.generation() != *generation) {
                    return Err(End::Reauthenticate);
                }
                if key != ApiKey::Produce {
                    return dispatch(caller, key, head, body);
                }
                let whole = (!refusing).then_some(whole);
                // The head is a part of the request too, which is to have no other owner than its records.
                let call = (head.version, head.correlation);
                drop(head);
                produce::start(caller, call, body, whole, counts)
            }
        }
    }

    fn handshake(&mut self, head: &Head, body: Bytes) -> Result<Answer, End> {
        let (answer, handshake) = sasl::handshake(head, &decode(body, head.version)?);
        self.handshake = handshake;
        Ok(answer)
    }

    fn authenticate(&mut self, head: &Head, body: Bytes, worker: &Worker) -> Result<Answer, End> {
        // KIP-368 lets a client say again who it is when its session ends; ours do not.
        if !self.handshake.awaits_token() {
            return Ok(sasl::out_of_order(head));
        }
        let message: SaslAuthenticateRequest = decode(body, head.version)?;
        Ok(match self.verify(&message.auth_bytes, worker) {
            Verdict::Known(tenant) => sasl::welcome(head, &tenant),
            Verdict::Denied => match sasl::denial(head) {
                Answer::Frame(frame) => Answer::Last(frame, End::Denied),
                other => other,
            },
        })
    }

    /// After version 0 of the handshake, tokens come without a head, and so does the answer (KIP-43).
    fn bare_token(&mut self, token: &[u8], worker: &Worker) -> Answer {
        match self.verify(token, worker) {
            Verdict::Known(_) => Answer::Frame(Bytes::from_static(&[0, 0, 0, 0])),
            Verdict::Denied => Answer::End(End::Denied),
        }
    }

    /// Lets a client in as what its message says, which it says once.
    fn verify(&mut self, message: &[u8], worker: &Worker) -> Verdict {
        self.handshake = Handshake::Nothing;
        let tokens = worker.shared.tokens.as_deref();
        // Read first: a file that is read again meanwhile asks the client once more.
        let generation = tokens.map_or(0, Tokens::generation);
        let Some((tenant, role)) = sasl::verify(tokens, message) else { return Verdict::Denied };
        let caller = Caller::new(worker, tenant.clone(), role, self.peer, self.endpoint.clone());
        self.who = Who::Known { caller: Rc::new(caller), generation };
        Verdict::Known(tenant)
    }
}

fn ready(answer: Answer) -> Started {
    Started::Ready(Some(answer))
}

/// The API of a request, if its version is served. A client that asks for a version of ApiVersions that is not is
/// told those that are, in the oldest form (KIP-511); any other has no answer that it could read.
fn served(head: &Head) -> Result<Result<&'static Api, Answer>, End> {
    let unsupported = End::Unsupported { key: head.key, version: head.version };
    let Some(api) = find(head.key) else { return Err(unsupported) };
    match api.serves(head.version) {
        true => Ok(Ok(api)),
        false if api.key == ApiKey::ApiVersions => Ok(Err(cluster::api_versions_refused(head))),
        false => Err(unsupported),
    }
}

/// Lets `ask` work on a request that `kafka-protocol` reads, and writes what it answers.
fn later<Q, R, F>(
    caller: &Rc<Caller>,
    head: Head,
    body: Bytes,
    ask: fn(Rc<Caller>, Q, i16) -> F,
) -> Result<Started, End>
where
    Q: Decodable,
    R: Encodable + HeaderVersion,
    F: Future<Output = R> + 'static,
{
    let request = decode(body, head.version)?;
    let answer = ask(Rc::clone(caller), request, head.version);
    Ok(Started::Later(Box::pin(async move { encode(&head, &answer.await) })))
}

fn dispatch(caller: &Rc<Caller>, key: ApiKey, head: Head, body: Bytes) -> Result<Started, End> {
    match key {
        ApiKey::Fetch => fetch::start(caller, &head, body),
        ApiKey::Metadata => later::<MetadataRequest, _, _>(caller, head, body, cluster::metadata),
        ApiKey::DescribeCluster => {
            later::<DescribeClusterRequest, _, _>(caller, head, body, cluster::describe)
        }
        ApiKey::ListOffsets => later::<ListOffsetsRequest, _, _>(caller, head, body, offsets::list),
        ApiKey::OffsetForLeaderEpoch => {
            later::<OffsetForLeaderEpochRequest, _, _>(caller, head, body, offsets::for_epoch)
        }
        ApiKey::FindCoordinator => later::<FindCoordinatorRequest, _, _>(caller, head, body, groups::find),
        ApiKey::ListGroups => later::<ListGroupsRequest, _, _>(caller, head, body, groups::list),
        ApiKey::DescribeGroups => later::<DescribeGroupsRequest, _, _>(caller, head, body, groups::describe),
        ApiKey::DeleteGroups => later::<DeleteGroupsRequest, _, _>(caller, head, body, groups::delete),
        ApiKey::JoinGroup => members::join(caller, head, body),
        ApiKey::SyncGroup => later::<SyncGroupRequest, _, _>(caller, head, body, members::sync),
        ApiKey::Heartbeat => later::<HeartbeatRequest, _, _>(caller, head, body, members::heartbeat),
        ApiKey::LeaveGroup => later::<LeaveGroupRequest, _, _>(caller, head, body, members::leave),
        ApiKey::OffsetCommit => later::<OffsetCommitRequest, _, _>(caller, head, body, commits::commit),
        ApiKey::OffsetFetch => later::<OffsetFetchRequest, _, _>(caller, head, body, commits::fetch),
        ApiKey::OffsetDelete => later::<OffsetDeleteRequest, _, _>(caller, head, body, commits::delete),
        ApiKey::InitProducerId => {
            later::<InitProducerIdRequest, _, _>(caller, head, body, admin::init_producer)
        }
        ApiKey::CreateTopics => later::<CreateTopicsRequest, _, _>(caller, head, body, topics::create),
        ApiKey::DeleteTopics => later::<DeleteTopicsRequest, _, _>(caller, head, body, topics::delete),
        ApiKey::CreatePartitions => later::<CreatePartitionsRequest, _, _>(caller, head, body, topics::grow),
        ApiKey::DescribeConfigs => {
            later::<DescribeConfigsRequest, _, _>(caller, head, body, configs::describe)
        }
        ApiKey::AlterConfigs => later::<AlterConfigsRequest, _, _>(caller, head, body, configs::alter),
        ApiKey::IncrementalAlterConfigs => {
            later::<IncrementalAlterConfigsRequest, _, _>(caller, head, body, configs::alter_incrementally)
        }
        // `ApiKey` has every API of Kafka; those of the table have been dealt with.
        _ => Err(End::Unsupported { key: head.key, version: head.version }),
    }
}
